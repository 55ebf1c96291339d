"""The black-box audit: power on honest mechanisms, and alarms on broken ones.

Bounds fail with probability below 1e-6 by construction (`error`). How likely an honest mechanism is to show less than
the share asked for here is stated where it is asked.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import stats

import dpwindows as dw
from dpwindows.ask.privacy import ZCDP, ApproxDP, Budget, EventLevel, ItemAddRemove, ItemLevel, PureDP, Unit
from dpwindows.ask.queries import AnyWindow, Cumulative, Query, Rolling, WindowFamily
from dpwindows.audit import Pair, audit_black_box, audit_exactly
from dpwindows.audit.black_box import claims, epsilon_bound, log_table, releases
from dpwindows.audit.statistic import discriminant, log_ratio
from dpwindows.errors import InputError
from dpwindows.kernel import measure as kernel
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.release import run as release
from tests.audit.asked import Draw, every_second_call_again, first_again, scaled, without_the_first
from tests.plans import plan_of

pytestmark = pytest.mark.usefixtures("one_engine")


# --- Power ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """A plan, and the releases of each log that make its bound reach 60 % of the claim all but surely.

    With an event of probabilities p and q and n releases tested, the bound has a standard deviation of about
    `sqrt(p (1-p) / (p-delta)^2 + (1-q) / q) / sqrt(n)`, and its limits cost it 4.9 of these. The releases are so many
    that 60 % of the claim are more than five further deviations below (choosing the event included).
    """

    query: Query | WindowFamily
    unit: Unit
    budget: Budget
    steps: int
    runs: int
    strategy: str = "auto"

    def __str__(self) -> str:
        return f"{self.query}, {self.unit.name}, {self.budget}"


CELLS = [
    Cell(Rolling(2), EventLevel(), PureDP(1.0), 3, 8_000),
    Cell(Cumulative(), ItemAddRemove(), PureDP(1.0), 4, 8_000),
    Cell(Cumulative(), ItemLevel(), ApproxDP(1.0, 1e-6), 6, 14_000),
    Cell(Rolling(3).at_least(2), EventLevel(), ApproxDP(2.0, 0.1), 5, 15_000),
    # Of other strategies for any windows the released numbers show less than the measured ones: not all are released.
    Cell(AnyWindow(), EventLevel(), ZCDP(1.0), 3, 15_000, "direct"),
]


@pytest.mark.search(3)
@pytest.mark.slow
@pytest.mark.usefixtures("seeded_noise", "encoded_once")
@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_what_releases_show_is_below_the_claim_and_above_sixty_percent_of_it(cell: Cell) -> None:
    plan = plan_of(cell.query, unit=cell.unit, budget=cell.budget, steps=cell.steps, strategy=cell.strategy)
    worst = audit_exactly(plan).worst
    found = audit_black_box(plan, worst, runs=cell.runs)
    print(f"\n{cell}: {found.bound:.3f} of {found.claim.epsilon:.3f} at delta = {found.claim.delta:g}")  # noqa: T201
    assert found.verdict == "not contradicted"
    assert 0.6 < found.share <= 1.0
    assert found.error == 1e-6
    if isinstance(cell.budget, PureDP):
        assert found.claim.delta == 0
        assert found.claim.epsilon == cell.budget.epsilon


# --- Broken mechanisms ----------------------------------------------------------------------------------------------

BROKEN: list[tuple[Query | WindowFamily, Budget]] = [
    (Rolling(2), PureDP(1.0)),
    (Rolling(3).at_least(1, 2), ApproxDP(1.0, 0.1)),
    (Cumulative(), ZCDP(0.5)),
]


WRONG: list[tuple[Callable[[Draw], Draw], Query | WindowFamily, Budget]] = [
    *((wrong, *plan) for wrong in (scaled(0.5), first_again) for plan in BROKEN),
    # The difference of two thresholds carries none: what releases teach finds it, the stated likelihood does not.
    (every_second_call_again, *BROKEN[1]),
    (without_the_first, *BROKEN[0]),
]


@pytest.mark.usefixtures("seeded_noise", "encoded_once")
@pytest.mark.parametrize(("wrong", "query", "budget"), WRONG)
def test_noise_that_is_not_as_stated_is_flagged(
    wrong: Callable[[Draw], Draw], query: Query | WindowFamily, budget: Budget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "draw_noise", wrong(kernel.draw_noise))
    plan = plan_of(query, unit=EventLevel(), budget=budget, steps=4)
    found = audit_black_box(plan, audit_exactly(plan).worst, runs=1500)
    assert found.verdict == "beyond the claim"
    assert found.bound > found.claim.epsilon


# --- The parts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("p", "q"), [(0.73, 0.27), (0.2, 0.05), (0.001, 0.001)])
@pytest.mark.parametrize("delta", [0.0, 0.02])
def test_the_bound_fails_as_rarely_as_it_says(p: float, q: float, delta: float) -> None:
    """Over all outcomes of two binomials, weighed by their probabilities: exact, nothing is drawn."""
    tested, error = 60, 0.1
    counts = np.arange(tested + 1)
    true = max(0.0, math.log((p - delta) / q)) if p > delta else 0.0
    chances = np.outer(stats.binom.pmf(counts, tested, p), stats.binom.pmf(counts, tested, q))
    bounds = np.array([[epsilon_bound((int(i), int(j)), tested, delta, error) for j in counts] for i in counts])
    assert chances[bounds > true + 1e-12].sum() <= error
    # With as many releases as are made it is near the truth.
    many = epsilon_bound((round(p * 10**6), round(q * 10**6)), 10**6, delta, error)
    assert true - 0.15 < many <= true


def test_bounds_at_the_ends() -> None:
    assert epsilon_bound((0, 0), 100, 0.0, 0.05) == 0
    assert epsilon_bound((100, 100), 100, 0.0, 0.05) == 0
    assert epsilon_bound((0, 100), 100, 0.0, 0.05) == 0
    assert epsilon_bound((100, 0), 100, 0.0, 0.05) == pytest.approx(math.log(0.025**0.01 / (1 - 0.025**0.01)))


def test_claims_are_the_budgets_and_for_gaussian_noise_the_curve() -> None:
    (pure,) = claims(plan_of(Rolling(2), unit=EventLevel(), budget=PureDP(0.7), steps=3))
    assert (pure.epsilon, pure.delta) == (0.7, 0.0)
    # Laplace noise under an approximate budget is pure.
    plan = plan_of(Rolling(2), unit=EventLevel(), budget=ApproxDP(1.0, 1e-6), steps=3)
    assert plan.allotments[0].measurement.law != GAUSSIAN
    (laplace,) = claims(plan)
    assert (laplace.epsilon, laplace.delta) == (1.0, 0.0)
    approximate = claims(plan_of(Rolling(2), unit=EventLevel(), budget=ApproxDP(1.0, 0.1), steps=3))
    assert (approximate[0].epsilon, approximate[0].delta) == (1.0, 0.1)
    curve = {claim.delta: claim.epsilon for claim in approximate[1:]}
    # The scale spends the whole budget: the curve runs through it, falling.
    assert curve[0.1] == pytest.approx(1.0, abs=1e-6)
    assert curve[0.01] > curve[0.05] > curve[0.1] > curve[0.2]
    # mu = 1 at rho = 1/2.
    concentrated = {
        claim.delta: claim.epsilon
        for claim in claims(plan_of(Rolling(2), unit=EventLevel(), budget=ZCDP(0.5), steps=3))
    }
    at = concentrated[0.05]
    assert stats.norm.cdf(0.5 - at) - math.exp(at) * stats.norm.cdf(-0.5 - at) == pytest.approx(0.05, abs=1e-6)


@pytest.mark.parametrize("budget", [PureDP(1.0), ZCDP(0.5)], ids=lambda budget: budget.kind)
def test_the_likelihood_ratio_separates_what_is_released_without_noise(budget: Budget) -> None:
    plan = plan_of(Rolling(2).at_least(1).exactly(2), Cumulative(), unit=ItemLevel(), budget=budget, steps=4)
    pair = audit_exactly(plan).worst
    ratio = log_ratio(plan, pair)
    exact = []
    for history in (pair.log, pair.neighbour):
        sure = plan_of(Rolling(2).at_least(1).exactly(2), Cumulative(), unit=ItemLevel(), budget=PureDP(1e9), steps=4)
        released = sure.run(log_table(sure, history), item="item", time="time", count="count")
        exact.append(np.rint(released.to_arrow()["estimate"].to_numpy()))
    low, high = ratio(np.array(exact))
    assert high > low + 0.5
    # Half way between the two logs nothing tells them apart.
    middle = ratio(np.mean(exact, axis=0)[None])[0]
    assert middle == pytest.approx((low + high) / 2, abs=1e-6)


def test_the_discriminant_weighs_directions_by_their_noise() -> None:
    rng = np.random.default_rng(0)
    shared = rng.normal(size=(2, 4000, 1))
    sample = np.concatenate([shared, shared + 0.01 * rng.normal(size=(2, 4000, 1))], axis=2)
    sample[1, :, 0] += 0.1
    scores = discriminant(*sample)(sample.reshape(-1, 2)).reshape(2, -1)
    # By the first number alone the shift is a tenth of a standard deviation, by the difference of both ten of them.
    assert (scores[1].mean() - scores[0].mean()) / scores[0].std() > 5


def test_a_log_of_one_item_has_its_history() -> None:
    plan = plan_of(Rolling(2), unit=EventLevel(), budget=PureDP(1.0), steps=4)
    assert log_table(plan, (0, 2, 0, 1)).to_pydict() == {"item": ["u", "u"], "time": [1, 3], "count": [2, 1]}
    assert log_table(plan, (0, 0, 0, 0)).num_rows == 0
    days = dw.Plan(
        Rolling(2),
        timeline=dw.Timeline("2013-03-09", "2013-03-12", time_zone="America/New_York"),
        unit=EventLevel(),
        budget=PureDP(1e9),
    )
    released = days.run(log_table(days, (0, 1, 0)), item="item", time="time", count="count")
    assert [round(value) for value in released.to_arrow()["estimate"].to_pylist()] == [0, 1, 1]


def test_whole_releases_are_what_a_plan_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The quick way draws by the same function as `Plan.run`: without noise both release the same."""
    calls: list[int] = []
    draw = release.draw_estimates

    def counted(*arguments: Any) -> Any:
        calls.append(1)
        return draw(*arguments)

    monkeypatch.setattr(release, "draw_estimates", counted)
    queries = (Rolling(2).at_least(1).exactly(2), Cumulative())
    plan = plan_of(*queries, unit=EventLevel(), budget=PureDP(1e9), steps=3)
    whole, quick = (np.array(list(releases(plan, (2, 0, 1), 3, whole=whole))) for whole in (True, False))
    assert len(calls) == 6
    assert whole.shape == quick.shape == (3, 9)
    assert np.allclose(whole, quick, atol=1e-3)
    assert np.array_equal(np.rint(quick[0]), [1, 1, 1, 1, 1, 0, 1, 1, 1])


@pytest.mark.parametrize("wrong", [{"runs": 99}, {"runs": 0}, {"error": 0.0}, {"error": 1.0}], ids=str)
def test_what_gives_no_bound_is_refused(wrong: dict[str, Any]) -> None:
    plan = plan_of(Rolling(2), unit=EventLevel(), budget=PureDP(1.0), steps=3)
    with pytest.raises(InputError):
        audit_black_box(plan, Pair((0, 0, 0), (1, 0, 0)), **wrong)


def test_a_decoder_that_is_too_large_is_refused() -> None:
    plan = plan_of(AnyWindow(), unit=EventLevel(), budget=PureDP(1.0), steps=60)
    with pytest.raises(InputError, match="fewer steps"):
        audit_black_box(plan, Pair((0,) * 60, (1,) + (0,) * 59), runs=200)
