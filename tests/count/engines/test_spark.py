"""Spark: what is read, what is refused, and that only the small table comes to the driver."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.classic.dataframe import DataFrame

import dpwindows as dw
from dpwindows.ask.timeline import Timeline
from dpwindows.count.engines.spark import _builder, _mebibytes
from dpwindows.count.events import EngineSettings, EventColumns
from dpwindows.errors import EngineError, InputError
from tests.count.engines import servers
from tests.counting import in_steps
from tests.end_to_end.command_line import run, run_process

pytestmark = pytest.mark.xdist_group("spark")

STEPS = Timeline.of_steps(2)
DAYS = Timeline("2013-01-01", "2013-01-06")
COLUMNS = EventColumns("id", "at")
WEIGHTED = EventColumns("id", "at", "n")
SPARK = EngineSettings(engine="spark")
LOG = pa.table({"id": ["007", "7", "007", None], "at": pa.array([0, 0, 1, 1], pa.int64()), "n": [1, 5, 2, 9]})
COUNTED = [2, 1]


def counted(source: object, columns: EventColumns = COLUMNS, timeline: Timeline = STEPS, **options: Any) -> list[int]:
    return in_steps(source, columns, timeline, **{"settings": SPARK, **options})


@pytest.fixture
def view(spark: SparkSession) -> Iterator[str]:
    """The log as a temporary view."""
    spark.createDataFrame(LOG).createOrReplaceTempView("visits")
    yield "visits"
    spark.catalog.dropTempView("visits")


# --- sources -----------------------------------------------------------------------------------------------------


def test_frames_sessions_and_tables(spark: SparkSession, view: str) -> None:
    """Frames and sessions need no engine named, and nothing is left behind."""
    tables = spark.sql("SHOW TABLES").toArrow()
    settings = dict(spark.sparkContext.getConf().getAll())
    assert counted(spark.table(view), settings=None) == COUNTED
    assert counted(spark.table(view), WEIGHTED, settings=None, k=2) == [1, 1]
    assert counted(spark, table=view, settings=None) == COUNTED
    assert counted(view) == COUNTED
    assert spark.sql("SHOW TABLES").toArrow() == tables
    assert dict(spark.sparkContext.getConf().getAll()) == settings
    assert spark.range(1).count() == 1  # the session still runs


def test_files(spark: SparkSession, tmp_path: Path) -> None:
    """Nested folders, what writers leave beside their files, and values that stand in the names of folders."""
    log = tmp_path / "log [1] *{x}"
    (log / "more").mkdir(parents=True)
    (log / "_temporary").mkdir()
    pq.write_table(LOG.slice(0, 2), log / "a.parquet")
    pq.write_table(LOG.slice(2), log / "more" / "b?.parquet")
    pq.write_table(LOG, log / "_temporary" / "c.parquet")
    assert counted(log) == COUNTED
    assert counted(str(log / "a.parquet")) == [2, 0]
    for name in ("007", "7"):
        (tmp_path / "parts" / f"id={name}").mkdir(parents=True)
        pq.write_table(LOG.select(["at"]), tmp_path / "parts" / f"id={name}" / "a.parquet")
    assert counted(tmp_path / "parts") == [2, 2]
    assert spark.conf.get("spark.sql.sources.partitionColumnTypeInference.enabled") == "true"
    assert counted(f"{tmp_path}/parts/id=?/*.parquet", EventColumns("at", "at")) == [1, 1]
    assert counted(f"file://{tmp_path}/parts", EventColumns("at", "at")) == [1, 1]


def test_what_spark_writes_is_read_alike(spark: SparkSession, tmp_path: Path) -> None:
    """Instants in the old form INT96, its default, and local times, by both engines."""
    frame = spark.sql(
        "SELECT id, timestamp_seconds(1357016340 + 60 * id) AS at, TIMESTAMP_NTZ'2013-01-01 23:59:00' AS local "
        "FROM range(3)"
    )
    frame.coalesce(1).write.parquet(str(tmp_path / "written"))
    days = Timeline("2012-12-31", "2013-01-03", time_zone="America/New_York")
    for settings in (SPARK, None):
        assert counted(tmp_path / "written", timeline=days, settings=settings) == [1, 2, 0]
        assert counted(tmp_path / "written", EventColumns("id", "local"), days, settings=settings) == [0, 3, 0]


def test_sources_that_are_refused(spark: SparkSession, view: str, tmp_path: Path) -> None:
    duckdb.connect(tmp_path / "a.duckdb").close()
    (tmp_path / "a.jsonl").write_text('{"id": 1, "at": 0}')
    (tmp_path / "torn.parquet").write_bytes(b"PAR1 and then nothing")
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    pq.write_table(pa.table({"id": [1], "at": [0]}), mixed / "a.parquet")
    pq.write_table(pa.table({"id": ["1"], "at": [0]}), mixed / "b.parquet")
    pq.write_table(pa.table({"id": [1], "at": pa.array([0], pa.timestamp("ns"))}), tmp_path / "nano.parquet")
    (tmp_path / "csv").mkdir()
    (tmp_path / "csv" / "a.csv").write_text("id,at\na,0\n")
    (tmp_path / "delta" / "_delta_log").mkdir(parents=True)
    pq.write_table(LOG, tmp_path / "delta" / "a.parquet")
    cases: list[tuple[object, dict[str, Any], str]] = [
        (tmp_path / "none.parquet", {}, "there is no file or directory"),
        ("none/of/these", {}, "there is no file or directory"),
        ("nowhere.visits", {}, r"Spark cannot read the events \(TABLE_OR_VIEW_NOT_FOUND\)"),
        ("not a name", {}, r"Spark cannot read the events \(PARSE_SYNTAX_ERROR\)"),
        (f"file://{tmp_path}/none", {}, r"Spark cannot read the events \(PATH_NOT_FOUND\)"),
        (tmp_path / "a.duckdb", {}, "reads Parquet and CSV files, and .* is DuckDB; leave --engine out for DuckDB"),
        (tmp_path / "a.jsonl", {}, "reads Parquet and CSV files, and .* is JSON Lines"),
        (tmp_path / "torn.parquet", {}, "it is no whole Parquet file"),
        (tmp_path / "nano.parquet", {}, "the time column 'at' holds nanoseconds, which Spark does not read"),
        (mixed, {}, r"item column 'id' has different types in different files \(int64, string\)"),
        ("spark://host:7077", {}, "give the address of a cluster as --spark-master"),
        (view, {"table": "visits"}, "the table's name takes the place of the path"),
        (spark, {}, "a Spark session has many tables: name one with table"),
        (spark.table(view), {"table": "visits"}, "a Spark data frame is one already"),
        (LOG, {}, "the engine spark reads a path, .* got Table"),
        ("nowhere.at.all.visits", {}, r"Spark cannot read the events \(REQUIRES_SINGLE_PART_NAMESPACE\)"),
        (
            f"file://{mixed.parent}/csv",
            {},
            "there is a file that is not Parquet, and .* address ends as those of CSV files",
        ),
        (f"file://{mixed.parent}/delta", {}, "holds a table in the format of Delta, Hudi or Iceberg"),
        (f"{mixed.parent}/delta", {}, "holds a table in the format of Delta, Hudi or Iceberg"),
        (spark.readStream.format("rate").load(), {}, "a streaming data frame has no end to count up to"),
    ]
    for source, options, message in cases:
        with pytest.raises(InputError, match=message):
            counted(source, **options)
    with pytest.raises(
        InputError, match=r"no column 'Id' for the item \(did you mean 'id'\?\); its columns are id, at, n"
    ):
        counted(view, EventColumns("Id", "at"))


def test_addresses_that_cannot_be_reached_have_their_reason(spark: SparkSession) -> None:
    """Each of these fails before anything is sent over a network."""
    for address, message in (
        ("s3a://bucket/visits", "it has no connector for such addresses"),
        ("s3a://bucket/visits.csv", "it has no connector for such addresses"),
        ("none://bucket/visits", "it has no connector for such addresses"),
        ("hdfs://127.0.0.1:1/visits", "nothing answers at the address"),
    ):
        with pytest.raises(EngineError, match=message):
            counted(address)


def test_a_damaged_file_is_an_input_error(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "damaged.parquet"
    pq.write_table(pa.table({"id": [f"item-{i}" for i in range(10_000)], "at": list(range(10_000))}), path)
    content = bytearray(path.read_bytes())
    content[4:2000] = b"\xff" * 1996
    path.write_bytes(bytes(content))
    with pytest.raises(InputError, match=r"Spark cannot read the events \(FAILED_READ_FILE") as caught:
        counted(path)
    assert "item-" not in str(caught.value)


@pytest.mark.parametrize("name", ["x\"; it's", "a`b.c", "count", "{0} %s \\ Ü"])
def test_any_name_is_only_a_name(spark: SparkSession, name: str) -> None:
    frame = spark.createDataFrame(LOG.rename_columns([name, "at", "n"]))
    assert counted(frame, EventColumns(name, "at")) == COUNTED


# --- items, times and counts ---------------------------------------------------------------------------------------


def test_items_are_told_apart(spark: SparkSession) -> None:
    """One frame with a column of each type; collations, spaces, and bytes that are no UTF-8."""
    texts = ["a", "A", "a ", "ä", "a\u0308", ""]
    spark.createDataFrame([(text,) for text in texts * 2], "text string").createOrReplaceTempView("texts")
    frame = spark.sql(
        "SELECT 0 AS at, text, text COLLATE UNICODE_CI_AI AS unaccented, text COLLATE UTF8_BINARY_RTRIM AS trimmed, "
        "CAST(concat(CAST(text AS BINARY), X'FF') AS STRING) AS broken FROM texts"
    )
    for name in frame.columns[1:]:
        assert counted(frame, EventColumns(name, "at")) == [len(texts), 0], name
    others = {
        "integer": [2**53, 2**53 + 1],
        "decimal": [Decimal("1.10"), Decimal("1.11")],
        "instant": pa.array([datetime(2013, 1, 1), datetime(2013, 1, 1, 0, 0, 0, 1)], pa.timestamp("us", "UTC")),
    }
    frame = spark.createDataFrame(pa.table({"at": pa.array([0, 0], pa.int64()), **others}))
    for name in others:
        assert counted(frame.union(frame), EventColumns(name, "at")) == [2, 0], name


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("CAST(1 AS DOUBLE)", "of type DOUBLE, and floating-point numbers do not identify items"),
        ("CAST(1 AS FLOAT)", "of type FLOAT, and floating-point"),
        ("array(1)", "nested type ARRAY<INT>; make one of its fields"),
        ("map(1, 2)", "nested type MAP<INT,INT>"),
        ("struct(1)", "nested type STRUCT"),
        ("parse_json('1')", "nested type VARIANT"),
        ("INTERVAL '1' MONTH", "of type INTERVAL MONTH; items must be"),
    ],
)
def test_items_that_are_refused(spark: SparkSession, expression: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        counted(spark.sql(f"SELECT {expression} AS id, 0 AS at"))


@pytest.mark.parametrize(
    ("expression", "timeline", "message"),
    [
        ("1.5", DAYS, r"of type DECIMAL\(2,1\); steps of 1d need"),
        ("'secret'", DAYS, "the time column 'at' is text and not all of it can be read; expected ISO 8601"),
        ("'1.5'", STEPS, "the time column 'at' is text .* expected whole numbers, since the timeline"),
    ],
)
def test_times_that_do_not_fit(spark: SparkSession, expression: str, timeline: Timeline, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        counted(spark.sql(f"SELECT 1 AS id, {expression} AS at"), timeline=timeline)
    assert "secret" not in str(caught.value)


def test_local_times_do_not_depend_on_the_session(spark: SparkSession) -> None:
    """02:45 on 14 March 2021 did not happen in New York; without ANSI mode integers would wrap in silence."""
    frame = spark.sql("SELECT id, TIMESTAMP_NTZ'2021-03-14 02:45:59.999999' AS at FROM range(3)")
    minutes = Timeline("2021-03-14T02:45", "2021-03-14T02:47", "1m", "UTC")
    before = {name: spark.conf.get(name) for name in ("spark.sql.session.timeZone", "spark.sql.ansi.enabled")}
    try:
        for zone, ansi in (("America/New_York", "false"), ("Australia/Lord_Howe", "true")):
            spark.conf.set("spark.sql.session.timeZone", zone)
            spark.conf.set("spark.sql.ansi.enabled", ansi)
            assert counted(frame, timeline=minutes) == [3, 0]
    finally:
        for name, value in before.items():
            spark.conf.set(name, str(value))


def test_counts(spark: SparkSession, tmp_path: Path) -> None:
    huge = 2**63 - 1
    rows = [("a", huge), ("a", huge), ("b", 1), ("b", 1), ("c", 0), ("d", -5), ("e", None)]
    ids, counts = zip(*rows, strict=True)
    frame = spark.createDataFrame(pa.table({"id": ids, "at": pa.array([0] * 7, pa.int64()), "n": counts}))
    assert [counted(frame, WEIGHTED, k=k)[0] for k in (1, 3)] == [2, 1]
    texts = [str(count) for count in counts[:6]] + ["9" * 60, "-" + "9" * 60, " +2 "]
    table = pa.table({"id": list("aabbcdfgh"), "at": pa.array([0] * 9, pa.int64()), "n": texts})
    assert [counted(spark.createDataFrame(table), WEIGHTED, k=k)[0] for k in (1, 3)] == [4, 2]
    unsigned = pa.table(
        {"id": [1, 2], "at": pa.array([2**64 - 1, 1], pa.uint64()), "n": pa.array([1, 2**64 - 1], pa.uint64())}
    )
    pq.write_table(unsigned, tmp_path / "unsigned.parquet")
    assert counted(tmp_path / "unsigned.parquet", WEIGHTED, k=9) == [0, 1]
    for expression, message in (
        ("'secret'", "the count column 'n' is text and not all of it can be read; expected whole numbers"),
        ("1.5", "the count column 'n' holds decimals, and not all of them are whole numbers"),
        ("1.5E0", "of type DOUBLE; counts must be of an integer type"),
        ("true", "of type BOOLEAN; counts must be"),
    ):
        with pytest.raises(InputError, match=message) as caught:
            counted(spark.sql(f"SELECT 1 AS id, 0 AS at, {expression} AS n"), WEIGHTED)
        assert "secret" not in str(caught.value)


def test_a_column_of_nulls_is_no_event(spark: SparkSession) -> None:
    for names in ("NULL AS id, 0 AS at, 1 AS n", "1 AS id, NULL AS at, 1 AS n", "1 AS id, 0 AS at, NULL AS n"):
        assert counted(spark.sql(f"SELECT {names}"), WEIGHTED) == [0, 0]


# --- what comes to the driver ----------------------------------------------------------------------------------------


def test_no_item_comes_to_the_driver(spark: SparkSession, view: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One action, whose result has four columns of integers and as many rows as there are signed counts."""
    fetched: list[pa.Table] = []
    original = DataFrame.toArrow

    def to_arrow(frame: DataFrame) -> pa.Table:
        fetched.append(original(frame))
        return fetched[-1]

    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError("something but the result was fetched")

    monkeypatch.setattr(DataFrame, "toArrow", to_arrow)
    others = ("collect", "toPandas", "toLocalIterator", "head", "take", "first", "tail", "show", "foreach", "count")
    for action in others:
        monkeypatch.setattr(DataFrame, action, refuse)
    assert counted(spark.table(view)) == COUNTED
    (table,) = fetched
    assert table.column_names == ["k", "step", "recency", "delta"]
    assert all(pa.types.is_integer(field.type) for field in table.schema)
    assert table.num_rows <= 3


