"""What a caller of a stream may rely on, call by call."""

from __future__ import annotations

import decimal
import re
import uuid
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpwindows as dw
from dpwindows.stream.stream import Stream
from tests.stream.streams import STEP, new_stream, plan_of, require_exact, same, spied, table_of

PLAN = ("rolling:2", "cumulative")
COLUMNS: dict[str, Any] = {"item": "who", "time": "at"}
DAYS = COLUMNS | {"start": "2013-03-09", "step": "1d", "time_zone": "America/New_York"}
ONES = COLUMNS | {"start": 0, "step": 1}


@pytest.fixture
def stream(tmp_path: Path) -> Stream:
    return new_stream(tmp_path / "state", plan_of(*PLAN))


def test_nothing_is_made_over_something(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("mine")
    with pytest.raises(dw.InputError, match="exists already"):
        new_stream(tmp_path / "state", plan_of(*PLAN))
    assert (tmp_path / "state").read_text() == "mine"
    (tmp_path / "other-journal").write_text("left behind")
    (tmp_path / "third-items").mkdir()
    (tmp_path / "third-items" / "part").write_text("of a stream whose state is gone")
    for name, there in (("other", "other-journal"), ("third", "third-items")):
        with pytest.raises(dw.InputError, match=f"{there} exists already"):
            new_stream(tmp_path / name, plan_of(*PLAN))
    with pytest.raises(dw.InputError, match="folder of the state does not exist"):
        new_stream(tmp_path / "no" / "state", plan_of(*PLAN))


def test_a_batch_plan_is_no_stream_plan(tmp_path: Path) -> None:
    plan: Any = dw.Plan(
        dw.Rolling(2), timeline=dw.Timeline.of_steps(4), unit=dw.EventLevel(), budget=dw.ApproxDP(1.0, 1e-6)
    )
    with pytest.raises(dw.InputError, match="must be a StreamPlan"):
        new_stream(tmp_path / "state", plan)


def test_a_release_says_which_steps_it_holds(stream: Stream) -> None:
    stream.advance(table_of([("a", 1, 1)]), STEP)
    release = stream.advance(table_of([("a", 2, 1), ("b", 3, 2)]), 3 * STEP)
    assert release.metadata["timeline"] == {"start": 0, "end": 30, "step": 10, "time_zone": "UTC", "steps": 3}
    assert release.metadata["stream"] == {
        "state_id": stream.description["state_id"],
        "first_step": 2,
        "last_step": 3,
    }
    rows = release.to_arrow().to_pylist()
    assert [(row["window"], row["k"], row["start"], row["end"], row["complete"]) for row in rows] == [
        ("rolling:2", 1, 0, 20, True),
        ("rolling:2", 3, 0, 20, True),
        ("cumulative", 1, 0, 20, True),
        ("cumulative", 3, 0, 20, True),
        ("rolling:2", 1, 10, 30, True),
        ("rolling:2", 3, 10, 30, True),
        ("cumulative", 1, 0, 30, True),
        ("cumulative", 3, 0, 30, True),
    ]
    assert release.count(10, 30, at_least=3).window == "rolling:2"
    assert "stream" in release.metadata["guarantee"]
    assert stream.show().table.slice(4).equals(release.table)
    assert (stream.closed_steps, stream.through) == (3, 30)


@pytest.mark.parametrize("ending", ["parquet", "csv", "json"])
def test_a_repeated_call_writes_the_same_bytes(stream: Stream, tmp_path: Path, ending: str) -> None:
    events = table_of([("a", 1, 1), ("b", 2, 2), ("c", 2, 1)])
    stream.advance(events, 2 * STEP).save(tmp_path / f"one.{ending}")
    stream.advance(table_of([("d", 3, 1)]), 3 * STEP)
    stream.advance(through=2 * STEP).save(tmp_path / f"two.{ending}")
    stream.advance(events, 2 * STEP).save(tmp_path / f"three.{ending}")
    assert stream.closed_steps == 3
    stream.close()
    with Stream.open(tmp_path / "state") as again:
        again.advance(through=2 * STEP).save(tmp_path / f"four.{ending}")
    first = (tmp_path / f"one.{ending}").read_bytes()
    assert all((tmp_path / f"{name}.{ending}").read_bytes() == first for name in ("two", "three", "four"))
    assert dw.Release.load(tmp_path / f"one.{ending}").metadata["stream"]["last_step"] == 2


def test_events_are_the_same_in_any_order_and_division(stream: Stream) -> None:
    first = stream.advance(table_of([("a", 1, 3), ("b", 1, 1)]), STEP)
    shuffled = table_of([("a", 1, 1), ("b", 1, 1), ("a", 1, 2)])
    assert same(stream.advance(shuffled, STEP), first)


@pytest.mark.parametrize(
    "changed",
    [
        [("a", 1, 3)],
        [("a", 1, 3), ("b", 1, 1), ("c", 1, 1)],
        [("a", 1, 4), ("b", 1, 1)],
        [("a", 1, 3), ("b", 1, 2)],
        [("a", 1, 3), ("B", 1, 1)],
        [],
    ],
)
def test_other_events_for_a_closed_step_are_refused(stream: Stream, changed: list[Any]) -> None:
    """Also where the answers would be the same: a count of 4 is at least 3 as one of 3 is."""
    stream.advance(table_of([("a", 1, 3), ("b", 1, 1)]), STEP)
    with pytest.raises(dw.InputError, match="not the ones it was closed with"):
        stream.advance(table_of(changed), STEP)
    if not changed:
        with pytest.raises(dw.InputError, match="not the ones it was closed with"):
            stream.advance(through=STEP, empty=True)


def test_a_gap_is_closed_by_saying_so(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(dw.InputError, match="say that there were none"):
        stream.advance(through=3 * STEP)
    with pytest.raises(dw.InputError, match="not both"):
        stream.advance(table_of([]), 3 * STEP, empty=True)
    with spied(monkeypatch) as seen:
        released = stream.advance(through=3 * STEP, empty=True)
        stream.advance(table_of([("a", 4, 1)]), 4 * STEP)
    assert set(released.table["last_step"].to_pylist()) == {1, 2, 3}
    require_exact(seen[3], [], plan_of(*PLAN))
    require_exact(seen[4], [("a", 4, 1)], plan_of(*PLAN))
    assert same(stream.advance(through=3 * STEP, empty=True), released)


@pytest.mark.parametrize(
    ("through", "why"),
    [
        (STEP + 1, "not a whole number of steps"),
        (0, "after start"),
        (-STEP, "after start"),
        ("2013-01-01", "must be an integer"),
        (None, "through is needed"),
    ],
)
def test_times_that_are_no_end_of_a_step(stream: Stream, through: Any, why: str) -> None:
    with pytest.raises(dw.InputError, match=why):
        stream.advance(table_of([]), through)
    assert stream.closed_steps == 0


def test_earlier_times_that_were_no_call(stream: Stream) -> None:
    stream.advance(table_of([("a", 1, 1)]), 3 * STEP)
    with pytest.raises(dw.InputError, match="closed up to 30, and no call ended at 20"):
        stream.advance(table_of([("a", 1, 1)]), 2 * STEP)


def test_events_at_or_after_the_time_are_refused(stream: Stream) -> None:
    for step in (2, 3, 900):
        with pytest.raises(dw.InputError, match="at or after 10"):
            stream.advance(table_of([("a", 1, 1), ("a", step, 1)]), STEP)
    assert stream.closed_steps == 0
    before = pa.table({"who": ["a", "b"], "at": [-1, 0], "times": [1, 1]})
    stream.advance(before, STEP)  # what lies before the start is left out, as in a batch release


def test_a_stream_with_a_horizon_ends(tmp_path: Path) -> None:
    with new_stream(tmp_path / "state", plan_of("cumulative", horizon=3)) as stream:
        stream.advance(table_of([("a", 1, 1)]), 3 * STEP)
        with pytest.raises(dw.InputError, match="ends at 30, after 3 steps"):
            stream.advance(table_of([]), 4 * STEP)
        assert stream.show().table.num_rows == 6


def test_nothing_to_show_before_the_first_step(stream: Stream) -> None:
    with pytest.raises(dw.InputError, match="nothing has been released"):
        stream.show()
    assert (stream.closed_steps, stream.through) == (0, 0)


# --- Late events ------------------------------------------------------------------------------------------------------

FIRST = [("a", 1, 1), ("b", 2, 3)]
LATE = [("a", 1, 2), ("c", 2, 1)]
NEW = [("b", 3, 1)]


def test_late_events_are_refused(stream: Stream) -> None:
    stream.advance(table_of(FIRST), 2 * STEP)
    with pytest.raises(dw.InputError, match=r"late events: the steps that end at 10, 20 were closed"):
        stream.advance(table_of(NEW + LATE), 3 * STEP)
    assert stream.closed_steps == 2


def test_a_log_may_be_handed_over_as_a_whole_each_time(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    with spied(monkeypatch) as seen:
        stream.advance(table_of(FIRST), 2 * STEP)
        stream.advance(table_of(FIRST + NEW), 3 * STEP)
        with pytest.raises(dw.InputError, match="late events: the step that ends at 10 was closed"):
            stream.advance(table_of([*FIRST, *NEW, ("c", 1, 1)]), 4 * STEP)
    require_exact(seen[3], FIRST + NEW, plan_of(*PLAN))


def test_late_events_are_ignored_one_by_one(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    with spied(monkeypatch) as seen:
        stream.advance(table_of(FIRST), 2 * STEP)
        released = stream.advance(table_of(NEW + LATE), 3 * STEP, late="ignore")
    require_exact(seen[3], FIRST + NEW, plan_of(*PLAN))
    # What is left out makes no difference to whether a call is the same.
    assert same(stream.advance(table_of(NEW), 3 * STEP), released)
    assert same(stream.advance(table_of(NEW + LATE[:1]), 3 * STEP, late="ignore"), released)


def test_a_log_that_goes_on_may_be_handed_over_as_a_whole(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = table_of(FIRST + NEW)
    with pytest.raises(dw.InputError, match=r"at or after 20.*--later ignore"):
        stream.advance(whole, 2 * STEP)
    with pytest.raises(dw.InputError, match=r"at or after 20.*before it$"):
        stream.advance(whole, 2 * STEP, late="move")
    with spied(monkeypatch) as seen:
        released = stream.advance(whole, 2 * STEP, later="ignore")
        stream.advance(whole, 3 * STEP, later="ignore")
    require_exact(seen[2], FIRST, plan_of(*PLAN))
    require_exact(seen[3], FIRST + NEW, plan_of(*PLAN))
    assert same(stream.advance(whole, 2 * STEP, later="ignore"), released)
    assert same(stream.advance(table_of(FIRST), 2 * STEP), released)


def test_late_events_are_moved_to_the_first_step_closed(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    with spied(monkeypatch) as seen:
        stream.advance(table_of(FIRST), 2 * STEP)
        released = stream.advance(table_of(NEW + LATE), 4 * STEP, late="move")
    counted = [*FIRST, *NEW, *((item, 3, count) for item, _, count in LATE)]
    require_exact(seen[3], counted, plan_of(*PLAN))
    require_exact(seen[4], counted, plan_of(*PLAN))
    assert same(stream.advance(table_of(LATE + NEW), 4 * STEP, late="move"), released)
    assert same(stream.advance(table_of(LATE + NEW), 4 * STEP), released)
    for other in (NEW, NEW + LATE[:1], [*NEW, *LATE, ("d", 1, 1)]):
        with pytest.raises(dw.InputError, match="late events of this call are not the ones"):
            stream.advance(table_of(other), 4 * STEP, late="move")


def test_moving_goes_by_each_occurrence_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neighbouring logs have neighbouring counted logs: one occurrence more or less among late ones moves no other."""
    log = [FIRST, NEW + LATE, [("d", 4, 1), ("a", 2, 1), ("d", 1, 2)]]
    smaller = [FIRST, NEW + LATE, [("d", 4, 1), ("d", 1, 2)]]
    exact = []
    for name, handed in (("one", log), ("other", smaller)):
        with spied(monkeypatch) as seen, new_stream(tmp_path / name, plan_of(*PLAN)) as stream:
            for events, last in zip(handed, (2, 3, 4), strict=True):
                stream.advance(table_of(events), last * STEP, late="move")
            exact.append(seen[4])
    assert exact[0].total[1] == exact[1].total[1]
    assert exact[0].total[3] - exact[1].total[3] in (0, 1)
    assert exact[0].recent[1][0] - exact[1].recent[1][0] == 1, "the late occurrence of a is counted in step 4 alone"


def test_moving_is_refused_within_a_period(tmp_path: Path) -> None:
    with new_stream(tmp_path / "state", plan_of("rolling:2", unit="item-per:2")) as stream:
        with pytest.raises(dw.InputError, match="cannot be moved under the unit item-per:2"):
            stream.advance(table_of([]), STEP, late="move")
        stream.advance(table_of([("a", 1, 1)]), STEP, late="ignore")


def test_an_unknown_policy_is_refused(stream: Stream) -> None:
    policy: Any = "later"
    with pytest.raises(dw.InputError, match="late must be one of refuse, ignore, move"):
        stream.advance(table_of([]), STEP, late=policy)
    with pytest.raises(dw.InputError, match="later must be one of refuse, ignore, got 'later'"):
        stream.advance(table_of([]), STEP, later=policy)
    with pytest.raises(dw.InputError, match="counted once more by each call"):
        stream.advance(table_of([]), STEP, late="move", later="ignore")


# --- Items and times of every type ------------------------------------------------------------------------------------


@pytest.mark.quick(3)
@pytest.mark.parametrize(
    ("values", "type_"),
    [
        ([1, 2, 2**62], pa.int64()),
        ([1, 2, 255], pa.uint8()),
        (["1", "01", "1 ", "a:b", "é"], pa.string()),
        (["x", "y"], pa.dictionary(pa.int32(), pa.string())),
        ([b"\x00", b"\\x00", b""], pa.binary()),
        ([decimal.Decimal("1.10"), decimal.Decimal("1.11")], pa.decimal128(6, 2)),
        ([2**63, 2**64 - 1], pa.uint64()),
        ([True, False], pa.bool_()),
        ([0, 1], pa.timestamp("us", tz="America/New_York")),
        ([0, 1], pa.date32()),
    ],
    ids=str,
)
def test_items_of_any_exact_type_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values: list[Any], type_: pa.DataType
) -> None:
    column = pa.array(values, pa.string() if pa.types.is_dictionary(type_) else type_)
    column = column.dictionary_encode() if pa.types.is_dictionary(type_) else column
    events = pa.table({"who": column, "at": [0] * len(values)})
    later = events.set_column(1, "at", pa.array([1] * len(values)))
    with spied(monkeypatch) as seen, Stream.create(tmp_path / "state", plan_of(*PLAN), **ONES) as stream:
        stream.advance(events, 1)
        stream.advance(pa.concat_tables([later, later.slice(0, 1)]), 2)
    assert seen[1].total[1] == len(values)
    assert (seen[2].total[1], seen[2].total[3]) == (len(values), 1)


def collated(path: Path, collation: str, events: list[Any]) -> Path:
    """A DuckDB database with the events in the table `log`, its items in a column with a collation."""
    with duckdb.connect(path) as connection:
        connection.register("rows", table_of(events))
        connection.execute(f'CREATE TABLE log (who VARCHAR COLLATE {collation}, "at" INTEGER, times INTEGER)')
        connection.execute("INSERT INTO log SELECT * FROM rows")
    return path


@pytest.mark.parametrize("collation", ["NOCASE", "NOACCENT"])
def test_items_of_a_column_with_a_collation_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, collation: str
) -> None:
    """Were they one item within a step and two between steps, one occurrence would change the answers about both."""
    plan = plan_of("rolling:4", "cumulative")
    log = [("änn", 1, 1), ("ann", 3, 2), ("ANN", 3, 1), ("ann ", 3, 1), ("ann", 4, 1), ("ANN", 5, 2)]
    log += [("Änn", 3, 1), ("Ann", 3, 1)]
    late = [("ANN", 2, 1), ("ann", 2, 2), ("Ann", 6, 1)]
    with spied(monkeypatch) as seen, new_stream(tmp_path / "state", plan) as stream:
        release = stream.advance(collated(tmp_path / "log.duckdb", collation, log), 5 * STEP, table="log")
        assert same(stream.advance(table_of(log), 5 * STEP), release), "the same events, whatever holds them"
        stream.advance(collated(tmp_path / "late.duckdb", collation, late), 6 * STEP, table="log", late="move")
    counted = log + [(item, 6, count) for item, _, count in late]
    for step in range(1, 7):
        require_exact(seen[step], counted, plan)


def test_items_keep_the_type_they_had_first(tmp_path: Path) -> None:
    plan = plan_of(*PLAN)
    with Stream.create(tmp_path / "state", plan, **ONES) as stream:
        stream.advance(pa.table({"who": pa.array([], pa.string()), "at": pa.array([], pa.int64())}), 1)
        stream.advance(pa.table({"who": pa.array([1, 2], pa.int16()), "at": [1, 1]}), 2)
        stream.advance(pa.table({"who": pa.array([1, 2], pa.int64()), "at": [2, 2]}), 3)
        for other in (pa.array(["1"]), pa.array([1], pa.uint64()), pa.array([decimal.Decimal(1)])):
            with pytest.raises(dw.InputError, match="items of this stream are of type integer"):
                stream.advance(pa.table({"who": other, "at": [3]}), 4)
        assert stream.closed_steps == 3


def test_days_of_a_zone_and_times_of_any_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The day of 23 hours, handed over as zoned times, local times, dates and text."""
    log = tmp_path / "log.csv"
    log.write_text("who,at\na,2013-03-10T04:59:00Z\nb,2013-03-10T23:59:00\nc,2013-03-11T03:59:59+00:00\n")
    with spied(monkeypatch) as seen, Stream.create(tmp_path / "state", plan_of(*PLAN), **DAYS) as stream:
        stream.advance(log, "2013-03-11")
        release = stream.advance(pa.table({"who": ["d"], "at": pa.array([15775], pa.date32())}), "2013-03-13")
        local = pa.array(np.array(["2013-03-14T00:00"], dtype="datetime64[us]"))
        for beyond in (local, pa.array([1363233600 * 10**6], pa.timestamp("us", "UTC"))):
            with pytest.raises(dw.InputError, match="at or after 2013-03-14"):
                stream.advance(pa.table({"who": ["d"], "at": beyond}), "2013-03-14")
        stream.advance(pa.table({"who": ["d"], "at": pa.array([15777], pa.date32())}), "2013-03-14")
    assert [int(seen[step].recent[1][0]) for step in (1, 2, 3, 4, 5)] == [1, 2, 1, 0, 1]
    first = release.to_arrow().to_pylist()[0]
    assert first["start"].isoformat() == "2013-03-10T00:00:00-05:00"
    assert first["end"].isoformat() == "2013-03-12T00:00:00-04:00"
    assert release.metadata["timeline"]["end"] == "2013-03-13"


def test_huge_integer_times_are_beyond(tmp_path: Path) -> None:
    with Stream.create(tmp_path / "state", plan_of(*PLAN), **ONES) as stream:
        for times in (pa.array([2**64 - 1], pa.uint64()), pa.array(["9" * 30]), pa.array([5.0]).cast("int64")):
            with pytest.raises(dw.InputError, match="at or after 2"):
                stream.advance(pa.table({"who": ["a"], "at": times}), 2)
        stream.advance(pa.table({"who": ["a"], "at": pa.array(["-" + "9" * 30])}), 2)


def test_a_folder_of_events_that_the_stream_lies_in_holds_no_items(tmp_path: Path) -> None:
    """What reads all files of a folder, or a pattern, takes the parts of the items for no events."""
    with new_stream(tmp_path / "state", plan_of(*PLAN)) as stream:
        for step in (1, 2):
            pq.write_table(table_of([("a", step, 1)]), tmp_path / f"{step}.parquet")
            one = stream.advance(tmp_path, step * STEP)
            assert same(stream.advance(tmp_path / "**" / "*.parquet", step * STEP), one)


def test_unreadable_events_name_their_column_and_change_nothing(stream: Stream, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("who,at,times\na,soon,1\n")
    with pytest.raises(dw.InputError, match="time column 'at' is text and not all of it can be read"):
        stream.advance(log, STEP)
    with pytest.raises(dw.InputError, match="no column 'times'"):
        stream.advance(pa.table({"who": ["a"], "at": [1]}), STEP)
    with pytest.raises(dw.InputError, match="there is no file"):
        stream.advance(tmp_path / "none.parquet", STEP)
    assert stream.closed_steps == 0
    stream.advance(table_of([("a", 1, 1)]), STEP)


def test_messages_hold_no_counts(stream: Stream) -> None:
    events = [(uuid.UUID(int=i).hex, 1, 1) for i in range(737)]
    stream.advance(table_of(events), STEP)
    told = [repr(stream.show())]
    for again in ([*events, ("new", 1, 1)], [*events[:-1]]):
        with pytest.raises(dw.InputError) as refusal:
            stream.advance(table_of(again), STEP)
        told.append(str(refusal.value))
    with pytest.raises(dw.InputError) as refusal:
        stream.advance(table_of([("new", 1, 1)]), 2 * STEP)
    told.append(str(refusal.value))
    assert not any(re.search(r"(?<![\w.])73[678](?![\w.])", text) for text in told), told
