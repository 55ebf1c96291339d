"""Streams that count by a rule: the exact answers are those of a batch release by the same rule, across reopening."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from dpwindows.ask.counting_rule import CountingRule
from dpwindows.stream.mechanism import Mechanism
from dpwindows.stream.stream import Stream
from tests.brute_force import once_a_step
from tests.stream.streams import STEP, Event, new_stream, plan_of, require_exact, spied, table_of


def random_log(seed: int, steps: int) -> list[Event]:
    rng = random.Random(seed)
    return [(rng.choice("abcde"), step, rng.choice([1, 1, 2, 4])) for step in range(1, steps + 1) for _ in range(3)]


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
    once = Mechanism.of_plan(plan_of("rolling:3", thresholds=(1, 2), distinct_steps=True))
    every = Mechanism.of_plan(plan_of("rolling:3", thresholds=(1, 2)))
    assert Mechanism.restored(*once.stored()).rule == CountingRule(distinct_steps=True)
    assert "counting" not in every.stored()[0]
