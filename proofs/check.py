"""Checks the proofs, and runs the checkers that they are about on the integers of the README's releases.

    python proofs/check.py [FILE.npz ...]

compiles the theories, refuses any that rests on an axiom, then plans the README's releases, exports them
(`dpwindows plan --export`, docs/export.md), writes their integers and bounds into theories of their own, and has Rocq
accept them. With files it takes these exports in place of the README's. All that it writes goes to build/proofs.

Of an export nothing is taken over but what is applied: matrices, taps and weights, and the bound that is stated
for them. What these integers cost is worked out inside Rocq. That noise of a scale is enough for the bound is not.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).parent
BUILD = HERE.parent / "build" / "proofs"
# In the order in which they rest on one another.
THEORIES = ("Sums", "Logs", "Potentials", "Neighbours", "Filters", "Clipping", "Lines", "Checks", "Presence")
THEOREMS = {
    "Potentials": ("potentials_bound_every_walk", "table_bounds_every_path", "cuts_bounded"),
    "Logs": ("recency_counts", "recency_is_the_kth", "counts_from_recency", "counts_from_signed"),
    "Neighbours": (
        "one_occurrence_changes_its_item",
        "any_windows_change_on_a_rectangle",
        "cumulative_counts_change_on_an_interval",
        "rolling_counts_change_on_an_interval",
        "runs_are_long",
        "few_starts",
        "one_start",
        "few_runs",
        "few_starts_in_a_run",
    ),
    "Filters": (
        "difference_of_steps_costs",
        "interval_costs",
        "contracting_contracts",
        "signs_lemma",
        "runs_cost",
        "signed_runs_cost",
    ),
    "Clipping": ("clipping_moves_nothing_apart", "clipping_norms"),
    "Lines": ("change_on_a_line", "windows_on_lines", "items_on_lines"),
    "Checks": (
        "intervals_within_sound",
        "rolling_event_checked",
        "cumulative_presence_checked",
        "crossed_checked",
        "gaps_checked",
    ),
    "Presence": ("gram_sound", "tolls_cover", "runs_bounded", "rolling_presence_checked"),
}
CLOSED = "Closed under the global context"

# How the names of arrays that are applied begin.
APPLIED = ("matrix", "taps", "weights", "start_weights", "end_weights", "blocks", "offset", "total")
BUDGET = ("--epsilon", "1", "--delta", "1e-6", "--steps", "365")
# What the README plans and releases, and the figures that it states.
README = {
    "plan": ("--window", "rolling:28", "--window", "any:90", "--unit", "item-add-remove"),
    "release": (
        *("--window", "rolling:28", "--window", "any:90", "--at-least", "1", "--at-least", "3"),
        *("--unit", "item-add-remove"),
    ),
    "event": ("--window", "rolling:28", "--unit", "event"),
    "any": ("--window", "any", "--unit", "item-add-remove"),
    "cumulative": ("--window", "cumulative", "--unit", "item-add-remove"),
}


class RefusedError(Exception):
    """Rocq does not accept a theory, or a theorem rests on an axiom."""


@dataclass(frozen=True)
class Claim:
    """What Rocq is asked about one measurement.

    Attributes:
        window: its windows.
        proof: the proof that its bound rests on.
        theory: the theory that states the bound of its integers, None where there is no checker.
    """

    window: str
    proof: str
    theory: str | None


def coqc(folder: Path, name: str) -> str:
    """Compile a theory, and return what it prints.

    Raises:
        RefusedError: it is not accepted.
    """
    # It leaves caches where it runs.
    command = ["coqc", "-q", "-Q", ".", "DPWindows", f"{name}.v"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RefusedError(f"{name}.v is refused:\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def require_no_axioms(printed: str, theorems: int) -> None:
    """Refuse what `Print Assumptions` says of so many theorems, unless each is closed.

    Raises:
        RefusedError: a theorem rests on an axiom.
    """
    lines = [line for line in printed.splitlines() if line.strip()]
    if lines != [CLOSED] * theorems:
        raise RefusedError(f"not every theorem is proved without axioms:\n{printed[-2000:]}")


def compile_core(folder: Path) -> int:
    """Compile the theories, and return how many theorems are proved without axioms.

    Raises:
        RefusedError: one is not accepted, or rests on an axiom.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in THEORIES:
        shutil.copy(HERE / f"{name}.v", folder)
        coqc(folder, name)
    theorems = [f"{theory}.{theorem}" for theory, several in THEOREMS.items() for theorem in several]
    # One after another each would be looked through again for what it shares with the others.
    together = f"Definition together := ({', '.join('@' + one for one in theorems)})."
    lines = [f"From DPWindows Require {' '.join(THEORIES)}.", together, "Print Assumptions together."]
    (folder / "Assumptions.v").write_text("\n".join(lines) + "\n")
    require_no_axioms(coqc(folder, "Assumptions"), 1)
    return len(theorems)


