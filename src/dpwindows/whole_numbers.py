"""Whole numbers in texts and options: how large one may be that is counted with."""

from __future__ import annotations

# Beyond any count, window or horizon, and small enough that sums and doubles of two fit into 64 bits.
MOST = 10**18
# Noise values that one release may draw unless its caller allows more.
MAX_DRAWS = 100_000_000


def read_whole(text: str) -> int | None:
    """The number that a text of ASCII digits writes; None if it is no such text, or the number is above 10^18."""
    # Digits are counted first: Python refuses to read thousands of them, and takes long for many.
    if not (text.isascii() and text.isdigit()) or len(text.lstrip("0")) > len(str(MOST)):
        return None
    number = int(text)
    return number if number <= MOST else None
