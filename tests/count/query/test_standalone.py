"""The query that stands alone: which types and tables it takes, and that its text is read as one statement."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import duckdb
import pytest

from dpwindows.ask.groups import grouping
from dpwindows.ask.timeline import Timeline
from dpwindows.count.dialects import DIALECTS, dialect_named
from dpwindows.count.dialects.duckdb import DuckDB
from dpwindows.count.events import EventColumns
from dpwindows.count.query.standalone import made_for, standalone_probe, standalone_sql
from dpwindows.count.query.wanted import Wanted
from dpwindows.count.request import CountRequest
from dpwindows.errors import InputError

DAYS = Timeline("2021-01-01", "2021-01-13")
ASKED = CountRequest(None, EventColumns("user", "at"), DAYS, Wanted((1, 2)), "visits")
TYPES = {"item": "text", "time": "timestamp"}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_knows_the_plain_words(dialect: str) -> None:
    known = dialect_named(dialect)
    count = "n" if known.ranges else None
    asked = replace(ASKED, columns=EventColumns("user", "at", count))
    for item in ("text", "integer", "decimal"):
        # Times of DataFusion are numbers of the unit that their type names.
        for time in ("timestamp[us]" if dialect == "datafusion" else "timestamp", "date", "text"):
            types = {"item": item, "time": time} | ({"count": "decimal(38, 0)"} if count else {})
            text = standalone_sql(known, asked, types)
            assert "GROUPING SETS ((k, step, recency), ())" in text


@pytest.mark.parametrize(
    ("types", "why"),
    [
        ({"item": "text"}, "of what type the time column 'at' is: give time=TYPE"),
        (TYPES | {"count": "integer"}, "gives a type for 'count'; it takes item, time"),
        (TYPES | {"time": "timestampz"}, r"duckdb has no such type \(did you mean 'timestamptz'\?\)"),
        (TYPES | {"item": "double"}, "the item column 'user' is of type DOUBLE, and floating-point numbers do not"),
        (TYPES | {"item": "float"}, "the item column 'user' is of type FLOAT, and floating-point numbers do not"),
        (TYPES | {"time": "integer"}, "the time column 'at' is of type INTEGER"),
    ],
)
def test_types_that_do_not_serve_are_refused(types: dict[str, str], why: str) -> None:
    with pytest.raises(InputError, match=why):
        standalone_sql(dialect_named("duckdb"), ASKED, types)


def test_a_time_without_its_unit_is_refused() -> None:
    with pytest.raises(InputError, match=r"datafusion has no such type .*one of text, integer, decimal, date, float"):
        standalone_sql(dialect_named("datafusion"), ASKED, TYPES)


@pytest.mark.parametrize("type_name", ["text", "varchar", "VARCHAR(20)"])
def test_text_of_any_length_is_compared_byte_for_byte(type_name: str) -> None:
    text = standalone_sql(dialect_named("duckdb"), ASKED, TYPES | {"item": type_name})
    with duckdb.connect() as connection:
        connection.execute('CREATE TABLE visits ("user" VARCHAR(20) COLLATE NOCASE, "at" TIMESTAMP)')
        connection.execute("INSERT INTO visits VALUES ('a', '2021-01-02'), ('A', '2021-01-02')")
        assert (1, 2, 2, 2) in [row[:4] for row in connection.execute(text).fetchall()]


def test_a_group_that_is_called_like_a_use_is_refused() -> None:
    groups = replace(ASKED, columns=EventColumns("user", "at", grouping=grouping({"item": ["a"]})))
    with pytest.raises(InputError, match="cannot tell the group column 'item' from the item column"):
        standalone_sql(dialect_named("duckdb"), groups, TYPES)


@pytest.mark.parametrize(
    ("table", "quoted"),
    [
        ("visits", '"visits"'),
        ("web.visits", '"web"."visits"'),
        ("shop.web.visits", '"shop"."web"."visits"'),
        ('"web.log".visits', '"web.log"."visits"'),
        ('"a ""b""".c d', '"a ""b"""."c d"'),
        ("it's; DROP TABLE visits", '"it\'s; DROP TABLE visits"'),
    ],
)
def test_tables_are_quoted_part_by_part(table: str, quoted: str) -> None:
    assert f" FROM {quoted})" in standalone_sql(dialect_named("duckdb"), replace(ASKED, table=table), TYPES)


