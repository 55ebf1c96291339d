"""A DuckDB database that somebody hands over is read, and nothing else on this machine, whatever its views ask for."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import duckdb
import pytest

import dpwindows as dw
from dpwindows.ask.timeline import Timeline
from dpwindows.count.engines.duckdb import private_engine
from dpwindows.count.events import EngineSettings, EventColumns
from dpwindows.errors import EngineError, InputError
from dpwindows.stream.stream import Stream
from tests.counting import in_steps

COLUMNS = EventColumns("id", "tm")
STEPS = Timeline.of_steps(3)
QUIET = EngineSettings(progress=False)


def counted(database: Path, table: str, settings: EngineSettings = QUIET) -> list[int]:
    return in_steps(database, COLUMNS, STEPS, table=table, settings=settings)


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    """A folder that its owner alone may read."""
    folder = tmp_path / "private"
    folder.mkdir()
    (folder / "salaries.csv").write_text("id,tm\nann,0\nben,1\n", encoding="utf-8")
    (folder / "log.json").write_text('{"id": "zoe", "tm": 0}\n', encoding="utf-8")
    duckdb.execute(f"COPY (SELECT 'zoe' AS id, 0 AS tm) TO '{folder}/log.parquet'")
    with duckdb.connect(folder / "other.duckdb") as connection:
        connection.execute("CREATE TABLE log AS SELECT 'zoe' AS id, 0 AS tm")
    return folder


READING = {
    "read_csv": "SELECT * FROM read_csv('{0}/salaries.csv')",
    "a name that is a file": "SELECT * FROM '{0}/salaries.csv'",
    "read_parquet": "SELECT * FROM read_parquet('{0}/*.parquet')",
    "read_json": "SELECT * FROM read_json('{0}/log.json')",
    "read_text": "SELECT content AS id, 0 AS tm FROM read_text('{0}/salaries.csv')",
    "read_blob": "SELECT hex(content) AS id, 0 AS tm FROM read_blob('{0}/salaries.csv')",
    "glob": "SELECT file AS id, 0 AS tm FROM glob('{0}/*')",
    "the size of a file": "SELECT filename AS id, size AS tm FROM read_blob('{0}/salaries.csv')",
    "sniff_csv": "SELECT Columns::VARCHAR AS id, 0 AS tm FROM sniff_csv('{0}/salaries.csv')",
    "parquet_schema": "SELECT name AS id, 0 AS tm FROM parquet_schema('{0}/log.parquet')",
    "parquet_metadata": "SELECT stats_min AS id, 0 AS tm FROM parquet_metadata('{0}/log.parquet')",
    "query": "SELECT * FROM query('FROM read_csv(''{0}/salaries.csv'')')",
    "query_table": "SELECT * FROM query_table('{0}/salaries.csv')",
    "a part of a condition": "SELECT id, tm FROM log WHERE EXISTS (FROM read_text('{0}/salaries.csv'))",
    "a macro": "SELECT * FROM other_file()",
    "stored secrets": "SELECT name AS id, 0 AS tm FROM duckdb_secrets()",
}


@pytest.mark.quick(5)
@pytest.mark.parametrize("case", READING)
def test_a_view_cannot_read_files(case: str, secrets: Path, tmp_path: Path) -> None:
    with duckdb.connect(tmp_path / "given.duckdb") as connection:
        connection.execute("CREATE TABLE log AS SELECT 'x' AS id, 0 AS tm")
        connection.execute(f"CREATE MACRO other_file() AS TABLE SELECT * FROM read_csv('{secrets}/salaries.csv')")
        connection.execute(f"CREATE VIEW visits AS {READING[case].format(secrets)}")
    with pytest.raises(InputError, match="a view that reads files outside of its database") as refusal:
        counted(tmp_path / "given.duckdb", "visits")
    assert "make it a table" in str(refusal.value)
    assert "zoe" not in str(refusal.value)
    # The table beside it is read.
    assert counted(tmp_path / "given.duckdb", "log") == [1, 0, 0]


@pytest.mark.parametrize("view", ["SELECT * FROM other.log", "SELECT * FROM other.main.log"])
def test_a_view_cannot_name_another_database(view: str, secrets: Path, tmp_path: Path) -> None:
    """What was attached when it was made is not attached now, and cannot be."""
    with duckdb.connect(tmp_path / "given.duckdb") as connection:
        connection.execute(f"ATTACH '{secrets}/other.duckdb' AS other")
        connection.execute(f"CREATE VIEW visits AS {view}")
    with pytest.raises(InputError, match="visits"):
        counted(tmp_path / "given.duckdb", "visits")


def test_a_view_cannot_read_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`getenv` is a function of DuckDB's command line, and a macro of that name is no more than it says."""
    monkeypatch.setenv("PGPASSWORD", "hunter2")
    with private_engine(QUIET) as connection, pytest.raises(duckdb.CatalogException):
        connection.execute("SELECT getenv('PGPASSWORD')")
    with duckdb.connect(tmp_path / "given.duckdb") as connection:
        connection.execute("CREATE MACRO getenv(name) AS name")
        connection.execute("CREATE VIEW visits AS SELECT getenv('PGPASSWORD') AS id, 0 AS tm")
    assert counted(tmp_path / "given.duckdb", "visits") == [1, 0, 0]


