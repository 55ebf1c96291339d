"""The times of a release as people read them: axis positions, dates as text, lengths in words.

A release counts in steps. A reader thinks in days of their own calendar, so every time shown is the wall clock of the
release's time zone, and a window of whole days is named by its first and its last day.

Whole numbers that can only be seconds, milliseconds or microseconds since 1970 are shown as the dates they stand for,
in UTC, and the page says so and shows the numbers too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dpwindows.errors import counted

_UNITS = {"s": "second", "m": "minute", "h": "hour", "d": "day", "w": "week", "mo": "month"}
# Units of time since 1970, finest last; numbers from 2000 to 2100 in one of them are taken for times.
_EPOCHS = (("seconds", 1), ("milliseconds", 1_000), ("microseconds", 1_000_000))
_FROM, _TO = 946_684_800, 4_102_444_800
_LENGTHS = (("week", 604_800), ("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))

Instants = npt.NDArray[Any]


@dataclass(frozen=True)
class Clock:
    """How to show the times of one release.

    Attributes:
        count: how many units a step is long.
        unit: the unit of a step in words (`day`), or None where time is a plain number.
        zone: the time zone of the release, or None where time is a plain number or has no zone.
        dates: whether every window is made of whole days, so that dates without a time of day say it all.
        epoch: what whole numbers count since 1970 (`seconds`, ...), or None where they are no times.
    """

    count: int
    unit: str | None
    zone: str | None
    dates: bool
    epoch: str | None = None

    @classmethod
    def of(cls, table: pa.Table, metadata: Mapping[str, Any]) -> Clock:
        """The clock of a release, from its timeline and the type of its `end` column."""
        kind = table.schema.field("end").type
        found = re.fullmatch(r"(\d+)(s|mo|m|h|d|w)?", str(metadata["timeline"]["step"]))
        count, letter = (int(found[1]), found[2]) if found else (1, None)
        if not pa.types.is_timestamp(kind):
            return _of_numbers(table, count) or cls(count, None, None, dates=False)
        unit = _UNITS.get(letter or "")
        return cls(count, unit, kind.tz, dates=unit in ("day", "week", "month") and _at_midnight(table))

    def wall(self, column: pa.ChunkedArray) -> Instants:
        """A time column as plain numbers, or as instants of the release's own wall clock."""
        if pa.types.is_timestamp(column.type):
            local = pc.local_timestamp(column) if column.type.tz else column
            return np.asarray(local.to_numpy(), dtype="datetime64[us]")
        numbers = np.asarray(column.to_numpy(), dtype=np.int64)
        if self.epoch is None:
            return numbers
        return (numbers * (1_000_000 // dict(_EPOCHS)[self.epoch])).astype("datetime64[us]")

    def positions(self, ends: Instants) -> list[int]:
        """Where windows with these ends (from `wall`) stand on an axis: their last day, else their end.

        Milliseconds since 1970 of the wall clock, to be drawn on a UTC axis: a browser in another zone then shows the
        release's own dates. (An hour repeated in autumn is drawn at one place.)
        """
        if ends.dtype.kind != "M":
            return [int(value) - 1 for value in ends]
        instants = (ends - np.timedelta64(1, "us")).astype("datetime64[D]") if self.dates else ends
        return [int(value) for value in instants.astype("datetime64[ms]").astype(np.int64)]

    def edges(self, ends: Instants) -> list[int]:
        """Where windows with these ends (from `wall`) stop on the same axis, exactly."""
        whole = ends.astype("datetime64[ms]").astype(np.int64) if ends.dtype.kind == "M" else ends
        return [int(value) for value in whole]

    def starts(self, instants: Instants) -> list[str]:
        """Window starts (from `wall`, inclusive) as text."""
        if instants.dtype.kind != "M":
            return [str(int(value)) for value in instants]
        unit = "D" if self.dates else "s" if self.unit == "second" else "m"
        return [str(text).replace("T", " ") for text in np.datetime_as_string(instants.astype(f"datetime64[{unit}]"))]

    def ends(self, instants: Instants) -> list[str]:
        """Window ends (from `wall`, exclusive) as text: the last day or number inside the window; else the end."""
        if instants.dtype.kind != "M":
            return self.starts(instants - 1)
        return self.starts(instants - np.timedelta64(1, "us") if self.dates else instants)

    @property
    def until(self) -> str:
        """The word before an end written by `ends`: `through` where it is inside the window, else `until`."""
        return "through" if self.dates or self.unit is None else "until"

    def length(self, steps: int) -> str:
        """So many steps in words: `28 days`, `7 hours`, `12 steps`."""
        if self.unit is None:
            return counted(steps, "step")
        total, unit = steps * self.count, self.unit
        for smaller, larger in (("second", "minute"), ("minute", "hour")):
            if unit == smaller and total % 60 == 0:
                total, unit = total // 60, larger
        return counted(total, unit)

    @property
    def steps(self) -> str:
        """What a window length is counted in: `days`, or `steps of 15 minutes`."""
        if self.unit is None:
            return "steps" if self.count == 1 else f"steps of {self.count:,}"
        return f"{self.unit}s" if self.count == 1 else f"steps of {self.length(1)}"

    def described(self) -> dict[str, Any]:
        """What a page needs to write times the same way."""
        return {
            "kind": "number" if self.unit is None and self.zone is None else "calendar",
            "dates": self.dates,
            "seconds": self.unit == "second",
            "until": self.until,
            "axis": self.axis_title,
            "steps": self.steps,
            "epoch": dict(_EPOCHS)[self.epoch] if self.epoch else None,
        }

    @property
    def axis_title(self) -> str:
        """What the horizontal axis of a chart over time shows."""
        if self.unit is None and self.zone is None:
            return "last time value in the window"
        return "last day of the window" if self.dates else f"end of the window ({self.zone or 'local time'})"


def _of_numbers(table: pa.Table, step: int) -> Clock | None:
    """The clock of whole numbers that are times since 1970; None where they need not be."""
    if table.num_rows == 0:
        return None
    first, last = pc.min(table["start"]).as_py(), pc.max(table["end"]).as_py()
    for name, scale in _EPOCHS:
        if _FROM * scale <= first and last <= _TO * scale and step % scale == 0:
            unit, seconds = next((unit, size) for unit, size in _LENGTHS if step // scale % size == 0)
            days = seconds >= 86_400 and first % (86_400 * scale) == 0
            return Clock(step // scale // seconds, unit, "UTC", dates=days, epoch=name)
    return None


def _at_midnight(table: pa.Table) -> bool:
    if table.num_rows == 0:
        return True
    first = pc.min(table["start"]).as_py()
    return bool(first.hour == first.minute == first.second == first.microsecond == 0)