# --- From an export to theories ---------------------------------------------------------------------------------------


def claims(path: Path) -> Iterator[Claim]:
    """What is claimed of every measurement of an export."""
    with np.load(path) as file:
        description = json.loads(str(file["description"]))
        for number, one in enumerate(description["measurements"]):
            arrays = {
                name.removeprefix(f"{number}/"): file[name] for name in file.files if name.startswith(f"{number}/")
            }
            theory = None
            if "groups" not in one:
                _require_whole(one, arrays, description["steps"])
                theory = _theory(one, arrays, description["unit"], description["steps"])
            yield Claim(one["window"], one["sensitivity"]["proof"], theory)


def _require_whole(one: dict[str, Any], arrays: dict[str, Any], steps: Any) -> None:
    """Refuse what a theory would not say as it stands: numbers that are not whole, a matrix that nothing names.

    Raises:
        RefusedError: there is one.
    """
    listed = one["thresholds"]
    numbers = [steps, *listed]
    if any(type(number) is not int for number in numbers) or sorted(set(listed)) != listed:
        raise RefusedError(f"{numbers} are no number of steps and thresholds that rise")
    named = {f"matrix_{k}" for k in listed}
    for name in filter(lambda name: name.startswith(APPLIED), arrays):
        if arrays[name].dtype.kind == "f" or (name.startswith("matrix_") and name not in named):
            raise RefusedError(f"the array {name} is not of whole numbers, or of none of the thresholds {listed}")


def _theory(one: dict[str, Any], arrays: dict[str, Any], unit: str, steps: int) -> str | None:
    """The theory of a measurement, None where there is no checker for it."""
    norm = {"L1": "L1", "squared L2": "L2_squared"}.get(one["sensitivity"]["norm"])
    kind, _, length = one["window"].partition(":")
    bound, thresholds = int(one["sensitivity"]["bound"]), one["thresholds"]
    if min(thresholds) < 1:
        return None  # occurrences: an item may change a count of them by more than 1, and no theorem is about that
    match one["shape"], kind, unit:
        case "series", "rolling", "event" if thresholds == [1] and norm:
            lengths, theorem = (
                f"(seq 0 {int(length) + 1})",
                f"rolling_event_checked {norm} matrix {steps} {length} bound",
            )
        case "series", "rolling", "item-add-remove" if thresholds == [1] and norm == "L2_squared":
            return _presence({1: arrays["matrix"]}, steps, int(length), bound)
        case "series by threshold", "rolling", "item-add-remove" if thresholds[0] == 1 and norm == "L2_squared":
            return _presence({k: arrays[f"matrix_{k}"] for k in thresholds}, steps, int(length), bound)
        case "series", "cumulative", "item-add-remove" if len(thresholds) == 1 and norm:
            lengths, theorem = f"[{steps}%nat]", f"cumulative_presence_checked {norm} matrix {steps} bound"
        case "crossed counters", "any", "item-add-remove" if norm == "L2_squared":
            return _crossed(arrays, steps, thresholds, bound)
        case "windows in gaps", "any", "item-add-remove" if norm == "L2_squared" and thresholds == [1]:
            return _gaps(arrays, bound)
        case _:
            return None
    lines = [
        f"Definition matrix := {_rows(arrays['matrix'])}.",
        f"Definition bound := {bound}.",
        f"Theorem accepted : intervals_within {norm} matrix {steps} {lengths} bound = true.",
        "Proof. vm_cast_no_check (eq_refl true). Qed.",
    ]
    hypotheses = "ltac:(repeat constructor) accepted" if kind == "rolling" else "accepted"
    return _whole([*lines, f"Definition certified := {theorem} {hypotheses}."])


