"""All that a dialect spells in its own way, as text: `python -m tests.count.dialects.spelling` writes it anew."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from dpwindows.count.dialects import dialect_named
from dpwindows.count.query.dialect import INTEGER_TEXT, Dialect, Kind

FOLDER = Path(__file__).parent / "spelled"
# Their databases run nowhere in the tests: what is pinned is the text.
PINNED = ("bigquery", "databricks", "redshift", "snowflake", "trino")


def spelling(dialect: Dialect) -> str:
    """One line for each thing that is asked of a dialect."""
    return (
        "\n".join(
            f"{what}: {text}".replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
            for what, text in _lines(dialect)
        )
        + "\n"
    )


def _lines(dialect: Dialect) -> Iterator[tuple[str, str]]:
    yield "name", dialect.identifier('a "b" `c`')
    yield "text", dialect.literal("it's \\ \n")
    yield "divided", dialect.divide.format("x", 7)
    yield "what is left", dialect.remainder.format("x", 7)
    for kind in (Kind.TEXT, Kind.INTEGER):
        column = dialect.column_of(dialect.kinds[kind][0])
        for role in ("item", "time"):
            yield f"{role} of {column.type_name}", dialect.exact(role, "x", column)
    for name in dialect.samples:
        column = dialect.column_of(name)
        about = dialect.between(column, datetime(2013, 1, 1), datetime(2014, 1, 1))
        yield f"{name} in 2013", about
        yield f"{name} as microseconds", dialect.microseconds(column, "TRUE")
    yield "whole number", dialect.matches("x", INTEGER_TEXT)
    yield "its value", dialect.number("x")
    yield "a decimal", dialect.whole("x")
    yield "values", dialect.listed([dialect.text_literal("a"), dialect.text_literal("b")])
    yield "a failure", dialect.failure("message", "x", "y")
    yield "statement", dialect.statement("SELECT 1")
    yield "version", dialect.version


if __name__ == "__main__":
    for name in PINNED:
        (FOLDER / f"{name}.txt").write_text(spelling(dialect_named(name)), "utf-8")
