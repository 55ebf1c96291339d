r"""Lower bounds on the error of Gaussian noise from weights on changes: the duality that all limits rest on.

A mechanism adds Gaussian noise of covariance C, of any shape, to d exact answers; its guarantee is that of noise of
unit scale at unit sensitivity if `g' C^-1 g <= 1` for every change g that one neighbour can make.

**Duality.** Let `g_j` be changes that do occur, `w_j >= 0`, and `X = sum w_j g_j g_j'`. Then for every such C
`tr(X C^-1) <= sum w`, and by Cauchy and Schwarz
`tr(X^(1/2))^2 = tr(X^(1/2) C^(-1/2) C^(1/2))^2 <= tr(X C^-1) tr(C)`, so

    tr C / d  >=  (tr X^(1/2))^2 / (d sum w)        for any weights on any changes that occur.

At the best weights on all changes this is an equality (the dual of a convex programme). Weights are improved by
multiplying each with a power of its `g' X^(-1/2) g`; stopping early, or leaving changes out, only lowers the bound.
A change that is drawn at random stands for all that it may be: its `g g'` is the mean of theirs.

**Long horizons.** If the g_j are all shifts of a few patterns, within W places, that meet the T steps (cut where they
stick out, and those parts occur too), X is a T x T section of a circulant matrix of any size `N >= T + W - 1` with
symbol `P = sum w |ghat|^2`, and `tr sqrt(section) >= T mean(sqrt P)` over the N frequencies, the square root being
operator concave (Berezin's inequality). Every pattern meets the T steps in at most T + W - 1 positions, so
`tr C / T >= mean(sqrt P)^2 T / (T + W - 1)` for weights that sum to 1.

Eigenvalues are lowered by a multiple of the rounding error before their roots are taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from dpwindows.kernel.maps.integer_maps import FloatArray
from dpwindows.strategies.search.spectrum import circle_mean, cost_of, power_of

# How often weights are improved, and the power of each time.
_ROUNDS, _POWER = 5, 1.8
# Rounding allowed for in an eigenvalue, relative to the largest, for each row of the matrix.
_ROUNDING = 64 * 2.0**-52


# Of the integral in `root_trace`: its first point, its last one over the size of the mean, and how many there are.
_GRID = (1e-4, 1e3, 2000)


def dual_bound(changes: Changes, weights: FloatArray, rounds: int = _ROUNDS, *, mirrored: bool = False) -> float:
    """The largest of the lower bounds on `sqrt(tr C / d)` met while weights are improved `rounds` times.

    Where changes are `mirrored`, that is, each occurs backwards too, either way is given half the weight. Then X is the
    same from either end. It acts apart on what is even about the middle and on what is odd: two matrices half as large.
    """
    return improved(changes, weights, rounds, mirrored=mirrored)[0]


def improved(changes: Changes, weights: FloatArray, rounds: int, *, mirrored: bool = False) -> tuple[float, FloatArray]:
    """As `dual_bound`, and the weights that the bound is met at."""
    best, kept = 0.0, weights
    for left in reversed(range(rounds)):
        moment = changes.moment(weights)
        size = len(moment)
        bases = _even_and_odd(size) if mirrored else (np.eye(size),)
        moment = (moment + moment[::-1, ::-1]) / 2 if mirrored else moment
        parts = [np.linalg.eigh(base.T @ moment @ base) for base in bases]
        slack = _ROUNDING * size * max(float(values.max(initial=0.0)) for values, _ in parts)
        root = sum(float(np.sqrt(np.maximum(values - slack, 0.0)).sum()) for values, _ in parts)
        bound = root / float(np.sqrt(size * weights.sum()))
        best, kept = (bound, weights) if bound > best else (best, kept)
        if not left:
            break
        inverse = np.zeros((size, size))
        for base, (values, vectors) in zip(bases, parts, strict=True):
            along = base @ vectors
            inverse += (along / np.sqrt(np.maximum(values, slack))) @ along.T
        weights = weights * np.maximum(changes.costs(inverse) / root, 0.0) ** _POWER
    return best * (1 - 1e-9), kept


@lru_cache(maxsize=4)
def _even_and_odd(size: int) -> tuple[FloatArray, FloatArray]:
    """Orthonormal bases of the vectors that are the same backwards, and of those that change sign, as columns."""
    unit = np.eye(size)
    even, odd = (unit + unit[:, ::-1])[:, : (size + 1) // 2], (unit - unit[:, ::-1])[:, : size // 2]
    return even / np.sqrt((even**2).sum(axis=0)), odd / 2**0.5


def root_trace(square: FloatArray, mean: FloatArray, times: int) -> float:
    """A lower bound on the trace of the root of a matrix: `times` squares on its diagonal, plus the product `m m'`.

    m is `mean` as many times. With B the squares, `tr (B + m m')^(1/2) - tr B^(1/2)` is the integral over s >= 0 of
    `log(1 + m'(B + s^2)^-1 m) / pi`, which decreases in s: a sum over a grid that takes each value from the right end.
    """
    values, vectors = np.linalg.eigh(square)
    slack = _ROUNDING * len(square) * max(float(values.max()), float(mean @ mean))
    values, parts = np.maximum(values - slack, 0.0), times * (mean @ vectors) ** 2
    grid = np.append(0.0, np.geomspace(_GRID[0], _GRID[1] * (1 + np.sqrt(parts.sum())), _GRID[2]))
    added = np.log1p((parts / (values + slack + grid[1:, None] ** 2)).sum(axis=1))
    return float(times * np.sqrt(values).sum() + (np.diff(grid) * added).sum() / np.pi) * (1 - 1e-9)


@dataclass(frozen=True)
class Listed:
    """Changes given one by one, shape (changes, numbers)."""

    rows: FloatArray

    def moment(self, weights: FloatArray) -> FloatArray:
        """`rows' diag(w) rows`."""
        return np.asarray((self.rows.T * weights) @ self.rows)

    def costs(self, inverse_root: FloatArray) -> FloatArray:
        """`g' B g` for every change g, a row each; shape (changes,)."""
        return np.asarray(((self.rows @ inverse_root) * self.rows).sum(axis=1))


@dataclass(frozen=True)
class Intervals:
    """All intervals of at most `longest` of `steps` steps; weights of shape (first step, length)."""

    steps: int
    longest: int

    def spread(self, by_length: FloatArray) -> FloatArray:
        """Weights to begin with.

        All intervals alike where most meet an end of the horizon; otherwise every shift of each length alike, those
        that stick out cut off and halved.
        """
        if 3 * self.longest > self.steps:
            lengths = np.arange(1, self.longest + 1)
            return (np.arange(self.steps)[:, None] + lengths[None, :] <= self.steps).astype(float)
        weights = np.zeros((self.steps, self.longest))
        for n, weight in enumerate(by_length, start=1):
            weights[: self.steps - n + 1, n - 1] += weight
        # What is cut to length m at either end: the weight of all longer ones.
        longer = np.concatenate([np.cumsum(by_length[::-1])[::-1][1:], [0.0]])
        lengths = np.arange(1, self.longest + 1)
        weights[0] += longer / 2
        weights[self.steps - lengths, lengths - 1] += longer / 2
        return weights

    def moment(self, weights: FloatArray) -> FloatArray:
        """`X_st` is the weight of all intervals that hold both s and t: sums over first steps and last steps."""
        square = np.zeros((self.steps, self.steps))
        for n in range(1, self.longest + 1):
            first = np.arange(self.steps - n + 1)
            square[first, first + n - 1] += weights[: self.steps - n + 1, n - 1]
        # first <= s and last >= t, for s <= t.
        held = np.cumsum(np.cumsum(square, axis=0)[:, ::-1], axis=1)[:, ::-1]
        upper = np.triu(held)
        return np.asarray(upper + np.triu(upper, 1).T)

    def costs(self, inverse_root: FloatArray) -> FloatArray:
        """Sums over squares of K, from its two-dimensional running sums."""
        sums = np.zeros((self.steps + 1, self.steps + 1))
        sums[1:, 1:] = np.cumsum(np.cumsum(inverse_root, axis=0), axis=1)
        sums_of_squares = np.zeros((self.steps, self.longest))
        for n in range(1, self.longest + 1):
            x = np.arange(self.steps - n + 1)
            sums_of_squares[x, n - 1] = sums[x + n, x + n] - sums[x, x + n] - sums[x + n, x] + sums[x, x]
        return sums_of_squares


@dataclass(frozen=True)
class Shifts:
    """All shifts of some changes in a few places that meet `steps` steps, cut there; weights (change, shift).

    `products` says of each change what it does at a place times what it does so many places later, or the mean of that
    where it is drawn at random: shape (changes, distances, places). That is one series for each distance, and what the
    shifts have in common at t and t + distance is that series convolved with their weights.
    """

    steps: int
    products: FloatArray

    @staticmethod
    def of(steps: int, squares: FloatArray) -> Shifts:
        """Shifts of changes with these mean products `E[g g']`, shape (changes, places, places)."""
        products = np.zeros_like(squares)
        for distance in range(squares.shape[1]):
            products[:, distance, : squares.shape[1] - distance] = np.diagonal(squares, distance, 1, 2)
        return Shifts(steps, products)

    def spread(self, by_change: FloatArray) -> FloatArray:
        """Weights to begin with: every shift alike, those that stick out halved."""
        first = np.arange(1 - self._places, self.steps)
        inside = (first >= 0) & (first + self._places <= self.steps)
        return np.asarray(by_change[:, None] * np.where(inside, 1.0, 0.5))

    @property
    def _places(self) -> int:
        return int(self.products.shape[2])

    @cached_property
    def _turned(self) -> NDArray[np.complex128]:
        """The Fourier transforms of these series, shape (changes, distances, frequencies)."""
        return np.asarray(np.fft.rfft(self.products, self._size))

    @property
    def _size(self) -> int:
        """Of the transforms: as many as there are shifts, and none of those that are read is met twice."""
        return 1 << (self.steps + self._places - 2).bit_length()

    def moment(self, weights: FloatArray) -> FloatArray:
        """A band about the diagonal."""
        common = np.einsum("pdf,pf->df", self._turned, np.fft.rfft(weights, self._size))
        length, square = self._places, np.zeros((self.steps, self.steps))
        band = np.fft.irfft(common, self._size)[:, length - 1 : length - 1 + self.steps]
        for distance in range(min(length, self.steps)):
            first = np.arange(self.steps - distance)
            square[first, first + distance] = square[first + distance, first] = band[distance, first]
        return square

    def costs(self, inverse_root: FloatArray) -> FloatArray:
        """Mean sums of K at the pairs of places, those apart twice."""
        length = self._places
        band = np.zeros((length, self._size))
        for distance in range(min(length, self.steps)):
            diagonal = np.diagonal(inverse_root, distance) * (2 if distance else 1)
            band[distance, length - 1 : length - 1 + len(diagonal)] = diagonal
        met = np.einsum("pdf,df->pf", self._turned.conj(), np.fft.rfft(band))
        return np.asarray(np.fft.irfft(met, self._size)[:, : self.steps + length - 1])


@dataclass(frozen=True)
class Suffixes:
    """The changes 1 on [x, T], for x = 1..T."""

    steps: int

    def moment(self, weights: FloatArray) -> FloatArray:
        """`X_st` is the weight of all x <= min(s, t)."""
        sums = np.cumsum(weights)
        index = np.arange(self.steps)
        return np.asarray(sums[np.minimum(index[:, None], index[None, :])])

    def costs(self, inverse_root: FloatArray) -> FloatArray:
        """Sums over the lower right squares of K."""
        sums = np.cumsum(np.cumsum(inverse_root[::-1, ::-1], axis=0), axis=1)[::-1, ::-1]
        return np.asarray(np.diagonal(sums).copy())


@dataclass(frozen=True)
class Averages:
    """Mean products of random changes, one square for each; weights are on the squares."""

    squares: FloatArray

    def moment(self, weights: FloatArray) -> FloatArray:
        """`sum w E[g g']`."""
        return np.asarray(np.tensordot(weights, self.squares, 1))

    def costs(self, inverse_root: FloatArray) -> FloatArray:
        """`E[g' K g]` for every random change."""
        return np.asarray(self.squares.reshape(len(self.squares), -1) @ inverse_root.ravel())


# Sets of changes that one neighbour can make, in d numbers.
Changes = Listed | Intervals | Shifts | Suffixes | Averages


def improve_weights(
    pairs: FloatArray, weights: FloatArray, rounds: int, power: float = 1.0
) -> tuple[FloatArray, FloatArray]:
    """Weights that sum to 1 and nearly maximise `circulant_bound`, and the lags of the noise that is best for them.

    Args:
        pairs: of each change, as `pair_counts` has them.
        weights: where to begin.
        rounds: how often each weight is multiplied with a power of its change's cost under that noise.
        power: of the cost.
    """
    places = pairs.shape[1]
    size = 1 << (8 * places - 1).bit_length()
    for _ in range(rounds):
        root = np.sqrt(np.maximum(power_of(weights @ pairs / weights.sum(), size), 1e-12))
        lags = np.fft.irfft(1 / root, size)[:places]
        costs = pairs @ cost_of(lags) / circle_mean(root)
        weights = weights * np.maximum(costs, 0.0) ** power
    return weights / weights.sum(), lags


def circulant_bound(pairs: FloatArray, free: int, steps: int) -> float:
    """The bound for long horizons, patterns being free to lie in `free` of the steps; 0 is claimed for the others."""
    if free <= 0:
        return 0.0
    size = 1 << (free + len(pairs)).bit_length()
    slack = _ROUNDING * len(pairs) * float(np.abs(pairs).sum())
    mean = circle_mean(np.sqrt(np.maximum(power_of(pairs, size) - slack, 0.0)))
    return float(mean * free / np.sqrt((free + len(pairs) - 1) * steps)) * (1 - 1e-9)
