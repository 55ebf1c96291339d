"""The theories that Rocq reads, and its checkers: what does not hold of the integers that are applied is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpwindows as dw
from dpwindows.kernel.rules import PROOFS
from dpwindows.plan.export import export_plan
from dpwindows.report.machine_checked import CORES
from proofs.check import (
    HERE,
    THEOREMS,
    PresenceHints,
    RefusedError,
    check,
    claims,
    compile_core,
    coqc,
    presence_hints,
    require_no_axioms,
)

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("rocq")]
STEPS = 40
Changed = dict[str, Any]


@pytest.fixture(scope="session")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("coqc") is None:
        pytest.skip("coqc is not installed: `make proofs` installs it")
    folder = tmp_path_factory.mktemp("core")
    assert compile_core(folder) == sum(map(len, THEOREMS.values()))
    return folder


def export(folder: Path, window: dw.WindowFamily, unit: dw.Unit, *thresholds: int) -> Path:
    timeline = dw.Timeline("2024-01-01", "2024-02-10", step="1d")
    plan = dw.Plan([window.at_least(*thresholds)], timeline=timeline, unit=unit, budget=dw.ApproxDP(1.0, 1e-6))
    (folder / "plan.npz").write_bytes(export_plan(plan))
    return folder / "plan.npz"


def altered(path: Path, change: Callable[[Changed, Changed], None]) -> Path:
    """An export with its arrays and what is said of its one measurement changed."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    description = json.loads(str(arrays.pop("description")))
    change(arrays, description["measurements"][0])
    np.savez(path.with_name("altered.npz"), description=np.array(json.dumps(description)), **arrays)
    return path.with_name("altered.npz")


def with_bound(to: int) -> Callable[[Changed, Changed], None]:
    def change(arrays: Changed, one: Changed) -> None:
        one["sensitivity"]["bound"] = str(to)

    return change


CASES = {
    "gaps": (dw.AnyWindow(), dw.ItemAddRemove(), (1,), "windows in gaps", "0/weights"),
    "crossed": (dw.AnyWindow(), dw.ItemAddRemove(), (2, 3), "crossed counters", "0/taps"),
    "presence": (dw.Rolling(7), dw.ItemAddRemove(), (1,), "series", "0/matrix"),
    "thresholds": (dw.Rolling(7), dw.ItemAddRemove(), (1, 3), "series by threshold", "0/matrix_3"),
    "event": (dw.Rolling(7), dw.EventLevel(), (1,), "series", "0/matrix"),
    "cumulative": (dw.Cumulative(), dw.ItemAddRemove(), (1,), "series", "0/matrix"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_bound_is_accepted_and_a_lowered_one_or_a_larger_integer_is_refused(
    name: str, core: Path, tmp_path: Path
) -> None:
    window, unit, thresholds, shape, applied = CASES[name]
    path = export(tmp_path, window, unit, *thresholds)
    said: Changed = {}
    altered(path, lambda _, one: said.update(one))
    assert said["shape"] == shape
    (line,) = check(path, core)
    assert "the bound holds" in line

    # The least bound that is accepted is what the integers cost; for an event that is found by listing all intervals,
    # for an item it is what the hints come to.
    least = int(said["sensitivity"]["bound"])
    if isinstance(window, dw.Rolling) and isinstance(unit, dw.ItemAddRemove):
        hints = presence_hints(matrices_of(path, thresholds), STEPS, window.length)
        assert hints is not None
        assert dear_history(path, window.length, thresholds) <= hints.least <= least
        least = hints.least
    elif isinstance(window, dw.Rolling):
        least = worst_event(path, window.length, said["sensitivity"]["norm"])
    assert list(check(altered(path, with_bound(least)), core))
    with pytest.raises(RefusedError, match="refused"):
        list(check(altered(path, with_bound(least - 1)), core))

    def larger(arrays: Changed, one: Changed) -> None:
        arrays[applied] = arrays[applied].copy()
        arrays[applied].flat[0] *= 3

    with pytest.raises(RefusedError, match="refused"):
        list(check(altered(path, larger), core))


def a_threshold_twice(_: Changed, one: Changed) -> None:
    one["thresholds"] = [1, 3, 3]


def a_threshold_left_out(_: Changed, one: Changed) -> None:
    one["thresholds"] = [1]


def a_part_of_an_integer(arrays: Changed, _: Changed) -> None:
    arrays["0/matrix_3"] = arrays["0/matrix_3"] + 0.9


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (a_threshold_twice, "thresholds that rise"),
        (a_threshold_left_out, "matrix_3 is not of whole numbers, or of none"),
        (a_part_of_an_integer, "matrix_3 is not of whole numbers, or of none"),
    ],
)
def test_what_a_theory_would_leave_out_is_refused(
    change: Callable[[Changed, Changed], None], said: str, tmp_path: Path
) -> None:
    path = export(tmp_path, dw.Rolling(7), dw.ItemAddRemove(), 1, 3)
    with pytest.raises(RefusedError, match=said):
        list(claims(altered(path, change)))


