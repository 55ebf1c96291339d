"""First differences, and the value itself at anchors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpwindows.kernel.maps.integer_maps import IntArray, Memory, widen
from dpwindows.kernel.untrusted.decoding.differences import AnchoredDecoding, CausalAnchorsDecoding


@dataclass(frozen=True)
class AnchoredDifferences(AnchoredDecoding):
    """First differences, and the values themselves at every `every`-th position, with integer weights.

    Rows: `step_weight (x_t - x_{t-1})` for t = 1..length (`x_0 = 0`), then `anchor_weight x_t` at t = length,
    length - every, length - 2 every, ..., later than 0: the last position, which no later one helps, has an anchor,
    and the first ones are near the known x_0. Decoded by weighted least squares, a tridiagonal system.
    """

    length: int
    every: int
    step_weight: int
    anchor_weight: int

    @property
    def _anchors(self) -> slice:
        return slice((self.length - 1) % self.every, None, self.every)

    @property
    def rows(self) -> int:
        return self.length + -(-self.length // self.every)

    def encode(self, exact: IntArray) -> IntArray:
        series = widen(exact, 2 * max(self.step_weight, self.anchor_weight))
        differences = np.diff(series, axis=0, prepend=0)
        return np.concatenate([self.step_weight * differences, self.anchor_weight * series[self._anchors]])


@dataclass(frozen=True)
class CausalAnchors(CausalAnchorsDecoding):
    """First differences at every position and the value itself at every `every`-th, with integer weights.

    At position t: `step_weight (x_t - x_{t-1})` (`x_0 = 0`), and `anchor_weight x_t` where `every` divides t. The rows
    form a chain, so least squares on all rows up to t is one recursion (a scalar Kalman filter): the estimate moves by
    the measured difference, and at an anchor it is averaged with the anchor by precision.
    """

    every: int
    step_weight: int
    anchor_weight: int

    def _anchored(self, position: int) -> bool:
        return position % self.every == 0

    def rows_at(self, position: int) -> int:
        return 2 if self._anchored(position) else 1

    def fresh(self, lanes: int) -> Memory:
        """The series is known to be 0 at position 0."""
        return {"exact": np.zeros(lanes, dtype=np.int64), "decoded": np.zeros(lanes)}

    def encode(self, position: int, exact: IntArray, memory: Memory) -> IntArray:
        """The weighted difference, and the weighted value at an anchor."""
        wide = widen(np.stack([exact, memory["exact"]]), 2 * max(self.step_weight, self.anchor_weight))
        rows = [self.step_weight * (wide[0] - wide[1])]
        if self._anchored(position):
            rows.append(self.anchor_weight * wide[0])
        return np.stack(rows)

    def remember(self, position: int, exact: IntArray, memory: Memory) -> Memory:
        return {"exact": exact.astype(np.int64)}
