r"""The difference of two items' rolling counts for k = 1: every run of either holds at least W places.

`signed_patterns.priced_bound` serves any threshold, but knows how often an item is counted on average only. For k = 1
more can be kept in mind: an item that starts being counted stays so for W steps. With L the span, p its first step, and
places 1..N the windows that end at p..p+N-1, `N <= W+L-1`:

*What can change.* Occurrences outside the span are shared. The places whose windows hold none of them are an interval
(those before the span leave, those after it come), and g = 0 elsewhere. In the interval `g = h - h'`, where h is 1
where the window holds an occurrence of the one log within the span: h starts in places 1..L only, and every run of h
has at least W places, for an occurrence is seen by W windows (the horizon may cut the last one).

*What is computed.* The largest that is charged (`signed_patterns`) over all h, h' of that kind and all intervals, by
dynamic programming over places. Its state is (h, h'), how long either must still hold, and the last m values of g. Only
states whose last place other than 0 was a + are stored: the others are their mirror images, `-g` with h and h'
exchanged. For long windows time is told by a coarse clock, one tick for every u steps: a run of W steps passes `(W-1)
// u` ticks at least between its first and its last step, and holding for so many ticks is all that is asked.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpwindows.kernel.bounds.signed_patterns import (
    NEVER,
    PERIOD,
    SETTLING,
    Charges,
    Recent,
    SignedLags,
    Table,
    carried_on,
)

# The most ticks that a run is held for.
_TICKS = 32


@dataclass(frozen=True)
class Held:
    """The changes that one item can make for k = 1: `starts` = L, `length` = W, `places` = N (module docstring)."""

    starts: int
    length: int
    places: int


def held_bound(lags: SignedLags, charged: Charges, known: Held) -> int:
    """Bound on `g'Gg / 2^shift` over all changes for k = 1.

    Proof. By the module docstrings: the maximum, over a set of pairs (h, h') and intervals that holds all changes, of
    sums that are at least the cost. The first place t where g is not 0 may be any, up to the sign a +: h is still held
    there for its ticks less those between its start, in 1..min(t, L), and t. The interval may end after any place. QED.
    """
    table = HeldTable(lags, charged, known)
    best, place, values, earlier = 0, 0, table.first(), table.first()
    # Up to the last start each place is like the one a tick before, from some place on.
    settled, period = (rounded * known.length // table.every * table.every for rounded in (SETTLING, PERIOD))
    while place < known.places:
        place += 1
        values = table.next(values, place)
        if place == settled:
            earlier = values
        if place == settled + period and place + period <= known.starts:
            times = (known.starts - place) // period
            values, place = values.of(carried_on(earlier.flat, values.flat, times)), place + times * period
        best = max(best, values.largest(charged.change))
    return best


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


@dataclass(frozen=True)
class HeldValues:
    """The best so far, the last place other than 0 having been a +, by the numbers of the places before the last.

    `neither`: h = h' = 0, shape (numbers,). `one`: h = 1, h' = 0, by the ticks that h must still hold, shape (ticks +
    1, numbers). `both`: h = h' = 1, by those of h and those of h'.
    """

    neither: Table
    one: Table
    both: Table

    @property
    def flat(self) -> Table:
        """All in one."""
        return np.concatenate([self.neither, self.one.ravel(), self.both.ravel()])

    def of(self, flat: Table) -> HeldValues:
        """Values of the same shapes from all in one."""
        neither, one, both = np.split(flat, np.cumsum([self.neither.size, self.one.size]))
        return HeldValues(neither, one.reshape(self.one.shape), both.reshape(self.both.shape))

    def largest(self, change: int) -> int:
        """The largest cost of an interval that ends here."""
        return max(int(self.neither.max()), int(self.one.max()) + change, int(self.both.max()))


class HeldTable:
    """One place after another."""

    def __init__(self, lags: SignedLags, charged: Charges, known: Held) -> None:
        self.recent, self.known, self.change = Recent(lags, charged.memory), known, charged.change
        self.every = -(-known.length // _TICKS)
        self.ticks = (known.length - 1) // self.every
        alternation = np.array(charged.alternation, dtype=np.int64)
        # What a + gains after a place that is 0, last of a + or of a -, and after a + or a -.
        place = lags.values[0] + charged.place + self.recent.pairs
        self.fresh = place + charged.change
        self.turned = self.fresh + alternation[np.minimum(1 + self.recent.zeros, charged.memory)]
        self.longer = place + 2 * lags.values[1]
        self.reversed = place - 2 * lags.values[1] + 2 * charged.change + alternation[0]

    def first(self) -> HeldValues:
        """Before the first place: nothing, since every pattern is entered at the first place where it is not 0."""
        held, count = self.ticks + 1, self.recent.count
        return HeldValues(*(np.full((*(held,) * axes, count), NEVER, dtype=np.int64) for axes in range(3)))

    def next(self, values: HeldValues, place: int) -> HeldValues:
        """The values one place later."""
        best, held, third = self.recent.best, self.ticks + 1, self.recent.count // 3
        tick = _tick if place % self.every == 0 and self.ticks else _no_tick
        neither = np.full((third, 3), NEVER, dtype=np.int64)
        one = np.full((held, third, 3), NEVER, dtype=np.int64)
        both = np.full((held, held, third, 3), NEVER, dtype=np.int64)
        # h or h' stops, or neither changes.
        neither[:, 1] = best(np.maximum(values.neither, values.both[0, 0]))
        neither[:, 2] = best(values.one[0] + self.change)
        one[:, :, 2] = best(tick(values.one) + self.longer)
        stopped = np.maximum(values.both[:, 0] + self.fresh, values.both[0, :, ::-1] + self.turned)
        one[:, :, 1] = best(tick(stopped))
        both[:, :, :, 1] = best(tick(tick(values.both).swapaxes(0, 1)).swapaxes(0, 1))
        if place <= self.known.starts:
            begun = np.maximum(values.neither + self.fresh, values.neither[::-1] + self.turned)
            one[-1, :, 1] = np.maximum(one[-1, :, 1], best(begun))
            one[-1, :, 0] = best(values.one[0, ::-1] + self.reversed)
            both[:, -1, :, 2] = best(tick(values.one) + self.change)
            both[-1, -1, :, 1] = np.maximum(both[-1, -1, :, 1], best(values.neither))
        after = HeldValues(neither.reshape(-1), one.reshape(held, -1), both.reshape(held, held, -1))
        self._begin(after, place)
        return after

    def _begin(self, after: HeldValues, place: int) -> None:
        """Enter the patterns that are a + here for the first time: h may be held already."""
        silent, last = self.recent.silent, min(place, self.known.starts)
        low = max(0, self.ticks - (place // self.every - 1 // self.every))
        held = slice(low, max(0, self.ticks - (place // self.every - last // self.every)) + 1)
        after.one[held, silent] = np.maximum(after.one[held, silent], self.fresh[silent])


def _tick(values: Table) -> Table:
    """One tick less to be held for, along the first axis."""
    passed = np.full_like(values, NEVER)
    passed[:-1] = values[1:]
    np.maximum(passed[0], values[0], out=passed[0])
    return passed


def _no_tick(values: Table) -> Table:
    return values
