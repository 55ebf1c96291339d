"""The periods of tumbling and to-date windows among the steps of a range."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpwindows.ask.calendar import Calendar
from dpwindows.ask.queries import PeriodFamily, Query, WindowFamily
from dpwindows.ask.zones import Int64Array
from dpwindows.errors import InputError


def placed(queries: tuple[Query, ...], calendar: Calendar | None, steps: int) -> tuple[Query, ...]:
    """Queries whose named periods have their place in a calendar.

    Args:
        queries: what is asked.
        calendar: the clock of the range; None where time is an integer, or not known.
        steps: the length of the range; every period in it must begin together with a step.

    Raises:
        InputError: a named period has no calendar, or begins within a step.
    """
    placed_queries = tuple(replace(query, window=place(query.window, calendar)) for query in queries)
    for query in placed_queries:
        if isinstance(query.window, PeriodFamily):
            first_steps(query.window, steps)
    return placed_queries


def place(window: WindowFamily, calendar: Calendar | None) -> WindowFamily:
    """A family with the calendar that its periods are those of; one without named periods as it is.

    Raises:
        InputError: it has named periods, and there is no calendar.
    """
    if not isinstance(window, PeriodFamily) or isinstance(window.period, int):
        return window
    if calendar is None:
        raise InputError(
            f"{window} needs a calendar, and steps that are only numbered have none: in place of --steps, or of whole "
            "numbers, give --start (and --end) as dates with a --step such as 1d (in Python to Timeline or StreamPlan: "
            'start="2026-01-01", step="1d"), or say how many steps a period has, for example '
            f"{window.text.partition(':')[0]}:30"
        )
    return replace(window, calendar=calendar)


def first_steps(window: PeriodFamily, steps: int) -> Int64Array:
    """The first step of every period within steps 1..steps, ascending, beginning with 1.

    Raises:
        ValueError: its periods are named and have no calendar yet (`placed` gives them one).
    """
    if isinstance(window.period, int):
        return np.arange(1, steps + 1, min(window.period, steps), dtype=np.int64)
    return _calendar(window).first_steps(window.period, steps)


def sizes(window: PeriodFamily, steps: int) -> Int64Array:
    """How many of the steps 1..steps each period has, shape (periods,)."""
    return np.diff(first_steps(window, steps), append=steps + 1)


def place_of(window: PeriodFamily, step: int) -> tuple[int, int]:
    """The period of a step, and its place in that period, both counted from 1."""
    if isinstance(window.period, int):
        period, place = divmod(step - 1, window.period)
        return period + 1, place + 1
    begun = first_steps(window, step)
    return len(begun), step - int(begun[-1]) + 1


def ends_with(window: PeriodFamily, step: int) -> bool:
    """True if a period ends with a step, whether or not the range does."""
    if isinstance(window.period, int):
        return step % window.period == 0
    return _calendar(window).ends(window.period, step)


def cuts_first(window: PeriodFamily) -> bool:
    """True if the first period began before step 1."""
    return not isinstance(window.period, int) and _calendar(window).cuts_first(window.period)


def fewest_and_most(window: PeriodFamily) -> tuple[int, int]:
    """Bounds on how many steps a whole period has, whenever it is."""
    if isinstance(window.period, int):
        return window.period, window.period
    return _calendar(window).fewest_and_most(window.period)


def _calendar(window: PeriodFamily) -> Calendar:
    if window.calendar is None:
        raise ValueError(f"the periods of {window} have no place in a calendar yet")
    return window.calendar
