"""Certified sensitivities of rolling counts through any lower-triangular matrix, for one item added or removed.

How far can one item, added or removed, move what is measured? Its answers are a 0/1 series f with n ones, and it moves
the numbers measured by `M f`. The bounds here have the form `|M f|^2 <= f'Gf - c n^2`, with a Toeplitz matrix G and a
constant c >= 0, which are read off the very integers that are applied. An item may be counted at half of all steps, so
n is large where f is costly, and the constant takes much of it off: that is what noise with a common random offset
gains. There is one bound for any matrix M, and one for a filter with an offset, in far less time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpwindows.ask.privacy import ItemAddRemove
from dpwindows.ask.queries import Rolling
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.advice import Advise, Question, ask
from dpwindows.kernel.families.norms import autocorrelation
from dpwindows.kernel.families.run_patterns import Lags, PriceOfOnes, neighbour_bound
from dpwindows.kernel.families.runs import changed_runs
from dpwindows.kernel.maps.counters import MatrixCounter
from dpwindows.kernel.maps.filters import OffsetFilter
from dpwindows.kernel.maps.integer_maps import IntegerMap
from dpwindows.kernel.rules import Case, rule


@rule(
    "rolling-offset-presence",
    Rolling,
    ItemAddRemove,
    GAUSSIAN,
    (MatrixCounter, OffsetFilter),
    when="a row for every step; of a filter offsets that fall fast enough",
)
def rolling_offset_add_remove_l2(case: Case) -> int | None:
    """Rolling counts, one item added or removed, through a matrix or a filter with a common offset.

    Proof. For each threshold k the change is f, a 0/1 pattern in T places with n ones, in at most
    `R = k ceil(T/(W+1))` runs, for k = 1 of at least W places but for the last (`rolling_patterns_add_remove_l2`); by a
    rule of counting in fewer runs, and with at most m ones, `m <= T` (`counted_by_rule`). With G and c of
    `matrix_norm` or `offset_norm` and any P >= 0

        |M f|^2 <= f'Gf - c n^2 <= max_{0 <= x <= m} (P x - c x^2) + max_f (f'Gf - P n),

    as n is one of these x. The first maximum is `P^2 / (4 c)` at `x = P / (2 c)`, or `P m - c m^2` where that is beyond
    m (`PriceOfOnes`). The second maximum over all such patterns is bounded in `run_patterns`, with P a price for
    every one; `Lags` rounds r up and P is a whole number of its units. The rest is rounded up. The prices are searched
    for, and any of them gives a bound. Thresholds are measured apart; their squared norms add (`OffsetNorm.rounded`
    pays for what a filter rounds). QED.
    """
    norm, total = norm_of(case.measured, case.steps), 0
    if norm is None:
        return None
    for k, change in zip(case.thresholds, changed_runs(case) or (), strict=True):
        question, shortest = Question("rolling-offset-presence", k, ()), case.reach if k == 1 else 1
        total += priced_ones_bound(
            list(norm.lags), norm.offset, change.most, change.places, shortest, question, case.advise
        )
    return norm.rounded(total, len(case.thresholds))


@dataclass(frozen=True)
class OffsetNorm:
    """`|M f|^2 <= f'Gf - offset n^2` for every f >= 0 whose values add up to n, M before it is divided and rounded.

    Attributes:
        lags: the entries of G by distance.
        offset: what is taken off, not negative.
        shift: M is applied in parts of 2^shift, rounded; None: as it is.
    """

    lags: tuple[int, ...]
    offset: int
    shift: int | None

    def rounded(self, total: int, thresholds: int) -> int:
        """From the sum of `|M f|^2` over thresholds, each f of zeros and ones, to that of what is measured.

        Proof. With M as it is before it is divided what is measured moves by `2^-shift M f + e`. Each entry is rounded
        by at most 1/2, so `|e_t| <= t / 2`. Over all thresholds the norm is at most the root of the sum of
        `|M f|^2 / 4^shift` and the root of that of `|e|^2`; both are rounded up. QED.
        """
        if self.shift is None:
            return total
        squares = sum(place**2 for place in range(1, len(self.lags) + 1))
        return (isqrt(total >> 2 * self.shift) + 1 + isqrt(thresholds * squares // 4) + 1) ** 2


def norm_of(measured: IntegerMap, steps: int | None) -> OffsetNorm | None:
    """What a map makes of a pattern; None where it has not a row for every step, or no constant is found in it."""
    match measured:
        case MatrixCounter(weights=matrix) if matrix.shape == (steps, steps):
            return matrix_norm(matrix)
        case OffsetFilter() if measured.length == steps:
            return offset_norm(measured)
    return None


def matrix_norm(weights: NDArray[np.int64]) -> OffsetNorm:
    """What a matrix of weights on the increments makes of a pattern.

    Proof. It moves what is measured by `M f`, `M = E D` with E the `weights`, so it costs `f'Af`, `A = M'M` in exact
    integers (`gram`). With `a_d` the largest entry of A at distance d from the diagonal (`largest_by_distance`), and
    any c >= 0,

        f'Af <= sum_{s,t} a_|s-t| f_s f_t = f'Gf - c n^2,   G_st = r_|s-t|,  r_d = a_d + c,

    since `f_s f_t >= 0`. c is the largest that makes no `r_d`, d >= 1, positive, or 0 if some `a_d` is. QED.
    """
    majorant = largest_by_distance(gram(weights))
    offset = max(0, -max(majorant[1:], default=0))
    return OffsetNorm(tuple(value + offset for value in majorant), offset, None)


def offset_norm(measured: OffsetFilter) -> OffsetNorm | None:
    """What `OffsetFilter` makes of a pattern, from its integers; None where the conditions of the proof do not hold.

    Proof. Let `z = L f` be what the filter makes of f, `P_t = z_1 + ... + z_(t-1)`, and a, b the weights and offsets.
    So `(M f)_t = a_t z_t - b_t P_t`. With `g_t = a_t b_t` and `2 z_t P_t = P_(t+1)^2 - P_t^2 - z_t^2`

        |M f|^2 = sum (a_t^2 + g_t) z_t^2 + sum_(t>=2) (g_t - g_(t-1) + b_t^2) P_t^2 - g_T P_(T+1)^2.

    The middle sum is at most 0 where `g_(t-1) >= g_t + b_t^2` for all t, and no g is negative then if `g_T` is not:
    both are checked. With h the largest `a_t^2 + g_t` the first is at most `h |L f|^2 <= h sum_st r_|s-t| f_s f_t`, r
    the filter's autocorrelation, for on an unbounded horizon there are more rows. Last, `P_(T+1)` is the sum over f of
    the sums of the first taps, as many as there are steps left: at least n times the least of these, if that is not
    negative. QED.
    """
    steps = measured.length
    both = [weight * offset for weight, offset in zip(measured.weights, measured.offsets, strict=True)]
    later = zip(pairwise(both), measured.offsets[1:], strict=True)
    if both[-1] < 0 or any(before < after + offset**2 for (before, after), offset in later):
        return None
    highest = max(weight**2 + product for weight, product in zip(measured.weights, both, strict=True))
    lags = [highest * lag for lag in autocorrelation(measured.taps)[:steps]]
    mean = max(0, min(accumulate(measured.taps[:steps])))
    return OffsetNorm((*lags, *[0] * (steps - len(lags))), both[-1] * mean**2, measured.shift)


def priced_ones_bound(
    exact: list[int], offset: int, runs: int, places: int, shortest: int, question: Question, advise: Advise
) -> int:
    """A bound on `f'Gf - c n^2`, c the `offset`, for f of at most `runs` runs and `places` ones.

    Every run but the last has at least `shortest` places; `exact` are the entries of G by distance. The proof is that
    of `rolling_offset_add_remove_l2`.
    """
    lags = Lags.fitting(exact, runs)
    mean = PriceOfOnes(offset, places, lags.shift)
    prices = (0, lags.values[0])
    question = replace(question, about=(lags, mean, runs, shortest))
    price, place_price, widest = ask(advise, question, [prices, prices, (1, lags.length)])
    most = neighbour_bound(lags, runs, place_price, shortest=shortest, price=price, widest=widest)
    return mean.of(price) + (most << lags.shift)


def gram(weights: NDArray[np.int64]) -> NDArray[Any]:
    """`M'M` in exact integers, shape (T, T): `M = E D`, E the weights, shape (T, T), and D the first differences."""
    matrix = weights.astype(object)
    matrix[:, :-1] -= matrix[:, 1:].copy()
    if len(matrix) * max(map(abs, matrix.flat)) ** 2 < 1 << 62:
        small = matrix.astype(np.int64)
        return np.asarray(np.einsum("ts,tu->su", small, small))
    return np.asarray(matrix.T @ matrix)


def largest_by_distance(matrix: NDArray[np.generic]) -> list[int]:
    """The largest entry of a symmetric matrix at each distance 0, 1, ... from its diagonal."""
    return [int(np.diagonal(matrix, distance).max()) for distance in range(len(matrix))]