@pytest.mark.parametrize("table", ["", ".", "a.", ".a", "a..b", '"a', '"a"b', 'a"b', None])
def test_what_is_no_name_of_a_table_is_refused(table: str | None) -> None:
    with pytest.raises(InputError, match="--table"):
        standalone_sql(dialect_named("duckdb"), replace(ASKED, table=table), TYPES)


def test_backquotes_are_those_of_spark() -> None:
    text = standalone_sql(dialect_named("spark"), replace(ASKED, table="web.a`b"), TYPES | {"time": "date"})
    assert " FROM `web`.`a``b`)" in text


def test_a_backslash_in_a_name_is_one_in_clickhouse() -> None:
    text = standalone_sql(dialect_named("clickhouse"), replace(ASKED, table="a\\n"), TYPES)
    assert ' FROM "a\\\\n")' in text


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_was_counted_is_said_as_it_is(dialect: str) -> None:
    """Redshift ends the texts that it compares with one more character."""
    known = dialect_named(dialect)
    text = standalone_sql(known, ASKED, TYPES | {"time": "date"})
    assert f"CASE WHEN closing = 1 THEN {known.literal(json.dumps(made_for(ASKED)))} END AS description" in text


@pytest.mark.parametrize("dialect", ["duckdb"])
def test_names_of_any_letters_leave_one_statement(dialect: str) -> None:
    """What the closing row says comes back letter by letter."""
    names: dict[str, Any] = {"item": "it's", "time": 'a "b" \\ -- ;', "count": "ä\n"}
    groups = grouping({"o'": ["x\\'y", '"', "--"]})
    asked = replace(ASKED, columns=EventColumns(**names, grouping=groups), table="t")
    types = {"item": "text", "time": "timestamp", "count": "integer", "o'": "text"}
    text = standalone_sql(dialect_named(dialect), asked, types)
    assert len(duckdb.extract_statements(text)) == 1
    with duckdb.connect() as connection:
        kinds = "TEXT", "TIMESTAMP", "INTEGER", "TEXT"
        quoted = ['"' + name.replace('"', '""') + '"' for name in (*names.values(), "o'")]
        connection.execute(f"CREATE TABLE t ({', '.join(map(' '.join, zip(quoted, kinds, strict=True)))})")
        ((*_, description),) = connection.execute(text).fetchall()
    assert json.loads(description) == json.loads(json.dumps(made_for(asked)))
    assert json.loads(description)["by"] == {"o'": ["x\\'y", '"', "--"]}


def answered(text: str) -> tuple[list[tuple[str, int, int, str | None]], list[str]]:
    """The rows that the statements of a probe give in DuckDB, and what those that fail say."""
    rows, failures = [], []
    with duckdb.connect() as connection:
        for statement in duckdb.extract_statements(text):
            try:
                rows.append(connection.execute(statement).fetchall()[0])
            except duckdb.Error as error:
                failures.append(str(error))
    return rows, failures


def test_a_database_that_is_right_says_so_to_the_probe() -> None:
    rows, failures = answered(standalone_probe(dialect_named("duckdb")))
    assert len(rows) > 15
    assert all(wanted == found > 0 and wrong is None for _, wanted, found, wrong in rows)
    assert len(failures) == 4
    assert all("dpwindows cannot read column" in failure for failure in failures)


def test_a_mistake_is_seen_by_hand_too() -> None:
    """Division with a fraction in place of that of whole numbers."""
    mistaken = DuckDB()
    mistaken.divide = "({}) / ({})"
    rows, _ = answered(standalone_probe(mistaken))
    wrong = {about: (wanted, found, first) for about, wanted, found, first in rows if wanted != found}
    assert "numbers" in wrong
    wanted, found, first = wrong["numbers"]
    assert 0 < found < wanted
    assert first is not None
    assert " divided by " in first
