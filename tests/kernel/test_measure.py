"""The kernel: exact integers, exact noise, nothing beyond the budget; and that these tests notice when it is not so.

Noise cannot be seeded. Every test of real draws states how often it fails by chance: each accepts the right law and
rejects the wrong one with error probabilities below 1e-9, computed where the test is.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import FrozenInstanceError, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import dpwindows
from dpwindows.ask.privacy import (
    ZCDP,
    ApproxDP,
    Budget,
    EventLevel,
    ItemAddRemove,
    ItemLevel,
    ItemPerPeriod,
    PureDP,
    Unit,
)
from dpwindows.ask.queries import AnyWindow, Cumulative, Rolling, WindowFamily
from dpwindows.kernel import measure as kernel
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE, BudgetExceededError, Cost, Law, scales
from dpwindows.kernel.certify import Certificate
from dpwindows.kernel.maps.filters import Filter, Identity
from dpwindows.kernel.measure import Measurement, add_noise, draw_noise, measure, measure_step
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.shapes.design import Design
from dpwindows.kernel.shapes.series import SeriesDesign
from dpwindows.strategies import BATCH, candidates
from tests.single_item import TableAnswers, random_square

LAWS: tuple[Law, ...] = (GAUSSIAN, LAPLACE)
BUDGETS: tuple[Budget, ...] = (PureDP(1.0), ApproxDP(1.0, 1e-6), ZCDP(0.5))


def direct(steps: int, thresholds: tuple[int, ...], law: Law, unit: Unit | None = None) -> SeriesDesign:
    """A series measured as it is, at event level one window of one step: sensitivity 1."""
    problem = Problem(Rolling(1), steps, thresholds, unit or EventLevel(), law, 1.0)
    return SeriesDesign(problem, "direct", map=Identity(steps))


def zeros(steps: int) -> TableAnswers:
    return TableAnswers(np.zeros((steps, steps), dtype=np.int64))


@dataclass(frozen=True)
class Silence:
    """Answers of an empty log, for horizons whose square would be large."""

    steps: int

    def cumulative(self, k: int) -> NDArray[Any]:
        return np.zeros(self.steps, dtype=np.int64)

    def rolling(self, k: int, length: int) -> NDArray[Any]:
        return np.zeros(self.steps, dtype=np.int64)

    def windows(self, k: int, first_start: int, starts: int, first_end: int, ends: int) -> NDArray[Any]:
        return np.zeros((starts, ends), dtype=np.int64)


def scaled(design: Design, budget: Budget) -> Measurement:
    """The design with the noise that spends the budget on it alone."""
    law = design.problem.law
    rows = design.rows * len(design.problem.thresholds)
    return Measurement(design, law, scales(budget, law, [design.sensitivity], [1.0], [rows])[0])


# --- Exact integers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "unit", [EventLevel(), ItemPerPeriod(2), ItemLevel(), ItemAddRemove()], ids=lambda unit: unit.name
)
@pytest.mark.parametrize("window", [Cumulative(), Rolling(4), AnyWindow(), AnyWindow(3)], ids=str)
def test_without_noise_the_integers_are_exact(window: WindowFamily, unit: Unit) -> None:
    answers = TableAnswers(random_square(np.random.default_rng(1), 9, 10**6))
    for law, budget in ((LAPLACE, PureDP(1e12)), (GAUSSIAN, ZCDP(1e24)), (LAPLACE, ApproxDP(1e12, 1e-6))):
        problem = Problem(window, 9, (1, 2), unit, law, 1e-12)
        for strategy in BATCH.values():
            if (design := strategy(problem)) is not None:
                (found,) = measure([scaled(design, budget)], budget, answers)
                assert set(found) == {1, 2}
                for noisy in found.values():
                    assert noisy.dtype == np.int64
                    assert np.array_equal(noisy, design.encode(answers, 1))


@pytest.mark.parametrize("largest", [2**30, 2**35, 2**52, 2**62])
def test_large_counts_do_not_wrap(largest: int) -> None:
    """Products beyond 64 bits are formed in Python integers, and what is released is held within +-2^61."""
    answers = TableAnswers(random_square(np.random.default_rng(2), 8, largest))
    budget = ZCDP(1e30)
    for window in (Cumulative(), Rolling(3), AnyWindow()):
        design = candidates(Problem(window, 8, (1,), EventLevel(), GAUSSIAN, 1.0))[0]
        exact = _encode_in_python_integers(design, answers)
        (found,) = measure([scaled(design, budget)], budget, answers)
        assert [int(value) for value in found[1]] == [min(max(value, -(2**60)), 2**60) for value in exact]


def _encode_in_python_integers(design: Design, answers: TableAnswers) -> list[int]:
    """The matrix times the answers, column by column, in Python integers."""
    total: list[int] = [0] * design.rows
    steps = answers.steps
    for a in range(steps):
        for b in range(a, steps):
            unit = np.zeros((steps, steps), dtype=np.int64)
            unit[a, b] = 1
            for row, weight in enumerate(design.encode(TableAnswers(unit), 1)):
                total[row] += int(weight) * int(answers.square[a, b])
    return total


EXTREMES = [0, 1, -1, 2**59, 2**60 - 1, 2**60, 2**60 + 1, 2**61, 3 * 2**60 - 1, 3 * 2**60, 2**62, 2**63 - 1]
EXTREMES += [-value for value in EXTREMES] + [-(2**63)]


def test_adding_noise_is_clipping_in_exact_integers() -> None:
    def clip(value: int, bound: int) -> int:
        return min(max(value, -bound), bound)

    for exact in [*EXTREMES, 10**30, -(10**30)]:
        wanted = [clip(clip(exact, 2**60) + noise, 2**61) for noise in EXTREMES]
        noise = np.array(EXTREMES, dtype=np.int64)
        huge = np.array([exact] * len(EXTREMES), dtype=object)
        assert [int(value) for value in add_noise(huge, noise)] == wanted
        if abs(exact) < 2**63:
            assert [int(value) for value in add_noise(huge.astype(np.int64), noise)] == wanted


@pytest.mark.parametrize("saturated", [2**63 - 1, -(2**63)])
def test_saturated_noise_does_not_reveal_the_exact_value(saturated: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A regression: OpenDP stops at the ends of the 64-bit range, and x plus a saturated z was x again."""
    monkeypatch.setattr(kernel, "_sampler", lambda law, scale: lambda values: [saturated] * len(values))
    released: set[int] = set()
    for count in (0, 1, 1000, 2**40, -(2**40), 2**62):
        square = np.triu(np.full((4, 4), count, dtype=np.int64))
        for design in (direct(4, (1,), LAPLACE), _filtered(4)):
            measurement = Measurement(design, design.problem.law, 2.0**62)
            (found,) = measure([measurement], ApproxDP(1.0, 1e-6), TableAnswers(square))
            released.update(int(value) for value in found[1])
    assert released == {2**61 if saturated > 0 else -(2**61)}


