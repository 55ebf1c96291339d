"""Whole numbers in texts and options, and the largest that is accepted."""

from __future__ import annotations

from typing import TypeGuard

from dpwindows.errors import InputError

# A window or period may be longer than any range, but it must be a number that can be written out.
_DIGITS = 100
LONGEST = 10**_DIGITS
# Beyond any count of occurrences, and small enough that sums of two fit into 64 bits.
LARGEST_COUNT = 10**18
# Noise values that one release may draw unless its caller allows more.
MAX_DRAWS = 100_000_000
# Steps that one call of a stream closes unless its caller allows more. Two days of minutes: more are more often a
# mistake in its time than a gap.
MOST_STEPS_A_CALL = 3000


def read_whole(text: str) -> int | None:
    """The number that a text of ASCII digits writes; None if it is no such text, or of more than 100 digits."""
    # Digits are counted first: Python refuses to read thousands of them, and takes long for many.
    if not (text.isascii() and text.isdigit()) or len(text.lstrip("0")) > _DIGITS:
        return None
    return int(text)


def is_whole(value: object, least: int = 1, most: int = LONGEST) -> TypeGuard[int]:
    """Whether a value is a whole number within a range; true and false are none."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def require_steps(what: str, value: object) -> None:
    """Check a number of steps, which may be more than any range has.

    Raises:
        InputError: it is no whole number from 1 to 10^100.
    """
    if not is_whole(value):
        if isinstance(value, int) and value > LONGEST:
            raise InputError(f"{what} must have at most 10^100 steps")
        raise InputError(f"{what} must be a whole number of at least 1 step, got {value!r}")
