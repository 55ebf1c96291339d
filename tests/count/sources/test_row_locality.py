"""What a row means does not depend on the rows beside it, in any source: read alone or together, or all is refused.

Let rows r_1, ..., r_n be read together as the events E, and each by itself as E_i. Then E is the sum of the E_i, or the
reading together is refused. That is step 0 of every guarantee: neighbouring logs are neighbours once they are read.
"""

from __future__ import annotations

import csv
import io
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpwindows.ask.timeline import Timeline
from dpwindows.count.engines.duckdb import open_events
from dpwindows.count.events import EngineSettings, EventColumns
from dpwindows.errors import InputError
from tests.search import examples

pytestmark = pytest.mark.usefixtures("one_engine")

COLUMNS = EventColumns("id", "at", "n")
TIMES = Timeline("2013-01-01", "2013-01-05", step="1h", time_zone="America/New_York")
NUMBERS = Timeline.of_steps(200)
SETTINGS = EngineSettings(threads=1, progress=False)
NAIVE = datetime(2013, 1, 2, 2, 30, 0, 999999)

Events = list[tuple[str, int, int]]
Row = tuple[Any, Any, Any]


def duckdb_events(source: object, timeline: Timeline) -> Events:
    """Item (with its type), step and count of every event."""
    with open_events(source, COLUMNS, timeline, cap=1 << 40, settings=SETTINGS) as events:
        rows = events.connection.execute(events.sql).fetchall()
    return sorted((f"{type(item).__name__} {item!r}", step, count) for item, step, count in rows)


def require_local(read: Callable[[Sequence[Any]], Events], rows: Sequence[Any]) -> bool:
    """Fail unless rows together mean what each of them means alone; False if together they are refused."""
    try:
        together = read(rows)
    except InputError:
        return False
    # Here a refusal would be wrong as well: what cannot be read alone must not be read in company.
    assert together == sorted(event for row in rows for event in read([row]))
    return True


# --- data frames of columns without types ----------------------------------------------------------------------------

NOTHING = st.sampled_from([None, float("nan"), pd.NaT, pd.NA])
NOTHING_RARELY = st.sampled_from([None])
ITEMS: list[st.SearchStrategy[Any]] = [
    st.sampled_from(["7", "07", "a", "A", "a ", "2013-01-02", "", "True"]),
    st.sampled_from([b"7", b"a", b"\xff"]),
    st.sampled_from([7, 0, 1, 2**53, 2**53 + 1, 2**63 - 1, 2**63, -(2**70)]),
    st.booleans(),
    st.sampled_from([0.0, 1.0, 7.0, 2.0**53, 0.5, float("inf")]),
    st.sampled_from([np.int64(7), np.int32(7), np.uint64(2**63), np.float64(7.0), np.str_("7"), np.True_]),
    st.sampled_from([Decimal("7"), Decimal("7.0"), Decimal("7.5"), Decimal("1E+30"), Decimal("1E+40")]),
    st.sampled_from([date(2013, 1, 2), date(2013, 1, 3)]),
    st.sampled_from([NAIVE, NAIVE + timedelta(hours=5), datetime(2013, 1, 2), pd.Timestamp(NAIVE)]),
    st.sampled_from([NAIVE.replace(tzinfo=zone) for zone in (UTC, timezone(timedelta(hours=-5)))]),
    st.sampled_from([pd.Timestamp("2013-01-02 02:30:00.000000001"), pd.Timestamp(NAIVE, tz="Europe/Berlin")]),
    st.sampled_from([np.datetime64("2013-01-02"), np.datetime64("2013-01-02T02:30:00", "ns"), np.timedelta64(7, "s")]),
    st.sampled_from([time(2, 30), time(2, 30, tzinfo=UTC), timedelta(1), (1, 2)]),
]
anything: st.SearchStrategy[Any] = st.one_of(NOTHING, *ITEMS)
# A column of one kind, as most are; a column of two kinds; a column of all kinds.
column_kinds = st.one_of(
    st.sampled_from(ITEMS).map(lambda kind: NOTHING | kind),
    st.tuples(st.sampled_from(ITEMS), st.sampled_from(ITEMS)).map(lambda kinds: NOTHING | kinds[0] | kinds[1]),
    st.just(anything),
)


