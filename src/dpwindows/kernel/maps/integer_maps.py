"""Integer linear maps along one axis: what is measured, and how a noisy measurement is read back.

A measurement is `y = M x + z` with an integer matrix `M`. Each class here is one shape of `M` acting on the first
axis of an array:

- `encode` applies `M` to exact integers in exact integer arithmetic. It is part of the trusted kernel: the certified
  sensitivity (`dpwindows.kernel.bounds.sensitivity`) is computed from the very integers it multiplies by.
- `decode` applies a left inverse of the same integer `M` in floating point. It is post-processing: a mistake there
  costs accuracy, never privacy.
- `variance` and `fourth_moment` give, for each decoded position, `sum c^2` and `sum c^4` over the weights `c` that
  `decode` puts on independent noise of unit variance.

Maps never depend on the data; their parameters are fixed by what is asked and by the budget.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

IntArray = NDArray[Any]
FloatArray = NDArray[np.float64]

# A bound on absolute values below which a 64-bit sum cannot wrap, with one bit to spare.
_SAFE = 1 << 62
# Explicit decoding matrices (for fourth moments) are formed up to this many positions.
_DENSE = 2048


class IntegerMap(Protocol):
    """One integer matrix `M` with `length` columns and `rows` rows, and a left inverse of it."""

    @property
    def length(self) -> int:
        """Number of columns of `M`: positions of the exact series."""
        ...

    @property
    def rows(self) -> int:
        """Number of rows of `M`: numbers measured."""
        ...

    def encode(self, exact: IntArray) -> IntArray:
        """`M x` along the first axis: shape (length, ...) to (rows, ...), exact integers."""
        ...

    def decode(self, measured: FloatArray) -> FloatArray:
        """The left inverse of `M` along the first axis: shape (rows, ...) to (length, ...)."""
        ...

    def variance(self) -> FloatArray:
        """`sum c^2` per decoded position, shape (length,)."""
        ...

    def fourth_moment(self) -> FloatArray | None:
        """`sum c^4` per decoded position, shape (length,), or None where it is not computed."""
        ...


def widen(exact: IntArray, growth: int) -> IntArray:
    """The same integers in a type in which sums of them with total weight `growth` cannot wrap.

    64-bit integers where `growth * max|x| < 2^62`, Python integers of any size otherwise.
    """
    largest = max(1, abs(int(exact.min())), abs(int(exact.max()))) if exact.size else 1
    return exact.astype(np.int64 if largest * growth < _SAFE else object)


def convolve_exactly(taps: IntArray, exact: IntArray) -> IntArray:
    """`y_t = sum_j taps_j x_{t-j}` along the first axis, in exact integers (shape kept)."""
    weights = [int(tap) for tap in taps]
    series = widen(exact, sum(map(abs, weights)))
    result = np.zeros_like(series)
    for lag, weight in enumerate(weights[: len(series)]):
        if weight:
            result[lag:] += weight * series[: len(series) - lag]
    return result


def invert_filter(taps: Sequence[int], filtered: FloatArray) -> FloatArray:
    """The series whose filtered version is `filtered`, along the first axis, in floating point (shape kept)."""
    # Imported here: loading it takes a second, which planning and refusals of bad requests need not wait for.
    from scipy import signal

    return np.asarray(signal.lfilter([1.0], np.array(taps, dtype=np.float64), filtered, axis=0))


def inverse_taps(taps: Sequence[int], count: int) -> FloatArray:
    """The first `count` taps of the inverse filter, in floating point."""
    first, *rest = (float(tap) for tap in taps)
    # Backwards, so that each step is one product of two stretches.
    later = -np.array(rest[::-1]) / first
    inverse = np.zeros(count)
    inverse[0] = 1 / first
    for t in range(1, count if rest else 1):
        seen = min(t, len(later))
        inverse[t] = later[len(later) - seen :] @ inverse[t - seen : t]
    return inverse


def dense_fourth_moment(decode: Callable[[FloatArray], FloatArray], rows: int, length: int) -> FloatArray | None:
    """Sums of fourth powers of a decoder's rows, from its explicit matrix; None beyond 2,048 rows or positions."""
    if max(rows, length) > _DENSE:
        return None
    weights: FloatArray = decode(np.eye(rows))
    return np.asarray((weights**4).sum(axis=1), dtype=np.float64)


