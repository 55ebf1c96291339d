"""The query that is printed, run by hand, gives a file of the counts that the engine makes; nothing else is read."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from dpwindows.ask.counting_rule import CountingRule
from dpwindows.ask.groups import grouping
from dpwindows.ask.queries import OCCURRENCES
from dpwindows.ask.timeline import Timeline
from dpwindows.count import counting
from dpwindows.count.dialects import dialect_named
from dpwindows.count.events import CountsFile, CsvLayout, EngineSettings, EventColumns
from dpwindows.count.query.standalone import standalone_probe, standalone_sql
from dpwindows.count.query.wanted import Wanted
from dpwindows.count.request import CountRequest
from dpwindows.errors import InputError
from tests.count.engines import servers
from tests.count.engines.logs import (
    LOGS,
    THRESHOLDS,
    Log,
    Place,
    in_clickhouse,
    in_duckdb_table,
    in_postgresql,
    in_spark,
)
from tests.search import examples


def asked_of(log: Log, place: Place, **more: Any) -> CountRequest:
    columns = EventColumns("item", "time", "count" if log.weighted else None)
    wanted = Wanted((OCCURRENCES, *THRESHOLDS), **more)
    return CountRequest(
        place.source, columns, log.timeline, wanted, place.table or "log", place.settings or EngineSettings()
    )


def printed(dialect: str, log: Log, asked: CountRequest) -> str:
    """The query for a log as it was put into a database, by the names that this has for types."""
    item = {"string": "text", "int64": "integer"}.get(str(log.table.schema.field("item").type), "decimal(38, 9)")
    times = {"zoned": "timestamptz", "naive": "timestamp"}
    if dialect == "spark":
        times["naive"] = "timestamp_ntz"
    if dialect == "clickhouse":
        times = {"zoned": "DateTime64(6, 'Australia/Lord_Howe')", "naive": "String", "date": "Date32"}
    types = {"item": item, "time": times.get(log.time, log.time)} | ({"count": log.count} if log.weighted else {})
    return standalone_sql(dialect_named(dialect), asked, types)


def by_hand_in_duckdb(path: Path, query: str, file: Path) -> CountsFile:
    """As in a terminal: COPY (...) TO 'counts.csv'."""
    with duckdb.connect(path, read_only=True) as connection:
        connection.execute(f"COPY ({query}) TO '{file}'")
    return CountsFile(file)


def answers(asked: CountRequest, source: object) -> list[bytes]:
    request = replace(
        asked, source=source, settings=EngineSettings() if isinstance(source, CountsFile) else asked.settings
    )
    count = counting.count_events if asked.columns.grouping is None else counting.count_groups
    return list(count(request).canonical())


def as_duckdb_counts(log: Log, asked: CountRequest) -> list[bytes]:
    """The answers as the engine gives them that needs no server."""
    return answers(replace(asked, table=None, settings=EngineSettings()), log.table)


@pytest.mark.quick(4)
@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.name)
def test_what_duckdb_gives_by_hand_are_the_counts_of_the_engine(
    log: Log, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Out of a table with a collation by which many texts are equal."""
    place = in_duckdb_table(log.table, tmp_path, request)
    asked = asked_of(log, place)
    assert isinstance(place.source, Path)
    ending = ".parquet" if log in LOGS[::2] else ".csv"
    file = by_hand_in_duckdb(place.source, printed("duckdb", log, asked), tmp_path / f"counts{ending}")
    assert answers(asked, file) == answers(asked, place.source)


