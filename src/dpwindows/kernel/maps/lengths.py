"""Values of windows by length and start, by length and end, and back: each is a row for each length."""

from __future__ import annotations

import numpy as np

from dpwindows.kernel.maps.integer_maps import IntArray


def index_by_end(by_start: IntArray) -> IntArray:
    """Values by length and start, by length and end; windows that end after the last start are left out."""
    by_end = np.zeros_like(by_start)
    for more, row in enumerate(by_start):
        by_end[more, more:] = row[: len(row) - more]
    return by_end


def index_by_start(by_end: IntArray) -> IntArray:
    """Values by length and end, by length and start: what `index_by_end` gives, turned back."""
    by_start = np.zeros_like(by_end)
    for more, row in enumerate(by_end):
        by_start[more, : len(row) - more] = row[more:]
    return by_start
