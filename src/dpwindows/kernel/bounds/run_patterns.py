r"""How far a 0/1 vector made of a few runs can move a filtered series: bounds that keep the cross terms between runs.

For a causal filter with integer taps, `r_d` its autocorrelation and `G` the Gram matrix of the filter on an unbounded
horizon, `G_st = r_|s-t|`, a pattern g of zeros and ones costs

    g'Gg = r_0 (ones) + 2 sum_{d>=1} r_d (pairs of ones at distance d).

`sensitivity.runs_bound` charges each run by itself, `q(n) = n r_0 + 2 sum_{0<d<n} (n-d) r_d`, and drops every pair of
ones in different runs. For good filters these pairs count against the cost (`r_d < 0`), and with many runs they are
much of it. The bounds here keep some of them, and drop the others only after replacing `r_d` by `max(r_d, 0)`, so
they need no sign pattern: they hold for any integer taps whatever.

**Patterns** lie in `N` consecutive places and have at most k maximal runs of ones. A bound may charge a `price` for
every one: an upper bound on `max(g'Gg - price * ones)` is what a Lagrange multiplier needs to bound several patterns
that share a total number of ones.

All arithmetic is in 64-bit integers that cannot wrap: `Lags` divides the autocorrelation by a power of two, rounding
every entry up, which raises `g'Gg` for every g (counts of pairs are >= 0).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from dpwindows.kernel.bounds.sensitivity import autocorrelation

Table = NDArray[np.int64]

# Every value that can be reached lies within +-2^60; this is below any of them, and stays so whatever is added.
_NEVER = -(1 << 61)
_BITS = 58
# In more places than `_EACH` runs are told apart by parts of their length, `_PARTS` to each.
_EACH, _PARTS = 512, 64
# Links that are kept for the next price, in all.
_KEPT = 1 << 20


@dataclass(frozen=True)
class Lags:
    """An autocorrelation divided by `2^shift` and rounded up: `values[d]` for d = 0..N-1.

    For every 0/1 vector g of N places, `g'Gg <= 2^shift * (the form of values)`. No sum over a chain of at most
    `runs` runs, each within N places, reaches 2^60 in these units: with S the sum of absolute lags a place adds at most
    3 S and a run with its link at most 6 N S, price included, and `4 N (runs + 1) S < 2^58` before rounding up.
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

    def require_price(self, price: int) -> None:
        """Prices between 0 and `r_0` are enough, and keep sums within their range.

        Raises:
            ValueError: it is not between them.
        """
        if not 0 <= price <= self.values[0]:
            raise ValueError(f"a price must lie in 0..{self.values[0]}, got {price}")