# Columns that are read, beside those above, most of which are not.
READ_ITEMS: list[st.SearchStrategy[Any]] = [
    st.sampled_from(["7", "07", "a", "A", "2013-01-02"]),
    st.sampled_from([7, 0, 1, 2**53, 2**53 + 1, 2**63 - 1]),
    st.sampled_from([Decimal("7"), Decimal("7.0"), Decimal("1E+30")]),
    st.sampled_from([date(2013, 1, 2), date(2013, 1, 3)]),
    st.sampled_from([NAIVE, NAIVE + timedelta(hours=5), datetime(2013, 1, 2)]),
]
NAIVE_TIMES = st.sampled_from([NAIVE, NAIVE + timedelta(hours=5), datetime(2013, 1, 2)])
ZONED_TIMES = st.sampled_from([NAIVE.replace(tzinfo=zone) for zone in (UTC, timezone(timedelta(hours=-5)))])
READ_TIMES: dict[Timeline, list[st.SearchStrategy[Any]]] = {
    TIMES: [NAIVE_TIMES, ZONED_TIMES, st.sampled_from([date(2013, 1, 2)])],
    NUMBERS: [st.sampled_from([0, 7, 199])],
}


@st.composite
def logs(draw: st.DrawFn, timeline: Timeline) -> list[Row]:
    """Rows of three columns; each column is of one type that is read, or, one time in three, of anything."""

    def column_of(read: list[st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
        return draw(column_kinds) if draw(st.integers(0, 2)) == 2 else draw(st.sampled_from(read)) | NOTHING_RARELY

    counts = column_of([st.integers(0, 3), st.integers(0, 3), st.sampled_from([1, 2**62])])
    rows = st.tuples(column_of(READ_ITEMS), column_of(READ_TIMES[timeline]), counts)
    return draw(st.lists(rows, min_size=1, max_size=5))


def object_frame(rows: Sequence[Row]) -> pd.DataFrame:
    return pd.DataFrame(
        {name: pd.Series([row[place] for row in rows], dtype=object) for place, name in enumerate(("id", "at", "n"))}
    )


def categorical_frame(rows: Sequence[Row]) -> pd.DataFrame:
    """The columns id and at as categories without a type: one for each value, where pandas can tell them apart."""
    frame = object_frame(rows)
    for name in ("id", "at"):
        there = frame[name].notna()
        found: list[Any] = []
        codes = [-1] * len(frame)
        for row in frame.index[there]:
            value = frame[name][row]
            codes[row] = next((place for place, other in enumerate(found) if other == value), len(found))
            found += [value] if codes[row] == len(found) else []
        frame[name] = pd.Series(pd.Categorical.from_codes(codes, pd.Index(found, dtype=object)))
    return frame


@pytest.mark.slow
@examples(100)
@given(case=st.sampled_from([TIMES, NUMBERS]).flatmap(lambda timeline: st.tuples(logs(timeline), st.just(timeline))))
@example(case=([("x", NAIVE.replace(tzinfo=UTC), 1), ("a", NAIVE, 1)], TIMES))
@example(case=([("x", date(2013, 1, 2), 1), ("a", NAIVE, 1)], TIMES))
@example(case=([(date(2013, 1, 2), NAIVE, 1), (NAIVE, NAIVE, 1)], TIMES))
@example(case=([(1.0, 0, 1), (2**53 + 1, 0, 1)], NUMBERS))
@example(case=([("a", True, 1), ("a", 7, 1)], NUMBERS))
def test_frames_without_types(case: tuple[list[Row], Timeline]) -> None:
    rows, timeline = case
    require_local(lambda some: duckdb_events(object_frame(some), timeline), rows)


@pytest.mark.slow
@examples(60)
@given(rows=logs(TIMES))
@example(rows=[(date(2013, 1, 2), NAIVE, 1), (datetime(2013, 1, 2, 5), NAIVE, 1)])
def test_categories_without_types(rows: list[Row]) -> None:
    rows = [row for row in rows if not isinstance(row[0], tuple)]
    try:
        categorical_frame(rows)
    except (TypeError, ValueError, NotImplementedError):
        return  # equal for pandas and not for us: there is no such frame
    if rows:
        require_local(lambda some: duckdb_events(categorical_frame(some), TIMES), rows)


# --- Arrow -----------------------------------------------------------------------------------------------------------


def column(kind: str, texts: Sequence[str | None]) -> pa.Array | pa.ChunkedArray:
    """A column that is declared in some way, and in which text stands, or numbers."""
    plain = pa.array(texts, pa.string())
    match kind:
        case "dictionaries that differ by chunk":
            return pa.chunked_array([pa.array([text], pa.string()).dictionary_encode() for text in texts])
        case "a dictionary with repetitions":
            return pa.DictionaryArray.from_arrays(pa.array(range(len(texts)), pa.int8()), plain)
        case "runs":
            ends = pa.array(range(1, len(texts) + 1), pa.int32())
            return pa.RunEndEncodedArray.from_arrays(ends, plain)
        case "JSON":
            return pa.ExtensionArray.from_storage(pa.json_(), plain)
        case "a union":
            numbers = pa.array([len(text or "") for text in texts])
            return pa.UnionArray.from_sparse(
                pa.array([place % 2 for place in range(len(texts))], pa.int8()), [plain, numbers]
            )
        case "views":
            return plain.cast(pa.string_view())
        case "bytes":
            return plain.cast(pa.binary())
    return plain


@pytest.mark.slow
@examples(60)
@given(
    kind=st.sampled_from(
        [
            *("plain", "dictionaries that differ by chunk", "a dictionary with repetitions", "runs", "JSON", "a union"),
            *("views", "bytes"),
        ]
    ),
    texts=st.lists(st.sampled_from(["a", "b", "A", '{"a":1}', '{"a": 1}', "", None]), min_size=1, max_size=6),
    streamed=st.booleans(),
)
def test_arrow(kind: str, texts: list[str | None], streamed: bool) -> None:
    whole = column(kind, texts)
    table = pa.table({"id": whole, "at": pa.array(range(len(texts))), "n": pa.array([1] * len(texts))})

    def read(rows: Sequence[int]) -> Events:
        some = table.slice(rows[0], len(rows))
        return duckdb_events(some.to_reader() if streamed else some, NUMBERS)

    assert require_local(read, range(len(texts))) is (kind != "a union")


# --- CSV -------------------------------------------------------------------------------------------------------------

CSV_TEXT = st.lists(st.sampled_from([*"a7;\t|,'\"\\# \n\r\0ä", "\r\n", "id", "\ufeff"]), max_size=6).map("".join)
CSV_TIMES = {
    TIMES: [
        *("2013-01-02", "2013-01-02T02:30", "2013-01-02 02:30:00.1234567", "2013-01-02T02:30Z"),
        "2013-01-02T02:30+05:30",
    ],
    NUMBERS: ["7", " 7 ", "00007", "0", "199", "9" * 30],
}
CSV_UNREADABLE = ["01/02/2013", "7.0", "at", "1e3", "13/02/2013"]
CSV_COUNTS = ["1", "2", "", "0", "-1", " 3", "9" * 25]


@st.composite
def csv_rows(draw: st.DrawFn, timeline: Timeline) -> list[tuple[Row, int]]:
    """Rows and how each is quoted; in one log of three, some cannot be read."""
    wrong = draw(st.integers(0, 2)) == 2
    times = st.sampled_from(CSV_TIMES[timeline] + CSV_UNREADABLE * wrong)
    counts = st.sampled_from(CSV_COUNTS + ["x", "1.0", "n"] * wrong)
    rows = st.tuples(st.tuples(CSV_TEXT, times, counts), st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    return draw(st.lists(rows, min_size=1, max_size=5))


def csv_line(row: Row, delimiter: str, quoting: Any) -> str:
    written = io.StringIO()
    csv.writer(written, delimiter=delimiter, quoting=quoting, lineterminator="").writerow(row)
    return written.getvalue()


@pytest.mark.slow
@examples(100)
@given(
    case=st.sampled_from([TIMES, NUMBERS]).flatmap(lambda timeline: st.tuples(csv_rows(timeline), st.just(timeline))),
    delimiter=st.sampled_from(",;\t|"),
    end=st.sampled_from(["\n", "\r\n"]),
)
@example(case=([(("007", "7", "1"), 0), (("x", "7", "1"), 0)], NUMBERS), delimiter=",", end="\n")
@example(case=([(("a", "01/02/2013", "1"), 0), (("b", "13/02/2013", "1"), 0)], TIMES), delimiter=",", end="\n")
@example(case=([(("a;b", "7", "1"), 0), (("c", "7", "1"), 1)], NUMBERS), delimiter=",", end="\r\n")
def test_csv(case: tuple[list[tuple[Row, int]], Timeline], delimiter: str, end: str) -> None:
    rows, timeline = case
    lines = [csv_line(row, delimiter, quoting) for row, quoting in rows]

    def read(some: Sequence[str]) -> Events:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "log.csv"
            path.write_bytes(end.join([csv_line(("id", "at", "n"), delimiter, csv.QUOTE_MINIMAL), *some, ""]).encode())
            return duckdb_events(path, timeline)

    require_local(read, lines)


@pytest.mark.slow
@examples(60)
@given(lines=st.lists(st.text("a7;\t|, '\\#\r", max_size=8).map(lambda text: f"{text},7,1"), min_size=1, max_size=5))
@example(lines=["a\rb,7,1", "c,7,1"])
@example(lines=["a,7,1\r", "c,7,1"])
@example(lines=["a,b,7,1", "c,7,1"])
def test_csv_that_is_not_well_formed(lines: list[str]) -> None:
    """Line ends of another kind, and more fields than names, are errors and no hint at a dialect."""

    def read(some: Sequence[str]) -> Events:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "log.csv"
            path.write_bytes("\n".join(["id,at,n", *some, ""]).encode())
            return duckdb_events(path, NUMBERS)

    require_local(read, lines)


# --- Parquet files of different types --------------------------------------------------------------------------------

# Each makes a column of one value; what the value is, is told by the type.
ITEM_TYPES: list[pa.Array] = [
    *(pa.array([7], kind) for kind in (pa.int8(), pa.int32(), pa.int64(), pa.uint32(), pa.uint64())),
    *(pa.array([text], kind) for text in ("7", "a") for kind in (pa.string(), pa.large_string(), pa.binary())),
    pa.array(["a"]).dictionary_encode(),
    *(pa.array([Decimal("1.25")], pa.decimal128(digits, scale)) for digits, scale in ((5, 2), (38, 2), (38, 10))),
    *(pa.array([Decimal(number)], pa.decimal128(38, 0)) for number in (1, 10**37)),
    pa.array([date(2013, 1, 2)]),
    *(pa.array([NAIVE], pa.timestamp(unit, zone)) for unit in ("us", "ns") for zone in (None, "UTC")),
    pa.array([True]),
    pa.array([7.0]),
    pa.array([None], pa.string()),
    pa.nulls(1),
]
TIME_TYPES: list[pa.Array] = [
    *(
        pa.array([datetime(2013, 1, 2, 2, 30)], pa.timestamp(unit, zone))
        for unit in ("ms", "us", "ns")
        for zone in (None, "UTC")
    ),
    pa.array([date(2013, 1, 2)]),
    pa.array(["2013-01-02T02:30:00"]),
    pa.array(["2013-01-02T02:30:00Z"]),
    pa.nulls(1),
]
File = tuple[pa.Array, pa.Array, bool, str]
FOLDERS = st.sampled_from(["", "", "part=1", "id=7", "id=07", "id=a", "id=a/part=1", "at=2013-01-02", "n=2", "sub"])


def files_of(items: list[pa.Array], *, has: bool = False) -> st.SearchStrategy[list[File]]:
    """Files with one event each: its item, its time, whether the item is in the file, and the folder."""
    own = st.just(True) if has else st.booleans()
    one = st.tuples(st.sampled_from(items), st.sampled_from(TIME_TYPES), own, FOLDERS)
    return st.lists(one, min_size=1, max_size=4)


@pytest.mark.slow
@examples(100)
@given(
    # Items mostly of one type, as other files are refused.
    files=st.lists(st.sampled_from(ITEM_TYPES), min_size=1, max_size=2).flatmap(lambda items: files_of(items, has=True))
    | st.sampled_from(ITEM_TYPES).flatmap(lambda item: files_of([item]))
)
@example(files=[(decimal, TIME_TYPES[0], True, "") for decimal in ITEM_TYPES if pa.types.is_decimal(decimal.type)])
@example(files=[(pa.array(["x"]), TIME_TYPES[0], True, "id=a"), (pa.array(["y"]), TIME_TYPES[0], True, "")])
@example(
    files=[(pa.array(["x"]), TIME_TYPES[0], False, "id=a"), (pa.array(["y"]), TIME_TYPES[0], False, "id=a/part=1")]
)
@example(files=[(pa.array(["x"]), kind, True, "") for kind in TIME_TYPES])
def test_parquet_files(files: list[File]) -> None:
    """Each row in a file of its own, whose schema and folder say what it means; `has` says if it has its own item."""

    def read(some: Sequence[tuple[int, File]]) -> Events:
        with tempfile.TemporaryDirectory() as folder:
            for place, (item, at, has, within) in some:
                (Path(folder) / within).mkdir(parents=True, exist_ok=True)
                table = pa.table({"id": item, "at": at, "n": [1]})
                pq.write_table(table if has else table.drop_columns("id"), Path(folder) / within / f"{place}.parquet")
            return duckdb_events(folder, TIMES)

    require_local(read, list(enumerate(files)))


# --- SQLite ----------------------------------------------------------------------------------------------------------

SQLITE_VALUES = st.sampled_from([None, 7, 2**53 + 1, -(2**63), 7.0, 0.5, "7", "07", "a", "A", b"7", b"a", ""])
SQLITE_TIMES = st.sampled_from([None, 7, 0, -1, 7.0, "7", " 7", "2013-01-02", "2013-01-02T02:30Z", "x", b"7", 2**60])


def sqlite_events(rows: Iterable[Row], affinity: str, timeline: Timeline) -> Events:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.sqlite"
        made = sqlite3.connect(path)
        made.execute(f"CREATE TABLE log (id {affinity} COLLATE NOCASE, at {affinity}, n {affinity})")
        made.executemany("INSERT INTO log VALUES (?, ?, ?)", rows)
        made.commit()
        made.close()
        return duckdb_events(path, timeline)


@pytest.mark.slow
@examples(100)
@given(
    rows=st.one_of(
        *(
            st.lists(st.tuples(items, times, counts), min_size=1, max_size=4)
            for items in (SQLITE_VALUES, st.sampled_from(["7", "07", "a", "A", "", None]), st.integers(-3, 3))
            for times, counts in (
                (SQLITE_TIMES, st.sampled_from([None, 1, 2, 0, "1", 1.0, "x", b"1", 2**62])),
                (st.sampled_from([0, 7, 2**60, None]), st.sampled_from([1, 2, 0, None, 2**62])),
                (st.sampled_from(["2013-01-02", "2013-01-02T02:30Z", None]), st.sampled_from(["1", " 2"])),
            )
        )
    ),
    affinity=st.sampled_from(["", "BLOB", "TEXT", "INTEGER", "NUMERIC"]),
    timeline=st.sampled_from([TIMES, NUMBERS]),
)
@example(rows=[("a", 7, 1), ("b", "2013-01-02", 1)], affinity="", timeline=NUMBERS)
@example(rows=[(7, 7, 1), ("7", 7, 1)], affinity="", timeline=NUMBERS)
@example(rows=[(b"7", 7, 1), ("7", 7, 1)], affinity="", timeline=NUMBERS)
@example(rows=[("a", 7, 1), ("b", 7, "1")], affinity="", timeline=NUMBERS)
def test_sqlite(rows: list[Row], affinity: str, timeline: Timeline) -> None:
    """A declared type changes each value by itself, as it is written; what a column holds is then of one type."""
    require_local(lambda some: sqlite_events(some, affinity, timeline), rows)
