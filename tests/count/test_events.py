"""Every kind of source, column type and time zone, and what is said when a source will not do."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpwindows.ask.groups import grouping
from dpwindows.ask.timeline import Timeline
from dpwindows.count.events import EngineSettings, EventColumns
from dpwindows.errors import EngineError, InputError
from tests.counting import count_events, in_steps

JANUARY = Timeline("2013-01-01", "2013-01-06")
TIMES = [datetime(2013, 1, day, hour) for day, hour in ((1, 0), (1, 23), (2, 5), (5, 12), (6, 0))]
ITEMS = ["007", "7", "007", "7", "out of range"]
EVENTS = pa.table({"id": ITEMS, "when": pa.array(TIMES, pa.timestamp("us"))})
COLUMNS = EventColumns("id", "when")
WEIGHTED = EventColumns("id", "when", "n")
STEPS = Timeline.of_steps(1)
DISTINCT = [2, 1, 0, 0, 1]


def daily(source: object, columns: EventColumns = COLUMNS, timeline: Timeline = JANUARY, **options: Any) -> list[int]:
    return in_steps(source, columns, timeline, **options)


def in_days(times: pa.Array, timeline: Timeline = JANUARY) -> list[int]:
    """One event of a new item at each time: the events of each step."""
    return daily(pa.table({"id": list(range(len(times))), "when": times}), COLUMNS, timeline)


def write_csv(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


# --- kinds of sources ------------------------------------------------------------------------------------------


def as_parquet(directory: Path) -> object:
    pq.write_table(EVENTS, directory / "events.parquet")
    return directory / "events.parquet"


def as_text_path(directory: Path) -> object:
    return str(as_parquet(directory))


def as_csv(directory: Path) -> object:
    rows = "".join(f"{item},{time.isoformat()}\n" for item, time in zip(ITEMS, TIMES, strict=True))
    return write_csv(directory / "events.csv", "id,when\n" + rows)


def as_gzip_csv(directory: Path) -> object:
    plain = as_csv(directory)
    assert isinstance(plain, Path)
    (directory / "events.csv.gz").write_bytes(gzip.compress(plain.read_bytes()))
    return directory / "events.csv.gz"


def as_directory(directory: Path) -> object:
    """Nested files, beside what Spark leaves there."""
    (directory / "log" / "part=1").mkdir(parents=True)
    (directory / "log" / "_temporary").mkdir()
    pq.write_table(EVENTS.slice(0, 2), directory / "log" / "a.parquet")
    pq.write_table(EVENTS.slice(2), directory / "log" / "part=1" / "b.parquet")
    pq.write_table(EVENTS, directory / "log" / "_temporary" / "c.parquet")
    (directory / "log" / "_SUCCESS").touch()
    return directory / "log"


def as_glob(directory: Path) -> object:
    pq.write_table(EVENTS.slice(0, 2), directory / "day1.parquet")
    pq.write_table(EVENTS.slice(2), directory / "day2.parquet")
    pq.write_table(EVENTS, directory / "other.parquet")
    return f"{directory}/day*.parquet"


def as_database(directory: Path) -> object:
    with duckdb.connect(directory / "events.duckdb") as connection:
        connection.register("frame", EVENTS)
        connection.execute("CREATE TABLE log AS SELECT * FROM frame")
    return directory / "events.duckdb"


def as_relation(directory: Path) -> object:
    connection = duckdb.connect()
    connection.register("frame", EVENTS)
    return connection.sql("SELECT * FROM frame")


SOURCES: list[Callable[[Path], object]] = [
    *(as_parquet, as_text_path, as_csv, as_gzip_csv, as_directory, as_glob, as_database, as_relation, lambda _: EVENTS),
    *(lambda _: EVENTS.to_reader(), lambda _: EVENTS.to_batches()[0], lambda _: EVENTS.to_pandas()),
    *(lambda _: pl.from_arrow(EVENTS), lambda _: pl.DataFrame(EVENTS).lazy()),
]


@pytest.mark.parametrize("make", SOURCES, ids=[getattr(make, "__name__", "") for make in SOURCES])
def test_every_source_gives_the_same(make: Callable[[Path], object], tmp_path: Path) -> None:
    source = make(tmp_path)
    answers = count_events(source, COLUMNS, JANUARY, [1, 2])
    assert answers.rolling(1, 1).tolist() == DISTINCT
    assert answers.cumulative(2).tolist() == [0, 1, 1, 1, 2]


def test_a_relation_stays_usable_and_keeps_wide_items_apart() -> None:
    connection = duckdb.connect()
    relation = connection.sql(
        "SELECT (170141183460469231731687303715884105727 - i % 2)::HUGEINT AS id, i AS when FROM range(6) AS r(i)"
    )
    assert daily(relation, timeline=Timeline(0, 6, 3)) == [2, 2]
    assert len(relation.fetchall()) == 6


def test_a_view_and_a_schema_of_a_database(tmp_path: Path) -> None:
    path = tmp_path / "d.db"
    with duckdb.connect(path) as connection:
        connection.execute('CREATE SCHEMA "my logs"; CREATE TABLE "my logs"."a.b" AS SELECT 1 AS id, 0 AS when')
        connection.execute('CREATE VIEW shown AS SELECT id + i AS id, "when" FROM "my logs"."a.b", range(3) AS r(i)')
    steps = STEPS
    assert daily(path, timeline=steps, table="my logs.a.b") == [1]
    assert daily(path, timeline=steps, table="shown") == [3]
    with pytest.raises(InputError, match="has 2 tables, name one of them"):
        daily(path, timeline=steps)
    with pytest.raises(InputError, match=r"no table 'show' \(did you mean 'shown'\?\); its tables are"):
        daily(path, timeline=steps, table="show")


def test_a_database_is_not_written_to(tmp_path: Path) -> None:
    path = tmp_path / "events.duckdb"
    as_database(tmp_path)
    before = (path.read_bytes(), path.stat().st_mtime_ns)
    path.chmod(0o444)
    assert daily(path) == DISTINCT
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["events.duckdb"]


def test_a_locked_database_is_the_environments_fault(tmp_path: Path) -> None:
    as_database(tmp_path)
    path = tmp_path / "events.duckdb"
    hold = f"import duckdb, sys; c = duckdb.connect({str(path)!r}); print('held', flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(EngineError, match="is locked by another process"):
            daily(path)
        holder.communicate(b"")


def test_a_full_disk_is_the_environments_fault(tmp_path: Path) -> None:
    """No file may grow beyond 100 kB: spilling fails as it does on a full disk."""
    path = tmp_path / "big.parquet"
    duckdb.execute(f"COPY (SELECT 'item-' || i AS id, 0 AS when FROM range(2000000) AS r(i)) TO '{path}'")
    script = f"""
