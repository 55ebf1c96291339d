"""Streams that count by a rule: the exact answers are those of a batch release by the same rule, across reopening."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import dpwindows as dw
from dpwindows.ask.counting_rule import CountingRule
from dpwindows.count.query.first_runs import series_number
from dpwindows.stream import recencies
from dpwindows.stream.stream import Stream
from tests.brute_force import first_occurrences, once_a_step, rolling, rolling_in_first_runs
from tests.stream.streams import STEP, Event, mechanism_of, new_stream, plan_of, require_exact, spied, table_of


def random_log(seed: int, steps: int) -> list[Event]:
    rng = random.Random(seed)
    return [(rng.choice("abcde"), step, rng.choice([1, 1, 2, 4])) for step in range(1, steps + 1) for _ in range(3)]


@pytest.mark.quick(1)
@pytest.mark.parametrize("windows", [("rolling:2", "any:3", "cumulative"), ("rolling:3",)])
def test_a_stream_counts_active_steps(
    windows: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, log = plan_of(*windows, thresholds=(1, 2), distinct_steps=True), random_log(1, 6)
    with spied(monkeypatch) as seen:
        new_stream(tmp_path / "state", plan).close()
        for step in range(1, 7):
            with Stream.open(tmp_path / "state") as stream:
                rows = [event for event in log if event[1] == step]
                # What comes late is counted in the step it is moved to, once as well.
                late = [("a", 1, 3)] if step == 4 else []
                release = stream.advance(table_of(rows + late), step * STEP, late="move")
                log += [("a", 4, 3)] if late else []
                assert release.metadata["counting"] == {"distinct_steps": True}
                assert "not an active step with several" in release.metadata["guarantee"]
            require_exact(seen[step], once_a_step(event for event in log if event[1] <= step), plan)


def test_a_stored_mechanism_keeps_its_rule() -> None:
    once = plan_of("rolling:3", thresholds=(1, 2), distinct_steps=True)
    every = plan_of("rolling:3", thresholds=(1, 2))
    assert [mechanism_of(plan).rule for plan in (once, every)] == [CountingRule(distinct_steps=True), CountingRule()]
    assert "counting" not in every.describe()


def streamed(path: Path, plan: dw.StreamPlan, log: list[Event], steps: int) -> None:
    """Close one step after another, each time from the file."""
    new_stream(path, plan).close()
    for step in range(1, steps + 1):
        with Stream.open(path) as stream:
            stream.advance(table_of(event for event in log if event[1] == step), step * STEP)


@pytest.mark.slow
@pytest.mark.parametrize("once", [False, True])
def test_a_stream_counts_the_first_occurrences(once: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"unit": "item-add-remove", "horizon": 9, "max_occurrences": 3, "distinct_steps": once}
    plan, log = plan_of("rolling:2", "any:3", "cumulative", thresholds=(1, 2), **options), random_log(2, 9)
    monkeypatch.setattr(recencies, "_RARELY", 2)
    with spied(monkeypatch) as seen:
        streamed(tmp_path / "state", plan, log, 9)
    held = first_occurrences(once_a_step(log) if once else log, 3)
    assert len(held) < len(log)
    for step in range(1, 10):
        require_exact(seen[step], [event for event in held if event[1] <= step], plan)


@pytest.mark.slow
@pytest.mark.parametrize(("once", "most"), [(False, 1), (True, 1), (False, 2)])
def test_a_stream_counts_items_in_their_first_runs(
    once: bool, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {"unit": "item", "horizon": 20, "max_runs": most, "distinct_steps": once}
    plan = plan_of("rolling:1", "rolling:2", "rolling:4", "cumulative", thresholds=(1,), **options)
    rng = random.Random(most)
    log = [(item, step, 2) for step in range(1, 21) for item in "abcdefgh" if rng.random() < 0.25]
    monkeypatch.setattr(recencies, "_RARELY", 2)
    with spied(monkeypatch) as seen:
        streamed(tmp_path / "state", plan, log, 20)
    mechanism, held = mechanism_of(plan), once_a_step(log) if once else log
    assert mechanism.series == ((1, 1), (1, 2), (1, 4))
    lost = 0
    for place, (k, length) in enumerate(mechanism.series):
        found = [int(seen[step].recent[series_number(place)][min(length, step) - 1]) for step in range(1, 21)]
        assert found == rolling_in_first_runs(held, k, 20, length, most)
        lost += sum(rolling(held, k, 20, length)) - sum(found)
    assert lost > 0
    assert [seen[step].total[1] for step in range(1, 21)] == [
        len({item for item, at, _ in log if at <= step}) for step in range(1, 21)
    ]


def test_a_bound_needs_an_end() -> None:
    for options in ({"max_runs": 2}, {"max_occurrences": 2}):
        with pytest.raises(dw.InputError, match="needs a horizon"):
            plan_of("cumulative", "rolling:3", thresholds=(1,), unit="item-add-remove", horizon=None, **options)