@dataclass(frozen=True)
class PriceOfOnes:
    """What a price for every one allows patterns of at most `places` ones: `max (P x - offset x^2)` over 0..places.

    `offset` >= 0 is in units of the exact lags; prices are in units of `2^shift` of them.
    """

    offset: int
    places: int
    shift: int

    def highest(self, lags: Lags) -> int:
        """The highest price worth trying: 0 where none can lower a bound."""
        return lags.values[0] if self.offset or self.places < lags.length else 0

    def of(self, price: int) -> int:
        """The maximum over real x, rounded up."""
        exact = price << self.shift
        if exact < 2 * self.offset * self.places:
            return -(-(exact**2) // (4 * self.offset))
        return exact * self.places - self.offset * self.places**2


# --- All pairs of recent places -------------------------------------------------------------------------------------


def recent_bound(lags: Lags, runs: int, memory: int, price: int = 0) -> int:
    """Bound on `g'Gg - price * ones` that keeps all pairs within a run, and pairs of runs at most `memory` apart.

    Proof. Places are filled from first to last. A one at a place adds `r_0 - price`, and `2 r_d` for each earlier one
    at distance d. Of these, ones of the same run are counted at every distance; ones of other runs are counted at
    distances up to m = `memory`, and for distances d > m their `r_d` is replaced by `max(r_d, 0)`, which is then
    charged for every pair of places (`positive_pairs`). So what is counted is at least `g'Gg - price * ones`. The gain
    of a place depends on the last m places, or on the length of the current run where that exceeds m (the last m
    places are all ones then, and no other run is within m); a one after a zero begins a new run. So the maximum over
    all patterns with at most k runs of what is counted is the largest entry, after the last place, of the table over
    (runs so far, last m places) and (runs so far, run length > m) that `recent_tables` computes place by place. QED.
    """
    return recent_bounds(lags, [runs], memory, price)[0]


def recent_bounds(lags: Lags, runs: Sequence[int], memory: int, price: int = 0) -> list[int]:
    """`recent_bound` for several numbers of runs, from one table: its rows for fewer runs do not see those for more."""
    lags.require_price(price)
    memory = min(memory, lags.length - 1)
    if memory < 1:
        return [max(0, lags.values[0] - price) for _ in runs]
    for last in recent_tables(lags, limited(lags, runs), memory, price):
        tables = last
    most = (max(int(table[: count + 1].max()) for table in tables) for count in runs)
    return [max(0, value) + lags.positive_pairs(memory) for value in most]


def limited(lags: Lags, runs: Sequence[int]) -> int | None:
    """The largest of some numbers of runs; None where N places have no more than the least of them."""
    return max(runs) if 2 * min(runs) < lags.length else None


def recent_tables(lags: Lags, runs: int | None, memory: int, price: int) -> Iterator[tuple[Table, Table]]:
    """The tables after 0, 1, ..., N places, for patterns of at most so many runs, or of any number of them (None).

    `recent[c, b]`: the best with c runs so far, where bit j of b is the place j+1 back (0 before the first place).
    `long[c, i]`: the best with c runs so far, the current one of m+1+i places. Neither has more rows and columns than
    so many places can reach, but for one column of `long`. Runs of any number are not counted: c is 0.
    """
    counted = 0 if runs is None else 1
    size, gain = 1 << memory, gains(lags, memory, price)
    rises = np.array(lags.rises(price), dtype=np.int64)
    recent, long = np.zeros((1, 1), dtype=np.int64), _unreached(1, 1)
    yield recent, long
    for places in range(1, lags.length + 1):
        # So many places hold no more runs than this, and none that are longer.
        counts, reached = len(recent), 1 + (0 if runs is None else min(runs, (places + 1) // 2))
        lengths = max(1, places - memory)
        zero, one = recent, recent + gain[: recent.shape[1]]
        longer = _unreached(reached, lengths)
        if places > memory:
            longer[:counts, 0] = one[:, -1]
            longer[:counts, 1:] = long[:, : lengths - 1] + rises[memory + 1 : memory + lengths]
            one[:, -1] = _NEVER
            # The earliest of the last m places is not kept in mind.
            zero, one = (np.maximum(table[:, : size // 2], table[:, size // 2 :]) for table in (recent, one))
            # After a run longer than m a zero leaves m-1 ones behind it.
            zero[:, -1] = np.maximum(zero[:, -1], long.max(axis=1))
        recent, long = np.empty((reached, 2 * zero.shape[1]), dtype=np.int64), longer
        recent[:counts, 0::2], recent[counts:] = zero, _NEVER
        # A one after a zero begins a run.
        recent[:counts, 3::4], recent[:counted, 1::4] = one[:, 1::2], _NEVER
        recent[counted:, 1::4] = one[: reached - counted, 0::2]
        yield recent, long


def gains(lags: Lags, memory: int, price: int = 0) -> Table:
    """What a one adds after every m recent places: bit j of a number is the place j+1 back, shape (2^m,)."""
    gain = np.array([lags.values[0] - price], dtype=np.int64)
    for distance in range(1, memory + 1):
        gain = np.concatenate([gain, gain + 2 * lags.values[distance]])
    return gain


def _unreached(counts: int, states: int) -> Table:
    return np.full((counts, states), _NEVER, dtype=np.int64)


# --- Runs and their nearest neighbours ------------------------------------------------------------------------------


def neighbour_bound(
    lags: Lags, runs: int, place_price: int, *, shortest: int = 1, price: int = 0, widest: int | None = None
) -> int:
    """Bound on `g'Gg - price * ones` that keeps all pairs within a run, and all pairs between a run and the next.

    Every run but the last has at least `shortest` places. `place_price` is a Lagrange multiplier for the number of
    places: the bound holds for every value, and is best where the worst chain just fills the N places. Where `widest`
    is given, pairs across wider gaps are dropped, which takes less time.

    Where there are many places, runs of several lengths are taken for one (`classes`).

    Proof. Write a pattern as run lengths and gaps `n_1, g_1, n_2, ..., n_j`, of total at most N. Pairs within runs
    make `q(n_i)`; pairs between a run and the next make `2 c(n, g, n') = q(n+g+n') - q(n+g) - q(g+n') + q(g)`, the
    pairs of the span less those of its parts; between ones of other runs lie a gap, a run of at least `shortest` places
    and a gap, so they are more than `shortest + 2` apart, where `r_d` is replaced by `max(r_d, 0)`
    (`positive_pairs`). Adding
    `place_price (N - sum n_i - sum g_i) >= 0` only raises this, and so does dropping `2 c <= 0` for a gap wider than
    `widest`, as no lag beyond it is positive, and charging only `widest + 1` places for the gap. Each run is charged
    `price n_i`, which is exact. The result is a sum of terms of neighbouring lengths;
    over all chains of at most k runs in which each two neighbours fit into N places, among them all patterns, its
    maximum is found by dynamic programming over the length of the last run. In a class of lengths a run is worth what
    the best one is by itself, and has the links of the shortest: its pairs with other runs are among those of a longer
    one, none of which adds anything where no lag beside the first is positive, and more gaps fit beside it. QED.
    """
    everything = np.arange(1, lags.length + 1)
    sizes = classes(lags.length, shortest) if max(lags.values[1:], default=0) <= 0 else everything
    value, _ = best_chain(
        lags, sizes, everything, runs, place_price, shortest=shortest, price=price, widest=widest, grouped=True
    )
    return max(0, value + place_price * lags.length) + lags.positive_pairs(shortest + 2)


def classes(places: int, shortest: int) -> NDArray[np.int64]:
    """The least length of each class of lengths: all of few places, and of more by parts of them; one is `shortest`."""
    found, length = [1], 1
    while (length := length + 1 + length // _PARTS * (places > _EACH)) <= places:
        found.append(length)
    return np.union1d(found, [min(shortest, places)])


def best_chain(
    lags: Lags,
    sizes: NDArray[np.int64],
    widths: NDArray[np.int64],
    runs: int,
    place_price: int,
    *,
    shortest: int = 1,
    price: int = 0,
    widest: int | None = None,
    grouped: bool = False,
) -> tuple[int, list[int]]:
    """The best chain of runs with lengths from `sizes` and gaps from `widths`, as `n_1, g_1, n_2, ...`.

    Its value is `sum q(n_i) + sum 2 c - place_price (sum n_i + sum g_i) - price sum n_i`; a gap wider than `widest`,
    if that is given, counts as `widest + 1` places that no pair spans. Where they are `grouped`, a length stands for
    all up to the next, and a run is worth by itself what the best of these is.
    """
    lags.require_price(place_price)
    lags.require_price(price)
    known = _links_of(lags, tuple(sizes.tolist()), tuple(widths.tolist()))
    each = known.norms - (place_price + price) * np.arange(lags.length + 1)
    alone = np.maximum.reduceat(each, sizes) if grouped else each[sizes]
    near = None if widest is None else min(max(widest, known.last_positive), lags.length)
    links = known.priced(place_price, near)
    inner = np.where(sizes >= shortest, 0, _NEVER)
    chain, history = alone, []
    best = (int(alone.max()), 0, int(alone.argmax()))
    for count in range(1, min(runs, (lags.length + shortest) // (shortest + 1))):
        history.append(np.maximum(chain + inner, _NEVER))
        before, chain = chain, np.maximum((links + history[-1]).max(axis=1), _NEVER) + alone
        if (chain <= before).all():
            break  # one run more gains nowhere, so two gain no more than one: what is added only grows with the chain
        if int(chain.max()) > best[0]:
            best = (int(chain.max()), count, int(chain.argmax()))
    value, count, last = best
    found = [int(sizes[last])]
    for earlier in history[:count][::-1]:
        following, last = last, int((links[last] + earlier).argmax())
        found += [known.gap(last, following, place_price, near), int(sizes[last])]
    return value, found[::-1]


class _Links:
    """`max_g 2 c(n, g, n') - place_price g` for every two neighbouring lengths, for one price after the other.

    Two lengths are worth the same in either order. They are kept in the order of their sum, so that those with room for
    a gap come first; few of them are kept for the next price.
    """

    def __init__(self, lags: Lags, sizes: NDArray[np.int64], widths: NDArray[np.int64]) -> None:
        self.norms = np.array(lags.norms(), dtype=np.int64)
        self.last_positive = max(d for d, lag in enumerate(lags.values) if lag > 0 or d == 0)
        self._length, self._sizes, self._widths = lags.length, sizes, widths
        one, other = np.triu_indices(len(sizes))
        order = np.argsort(sizes[one] + sizes[other], kind="stable")
        self._one, self._other = one[order], other[order]
        self._spans = sizes[self._one] + sizes[self._other]
        self._kept: dict[int, Table] | None = {} if len(order) * len(widths) <= _KEPT else None
        self._room = np.searchsorted(self._spans, self._length - np.arange(self._length + 2), side="right").tolist()

    def _at(self, gap: int) -> Table:
        """`2 c(n, g, n')` of the pairs that have room for this gap."""
        if self._kept is not None and gap in self._kept:
            return self._kept[gap]
        fit = self._room[gap]
        # A length that does not fit with the gap is in no pair that does.
        beside = self.norms[np.minimum(self._sizes + gap, self._length)]
        link: Table = self.norms[self._spans[:fit] + gap] - beside[self._one[:fit]] - beside[self._other[:fit]]
        link += int(self.norms[gap])
        if self._kept is not None:
            self._kept[gap] = link
        return link

    def priced(self, place_price: int, near: int | None) -> Table:
        """The links of every two lengths, a matrix; `_NEVER` where no gap fits.

        No gap is wider than `near + 1`, and that one stands for all that are wider, with 0 for their pairs.
        """
        best = np.full(len(self._spans), _NEVER, dtype=np.int64)
        if near is not None:
            best[: self._room[near + 1]] = -place_price * (near + 1)
        widest = self._length - int(self._spans[0])
        for gap in self._widths[self._widths <= (widest if near is None else min(widest, near))].tolist():
            fit = self._room[gap]
            # From here on 2 c <= 0 if no lag beyond the gap is positive, so no wider gap is better than -place_price g.
            if gap > self.last_positive and int(best[:fit].min()) >= -place_price * gap:
                break
            np.maximum(best[:fit], self._at(gap) - place_price * gap, out=best[:fit])
        return self._square(best)

    def gap(self, one: int, other: int, place_price: int, near: int | None) -> int:
        """The gap that makes the link of two lengths, by their places among the sizes; the least of several."""
        n, m = int(self._sizes[one]), int(self._sizes[other])
        gaps = self._widths[self._widths <= min(self._length - n - m, self._length if near is None else near)]
        worth = self.norms[n + gaps + m] - self.norms[n + gaps] - self.norms[gaps + m] + self.norms[gaps]
        worth = worth - place_price * gaps
        far = near is not None and n + near + 1 + m <= self._length
        if near is not None and far and int(worth.max(initial=_NEVER)) <= -place_price * (near + 1):
            return near + 1
        return int(gaps[worth.argmax()])

    def _square(self, by_pair: Table) -> Table:
        square = np.empty((len(self._sizes), len(self._sizes)), dtype=np.int64)
        square[self._one, self._other] = square[self._other, self._one] = by_pair
        return square


@lru_cache(maxsize=2)
def _links_of(lags: Lags, sizes: tuple[int, ...], widths: tuple[int, ...]) -> _Links:
    return _Links(lags, np.array(sizes, dtype=np.int64), np.array(widths, dtype=np.int64))
