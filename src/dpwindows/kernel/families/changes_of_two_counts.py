r"""An automaton of the differences that two items' rolling counts can have, with a charge for each place.

Charges are those of `families.signed_patterns`: g = f - f' lies in the places 1..N, f and f' being 0/1,
and a path through the automaton below, one for every change that a neighbour can make, is charged at least `g'Gg /
2^shift`.

**States.** Of f (and of f' alike): whether it is 1, and for how many ticks of a clock it must stay so. Of g: its last m
values, and the sign of the last one that was not 0. Before g is not 0 for the first time nothing of g need be kept in
mind (states *before*). The clock ticks at every `every`-th place.

**Moves.** f goes on or changes. It may start at the places 1..`starts`, and is then held for `ticks` ticks; it may stop
once it is held for none. So may f', independently. What g is follows, and so does what is charged: for a place where g
is not 0, `r_0` and the charge of a place, its pairs with the last m values, and an alternation where the sign is not
that of the last such place; for every place the change of g since the place before.

Of an item that is added or removed f' stays 0 (`items` = 1).

**Masked** changes are cut to an interval: g = f - f' there, and 0 outside it. So a path may stay *before* whatever f
and f' are, and may end after any place.

**Prices** (Lagrange multipliers >= 0) lessen the charge of starts and stops of f and f', and of changes of g, by what
`priced` adds for all of them; they raise that of the places where f or f' is 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dpwindows.kernel.dearest_path import NEVER, ListedMoves, Moves, Table, dearest_path
from dpwindows.kernel.families.signed_patterns import Charges, Prices, SignedLags, TwoCounts

Indices = NDArray[np.intp]
Kind = tuple[int, int, int, bool]

# The most ticks that a run is held for.
_TICKS = 32
_FREE = Prices(0, 0)
# Periods after which what places add is taken for settled, and over which it is taken to be the same again.
_SETTLING, _CYCLE, _SHORT = 4, 16, 8


@dataclass(frozen=True)
class CountsAutomaton(ListedMoves):
    """The automaton (module docstring).

    Attributes:
        lags: the autocorrelation of the filter.
        charged: what is charged for pairs of places that are not remembered.
        places: N.
        starts: the last place at which f and f' may start.
        ticks: for how many ticks they are held from there on.
        every: how many places apart ticks are.
        masked: g is cut to an interval.
        apart: nothing is counted before the first place; otherwise f = f' = 1 there is possible too.
        single: the places, first and last, between which g is not -1; (1, 0) if there are none.
        length: W; a start at place s costs its price for `min(W, N-s+1)` windows, a stop for `min(W, s-1)`.
        prices: of starts and stops, and of changes.
        items: 1 where f' stays 0, otherwise 2.
    """

    lags: SignedLags
    charged: Charges
    places: int
    starts: int
    ticks: int = 0
    every: int = 1
    masked: bool = False
    apart: bool = True
    single: tuple[int, int] = (1, 0)
    length: int = 1
    prices: Prices = _FREE
    items: int = 2

    @property
    def _counts(self) -> int:
        return self.ticks + 2

    @property
    def _pairs(self) -> int:
        return self._counts**2

    @property
    def _numbers(self) -> int:
        return int(3 ** (self.charged.memory - 1))

    # A count is numbered 0, or 1 and the ticks it is held for; two of them together, f first. The states before come
    # first, one for each two counts. Then come, for each sign, + first, and each two counts, numbers of m - 1 digits to
    # base 3: digit j is 1 + g at j+2 places back, seen from the place to come. Where both signs are charged alike there
    # are those of + only: any other state stands for its mirror image, -g with f and f' exchanged.

    @property
    def _signs(self) -> NDArray[np.int64]:
        return np.array([1] if self.single[0] > self.single[1] else [1, -1])

    @property
    def size(self) -> int:
        """How many states there are."""
        return self._pairs * (1 + len(self._signs) * self._numbers)

    @property
    def entries(self) -> Indices:
        """The states before, with nothing counted, or both (held for none)."""
        return np.array([0] if self.apart or self.items == 1 else [0, self._counts + 1])

    @cached_property
    def _last(self) -> Indices:
        """What g is at the last place, by the two counts."""
        counted = (np.arange(self._counts) > 0).astype(np.int64)
        return (counted[:, None] - counted[None, :]).ravel()

    def ends(self, place: int) -> Table:
        """The last change of g, to 0; after the last place only, or after any one if changes are masked."""
        return self._ends[self.masked or place == self.places]

    @cached_property
    def _ends(self) -> tuple[Table, Table]:
        change = np.abs(self._last) * (self.charged.change - self.prices.change)
        # A change of nothing is charged nothing, whatever its starts are worth: it needs no path of its own.
        before = np.full(self._pairs, 0 if self.masked else NEVER, dtype=np.int64)
        ends = np.concatenate([before, np.tile(np.repeat(change, self._numbers), len(self._signs))])
        return np.full_like(ends, NEVER), ends

    def kind(self, place: int) -> Kind:
        """The prices of a start, of a stop and of g = -1, and whether the clock ticks; what is forbidden costs most."""
        start = self.prices.start * min(self.length, self.places - place + 1) if place <= self.starts else -NEVER
        stop = self.prices.start * min(self.length, place - 1)
        minus = -NEVER if self.single[0] <= place <= self.single[1] else 0
        return start, stop, minus, place % self.every == 0

    def moves(self, place: int) -> tuple[Moves, Moves]:
        """The moves of the states before, and of the others, into a place."""
        kind = self.kind(place)
        before, others = self._ticking if kind[3] else self._unticked
        paid = self._paid(kind)
        repeated = np.repeat(paid, 2, axis=0) if self.masked else paid
        grid = (len(paid), len(self._signs), self._pairs, self._numbers)
        charges = (others.charges.reshape(grid) + paid[:, None, :, None]).reshape(len(paid), -1)
        return replace(before, charges=before.charges + repeated), replace(others, charges=charges)

    def dearest(self, period: int) -> int:
        """The most that a path is charged, by assuming that the worst comes again every `period` places."""
        # Short periods are taken several at a time, to fill at least `_SHORT` places.
        whole = period * -(-_SHORT // period)
        settling, cycle = (count * whole // self.every * self.every for count in (_SETTLING, _CYCLE))
        return dearest_path(self, settling=settling, cycle=cycle, tick=self.every)

    def _choices(self, tick: bool) -> Iterator[tuple[Indices, Indices]]:
        """The next f and f', for every two counts: neither changes, f' does if it may, f does, and both do."""
        counts = np.arange(self._counts)
        each = np.where(counts > 1, counts - tick, counts), np.where(counts == 0, self.ticks + 1, 0)
        for f, other in product(each, each[: self.items]):
            yield np.repeat(f, self._counts), np.tile(other, self._counts)

    def _paid(self, kind: Kind) -> Table:
        """Prices, shape (choices, two counts): of starts and stops, of a place where g = -1, of a count held longer."""
        start, stop, minus, _ = kind
        starts, stops, minuses, held = self._events
        paid: Table = np.maximum(2 * NEVER * held - start * starts - stop * stops - minus * minuses, 3 * NEVER)
        return paid

    @cached_property
    def _events(self) -> tuple[Table, Table, Table, Table]:
        """How many of f and f' start, stop, and change though they are held, and whether g = -1 then; as `_paid`."""
        counts = np.arange(self._counts)
        changes = (counts == 0, counts == 1, counts > 1)
        each = [(np.zeros_like(counts), changed.astype(np.int64)) for changed in changes]
        starts, stops, held = (
            np.stack([np.add.outer(f, g).ravel() for f, g in product(one, one[: self.items])]) for one in each
        )
        minuses = np.stack([(f == 0) & (other > 0) for f, other in self._choices(tick=False)]).astype(np.int64)
        return starts, stops, minuses, held

    @cached_property
    def _ticking(self) -> tuple[Moves, Moves]:
        return self._unpaid(tick=True)

    @cached_property
    def _unticked(self) -> tuple[Moves, Moves]:
        return self._unpaid(tick=False)

    def _unpaid(self, *, tick: bool) -> tuple[Moves, Moves]:
        """The moves without what `_paid` adds, where the clock ticks or does not."""
        pairs = [f * self._counts + other for f, other in self._choices(tick)]
        before = [move for pair in pairs for move in self._from_before(pair)]
        others = [self._from_others(pair) for pair in pairs]
        return _together(slice(0, self._pairs), before), _together(slice(self._pairs, None), others)

    def _counted(self, pair: Indices) -> Table:
        """Twice the price of starts for each of f and f' that is 1 (`priced_changes`)."""
        f, other = np.divmod(pair, self._counts)
        return 2 * self.prices.start * ((f > 0).astype(np.int64) + (other > 0))

    def _from_before(self, pair: Indices) -> Iterator[tuple[Indices, Table]]:
        """G is not 0 for the first time, where f and f' differ; it stays 0 where they do not, or where it is masked."""
        first = self.lags.values[0] + self.charged.place + self.charged.change - self.prices.change
        g = self._last[pair]
        begun = self._state(g < 0, pair, np.full_like(pair, self._numbers // 2))
        yield np.where(g == 0, pair, begun), self._counted(pair) + np.where(g == 0, 0, first)
        if self.masked:
            yield pair, self._counted(pair)

    def _from_others(self, pair: Indices) -> tuple[Indices, Table]:
        """Flat indices and charges, from arrays of shape (sign, two counts, number)."""
        memory, number = self.charged.memory, np.arange(self._numbers)
        values = np.array(self.lags.values[: memory + 1], dtype=np.int64)
        digits = number[None, :] // 3 ** np.arange(memory - 1)[:, None] % 3 - 1
        # How many zeros in a row there are before the last place.
        zeros = np.cumprod(digits == 0, axis=0, dtype=np.int64).sum(axis=0)
        alternation = np.array(self.charged.alternation, dtype=np.int64)
        counted, g = self._counted(pair)[None, :, None], self._last[pair][None, :, None]
        sign, last = self._signs[:, None, None], self._last[None, :, None]
        pairs = 2 * g * (values[1] * last + (values[2:, None] * digits).sum(axis=0))
        turned = alternation[np.where(last == 0, np.minimum(1 + zeros, memory), 0)]
        charge = counted + (self.charged.change - self.prices.change) * np.abs(g - last)
        charge = charge + np.where(g == 0, 0, values[0] + self.charged.place + pairs + np.where(g == -sign, turned, 0))
        minus = np.where(g == 0, sign < 0, g < 0)
        after = number % (self._numbers // 3) * 3 + 1 + last
        return self._state(minus, pair[None, :, None], after).ravel(), charge.ravel()

    def _state(self, minus: NDArray[np.bool_], pair: Indices, number: Indices) -> Indices:
        """By the sign of the last place that is not 0, whether it is a -, the two counts, and the number."""
        if len(self._signs) == 1:
            f, other = np.divmod(pair, self._counts)
            pair = np.where(minus, other * self._counts + f, pair)
            number = np.where(minus, self._numbers - 1 - number, number)
            return self._pairs + pair * self._numbers + number
        return self._pairs + (minus * self._pairs + pair) * self._numbers + number


def _together(states: slice, moves: Sequence[tuple[Indices, Table]]) -> Moves:
    targets, charges = zip(*moves, strict=True)
    return Moves(states, np.stack(targets), np.stack(charges))


# --- Distinct items: every run holds at least W places ---------------------------------------------------------------


@dataclass(frozen=True)
class Held:
    """The changes that one item can make for k = 1: `starts` = L, `length` = W, `places` = N; with f' = 0, `items` = 1.

    Occurrences outside the span are shared. The places whose windows hold none of them are an interval (those before
    the span leave, those after it come), and g = 0 elsewhere. In the interval `g = h - h'`, where h is 1 where the
    window holds an occurrence of the one log within the span: h starts in the places 1..L only, and every run of h has
    at least W places, for an occurrence is seen by W windows (the horizon may cut the last one).
    """

    starts: int
    length: int
    places: int
    items: int = 2


def held_changes(lags: SignedLags, charged: Charges, known: Held) -> CountsAutomaton:
    """The changes for k = 1.

    Proof. With one tick for every u places there are `(W-1) // u` ticks at least between the first and the last
    place of a run of W, so that holding for these ticks forbids none. g = h - h' in an interval of places. QED.
    """
    every = -(-known.length // _TICKS)
    ticks = (known.length - 1) // every
    return CountsAutomaton(lags, charged, known.places, known.starts, ticks, every, masked=True, items=known.items)


def two_runs_bound(lags: SignedLags, known: Held) -> int:
    """Bound on `g'Gg / 2^shift` over all changes for k = 1 and L <= W+1; it is attained but for the rounding of lags.

    Proof. Occurrences within the span are at most W steps apart, so h is one interval of places (or nowhere 1), from
    one in 1..L to one in W..W+L-1; h' likewise. If one is nowhere 1, or in the interval only, g is one run of at most N
    places. Otherwise their difference is at most two runs, of any signs: one between their first places, within the
    places 1..L-1, and one between their last, within W+1..W+L-1; cut to the interval they are the same or shorter. If
    they have one sign, one of h and h' begins later and ends earlier, and its W places or more lie between. For runs of
    n and n' places with z between them `g'Gg = q(n) + q(n') +- (q(n+z+n') - q(n+z) - q(z+n') + q(z))`, q(n)
    being the form of n ones. The largest over all n, n' and z that fit into N places is returned. QED.
    """
    reach, outer = known.places, min(known.starts - 1, known.places)
    rises = np.zeros(reach, dtype=np.int64)
    kept = lags.values[:reach]
    rises[: len(kept)] = 2 * np.array(kept, dtype=np.int64)
    rises[0] = lags.values[0]
    norms = np.concatenate([[0], np.cumsum(np.cumsum(rises))])
    best = int(norms.max())
    first, second = np.meshgrid(np.arange(1, outer + 1), np.arange(1, outer + 1), indexing="ij")
    for zeros in range(known.length + 1 - known.starts, reach - 1):
        fits = first + zeros + second <= reach
        n, m = first[fits], second[fits]
        pairs = norms[n + zeros + m] - norms[n + zeros] - norms[zeros + m] + norms[zeros]
        apart = norms[n] + norms[m]
        best = max(best, int((apart - pairs).max(initial=0)))
        if zeros >= known.length:
            best = max(best, int((apart + pairs).max(initial=0)))
    return best


# --- Counts with any threshold ----------------------------------------------------------------------------------------


def priced_changes(lags: SignedLags, charged: Charges, known: TwoCounts, prices: Prices) -> CountsAutomaton:
    """The changes for any k, with prices >= 0: what all is charged more than `g'Gg / 2^shift` is `price_of_all`.

    Proof. *Starts.* Where f starts being counted, something occurs. The window of W steps that ends at place t holds an
    occurrence for each of the starts in `t-W+1..t`: these are at most k-1 if f(t) = 0, and at most k if f(t) = 1, since
    W+1 steps hold at most k starts (`dpwindows.kernel.families.runs`). Summed over t = 1..N, where a start at s
    counts `min(W, N-s+1)` times: `sum over starts <= (k-1) N + sum f`. *Stops.* Read backwards in time, a stop at s (1
    at s-1, 0 at s) is a start, counted `min(W, s-1)` times: the same bound. Both hold for f'. *Runs.* g begins and ends
    at 0, so `sum |g_t - g_{t-1}|` is twice the number of runs, at most `2 runs`. These inequalities, multiplied by the
    prices and added to what is charged, only raise it.

    f and f' may be anything in the automaton, so that all changes are among its paths. Where g has one sign, that may
    be taken to be +: the form is the same for -g, with f and f' exchanged. A change g = 0 costs nothing. QED.
    """
    if min(prices.start, prices.change) < 0:
        raise ValueError(f"prices must not be negative, got {prices}")
    return CountsAutomaton(
        lags,
        charged,
        known.places,
        known.places,
        apart=known.apart,
        single=known.single,
        length=known.length,
        prices=prices,
        items=known.items,
    )


def price_of_all(known: TwoCounts, prices: Prices) -> int:
    """What the inequalities of `priced_changes` allow, at these prices: starts and stops of each item, and runs."""
    return 2 * prices.change * known.runs + 2 * known.items * prices.start * (known.k - 1) * known.places
