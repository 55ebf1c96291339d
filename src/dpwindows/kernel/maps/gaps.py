"""The map of a filter over gaps: every window is measured with the windows that contain it.

An item's occurrences leave gaps, and a window without an occurrence lies within one of them. Let N items occur at all,
and let `U(a, b)` of them have no occurrence in a..b. Measured are

    y(a, b) = w_n sum_{i, j >= 0} taps_i taps_j U(a - i, b + j) - offset N    for every window of n < T steps,
    total N                                                                  in the place of the window of all T.

One filter runs over starts from the first to the last, the same over ends from the last to the first. Weights by length
are what makes it good: an item has few long gaps and may have many short ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpwindows.kernel.maps.filters import convolve_exactly
from dpwindows.kernel.maps.integer_maps import IntArray, widen


@dataclass(frozen=True)
class GapFilter:
    """The map for `len(weights)` steps; `weights[n - 1]` is that of windows of n steps, all of them positive.

    The first tap and `total` are positive too.
    """

    taps: tuple[int, ...]
    weights: tuple[int, ...]
    offset: int
    total: int

    @property
    def steps(self) -> int:
        """The steps T of the range."""
        return len(self.weights)

    @property
    def rows(self) -> int:
        """One for each window."""
        return self.steps * (self.steps + 1) // 2

    def encode(self, exact: IntArray) -> IntArray:
        """The numbers measured, by start and then by end, of window counts by start and end, shape (T, T)."""
        taps, everyone = np.array(self.taps, dtype=object), exact[0, -1]
        by_start = convolve_exactly(taps, everyone - exact)
        filtered = convolve_exactly(taps, by_start.T[::-1])[::-1].T
        first, last = np.triu_indices(self.steps)
        wide = widen(filtered[first, last], max(self.weights))
        items = widen(np.array([everyone]), max(abs(self.offset), self.total))
        numbers = wide * np.array(self.weights, dtype=wide.dtype)[last - first] - self.offset * items
        place = self.steps - 1
        return np.concatenate([numbers[:place], self.total * items, numbers[place + 1 :]])