def _crossed(arrays: dict[str, Any], steps: int, thresholds: Sequence[int], bound: int) -> str | None:
    if arrays["blocks"].tolist() != [[1, steps, steps]]:
        return None
    return _whole(
        [
            f"Definition taps := {_row(arrays['taps'])}.",
            f"Definition start_weights := {_row(arrays[f'start_weights_{steps}_{steps}'])}.",
            f"Definition end_weights := {_row(arrays[f'end_weights_{steps}_{steps}'])}.",
            f"Definition thresholds := [{'; '.join(map(str, thresholds))}]%nat.",
            f"Definition bound := {bound}.",
            f"Theorem accepted : crossed_within taps start_weights end_weights {steps} (length thresholds) bound"
            " = true.",
            "Proof. vm_cast_no_check (eq_refl true). Qed.",
            f"Definition certified := crossed_checked taps start_weights end_weights {steps} thresholds bound"
            " ltac:(repeat constructor) accepted.",
        ]
    )


def _gaps(arrays: dict[str, Any], bound: int) -> str:
    offset, total = int(arrays["offset"][0]), int(arrays["total"][0])
    table = gap_potentials(_whole_numbers(arrays["taps"]), _whole_numbers(arrays["weights"]), offset)
    return _whole(
        [
            f"Definition taps := {_row(arrays['taps'])}.",
            f"Definition weights := {_row(arrays['weights'])}.",
            f"Definition offset := {offset}.",
            f"Definition total := {total}.",
            f"Definition bound := {bound}.",
            f"Definition table := {_row(table)}.",
            "Theorem accepted : gaps_within taps weights offset total bound table = true.",
            "Proof. vm_cast_no_check (eq_refl true). Qed.",
            "Definition certified := gaps_checked taps weights offset total bound table accepted.",
        ]
    )


def gap_potentials(taps: list[int], weights: list[int], offset: int) -> list[int]:
    """The most that gaps cost in T+1, T, ..., 0 steps. Nobody has to trust it: Rocq checks every entry."""
    steps = len(weights)
    padded = np.array((taps + [0] * steps)[:steps], dtype=object)
    sums, by_length = np.cumsum(padded), np.array(weights, dtype=object)
    squares = np.convolve(by_length**2, np.convolve(sums**2, sums**2))
    charges = [0, *(squares - 2 * offset * np.convolve(by_length, np.convolve(sums, sums)))[: steps - 1]]
    best = [0]
    for _ in range(steps + 1):
        best.append(max(charge + before for charge, before in zip(charges, reversed(best), strict=False)))
    return best[::-1]


def _presence(matrices: dict[int, NDArray[np.int64]], steps: int, length: int, bound: int) -> str | None:
    hints = presence_hints(matrices, steps, length)
    if hints is None:
        return None
    lanes = [
        f"Definition lane_{number} := {{| threshold := {one.threshold}; matrix := {_rows(matrices[one.threshold])};"
        f" offset := {one.offset}; price := {one.price}; spare := {one.spare}; toll := {one.toll};"
        f" diagonal := {one.lags[0]}; lags := {_row(one.lags[1:])} |}}."
        for number, one in enumerate(hints.lanes)
    ]
    others = "; ".join(f"lane_{number}" for number in range(1, len(lanes)))
    said = f"{steps} {length} bound lane_0 [{others}] charges table"
    return _whole(
        [
            *lanes,
            f"Definition bound := {bound}.",
            f"Definition charges := {_row(hints.charges)}.",
            f"Definition table := {_row(hints.table)}.",
            f"Theorem accepted : presence_within {said} = true.",
            "Proof. vm_cast_no_check (eq_refl true). Qed.",
            f"Definition certified := rolling_presence_checked {said} accepted.",
        ]
    )