def _filtered(steps: int) -> SeriesDesign:
    problem = Problem(Rolling(2), steps, (1,), EventLevel(), GAUSSIAN, 1.0)
    return SeriesDesign(problem, "test", map=Filter(steps, (5000, -2000, -1000)))


def test_the_saturation_of_the_sampler_is_what_the_bounds_assume() -> None:
    """At scale 2^70 a draw is at an end of the 64-bit range with probability above 0.99: one of 40 surely is."""
    drawn = draw_noise(LAPLACE, 2.0**70, 40)
    ends = drawn[np.isin(drawn, [2**63 - 1, -(2**63)])]
    assert len(ends) > 0
    nothing, something = (add_noise(np.full(len(ends), count), ends) for count in (0, 12345))
    assert np.array_equal(nothing, something)


# --- Refusals ---------------------------------------------------------------------------------------------------------


def _designs_for(budget: Budget) -> list[Design]:
    laws = (LAPLACE,) if isinstance(budget, PureDP) else LAWS if isinstance(budget, ApproxDP) else (GAUSSIAN,)
    problems = [
        Problem(window, 8, (1, 2), EventLevel(), law, 1.0) for window in (Cumulative(), Rolling(3)) for law in laws
    ]
    return [candidates(problem)[0] for problem in problems]


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_a_scale_a_thousandth_too_small_is_refused(budget: Budget) -> None:
    for design in _designs_for(budget):
        good = scaled(design, budget)
        measure([good], budget, zeros(8))
        with pytest.raises(BudgetExceededError, match="cannot be proved"):
            measure([replace(good, scale=good.scale * 0.999)], budget, zeros(8))


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_noise_for_an_understated_sensitivity_is_refused(budget: Budget) -> None:
    for design in _designs_for(budget):
        power = 2 if design.problem.law == GAUSSIAN else 1
        understated = scaled(design, budget).scale * 0.998 ** (1 / power)
        with pytest.raises(BudgetExceededError):
            measure([Measurement(design, design.problem.law, understated)], budget, zeros(8))


def test_nobody_can_state_a_bound() -> None:
    design = direct(8, (1,), LAPLACE)
    with pytest.raises(TypeError):
        replace(design, sensitivity=0)  # type: ignore[call-arg]
    with pytest.raises(FrozenInstanceError):
        design.certificate = Certificate(0, "none", 0)

    class Understating(SeriesDesign):
        certificate = Certificate(0, "none", 0)

    lying = Understating(design.problem, "lying", map=design.map)
    with pytest.raises(ValueError, match="its own shapes only, not Understating"):
        measure([Measurement(lying, LAPLACE, 1e9)], PureDP(1.0), zeros(8))


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_the_same_measurement_twice_in_one_call_is_refused(budget: Budget) -> None:
    for design in _designs_for(budget):
        with pytest.raises(BudgetExceededError):
            measure([scaled(design, budget)] * 2, budget, zeros(8))


