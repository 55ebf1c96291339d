"""First differences, and the value itself at anchors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import linalg

from dpwindows.kernel.maps.integer_maps import FloatArray, IntArray, KnownMoments, Memory, dense_fourth_moment, widen


@dataclass(frozen=True)
class AnchoredDifferences:
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

    @cached_property
    def _normal_matrix(self) -> FloatArray:
        # M'M in the upper banded form of scipy: row 0 the superdiagonal, row 1 the diagonal.
        banded = np.zeros((2, self.length))
        banded[0, 1:] = -float(self.step_weight**2)
        banded[1] = 2.0 * self.step_weight**2
        banded[1, -1] = float(self.step_weight**2)
        banded[1, self._anchors] += float(self.anchor_weight**2)
        return banded

    def decode(self, measured: FloatArray) -> FloatArray:
        """Weighted least squares from differences and anchors."""
        differences = self.step_weight * measured[: self.length]
        right = differences.copy()
        right[:-1] -= differences[1:]
        right[self._anchors] += self.anchor_weight * measured[self.length :]
        if self.length == 1:  # has no superdiagonal, which scipy's solver insists on
            return np.asarray(right / self._normal_matrix[1, 0])
        return np.asarray(linalg.solveh_banded(self._normal_matrix, right))

    def variance(self) -> FloatArray:
        """The diagonal of `(M'M)^-1`, by the two-sided elimination of a tridiagonal matrix."""
        diagonal, beside = self._normal_matrix[1], self._normal_matrix[0, 1:]
        if self.length == 1:  # has no neighbour, which LAPACK insists on
            return np.asarray(1.0 / diagonal)
        forward, _, _ = linalg.lapack.dpttrf(diagonal, beside)
        backward = linalg.lapack.dpttrf(diagonal[::-1], beside)[0][::-1]
        return np.asarray(1.0 / (forward + backward - diagonal), dtype=np.float64)

    def fourth_moment(self) -> FloatArray | None:
        return dense_fourth_moment(self.decode, self.rows, self.length)


@dataclass(frozen=True)
class CausalAnchors(KnownMoments):
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

    def decode(self, position: int, measured: FloatArray, memory: Memory) -> tuple[FloatArray, Memory]:
        estimate = memory["decoded"] + measured[0] / self.step_weight
        if self._anchored(position):
            share = self._shares(position)
            estimate = (1 - share) * estimate + share * measured[1] / self.anchor_weight
        return estimate, {"decoded": estimate}

    def remember(self, position: int, exact: IntArray, memory: Memory) -> Memory:
        return {"exact": exact.astype(np.int64)}

    @cached_property
    def _anchor_shares(self) -> FloatArray:
        """The weight of the first anchors in their average; it settles at once."""
        shares, variance = [], 0.0
        for _ in range(256):
            variance += self.every / self.step_weight**2
            shares.append(variance / (variance + 1 / self.anchor_weight**2))
            variance *= 1 - shares[-1]
        return np.array(shares)

    def _shares(self, position: int) -> float:
        anchor = position // self.every - 1
        return float(self._anchor_shares[min(anchor, len(self._anchor_shares) - 1)])

    def _worked_out(self, count: int, power: int) -> FloatArray:
        """By the same recursion."""
        values, value = np.empty(count), 0.0
        for position in range(1, count + 1):
            value += float(self.step_weight) ** -power
            if self._anchored(position):
                share = self._shares(position)
                value = (1 - share) ** power * value + (share / self.anchor_weight) ** power
            values[position - 1] = value
        return values
