"""Releases with a private count of the items that lost something by a bound: what it is, and what it costs."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpwindows as dw
from dpwindows.ask.counting_rule import LOST
from dpwindows.count import counting
from dpwindows.count.events import EventColumns
from dpwindows.count.request import CountRequest
from dpwindows.plan.description import asked_of
from dpwindows.release.run import draw_estimates
from tests.brute_force import losers
from tests.counting import count_events
from tests.plans import plan_of

pytestmark = pytest.mark.usefixtures("one_engine")

STEPS = 20
BOUNDS: list[dict[str, Any]] = [{"max_runs": 1}, {"max_occurrences": 3}, {"max_occurrences": 2, "distinct_steps": True}]
UNITS = [dw.ItemLevel(), dw.ItemAddRemove()]


def made(seed: int = 1) -> list[tuple[str, int, int]]:
    rng = random.Random(seed)
    return [(f"u{item}", step, 1) for item in range(40) for step in range(1, STEPS + 1) if rng.random() < item / 150]


def table_of(log: list[tuple[str, int, int]]) -> pa.Table:
    return pa.table({"who": [item for item, _, _ in log], "at": [step - 1 for _, step, _ in log]})


def asked(budget: dw.Budget, unit: dw.Unit = UNITS[0], loss: float | None = 0.2, **bound: Any) -> dw.Plan:
    windows: list[Any] = [dw.Rolling(3).at_least(1, 2), dw.Cumulative()]
    return dw.Plan(windows, timeline=dw.Timeline.of_steps(STEPS), unit=unit, budget=budget, estimate_loss=loss, **bound)


def meant(bound: dict[str, Any]) -> int:
    """The items that lost something in the log, by the definition."""
    bounds: dict[str, Any] = {"occurrences": bound.get("max_occurrences"), "runs": bound.get("max_runs")}
    return losers(made(), STEPS, series=[(1, 3), (2, 3)], **bounds)


@pytest.mark.quick(1)
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
@pytest.mark.parametrize("bound", BOUNDS, ids=str)
def test_one_more_number_is_released_with_its_error(unit: dw.Unit, bound: dict[str, Any], tmp_path: Path) -> None:
    release = asked(dw.ApproxDP(1e9, 1e-6), unit, **bound).run(table_of(made()), item="who", time="at")
    loss = release.loss
    assert loss is not None
    assert round(loss.estimate) == meant(bound) > 0
    assert (
        loss.upper - loss.estimate
        == pytest.approx(loss.estimate - loss.lower)
        == pytest.approx(1.96 * loss.std_error, rel=0.01)
    )
    assert "more than" in loss.what
    assert str(loss) in release.remarks[0]
    for ending in ("json", "csv", "parquet"):
        release.save(tmp_path / f"release.{ending}")
        assert dw.Release.load(tmp_path / f"release.{ending}").loss == loss
    release.report(tmp_path / "page.html")
    assert loss.what in (tmp_path / "page.html").read_text()


def test_without_it_nothing_is_said_and_no_key_changes() -> None:
    for loss, told in ((None, False), (0.2, True)):
        plan = asked(dw.ZCDP(1.0), loss=loss, max_runs=1)
        release = plan.run(table_of(made()), item="who", time="at")
        assert ("loss" in release.metadata) is told
        assert ("loss" in asked_of(plan)) is told
        assert (release.loss is None) is not told


@pytest.mark.parametrize("budget", [dw.ApproxDP(1.0, 1e-6), dw.PureDP(1.0), dw.ZCDP(0.5)], ids=str)
@pytest.mark.parametrize("bound", BOUNDS[:2], ids=str)
def test_it_costs_its_share_and_no_more(budget: dw.Budget, bound: dict[str, Any]) -> None:
    """Under Gaussian noise a share of rho, under Laplace noise of epsilon; all others err by as much more."""
    with_loss, without = asked(budget, **bound), asked(budget, loss=None, **bound)
    assert with_loss.loss is not None
    gaussian = with_loss.loss.measurement.law == "discrete Gaussian"
    paid = 0.8 ** (-0.5 if gaussian else -1)
    for after, before in zip(with_loss.forecast(), without.forecast(), strict=True):
        assert after.rms == pytest.approx(before.rms * paid, rel=0.01)
    # One item moves the number by one, which is measured by itself: under Laplace noise on whole numbers.
    own = budget if gaussian else dw.PureDP(0.2)
    alone = dw.Plan(dw.Cumulative(), timeline=dw.Timeline.of_steps(1), unit=dw.ItemAddRemove(), budget=own)
    (measure,) = with_loss.loss.query.measures
    expected = max(entry.rms for entry in alone.forecast()) * (0.2**-0.5 if gaussian else 1)
    if alone.forecast()[0].noise == with_loss.loss.measurement.law:
        assert with_loss.loss.std_errors(measure)[0] == pytest.approx(expected, rel=0.01)


@pytest.mark.usefixtures("seeded_noise")
def test_its_noise_is_drawn_anew_and_has_the_error_that_is_stated() -> None:
    plan, log = asked(dw.ZCDP(0.5), max_runs=1), table_of(made())
    first, second = (plan.run(log, item="who", time="at", consistent=False).loss for _ in range(2))
    assert first is not None
    assert second is not None
    assert first.estimate != second.estimate
    # More of them, as a release draws them after counting.
    request = CountRequest(log, EventColumns("who", "at"), plan.timeline, plan.wanted)
    answers, stated = counting.count_events(request), first.std_error
    estimates = np.array([float(draw_estimates(plan, answers)[-1][0]) for _ in range(200)])
    # Mean and deviation of 200 draws: five standard deviations of either.
    assert abs(estimates.mean() - meant({"max_runs": 1})) < 5 * stated / 200**0.5
    assert abs(estimates.std() / stated - 1) < 5 / 400**0.5


def test_a_ledger_takes_it_for_another_request(tmp_path: Path) -> None:
    ledger = dw.Ledger.create(tmp_path / "ledger", "log", budget=dw.ZCDP(9.0), unit=dw.ItemLevel())
    plans = [asked(dw.ZCDP(1.0), loss=loss, max_runs=1) for loss in (None, 0.2, 0.3)]
    releases = [plan.run(table_of(made()), item="who", time="at", ledger=ledger) for plan in (*plans, *plans)]
    identities = [release.metadata["release_id"] for release in releases]
    assert identities[:3] == identities[3:]
    assert len(set(identities)) == 3
    assert releases[1].loss == releases[4].loss


def test_what_can_be_read_once_is_read_once() -> None:
    """A stream of record batches: the bounded counts and the loss come of one reading."""
    for bound in BOUNDS:
        plan = asked(dw.ZCDP(1e12), **bound)
        release = plan.run(table_of(made()).to_reader(7), item="who", time="at")
        again = plan.run(table_of(made()), item="who", time="at")
        assert release.loss is not None
        assert round(release.loss.estimate) == meant(bound)
        one, other = (np.array(found.to_arrow()["estimate"]) for found in (release, again))
        assert np.array_equal(np.round(one), np.round(other))


def test_answers_without_the_loss_tell_none() -> None:
    wanted = asked(dw.ZCDP(1.0), max_occurrences=2).wanted
    log, columns, timeline = table_of(made()), EventColumns("who", "at"), dw.Timeline.of_steps(STEPS)
    counted = {loss: count_events(log, columns, timeline, [1], rule=wanted.rule, loss=loss) for loss in (False, True)}
    assert counted[True].cumulative(LOST)[-1] == losers(made(), STEPS, occurrences=2)
    with pytest.raises(dw.InputError, match="not for k=0"):
        counted[False].cumulative(LOST)


def test_a_range_of_one_run_loses_nothing() -> None:
    """Rolling windows as long as the range are cumulative: no run can be left out, and no engine fails for it."""
    plan = plan_of(
        dw.Rolling(30), steps=STEPS, unit=dw.ItemLevel(), budget=dw.ZCDP(1e12), max_runs=1, estimate_loss=0.5
    )
    loss = plan.run(table_of(made()), item="who", time="at").loss
    assert loss is not None
    assert round(loss.estimate) == 0
