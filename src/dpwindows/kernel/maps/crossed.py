"""The map of crossed counters: every line of a block of windows through one filter.

A block is an array `x` of shape (starts, ends). With `L` the causal filter of the integer taps (lower-triangular
Toeplitz, of the size of the axis), `J` the reversal of starts, and whole weights r on starts and c on ends, measured
are

    rows     y[a, :] = r_a L x[a, :]          for every start, along ends from the first to the last
    columns  z[:, b] = c_b L J x[:, b]        for every end, along starts from the last to the first

so the matrix M has twice as many rows as columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpwindows.kernel.maps.filters import convolve_exactly
from dpwindows.kernel.maps.integer_maps import IntArray, widen


@dataclass(frozen=True)
class CrossedFilters:
    """The map for a block of `len(start_weights)` starts and `len(end_weights)` ends; taps[0] and weights positive.

    The first end is that of the first start. Windows of at most `longest` steps are asked for (default: all).
    """

    taps: tuple[int, ...]
    start_weights: tuple[int, ...]
    end_weights: tuple[int, ...]
    longest: int | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """How many starts and how many ends the block has."""
        return len(self.start_weights), len(self.end_weights)

    @property
    def rows(self) -> int:
        starts, ends = self.shape
        return 2 * starts * ends

    def encode(self, exact: IntArray) -> IntArray:
        """Weighted and filtered rows, then columns; exact integers of shape (rows,).

        Weighing comes first, in a type wide enough for it; `convolve_exactly` widens what it gets as it needs.
        """
        taps = np.array(self.taps, dtype=object)
        wide = widen(exact, max(*self.start_weights, *self.end_weights))
        by_start = wide * np.array(self.start_weights, dtype=wide.dtype)[:, None]
        by_end = wide * np.array(self.end_weights, dtype=wide.dtype)[None, :]
        along_ends = convolve_exactly(taps, by_start.T).T
        along_starts = convolve_exactly(taps, by_end[::-1])
        return np.concatenate([along_ends.ravel(), along_starts.ravel()])
