"""Remarks for the operator of a stream on the steps that a call closed: for the screen, in no release."""

from __future__ import annotations

from collections.abc import Callable, Iterator

_SHOWN = 3


def remarks_on_steps(closed: range, given: tuple[int, ...], name: Callable[[int], str]) -> Iterator[str]:
    """Name the steps that were closed without any event, if there are any.

    Args:
        closed: the steps that a call closed.
        given: the steps that have events among what was handed over.
        name: how to tell the end of a step.
    """
    empty = sorted(set(closed) - set(given))
    if not empty:
        return
    ends = ", ".join(name(step) for step in empty[:_SHOWN])
    which = "the one that ends at" if len(empty) == 1 else "those that end at"
    more = f" and {len(empty) - _SHOWN:,} more" if len(empty) > _SHOWN else ""
    of = "the step" if len(closed) == 1 else f"{len(empty):,} of the {len(closed):,} steps"
    yield f"no event was handed over for {of} closed now, {which} {ends}{more}: events that come later are late"
