"""From the columns of a source to one relation of exactly (item, step, count), in any engine's SQL.

Rows with a null item or time, with a null count or one below 1, and events outside the range are left out, row by
row. What is wrong with a whole column is an `InputError` that names the column and its type. What is wrong with a value
is one that shows the value too: messages are for the screen of whoever may read the log. Times become steps by
whole-number arithmetic on microseconds that is the same text for every engine, so that all of them put an event into
the same step.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from dpwindows.ask.timeline import Timeline
from dpwindows.ask.zones import DAY_US, from_microseconds
from dpwindows.count.events import EventColumns
from dpwindows.count.groups import span_of
from dpwindows.count.query.dialect import INTEGER_TEXT, Column, Dialect, Kind, Place, such_as
from dpwindows.count.query.groups import coded_sql, places_sql
from dpwindows.count.query.recency import Occurrences
from dpwindows.count.query.step_map import StepMap, instant_map, offset_sql, wall_map
from dpwindows.count.request import CountRequest
from dpwindows.count.time_formats import EPOCHS
from dpwindows.errors import InputError

_TIMES = (Kind.WALL, Kind.INSTANT, Kind.DATE)
_EXACT = (*_TIMES, Kind.INTEGER, Kind.DECIMAL, Kind.TEXT, Kind.EXACT, Kind.NULL)
_MARK = "dpwindows cannot read column: "
# Later than any timeline of times may end.
_LAST_DAY = datetime(9999, 12, 31)
_TIME_ADVICE = 'ISO 8601 text such as "2013-01-31", "2013-01-31T06:30:00" or "2013-01-31T06:30:00+01:00"'
_FLOAT_ITEMS = (
    ", and floating-point numbers do not identify items; write it as integers or text (a pandas column of integers "
    "with gaps needs the type Int64), or give --item-type integer, if they are whole numbers"
)
_NUMBER_ADVICE = (
    "; for integer time give step as a plain integer, and for seconds or such since 1970 --time-format epoch-s, "
    "epoch-ms or epoch-us"
)
# Beyond these a number of the type stands for more whole numbers than one.
_EXACT_BELOW = {"FLOAT": 2**24, "DOUBLE": 2**53}

_WANTED = {
    "time": f"expected {_TIME_ADVICE}",
    "integer_time": "expected whole numbers, since the timeline has integer steps",
    "epoch_time": "expected whole numbers, as --time-format says",
    "patterned_time": "expected text of the pattern that --time-format says",
    "count": "expected whole numbers of occurrences",
}


@dataclass(frozen=True)
class _Reading:
    """How a time column becomes steps.

    `relation` is the source, with what `moment` needs; `moment` a bigint expression; `steps` the map from it to steps;
    `about` a cheap condition that no event inside the range fails.
    """

    relation: str
    moment: str
    steps: StepMap
    about: str = "TRUE"


class EventQueries:
    """Writes the query for (item, step, count) of relations with the columns item, time[, count].

    Counts above `cap` are given as `cap`: at-least-k answers do not change if it is not below any k. With `later`,
    events at or after the end of the range are not left out, and get the step after the last one.

    Raises:
        InputError: the time format makes calendar times, and the timeline has integer steps.
    """

    def __init__(
        self, dialect: Dialect, columns: EventColumns, timeline: Timeline, *, cap: int, later: bool = False
    ) -> None:
        self._dialect, self._columns, self._timeline, self._cap = dialect, columns, timeline, cap
        self._later, self._instants = later, instant_map(timeline)
        if timeline.is_integer and columns.time_format is not None:
            raise InputError(
                f"--time-format {columns.time_format} makes calendar times, and the timeline has integer steps: give "
                f'start, end and step of times, such as step "1d", or leave the format out'
            )
        self._walls = self._instants if timeline.is_integer else wall_map(timeline)

    def events(self, parts: Iterable[tuple[str, Mapping[str, Column]]]) -> str:
        """The query for all parts of a source together, each a relation with its types as for `sql`.

        With groups its steps are places in cells, the groups that events are counted in (`recency_sql`).

        Raises:
            InputError: a column's type does not serve.
        """
        events = "\nUNION ALL\n".join(self.sql(relation, types) for relation, types in parts)
        grouping = self._columns.grouping
        span = span_of(self._timeline, later=self._later)
        return events if grouping is None else places_sql(self._dialect, events, grouping, span)

    def sql(self, relation: str, types: Mapping[str, Column]) -> str:
        """The query for a relation (a query without parentheses) whose columns item, time[, count] have these types.

        The engine must hold two items for equal only where they are the same value: the same bytes, for text.

        Raises:
            InputError: a column's type does not serve.
        """
        if self._columns.item_type is not None:
            relation = self._whole_items(relation, types["item"])
        else:
            self._require_exact(types["item"])
        time = self._time(relation, types["time"])
        count = self._count(types.get("count"))
        inner = (
            f"SELECT item, {time.moment} AS moment, {count} AS count{self._groups} FROM ({time.relation}) AS source "
            f"WHERE item IS NOT NULL AND {time.about}"
        )
        step = time.steps.sql("moment", self._dialect.divide)
        within = f"moment >= {time.steps.low}"
        if self._later:
            step = f"CASE WHEN moment >= {time.steps.high} THEN {self._timeline.steps + 1} ELSE {step} END"
        else:
            within += f" AND moment < {time.steps.high}"
        if " NULL" in step:
            within += f" AND ({step}) IS NOT NULL"
        if self._columns.count is not None:
            within += " AND count >= 1"
        grouping = self._columns.grouping
        moment = ", moment" if grouping is not None and grouping.has_rule else ""
        kept = f"item, CAST({step} AS INTEGER) AS step, count{moment}{self._groups}"
        placed = f"SELECT {kept} FROM ({inner}) AS timed WHERE {within}"
        return placed if grouping is None else coded_sql(self._dialect, placed, grouping, types)

    @property
    def _groups(self) -> str:
        return "".join(f", {role}" for role, _ in self._columns.roles if role.startswith("group_"))

    def _whole_items(self, relation: str, column: Column) -> str:
        """A relation whose items are the whole numbers that they stand for, null where they stand for none."""
        whole = self._dialect.whole_items(column, _EXACT_BELOW.get(column.type_name, 2**53))
        if whole is None:
            engine = f"the engine {self._dialect.name} makes no whole numbers"
            raise self._unfit("item", column, f", and {engine}: leave --item-type out, or write it as integers")
        others = ", time" if self._columns.count is None else ", time, count"
        return f"SELECT {whole} AS item{others}{self._groups} FROM ({relation}) AS typed"

    def _require_exact(self, column: Column) -> None:
        """Refuse a type whose values may be equal without being the same item, or the same without being equal."""
        if column.kind is Kind.FLOAT:
            raise self._unfit("item", column, _FLOAT_ITEMS)
        if column.kind is Kind.NESTED:
            raise InputError(
                f"{self._columns.title('item')} is of the nested type {column.type_name}; make one of its fields, or "
                f"all of it as text, a column of its own, in a view for example"
            )
        if column.kind not in _EXACT:
            raise self._unfit("item", column, "; items must be text, integers, UUIDs or such")

    def _time(self, relation: str, column: Column) -> _Reading:
        time_format = self._columns.time_format
        if column.kind is Kind.NULL:
            return _Reading(relation, "CAST(NULL AS BIGINT)", self._instants, "FALSE")
        if self._timeline.is_integer:
            if (read := self._numbered_time(relation, column, 1, "integer_time")) is None:
                advice = 'give a start, end and step of times, such as step "1d"'
                raise self._unfit("time", column, f", but the timeline has integer steps; {advice}")
            return read
        if time_format in EPOCHS:
            if (read := self._numbered_time(relation, column, EPOCHS[time_format], "epoch_time")) is None:
                raise self._format_refused(column, "whole numbers, or text of them")
            return read
        if time_format is not None:
            return self._clock_time(self._patterned(relation, column, time_format), "patterned_time")
        if column.kind is Kind.TEXT:
            return self._clock_time(self._dialect.text_times(relation), "time")
        if column.kind not in _TIMES:
            advice = _NUMBER_ADVICE if column.kind in (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT) else ""
            needed = f"steps of {self._timeline.step_text} need a timestamp, a date or {_TIME_ADVICE}"
            raise self._unfit("time", column, f"; {needed}{advice}")
        steps = self._instants if column.kind is Kind.INSTANT else self._walls
        # Two days to spare cover every offset: this lets the engine skip whole blocks of rows.
        low, high = (from_microseconds(bound) for bound in (steps.low - 2 * DAY_US, steps.high + 2 * DAY_US))
        high = _LAST_DAY if self._later else high.replace(microsecond=0)
        about = self._dialect.between(column, low.replace(microsecond=0), high)
        return _Reading(relation, self._dialect.microseconds(column, about), steps, about)

    def _numbered_time(self, relation: str, column: Column, unit: int, what: str) -> _Reading | None:
        """Instants out of whole numbers of `unit` each, whose name in _WANTED is `what`; None for other columns.

        The bounds are of that unit, outside the range on either side, so that no product leaves 64 bits.
        """
        low, high = self._instants.low // unit - 1, -(-self._instants.high // unit)
        number = self._number("time", column, low, high, what)
        if number is None:
            return None
        about = "TRUE"
        if column.kind is Kind.INTEGER:
            about = f"time >= {low}" + ("" if self._later else f" AND time < {high}")
        return _Reading(relation, number if unit == 1 else f"({number}) * {unit}", self._instants, about)

    def _clock_time(self, timed: str, what: str) -> _Reading:
        """Instants out of a relation of `text_times`; text without an offset is local to the zone."""
        moment = f"wall - coalesce(ahead, {offset_sql(self._timeline.offsets)})"
        return _Reading(timed, self._or_fail("time", moment, what), self._instants)

    def _patterned(self, relation: str, column: Column, pattern: str) -> str:
        """As `text_times`, for text of a pattern."""
        if column.kind not in (Kind.TEXT, Kind.INTEGER):
            raise self._format_refused(column, "text, or whole numbers such as 20130131")
        timed = self._dialect.patterned_times(relation, pattern)
        if timed is None:
            raise InputError(
                f"the engine {self._dialect.name} does not read times by a pattern such as --time-format {pattern!r}; "
                f"make the column {self._columns.time!r} a timestamp, in a view for example, or count with duckdb"
            )
        return timed

    def _format_refused(self, column: Column, wanted: str) -> InputError:
        what = "says itself what its times are: leave --time-format out"
        if column.kind not in _TIMES:
            what = (
                f"is read by --time-format {self._columns.time_format}, which goes with {wanted}, as the engine "
                f"{self._dialect.name} reads them: write it so"
            )
        return self._unfit("time", column, f", and {what}")

    def _unfit(self, role: str, column: Column, why: str) -> InputError:
        return InputError(f"{self._columns.title(role)} is of type {column.type_name}{why}")

    def _count(self, column: Column | None) -> str:
        if column is None or column.kind is Kind.NULL:
            return f"CAST({'1' if column is None else 'NULL'} AS BIGINT)"
        number = self._number("count", column, 0, self._cap, "count")
        if number is None:
            raise self._unfit("count", column, "; counts must be of an integer type")
        return number

    def _number(self, role: str, column: Column, low: int, high: int, what: str) -> str | None:
        """Whole numbers of a column moved into [low, high]; None for a column that has none.

        The query fails, by the name `what`, where text is no whole number, or a number has a fraction.
        """
        match column.kind:
            case Kind.INTEGER:
                return _clamped(role, low, high)
            case Kind.DECIMAL:
                return self._or_fail(role, _clamped(self._dialect.whole(role), low, high), f"decimal_{what}")
            case Kind.TEXT:
                # What does not fit the type is beyond all bounds.
                beyond = f"CASE WHEN {role} LIKE '%-%' THEN {low} ELSE {high} END"
                value = f"coalesce({self._dialect.number(role)}, {beyond})"
                number = f"CASE WHEN {self._dialect.matches(role, INTEGER_TEXT)} THEN {value} END"
                return self._or_fail(role, _clamped(number, low, high), what)
            case Kind.FLOAT if what == "epoch_time":
                if (whole := self._dialect.whole_float(role, _EXACT_BELOW[column.type_name])) is not None:
                    read = self._or_fail(role, _clamped(whole, low, high), f"decimal_{what}")
                    return f"CASE WHEN NOT isnan({role}) THEN {read} END"
        return None

    def _or_fail(self, column: str, value: str, role: str) -> str:
        """`value`, null where the column is null; where only the value is, the query fails and says what it was."""
        failure = self._dialect.failure(_MARK + role, column, value)
        return f"CASE WHEN {column} IS NOT NULL THEN coalesce({value}, {failure}) END"


def counting_sql(
    dialect: Dialect, request: CountRequest, relation: str, names: Mapping[str, str], types: Mapping[str, Column]
) -> str:
    """The query for the signed counts of one relation, whose columns have these names, as SQL, and types, by role.

    Raises:
        InputError: a column's type does not serve.
    """
    columns, wanted = request.columns, request.wanted
    if columns.count is not None and not dialect.ranges and wanted.cap > 1:
        raise InputError(
            f"the engine {dialect.name} counts no rows that stand for several occurrences, for it has no window frames "
            f"of numbers: leave --count out, and write a row for each occurrence, in a view for example"
        )
    events = events_sql(dialect, columns, request.timeline, relation, names, types, cap=wanted.cap)
    return wanted.sql(Occurrences(f"({events})", columns.count is not None), dialect)


def events_sql(
    dialect: Dialect,
    columns: EventColumns,
    timeline: Timeline,
    relation: str,
    names: Mapping[str, str],
    types: Mapping[str, Column],
    *,
    cap: int,
    later: bool = False,
) -> str:
    """The query for (item, step, count) of one relation, as `EventQueries.events` writes it; text items as bytes say.

    Raises:
        InputError: a column's type does not serve.
    """
    chosen = ", ".join(f"{dialect.exact(role, names[role], types[role])} AS {role}" for role in names)
    writer = EventQueries(dialect, columns, timeline, cap=cap, later=later)
    return writer.events([(f"SELECT {chosen} FROM {relation}", types)])


def unreadable(message: str, columns: EventColumns, place: Place | None = None) -> InputError | None:
    """The error for values that are not what their column should hold, if an engine's message is about such.

    `place` tells where a value stands, where that has a name.
    """
    # A message may quote a row, which may say anything.
    names = "|".join(sorted(_WANTED))
    found = re.search(f"{_MARK}((?:decimal_)?(?:{names}))(?![a-z_])(.*)", message, re.DOTALL)
    return found and unreadable_values(found[1], columns, such_as(found[2], _role_of(found[1]), place))


def unreadable_values(what: str, columns: EventColumns, example: str = "") -> InputError:
    """The error for values that are not what their column should hold; `what` is a key of _WANTED, or decimal_ one."""
    role, wanted = _role_of(what), _WANTED[what.removeprefix("decimal_")]
    title = columns.title(role)
    if what.startswith("decimal"):
        mend = "read them in the unit they are written in (--time-format)" if "epoch" in what else "round the others"
        return InputError(
            f"{title} holds decimals, and not all of them are whole numbers{example}; {wanted}: {mend}, or leave them "
            f"out before, in a view for example"
        )
    if columns.time_format is not None and role == "time":
        written = f"as --time-format {columns.time_format!r} says"
        years = " (%Y is a year of four digits, %y one of two)" if "%Y" in columns.time_format else ""
        return InputError(f"{title} is not all {written}{example}; {wanted}: give another format{years}")
    mend = {
        "time": ", or say what it is with --time-format",
        "count": ", or leave --count out",
        "integer_time": ", or give --start, --end and a --step of times",
    }.get(what, "")
    return InputError(f"{title} is text and not all of it can be read{example}; {wanted}{mend}")


def _role_of(what: str) -> str:
    return "count" if "count" in what else "time"


def _clamped(value: str, low: int, high: int) -> str:
    """A whole number moved into [low, high], as a bigint; null where it is null, unlike with `least`."""
    return f"CAST(CASE WHEN {value} < {low} THEN {low} WHEN {value} > {high} THEN {high} ELSE {value} END AS BIGINT)"
