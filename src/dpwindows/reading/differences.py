"""The reader of anchored differences: weighted least squares, in floating point."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from dpwindows.kernel.maps.differences import AnchoredDifferences
from dpwindows.kernel.maps.integer_maps import Memory
from dpwindows.reading.moments import FloatArray, SeriesReader, StepReader


@dataclass(frozen=True)
class AnchoredReader(SeriesReader):
    """A whole series of `length` positions, by a tridiagonal system."""

    map: AnchoredDifferences
    length: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.map.rows(self.length), self.length

    @cached_property
    def _normal_matrix(self) -> FloatArray:
        # M'M in the upper banded form of scipy: row 0 the superdiagonal, row 1 the diagonal.
        banded = np.zeros((2, self.length))
        banded[0, 1:] = -float(self.map.step_weight**2)
        banded[1] = 2.0 * self.map.step_weight**2
        banded[1, -1] = float(self.map.step_weight**2)
        banded[1, self.map.anchors(self.length)] += float(self.map.anchor_weight**2)
        return banded

    def decode(self, measured: FloatArray) -> FloatArray:
        """Weighted least squares from differences and anchors."""
        differences = self.map.step_weight * measured[: self.length]
        right = differences.copy()
        right[:-1] -= differences[1:]
        right[self.map.anchors(self.length)] += self.map.anchor_weight * measured[self.length :]
        if self.length == 1:  # has no superdiagonal, which scipy's solver insists on
            return np.asarray(right / self._normal_matrix[1, 0])
        return np.asarray(scipy.linalg.solveh_banded(self._normal_matrix, right))

    def variance(self) -> FloatArray:
        return self.moment(2)

    def fourth_moment(self) -> FloatArray:
        return self.moment(4)

    def moment(self, power: int) -> FloatArray:
        """Averages, by precision, an estimate from what is up to a position with one from what comes after it."""
        anchors = np.arange(1, self.length + 1)[self.map.anchors(self.length)]
        variance, until = _one_way(self.map, 0.0, anchors, self.length, power)
        # From the end, where nothing is known, to one step beyond each position, and that step.
        behind, after = _one_way(self.map, math.inf, self.length + 1 - anchors[::-1], self.length, power)
        behind = np.append(behind[-2::-1], math.inf) + 1 / self.map.step_weight**2
        after = np.append(after[-2::-1], 0.0) + 1 / self.map.step_weight**power
        share = variance / (variance + behind)
        return np.asarray((1 - share) ** power * until + share**power * after)


def _one_way(
    differences: AnchoredDifferences, variance: float, anchors: NDArray[np.int64], length: int, power: int
) -> tuple[FloatArray, FloatArray]:
    """The variance and the sum of powers of weights of estimates at positions 1..length, from what is up to each.

    The estimate at position 0 has a variance and no weights. Each step adds its difference; at an anchor, the estimate
    is averaged with the anchor by precision. So both grow linearly from anchor to anchor.
    """
    step, anchor = 1 / differences.step_weight, 1 / differences.anchor_weight
    variances, sums = [variance], [0.0]
    for gap in np.diff(anchors, prepend=0).tolist():
        share = 1 / (1 + anchor**2 / (variances[-1] + gap * step**2))
        variances.append(share * anchor**2)
        sums.append((1 - share) ** power * (sums[-1] + gap * step**power) + (share * anchor) ** power)
    positions = np.arange(1, length + 1)
    last = np.searchsorted(anchors, positions, side="right")
    since = positions - np.append(0, anchors)[last]
    return np.array(variances)[last] + since * step**2, np.array(sums)[last] + since * step**power


@dataclass(frozen=True)
class AnchoredStepReader(StepReader):
    """Position by position, by one recursion, for anchors without an offset: a scalar Kalman filter.

    The rows form a chain: the estimate moves by the measured difference, and at an anchor it is averaged with the
    anchor by precision.
    """

    map: AnchoredDifferences

    def fresh(self, lanes: int) -> Memory:
        return {"decoded": np.zeros(lanes)}

    def decode_step(self, position: int, measured: FloatArray, memory: Memory) -> tuple[FloatArray, Memory]:
        estimate = memory["decoded"] + measured[0] / self.map.step_weight
        if self.map.is_anchor(position):
            share = self._shares(position)
            estimate = (1 - share) * estimate + share * measured[1] / self.map.anchor_weight
        return estimate, {"decoded": estimate}

    @cached_property
    def _anchor_shares(self) -> FloatArray:
        """The weight of the first anchors in their average, until it settles, at once; later ones have the last."""
        shares: list[float] = []
        variance, before = 0.0, -1.0
        while variance != before and len(shares) < 256:
            before = variance
            variance += self.map.every / self.map.step_weight**2
            shares.append(variance / (variance + 1 / self.map.anchor_weight**2))
            variance *= 1 - shares[-1]
        return np.array(shares)

    def _shares(self, position: int) -> float:
        anchor = (position - self.map.offset) // self.map.every - 1
        return float(self._anchor_shares[min(anchor, len(self._anchor_shares) - 1)])

    def work_out(self, count: int, power: int) -> FloatArray:
        """Works out moments by the recursion of the decoder."""
        values, value, added = np.empty(count), 0.0, float(self.map.step_weight) ** -power
        for position in range(1, count + 1):
            value += added
            if self.map.is_anchor(position):
                share = self._shares(position)
                value = (1 - share) ** power * value + (share / self.map.anchor_weight) ** power
            values[position - 1] = value
        return values
