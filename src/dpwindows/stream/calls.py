"""The steps that a call closes, and whether the events handed over may be counted in them.

**What a call is.** `advance` to a time T closes every step up to T. Each step is closed by one transaction, so a call
that is interrupted has closed its first steps and no others, and published none. The same call again goes on where it
was and returns the rows of the whole call; so does a call to a later time. A call that closed all its steps returns
its stored rows whenever it is repeated.

**Repeated events.** Events of a step that is closed are never counted again. Of a call that is repeated or goes on,
every closed step must be handed over as it was, or no events at all: a step released again with other events would
show, by the difference of two numbers under one and the same noise, exactly what changed.

**Late events** lie in steps that earlier calls closed. By policy they are

- `refuse`d: the call fails. Events that repeat a closed step exactly are passed over, so that a log may be handed over
  as a whole each time;
- `ignore`d: left out, event by event;
- `move`d: counted in the first step that this call closes.

Events of steps after those that a call closes are `refuse`d, or `ignore`d by this call and left for a later one.

*Why the guarantee covers them.* Write an occurrence as (item, time, call that hands it over). Where it is counted is a
function m of these three and of the times at which calls closed steps, which are public: the step s of its time if its
call closes s, nowhere if its call ends before s, nowhere (`ignore`) or the first step of its call (`move`) if an
earlier call did, and nowhere before the stream's start. What other occurrences there are does not matter, and equal
occurrences are counted one by one. So the released numbers are those of the counted log m(log), and if two logs differ
in one occurrence, their counted logs differ in one occurrence or not at all; if in occurrences of one item, then in
occurrences of that item; if an item is there with all its occurrences in one and not in the other, then so it is in the
counted logs. Neighbours at event level, item level and under item add/remove stay neighbours, and the mechanism's
guarantee holds for them. QED.

Under `refuse` and `ignore` an event that several calls hand over is counted once at most: by the call that closes its
step. Under `move` it is as many occurrences as calls that hand it over: there each event must be handed over once.

It does not hold for `item-per:L`: occurrences of an item in L consecutive steps by their times may be counted further
apart, if some of them are late. There `move` is refused; `ignore` is covered, since what is counted is counted in the
step of its time. That exact repeats are passed over under `refuse` only is on purpose: under `move` one more late
occurrence in a step would decide over all others in it, and m would not be a function of one occurrence.
That a call fails is not covered, as in batch: it is for the operator, who hands over what the policy allows.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Literal, NamedTuple, get_args

from dpwindows.ask.privacy import ItemPerPeriod, Unit
from dpwindows.ask.timeline import Timeline
from dpwindows.ask.zones import from_microseconds
from dpwindows.errors import InputError, time_text
from dpwindows.stream.given_events import NOTHING, Handed
from dpwindows.stream.records import Call

LatePolicy = Literal["refuse", "ignore", "move"]
LaterPolicy = Literal["refuse", "ignore"]
GapPolicy = Literal["accept", "refuse"]
# What a step costs at least, and with each million items, in seconds (docs/streams.md).
_LEAST, _A_MILLION = 0.02, 0.2
# Steps without an event that a remark names.
_SHOWN = 3


class Task(NamedTuple):
    """What a call is to do: release the steps `first..last`; those up to `closed` are closed already."""

    first: int
    last: int
    closed: int
    known: Call | None

    @property
    def finished(self) -> bool:
        """True if all its steps are closed."""
        return self.closed >= self.last


def find_task(last: int, closed: int, newest: Call | None, ending: Call | None, name: Callable[[int], str]) -> Task:
    """What a call up to the end of step `last` is to do.

    Args:
        last: the last step to be closed.
        closed: the last step that is closed.
        newest: the call that closed it, None if none is.
        ending: the call that ends with step `last`, None if there is none.
        name: how to tell a caller the end of a step.

    Raises:
        InputError: the time is before the end of the last closed step, and no call ended there.
    """
    if last > closed:
        if newest is not None and newest.last > closed:
            return Task(newest.first, last, closed, newest)
        return Task(closed + 1, last, closed, None)
    if ending is None:
        raise InputError(
            f"the stream is closed up to {name(closed)}, and no call ended at {name(last)}: give the time of an "
            "earlier call to have its rows again, or a later time to go on"
        )
    return Task(ending.first, last, closed, ending)


def require_few(steps: int, most: int) -> None:
    """Check that a call closes no more steps than it may, before anything is read or drawn.

    Raises:
        InputError: it would close more, or `most` is not at least 1.
    """
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise InputError(f"max_steps must be a whole number from 1, got {most!r}")
    if steps > most:
        raise InputError(
            f"this call would close {steps:,} steps, and at most {most:,} are closed at once. It takes about "
            f"{time_text(steps * _LEAST)}, and {time_text(steps * _A_MILLION)} more for each million items. If the "
            f"time is right, allow it with --max-steps {steps} (in Python max_steps={steps}). Nothing was read or drawn"
        )


def require_passed(timeline: Timeline, now: datetime) -> None:
    """Check that the steps of a call are over, since what happens in one that is closed already is late.

    Args:
        timeline: from the start of the stream to the end of these steps.
        now: a moment with its zone.

    Raises:
        InputError: they end later than now.
    """
    if timeline.is_integer:
        return
    end = from_microseconds(int(timeline.boundary_values[-1])).replace(tzinfo=UTC)
    if end > now:
        ahead = time_text((end - now).total_seconds())
        raise InputError(
            f"{timeline.end} is {ahead} ahead of now. A step is closed when it is over: whatever happens in "
            "it afterwards is late. If the time is meant, allow it with --allow-future (in Python allow_future=True). "
            "Nothing was read or drawn"
        )


def require_policies(late: object, later: object, gaps: object, unit: Unit) -> None:
    """Check the policies for events of closed steps, for those after the steps of a call, and for steps without any.

    Raises:
        InputError: one is unknown, the unit of privacy does not cover it, or a log that is handed over as a whole
            would have its late events moved each time.
    """
    given = (("late", late, LatePolicy), ("later", later, LaterPolicy), ("gaps", gaps, GapPolicy))
    for name, policy, known in given:
        if policy not in get_args(known):
            raise InputError(f"{name} must be one of {', '.join(get_args(known))}, got {policy!r}")
    if late == "move" and isinstance(unit, ItemPerPeriod):
        raise InputError(
            f"late events cannot be moved under the unit {unit.name}: an occurrence moved to a later step may leave "
            "the period of its item, which the guarantee then no longer covers. --late ignore leaves them out, --late "
            "refuse stops at them"
        )
    if late == "move" and later == "ignore":
        raise InputError(
            "--late move does not go with --later ignore: a log that is handed over whole is handed over again, and "
            "events that were moved would be counted once more by each call. Hand over every event once, or use "
            "--late ignore"
        )


def moved_fingerprint(
    task: Task,
    handed: Handed,
    recorded: Callable[[int], str],
    policy: LatePolicy,
    name: Callable[[int], str],
    unit: Unit,
) -> str:
    """Check the events of a call against the policy and against what is closed.

    Args:
        task: what the call is to do.
        handed: the events.
        recorded: the fingerprint of a closed step.
        policy: what to do with late events.
        name: how to tell a caller the end of a step.
        unit: the unit of privacy, which says whether late events may be moved.

    Returns:
        The fingerprint of the late events that are to be counted in the first step of the call; `NOTHING` if none are.

    Raises:
        InputError: there are events at or after the end of the call, closed steps of the call had other events, or
            there are late ones and the policy refuses them.
    """
    if any(step > task.last for step in handed.steps):
        # --late move admits no --later ignore.
        leave = "" if policy == "move" else ", or leave them for a later call with --later ignore (later='ignore')"
        raise InputError(
            f"there are events at or after {name(task.last)}, up to which the stream is to be closed: hand over what "
            f"happened before it{leave}"
        )
    for step in range(task.first, min(task.closed, task.last) + 1):
        if handed.of(step) != recorded(step):
            raise _different(f"events of the step that ends at {name(step)}")
    late = [step for step in handed.steps if step < task.first]
    moved = NOTHING if task.known is None else task.known.moved
    if moved == NOTHING and policy == "move" and task.known is None:
        return handed.together(late)
    if moved != NOTHING or (policy == "move" and late):
        if handed.together(late) != moved:
            raise _different("late events of this call")
        return moved
    changed = [name(step) for step in late if policy == "refuse" and handed.of(step) != recorded(step)]
    if changed:
        which = "the step that ends at" if len(changed) == 1 else "the steps that end at"
        more = " and others were" if len(changed) > 3 else (" was" if len(changed) == 1 else " were")
        moving = ", --late move counts them in the first step closed now (in Python late='ignore' or 'move')"
        raise InputError(
            f"there are late events: {which} {', '.join(changed[:3])}{more} closed before, and not with these events. "
            "Hand over each event once, or say what to do with late ones: --late ignore leaves them out"
            + (" (in Python late='ignore')" if isinstance(unit, ItemPerPeriod) else moving)
        )
    return NOTHING


def _different(what: str) -> InputError:
    return InputError(
        f"the {what} are not the ones it was closed with. A closed step is never released again: the difference to its "
        "first release would cancel the noise. Give the same events, or none to have the stored rows again"
    )


def remarks_on_steps(
    closed: range, given: tuple[int, ...], name: Callable[[int], str], *, refused: bool
) -> tuple[str, ...]:
    """Name the steps that a call closes without any event, if there are any: for its operator, in no release.

    Args:
        closed: the steps that the call closes.
        given: the steps that have events among what was handed over.
        name: how to tell the end of a step.
        refused: whether such a step is an error.

    Raises:
        InputError: there are some, and they are refused.
    """
    empty = sorted(set(closed) - set(given))
    if not empty:
        return ()
    ends = ", ".join(name(step) for step in empty[:_SHOWN])
    which = "the one that ends at" if len(empty) == 1 else "those that end at"
    more = f" and {len(empty) - _SHOWN:,} more" if len(empty) > _SHOWN else ""
    of = "the step" if len(closed) == 1 else f"{len(empty):,} of the {len(closed):,} steps"
    missing = f"no event was handed over for {of} closed now, {which} {ends}{more}"
    if refused:
        raise InputError(
            f"{missing}. Hand over the file that is missing, or close these steps as they are with --gaps accept (in "
            "Python gaps='accept'). No step was closed"
        )
    return (f"{missing}: events that come later are late",)