# --- settings --------------------------------------------------------------------------------------------------------


def test_a_running_session_takes_no_settings(spark: SparkSession, view: str) -> None:
    for setting in ({"memory_limit": "1GB"}, {"threads": 1}, {"spark_master": "local[1]"}):
        with pytest.raises(
            InputError, match=f"{next(iter(setting))} does not go with the engine spark: a Spark session"
        ):
            counted(view, settings=EngineSettings(engine="spark", **setting))
    with pytest.raises(InputError, match="password_file does not go with the engine spark"):
        counted(view, settings=EngineSettings(engine="spark", password_file=Path(__file__)))


def test_how_a_session_of_our_own_is_set_up(tmp_path: Path) -> None:
    def options(**settings: Any) -> dict[str, Any]:
        SparkSession.builder._options.clear()
        found = dict(_builder(EngineSettings(**settings))._options)
        SparkSession.builder._options.clear()
        return found

    local = options(memory_limit="2GB", threads=3, spill_directory=tmp_path)
    assert local["spark.master"] == "local[3]"
    assert local["spark.driver.memory"] == "1907m"
    assert local["spark.local.dir"] == str(tmp_path)
    assert local["spark.driver.bindAddress"] == "127.0.0.1"
    assert options()["spark.master"] == "local[*]"
    assert options(spark_master="local[2]")["spark.master"] == "local[2]"
    remote = options(spark_master="spark://host:7077")
    assert remote["spark.master"] == "spark://host:7077"
    assert not [name for name in remote if "adaptive" in name or "partitions" in name or "driver" in name]
    with pytest.raises(InputError, match="the executors of a cluster are configured there"):
        options(spark_master="yarn", memory_limit="2GB")
    with pytest.raises(InputError, match="a local master names them"):
        options(spark_master="local", threads=2)
    assert [_mebibytes(limit) for limit in ("512MiB", "1.5GiB", "1TB")] == [512, 1536, 953674]
    with pytest.raises(InputError, match="memory_limit must be at least 512MiB for Spark, got 100MB"):
        _mebibytes("100MB")


