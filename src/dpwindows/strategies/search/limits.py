r"""The least error of any additive Gaussian mechanism: how far a plan is from the best possible.

A mechanism adds Gaussian noise of covariance C, of any shape, to the exact answers of one query, d numbers; its
guarantee is that of noise of unit scale at unit sensitivity if `g' C^-1 g <= 1` for every change g that one neighbour
can make. `limit` bounds the root mean square of the d standard errors, `sqrt(tr C / d)`, from below.

**Duality.** Let `g_j` be changes that do occur, `w_j >= 0`, and `X = sum w_j g_j g_j'`. Then for every such C
`tr(X C^-1) <= sum w`, and by Cauchy and Schwarz
`tr(X^(1/2))^2 = tr(X^(1/2) C^(-1/2) C^(1/2))^2 <= tr(X C^-1) tr(C)`, so

    tr C / d  >=  (tr X^(1/2))^2 / (d sum w)        for any weights on any changes that occur.

At the best weights on all changes this is an equality (the dual of a convex programme). Weights are improved by
multiplying each with a power of its `g' X^(-1/2) g`; stopping early, or leaving changes out, only lowers the bound.

**Long horizons.** If the g_j are all shifts of a few patterns, within W places, that meet the T steps (cut where they
stick out, and those parts occur too), X is a T x T section of a circulant matrix of any size `N >= T + W - 1` with
symbol `P = sum w |ghat|^2`, and `tr sqrt(section) >= T mean(sqrt P)` over the N frequencies, the square root being
operator concave (Berezin's inequality). Every pattern meets the T steps in at most T + W - 1 positions, so
`tr C / T >= mean(sqrt P)^2 T / (T + W - 1)` for weights that sum to 1.

Eigenvalues are lowered by a multiple of the rounding error before their roots are taken. The bounds are for Gaussian
noise: under approximate budgets Laplace noise may undercut them where one neighbour changes few numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpwindows.ask.privacy import EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod, Unit
from dpwindows.ask.queries import AnyWindow, Rolling, WindowFamily
from dpwindows.ask.windows import longest_window
from dpwindows.kernel.maps.integer_maps import FloatArray
from dpwindows.strategies.search.any_limits import any_limit
from dpwindows.strategies.search.item_limits import Averages, History, histories
from dpwindows.strategies.search.limit_patterns import pair_counts, run_weights
from dpwindows.strategies.search.spectrum import circle_mean, grid_size, interval_weights, power_of

# Horizons up to which T x T matrices are used, and how often their weights are improved.
_DENSE = 400
_ROUNDS = 5
_AVERAGED = 12
# Rolling windows from so many steps on are few in what is worked out at once.
_LONG = 100
# Horizons up to which all changes of any windows are enumerated.
_SQUARE_EVENT, _SQUARE_ITEM = 16, 10
_POWER = 1.8
# Rounding allowed for in an eigenvalue, relative to the largest, for each row of the matrix.
_ROUNDING = 64 * 2.0**-52


@lru_cache(maxsize=128)
def limit(window: WindowFamily, k: int, unit: Unit, steps: int) -> float | None:
    """A lower bound on the rms error of "at least k" over the windows, per unit of Gaussian noise; None if unknown.

    In units of the noise scale that the budget buys for a sensitivity of 1. Valid for a query alone and jointly with
    others: leaving answers out of a joint release leaves a mechanism for the rest. An item changed within a period may
    change by one occurrence, so for that unit the bound is the one for an event; for a period as long as the range, the
    one for an item.
    """
    if isinstance(unit, ItemPerPeriod):
        unit = ItemLevel() if unit.steps >= steps else EventLevel()
    if not isinstance(unit, (EventLevel, ItemLevel, ItemAddRemove)):
        return None
    if isinstance(window, AnyWindow):
        return _square_limit(window, unit, steps)
    length = window.length if isinstance(window, Rolling) else steps
    reach = min(length, steps)
    if isinstance(unit, EventLevel) or reach == steps:
        if isinstance(unit, ItemAddRemove):
            return _suffix_limit(steps)
        single = _interval_limit(steps, reach)
        return single if k == 1 or reach == steps else max(single, _runs_limit(steps, reach, k))
    return _item_limit(steps, reach, changed=isinstance(unit, ItemLevel))


# --- The dual, for given weights ------------------------------------------------------------------------------------


class Changes(Protocol):
    """A set of changes that one neighbour can make, in d numbers."""

    def moment(self, weights: FloatArray) -> FloatArray:
        """`sum w_j g_j g_j'`."""
        ...

    def costs(self, inverse_root: FloatArray) -> FloatArray:
        """`g_j' K g_j` for every change."""
        ...


def dual_bound(changes: Changes, weights: FloatArray, rounds: int = _ROUNDS) -> float:
    """The largest of the lower bounds on `sqrt(tr C / d)` met while weights are improved `rounds` times."""
    best = 0.0
    for _ in range(rounds):
        values, vectors = np.linalg.eigh(changes.moment(weights))
        slack = _ROUNDING * len(values) * values[-1]
        root = float(np.sqrt(np.maximum(values - slack, 0.0)).sum())
        best = max(best, root / float(np.sqrt(len(values) * weights.sum())))
        inverse = 1 / np.sqrt(np.maximum(values, slack))
        costs = changes.costs((vectors * inverse) @ vectors.T)
        weights = weights * np.maximum(costs / root, 0.0) ** _POWER
    return best * (1 - 1e-9)


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
        found = np.zeros((self.steps, self.longest))
        for n in range(1, self.longest + 1):
            x = np.arange(self.steps - n + 1)
            found[x, n - 1] = sums[x + n, x + n] - sums[x, x + n] - sums[x + n, x] + sums[x, x]
        return found


@dataclass(frozen=True)
class Shifts:
    """All shifts of some patterns of one length that meet `steps` steps, cut there; weights (pattern, shift).

    A pattern has ones at u and at u + d for some u: these make one series for each distance d, and what its shifts
    have in common at t and t + d is that series convolved with their weights.
    """

    steps: int
    patterns: tuple[tuple[int, ...], ...]

    def spread(self, by_pattern: FloatArray) -> FloatArray:
        """Weights to begin with: every shift alike, those that stick out halved."""
        length = len(self.patterns[0])
        first = np.arange(1 - length, self.steps)
        inside = (first >= 0) & (first + length <= self.steps)
        return np.asarray(by_pattern[:, None] * np.where(inside, 1.0, 0.5))

    @cached_property
    def _pairs(self) -> NDArray[np.complex128]:
        """The Fourier transforms of these series, shape (patterns, distances, frequencies)."""
        ones = np.array(self.patterns, dtype=np.float64)
        later = np.stack([np.pad(ones[:, d:], ((0, 0), (0, d))) for d in range(ones.shape[1])], axis=1)
        return np.asarray(np.fft.rfft(ones[:, None] * later, self._size))

    @property
    def _size(self) -> int:
        """Of the transforms: as many as there are shifts, and none of those that are read is met twice."""
        return 1 << (self.steps + len(self.patterns[0]) - 2).bit_length()

    def moment(self, weights: FloatArray) -> FloatArray:
        """A band about the diagonal."""
        common = np.einsum("pdf,pf->df", self._pairs, np.fft.rfft(weights, self._size))
        length, square = len(self.patterns[0]), np.zeros((self.steps, self.steps))
        found = np.fft.irfft(common, self._size)[:, length - 1 : length - 1 + self.steps]
        for distance in range(min(length, self.steps)):
            first = np.arange(self.steps - distance)
            square[first, first + distance] = square[first + distance, first] = found[distance, first]
        return square

    def costs(self, inverse_root: FloatArray) -> FloatArray:
        """Sums of K at the pairs of ones, those apart twice."""
        length = len(self.patterns[0])
        band = np.zeros((length, self._size))
        for distance in range(min(length, self.steps)):
            diagonal = np.diagonal(inverse_root, distance) * (2 if distance else 1)
            band[distance, length - 1 : length - 1 + len(diagonal)] = diagonal
        met = np.einsum("pdf,df->pf", self._pairs.conj(), np.fft.rfft(band))
        return np.asarray(np.fft.irfft(met, self._size)[:, : self.steps + length - 1])


# --- Sets of changes ------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _interval_limit(steps: int, reach: int) -> float:
    """One event, or a cumulative count of an item that changes: every interval of at most `reach` steps occurs."""
    weights, _ = interval_weights(reach, grid_size(reach))
    found = _circulant_bound(_interval_pairs(weights), steps, steps)
    if steps <= _DENSE:
        intervals = Intervals(steps, reach)
        found = max(found, dual_bound(intervals, intervals.spread(weights)))
    return found


def _interval_pairs(weights: FloatArray) -> FloatArray:
    tails = np.cumsum(weights[::-1])[::-1]
    return np.asarray(np.cumsum(tails[::-1])[::-1])


def _circulant_bound(pairs: FloatArray, free: int, steps: int) -> float:
    """The bound for long horizons, patterns being free to lie in `free` of the steps; 0 is claimed for the others."""
    if free <= 0:
        return 0.0
    size = 1 << (free + len(pairs)).bit_length()
    slack = _ROUNDING * len(pairs) * float(np.abs(pairs).sum())
    mean = circle_mean(np.sqrt(np.maximum(power_of(pairs, size) - slack, 0.0)))
    return float(mean * free / np.sqrt((free + len(pairs) - 1) * steps)) * (1 - 1e-9)


def _runs_limit(steps: int, reach: int, k: int) -> float:
    """One event, rolling counts, k > 1: patterns of at most k runs in `reach` places, after the first `reach` steps.

    Every such pattern occurs there: let the event be at the first run's first step s, with k-1 other occurrences of
    its item before or at s. At the end of each run but the last let one of them, W steps old, leave the window; at
    the start of the next let a new one enter; and let one enter at the end of the last run. That needs steps before
    s, where a second run begins beyond step W. Parts of patterns are patterns. So the steps from W+1 on have the bound
    for long horizons, or that of all shifts that meet them; the first W steps are a mechanism of their own, for a
    cumulative count.
    """
    patterns, weights = run_weights(reach, k)
    pairs = np.array([pair_counts(pattern) for pattern in patterns])
    free = steps - reach
    found = _circulant_bound((weights[:, None] * pairs).sum(axis=0), free, steps)
    if free > 0 and steps <= _DENSE:
        shifts = Shifts(free, tuple(patterns))
        block = dual_bound(shifts, shifts.spread(weights))
        found = max(found, float(np.sqrt((free * block**2 + reach * _interval_limit(reach, reach) ** 2) / steps)))
    return found


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


@lru_cache(maxsize=64)
def _suffix_limit(steps: int) -> float:
    """Beyond the dense horizon, that of blocks: a suffix of the horizon is one of the block it begins in."""
    blocks, rest = divmod(steps, _DENSE)
    squared = 0.0
    if blocks:
        squared += blocks * _DENSE * dual_bound(Suffixes(_DENSE), np.full(_DENSE, 1.0 / _DENSE)) ** 2
    if rest:
        squared += rest * dual_bound(Suffixes(rest), np.full(rest, 1.0 / rest)) ** 2
    return float(np.sqrt(squared / steps))


@lru_cache(maxsize=64)
def _item_limit(steps: int, length: int, *, changed: bool) -> float:
    """One item added or removed, or changed, for k = 1 and so for every k: from random histories of it (`item_limits`).

    A long range is cut into stretches of one size with W steps between them that are left out, where runs of one
    stretch end. Let the item do in each what it does in the others, drawn anew, and, if it changes, with a sign drawn
    anew. Then `E[g g']` is at least the matrix that has E[f f'] of a stretch less the product of the means (0 with such
    signs) on its diagonal, once for each: their roots add up before they are squared.
    """
    drawn = histories(length, changed=changed)
    if length > _LONG:
        return _long_limit(steps, length, drawn, changed=changed)
    count = -(-(steps + length) // (_DENSE + length))
    size = (steps + length) // count - length
    squares = [one.from_the_start(size, centred=count > 1 and not changed) for one in drawn]
    return count * _average_bound(squares) * float(np.sqrt(size / steps))


def _long_limit(steps: int, length: int, drawn: list[History], *, changed: bool) -> float:
    """The same where windows are so long that few histories begin within a stretch.

    The first W steps are a mechanism of their own, for a cumulative count, and so are blocks of the others.
    """
    blocks, rest = divmod(steps - length, _DENSE)
    squared = length * (_interval_limit(length, length) if changed else _suffix_limit(length)) ** 2
    for count, size in ((blocks, _DENSE), (1, rest)):
        if count * size:
            squared += count * size * _average_bound([one.later_on(size) for one in drawn]) ** 2
    return float(np.sqrt(squared / steps))


def _average_bound(squares: list[FloatArray]) -> float:
    return dual_bound(Averages(np.array(squares)), np.full(len(squares), 1.0 / len(squares)), rounds=_AVERAGED)


@lru_cache(maxsize=64)
def _square_limit(window: AnyWindow, unit: Unit, steps: int) -> float:
    """Any windows, from changes with k = 1 (they occur for every k, with k-fold occurrences).

    On short ranges these are all changes, on longer ones random ones (`any_limits`).
    """
    event, longest = isinstance(unit, EventLevel), longest_window(window, steps)
    if steps <= (_SQUARE_EVENT if event else _SQUARE_ITEM):
        return _enumerated(steps, longest, event=event)
    return any_limit(steps, longest, event=event, changed=isinstance(unit, ItemLevel))


def _enumerated(steps: int, longest: int, *, event: bool) -> float:
    first, last = np.triu_indices(steps)
    released = last - first < longest
    changes = _event_squares(steps) if event else _item_squares(steps)
    rows = np.unique(np.array([change[first, last][released] for change in changes]), axis=0)
    return dual_bound(Listed(rows), np.full(len(rows), 1.0 / len(rows)), rounds=150)


def _event_squares(steps: int) -> Iterator[FloatArray]:
    for low, step, high in product(range(steps), repeat=3):
        if low <= step <= high:
            square = np.zeros((steps, steps))
            square[low : step + 1, step : high + 1] = 1.0
            yield square


def _item_squares(steps: int) -> Iterator[FloatArray]:
    for occurs in product((0, 1), repeat=steps):
        before = np.concatenate([[0], np.cumsum(occurs)])
        yield (before[None, 1:] - before[:-1, None] > 0).astype(float)
