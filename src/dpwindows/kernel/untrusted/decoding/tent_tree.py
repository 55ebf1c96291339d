"""Sums under tents undone: least squares, in floating point."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpwindows.kernel.maps.integer_maps import FloatArray
from dpwindows.kernel.untrusted.decoding.moments import dense_fourth_moment


class TentDecoding:
    """How `TentTree` is decoded: the few tents couple increments that are measured one by one."""

    length: int
    tents: tuple[int, ...]

    if TYPE_CHECKING:

        @property
        def rows(self) -> int: ...

        @property
        def _tents(self) -> Any: ...

        @property
        def _leaves(self) -> NDArray[np.int64]: ...

    @cached_property
    def _spread(self) -> Any:
        """Each tent's weights over the squared leaf weights: `H D^-1`, shape (tents, length), by columns."""
        return (self._tents / self._leaves.astype(np.float64) ** 2).tocsc()

    @cached_property
    def _coupling(self) -> FloatArray:
        """`(1 + H D^-1 H')^-1`: all that tents tell of each other, shape (tents, tents)."""
        unit = np.eye(sum(self.tents))
        # By Cholesky's factors: elimination loses all digits where many fine tents meet few coarse ones.
        return np.asarray(
            scipy.linalg.cho_solve(scipy.linalg.cho_factor((self._spread @ self._tents.T).toarray() + unit), unit)
        )

    def decode(self, measured: FloatArray) -> FloatArray:
        """Least squares, then a running sum.

        With H the tents, D the squared leaf weights, and right-hand side r, the increments are
        `(D + H'H)^-1 r = u - D^-1 H' (1 + H D^-1 H')^-1 H u`, `u = D^-1 r`.
        """
        leaves = self._leaves.astype(np.float64).reshape((-1,) + (1,) * (measured.ndim - 1))
        alone = measured[: self.length] / leaves + self._spread.T @ measured[self.length :]
        increments = alone - self._spread.T @ (self._coupling @ (self._tents @ alone))
        return np.asarray(np.cumsum(increments, axis=0))

    def variance(self) -> FloatArray:
        """Variance of each prefix: that of its leaves, less what the tents explain of it.

        With b the running sum of the columns of `H D^-1`, explained are `b' (1 + H D^-1 H')^-1 b`; from one stretch of
        positions to the next only the few tents change that lie over it.
        """
        explained = np.zeros(self.length)
        product, total = np.zeros(len(self._coupling)), 0.0
        for first, last, tents, within in self._stretches():
            block = self._coupling[:, tents]
            explained[first:last] = total + 2 * product[tents] @ within + (within * (block[tents] @ within)).sum(axis=0)
            product += block @ within[:, -1]
            total = explained[last - 1]
        return np.asarray(np.cumsum(1 / self._leaves.astype(np.float64) ** 2) - explained)

    def _stretches(self) -> Iterator[tuple[int, int, NDArray[np.int64], FloatArray]]:
        """Positions first..last - 1, the tents over them, and running sums of their columns from `first` on."""
        size = max(16, self.length // (2 * len(self._coupling) + 1))
        bounds, indices, weights = self._spread.indptr, self._spread.indices, self._spread.data
        for first in range(0, self.length, size):
            last = min(first + size, self.length)
            inside = slice(bounds[first], bounds[last])
            tents, row = np.unique(indices[inside], return_inverse=True)
            within = np.zeros((len(tents), last - first))
            within[row, np.repeat(np.arange(last - first), np.diff(bounds[first : last + 1]))] = weights[inside]
            yield first, last, tents, np.cumsum(within, axis=1)

    def fourth_moment(self) -> FloatArray | None:
        return dense_fourth_moment(self.decode, self.rows, self.length)
