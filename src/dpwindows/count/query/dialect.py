"""What engines spell differently, each in one class, and what is common to all of them: kinds of columns.

Expressions here are SQL over a relation with the columns item, time and, if there is one, count.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import ClassVar

from dpwindows.count.query.recency import REMAINDER
from dpwindows.count.query.text_times import text_times_sql

# Characters of a value that a message repeats, and where they stand in what an engine says.
SHOWN = 80
SHOWN_VALUE = re.compile("<<(.*?)>>", re.DOTALL)
BLANKS = " \t\n\r"
INTEGER_TEXT = f"[{BLANKS}]*[+-]?[0-9]+[{BLANKS}]*"
# No offset has ever been as large as 18 hours, and engines differ in what they make of larger ones.
_ZONE_TEXT = "Z|[+-](0[0-9]|1[0-7])(:[0-5][0-9])?"
_CLOCK_TEXT = f"[0-9]{{2}}:[0-9]{{2}}(:[0-9]{{2}}([.][0-9]{{1,9}})?)?({_ZONE_TEXT})?"
TIME_TEXT = f"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}([T ]{_CLOCK_TEXT})?"


class Kind(Enum):
    """What a column can serve as, whatever its engine calls its type."""

    INTEGER = "whole numbers"
    DECIMAL = "exact decimals, which may have fractions"
    TEXT = "text"
    WALL = "times on a wall clock"
    INSTANT = "times with a zone or offset"
    DATE = "dates"
    EXACT = "other values that are equal or not, such as UUIDs"
    FLOAT = "floating-point numbers"
    NESTED = "lists, structures and such"
    NULL = "nothing but nulls"
    OTHER = "anything else"


@dataclass(frozen=True)
class Column:
    """A column's kind, and the name of its type as its engine says it."""

    kind: Kind
    type_name: str


