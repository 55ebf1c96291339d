"""The reader of sums under tents: least squares, in floating point."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpwindows.kernel.maps.tent_tree import TentTree
from dpwindows.reading.moments import FloatArray, SeriesReader


@dataclass(frozen=True)
class TentReader(SeriesReader):
    """Least squares: the few tents couple increments that are measured one by one."""

    map: TentTree

    @property
    def shape(self) -> tuple[int, int]:
        return self.map.rows(self.map.length), self.map.length

    @cached_property
    def _scaled_weights(self) -> Any:
        """Each tent's weights over the squared leaf weights: `H D^-1`, shape (tents, length), by columns."""
        return (self.map.tent_weights / self.map.leaf_weights.astype(np.float64) ** 2).tocsc()

    @cached_property
    def _coupling(self) -> FloatArray:
        """`(1 + H D^-1 H')^-1`: all that tents tell of each other, shape (tents, tents)."""
        unit = np.eye(sum(self.map.tents))
        # By Cholesky's factors: elimination loses all digits where many fine tents meet few coarse ones.
        return np.asarray(
            scipy.linalg.cho_solve(
                scipy.linalg.cho_factor((self._scaled_weights @ self.map.tent_weights.T).toarray() + unit), unit
            )
        )

    def decode(self, measured: FloatArray) -> FloatArray:
        """Least squares, then a running sum.

        With H the tents, D the squared leaf weights, and right-hand side r, the increments are
        `(D + H'H)^-1 r = u - D^-1 H' (1 + H D^-1 H')^-1 H u`, `u = D^-1 r`.
        """
        leaves = self.map.leaf_weights.astype(np.float64).reshape((-1,) + (1,) * (measured.ndim - 1))
        alone = measured[: self.map.length] / leaves + self._scaled_weights.T @ measured[self.map.length :]
        increments = alone - self._scaled_weights.T @ (self._coupling @ (self.map.tent_weights @ alone))
        return np.asarray(np.cumsum(increments, axis=0))

    def variance(self) -> FloatArray:
        """Variance of each prefix: that of its leaves, less what the tents explain of it.

        With b the running sum of the columns of `H D^-1`, explained are `b' (1 + H D^-1 H')^-1 b`; from one stretch of
        positions to the next only the few tents change that lie over it.
        """
        explained = np.zeros(self.map.length)
        product, total = np.zeros(len(self._coupling)), 0.0
        for first, last, tents, within in self._stretches():
            block = self._coupling[:, tents]
            explained[first:last] = total + 2 * product[tents] @ within + (within * (block[tents] @ within)).sum(axis=0)
            product += block @ within[:, -1]
            total = explained[last - 1]
        return np.asarray(np.cumsum(1 / self.map.leaf_weights.astype(np.float64) ** 2) - explained)

    def _stretches(self) -> Iterator[tuple[int, int, NDArray[np.int64], FloatArray]]:
        """Positions first..last - 1, the tents over them, and running sums of their columns from `first` on."""
        size = max(16, self.map.length // (2 * len(self._coupling) + 1))
        bounds, indices, weights = self._scaled_weights.indptr, self._scaled_weights.indices, self._scaled_weights.data
        for first in range(0, self.map.length, size):
            last = min(first + size, self.map.length)
            inside = slice(bounds[first], bounds[last])
            tents, row = np.unique(indices[inside], return_inverse=True)
            within = np.zeros((len(tents), last - first))
            within[row, np.repeat(np.arange(last - first), np.diff(bounds[first : last + 1]))] = weights[inside]
            yield first, last, tents, np.cumsum(within, axis=1)
