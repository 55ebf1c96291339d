"""The public time range of a release and the equal steps that it is cut into.

The range is [start, end) and is given by the caller, never read from the data. Steps are numbered 1..T; step i is
[boundary i - 1, boundary i). Seconds, minutes and hours are elapsed time. Days, weeks and months are calendar steps
on the wall clock of a named zone, so that a day may last 23 or 25 hours.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, SupportsIndex
from zoneinfo import ZoneInfo, available_timezones

import numpy as np

from dpwindows.ask.whole_numbers import LONGEST, read_whole
from dpwindows.ask.zones import DAY_US, EPOCH, Int64Array, OffsetTable, from_microseconds, offset_table, to_microseconds
from dpwindows.errors import InputError, counted

if TYPE_CHECKING:
    import pyarrow as pa

TimePoint = str | date | datetime | SupportsIndex

MAX_STEPS = 100_000_000
ELAPSED_US = {"s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000}
CALENDAR_DAYS = {"d": 1, "w": 7}
_UNITS = "s (seconds), m (minutes), h (hours), d (days), w (weeks), mo (months)"
_INT64 = np.iinfo(np.int64)


@dataclass(frozen=True)
class _Moment:
    """A time on the wall clock of the zone (microseconds), which of two equal ones it is, and its instant."""

    wall: int
    fold: int
    instant: int


@dataclass(frozen=True)
class Timeline:
    """The public range [start, end) cut into steps.

    `start` and `end` are ISO text, a date, or a datetime (without a zone: local to `time_zone`; with one: converted),
    or integers if time is an integer. `step` is text such as "1d", "15m", "1h", "30s", "1w", "1mo", or a plain
    integer for integer time. After construction `start`, `end` and `step` hold their canonical values (ISO text, or
    integers), so that equal timelines compare equal.

    Raises `InputError` if a value cannot be read, `end` is not after `start`, or `end` lies off a step boundary.
    """

    start: TimePoint
    end: TimePoint
    step: str | int = "1d"
    time_zone: str = "UTC"

    def __post_init__(self) -> None:
        number, unit = parse_step(self.step)
        zone = parse_zone(self.time_zone)
        if unit:
            self._settle_times(number, unit, zone)
        else:
            self._settle_integers(number)

    @classmethod
    def of_steps(cls, steps: int) -> Timeline:
        """Integer time 0..steps in steps of 1: for events that carry a step number already (0-based)."""
        return cls(0, steps, 1)

    @classmethod
    def of_length(cls, start: TimePoint, steps: int, step: str | int = "1d", time_zone: str = "UTC") -> Timeline:
        """So many steps from a start.

        Raises `InputError` if a value cannot be read, or the last step ends after the year 9000.
        """
        number, unit = parse_step(step)
        zone = parse_zone(time_zone)
        _check_size(steps)
        if not unit:
            first = _read_integer(start, "start")
            return cls(first, first + steps * number, number, time_zone)
        wall, longest = _read_time(start, "start"), _longest_step_us(number, unit)
        first = to_microseconds(wall.replace(tzinfo=None))
        last = first + (steps + 1) * longest
        if last > to_microseconds(datetime(9000, 1, 1)):
            raise InputError(f"{steps:,} steps of {number}{unit} from {start} end after the year 9000: take fewer")
        offsets = offset_table(zone, first, last)
        begin = _moment_at(wall, offsets)
        _whole_steps(begin, begin, number, unit)  # refuses steps that not every month has
        end = int(_boundaries(begin, steps, number, unit, offsets)[-1])
        return cls(start, _canonical(_moment_of(end, offsets), offsets), f"{number}{unit}", time_zone)

    @property
    def is_integer(self) -> bool:
        """True if time is an integer, False if it is a timestamp."""
        return isinstance(self.step, int)

    @property
    def step_text(self) -> str:
        """The canonical text of the step: "1d", "15m", or "1" for integer time."""
        return str(self.step)

    @cached_property
    def steps(self) -> int:
        """The number of steps T."""
        return len(self.boundary_values) - 1

    @cached_property
    def boundary_values(self) -> Int64Array:
        """The boundaries, shape (T + 1,): integer time as it is, or microseconds since 1970-01-01T00:00Z.

        They never decrease; two are equal only where a zone left out a whole day (such a step is empty).
        """
        raise AssertionError("set by the constructor")

    @cached_property
    def offsets(self) -> OffsetTable:
        """The offsets of the zone around the range (none change for integer time)."""
        return OffsetTable(np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64))

    def boundaries(self) -> pa.Array:
        """The T + 1 step boundaries as an Arrow array: int64, or timestamp[us] in the zone of the timeline."""
        import pyarrow as pa  # a plan does without it

        kind = pa.int64() if self.is_integer else pa.timestamp("us", tz=self.time_zone)
        # Around pa.array, which would import pandas.
        return pa.Array.from_buffers(kind, self.steps + 1, [None, pa.py_buffer(self.boundary_values)])

    def step_of(self, value: TimePoint) -> int:
        """The index 0..T of the boundary on which a public time lies; also the number of steps that end by then.

        Raises `InputError` if it lies outside the range or between two boundaries.
        """
        number = _read_integer(value, "the time") if self.is_integer else self._moment(value, "the time").instant
        bounds = self.boundary_values
        index = int(np.searchsorted(bounds, number))
        if index <= self.steps and int(bounds[index]) == number:
            return index
        if number < bounds[0] or number > bounds[-1]:
            raise InputError(f"{value} is outside the range, which is {self.start} to {self.end} (end exclusive)")
        raise InputError(
            f"{value} is not on a boundary of the steps of {self.step_text}; "
            f"the nearest are {self._show(bounds[index - 1])} and {self._show(bounds[index])}"
        )

    def boundary_text(self, step: int) -> str:
        """The end of a step, of step 0 the start of the range, as a caller would write it."""
        return self._show(self.boundary_values[step])

    def to_dict(self) -> dict[str, str | int]:
        """The timeline as plain JSON values; `from_dict` gives it back."""
        assert isinstance(self.start, str | int) and isinstance(self.end, str | int), "canonical after construction"
        return {"start": self.start, "end": self.end, "step": self.step, "time_zone": self.time_zone}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Timeline:
        """The timeline that `to_dict` described. Raises `InputError` if a key is missing or a value is wrong."""
        wanted = ("start", "end", "step", "time_zone")
        missing = [key for key in wanted if key not in values]
        if missing:
            raise InputError(f"a stored timeline has start, end, step and time_zone; missing: {', '.join(missing)}")
        return cls(*(values[key] for key in wanted))

    def __str__(self) -> str:
        count = f"{counted(self.steps, 'step')} of {self.step_text}"
        zone = "" if self.is_integer else f" ({self.time_zone})"
        return f"{count} from {self.start} to {self.end}{zone}"

    def _settle_integers(self, number: int) -> None:
        start = _read_integer(self.start, "start")
        end = _read_integer(self.end, "end")
        if end <= start:
            raise InputError(f"end must be after start, got start={start} and end={end}")
        whole, rest = divmod(end - start, number)
        if rest:
            raise _off_boundary(end, number, [start + n * number for n in (whole, whole + 1) if n])
        _check_size(whole)
        self._settle(start=start, end=end, step=number)
        self._settle(boundary_values=np.arange(whole + 1, dtype=np.int64) * number + start)

    def _settle_times(self, number: int, unit: str, zone: ZoneInfo) -> None:
        start_wall, end_wall = _read_time(self.start, "start"), _read_time(self.end, "end")
        first, last = sorted(to_microseconds(wall.replace(tzinfo=None)) for wall in (start_wall, end_wall))
        longest = _longest_step_us(number, unit)
        _check_size((last - first) // longest - 1)  # before the zone is looked up over all of it
        self._settle(offsets=offset_table(zone, first, last + longest))
        start, end = self._moment(start_wall, "start"), self._moment(end_wall, "end")
        if end.instant <= start.instant:
            raise InputError(f"end must be after start, got start={self.start} and end={self.end}")
        whole = _whole_steps(start, end, number, unit)
        _check_size(whole)
        bounds = _boundaries(start, whole + 1, number, unit, self.offsets)
        # The range ends on one of the last boundaries or on none (never earlier: a step outlasts any clock change).
        ends = sorted(np.flatnonzero(bounds == end.instant), key=lambda index: abs(int(index) - whole))
        text = f"{number}{unit}"
        if not ends:
            raise _off_boundary(self.end, text, [self._show(bound) for bound in bounds[-2:] if bound > start.instant])
        self._settle(start=_canonical(start, self.offsets), end=_canonical(end, self.offsets), step=text)
        self._settle(boundary_values=bounds[: int(ends[0]) + 1])

    def _settle(self, **values: object) -> None:
        """Set fields and computed properties of this frozen value; only the constructor calls it."""
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
            self.__dict__[name] = value

    def _moment(self, value: TimePoint, name: str) -> _Moment:
        """Read a public time given to this timeline."""
        return _moment_at(_read_time(value, name), self.offsets)

    def _show(self, bound: np.int64 | int) -> str:
        """A boundary value as the caller would write it."""
        if self.is_integer:
            return str(bound)
        local = self.offsets.to_local(np.array([bound], dtype=np.int64))
        return _short_iso(from_microseconds(int(local[0])))


def longest_step(timeline: Timeline) -> int:
    """At least the length of any step: in integer time, or microseconds but for changes of the zone's offset."""
    number, unit = parse_step(timeline.step)
    return _longest_step_us(number, unit) if unit else number


