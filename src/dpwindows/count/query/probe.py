"""What a database must make of literal rows before it is believed: queries whose right answers are known.

A database that reads the query otherwise than it is meant counts something else, in silence. So before the first count
of events it is asked for what is known: how it divides, compares, orders and reads times, and what it counts of a few
rows. Nothing of any table is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from dpwindows.ask.counting_rule import CountingRule
from dpwindows.ask.groups import Grouping, grouping
from dpwindows.ask.queries import OCCURRENCES
from dpwindows.ask.timeline import Timeline
from dpwindows.ask.zones import DAY_US
from dpwindows.count.events import EventColumns
from dpwindows.count.groups import span_of
from dpwindows.count.query.closing import closed_sql
from dpwindows.count.query.dialect import INTEGER_TEXT, TIME_TEXT, Dialect, Kind
from dpwindows.count.query.relation import counting_sql
from dpwindows.count.query.wanted import Wanted
from dpwindows.count.request import CountRequest

Row = tuple[str, int | None]
"""What a number is about, and what it must be."""


@dataclass(frozen=True)
class Probe:
    """A query with the columns place and found, and what each place from 0 on is about and must be."""

    about: str
    sql: str
    rows: tuple[Row, ...]


def probes(dialect: Dialect) -> Iterator[Probe]:
    """All queries of the probe, each to be run as a statement of the dialect."""
    scenarios = [scenario for scenario in _SCENARIOS if dialect.ranges or not scenario.weighted]
    for about, (sql, rows) in (
        ("numbers", _numbers(dialect)),
        ("decimals", _decimals(dialect)),
        ("texts", _texts(dialect)),
        ("items", _items(dialect)),
        ("windows", _windows(dialect)),
        ("times of text", _text_times(dialect)),
        *((f"times of the type {name}", _typed_times(dialect, name)) for name in dialect.samples),
        *((f"a count of {scenario.about}", _count(dialect, scenario)) for scenario in scenarios),
    ):
        yield Probe(about, sql, tuple(rows))


def refused(dialect: Dialect) -> Iterator[tuple[str, str]]:
    """Queries that must fail, each with what must be said then: a value that cannot be read is never left out."""
    number = "CAST(1 AS BIGINT)"
    for what, time, count, kind in (
        ("time", "2013-02-30", number, Kind.INTEGER),
        ("time", "2013-03-09 ", number, Kind.INTEGER),
        ("count", "2013-03-09", dialect.literal("1.5"), Kind.TEXT),
        ("decimal_count", "2013-03-09", "CAST(1.5 AS DECIMAL(30, 6))", Kind.DECIMAL),
    ):
        good = dialect.literal("1") if kind is Kind.TEXT else count.replace("1.5", "1")
        rows = [(dialect.literal("2013-03-09"), good), (dialect.literal(time), count)]
        read = (f"SELECT {dialect.literal('a')} AS item, {at} AS time, {held} AS count" for at, held in rows)
        relation = f"({' UNION ALL '.join(read)}) AS literal_rows"
        kinds = {"item": Kind.TEXT, "time": Kind.TEXT, "count": kind}
        request = CountRequest(None, PROBED_COLUMNS, _DAYS, Wanted((1,)))
        yield what, dialect.statement(_counting(dialect, request, relation, kinds))


# --- expressions ------------------------------------------------------------------------------------------------------


def _rows_sql(rows: Iterable[str]) -> str:
    """A relation of rows, each given by its columns, with their places as `place`."""
    return "\nUNION ALL ".join(f"SELECT {place} AS place, {row}" for place, row in enumerate(rows))


def _expressions(rows: Sequence[tuple[str, str, str, int | None]]) -> tuple[str, list[Row]]:
    """Rows of what each is about, its columns, of the same types in all rows, an expression of these, and its value."""
    found = " ".join(f"WHEN {place} THEN CAST({row[2]} AS BIGINT)" for place, row in enumerate(rows))
    query = f"SELECT place, CASE place {found} END AS found FROM ({_rows_sql(row[1] for row in rows)}) AS rows_given"
    return query, [(about, value) for about, _, _, value in rows]


def _spread(query: str, *columns: str) -> str:
    """The columns of a query that has a column `place`, one row each: the first of row 0, the second, and so on."""
    listed = " UNION ALL ".join(f"SELECT {number} AS which" for number in range(len(columns)))
    chosen = " ".join(f"WHEN {number} THEN CAST({column} AS BIGINT)" for number, column in enumerate(columns))
    return (
        f"SELECT place * {len(columns)} + which AS place, CASE which {chosen} END AS found "
        f"FROM ({query}) AS wide CROSS JOIN ({listed}) AS places"
    )


def _is(condition: str) -> str:
    return f"CASE WHEN {condition} THEN 1 ELSE 0 END"


def _column(dialect: Dialect, kind: Kind, literal: str, role: str = "time") -> str:
    """A literal as a column of a source is read that is of a kind."""
    return dialect.exact(role, literal, dialect.column_of(dialect.kinds[kind][0]))


_QUOTIENTS = [
    *((7, 2), (1, 2), (0, 5), (999, 1000), (9007199254740993, 2), (DAY_US - 1, DAY_US), (DAY_US, DAY_US)),
    *((1999999999999999999, 2000000000000000000), (2**63 - 1, 1000), (2**63 - 1, 3600000000)),
]


def _numbers(dialect: Dialect) -> tuple[str, list[Row]]:
    def given(x: int | None, y: int | None = None) -> str:
        literals = ("NULL" if number is None else str(number) for number in (x, y))
        columns = (_column(dialect, Kind.INTEGER, f"CAST({literal} AS BIGINT)") for literal in literals)
        return " AS x, ".join(columns) + " AS y"

    rows: list[tuple[str, str, str, int | None]] = []
    for a, b in _QUOTIENTS:
        rows.append((f"{a} divided by {b}", given(a), dialect.divide.format("x", b), a // b))
        rows.append((f"what is left of {a} divided by {b}", given(a), dialect.remainder.format("x", b), a % b))
    return _expressions(
        [
            *rows,
            ("whether 2^53 + 1 equals 2^53", given(2**53 + 1, 2**53), _is("x = y"), 0),
            ("whether 2^53 + 1 is more than 2^53", given(2**53 + 1, 2**53), _is("x > y"), 1),
            ("2^53 + 1 less 2^53", given(2**53 + 1, 2**53), "x - y", 1),
            ("2^63 - 2 and one more", given(2**63 - 2, 1), "x + y", 2**63 - 1),
            ("whether null equals null", given(None), _is("x = x"), 0),
            ("whether null is less than 2^62", given(None), _is(f"x < {2**62}"), 0),
            ("whether null is null", given(None), _is("x IS NULL"), 1),
            ("whether 0 is null", given(0), _is("x IS NULL"), 0),
            ("whether null and a truth hold", given(None, 1), _is("x > 0 AND y = 1"), 0),
            ("whether null or a truth holds", given(None, 1), _is("x > 0 OR y = 1"), 1),
            ("the first that is not null", given(None, 1), "coalesce(x, y)", 1),
            ("a CASE that no branch fits", given(0, 1), "CASE WHEN y = 2 THEN y END", None),
            ("null as a number", given(None), "CAST(x AS BIGINT)", None),
        ]
    )


def _decimals(dialect: Dialect) -> tuple[str, list[Row]]:
    """Numbers with a fraction, which are not rounded, and such as have none."""
    whole = {"7": 7, "-7": -7, "7.5": None, "-0.5": None, "0.000001": None, f"{2**53}1": 2**53 * 10 + 1}
    column = (_column(dialect, Kind.DECIMAL, f"CAST({text} AS DECIMAL(30, 6))") for text in whole)
    rows = list(zip(whole.items(), column, strict=True))
    return _expressions(
        [(f"the decimal {text} as a whole number", f"{x} AS x", dialect.whole("x"), value) for (text, value), x in rows]
    )


_READ_NUMBERS = {"7": 7, "+7": 7, "-7": -7, "007": 7, " 7\t": 7, f"{2**63 - 1}": 2**63 - 1, "0": 0, " -07\n": -7}
_NO_NUMBERS = ("", "7.0", "1e3", "7 8", "x7", "0x7", "\u0667", "\uff17", "7\u00a0", "+", "- 7")
_READ_PATTERNS = ("2013-01-31", "2013-01-31T06:30", "2013-01-31 06:30:59.123456789+05:30", "2013-99-99")
_NO_TIMES = (
    *("2013-1-31", "2013-01-31 ", "2013-01-31\n", "x2013-01-31", "2013-01-31T06:30+18:00"),
    "\u0662\u0660\u0661\u0663-01-31",
    *("2013-01-31t06:30", "2013/01/31", "2013-01-31T06:30:00.1234567890", "2013-01-31T06:30:00.", "2013-01-31T0630"),
)


def _texts(dialect: Dialect) -> tuple[str, list[Row]]:
    """Which texts are whole numbers, which ones could be times, which number each is, and whether it is null."""
    texts = [*_READ_NUMBERS, *_NO_NUMBERS, *_READ_PATTERNS, *_NO_TIMES]
    relation = _rows_sql(f"{_column(dialect, Kind.TEXT, dialect.literal(text))} AS x" for text in texts)
    is_number = dialect.matches("x", INTEGER_TEXT)
    number = f"CASE WHEN {is_number} THEN {dialect.number('x')} END"
    query = _spread(relation, _is(is_number), _is(dialect.matches("x", TIME_TEXT)), number, _is("x IS NULL"))
    rows = list[Row]()
    for text in texts:
        rows.append((f"whether the text {text!r} is a whole number", int(text in _READ_NUMBERS)))
        rows.append((f"whether the text {text!r} is written as a time", int(text in _READ_PATTERNS)))
        rows.append((f"the text {text!r} as a number", _READ_NUMBERS.get(text)))
        rows.append((f"whether the text {text!r} is null", 0))
    return query, rows


# --- items ------------------------------------------------------------------------------------------------------------

# Equal for a collation, padding, a normal form, an escape or a number, and different as bytes.
_ITEMS = (
    *("a", "A", "a ", " a", "a\t", "a\n", "\u00e4", "\u00c4", "a\u0308", "\u00df", "ss", "SS", "ae", "\u00e6"),
    *("\u0131", "i", "I", "\u0130", "\uff71", "\u30a2", "\u200ba", "", " ", "7", "07", "7.0", "+7", "7e0", "null"),
    *("NULL", "%", "_", "it's", "it''s", '"', "\\", "\\\\", "\\n"),
)
_WHOLE_ITEMS = (0, -1, 1, 2**53, 2**53 + 1, 2**63 - 1, 2**63 - 2, -(2**63) + 1)


def _items(dialect: Dialect) -> tuple[str, list[Row]]:
    """How many literal items are taken for each one: itself alone, by windows, by groups and by comparison."""
    texts = [_column(dialect, Kind.TEXT, dialect.literal(text), "item") for text in _ITEMS]
    numbers = [_column(dialect, Kind.INTEGER, f"CAST({number} AS BIGINT)", "item") for number in _WHOLE_ITEMS]
    parts, rows = [], list[Row]()
    for items, names, kind in ((texts, _ITEMS, "text"), (numbers, _WHOLE_ITEMS, "number")):
        every = _rows_sql(f"{item} AS item" for item in items)
        own, other = f"FROM ({every}) AS own", f"JOIN ({every}) AS other ON own.item = other.item"
        for how, query in {
            "by windows": f"SELECT place, count(*) OVER (PARTITION BY item) AS found {own}",
            "by groups": f"SELECT min(place) AS place, count(*) AS found {own} GROUP BY item",
            "compared": f"SELECT own.place AS place, count(*) AS found {own} {other} GROUP BY own.place",
        }.items():
            moved = f"SELECT place + {len(rows)} AS place, CAST(found AS BIGINT) AS found FROM ({query}) AS counted"
            parts.append(moved)
            rows += [(f"how many items the {kind} {name!r} is, {how}", 1) for name in names]
    return "\nUNION ALL ".join(parts), rows


# --- windows ----------------------------------------------------------------------------------------------------------


def _windows(dialect: Dialect) -> tuple[str, list[Row]]:
    """Each window function of the query over five rows, three of one item and two of another, at the same time."""
    held = _rows_sql(
        f"{_column(dialect, Kind.TEXT, dialect.literal(item), 'item')} AS item, "
        f"{_column(dialect, Kind.INTEGER, f'CAST({step} AS INTEGER)')} AS step"
        for item, step in (("a", 3), ("a", 5), ("a", 9), ("b", 4), ("b", 4))
    )
    over, big = "OVER (PARTITION BY item ORDER BY step", 2**31 - 1
    windows: dict[str, tuple[str, list[int | None]]] = {
        "the step before": (f"lag(step, 1) {over}, place)", [None, 3, 5, None, 4]),
        "the step two rows before": (f"lag(step, 2) {over}, place)", [None, None, 3, None, None]),
        "a running sum": (f"sum(step) {over}, place ROWS UNBOUNDED PRECEDING)", [3, 8, 17, 4, 8]),
        "a sum beyond 32 bits": (
            f"sum(step + {big - 9}) OVER (PARTITION BY item)",
            [*[3 * big - 10] * 3, *[2 * big - 10] * 2],
        ),
        "the row's number": (f"row_number() {over}, place)", [1, 2, 3, 1, 2]),
        "the rank of the step": (f"dense_rank() {over})", [1, 2, 3, 1, 1]),
        "the least step": ("min(step) OVER (PARTITION BY item)", [3, 3, 3, 4, 4]),
    }
    query = _spread(
        f"SELECT place, {', '.join(f'{sql} AS w{number}' for number, (sql, _) in enumerate(windows.values()))} "
        f"FROM ({held}) AS held",
        *(f"w{number}" for number in range(len(windows))),
    )
    rows = [(f"{name} in row {row}", values[row]) for row in range(5) for name, (_, values) in windows.items()]
    return query, rows


# --- times ------------------------------------------------------------------------------------------------------------

_EPOCH = datetime(1970, 1, 1)


def _us(*moment: int) -> int:
    return (datetime(*moment) - _EPOCH) // timedelta(microseconds=1)  # type: ignore[arg-type]


_HOUR = 3_600_000_000
_READ_TEXTS: dict[str, tuple[int, int | None]] = {
    "2013-01-31": (_us(2013, 1, 31), None),
    "1970-01-01T00:00": (0, None),
    "1969-12-31T23:59:59.9999999": (-1, None),
    "2012-02-29": (_us(2012, 2, 29), None),
    "2000-02-29 23:59:59": (_us(2000, 2, 29, 23, 59, 59), None),
    "1900-03-01": (_us(1900, 3, 1), None),
    "2100-12-31T23:59:59.000001": (_us(2100, 12, 31, 23, 59, 59, 1), None),
    "0001-01-01": (_us(1, 1, 1), None),
    "9999-12-31T23:59:59": (_us(9999, 12, 31, 23, 59, 59), None),
    "2013-01-31T24:00": (_us(2013, 2, 1), None),
    "2013-03-10 02:30:00.5": (_us(2013, 3, 10, 2, 30, 0, 500_000), None),
    "2013-01-31T06:30Z": (_us(2013, 1, 31, 6, 30), 0),
    "2013-01-31T06:30:00.123456789-03:30": (_us(2013, 1, 31, 6, 30, 0, 123_456), -7 * _HOUR // 2),
    "2013-01-31T06:30:00+05": (_us(2013, 1, 31, 6, 30), 5 * _HOUR),
    "2013-01-31T00:00:00+17:59": (_us(2013, 1, 31), 18 * _HOUR - 60_000_000),
}
_REFUSED_TEXTS = (
    *("2013-02-29", "2013-02-30", "1900-02-29", "2100-02-29", "2013-04-31", "2013-13-01", "2013-00-10", "2013-01-00"),
    *("2013-01-31T25:00", "2013-01-31T24:01", "2013-01-31T06:60", "2013-01-31T06:30:60", "now", "1357000000", ""),
)


def _text_times(dialect: Dialect) -> tuple[str, list[Row]]:
    """The instant, as if a time without an offset were in UTC, and whether there is an offset."""
    texts = [*_READ_TEXTS, *_REFUSED_TEXTS]
    relation = _rows_sql(f"{_column(dialect, Kind.TEXT, dialect.literal(text))} AS time" for text in texts)
    # Where the engine says the instant as a whole, its offset is 0.
    query = _spread(dialect.text_times(relation), "wall - coalesce(ahead, 0)", _is("ahead IS NOT NULL"))
    rows = list[Row]()
    for text in texts:
        wall, ahead = _READ_TEXTS.get(text, (None, None))
        rows.append((f"the time {text!r}", None if wall is None else wall - (ahead or 0)))
        rows.append((f"whether {text!r} has an offset", int(ahead is not None)))
    return query, rows


# Times with nanoseconds.
_MOMENTS = (
    *((datetime(1970, 1, 1), 0), (datetime(2000, 2, 29, 12), 0), (datetime(2012, 2, 29, 23, 59, 59, 500_000), 1)),
    *((datetime(2013, 3, 10, 2, 30, 0, 1), 999), (datetime(2013, 11, 3, 1, 30), 0), (datetime(1931, 5, 6, 7, 8, 9), 0)),
    *((datetime(2100, 3, 1, 0, 0, 0, 123_456), 789), (datetime(1969, 12, 31, 23, 59, 59, 999_999), 999)),
    *((datetime(1969, 12, 31, 0, 0, 0, 1), 1), (datetime(2038, 1, 19, 3, 14, 8), 0)),
)


def _typed_times(dialect: Dialect, name: str) -> tuple[str, list[Row]]:
    """Literals of one type, by `Dialect.samples`."""
    column, template = dialect.column_of(name), dialect.samples[name]
    literals, rows = [], list[Row]()
    for moment, nanosecond in _MOMENTS:
        if "{second}" in template and moment < _EPOCH:
            continue
        second, day = moment.replace(microsecond=0), moment.replace(hour=0, minute=0, second=0, microsecond=0)
        fields = {
            "day": (f"{moment.date()}", day),
            "second": (f"{second}", second),
            "micro": (f"{second}.{moment.microsecond:06}", moment),
            "nano": (f"{second}.{moment.microsecond:06}{nanosecond:03}", moment),
        }
        literals.append(template.format(**{field: text for field, (text, _) in fields.items()}))
        meant = next(time for field, (_, time) in fields.items() if f"{{{field}}}" in template)
        rows.append((f"the time {literals[-1]}", (meant - _EPOCH) // timedelta(microseconds=1)))
    relation = _rows_sql(f"{dialect.exact('time', literal, column)} AS time" for literal in literals)
    about = dialect.between(column, datetime(1930, 1, 1), datetime(2101, 1, 1))
    found = f"CAST(CASE WHEN {about} THEN {dialect.microseconds(column, about)} END AS BIGINT)"
    return f"SELECT place, {found} AS found FROM ({relation}) AS times", rows


# --- whole counts -----------------------------------------------------------------------------------------------------

_DAYS = Timeline("2013-03-08", "2013-03-14", "1d", "America/New_York")
_NUMBERS = Timeline(-4, 14, 3)
PROBED_COLUMNS = EventColumns("item", "time", "count")
"""The columns of the literal rows that must be refused."""
_COUNTED_ITEMS = ("a", "A", "a ", "ä", "a\u0308", "", "7", "07")
_HOURS = ("", "T02:30", "T02:30:00-05:00", "T23:59:59.999999+05:30", " 00:00", "T03:59:59.999Z", "T04:00Z")
_GROUPS: dict[str, list[str | int]] = {"country": ["x", "X", "x "], "store": [7, -1, 2**62]}


@dataclass(frozen=True)
class _Scenario:
    """A count of literal rows, and what its result must be, as one number (`_signature`)."""

    about: str
    signature: int
    wanted: Wanted
    weighted: bool = False
    kind: Kind = Kind.INTEGER
    groups: Grouping | None = None


_SCENARIOS = (
    _Scenario("rows", 2060002, Wanted((1, 2, 3))),
    _Scenario("rows with counts", 8542283, Wanted((OCCURRENCES, 1, 2, 5)), weighted=True),
    _Scenario("occurrences alone", 3096846, Wanted((OCCURRENCES,)), weighted=True),
    _Scenario("decimals", 3704190, Wanted((1, 2)), weighted=True, kind=Kind.DECIMAL),
    _Scenario("numbers as text", 3704190, Wanted((1, 2)), weighted=True, kind=Kind.TEXT),
    _Scenario("times as text", 700832, Wanted((1, 2)), kind=Kind.WALL),
    _Scenario(
        "at most 2 occurrences, on distinct steps",
        3079645,
        Wanted((1, 2), CountingRule(True, max_occurrences=2), loss=True),
    ),
    _Scenario(
        "at most 3 occurrences", 3631790, Wanted((1, 2), CountingRule(max_occurrences=3), loss=True), weighted=True
    ),
    _Scenario("at most 1 run", 2902069, Wanted((1,), CountingRule(max_runs=1), series=((1, 1), (2, 3)), loss=True)),
    _Scenario("groups with totals", 15872773, Wanted((1, 2), reach=2), groups=grouping(_GROUPS, totals=0.5)),
    _Scenario(
        "items in at most 1 group", 1598193, Wanted((1, 2)), weighted=True, groups=grouping(_GROUPS, max_groups=1)
    ),
)


def _count(dialect: Dialect, scenario: _Scenario) -> tuple[str, list[Row]]:
    """The result of a count as one number, and whether it says that it is whole."""
    timeline = _DAYS if scenario.kind is Kind.WALL else _NUMBERS
    columns = EventColumns("item", "time", "count" if scenario.weighted else None, grouping=scenario.groups)
    wanted, kinds = scenario.wanted, {"item": Kind.TEXT}
    for role, _ in columns.roles[1:3] if scenario.weighted else columns.roles[1:2]:
        kinds[role] = Kind.TEXT if scenario.kind is Kind.WALL else scenario.kind
    if scenario.groups is not None:
        wanted = replace(wanted, span=span_of(timeline))
        kinds |= {"group_0": Kind.TEXT, "group_1": Kind.INTEGER}
    relation = f"({' UNION ALL '.join(_literal_rows(dialect, scenario.kind))}) AS literal_rows"
    counted = closed_sql(_counting(dialect, CountRequest(None, columns, timeline, wanted), relation, kinds))
    query = (
        f"SELECT 0 AS place, sum(CASE WHEN closing = 0 THEN {_signature(dialect)} END) AS signature, "
        "sum(closing) AS ends, sum(CASE WHEN closing = 0 THEN delta ELSE -delta END) AS rest "
        f"FROM ({counted}) AS closed"
    )
    return _spread(query, "signature", _is("rest = 0 AND ends = 1")), [
        (f"the signed counts of {scenario.about}, as one number", scenario.signature),
        (f"whether the signed counts of {scenario.about} are whole", 1),
    ]


def _counting(dialect: Dialect, request: CountRequest, relation: str, kinds: Mapping[str, Kind]) -> str:
    types = {role: dialect.column_of(dialect.kinds[kind][0]) for role, kind in kinds.items()}
    return counting_sql(dialect, request, relation, {role: role for role in kinds}, types)


def _signature(dialect: Dialect) -> str:
    """A number of a row of signed counts such that sums of these differ where results do, but for rare coincidences."""
    return f"delta * {dialect.remainder.format('((k + 50) * 7919 + step * 104729 + recency * 1299709)', 999983)}"


def _literal_rows(dialect: Dialect, kind: Kind) -> Iterator[str]:
    """Rows of items that differ as bytes only, at times in and out of the range, several at the same."""
    for row in (*range(24), 3, 4):
        item = None if row == 7 else _COUNTED_ITEMS[row * row % 11 % 8]
        time: object = None if row == 13 else row * 7 % 23 - 6
        if time is not None and kind is Kind.WALL:
            time = f"2013-03-{7 + row * 5 % 8:02}{_HOURS[row % len(_HOURS)]}"
        count = None if row == 19 else (1, 2, 0, 1, -3, 5, 2**33)[row % 7]
        country, store = (None, "x", "X", "x ", "y")[row * 3 % 5], (7, 7, -1, 2**62, None, 8)[row * 5 % 6]
        values = {"item": item, "time": time, "count": count, "group_0": country, "group_1": store}
        literals = [f"{_literal(dialect, value, name, kind)} AS {name}" for name, value in values.items()]
        yield f"SELECT {', '.join(literals)}"


def _literal(dialect: Dialect, value: object, name: str, kind: Kind) -> str:
    if name in ("item", "group_0") or (name in ("time", "count") and kind in (Kind.TEXT, Kind.WALL)):
        return "NULL" if value is None else dialect.literal(str(value))
    number = "NULL" if value is None else str(value)
    return f"CAST({number} AS {'DECIMAL(30, 6)' if kind is Kind.DECIMAL and name in ('time', 'count') else 'BIGINT'})"
