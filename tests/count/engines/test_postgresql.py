"""PostgreSQL: what is read, what is refused, and that nothing is written and no item leaves the server."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy

import dpwindows as dw
from dpwindows.ask.timeline import Timeline
from dpwindows.count.events import EngineSettings, EventColumns
from dpwindows.errors import EngineError, InputError
from tests.count.engines.servers import PostgreSQL
from tests.counting import in_steps
from tests.end_to_end.command_line import run
from tests.ledger.interrupter import interrupted

pytestmark = pytest.mark.xdist_group("postgresql")

STEPS = Timeline.of_steps(2)
DAYS = Timeline("2013-01-01", "2013-01-06")
COLUMNS = EventColumns("id", "at")


@pytest.fixture
def owner(server: PostgreSQL) -> Iterator[psycopg.Connection]:
    """A connection of the owner, whose tables the reader may read."""
    with server.connect() as connection:
        connection.execute("ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO reader")
        yield connection


def counted(source: object, columns: EventColumns = COLUMNS, timeline: Timeline = STEPS, **options: Any) -> list[int]:
    return in_steps(source, columns, timeline, **{"table": "log", **options})


# --- items ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("text COLLATE blind", ["a", "A", "ä", "a "]),
        ("citext", ["a", "A", "a "]),
        ("citext COLLATE blind", ["a", "A"]),
        ("varchar(9) COLLATE blind", ["a", "A"]),
        ("code", ["a", "A"]),  # a domain over text that ignores case
        ("bpchar", ["a", "a ", "A"]),
        ("bpchar COLLATE blind", ["a", "A"]),
        ('"char"', ["a", "b"]),
        ("name", ["a", "A"]),
        ("mood", ["sad", "happy"]),  # an enumeration
        ("uuid", ["00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"]),
        ("numeric", ["0.1", "0.10000000000000000001", "1e40"]),
        ("bigint", ["9007199254740993", "9007199254740992"]),
        ("bytea", ["\\x00", "\\x0000"]),
        ("boolean", ["true", "false"]),
        ("date", ["2013-01-01", "infinity"]),
        ("timestamptz", ["2013-01-01 00:00:00.000001+00", "2013-01-01 00:00:00+00"]),
        ("inet", ["10.0.0.1", "10.0.0.2"]),
        ("bit varying", ["1", "10"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_items_are_told_apart(server: PostgreSQL, owner: psycopg.Connection, kind: str, values: list[str]) -> None:
    owner.execute("CREATE EXTENSION IF NOT EXISTS citext")
    owner.execute(
        "CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level1-ka-shifted', deterministic = false)"
    )
    owner.execute(
        "CREATE DOMAIN code AS text COLLATE blind CHECK (value <> 'x'); CREATE TYPE mood AS ENUM ('sad', 'happy')"
    )
    owner.execute(f"CREATE TABLE log (id {kind}, at integer)")
    for value in [*values, *values, None]:
        owner.execute("INSERT INTO log VALUES (%s, 0)", [value])
    assert counted(server.address()) == [len(values), 0]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("real", "item column 'id' is of type REAL, and floating-point numbers do not identify items"),
        ("double precision", "of type DOUBLE PRECISION, and floating-point"),
        ("integer[]", r"nested type INTEGER\[\]; make one of its fields"),
        ("jsonb", "nested type JSONB"),
        ("int4range", "nested type INT4RANGE"),
        ("interval", "of type INTERVAL; items must be"),  # 30 days and a month are equal
        ("money", "of type MONEY; items must be"),
        ("point", "of type POINT; items must be"),
    ],
)
def test_items_that_are_refused(server: PostgreSQL, owner: psycopg.Connection, kind: str, message: str) -> None:
    owner.execute(f"CREATE TABLE log (id {kind}, at integer)")
    with pytest.raises(InputError, match=message):
        counted(server.address())


# --- times and counts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["date", "timestamp", "timestamptz", "timestamp(0)"])
def test_times_far_outside_are_no_error(server: PostgreSQL, owner: psycopg.Connection, kind: str) -> None:
    last = "5874897-12-31" if kind == "date" else "294276-12-31"
    owner.execute(f"CREATE TABLE log (id integer GENERATED ALWAYS AS IDENTITY, at {kind})")
    for time in ("infinity", "-infinity", last, "4713-01-01 BC", "2013-01-02", "2013-01-05", "2013-01-06"):
        owner.execute(f"INSERT INTO log (at) VALUES ('{time}')")
    assert counted(server.address(), timeline=DAYS) == [0, 1, 0, 0, 1]


@pytest.mark.parametrize(
    ("time", "timeline", "message"),
    [
        ("CAST(1 AS numeric)", DAYS, "of type NUMERIC; steps of 1d need"),
        ("CAST('1:00' AS time)", DAYS, "of type TIME WITHOUT TIME ZONE; steps of 1d"),
        ("true", STEPS, "of type BOOLEAN, but the timeline has integer steps"),
        ("'secret'", DAYS, "the time column 'at' is text and not all of it can be read; expected ISO 8601"),
        ("'2013-02-30'", DAYS, "the time column 'at' is text .* expected ISO 8601"),
        ("'1.5'", STEPS, "the time column 'at' is text .* expected whole numbers, since the timeline"),
    ],
)
def test_times_that_do_not_fit(
    server: PostgreSQL, owner: psycopg.Connection, time: str, timeline: Timeline, message: str
) -> None:
    owner.execute(f"CREATE TABLE log AS SELECT 1 AS id, {time} AS at".encode())
    with pytest.raises(InputError, match=message) as caught:
        counted(server.address(), timeline=timeline)
    assert time.strip("'") not in str(caught.value)
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_counts(server: PostgreSQL, owner: psycopg.Connection) -> None:
    weighted = EventColumns("id", "at", "n")
    owner.execute("CREATE TABLE log (id text, at integer, n bigint)")
    owner.execute("INSERT INTO log VALUES ('a', 0, 9223372036854775807), ('a', 0, 9223372036854775807)")
    owner.execute("INSERT INTO log VALUES ('b', 0, 1), ('b', 0, 1), ('c', 0, 0), ('d', 0, -5), ('e', 0, NULL)")
    assert [counted(server.address(), weighted, k=k)[0] for k in (1, 2, 3)] == [2, 2, 1]
    owner.execute("CREATE TABLE texts AS SELECT id, at, CAST(n AS text) AS n FROM log")
    owner.execute(f"INSERT INTO texts VALUES ('f', 0, '{'9' * 60}'), ('g', 0, '-{'9' * 60}'), ('h', 0, ' +2 ')")
    assert [counted(server.address(), weighted, k=k, table="texts")[0] for k in (1, 2, 3)] == [4, 4, 2]
    owner.execute("INSERT INTO texts VALUES ('f', 0, 'secret')")
    with pytest.raises(InputError, match="the count column 'n' is text and not all of it") as caught:
        counted(server.address(), weighted, table="texts")
    assert "secret" not in str(caught.value)
    owner.execute("CREATE TABLE sums AS SELECT id, at, sum(n) AS n FROM log GROUP BY id, at")
    assert [counted(server.address(), weighted, k=k, table="sums")[0] for k in (1, 2, 3)] == [2, 2, 1]
    owner.execute("CREATE TABLE wide (id text, at numeric, n numeric)")
    owner.execute("INSERT INTO wide VALUES ('a', 0, 1e100), ('b', 0.000, -1e100), ('c', 1e100, 1), ('d', -1e100, 1)")
    owner.execute("INSERT INTO wide VALUES ('e', 1.0, 2.00), ('f', 1, 3)")
    assert counted(server.address(), weighted, k=3, table="wide") == [1, 1]
    for value in ("0.5", "NaN", "Infinity", "-Infinity", "1.00000000000000000000000001"):
        owner.execute(
            f"DROP TABLE IF EXISTS other; CREATE TABLE other AS SELECT * FROM wide; "
            f"INSERT INTO other VALUES ('g', 0, '{value}')"
        )
        with pytest.raises(InputError, match="the count column 'n' holds decimals, and not all of them are whole"):
            counted(server.address(), weighted, table="other")
    for kind in ("real", "boolean"):
        owner.execute(f"DROP TABLE IF EXISTS other; CREATE TABLE other (id text, at integer, n {kind})")
        with pytest.raises(InputError, match=f"of type {kind.upper()}; counts must be of an integer type"):
            counted(server.address(), weighted, table="other")


# --- tables and names -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ['x"; DROP TABLE log; --', "it's", "100%", "%s %(a)s", ":name", "Ünï", "a.b", "\\", "count"]
)
def test_any_name_is_only_a_name(server: PostgreSQL, owner: psycopg.Connection, name: str) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    owner.execute(f"CREATE TABLE {quoted} AS SELECT 'a' AS {quoted}, 0 AS at".encode())
    assert counted(server.address(), EventColumns(name, "at"), table=name) == [1, 0]


def test_views_schemas_partitions(server: PostgreSQL, owner: psycopg.Connection) -> None:
    owner.execute("DROP SCHEMA IF EXISTS logs CASCADE; CREATE SCHEMA logs; GRANT USAGE ON SCHEMA logs TO reader")
    owner.execute("CREATE TABLE logs.visits (id integer, at integer) PARTITION BY RANGE (at)")
    owner.execute("CREATE TABLE logs.early PARTITION OF logs.visits FOR VALUES FROM (0) TO (1)")
    owner.execute("CREATE TABLE logs.late PARTITION OF logs.visits FOR VALUES FROM (1) TO (2)")
    owner.execute("INSERT INTO logs.visits SELECT i, i % 2 FROM generate_series(1, 5) AS i")
    owner.execute("CREATE VIEW shown AS SELECT id, at FROM logs.visits WHERE id < 5")
    owner.execute("CREATE MATERIALIZED VIEW kept AS SELECT * FROM logs.visits")
    owner.execute("GRANT SELECT ON ALL TABLES IN SCHEMA logs TO reader")
    assert counted(server.address(), table="logs.visits") == [2, 3]
    assert counted(server.address(), table="shown") == [2, 2]
    assert counted(server.address(), table="public.kept") == [2, 3]
    with pytest.raises(InputError, match=r"has no table 'visit' \(did you mean 'logs.visits'\?\); its tables are kept"):
        counted(server.address(), table="visit")
    with pytest.raises(InputError, match=r"tables, name one of them: kept, shown, logs\.early"):
        counted(server.address(), table=None)
    with pytest.raises(
        InputError, match=r"no column 'ID' for the item \(did you mean 'id'\?\); its columns are id, at"
    ):
        counted(server.address(), EventColumns("ID", "at"), table="shown")


def test_names_as_sql_quotes_them(server: PostgreSQL, owner: psycopg.Connection) -> None:
    """Where a schema, a table or both have a dot in their names, a name without quotes may mean several tables."""
    owner.execute('DROP SCHEMA IF EXISTS "My Logs" CASCADE; CREATE SCHEMA "My Logs"')
    owner.execute('GRANT USAGE ON SCHEMA "My Logs" TO reader')
    owner.execute("""CREATE TABLE "My Logs"."order" AS SELECT 'a' AS "User Id", 0 AS "end" """)
    owner.execute("""CREATE TABLE "My Logs.order" AS SELECT 'a' AS "User Id", 1 AS "end" """)
    owner.execute('GRANT SELECT ON "My Logs"."order" TO reader')
    columns = EventColumns("User Id", "end")
    assert counted(server.address(), columns, table='"My Logs"."order"') == [1, 0]
    assert counted(server.address(), columns, table="public.My Logs.order") == [0, 1]
    assert counted(server.address(), columns, table='"My Logs.order"') == [0, 1]
    with pytest.raises(
        InputError,
        match=r"""has 2 tables that 'My Logs\.order' may mean; .*: "public"."My Logs.order", "My Logs"."order"$""",
    ):
        counted(server.address(), columns, table="My Logs.order")
    owner.execute('DROP SCHEMA "My Logs" CASCADE')


# --- reading only ---------------------------------------------------------------------------------------------


def test_select_on_three_columns_of_one_snapshot_is_all_it_takes(server: PostgreSQL, owner: psycopg.Connection) -> None:
    """The role may make no temporary table; the view has rows only where nothing can be written or seen half."""
    owner.execute("CREATE TABLE log (id text, at integer, n integer, secret text)")
    owner.execute("INSERT INTO log VALUES ('a', 0, 2, 's'), ('b', 1, 2, 's')")
    owner.execute("REVOKE ALL ON log FROM reader; GRANT SELECT (id, at, n) ON log TO reader")
    weighted = EventColumns("id", "at", "n")
    assert counted(server.address(), weighted, k=2) == [1, 1]
    owner.execute(
        "CREATE VIEW guarded AS SELECT * FROM log WHERE current_setting('transaction_read_only') = 'on' "
        "AND current_setting('transaction_isolation') = 'repeatable read'"
    )
    assert counted(server.address(), weighted, table="guarded", k=2) == [1, 1]
    assert owner.execute("SELECT has_database_privilege('reader', 'logs', 'TEMPORARY')").fetchall() == [(False,)]
    with pytest.raises(InputError, match="permission denied for table log; the role needs SELECT"):
        counted(server.address(), EventColumns("secret", "at"))
    owner.execute(
        "DROP SCHEMA IF EXISTS hidden CASCADE; CREATE SCHEMA hidden; CREATE TABLE hidden.log (id text, at integer)"
    )
    with pytest.raises(InputError, match="permission denied for schema hidden; the role needs USAGE on their schema"):
        counted(server.address(), table="hidden.log")
    owner.execute("DROP SCHEMA hidden CASCADE")


def test_what_the_server_ends_has_its_reason(server: PostgreSQL, owner: psycopg.Connection) -> None:
    owner.execute("CREATE TABLE log AS SELECT i AS id, 0 AS at FROM generate_series(1, 2) AS i")
    owner.execute("CREATE MATERIALIZED VIEW unfilled AS SELECT * FROM log WITH NO DATA")
    owner.execute("CREATE VIEW endless AS SELECT log.* FROM log, pg_sleep(600)")
    with pytest.raises(EngineError, match=r"SQLSTATE 55000 .*: a materialized view was never filled"):
        counted(server.address(), table="unfilled")
    with pytest.raises(EngineError, match=r"SQLSTATE 57014 .*: it stopped the query: statement_timeout ran out"):
        counted(server.address() + "?options=-cstatement_timeout%3D2000", table="endless")


def test_no_item_leaves_the_server(
    server: PostgreSQL, owner: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A megabyte of items is counted, and what the server sends is the small table."""
    owner.execute(
        "CREATE TABLE log AS SELECT 'item-' || md5(i::text) AS id, i % 7 AS at FROM generate_series(1, 30000) AS i"
    )
    # What is sent must be read.
    monkeypatch.setenv("PGSSLMODE", "disable")
    monkeypatch.setenv("PGGSSENCMODE", "disable")
    with interrupted(server.port) as line:
        days = counted(server.address(port=line.port), timeline=Timeline.of_steps(7))
    assert days == [30000 // 7 + (step in range(1, 6)) for step in range(7)]
    assert b"item-" not in line.answers
    # The answers to the probe are 16 kB, where nobody has asked before; items would be 900.
    assert 300 < len(line.answers) < 40_000


def test_a_sqlalchemy_engine(server: PostgreSQL, owner: psycopg.Connection) -> None:
    """Only selects, and the engine is as before."""
    owner.execute("CREATE TABLE log AS SELECT 'a' AS id, 0 AS at")
    engine = sqlalchemy.create_engine(server.address().replace("postgresql", "postgresql+psycopg"))
    said: list[str] = []
    sqlalchemy.event.listen(engine, "before_cursor_execute", lambda *arguments: said.append(arguments[2]))
    assert counted(engine) == [1, 0]
    assert len(said) > 2
    assert all(re.match(r"\s*(SELECT|WITH)\b", statement) for statement in said)
    with engine.connect() as connection:
        settings = connection.execute(sqlalchemy.text("SHOW transaction_isolation")).scalar_one()
        assert settings == "read committed"
        with pytest.raises(InputError, match="or through a SQLAlchemy engine for it"):
            counted(connection)
    with pytest.raises(InputError, match="password_file does not go with the engine postgresql"):
        counted(engine, settings=EngineSettings(password_file=Path(__file__)))
    engine.dispose()


def test_a_table_as_sqlalchemy_describes_it(
    server: PostgreSQL, owner: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The executor for databases that have none of their own."""
    monkeypatch.setattr("dpwindows.count.engines.sql._OWN_EXECUTORS", ())
    owner.execute("CREATE TABLE log AS SELECT 'a' AS id, TIMESTAMPTZ '2013-01-02 00:00+00' AS at, 3 AS n")
    assert counted(server.address(), EventColumns("id", "at", "n"), DAYS, k=3, table="public.log") == [0, 1, 0, 0, 0]
    with pytest.raises(InputError, match=r"the database has no table 'lag' \(did you mean 'log'\?\)"):
        counted(server.address(), table="lag")
    owner.execute("UPDATE log SET n = 1; ALTER TABLE log ALTER COLUMN at TYPE text USING 'secret'")
    with pytest.raises(InputError, match="the time column 'at' is text and not all of it can be read") as caught:
        counted(server.address(), timeline=DAYS)
    assert "secret" not in str(caught.value)
    with pytest.raises(EngineError, match=r"^the database failed \(\w+\)$"):
        counted("postgresql://reader@127.0.0.1:1/logs")


# --- connecting -----------------------------------------------------------------------------------------------


def test_the_password_comes_from_the_environment_or_a_file(
    cluster: PostgreSQL, owner: psycopg.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner.execute("CREATE TABLE log AS SELECT 'a' AS id, 0 AS at")
    monkeypatch.delenv("PGPASSWORD")
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "none"))
    with pytest.raises(EngineError, match=r"the database cannot be reached: .*no password supplied"):
        counted(cluster.address())
    passwords = tmp_path / "pgpass"
    passwords.write_text(f"127.0.0.1:{cluster.port}:logs:reader:{cluster.password}\n")
    passwords.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(passwords))
    assert counted(cluster.address()) == [1, 0]
    file = tmp_path / "password"
    file.write_text(f"{cluster.password}\n")
    monkeypatch.setenv("PGPASSWORD", "wrong")
    assert counted(cluster.address(), settings=EngineSettings(password_file=file)) == [1, 0]
    assert counted(cluster.address(), settings=EngineSettings(password_file=file, engine="postgresql")) == [1, 0]
    with pytest.raises(EngineError, match='password authentication failed for user "reader"'):
        counted(cluster.address())
    file.write_text("\n")
    with pytest.raises(InputError, match=r"the first line of the password file .* is empty"):
        counted(cluster.address(), settings=EngineSettings(password_file=file))


def test_a_server_that_is_not_there_or_cannot_be_reached_without_a_library(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EngineError, match=r"the database cannot be reached: .*refused"):
        counted("postgresql://reader@127.0.0.1:1/logs")
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    monkeypatch.setitem(sys.modules, "sqlalchemy.engine", None)
    with pytest.raises(InputError, match=r"pip install 'dpwindows\[sql\]'"):
        counted("postgresql://h/d")


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("postgresql://h:port/d", {}, "the connection address cannot be read; it is written engine://user@host"),
        (
            "postgresql+nodriver://h/d",
            {},
            r"the driver nodriver is not installed; write postgresql://\.\.\. for the one of the package that",
        ),
        ("postgresql://127.0.0.1:1/d?bogus=1", {}, 'the connection address cannot be read: .*option "bogus"'),
        ("events.parquet", {"engine": "postgresql"}, "reads a table that is named with --table, at a connection"),
        ("sqlite:///x.db", {"engine": "postgresql"}, "belong to the engine duckdb, and postgresql does not read them"),
        ("postgresql://h/d", {"memory_limit": "1GB"}, r"memory_limit does not go with the engine postgresql.*work_mem"),
        ("postgresql://h/d", {"threads": 2}, "threads does not go with the engine postgresql"),
        ("postgresql://h/d", {"spark_master": "yarn"}, "spark_master does not go with the engine postgresql"),
    ],
)
def test_requests_that_make_no_sense(source: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        counted(source, settings=EngineSettings(**options))


# --- from the command line ------------------------------------------------------------------------------------


def test_a_release_of_a_table(server: PostgreSQL, owner: psycopg.Connection, tmp_path: Path) -> None:
    owner.execute("CREATE TABLE visits (who text, at timestamptz, times integer)")
    rows = [("ann", datetime(2013, 1, 1, 5), 2), ("ann", datetime(2013, 1, 3, 4, 59), 1)]
    rows += [("bob", datetime(2013, 1, 3), 1)]
    for who, at, times in rows:
        owner.execute("INSERT INTO visits VALUES (%s, %s, %s)", [who, f"{at}+00", times])
    out = tmp_path / "release.json"
    asked = ("--item", "who", "--time", "at", "--count", "times", "--start", "2013-01-01", "--end", "2013-01-05")
    zone = ("--time-zone", "America/New_York", "--window", "cumulative", "--at-least", "1", "--at-least", "3")
    privacy = ("--unit", "event", "--epsilon", "1e9")
    outcome = run("release", server.address(), "--table", "visits", *asked, *zone, *privacy, "-o", out)
    assert outcome.code == 0, outcome.err
    estimates = [round(row["estimate"]) for row in json.loads(out.read_text())["rows"]]
    assert estimates == [1, 2, 2, 2, 0, 1, 1, 1]
    assert "127.0.0.1" not in out.read_text()
    plan = dw.Plan(
        [dw.Cumulative()], timeline=dw.Timeline("2013-01-01", "2013-01-05"), unit=dw.EventLevel(), budget=dw.PureDP(1e9)
    )
    release = plan.run(server.address(), item="who", time="at", table="visits", engine="postgresql")
    assert [round(value) for value in release.to_arrow()["estimate"].to_pylist()] == [1, 1, 2, 2]


def test_a_password_on_the_command_line_is_refused(tmp_path: Path) -> None:
    asked = ("--item", "who", "--time", "at", "--start", "2013-01-01", "--end", "2013-01-05", "--window", "cumulative")
    outcome = run(
        "release", "postgresql://me:hunter2@127.0.0.1/logs", "--table", "visits", *asked,
        "--unit", "event", "--epsilon", "1", "-o", tmp_path / "release.csv",
    )  # fmt: skip
    assert outcome.code == 2
    assert "hunter2" not in outcome.err + outcome.out
    assert "PGPASSWORD" in outcome.err
    assert list(tmp_path.iterdir()) == []