@dataclass(frozen=True)
class LaneHints:
    """What `Presence.v` is told of one threshold's matrix, and checks.

    Attributes:
        threshold: k.
        offset: what is taken off for each two ones.
        price: for every one.
        toll: what no run costs more than; the threshold 1 needs none.
        lags: what two ones cost by their distance, with the offset.
    """

    threshold: int
    offset: int
    price: int
    toll: int
    lags: list[int]

    @property
    def spare(self) -> int:
        """The most that any number of ones pays for less than the offset takes off."""
        return -(-(self.price**2) // (4 * self.offset))


@dataclass(frozen=True)
class PresenceHints:
    """What `Presence.v` is told of an item's rolling counts, and checks: an error can only have a bound refused.

    Attributes:
        lanes: of every threshold, 1 first.
        charges: the most that a gap and a run after it add, by the length of both: 1, 2, ..., T.
        table: the most that the first T, ..., 1, 0 places cost.
    """

    lanes: list[LaneHints]
    charges: list[int]
    table: list[int]

    @property
    def least(self) -> int:
        """The least bound that Rocq accepts with these."""
        return self.table[0] + sum(one.spare for one in self.lanes)


def presence_hints(matrices: dict[int, NDArray[np.int64]], steps: int, length: int) -> PresenceHints | None:
    """Hints for a matrix of shape (steps, steps) for each threshold; None where products leave no offset.

    The prices are searched for one after another: each is best while the others stay.
    """
    lanes = []
    for k, matrix in matrices.items():
        exact = matrix.astype(object)
        products = exact.T @ exact
        largest = [int(np.diagonal(products, distance).max()) for distance in range(steps)]
        offset = -max(largest[1:], default=0)
        if offset <= 0:
            return None
        lanes.append(LaneHints(k, offset, largest[0] // 5, 0, [value + offset for value in largest]))
    alone, parts = _parts(lanes[0].lags, length)

    def priced(about: list[LaneHints], exact: type) -> PresenceHints:
        return _potentials(about, alone.astype(exact), parts.astype(exact), length)

    for number in [*range(len(lanes))] * (4 if len(lanes) > 1 else 1):
        low, high = 0, lanes[number].lags[0]

        def dear(price: int, number: int = number) -> float:
            return priced([*lanes[:number], replace(lanes[number], price=price), *lanes[number + 1 :]], float).least

        while high - low > lanes[number].lags[0] // 10_000_000 + 2:
            third = (high - low) // 3
            low, high = (low, high - third) if dear(low + third) < dear(high - third) else (low + third, high)
        lanes[number] = replace(lanes[number], price=low)
    return priced(lanes, object)


def _parts(lags: list[int], length: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """What runs cost by themselves, by length, and gaps with the runs after them, by length of both and of the run."""
    steps = len(lags)
    sums = np.array([0, *accumulate(lags)], dtype=object)
    parts = np.full((steps + 1, steps + 1), -4 * steps**2 * max(map(abs, lags)), dtype=object)
    alone = np.array(_norms(lags, 0), dtype=object)
    for gap in range(1, steps - length):
        longest = steps - length - gap
        links = sums[gap + length + 1 : gap + length + 1 + longest] - sums[gap + 1 : gap + 1 + longest]
        runs = np.arange(1, longest + 1)
        parts[gap + runs, runs] = alone[1 : longest + 1] + np.cumsum(2 * links)
    return alone, parts


def _norms(lags: list[int], price: int) -> list[int]:
    """What runs of 0, 1, ... places cost by themselves, less the price of their ones."""
    return [0, *accumulate(accumulate([lags[0] - price, *(2 * lag for lag in lags[1:])]))]


def _potentials(about: list[LaneHints], alone: NDArray[Any], parts: NDArray[Any], length: int) -> PresenceHints:
    """The charges and the table at the prices of all thresholds, and their tolls."""
    steps = len(alone) - 1
    places = np.arange(steps + 1)
    first, *others = about
    lanes = [first, *(replace(one, toll=max(_norms(one.lags, one.price))) for one in others)]
    cut, ended = (
        sum(one.toll * (1 + one.threshold * (later // (length + 1))).astype(alone.dtype) for one in lanes)
        for later in (np.maximum(places - 1, 0), np.maximum(places - length, 0))
    )
    priced = first.price * places.astype(alone.dtype)
    inner, last = alone - priced + ended, alone - priced + cut
    charges = (parts - priced + ended)[:, length:].max(axis=1)
    charges[1] = 0
    table = np.zeros_like(inner)
    for place in range(1, steps + 1):
        table[place] = table[place - 1]
        if place >= length:
            behind = table[length:place][::-1]
            table[place] = max(table[place], inner[place], *(charges[1 : len(behind) + 1] + behind))
    short = (parts - priced + cut).max(axis=1)[1 : steps - length + 1] + table[length:steps][::-1]
    table[-1] = max(table[-1], last.max(), *short)
    return PresenceHints(lanes, _whole_numbers(charges[1:]), _whole_numbers(table[::-1]))


def _whole_numbers(values: Iterable[Any]) -> list[int]:
    return [int(value) for value in values]


def _row(values: Iterable[Any]) -> str:
    return "[" + "; ".join(map(_number, _whole_numbers(values))) + "]"


def _rows(matrix: NDArray[Any]) -> str:
    """A matrix whose rows are told by how often each entry stands there one after another."""
    rows = []
    for row in matrix:
        begins = np.array([0, *np.flatnonzero(row[1:] != row[:-1]) + 1])
        counts = np.diff(begins, append=len(row))
        rows.append(
            "; ".join(f"({count}, {_number(int(row[begin]))})" for begin, count in zip(begins, counts, strict=True))
        )
    return f"map unfolded [{'; '.join(f'[{row}]' for row in rows)}]"


def _number(value: int) -> str:
    return f"({value})" if value < 0 else str(value)


def _whole(lines: list[str]) -> str:
    head = [
        "From Coq Require Import List ZArith.",
        "From DPWindows Require Import Lines Checks Presence.",
        "Import ListNotations.",
    ]
    return "\n".join([*head, "Open Scope Z_scope.", *lines, "Print Assumptions certified."]) + "\n"


# --- The commands -----------------------------------------------------------------------------------------------------


def export_readme(folder: Path) -> list[Path]:
    """Export every release of the README."""
    paths = []
    for name, asked in README.items():
        path = folder / f"{name}.npz"
        command = [sys.executable, "-m", "dpwindows", "plan", *asked, *BUDGET, "--export", str(path), "--force"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        paths.append(path)
    return paths


def check(path: Path, folder: Path) -> Iterator[str]:
    """Have Rocq accept an export; a line for every measurement.

    Raises:
        RefusedError: the bound of a measurement does not hold for its integers.
    """
    for number, claim in enumerate(claims(path)):
        if claim.theory is None:
            yield f"{path.stem}: {claim.window}: NOT CHECKED, no checker for {claim.proof}"
            continue
        name = f"Release_{path.stem}_{number}".replace("-", "_")
        (folder / f"{name}.v").write_text(claim.theory)
        require_no_axioms(coqc(folder, name), 1)
        yield f"{path.stem}: {claim.window}: the bound holds ({claim.proof})"


def main(paths: list[Path]) -> int:
    """Check the theories and the exports."""
    say = sys.stdout.write
    try:
        theorems = compile_core(BUILD)
        say(f"{len(THEORIES)} theories, {theorems} theorems: {CLOSED}\n")
        for path in paths or export_readme(BUILD):
            for line in check(path, BUILD):
                say(line + "\n")
    except RefusedError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main([Path(argument) for argument in sys.argv[1:]]))
