"""The audit of the noise: it finds noise that is not as stated, and next to never fault with noise that is."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import dpwindows as dw
from dpwindows.ask.privacy import ZCDP, ApproxDP, Budget, EventLevel, ItemAddRemove, ItemLevel, PureDP, Unit
from dpwindows.ask.queries import Cumulative, Query, Rolling, WindowFamily
from dpwindows.audit import NoiseAudit, audit_noise, noise_tests
from dpwindows.audit.workload import draws_needed
from dpwindows.errors import InputError
from dpwindows.kernel import measure as kernel
from dpwindows.kernel.accounting import CUBE, GAUSSIAN, LAPLACE, RANGE, Law
from dpwindows.kernel.designs import Design
from dpwindows.kernel.joint_noise import draw_jointly
from dpwindows.kernel.measure import draw_noise
from tests.audit.asked import Draw, Ints, every_second_call_again, first_again, half_again, scaled

pytestmark = pytest.mark.usefixtures("seeded_noise")

DOCUMENT = Path(__file__).parents[2] / "docs" / "audit.md"
# The documented example, Gaussian noise on a fine lattice, and several measurements with several thresholds.
PLANS: dict[str, tuple[list[Query | WindowFamily], Budget]] = {
    "laplace": ([Rolling(7).at_least(3)], PureDP(1.0)),
    "gaussian": ([Cumulative()], ZCDP(0.5)),
    "cube": ([Rolling(1).at_least(1, 2)], PureDP(1.0)),
    "range": ([Rolling(1).at_least(1, 2)], PureDP(1.0)),
    "several": ([Rolling(2).at_least(1, 2), Cumulative()], ZCDP(0.5)),
}
UNITS: dict[str, Unit] = {"cube": ItemLevel(), "range": ItemAddRemove()}


def plan_of(name: str, steps: int = 8) -> dw.Plan:
    queries, budget = PLANS[name]
    unit = UNITS.get(name, EventLevel())
    return dw.Plan(queries, timeline=dw.Timeline.of_steps(steps), unit=unit, budget=budget)


def audited(name: str, draws: int = 1200, **more: Any) -> NoiseAudit:
    return audit_noise(plan_of(name), draws=draws, **more)


# --- Honest noise ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PLANS)
def test_honest_noise_is_as_stated(name: str) -> None:
    found = audited(name)
    assert found.verdict == "as stated", found.faults
    assert found.least.chance * found.tests > found.error
    assert {one.law for one in found.measurements} == {plan_of(name).allotments[0].measurement.law}
    assert all(one.draws >= 2 * 1200 for one in found.measurements)


def test_honest_noise_of_a_stream_and_of_next_to_no_noise_is_as_stated() -> None:
    stream = dw.StreamPlan([Rolling(3).at_least(1, 2)], horizon=6, unit=EventLevel(), budget=ZCDP(0.5))
    assert audit_noise(stream, draws=600).verdict == "as stated"
    for budget in (PureDP(3.0), PureDP(1e6)):
        loud = dw.Plan(Rolling(2), timeline=dw.Timeline.of_steps(4), unit=EventLevel(), budget=budget)
        assert audit_noise(loud, draws=600).verdict == "as stated"


@pytest.mark.search(9)
@pytest.mark.quick(3)
@pytest.mark.parametrize(
    ("law", "scale"),
    [
        *((law, scale) for law in (LAPLACE, GAUSSIAN) for scale in (0.001, 0.4, 1.0, 7.0, 300.0, 2.0**24, 2.0**50)),
        *((law, scale) for law in (CUBE, RANGE) for scale in (0.4, 7.0, 2.0**24)),
    ],
)
def test_false_alarms_are_as_rare_as_the_tests_say(law: Law, scale: float) -> None:
    """Over many small samples: no test has a chance below x in clearly more than a share x of them."""
    rng, seen = np.random.default_rng(1), dict[str, list[float]]()
    noise = draw_noise(law, scale, 200 * 80, lambda drawn: None, 200 * 8).reshape(200, 2, 4, 10)
    for pair in noise:
        one, other = (noise_tests.uniforms(law, scale, half, rng) for half in pair)
        for name, chance in {
            **noise_tests.law_chances(law, one),
            "recurrence": noise_tests.recurrence_chance(law, scale, pair[0]),
            **({"radius": noise_tests.radius_chance(law, scale, pair[0])} if law in (CUBE, RANGE) else {}),
            "pair": noise_tests.pair_chance(one, other),
        }.items():
            seen.setdefault(name, []).append(chance)
    for name, chances in seen.items():
        for limit in (0.5, 0.1, 0.01):
            alarms = sum(chance < limit for chance in chances)
            # Of 200 honest samples: beyond this in one of 10^7 runs.
            assert alarms <= stats.binom.isf(1e-7, 200, limit), (name, limit, alarms)


# --- Noise that is not as stated ------------------------------------------------------------------------------------


def wider_only_for(law_wanted: Law, given: Law) -> Callable[[Draw], Draw]:
    """The other law, at the same variance."""

    def planted(draw: Draw) -> Draw:
        def drawn(law: Law, scale: float, count: int, *more: Any) -> Ints:
            if law != law_wanted:
                return draw(law, scale, count, *more)
            return draw(given, scale / 2**0.5 if given == LAPLACE else scale * 2**0.5, count, *more)

        return drawn

    return planted


def one_for_all_rows(draw: Draw) -> Draw:
    return lambda law, scale, count, *more: np.repeat(draw(law, scale, 1, *more), count)


def every_second_row_again(draw: Draw) -> Draw:
    def drawn(law: Law, scale: float, count: int, *more: Any) -> Ints:
        return np.repeat(draw(law, scale, -(-count // 2), *more), 2)[:count]

    return drawn


def mirrored_rows(draw: Draw) -> Draw:
    """The second half of a vector has the noise of the first with the other sign."""

    def drawn(law: Law, scale: float, count: int, *more: Any) -> Ints:
        half = draw(law, scale, -(-count // 2), *more)
        return np.concatenate([half, -half])[:count]

    return drawn


def seeded(draw: Draw) -> Draw:
    """Every call seeds a generator anew, with one of a thousand seeds."""
    seeds = itertools.count()

    def drawn(law: Law, scale: float, count: int, *more: Any) -> Ints:
        rng = np.random.default_rng(next(seeds) * 7919 % 997)
        values = rng.laplace(0, scale, count) if law == LAPLACE else rng.normal(0, scale, count)
        return np.rint(values).astype(np.int64)

    return drawn


def positive(draw: Draw) -> Draw:
    return lambda *asked: abs(draw(*asked))


def cut_at_two_scales(draw: Draw) -> Draw:
    def drawn(law: Law, scale: float, count: int, *more: Any) -> Ints:
        return np.clip(draw(law, scale, count, *more), -round(2 * scale), round(2 * scale))

    return drawn


def shared_width(draw: Draw) -> Draw:
    """Right law and fresh signs for every number, but all numbers of a call have one size."""

    def drawn(law: Law, scale: float, count: int, *more: Any) -> Ints:
        signs = np.sign(draw(LAPLACE, 1e6, count))
        return np.asarray(signs * abs(draw(law, scale, 1, *more)))

    return drawn


WRONG: dict[str, tuple[Callable[[Draw], Draw], str, int]] = {
    "half the scale": (scaled(0.5), "scale", 300),
    "twice the scale": (scaled(2.0), "scale", 300),
    "1.3 times too small": (scaled(1 / 1.3), "scale", 2000),
    "a seventh too small": (scaled(1 / 1.15), "scale", 10_000),
    "the same noise for every call": (first_again, "calls", 600),
    "the same noise for all rows": (one_for_all_rows, "numbers", 600),
    "the same noise for two rows": (every_second_row_again, "numbers 1 apart", 600),
    "one half of the rows with the other sign": (mirrored_rows, "apart", 600),
    "the same noise for two calls of the sampler": (every_second_call_again, "shared", 2000),
    "a generator that is seeded anew": (seeded, "again", 10_000),
    "no negative noise": (positive, "shape", 600),
    "noise without tails": (cut_at_two_scales, "shape", 3000),
    "sizes that are shared": (shared_width, "numbers", 600),
}


@pytest.mark.parametrize(("name", "law", "given"), [("laplace", LAPLACE, GAUSSIAN), ("gaussian", GAUSSIAN, LAPLACE)])
def test_the_other_law_at_the_same_variance_is_found(
    name: str, law: Law, given: Law, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "draw_noise", wider_only_for(law, given)(kernel.draw_noise))
    found = audited(name, 10_000)
    assert any("shape" in fault.test for fault in found.faults)


def independent_laplace(draw: Draw) -> Draw:
    """Laplace noise of about the same norm."""
    return lambda law, scale, count, *more: draw(LAPLACE, scale * count / 2, count)


WRONG_TOGETHER: dict[str, tuple[Callable[[Draw], Draw], str, int]] = {
    "half the scale": (scaled(0.5), "radius", 300),
    "twice the scale": (scaled(2.0), "radius", 300),
    "1.3 times too small": (scaled(1 / 1.3), "radius", 2000),
    "a seventh too small": (scaled(1 / 1.15), "radius", 10_000),
    "the same noise for every call": (first_again, "calls", 600),
    "the same noise for two parts": (half_again, "numbers", 2000),
    # By their signs, and numbers that only rise are no further apart than the largest.
    "no negative noise": (positive, "", 2000),
    "independent numbers": (independent_laplace, "shape", 10_000),
}


FAULTS = [
    (name, wrong, planted)
    for names, faults in ((("laplace", "gaussian"), WRONG), (("cube", "range"), WRONG_TOGETHER))
    for name in names
    for wrong, planted in faults.items()
]


@pytest.mark.quick(15)
@pytest.mark.parametrize(
    ("name", "planted"), [(one[0], one[2]) for one in FAULTS], ids=[" ".join(one[:2]) for one in FAULTS]
)
def test_noise_that_is_not_as_stated_is_found(
    name: str, planted: tuple[Callable[[Draw], Draw], str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong, word, draws = planted
    monkeypatch.setattr(kernel, "draw_noise", wrong(kernel.draw_noise))
    found = audited(name, draws)
    assert found.verdict == "not as stated", found.least
    assert any(word in fault.test for fault in found.faults), found.faults


@pytest.mark.quick(1)
@pytest.mark.parametrize(("law", "other"), [(CUBE, RANGE), (RANGE, CUBE)])
@pytest.mark.parametrize(("size", "scale"), [(1, 0.4), (3, 2.0), (40, 1e7)])
def test_vectors_make_uniform_numbers_of_the_right_law_only(law: Law, other: Law, size: int, scale: float) -> None:
    rng = np.random.default_rng(0)

    def chances(drawn: Law, factor: float) -> tuple[float, float]:
        vectors = np.array([draw_jointly(drawn, scale * factor, size) for _ in range(6_000 // size)])
        shares = noise_tests.uniforms(law, scale, vectors, rng)
        assert shares.shape == vectors.shape
        return noise_tests.radius_chance(law, scale, vectors), noise_tests.shape_chance(shares)

    assert min(chances(law, 1.0)) > 1e-9
    assert max(chances(law, 0.8)[0], chances(law, 1.25)[0]) < 1e-9
    # Of one number both are Laplace noise.
    assert (min(chances(other, 1.0)) < 1e-9) == (size > 1)


def test_noise_shared_by_thresholds_and_by_measurements_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    draw, last = kernel.draw_noise, list[Ints]()

    def shared(law: Law, scale: float, count: int, *more: Any) -> Ints:
        """Three vectors, of two thresholds and a further measurement, from the noise of one."""
        if not last:
            last.extend([draw(law, scale, count, *more)] * 3)
        kept = last.pop()
        return np.resize(kept, count)

    monkeypatch.setattr(kernel, "draw_noise", shared)
    found = audited("several")
    tests = " ".join(fault.test for fault in found.faults)
    assert "thresholds 1 apart" in tests
    assert "rolling:2 and cumulative" in tests


def test_noise_that_heeds_what_it_is_added_to_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    add = kernel.add_noise

    def heeding(exact: Ints, noise: Ints) -> Ints:
        return add(exact, np.where(abs(exact) > 2000, noise // 2, noise))

    monkeypatch.setattr(kernel, "add_noise", heeding)
    found = audited("laplace", 600)
    assert found.faults
    assert all("large log" in fault.test for fault in found.faults)


def test_an_encoding_that_depends_on_the_data_shows_as_noise_that_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    encode = Design.encode
    monkeypatch.setattr(
        Design,
        "encode",
        lambda self, answers, k: encode(self, answers, k) * (2 if answers.cumulative(k).max() > 2000 else 1),
    )
    assert audited("laplace", 300).faults


# --- Power ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", [LAPLACE, GAUSSIAN])
@pytest.mark.parametrize("draws", [300, 10_000])
def test_scales_at_the_stated_power_are_found(law: Law, draws: int) -> None:
    """At the scale said to be found with probability 0.99, in nearly all of 300 samples; half way there, in few."""
    limit = 1e-8
    below, above = noise_tests.detectable_scales(law, draws, limit)
    assert 0 < below < 1 < above
    if draws == 10_000:
        assert below > 0.9
        assert above < 1.1
    else:
        assert below > 0.5
    scale, rng = 2.0**20, np.random.default_rng(0)
    width = rng.laplace if law == LAPLACE else rng.normal
    for factor in (below, above):
        drawn = np.rint(width(0, factor * scale, (300, draws))).astype(np.int64)
        found = sum(noise_tests.scale_chance(law, noise_tests.uniforms(law, scale, one, rng)) < limit for one in drawn)
        assert found >= stats.binom.isf(1 - 1e-6, 300, 0.985)


def test_the_documentation_states_the_power_that_there_is() -> None:
    tests = audited("laplace", 300).tests
    stated = re.findall(r"^\| ([\d,]+)(?: \(default\))? \| (\d+)% \| (\d+)% \|$", DOCUMENT.read_text(), re.MULTILINE)
    assert len(stated) == 4
    for draws, low, high in stated:
        below, above = noise_tests.detectable_scales(LAPLACE, int(draws.replace(",", "")), 1e-6 / tests)
        assert (int(low), int(high)) == pytest.approx((100 * below, 100 * above), abs=1)


def test_the_bounds_are_above_the_true_probabilities() -> None:
    """Of small samples, over all outcomes, weighed: nothing is drawn."""
    cuts, widths = np.array([0.1, 0.5, 0.8]), np.array([0.1, 0.4, 0.3, 0.2])
    values = np.arange(-6, 7)
    masses = np.diff(noise_tests.distribution(LAPLACE, 0.8, np.arange(-7, 7)))

    def shape(outcome: Ints) -> float:
        return noise_tests.shape_chance(np.array([0.05, 0.3, 0.6, 0.9])[outcome], cuts)

    def recurrence(outcome: Ints) -> float:
        return noise_tests.recurrence_chance(LAPLACE, 0.8, values[outcome][:, None])

    for chance, weights, draws in ((shape, widths, 7), (recurrence, masses, 4)):
        outcomes = np.array(list(itertools.product(range(len(weights)), repeat=draws)))
        likely = weights[outcomes].prod(axis=1)
        kept = likely > 1e-6
        chances = np.array([chance(one) for one in outcomes[kept]])
        for limit in (0.5, 0.1, 0.01, 1e-4):
            assert likely[kept][chances <= limit].sum() <= limit + 1e-4


@pytest.mark.parametrize("law", [LAPLACE, GAUSSIAN])
@pytest.mark.parametrize("scale", [0.001, 0.05, 0.6, 1.0, 2.9, 3.1, 40.0, 4095.5, 4096.5])
def test_probabilities_are_those_of_the_formula(law: Law, scale: float) -> None:
    most = max(6, math.ceil(45 * scale))
    z = np.arange(-most, most + 1)
    weights = np.exp(-abs(z) / scale) if law == LAPLACE else np.exp(-((z / scale) ** 2) / 2)
    masses = weights / weights.sum()
    points = np.array([-2 * math.ceil(scale), -1, 0, 1, 2, math.ceil(scale)])
    found = noise_tests.distribution(law, scale, points)
    assert found == pytest.approx(np.cumsum(masses)[points + most], abs=1e-12)


@pytest.mark.parametrize("law", [LAPLACE, GAUSSIAN])
def test_uniform_numbers_lie_between_the_probabilities_of_their_integers(law: Law) -> None:
    noise, rng = np.repeat(np.arange(-40, 41), 50), np.random.default_rng(0)
    shares = noise_tests.uniforms(law, 7.0, noise, rng)
    below, up_to = (noise_tests.distribution(law, 7.0, noise - by) for by in (1, 0))
    assert ((shares >= below - 1e-15) & (shares <= up_to + 1e-15)).all()
    within = (shares - below)[abs(noise) < 10] / (up_to - below)[abs(noise) < 10]
    assert stats.kstest(within, "uniform").pvalue > 1e-6


# --- Requests -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [{"draws": 299}, {"draws": 0}, {"error": 0.0}, {"error": 1.0}], ids=str)
def test_what_tells_nothing_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        audit_noise(plan_of("laplace"), **wrong)


def test_the_noise_that_is_drawn_is_what_was_said(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    for name in PLANS:
        drawn.clear()
        audited(name, 300, progress=drawn.append)
        assert sum(drawn) == draws_needed(plan_of(name), 300)


def test_findings_are_plain_values() -> None:
    plan = dw.Plan(Cumulative(), timeline=dw.Timeline.of_steps(3), unit=ItemLevel(), budget=ApproxDP(1.0, 1e-6))
    told = audit_noise(plan, draws=300).to_dict()
    assert told["verdict"] == "as stated"
    assert told["faults"] == ()
    assert told["error"] == 1e-6
    assert 0.5 < told["measurements"][0]["found_below"] < 1 < told["measurements"][0]["found_above"]