def step_phase(timeline: Timeline) -> str:
    """Equal for two timelines of equal step and zone if and only if the steps of one, carried on, are the other's."""
    number, unit = parse_step(timeline.step)
    start: Any = timeline.start
    if not unit:
        return str(_read_integer(start, "start") % number)
    moment = timeline._moment(start, "start")
    if unit in ELAPSED_US:
        return str(moment.instant % (number * ELAPSED_US[unit]))
    second = ", second of two" if moment.fold else ""
    if unit in CALENDAR_DAYS:
        return f"{moment.wall % (number * CALENDAR_DAYS[unit] * DAY_US)}{second}"
    first = from_microseconds(moment.wall)
    into_month = moment.wall - to_microseconds(datetime(first.year, first.month, 1))
    return f"month {(first.year * 12 + first.month) % number}, {into_month}{second}"


def _check_size(steps: int) -> None:
    if steps > MAX_STEPS:
        raise InputError(f"the range has more than {MAX_STEPS:,} steps: take longer steps")


def parse_step(step: object) -> tuple[int, str]:
    """The number and unit of a step; the unit of integer time is empty.

    Raises:
        InputError: it is no such text, or its unit is unknown.
    """
    if not isinstance(step, str):
        number, unit = _read_integer(step, "step"), ""
    else:
        match = re.fullmatch(r"([0-9]+)\s*([A-Za-z]*)", step.strip())
        if match is None:
            raise InputError(f'step must be text such as "1d" or "15m", or a plain integer, got {step!r}')
        count, unit = read_whole(match[1]), match[2]
        if count is None:
            raise InputError(f"step must be at most 10^100, got {step!r}")
        number = count
        if unit and unit not in (*ELAPSED_US, *CALENDAR_DAYS, "mo"):
            raise InputError(f"step has the unknown unit {unit!r} in {step!r}; known units are {_UNITS}")
    if number < 1:
        raise InputError(f"step must be at least 1, got {step!r}")
    if unit and _longest_step_us(number, unit) > 500 * 366 * DAY_US:
        raise InputError(f"step must be shorter than 500 years, got {step!r}")
    return number, unit