import resource, sys
sys.dont_write_bytecode = True  # it would be cut, and kept
from dpwindows.errors import EngineError
from dpwindows.count.events import EngineSettings, EventColumns
from dpwindows.ask.timeline import Timeline
from dpwindows.count.counting import count_events
from dpwindows.count.request import CountRequest
from dpwindows.count.query.wanted import Wanted
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    settings = EngineSettings(memory_limit="60MB", threads=1)
    columns = EventColumns("id", "when")
    count_events(CountRequest({str(path)!r}, columns, Timeline.of_steps(2), Wanted((2,)), settings=settings))
except EngineError as error:
    print("engine error:", error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("engine error: the engine")


# --- what CSV keeps ----------------------------------------------------------------------------------------------


def test_csv_integer_times_and_counts(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "t.csv", f"id,when,n\na,0, +2\na,1,{'9' * 60}\nb,1,-{'9' * 60}\nb,{'9' * 30},1\nb,0,\n")
    assert daily(path, WEIGHTED, Timeline.of_steps(2), k=2) == [1, 1]
    assert daily(path, WEIGHTED, Timeline.of_steps(2), k=1) == [1, 1]
    for times, what in (("1.5,1", "time column 'when'"), ("x,1", "time column 'when'"), ("0,2.5", "count column 'n'")):
        bad = write_csv(tmp_path / "bad.csv", f"id,when,n\na,{times}\n")
        with pytest.raises(InputError, match=f"the {what} is text and not all of it .* expected whole numbers"):
            daily(bad, WEIGHTED, Timeline.of_steps(2))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"id,when\na,2013-01-01,secret\n", "malformed .line 2 of "),
        (b"id,when\nsecret\n", "malformed"),
        (b"id,when\n\xff\xfesecret,2013-01-01\n", "must be UTF-8"),
        (b'id,when\n"secret,2013-01-01\n', "malformed"),
        (b"", "is empty; a CSV file begins with a line of column names"),
        (b"id,when,id\n1,2013-01-01,2\n", "has 2 columns named 'id'"),
        (b"\x1f\x8bid,when\n", "no column 'id'"),
    ],
)
def test_malformed_csv(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "bad.csv").write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        daily(tmp_path / "bad.csv")
    assert "secret" not in str(caught.value)