@dataclass(frozen=True)
class Identity:
    """`M` is `unit` times the unit matrix: every number is measured directly, on a lattice of `unit` to a count."""

    length: int
    unit: int = 1

    @property
    def rows(self) -> int:
        """How many numbers are measured: one for each position."""
        return self.length

    def encode(self, exact: IntArray) -> IntArray:
        """The numbers, times `unit`."""
        return widen(exact, self.unit) * self.unit

    def decode(self, measured: FloatArray) -> FloatArray:
        """The numbers, over `unit`."""
        return measured / self.unit

    def variance(self) -> FloatArray:
        """`unit^-2` everywhere."""
        return np.full(self.length, float(self.unit) ** -2)

    def fourth_moment(self) -> FloatArray:
        """`unit^-4` everywhere."""
        return np.full(self.length, float(self.unit) ** -4)


@dataclass(frozen=True)
class Filter:
    """`M` is lower-triangular Toeplitz: `y_t = sum_j taps_j x_{t-j}`, integer `taps`, the first one positive.

    Being causal, it is batch and continual mechanism alike. Decoding is the inverse filter of the integer taps.
    """

    length: int
    taps: tuple[int, ...]

    @property
    def rows(self) -> int:
        """How many numbers are measured: one for each position."""
        return self.length

    def encode(self, exact: IntArray) -> IntArray:
        """The filtered series, exact."""
        return convolve_exactly(np.array(self.taps, dtype=object), exact)

    def decode(self, measured: FloatArray) -> FloatArray:
        """The inverse filter of the integer taps."""
        return invert_filter(self.taps, measured)

    @cached_property
    def _inverse(self) -> FloatArray:
        return inverse_taps(self.taps, self.length)

    def variance(self) -> FloatArray:
        """Running sums of the squared inverse taps."""
        return np.cumsum(self._inverse**2)

    def fourth_moment(self) -> FloatArray:
        """Running sums of the fourth powers of the inverse taps."""
        return np.cumsum(self._inverse**4)


