"""Prices for every one of each threshold's series, at which `families.chains_of_runs` bounds them nearly best.

The bound is the dual of a concave maximum: over mixtures of histories, of what their runs cost less `c n^2` for the
mean number of ones n of each threshold. The histories that prices bring forth are mixed as well as they can be
(Frank and Wolfe's method, fully corrective); the prices of the best mixture bring forth the next one. Where a rule of
counting bounds runs and ones, a price for each is sought by golden section.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpwindows.kernel.families.chains_of_runs import Lane, best_chain_of_runs, chain_bound, worth_inside
from dpwindows.strategies.search.pattern_search import least

# The most histories, how often their weights are gone through for each, and the gap to the limit that is left.
_HISTORIES, _PASSES, _GAP = 40, 20, 1e-4
# Places that are enough to seek prices in, and windows in them.
_FEW, _WINDOWS = 512, 16
# Steps of a golden section.
_ROUNDS = 11


def good_prices_of_ones(lanes: Sequence[Lane], length: int) -> tuple[int, ...]:
    """A price for the ones of each threshold, and one for runs; none where numbers are beyond those in floating point.

    Args:
        lanes: what is known of each threshold.
        length: the window's length in steps.
    """
    places = lanes[0].lags.length
    # In many places prices are sought in fewer, for what a place is worth is the same there.
    part = min(places, max(_FEW, _WINDOWS * length))
    if lanes[0].runs is not None:
        return _prices_by_rule(lanes[0], length, part)
    try:
        norms = np.array([lane.lags.norms()[: part + 1] for lane in lanes], dtype=np.float64)
        offsets = np.array([lane.offset / (1 << lane.lags.shift) * (places / part) for lane in lanes])
        prices = dearest_mixture(norms, offsets, length, [lane.k for lane in lanes]).prices
        found = [max(0, min(int(price), lane.lags.values[0])) for price, lane in zip(prices, lanes, strict=True)]
        return (*found, 0)
    except (ValueError, OverflowError):
        return ()


def _prices_by_rule(lane: Lane, length: int, part: int) -> tuple[int, int]:
    """Prices for ones and for runs of one threshold, in a part of its places."""
    places, runs = lane.lags.length, lane.runs or 0
    some = replace(
        lane,
        lags=replace(lane.lags, values=lane.lags.values[:part]),
        offset=lane.offset * places // part,
        places=-(-lane.places * part // places),
        runs=-(-runs * part // places),
    )
    of_ones: dict[int, int] = {}

    def at(price: int, of_runs: int) -> int:
        return chain_bound((some,), length, (price, of_runs))

    def cost(of_runs: int) -> int:
        of_ones[of_runs] = least(lambda price: at(price, of_runs), lane.lags.values[0], _ROUNDS)
        return at(of_ones[of_runs], of_runs)

    # No run is worth more than one that fills all places.
    of_runs = least(cost, max(some.lags.norms()), _ROUNDS)
    return of_ones[of_runs], of_runs


@dataclass(frozen=True)
class Mixture:
    """The mixture of histories that costs the most, nearly.

    Attributes:
        prices: of every one, by threshold.
        bound: what no history costs more than.
        costs: what the mixture costs, by threshold.
    """

    prices: NDArray[np.float64]
    bound: float
    costs: NDArray[np.float64]


def dearest_mixture(
    norms: NDArray[np.float64], offsets: NDArray[np.float64], length: int, thresholds: Sequence[int]
) -> Mixture:
    """In floating point; `norms` is of shape (thresholds, T + 1), `offsets` of shape (thresholds,)."""
    prices = best = np.zeros(len(thresholds))
    bound = np.inf
    ones, costs = np.zeros((2, 0, len(thresholds)))
    shares = np.zeros(0)
    for _ in range(_HISTORIES):
        of_each, worth, most = _dearest(norms, prices, length, thresholds)
        reached = most + _allowed(prices, offsets, norms.shape[1] - 1)
        best, bound = (prices, reached) if reached < bound else (best, bound)
        ones, costs = np.vstack([ones, of_each]), np.vstack([costs, worth + prices * of_each])
        shares = _mixed(ones, costs.sum(axis=1), offsets, np.append(shares, 0.0 if len(shares) else 1.0))
        mean = _mean(shares, ones)
        spent = _mean(shares, costs) - offsets * mean**2
        if bound - spent.sum() <= _GAP * bound:
            break
        prices = 2 * offsets * mean
    return Mixture(best, bound, spent)


def _mean(shares: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean of rows. A product of matrices rounds in another way on each machine, and another price is found."""
    return np.asarray((shares[:, None] * values).sum(axis=0))


def _allowed(prices: NDArray[np.float64], offsets: NDArray[np.float64], places: int) -> float:
    """The sum of `max (P x - c x^2)` over x in 0..places."""
    at = np.minimum(places, prices / np.maximum(2 * offsets, np.finfo(float).tiny))
    return float((prices * at - offsets * at**2).sum())


def _dearest(
    norms: NDArray[np.float64], prices: NDArray[np.float64], length: int, thresholds: Sequence[int]
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """For a history that is worth the most at some prices: its ones and its worth by threshold, and in all."""
    places = np.arange(norms.shape[1])
    worth = norms - prices[:, None] * places
    inner, last = (
        [worth_inside(one, k, length, last=cut) for one, k in zip(worth, thresholds, strict=True)]
        for cut in (False, True)
    )
    most, chain, cut_run = best_chain_of_runs(
        np.sum([one for one, _ in inner], axis=0), np.sum([one for one, _ in last], axis=0), length
    )
    ones, values = (
        np.array([held[which][chain].sum() + cut[which][cut_run] for held, cut in zip(inner, last, strict=True)])
        for which in (1, 0)
    )
    return ones.astype(np.float64), values, float(most)


def _mixed(
    ones: NDArray[np.float64],
    costs: NDArray[np.float64],
    offsets: NDArray[np.float64],
    shares: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Shares of histories that make `costs - c n^2` nearly largest: one after another is given its best share."""
    twice = 2 * offsets
    for _ in range(_PASSES):
        before = shares
        for one, (cost, counted) in enumerate(zip(costs.tolist(), ones, strict=True)):
            mean = _mean(shares, ones)
            step = counted - mean
            bend = (twice * step**2).sum()
            if bend > 0:
                gain = cost - (shares * costs).sum() - (twice * mean * step).sum()
                share = shares[one]
                least = -share / (1 - share) if share < 1 else 0.0
                part = float(min(max(gain / bend, least), 1.0))
                shares = (1 - part) * shares
                shares[one] += part
        if np.array_equal(shares, before):
            break
    return shares
