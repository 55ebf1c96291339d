"""Causal designs: each step's numbers against the whole matrix, its errors, and its certified sensitivity.

A step design run over all steps at once is an ordinary design, so the enumeration of neighbours that batch strategies
go through serves here too, with and without a horizon.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

import dpwindows as dw
from dpwindows import reading
from dpwindows.ask.privacy import EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod, Unit
from dpwindows.ask.queries import AnyWindow, Cumulative, Rolling, WindowFamily
from dpwindows.ask.windows import window_steps
from dpwindows.errors import InputError
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE
from dpwindows.kernel.advice import from_witness
from dpwindows.kernel.designs import Design, StepAnswers, StepDesign, StepShape
from dpwindows.kernel.families.blocks import StepBlocks
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
from dpwindows.kernel.rules import Case, certify
from dpwindows.reading.reader import steps_of
from dpwindows.strategies import stream_candidates
from dpwindows.strategies.search.fractional import integer_taps
from tests.kernel.families.test_sensitivity import Looseness, kind, matrix_of, truth
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
        extent = width + longest - 1
        for tents in ((), (width // 2,)):
            yield (
                AnyWindow(longest),
                StepBlocks(longest, width, extent, TentTree(width, tents, 4), CausalTree(2, (3, 2))),
            )
        yield AnyWindow(longest), StepBlocks(longest, width, extent, TentTree(width, (), 4), Filter(TAPS[:extent]))
    steps = WINDOW_STEPS
    yield AnyWindow(), StepBlocks(steps, steps, steps, TentTree(steps, (steps // 3, 1), 9), CausalTree(3, (1, 2, 3)))
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
            measured = design.encode_step(answers, 1, memory)
            memory = design.remember(answers, 1, memory)
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


# --- Certified sensitivities against all neighbours -------------------------------------------------------------------


@lru_cache(maxsize=512)
def stream_designs(
    window: WindowFamily, unit: Unit, thresholds: tuple[int, ...], horizon: int | None
) -> list[StepDesign]:
    found = []
    for law in (GAUSSIAN, LAPLACE):
        problem = Problem(window, horizon or 64, thresholds, unit, law, noise_per_unit=1.0, bits=16)
        found += stream_candidates(problem, horizon)
    return found


def bounded_cells(steps: int, thresholds: tuple[int, ...]) -> Iterator[StepDesign]:
    windows = [Cumulative(), *(Rolling(length) for length in range(1, steps + 1)), AnyWindow()]
    for window in [*windows, *(AnyWindow(longest) for longest in range(1, steps + 1))]:
        for unit in (EventLevel(), ItemLevel(), ItemAddRemove(), ItemPerPeriod(2)):
            yield from stream_designs(window, unit, thresholds, steps)


def unlimited_cells(steps: int, thresholds: tuple[int, ...]) -> Iterator[StepDesign]:
    windows = [Cumulative(), Rolling(1), Rolling(2), Rolling(3), AnyWindow(1), AnyWindow(2), AnyWindow(3)]
    for window in windows:
        units: tuple[Unit, ...] = (EventLevel(), ItemPerPeriod(1), ItemPerPeriod(2))
        for unit in units:
            yield from (design.forecast_over(steps) for design in stream_designs(window, unit, thresholds, None))
    units = (ItemLevel(), ItemAddRemove())
    for unit in units:
        yield from (design.forecast_over(steps) for design in stream_designs(Cumulative(), unit, thresholds, None))


LONGER = ((5, (1,)), (4, (3,)))


@pytest.mark.quick(1)
@pytest.mark.parametrize("cells", [bounded_cells, unlimited_cells])
@pytest.mark.parametrize(
    ("steps", "thresholds"),
    [(3, (1,)), (4, (1,)), (4, (2,)), (4, (1, 2)), *(pytest.param(*case, marks=pytest.mark.slow) for case in LONGER)],
    ids=str,
)
def test_no_neighbour_moves_a_stream_by_more_than_is_certified(
    cells: object, steps: int, thresholds: tuple[int, ...]
) -> None:
    assert callable(cells)
    found = Looseness()
    for design in cells(steps, thresholds):
        found.add(
            (design.strategy, kind(design.problem.window), design.problem.unit.name), design.sensitivity, truth(design)
        )
    found.show(f"{getattr(cells, '__name__', '')}, T={steps}, at least {thresholds}")
    assert found.seen


@pytest.mark.parametrize("unit", [EventLevel(), ItemAddRemove()], ids=lambda unit: unit.name)
def test_no_neighbour_changes_more_numbers_than_the_lattice_is_charged_for(unit: Unit) -> None:
    steps = 5
    for window in (
        (Rolling(2), AnyWindow(2)) if isinstance(unit, EventLevel) else (Rolling(2), AnyWindow(), Cumulative())
    ):
        for design in stream_designs(window, unit, (1,), None if isinstance(unit, EventLevel) else steps):
            if design.problem.law != GAUSSIAN:
                continue
            matrix = matrix_of(design.forecast_over(steps))
            from tests.kernel.families.test_sensitivity import neighbours

            moved = (neighbours(window, steps, (1,), unit).every @ matrix.T.astype(np.int64)) != 0
            assert moved.sum(axis=1).max() <= design.moved


def test_the_bound_for_unlimited_counters_holds_for_longer_columns_than_it_adds_up() -> None:
    rows = EndlessCounter(20)
    squares = np.cumsum(rows.taps(60_000).astype(object) ** 2)
    assert int(squares[-1]) <= rows.column
    # What is left for all later steps together is about what the integral says.
    left = (rows.column - int(squares[4095])) / 4**20
    assert left == pytest.approx(np.log(30) ** 1.5 / np.pi * 2 / np.sqrt(np.log(4125)), rel=0.01)
    cumulative = Problem(Cumulative(), 5, (1, 2), EventLevel(), GAUSSIAN, 1.0)
    assert certify(Case(cumulative, rows, None, from_witness({})))[0] == 4 * rows.column


def test_unlimited_taps_are_those_of_the_formula() -> None:
    taps = EndlessCounter(30).taps(3000)
    lags = np.arange(1, 3000)
    root = np.concatenate([[1.0], np.cumprod((lags - 0.5) / lags)])
    formula = root * (np.log(30) / np.log(np.arange(3000) + 30)) ** 0.75 * 2.0**30
    assert taps == pytest.approx(formula, abs=1.01)
    assert (taps <= formula + 1e-4).all()
    assert (EndlessCounter(30).taps(100) == taps[:100]).all()


def test_the_error_of_an_unlimited_stream_grows_like_a_power_of_the_logarithm() -> None:
    counter = reading.step_reader(EndlessCounter(24))
    early, late = np.sqrt(counter.variance(1 << 16)[[255, 65535]])
    # From 2^8 to 2^16 steps the logarithm doubles; noise that is merely summed up would grow 16-fold.
    assert 1 < late / early < 2 ** (5 / 4)


@pytest.mark.parametrize(
    ("window", "unit"),
    [(AnyWindow(), EventLevel()), (Rolling(7), ItemLevel()), (AnyWindow(7), ItemAddRemove())],
    ids=str,
)
def test_what_no_bound_covers_for_ever_needs_a_horizon(window: WindowFamily, unit: Unit) -> None:
    problem = Problem(window, 100, (1,), unit, GAUSSIAN, 1.0)
    with pytest.raises(InputError, match="--horizon"):
        stream_candidates(problem, None)
    assert stream_candidates(problem, 100)


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
