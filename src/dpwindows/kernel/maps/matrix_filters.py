"""Filters that mix several series: each number measured is an integer combination of all of them, now and before."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpwindows.kernel.maps.integer_maps import IntArray, Memory, pushed, widen


@dataclass(frozen=True)
class MatrixFilter:
    """`y_t = sum_j M_j x_{t-j}` with `x_t` one value of each of `lanes` series and square integer matrices `M_j`.

    Attributes:
        lanes: how many series there are.
        taps: the entries of `M_0`, `M_1`, ..., each matrix row by row.
    """

    lanes: int
    taps: tuple[int, ...]

    @property
    def memory(self) -> int:
        """How many steps back the filter looks."""
        return len(self.taps) // self.lanes**2 - 1

    @cached_property
    def matrices(self) -> IntArray:
        """`M_0`, `M_1`, ... as an array, shape (memory + 1, lanes, lanes)."""
        taps = np.array(self.taps, dtype=np.int64).reshape(-1, self.lanes, self.lanes)
        taps.flags.writeable = False
        return taps

    @cached_property
    def _growth(self) -> int:
        return max(sum(abs(int(tap)) for tap in row.ravel()) for row in self.matrices.transpose(1, 0, 2))

    def fresh(self) -> Memory:
        """Nothing but zeros before the first step."""
        return {"exact": np.zeros((self.memory, self.lanes), dtype=np.int64)}

    def encode_step(self, exact: IntArray, memory: Memory) -> IntArray:
        """The exact integers of a step from the newest value of every series, shape (lanes,) to (lanes,)."""
        series = widen(np.concatenate([exact[None], memory["exact"]]), self._growth)
        return np.asarray(np.tensordot(self.matrices.astype(series.dtype), series, axes=([0, 2], [0, 1])))

    def remember(self, exact: IntArray, memory: Memory) -> Memory:
        """What encoding is to remember after a step."""
        return {"exact": pushed(exact.astype(np.int64), memory["exact"])}
