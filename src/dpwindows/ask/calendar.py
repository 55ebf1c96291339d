"""The steps that the weeks, months, quarters and years of a time zone begin with.

A period begins at midnight on the wall clock of the zone: a week on Monday (ISO 8601), a quarter in January, April,
July or October. Every period that begins within the range must begin together with a step, for otherwise its windows
would hold other days than the period.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpwindows.ask.timeline import CALENDAR_DAYS, ELAPSED_US, Timeline, parse_step
from dpwindows.ask.zones import DAY_US, Int64Array, from_microseconds
from dpwindows.errors import InputError

_MONTHS = {"month": 1, "quarter": 3, "year": 12}
# The fewest and the most days that a period has.
_DAYS = {"week": (7, 7), "month": (28, 31), "quarter": (90, 92), "year": (365, 366)}
# 1970 began on a Thursday: days since then, and three more, are whole weeks on Mondays.
_TO_MONDAY = 3


@dataclass(frozen=True)
class Calendar:
    """The clock of a range: its first moment, its step and its zone, as a `Timeline` holds them."""

    start: str
    step: str
    time_zone: str

    @classmethod
    def of(cls, timeline: Timeline) -> Calendar | None:
        """The calendar of a timeline; None where time is an integer."""
        if timeline.is_integer:
            return None
        return cls(str(timeline.start), timeline.step_text, timeline.time_zone)

    def first_steps(self, name: str, steps: int) -> Int64Array:
        """The first steps of the periods within steps 1..steps, shape (periods,); the first is 1, cut or not.

        Raises:
            InputError: a period begins within a step.
        """
        begun = self._begun(name, steps)
        return begun[: np.searchsorted(begun, steps, side="right")]

    def cuts_first(self, name: str) -> bool:
        """True if the first period began before step 1."""
        timeline = Timeline.of_length(self.start, 1, self.step, self.time_zone)
        return int(timeline.boundary_values[0]) not in _beginnings(name, timeline)

    def ends(self, name: str, step: int) -> bool:
        """True if a period ends with a step."""
        begun = self._begun(name, step)
        place = int(np.searchsorted(begun, step + 1))
        return place < len(begun) and int(begun[place]) == step + 1

    def fewest_and_most(self, name: str) -> tuple[int, int]:
        """Bounds on how many steps a whole period has, whenever it is: at least, and at most.

        Clock changes are given a day for steps of hours and less. Whoever relies on these bounds checks them.
        """
        number, unit = parse_step(self.step)
        if unit == "mo":
            return max(1, _MONTHS.get(name, 1) // number), max(1, _MONTHS.get(name, 1) // number)
        fewest, most = _DAYS[name]
        if unit in CALENDAR_DAYS:
            return max(1, fewest // (number * CALENDAR_DAYS[unit])), -(-most // (number * CALENDAR_DAYS[unit]))
        length = number * ELAPSED_US[unit]
        return max(1, (fewest - 1) * DAY_US // length), -(-(most + 1) * DAY_US // length)

    def __str__(self) -> str:
        return f"steps of {self.step} from {self.start} ({self.time_zone})"

    @cached_property
    def _known(self) -> dict[str, tuple[int, Int64Array]]:
        return {}

    def _begun(self, name: str, steps: int) -> Int64Array:
        """First steps of periods, all of those up to step `steps + 1` among them."""
        covered, begun = self._known.get(name, (0, np.zeros(0, dtype=np.int64)))
        if covered < steps:
            # A stream asks step by step: twice as many each time. A release asks once, for no step beyond its own.
            covered = max(steps, 2 * covered)
            begun = self._worked_out(name, covered)
            self._known[name] = covered, begun
        return begun

    def _worked_out(self, name: str, steps: int) -> Int64Array:
        timeline = Timeline.of_length(self.start, steps, self.step, self.time_zone)
        bounds = timeline.boundary_values
        begin = _beginnings(name, timeline)
        inside = begin[(begin > bounds[0]) & (begin <= bounds[-1])]
        place = np.searchsorted(bounds, inside)
        off = np.flatnonzero(bounds[place] != inside)
        if len(off):
            raise self._off_boundary(name, timeline, int(inside[off[0]]), int(place[off[0]]))
        return np.concatenate([[1], place + 1]).astype(np.int64)

    def _off_boundary(self, name: str, timeline: Timeline, begin: int, after: int) -> InputError:
        moment, before, later = (
            from_microseconds(int(timeline.offsets.to_local(np.array([value], dtype=np.int64))[0])).isoformat(" ")
            for value in (begin, timeline.boundary_values[after - 1], timeline.boundary_values[after])
        )
        return InputError(
            f"a {name} begins at {moment} ({self.time_zone}), within the step from {before} to {later}: windows of a "
            f"{name} need steps that none begins within. Start the range at midnight and take steps of days "
            "(--step 1d), or give the length of the windows in steps"
        )


def _beginnings(name: str, timeline: Timeline) -> Int64Array:
    """The instants at which periods begin, those within the range of the timeline among them; ascending."""
    bounds = timeline.boundary_values[[0, -1]]
    # A day to either side: the wall clock may show another date than a change of offsets lets expect.
    first, last = (timeline.offsets.to_local(bounds) // DAY_US + [-1, 1]).tolist()
    if name == "week":
        days = np.arange((first + _TO_MONDAY) // 7 * 7 - _TO_MONDAY, last + 1, 7)
    else:
        months = _MONTHS[name]
        low, high = np.array([first, last]).astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
        days = np.arange(low // months * months, high + 1, months).astype("datetime64[M]").astype("datetime64[D]")
    return timeline.offsets.to_instants(days.astype(np.int64) * DAY_US)
