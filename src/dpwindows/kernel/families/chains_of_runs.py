r"""Rolling counts of whole items, through a filter whose noise has a common offset: at most the best chain of runs.

**Between two runs nothing is gained.** How far can one item, added or removed, move what is measured? Its answers for a
threshold are a 0/1 series f with n ones, and it moves the numbers by `M f`. From the integers that are applied is read
off a bound `|M f|^2 <= f'Gf - c n^2`, with a constant c >= 0 and `G_st = r_|s-t|` (`norm_of`). An item may be
counted at half of all steps, so n is large where f is costly, and the constant takes much of it off: that is what noise
with a common random offset gains. Where no r_d, d >= 1, is positive, pairs of ones in different runs only lower f'Gf.
It is at most the sum over the runs of `q(l) = l r_0 + 2 sum_{0<d<l} (l-d) r_d`, and q is concave: its second
differences are `2 r_l <= 0`.

**Several thresholds.** One history makes the changes of all thresholds. An item that comes and goes is seldom counted
often, and one that is counted often is there all the time: bounds for each threshold by itself add up two worst items
that are never one. Rolling windows of `W` steps over `N` places. h is the 0/1 series of an item being counted for the
threshold 1, whether that is measured or not, and f the one for a larger threshold k. An item that is counted k times is
counted once, so f is 1 only where h is.

**In one run of h of n places f has few runs** (`most_runs_inside`). Let the run begin at b. No window of it holds an
occurrence before b: the window that ends at b - 1 holds none, or b is the first place. Where f starts being counted,
something occurs. Up to b+W-1 no occurrence leaves, so f starts at most once in b..b+W-1, and at b+W only if it had not
before: **at most one start in the first W+1 places**. If the run ends within the range, the window after it is empty,
so nothing occurs in its last W-1 places: n-2W places are left for later starts. Of a run that the end of the range may
cut, n-W-1 are left. Any W+1 consecutive steps hold at most k starts (`dpwindows.kernel.families.runs`), and
between two starts lies a place that is 0.

**Chains.** h is a chain of runs with a place at least between two, each of at least W places but for the last, which
the end of the range may cut. So whatever is a sum over the runs of h, and within each over the runs of the f's, is
bounded by the best chain (`best_chain_of_runs`) of what a run is worth by its length (`worth_inside`).

`most_runs_inside`, `worth_inside` and `best_chain_of_runs` take exact integers for certificates, and floats where good
prices are sought.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpwindows.ask.queries import Rolling, WindowFamily
from dpwindows.ask.windows import Answers
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.advice import Question, ask
from dpwindows.kernel.designs import StepAnswers, StepShape
from dpwindows.kernel.families.counted_by_rule import places_by_rule, runs_by_rule
from dpwindows.kernel.families.norms import autocorrelation
from dpwindows.kernel.families.run_patterns import Lags
from dpwindows.kernel.families.runs import most_runs
from dpwindows.kernel.families.series import Series
from dpwindows.kernel.maps.counters import MatrixCounter
from dpwindows.kernel.maps.filters import OffsetFilter
from dpwindows.kernel.maps.integer_maps import IntArray, IntegerMap, Memory
from dpwindows.kernel.rules import ITEM_UNITS, Case, rule

# Values by number of places: exact integers, whose sums fit into their type, or floats.
Values = NDArray[Any]


@dataclass(frozen=True)
class SeriesByThreshold(StepShape):
    """A series for each threshold, through its own map; all maps have as many rows and memories of one form."""

    thresholds: tuple[int, ...]
    maps: tuple[IntegerMap, ...]

    def moved(self, case: Case) -> int:
        """As many as there are steps."""
        return case.horizon

    def at(self, k: int) -> Series:
        return self._at[k]

    @cached_property
    def _at(self) -> dict[int, Series]:
        return {k: Series(own) for k, own in zip(self.thresholds, self.maps, strict=True)}

    @property
    def _first(self) -> Series:
        return self._at[self.thresholds[0]]

    def rows(self, window: WindowFamily, steps: int) -> int:
        return self._first.rows(window, steps)

    def encode(self, window: WindowFamily, answers: Answers, k: int) -> IntArray:
        return self.at(k).encode(window, answers, k)

    def reach(self, window: WindowFamily) -> int:
        return self._first.reach(window)

    def rows_at(self, window: WindowFamily, step: int) -> int:
        return self._first.rows_at(window, step)

    def fresh(self) -> Memory:
        """The memory of any of the maps before step 1."""
        return self._first.fresh()

    def encode_step(
        self, window: WindowFamily, answers: StepAnswers, k: int, memory: Memory
    ) -> tuple[IntArray, Memory]:
        return self.at(k).encode_step(window, answers, k, memory)


@rule(
    "rolling-chains-item",
    Rolling,
    ITEM_UNITS,
    GAUSSIAN,
    (MatrixCounter, OffsetFilter, SeriesByThreshold),
    when="a row for every step, no products of unlike rows above 0; of a filter offsets that fall fast enough",
)
def rolling_chains_l2(case: Case) -> int | None:
    """Rolling counts, one item added or removed or changed: through a matrix or a filter with a common offset.

    Proof. *Added or removed.* For each threshold k the change is f_k, a 0/1 series of n_k ones. With c >= 0 and G of
    `norm_of` (whose rounding `OffsetNorm.rounded` pays for) and any prices P, Q >= 0 it costs at most

        f'Gf - c n_k^2 <= max_{0 <= x <= m} (P x - c x^2) + Q R + (f'Gf - P n_k - Q runs),

    where m is the most ones that it may have, and R the most runs: n_k is one of these x. The bracket is at most a sum
    over the runs of f_k, of `q(l) - P l - Q` for l places, which is concave in l >= 1 (module docstring). Summed over
    thresholds, with their own filters and prices, it is a sum over the runs of f_1, and in each over the runs of the
    f_k inside it: at most the best chain. Without a rule of counting there is no price for runs.
    *By a rule of counting* (`families.counted_by_rule`) there are fewer runs and fewer ones. What a bound on
    occurrences leaves is a history itself; a bound on runs leaves the first of them, each as long as it was. So each
    threshold by itself has a chain still, with that R and m; measured apart, their squared norms add.
    *Changed*, within some steps or all: the change is that of one history less that of another, and
    `|a - b|^2 <= 2|a|^2 + 2|b|^2` over all that is measured: four times as much. QED.
    """
    shape, thresholds = case.measured, case.thresholds
    apart = isinstance(shape, SeriesByThreshold)
    maps = shape.maps if apart else (shape,) * len(thresholds)
    norms = [norm for one in maps if (norm := norm_of(one, case.steps)) is not None]
    if not len(norms) == len(maps) == len(thresholds) or len({one.shift for one in norms}) > 1:
        return None
    if apart and shape.thresholds != thresholds:
        return None
    lanes = list(zip(thresholds, norms, strict=True))
    parts = [[lane] for lane in lanes] if case.rule.bounded else [lanes]
    total = sum(_best_chain(case, part) for part in parts)
    return norms[0].rounded(total, len(norms)) * (4 if case.formal else 1)


# --- What a filter with an offset makes of a series ------------------------------------------------------------------


@dataclass(frozen=True)
class OffsetNorm:
    """`|M f|^2 <= f'Gf - offset n^2` for every f >= 0 whose values add up to n, M before it is divided and rounded.

    Attributes:
        lags: the entries of G by distance; but for the first none is positive.
        offset: what is taken off, not negative.
        shift: M is applied in parts of 2^shift, rounded.
    """

    lags: tuple[int, ...]
    offset: int
    shift: int

    def rounded(self, total: int, thresholds: int) -> int:
        """From the sum of `|M f|^2` over thresholds, each f of zeros and ones, to that of what is measured.

        Proof. With M as it is before it is divided what is measured moves by `2^-shift M f + e`. Each entry is rounded
        by at most 1/2, so `|e_t| <= t / 2`. Over all thresholds the norm is at most the root of the sum of
        `|M f|^2 / 4^shift` and the root of that of `|e|^2`; both are rounded up. Parts of 2^0 are not rounded. QED.
        """
        if not self.shift:
            return total
        squares = sum(place**2 for place in range(1, len(self.lags) + 1))
        return (isqrt(total >> 2 * self.shift) + 1 + isqrt(thresholds * squares // 4) + 1) ** 2


def norm_of(measured: IntegerMap, steps: int | None) -> OffsetNorm | None:
    """What a map makes of a series; None where it has not a row for every step, or the proof is not for it."""
    match measured:
        case MatrixCounter(weights=matrix) if matrix.shape == (steps, steps):
            norm: OffsetNorm | None = matrix_norm(matrix)
        case OffsetFilter() if measured.length == steps:
            norm = offset_norm(measured)
        case _:
            return None
    return norm if norm is not None and max((0, *norm.lags[1:])) == 0 else None


def matrix_norm(weights: NDArray[np.int64]) -> OffsetNorm:
    """What a matrix of weights on the increments makes of a series.

    Proof. It moves what is measured by `M f`, `M = E D` with E the `weights`, so it costs `f'Af`, `A = M'M` in exact
    integers (`gram`). With `a_d` the largest entry of A at distance d from the diagonal (`largest_by_distance`), and
    any c >= 0,

        f'Af <= sum_{s,t} a_|s-t| f_s f_t = f'Gf - c n^2,   G_st = r_|s-t|,  r_d = a_d + c,

    since `f_s f_t >= 0`. c is the largest that makes no `r_d`, d >= 1, positive, or 0 if some `a_d` is. QED.
    """
    majorant = largest_by_distance(gram(weights))
    offset = max(0, -max(majorant[1:], default=0))
    return OffsetNorm(tuple(value + offset for value in majorant), offset, 0)


def offset_norm(measured: OffsetFilter) -> OffsetNorm | None:
    """What `OffsetFilter` makes of a series, from its integers; None where the conditions of the proof do not hold.

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