def worst_event(path: Path, length: int, norm: str) -> int:
    """The most that an interval of at most W places moves, by listing them."""
    with np.load(path) as file:
        matrix = file["0/matrix"].astype(object)
    sums = np.concatenate([np.zeros((len(matrix), 1), dtype=object), np.cumsum(matrix, axis=1)], axis=1)
    moved = (
        sums[:, upto] - sums[:, begin]
        for begin in range(STEPS)
        for upto in range(begin, min(begin + length, STEPS) + 1)
    )
    return max(int((abs(one) if norm == "L1" else one * one).sum()) for one in moved)


def matrices_of(path: Path, thresholds: tuple[int, ...]) -> dict[int, Any]:
    with np.load(path) as file:
        return {k: file["0/matrix" if len(thresholds) == 1 else f"0/matrix_{k}"] for k in thresholds}


def dear_history(path: Path, length: int, thresholds: tuple[int, ...]) -> int:
    """The most that an item moves that occurs at evenly spaced steps, so often: no bound may be below it."""
    matrices = matrices_of(path, thresholds)
    ends = np.arange(STEPS)

    def moved(apart: int, first: int, times: int) -> int:
        occurs = times * ((ends >= first) & ((ends - first) % apart == 0))
        counts = np.array([occurs[max(0, end + 1 - length) : end + 1].sum() for end in ends])
        return sum(int(((matrix.astype(object) @ (counts >= k)) ** 2).sum()) for k, matrix in matrices.items())

    return max(
        moved(apart, first, times) for apart in range(1, STEPS) for first in range(apart) for times in {1, *thresholds}
    )


@pytest.mark.parametrize("hint", ["offset", "price", "toll", "lags", "charges", "table"])
def test_a_hint_that_is_too_low_is_refused(
    hint: str, core: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them is checked: with one lowered, or an offset raised, Rocq refuses the bound that it accepted."""

    def lowered(matrices: Any, steps: int, length: int) -> PresenceHints | None:
        hints = presence_hints(matrices, steps, length)
        assert hints is not None
        first, last = hints.lanes
        match hint:
            case "offset":
                last = replace(last, offset=last.offset + 1)
            case "price":
                first = replace(first, price=first.price - 1)
            case "toll":
                last = replace(last, toll=last.toll - 1)
            case "lags":
                last = replace(last, lags=[last.lags[0] - 1, *last.lags[1:]])
            case "charges":
                hints = replace(hints, charges=[one - 1 for one in hints.charges])
            case "table":
                hints = replace(hints, table=[one - 1 for one in hints.table])
        return replace(hints, lanes=[first, last])

    path = export(tmp_path, dw.Rolling(7), dw.ItemAddRemove(), 1, 3)
    monkeypatch.setattr("proofs.check.presence_hints", lowered)
    with pytest.raises(RefusedError, match="refused"):
        list(check(path, core))


def test_an_axiom_is_refused(core: Path) -> None:
    (core / "Assumed.v").write_text("Axiom magic : False.\nPrint Assumptions magic.\n")
    with pytest.raises(RefusedError, match="axioms"):
        require_no_axioms(coqc(core, "Assumed"), 1)
    with pytest.raises(RefusedError, match="axioms"):
        require_no_axioms("", 1)


def test_what_has_no_checker_is_said_to_be_unchecked(core: Path, tmp_path: Path) -> None:
    path = export(tmp_path, dw.Rolling(7), dw.ItemAddRemove(), 2, 3)
    assert [one.theory for one in claims(path)] == [None]
    (line,) = check(path, core)
    assert "NOT CHECKED" in line


def test_occurrences_are_not_taken_for_items(tmp_path: Path) -> None:
    """One item may add several to a cumulative count of occurrences, and the theorem is about 0 and 1."""
    path = export(tmp_path, dw.Cumulative(), dw.ItemAddRemove(), 1)
    assert [one.theory is None for one in claims(path)] == [False]

    def of_occurrences(arrays: Changed, one: Changed) -> None:
        one["thresholds"] = [-1]

    assert [one.theory for one in claims(altered(path, of_occurrences))] == [None]


def test_every_lemma_that_is_named_is_proved() -> None:
    """A proof's machine-checked core is among the theorems whose axioms are looked at."""
    for proof, lemmas in CORES.items():
        assert proof in PROOFS
        for lemma in lemmas:
            theory, _, theorem = lemma.partition(".")
            assert theorem in THEOREMS[theory]


def test_the_theories_are_short() -> None:
    """What is read to believe the lemmas, and what a checker of releases adds to that."""
    lines = {path.stem: len(path.read_text().splitlines()) for path in HERE.glob("*.v")}
    checkers = lines.pop("Checks") + lines.pop("Presence")
    assert sum(lines.values()) <= 938
    assert checkers <= 755