def test_mixed_laws_are_refused() -> None:
    both = [Measurement(direct(8, (1,), law), law, 1e6) for law in LAWS]
    with pytest.raises(BudgetExceededError):
        measure(both, ApproxDP(1.0, 1e-6), zeros(8))


@pytest.mark.parametrize("law", LAWS)
def test_a_law_that_the_bound_was_not_made_for_is_refused(law: Law) -> None:
    """A regression: an L2 bound is no L1 bound."""
    other = LAPLACE if law == GAUSSIAN else GAUSSIAN
    with pytest.raises(ValueError, match="noise of another law"):
        measure([Measurement(direct(8, (1,), other), law, 1e9)], ApproxDP(1.0, 1e-6), zeros(8))


def test_laplace_is_no_zcdp_and_gaussian_no_pure_guarantee_here() -> None:
    for law, budget in ((LAPLACE, ZCDP(1.0)), (GAUSSIAN, PureDP(1.0))):
        with pytest.raises(BudgetExceededError):
            measure([Measurement(direct(8, (1,), law), law, 1e9)], budget, zeros(8))


def test_mixed_units_and_no_measurement_are_refused() -> None:
    both = [Measurement(direct(8, (1,), GAUSSIAN, unit), GAUSSIAN, 1e6) for unit in (EventLevel(), ItemAddRemove())]
    with pytest.raises(ValueError, match="same unit"):
        measure(both, ZCDP(1.0), zeros(8))
    with pytest.raises(ValueError, match="same unit"):
        measure([], ZCDP(1.0), zeros(8))


@pytest.mark.parametrize("steps", [7, 9])
def test_answers_of_another_horizon_are_refused(steps: int) -> None:
    """A regression: more steps than were charged for."""
    good = Measurement(direct(8, (1,), GAUSSIAN), GAUSSIAN, 1e6)
    measure([good], ZCDP(1.0), zeros(8))
    with pytest.raises(ValueError, match="another horizon"):
        measure([good], ZCDP(1.0), zeros(steps))


def test_one_measurement_of_another_horizon_is_enough_to_refuse() -> None:
    both = [Measurement(direct(steps, (1,), GAUSSIAN), GAUSSIAN, 1e6) for steps in (8, 9)]
    for answers in (zeros(8), zeros(9)):
        with pytest.raises(ValueError, match="another horizon"):
            measure(both, ZCDP(1.0), answers)


def test_a_step_is_measured_within_the_budget_of_the_stream_and_whole() -> None:
    """Every measurement gets its own noise of its own scale; what is missing, or not paid for, is refused."""
    made = [Measurement(direct(8, (1,), GAUSSIAN), GAUSSIAN, scale) for scale in (100.0, 1e6)]
    exact = [{1: np.full(4000, 10**9)}, {1: np.full(4000, 10**9)}]
    for measurement, noisy in zip(made, measure_step(made, ZCDP(1.0), exact), strict=True):
        assert list(noisy) == [1]
        assert accepts(GAUSSIAN, noisy[1] - 10**9, measurement.scale)
    with pytest.raises(ValueError, match="shorter"):
        measure_step(made, ZCDP(1.0), exact[:1])
    with pytest.raises(BudgetExceededError):
        measure_step(made, ZCDP(1e-9), exact)
    with pytest.raises(ValueError, match="another law"):
        measure_step([replace(made[0], law=LAPLACE)], ZCDP(1.0), exact[:1])


def test_more_rows_than_are_charged_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SeriesDesign, "rows", property(lambda design: 1))
    with pytest.raises(ValueError, match="charged for 1"):
        measure([Measurement(direct(8, (1,), GAUSSIAN), GAUSSIAN, 1e6)], ZCDP(1.0), zeros(8))


def test_nothing_is_drawn_when_anything_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    monkeypatch.setattr(kernel, "draw_noise", lambda *arguments: drawn.append(1))
    good, bad = (Measurement(direct(8, (1,), GAUSSIAN), GAUSSIAN, scale) for scale in (1e6, 0.5))
    with pytest.raises(BudgetExceededError):
        measure([good, bad], ZCDP(1.0), zeros(8))
    assert drawn == []


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
def test_scales_that_are_none_are_refused(scale: float) -> None:
    """A regression: a scale of infinity or less than nothing was charged as if it were noise."""
    with pytest.raises(ValueError, match="finite scale > 0"):
        measure([Measurement(direct(8, (1,), GAUSSIAN), GAUSSIAN, scale)], ZCDP(1.0), zeros(8))


