"""Certified sensitivities on a year of days, against the worst neighbours that the search of the audit finds.

No search may exceed a bound, and where a bound is meant to be near the truth the search must come near it: otherwise
it would prove nothing. `pytest -s` prints the ratio reached, found / certified (squared for Gaussian noise). What the
search finds in floating point is measured again in exact integers, by the design's own `encode`, on logs answered
from the definition. Any windows are those of four weeks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from dpwindows.ask.privacy import EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod, Unit
from dpwindows.ask.queries import AnyWindow, Cumulative, Rolling, WindowFamily
from dpwindows.audit.neighbours import Pair
from dpwindows.audit.probe import probe
from dpwindows.audit.search import Effort, search
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE, Law
from dpwindows.kernel.designs import Design
from dpwindows.kernel.measure import Measurement
from dpwindows.kernel.problem import Problem
from dpwindows.strategies import BATCH, STREAM
from dpwindows.strategies.search.witnesses import with_witness
from tests.single_item import Ints, TableAnswers, squares

EVENT, ITEM, ADD_REMOVE = EventLevel(), ItemLevel(), ItemAddRemove()


def design_of(name: str, problem: Problem) -> Design:
    if name in BATCH:
        found = BATCH[name](problem)
        assert found is not None
        return with_witness(found)
    # For streams alone; run to its end it is measured all at once.
    (stream,) = STREAM[name](problem, problem.steps)
    return with_witness(Design(problem, stream.shape, name))


def exact_norm(design: Design, pair: Ints) -> int:
    """The norm for one pair of logs, in exact integers, from the definition of the answers."""
    total = 0
    for k in design.problem.thresholds:
        first, second = squares(pair, k)
        moved = abs(design.encode(TableAnswers(second - first), k))
        if design.problem.law == LAPLACE:
            assert len(moved) * int(moved.max()) < 1 << 63
            total += int(moved.sum())
        else:
            total += sum(int(value) ** 2 for value in moved[moved != 0])
    return total


def comb(problem: Problem) -> Pair | None:
    """Two logs by turns: each holds k - 1/2 occurrences in a window, so it is counted as long as it is out."""
    k = max(problem.thresholds)
    if not isinstance(problem.unit, ItemLevel) or not isinstance(problem.window, Rolling) or k == 1:
        return None
    logs, spacing = np.zeros((2, problem.steps), dtype=np.int64), problem.window.length / (k - 0.5)
    for log, begin in zip(logs, (0.0, spacing / 2), strict=True):
        np.add.at(log, np.floor(np.arange(begin, problem.steps, spacing)).astype(int), 1)
    one, other = logs.tolist()
    return Pair(tuple(one), tuple(other))


def require_neighbours(unit: Unit, log: Ints, other: Ints) -> None:
    assert min(log.min(), other.min()) >= 0
    changed = np.flatnonzero(log != other)
    match unit:
        case EventLevel():
            assert abs(other - log).sum() == 1
        case ItemAddRemove():
            assert not log.any() or not other.any()
        case ItemPerPeriod(steps=period):
            assert changed[-1] - changed[0] < period


ANY, ANY_14, ANY_7 = AnyWindow(), AnyWindow(14), AnyWindow(7)
# strategy, window, thresholds, unit, law, and the least share of the bound that the search must reach
CASES: list[tuple[str, WindowFamily, tuple[int, ...], Unit, Law, float]] = [
    ("filter", Rolling(28), (1,), EVENT, GAUSSIAN, 0.99),
    ("filter", Rolling(28), (2,), EVENT, GAUSSIAN, 0.85),
    ("filter", Rolling(28), (3,), EVENT, GAUSSIAN, 0.8),
    ("filter", Rolling(28), (10,), EVENT, GAUSSIAN, 0.6),
    ("filter", Rolling(28), (1, 2), EVENT, GAUSSIAN, 0.9),
    ("filter", Rolling(28), (1, 2, 3), EVENT, GAUSSIAN, 0.8),
    ("filter", Rolling(7), (1,), EVENT, GAUSSIAN, 0.99),
    ("filter", Rolling(7), (3,), EVENT, GAUSSIAN, 0.9),
    ("filter", Rolling(7), (10,), EVENT, GAUSSIAN, 0.3),
    ("filter", Rolling(28), (1,), ADD_REMOVE, GAUSSIAN, 0.7),
    ("filter", Rolling(28), (3,), ADD_REMOVE, GAUSSIAN, 0.55),
    ("filter", Rolling(7), (1, 2), ADD_REMOVE, GAUSSIAN, 0.75),
    ("filter", Rolling(28), (1,), ITEM, GAUSSIAN, 0.85),
    ("filter", Rolling(28), (3,), ITEM, GAUSSIAN, 0.8),
    ("filter", Rolling(28), (10,), ITEM, GAUSSIAN, 0.8),
    ("filter", Rolling(7), (2,), ITEM, GAUSSIAN, 0.8),
    ("filter", Rolling(28), (1,), ItemPerPeriod(1), GAUSSIAN, 0.99),
    ("filter", Rolling(28), (1,), ItemPerPeriod(7), GAUSSIAN, 0.9),
    ("filter", Rolling(28), (1,), ItemPerPeriod(30), GAUSSIAN, 0.85),
    ("filter", Rolling(28), (1,), ItemPerPeriod(90), GAUSSIAN, 0.85),
    ("filter", Rolling(28), (3,), ItemPerPeriod(7), GAUSSIAN, 0.4),
    ("filter", Rolling(28), (3,), ItemPerPeriod(90), GAUSSIAN, 0.55),
    ("filter", Rolling(7), (1,), ItemPerPeriod(30), GAUSSIAN, 0.85),
    ("filter", Rolling(28), (1, 2), ItemPerPeriod(30), GAUSSIAN, 0.5),
    ("optimal-filter", Rolling(28), (1,), ItemPerPeriod(1), GAUSSIAN, 0.99),
    ("anchored-differences", Rolling(28), (1,), ItemPerPeriod(30), LAPLACE, 0.6),
    ("direct", Rolling(28), (1,), ItemPerPeriod(30), GAUSSIAN, 0.95),
    ("filter", Cumulative(), (1,), EVENT, GAUSSIAN, 0.95),
    ("filter", Cumulative(), (3,), EVENT, GAUSSIAN, 0.9),
    ("filter", Cumulative(), (1, 2), EVENT, GAUSSIAN, 0.9),
    ("filter", Cumulative(), (2,), ITEM, GAUSSIAN, 0.95),
    ("filter", Cumulative(), (1, 2, 3), ITEM, GAUSSIAN, 0.9),
    ("dense-counter", Cumulative(), (1,), ADD_REMOVE, GAUSSIAN, 0.99),
    ("tree", Cumulative(), (1,), EVENT, LAPLACE, 0.99),
    ("tree", Cumulative(), (1, 2), EVENT, LAPLACE, 0.9),
    ("tree", Cumulative(), (3,), ADD_REMOVE, LAPLACE, 0.99),
    ("anchored-differences", Rolling(28), (1,), EVENT, LAPLACE, 0.99),
    ("anchored-differences", Rolling(28), (3,), EVENT, LAPLACE, 0.9),
    ("anchored-differences", Rolling(28), (1, 2), EVENT, LAPLACE, 0.9),
    ("anchored-differences", Rolling(28), (1,), ADD_REMOVE, LAPLACE, 0.75),
    ("anchored-differences", Rolling(7), (3,), ITEM, LAPLACE, 0.7),
    ("tree", ANY, (1,), EVENT, LAPLACE, 0.99),
    ("tree", ANY_7, (2,), EVENT, LAPLACE, 0.4),
    ("counters", ANY, (1,), ADD_REMOVE, GAUSSIAN, 0.99),
    ("counters", ANY_14, (2,), ADD_REMOVE, GAUSSIAN, 0.9),
    ("counters", ANY, (1,), ITEM, GAUSSIAN, 0.9),
    ("counters", ANY_7, (1,), ItemPerPeriod(7), GAUSSIAN, 0.8),
    ("counters", ANY_7, (1,), ItemPerPeriod(20), GAUSSIAN, 0.8),
    ("counters", ANY_7, (3,), ITEM, GAUSSIAN, 0.7),
    *(("offset-filter", Rolling(n), (1,), ADD_REMOVE, GAUSSIAN, 0.98) for n in (1, 7, 28)),
    ("threshold-filters", Rolling(7), (1, 2), ADD_REMOVE, GAUSSIAN, 0.95),
    ("threshold-filters", Rolling(28), (1, 3), ADD_REMOVE, GAUSSIAN, 0.9),
    *(("optimal-filter", Rolling(7 if k == 3 else 28), (k,), EVENT, GAUSSIAN, 0.97) for k in (3, 2, 10)),
    ("notch-filter", Rolling(7), (1,), ITEM, GAUSSIAN, 0.85),
    ("crossed-counters", ANY, (1,), ITEM, GAUSSIAN, 0.85),
]


def _cases() -> Iterator[Any]:
    """The first of each strategy, window and kind of unit; the others are left to `make search`."""
    met: set[tuple[str, WindowFamily, type[Unit]]] = set()
    for case in CASES:
        name, window, _, unit, *_ = case
        yield pytest.param(*case, marks=[pytest.mark.search(0)] if (name, window, type(unit)) in met else [])
        met.add((name, window, type(unit)))


@pytest.mark.quick(5)
@pytest.mark.parametrize(("name", "window", "thresholds", "unit", "law", "least"), [*_cases()], ids=str)
def test_no_neighbour_found_exceeds_the_bound(
    name: str, window: WindowFamily, thresholds: tuple[int, ...], unit: Unit, law: Law, least: float
) -> None:
    steps = 28 if isinstance(window, AnyWindow) else 365
    design = design_of(name, Problem(window, steps, thresholds, unit, law, noise_per_unit=4.0))
    mechanism = probe([Measurement(design, law, 1.0)])
    effort, begin = Effort(rounds=40), comb(design.problem)
    found, _ = search(mechanism, unit, 2 if law == GAUSSIAN else 1, seed=1, effort=effort, begin=begin)
    pair = np.array([found.log, found.neighbour])
    require_neighbours(unit, *pair)
    ratio = exact_norm(design, pair) / design.sensitivity
    print(f"\n{name} | {window} | {unit.name} | {thresholds} | found / certified = {ratio:.4f}")  # noqa: T201
    assert least <= ratio <= 1