# --- types of columns ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "items",
    [
        pa.array([1, 2, 1], pa.int8()),
        pa.array([2**64 - 1, 2**64 - 2, 2**64 - 1], pa.uint64()),
        pa.array([True, False, True]),
        pa.array([date(2013, 1, 1), date(2013, 1, 2), date(2013, 1, 1)]),
        pa.array([b"\x00a", b"\x00b", b"\x00a"]),
        pa.array(["a", "A", "a"], pa.large_string()),
        pa.array(["a", "a ", "a"], pa.string_view()),
        pa.array(["x", "y", "x"]).dictionary_encode(),
        pa.array([Decimal("1.10"), Decimal("1.11"), Decimal("1.1")], pa.decimal128(20, 2)),
        pa.array(TIMES[:2] + TIMES[:1], pa.timestamp("ns")),
    ],
    ids=lambda items: str(items.type),
)
def test_exact_items(items: pa.Array) -> None:
    table = pa.table({"id": items, "when": pa.array([0, 0, 0], pa.int64())})
    assert daily(table, timeline=STEPS) == [2]


def test_uuid_items(tmp_path: Path) -> None:
    """As the engine's own type and as text."""
    path, steps = tmp_path / "u.duckdb", STEPS
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE log AS SELECT uuid() AS id, 0 AS when FROM range(5)")
        assert daily(connection.sql("SELECT * FROM log"), timeline=steps) == [5]
        texts = connection.sql("SELECT CAST(id AS VARCHAR) AS id, 0 AS when FROM log").pl()
    assert daily(path, timeline=steps) == daily(texts, timeline=steps) == [5]


DO_NOT_SERVE: list[tuple[str, pa.Array, Timeline, str]] = [
    ("id", pa.array([1.0]), STEPS, "item column 'id' is of type DOUBLE, and floating-point numbers do not identify"),
    ("id", pa.array([1.0], pa.float32()), STEPS, "of type FLOAT"),
    ("id", pa.array([[1]]), STEPS, "nested type LIST; make one of its fields"),
    ("id", pa.array([{"a": 1}]), STEPS, "nested type STRUCT"),
    ("id", pa.array([(1, 2, 3)], pa.month_day_nano_interval()), STEPS, "of type INTERVAL; items must be"),
    ("when", pa.array([1]), JANUARY, "time column 'when' is of type BIGINT; steps of 1d need .* as a plain integer"),
    ("when", pa.array([1.0]), JANUARY, "of type DOUBLE; steps of 1d need"),
    ("when", pa.array([True]), JANUARY, "of type BOOLEAN"),
    ("when", pa.array(TIMES[:1]), STEPS, "of type TIMESTAMP, but the timeline has integer steps"),
    ("when", pa.array([1.0]), STEPS, "of type DOUBLE, but the timeline has integer steps"),
    ("when", pa.array([date(2013, 1, 1)]), STEPS, "of type DATE, but the timeline has integer steps"),
    ("when", pa.array(["monday"]), JANUARY, "the time column 'when' is text and not all of it can be read"),
    ("n", pa.array([1.0]), STEPS, "the count column 'n' is of type DOUBLE; counts must be of an integer type"),
    ("n", pa.array([True]), STEPS, "of type BOOLEAN"),
    ("n", pa.array([Decimal("1.5")]), STEPS, "the count column 'n' holds decimals, and not all of them are whole"),
]


@pytest.mark.parametrize(("column", "values", "timeline", "message"), DO_NOT_SERVE, ids=str)
def test_types_that_do_not_serve(column: str, values: pa.Array, timeline: Timeline, message: str) -> None:
    rows: dict[str, pa.Array] = {"id": pa.array([1]), "when": pa.array([0]), "n": pa.array([1])}
    with pytest.raises(InputError, match=message):
        daily(pa.table(rows | {column: values}), WEIGHTED, timeline)


def test_files_with_times_of_different_types_are_one_log(tmp_path: Path) -> None:
    """Read one by one, none is converted to the type of another."""
    for name, kind in (("a", pa.date32()), ("b", pa.timestamp("ms")), ("c", pa.timestamp("us", tz="UTC"))):
        times = pa.array([datetime(2013, 1, 1, 23, tzinfo=UTC if name == "c" else None)], pa.timestamp("us")).cast(kind)
        pq.write_table(pa.table({"id": [name], "when": times}), tmp_path / f"{name}.parquet")
    assert daily(tmp_path, timeline=Timeline("2013-01-01", "2013-01-03", time_zone="Asia/Kolkata")) == [2, 1]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Kolkata"])