def test_every_threshold_and_row_is_charged() -> None:
    measurement = Measurement(direct(8, (1, 2, 3), GAUSSIAN), GAUSSIAN, 5.0)
    assert measurement.cost == Cost(GAUSSIAN, 1, 5.0, 24)


def test_progress_counts_every_draw() -> None:
    seen: list[int] = []
    measure([Measurement(direct(9, (1, 2), LAPLACE), LAPLACE, 1e3)], PureDP(1.0), Silence(9), seen.append)
    assert seen == [9, 9]
    assert len(draw_noise(LAPLACE, 3.0, 0)) == 0
    pieces: list[int] = []
    assert len(draw_noise(LAPLACE, 3.0, kernel._PIECE + 1, pieces.append)) == kernel._PIECE + 1
    assert pieces == [kernel._PIECE, 1]


# --- The noise itself -------------------------------------------------------------------------------------------------

DRAWS, SCALE = 8000, 1000.0
# A statistic of DRAWS values over its expectation at the claimed scale is accepted within these.
ACCEPTED = {GAUSSIAN: (0.72, 1.32), LAPLACE: (0.86, 1.16)}


def spread(law: Law, noise: NDArray[Any], scale: float) -> float:
    """Mean of (z/s)^2 (a chi-squared variable over its mean), or of |z|/b (a gamma variable over its mean)."""
    scaled = noise.astype(np.float64) / scale
    return float((scaled**2).mean() if law == GAUSSIAN else abs(scaled).mean())


def accepts(law: Law, noise: NDArray[Any], scale: float) -> bool:
    low, high = ACCEPTED[law]
    return low < spread(law, noise, scale) < high


def test_error_probabilities_of_the_scale_test_are_below_one_in_a_thousand_million() -> None:
    """At scale 1000 the lattice changes these laws by less than a millionth."""
    for law, law_of, power in (
        (GAUSSIAN, stats.chi2(DRAWS, scale=1 / DRAWS), 2),
        (LAPLACE, stats.gamma(DRAWS, scale=1 / DRAWS), 1),
    ):
        low, high = ACCEPTED[law]
        assert law_of.cdf(low) + law_of.sf(high) < 1e-9
        assert law_of.cdf(high / 1.3**power) < 1e-9
        assert law_of.sf(low / 0.7**power) < 1e-9


def _noise_of(law: Law, scale: float, thresholds: tuple[int, ...] = (1,), times: int = 1) -> list[dict[int, Any]]:
    """The noise that `measure` adds to nothing."""
    budget = ZCDP(1e9) if law == GAUSSIAN else PureDP(1e9)
    return measure([Measurement(direct(DRAWS, thresholds, law), law, scale)] * times, budget, Silence(DRAWS))


@pytest.mark.parametrize("law", LAWS)
def test_the_noise_has_the_scale_that_was_charged(law: Law) -> None:
    """Fails by chance with probability below 1e-9 a draw of each scale."""
    (found,) = _noise_of(law, SCALE)
    assert accepts(law, found[1], SCALE)
    for factor in (0.7, 1.3):
        (wrong,) = _noise_of(law, SCALE * factor)
        assert not accepts(law, wrong[1], SCALE)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [0.4, 1.3, 6.0])
def test_the_noise_has_the_discrete_law(law: Law, scale: float) -> None:
    """By Dvoretzky, Kiefer and Wolfowitz: the distribution functions differ by 0.03 with probability below 2e-12.

    The law of 1.3 times the scale, and the other law of the same variance, are further away than twice that.
    """
    count = 16_000
    assert 2 * np.exp(-2 * count * 0.03**2) < 1e-9
    noise = draw_noise(law, scale, count)
    span = 60
    support = np.arange(-span, span + 1)
    cumulated = np.searchsorted(np.sort(noise), support, side="right") / count

    def distribution(which: Law, width: float) -> NDArray[np.float64]:
        weights = np.exp(-(support**2) / (2 * width**2)) if which == GAUSSIAN else np.exp(-abs(support) / width)
        return np.asarray(np.cumsum(weights) / weights.sum())

    right = distribution(law, scale)
    assert abs(cumulated - right).max() < 0.03
    for factor in (0.7, 1.3):
        if scale > 1:
            assert abs(distribution(law, scale * factor) - right).max() > 0.03


