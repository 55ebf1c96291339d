"""Consistent numbers: every identity holds of every table, whatever the estimates; on a smooth log they err less."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

import dpwindows as dw
from dpwindows import reading
from dpwindows.ask.queries import AnyWindow, Cumulative, Measure, Query, Rolling, Tumbling, WindowFamily
from dpwindows.ask.windows import window_steps
from dpwindows.kernel.maps.integer_maps import FloatArray, IntArray
from dpwindows.plan.allotment import Allotment, served_by
from dpwindows.release.consistency import remarks
from dpwindows.release.consistency.band import whole_distinct
from dpwindows.release.consistency.series import Series, raise_parts
from dpwindows.release.consistency.smoothing import series_smoothers, smooth, traces
from dpwindows.release.consistency.table import consistent_counts
from tests.plans import plan_of
from tests.search import examples

Counts = dict[tuple[int, int, int], int]

FAMILIES: tuple[tuple[WindowFamily, ...], ...] = (
    (AnyWindow(),),
    (AnyWindow(3), Cumulative(), Rolling(2), Rolling(5)),
    (AnyWindow(4), AnyWindow(2), Cumulative()),
    (Rolling(2), Rolling(4), Cumulative()),
    (Rolling(1), Rolling(2), Rolling(3), Cumulative()),
    (AnyWindow(4), Rolling(5), Rolling(6), Rolling(7)),
)


def asked(families: Sequence[WindowFamily], measures: str) -> list[Query]:
    match measures:
        case "reach":
            return [Query(family).at_least(1, 2, 3) for family in families]
        case "mixed":
            return [Query(family).at_least(1, 3).exactly(2) for family in families]
        case "exactly":
            return [Query(family).exactly(2) for family in families]
    return [Query(family) for family in families]


def asked_plan(families: Sequence[WindowFamily], measures: str, steps: int) -> dw.Plan:
    return plan_of(*asked(families, measures), steps=steps, unit=dw.EventLevel(), budget=dw.PureDP(1.0))


def noisy(plan: dw.Plan, size: float, seed: int) -> list[FloatArray]:
    """Estimates that agree with nothing, but that exactly k lies between the at-least counts they were made from."""
    generator, found = np.random.default_rng(seed), []
    for allotment in plan.allotments:
        design = allotment.measurement.design
        rows = len(reading.of(design).variance())
        drawn = {
            k: generator.integers(0, 9) + size * generator.standard_normal(rows) for k in design.problem.thresholds
        }
        for measure in allotment.query.measures:
            below = drawn[measure.k + 1] if measure.kind == "exactly" else 0.0
            found.append(np.asarray(drawn[measure.k] - below))
    return found


def by_window(plan: dw.Plan, numbers: Sequence[IntArray]) -> tuple[Counts, Counts]:
    """At-least and exact counts by (k, first, last); one window has one number, whatever its family."""
    at_least, exactly, left = Counts(), Counts(), iter(numbers)
    for allotment in plan.allotments:
        first, last = window_steps(allotment.query.window, plan.timeline.steps)
        for measure in allotment.query.measures:
            into = at_least if measure.kind == "at_least" else exactly
            for a, b, count in zip(first.tolist(), last.tolist(), next(left).tolist(), strict=True):
                assert into.setdefault((measure.k, a, b), count) == count
    return at_least, exactly


def require_identities(at_least: Counts, exactly: Counts) -> None:
    assert min([*at_least.values(), *exactly.values()]) >= 0
    for (k, a, b), count in exactly.items():
        assert count <= at_least.get((k, a, b), count)
        if (k, a, b) in at_least and (k + 1, a, b) in at_least:
            assert count == at_least[k, a, b] - at_least[k + 1, a, b]
    for ((k, a, b), count), ((i, c, d), other) in itertools.product(at_least.items(), repeat=2):
        if i <= k and c <= a and b <= d:
            assert count <= other, "monotone"
        if c == a and d < b:
            for j in range(1, k - i + 2):
                rest = at_least.get((j, d + 1, b))
                assert rest is None or count <= other + rest, "parts"
    for (k, a, b), count in at_least.items():
        others = [at_least.get((1, a + x, b - y)) for x, y in ((1, 0), (1, 1), (0, 1))]
        if k == 1 and b - a > 1 and None not in others:
            late, inner, early = (other for other in others if other is not None)
            assert late - inner >= count - early, "overlaps"


# A sum of parts lowers one of the cumulative counts, and so those of shorter windows, of which there are sums again.
@pytest.mark.slow
@example((Rolling(2), Rolling(4), Cumulative()), "reach", 7, 50.0, 1)
@given(
    families=st.sampled_from(FAMILIES),
    measures=st.sampled_from(("distinct", "reach", "mixed", "exactly")),
    steps=st.integers(1, 9),
    size=st.sampled_from((0.0, 1.0, 5.0, 50.0)),
    seed=st.integers(0, 2**32 - 1),
)
@examples(25)
def test_every_identity_holds_of_any_estimates(
    families: tuple[WindowFamily, ...], measures: str, steps: int, size: float, seed: int
) -> None:
    plan = asked_plan(families, measures, steps)
    estimates = noisy(plan, size, seed)
    found = consistent_counts(plan, estimates)
    assert found is not None
    assert all(numbers.dtype == np.int64 for numbers in found)
    require_identities(*by_window(plan, found))


def test_the_identities_are_those_of_logs() -> None:
    """The judge of the test above accepts the counts of random logs, so what it demands is true."""
    generator = np.random.default_rng(5)
    for steps in (4, 7):
        seen = generator.poisson(0.4, size=(30, steps))
        counts = {
            (k, a, b): int((seen[:, a - 1 : b].sum(axis=1) >= k).sum())
            for k in (1, 2, 3)
            for a in range(1, steps + 1)
            for b in range(a, steps + 1)
        }
        exact = {(2, a, b): counts[2, a, b] - counts[3, a, b] for k, a, b in counts if k == 2}
        require_identities(counts, exact)


@pytest.mark.slow
@pytest.mark.parametrize("families", [(3,), (6,), (20,), (3, Rolling(8))], ids=str)
def test_exact_windows_are_not_outvoted_by_the_many_near_them(families: tuple[int | Rolling, ...]) -> None:
    """Stretches of ten steps err much less than any windows, shorter or longer, and hardly more beside them."""
    windows = [AnyWindow(one) if isinstance(one, int) else one for one in families]
    seen = np.random.default_rng(1).random((400, 40)) < 0.03
    assert (_errors_over_raw(seen, windows, thresholds=(1, 2)) <= 1.1).all()


def test_exact_windows_are_not_lowered_to_sums_of_others() -> None:
    """Ten steps, beside rolling windows that err twice as much or more, where most items have one step in common."""
    generator = np.random.default_rng(1)
    seen = generator.random((1500, 60)) < np.where(np.arange(60) == 16, 0.9, 0.004)
    ratios = _errors_over_raw(seen, [Rolling(5), Rolling(9)])
    assert ratios[-1] <= 1.05
    assert (ratios[:-1] <= 0.6).all()


def _errors_over_raw(
    seen: NDArray[np.bool_], windows: Sequence[WindowFamily], thresholds: tuple[int, ...] = (1,)
) -> FloatArray:
    """Errors of the consistent numbers over those of the estimates: of these windows, and of every ten steps."""
    steps, generator = seen.shape[1], np.random.default_rng(1)
    until = np.cumsum(np.pad(seen, ((0, 0), (1, 0))), axis=1)
    queries = [Query(window).at_least(*thresholds) for window in (*windows, Tumbling(10))]
    plan = plan_of(*queries, steps=steps, unit=dw.ItemAddRemove(), budget=dw.ApproxDP(1.0, 1e-6))
    truth = [
        np.array([np.sum(until[:, b] - until[:, a - 1] >= k) for a, b in zip(*of, strict=True)])
        for query, of in ((one.query, window_steps(one.query.window, steps)) for one in plan.allotments)
        for k in query.thresholds
    ]
    squares = np.zeros((2, len(truth)))
    for _ in range(8):
        noise = [noise for one in plan.allotments for noise in noises_of(one, generator)]
        drawn = [true + noisy for true, noisy in zip(truth, noise, strict=True)]
        found = consistent_counts(plan, drawn)
        assert found is not None
        for row, some in zip(squares, (drawn, found), strict=True):
            row += [((values - true) ** 2).mean() for values, true in zip(some, truth, strict=True)]
    return np.asarray(np.sqrt(squares[1] / squares[0]))


def noises_of(allotment: Allotment, generator: np.random.Generator) -> list[FloatArray]:
    """What the noise of a release does to the estimates of each threshold."""
    design = allotment.measurement.design
    found = []
    for k in allotment.query.thresholds:
        reader = reading.of(design.at(k))
        size = allotment.std_errors(Measure("at_least", k))[0] / np.sqrt(reader.variance()[0])
        found.append(allotment.own(reader.decode(size * generator.standard_normal(design.at(k).rows))))
    return found


@given(steps=st.integers(1, 12), longest=st.integers(1, 12), seed=st.integers(0, 2**32 - 1))
@examples(60)
def test_distinct_counts_of_any_windows_are_those_of_a_log(steps: int, longest: int, seed: int) -> None:
    """The table tells for every step how many of its items were last seen at each earlier one: never below 0."""
    longest = min(steps, longest)
    generator = np.random.default_rng(seed)
    by_end = generator.normal(5, 8, size=(steps, longest))
    found = whole_distinct(by_end, generator.uniform(0.1, 5, size=by_end.shape))

    def count(a: int, b: int) -> int:
        return int(found[b, b - a]) if a <= b else 0

    for b in range(steps):
        first = max(0, b - longest + 1)
        new = [count(a, b) - count(a, b - 1) for a in range(first, b + 1)]
        assert new[0] >= 0
        assert (np.diff(new) >= 0).all()
        # Of the items last seen at a, not more come again than there are.
        assert all(count(a, b) >= count(a + 1, b) for a in range(first, b))


def test_a_log_that_agrees_already_is_left_alone() -> None:
    steps = 30
    generator = np.random.default_rng(8)
    seen = generator.random((200, steps)) < 0.2
    by_end = np.zeros((steps, steps))
    for b in range(steps):
        for length in range(1, b + 2):
            by_end[b, length - 1] = seen[:, b - length + 1 : b + 1].any(axis=1).sum()
    np.testing.assert_array_equal(whole_distinct(by_end.copy(), np.ones_like(by_end)), by_end)


def test_smoothing_takes_what_helps_and_leaves_what_would_hurt() -> None:
    """White noise on a slope is nearly all smoothed away, on a log that jumps from step to step nearly none is."""
    generator = np.random.default_rng(2)
    slope, jumps = np.linspace(100, 400, 365), generator.integers(0, 2000, 365).astype(np.float64)
    every, smoothers = np.zeros(365, dtype=np.uint8), series_smoothers([slice(0, 365)], (7,))
    known = traces(lambda: (generator.normal(0, 10, 365) for _ in range(30)), smoothers, every)
    kept = {}
    for name, truth in (("slope", slope), ("jumps", jumps)):
        errors = []
        for _ in range(20):
            estimate = truth + generator.normal(0, 10, 365)
            made = smooth(estimate, lambda: np.full(365, 100.0), smoothers, known, every)
            errors.append(((made.values - truth) ** 2).mean() / 100)
        kept[name] = float(np.mean(errors))
    assert kept["slope"] < 0.15
    assert 0.9 < kept["jumps"] < 1.02


class Log:
    """A smooth log: items that are active at random, the same on every step."""

    steps = 120

    def __init__(self) -> None:
        self.seen = np.random.default_rng(4).random((600, self.steps)) < 0.05

    def windows(self, window: WindowFamily) -> FloatArray:
        first, last = window_steps(window, self.steps)
        return np.array([self.seen[:, a - 1 : b].any(axis=1).sum() for a, b in zip(first, last, strict=True)], float)


@pytest.mark.slow
@pytest.mark.parametrize("families", [(AnyWindow(60),), (Rolling(7), Rolling(28), Cumulative(), AnyWindow(60))])
def test_consistent_numbers_err_less(families: tuple[WindowFamily, ...]) -> None:
    log = Log()
    plan = plan_of(*families, steps=log.steps, unit=dw.EventLevel(), budget=dw.ApproxDP(epsilon=1.0, delta=1e-6))
    generator = np.random.default_rng(6)
    ratios = []
    truth = [log.windows(one.query.window) for one in plan.allotments]
    for _ in range(3):
        noise = [
            reading.of(one.design).decode(one.scale * generator.standard_normal(one.design.rows))
            for one in plan.measurements
        ]
        estimates = [
            true + one.own(noise[place])
            for true, one, place in zip(truth, plan.allotments, served_by(plan.allotments), strict=True)
        ]
        found = consistent_counts(plan, estimates)
        assert found is not None
        ratios.append(
            [
                ((made - true) ** 2).mean() / ((raw - true) ** 2).mean()
                for made, raw, true in zip(found, estimates, truth, strict=True)
            ]
        )
    mean = np.sqrt(np.mean(ratios, axis=0))
    assert (mean < 1.02).all()
    assert mean[-1] < 0.75


def test_numbers_that_moved_far_are_told() -> None:
    """Farther than true counts would lie in one release of 1,000, however many numbers there are."""

    def made(estimates: object, fitted: object) -> pa.Table:
        table = pa.table({"estimate": estimates, "consistent": fitted})
        same = {"std_error": 2.0, "bias_bound": 0.0, "window": "rolling:7"}
        for name, value in same.items():
            table = table.append_column(name, pa.array([value] * table.num_rows))
        return table

    metadata = {"measurements": [{"window": "rolling:7", "noise": {"law": "discrete Gaussian", "scale": 1e9}}]}
    table = made([9.0, 90.0], [15, 100])
    assert remarks(table, metadata) == [
        "consistent numbers lie more than 3.5 standard errors from 1 of 2 estimates; true counts lie that far from any "
        "in at most one of 1,000 releases"
    ]
    assert remarks(table.slice(0, 1), metadata) == []
    assert remarks(made([9.0, 90.0], pa.nulls(2, pa.int64())), metadata) == []
    noise = 2 * np.random.default_rng(5).standard_normal(30_000)
    assert remarks(made(700 + noise, [700] * len(noise)), metadata) == []


def test_a_table_follows_from_its_estimates() -> None:
    plan = asked_plan((AnyWindow(),), "reach", 20)
    estimates = noisy(plan, 9.0, 3)
    first, second = consistent_counts(plan, estimates), consistent_counts(plan, estimates)
    assert first is not None
    assert second is not None
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)


def test_runs_bounded_for_each_window_by_itself_need_not_agree() -> None:
    plan = plan_of(
        Rolling(2).at_least(1, 2), Rolling(3), steps=6, unit=dw.ItemAddRemove(), budget=dw.PureDP(1.0), max_runs=1
    )
    log = pa.table({"item": ["a", "a", "b"], "time": [1, 5, 2]})
    assert plan.run(log, item="item", time="time").table["consistent"].null_count == 3 * 6


def test_counts_without_error_are_raised_by_finite_numbers() -> None:
    """A regression: at a huge budget errors are 0 in floating point, and shares were not numbers."""
    daily = Series(1, np.arange(1, 5), np.arange(1, 5), np.array([1.0, 1.0, 1.0, 1.0]))
    whole = Series(1, np.ones(4, dtype=np.int64), np.arange(1, 5), np.array([1.0, 2.0, 3.0, 9.0]))
    raise_parts([(daily, 0.0), (whole, 0.0)])
    assert np.isfinite(daily.values).all()
    assert np.isfinite(whole.values).all()
    assert whole.values[3] <= daily.values.sum() + 0.5


def test_items_counted_exactly_once_are_no_parts_of_distinct_items() -> None:
    """Of items that occur twice a step none is counted exactly once, however many there are in a longer window."""
    asked = Rolling(7).exactly(1), Rolling(14).at_least(1)
    plan = plan_of(*asked, steps=28, unit=dw.EventLevel(), budget=dw.ApproxDP(50.0, 1e-6))
    exactly, distinct = consistent_counts(plan, [np.zeros(28), np.full(28, 100.0)]) or []
    assert exactly.max() == 0
    assert distinct.min() == distinct.max() == 100


def test_any_windows_too_long_to_solve_are_made_to_agree_all_the_same() -> None:
    plan = asked_plan((AnyWindow(),), "distinct", 120)
    found = consistent_counts(plan, noisy(plan, 5.0, 1))
    assert found is not None
    assert min(found[0].tolist()) >= 0
