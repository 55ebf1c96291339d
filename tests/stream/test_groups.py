"""Streams with groups: the integers of a batch release, step by step, in every group and total."""

from __future__ import annotations

import itertools
import json
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import dpwindows as dw
from dpwindows.ask.groups import Grouping, Value, grouping
from dpwindows.ask.privacy import ZCDP, EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod, PureDP, Unit
from dpwindows.ask.shapes import read_shape
from dpwindows.audit import audit_exactly, audit_measurements, audit_replay
from dpwindows.errors import InputError
from dpwindows.kernel.designs import StepAnswers
from dpwindows.kernel.groups import certify_groups
from dpwindows.kernel.measure import Measurement
from dpwindows.stream.mechanism import Mechanism
from dpwindows.stream.records import digest
from dpwindows.stream.stream import Stream
from tests.brute_force import count_at_least
from tests.grouped_logs import Row, grouped_events
from tests.stream.streams import STEP, mechanism_of, same

BY: dict[str, list[Value]] = {"country": ["de", "fr", "é"], "store": [2, 1]}
QUERIES = [dw.Cumulative().at_least(1, 2), dw.Rolling(2).exactly(1), dw.AnyWindow(3).at_least(2)]
STEPS = 5
LISTED = grouping(BY, totals=0.4)
assert LISTED is not None
KEYS = [key for level in LISTED.levels for key in LISTED.values_of(level)]


def plan_of(unit: Unit | None = None, budget: Any = None, **options: Any) -> dw.StreamPlan:
    asked: dict[str, Any] = {"by": BY, "totals": 0.4, "horizon": STEPS} | options
    return dw.StreamPlan(QUERIES, unit=unit or EventLevel(), budget=budget or ZCDP(0.5), **asked)


@cache
def plan_of_stores(*stores: Value) -> dw.StreamPlan:
    """Made once: tests that replace parts of streams would make it anew."""
    return plan_of(by={**BY, "store": list(stores)})


def new(path: Path, plan: dw.StreamPlan, **options: Any) -> Stream:
    settings = dw.EngineSettings(threads=1, progress=False)
    return Stream.create(path, plan, item="who", time="at", count="n", start=0, step=STEP, settings=settings, **options)


def rule_of(limit: int | str | None) -> dict[str, Any]:
    """The options of a limit on an item's groups; "item" stands for one group, that which it was first in."""
    return {"group_of": "item"} if limit == "item" else {"max_groups": limit}


