"""Releases that count by a rule: what they say, what a ledger takes them for, which answers they measure."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpwindows as dw
from dpwindows.count.events import EventColumns
from dpwindows.plan.description import asked_of
from dpwindows.release.run import draw_estimates
from tests.brute_force import cumulative, first_occurrences, rolling, rolling_in_first_runs
from tests.counting import count_events
from tests.plans import plan_of

pytestmark = pytest.mark.usefixtures("one_engine")

LOG = pa.table({"who": ["a", "a", "a", "b", "b"], "at": [0, 0, 0, 0, 1]})


def plan(*, epsilon: float = 1e9, distinct_steps: bool = False) -> dw.Plan:
    return plan_of(
        dw.Rolling(2).at_least(1, 2),
        dw.AnyWindow(),
        steps=3,
        unit=dw.EventLevel(),
        budget=dw.ApproxDP(epsilon, 1e-6),
        distinct_steps=distinct_steps,
    )


def test_active_steps_are_released_and_say_so(tmp_path: Path) -> None:
    release = plan(distinct_steps=True).run(LOG, item="who", time="at")
    twice = [row for row in release.to_arrow().to_pylist() if row["window"] == "rolling:2" and row["k"] == 2]
    assert [round(row["estimate"]) for row in twice] == [0, 1, 0]
    assert release.metadata["counting"] == {"distinct_steps": True}
    assert "active in k different steps" in release.metadata["guarantee"]
    for ending in ("json", "csv", "parquet"):
        release.save(tmp_path / f"release.{ending}")
        assert dw.Release.load(tmp_path / f"release.{ending}").metadata == release.metadata


def test_without_a_rule_nothing_is_said_and_every_occurrence_counts() -> None:
    release = plan().run(LOG, item="who", time="at")
    twice = [row for row in release.to_arrow().to_pylist() if row["window"] == "rolling:2" and row["k"] == 2]
    assert [round(row["estimate"]) for row in twice] == [1, 2, 0]
    assert "counting" not in release.metadata
    assert "counting" not in asked_of(plan())


def test_answers_counted_by_another_rule_are_not_measured() -> None:
    asked = plan(distinct_steps=True)
    columns = EventColumns("who", "at")
    answers = count_events(LOG, columns, asked.timeline, asked.thresholds)
    with pytest.raises(ValueError, match="count other occurrences"):
        draw_estimates(asked, answers)


def test_more_active_steps_than_the_window_has_are_refused_before_anything_is_read() -> None:
    with pytest.raises(dw.InputError, match="rolling:2 holds at most 2 steps"):
        plan_of(dw.Rolling(2).at_least(3), steps=5, unit=dw.EventLevel(), budget=dw.PureDP(1.0), distinct_steps=True)


def runs_log(seed: int, steps: int) -> list[tuple[str, int, int]]:
    rng = random.Random(seed)
    return [(item, step, 1) for step in range(1, steps + 1) for item in "abcdefghij" if rng.random() < 0.15]


def bounded_plan(epsilon: float, *, unit: dw.Unit, **bound: Any) -> dw.Plan:
    return plan_of(
        dw.Rolling(3).at_least(1, 2), dw.Cumulative(), steps=30, unit=unit, budget=dw.ApproxDP(epsilon, 1e-6), **bound
    )


@pytest.mark.quick(1)
@pytest.mark.parametrize("unit", [dw.ItemLevel(), dw.ItemAddRemove()], ids=lambda unit: unit.name)
@pytest.mark.parametrize("bound", [{"max_runs": 1}, {"max_occurrences": 3}], ids=str)
def test_bounded_counts_are_released_and_say_so(unit: dw.Unit, bound: dict[str, int], tmp_path: Path) -> None:
    log = runs_log(1, 30)
    table = pa.table({"who": [item for item, _, _ in log], "at": [step - 1 for _, step, _ in log]})
    asked = bounded_plan(1e9, unit=unit, **bound)
    release = asked.run(table, item="who", time="at")
    found: dict[tuple[str, int], list[int]] = {}
    for row in release.to_arrow().to_pylist():
        found.setdefault((row["window"], row["k"]), []).append(round(row["estimate"]))
    held = first_occurrences(log, bound.get("max_occurrences", 10**6))
    for k in (1, 2):
        wanted = rolling_in_first_runs(held, k, 30, 3, bound.get("max_runs", 10**6))
        assert found["rolling:3", k] == wanted
        assert wanted != rolling(log, k, 30, 3)
    assert found["cumulative", 1] == cumulative(held, 1, 30)
    said = {query["window"]: "counts" in query for query in release.metadata["queries"]}
    assert said == {"rolling:3": True, "cumulative": "max_occurrences" in bound}
    assert release.metadata["counting"] == bound
    assert "cannot say by how much" in release.metadata["guarantee"]
    release.save(tmp_path / "release.parquet")
    assert dw.Release.load(tmp_path / "release.parquet").metadata == release.metadata


@pytest.mark.slow
@pytest.mark.parametrize("bound", [{"max_runs": 2}, {"max_occurrences": 4}], ids=str)
def test_a_bound_lowers_the_error_that_is_forecast_and_released(bound: dict[str, int]) -> None:
    plain, bounded = (bounded_plan(1.0, unit=dw.ItemAddRemove(), **options) for options in ({}, bound))
    release = bounded.run(LOG, item="who", time="at").to_arrow().to_pylist()
    for before, after in zip(plain.forecast(), bounded.forecast(), strict=True):
        errors = [row["std_error"] for row in release if (row["window"], row["k"]) == (after.window, after.k)]
        assert after.rms == pytest.approx(float(np.sqrt(np.mean(np.square(errors)))), rel=1e-12)
        assert after.rms < 0.9 * before.rms or after.window == "cumulative"
        assert after.limit is None, "the limit is for items that may do anything"


@pytest.mark.slow
def test_bounded_plans_are_read_back_from_plain_values() -> None:
    for bound in ({"max_runs": 2}, {"max_occurrences": 4, "distinct_steps": True}):
        plan = bounded_plan(1.0, unit=dw.ItemAddRemove(), **bound)
        values = plan.to_dict()
        assert values["max-runs" if "max_runs" in bound else "max-occurrences"] in (2, 4)
        assert dw.Plan.from_dict(values).rule == plan.rule


def test_a_strategy_that_reads_other_windows_is_refused_with_bounded_runs() -> None:
    with pytest.raises(dw.InputError, match=r"'paper' does not apply to .* bounded runs \(--max-runs\): use auto"):
        bounded_plan(1.0, unit=dw.ItemLevel(), max_runs=2, strategy="paper")


def test_bounded_answers_do_not_tell_unbounded_ones() -> None:
    asked = bounded_plan(1.0, unit=dw.ItemLevel(), max_runs=2).wanted
    answers = count_events(
        LOG, EventColumns("who", "at"), dw.Timeline.of_steps(30), asked.thresholds, rule=asked.rule, series=asked.series
    )
    with pytest.raises(dw.InputError, match="rolling and cumulative counts only"):
        answers.windows(1, 1, 1, 2, 1)
    for k, length in ((1, 4), (3, 3)):
        with pytest.raises(dw.InputError, match=f"first runs of at least {k} in {length} steps"):
            answers.rolling(k, length)


@pytest.mark.parametrize("bound", [{"max_runs": 2}, {"max_occurrences": 4}], ids=str)
def test_bounds_do_not_go_with_groups(bound: dict[str, int]) -> None:
    with pytest.raises(dw.InputError, match="do not go with --by"):
        bounded_plan(1.0, unit=dw.ItemAddRemove(), by={"origin": ["EWR"]}, group_of="item", **bound)


def test_few_occurrences_make_few_periods() -> None:
    """Disjoint windows hold at least one occurrence each: an item is in no more of them than it has."""
    options: dict[str, Any] = {"timeline": dw.Timeline.of_steps(120), "unit": dw.ItemLevel(), "budget": dw.ZCDP(0.5)}
    plain = dw.Plan(dw.Tumbling(4), **options).forecast()[0]
    few = dw.Plan(dw.Tumbling(4), max_occurrences=3, **options).forecast()[0]
    assert few.rms == pytest.approx(6**0.5, rel=1e-3)
    assert plain.rms == pytest.approx(30**0.5, rel=1e-3)
    with pytest.raises(dw.InputError, match="means nothing for tumbling:4"):
        dw.Plan([dw.Tumbling(4), dw.Rolling(4)], max_runs=2, **options)


@pytest.mark.parametrize("window", [dw.Rolling(2), dw.Tumbling(2)], ids=str)
@pytest.mark.parametrize("most", [1, 2])
def test_exactly_as_often_as_an_item_may_count_can_be_asked(window: dw.Rolling | dw.Tumbling, most: int) -> None:
    """It is measured by one more too, which no item reaches; finding a filter for that ended in an IndexError."""
    options: dict[str, Any] = {"timeline": dw.Timeline.of_steps(4), "unit": dw.ItemAddRemove(), "budget": dw.ZCDP(1e9)}
    made = dw.Plan(window.exactly(most), max_occurrences=most, **options)
    log = pa.table({"who": ["a"] * 3, "at": [0, 0, 3]})
    found = made.run(log, item="who", time="at").to_arrow()["estimate"].to_pylist()
    # Both occurrences that may count lie in the first step.
    assert [round(number) for number in found] == ([1, 1, 0, 0] if isinstance(window, dw.Rolling) else [1, 0])