class Dialect(ABC):
    """How one engine spells the little that is not standard SQL.

    `name` is the engine's, and `kinds` says what its types can serve as, by their names in small letters, the first of
    them the most usual. `samples` has a literal for each type of times, where a time stands in its place: {day},
    {second} (from 1970 on), {micro} or {nano}. `divide` is a pattern that divides two whole numbers of at least 0,
    rounding down, and `remainder` one for what is left then. `wall` and `instant` are patterns for a literal of a time
    without and with an offset, and `materialized` stands before a common table expression that is read more than once.
    `fence` ends a query whose expressions are worked out once a row, where an engine would put them in place of the
    columns they make, over and over. `version` is a query for what decides how the engine reads all others, in one row.
    `matching` is a pattern for a condition of a text and of a regular expression, which `anchored` makes one for all of
    the text; `numeral` is one for the number that digits in a text write.
    `ranges` says whether there are window frames of numbers (RANGE BETWEEN 3 PRECEDING AND CURRENT ROW).
    """

    name: str
    kinds: ClassVar[Mapping[Kind, tuple[str, ...]]]
    samples: ClassVar[Mapping[str, str]]
    matching: str
    anchored: str = "^({})$"
    numeral: str
    divide: str = "{} / {}"
    remainder: str = REMAINDER
    wall: str = "TIMESTAMP '{}'"
    instant: str = "TIMESTAMPTZ '{}'"
    materialized: str = "MATERIALIZED "
    fence: str = ""
    ranges: bool = True
    version: str = "SELECT version()"

    def column_of(self, type_name: str) -> Column:
        """What a column can serve as, by the engine's own name of its type, with or without parameters in brackets."""
        plain = re.sub(r" *[(<].*[)>]", "", type_name).lower()
        kind = next((kind for kind, names in self.kinds.items() if plain in names), Kind.OTHER)
        whole = kind is Kind.DECIMAL and re.search(r", *0\)$", type_name)
        return Column(Kind.INTEGER if whole else kind, type_name.upper())

    def identifier(self, name: str) -> str:
        """A name of a table or column as the engine quotes it."""
        return quote_name(name)

    @abstractmethod
    def microseconds(self, column: Column, about: str) -> str:
        """A WALL, INSTANT or DATE column `time` as bigint microseconds since 1970-01-01T00:00, rounded down.

        Null, and no error, where there is no such number (infinity); it may be null where the condition `about`, that
        of `between`, does not hold. The time zone of a session must not matter.
        """

    def matches(self, text: str, pattern: str) -> str:
        """A condition: `text` as a whole matches INTEGER_TEXT or TIME_TEXT."""
        return self.matching.format(text, quote_text(self.anchored.format(pattern)))

    def number(self, text: str) -> str:
        """Text that matches INTEGER_TEXT as a number of any type; null, and no error, where it does not fit."""
        return self.numeral.format(text)

    def listed(self, literals: Sequence[str]) -> str:
        """A query for these literals, all of one type, as the column `listed`, with their places from 0 as `place`."""
        rows = ", ".join(f"({literal}, {place})" for place, literal in enumerate(literals))
        return f"SELECT * FROM (VALUES {rows}) AS list(listed, place)"

    def statement(self, query: str) -> str:
        """A whole query as it is run, with the settings that its meaning depends on."""
        return query

    def text_times(self, relation: str) -> str:
        """A relation whose column `time` is text, with two bigint columns more.

        `wall` is the time as microseconds since 1970-01-01T00:00 on its own clock, fractions cut after six digits, null
        where the text is not a time (TIME_TEXT); `ahead` its offset from UTC in microseconds, null where it has none.
        """
        return text_times_sql(relation, self.matches("time", TIME_TEXT), self.divide, self.remainder, self.fence)

    def failure(self, message: str, column: str, value: str) -> str:
        """A bigint expression that fails with this message where a column is not null, and its bigint value is.

        Some engines evaluate what a condition leaves out, so the condition stands here again, but for those that do
        not. Engines inside this process add the text of the column (`shown`); those of a server do not, whose logs
        others read.
        """
        bad = f"{column} IS NOT NULL AND ({value}) IS NULL"
        return f"CAST(CASE WHEN {bad} THEN {self.literal(message)} ELSE {self.literal('0')} END AS BIGINT)"

    def between(self, column: Column, low: datetime, high: datetime) -> str:
        """A condition that holds at least for the times of a column in [low, high), cheap enough to skip blocks."""
        if column.kind is Kind.DATE:
            return f"time >= DATE '{low.date()}' AND time < DATE '{high.date()}'"
        literal, zone = (self.instant, "+00:00") if column.kind is Kind.INSTANT else (self.wall, "")
        first, last = (literal.format(f"{time}{zone}") for time in (low, high))
        return f"time >= {first} AND time < {last}"

    def exact(self, role: str, name: str, column: Column) -> str:
        """A column of a source such that two of its texts are equal only if their bytes are, whatever its collation."""
        return name

    def literal(self, text: str) -> str:
        """Text as a literal."""
        return quote_text(text)

    def text_literal(self, text: str) -> str:
        """Text as a literal that is compared byte for byte with a text column of a source as `exact` gives it."""
        return self.literal(text)

    def whole(self, number: str) -> str:
        """A DECIMAL as a whole number that compares with any other; null where it is none."""
        return f"CASE WHEN floor({number}) = ceil({number}) THEN floor({number}) END"

    def whole_float(self, number: str, beyond: int) -> str | None:
        """A FLOAT as a bigint, null where it is not whole, or not between -`beyond` and `beyond`, both excluded.

        None if the engine reads no whole numbers out of floating-point columns.
        """
        return None

    def whole_items(self, column: Column, beyond: int) -> str | None:
        """A column `item` as whole numbers, null where it stands for none; None if the engine does not make them.

        Floating-point numbers, and text that such a number was written as, stand for one below `beyond` only.
        """
        return "item" if column.kind in (Kind.INTEGER, Kind.NULL) else None

    def patterned_times(self, relation: str, pattern: str) -> str | None:
        """As `text_times`, where `time` is text of a pattern of strptime; None if the engine does not read such."""
        return None


Place = Callable[[str, str], str]
"""Where a value first stands, by the role of its column and its text; empty where nobody knows."""


def such_as(message: str, role: str, place: Place | None) -> str:
    """The value that an engine's message shows, and where it stands, as the end of a statement; empty without one."""
    found = SHOWN_VALUE.search(message)
    if found is None:
        return ""
    where = place(role, found[1]) if place else ""
    return f", such as {found[1]!r}" + (f" in {where}" if where else "")


def shown(text: str) -> str:
    """SQL for the beginning of a text as messages repeat it, such that it is found in them again by `SHOWN_VALUE`."""
    return f"'<<' || left({text}, {SHOWN}) || '>>'"


def quote_name(name: str) -> str:
    """A name as a standard SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """Text as a standard SQL literal."""
    return "'" + text.replace("'", "''") + "'"