def parse_zone(name: object) -> ZoneInfo:
    """The zone of a name; raises `InputError` if there is none."""
    if isinstance(name, str) and name:
        with suppress(KeyError, ValueError, OSError):
            return ZoneInfo(name)
    folded = str(name).replace(" ", "_").lower()
    cities = sorted(known for known in available_timezones() if known.lower().rpartition("/")[2] == folded)
    meant = f" (did you mean {' or '.join(map(repr, cities))}?)" if folded and cities else ""
    raise InputError(
        f'the time zone (--time-zone, in Python time_zone) must be a name such as "UTC" or "America/New_York", '
        f"got {name!r}{meant}"
    )


def _read_integer(value: object, name: str) -> int:
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?[0-9]+\s*", value):
        sign = -1 if value.strip().startswith("-") else 1
        digits = read_whole(value.strip().lstrip("+-"))
        if digits is None:
            raise InputError(f"{name} must lie between -2**62 and 2**62, got {value}")
        number = sign * digits
    elif isinstance(value, bool | str | date) or not hasattr(value, "__index__"):
        raise InputError(
            f"{name} must be an integer where step is a plain integer, got {value!r}; "
            f'for timestamps give a step with a unit, such as "1d"'
        )
    else:
        number = operator.index(value)
    if not _INT64.min // 2 <= number <= _INT64.max // 2:
        shown = str(number) if abs(number) < LONGEST else "a number of more than 100 digits"
        raise InputError(f"{name} must lie between -2**62 and 2**62, got {shown}")
    return number


