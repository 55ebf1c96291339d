"""Remarks for the operator of a stream on the steps that a call closed: for the screen, in no release."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from dpwindows.ask.timeline import Timeline
from dpwindows.ask.zones import from_microseconds

_SHOWN = 3
_LENGTHS = (("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1))


def notes_on(closed: range, given: tuple[int, ...], timeline: Timeline, name: Callable[[int], str]) -> tuple[str, ...]:
    """The remarks on a call.

    Args:
        closed: the steps that the call closed.
        given: the steps that have events among what was handed over.
        timeline: from the start of the stream to the end of these steps.
        name: how to tell the end of a step.
    """
    if not closed:
        return ()
    return (*remarks_on_steps(closed, given, name), *remarks_on_time(timeline, datetime.now(UTC)))


def remarks_on_steps(closed: range, given: tuple[int, ...], name: Callable[[int], str]) -> Iterator[str]:
    """Name the steps that were closed without any event, if there are any."""
    empty = sorted(set(closed) - set(given))
    if not empty:
        return
    ends = ", ".join(name(step) for step in empty[:_SHOWN])
    which = "the one that ends at" if len(empty) == 1 else "those that end at"
    more = f" and {len(empty) - _SHOWN:,} more" if len(empty) > _SHOWN else ""
    of = "the step" if len(closed) == 1 else f"{len(empty):,} of the {len(closed):,} steps"
    yield f"no event was handed over for {of} closed now, {which} {ends}{more}: events that come later are late"


def remarks_on_time(timeline: Timeline, now: datetime) -> Iterator[str]:
    """Say how far ahead of now, a moment with its zone, the end of a timeline is, if it is."""
    if timeline.is_integer:
        return
    end = from_microseconds(int(timeline.boundary_values[-1])).replace(tzinfo=now.tzinfo)
    ahead = int((end - now).total_seconds())
    for unit, seconds in _LENGTHS:
        if ahead >= seconds:
            long = ahead // seconds
            yield (
                f"{timeline.end} is {long:,} {unit}{'s' if long > 1 else ''} ahead of now, and the stream is closed "
                "up to it: what happens until then is late"
            )
            return
