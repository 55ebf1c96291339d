"""Remarks for the operator of a stream on the steps that a call closes: for the screen, in no release."""

from __future__ import annotations

from collections.abc import Callable

from dpwindows.errors import InputError

_SHOWN = 3


def remarks_on_steps(
    closed: range, given: tuple[int, ...], name: Callable[[int], str], *, refused: bool
) -> tuple[str, ...]:
    """Name the steps that a call closes without any event, if there are any.

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