def _read_time(value: object, name: str) -> datetime:
    """A datetime as given, with or without a zone."""
    moment: datetime | None = None
    if isinstance(value, datetime):
        moment = value
    elif isinstance(value, date):
        moment = datetime(value.year, value.month, value.day)
    elif isinstance(value, str):
        with suppress(ValueError):
            moment = datetime.fromisoformat(value.strip())
    elif hasattr(value, "__index__"):
        raise InputError(
            f"{name} must be a time where step has a unit, got the integer {value!r}; "
            f"for integer time give step as a plain integer"
        )
    if moment is not None:
        if not 1000 <= moment.year <= 9000:
            raise InputError(f"{name} must lie in the years 1000 to 9000, got {value}")
        return moment
    raise InputError(f'{name} must be a date or time such as "2013-01-01" or "2013-01-01T06:00", got {value!r}')


def _moment_at(moment: datetime, offsets: OffsetTable) -> _Moment:
    """A datetime with or without a zone, on the wall clock of a zone."""
    if moment.tzinfo is None:
        wall, fold = to_microseconds(moment), moment.fold
        local = np.array([wall], dtype=np.int64)
        return _Moment(wall, fold, int(offsets.to_instants(local, fold)[0]))
    return _moment_of(to_microseconds(moment.astimezone(UTC).replace(tzinfo=None)), offsets)


def _moment_of(instant: int, offsets: OffsetTable) -> _Moment:
    """An instant on the wall clock of a zone."""
    local = offsets.to_local(np.array([instant], dtype=np.int64))
    fold = int(offsets.to_instants(local)[0] != instant)
    return _Moment(int(local[0]), fold, instant)


def _longest_step_us(number: int, unit: str) -> int:
    """An upper bound on the length of a step, for looking up the zone one step beyond the range."""
    if unit in ELAPSED_US:
        return number * ELAPSED_US[unit]
    return number * CALENDAR_DAYS.get(unit, 31) * DAY_US


def _whole_steps(start: _Moment, end: _Moment, number: int, unit: str) -> int:
    """The number of whole steps from start to end: exact for elapsed time, by the wall clock for calendar steps."""
    if unit in ELAPSED_US:
        return (end.instant - start.instant) // (number * ELAPSED_US[unit])
    if unit in CALENDAR_DAYS:
        return (end.wall - start.wall) // (number * CALENDAR_DAYS[unit] * DAY_US)
    first, last = from_microseconds(start.wall), from_microseconds(end.wall)
    if first.day > 28:
        raise InputError(f"steps of months must start on day 1 to 28 (every month has these), got {_short_iso(first)}")
    months = (last.year - first.year) * 12 + last.month - first.month
    months -= (last.day, last.time()) < (first.day, first.time())
    return months // number


def _boundaries(start: _Moment, steps: int, number: int, unit: str, offsets: OffsetTable) -> Int64Array:
    """The steps + 1 instants at which the steps begin and end."""
    index = np.arange(max(steps, 1) + 1, dtype=np.int64)
    if unit in ELAPSED_US:
        return start.instant + index * (number * ELAPSED_US[unit])
    if unit in CALENDAR_DAYS:
        walls = start.wall + index * (number * CALENDAR_DAYS[unit] * DAY_US)
    else:
        first = from_microseconds(start.wall)
        month = np.datetime64(first.date(), "M")
        into_month = start.wall - to_microseconds(datetime(first.year, first.month, 1))
        walls = (month + index * number).astype("datetime64[us]").astype(np.int64) + into_month
    return offsets.to_instants(walls, start.fold)


def _canonical(moment: _Moment, offsets: OffsetTable) -> str:
    """ISO text that reads back as the same moment: local, with its offset only if it is the second of two equal."""
    text = _short_iso(from_microseconds(moment.wall))
    if moment.fold == 0 or moment.instant == int(offsets.to_instants(np.array([moment.wall], dtype=np.int64))[0]):
        return text
    return from_microseconds(moment.instant).isoformat() + "+00:00"


def _short_iso(wall: datetime) -> str:
    """A date where the time is midnight, else date and time to the precision needed."""
    if (wall - EPOCH).seconds == 0 and wall.microsecond == 0:
        return wall.date().isoformat()
    return wall.isoformat(timespec="auto" if wall.second or wall.microsecond else "minutes")


def _off_boundary(end: object, step: object, legal: list[Any]) -> InputError:
    nearest = " or ".join(str(value) for value in legal)
    return InputError(f"end={end} is not a whole number of steps of {step} after start; the nearest end is {nearest}")