def test_a_stream_reads_no_other_files_either(secrets: Path, tmp_path: Path) -> None:
    with duckdb.connect(tmp_path / "given.duckdb") as connection:
        connection.execute(f"CREATE VIEW visits AS SELECT * FROM read_csv('{secrets}/salaries.csv')")
        connection.execute("CREATE TABLE log AS SELECT 'x' AS id, 0 AS tm")
    plan = dw.StreamPlan([dw.Cumulative()], unit=dw.EventLevel(), budget=dw.PureDP(1.0))
    stream = Stream.create(tmp_path / "state", plan, item="id", time="tm", start=0, step=1, settings=QUIET)
    with pytest.raises(InputError, match="a view that reads files outside of its database"):
        stream.advance(tmp_path / "given.duckdb", through=1, table="visits")
    stream.advance(tmp_path / "given.duckdb", through=1, table="log")


@pytest.mark.parametrize(
    "attempt",
    [
        *("SET enable_external_access = true", "SET allowed_directories = ['/']"),
        *("SET allowed_paths = ['/etc/passwd']", "RESET enable_external_access", "ATTACH '{0}/other.duckdb' AS other"),
        *("COPY (SELECT 1) TO '{0}/written.csv'", "COPY log FROM '{0}/salaries.csv'", "EXPORT DATABASE '{0}/all'"),
        *("INSTALL httpfs", "LOAD '{0}/any.duckdb_extension'"),
    ],
)
def test_what_is_off_stays_off(attempt: str, secrets: Path, tmp_path: Path) -> None:
    """Nobody asks the engine for any of this; if somebody found a way to, it would be refused."""
    from dpwindows.count.sources.duckdb import find_parts

    with duckdb.connect(tmp_path / "given.duckdb") as connection:
        connection.execute("CREATE TABLE log AS SELECT 'x' AS id, 0 AS tm")
    with private_engine(QUIET) as connection:
        find_parts(connection, tmp_path / "given.duckdb", COLUMNS, None)
        connection.execute("CREATE TEMP TABLE log (id VARCHAR, tm BIGINT)")
        with pytest.raises(duckdb.Error):
            connection.execute(attempt.format(secrets))
    names = sorted(file.name for file in secrets.iterdir())
    assert names == ["log.json", "log.parquet", "other.duckdb", "salaries.csv"]


@pytest.mark.slow
def test_tables_and_views_over_them_are_counted_and_spill(tmp_path: Path) -> None:
    """With less memory than the rows take: what spills is still written and read, and then gone."""
    with duckdb.connect(tmp_path / "given.duckdb") as connection:
        connection.execute(
            "CREATE TABLE log AS SELECT 'a long name of an item to be sorted ' || range // 2 AS id, range % 3 AS tm "
            "FROM range(600000)"
        )
        connection.execute("CREATE VIEW visits AS SELECT * FROM log WHERE tm < 2")
    (tmp_path / "spill").mkdir()
    for limit in ("60MB", "2GB"):
        settings = EngineSettings(limit, tmp_path / "spill", threads=1, progress=False)
        assert counted(tmp_path / "given.duckdb", "log", settings) == [200000] * 3
        assert counted(tmp_path / "given.duckdb", "visits", settings) == [200000, 200000, 0]
    assert not list((tmp_path / "spill").iterdir())


def test_a_database_with_a_log_of_its_last_writes_is_read_with_it(tmp_path: Path) -> None:
    """What stands beside a file that was not closed is part of it."""
    with duckdb.connect(tmp_path / "given.duckdb") as connection:
        connection.execute("SET checkpoint_threshold = '1GB'")
        connection.execute("PRAGMA disable_checkpoint_on_shutdown")
        connection.execute("CREATE TABLE log AS SELECT 'x' AS id, 0 AS tm")
    assert (tmp_path / "given.duckdb.wal").is_file()
    assert counted(tmp_path / "given.duckdb", "log") == [1, 0, 0]


def test_a_connection_of_the_callers_is_left_as_it_is(secrets: Path) -> None:
    connection = duckdb.connect()
    relation = connection.sql(f"SELECT * FROM read_csv('{secrets}/salaries.csv')")
    assert in_steps(relation, COLUMNS, STEPS, settings=QUIET) == [1, 1, 0]
    assert connection.execute("SELECT current_setting('enable_external_access')").fetchall() == [(True,)]


@pytest.mark.parametrize(
    "view", ["load_extension('{0}/any')", "readfile('{0}/salaries.csv')", "writefile('{0}/written', 'x')", "edit('x')"]
)
def test_a_view_of_sqlite_has_no_functions_that_reach_files(view: str, secrets: Path, tmp_path: Path) -> None:
    """They belong to SQLite's command line, or are off where Python opens a file."""
    connection = sqlite3.connect(tmp_path / "given.sqlite")
    connection.execute(f"CREATE VIEW visits AS SELECT {view.format(secrets)} AS id, 0 AS tm")
    connection.close()
    with pytest.raises((InputError, EngineError)) as refusal:
        in_steps(tmp_path / "given.sqlite", COLUMNS, STEPS, table="visits")
    assert "zoe" not in str(refusal.value)
    assert not (secrets / "written").exists()


def test_a_view_of_sqlite_cannot_name_another_file(secrets: Path, tmp_path: Path) -> None:
    other: Any = sqlite3.connect(secrets / "other.sqlite")
    other.execute("CREATE TABLE log AS SELECT 'zoe' AS id, 0 AS tm")
    other.commit()
    other.close()
    connection = sqlite3.connect(tmp_path / "given.sqlite")
    connection.execute(f"ATTACH '{secrets}/other.sqlite' AS other")
    with pytest.raises(sqlite3.OperationalError, match="cannot reference objects in database other"):
        connection.execute("CREATE VIEW visits AS SELECT * FROM other.log")
    connection.close()
