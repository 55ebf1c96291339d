"""What tests of streams share: small plans, events as tables, a spy on exact answers, and what these should be."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import dpwindows as dw
from dpwindows.kernel.designs import StepAnswers
from dpwindows.stream.mechanism import Mechanism
from dpwindows.stream.stream import Stream
from tests.brute_force import count_at_least

# (item, step, count); times are ten to a step, from 0.
Event = tuple[str, int, int]
STEP = 10
SETTINGS = dw.EngineSettings(threads=1, progress=False)
# Steps of a stream where its end is nobody's business: the forecast of one without an end takes a second.
HORIZON = 60
# A plan, and the events of its first three steps.
PLAN = ("rolling:2", "cumulative")
LOG: list[list[Event]] = [[("a", 1, 1), ("b", 1, 3)], [("a", 2, 2)], [("b", 3, 1), ("c", 3, 1)]]


@cache
def plan_of(
    *windows: str,
    thresholds: tuple[int, ...] = (1, 3),
    unit: str = "event",
    horizon: int | None = HORIZON,
    **options: Any,
) -> dw.StreamPlan:
    """A plan, made once."""
    from dpwindows.ask.privacy import parse_unit
    from dpwindows.ask.queries import Query, parse_window

    queries = [Query(parse_window(window)).at_least(*thresholds) for window in windows]
    return dw.StreamPlan(queries, unit=parse_unit(unit), budget=dw.ApproxDP(1.0, 1e-6), horizon=horizon, **options)


def new_stream(path: Path, plan: dw.StreamPlan, **options: Any) -> Stream:
    """A stream of steps of ten integers from 0, of columns who, at and times."""
    given: dict[str, Any] = {"item": "who", "time": "at", "count": "times", "start": 0, "step": STEP}
    return Stream.create(path, plan, **(given | {"settings": SETTINGS} | options))


def started(path: Path, **options: Any) -> dw.Release:
    """Make a stream of `PLAN` with its first step closed."""
    with new_stream(path, plan_of(*PLAN), **options) as stream:
        return stream.advance(table_of(LOG[0]), STEP)


def table_of(events: Iterable[Event]) -> pa.Table:
    """Events as a table, each at some time within its step."""
    rows = list(events)
    return pa.table(
        {
            "who": pa.array([item for item, _, _ in rows], pa.string()),
            "at": pa.array(
                [(step - 1) * STEP + (index * 7) % STEP for index, (_, step, _) in enumerate(rows)], pa.int64()
            ),
            "times": pa.array([count for _, _, count in rows], pa.int64()),
        }
    )


def mechanism_of(plan: dw.StreamPlan) -> Mechanism:
    """The mechanism that a stream of a plan restores from what its releases say of themselves."""
    return Mechanism.of(json.loads(json.dumps(said_of(plan))))


def said_of(plan: dw.StreamPlan) -> dict[str, Any]:
    """What releases of a stream say of it, with the clock of the plan."""
    clock = dw.Timeline.of_length(plan.start or "2013-01-01", 1, plan.step or "1d", plan.time_zone or "UTC")
    return plan.describe() | {"timeline": clock.to_dict()}


@contextmanager
def spied(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[int, StepAnswers]]:
    """The exact answers that mechanisms without groups are given meanwhile, by step: the latest of each."""
    seen: dict[int, StepAnswers] = {}
    original = Mechanism.release_step

    def release_step(self: Mechanism, answers: list[StepAnswers], memory: Any) -> Any:
        seen[answers[0].step] = answers[0]
        return original(self, answers, memory)

    with monkeypatch.context() as patch:
        patch.setattr(Mechanism, "release_step", release_step)
        yield seen


def require_exact(answers: StepAnswers, log: list[Event], plan: dw.StreamPlan) -> None:
    """Compare the exact answers of a step with brute force over the log."""
    mechanism = mechanism_of(plan)
    step = answers.step
    for k in mechanism.thresholds:
        wanted = [count_at_least(log, k, step - back, step) for back in range(min(step, mechanism.reach))]
        assert list(answers.recent[k]) == wanted
    assert answers.total == {k: count_at_least(log, k, 1, step) for k in mechanism.totals}


def copied(path: Path, to: Path, *, mark: bool = True) -> Path:
    """A state and its items in another place or under another name, with its mark or without; what is there goes."""
    for ending in ("", "-items", "-journal", *([".mark"] if mark else [])):
        beside, copy = path.with_name(path.name + ending), to.with_name(to.name + ending)
        if copy.is_dir():
            shutil.rmtree(copy)
        copy.unlink(missing_ok=True)
        if beside.is_dir():
            shutil.copytree(beside, copy)
        elif beside.exists():
            shutil.copy(beside, copy)
    return to


def same(one: dw.Release, other: dw.Release) -> bool:
    """Whether two releases are the same to the last bit."""
    return bool(one.table.equals(other.table)) and one.metadata == other.metadata