# --- Chains ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Lane:
    """One threshold of those that are bounded together.

    Attributes:
        k: the threshold.
        lags: r, in parts of `2^shift`, rounded up.
        offset: c, as it is.
        places: m, the most ones that its series may have.
        runs: R, the most runs, where a rule of counting bounds them.
    """

    k: int
    lags: Lags
    offset: int
    places: int
    runs: int | None

    def allowed(self, price: int, run_price: int) -> int:
        """`max (P x - c x^2) + Q R` over all real x in 0..m, rounded up."""
        exact, runs = price << self.lags.shift, run_price * (self.runs or 0) << self.lags.shift
        if exact < 2 * self.offset * self.places:
            return runs - (-(exact**2) // (4 * self.offset))
        return runs + exact * self.places - self.offset * self.places**2


def _best_chain(case: Case, part: Sequence[tuple[int, OffsetNorm]]) -> int:
    """The bound of thresholds that are bounded together, before it is rounded up for what is applied."""
    steps, ruled = case.horizon, case.rule.bounded
    runs = [runs_by_rule(case.rule, k, most_runs(k, case.length, steps)) if ruled else None for k, _ in part]
    if runs == [0]:
        return 0  # no item is ever counted
    fitted = [
        Lags.fitting([len(part) * lag for lag in norm.lags], most or 1).shift
        for (_, norm), most in zip(part, runs, strict=True)
    ]
    lanes = tuple(
        Lane(
            k,
            Lags.in_parts(norm.lags, max(fitted)),
            norm.offset,
            places_by_rule(case.rule, k, case.length, steps),
            most,
        )
        for (k, norm), most in zip(part, runs, strict=True)
    )
    question = Question("rolling-chains-item", lanes[-1].k, (lanes, case.length))
    limits = [(0, lane.lags.values[0]) for lane in lanes]
    prices = ask(case.advise, question, [*limits, (0, steps * limits[0][1] if ruled else 0)])
    return chain_bound(lanes, case.length, prices)


def chain_bound(lanes: Sequence[Lane], length: int, prices: Sequence[int]) -> int:
    """What no history costs more than, by a price for the ones of each threshold and, last, one for runs.

    *Sums fit into 64 bits.* Runs are worth a whole number of parts of `2^shift`, r rounded up, which raises q and
    leaves it concave. With S the sum of absolute lags in these parts, `0 <= P <= r_0 <= S` and `0 <= Q <= T r_0`, runs
    that share T places are worth at most `3 T S + R T S` either way; a chain, whose worth is never below 0, adds one to
    it. Over m thresholds this is at most `6 m T S + R m T S`, and `4 m T (R + 1) S < 2^58` before r_0 is rounded up,
    with R = 1 where Q is 0.
    """
    *of_ones, of_runs = prices
    places = np.arange(lanes[0].lags.length + 1)
    inner, last, free = np.zeros_like(places), np.zeros_like(places), 0
    for lane, price in zip(lanes, of_ones, strict=True):
        free += lane.allowed(price, of_runs)
        worth = np.array(lane.lags.norms(), dtype=np.int64) - price * places - of_runs * (places > 0)
        inner += worth_inside(worth, lane.k, length, last=False, most=lane.runs)[0]
        last += worth_inside(worth, lane.k, length, last=True, most=lane.runs)[0]
    most, *_ = best_chain_of_runs(inner, last, length)
    return free + (int(most) << lanes[0].lags.shift)


def most_runs_inside(k: int, length: int, places: int, *, last: bool) -> int:
    """The most runs for threshold k in a run of `places` places (module docstring); `last`: it may be cut off."""
    later = max(0, places - (length + 1 if last else 2 * length))
    cycles, rest = divmod(later, length + 1)
    return min((places + 1) // 2, 1 + k * cycles + min(k, (rest + 1) // 2))


def worth_inside(
    worth: Values, k: int, length: int, *, last: bool, most: int | None = None
) -> tuple[Values, NDArray[np.int64]]:
    """The most that the runs of one threshold are worth inside a run of h of n places, n = 0..N.

    Args:
        worth: of one run of n places, n = 0..N: concave in n >= 1, and 0 for n = 0.
        k: the threshold; for 1 it is the run itself.
        length: W.
        last: the run of h may be cut by the end of the range.
        most: the most runs of f, if they are bounded beside.

    Returns:
        The most, and how many places are 1 then, each of shape (N + 1,).

    Proof. s runs in n places hold `m <= n-s+1` places together, as a place is free between two. For a given m the most
    even split is worth the most, since `worth` is concave. Its worth does not decrease in m as long as no run of it is
    longer than the l that is worth the most, so `m = min(n-s+1, s l)` is best. QED.
    """
    lengths = np.arange(len(worth))
    if k == 1:
        return worth, lengths
    runs = _most_runs(k, length, len(worth), last=last)
    runs = runs if most is None else np.minimum(runs, most)
    best, held, best_length = np.zeros_like(worth), np.zeros_like(lengths), int(worth.argmax())
    for count in range(1, int(runs.max()) + 1 if best_length else 0):
        fit = lengths[runs >= count]
        ones = np.minimum(fit - count + 1, count * best_length)
        size, longer = np.divmod(ones, count)
        split = (count - longer) * worth[size] + longer * worth[np.minimum(size + 1, len(worth) - 1)]
        better = split > best[fit]
        best[fit[better]], held[fit[better]] = split[better], ones[better]
    return best, held


@lru_cache(maxsize=16)
def _most_runs(k: int, length: int, count: int, *, last: bool) -> NDArray[np.int64]:
    """`most_runs_inside` of 0..count-1 places: prices are searched for on the same places many times."""
    runs = np.array([most_runs_inside(k, length, places, last=last) for places in range(count)])
    runs.flags.writeable = False
    return runs


def best_chain_of_runs(inner: Values, last: Values, length: int) -> tuple[Any, list[int], int]:
    """The most that a chain of runs in N places is worth, 0 for none; its inner runs' lengths, and the last one's.

    Args:
        inner: what a run of n places is worth that ends within the range, n = 0..N.
        last: what the last one is worth, which the end of the range may cut; no less.
        length: W, the least places of an inner run.

    Found by dynamic programming over where the free place after an inner run lies.
    """
    places = len(inner) - 1
    best, run = np.zeros_like(inner), [0] * (places + 1)
    for end in range(1, places + 1):
        best[end] = best[end - 1]
        if end > length:
            # A run of n = W..end-1 places and a free one.
            ended = best[end - 1 - length :: -1] + inner[length:end]
            longest = int(ended.argmax())
            if ended[longest] > best[end]:
                best[end], run[end] = ended[longest], length + longest
    cut = best[places - 1 :: -1] + last[1:]
    longest = int(cut.argmax())
    most, cut_run = (cut[longest], longest + 1) if cut[longest] > best[places] else (best[places], 0)
    chain, end = [], places - cut_run
    while end > 0:
        chain += [run[end]] if run[end] else []
        end -= run[end] + 1
    return most, chain, cut_run
