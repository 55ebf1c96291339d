"""Whole numbers in texts and options, and the largest that is accepted."""

from __future__ import annotations

# A window or period may be longer than any range, but it must be a number that can be written out.
_DIGITS = 100
LONGEST = 10**_DIGITS
# Beyond any count of occurrences, and small enough that sums of two fit into 64 bits.
LARGEST_COUNT = 10**18
# Noise values that one release may draw unless its caller allows more.
MAX_DRAWS = 100_000_000


def read_whole(text: str) -> int | None:
    """The number that a text of ASCII digits writes; None if it is no such text, or of more than 100 digits."""
    # Digits are counted first: Python refuses to read thousands of them, and takes long for many.
    if not (text.isascii() and text.isdigit()) or len(text.lstrip("0")) > _DIGITS:
        return None
    return int(text)
