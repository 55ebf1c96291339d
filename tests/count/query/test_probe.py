"""The probe finds what a database makes of the query that is not meant: planted mistakes of a dialect, each by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from dpwindows.ask.timeline import Timeline
from dpwindows.count.dialects.duckdb import DuckDB
from dpwindows.count.engines.sql import require_as_meant
from dpwindows.count.query.dialect import Dialect
from dpwindows.count.query.probe import PROBED_COLUMNS
from dpwindows.count.query.relation import unreadable
from dpwindows.count.query.wanted import Wanted
from dpwindows.count.request import CountRequest
from dpwindows.errors import EngineError, InputError

REQUEST = CountRequest(None, PROBED_COLUMNS, Timeline.of_steps(2), Wanted((1,)))


class InDuckDB:
    """An executor for DuckDB, by which planted mistakes are cheap to find."""

    def __init__(self, changed: Callable[[str], str]) -> None:
        self._connection, self._changed = duckdb.connect(), changed

    def run(self, query: str) -> pa.Table:
        try:
            return self._connection.sql(self._changed(query)).to_arrow_table()
        except duckdb.Error as error:
            # Without the value, which a database does not show.
            raise unreadable(str(error).partition("<<")[0], PROBED_COLUMNS) or EngineError(str(error)) from None


def asked(dialect: Dialect, changed: Callable[[str], str] = str) -> None:
    @contextmanager
    def opening(request: CountRequest, dialect: Dialect) -> Iterator[Any]:
        yield InDuckDB(changed)

    require_as_meant(opening, REQUEST, dialect)


def spelled(**methods: Any) -> Dialect:
    """DuckDB's dialect with a mistake."""
    mistaken: Dialect = type("Mistaken", (DuckDB,), {"name": "postgresql", **methods})()
    return mistaken


def replaced(pattern: str, other: str) -> Callable[[str], str]:
    """A database that takes one thing for another wherever it is asked."""
    return lambda query: re.sub(pattern, other, query)


def cut(days: str) -> Callable[..., str]:
    return lambda self, column, about: days


