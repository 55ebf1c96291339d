"""Filters that mix series undone: the inverse of the integer taps, one step after another, in floating point."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from dpwindows.kernel.maps.integer_maps import FloatArray, Memory, pushed
from dpwindows.kernel.untrusted.decoding.moments import KnownMoments

# Moments are worked out up to this step; beyond, a stable filter's are at their limit.
_SETTLED = 1 << 15


class MatrixFilterDecoding(KnownMoments):
    """How `MatrixFilter` is decoded: `x_t = M_0^-1 (y_t - sum_{j>=1} M_j x_{t-j})`."""

    lanes: int
    taps: tuple[int, ...]

    @cached_property
    def _inverse(self) -> FloatArray:
        first = np.array(self.taps[: self.lanes**2], dtype=np.float64)
        return np.asarray(np.linalg.inv(first.reshape(self.lanes, self.lanes)))

    @cached_property
    def _later(self) -> FloatArray:
        rest = np.array(self.taps[self.lanes**2 :], dtype=np.float64)
        return rest.reshape(-1, self.lanes, self.lanes)

    def decode(self, measured: FloatArray, memory: Memory) -> tuple[FloatArray, Memory]:
        """The newest value of every series, shape (lanes,), and what decoding is to remember."""
        past = memory["decoded"]
        estimate = self._inverse @ (measured - np.tensordot(self._later, past, axes=([0, 2], [0, 1])))
        return estimate, {"decoded": pushed(estimate, past)}

    def _worked_out(self, count: int, power: int) -> FloatArray:
        """Running sums of powers of the decoder's weights, shape (count, lanes); settled after 32,768 steps."""
        length = min(count, _SETTLED)
        weights = np.zeros((length, self.lanes, self.lanes))
        weights[0] = self._inverse
        later = -np.einsum("ab,jbc->jac", self._inverse, self._later)[::-1]
        for t in range(1, length):
            seen = min(t, len(later))
            weights[t] = np.einsum("jab,jbc->ac", later[len(later) - seen :], weights[t - seen : t])
        sums = np.cumsum((weights**power).sum(axis=2), axis=0)
        return np.concatenate([sums, np.broadcast_to(sums[-1], (count - length, self.lanes))])
