"""Certified sensitivity of rolling counts for several thresholds at item level, each through a matrix of its own.

One history makes the changes of all thresholds. An item that comes and goes is seldom counted often, and one that is
counted often is there all the time: bounds for each threshold by itself add up two worst items that are never one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpwindows.kernel.advice import Advise, Question, ask
from dpwindows.kernel.bounds.offset_patterns import OffsetNorm, gram, largest_by_distance, offset_norm
from dpwindows.kernel.bounds.run_patterns import Lags, PriceOfOnes
from dpwindows.kernel.bounds.runs_inside_runs import best_chain_of_runs, worth_inside
from dpwindows.kernel.maps.filters import OffsetFilter
from dpwindows.kernel.proofs import proves


@proves("rolling-thresholds-item")
def rolling_thresholds_l2(
    maps: Sequence[NDArray[np.int64] | OffsetFilter],
    length: int,
    thresholds: Sequence[int],
    advise: Advise,
    *,
    formal: bool,
) -> int:
    """Rolling counts, one item added or removed or changed arbitrarily (`formal`): a matrix for each threshold.

    Matrices of weights on increments, or filters with a common offset, all of one kind.

    Proof. *Added or removed.* For each threshold k the change is f_k, a 0/1 series of n_k ones. It moves what is
    measured by `M_k f_k`, `M_k = E_k D` with E_k the weights, so it costs `f'Af`, `A = M_k'M_k` in exact integers
    (`gram`). As in `rolling_offset_add_remove_l2`, with a_d the largest entry of A at distance d and c >= 0 the largest
    number that makes no `r_d = a_d + c`, d >= 1, positive: `f'Af <= f'Gf - c n_k^2`, G of entries r_|s-t|, and for any
    price P >= 0

        f'Af <= max_{0 <= x <= T} (P x - c x^2) + f'Gf - P n_k.

    Pairs of ones in different runs of f_k only lower f'Gf, so it is at most the sum over its runs of `q(l)`,
    `q(l) = l r_0 + 2 sum_{0<d<l} (l-d) r_d`, and q is concave: its second differences are `2 r_l <= 0`. So is `q(l) -
    P l`, what a run of l places is worth. Summed over thresholds, with their own matrices and prices, this is a sum
    over the runs of f_1, and in each over the runs of the f_k inside it: at most the best chain (`runs_inside_runs`).
    A filter with an offset has such r and c by `offset_norm`, and its rounding is paid for by `OffsetNorm.rounded`.
    *Sums fit into 64 bits.* Runs are worth a whole number of parts of `2^shift`, r rounded up, which raises q and
    leaves it concave. With S the sum of absolute lags in these parts and `0 <= P <= r_0 <= S`, a run of l places is
    worth at most `3 l S` either way, and runs that share T places at most `3 T S`; `runs_inside_runs` adds up at most
    twice as many places while it splits them. Over m thresholds this is at most `6 m T S`, and `8 m T S < 2^58` before
    r_0 is rounded up.
    *Changed arbitrarily*: the change is that of one history less that of another, and `|a - b|^2 <= 2|a|^2 + 2|b|^2`
    over all that is measured: four times as much. QED.

    Args:
        maps: E_k or filters, one for each threshold, each of T rows; beyond the last one nothing is measured.
        length: the window's length W in steps.
        thresholds: the thresholds, ascending.
        advise: who is asked for prices.
        formal: the item is changed arbitrarily.

    Returns:
        The bound on the squared L2 norm over all thresholds, in squared lattice units.

    Raises:
        ValueError: an entry of some `M_k'M_k` beside the diagonal is positive, or maps are not of one kind.
    """
    lanes = [offset_norm(one) if isinstance(one, OffsetFilter) else _norm(one) for one in maps]
    if len({one.shift for one in lanes}) > 1 or any(one.offset < 0 or max((0, *one.lags[1:])) > 0 for one in lanes):
        raise ValueError("an entry of a matrix's square beside its diagonal is positive, or maps are not of one kind")
    steps = len(lanes[0].lags)
    shift = max(Lags.fitting([len(lanes) * lag for lag in one.lags], 1).shift for one in lanes)
    fitted = [Lags(tuple(-(-lag >> shift) for lag in one.lags), shift) for one in lanes]
    about = (tuple((lags, one.offset) for lags, one in zip(fitted, lanes, strict=True)), length, tuple(thresholds))
    question = Question("rolling-thresholds-item", max(thresholds), about)
    prices = ask(advise, question, [(0, lags.values[0]) for lags in fitted])
    places = np.arange(steps + 1)
    inner, last, free = np.zeros_like(places), np.zeros_like(places), 0
    for k, lags, one, price in zip(thresholds, fitted, lanes, prices, strict=True):
        free += PriceOfOnes(one.offset, steps, shift).of(price)
        worth = np.array(lags.norms(), dtype=np.int64) - price * places
        inner += worth_inside(worth, k, length, last=False)[0]
        last += worth_inside(worth, k, length, last=True)[0]
    most, *_ = best_chain_of_runs(inner, last, length)
    return lanes[0].rounded(free + (int(most) << shift), len(lanes)) * (4 if formal else 1)


def _norm(weights: NDArray[np.int64]) -> OffsetNorm:
    """Of a matrix of whole numbers, as `rolling_offset_add_remove_l2`."""
    majorant = largest_by_distance(gram(weights))
    offset = -max(majorant[1:], default=0)
    return OffsetNorm(tuple(value + offset for value in majorant), offset, None)
