"""Differences, ratios and means of released numbers: their errors by hand, and their intervals against the truth."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy import special

import dpwindows as dw
from dpwindows import reading
from dpwindows.ask.privacy import Budget, Unit
from dpwindows.ask.queries import Measure
from dpwindows.ask.windows import window_steps
from dpwindows.errors import InputError
from dpwindows.kernel.accounting import JOINT
from dpwindows.plan.description import describe
from dpwindows.plan.plan import Plan
from dpwindows.reading.lattice_noise import Noise
from dpwindows.release import derived
from dpwindows.release.derived import fieller
from dpwindows.release.run import draw_estimates
from dpwindows.release.selection import Selected, as_window, terms_of
from tests.plan.test_intervals import inside, of_a_vector, stretched, whole_numbers

APPROX, PURE, GAUSS = dw.ApproxDP(1.0, 1e-6), dw.PureDP(1.0), dw.ZCDP(0.05)
STEPS = 40


@dataclass(frozen=True)
class Constant:
    """Exact answers that are the same at every step: so many items in a window, by its length and by k."""

    steps: int
    by_length: dict[int, float]

    def _of(self, k: int, length: int) -> int:
        return round(self.by_length[length] / k)

    def cumulative(self, k: int) -> NDArray[Any]:
        return np.asarray(np.arange(1, self.steps + 1) * self._of(k, 1))

    def rolling(self, k: int, length: int) -> NDArray[Any]:
        return np.full(self.steps, self._of(k, length), dtype=np.int64)

    def windows(self, k: int, first_start: int, starts: int, first_end: int, ends: int) -> NDArray[Any]:
        first = np.arange(first_start, first_start + starts)[:, None]
        last = np.arange(first_end, first_end + ends)[None, :]
        lengths = np.maximum(0, last - first + 1)
        found = lengths * self._of(k, 1)
        for length in self.by_length:
            found[lengths == length] = self._of(k, length)
        return np.asarray(found)


@cache
def plan_of(*asked: Any, budget: Budget = GAUSS, unit: Unit | None = None, strategy: str = "auto") -> Plan:
    return Plan(
        asked, timeline=dw.Timeline.of_steps(STEPS), unit=unit or dw.EventLevel(), budget=budget, strategy=strategy
    )


def release_of(plan: Plan, answers: Constant) -> dw.Release:
    """A release of these answers with fresh noise, as `Plan.run` makes one."""
    drawn = iter(draw_estimates(plan, answers))
    tables = [
        pa.table(_public(plan, place, asked) | _drawn(plan, place, asked, next(drawn)))
        for place, allotment in enumerate(plan.allotments)
        for asked in allotment.query.measures
    ]
    return dw.Release(pa.concat_tables(tables), _described(plan))


@cache
def _public(plan: Plan, place: int, asked: Measure) -> dict[str, Any]:
    allotment = plan.allotments[place]
    first, last = window_steps(allotment.query.window, STEPS)
    return {
        "window": [allotment.query.window.text] * len(first),
        "measure": [asked.kind] * len(first),
        "k": [asked.k] * len(first),
        "first_step": first,
        "last_step": last,
        "std_error": allotment.std_errors(asked),
        "bias_bound": np.broadcast_to(allotment.bias_bounds(), len(first)),
    }


def _drawn(plan: Plan, place: int, asked: Measure, estimate: NDArray[Any]) -> dict[str, Any]:
    half = _half_widths(plan, place, asked)
    return {"estimate": estimate, "lower": estimate - half, "upper": estimate + half}


@cache
def _half_widths(plan: Plan, place: int, asked: Measure) -> NDArray[Any]:
    return plan.allotments[place].half_widths(asked, 0.95)


@cache
def _described(plan: Plan) -> dict[str, Any]:
    return describe(plan)


# --- Errors by hand ---------------------------------------------------------------------------------------------------


def test_numbers_measured_each_by_itself_have_independent_noise() -> None:
    release = release_of(plan_of(dw.Rolling(3).at_least(1, 2).exactly(1), strategy="direct"), Constant(STEPS, {3: 900}))
    one, other = release.count(6, 9), release.count(7, 10)
    found = release.difference((6, 9), (7, 10))
    assert found.estimate == one.estimate - other.estimate
    assert found.std_error == pytest.approx(math.hypot(one.std_error, other.std_error), rel=1e-6)
    z = float(special.ndtri(0.975))
    assert found.upper - found.estimate == pytest.approx(z * found.std_error, rel=1e-6)
    assert found.estimate - found.lower == pytest.approx(z * found.std_error, rel=1e-6)
    mean = release.estimate(dw.Window(6, 9, mean_over=4))
    assert mean.estimate == pytest.approx(np.mean([release.count(6 + i, 9 + i).estimate for i in range(4)]))
    assert mean.std_error == pytest.approx(one.std_error / 2, rel=1e-6)
    # Exactly 1 is at least 1 less at least 2: beside at least 1 the noise of at least 2 is left.
    rest = release.difference((6, 9), dw.Window(6, 9, exactly=1))
    assert rest.estimate == pytest.approx(release.count(6, 9, at_least=2).estimate)
    assert rest.std_error == pytest.approx(one.std_error, rel=1e-6)


@pytest.mark.parametrize("budget", [APPROX, PURE], ids=lambda budget: budget.kind)
def test_a_number_by_itself_has_the_interval_of_the_release(budget: Budget) -> None:
    plan = plan_of(dw.Rolling(7).at_least(1).exactly(2), dw.AnyWindow(5), dw.Cumulative(), budget=budget)
    release = release_of(plan, Constant(STEPS, {1: 100, 7: 500}))
    for window in (
        dw.Window(3, 10),
        dw.Window(3, 10, exactly=2),
        dw.Window(4, 8),
        dw.Window(0, 33, family="cumulative"),
        dw.Window(2, 7, family=dw.AnyWindow(5)),
    ):
        found = release.estimate(window)
        wanted = release.count(window.start, window.end, at_least=window.at_least, exactly=window.exactly)
        for name in ("estimate", "std_error", "lower", "upper"):
            assert getattr(found, name) == pytest.approx(getattr(wanted, name), rel=1e-6)
        assert found.confidence == 0.95


def test_a_number_less_itself_is_nothing() -> None:
    release = release_of(plan_of(dw.Rolling(7)), Constant(STEPS, {7: 500}))
    found = release.difference((10, 17), (10, 17))
    assert (found.estimate, found.std_error, found.lower, found.upper) == (0.0, 0.0, 0.0, 0.0)
    alike = release.ratio((10, 17), (10, 17))
    assert (alike.estimate, alike.lower, alike.upper) == pytest.approx((1.0, 1.0, 1.0))


def test_the_noise_of_near_windows_is_shared() -> None:
    plan = plan_of(dw.Rolling(7))
    release = release_of(plan, Constant(STEPS, {7: 500}))
    near, far = release.difference((20, 27), (21, 28)), release.difference((5, 12), (30, 37))
    assert near.std_error < far.std_error
    design = plan.allotments[0].measurement.design
    drawn = np.random.default_rng(0).normal(size=(4000, design.rows))
    decoded = np.array([reading.of(design).decode(noise) for noise in drawn]) * plan.allotments[0].measurement.scale
    assert float((decoded[:, 26] - decoded[:, 27]).std()) == pytest.approx(near.std_error, rel=0.05)
    assert float((decoded[:, 11] - decoded[:, 36]).std()) == pytest.approx(far.std_error, rel=0.05)


def test_families_measured_as_one_share_noise() -> None:
    plan = plan_of(dw.Rolling(2), dw.Cumulative(), dw.Rolling(7))
    design, scale = plan.measurements[0].design, plan.measurements[0].scale
    assert [allotment.series for allotment in plan.allotments] == [0, None, 1]
    release = release_of(plan, Constant(STEPS, {1: 1, 2: 300, 7: 900}))
    found = release.difference((20, 27), (25, 27))
    decoder = np.array([reading.of(design).decode(unit) for unit in np.eye(design.rows)]).T
    # The windows that end with step 27: rolling:2 comes first, then rolling:7.
    noise = decoder[STEPS + 26] - decoder[26]
    assert found.std_error == pytest.approx(scale * float(np.linalg.norm(noise)), rel=1e-6)
    apart = math.hypot(release.count(20, 27).std_error, release.count(25, 27).std_error)
    assert abs(found.std_error / apart - 1) > 0.02
    assert found.estimate == pytest.approx(release.count(20, 27).estimate - release.count(25, 27).estimate)


def test_new_and_returning_items_make_all_of_them() -> None:
    release = release_of(plan_of(dw.AnyWindow(7), dw.Cumulative()), Constant(STEPS, {1: 100}))
    new = release.estimate(dw.Window(20, 27, items="new"))
    until, before = release.count(0, 27), release.count(0, 20)
    assert new.estimate == pytest.approx(until.estimate - before.estimate)
    returning = release.estimate(dw.Window(20, 27, items="returning"))
    assert returning.estimate + new.estimate == pytest.approx(release.count(20, 27).estimate)
    assert returning.std_error == pytest.approx(math.hypot(new.std_error, release.count(20, 27).std_error), rel=1e-6)
    first = release.estimate(dw.Window(0, 5, items="new"))
    assert first.estimate == release.count(0, 5).estimate
    weekly = release.ratio(dw.Window(20, 27, items="new"), (20, 27))
    assert weekly.estimate == pytest.approx(new.estimate / release.count(20, 27).estimate)


# --- Fieller's set ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sign", [1, -1])
def test_the_ends_are_the_roots_of_the_square(sign: int) -> None:
    a, b, aa, ab, bb, z = 30.0, sign * 100.0, 25.0, sign * 11.0, 90.0, 1.96
    roots = np.sort(np.roots([b**2 - z**2 * bb, -2 * (a * b - z**2 * ab), a**2 - z**2 * aa]).real)
    assert fieller((a, b), (aa, ab, bb), z) == pytest.approx(tuple(roots), rel=1e-9)
    wider = fieller((a, b), (aa, ab, bb), z, (1.0, 2.0))
    assert wider[0] < roots[0] < roots[1] < wider[1]
    for r in wider:
        half = z * math.sqrt(aa - 2 * r * ab + r**2 * bb) + 1.0 + 2.0 * abs(r)
        assert abs(a - r * b) == pytest.approx(half, rel=1e-9)


@pytest.mark.usefixtures("seeded_noise")
def test_a_denominator_that_may_be_0_has_no_bound() -> None:
    assert fieller((30.0, 10.0), (25.0, 0.0, 36.0), 1.96) == (-math.inf, math.inf)
    assert fieller((30.0, 10.0), (25.0, 0.0, 1.0), 1.96, (0.0, 9.0)) == (-math.inf, math.inf)
    release = release_of(plan_of(dw.Rolling(7)), Constant(STEPS, {7: 0}))
    seen = [release.ratio((3, 10), (start, start + 7)) for start in range(10, 30)]
    # Of 20 numbers that are 0 about one is told from it at 95 %. Neighbours err alike, so that now and then many are.
    assert sum(not found.bounded for found in seen) > 12
    unbounded = next(found for found in seen if not found.bounded)
    assert (unbounded.lower, unbounded.upper) == (-math.inf, math.inf)
    assert "the denominator cannot be told from 0" in str(unbounded)


# --- Intervals against the truth --------------------------------------------------------------------------------------


class Parts:
    """A combination of rows, for releases of one plan: which numbers it sums and what noise it holds is found once."""

    def __init__(self, release: dw.Release, window: Selected) -> None:
        terms = terms_of(as_window(window), release.table, release.timeline)
        keys = ("window", "measure", "k", "first_step", "last_step")
        places = {tuple(row[key] for key in keys): at for at, row in enumerate(release.table.to_pylist())}
        self.rows = [places[tuple(term.row[key] for key in keys)] for term in terms]
        self.coefficients = np.array([term.coefficient for term in terms])
        self.combined = derived.combined(terms, release.metadata)
        again = self.with_noise_of(release.table["estimate"].to_numpy())
        assert again.estimate == pytest.approx(self.combined.estimate)

    def with_noise_of(self, estimates: NDArray[Any]) -> derived.Combined:
        """The same of another release."""
        return replace(self.combined, estimate=float(self.coefficients @ estimates[self.rows]))


@pytest.mark.slow
@pytest.mark.usefixtures("seeded_noise", "encoded_once")
@pytest.mark.parametrize("budget", [PURE, GAUSS], ids=lambda budget: budget.kind)
@pytest.mark.parametrize("unit", [dw.EventLevel(), dw.ItemAddRemove()], ids=lambda unit: unit.name)
def test_intervals_cover_as_often_as_they_say(budget: Budget, unit: Unit, monkeypatch: pytest.MonkeyPatch) -> None:
    """1,000 releases; the smallest denominator is five standard errors. By chance a share is off by 0.7 %."""
    plan = plan_of(dw.Rolling(1), dw.Rolling(7), dw.Rolling(28), budget=budget, unit=unit)
    worst = {entry.window: entry.max for entry in plan.forecast()}
    month, week = round(5 * worst["rolling:28"]), round(5 * worst["rolling:7"])
    answers = Constant(STEPS, {1: round(0.3 * month), 7: week, 28: month})
    questions: dict[str, tuple[Any, Selected, Selected]] = {
        "stickiness": (derived.ratio, (36, 37), (9, 37)),
        "of a month": (derived.ratio, dw.Window(30, 31, mean_over=8), dw.Window(3, 31, mean_over=8)),
        "week over week": (derived.ratio, (30, 37), (23, 30)),
        "change in a week": (derived.difference, (30, 37), (23, 30)),
    }
    truth = {"stickiness": round(0.3 * month) / month, "week over week": 1.0, "change in a week": 0.0}
    truth["of a month"] = truth["stickiness"]
    release = release_of(plan, answers)
    parts = {name: [Parts(release, window) for window in windows] for name, (_, *windows) in questions.items()}
    inside = dict.fromkeys(questions, 0)
    # How wide an interval is in standard errors depends on its noise, which all releases share.
    factors, known = derived._factors, dict[tuple[int, int], NDArray[Any]]()

    def found_once(above: derived.Combined, below: derived.Combined, *more: Any) -> NDArray[Any]:
        if not below.noise:
            return factors(above, below, *more)
        key = id(above.noise), id(below.noise)
        if key not in known:
            known[key] = factors(above, below, *more)
        return known[key]

    monkeypatch.setattr(derived, "_factors", found_once)
    for _ in range(1000):
        estimates = np.concatenate(draw_estimates(plan, answers))
        for name, (answered, *_) in questions.items():
            one, other = (part.with_noise_of(estimates) for part in parts[name])
            found = answered(one, other, 0.95, "")
            inside[name] += found.lower <= truth[name] <= found.upper
    shares = {name: count / 1000 for name, count in inside.items()}
    # Noise that is drawn for all numbers at once has the widest quantile of what a sum of it may be, and a ratio under
    # Laplace noise the widest of a few directions.
    joint = any(one.measurement.law in JOINT for one in plan.allotments)
    assert all(0.93 <= share <= (0.992 if joint else 0.975) for share in shares.values()), shares


@pytest.mark.usefixtures("seeded_noise", "encoded_once")
@pytest.mark.parametrize("unit", [dw.ItemLevel(), dw.ItemAddRemove()], ids=lambda unit: unit.name)
def test_noise_that_is_drawn_at_once_is_known_in_differences_and_means(unit: Unit) -> None:
    """Under the range law all numbers share a part, which differences do without and means do not."""
    plan = plan_of(dw.Rolling(1), dw.ToDate(8), budget=PURE, unit=unit, strategy="joint-noise")
    answers = Constant(STEPS, {1: 100})
    release = release_of(plan, answers)
    shared = isinstance(unit, dw.ItemAddRemove)
    error = {"rolling:1": plan.allotments[0].std_errors(Measure("at_least", 1))[0]}
    change, mean = release.difference((3, 4), (9, 10)), release.estimate(dw.Window(10, 11, mean_over=8))
    assert change.std_error == pytest.approx(error["rolling:1"] * (1 if shared else math.sqrt(2)))
    assert mean.std_error == pytest.approx(error["rolling:1"] * math.sqrt(9 / 16 if shared else 1 / 8))
    found = []
    for _ in range(1500):
        rolling, to_date = draw_estimates(plan, answers)
        found.append((rolling[2] - rolling[8], rolling[2:10].mean(), rolling[2] - to_date[5], to_date[3] - to_date[20]))
    spread = np.std(found, axis=0)
    assert spread[0] == pytest.approx(change.std_error, rel=0.12)
    assert spread[1] == pytest.approx(mean.std_error, rel=0.12)
    inside = np.mean(abs(np.array(found)[:, 0]) <= (change.upper - change.lower) / 2)
    assert 0.93 < inside < 0.985


@pytest.mark.parametrize("epsilon", [0.4, 1.0, 2.5])
@pytest.mark.parametrize("unit", [dw.EventLevel(), dw.ItemLevel(), dw.ItemAddRemove()], ids=lambda unit: unit.name)
def test_small_noise_on_whole_numbers_is_exact_in_differences_and_bounded_in_ratios(unit: Unit, epsilon: float) -> None:
    """By probabilities added up: `a - b`, and `a - r b` for the true ratio r."""
    strategy = "direct" if isinstance(unit, dw.EventLevel) else "joint-noise"
    plan = plan_of(dw.Tumbling(8), budget=dw.PureDP(epsilon), unit=unit, strategy=strategy)
    release = release_of(plan, Constant(STEPS, {1: 9}))
    (made,) = (allotment.measurement for allotment in plan.allotments)
    noise = Noise(made.law, made.scale, made.design.rows if made.law in JOINT else 1)
    one, other = dw.Window(0, 8), dw.Window(8, 16)
    change = release.difference(one, other)
    half = (change.upper - change.lower) / 2
    errors = of_two(noise, 1, -1)
    assert half == pytest.approx(round(half), abs=1e-9)
    assert inside(errors, half) >= 0.95 > inside(errors, half - 1)
    above, below = (
        derived.combined(terms_of(as_window(window), release.table, release.timeline), release.metadata)
        for window in (one, other)
    )
    for first, second in ((1, 1), (2, 1), (1, 3), (4, 3)):
        errors = of_two(noise, first, -second)
        values = np.arange(len(errors)) - len(errors) // 2
        std_error = math.sqrt(errors @ values**2.0)
        (factor,) = derived._factors(above, below, np.array([math.atan2(second, first)]), 0.95)
        assert inside(errors, factor * std_error) >= 0.949
        # What is looked at in ratios is nowhere narrower than between the directions that are looked at.
        at = int(np.searchsorted(derived._DIRECTIONS, math.atan2(second, first)))
        near = derived._factors(above, below, derived._DIRECTIONS[at - 1 : at + 1], 0.95)
        assert factor <= near.max() * 1.001


def of_two(noise: Noise, first: int, second: int) -> NDArray[Any]:
    """Probabilities of a sum of two numbers with whole weights: of two draws, or of one vector of a joint law."""
    if noise.law in JOINT:
        weights = (first, second, *[0] * (noise.size - 2))
        return of_a_vector(noise.law, noise.scale, noise.size, weights)[::2]
    one = whole_numbers(noise.scale, noise.law)
    return np.asarray(np.convolve(stretched(one, abs(first)), stretched(one, abs(second))))


# --- What is refused --------------------------------------------------------------------------------------------------


# At the least budget noise is left, and one release in 50 lies outside of its interval.
@pytest.mark.usefixtures("seeded_noise")
@pytest.mark.parametrize("epsilon", [1e4, 1e6, 1e9])
def test_ratios_are_exact_where_there_is_next_to_no_noise(epsilon: float) -> None:
    """Where noise is 0 but once in a lifetime nothing is divided by its standard deviation."""
    plan = plan_of(dw.Rolling(2), dw.Cumulative(), budget=dw.PureDP(epsilon))
    release = release_of(plan, Constant(STEPS, {1: 7, 2: 10}))
    found = release.ratio((4, 6), (0, 5))
    assert found.estimate == pytest.approx(10 / 35, abs=0.01)
    assert found.lower <= 10 / 35 + 1e-12
    assert found.upper >= 10 / 35 - 1e-12
    assert found.upper - found.lower < 0.01


def test_what_was_not_released_is_refused() -> None:
    release = release_of(plan_of(dw.Rolling(7)), Constant(STEPS, {7: 500}))
    with pytest.raises(InputError, match=r"the window 3 to 9 \(at least 1\) was not released; this release holds roll"):
        release.difference((3, 9), (3, 10))
    with pytest.raises(InputError, match=r"need cumulative windows, or any windows of every length"):
        release.estimate(dw.Window(3, 10, items="new"))
    with pytest.raises(InputError, match="was not released in cumulative"):
        release.estimate(dw.Window(3, 10, family="cumulative"))
    with pytest.raises(InputError, match="mean of 30 windows moved step by step"):
        release.estimate(dw.Window(20, 27, mean_over=30))
    with pytest.raises(InputError, match="the end of a window must be after its start"):
        release.ratio((9, 9), (3, 10))
    bad: Any = "2013-01-01"
    with pytest.raises(InputError, match="a window is"):
        release.ratio(bad, (3, 10))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"at_least": 1, "exactly": 1}, "at_least or exactly, not both"),
        ({"items": "old"}, "all, new or returning"),
        ({"mean_over": 0}, "at least 1, got 0"),
        ({"items": "new", "exactly": 1}, "new items are those counted at least k times"),
        ({"at_least": 0}, "at_least must be a whole number"),
    ],
)
def test_other_windows_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        dw.Window(0, 7, **options)


def test_numbers_whose_noise_is_not_that_of_this_version_are_refused() -> None:
    release = release_of(plan_of(dw.Rolling(7)), Constant(STEPS, {7: 500}))
    table = release.table
    place = table.schema.get_field_index("std_error")
    other = table.set_column(place, "std_error", pa.compute.multiply(table["std_error"], 1.01))
    with pytest.raises(InputError, match="cannot be worked out again: this version of dpwindows gives a standard"):
        dw.Release(other, release.metadata).difference((3, 10), (10, 17))


def test_a_file_without_the_integers_it_was_measured_by_has_single_numbers_only() -> None:
    release = release_of(plan_of(dw.Rolling(7)), Constant(STEPS, {7: 500}))
    measured = [{**entry, "integers": {}} for entry in release.metadata["measurements"]]
    silent = dw.Release(release.table, release.metadata | {"measurements": measured})
    assert silent.count(3, 10).std_error == release.count(3, 10).std_error
    with pytest.raises(InputError, match="the release does not tell the integers that measured rolling:7"):
        silent.difference((3, 10), (10, 17))


@pytest.mark.parametrize(("error", "said"), [(162.1, "160"), (4.84, "4.8"), (0.0213, "0.021"), (12_345.0, "12,000")])
def test_an_error_is_written_out(error: float, said: str) -> None:
    """As such: the sign of plus and minus is left to half widths, as in a plan."""
    count = dw.Count(3_081.4, error, 0.0, 2_763.7, 3_399.1, "any", "at_least", 1, 0.95)
    assert str(count) == f"3,081.4 (95% interval 2,763.7 to 3,399.1; standard error {said})"
    derived = dw.Derived(0.25, error, 0.0, 0.2, 0.3, 0.9, "a share")
    assert str(derived) == f"0.25 (90% interval 0.2 to 0.3; standard error {said})"


@pytest.mark.parametrize("window", [dw.AnyWindow(), dw.AnyWindow(5)], ids=str)
@pytest.mark.parametrize("pair", [((2, 6), (4, 9)), ((0, 4), (6, 10)), ((0, 2), (1, 3))], ids=str)
def test_any_windows_that_end_apart_share_the_noise_that_they_share(window: dw.AnyWindow, pair: Any) -> None:
    """Weights of windows that end early stand for the same noise as those of windows that end late."""
    plan = dw.Plan([window], timeline=dw.Timeline.of_steps(12), unit=dw.EventLevel(), budget=GAUSS)
    log = pa.table({"who": ["a", "b"], "at": [3, 4]})
    found = plan.run(log, item="who", time="at").difference(*pair)
    (made,) = plan.measurements
    reader = reading.of(made.design)
    decoder = np.stack([reader.decode(unit) for unit in np.eye(made.design.rows)], axis=1)
    first, last = window_steps(made.design.problem.window, 12)
    places = [int(np.flatnonzero((first == start + 1) & (last == end))[0]) for start, end in pair]
    assert found.std_error == pytest.approx(made.scale * np.linalg.norm(decoder[places[0]] - decoder[places[1]]))