@dataclass(frozen=True)
class WeightedCounter:
    """A prefix counter: `M = C diag(weights) D`, with `D` the first differences and `C` Toeplitz from `taps`.

    The increments of the series are weighted, then filtered: `y_t = sum_{j<=t} taps_{t-j} weights_j (x_j - x_{j-1})`,
    with `x_0 = 0`.
    """

    length: int
    taps: tuple[int, ...]
    weights: tuple[int, ...]

    @property
    def rows(self) -> int:
        """How many numbers are measured: one for each position."""
        return self.length

    def encode(self, exact: IntArray) -> IntArray:
        """Weighted increments, filtered; exact."""
        increments = np.diff(widen(exact, 2 * max(self.weights)), axis=0, prepend=0)
        weights = np.array(self.weights, dtype=object if increments.dtype == object else np.int64)
        return convolve_exactly(
            np.array(self.taps, dtype=object), increments * weights.reshape((-1,) + (1,) * (exact.ndim - 1))
        )

    def decode(self, measured: FloatArray) -> FloatArray:
        """Inverse filter, unweighted, summed up again."""
        weights = np.array(self.weights, dtype=np.float64).reshape((-1,) + (1,) * (measured.ndim - 1))
        return np.asarray(np.cumsum(invert_filter(self.taps, measured) / weights, axis=0))

    def _moment(self, power: int) -> FloatArray:
        # Row t of the decoder puts sum_{i=j..t} inverse_{i-j} / weights_i on noise j: a running sum over t for each j.
        inverse = inverse_taps(self.taps, self.length)
        weights = np.array(self.weights, dtype=np.float64)
        total = np.zeros(self.length)
        for j in range(self.length):
            total[j:] += np.cumsum(inverse[: self.length - j] / weights[j:]) ** power
        return total

    def variance(self) -> FloatArray:
        """Sums of squares of the decoder's rows, in O(length^2)."""
        return self._moment(2)

    def fourth_moment(self) -> FloatArray:
        """Sums of fourth powers of the decoder's rows, in O(length^2)."""
        return self._moment(4)


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
        """How many numbers are measured: a difference for each position, and the anchors."""
        return self.length + -(-self.length // self.every)

    def encode(self, exact: IntArray) -> IntArray:
        """Weighted differences and anchors, exact."""
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
        """From the explicit decoder for up to 2,048 rows, None beyond."""
        return dense_fourth_moment(self.decode, self.rows, self.length)


@dataclass(frozen=True)
class Tree:
    """Sums of the increments over the nodes of a `branching`-ary tree without its root: a 0/1 matrix.

    Level 0 holds the increments `x_t - x_{t-1}` themselves (`x_0 = 0`), level `l` the sums over `branching^l`
    consecutive ones; the top level is the first with at most `branching` nodes. Each increment is in one node a
    level, so a change of one increment by 1 changes the measurement by `levels` in L1. Decoded by least squares,
    as two passes over the tree; a prefix of the increments is a value of the series.
    """

    length: int
    branching: int

    @cached_property
    def level_sizes(self) -> tuple[int, ...]:
        """Number of nodes of each level, leaves first."""
        sizes = [self.length]
        while sizes[-1] > self.branching:
            sizes.append(-(-sizes[-1] // self.branching))
        return tuple(sizes)

    @property
    def levels(self) -> int:
        """How many nodes hold any one increment."""
        return len(self.level_sizes)

    @property
    def column_total(self) -> int:
        """What the weights of any one increment add up to: one for each level."""
        return self.levels

    @property
    def rows(self) -> int:
        """How many numbers are measured: one for each node."""
        return sum(self.level_sizes)

    def encode(self, exact: IntArray) -> IntArray:
        """Node sums, level by level, exact."""
        # A node sum is a difference of two values of the series, so it never exceeds twice the largest value.
        level = np.diff(widen(exact, 2), axis=0, prepend=0)
        measured = [level]
        for size in self.level_sizes[1:]:
            level = np.add.reduceat(level, np.arange(size) * self.branching, axis=0)
            measured.append(level)
        return np.concatenate(measured)

    @cached_property
    def _upward(self) -> tuple[tuple[FloatArray, FloatArray, FloatArray], ...]:
        """For each level: variance of a node from its subtree with and without its own row, and its children's."""
        passes = []
        variance = np.ones(self.length)
        passes.append((variance, variance, variance))
        for size in self.level_sizes[1:]:
            below = np.add.reduceat(variance, np.arange(size) * self.branching)
            variance = below / (1.0 + below)
            passes.append((variance, below, variance))
        return tuple(passes)

    def decode(self, measured: FloatArray) -> FloatArray:
        """Least squares: precision-weighted sums upward, residuals shared out downward, then a running sum."""
        bounds = np.cumsum((0, *self.level_sizes))
        own = [measured[low:high] for low, high in pairwise(bounds)]
        shape = (-1,) + (1,) * (measured.ndim - 1)
        best, sums = [own[0]], [own[0]]
        for level in range(1, self.levels):
            total = np.add.reduceat(best[-1], np.arange(self.level_sizes[level]) * self.branching, axis=0)
            below = self._upward[level][1].reshape(shape)
            best.append((below * own[level] + total) / (1.0 + below))
            sums.append(total)
        estimate = best[-1]
        for level in range(self.levels - 1, 0, -1):
            residual = (estimate - sums[level]) / self._upward[level][1].reshape(shape)
            parents = np.arange(self.level_sizes[level - 1]) // self.branching
            estimate = best[level - 1] + self._upward[level - 1][0].reshape(shape) * residual[parents]
        return np.asarray(np.cumsum(estimate, axis=0))

    def variance(self) -> FloatArray:
        """Variance of each prefix, exactly, in O(length).

        Downward each node carries the variance `before` of the sum of everything left of it, the variance `total`
        of its own sum, and their covariance `joint`; given its parent's sum, a node's children are independent of
        everything outside the parent.
        """
        top = self._upward[-1][0]
        before, joint, total = np.cumsum(top) - top, np.zeros_like(top), top
        for level in range(self.levels - 1, 0, -1):
            own = self._upward[level - 1][0]
            parents = np.arange(len(own)) // self.branching
            whole = self._upward[level][1][parents]
            starts = parents * self.branching
            left = np.cumsum(own) - own
            left = left - left[starts]
            share, part = left / whole, own / whole
            outer_before, outer_joint, outer_total = before[parents], joint[parents], total[parents]
            before = outer_before + 2 * share * outer_joint + share**2 * outer_total + left - left * share
            joint = part * (outer_joint + share * outer_total) - left * part
            total = part**2 * outer_total + own - own * part
        return np.asarray(before + 2 * joint + total)

    def fourth_moment(self) -> FloatArray | None:
        """From the explicit decoder for up to 2,048 rows, None beyond."""
        return dense_fourth_moment(self.decode, self.rows, self.length)
