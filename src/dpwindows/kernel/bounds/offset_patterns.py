"""Certified sensitivities of rolling counts through any lower-triangular matrix, for one item added or removed.

An item that is present at all may be counted at half of all steps, so much of its cost is the mean of its series. Noise
with a common random offset is lenient about the mean: its precision is a Toeplitz matrix less a constant. The bound
here finds such a constant in the very integers that are applied, and asks for no structure.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpwindows.ask.counting_rule import EVERY_OCCURRENCE, CountingRule
from dpwindows.kernel.advice import Advise, Question, ask
from dpwindows.kernel.bounds.counted_by_rule import places_by_rule, runs_by_rule
from dpwindows.kernel.bounds.run_patterns import Lags, PriceOfOnes, neighbour_bound, recent_bound
from dpwindows.kernel.bounds.sensitivity import Thresholds, most_runs
from dpwindows.kernel.proofs import proves

# The most places that a bound may be told to remember of patterns.
MOST_MEMORY = 16


@proves("rolling-offset-presence")
def rolling_offset_add_remove_l2(
    weights: NDArray[np.int64],
    length: int,
    steps: int,
    thresholds: Thresholds,
    advise: Advise,
    rule: CountingRule = EVERY_OCCURRENCE,
) -> int:
    """Rolling counts, one item added or removed, through a matrix of integers on the increments.

    Proof. For each threshold k the change is f, a 0/1 pattern in T places with n ones, in at most
    `R = k ceil(T/(W+1))` runs, for k = 1 of at least W places but for the last (`rolling_patterns_add_remove_l2`); by a
    rule of counting in fewer runs, and with at most m ones, `m <= T` (`counted_by_rule`, `places_by_rule`). It
    moves what is measured by `M f`, `M = E D` with E the `weights`, so it costs `f'Af`, `A = M'M` in exact integers
    (`gram`). With `a_d` the largest entry of A at distance d from the diagonal (`largest_by_distance`), and any c >= 0,

        f'Af <= sum_{s,t} a_|s-t| f_s f_t = f'Gf - c n^2,   G_st = r_|s-t|,  r_d = a_d + c,

    since `f_s f_t >= 0`. For any P >= 0

        f'Af <= max_{0 <= x <= m} (P x - c x^2) + max_f (f'Gf - P n),

    as n is one of these x. The first maximum is `P^2 / (4 c)` at `x = P / (2 c)`, or `P m - c m^2` where that is beyond
    m (`PriceOfOnes`). The second maximum over all such patterns is bounded in `run_patterns`, with P a price for
    every one, in two ways; `Lags` rounds r up and P is a whole number of its units. The rest is rounded up. c is the
    least number that makes no `r_d`, d >= 1, positive, and 0 if none is needed; the prices are searched for, and any
    of them gives a bound. Thresholds are measured apart; their squared norms add. QED.

    Args:
        weights: E, of `steps` rows; beyond the last one nothing is measured.
        length: the window's length W in steps.
        steps: the horizon T in steps.
        thresholds: the thresholds measured apart.
        advise: who is asked for prices, the widest gap and what is remembered.
        rule: which occurrences of an item count.

    Returns:
        The bound on the squared L2 norm, in squared lattice units.

    Raises:
        ValueError: the matrix has not as many rows and columns as there are steps.
    """
    if weights.shape != (steps, steps):
        raise ValueError(f"the matrix must have {steps} rows and columns, got {weights.shape}")
    majorant = largest_by_distance(gram(weights))
    offset = max(0, -max(majorant[1:], default=0))
    exact = [value + offset for value in majorant]
    total = 0
    for k in thresholds:
        runs = runs_by_rule(rule, k, most_runs(k, length, steps))
        shortest = min(length, steps) if k == 1 else 1
        places = places_by_rule(rule, k, length, steps)
        question = Question("rolling-offset-presence", k, ())
        total += priced_ones_bound(exact, offset, runs, places, shortest, question, advise)
    return total


def priced_ones_bound(
    exact: list[int], offset: int, runs: int, places: int, shortest: int, question: Question, advise: Advise
) -> int:
    """The least of the bounds on `f'Gf - c n^2`, c the `offset`, for f of at most so many runs and ones.

    Every run but the last has at least `shortest` places; `exact` are the entries of G by distance. The proof is that
    of `rolling_offset_add_remove_l2`.
    """
    lags = Lags.fitting(exact, runs)
    mean = PriceOfOnes(offset, places, lags.shift)
    prices = (0, lags.values[0])
    price, place_price, widest, memory, recent_price = ask(
        advise,
        replace(question, about=(lags, mean, runs, shortest)),
        [prices, prices, (1, lags.length), (1, MOST_MEMORY), prices],
    )
    most = neighbour_bound(lags, runs, place_price, shortest=shortest, price=price, widest=widest)
    bound = mean.of(price) + (most << lags.shift)
    if shortest > 1:
        return bound
    return min(bound, mean.of(recent_price) + (recent_bound(lags, runs, memory, recent_price) << lags.shift))


def furthest(values: NDArray[Any]) -> int:
    """The largest absolute value, exact; the least number of 64 bits has one that no number of 64 bits is."""
    return max(int(values.max()), -int(values.min()))


def gram(weights: NDArray[np.int64]) -> NDArray[np.generic]:
    """`M'M` in exact integers, shape (T, T): `M = E D`, E the weights, shape (T, T), and D the first differences."""
    steps = len(weights)
    wide = weights.astype(object if furthest(weights) >= 1 << 61 else np.int64)
    matrix = wide - np.concatenate([wide[:, 1:], np.zeros_like(wide[:, :1])], axis=1)
    bits = furthest(matrix).bit_length()
    half = (bits + 1) // 2
    # Floats hold sums of products of halves exactly, in whatever order they are added; 64-bit integers hold the whole.
    if 2 * half + 2 + steps.bit_length() > 52 or 2 * bits + steps.bit_length() > 61:
        exact = matrix.astype(object)
        return np.asarray(exact.T @ exact)
    high = (matrix >> half).astype(np.float64)
    low = (matrix & ((1 << half) - 1)).astype(np.float64)
    mixed = high.T @ low
    return np.asarray(
        ((high.T @ high).astype(np.int64) << (2 * half))
        + ((mixed + mixed.T).astype(np.int64) << half)
        + (low.T @ low).astype(np.int64)
    )


def largest_by_distance(matrix: NDArray[np.generic]) -> list[int]:
    """The largest entry of a symmetric matrix at each distance 0, 1, ... from its diagonal."""
    return [int(np.diagonal(matrix, distance).max()) for distance in range(len(matrix))]