MISTAKES: dict[str, tuple[Dialect, Callable[[str], str], str]] = {
    "a floating-point division": (spelled(divide="{} / {}"), str, "7 divided by 2 is 4 there, and must be 3"),
    "a division in floating-point numbers": (
        spelled(divide="CAST(floor(CAST({} AS DOUBLE) / {}) AS BIGINT)"),
        str,
        r"9007199254740993 divided by 2 is|1999999999999999999 divided by",
    ),
    "a remainder of another number": (spelled(remainder="({} // {})"), str, "what is left of 7 divided by 2"),
    "lag without nulls": (
        spelled(),
        replaced(r"lag\((\w+), (\d)\)", r"lag(\1, \2, 0)"),
        "the step before in row 0 is 0",
    ),
    "lag by one row only": (spelled(), replaced(r"lag\((\w+), \d\)", r"lag(\1)"), "the step two rows before in row"),
    "case of letters": (
        spelled(
            exact=lambda self, role, name, column: (
                f"lower({name})" if role == "item" and column.type_name == "VARCHAR" else name
            )
        ),
        str,
        "the text 'a' is, by windows is 2",
    ),
    "accents": (
        spelled(
            exact=lambda self, role, name, column: f"strip_accents({name})" if column.type_name == "VARCHAR" else name
        ),
        str,
        "how many items the text 'a'",
    ),
    "blanks at the end": (
        spelled(
            exact=lambda self, role, name, column: f"rtrim({name}, ' ')" if column.type_name == "VARCHAR" else name
        ),
        str,
        "the text '7 '|the text 'a'|'2013-01-31 '",
    ),
    "Unicode's normal forms": (
        spelled(
            exact=lambda self, role, name, column: f"nfc_normalize({name})" if column.type_name == "VARCHAR" else name
        ),
        str,
        "how many items the text 'ä'",
    ),
    "an empty text is null": (
        spelled(),
        replaced(r"CAST\(''(?!') AS VARCHAR\)", "CAST(NULL AS VARCHAR)"),
        "whether the text '' is ",
    ),
    "numbers of texts": (
        spelled(
            exact=lambda self, role, name, column: (
                f"coalesce(CAST(TRY_CAST({name} AS INTEGER) AS VARCHAR), {name})"
                if column.type_name == "VARCHAR" and role == "item"
                else name
            )
        ),
        str,
        "how many items the text '7'",
    ),
    "items in 32 bits": (
        spelled(),
        replaced(r"CAST\((\d+) AS BIGINT\) AS item", r"CAST(CAST(\1 AS FLOAT) AS DOUBLE) AS item"),
        "how many items the number",
    ),
    "times of whole seconds": (
        spelled(microseconds=cut("epoch_us(date_trunc('second', time))")),
        str,
        "the time TIMESTAMP",
    ),
    "times of a zone": (
        spelled(microseconds=cut("epoch_us(TRY_CAST(time AS TIMESTAMPTZ) AT TIME ZONE 'America/New_York')")),
        str,
        "the time .* is .* there, and must be",
    ),
    "nanoseconds divided towards zero": (
        spelled(
            microseconds=lambda self, column, about: (
                "epoch_ns(time) // 1000"
                if column.type_name == "TIMESTAMP_NS"
                else DuckDB.microseconds(self, column, about)
            )
        ),
        str,
        r"the time TIMESTAMP_NS '1969-12-31 23:59:59.999999999' is 0",
    ),
    "30 February": (
        spelled(
            text_times=lambda self, relation: Dialect.text_times(self, relation).replace(
                "BETWEEN 1 AND CASE", "BETWEEN 1 AND 31 + CASE"
            )
        ),
        str,
        "the time '2013-02-29' is|the time '2013-02-30' is",
    ),
    "no leap years": (
        spelled(text_times=lambda self, relation: Dialect.text_times(self, relation).replace("% 400 = 0", "% 400 = 1")),
        str,
        "the time '2000-02-29 23:59:59' is None",
    ),
    "offsets left out": (
        spelled(
            text_times=lambda self, relation: (
                f"SELECT * REPLACE (CAST(NULL AS BIGINT) AS ahead) FROM ({DuckDB.text_times(self, relation)})"
            )
        ),
        str,
        "'2013-01-31T06:30Z' has an offset is 0|the time '2013-01-31T06:30",
    ),
    "a rounded decimal": (
        spelled(whole=lambda self, number: f"CAST(round({number}) AS HUGEINT)"),
        str,
        "the decimal 7.5 as a whole number is 8",
    ),
    "part of a pattern": (
        spelled(matches=lambda self, text, pattern: f"regexp_matches({text}, '{pattern}')"),
        str,
        "whether the text '7.0' is a whole number is 1",
    ),
    "a line end after a pattern": (
        spelled(
            matches=lambda self, text, pattern: f"regexp_full_match(regexp_replace({text}, '\n$', ''), '{pattern}')"
        ),
        str,
        r"whether the text '2013-01-31\\n' is written as a time is 1",
    ),
    "signs": (
        spelled(number=lambda self, text: f"abs(TRY_CAST(trim({text}) AS HUGEINT))"),
        str,
        "the text '-7' as a number is 7",
    ),
    "sums in 32 bits": (
        spelled(),
        replaced(
            r"sum\(step \+ (\d+)\) OVER \(PARTITION BY item\)", r"sum(step + \1) OVER (PARTITION BY item) % 4294967296"
        ),
        "a sum beyond 32 bits in row 0",
    ),
    "groups beyond a limit": (
        spelled(
            statement=lambda self, query: (
                query if "closing" not in query else f"SELECT * FROM ({query}) WHERE place = 0"
            )
        ),
        str,
        "whole is no row there",
    ),
    "events at one time": (
        spelled(),
        replaced(
            r"FROM \((SELECT 'a' AS item.*?)\) AS literal_rows", r"FROM (SELECT DISTINCT * FROM (\1)) AS literal_rows"
        ),
        "the signed counts of",
    ),
    "one row less": (
        spelled(),
        replaced(r"FROM counted JOIN signs", "FROM (SELECT * FROM counted LIMIT 5) AS counted JOIN signs"),
        "the signed counts of",
    ),
    "no totals of levels": (
        spelled(),
        replaced("UNION ALL SELECT 1 AS level", "UNION ALL SELECT 0 AS level"),
        "the signed counts of groups",
    ),
    "values left out that cannot be read": (
        spelled(failure=lambda self, message, column, value: "CAST(NULL AS BIGINT)"),
        str,
        r"of a value that cannot be read \(time\) it says: nothing",
    ),
    "errors of the database's own": (
        spelled(failure=lambda self, message, column, value: "CAST(error('no such day') AS BIGINT)"),
        str,
        r"of a value that cannot be read \(time\) it says: Invalid Input Error",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_planted_mistake_is_found(mistake: str) -> None:
    dialect, changed, named = MISTAKES[mistake]
    with pytest.raises(
        InputError, match="postgresql does not read the query as it is meant, and nothing was counted: "
    ) as caught:
        asked(dialect, changed)
    assert re.search(named, str(caught.value)), str(caught.value)


def test_without_a_mistake_nothing_is_found() -> None:
    asked(spelled())
    assert len(MISTAKES) >= 20