@pytest.mark.parametrize("start", [datetime(2013, 1, 1), datetime(1969, 12, 31)])
def test_timestamps_of_any_unit(unit: str, zone: str | None, start: datetime) -> None:
    """Edges of days in Kolkata, before and after 1970. A time without a zone is local there."""
    days = Timeline(start, start + timedelta(days=2), time_zone="Asia/Kolkata")
    edges = [start, start + timedelta(hours=23, minutes=59, seconds=59), start + timedelta(days=1)]
    if zone is None:
        times = pa.array(edges, pa.timestamp(unit))
    else:
        times = pa.array([edge.replace(tzinfo=ZoneInfo("Asia/Kolkata")) for edge in edges], pa.timestamp(unit, tz=zone))
    assert in_days(times, days) == [2, 1]


def test_a_nanosecond_before_midnight_belongs_to_the_day_before() -> None:
    for zone in (None, "UTC"):
        times = pa.array(
            [-1, 0, 86_400_000_000_000 - 1, -86_400_000_000_000, -86_400_000_000_001], pa.timestamp("ns", tz=zone)
        )
        assert in_days(times, Timeline("1969-12-31", "1970-01-02")) == [2, 2]


def test_the_old_form_of_parquet_times_means_instants(tmp_path: Path) -> None:
    """INT96, as Spark writes it, beside the same instants as they are written today."""
    times = pa.array(
        [datetime(2013, 1, 1, 4, 59), datetime(2013, 1, 1, 5), datetime(2013, 1, 2, 4, 59)], pa.timestamp("us")
    )
    old = pa.table({"id": [1, 2, 3], "when": times})
    new = pa.table({"id": [4, 5, 6], "when": times.cast(pa.timestamp("us", "UTC"))})
    pq.write_table(old, tmp_path / "old.parquet", use_deprecated_int96_timestamps=True)
    pq.write_table(new, tmp_path / "new.parquet")
    days = Timeline("2012-12-31", "2013-01-03", time_zone="America/New_York")
    assert daily(tmp_path / "old.parquet", timeline=days) == [1, 2, 0]
    assert daily(tmp_path, timeline=days) == [2, 4, 0]


def test_dates() -> None:
    dates = pa.array([date(2012, 12, 31), date(2013, 1, 1), date(2013, 1, 5), date(2013, 1, 6), date(9999, 12, 31)])
    assert in_days(dates) == [1, 0, 0, 0, 1]
    assert in_days(dates, Timeline("2013-01-01", "2013-03-01", "1mo")) == [3, 0]


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint8(), pa.int32(), pa.uint64()])
def test_counts_of_any_integer_type(kind: pa.DataType) -> None:
    table = pa.table({"id": ["a", "a", "b"], "when": [0, 0, 0], "n": pa.array([100, 27, 126], kind)})
    for k, expected in ((1, 2), (126, 2), (127, 1), (128, 0), (1000, 0)):
        assert daily(table, WEIGHTED, STEPS, k=k) == [expected]


@pytest.mark.parametrize("kind", ["BIGINT", "DECIMAL(4, 0)", "DECIMAL(9, 2)", "DECIMAL(38, 20)"])
def test_counts_that_are_sums(kind: str) -> None:
    """A sum is of a wider type than what it adds up."""
    sums = duckdb.sql(f"SELECT i % 3 AS id, 0 AS at, sum(i::{kind}) AS n FROM range(12) AS log(i) GROUP BY id")
    for k, expected in ((18, 3), (19, 2), (22, 2), (23, 1), (26, 1), (27, 0)):
        assert daily(sums, EventColumns("id", "at", "n"), Timeline.of_steps(1), k=k) == [expected]


def test_decimal_counts_of_any_width() -> None:
    columns = EventColumns("id", "at", "n")
    huge = duckdb.sql("SELECT 1 AS id, 0 AS at, '99999999999999999999999999999999999999'::DECIMAL(38, 0) AS n")
    assert daily(huge, columns, Timeline.of_steps(1), k=1000) == [1]
    small = duckdb.sql("SELECT 1 AS id, 0 AS at, '0.00000000000000000000000000000000000001'::DECIMAL(38, 38) AS n")
    with pytest.raises(InputError, match="the count column 'n' holds decimals, and not all of them are whole numbers"):
        daily(small, columns, Timeline.of_steps(1))


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint8(), pa.int64(), pa.uint64()])
def test_integer_times(kind: pa.DataType) -> None:
    assert in_days(pa.array([0, 9, 10, 19, 20, 100], kind), Timeline(0, 20, 10)) == [2, 2]
    if kind.bit_width == 64:
        far = [-(2**63), 2**63 - 1, 0] if kind == pa.int64() else [2**64 - 1, 1]
        assert in_days(pa.array(far, kind), Timeline(-5, 5, 5)) == [0, 1]


