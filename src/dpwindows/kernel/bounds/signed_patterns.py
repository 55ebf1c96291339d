r"""How far the difference of two items' rolling counts, a vector of -1, 0 and 1, can move a filtered series.

As in `dpwindows.kernel.bounds.run_patterns`, `r_d` is the autocorrelation of a causal filter with integer taps, G its
Gram matrix on an unbounded horizon, and g costs `g'Gg = r_0 n + 2 sum_{d>=1} r_d c_d`, with n the number of places
where g is not 0 and `c_d = sum_t g_t g_{t-d}`. Here g = f - f' for two 0/1 vectors in N consecutive places; g is 0
elsewhere. Pairs of unlike signs add to the cost where `r_d < 0`, so what serves patterns of one sign does not serve
here.

**Distances.** Pairs up to a few places apart (`memory` m) are counted as they are. Beyond, with `w_d = -r_d`:

- *near* distances, m < d <= D with `r_d < 0`: `-2 c_d = sum_t (g_t - g_{t-d})^2 - 2n`, and the square is `|g_t -
  g_{t-d}|`, plus 2 where the two places have unlike signs. The sum of the absolute values is at most `d J`, with `J =
  sum_t |g_t - g_{t-1}|`. An *alternation* is a pair of consecutive places x < y with unlike signs and `y-x-1` zeros
  between them; between two places of unlike signs there is one, and one alternation lies between at most `max(0, d -
  (y-x-1))` pairs of places at distance d. So `2 r_d c_d <= w_d (d J - 2n + 2 sum max(0, d - zeros))`, the sum over all
  alternations.
- *far* distances, all others: `sum 2 r_d c_d <= n max_omega sum 2 r_d cos(d omega)`, the largest value of the symbol
  of a Toeplitz form.

Either is a charge for places, for unit changes and for alternations (`Charges`), so the maximum of what is charged is
found by dynamic programming over the places, with the last m values of g for a state. It may be any filter: nothing is
asked of the signs of `r_d`.

All arithmetic but the symbol's maximum is in 64-bit integers that cannot wrap (`SignedLags`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpwindows.kernel.bounds.sensitivity import autocorrelation

Table = NDArray[np.int64]

# No value that can be reached comes near it, and no sum with it wraps.
NEVER = -(1 << 61)
_BITS = 57
# Windows' lengths after which what places add is taken for settled, and over which it is taken to be the same again.
SETTLING, PERIOD = 4, 16
# Points of the grid on which the symbol is evaluated, for each distance.
_FINENESS = 64


@dataclass(frozen=True)
class SignedLags:
    """An autocorrelation divided by `2^shift`: for every g of N places in -1, 0, 1 `g'Gg <= 2^shift (form of values)`.

    With C values, those beyond being 0 or never met: they are rounded to the nearest, and 2 C is added to the first,
    since an error of at most 1 in every `r_d` changes the form by at most `n (1 + 2 (C-1))`. With S the sum of absolute
    values, what is charged for a place, its change and its alternation together is at most `8 C S`, and `8 N C S <
    2^57`.
    """

    values: tuple[int, ...]
    shift: int

    @classmethod
    def of(cls, taps: Sequence[int], places: int) -> SignedLags:
        """The lags of integer taps that matter within N = `places`; at least three, if need be of 0."""
        exact = autocorrelation(taps)[:places]
        exact += [0] * (3 - len(exact))
        shift = max(0, (8 * places * len(exact) * sum(map(abs, exact))).bit_length() - _BITS)
        half = 1 << shift >> 1
        rounded = [value + half >> shift for value in exact]
        return cls((rounded[0] + (2 * len(exact) if shift else 0), *rounded[1:]), shift)

    @property
    def longest(self) -> int:
        """The largest distance that has a value."""
        return len(self.values) - 1


@dataclass(frozen=True)
class Charges:
    """What is charged for pairs more than `memory` apart (module docstring).

    `place`: for every place where g is not 0. `change`: for every unit of `|g_t - g_{t-1}|`. `alternation[z]`: for one
    with z zeros, or at least m where z = m.
    """

    memory: int
    place: int
    change: int
    alternation: tuple[int, ...]


def charges(lags: SignedLags, memory: int, near: int) -> Charges:
    """The charges where distances up to `near` are taken for near ones."""
    values = lags.values
    memory = min(memory, lags.longest)
    weights = {d: -values[d] for d in range(memory + 1, min(near, lags.longest) + 1) if values[d] < 0}
    far = np.array([0 if d <= memory or d in weights else value for d, value in enumerate(values)], dtype=np.float64)
    return Charges(
        memory,
        symbol_maximum(far) - 2 * sum(weights.values()),
        sum(d * weight for d, weight in weights.items()),
        tuple(2 * sum(max(0, d - zeros) * weight for d, weight in weights.items()) for zeros in range(memory + 1)),
    )


def symbol_maximum(far: NDArray[np.float64]) -> int:
    """An upper bound on `max_omega sum_d 2 far_d cos(d omega)`, rounded up.

    Proof. Let p be the symbol, with its maximum at omega. `p' = 0` there and `|p''| <= sum 2 d^2 |far_d|`, so at the
    nearest point of a grid of spacing h, at most h/2 away, p is less by at most `h^2/8 sum 2 d^2 |far_d|`. The values
    on the grid are computed with a rounding error far below `2^-40 sum 2 |far_d|`. QED.
    """
    if not far.any():
        return 0
    padded = np.zeros(1 << (_FINENESS * len(far) - 1).bit_length())
    padded[: len(far)] = 2 * far
    symbol = np.fft.rfft(padded).real
    sizes, spacing = 2 * np.abs(far), np.pi / (len(symbol) - 1)
    curvature = float((sizes * np.arange(len(far), dtype=np.float64) ** 2).sum())
    slack = spacing**2 / 8 * curvature * (1 + 2.0**-30) + 2.0**-40 * float(sizes.sum())
    return int(np.ceil(float(symbol.max()) + slack)) + 1


@dataclass(frozen=True)
class Recent:
    """All values of g at the last m places: the last one (known apart) and a number of m-1 digits for those before.

    Digit j of a number, base 3, is `1 + g` at j+2 places back, seen from the place to come.
    """

    lags: SignedLags
    memory: int

    @property
    def count(self) -> int:
        """How many numbers."""
        return int(3 ** (self.memory - 1))

    @property
    def silent(self) -> int:
        """The number of nothing but zeros."""
        return (self.count - 1) // 2

    @cached_property
    def _digits(self) -> Table:
        powers = 3 ** np.arange(self.memory - 1, dtype=np.int64)
        return np.asarray(np.arange(self.count)[None, :] // powers[:, None] % 3 - 1, dtype=np.int64)

    @cached_property
    def pairs(self) -> Table:
        """What a one at the place to come gains with the places before the last."""
        values = np.array(self.lags.values[2 : self.memory + 1], dtype=np.int64)
        return np.asarray((2 * values[:, None] * self._digits).sum(axis=0), dtype=np.int64)

    @cached_property
    def zeros(self) -> Table:
        """How many zeros in a row there are before the last place."""
        return np.asarray(np.cumprod(self._digits == 0, axis=0, dtype=np.int64).sum(axis=0), dtype=np.int64)

    def best(self, values: Table) -> Table:
        """The best over the place that is forgotten, shape (..., count) to (..., count / 3)."""
        return np.asarray(values.reshape(*values.shape[:-1], 3, -1).max(axis=-2))


# --- Two counts with thresholds of any size ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Prices:
    """Lagrange multipliers: `start` for each start or stop in every window that sees it, `change` for unit changes."""

    start: int
    change: int


@dataclass(frozen=True)
class TwoCounts:
    """What is known of the changes that one item can make within a span (`period_sensitivity`).

    Attributes:
        k: the threshold.
        length: W.
        places: N, the window ends that see the span, numbered 1..N.
        runs: the most runs of g, of either sign.
        single: the places, first and last, between which g has one sign; (1, 0) if there are none.
        apart: nothing occurs before the span, so nothing is counted before the first place.
    """

    k: int
    length: int
    places: int
    runs: int
    single: tuple[int, int]
    apart: bool


def priced_bound(lags: SignedLags, charged: Charges, known: TwoCounts, prices: Prices) -> int:
    """Bound on `g'Gg / 2^shift` over all changes, for any prices >= 0.

    Proof. *Starts.* Where f starts being counted, something occurs. The window of W steps that ends at place t holds an
    occurrence for each of the starts in `t-W+1..t`: these are at most k-1 if f(t) = 0, and at most k if f(t) = 1, since
    W+1 steps hold at most k starts (`dpwindows.kernel.bounds.sensitivity`). Summed over t = 1..N, where a start at s
    counts `min(W, N-s+1)` times: `sum over starts <= (k-1) N + sum f`. *Stops.* Read backwards in time, a stop at s (1
    at s-1, 0 at s) is a start, counted `min(W, s-1)` times: the same bound. Both hold for f'. *Runs.* g begins and ends
    at 0, so `sum |g_t - g_{t-1}|` is twice the number of runs, at most `2 runs`.

    The inequalities, multiplied by the prices and added to what is charged, only raise it. The total is then a sum over
    places of terms that depend on (f, f') there and at the place before, on the last m values of g, and on the sign of
    the last place where g was not 0. Its maximum over all sequences, whether they satisfy the inequalities or not, is
    found place by place; each is entered at the first place where g is not 0, with the best that f = f' makes before.
    After the last place g is 0. Where g has one sign, that may be taken to be +: the form is the same for -g, with f
    and f' exchanged. A change g = 0 costs nothing. QED.
    """
    table = PricedTable(lags, charged, known, prices)
    values, earlier, place = table.first, table.first, 0
    # Up to the last W places each is like the one before, from some place on.
    settled, last = SETTLING * known.length + 2 * charged.memory, known.places - known.length
    period = PERIOD * known.length
    while place < known.places:
        place += 1
        values = table.next(values, place)
        if place == settled:
            earlier = values
        if place == settled + period and place + period <= last:
            times = (last - place) // period
            values = carried_on(earlier, values, times, 4 * prices.start * period)
            place += times * period
    values[:, 2] += charged.change - prices.change
    return max(0, int(values.max())) + 2 * prices.change * known.runs + 4 * prices.start * (known.k - 1) * known.places


def carried_on(before: Table, after: Table, times: int, least: int = 0) -> Table:
    """Upper bounds on the values so many equal steps later, from those before and after such a step (of many places).

    Proof. A step F takes maxima of values plus constants, and of entries of its own that from one step to the next rise
    by at most `least` >= 0. So if `after <= before + e` everywhere, e >= `least`, the next step adds at most e once
    more, and so on. States that cannot be reached are left out: if the last step reached no state for the first time,
    the next, which depends on the states reached only, will not either. QED.

    Raises:
        ValueError: a state was reached for the first time (a bug: more steps should have been taken).
    """
    reached = after > NEVER // 2
    if (reached & (before <= NEVER // 2)).any():
        raise ValueError("a state was reached for the first time")
    return np.where(reached, after + times * max(least, int((after - before)[reached].max())), NEVER)


class PricedTable:
    """One place after another of the dynamic programme.

    Values have the shape (2, 3, numbers): the sign of the last place that was not 0, + or -; what the last place is,
    (0, 0), (1, 1) or of that sign; and the places before.
    """

    def __init__(self, lags: SignedLags, charged: Charges, known: TwoCounts, prices: Prices) -> None:
        self.recent = Recent(lags, charged.memory)
        self.known, self.price = known, prices.start
        self.change = charged.change - prices.change
        alternation = np.array(charged.alternation, dtype=np.int64)
        after_zeros = alternation[np.minimum(1 + self.recent.zeros, charged.memory)]
        # What a place of either sign gains after each kind of place, but for starts and stops.
        self.gains = np.empty((2, 2, 3, self.recent.count), dtype=np.int64)
        for i, sign in enumerate((1, -1)):
            for j, before in enumerate((1, -1)):
                other = alternation[0] if sign != before else 0
                self.gains[i, j, :2] = sign * self.recent.pairs + self.change
                self.gains[i, j, :2] += after_zeros if sign != before else 0
                self.gains[i, j, 2] = sign * (self.recent.pairs + 2 * before * lags.values[1]) + other
                self.gains[i, j, 2] += self.change * abs(sign - before)
        self.gains += lags.values[0] + charged.place + 2 * prices.start

        self.first = np.full((2, 3, self.recent.count), NEVER, dtype=np.int64)
        self._entered = self._entries(lags.values[0] + charged.place + 2 * prices.start + self.change)

    def _entries(self, gain: int) -> list[int]:
        """The best value at each place where g is not 0 for the first time."""
        neither, both, found = 0, NEVER if self.known.apart else 0, [NEVER]
        for place in range(1, self.known.places + 1):
            start, stop = self._paid(place)
            found.append(max(neither - start, both - stop) + gain)
            neither, both = max(neither, both - 2 * stop), max(both, neither - 2 * start) + 4 * self.price
        return found

    def _paid(self, place: int) -> tuple[int, int]:
        """The prices of a start and of a stop."""
        length, places = self.known.length, self.known.places
        return self.price * min(length, places - place + 1), self.price * min(length, place - 1)

    def next(self, values: Table, place: int) -> Table:
        """The values one place later."""
        best, third = self.recent.best, self.recent.count // 3
        start, stop = self._paid(place)
        after = np.full((2, 3, third, 3), NEVER, dtype=np.int64)
        # To a place of either sign: f or f' starts after (0, 0), stops after (1, 1), both change after the other sign.
        turn = start + stop
        paid = np.array([[[start, stop, 0], [start, stop, turn]], [[start, stop, turn], [start, stop, 0]]])
        found = best(values + self.gains - paid[..., None])
        after[:, 2, :, 1] = found[:, :, :2].max(axis=(1, 2))
        after[:, 2, :, 2], after[:, 2, :, 0] = found[:, 0, 2], found[:, 1, 2]
        entered = after.reshape(values.shape)[:, 2, self.recent.silent]
        np.maximum(entered, self._entered[place], out=entered)
        if self.known.single[0] <= place <= self.known.single[1]:
            after[1, 2] = NEVER
        # To (0, 0) or (1, 1).
        paid = np.array([[0, 2 * stop, stop - self.change], [2 * start, 0, start - self.change]])
        paid[1] -= 4 * self.price
        found = best(values[:, None] - paid[:, :, None])
        after[:, :2, :, 1] = found[:, :, :2].max(axis=2)
        after[0, :2, :, 2], after[1, :2, :, 0] = found[0, :, 2], found[1, :, 2]
        return after.reshape(values.shape)
