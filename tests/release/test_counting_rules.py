"""Releases that count by a rule: what they say, what a ledger takes them for, which answers they measure."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import dpwindows as dw
from dpwindows.count.counting import count_events
from dpwindows.count.events import EventColumns
from dpwindows.plan.description import asked_of
from dpwindows.release.run import draw_estimates

LOG = pa.table({"who": ["a", "a", "a", "b", "b"], "at": [0, 0, 0, 0, 1]})


def plan(*, epsilon: float = 1e9, distinct_steps: bool = False) -> dw.Plan:
    return dw.Plan(
        [dw.Rolling(2).at_least(1, 2), dw.AnyWindow()],
        timeline=dw.Timeline.of_steps(3),
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


def test_a_ledger_takes_another_rule_for_another_request(tmp_path: Path) -> None:
    ledger = dw.Ledger.create(tmp_path / "ledger", "log", budget=dw.ApproxDP(3.0, 1e-5), unit=dw.EventLevel())
    every, once = plan(epsilon=1.0), plan(epsilon=1.0, distinct_steps=True)
    releases = [one.run(LOG, item="who", time="at", ledger=ledger) for one in (every, once, every, once)]
    identities = [release.metadata["release_id"] for release in releases]
    assert identities[:2] == identities[2:]
    assert len(set(identities)) == 2


def test_answers_counted_by_another_rule_are_not_measured() -> None:
    asked = plan(distinct_steps=True)
    columns = EventColumns("who", "at")
    answers = count_events(LOG, columns, asked.timeline, asked.thresholds)
    with pytest.raises(ValueError, match="count other occurrences"):
        draw_estimates(asked, answers)


def test_more_active_steps_than_the_window_has_are_refused_before_anything_is_read() -> None:
    with pytest.raises(dw.InputError, match="rolling:2 holds at most 2 steps"):
        dw.Plan(
            dw.Rolling(2).at_least(3),
            timeline=dw.Timeline.of_steps(5),
            unit=dw.EventLevel(),
            budget=dw.PureDP(1.0),
            distinct_steps=True,
        )
