r"""Any windows at event level, each measured with those inside it (`families.nested`): what one occurrence costs.

**What one occurrence changes.** With `left(a)` the old occurrences in a..s and `right(t)` those in s+1..t, threshold k
flips where `left(a) = i` and `right(t) = k-1-i`: **k rectangles `I_i x J_{k-1-i}`**, the `I_i` disjoint intervals of
starts at or before s, the `J_j` disjoint intervals of ends at or after s, some of them empty (`families.runs`).

## Without weights, through contracting signs

Notation as in `dpwindows.kernel.families.runs`: `r_m` and q are the autocorrelation and the interval norms of the
filter, G its Gram matrix on an unbounded horizon. Off the diagonal G is <= 0 and q is concave (signs lemma).

**One threshold k.** An occurrence at step s changes g on the rectangles `I_i x J_{k-1-i}`, i =
0..k-1. I_0 lies next to s, I_1 before it, and so on without gaps; J likewise, from s on. Any may be empty. Finite
horizons only drop rows. With `A_ij = 1_{I_i}' G 1_{I_j}` and B likewise for the `J_{k-1-i}`

    ||M g||^2 = sum_ij A_ij B_ij <= |A| |B|,    |A|^2 = sum_ij A_ij^2    (Cauchy-Schwarz).

Both factors are of one kind. A *chain* is a sequence of intervals, each of which begins where the one before ends; left
without its empty ones it is still a chain. (And intervals with gaps between them have no larger `|A|` than the chain in
which every gap is added to an interval beside it: q grows, and products of different intervals gain terms of the sign
they have.) Let `H_j(m)` be the largest `|A|^2` over chains of at most j intervals with at most m places together:
`||M g||^2 <= sqrt(H_k(starts) H_k(ends))`, for the starts at or before s, and the ends at or after s.
(Where these are as many, g can be chosen to reach it on the unbounded horizon.)

**A chain.** Let its lengths be n_1, n_2, ..., with sums N_i. Then `A_ii = q(n_i)`; neighbours *touch*, with

    -2 A_{i,i-1} = q(n_i) + q(n_{i-1}) - q(n_i + n_{i-1});

and the inner products of interval i with those *beyond* its neighbour are all <= 0, so their squares add up to at most
the square of their sum, which is that with the one interval from the chain's first place to the neighbour:

    4 sum_{l <= i-2} A_il^2 <= beyond^2,    beyond = q(n_i + n_{i-1}) - q(n_{i-1}) - q(N_i) + q(N_i - n_i).

So `4 |A|^2 <= sum_i 4 q(n_i)^2 + 2 touching_i^2 + 2 beyond_i^2`: a sum over places in the chain of what depends on n_i,
n_{i-1} and N_i, whose maximum is found by dynamic programming over these (`chain_costs`).

**Thresholds.** They are measured apart: what each costs adds up. But they share the intervals. Threshold k has the
first k of I_0, I_1, ... and of J_0, J_1, ..., so by Cauchy-Schwarz once more all together cost at most
`sqrt(H_w(starts) H_w(ends))`, where in H_w each `A_ij^2` counts as often as thresholds exceed i and j: `w_max(i,j)`
times. (w falls, so a chain left without its empty intervals costs no less.) Both bounds hold; the smaller one is used.

## Weighed by length, for k = 1

Notation: as in `dpwindows.kernel.families.runs`; `C(i)` is the sum of the first i + 1 taps, of all where there
are no more, 0 for i < 0, and `w_n` the weight of windows of n steps. Measured is, for windows of at most L steps,

    y(a, b) = w_n sum_{i, j >= 0} taps_i taps_j F(a + i, b - j),    n = b - a + 1,

over the windows a + i..b - j that exist: those within a..b (`families.nested`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from dpwindows.ask.privacy import EventLevel
from dpwindows.ask.queries import AnyWindow
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.families.nested import Nested
from dpwindows.kernel.families.norms import has_contracting_signs, interval_norms
from dpwindows.kernel.rules import Case, rule

Table = NDArray[np.int64]

# No sum that can be reached comes near it, and no sum with it wraps.
_NEVER = -(1 << 61)
_BITS = 61
# Cells filled in the tables: for each place, at least for each of its intervals, at most in all; the fewest classes.
_CELLS, _LEAST_CELLS, _MOST_CELLS, _FEWEST = 250_000, 5_000, 2_000_000_000, 16


@rule("any-nested-event", AnyWindow, EventLevel, GAUSSIAN, Nested, when="taps whose signs contract, no weights")
def any_nested_event_l2(case: Case) -> int | None:
    """Any windows, one occurrence added or removed, each window measured with those inside it.

    One contracting filter on starts, taken last to first, times the same on ends: the number of a..b is
    `sum_ij taps_i taps_j x(a+i, b-j)`, with x the answers of the windows that exist and 0 for all others. Numbers may
    be measured for any a and b, also beyond the range, but x(a, b) is the answer for every window of the range that
    lies inside a measured one and has at most `longest` steps, and no measured number has another window inside.

    Proof. Let an occurrence at step s change g on the rectangles `I_i x J_{k-1-i}` (module docstring). Windows hold s,
    so a number that changes has a <= s <= b. Let g' be g on windows of at most `longest` steps and 0 on longer ones,
    and h be 1 on `I'_i x J'_{k-1-i}`, where I' is I without starts at or before s - longest, and J' is J without ends
    from s + longest on. All windows inside a measured one that may change have at most `longest` steps: there g' and
    h are equal, for a window of at most `longest` steps that holds s starts after s - longest and ends before s +
    longest. So every measured number is moved by h as by g. A chain without its farthest places is a chain. Hence h is
    a change with at most `min(s, longest)` starts at or before the event and at most
    `min(steps - s + 1, longest)` ends at or after it, and what is measured is a part of the rows that the module
    docstring's bound is for, on the unbounded horizon. Its largest value over s is returned; without horizon, or with
    a long one, that is at an event with `longest` places on both sides, for H does not fall as places grow. QED.
    """
    shape: Nested = case.measured
    if shape.weights or not has_contracting_signs(shape.taps):
        return None
    return _largest(shape.taps, _starts_and_ends(shape.longest, case.steps, 1), case.thresholds)


@lru_cache(maxsize=256)
def _largest(taps: tuple[int, ...], met: tuple[tuple[int, int], ...], thresholds: tuple[int, ...]) -> int:
    """The largest cost of an event that meets as many starts and ends as one of these pairs says."""
    places = max(map(max, met))
    norms = interval_norms(taps, 2 * places)
    most = min(thresholds[-1], places)
    alone = chain_costs(norms, places, [1] * most)
    several = len(thresholds) > 1
    shared = (
        chain_costs(norms, places, [sum(k > i for k in thresholds) for i in range(most)])[-1] if several else alone[-1]
    )

    def total(starts: int, ends: int) -> int:
        """Four times what all thresholds together cost at most."""
        apart = sum(root_of_product(alone[min(k, most) - 1][starts], alone[min(k, most) - 1][ends]) for k in thresholds)
        return min(apart, root_of_product(shared[starts], shared[ends]))

    return -(-max(total(*pair) for pair in met) // 4)


def root_of_product(first: int, second: int) -> int:
    """The square root of the product of two whole numbers >= 0, rounded up."""
    product = first * second
    return math.isqrt(product - 1) + 1 if product else 0


# --- Chains -----------------------------------------------------------------------------------------------------------


def chain_costs(norms: Sequence[int], places: int, weights: Sequence[int]) -> list[list[int]]:
    """Bounds on `4 H(m)` over chains of at most j intervals, for j = 1..len(weights) and m = 0..places.

    With weights other than 1, `A_il^2` counts `weights[max(i, l)]` times (i, l = 0, 1, ...); they must not increase.
    `norms` is q up to `2 places` at least, of contracting taps.

    Proof. By the module docstring, in units of `2^shift` and on classes of lengths (`Lengths`). Norms are rounded up
    where they add to the cost and down where they lessen it. A length n in the class low..high counts for `low` in the
    sums, so all chains of m places are met. `q(high) >= q(n)`; touching grows with both lengths, so that of the highest
    is no less. For beyond, put its gap at `low` by adding to the interval behind it, and raise the other length to
    `high`: both only add products of one sign. Then the interval spans N_i + high - n places from end to end, and
    `q(x) - q(x - high)` falls with x, so x may be replaced by `most(t) + high - low`, with t the sum of the lowest
    lengths and most(t) >= N_i. Each sum is at most `16 2^(2 bits) sum(weights) <= 2^61`. A single interval's cost is
    exact. QED.
    """
    cells = min(max(_CELLS // len(weights), _LEAST_CELLS), _MOST_CELLS // (places * len(weights)))
    lengths = Lengths.of(places, math.isqrt(cells))
    shift = max(0, norms[-1].bit_length() - (_BITS - (16 * sum(weights)).bit_length()) // 2)
    up = np.array([-(-norm >> shift) for norm in norms], dtype=np.int64)
    down = np.array([norm >> shift for norm in norms], dtype=np.int64)
    best = [[4 * weights[0] * norm**2 for norm in norms[: places + 1]]]
    values = np.full((places + 1, len(lengths.low)), _NEVER, dtype=np.int64)
    for column, (low, high) in enumerate(lengths):
        values[low:, column] = 4 * weights[0] * up[high] ** 2
    for i, weight in enumerate(weights[1:], 1):
        values = _longer(values, (up, down), lengths, weight, first=i == 1)
        largest = values.max(axis=1)
        best.append([max(old, int(new) << 2 * shift) for old, new in zip(best[-1], largest, strict=True)])
    return best


def _longer(values: Table, norms: tuple[Table, Table], lengths: Lengths, weight: int, *, first: bool) -> Table:
    """The values of chains with one interval more; `first` where there is nothing beyond its neighbour.

    Values have the shape (places + 1, classes): the most places that are used, and the class of the last interval.
    Norms are rounded up, and down.
    """
    (up, down), longer = norms, np.full_like(values, _NEVER)
    most = lengths.largest_sum(np.arange(len(values)))
    for column, (low, high) in enumerate(lengths):
        # Neighbours for which there are places left.
        low_before, high_before = (ends[: np.searchsorted(lengths.low, len(values) - low)] for ends in lengths.ends)
        if not len(low_before):
            break
        touching = np.maximum(up[high] + up[high_before] - down[high + high_before], 0)
        charged = values[:-low, : len(low_before)] + 2 * weight * touching**2
        if not first:
            span = most[low:] + (high - low)
            fall = down[span] - up[span - high]
            beyond = np.maximum((up[high + low_before] - down[low_before])[None, :] - fall[:, None], 0)
            charged += 2 * weight * beyond**2
        longer[low:, column] = charged.max(axis=1) + 4 * weight * up[high] ** 2
    return np.where(longer < 0, _NEVER, longer)


@dataclass(frozen=True)
class Lengths:
    """Classes low..high of consecutive lengths 1, 2, ...: each length by itself, or long ones in wider classes."""

    low: Table
    high: Table

    @classmethod
    def of(cls, places: int, count: int) -> Lengths:
        """About `count` classes of lengths."""
        count = max(_FEWEST, count)
        if places <= count:
            high = np.arange(1, places + 1)
        else:
            few = count // 4
            grown = np.rint(np.geomspace(few, places, count - few + 1)).astype(np.int64)
            high = np.unique(np.concatenate([np.arange(1, few), grown]))
        return cls(np.concatenate([[1], high[:-1] + 1]), high)

    @property
    def ends(self) -> tuple[Table, Table]:
        """The shortest and the longest length of every class."""
        return self.low, self.high

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(map(int, self.low), map(int, self.high), strict=True)

    def largest_sum(self, lowest: Table) -> Table:
        """The most that lengths of these classes add up to, where the lowest make `lowest`; never above the longest.

        No length exceeds the lowest of its class by a larger factor than `high / low` of the widest class.
        """
        low, high = max(self, key=lambda ends: Fraction(ends[1], ends[0]))
        return np.asarray(np.minimum(lowest * high // low, self.high[-1]))


# --- Weighed by length ------------------------------------------------------------------------------------------------

# Bits that are kept of squared responses, of squared weights and of their sums over one axis; and the most places.
# They leave no sum above 2^17 2^24 4096 = 2^53 to `multiply_exactly`.
_RESPONSES, _WEIGHTS, _SUMS, MOST_PLACES = 17, 16, 24, 4096
# Into how many parts the places of an event are cut where the ends of the range are near for all of them.
_PARTS = 32


@rule(
    "any-weighted-event",
    AnyWindow,
    EventLevel,
    GAUSSIAN,
    Nested,
    when="at least 1 alone, positive weights, few and small enough numbers",
)
def any_weighted_event_l2(case: Case) -> int | None:
    """Any windows, one occurrence added or removed, at least 1: a filter over the windows inside, weighed by length.

    Proof. Let an occurrence at step s change, p be the last step before s and q the first after s in which the item
    occurs besides (p < 1 or q > T where there is none). If it occurs in s besides, nothing changes. Otherwise F changes
    by 1, and all in the same direction, for the windows that hold s and neither p nor q: starts p + 1..s, ends
    s..q - 1. Let x = s - p and y = q - s. A window within a..b holds s only if a..b does. So y(a, b) changes only where
    d = s - a >= 0 and e = b - s >= 0, and then by `w_{d+e+1} A_x(d) A_y(e)`, `A_x(d) = C(d) - C(d - x)`: the sum of
    the taps i with p < a + i <= s. With d + e + 1 <= L, responses are those of x = L for all larger x, and likewise of
    y. The squared norm is `sum_{d, e} A_x(d)^2 w_{d+e+1}^2 A_y(e)^2`, whose largest value over x and y in 1..L is
    returned. In a range of T steps d < s, x <= s (x = s stands for no p at all), e <= T - s and y <= T - s + 1: where
    T < 2 L - 1 the places s are cut into stretches, each of which takes the first two limits from its last place and
    the others from its first. All terms are positive, so rounding each factor up gives an upper bound. QED.
    """
    taps, weights, longest = case.measured.taps, case.measured.weights, case.measured.longest
    if case.thresholds != (1,) or not taps or not weights or len(weights) != longest or min(weights) < 1:
        return None
    if longest > MOST_PLACES or max(sum(map(abs, taps)), *weights) >= 1 << 31:
        return None
    sums = np.zeros(2 * longest, dtype=np.int64)
    known = list(accumulate(taps[:longest]))
    sums[longest:] = known + [known[-1]] * (longest - len(known))
    # By x - 1 and d: sums has C(i) at longest + i.
    places = np.arange(longest)
    squared = (sums[longest + places] - sums[longest + places - places[:, None] - 1]) ** 2
    responses, shift = _coarse(squared, _RESPONSES)
    squares, rest = _coarse(np.array(weights, dtype=np.int64) ** 2, _WEIGHTS)
    lengths = np.add.outer(places, places)
    across = np.where(lengths < longest, squares[lengths % longest], 0)
    width = 1 if case.steps is None else -(-case.steps // _PARTS)
    worst = max(_largest_sum(responses, across, *met) for met in _starts_and_ends(longest, case.steps, width))
    return worst << (2 * shift + rest)


def _largest_sum(responses: Table, across: Table, before: int, after: int) -> int:
    """The largest sum where an event has `before` places for starts and `after` for ends."""
    inner, shift = _coarse(multiply_exactly(responses[:before, :before], across[:before, :after]), _SUMS)
    return int(multiply_exactly(inner, responses[:after, :after].T).max()) << shift


def multiply_exactly(one: Table, other: Table) -> Table:
    """The product of two matrices of whole numbers >= 0, by way of floating-point numbers, which is far faster.

    Proof. No term is negative, so whatever the order in which the terms of a sum are added, every partial sum is a
    whole number of at most the terms of a sum times the largest entries of both matrices. That is checked to be at most
    2^53, and up to there floating-point numbers are exact. QED.

    Raises:
        ArithmeticError: an entry is negative, or a sum might be larger.
    """
    largest = int(one.max()) * int(other.max()) * one.shape[1]
    if largest > 1 << 53 or min(one.min(), other.min()) < 0:
        raise ArithmeticError(f"sums of up to {largest} are not exact in floating point")
    return np.asarray((one.astype(np.float64) @ other.astype(np.float64)).astype(np.int64))


def _coarse(values: Table, bits: int) -> tuple[Table, int]:
    """Values that are not negative in units of a power of two, rounded up to at most `2^bits`; the power."""
    shift = max(0, int(values.max()).bit_length() - bits)
    return -(-values >> shift), shift


# --- How many starts and ends an event may meet -----------------------------------------------------------------------


def _starts_and_ends(longest: int, steps: int | None, width: int) -> tuple[tuple[int, int], ...]:
    """The most starts at or before an event and the most ends at or after it, for each stretch of `width` places.

    A range without end, or a long one, has a place with `longest` of both. What is mirrored is left out, for both axes
    are filtered alike.
    """
    if steps is None or steps >= 2 * longest - 1:
        return ((longest, longest),)
    met = {
        (min(first + width - 1, steps, longest), min(steps - first + 1, longest))
        for first in range(1, steps + 1, width)
    }
    return tuple(sorted(pair for pair in met if pair[0] <= pair[1] or pair[::-1] not in met))