def test_without_pyspark_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(InputError, match=r"pip install 'dpwindows\[spark\]'"):
        counted("events.parquet")


# --- from the command line -------------------------------------------------------------------------------------------

ASKED = ("--item", "id", "--time", "at", "--start", "0", "--end", "2", "--step", "1", "--window", "cumulative")
BUDGET = ("--unit", "event", "--epsilon", "1e9")


def estimates(path: Path) -> list[int]:
    return [round(row["estimate"]) for row in json.loads(path.read_text())["rows"]]


def test_a_release_within_a_running_session(spark: SparkSession, view: str, tmp_path: Path) -> None:
    out = tmp_path / "release.json"
    outcome = run("release", view, "--engine", "spark", *ASKED, *BUDGET, "-o", out)
    assert outcome.code == 0, outcome.err
    assert estimates(out) == [2, 2]
    plan = dw.Plan([dw.Cumulative()], timeline=STEPS, unit=dw.EventLevel(), budget=dw.PureDP(1e9))
    sources: list[tuple[object, dict[str, Any]]] = [
        (spark.table(view), {}),
        (spark, {"table": view}),
        (view, {"engine": "spark"}),
    ]
    for source, options in sources:
        release = plan.run(source, item="id", time="at", **options)
        assert [round(value) for value in release.to_arrow()["estimate"].to_pylist()] == [2, 2]


