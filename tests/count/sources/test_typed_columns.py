"""One row never says what the others mean: pandas columns without a type, and the privacy claims that rest on it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpwindows as dw
from dpwindows.ask.timeline import Timeline
from dpwindows.count.engines.duckdb import open_events
from dpwindows.count.events import EventColumns
from dpwindows.errors import InputError
from dpwindows.stream.parts import kind_of
from dpwindows.stream.stream import Stream
from tests.counting import count_events

pytestmark = pytest.mark.usefixtures("one_engine")

COLUMNS = EventColumns("id", "at")
BERLIN = ZoneInfo("Europe/Berlin")
DAYS = Timeline("2013-01-01", "2013-01-04", time_zone="America/New_York")
HOURS = Timeline("2013-01-01", "2013-01-04", step="1h", time_zone="America/New_York")
NIGHT = datetime(2013, 1, 2, 2, 30)
AWARE = datetime(2013, 1, 2, 2, 30, tzinfo=UTC)
DAY = date(2013, 1, 2)


def categorical(values: Sequence[Any]) -> pd.Categorical:
    """Values as categories of the type object, coded by hand: pandas would look for a type of its own for them."""
    codes: dict[Any, int] = {}
    coded = [-1 if value is None else codes.setdefault(value, len(codes)) for value in values]
    return pd.Categorical.from_codes(coded, pd.Index(list(codes), dtype=object))


def log(items: Sequence[Any], times: Sequence[Any], kind: str = "object", **more: Sequence[Any]) -> pd.DataFrame:
    """A data frame of columns without a type: of the type object, or categorical with such categories."""
    held = {"id": items, "at": times, **more}
    columns = {name: pd.Series(list(values), dtype=object) for name, values in held.items()}
    if kind == "category":
        columns = {name: pd.Series(categorical(values)) for name, values in held.items()}
    return pd.DataFrame(columns)


def rows_of(source: object, timeline: Timeline = DAYS, columns: EventColumns = COLUMNS) -> list[tuple[Any, ...]]:
    """What a log says: item, step and count of every event, in order."""
    with open_events(source, columns, timeline, cap=1 << 40) as events:
        return sorted(events.connection.sql(events.sql).fetchall(), key=repr)


def moved(one: object, other: object, timeline: Timeline) -> int:
    """How far two logs are apart in any number of items with at least one occurrence in a window."""
    exact = [count_events(source, COLUMNS, timeline, [1]) for source in (one, other)]
    return max(
        int(abs(exact[0].rolling(1, width) - exact[1].rolling(1, width)).max())
        for width in range(1, timeline.steps + 1)
    )


# What one event does to 500 others: the added row (item, time), and the log it is added to.
PEOPLE = [f"user {number}" for number in range(500)]
CASES: dict[str, tuple[tuple[Any, Any], list[Any], list[Any]]] = {
    "a zone among times without": (("x", AWARE), PEOPLE, [NIGHT] * 500),
    "a time without a zone among times with": (("x", NIGHT), PEOPLE, [AWARE] * 500),
    "a date among times": (("x", DAY), PEOPLE, [NIGHT] * 500),
    "a time among dates": (("x", NIGHT), PEOPLE, [DAY] * 500),
    "a date among items": (
        (DAY, NIGHT),
        [datetime(2013, 1, 1) + timedelta(minutes=minute) for minute in range(500)],
        [NIGHT] * 500,
    ),
    "bytes among texts": ((b"x", NIGHT), PEOPLE, [NIGHT] * 500),
    "True among integers": ((True, NIGHT), list(range(500)), [NIGHT] * 500),
    "a fraction among integers": ((0.5, NIGHT), [2**53 + number for number in range(500)], [NIGHT] * 500),
    "a text among integers": (("7", NIGHT), list(range(500)), [NIGHT] * 500),
    "another unit among NumPy's times": (
        ("x", np.datetime64("2013-01-02")),
        PEOPLE,
        [np.datetime64("2013-01-02T02:30:00")] * 500,
    ),
}


@pytest.mark.parametrize("kind", ["object", "category"])
@pytest.mark.parametrize("place", ["first", "last"])
@pytest.mark.parametrize("case", CASES)
def test_one_event_more_moves_counts_by_one_or_is_refused(case: str, place: str, kind: str) -> None:
    """Event level: by the certified amount, which is 1, or not at all."""
    (item, at), items, times = CASES[case]
    front = place == "first"
    more = log([item, *items] if front else [*items, item], [at, *times] if front else [*times, at], kind)
    said = ""
    try:
        assert moved(log(items, times, kind), more, HOURS) <= 1
    except InputError as refusal:
        said = str(refusal)
    if not said:
        # True is the category 1, if that is there before: the column holds no True.
        assert (case, place, kind) == ("True among integers", "last", "category")
        return
    assert "one row must not say what the others mean" in said
    assert f"in row {1 if front else 500} and" in said


@pytest.mark.parametrize("case", ["a zone among times without", "a date among times", "a date among items"])
def test_a_release_is_refused_before_anything_is_spent_and_a_stream_goes_on(case: str, tmp_path: Path) -> None:
    (item, at), items, times = CASES[case]
    plan = dw.Plan([dw.Cumulative()], timeline=HOURS, unit=dw.EventLevel(), budget=dw.PureDP(1.0))
    ledger = dw.Ledger.create(tmp_path / "ledger", "log", budget=dw.PureDP(1.0), unit=dw.EventLevel())
    with pytest.raises(InputError, match="so give each column one type"):
        plan.run(log([item, *items], [at, *times]), item="id", time="at", ledger=ledger)
    # The whole budget is still there.
    assert len(plan.run(log(items, times), item="id", time="at", ledger=ledger).to_arrow())
    streamed = dw.StreamPlan([dw.Cumulative()], unit=dw.EventLevel(), budget=dw.PureDP(1.0))
    told: dict[str, Any] = {"item": "id", "time": "at", "start": "2013-01-01", "step": "1d"}
    with Stream.create(tmp_path / "state", streamed, **told, time_zone="America/New_York") as stream:
        with pytest.raises(InputError, match="so give each column one type"):
            stream.advance(log([item, *items], [at, *times]), through="2013-01-03")
        stream.advance(log(items, times), through="2013-01-03")


@pytest.mark.parametrize(
    ("first", "then"),
    [([1, 2], [3, 2**62]), ([Decimal(1)], [Decimal("1.0"), Decimal("2E+20")]), (["a"], ["b", "ü" * 300])],
    ids=["integers", "decimals", "texts"],
)
def test_the_kind_of_a_streams_items_is_that_of_each_item(first: list[Any], then: list[Any], tmp_path: Path) -> None:
    """The size of a number or the length of a text in one call does not say what later calls may hold."""
    plan = dw.StreamPlan([dw.Cumulative()], unit=dw.EventLevel(), budget=dw.PureDP(1.0))
    for name, calls in (("one", (first, then)), ("other", (then, first))):
        stream = Stream.create(tmp_path / name, plan, item="id", time="at", start=0, step=1)
        for step, items in enumerate(calls):
            stream.advance(log(items, [step] * len(items)), through=step + 1)


def test_streams_of_whole_decimals_go_on(tmp_path: Path) -> None:
    """As a stream recorded them whose first items were decimals of one digit: the same texts, the same items."""
    plan = dw.StreamPlan([dw.Cumulative()], unit=dw.EventLevel(), budget=dw.PureDP(1.0))
    stream = Stream.create(tmp_path / "state", plan, item="id", time="at", start=0, step=1)
    narrow = pa.table({"id": pa.array([Decimal(7)], pa.decimal128(1, 0)), "at": [0]})
    stream.advance(narrow, through=1)
    # The same step again, now from a frame: the same events, or it would be refused.
    stream.advance(log([Decimal("7.0")], [0]), through=1)
    stream.advance(log([Decimal(7), Decimal(10) ** 37], [1, 1]), through=2)
    narrow_kind, wide, other = (kind_of("decimal", f"DECIMAL({digits})") for digits in ("1,0", "38,0", "2,1"))
    assert narrow_kind == wide != other


# --- each type by itself ----------------------------------------------------------------------------------------------


class Colour(IntEnum):
    RED = 1


class Text(str):
    """A text of another package."""


class Shape(Enum):
    ROUND = 1


NOTHING = [None, float("nan"), np.nan, pd.NaT, pd.NA, np.float64("nan"), np.datetime64("NaT"), Decimal("NaN")]
ID = uuid.UUID(int=7)
KEPT: list[tuple[list[Any], list[Any]]] = [
    (["7", "07", "7 ", "ä", "a\u0308"], ["7", "07", "7 ", "ä", "a\u0308"]),
    ([np.str_("7"), np.str_("8")], ["7", "8"]),
    ([Text("7"), Text("8")], ["7", "8"]),
    ([b"7", b"\xff\x00"], [b"7", b"\xff\x00"]),
    ([2**53, 2**53 + 1, -(2**63), 2**63 - 1], [2**53, 2**53 + 1, -(2**63), 2**63 - 1]),
    ([np.int64(5), np.int64(6)], [5, 6]),
    ([np.uint64(5), np.uint64(2**63 - 1)], [5, 2**63 - 1]),
    ([Colour.RED], [1]),
    ([True, False], [True, False]),
    ([np.True_, np.False_], [True, False]),
    ([Decimal("7"), Decimal("7.00"), Decimal("1E+37")], [Decimal(7), Decimal(7), Decimal(10) ** 37]),
    ([date(2013, 1, 1), date(1, 1, 1)], [date(2013, 1, 1), date(1, 1, 1)]),
    ([time(1, 2, 3, 4)], [time(1, 2, 3, 4)]),
    ([NIGHT, datetime(9999, 12, 31, 23, 59, 59, 999999)], [NIGHT, datetime(9999, 12, 31, 23, 59, 59, 999999)]),
    ([pd.Timestamp(NIGHT), pd.Timestamp("1677-09-22")], [NIGHT, datetime(1677, 9, 22)]),
    ([np.datetime64("2013-01-02T02:30:00", "s")], [NIGHT]),
    ([np.datetime64("2013-01-02", "D")], [DAY]),
    ([ID], [ID]),
]


@pytest.mark.parametrize(("values", "expected"), KEPT, ids=lambda values: type(values[0]).__name__)
@pytest.mark.parametrize("nothing", [[], NOTHING], ids=["", "with nulls"])
def test_items_of_one_type_stay_what_they_are(values: list[Any], expected: list[Any], nothing: list[Any]) -> None:
    frame = log([*nothing, *values, *nothing], [0] * (len(values) + 2 * len(nothing)))
    assert [item for item, _, _ in rows_of(frame, Timeline.of_steps(1))] == sorted(expected, key=repr)


@pytest.mark.parametrize("nothing", NOTHING, ids=repr)
def test_what_is_not_there_is_null_in_every_column(nothing: Any) -> None:
    frame = log(["a", nothing, "b", "c"], [0, 0, nothing, 1], count=[1, 1, 1, nothing])
    columns = EventColumns("id", "at", "count")
    assert rows_of(frame, Timeline.of_steps(2), columns) == [("a", 1, 1)]
    assert rows_of(log([nothing], [nothing]), DAYS) == []


def test_each_instant_is_read_by_its_own_zone() -> None:
    """Several zones in one column are no mixture: each time says which instant it is; so does the second 2:30."""
    fold = datetime(2013, 10, 27, 2, 30, tzinfo=BERLIN)
    times = [
        *(fold, fold.replace(fold=1)),
        datetime(2013, 10, 27, 6, 30, tzinfo=timezone(timedelta(hours=5))),
        datetime(2013, 10, 27, 0, 30, 0, 999999, tzinfo=UTC),
    ]
    hours = Timeline("2013-10-27T00:00", "2013-10-27T03:00", step="1h")
    assert [step for _, step, _ in rows_of(log(range(4), times), hours)] == [
        int((at - datetime(2013, 10, 27, tzinfo=UTC)) / timedelta(hours=1)) + 1 for at in times
    ]


@pytest.mark.parametrize(
    ("items", "said"),
    [
        ([1, 2**63], r"a value in row 1 .*, of type int, .*64 bits"),
        ([None, -(2**63) - 1], r"a value in row 1 "),
        ([np.uint64(2**63)], r"a value in row 0 .*, of type uint64"),
        ([Decimal("0.5")], r"decimals be whole numbers of at most 38 digits"),
        ([Decimal(1), Decimal("1E+1000000")], r"a value in row 1 "),
        ([Decimal("Infinity")], r"a value in row 0 "),
        (["a", "\ud800"], r"a value in row 1 .*text be Unicode"),
        ([pd.Timestamp("2013-01-01 00:00:00.000000001")], r"a time with nanoseconds in row 0 .*datetime64\[ns\]"),
        ([time(1, tzinfo=UTC)], r"a value in row 0 .*with a zone"),
        ([np.datetime64("2013-01", "M")], r"times have units between seconds and nanoseconds"),
        ([np.timedelta64(1, "s")], r"of type timedelta64"),
        ([timedelta(1)], r"values of the Python type timedelta"),
        ([[1, 2]], r"values of the Python type list"),
        ([{"a": 1}], r"values of the Python type dict"),
        ([Shape.ROUND], r"values of the Python type Shape"),
        ([pd.Period("2013-01", "M")], r"values of the Python type Period"),
        ([0.5], r"floating-point numbers do not identify items"),
        ([np.float32(0.5)], r"floating-point numbers do not identify items"),
        ([1, np.int64(2)], r"holds int64 in row 1 and int in row 0"),
        ([np.int32(1), np.int64(2)], r"holds int64 in row 1 and int32 in row 0"),
        (["a", Text("b")], r"holds Text in row 1 and str in row 0"),
        ([Decimal(1), 1], r"holds int in row 1 and Decimal in row 0"),
        ([NIGHT, pd.Timestamp(NIGHT)], r"holds Timestamp without a zone in row 1 and datetime without a zone in row 0"),
        ([type("Twin", (str,), {})("a"), type("Twin", (str,), {})("b")], r"another type called Twin in row 1"),
    ],
    ids=repr,
)
def test_what_is_refused_is_said_with_its_row(items: list[Any], said: str) -> None:
    with pytest.raises(InputError, match=f"the item column 'id' .*{said}") as refusal:
        rows_of(log(items, [0] * len(items)), Timeline.of_steps(1))
    assert "Traceback" not in str(refusal.value)
    assert len(str(refusal.value)) < 400


def test_counts_and_integer_times_without_a_type() -> None:
    columns = EventColumns("id", "at", "count")
    steps = Timeline.of_steps(3)
    assert rows_of(log("abc", [0, 1, 2**62], count=[2, 2**62, 1]), steps, columns) == [("a", 1, 2), ("b", 2, 1 << 40)]
    assert rows_of(log("ab", [Decimal(0), Decimal("1.0")], count=[Decimal(3)] * 2), steps, columns) == [
        ("a", 1, 3),
        ("b", 2, 3),
    ]
    with pytest.raises(InputError, match=r"the time column 'at' holds float in row 2 .* int in row 0"):
        rows_of(log("abc", [0, 1, 1.5]), steps)
    with pytest.raises(InputError, match=r"the count column 'count' holds bool in row 1"):
        rows_of(log("ab", [0, 1], count=[1, True]), steps, columns)


# --- columns that look as if they had a type --------------------------------------------------------------------------


def test_sparse_columns_are_read_value_by_value() -> None:
    mixed = pd.Series(pd.arrays.SparseArray(np.array([DAY, NIGHT], dtype=object)))
    with pytest.raises(InputError, match="so give each column one type"):
        rows_of(pd.DataFrame({"id": ["a", "b"], "at": mixed}))


@pytest.mark.parametrize(
    "make",
    [
        lambda texts: pd.Series(texts, dtype="string"),
        lambda texts: pd.Series(texts, dtype="category"),
        lambda texts: pd.Series(pd.Categorical(texts, categories=["b", "unused", "a"])),
        lambda texts: pd.Series(pd.Categorical(texts, categories=pd.Index(["b", 7, "a"], dtype=object))),
        lambda texts: pd.Series(texts, dtype=pd.ArrowDtype(pa.string())),
    ],
    ids=["string", "category", "unused category", "unused category of another type", "Arrow"],
)
def test_columns_of_text(make: Callable[[list[str | None]], pd.Series[Any]]) -> None:
    """A category that no row has is no row."""
    frame = pd.DataFrame({"id": make(["a", None, "b", "a"]), "at": [0, 0, 0, 1]})
    assert rows_of(frame, Timeline.of_steps(2)) == [("a", 1, 1), ("a", 2, 1), ("b", 1, 1)]


def test_columns_of_polars_without_a_type() -> None:
    """Their conversion to Arrow is the addresses of the values: one item in two rows would be two."""
    same = [f"a {number % 2}" for number in range(4)]
    steps = Timeline.of_steps(1)
    frame = pl.DataFrame({"id": pl.Series(same, dtype=pl.Object), "at": [0] * 4})
    assert [item for item, _, _ in rows_of(frame, steps)] == ["a 0", "a 0", "a 1", "a 1"]
    mixed = pl.DataFrame({"id": pl.Series([DAY, NIGHT, None], dtype=pl.Object), "at": [0] * 3})
    with pytest.raises(InputError, match="holds datetime without a zone in row 1 and date in row 0"):
        rows_of(mixed, steps)


def test_an_item_is_also_read_as_one_where_it_is_the_time_too() -> None:
    columns = EventColumns("at", "at")
    assert rows_of(log("ab", [NIGHT, NIGHT]), DAYS, columns) == [(NIGHT, 2, 1), (NIGHT, 2, 1)]
