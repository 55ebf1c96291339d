r"""Rolling counts for several thresholds at item level, each through a map of its own, bounded together.

One history makes the changes of all thresholds. An item that comes and goes is seldom counted often, and one that is
counted often is there all the time: bounds for each threshold by itself add up two worst items that are never one.

Rolling windows of `W` steps over `N` places. h is the 0/1 series of an item being counted for the threshold 1, whether
that is measured or not, and f the one for a larger threshold k. An item that is counted k times is counted once, so f
is 1 only where h is.

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

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpwindows.ask.counting_rule import EVERY_OCCURRENCE
from dpwindows.ask.queries import Rolling, WindowFamily
from dpwindows.ask.windows import Answers
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.advice import Question, ask
from dpwindows.kernel.designs import StepAnswers, StepShape
from dpwindows.kernel.families.offset_patterns import OffsetNorm, norm_of
from dpwindows.kernel.families.run_patterns import Lags, PriceOfOnes
from dpwindows.kernel.families.series import Series
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
    "rolling-thresholds-item",
    Rolling,
    ITEM_UNITS,
    GAUSSIAN,
    SeriesByThreshold,
    when="maps of one kind with a row for every step, no products of unlike rows above 0, no rule of counting",
)
def rolling_thresholds_l2(case: Case) -> int | None:
    """Rolling counts, one item added or removed or changed arbitrarily: a matrix for each threshold.

    Maps are matrices of weights on increments, or filters with a common offset, all of one kind.

    Proof. *Added or removed.* For each threshold k the change is f_k, a 0/1 series of n_k ones. With c >= 0 and
    `G_st = r_|s-t|` of `matrix_norm` or `offset_norm` (whose rounding `OffsetNorm.rounded` pays for) it costs at most,
    for any price P >= 0 (`rolling_offset_add_remove_l2`),

        max_{0 <= x <= T} (P x - c x^2) + f'Gf - P n_k.

    No r_d, d >= 1, is positive: this is checked. So pairs of ones in different runs of f_k only lower f'Gf, which is at
    most the sum over its runs of `q(l) = l r_0 + 2 sum_{0<d<l} (l-d) r_d`, and q is concave: its second differences are
    `2 r_l <= 0`. So is `q(l) - P l`, what a run of l places is worth. Summed over thresholds, with their own matrices
    and prices, this is a sum over the runs of f_1, and in each over the runs of the f_k inside it: at most the best
    chain (module docstring).
    *Sums fit into 64 bits.* Runs are worth a whole number of parts of `2^shift`, r rounded up, which raises q and
    leaves it concave. With S the sum of absolute lags in these parts and `0 <= P <= r_0 <= S`, a run of l places is
    worth at most `3 l S` either way, and runs that share T places at most `3 T S`; a chain adds up at most twice as
    many places while it splits them. Over m thresholds this is at most `6 m T S`, and `8 m T S < 2^58` before
    r_0 is rounded up.
    *Changed*, within some steps or all: the change is that of one history less that of another, and
    `|a - b|^2 <= 2|a|^2 + 2|b|^2` over all that is measured: four times as much. QED.
    """
    shape: SeriesByThreshold = case.measured
    lanes = [norm_of(one, case.steps) for one in shape.maps]
    norms = [one for one in lanes if one is not None and max((0, *one.lags[1:])) == 0]
    same = shape.thresholds == case.thresholds and len(norms) == len(shape.maps) == len(case.thresholds)
    if not same or len({one.shift for one in norms}) > 1 or case.rule != EVERY_OCCURRENCE:
        return None
    return _best_chain(case, norms)


def _best_chain(case: Case, lanes: list[OffsetNorm]) -> int:
    length, thresholds = case.length, case.thresholds
    steps = len(lanes[0].lags)
    shift = max(Lags.fitting([len(lanes) * lag for lag in one.lags], 1).shift for one in lanes)
    fitted = [Lags(tuple(-(-lag >> shift) for lag in one.lags), shift) for one in lanes]
    about = (tuple((lags, one.offset) for lags, one in zip(fitted, lanes, strict=True)), length, thresholds)
    question = Question("rolling-thresholds-item", max(thresholds), about)
    prices = ask(case.advise, question, [(0, lags.values[0]) for lags in fitted])
    places = np.arange(steps + 1)
    inner, last, free = np.zeros_like(places), np.zeros_like(places), 0
    for k, lags, one, price in zip(thresholds, fitted, lanes, prices, strict=True):
        free += PriceOfOnes(one.offset, steps, shift).of(price)
        worth = np.array(lags.norms(), dtype=np.int64) - price * places
        inner += worth_inside(worth, k, length, last=False)[0]
        last += worth_inside(worth, k, length, last=True)[0]
    most, *_ = best_chain_of_runs(inner, last, length)
    return lanes[0].rounded(free + (int(most) << shift), len(lanes)) * (4 if case.formal else 1)


def most_runs_inside(k: int, length: int, places: int, *, last: bool) -> int:
    """The most runs for threshold k in a run of `places` places (module docstring); `last`: it may be cut off."""
    later = max(0, places - (length + 1 if last else 2 * length))
    cycles, rest = divmod(later, length + 1)
    return min((places + 1) // 2, 1 + k * cycles + min(k, (rest + 1) // 2))


def worth_inside(worth: Values, k: int, length: int, *, last: bool) -> tuple[Values, NDArray[np.int64]]:
    """The most that the runs of one threshold are worth inside a run of h of n places, n = 0..N.

    Args:
        worth: of one run of n places, n = 0..N: concave in n, and 0 for n = 0.
        k: the threshold; for 1 it is the run itself.
        length: W.
        last: the run of h may be cut by the end of the range.

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