@pytest.mark.slow
def test_a_release_of_files_by_a_spark_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Started with what Spark's own configuration says, used and stopped; nothing is left where the command ran."""
    configuration, work = tmp_path / "configuration", tmp_path / "work"
    configuration.mkdir()
    work.mkdir()
    options = {"spark.sql.shuffle.partitions": "2", **servers.IN_A_HURRY}
    options["spark.driver.extraJavaOptions"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    lines = (f"{name} {value}\n" for name, value in options.items())
    (configuration / "spark-defaults.conf").write_text("".join(lines))
    monkeypatch.setenv("SPARK_CONF_DIR", str(configuration))
    pq.write_table(LOG, work / "log.parquet")
    spark = ("--engine", "spark", "--spark-master", "local[1]", "--memory-limit", "700MB")
    outcome = run_process("release", "log.parquet", *spark, *ASKED, *BUDGET, "-o", "out.json", cwd=work)
    assert outcome.code == 0, outcome.err
    assert estimates(work / "out.json") == [2, 2]
    assert sorted(path.name for path in work.iterdir()) == ["log.parquet", "out.json"]


def test_without_java_it_says_so(tmp_path: Path) -> None:
    pq.write_table(LOG, tmp_path / "log.parquet")
    command = [sys.executable, "-m", "dpwindows", "release", "log.parquet"]
    done = subprocess.run(
        [*command, "--engine", "spark", *ASKED, *BUDGET, "-o", "out.json"],
        env={**os.environ, "JAVA_HOME": str(tmp_path / "no-java")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "Error: Spark did not start: it needs Java 17 or newer" in done.stderr
    assert "Traceback" not in done.stderr
