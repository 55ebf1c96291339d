"""Designs of one step after another: their numbers against the whole matrix, their estimates and their errors.

A step design run over all steps at once is an ordinary design, for shapes of every family.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dpwindows as dw
from dpwindows import reading
from dpwindows.ask.privacy import EventLevel
from dpwindows.ask.queries import AnyWindow, Cumulative, Rolling, WindowFamily
from dpwindows.ask.windows import window_steps
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.designs import Design, StepAnswers, StepDesign, StepShape
from dpwindows.kernel.families.nested import Nested
from dpwindows.kernel.families.series import Series
from dpwindows.kernel.families.starts import Starts
from dpwindows.kernel.maps.counters import MatrixCounter
from dpwindows.kernel.maps.differences import AnchoredDifferences
from dpwindows.kernel.maps.endless_counter import EndlessCounter
from dpwindows.kernel.maps.filters import Filter, Identity
from dpwindows.kernel.maps.integer_maps import CausalMap
from dpwindows.kernel.maps.tent_tree import TentTree
from dpwindows.kernel.maps.trees import CausalTree
from dpwindows.kernel.problem import Problem
from dpwindows.reading.reader import steps_of
from dpwindows.strategies.search.fractional import integer_taps
from tests.single_item import TableAnswers, random_square

TAPS = integer_taps(0.5, 0.95, 40, 16)
# A tree of 16 steps and one more; of the widest blocks one and some of the next, whose rows are many.
STEPS, WINDOW_STEPS = 17, 10


def designed(window: WindowFamily, shape: StepShape, steps: int = STEPS) -> StepDesign:
    problem = Problem(window, steps, (1,), EventLevel(), GAUSSIAN, 1.0)
    return StepDesign(problem, shape, "under test", horizon=None)


def series_maps() -> list[CausalMap]:
    listed = np.tril(np.random.default_rng(3).integers(1, 4, (STEPS, STEPS)))
    np.fill_diagonal(listed, 40)
    return [
        Filter(TAPS),
        Filter(TAPS[:3]),
        Filter((5,)),
        Identity(3),
        AnchoredDifferences(4, 10, 5),
        AnchoredDifferences(1, 3, 7),
        CausalTree(2, (5, 4, 3, 2, 1)),
        CausalTree(3, (4, 4)),
        CausalTree(20, (2,)),
        MatrixCounter(listed),
        EndlessCounter(12),
    ]


def window_shapes() -> Iterator[tuple[WindowFamily, StepShape]]:
    for longest, width in itertools.product((1, 3, 5), (1, 2, 5, 7)):
        for tents in ((), (width // 2,)):
            across = TentTree(width, tents, 4)
            yield AnyWindow(longest), Starts(longest, CausalTree(2, (3, 2)), width=width, across=across)
        filtered = Starts(longest, Filter(TAPS[: width + longest - 1]), width=width, across=TentTree(width, (), 4))
        yield AnyWindow(longest), filtered
    steps = WINDOW_STEPS
    across = TentTree(steps, (steps // 3, 1), 9)
    yield AnyWindow(), Starts(steps, CausalTree(3, (1, 2, 3)), width=steps, across=across)
    causal: tuple[CausalMap, ...] = (Identity(2), Filter(TAPS), Filter(TAPS[:2]), CausalTree(2, (3, 2)))
    for longest, along in itertools.product((1, 4), (*causal, AnchoredDifferences(2, 3, 2))):
        yield AnyWindow(longest), Starts(longest, along)
    yield AnyWindow(), Starts(steps, Filter(TAPS))
    for longest, weights in ((3, (5, 3, 2)), (steps, tuple(range(1, steps + 1)))):
        yield AnyWindow(None if longest == steps else longest), Nested(longest, TAPS, weights)
    for longest, taps in itertools.product((1, 3, 5), (TAPS, TAPS[:2], (7,))):
        yield AnyWindow(longest), Nested(longest, taps)
    yield AnyWindow(), Nested(steps, TAPS)


def all_designs() -> list[StepDesign]:
    found = [designed(window, Series(made)) for window in (Rolling(4), Cumulative()) for made in series_maps()]
    return found + [designed(window, shape, WINDOW_STEPS) for window, shape in window_shapes()]


# Trees of more rows repeat what smaller ones do, and take seconds.
in_every_design = pytest.mark.parametrize(
    "design",
    [pytest.param(design, marks=[pytest.mark.slow] if design.rows > 340 else []) for design in all_designs()],
    ids=lambda design: f"{design.problem.window}",
)


@pytest.mark.quick(10)
@pytest.mark.search(43)
@in_every_design
def test_decoding_undoes_encoding_and_errors_are_those_of_unit_noise(design: StepDesign) -> None:
    square = random_square(np.random.default_rng(1), design.problem.steps, 9)
    encoded = design.encode(TableAnswers(square), 1)
    assert encoded.dtype in (np.int64, object)
    assert len(encoded) == design.rows
    first, last = window_steps(design.problem.window, design.problem.steps)
    reader = reading.of(design)
    assert reader.decode(encoded.astype(np.float64)) == pytest.approx(square[first - 1, last - 1], abs=1e-6)
    weights = np.stack([reader.decode(unit) for unit in np.eye(design.rows)], axis=1)
    assert (weights**2).sum(axis=1) == pytest.approx(reader.variance(), rel=1e-9)
    assert (weights**4).sum(axis=1) == pytest.approx(reader.fourth_moment(), rel=1e-9)


@in_every_design
def test_nothing_that_is_measured_or_estimated_needs_a_later_step(design: StepDesign) -> None:
    """The matrix is lower-triangular in time: changing the answers of later ends changes no earlier row."""
    square = random_square(np.random.default_rng(2), design.problem.steps, 9)
    later = square.copy()
    later[:, 7:] += 1
    rows = sum(design.rows_at(step) for step in range(1, 8))
    before, after = (design.encode(TableAnswers(table), 1)[:rows] for table in (square, np.triu(later)))
    assert (before == after).all()
    noisy = np.random.default_rng(5).normal(size=design.rows)
    other = noisy.copy()
    other[rows:] = 0.0
    _, last = window_steps(design.problem.window, design.problem.steps)
    decode = reading.of(design).decode
    assert (decode(noisy)[last <= 7] == decode(other)[last <= 7]).all()


@in_every_design
def test_the_error_at_a_step_is_the_forecast_to_the_last_bit(design: StepDesign) -> None:
    _, last = window_steps(design.problem.window, design.problem.steps)
    forecast = reading.of(design).variance()
    for step in range(1, design.problem.steps + 1):
        assert (steps_of(design.forecast_over(step)).variance_at(step) == forecast[last == step]).all()


@pytest.mark.slow
def test_memory_of_bounded_windows_does_not_grow() -> None:
    rng = np.random.default_rng(0)
    for window, shape in window_shapes():
        design = designed(window, shape)
        reader = steps_of(design)
        memory, seen, sizes = shape.fresh(), reader.fresh(), []
        for step in range(1, 80):
            answers = StepAnswers(step, {1: np.sort(rng.integers(0, 50, step))}, {1: 0})
            measured, memory = design.encode_step(answers, 1, memory)
            _, seen = reader.decode_step(step, measured.astype(np.float64), seen)
            sizes.append(sum(value.nbytes for value in (*memory.values(), *seen.values())))
        assert max(sizes[20:]) <= max(sizes[:20]) + max(sizes) // 2


@in_every_design
def test_estimates_of_single_steps_are_those_of_all_steps(design: StepDesign) -> None:
    """What a stream reads step by step, with a memory, is what its whole noisy run is read as."""
    noisy = np.random.default_rng(6).normal(size=design.rows)
    _, last = window_steps(design.problem.window, design.problem.steps)
    whole, reader = reading.of(design).decode(noisy), steps_of(design)
    memory, place = reader.fresh(), 0
    for step in range(1, design.problem.steps + 1):
        rows = design.rows_at(step)
        estimates, memory = reader.decode_step(step, noisy[place : place + rows], memory)
        place += rows
        assert estimates == pytest.approx(whole[last == step], abs=1e-12)
    assert place == design.rows


@pytest.mark.parametrize(
    ("window", "shape"),
    [
        *((window, Series(one)) for window in (Rolling(4), Cumulative()) for one in series_maps()),
        *(
            (window, shape)
            for window, shape in window_shapes()
            if isinstance(shape, Nested | Starts) and shape.longest <= WINDOW_STEPS
        ),
    ],
    ids=str,
)
def test_a_release_measures_the_numbers_of_a_stream(window: WindowFamily, shape: StepShape) -> None:
    """In another order, integer by integer: one map serves both."""
    steps = STEPS if isinstance(shape, Series) else WINDOW_STEPS
    problem = Problem(window, steps, (1,), EventLevel(), GAUSSIAN, 1.0)
    answers = TableAnswers(random_square(np.random.default_rng(7), steps, 10**6))
    release, stream = Design(problem, shape, ""), StepDesign(problem, shape, "", horizon=steps)
    measured, by_step = release.encode(answers, 1), stream.encode(answers, 1)
    assert release.rows == stream.rows == len(measured) == len(by_step)
    assert sorted(measured.tolist()) == sorted(by_step.tolist())


@pytest.mark.parametrize("unit", [dw.EventLevel(), dw.ItemPerPeriod(3)])
@pytest.mark.parametrize("budget", [dw.ZCDP(1.0), dw.PureDP(1.0)])
@pytest.mark.parametrize("window", [dw.Rolling(5), dw.Cumulative()])
def test_moments_of_a_series_are_those_of_its_steps(window: Any, budget: Any, unit: Any) -> None:
    (design,) = dw.StreamPlan([window], unit=unit, budget=budget, horizon=40).designs
    steps, reader = range(1, 41), steps_of(design)
    by_step = np.concatenate([reader.variance_at(step) for step in steps])
    assert reader.variance() == pytest.approx(by_step, rel=1e-12)
    fourth = reader.fourth_moment()
    assert fourth is not None
    assert fourth == pytest.approx(np.concatenate([reader.moment_at(step, 4) for step in steps]), rel=1e-12)
