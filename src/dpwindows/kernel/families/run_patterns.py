r"""How far a 0/1 vector made of a few runs can move a filtered series: bounds that keep the cross terms between runs.

For a causal filter with integer taps, `r_d` its autocorrelation and `G` the Gram matrix of the filter on an unbounded
horizon, `G_st = r_|s-t|`, a pattern g of zeros and ones costs

    g'Gg = r_0 (ones) + 2 sum_{d>=1} r_d (pairs of ones at distance d).

`norms.runs_bound` charges each run by itself, `q(n) = n r_0 + 2 sum_{0<d<n} (n-d) r_d`, and drops every pair of
ones in different runs. For good filters these pairs count against the cost (`r_d < 0`), and with many runs they are
much of it. The bound here keeps some of them, and drops the others only after replacing `r_d` by `max(r_d, 0)`, so it
needs no sign pattern: it holds for any integer taps whatever.

**Patterns** lie in `N` consecutive places and have at most k maximal runs of ones. The bound may charge a `price` for
every one: an upper bound on `max(g'Gg - price * ones)` is what a Lagrange multiplier needs to bound several patterns
that share a total number of ones.

All arithmetic is in 64-bit integers that cannot wrap: `Lags` divides the autocorrelation by a power of two, rounding
every entry up, which raises `g'Gg` for every g (counts of pairs are >= 0).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

import numpy as np

from dpwindows.kernel.dearest_path import NEVER, Automaton, Table, dearest_path
from dpwindows.kernel.families.norms import autocorrelation

_BITS = 58


@dataclass(frozen=True)
class Lags:
    """An autocorrelation divided by `2^shift` and rounded up: `values[d]` for d = 0..N-1.

    For every 0/1 vector g of N places, `g'Gg <= 2^shift * (the form of values)`. No sum over its places reaches 2^60
    in these units: with S the sum of absolute lags a place adds at most 3 S, price included, and
    `4 N (runs + 1) S < 2^58` before rounding up. `chains_of_runs.chain_bound` says why its sums do not either.
    """

    values: tuple[int, ...]
    shift: int

    @classmethod
    def of(cls, taps: Sequence[int], length: int, runs: int) -> Lags:
        """The lags of integer taps that matter within `length` places."""
        exact = autocorrelation(taps)[:length]
        return cls.fitting(exact + [0] * (length - len(exact)), runs)

    @classmethod
    def fitting(cls, exact: Sequence[int], runs: int) -> Lags:
        """Any lags, for d = 0..N-1, divided so that no sum over at most `runs` runs can wrap."""
        length = len(exact)
        reached = 4 * length * (min(runs, length) + 1) * sum(map(abs, exact))
        shift = max(0, reached.bit_length() - _BITS)
        return cls.in_parts(exact, shift)

    @classmethod
    def in_parts(cls, exact: Sequence[int], shift: int) -> Lags:
        """Any lags in parts of `2^shift`."""
        return cls(tuple(-(-value >> shift) for value in exact), shift)

    @property
    def length(self) -> int:
        """N, the number of places that patterns lie in."""
        return len(self.values)

    def rises(self, price: int = 0) -> list[int]:
        """What the n-th place of a run adds to it, n = 1..N: `r_0 - price + 2 sum_{0<d<n} r_d`."""
        return list(accumulate([self.values[0] - price, *(2 * value for value in self.values[1:])]))

    def norms(self) -> list[int]:
        """`q(n)` for n = 0..N."""
        return [0, *accumulate(self.rises())]

    def positive_pairs(self, beyond: int) -> int:
        """The most that pairs further apart than `beyond` can add: at most `N - d` pairs lie at distance d."""
        return sum(2 * value * (self.length - d) for d, value in enumerate(self.values) if d > beyond and value > 0)


# --- All pairs of recent places -------------------------------------------------------------------------------------


class RecentPlaces(Automaton):
    """Patterns, place by place; a table has a row for each number of runs that are left, if these are counted.

    A state is a number of m bits, bit j for the place j+1 back; or, if all of these are ones, by how much the run that
    they are a part of is longer than m+1.

    Args:
        lags: the autocorrelation.
        runs: the most runs of each of several patterns; where N places have no more, they are not counted.
        memory: m, from 1 to N-1.
        price: for every one.
    """

    def __init__(self, lags: Lags, runs: tuple[int, ...], memory: int, price: int) -> None:
        self.places, self.runs, self.memory = lags.length, runs, memory
        self.rows = max(runs) + 1 if 2 * min(runs) < lags.length else 1
        # What the n-th place of a run adds to it, and what a one adds after every m places.
        self.rises = np.array(lags.rises(price), dtype=np.int64)
        self.gains = self.rises[:1]
        for distance in range(1, memory + 1):
            self.gains = np.concatenate([self.gains, self.gains + 2 * lags.values[distance]])

    @property
    def last(self) -> Table:
        """Nothing is added after the last place."""
        return np.zeros((self.rows, len(self.gains) + self.places - self.memory), dtype=np.int64)

    def before(self, place: int, values: Table) -> Table:
        """The most that a place and those after it add: it is a zero, or a one, which after a zero begins a run."""
        size = len(self.gains)
        one = np.concatenate([values[:, 1:size:2]] * 2, axis=1)
        if self.rows > 1:
            one[1:, ::2] = one[:-1, ::2].copy()
            one[0, ::2] = NEVER
        one[:, -1] = values[:, size]
        one += self.gains
        before = np.empty_like(values)
        before[:, size:] = values[:, size - 2 : size - 1]
        np.maximum(np.concatenate([values[:, :size:2]] * 2, axis=1), one, out=before[:, :size])
        np.maximum(before[:, size:-1], values[:, size + 1 :] + self.rises[self.memory + 1 :], out=before[:, size:-1])
        return before

    def largest_entry(self, values: Table) -> int:
        """What all patterns add together, each with the runs that it may have."""
        return sum(max(0, int(values[min(count, self.rows - 1), 0])) for count in self.runs)


@lru_cache(maxsize=64)
def recent_bound(lags: Lags, runs: tuple[int, ...], memory: int, price: int = 0) -> int:
    """Bound on `sum_i (g_i'Gg_i - price * ones_i)` over patterns of at most `runs_i` runs.

    It keeps all pairs within a run, and pairs of runs at most `memory` apart.

    Raises:
        ValueError: the price is not in `0..r_0`; others are not needed, and sums might leave their range.

    Proof. Places are filled from first to last. A one at a place adds `r_0 - price`, and `2 r_d` for each earlier one
    at distance d. Of these, ones of the same run are counted at every distance; ones of other runs are counted at
    distances up to m = `memory`, and for distances d > m their `r_d` is replaced by `max(r_d, 0)`, which is then
    charged for every pair of places (`positive_pairs`). So what is counted is at least `g'Gg - price * ones`. The gain
    of a place depends on the last m places, or on the length of the current run where that exceeds m (the last m
    places are all ones then, and no other run is within m). `RecentPlaces` lists what these may be, and every place is
    gone through. QED.
    """
    if not 0 <= price <= lags.values[0]:
        raise ValueError(f"a price must lie in 0..{lags.values[0]}, got {price}")
    if lags.length < 2:
        return len(runs) * max(0, lags.values[0] - price)
    recent = RecentPlaces(lags, runs, min(memory, lags.length - 1), price)
    return dearest_path(recent, settling=lags.length, cycle=1) + len(runs) * lags.positive_pairs(recent.memory)