def test_the_count_is_no_other_column() -> None:
    """One event more in a row would make its other events of another item, at another time or in another group."""
    groups = grouping({"n": [1, 2]})
    for roles, grouped in ((("n", "when"), None), (("id", "n"), None), (("id", "when"), groups)):
        with pytest.raises(InputError, match=r"the column 'n' is given for the (item|time|group) and for the count"):
            EventColumns(*roles, "n", grouping=grouped)
    assert EventColumns("id", "when", grouping=groups).count is None


# --- rows that do not count ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("column", ["id", "when", "n"])
def test_a_column_of_nulls_is_no_event(column: str) -> None:
    values: dict[str, pa.Array] = {"id": pa.array([1]), "when": pa.array([0]), "n": pa.array([1])}
    values[column] = pa.nulls(1)
    assert daily(pa.table(values), WEIGHTED, STEPS) == [0]


def test_infinite_times_are_out_of_range(tmp_path: Path) -> None:
    path = tmp_path / "i.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE a AS SELECT 1 AS id, unnest(['infinity'::TIMESTAMP, '-infinity']) AS when")
        connection.execute('CREATE TABLE b AS SELECT id, "when"::TIMESTAMPTZ AS "when" FROM a')
        connection.execute("CREATE TABLE c AS SELECT id, 'infinity'::DATE AS when FROM a")
    assert [daily(path, table=table) for table in "abc"] == [[0] * 5] * 3


def test_an_empty_log_is_valid(tmp_path: Path) -> None:
    pq.write_table(EVENTS.slice(0, 0), tmp_path / "empty.parquet")
    assert daily(tmp_path / "empty.parquet") == [0] * 5
    assert daily(write_csv(tmp_path / "empty.csv", "id,when\n")) == [0] * 5
    assert daily(EVENTS.slice(0, 0).to_pandas()) == [0] * 5
    assert daily(EVENTS.schema.empty_table().to_reader()) == [0] * 5


# --- names and paths ------------------------------------------------------------------------------------------

NASTY = [
    *('x"; DROP TABLE log; --', "it's", "Ünï cödé", "SELECT", "a.b", "count", "step", "item", "time", "{0}", "%s"),
    "\\",
]


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", NASTY)
def test_any_name_is_only_a_name(name: str, tmp_path: Path) -> None:
    # The engine takes a backslash for a separator where a path also has glob characters.
    directory = tmp_path / (name.replace("\\", "_") + " [1] *?")
    directory.mkdir()
    decoy = tmp_path / "decoy"
    decoy.mkdir()
    columns = EventColumns(name, name + "!")
    table = pa.table({name: ITEMS, name + "!": pa.array(TIMES, pa.timestamp("us"))})
    pq.write_table(table, directory / "e'[v].parquet")
    pq.write_table(table, directory / "e'v.parquet.ignored")
    assert daily(table, columns) == DISTINCT
    assert daily(table.to_pandas(), columns) == DISTINCT
    assert daily(directory / "e'[v].parquet", columns) == DISTINCT
    assert daily(directory, columns) == DISTINCT
    with duckdb.connect(tmp_path / "d'b.duckdb") as connection:
        connection.register("frame", table)
        quoted = '"' + name.replace('"', '""') + '"'
        connection.execute(f"CREATE TABLE {quoted} AS SELECT * FROM frame")
        assert daily(connection.sql(f"SELECT * FROM {quoted}"), columns) == DISTINCT
    assert daily(tmp_path / "d'b.duckdb", columns, table=name) == DISTINCT


@pytest.mark.parametrize("make", SOURCES, ids=[getattr(make, "__name__", "") for make in SOURCES])
def test_a_missing_column_is_named_with_those_there(make: Callable[[Path], object], tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"no column 'Whn' for the time \(did you mean 'when'\?\); its columns are id, when"
    ):
        daily(make(tmp_path), EventColumns("id", "Whn"))
    again = tmp_path / "again"
    again.mkdir()
    with pytest.raises(InputError, match=r"no column 'n' for the count.*; its columns are id, when"):
        daily(make(again), WEIGHTED)


