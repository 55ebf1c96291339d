"""What was measured is never searched for again: not for differences, audits, exports, or a stream that goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpwindows as dw
from dpwindows.ask.queries import Query, WindowFamily
from dpwindows.audit import audit_encoding, audit_exactly, audit_replay
from dpwindows.plan.export import export_plan
from dpwindows.plan.measured_plan import plan_of
from dpwindows.plan.plan import Plan
from dpwindows.plan.stream_plan import StreamPlan
from dpwindows.release.release import Release
from tests.searches import forbid_searches

APPROX = dw.ApproxDP(1.0, 1e-6)
COLUMNS: dict[str, Any] = {"item": "item", "time": "time"}


def log(first: int, last: int) -> pa.Table:
    """One row for each of three items at every second, third and fifth step."""
    rows = [(f"item {every}", step) for step in range(first, last) for every in (2, 3, 5) if step % every == 0]
    items, times = zip(*rows, strict=True)
    return pa.table({"item": pa.array(items), "time": pa.array(times, pa.int64())})


@pytest.mark.slow
def test_of_a_release_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Query | WindowFamily] = [dw.Rolling(3).at_least(1, 2), dw.Cumulative(), dw.AnyWindow(4)]
    timeline = dw.Timeline.of_steps(12)
    made = Plan(asked, timeline=timeline, unit=dw.ItemAddRemove(), budget=APPROX).run(log(0, 12), **COLUMNS)
    path = tmp_path / "out.parquet"
    made.save(path)
    before = made.difference((6, 9), (2, 5)), made.ratio((6, 9), (2, 5))
    forbid_searches(monkeypatch)
    release = Release.load(path)
    assert (release.difference((6, 9), (2, 5)), release.ratio((6, 9), (2, 5))) == before
    plan = plan_of(release)
    assert isinstance(plan, Plan)
    assert audit_exactly(plan).verdict == "within the claim"
    assert not audit_encoding(plan).faults
    (tmp_path / "integers.npz").write_bytes(export_plan(plan))
    exported = np.load(tmp_path / "integers.npz", allow_pickle=False)
    assert "rolling:3" in str(exported["description"])
    # The same integers and the same noise, drawn anew: it spends again.
    again = plan.run(log(0, 12), **COLUMNS)
    assert again.table["std_error"].equals(release.table["std_error"])


@pytest.mark.slow
def test_of_a_stream_that_goes_on_and_of_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = StreamPlan([dw.Rolling(3), dw.AnyWindow(4)], unit=dw.ItemLevel(), budget=APPROX, horizon=12)
    with dw.Stream.create(tmp_path / "state", plan, start=0, step=1, **COLUMNS) as stream:
        stream.advance(log(0, 6), through=6)
    forbid_searches(monkeypatch)
    with dw.Stream.open(tmp_path / "state") as stream:
        rows = stream.advance(log(6, 9), through=9)
    assert rows.difference((6, 8), (5, 7)).std_error > 0
    again = plan_of(rows)
    assert isinstance(again, StreamPlan)
    assert audit_exactly(again).verdict == "within the claim"
    assert not audit_replay(again, made_up=1).faults
