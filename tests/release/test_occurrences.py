"""Occurrences in releases: what is released is what the log holds, by itself and over distinct items."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpwindows as dw
from dpwindows import reading
from dpwindows.ask.queries import OCCURRENCES
from dpwindows.audit.exact import audit_exactly
from dpwindows.audit.replay import audit_replay
from dpwindows.errors import InputError
from dpwindows.kernel.families.series import FromTotals
from dpwindows.plan.plan import Plan
from dpwindows.release.release import Release
from tests.brute_force import any_window, first_occurrences, occurrences
from tests.plans import plan_of

pytestmark = pytest.mark.usefixtures("one_engine")

STEPS = 12
EVENT, EXACT = dw.EventLevel(), dw.ApproxDP(1e9, 1e-6)
WINDOWS = (dw.Cumulative(), dw.Rolling(3), dw.AnyWindow(5), dw.Tumbling(4), dw.ToDate(4))
Log = list[tuple[str, int, int]]


def made(seed: int = 1) -> Log:
    rng = random.Random(seed)
    return [(f"u{rng.randrange(20)}", rng.randint(1, STEPS), rng.choice([1, 1, 2, 9])) for _ in range(120)]


def table_of(log: Log, **more: Any) -> pa.Table:
    items, steps, counts = zip(*log, strict=True)
    return pa.table({"who": items, "at": [step - 1 for step in steps], "n": counts, **more})


def asked(*queries: Any, unit: dw.Unit = EVENT, budget: dw.Budget = EXACT, **more: Any) -> Plan:
    return dw.Plan(list(queries), timeline=dw.Timeline.of_steps(STEPS), unit=unit, budget=budget, **more)


def released(plan: Plan, log: Log) -> Release:
    return plan.run(table_of(log), item="who", time="at", count="n")


def found(release: Release, window: str, measure: str) -> dict[tuple[int, int], float]:
    return {
        (row["first_step"], row["last_step"]): row["estimate"]
        for row in release.table.to_pylist()
        if row["window"] == window and row["measure"] == measure
    }


@pytest.mark.parametrize("unit", [dw.EventLevel(), dw.ItemAddRemove(), dw.ItemLevel()], ids=lambda unit: unit.name)
def test_what_is_released_is_what_the_log_holds(unit: dw.Unit) -> None:
    most = None if unit == dw.EventLevel() else 7
    release = released(asked(*(window.occurrences() for window in WINDOWS), unit=unit, max_occurrences=most), made())
    held = occurrences(made() if most is None else first_occurrences(made(), most), STEPS)
    for window in WINDOWS:
        numbers = found(release, window.text, "occurrences")
        assert len(numbers) >= 3
        for (first, last), estimate in numbers.items():
            assert estimate == pytest.approx(held[first - 1][last - 1], abs=0.01)
    assert release.table["k"].null_count == release.table.num_rows


def test_an_active_step_is_one_occurrence() -> None:
    release = released(asked(dw.Rolling(3).occurrences(), distinct_steps=True), made())
    held = occurrences([(item, step, 1) for item, step in {(item, step) for item, step, _ in made()}], STEPS)
    numbers = found(release, "rolling:3", "occurrences")
    assert all(round(estimate) == held[first - 1][last - 1] for (first, last), estimate in numbers.items())


# One release in twenty lies outside of its interval; how often is tested below.
@pytest.mark.usefixtures("seeded_noise")
def test_occurrences_over_distinct_items(tmp_path: Path) -> None:
    """Average frequency; of each file alike."""
    release = released(asked(dw.AnyWindow().at_least(1).occurrences(), budget=dw.ZCDP(1e6)), made())
    per_item = occurrences(made(), STEPS)[2][8] / any_window(made(), 1, STEPS)[2][8]
    for ending in ("parquet", "csv", "json"):
        release.save(tmp_path / f"out.{ending}")
        loaded = dw.Release.load(tmp_path / f"out.{ending}")
        assert loaded.table.equals(release.table)
        ratio = loaded.ratio(dw.Window(2, 9, occurrences=True), dw.Window(2, 9))
        assert ratio.estimate == pytest.approx(per_item, rel=1e-3)
        assert ratio.lower <= per_item <= ratio.upper
        count = loaded.count(2, 9, occurrences=True)
        assert (count.measure, count.k, count.window) == ("occurrences", None, "any")
    with pytest.raises(InputError, match="occurrences have no k"):
        release.count(2, 9, at_least=1, occurrences=True)
    alone = released(asked(dw.Rolling(3)), made())
    with pytest.raises(InputError, match="ask for occurrences=True too when releasing"):
        alone.count(2, 5, occurrences=True)
    with pytest.raises(InputError, match="items are those counted at least k times"):
        dw.Window(2, 9, occurrences=True, items="new")


@pytest.mark.slow
@pytest.mark.usefixtures("seeded_noise")
@pytest.mark.parametrize("budget", [dw.ZCDP(0.05), dw.PureDP(1.0)], ids=str)
def test_intervals_of_average_frequency_hold_it_as_often_as_they_say(budget: dw.Budget) -> None:
    log = [(f"u{item}", 1 + item % STEPS, 1 + item % 3) for item in range(600)]
    plan = asked(dw.AnyWindow(6).occurrences(), dw.Cumulative(), budget=budget)
    answers = occurrences(log, STEPS)[0][5] / any_window(log, 1, STEPS)[0][5]
    above, below = dw.Window(0, 6, occurrences=True), dw.Window(0, 6)
    held, table = 0, table_of(log)
    for _ in range(200):
        ratio = plan.run(table, item="who", time="at", count="n", consistent=False).ratio(above, below)
        held += ratio.lower <= answers <= ratio.upper
    assert held >= 180


@pytest.mark.parametrize("window", WINDOWS[1:], ids=str)
@pytest.mark.parametrize("budget", [dw.ZCDP(0.5), dw.PureDP(1.0)], ids=lambda budget: budget.kind)
def test_windows_read_off_totals_err_as_is_said(window: Any, budget: dw.Budget) -> None:
    """Their moments and weights are those of the decoder written out."""
    from dpwindows.strategies import candidates

    (allotment,) = asked(window.occurrences(), budget=budget).allotments
    design = next(one for one in candidates(allotment.measurement.design.problem) if isinstance(one.shape, FromTotals))
    reader = reading.of(design)
    decoder = np.stack([reader.decode(unit) for unit in np.eye(design.rows)], axis=1)
    np.testing.assert_allclose(reader.variance(), (decoder**2).sum(axis=1))
    fourths = reader.fourth_moment()
    assert fourths is not None
    np.testing.assert_allclose(fourths, (decoder**4).sum(axis=1), atol=1e-40)
    from dpwindows.ask.windows import window_steps

    first, last = window_steps(design.problem.window, STEPS)
    wanted = np.random.default_rng(1).normal(size=len(first))
    coefficients = dict(zip(zip(first.tolist(), last.tolist(), strict=True), wanted.tolist(), strict=True))
    (weights,) = reader.noise_weights(coefficients).values()
    np.testing.assert_allclose(weights, wanted @ decoder)
    assert design.encode(Ones(), OCCURRENCES).shape == (design.rows,)
    # What is decoded of exact numbers is exact.
    np.testing.assert_allclose(reader.decode(design.encode(Ones(), OCCURRENCES).astype(float)), last - first + 1)


class Ones:
    """One occurrence in every step."""

    steps = STEPS

    def cumulative(self, k: int) -> Any:
        return np.arange(1, STEPS + 1)

    def rolling(self, k: int, length: int) -> Any:
        return np.minimum(self.cumulative(k), length)

    def windows(self, k: int, first_start: int, starts: int, first_end: int, ends: int) -> Any:
        first, last = first_start + np.arange(starts), first_end + np.arange(ends)
        return np.maximum(0, last - first[:, None] + 1)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"unit": dw.ItemLevel()}, "--occurrences with --unit item needs --max-occurrences N"),
        ({"unit": dw.ItemAddRemove(), "max_runs": 2}, "needs --max-occurrences N"),
        ({"unit": dw.ItemPerPeriod(3)}, "occurrences are not counted under item-per:3"),
        ({"unit": dw.ItemLevel(), "by": {"g": ["x"]}}, "in groups go with --unit event"),
        ({"strategy": "paper"}, "the strategy paper counts items"),
    ],
    ids=lambda one: str(one)[:20],
)
def test_what_has_no_bound_is_refused(more: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        asked(dw.Rolling(3).at_least(1).occurrences(), **more)


def test_groups_hold_their_own_occurrences() -> None:
    log = made()
    groups = [random.Random(at).choice("xyz") for at in range(len(log))]
    plan = asked(dw.Rolling(4).occurrences(), by={"g": ["x", "y"]}, totals=0.3)
    release = plan.run(table_of(log, g=groups), item="who", time="at", count="n")
    for value in ("x", "y", None):
        own = [row for row, group in zip(log, groups, strict=True) if group in (("x", "y") if value is None else value)]
        held = occurrences(own, STEPS)
        rows = [row for row in release.table.to_pylist() if row["g"] == value]
        assert len(rows) == STEPS
        assert all(round(row["estimate"]) == held[row["first_step"] - 1][row["last_step"] - 1] for row in rows)


@pytest.mark.parametrize(("unit", "most"), [(dw.EventLevel(), None), (dw.ItemLevel(), 2), (dw.ItemAddRemove(), 2)])
def test_the_audit_knows_occurrences(unit: dw.Unit, most: int | None) -> None:
    plan = plan_of(
        dw.Rolling(2).occurrences(),
        dw.AnyWindow().at_least(1).occurrences(),
        steps=4,
        unit=unit,
        budget=dw.PureDP(1.0),
        max_occurrences=most,
    )
    exactly = audit_exactly(plan)
    assert exactly.verdict == "within the claim"
    assert exactly.exhaustive
    replayed = audit_replay(plan, [exactly.worst], made_up=2)
    assert not replayed.faults
    assert 0 < replayed.of_certified <= 1


def test_plans_come_back_from_files_and_releases() -> None:
    plan = asked(
        dw.Rolling(3).occurrences(),
        dw.Cumulative().at_least(1).occurrences(),
        weights={"cumulative occurrences": 3.0},
        budget=dw.ZCDP(1.0),
    )
    again = Plan.from_dict(plan.to_dict())
    assert again.queries == plan.queries
    assert again.to_dict() == plan.to_dict()
    assert [one.share for one in again.allotments] == [one.share for one in plan.allotments] == [0.2, 0.2, 0.6]
    measured = dw.plan_of(released(plan, made()))
    assert measured.queries == plan.queries
    assert [one.share for one in measured.allotments] == [0.2, 0.2, 0.6]
    for one, other in zip(plan.measurements, measured.measurements, strict=True):
        assert (str(one.design.shape), one.scale) == (str(other.design.shape), other.scale)
        assert one.certificate == other.certificate
    assert [(entry.measure, entry.k) for entry in plan.forecast()] == [
        ("occurrences", None),
        ("at_least", 1),
        ("occurrences", None),
    ]


def test_errors_stand_beside_the_least_possible() -> None:
    """Gaussian noise errs no less; any pair of dates no more than half as much again as totals."""
    for unit, most in ((dw.EventLevel(), None), (dw.ItemAddRemove(), 5), (dw.ItemLevel(), 5)):
        plan = dw.Plan(
            [window.occurrences() for window in (*WINDOWS, dw.AnyWindow())],
            timeline=dw.Timeline.of_steps(60),
            unit=unit,
            budget=dw.ZCDP(0.5),
            max_occurrences=most,
        )
        for entry in plan.forecast():
            assert entry.limit is not None
            assert entry.ratio_to_limit is not None
            assert 0.999 <= entry.ratio_to_limit <= 1.6
        errors = {entry.window: entry.rms for entry in plan.forecast()}
        assert errors["any"] <= 1.5 * errors["cumulative"]


def held_by(release: Release) -> dict[tuple[str, int, int, int], int]:
    return {
        (row["measure"], row["first_step"], row["last_step"], row["k"] or 0): row["consistent"]
        for row in release.table.to_pylist()
    }


@pytest.mark.usefixtures("seeded_noise")
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rho", [0.02, 1.0])
def test_consistent_numbers_add_up_and_hold_the_items(seed: int, rho: float) -> None:
    """Where items occur once, both are the same number, and noise puts either above the other."""
    log = [(f"u{item}", 1 + item % STEPS, 1) for item in range(60)] if seed % 2 else made(seed)
    windows = (dw.Rolling(1), dw.Rolling(4), dw.AnyWindow(5), dw.Tumbling(4), dw.Cumulative())
    plan = asked(*(window.at_least(1, 2).occurrences() for window in windows[seed:]), budget=dw.ZCDP(rho))
    numbers = held_by(released(plan, log))
    held = {(first, last): n for (kind, first, last, _), n in numbers.items() if kind == "occurrences"}
    assert min(held.values()) >= 0
    for (first, last), n in held.items():
        for step in range(first, last):
            parts = (first, step), (step + 1, last)
            if all(part in held for part in parts):
                assert n == sum(held[part] for part in parts)
        one, two = (numbers["at_least", first, last, k] for k in (1, 2))
        assert 0 <= two <= one <= n


@pytest.mark.slow
@pytest.mark.usefixtures("seeded_noise")
@pytest.mark.parametrize("once", [False, True])
def test_consistent_numbers_err_no_more_than_estimates(once: bool) -> None:
    """Of occurrences, over all windows of a family and many releases, whatever items tell of them."""
    log = [(f"u{item}", 1 + item % STEPS, 1) for item in range(60)] if once else made()
    windows = (dw.Rolling(3), dw.Tumbling(4), dw.AnyWindow(6), dw.Cumulative())
    plan = asked(*(window.at_least(1).occurrences() for window in windows), budget=dw.ZCDP(0.3))
    held, table = occurrences(log, STEPS), table_of(log)
    squares: dict[str, list[tuple[float, float]]] = {}
    for _ in range(60):
        for row in plan.run(table, item="who", time="at", count="n").table.to_pylist():
            if row["measure"] == "occurrences":
                true = held[row["first_step"] - 1][row["last_step"] - 1]
                both = ((row["estimate"] - true) ** 2, (row["consistent"] - true) ** 2)
                squares.setdefault(row["window"], []).append(both)
    for pairs in squares.values():
        raw, consistent = np.sqrt(np.mean(pairs, axis=0))
        assert consistent <= 1.02 * raw


@pytest.mark.parametrize("window", [dw.Tumbling(4), dw.Cumulative(), dw.Rolling(3)], ids=str)
def test_totals_of_ten_to_the_twelve_are_not_cut(window: Any) -> None:
    """Nor are they drawn to 0 where they are made consistent."""
    log = [(f"u{number}", 1 + number % STEPS, (1 << 31) - 1) for number in range(480)]
    release = released(asked(window.occurrences(), budget=dw.ZCDP(0.5)), log)
    for row in release.table.to_pylist():
        truth = sum(count for _, step, count in log if row["first_step"] <= step <= row["last_step"])
        assert abs(row["estimate"] - truth) < 8 * row["std_error"]
        assert abs(row["consistent"] - truth) < 40 * row["std_error"]