@pytest.mark.parametrize("law", LAWS)
def test_the_noise_is_of_integers_and_symmetric(law: Law) -> None:
    """The count of positive values is binomial; 4,000 +- 400 misses with probability below 1e-9 in either direction."""
    assert 2 * stats.binom(DRAWS, 0.5).cdf(DRAWS // 2 - 400) < 1e-9
    (found,) = _noise_of(law, SCALE)
    assert found[1].dtype == np.int64
    positive, zero = int((found[1] > 0).sum()), int((found[1] == 0).sum())
    assert zero < 100  # each is 0 with probability below 1/1000; binomial, above 99 with probability below 1e-60
    assert abs(positive + zero / 2 - DRAWS / 2) < 400 + 50


@pytest.mark.parametrize("law", LAWS)
def test_pieces_of_long_vectors_have_their_own_noise(law: Law) -> None:
    """A hundred numbers of scale 1000 are the same twice with probability below 1e-100."""
    drawn = draw_noise(law, SCALE, kernel._PIECE + 100)
    assert not np.array_equal(drawn[-100:], drawn[:100])
    assert not np.array_equal(drawn[-100:], drawn[-200:-100])


def correlated(first: NDArray[Any], second: NDArray[Any]) -> bool:
    """A correlation of independent draws is about normal with deviation 1/sqrt(8000): 0.1 is 8.9 deviations."""
    return bool(abs(np.corrcoef(first.astype(np.float64), second.astype(np.float64))[0, 1]) > 0.1)


@pytest.mark.parametrize("law", LAWS)
def test_no_noise_is_used_twice(law: Law) -> None:
    """Across rows, thresholds, measurements and calls. Each comparison fails by chance with probability below 1e-9.

    (Eight deviations of a normal variable are 1e-15; Laplace products have heavier tails, and 8.9 deviations left.)
    """
    first, second = _noise_of(law, SCALE, (1, 2), times=2)
    (third,) = _noise_of(law, SCALE, (1,))
    every = [first[1], first[2], second[1], second[2], third[1]]
    for i, one in enumerate(every):
        assert len(np.unique(one)) > 500
        for lag in (1, 2, DRAWS // 2):
            assert not correlated(one[lag:], one[:-lag])
        for other in every[:i]:
            assert not correlated(one, other)
            assert not correlated(abs(one), abs(other))
    assert correlated(first[1], first[1] + second[1])


@pytest.mark.parametrize("law", LAWS)
def test_seeds_have_no_influence(law: Law) -> None:
    """Two draws of 50 numbers of scale 1000 agree with probability below 1e-100."""
    drawn = []
    for _ in range(2):
        random.seed(7)
        np.random.seed(7)  # noqa: NPY002
        drawn.append(draw_noise(law, SCALE, 50))
    assert not np.array_equal(drawn[0], drawn[1])


@pytest.mark.parametrize("law", LAWS)
def test_noise_is_drawn_by_opendp_alone(law: Law, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any, **named: Any) -> Any:
        raise AssertionError("a seedable source of randomness was used")

    draw_noise(law, SCALE, 1)  # what is loaded once is loaded
    for name in ("normal", "laplace", "default_rng", "random", "standard_normal", "uniform", "exponential", "integers"):
        monkeypatch.setattr(np.random, name, refuse, raising=False)
    for name in ("random", "gauss", "normalvariate", "expovariate", "getrandbits"):
        monkeypatch.setattr(random, name, refuse)
    assert len(draw_noise(law, SCALE, 10)) == 10


# --- Mutants: broken kernels that the tests must notice ---------------------------------------------------------------


@dataclass(frozen=True)
class Mutant:
    """One change of the source, and the tests that must fail for it."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def __str__(self) -> str:
        return self.name


def _at(test: str, *names: str) -> tuple[str, ...]:
    return tuple(f"tests/{test}.py::{name}" for name in names)


CELLS = tuple(
    f"tests/kernel/bounds/test_sensitivity.py::test_every_strategy_in_every_cell[{case}]"
    for case in ("4-(1,)", "4-(2,)", "4-(1, 2)")
)
MUTANTS = [
    Mutant(
        "the scale is half of what it should be",
        "kernel/accounting.py",
        "return [\n        _positive(math.sqrt(sensitivity / share) / math.sqrt(squared)",
        "return [\n        _positive(0.5 * math.sqrt(sensitivity / share) / math.sqrt(squared)",
        _at("kernel/test_measure", "test_a_scale_a_thousandth_too_small_is_refused"),
    ),
    Mutant(
        "the budget is not checked",
        "kernel/measure.py",
        "    certify(budget, [measurement.cost for measurement in measurements])\n",
        "",
        _at("kernel/test_measure", "test_a_scale_a_thousandth_too_small_is_refused"),
    ),
    Mutant(
        "the law is not checked",
        "kernel/measure.py",
        "if any(measurement.law != measurement.design.problem.law",
        "if False and any(measurement.law != measurement.design.problem.law",
        _at("kernel/test_measure", "test_a_law_that_the_bound_was_not_made_for_is_refused"),
    ),
    Mutant(
        "only one threshold is charged for",
        "kernel/measure.py",
        "rows = found.moved * len(self.design.problem.thresholds)",
        "rows = found.moved",
        _at("kernel/test_measure", "test_every_threshold_and_row_is_charged"),
    ),
    Mutant(
        "numpy draws the noise",
        "kernel/measure.py",
        "piece = np.array(sampler([0] * min(_PIECE, count - start)), dtype=np.int64)",
        "piece = np.rint((np.random.normal if law == GAUSSIAN else np.random.laplace)"
        "(0, scale, min(_PIECE, count - start))).astype(np.int64)",
        _at("kernel/test_measure", "test_seeds_have_no_influence"),
    ),
    Mutant(
        "the actual noise is 30 % too small",
        "kernel/measure.py",
        "    sampler = _sampler(law, scale)",
        "    sampler = _sampler(law, 0.7 * scale)",
        _at("kernel/test_measure", "test_the_noise_has_the_scale_that_was_charged"),
    ),
    Mutant(
        "noise is drawn once for all thresholds",
        "kernel/measure.py",
        "k: add_noise(values, draw_noise(measurement.law, measurement.scale, len(values), progress))\n"
        "            for k, values in encoded.items()",
        "k: add_noise(values, encoded.setdefault(-1, draw_noise(measurement.law, measurement.scale, len(values))))\n"
        "            for k, values in list(encoded.items())",
        _at("kernel/test_measure", "test_no_noise_is_used_twice"),
    ),
    Mutant(
        "noise is remembered from call to call",
        "kernel/measure.py",
        "def draw_noise(",
        "@cache\ndef draw_noise(",
        _at("kernel/test_measure", "test_no_noise_is_used_twice"),
    ),
    Mutant(
        "floating-point noise is added to the integers",
        "kernel/measure.py",
        "np.clip(held + np.clip(noise, -furthest, furthest), -_RELEASED, _RELEASED)",
        "np.clip(held + np.clip(noise, -furthest, furthest) * 1.0, -_RELEASED, _RELEASED)",
        _at("kernel/test_measure", "test_the_noise_is_of_integers_and_symmetric"),
    ),
    Mutant(
        "saturated noise is added as it is",
        "kernel/measure.py",
        "np.clip(held + np.clip(noise, -furthest, furthest), -_RELEASED, _RELEASED)",
        "held + noise",
        _at("kernel/test_measure", "test_saturated_noise_does_not_reveal_the_exact_value"),
    ),
    Mutant(
        "integers wrap",
        "kernel/maps/integer_maps.py",
        "return exact.astype(np.int64 if largest * growth < _SAFE else object)",
        "return exact.astype(np.int64)",
        _at("kernel/test_measure", "test_large_counts_do_not_wrap"),
    ),
    Mutant(
        "the lattice term is forgotten",
        "kernel/accounting.py",
        "total = delta + (1 + growth) * _ball(eta)",
        "total = delta",
        _at("kernel/test_accounting", "test_the_lattice_term_is_charged"),
    ),
    Mutant(
        "the lattice term is added without the growth",
        "kernel/accounting.py",
        "total = delta + (1 + growth) * _ball(eta)",
        "total = delta + _ball(eta)",
        _at("kernel/test_accounting", "test_the_lattice_term_is_charged"),
    ),
    Mutant(
        "thresholds measured together are taken to have gaps between their runs",
        "kernel/bounds/sensitivity.py",
        "runs_bound(norms, sum(thresholds), reach, gaps=len(thresholds) == 1)",
        "runs_bound(norms, sum(thresholds), reach, gaps=True)",
        CELLS,
    ),
    Mutant(
        "exactly k is measured under the bound of at least k",
        "kernel/bounds/sensitivity.py",
        "runs_bound(norms, sum(thresholds), reach, gaps=len(thresholds) == 1)",
        "runs_bound(norms, thresholds[0], reach, gaps=True)",
        CELLS,
    ),
    Mutant(
        "runs are split into equal whole parts",
        "kernel/bounds/sensitivity.py",
        "longer * norms[size + 1] + (count - longer) * norms[size] if longer else count * norms[size]",
        "count * norms[size]",
        CELLS,
    ),
    Mutant(
        "the band of bounded windows is measured under the bound of one block",
        "kernel/bounds/rectangles.py",
        "for offset in range(first, extent + 1, block)]",
        "for offset in range(first, first + 1)]",
        _at("kernel/bounds/test_sensitivity", "test_tensor_filters_with_any_taps_widths_and_extents"),
    ),
    Mutant(
        "cross terms of rectangles that touch are dropped",
        "kernel/bounds/rectangles.py",
        "+ 2 * weight * touching**2",
        "+ 0 * touching**2",
        _at("kernel/bounds/test_sensitivity", "test_tensor_filters_with_any_taps_widths_and_extents"),
    ),
    Mutant(
        "rectangles that do not touch are taken to be independent",
        "kernel/bounds/rectangles.py",
        "found += 2 * weight * beyond**2",
        "found += 0 * beyond**2",
        _at("kernel/bounds/test_rectangles", "test_no_chain_costs_more_than_the_bound"),
    ),
    Mutant(
        "a block's edge is taken to cut no rectangle",
        "kernel/bounds/rectangles.py",
        "for one, other in zip(best, reversed(last), strict=True)",
        "for one, other in zip(best, reversed([0, *last[:-1]]), strict=True)",
        _at("kernel/bounds/test_rectangles", "test_no_log_exceeds_the_bound"),
    ),
    Mutant(
        "thresholds that share their intervals are charged as one",
        "kernel/bounds/rectangles.py",
        "weights = [sum(k > i for k in thresholds) for i in range(min(most, places))]",
        "weights = [1 for i in range(min(most, places))]",
        _at("kernel/bounds/test_rectangles", "test_no_log_exceeds_the_bound"),
    ),
    Mutant(
        "rectangles are charged for norms rounded down",
        "kernel/bounds/rectangles.py",
        "np.array([-(-norm >> shift) for norm in norms], dtype=np.int64)",
        "np.array([norm >> shift for norm in norms], dtype=np.int64)",
        _at("kernel/bounds/test_rectangles", "test_norms_too_long_for_the_tables_are_rounded_against_us"),
    ),
    Mutant(
        "an item changed is charged like an item added",
        "kernel/certify.py",
        "add(period_sensitivity.rolling_filter_period_l2, taps, length, steps, steps, thresholds)",
        "add(sensitivity.rolling_filter_add_remove_l2, taps, length, steps, thresholds)",
        CELLS,
    ),
    Mutant(
        "pairs of unlike signs are not charged",
        "kernel/bounds/signed_patterns.py",
        "tuple(2 * sum(max(0, d - zeros)",
        "tuple(0 * sum(max(0, d - zeros)",
        _at("kernel/bounds/test_signed_patterns", "test_no_item_counted_once_exceeds_the_bound"),
    ),
    Mutant(
        "far pairs are not charged",
        "kernel/bounds/signed_patterns.py",
        "symbol_maximum(far) - 2 * sum(weights.values())",
        "-2 * sum(weights.values())",
        _at("kernel/bounds/test_signed_patterns", "test_no_vector_of_signs_exceeds_the_bound"),
    ),
    Mutant(
        "of the starts and stops of two counts one kind is taken to be free",
        "kernel/bounds/changes_of_two_counts.py",
        "4 * prices.start * (known.k - 1) * known.places",
        "3 * prices.start * (known.k - 1) * known.places",
        _at("kernel/bounds/test_signed_patterns", "test_starts_and_stops_are_charged_for_all_k_minus_one_occurrences"),
    ),
    Mutant(
        "an item counted once is held for one tick too long",
        "kernel/bounds/changes_of_two_counts.py",
        "ticks = (known.length - 1) // every",
        "ticks = known.length // every",
        _at("kernel/bounds/test_signed_patterns", "test_no_item_counted_once_exceeds_the_bound"),
    ),
    Mutant(
        "a table is accepted that pays for one of the moves",
        "kernel/bounds/potentials.py",
        "(self._values[moves.targets] + moves.charges).max(axis=0)).all()",
        "(self._values[moves.targets] + moves.charges).min(axis=0)).all()",
        _at("kernel/bounds/test_potentials", "test_no_entry_of_the_least_table_can_be_lower"),
    ),
    Mutant(
        "a cycle may rise by more than is claimed for it",
        "kernel/bounds/potentials.py",
        "if not (self._values <= self._marked + rise).all():",
        "if not (self._values <= self._marked + rise).any():",
        _at("kernel/bounds/test_potentials", "test_a_cycle_that_rises_more_than_is_claimed_is_refused"),
    ),
    Mutant(
        "two counts never change at one place",
        "kernel/bounds/changes_of_two_counts.py",
        "2 * NEVER * held - start * starts - stop * stops",
        "2 * NEVER * (held + ((starts + stops) > 1)) - start * starts - stop * stops",
        _at("kernel/bounds/test_potentials", "test_every_change_of_an_item_is_a_path"),
    ),
    Mutant(
        "no cut of a change begins where the item is counted",
        "kernel/bounds/changes_of_two_counts.py",
        "            yield pair, self._counted(pair)",
        "            yield pair, self._counted(pair) + 2 * NEVER * (g != 0)",
        _at("kernel/bounds/test_signed_patterns", "test_no_item_counted_once_exceeds_the_bound"),
    ),
    Mutant(
        "two runs are taken to have one sign",
        "kernel/bounds/held_patterns.py",
        "int((apart - pairs).max(initial=0))",
        "int((apart + pairs).max(initial=0))",
        _at("kernel/bounds/test_signed_patterns", "test_no_item_counted_once_exceeds_the_bound"),
    ),
    Mutant(
        "a change within a period is taken to have one sign",
        "kernel/bounds/period_sensitivity.py",
        "total += every + min(every, 2 * few)",
        "total += every",
        _at("kernel/bounds/test_period_sensitivity", "test_every_strategy_in_every_cell"),
    ),
    Mutant(
        "a period is taken to be one step",
        "kernel/bounds/period_sensitivity.py",
        "return 2 * k * blocks + min(k + rest, 2 * k)",
        "return k",
        _at("kernel/bounds/test_period_sensitivity", "test_every_strategy_in_every_cell"),
    ),
    Mutant(
        "a period is as many groups of steps as it is steps long, cut down",
        "kernel/shapes/grouped.py",
        "-(-(unit.steps - 1) // size) + 1",
        "-(-unit.steps // size)",
        _at("kernel/bounds/test_period_sensitivity", "test_compressed_designs"),
    ),
    Mutant(
        "an item is taken to start being counted once a window, cut down",
        "kernel/bounds/sensitivity.py",
        "return k * -(-steps // (length + 1))",
        "return k * (steps // (length + 1))",
        CELLS,
    ),
    Mutant(
        "the runs of a higher threshold are ignored in L1",
        "kernel/bounds/sensitivity.py",
        "return 2 * runs * step_weight + anchors * anchor_weight",
        "return 2 * step_weight + anchors * anchor_weight",
        _at("kernel/bounds/test_sensitivity", "test_anchored_differences_with_any_spacing_and_weights"),
    ),
    Mutant(
        "one anchor is charged however many are met",
        "kernel/bounds/sensitivity.py",
        "return 2 * runs * step_weight + anchors * anchor_weight",
        "return 2 * runs * step_weight + anchor_weight",
        _at("kernel/bounds/test_sensitivity", "test_anchored_differences_with_any_spacing_and_weights"),
    ),
    Mutant(
        "an interval has one end",
        "kernel/certify.py",
        "ends, thresholds = 1 if present else 2, problem.thresholds",
        "ends, thresholds = 1, problem.thresholds",
        CELLS,
    ),
    Mutant(
        "an increment has weights in tents and its whole weight besides",
        "kernel/maps/tent_tree.py",
        "self.column_total - self._tents.sum(axis=0)",
        "self.column_total - 0 * self._tents.sum(axis=0)",
        _at("kernel/bounds/test_sensitivity", "test_trees_of_any_kind"),
    ),
    Mutant(
        "a rectangle has two corners",
        "kernel/bounds/sensitivity.py",
        "return 4 * sum(thresholds) * blocks_met * start_total * end_total",
        "return 2 * sum(thresholds) * blocks_met * start_total * end_total",
        _at("kernel/bounds/test_sensitivity", "test_tensor_trees_of_any_kind_with_any_widths_and_extents"),
    ),
    Mutant(
        "an added item touches what an event touches",
        "kernel/bounds/sensitivity.py",
        "return windows_touched if event else windows * len(thresholds)",
        "return windows_touched",
        CELLS,
    ),
]


def _run(package: Path, tests: Sequence[str]) -> subprocess.CompletedProcess[str]:
    root = Path(__file__).parents[2]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not slow", *tests],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A folder with a copy of the package, to be put first on the path."""
    source = Path(dpwindows.__file__).parent
    shutil.copytree(source, tmp_path / "dpwindows", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


@pytest.mark.slow
def test_the_copy_is_what_is_tested_and_passes_untouched(copied: Path) -> None:
    every = sorted({test for mutant in MUTANTS for test in mutant.tests})
    found = _run(copied, every)
    assert found.returncode == 0, found.stdout
    (copied / "dpwindows" / "kernel/measure.py").write_text(
        "raise ImportError('the copy was imported')\n", encoding="utf-8"
    )
    assert "the copy was imported" in _run(copied, every[:1]).stdout


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_broken_kernel_is_noticed(mutant: Mutant, copied: Path) -> None:
    file = copied / "dpwindows" / mutant.file
    source = file.read_text(encoding="utf-8")
    assert source.count(mutant.old) == 1, "the source has changed: change the mutant with it"
    mutated = source.replace(mutant.old, mutant.new)
    compile(mutated, str(file), "exec")
    file.write_text(mutated, encoding="utf-8")
    found = _run(copied, mutant.tests)
    assert found.returncode == 1, found.stdout + found.stderr
    assert "1 failed" in found.stdout
