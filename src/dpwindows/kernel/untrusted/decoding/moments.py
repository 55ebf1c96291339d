"""Moments of estimates: of what a decoder makes of independent noise."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from dpwindows.kernel.maps.integer_maps import FloatArray

# Explicit decoding matrices (for fourth moments) are formed up to this many positions.
_DENSE = 2048


def dense_fourth_moment(decode: Callable[[FloatArray], FloatArray], rows: int, length: int) -> FloatArray | None:
    """Sums of fourth powers of a decoder's rows, from its explicit matrix; None beyond 2,048 rows or positions."""
    if max(rows, length) > _DENSE:
        return None
    weights: FloatArray = decode(np.eye(rows))
    return np.asarray((weights**4).sum(axis=1), dtype=np.float64)


class KnownMoments:
    """Moments of the estimates, kept once worked out: asked for step by step they would be worked out every time."""

    @cached_property
    def _known(self) -> dict[int, FloatArray]:
        return {}

    def _worked_out(self, count: int, power: int) -> FloatArray:
        """Moments at positions 1..count or more."""
        raise NotImplementedError

    def _moment(self, count: int, power: int) -> FloatArray:
        known = self._known.get(power)
        if known is None or len(known) < count:
            known = self._known[power] = self._worked_out(1 << (count - 1).bit_length(), power)
        return known[:count]

    def variance(self, count: int) -> FloatArray:
        """Variance of the estimates at positions 1..count."""
        return self._moment(count, 2)

    def fourth_moment(self, count: int) -> FloatArray:
        """Fourth moment of their weights at positions 1..count."""
        return self._moment(count, 4)
