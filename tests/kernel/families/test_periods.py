"""What windows of periods cost, against all neighbours on small horizons; streams against releases.

Designs that the strategies find and maps drawn at random, in releases and in streams. `pytest -s` prints what was met.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from dpwindows import reading
from dpwindows.ask.counting_rule import CountingRule
from dpwindows.ask.periods import fewest_and_most, first_steps, sizes
from dpwindows.ask.privacy import EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod, Unit
from dpwindows.ask.queries import PeriodFamily, ToDate, Tumbling, WindowFamily
from dpwindows.errors import InputError
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE, Law
from dpwindows.kernel.certificate import NotCertifiedError
from dpwindows.kernel.designs import Design, StepDesign, step_answers
from dpwindows.kernel.families.lines import lines_bound
from dpwindows.kernel.families.periods import (
    SeriesInPeriods,
    layout_of,
    lines_of_periods,
    periods_met,
    periods_met_at_most,
    series_of,
)
from dpwindows.kernel.families.series import Series, series
from dpwindows.kernel.maps.filters import Filter, Identity, OffsetFilter
from dpwindows.kernel.maps.integer_maps import CausalMap, IntegerMap
from dpwindows.kernel.maps.tent_tree import TentTree
from dpwindows.kernel.problem import Problem
from dpwindows.reading.reader import steps_of
from dpwindows.strategies import BATCH, candidates, stream_candidates
from tests.kernel.lines_met import any_costs, costliest_span
from tests.kernel.made_up import DAYS, LAWS, MONTHS, PERIODS, PERIODS_OF_SPRING, THRESHOLDS
from tests.kernel.truth import truth
from tests.single_item import HistoryAnswers, SingleItem, random_histories

STEPS = 5
UNITS: tuple[Unit, ...] = (
    EventLevel(),
    ItemLevel(),
    ItemAddRemove(),
    *(ItemPerPeriod(span) for span in (1, 2, 3)),
)


def problem_of(window: PeriodFamily, unit: Unit, law: Law, thresholds: tuple[int, ...] = (1,)) -> Problem:
    # Few bits: what is measured stays within what the enumeration adds up exactly.
    return Problem(window, STEPS, thresholds, unit, law, noise_per_unit=1.0, bits=8)


def found(problem: Problem) -> list[Design]:
    """What every strategy has for a problem."""
    designs: list[Design] = []
    for name in BATCH:
        try:
            designs += candidates(problem, name)
        except InputError:
            continue
    return designs


@pytest.mark.quick(5)
@pytest.mark.search(37)
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
@pytest.mark.parametrize("window", PERIODS, ids=lambda window: window.text)
def test_no_neighbour_moves_a_design_further_than_it_is_charged_for(window: Tumbling | ToDate, unit: Unit) -> None:
    for law, thresholds in itertools.product(LAWS, ((1,), (2,), (1, 2))):
        designs = found(problem_of(window, unit, law, thresholds))
        assert designs
        for design in designs:
            exact = truth(design)
            assert 0 < exact <= design.sensitivity, (design.strategy, law, thresholds)
            if design.strategy == "direct" and isinstance(window, Tumbling):
                assert exact == design.sensitivity, "disjoint windows leave nothing to be bounded"


@pytest.mark.parametrize("window", PERIODS, ids=lambda window: window.text)
def test_what_disjoint_windows_cost(window: Tumbling | ToDate) -> None:
    """Measured directly: one window at event level, whatever is asked of it; at item level every window and k."""
    if isinstance(window, ToDate):
        return
    windows = len(sizes(window, STEPS))
    for thresholds in THRESHOLDS:
        costs = {
            unit.name: candidates(problem_of(window, unit, LAPLACE, thresholds), "direct")[0].sensitivity
            for unit in UNITS
        }
        assert costs["event"] == 1
        assert costs["item"] == costs["item-add-remove"] == windows * len(thresholds)
        spans = {span: costs[f"item-per:{span}"] // len(thresholds) for span in (1, 2, 3)}
        assert all(met == max_met(window, span) for span, met in spans.items())


def max_met(window: PeriodFamily, span: int) -> int:
    """The most periods that a span meets, by trying every span."""
    period = np.repeat(np.arange(len(sizes(window, STEPS))), sizes(window, STEPS))
    return max(len(set(period[first : first + span].tolist())) for first in range(STEPS - span + 1))


def test_periods_met_is_the_most_that_any_span_meets() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        lengths = rng.integers(1, 6, rng.integers(1, 6))
        steps = int(lengths.sum())
        firsts = np.concatenate([[1], np.cumsum(lengths)[:-1] + 1])
        period = np.repeat(np.arange(len(lengths)), lengths)
        fewest = int(lengths[1:-1].min(initial=steps))
        for span in range(1, steps + 1):
            most = max(len(set(period[first : first + span].tolist())) for first in range(steps - span + 1))
            assert periods_met(firsts, steps, span) == most
            assert most <= periods_met_at_most(fewest, span)
        assert periods_met(firsts, steps, 10**100) == len(lengths)


def test_the_bound_for_periods_without_end_is_met() -> None:
    lengths = np.full(40, 7)
    firsts = np.cumsum(lengths) - 6
    for span in range(1, 60):
        assert periods_met_at_most(7, span) == periods_met(firsts, 280, span)


@pytest.mark.quick(1)
@pytest.mark.parametrize("horizon", [STEPS, None])
@pytest.mark.parametrize("window", PERIODS, ids=lambda window: window.text)
def test_no_neighbour_moves_a_stream_further_than_it_is_charged_for(
    window: Tumbling | ToDate, horizon: int | None
) -> None:
    whole = (ItemLevel(), ItemAddRemove())
    if horizon is None and window.period == 9:
        return  # no window ends within the steps that are looked at
    for unit, law in itertools.product(UNITS, LAWS):
        if horizon is None and unit in whole:
            with pytest.raises(InputError, match="needs a horizon"):
                stream_candidates(problem_of(window, unit, law), horizon)
            continue
        for design in stream_candidates(problem_of(window, unit, law, (1, 2)), horizon):
            if design.rows:
                assert truth(design) <= design.sensitivity, (design.strategy, unit.name, law)


@pytest.mark.parametrize("unit", [ItemLevel(), ItemAddRemove()], ids=lambda unit: unit.name)
@pytest.mark.parametrize("window", [Tumbling(1), Tumbling(2), ToDate(2)], ids=lambda window: window.text)
def test_items_with_few_occurrences_cost_less_and_enough(window: Tumbling | ToDate, unit: Unit) -> None:
    """With `max_occurrences` all logs have at most so many: every pair of them, through what is encoded."""
    logs = [counts for counts in itertools.product(range(3), repeat=STEPS) if sum(counts) <= 2]
    for law, thresholds in itertools.product(LAWS, ((1,), (2,), (1, 2))):
        bounded = replace(problem_of(window, unit, law, thresholds), rule=CountingRule(max_occurrences=2))
        for design in found(bounded):
            encoded = np.array([[design.encode(SingleItem(log), k) for k in thresholds] for log in logs], dtype=float)
            others = encoded if isinstance(unit, ItemLevel) else np.zeros((1, *encoded.shape[1:]))
            moved = abs(encoded[:, None] - others[None]) ** (2 if law == GAUSSIAN else 1)
            assert moved.sum(axis=(2, 3)).max() <= design.sensitivity, (design.strategy, law, thresholds)
    free = candidates(problem_of(Tumbling(1), unit, LAPLACE), "direct")[0].sensitivity
    bounded = replace(problem_of(Tumbling(1), unit, LAPLACE), rule=CountingRule(max_occurrences=2))
    assert candidates(bounded, "direct")[0].sensitivity < free
    runs = replace(problem_of(Tumbling(1), unit, LAPLACE), rule=CountingRule(max_runs=1))
    assert candidates(runs, "direct")[0].sensitivity == free


def test_a_map_for_other_periods_is_not_certified() -> None:
    problem = problem_of(ToDate(2), EventLevel(), GAUSSIAN)
    own = SeriesInPeriods.of_release(ToDate(2), STEPS, Identity(1), continued=False)
    assert Design(problem, own, "own").sensitivity == 2
    for other in (replace(own, most=1), replace(own, last=STEPS + 1), replace(own, last=None), Series(Identity(1))):
        with pytest.raises(NotCertifiedError):
            _ = Design(problem, other, "wrong").sensitivity
    with pytest.raises(ValueError, match="5 positions"):
        SeriesInPeriods.of_release(Tumbling(2), STEPS, TentTree(5, ()), continued=True).rows(Tumbling(2), STEPS)


@pytest.mark.parametrize(
    ("window", "steps"), [(ToDate(4), 4), (ToDate(4), 8), (ToDate(4), 11), (ToDate(3), 7)], ids=str
)
@pytest.mark.parametrize("largest", [9, 2**62])
def test_periods_are_measured_and_read_one_by_one(window: ToDate, steps: int, largest: int) -> None:
    """Those that end early have the first rows of a causal map, or go on with their last value."""
    exact = np.random.default_rng(3).integers(-largest, largest, steps, endpoint=True)
    periods, most = np.split(exact, first_steps(window, steps)[1:] - 1), int(sizes(window, steps).max())
    causal, tents = Filter((9, -3, -2, -1)), TentTree(most, (2,), 4)
    by_causal = [value for one in periods for value in causal.encode(one).tolist()]
    longest = [np.pad(one, (0, most - len(one)), mode="edge") for one in periods]
    by_tents = [value for one in longest for value in tents.encode(one).tolist()]
    for made, continued, wanted in ((causal, False, by_causal), (tents, True, by_tents)):
        shape = SeriesInPeriods.of_release(window, steps, cast("IntegerMap", made), continued=continued)
        assert shape.encode_series(window, exact).tolist() == wanted
        assert shape.rows(window, steps) == len(wanted)
        reader = reading.of(Design(Problem(window, steps, (1,), EventLevel(), GAUSSIAN, 1.0), shape, ""))
        decoder = reader.decode(np.eye(len(wanted)))
        encoder = shape.encode_series(window, np.eye(steps, dtype=np.int64))
        assert np.allclose(decoder @ encoder.astype(float), np.eye(steps))
        assert np.allclose((decoder**2).sum(axis=1), reader.variance())
        assert reader.fourth_moment() == pytest.approx((decoder**4).sum(axis=1))


def test_a_filter_for_another_number_of_periods_is_not_certified() -> None:
    problem = problem_of(Tumbling(2), ItemAddRemove(), GAUSSIAN)

    def counted(periods: int) -> Design:
        rows = OffsetFilter((4, -1), tuple(range(8 + periods, 8, -1)), (1,) * periods, 0)
        return Design(problem, SeriesInPeriods.of_release(Tumbling(2), STEPS, rows, continued=True), "")

    assert counted(3).sensitivity > 0
    for periods in (1, 2, 4, 5):
        with pytest.raises(NotCertifiedError):
            _ = counted(periods).sensitivity


def test_a_class_of_somebody_else_repeats_no_map() -> None:
    class Louder(SeriesInPeriods):
        """Encodes what its map is not charged for."""

    problem = problem_of(ToDate(2), EventLevel(), GAUSSIAN)
    for made in (SeriesInPeriods, Louder):
        design = Design(problem, made.of_release(ToDate(2), STEPS, Identity(2), continued=False), "")
        if made is SeriesInPeriods:
            assert design.sensitivity > 0
        else:
            with pytest.raises(NotCertifiedError):
                _ = design.sensitivity


@pytest.mark.parametrize("window", [Tumbling(2), ToDate(2)], ids=lambda window: window.text)
def test_of_one_event_a_step_a_period_holds_many(window: Tumbling | ToDate) -> None:
    problem = replace(problem_of(window, ItemLevel(), GAUSSIAN), singleton=True)
    assert series_of(problem, layout_of(problem, STEPS, 2, 2)).singleton is False


def test_a_shape_holds_the_calendar_to_what_its_certificate_counts_on() -> None:
    window, unit = Tumbling("quarter", calendar=MONTHS), ItemPerPeriod(4)
    problem = problem_of(window, unit, LAPLACE)
    honest = SeriesInPeriods(Identity(1), 3, 3, None)
    assert StepDesign(problem, honest, "direct", horizon=None).sensitivity == periods_met_at_most(3, 4) == 2
    answers = SingleItem((1,) * 9)
    StepDesign(replace(problem, steps=9), honest, "direct", horizon=None).encode(answers, 1)
    for shape, last in ((replace(honest, fewest=4, most=4), 6), (replace(honest, fewest=2, most=2), 5)):
        wrong = StepDesign(replace(problem, steps=last - 1), shape, "direct", horizon=None)
        wrong.encode(SingleItem((1,) * (last - 1)), 1)
        with pytest.raises(ValueError, match=r"the rules of the time zone are not those it was planned with"):
            wrong.forecast_over(last).encode(SingleItem((1,) * last), 1)
    # By newer rules the fourth step is the third of its period, and what was measured as the second goes by again.
    memory = honest.fresh() | {"place": np.array([1])}
    with pytest.raises(ValueError, match="step 5 is number 3 of a period of tumbling:quarter, after number 1"):
        honest.encode_step(window, step_answers(answers, 5, 1, 3), 1, memory)
    to_date = SeriesInPeriods(Filter((1,)), 3, 3, None)
    other = problem_of(ToDate(2), unit, GAUSSIAN)
    with pytest.raises(NotCertifiedError):
        _ = StepDesign(other, to_date, "", horizon=4).sensitivity
    # Periods of two steps, where those of three or more were charged for, are not measured beyond the second.
    short = StepDesign(replace(other, steps=4), to_date, "", horizon=None)
    short.encode(SingleItem((1,) * 4), 1)
    with pytest.raises(ValueError, match=r"the rules of the time zone are not those it was planned with"):
        short.forecast_over(5).encode(SingleItem((1,) * 5), 1)


def test_lines_of_periods_change_in_the_places_that_a_span_meets() -> None:
    rng = np.random.default_rng(8)
    reached = 0
    for _ in range(300):
        sizes = rng.integers(1, 6, size=int(rng.integers(1, 6))).tolist()
        steps, longest, fewest = sum(sizes), max(sizes), min(sizes[1:-1], default=sum(sizes))
        firsts = np.concatenate([[1], np.cumsum(sizes)[:-1] + 1])
        windows = [[(a, b) for b in range(a, a + size)] for a, size in zip(firsts.tolist(), sizes, strict=True)]
        costs = any_costs(rng, longest)
        for span in range(1, steps + 1):
            met = periods_met(firsts, steps, span)
            bound = lines_bound(lines_of_periods(longest, met, span, fewest), costs, 1)
            true = costliest_span([(1, line) for line in windows], costs, span, steps)
            assert true <= bound <= met * costs[-1]
            reached += true == bound
            # Without a horizon only the fewest and the most steps of a period are known.
            free = lines_of_periods(longest, periods_met_at_most(fewest, span), span, fewest)
            assert bound <= lines_bound(free, costs, 1)
    assert reached > 300


@pytest.mark.parametrize("span", range(1, 30))
def test_lines_of_periods_of_equal_length_are_charged_the_truth(span: int) -> None:
    costs = any_costs(np.random.default_rng(span), 7)
    windows = [[(a, b) for b in range(a, a + 7)] for a in range(1, 70, 7)]
    bound = lines_bound(lines_of_periods(7, periods_met_at_most(7, span), span, 7), costs, 3)
    assert bound == 3 * costliest_span([(1, line) for line in windows], costs, span, 70)


@pytest.mark.parametrize("fewest", [-1000, -1, 0])
@pytest.mark.parametrize("window", [Tumbling(1), Tumbling(3), ToDate(1), ToDate(3)], ids=str)
def test_periods_of_no_steps_are_no_reason_to_meet_fewer(window: WindowFamily, fewest: int) -> None:
    """A regression: with fewer steps to a period than none, a span of many was taken to meet one of them."""
    problem = Problem(window, 8, (1,), ItemPerPeriod(5), LAPLACE, 1.0)
    with pytest.raises(NotCertifiedError):
        _ = StepDesign(problem, SeriesInPeriods(Identity(1), fewest, 3, None), "", horizon=None).certificate
    with pytest.raises(ValueError, match="has a step at least"):
        periods_met_at_most(min(fewest, 0), 5)


@pytest.mark.parametrize("forged", [{"most": 1 << 40}, {"continued": 2}, {"continued": 1}], ids=str)
@pytest.mark.parametrize("last", [4, None])
def test_forged_periods_are_refused(forged: dict[str, int], last: int | None) -> None:
    """A regression: a number in place of a yes was certified, though it picks rows where a yes marks them."""
    shape = SeriesInPeriods(Filter((8, -1)), 2, 2, last)
    with pytest.raises(ValueError, match="periods have at most"):
        replace(shape, **forged)  # type: ignore[arg-type]
    for name, value in forged.items():
        object.__setattr__(shape, name, value)
    problem = replace(problem_of(ToDate(2), ItemPerPeriod(2), GAUSSIAN), steps=4)
    with pytest.raises(NotCertifiedError):
        _ = StepDesign(problem, shape, "", horizon=last).certificate


@pytest.mark.quick(5)
@pytest.mark.search(25)
@pytest.mark.parametrize("unit", [EventLevel(), ItemPerPeriod(10), ItemLevel(), ItemAddRemove()], ids=lambda u: u.name)
@pytest.mark.parametrize("law", [GAUSSIAN, LAPLACE])
@pytest.mark.parametrize("window", PERIODS_OF_SPRING, ids=str)
def test_what_is_measured_without_noise_is_decoded_exactly(window: Tumbling | ToDate, law: Law, unit: Unit) -> None:
    answers = HistoryAnswers(random_histories(np.random.default_rng(2), DAYS, 20, 2), DAYS)
    problem = Problem(window, DAYS, (1, 2), unit, law, noise_per_unit=1.0, bits=16)
    for design in (*candidates(problem), *stream_candidates(problem, DAYS)):
        for k in (1, 2):
            encoded = design.encode(answers, k)
            assert encoded.shape == (design.rows,)
            decoded = reading.of(design).decode(encoded.astype(np.float64))
            assert np.allclose(decoded, series(window, answers, k), atol=1e-6), design.strategy
        assert reading.of(design).variance().shape == decoded.shape


@pytest.mark.parametrize("causal", [Filter((9, -3, -2, -1)), Identity(5)], ids=["filter", "identity"])
@pytest.mark.parametrize("window", PERIODS_OF_SPRING, ids=str)
def test_a_stream_measures_the_integers_of_a_release(window: Tumbling | ToDate, causal: CausalMap) -> None:
    answers = HistoryAnswers(random_histories(np.random.default_rng(3), DAYS, 25, 2), DAYS)
    problem = Problem(window, DAYS, (2,), EventLevel(), GAUSSIAN, 1.0)
    release = Design(problem, SeriesInPeriods.of_release(window, DAYS, causal, continued=False), "")
    stream = StepDesign(problem, SeriesInPeriods(causal, *fewest_and_most(window), DAYS), "", horizon=DAYS)
    encoded = stream.encode(answers, 2)
    assert encoded.tolist() == release.encode(answers, 2).tolist()
    assert stream.rows == release.rows == len(encoded)
    noisy = encoded + np.random.default_rng(4).normal(size=len(encoded))
    by_step, whole = steps_of(stream), reading.of(release)
    assert np.allclose(by_step.decode(noisy), whole.decode(noisy))
    assert np.allclose(by_step.variance(), whole.variance())
    each = np.concatenate([by_step.moment_at(step, 2) for step in range(1, DAYS + 1)])
    assert np.allclose(each, by_step.variance())
    assert stream.sensitivity == release.sensitivity


def in_weeks(steps: int, last: int | None) -> StepDesign:
    problem = Problem(Tumbling(7), steps, (1,), EventLevel(), GAUSSIAN, 1.0)
    return StepDesign(problem, SeriesInPeriods(Identity(1), 7, 7, last), "", horizon=last)


def test_without_a_horizon_only_windows_that_ended_are_released() -> None:
    design, cut = in_weeks(22, None), in_weeks(22, 22)
    assert [step for step in range(1, 23) if design.rows_at(step)] == [7, 14, 21]
    assert len(reading.of(design).variance()) == 3
    assert [step for step in range(1, 23) if cut.rows_at(step)] == [7, 14, 21, 22]
    assert len(reading.of(cut).variance()) == 4
    assert len(reading.of(in_weeks(3, None)).variance()) == 0


def test_a_stream_with_another_end_than_its_last_window_has_no_bound() -> None:
    for horizon, last in ((22, None), (None, 22), (22, 21)):
        with pytest.raises(NotCertifiedError):
            _ = replace(in_weeks(22, last), horizon=horizon).certificate
    assert in_weeks(22, 22).certificate.bound == in_weeks(22, None).certificate.bound
