"""Which engine counts: the one named, or the one that a source belongs to; and what is refused by name."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import datafusion
import duckdb
import pyarrow as pa
import pytest
import sqlalchemy

import dpwindows as dw
from dpwindows.count.engines import ENGINES, engine_name
from dpwindows.count.events import EngineSettings, EventColumns, engine_settings
from dpwindows.errors import InputError
from tests.counting import count_events
from tests.end_to_end.command_line import run

ASKED = ("--item", "id", "--time", "at", "--start", "0", "--end", "2", "--step", "1", "--window", "cumulative")
BUDGET = ("--unit", "event", "--epsilon", "1e9")


def chosen(source: object, engine: str | None = None) -> str:
    return engine_name(source, EngineSettings(engine=engine))


def test_a_source_belongs_to_an_engine(tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "log.db").execute("CREATE TABLE log (id, at)").connection.close()
    (tmp_path / "log.sqlite").write_text("no database")
    for address in ("clickhouse://", "clickhousedb://", "clickhouse+native://"):
        assert chosen(f"{address}host/logs") == "clickhouse"
    assert chosen(datafusion.SessionContext()) == "datafusion"
    for address in ("postgresql://", "postgresql+psycopg2://", "postgres://", "POSTGRESQL://"):
        assert chosen(f"{address}host/logs") == "postgresql"
    assert chosen(sqlalchemy.create_engine("postgresql+psycopg://host/logs")) == "postgresql"
    for source in (
        *("sqlite:///log.db", sqlalchemy.create_engine("sqlite://"), tmp_path / "log.db", tmp_path / "log.sqlite"),
        *("events.parquet", "logs/*.csv", "s3://bucket/events.parquet", pa.table({}), duckdb.sql("SELECT 1"), 42),
    ):
        assert chosen(source) == "duckdb"
    assert chosen("events.parquet", "spark") == "spark"
    assert chosen(pa.table({}), "duckdb") == "duckdb"


@pytest.mark.xdist_group("spark")
def test_spark_objects_belong_to_spark(spark: Any) -> None:
    assert chosen(spark) == chosen(spark.range(1)) == "spark"


@pytest.mark.parametrize(
    ("address", "name", "reason"),
    [
        ("mysql://host/logs", "mysql", "no GROUPING SETS"),
        (sqlalchemy.create_mock_engine("mysql+pymysql://host/logs", print), "mysql", "no GROUPING SETS"),
        ("mariadb+pymysql://host/logs", "mariadb", "no GROUPING SETS"),
        ("mssql+pyodbc://host/logs", "mssql", "no RANGE frames with offsets"),
        ("oracle://host/logs", "oracle", "an empty text for null"),
        ("jdbc:mysql://host/logs?password=hunter2", "mysql", "no GROUPING SETS"),
        ("jdbc:sqlserver://host", "sqlserver", "no RANGE frames with offsets"),
        ("cockroachdb://host/logs", "cockroachdb", "nothing has shown that it counts the same"),
        ("awsathena+rest://host/logs", "awsathena", "nothing has shown"),
    ],
)
def test_an_unsupported_dialect_is_refused_by_name(address: object, name: str, reason: str) -> None:
    """Before anything is connected to, and whatever engine is named."""
    for engine in (None, "postgresql"):
        with pytest.raises(InputError, match=f"{name} is not supported: .*{reason}.*; the engines are duckdb, spark"):
            chosen(address, engine)


def test_engines_are_named_once() -> None:
    with pytest.raises(InputError, match=f"there is no engine 'abacus'; the engines are {', '.join(ENGINES)}$"):
        chosen("events.parquet", "abacus")
    assert engine_settings(None, None) == EngineSettings()
    assert engine_settings(EngineSettings(threads=1), "spark") == EngineSettings(threads=1, engine="spark")
    assert engine_settings(EngineSettings(engine="spark"), "spark").engine == "spark"
    with pytest.raises(InputError, match=r"engine is 'spark' but settings\.engine is 'duckdb': give one of them"):
        engine_settings(EngineSettings(engine="duckdb"), "spark")


def test_settings_of_other_engines_are_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    for settings, message in (
        (EngineSettings(password_file=tmp_path / "secret"), "password_file does not go with the engine duckdb"),
        (EngineSettings(spark_master="yarn"), "spark_master does not go with the engine duckdb: it is for Spark"),
    ):
        with pytest.raises(InputError, match=message):
            count_events(pa.table({}), EventColumns("id", "at"), dw.Timeline.of_steps(2), [1], settings=settings)
    with pytest.raises(InputError, match="password_file must be an existing file"):
        EngineSettings(password_file=tmp_path / "none")


@pytest.mark.parametrize(
    "source", ["mongodb://me:hunter2@host", "jdbc:oracle:thin:me/hunter2@host", "postgresql:/me:hunter2@host/logs"]
)
def test_what_may_hold_a_password_is_not_repeated(source: str) -> None:
    with pytest.raises(InputError) as caught:
        count_events(source, EventColumns("id", "at"), dw.Timeline.of_steps(2), [1])
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("source", "options", "words"),
    [
        ("mysql://host/logs", ("--table", "visits"), ["mysql is not supported", "GROUPING SETS"]),
        ("log.csv", ("--engine", "postgresql"), ["--table", "connection address"]),
        ("sqlite:///log.csv", (), ["no SQLite file"]),
        ("sqlite:///log.csv", ("--engine", "spark"), ["the engine duckdb", "spark does not read them"]),
        ("log.csv", ("--spark-master", "yarn"), ["spark_master", "duckdb"]),
        ("log.csv", ("--password-file", "none"), ["--password-file", "existing"]),
        ("log.csv", ("--engine", "mysql"), ["mysql", "duckdb", "postgresql"]),
    ],
)
def test_the_command_line_refuses_and_writes_nothing(
    source: str, options: tuple[str, ...], words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = run("release", source, *options, *ASKED, *BUDGET, "-o", "out.csv").must_refuse()
    assert all(word in outcome.err for word in words), outcome.err
    assert list(tmp_path.iterdir()) == []


def test_every_engine_is_an_option() -> None:
    outcome = run("release", "--help")
    assert f"[{'|'.join(ENGINES)}]" in outcome.out
