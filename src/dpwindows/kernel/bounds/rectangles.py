r"""Certified sensitivity of any windows at event level, through one contracting filter on starts and on ends.

Notation as in `dpwindows.kernel.bounds.sensitivity`: `r_m` and q are the autocorrelation and the interval norms of the
filter, G its Gram matrix on an unbounded horizon. Off the diagonal G is <= 0 and q is concave (signs lemma).

**One block of starts, one threshold k.** An occurrence at step s changes g on the rectangles `I_i x J_{k-1-i}`, i =
0..k-1. I_0 lies next to s, I_1 before it, and so on without gaps; J likewise, from s on. Any may be empty. Finite
horizons only drop rows. With `A_ij = 1_{I_i}' G 1_{I_j}` and B likewise for the `J_{k-1-i}`

    ||M g||^2 = sum_ij A_ij B_ij <= |A| |B|,    |A|^2 = sum_ij A_ij^2    (Cauchy-Schwarz).

Both factors are of one kind. A *chain* is a sequence of intervals, each of which begins where the one before ends; left
without its empty ones it is still a chain. (And intervals with gaps between them have no larger `|A|` than the chain in
which every gap is added to an interval beside it: q grows, and products of different intervals gain terms of the sign
they have.) Let `H_j(m)` be the largest `|A|^2` over chains of at most j intervals with at most m places together:
`||M g||^2 <= sqrt(H_k(starts) H_k(ends))`, for the starts at or before s, and the ends at or after s, in the block.
(Where these are as many, g can be chosen to reach it on the unbounded horizon.)

**A chain.** Let its lengths be n_1, n_2, ..., with sums N_i. Then `A_ii = q(n_i)`; neighbours *touch*, with

    -2 A_{i,i-1} = q(n_i) + q(n_{i-1}) - q(n_i + n_{i-1});

and the inner products of interval i with those *beyond* its neighbour are all <= 0, so their squares add up to at most
the square of their sum, which is that with the one interval from the chain's first place to the neighbour:

    4 sum_{l <= i-2} A_il^2 <= beyond^2,    beyond = q(n_i + n_{i-1}) - q(n_{i-1}) - q(N_i) + q(N_i - n_i).

So `4 |A|^2 <= sum_i 4 q(n_i)^2 + 2 touching_i^2 + 2 beyond_i^2`: a sum over places in the chain of what depends on n_i,
n_{i-1} and N_i, whose maximum is found by dynamic programming over these (`chain_costs`).

**Blocks.** They are measured apart. A block's edge cuts at most one of the intervals I in two, so the numbers k_b of
those that are not empty, in the blocks where there are any, add up to at most k plus one less than these blocks. In
block b only the J that belong to them matter: k_b intervals as well, perhaps with gaps. So all together cost at most
`sum_b sqrt(H_{k_b}(starts_b) H_{k_b}(ends_b))`, at its largest over all such k_b >= 1.

**Thresholds.** They are measured apart too: what each costs adds up. But they share the intervals. Threshold k has the
first k of I_0, I_1, ... and of J_0, J_1, ..., so in one block, by Cauchy-Schwarz once more, all together cost at most
`sqrt(H_w(starts) H_w(ends))`, where in H_w each `A_ij^2` counts as often as thresholds exceed i and j: `w_max(i,j)`
times. (w falls, so a chain left without its empty intervals costs no less.) Where two blocks are met, I_p being the
interval that their edge cuts, or the last one before it: the farther block has `I_p, I_{p+1}, ...`, and of the ends
`J_0..J_{k-1-p}` for threshold k, so w from its p-th entry on serves for both. The nearer block has I_0..I_p, with the
first p+1 entries of w, and J_{k-1-p}..J_{k-1} for threshold k: a product of J_i and J_j, i <= j, counts as often as
there are thresholds with `j < k <= i+p+1`, at most as many as with `j < k <= j+p+1`. If there are none J_j does not
count at all; with the first such j left out, and these numbers raised to make them fall, they are weights like w. The
largest sum over p bounds both blocks. Any of these bounds holds; the smaller one is used.
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

from dpwindows.kernel.bounds.sensitivity import Thresholds, interval_norms, require_contracting_signs
from dpwindows.kernel.proofs import proves

Table = NDArray[np.int64]

# No sum that can be reached comes near it, and no sum with it wraps.
_NEVER = -(1 << 61)
_BITS = 61
# Cells filled in the tables for each place, at least so many for each interval, and in all; the fewest classes.
_CELLS, _LEAST_CELLS, _MOST_CELLS, _FEWEST = 250_000, 5_000, 2_000_000_000, 16
# The largest threshold of several for which the cut of their intervals by a block's edge is followed.
_MOST_CUTS = 4


@proves("any-filters-event")
def any_tensor_event_l2(taps: Sequence[int], block: int, extent: int, thresholds: Thresholds) -> int:
    """Any windows, one occurrence added or removed, through one contracting filter on starts and on ends.

    Starts are cut into blocks of `block`; with each block of starts all ends from its first step on are measured,
    `extent` of them (the last blocks are cut at T; one block with `extent = T` measures everything).

    Proof. Module docstring. An event at offset o = 1..block of a block is at offset o + block, o + 2 block, ... of the
    blocks before it, while that is at most `extent`; at offset o there are `min(o, block)` starts at or before it and
    `extent - o + 1` ends at or after it. The largest bound over o is returned. Reversing an axis (which decoding may
    prefer) leaves every interval an interval, and every chain a chain. All starts at or before the event in the blocks
    that it meets are at most `extent`, so there are no more intervals than that, whatever k is. QED.

    Raises:
        ValueError: the signs of the taps are not contracting.
    """
    require_contracting_signs(taps)
    met = tuple(
        tuple((min(offset, block), extent - offset + 1) for offset in range(first, extent + 1, block))
        for first in range(1, min(block, extent) + 1)
    )
    return _largest(tuple(map(int, taps)), max(block, extent), met, tuple(sorted(thresholds)))


@proves("any-nested-event")
def any_nested_event_l2(taps: Sequence[int], longest: int, steps: int | None, thresholds: Thresholds) -> int:
    """Any windows, one occurrence added or removed, each window of at most `longest` steps measured with those inside.

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
    a change as in one block with at most `min(s, longest)` starts at or before the event and at most
    `min(steps - s + 1, longest)` ends at or after it, and what is measured is a part of the rows that the module
    docstring's bound is for, on the unbounded horizon. Its largest value over s is returned; without horizon, or with
    a long one, that is at an event with `longest` places on both sides, for H does not fall as places grow. QED.

    Raises:
        ValueError: the signs of the taps are not contracting.
    """
    require_contracting_signs(taps)
    places = longest if steps is None else min(longest, steps)
    if steps is None or steps >= 2 * longest:
        met = [(places, places)]
    else:
        met = [(min(step, places), min(steps - step + 1, places)) for step in range(1, steps + 1)]
    return _largest(tuple(map(int, taps)), places, tuple((one,) for one in met), tuple(sorted(thresholds)))


Met = tuple[tuple[int, int], ...]


@lru_cache(maxsize=256)
def _largest(taps: tuple[int, ...], places: int, met: tuple[Met, ...], thresholds: tuple[int, ...]) -> int:
    """The most that an event costs, given the starts and the ends that it meets in each block, for every place of it.

    None of them is more than `places`.
    """
    norms = interval_norms(taps, 2 * places)
    alone = chain_costs(norms, places, [1] * min(thresholds[-1], places))
    cut = any(len(blocks) > 1 for blocks in met)
    shared = Shared.of(norms, places, thresholds, cut=cut) if len(thresholds) > 1 else None

    def total(blocks: Met) -> int:
        apart = sum(costs_apart(alone, blocks, k) for k in thresholds)
        return apart if shared is None else min(apart, shared.costs(blocks))

    # Four times the bound, rounded up.
    return -(-max(total(blocks) for blocks in met) // 4)


def costs_apart(alone: Sequence[Sequence[int]], met: Sequence[tuple[int, int]], k: int) -> int:
    """Four times what one threshold costs at most, in blocks with so many starts and ends; from `4 H_1, 4 H_2, ...`."""
    tried = alone[:k]
    if len(met) == 1:
        return root_of_product(*(tried[-1][places] for places in met[0]))
    return best_shares([[root_of_product(costs[starts], costs[ends]) for costs in tried] for starts, ends in met])


@dataclass(frozen=True)
class Shared:
    """`4 H_w` for thresholds that share their intervals: for a block by itself, and for a pair of them cut at p."""

    whole: list[int]
    near_starts: list[list[int]]
    near_ends: list[list[int]]
    far: list[list[int]]

    @classmethod
    def of(cls, norms: Sequence[int], places: int, thresholds: Thresholds, *, cut: bool) -> Shared:
        """For several thresholds; without cuts where blocks are met alone, and where the largest one is large."""
        most = max(thresholds)
        weights = [sum(k > i for k in thresholds) for i in range(min(most, places))]
        from_first = chain_costs(norms, places, weights)
        if not cut or most > min(places, _MOST_CUTS):
            return cls(from_first[-1], [], [], [])
        ends = [chain_costs(norms, places, near_weights(thresholds, p))[-1] for p in range(most)]
        far = [chain_costs(norms, places, weights[p:])[-1] for p in range(most)]
        return cls(from_first[-1], from_first, ends, far)

    def costs(self, met: Sequence[tuple[int, int]]) -> int:
        """Four times what all thresholds together cost at most, in blocks with so many starts and ends."""
        if len(met) != 2 or not self.far:
            return sum(root_of_product(self.whole[starts], self.whole[ends]) for starts, ends in met)
        (starts, ends), (far_starts, far_ends) = met
        return max(
            root_of_product(near[starts], of_ends[ends]) + root_of_product(far[far_starts], far[far_ends])
            for near, of_ends, far in zip(self.near_starts, self.near_ends, self.far, strict=True)
        )


def near_weights(thresholds: Thresholds, cut: int) -> list[int]:
    """How often products of ends count in the nearer one of two blocks (module docstring), made to fall."""
    counts = [sum(j < k <= j + cut + 1 for k in thresholds) for j in range(max(thresholds))]
    while not counts[0]:
        counts.pop(0)
    return list(accumulate(reversed(counts), max))[::-1]


def root_of_product(first: int, second: int) -> int:
    """The square root of the product of two whole numbers >= 0, rounded up."""
    product = first * second
    return math.isqrt(product - 1) + 1 if product else 0


def best_shares(rows: Sequence[Sequence[int]]) -> int:
    """The largest sum of one entry from each of two or more rows, entry k_b = 1, 2, ..., k from row b.

    Rows have k entries each and do not decrease; `sum (k_b - 1) <= k - 1`.
    """
    (best, *others), last = rows[:-1], rows[-1]
    for row in others:
        best = [max(best[i] + row[n - i] for i in range(n + 1)) for n in range(len(row))]
    return max(one + other for one, other in zip(best, reversed(last), strict=True))


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
    tables = Norms.of(norms, (_BITS - (16 * sum(weights)).bit_length()) // 2)
    best = [[4 * weights[0] * norm**2 for norm in norms[: places + 1]]]
    values = np.full((places + 1, len(lengths.low)), _NEVER, dtype=np.int64)
    for column, (low, high) in enumerate(lengths):
        values[low:, column] = 4 * weights[0] * tables.up[high] ** 2
    for i, weight in enumerate(weights[1:], 1):
        values = _longer(values, tables, lengths, weight, first=i == 1)
        found = values.max(axis=1)
        best.append([max(old, int(new) << 2 * tables.shift) for old, new in zip(best[-1], found, strict=True)])
    return best


def _longer(values: Table, tables: Norms, lengths: Lengths, weight: int, *, first: bool) -> Table:
    """The values of chains with one interval more; `first` where there is nothing beyond its neighbour.

    Values have the shape (places + 1, classes): at most so many places, and the class of the last interval.
    """
    up, down = tables.up, tables.down
    longer = np.full_like(values, _NEVER)
    most = lengths.most(np.arange(len(values)))
    for column, (low, high) in enumerate(lengths):
        # Neighbours for which there are places left.
        low_before, high_before = (ends[: np.searchsorted(lengths.low, len(values) - low)] for ends in lengths.ends)
        if not len(low_before):
            break
        touching = np.maximum(up[high] + up[high_before] - down[high + high_before], 0)
        found = values[:-low, : len(low_before)] + 2 * weight * touching**2
        if not first:
            span = most[low:] + (high - low)
            fall = down[span] - up[span - high]
            beyond = np.maximum((up[high + low_before] - down[low_before])[None, :] - fall[:, None], 0)
            found += 2 * weight * beyond**2
        longer[low:, column] = found.max(axis=1) + 4 * weight * up[high] ** 2
    return np.where(longer < 0, _NEVER, longer)


@dataclass(frozen=True)
class Norms:
    """q in units of `2^shift`, rounded up and down, with values of at most so many bits."""

    up: Table
    down: Table
    shift: int

    @classmethod
    def of(cls, norms: Sequence[int], bits: int) -> Norms:
        """From exact norms, in ascending order."""
        shift = max(0, norms[-1].bit_length() - bits)
        down = np.array([norm >> shift for norm in norms], dtype=np.int64)
        return cls(np.array([-(-norm >> shift) for norm in norms], dtype=np.int64), down, shift)


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

    def most(self, lowest: Table) -> Table:
        """The most that lengths of these classes can add up to where the lowest do to so much; never above the longest.

        No length exceeds the lowest of its class by a larger factor than `high / low` of the widest class.
        """
        low, high = max(self, key=lambda ends: Fraction(ends[1], ends[0]))
        return np.asarray(np.minimum(lowest * high // low, self.high[-1]))
