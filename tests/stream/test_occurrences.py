"""Occurrences in streams: at every step what the log holds, with items that come late, groups and limits."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import dpwindows as dw
from dpwindows.ask.queries import OCCURRENCES
from dpwindows.plan.stream_plan import StreamPlan
from dpwindows.stream.stream import Stream
from tests.brute_force import any_window, first_occurrences, occurrences
from tests.stream.streams import mechanism_of

STEPS = 14
Log = list[tuple[str, int, int]]
WINDOWS: tuple[Any, ...] = (dw.Rolling(3), dw.Cumulative(), dw.AnyWindow(4), dw.Tumbling(5), dw.ToDate(5))
CASES: list[tuple[dw.Unit, dict[str, Any]]] = [
    (dw.EventLevel(), {}),
    (dw.EventLevel(), {"distinct_steps": True}),
    (dw.ItemLevel(), {"max_occurrences": 5}),
    (dw.ItemAddRemove(), {"max_occurrences": 2, "distinct_steps": True}),
]


def made(seed: int) -> Log:
    rng = random.Random(seed)
    return [(f"u{rng.randrange(9)}", rng.randint(1, STEPS), rng.choice([1, 2, 7])) for _ in range(90)]


def table_of(log: Log, **more: Any) -> pa.Table:
    items, steps, counts = zip(*log, strict=True)
    return pa.table({"who": items, "at": [step - 1 for step in steps], "n": counts, **more})


def rows_of(folder: Path, plan: StreamPlan, log: pa.Table) -> list[dict[str, Any]]:
    """What two calls release, the second on the state as the first left it."""
    rows: list[dict[str, Any]] = []
    with Stream.create(folder / "state", plan, item="who", time="at", count="n", start=0, step=1):
        pass
    for low, high in ((0, 6), (6, STEPS)):
        with Stream.open(folder / "state") as opened:
            own = log.filter([low <= at < high for at in log["at"].to_pylist()])
            rows += opened.advance(own, through=high).table.to_pylist()
    return rows


@pytest.mark.search(5)
@pytest.mark.parametrize(("unit", "rule"), CASES, ids=str)
@pytest.mark.parametrize("measures", ["alone", "beside items"])
def test_a_stream_releases_what_the_log_holds(
    unit: dw.Unit, rule: dict[str, Any], measures: str, tmp_path: Path
) -> None:
    log = made(3)
    queries = [window.occurrences() for window in WINDOWS]
    queries = queries if measures == "alone" else [query.at_least(1, 2) for query in queries]
    plan = dw.StreamPlan(queries, unit=unit, budget=dw.ZCDP(1e7), horizon=STEPS, **rule)
    rows = rows_of(tmp_path, plan, table_of(log))
    events: Log = log
    if rule.get("distinct_steps"):
        events = [(item, step, 1) for item, step in {(item, step) for item, step, _ in log}]
    if "max_occurrences" in rule:
        events = first_occurrences(events, rule["max_occurrences"])
    held = occurrences(events, STEPS)
    assert {row["window"] for row in rows if row["k"] is None} == {window.text for window in WINDOWS}
    for row in rows:
        place = row["first_step"] - 1, row["last_step"] - 1
        k = row["k"]
        square = held if k is None else any_window(events, k, STEPS)
        assert (row["measure"] == "occurrences") is (k is None)
        assert round(row["estimate"]) == square[place[0]][place[1]]


def test_groups_of_a_stream_hold_their_own(tmp_path: Path) -> None:
    log = made(5)
    groups = [random.Random(at).choice("xyz") for at in range(len(log))]
    plan = dw.StreamPlan(
        [dw.Rolling(4).occurrences()],
        unit=dw.EventLevel(),
        budget=dw.ZCDP(1e7),
        by={"g": ["x", "y"]},
        totals=0.3,
    )
    rows = rows_of(tmp_path, plan, table_of(log, g=groups))
    for value in ("x", "y", None):
        own = [row for row, group in zip(log, groups, strict=True) if group in (("x", "y") if value is None else value)]
        held = occurrences(own, STEPS)
        mine = [row for row in rows if row["g"] == value]
        assert len(mine) == STEPS
        assert all(round(row["estimate"]) == held[row["first_step"] - 1][row["last_step"] - 1] for row in mine)


@pytest.mark.parametrize("window", [dw.Rolling(3), dw.Cumulative(), dw.AnyWindow(4), dw.Tumbling(5)], ids=str)
def test_a_stream_without_an_end_has_a_plan_of_its_own(window: Any, tmp_path: Path) -> None:
    plan = dw.StreamPlan([window.occurrences()], unit=dw.EventLevel(), budget=dw.ApproxDP(1.0, 1e-6))
    log = made(7)
    rows = rows_of(tmp_path, plan, table_of(log))
    assert rows
    with Stream.open(tmp_path / "state") as opened:
        shown = opened.show()
        assert shown.table.num_rows == len(rows)
        measured = dw.plan_of(shown)
    assert [query.name for query in measured.queries] == [f"{window.text} occurrences"]
    assert measured.measurements[0].certificate == plan.measurements[0].certificate


def test_items_are_kept_for_good_only_where_they_are_counted_for_good() -> None:
    counted, items = dw.Cumulative().occurrences(), dw.Cumulative().at_least(1)
    cases: list[tuple[list[Any], bool]] = [
        ([counted], False),
        ([counted, items], True),
        ([counted, dw.Rolling(2)], False),
    ]
    for queries, kept in cases:
        plan = StreamPlan(queries, unit=dw.EventLevel(), budget=dw.ZCDP(0.5), horizon=STEPS)
        assert mechanism_of(plan).keeps_items is kept
        # Of items that are forgotten nothing is counted since the start.
        assert mechanism_of(plan).totals == ((OCCURRENCES, 1) if kept else (OCCURRENCES,))