def test_sources_that_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and then nothing")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    (tmp_path / "broken.duckdb").write_bytes(bytes(8) + b"DUCK" + bytes(5000))
    folders = [tmp_path / name for name in ("kinds", "types", "columns")]
    for folder in folders:
        folder.mkdir()
        pq.write_table(EVENTS, folder / "a.parquet")
    as_csv(folders[0])
    pq.write_table(pa.table({"id": [7], "when": [0]}), folders[1] / "b.parquet")
    pq.write_table(EVENTS.drop_columns(["when"]), folders[2] / "b.parquet")
    cases: list[tuple[object, str]] = [
        (tmp_path / "none.parquet", "there is no file or directory"),
        (f"{tmp_path}/none*.parquet", "no file matches"),
        (tmp_path / "empty", "has no Parquet or CSV files"),
        (tmp_path / "broken.parquet", "broken.parquet cannot be read"),
        (tmp_path / "broken.duckdb", "broken.duckdb cannot be read"),
        (tmp_path / "picture.png", "neither Parquet nor a DuckDB or SQLite database"),
        (folders[0], r"files of several kinds \(CSV, Parquet\); give a glob for one kind"),
        (folders[1], r"different types in different files \(bigint, varchar\)"),
        (folders[2], r"b\.parquet has no column 'when' for the time; its columns are id"),
        ("s3://bucket/events.parquet", "got a network address; databases are reached at postgresql://"),
        (42, "events must be a path, .* got int"),
        ([1, 2], "got list"),
    ]
    for source, message in cases:
        with pytest.raises(InputError, match=message):
            daily(source)
    for source, message in ((folders[2], "table goes with a database file"), (EVENTS, "not go with a data frame")):
        with pytest.raises(InputError, match=message):
            daily(source, table="log")


@pytest.mark.parametrize("mark", ["_delta_log/0.json", ".hoodie/hoodie.properties", "metadata/v1.metadata.json"])
def test_files_of_a_table_in_several_versions_are_not_a_log(tmp_path: Path, mark: str) -> None:
    (tmp_path / "log" / mark).parent.mkdir(parents=True)
    (tmp_path / "log" / mark).write_text("{}")
    pq.write_table(EVENTS, tmp_path / "log" / "a.parquet")
    with pytest.raises(InputError, match="holds a table in the format of Delta, Hudi or Iceberg"):
        daily(tmp_path)
    assert sum(daily(tmp_path / "log" / "a.parquet")) > 0


def test_a_damaged_file_is_an_input_error(tmp_path: Path) -> None:
    """The footer is whole, the data is not."""
    path = tmp_path / "damaged.parquet"
    pq.write_table(pa.table({"id": [f"item-{i}" for i in range(10_000)], "when": list(range(10_000))}), path)
    content = bytearray(path.read_bytes())
    content[4:2000] = b"\xff" * 1996
    path.write_bytes(bytes(content))
    with pytest.raises(InputError, match="damaged"):
        daily(path, timeline=Timeline.of_steps(10))


def test_partition_values_stay_text(tmp_path: Path) -> None:
    """A column that is only in the directory names, as Spark writes them."""
    for name in ("007", "7"):
        (tmp_path / f"id={name}").mkdir()
        pq.write_table(EVENTS.drop_columns(["id"]), tmp_path / f"id={name}" / "a.parquet")
    assert daily(tmp_path) == [2, 2, 0, 0, 2]


# --- settings -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"memory_limit": "lots"}, 'memory_limit must be text such as "2GB" or "512MB", got \'lots\''),
        ({"memory_limit": "0GB"}, "memory_limit must be"),
        ({"memory_limit": "-1GB"}, "memory_limit must be"),
        ({"memory_limit": "2GB'; --"}, "memory_limit must be"),
        ({"threads": 0}, "threads must be a whole number of at least 1, got 0"),
        ({"spill_directory": Path("/no/such/place")}, "spill_directory must be an existing directory"),
    ],
)
def test_bad_settings(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        EngineSettings(**options)
    for bad in ("", None, 3):
        with pytest.raises(InputError, match="the item column must be given by its name"):
            EventColumns(bad, "when")  # type: ignore[arg-type]


@pytest.mark.parametrize("limit", ["2GB", "512 MB", "1.5GiB", "100mb"])
def test_settings(limit: str, tmp_path: Path) -> None:
    assert daily(EVENTS, settings=EngineSettings(limit, tmp_path, 1, progress=False)) == DISTINCT