def in_steps(rows: list[Row]) -> list[Row]:
    """The rows at the times at which their steps begin: what of a step is first a stream does not tell."""
    return [(item, time // STEP * STEP, count, values) for item, time, count, values in rows]


def random_rows(seed: int, rows: int = 120) -> list[Row]:
    """Rows of few items; some are in groups that are not listed, or in none."""
    rng = np.random.default_rng(seed)
    countries, stores = ["de", "fr", "é", "e", None], [1, 2, 3, None]
    return [
        (
            f"item {rng.integers(12)}",
            int(rng.integers(STEPS * STEP)),
            int(rng.integers(1, 3)),
            (countries[rng.integers(5)], stores[rng.integers(4)]),
        )
        for _ in range(rows)
    ]


def table_of(rows: list[Row]) -> pa.Table:
    return pa.table(
        {
            "who": pa.array([row[0] for row in rows], pa.string()),
            "at": pa.array([row[1] for row in rows], pa.int64()),
            "n": pa.array([row[2] for row in rows], pa.int64()),
            "country": pa.array([row[3][0] for row in rows], pa.string()),
            "store": pa.array([row[3][1] for row in rows], pa.int64()),
        }
    )


def between(rows: list[Row], low: int, high: int) -> list[Row]:
    return [row for row in rows if low <= row[1] < high]


def spied(monkeypatch: pytest.MonkeyPatch) -> dict[int, list[StepAnswers]]:
    """The exact answers that mechanisms are given from now on, by step: those of each group."""
    seen: dict[int, list[StepAnswers]] = {}
    measured = Mechanism.release_step

    def release_step(self: Mechanism, answers: list[StepAnswers], memory: Any) -> Any:
        seen[answers[0].step] = answers
        return measured(self, answers, memory)

    monkeypatch.setattr(Mechanism, "release_step", release_step)
    return seen


# --- The same integers ------------------------------------------------------------------------------------------------


@pytest.mark.quick(1)
@pytest.mark.parametrize("source", ["table", "parquet", "csv"])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_stream_counts_every_group_as_the_definition_does(
    seed: int, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, seen = random_rows(seed), spied(monkeypatch)
    assert LISTED is not None
    # A CSV file holds text, which a list of text names.
    plan = plan_of_stores("2", "1") if source == "csv" else plan_of_stores(2, 1)
    with new(tmp_path / "state", plan) as stream:
        for low, high in itertools.pairwise([0, 2, 3, STEPS]):
            part: Any = table_of(between(rows, low * STEP, high * STEP))
            if source != "table":
                path = tmp_path / f"{low}.{source}"
                pq.write_table(part, path) if source == "parquet" else pa.csv.write_csv(part, path)
                part = str(path)
            stream.advance(part, through=high * STEP)
    require_counted(seen, plan, rows, LISTED)


def require_counted(seen: dict[int, list[StepAnswers]], plan: dw.StreamPlan, rows: list[Row], groups: Grouping) -> None:
    """Fail unless the exact answers of every step are those of the definition."""
    expected = grouped_events(rows, groups, lambda time: time // STEP + 1)
    reach = mechanism_of(plan).reach
    assert sorted(seen) == list(range(1, STEPS + 1))
    for step, answers in seen.items():
        for key, found in zip(KEYS, answers, strict=True):
            events = [event for event in expected[key] if event[1] <= step]
            for k in (1, 2):
                recent = [count_at_least(events, k, step - back, step) for back in range(min(step, reach))]
                assert list(found.recent[k]) == recent, (key, step, k)
                if found.total:
                    assert found.total[k] == count_at_least(events, k, 1, step)


@pytest.mark.quick(1)
@pytest.mark.search(7)
@pytest.mark.parametrize("queries", [QUERIES, [dw.Rolling(1).at_least(1, 2)]], ids=["all", "forgetful"])
@pytest.mark.parametrize("late", ["ignore", "move"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_an_item_stays_in_the_group_that_it_was_first_in(
    seed: int, late: Any, queries: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that no window asks for any more, and one whose earlier events come late, or in the same step."""
    rows, seen = random_rows(seed, rows=60), spied(monkeypatch)
    groups = grouping(BY, totals=0.4, group_of="item")
    assert groups is not None
    plan = dw.StreamPlan(queries, unit=ItemLevel(), budget=ZCDP(0.5), by=BY, totals=0.4, horizon=STEPS, group_of="item")
    behind = [place for place in range(len(rows)) if place % 9 == 0 and rows[place][1] < 3 * STEP]
    counted = []
    with new(tmp_path / "state", plan) as stream:
        for low, high in itertools.pairwise([0, 1, 3, 4, STEPS]):
            part = [row for place, row in enumerate(rows) if low * STEP <= row[1] < high * STEP and place not in behind]
            moved = [rows[place] for place in behind] if low == 3 else []
            stream.advance(table_of(part + moved), through=high * STEP, late=late)
            counted += part
            if late == "move":
                counted += [(item, 3 * STEP, count, values) for item, _, count, values in moved]
    require_counted(seen, plan, in_steps(counted), groups)


UNITS: list[tuple[Unit, int | str | None]] = [
    (EventLevel(), None),
    (ItemLevel(), 6),
    (ItemAddRemove(), 6),
    (ItemPerPeriod(2), 6),
    (ItemLevel(), "item"),
    (ItemAddRemove(), "item"),
]


FAMILIES = [dw.Tumbling(2).at_least(1, 2), dw.AnyWindow(), dw.Rolling(1), dw.Rolling(4)]
# Unit, limit on groups, budget without noise to speak of, queries, and whether steps are counted in place of events.
CASES: list[tuple[Unit, int | str | None, Any, list[Any], bool]] = [
    *((unit, limit, ZCDP(1e9), QUERIES, False) for unit, limit in UNITS),
    (EventLevel(), None, PureDP(1e6), QUERIES, True),
    (EventLevel(), None, PureDP(1e6), FAMILIES, False),
    (EventLevel(), None, ZCDP(1e9), FAMILIES, False),
    (ItemLevel(), 6, PureDP(1e6), FAMILIES, False),
    (ItemLevel(), "item", PureDP(1e6), FAMILIES, True),
]


def _said(value: object) -> str:
    return "; ".join(map(str, value)) if isinstance(value, list) else str(value)


@pytest.mark.quick(1)
@pytest.mark.search(6)
@pytest.mark.parametrize(("unit", "limit", "budget", "queries", "distinct"), CASES, ids=_said)
def test_where_noise_vanishes_a_stream_releases_what_a_batch_does(
    unit: Unit, limit: int | str | None, budget: Any, queries: list[Any], distinct: bool, tmp_path: Path
) -> None:
    rows = in_steps(random_rows(3))
    asked: dict[str, Any] = {"unit": unit, "budget": budget, "by": BY, "totals": 0.4, **rule_of(limit)}
    asked["distinct_steps"] = distinct
    with new(tmp_path / "state", dw.StreamPlan(queries, horizon=STEPS, **asked)) as stream:
        for high in (1, 4, STEPS):
            stream.advance(table_of(between(rows, 0, high * STEP)), through=high * STEP)
        streamed = stream.show()
    plan = dw.Plan(queries, timeline=dw.Timeline(0, STEPS * STEP, STEP), **asked)
    batch = plan.run(table_of(rows), item="who", time="at", count="n", consistent=False)

    def numbers(release: dw.Release) -> Counter[tuple[Any, ...]]:
        table = release.table
        assert {"country", "store"} <= set(table.column_names)
        names = ["window", "measure", "k", "country", "store", "first_step", "last_step", "start", "end"]
        counts = [round(value) for value in table["estimate"].to_pylist()]
        return Counter(zip(*(table[name].to_pylist() for name in names), counts, strict=True))

    assert numbers(streamed) == numbers(batch)
    assert streamed.metadata["groups"] == batch.metadata["groups"]
    assert max(abs(value - round(value)) for value in streamed.table["estimate"].to_pylist()) < 0.3


# --- The guarantee ----------------------------------------------------------------------------------------------------


@pytest.mark.quick(4)
@pytest.mark.parametrize("horizon", [3, None])
@pytest.mark.parametrize(
    ("unit", "limit"),
    [
        (EventLevel(), None),
        (ItemLevel(), 2),
        (ItemAddRemove(), 2),
        (ItemPerPeriod(1), 2),
        (ItemLevel(), "item"),
        (ItemAddRemove(), "item"),
    ],
    ids=str,
)
def test_a_stream_with_groups_is_within_its_claim_over_every_neighbour(
    unit: Unit, limit: int | str | None, horizon: int | None
) -> None:
    if horizon is None and isinstance(unit, ItemLevel | ItemAddRemove):
        return
    for budget in (PureDP(1.0), ZCDP(0.5)):
        plan = dw.StreamPlan(
            [dw.Rolling(2), dw.Rolling(1).exactly(1)],
            unit=unit,
            budget=budget,
            horizon=horizon,
            by={"g": ["a", "b"]},
            totals=0.3,
            **rule_of(limit),
        )
        measured = [replace(one, design=one.design.forecast_over(3)) for one in plan.measurements]  # type: ignore[attr-defined]
        found = audit_measurements(measured, budget, unit)
        assert found.exhaustive
        assert found.verdict == "within the claim"
        # A mechanism that was stored and read again is charged for all groups.
        kept = mechanism_of(plan)
        for one, measurement in zip(kept.measurements, plan.measurements, strict=True):
            assert one.groups is not None
            assert one.certificate.bound == certify_groups(one.design, one.groups).bound
            assert one.certificate.bound == measurement.certificate.bound
        if limit == 2:
            alone = dw.StreamPlan([dw.Rolling(2), dw.Rolling(1).exactly(1)], unit=unit, budget=budget, horizon=horizon)
            parallel = [
                Measurement(one.design, one.law, cheap.scale, one.groups)
                for one, cheap in zip(measured[::2], alone.measurements, strict=True)
            ]
            assert audit_measurements(parallel, budget, unit).verdict == "beyond the claim"


@pytest.mark.slow
@pytest.mark.search(3)
@pytest.mark.parametrize(("unit", "limit"), UNITS, ids=str)
def test_nothing_but_noise_differs_between_neighbours(unit: Unit, limit: int | str | None) -> None:
    plan = plan_of(unit, by={"g": ["a", "b"]}, horizon=3, **rule_of(2 if limit == 6 else limit))
    replayed = audit_replay(plan, [audit_exactly(plan).worst], made_up=1)
    assert replayed.faults == ()
    assert 0.1 < replayed.of_certified <= 1.0


# --- A life -----------------------------------------------------------------------------------------------------------


def test_a_stream_with_groups_lives_like_any_other(tmp_path: Path) -> None:
    rows, path = random_rows(5), tmp_path / "state"
    book = dw.Ledger.create(tmp_path / "ledger", "log", budget=dw.ApproxDP(2.0, 1e-5), unit=EventLevel())
    plan = plan_of(budget=dw.ApproxDP(1.0, 1e-6), horizon=None)
    new(path, plan, ledger=book).close()
    first, second = (table_of(between(rows, low * STEP, high * STEP)) for low, high in ((0, 2), (2, 4)))
    with Stream.open(path) as stream:
        one = stream.advance(first, through=2 * STEP)
        assert same(stream.advance(first, through=2 * STEP), one)
    with Stream.open(path) as stream:
        two = stream.advance(second, through=4 * STEP)
        whole = stream.show()
    assert whole.table.equals(pa.concat_tables([one.table, two.table]))
    assert whole.metadata["groups"]["columns"] == [{"name": name, "values": values} for name, values in BY.items()]
    # Each number is there once for each group, margins and total included.
    assert Counter(
        zip(whole.table["country"].to_pylist(), whole.table["store"].to_pylist(), strict=True)
    ).keys() == set(KEYS)
    two.save(tmp_path / "two.parquet")
    read = dw.Release.load(tmp_path / "two.parquet")
    assert read.table.equals(two.table)
    group: dict[str, Value] = {"country": "é", "store": 1}
    rolling = {"exactly": 1, "family": "rolling:2"}
    ratio = read.ratio(dw.Window(10, 30, **rolling, group=group), dw.Window(10, 30, **rolling))  # type: ignore[arg-type]
    assert ratio.std_error > 0


def test_an_event_that_changed_its_group_is_no_repetition(tmp_path: Path) -> None:
    """The difference to the first release would show it under one and the same noise."""
    event: Row = ("u", 3, 1, ("de", 1))
    moved: Row = ("u", 3, 1, ("fr", 1))
    unlisted: Row = ("u", 3, 1, ("at", 1))
    with new(tmp_path / "state", plan_of()) as stream:
        released = stream.advance(table_of([event]), through=STEP)
        assert same(stream.advance(table_of([unlisted, event]), through=STEP), released)
        with pytest.raises(dw.InputError, match="not the ones it was closed with"):
            stream.advance(table_of([moved]), through=STEP)
        with pytest.raises(dw.InputError, match="late events"):
            stream.advance(table_of([moved]), through=2 * STEP)
        stream.advance(table_of([moved]), through=2 * STEP, late="ignore")
        with pytest.raises(dw.InputError, match="events at or after 30"):
            stream.advance(table_of([("u", 30, 1, ("é", 2))]), through=3 * STEP)
        stream.advance(table_of([("u", 30, 1, ("é", 2))]), through=3 * STEP, later="ignore")


def test_late_events_are_moved_in_their_own_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = spied(monkeypatch)
    with new(tmp_path / "state", plan_of()) as stream:
        stream.advance(empty=True, through=STEP)
        stream.advance(table_of([("u", 3, 2, ("fr", 2))]), through=2 * STEP, late="move")
    held = {key: answers.total[1] for key, answers in zip(KEYS, seen[2], strict=True)}
    assert {key for key, total in held.items() if total} == {("fr", 2), ("fr", None), (None, 2), (None, None)}
    assert all(answers.recent[2][0] == 1 for key, answers in zip(KEYS, seen[2], strict=True) if held[key])


# --- Refusals ---------------------------------------------------------------------------------------------------------

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"unit": EventLevel(), "group_of": "item"}, "--group-of item does not go with --unit event"),
    ({"unit": ItemPerPeriod(2), "group_of": "item"}, "--group-of item does not go with --unit item-per:2"),
    (
        {"unit": ItemLevel(), "max_groups": 2},
        "Give --group-of item.*, or --max-groups 6, all groups, at 6 times the cost",
    ),
    ({"unit": ItemPerPeriod(STEPS), "group_of": "item"}, f"--group-of item does not go with --unit item-per:{STEPS}"),
    ({"unit": ItemPerPeriod(5000), "horizon": None, "group_of": "item"}, "--group-of item does not go with --unit"),
    ({"unit": ItemLevel(), "max_groups": 6, "max_occurrences": 2}, "--max-occurrences do not go with --by"),
    ({"unit": ItemLevel()}, "give --max-groups N"),
    ({"unit": EventLevel(), "max_groups": 6}, "does not go with --unit event"),
    ({"unit": EventLevel(), "by": None}, "--totals says how groups are counted"),
    ({"unit": EventLevel(), "by": {"k": ["a"]}}, "a release has a column of that name"),
    ({"unit": EventLevel(), "by": {"g": range(900_000)}}, "name fewer groups"),
]


@pytest.mark.parametrize(("options", "says"), REFUSED)
def test_what_a_stream_cannot_keep_is_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(dw.InputError, match=says):
        plan_of(**options)


def test_a_log_without_the_column_is_refused_and_nothing_is_closed(tmp_path: Path) -> None:
    with new(tmp_path / "state", plan_of()) as stream:
        with pytest.raises(dw.InputError, match="country"):
            stream.advance(table_of([]).drop_columns(["country"]), through=STEP)
        assert stream.closed_steps == 0


def test_a_grouping_is_what_its_values_say() -> None:
    for options in ({"totals": 0.3}, {"group_of": "item"}, {"max_groups": 2}):
        one = grouping(BY, **options)
        assert one is not None
        assert read_shape(json.loads(json.dumps(one.to_dict())), Grouping) == one


def test_a_stream_with_a_limit_on_groups_that_its_counting_does_not_apply_is_refused(tmp_path: Path) -> None:
    """It would be charged for fewer groups than an item is counted in."""
    path = tmp_path / "state"
    options: dict[str, Any] = {"horizon": 4, "by": {"g": ["a", "b", "c"]}, "max_groups": 3}
    plan = dw.StreamPlan(dw.Cumulative(), unit=dw.ItemAddRemove(), budget=dw.ZCDP(0.5), **options)
    Stream.create(path, plan, item="who", time="at", start=0, step=STEP).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        facts = json.loads(connection.execute("SELECT facts FROM creation").fetchone()[0])
        facts["described"]["groups"]["max_groups"] = 1
        text = json.dumps(facts, ensure_ascii=False)
        connection.execute("UPDATE creation SET facts = ?, digest = ?", (text, digest(text)))
    with pytest.raises(InputError, match="cannot go on"):
        Stream.open(path)


def test_a_stream_that_cannot_be_opened_is_not_paid_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = dw.Ledger.create(tmp_path / "ledger", "log", budget=dw.PureDP(1.0), unit=dw.EventLevel())
    plan = dw.StreamPlan(dw.Rolling(2), unit=dw.EventLevel(), budget=dw.PureDP(1.0))

    def fail(metadata: Any) -> Any:
        raise ValueError("no such mechanism")

    with monkeypatch.context() as patch:
        patch.setattr(Mechanism, "of", fail)
        with pytest.raises(ValueError, match="no such mechanism"):
            Stream.create(tmp_path / "state", plan, item="who", time="at", start=0, step=STEP, ledger=ledger)
    assert ledger.book().entries == ()
