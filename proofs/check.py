"""Checks the proofs, and runs the checkers that they are about on the integers of the README's releases.

    python proofs/check.py [FILE.npz ...]

compiles the theories, refuses any that rests on an axiom, then plans the README's releases, exports them
(`dpwindows plan --export`, docs/export.md), writes their integers and bounds into theories of their own, and has Rocq
accept them. With files it takes these exports in place of the README's. All that it writes goes to build/proofs.

Of an export nothing is taken over but what is applied: matrices, taps and weights, and the bound that noise is drawn
for. What these integers cost is worked out inside Rocq.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
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
        "starts_are_apart",
        "few_runs",
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
    "Presence": ("gram_sound", "runs_bounded", "rolling_presence_checked"),
}
CLOSED = "Closed under the global context"

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
    lines = [f"From DPWindows Require {' '.join(THEORIES)}.", *(f"Print Assumptions {one}." for one in theorems)]
    (folder / "Assumptions.v").write_text("\n".join(lines) + "\n")
    require_no_axioms(coqc(folder, "Assumptions"), len(theorems))
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
                theory = _theory(one, arrays, description["unit"], description["steps"])
            yield Claim(one["window"], one["sensitivity"]["proof"], theory)


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
            return _presence(arrays["matrix"], steps, int(length), bound)
        case "series", "cumulative", "item-add-remove" if len(thresholds) == 1 and norm:
            lengths, theorem = f"[{steps}%nat]", f"cumulative_presence_checked {norm} matrix {steps} bound"
        case "crossed counters", "any", "item-add-remove" if norm == "L2_squared":
            return _crossed(arrays, steps, thresholds, bound)
        case "windows in gaps", "any", "item-add-remove" if norm == "L2_squared" and thresholds == [1]:
            return _gaps(arrays, bound)
        case _:
            return None
    lines = [
        f"Definition matrix : list (list Z) := [{'; '.join(_row(row) for row in arrays['matrix'])}].",
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


def _presence(matrix: NDArray[np.int64], steps: int, length: int, bound: int) -> str | None:
    hints = presence_hints(matrix, steps, length)
    if hints is None:
        return None
    return _whole(
        [
            f"Definition matrix : list (list Z) := [{'; '.join(_row(row) for row in matrix)}].",
            f"Definition bound := {bound}.",
            f"Definition offset := {hints.offset}.",
            f"Definition price := {hints.price}.",
            f"Definition lags := {_row(hints.lags)}.",
            f"Definition charges := {_row(hints.charges)}.",
            f"Definition table := {_row(hints.table)}.",
            f"Theorem accepted : presence_within matrix {steps} {length} bound offset price lags charges table = true.",
            "Proof. vm_cast_no_check (eq_refl true). Qed.",
            f"Definition certified := rolling_presence_checked matrix {steps} {length} bound offset price lags charges"
            " table accepted.",
        ]
    )


@dataclass(frozen=True)
class PresenceHints:
    """What `Presence.v` is told of a matrix, and checks: an error here can only have a bound refused.

    Attributes:
        offset: what is taken off for each two ones.
        price: for every one.
        lags: what two ones cost by their distance, with the offset.
        charges: the most that a gap and a run after it add, by the length of both.
        table: the most that the first 0, 1, ..., T places cost.
    """

    offset: int
    price: int
    lags: list[int]
    charges: list[int]
    table: list[int]

    @property
    def least(self) -> int:
        """The least bound that Rocq accepts with these."""
        return self.table[-1] - (-(self.price**2) // (4 * self.offset))


def presence_hints(matrix: NDArray[np.int64], steps: int, length: int) -> PresenceHints | None:
    """Hints for a matrix of shape (steps, steps); None where products of its columns leave no offset."""
    exact = matrix.astype(object)
    products = exact.T @ exact
    largest = [int(np.diagonal(products, distance).max()) for distance in range(steps)]
    offset = -max(largest[1:], default=0)
    if offset <= 0:
        return None
    lags = [value + offset for value in largest]
    alone, parts = _parts(lags, length)

    def dear(price: int) -> float:
        return float(_potentials(alone.astype(float), parts.astype(float), float(price), length)[1][-1]) + (
            price**2 / (4 * offset)
        )

    low, high = 0, lags[0]
    while high - low > lags[0] // 10_000 + 2:
        third = (high - low) // 3
        low, high = (low, high - third) if dear(low + third) < dear(high - third) else (low + third, high)
    charges, table = _potentials(alone, parts, low, length)
    return PresenceHints(offset, low, lags, _whole_numbers(charges), _whole_numbers(table))


def _parts(lags: list[int], length: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """What runs cost by themselves, by length, and gaps with the runs after them, by length of both and of the run."""
    steps = len(lags)
    sums = np.array([0, *accumulate(lags)], dtype=object)
    alone = np.array([0, *accumulate(2 * sums[1:] - lags[0])], dtype=object)
    parts = np.full((steps + 1, steps + 1), -4 * steps**2 * max(map(abs, lags)), dtype=object)
    for gap in range(1, steps - length):
        longest = steps - length - gap
        links = sums[gap + length + 1 : gap + length + 1 + longest] - sums[gap + 1 : gap + 1 + longest]
        runs = np.arange(1, longest + 1)
        parts[gap + runs, runs] = alone[1 : longest + 1] + np.cumsum(2 * links)
    return alone, parts


def _potentials(
    alone: NDArray[Any], parts: NDArray[Any], price: float, length: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The charges and the table at a price."""
    steps = len(alone) - 1
    priced = price * np.arange(steps + 1).astype(alone.dtype)
    first, later = alone - priced, parts - priced
    charges = later[:, length:].max(axis=1)
    table = np.zeros_like(first)
    for places in range(1, steps + 1):
        table[places] = table[places - 1]
        if places >= length:
            behind = table[length:places][::-1]
            table[places] = max(table[places], first[places], *(charges[1 : len(behind) + 1] + behind))
    short = later.max(axis=1)[1 : steps - length + 1] + table[length:steps][::-1]
    table[-1] = max(table[-1], first.max(), *short)
    return charges, table


def _whole_numbers(values: Iterable[Any]) -> list[int]:
    return [int(value) for value in values]


def _row(values: Iterable[Any]) -> str:
    return "[" + "; ".join(f"({value})" if value < 0 else str(value) for value in _whole_numbers(values)) + "]"


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