@pytest.mark.xdist_group("postgresql")
@pytest.mark.search(5)
@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.name)
def test_what_postgresql_gives_by_hand_are_the_counts_of_duckdb(
    log: Log, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """As by `\\copy (...) TO counts.csv CSV HEADER`, under settings that must not matter."""
    place = in_postgresql(log.table, tmp_path, request)
    asked, server = asked_of(log, place), request.getfixturevalue("server")
    with server.connect() as connection, (tmp_path / "counts.csv").open("wb") as file:
        connection.execute("SET timezone = 'Australia/Lord_Howe'")
        with connection.cursor().copy(f"COPY ({printed('postgresql', log, asked)}) TO STDOUT CSV HEADER") as copy:
            file.writelines(copy)
    assert answers(asked, CountsFile(tmp_path / "counts.csv")) == as_duckdb_counts(log, asked)


@pytest.mark.search(2)
@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.name)
def test_what_clickhouse_gives_by_hand_are_the_counts_of_duckdb(
    log: Log, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """As by `clickhouse-client --format CSVWithNames`, which writes null as \\N."""
    place = in_clickhouse(log.table, tmp_path, request)
    asked, session = asked_of(log, place), request.getfixturevalue("clickhouse")
    query = printed("clickhouse", log, asked)
    (tmp_path / "counts.csv").write_bytes(session.query(query, "CSVWithNames").bytes())
    assert answers(asked, CountsFile(tmp_path / "counts.csv")) == as_duckdb_counts(log, asked)


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("log", LOGS[1:2], ids=lambda log: log.name)
def test_what_spark_gives_by_hand_are_the_counts_of_duckdb(
    log: Log, tmp_path: Path, request: pytest.FixtureRequest, spark: SparkSession
) -> None:
    """It writes a folder of Parquet files, beside files of its own."""
    place = in_spark(log.table, tmp_path, request)
    asked = asked_of(log, place)
    spark.read.parquet(str(place.source)).createOrReplaceTempView("log")
    spark.sql(printed("spark", log, asked)).write.parquet(str(tmp_path / "counts"))
    assert answers(asked, CountsFile(tmp_path / "counts")) == as_duckdb_counts(log, asked)


@pytest.mark.xdist_group("postgresql")
def test_the_probe_is_answered_by_hand_in_postgresql(server: servers.PostgreSQL) -> None:
    """As by psql, which goes on after what fails."""
    rows, failures = [], []
    with server.connect() as connection:
        for statement in standalone_probe(dialect_named("postgresql")).split(";\n\n")[:-1]:
            try:
                rows.append(connection.execute(statement.encode()).fetchall()[0])
            except psycopg.Error as error:
                failures.append(str(error))
    assert len(rows) > 15
    assert all(wanted == found > 0 and wrong is None for _, wanted, found, wrong in rows)
    assert len(failures) == 4


# --- groups and rules -------------------------------------------------------------------------------------------------

DAYS = Timeline("2021-01-01", "2021-01-13")
BY: dict[str, list[Any]] = {"origin": ["EWR", "it's", 'a "b"', "\\x", "ä"], "n": [1, 2, 3]}
ROWS = 400
COLUMNS = EventColumns("visitor", "seen at", "n")


@pytest.fixture(scope="module")
def visits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with a table whose names need quotes."""
    path = tmp_path_factory.mktemp("visits") / "visits.duckdb"
    with duckdb.connect(path) as connection:
        connection.register("listed", pa.table({"place": range(6), "origin": [*BY["origin"], None]}))
        connection.execute('CREATE SCHEMA "web.log"')
        connection.execute(
            f"""CREATE TABLE "web.log".visits AS SELECT range * 7919 % 31 AS visitor, origin, range % 5 AS n,
            TIMESTAMP '2020-12-31' + INTERVAL 1 HOUR * (range * 131 % 340) AS "seen at"
            FROM range({ROWS}) JOIN listed ON place = range * range % 11"""
        )
    return path


GROUPED = [
    grouping({"origin": BY["origin"]}, totals=0.1),
    grouping(BY, totals=0.1),
    grouping(BY, group_of="item"),
    grouping(BY, max_groups=2, totals=0.3),
]
RULED = [
    Wanted((1, 2), CountingRule(max_runs=1), ((1, 3), (2, 4)), loss=True),
    Wanted((OCCURRENCES, 1, 3), CountingRule(max_occurrences=2), loss=True),
    Wanted((OCCURRENCES, 1, 3), CountingRule(distinct_steps=True)),
]
CASES = [*((Wanted((OCCURRENCES, 1, 2)), groups) for groups in GROUPED), *((wanted, None) for wanted in RULED)]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_groups_and_rules_are_counted_by_hand_as_by_the_engine(case: int, visits: Path, tmp_path: Path) -> None:
    wanted, groups = CASES[case]
    columns = EventColumns("visitor", "seen at", None if groups is not None else "n", grouping=groups)
    asked = CountRequest(None, columns, DAYS, wanted, '"web.log".visits')
    types = {"item": "bigint", "time": "timestamp"} | ({"count": "integer"} if groups is None else {"origin": "text"})
    types |= {"n": "integer"} if groups is not None and "n" in groups.names else {}
    query = standalone_sql(dialect_named("duckdb"), asked, types)
    held = by_hand_in_duckdb(visits, query, tmp_path / "counts.csv")
    assert answers(asked, held) == answers(replace(asked, table='"web.log"."visits"'), visits)


# --- what a file must be ----------------------------------------------------------------------------------------------

PLAIN_CASE = CountRequest(None, COLUMNS, DAYS, Wanted((OCCURRENCES, 1, 2)), '"web.log".visits')
TYPES = {"item": "bigint", "time": "timestamp", "count": "integer"}


@pytest.fixture(scope="module")
def result(visits: Path, tmp_path_factory: pytest.TempPathFactory) -> pa.Table:
    """The result of a query, as a database gives it."""
    file = tmp_path_factory.mktemp("counts") / "counts.parquet"
    by_hand_in_duckdb(visits, standalone_sql(dialect_named("duckdb"), PLAIN_CASE, TYPES), file)
    return pq.read_table(file)


def in_csv(table: pa.Table, file: Path, **how: Any) -> CountsFile:
    pa_csv.write_csv(table, file, pa_csv.WriteOptions(**how))
    return CountsFile(file)


def _as_is(table: pa.Table, folder: Path) -> CountsFile:
    pq.write_table(table, folder / "counts.parquet")
    return CountsFile(folder / "counts.parquet")


def _in_parts(table: pa.Table, folder: Path) -> CountsFile:
    pq.write_table(table.slice(20), folder / "part-1.parquet")
    pq.write_table(table.slice(0, 20), folder / "part-2.parquet")
    return CountsFile(folder)


def _as_decimals(table: pa.Table, folder: Path) -> CountsFile:
    kinds = [pa.string() if name == "description" else pa.decimal128(38, 0) for name in table.column_names]
    return _as_is(table.cast(pa.schema(zip(table.column_names, kinds, strict=True))), folder)


def _in_capitals(table: pa.Table, folder: Path) -> CountsFile:
    return in_csv(table.rename_columns([name.upper() for name in table.column_names][::1]), folder / "counts.csv")


def _with_semicolons(table: pa.Table, folder: Path) -> CountsFile:
    return in_csv(
        table.select(table.column_names[::-1]), folder / "counts.csv", delimiter=";", quoting_style="all_valid"
    )


def _with_words_for_null(table: pa.Table, folder: Path) -> CountsFile:
    texts = [pc.fill_null(pc.cast(column, pa.string()), "NULL") for column in table.columns]
    return in_csv(pa.table(texts, table.column_names), folder / "counts.csv")


def _packed(table: pa.Table, folder: Path) -> CountsFile:
    plain = in_csv(table, folder / "plain.csv")
    content = b"\xef\xbb\xbf" + Path(plain.path).read_bytes().replace(b"\n", b"\r\n")
    (folder / "counts.csv.gz").write_bytes(gzip.compress(content))
    return CountsFile(folder / "counts.csv.gz")


@pytest.mark.parametrize(
    "write",
    [_as_is, _in_parts, _as_decimals, _in_capitals, _with_semicolons, _with_words_for_null, _packed],
    ids=lambda write: write.__name__,
)
def test_a_result_is_read_however_it_was_saved(
    write: Callable[[pa.Table, Path], CountsFile], result: pa.Table, visits: Path, tmp_path: Path
) -> None:
    known = answers(replace(PLAIN_CASE, table='"web.log"."visits"'), visits)
    assert answers(PLAIN_CASE, write(result, tmp_path)) == known


def with_values(table: pa.Table, name: str, place: int, value: Any) -> pa.Table:
    """The table with another value in one place."""
    values = table[name].to_pylist()
    values[place] = value
    return table.set_column(table.column_names.index(name), name, pa.array(values, table[name].type))


@examples(60)
@given(data=st.data())
def test_a_result_that_is_not_whole_is_refused(data: st.DataObject, result: pa.Table, tmp_path_factory: Any) -> None:
    """Rows that are missing or twice there, and numbers that were changed."""
    place = data.draw(st.integers(0, result.num_rows - 1))
    kind = data.draw(st.sampled_from(["cut", "lost", "twice", "delta", "counted", "closing"]))
    kept = [at for at in range(result.num_rows) if kind != "lost" or at != place]
    changed = result.take(pa.array(kept[: place if kind == "cut" else None] + [place] * (kind == "twice"), pa.int64()))
    if kind in ("delta", "counted", "closing"):
        other = 1 - result[kind][place].as_py() if kind == "closing" else data.draw(st.integers(-5, 500))
        assume(other != result[kind][place].as_py())
        changed = with_values(result, kind, place, other)
    file = tmp_path_factory.mktemp("changed") / "counts.parquet"
    pq.write_table(changed, file)
    with pytest.raises(InputError, match="is not the whole result of the query"):
        answers(PLAIN_CASE, CountsFile(file))


@examples(60)
@given(data=st.data())
def test_what_is_moved_is_refused_or_is_of_another_log(
    data: st.DataObject, result: pa.Table, tmp_path_factory: Any
) -> None:
    """A step or a recency that was changed leaves the sums as they are: what no log has is refused all the same."""
    places = [place for place, closing in enumerate(result["closing"].to_pylist()) if not closing]
    name, place = data.draw(st.sampled_from(["step", "recency", "k"])), data.draw(st.sampled_from(places))
    number = data.draw(st.integers(-1, 14))
    assume(number != result[name][place].as_py())
    changed = with_values(result, name, place, number)
    rows = {tuple(row[name] for name in ("k", "step", "recency")) for row in changed.to_pylist() if not row["closing"]}
    assume(len(rows) == len(places))
    file = tmp_path_factory.mktemp("changed") / "counts.parquet"
    pq.write_table(changed, file)
    try:
        found = answers(PLAIN_CASE, CountsFile(file))
    except InputError:
        event("refused")
        return
    event("passed")
    # What passes has at least k no lower than at least k + 1, and no number below 0, in every window.
    held = counting.count_events(replace(PLAIN_CASE, source=CountsFile(file)))
    windows = [held.windows(k, 1, 12, 1, 12) for k in (OCCURRENCES, 1, 2)]
    assert found
    assert all((more >= fewer).all() and (fewer >= 0).all() for more, fewer in pairwise(windows))


def columns(**other: Any) -> CountRequest:
    return replace(PLAIN_CASE, columns=replace(COLUMNS, **other))


def days(*other: str, **more: str) -> CountRequest:
    return replace(PLAIN_CASE, timeline=Timeline("2021-01-01", *other, **more))


def ruled(**rule: Any) -> CountRequest:
    return replace(PLAIN_CASE, wanted=replace(PLAIN_CASE.wanted, rule=CountingRule(**rule)))


# What is asked for in place of the case, and what is said of the file and of the release.
OTHERS: dict[str, tuple[CountRequest, str, str]] = {
    "table": (replace(PLAIN_CASE, table="visits"), 'with --table "web.log".visits', "with --table visits"),
    "item": (columns(item="user"), "with --item visitor", "with --item user"),
    "count": (columns(count=None), "with --count n", "without --count"),
    "format": (columns(time_format="epoch-s"), "without --time-format", "with --time-format epoch-s"),
    "groups": (columns(grouping=GROUPED[0]), "without --by", "with --by origin --values EWR,it's,"),
    "end": (days("2021-01-14"), "with --end 2021-01-13", "with --end 2021-01-14"),
    "step": (days("2021-01-13", "12h"), "with --step 1d", "with --step 12h"),
    "zone": (days("2021-01-13", time_zone="Asia/Tokyo"), "with --time-zone UTC", "with --time-zone Asia/Tokyo"),
    "rule": (ruled(distinct_steps=True), "without --distinct-steps", "with --distinct-steps"),
    "bound": (ruled(max_occurrences=3), "without --max-occurrences", "with --max-occurrences 3"),
    "runs": (ruled(max_runs=1), "without --max-runs", "with --max-runs 1"),
}


@pytest.mark.parametrize("what", OTHERS)
def test_a_file_of_another_query_is_refused_by_what_differs(what: str, result: pa.Table, tmp_path: Path) -> None:
    asked, own, other = OTHERS[what]
    with pytest.raises(InputError) as refusal:
        answers(asked, _as_is(result, tmp_path))
    assert f"was counted {own}, and this release asks for counts {other}" in str(refusal.value)


def test_a_file_without_counts_that_are_asked_for_is_refused(result: pa.Table, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no counts of at least 3, which this release measures"):
        answers(replace(PLAIN_CASE, wanted=Wanted((1, 3))), _as_is(result, tmp_path))


def test_a_file_may_hold_more_than_is_asked(result: pa.Table, visits: Path, tmp_path: Path) -> None:
    fewer = replace(PLAIN_CASE, wanted=Wanted((2,)))
    known = answers(replace(fewer, table='"web.log"."visits"'), visits)
    assert answers(fewer, _as_is(result, tmp_path)) == known


NAMES = "k,step,recency,delta,counted,closing,description\n"
ROW = "1,1,1,1,1,0,\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("k,step,recency,delta\n1,1,1,1\n", "has no column 'counted', or several"),
        ("\n", "cannot be read as CSV"),
        (f"{NAMES}{ROW}1,1\n", "cannot be read as CSV"),
        (f"{NAMES}{ROW}1,2,2.0,1,1,0,\n", r"line 3 of .*: recency must be a whole number, got '2\.0'"),
        (f"{NAMES}{ROW}1,2,,1,1,0,\n", r"line 3 of .*: recency must be a whole number, got ''"),
        (f"{NAMES}{ROW},,,1,1,1,\n", "does not say what was counted"),
        (f"{NAMES}{ROW},,,1,1,1,{{}}\n", "does not say what was counted"),
    ],
)
def test_a_file_that_is_no_result_is_refused(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "counts.csv").write_text(text)
    with pytest.raises(InputError, match=why):
        answers(PLAIN_CASE, CountsFile(tmp_path / "counts.csv"))


def test_rows_of_other_counts_than_the_query_makes_are_refused(result: pa.Table, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has rows with k = 7, and its query counts none"):
        answers(PLAIN_CASE, _as_is(with_values(result, "k", 0, 7), tmp_path))


def test_floating_point_numbers_are_refused(result: pa.Table, tmp_path: Path) -> None:
    floats = result.set_column(3, "delta", pc.cast(result["delta"], pa.float64()))
    with pytest.raises(InputError, match=r"'delta' of .* is of type double: write it as whole numbers"):
        answers(PLAIN_CASE, _as_is(floats, tmp_path))


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (EngineSettings(memory_limit="1GB"), "memory_limit does not go with the engine counts"),
        (EngineSettings(engine="spark"), "nothing to count for spark: leave engine out"),
    ],
)
def test_nothing_is_said_of_an_engine(settings: EngineSettings, why: str, result: pa.Table, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=why):
        counting.count_events(replace(PLAIN_CASE, source=_as_is(result, tmp_path), settings=settings))


def test_counts_are_in_files_of_text_or_parquet(visits: Path, result: pa.Table, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"counts are read from CSV and Parquet, and .* is DuckDB"):
        answers(PLAIN_CASE, CountsFile(visits))
    layout = replace(PLAIN_CASE, columns=replace(COLUMNS, layout=CsvLayout(";")))
    with pytest.raises(InputError, match="--delimiter say how CSV files are laid out"):
        answers(layout, _as_is(result, tmp_path))
