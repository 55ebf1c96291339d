"""Occurrences: what is certified, against every neighbour on small horizons, counted from the definition."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpwindows.ask.calendar import Calendar
from dpwindows.ask.counting_rule import EVERY_OCCURRENCE, CountingRule
from dpwindows.ask.periods import placed
from dpwindows.ask.privacy import EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod, PureDP, Unit
from dpwindows.ask.queries import (
    OCCURRENCES,
    AnyWindow,
    Cumulative,
    Query,
    Rolling,
    ToDate,
    Tumbling,
    WindowFamily,
)
from dpwindows.ask.timeline import Timeline
from dpwindows.audit.losses import norms
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE, Law
from dpwindows.kernel.advice import from_witness
from dpwindows.kernel.certificate import NotCertifiedError
from dpwindows.kernel.designs import Design
from dpwindows.kernel.families.series import FromTotals, Series
from dpwindows.kernel.measure import Measurement, measure
from dpwindows.kernel.occurrences import occurrences_one_by_one, problem_of_one
from dpwindows.kernel.problem import Problem
from dpwindows.strategies import candidates, stream_candidates
from tests.single_item import TableAnswers

History = tuple[int, ...]
STEPS = 5
WINDOWS = (Cumulative(), Rolling(2), Rolling(3), AnyWindow(), AnyWindow(3), Tumbling(2), ToDate(3))


def occurrences(by_step: NDArray[Any], rule: CountingRule = EVERY_OCCURRENCE) -> TableAnswers:
    """The occurrences of one item, or how they differ between two, in every window."""
    sums = np.concatenate([[0], np.cumsum(by_step)])
    return TableAnswers(np.triu(sums[None, 1:] - sums[:-1, None]), rule)


def counted(history: History, rule: CountingRule) -> NDArray[Any]:
    """The occurrences of an item that a rule lets count, by step."""
    held = np.minimum(history, 1) if rule.distinct_steps else np.array(history)
    most = rule.max_occurrences
    return held if most is None else np.diff(np.minimum(np.cumsum(held), most), prepend=0)


def changes(unit: Unit, rule: CountingRule) -> Iterator[NDArray[Any]]:
    """How the occurrences in each step differ between any two neighbours, each change once in either direction."""
    if isinstance(unit, EventLevel):
        yield from np.eye(STEPS, dtype=np.int64)
        return
    # With more in a step than count no other change comes.
    histories = itertools.product(range((rule.max_occurrences or 0) + 1), repeat=STEPS)
    held = sorted({tuple(counted(history, rule).tolist()) for history in histories})
    if isinstance(unit, ItemAddRemove):
        yield from map(np.array, held)
        return
    yield from (np.array(one) - np.array(other) for one, other in itertools.combinations(held, 2))


def problem(window: WindowFamily, unit: Unit, law: Law, most: int | None = None, *, once: bool = False) -> Problem:
    """Occurrences in windows of this family over the few steps."""
    (query,) = placed((Query(window).occurrences(),), Calendar.of(Timeline.of_steps(STEPS)), STEPS)
    rule = CountingRule(distinct_steps=once, max_occurrences=most)
    return Problem(query.window, STEPS, query.thresholds, unit, law, 1.0, rule=rule)


def norm(design: Design, change: NDArray[Any]) -> int:
    """How far a change moves what is measured, in the norm of the noise: of Gaussian noise its square."""
    moved = design.encode(occurrences(change), OCCURRENCES)
    # Exact: Python's whole numbers.
    return int(norms(design.problem.law, np.array(moved.ravel().tolist(), dtype=object), 1))


def furthest(design: Design, unit: Unit) -> int:
    """The furthest that any neighbour moves what is measured."""
    return max(norm(design, change) for change in changes(unit, design.problem.rule))


def as_asked(designs: Iterable[Design]) -> Design:
    """The one design that measures the windows asked for, and no totals in their place."""
    (design,) = (one for one in designs if not isinstance(one.shape, FromTotals))
    return design


UNITS: list[tuple[Unit, int | None, bool]] = [(EventLevel(), None, False), (EventLevel(), None, True)]
UNITS += [(ItemAddRemove(), 1, False), (ItemAddRemove(), 3, False), (ItemAddRemove(), 2, True)]
UNITS += [(ItemLevel(), 1, False), (ItemLevel(), 2, False), (ItemLevel(), 2, True)]


@pytest.mark.parametrize("law", [GAUSSIAN, LAPLACE])
@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize(("unit", "most", "once"), UNITS, ids=lambda one: getattr(one, "name", str(one)))
def test_no_neighbour_moves_occurrences_by_more_than_is_certified(
    unit: Unit, most: int | None, once: bool, window: WindowFamily, law: Law
) -> None:
    """Every strategy that applies. Where one occurrence is bounded exactly, so are many added or removed at once."""
    asked = problem(window, unit, law, most, once=once)
    for design in candidates(asked):
        reached, certified = furthest(design, unit), design.certificate
        assert reached <= certified.bound
        assert certified.of_one is not None
        assert certified.moved <= design.rows
        if isinstance(design.shape, FromTotals):
            one, factor = problem_of_one(replace(asked, window=Cumulative()))
            of_one = replace(design, problem=one, shape=Series(design.shape.map)).certificate
        else:
            one, factor = problem_of_one(asked)
            of_one = replace(design, problem=replace(one, law=design.problem.law)).certificate
        assert certified.bound == of_one.bound * factor ** (2 if law == GAUSSIAN else 1)
        if not isinstance(unit, ItemLevel) and not once:
            # All that one neighbour may change can change in one step.
            single = max(norm(design, change) for change in np.eye(STEPS, dtype=np.int64))
            assert reached == single * (most or 1) ** (2 if law == GAUSSIAN else 1)


@pytest.mark.parametrize(
    ("window", "unit", "most", "squared"),
    [
        (Tumbling(2), EventLevel(), None, 1),
        (Tumbling(2), ItemAddRemove(), 3, 9),
        # An item that changes takes its three out of one period and puts them into another.
        (Tumbling(2), ItemLevel(), 3, 18),
        (Rolling(2), EventLevel(), None, 2),
        (Cumulative(), EventLevel(), None, STEPS),
        (Cumulative(), ItemLevel(), 2, 4 * STEPS),
    ],
    ids=str,
)
def test_the_bounds_of_answers_measured_as_they_are(
    window: WindowFamily, unit: Unit, most: int | None, squared: int
) -> None:
    design = as_asked(candidates(problem(window, unit, GAUSSIAN, most), "direct"))
    cell = int(design.shape.measured.unit if hasattr(design.shape.measured, "unit") else design.shape.measured.map.unit)
    assert design.certificate.bound == squared * cell**2
    assert furthest(design, unit) <= design.certificate.bound


@pytest.mark.parametrize("unit", [ItemLevel(), ItemAddRemove(), ItemPerPeriod(2)], ids=lambda unit: unit.name)
def test_occurrences_of_items_without_a_limit_have_no_bound(unit: Unit) -> None:
    design = as_asked(candidates(problem(Rolling(2), EventLevel(), LAPLACE), "direct"))
    unbounded = replace(design, problem=replace(design.problem, unit=unit))
    with pytest.raises(ValueError, match="where a rule bounds those of an item"):
        _ = unbounded.certificate


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_no_rule_about_items_is_asked_about_occurrences(window: WindowFamily) -> None:
    """The threshold of occurrences is no number of runs."""
    for design in candidates(problem(window, EventLevel(), LAPLACE)):
        with pytest.raises(NotCertifiedError):
            design.shape.certify(design.problem, STEPS, from_witness(design.witness))


def test_what_was_not_clipped_as_certified_is_not_measured() -> None:
    """Answers say which occurrences they were counted from."""
    design = as_asked(candidates(problem(Rolling(2), ItemLevel(), LAPLACE, 2), "direct"))
    made = Measurement(design, LAPLACE, float(design.certificate.bound))
    for rule in (EVERY_OCCURRENCE, CountingRule(max_occurrences=3), CountingRule(distinct_steps=True)):
        with pytest.raises(ValueError, match="count other occurrences of an item than the measurements are for"):
            measure([made], PureDP(1.0), occurrences(np.ones(STEPS, dtype=np.int64), rule))
    clipped = occurrences(np.ones(STEPS, dtype=np.int64), CountingRule(max_occurrences=2))
    assert measure([made], PureDP(1.0), clipped)[0][OCCURRENCES].shape == (design.rows,)


def test_totals_are_measured_for_occurrences_only() -> None:
    """Distinct items of two windows may be the same ones: their numbers are no differences of totals."""
    (design,) = candidates(replace(problem(Cumulative(), EventLevel(), LAPLACE), thresholds=(1,)), "direct")
    assert isinstance(design.shape, Series)
    for window in (AnyWindow(), Rolling(2)):
        asked = replace(design.problem, window=window)
        with pytest.raises(NotCertifiedError):
            _ = replace(design, problem=asked, shape=FromTotals(design.shape.map)).certificate


def test_many_times_one_change() -> None:
    assert occurrences_one_by_one(7, 3, 1) == 7 * 3
    assert occurrences_one_by_one(7, 3, 2) == 7 * 9


@pytest.mark.parametrize("window", [Cumulative(), Rolling(3), AnyWindow(3), Tumbling(2), ToDate(3)], ids=str)
def test_streams_without_an_end_are_certified_alike(window: WindowFamily) -> None:
    asked = problem(window, EventLevel(), GAUSSIAN)
    for design in stream_candidates(asked, None):
        assert furthest(replace(design, problem=asked), EventLevel()) <= design.certificate.bound
