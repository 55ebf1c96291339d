"""Certified sensitivity of rolling counts for several thresholds at item level, each through a matrix of its own.

One history makes the changes of all thresholds. An item that comes and goes is seldom counted often, and one that is
counted often is there all the time: bounds for each threshold by itself add up two worst items that are never one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from dpwindows.kernel.advice import Advise, Question, ask
from dpwindows.kernel.bounds.offset_patterns import gram, largest_by_distance
from dpwindows.kernel.bounds.run_patterns import PriceOfOnes
from dpwindows.kernel.bounds.runs_inside_runs import Values, best_chain_of_runs, worth_inside
from dpwindows.kernel.proofs import proves

# No price is worth more.
_HIGHEST_PRICE = 1 << 256


@proves("rolling-thresholds-item")
def rolling_thresholds_l2(
    weights: Sequence[NDArray[np.int64]], length: int, thresholds: Sequence[int], advise: Advise, *, formal: bool
) -> int:
    """Rolling counts, one item added or removed or changed arbitrarily (`formal`): a matrix for each threshold.

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
    *Changed arbitrarily*: the change is that of one history less that of another, and `|a - b|^2 <= 2|a|^2 + 2|b|^2`
    over all that is measured: four times as much. QED.

    Args:
        weights: E_k, one for each threshold, each of T rows; beyond the last one nothing is measured.
        length: the window's length W in steps.
        thresholds: the thresholds, ascending.
        advise: who is asked for prices.
        formal: the item is changed arbitrarily.

    Returns:
        The bound on the squared L2 norm over all thresholds, in squared lattice units.

    Raises:
        ValueError: an entry of some `M_k'M_k` beside the diagonal is positive.
    """
    lanes = [_norms(matrix) for matrix in weights]
    about = (tuple((tuple(norms.tolist()), offset) for norms, offset in lanes), length, tuple(thresholds))
    question = Question("rolling-thresholds-item", max(thresholds), about)
    prices = ask(advise, question, [(0, _HIGHEST_PRICE)] * len(thresholds))
    places = np.arange(len(lanes[0][0])).astype(object)
    inner, last, free = np.zeros_like(places), np.zeros_like(places), 0
    for k, (norms, offset), price in zip(thresholds, lanes, prices, strict=True):
        free += PriceOfOnes(offset, len(places) - 1, 0).of(price)
        worth = norms - price * places
        inner += worth_inside(worth, k, length, last=False)[0]
        last += worth_inside(worth, k, length, last=True)[0]
    most, *_ = best_chain_of_runs(inner, last, length)
    return int(free + most) * (4 if formal else 1)


def _norms(weights: NDArray[np.int64]) -> tuple[Values, int]:
    """`q(l)` for l = 0..T, in exact integers, and c."""
    majorant = largest_by_distance(gram(weights))
    offset = -max(majorant[1:], default=0)
    if offset < 0:
        raise ValueError("an entry of the matrix's square beside its diagonal is positive")
    first, *others = (value + offset for value in majorant)
    rises = accumulate([first, *(2 * value for value in others)])
    return np.array([0, *accumulate(rises)], dtype=object), offset
