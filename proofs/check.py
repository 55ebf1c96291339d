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
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
BUILD = HERE.parent / "build" / "proofs"
# In the order in which they rest on one another.
THEORIES = ("Sums", "Logs", "Potentials", "Neighbours", "Filters", "Clipping", "Lines", "Checks")
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


def _whole_numbers(values: Iterable[Any]) -> list[int]:
    return [int(value) for value in values]


def _row(values: Iterable[Any]) -> str:
    return "[" + "; ".join(f"({value})" if value < 0 else str(value) for value in _whole_numbers(values)) + "]"


def _whole(lines: list[str]) -> str:
    head = [
        "From Coq Require Import List ZArith.",
        "From DPWindows Require Import Lines Checks.",
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
