"""The reader of filters that mix series: the inverse of the integer taps, one step after another, in floating point."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpwindows.kernel.families.together import Together
from dpwindows.kernel.maps.integer_maps import Memory
from dpwindows.reading.filters import pushed
from dpwindows.reading.moments import FloatArray, StepReader

# Moments are worked out up to this step; beyond, a stable filter's are at their limit.
_SETTLED = 1 << 15


@dataclass(frozen=True)
class MatrixFilterReader(StepReader):
    """`x_t = M_0^-1 (y_t - sum_{j>=1} M_j x_{t-j})`: measured numbers and estimates of all series, shape (lanes,)."""

    map: Together  # type: ignore[assignment]  # it has steps alone

    @cached_property
    def _inverse(self) -> FloatArray:
        first = np.array(self.map.taps[: len(self.map.lengths) ** 2], dtype=np.float64)
        return np.asarray(np.linalg.inv(first.reshape(len(self.map.lengths), len(self.map.lengths))))

    @cached_property
    def _later(self) -> FloatArray:
        rest = np.array(self.map.taps[len(self.map.lengths) ** 2 :], dtype=np.float64)
        return rest.reshape(-1, len(self.map.lengths), len(self.map.lengths))

    def fresh(self, lanes: int = 1) -> Memory:
        """The estimates of the last steps, of all series."""
        return {"decoded": np.zeros((self.map.memory, len(self.map.lengths)))}

    def decode_step(self, position: int, measured: FloatArray, memory: Memory) -> tuple[FloatArray, Memory]:
        """The newest value of every series, shape (lanes,), and what decoding is to remember."""
        past = memory["decoded"]
        estimate = self._inverse @ (measured - np.tensordot(self._later, past, axes=([0, 2], [0, 1])))
        return estimate, {"decoded": pushed(estimate, past)}

    def work_out(self, count: int, power: int) -> FloatArray:
        """Running sums of powers of the decoder's weights, shape (count, lanes); settled after 32,768 steps."""
        length = min(count, _SETTLED)
        weights = np.zeros((length, len(self.map.lengths), len(self.map.lengths)))
        weights[0] = self._inverse
        later = -np.einsum("ab,jbc->jac", self._inverse, self._later)[::-1]
        for t in range(1, length):
            seen = min(t, len(later))
            weights[t] = np.einsum("jab,jbc->ac", later[len(later) - seen :], weights[t - seen : t])
        sums = np.cumsum((weights**power).sum(axis=2), axis=0)
        return np.concatenate([sums, np.broadcast_to(sums[-1], (count - length, len(self.map.lengths)))])

    def transposed(self, wanted: FloatArray) -> FloatArray:
        """From combinations of estimates to measured numbers, both of shape (steps, lanes)."""
        mirrored = replace(self.map, taps=tuple(self.map.matrices.transpose(0, 2, 1).ravel().tolist()))
        reader = MatrixFilterReader(mirrored)
        memory, weights = reader.fresh(), []
        for values in wanted[::-1]:
            estimate, memory = reader.decode_step(0, values, memory)
            weights.append(estimate)
        return np.array(weights[::-1])
