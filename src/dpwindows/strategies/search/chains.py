"""The best chain of runs and gaps of some lengths, for one price after the other: searched, and not proved.

What `kernel.families.run_patterns.neighbour_bound` counts, with the chain itself.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpwindows.kernel.dearest_path import Table
from dpwindows.kernel.families.run_patterns import Lags

# Less than any value that can be reached.
_NEVER = -(1 << 61)


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
) -> tuple[int, list[int]]:
    """The best chain of runs with lengths from `sizes` and gaps from `widths`, as `n_1, g_1, n_2, ...`.

    Its value is `sum q(n_i) + sum 2 c - place_price (sum n_i + sum g_i) - price sum n_i`; a gap wider than `widest`,
    if that is given, counts as `widest + 1` places that no pair spans.
    """
    lags.require_price(place_price)
    lags.require_price(price)
    norms, pairs = _pairs_across(lags, tuple(sizes.tolist()), tuple(widths.tolist()))
    alone = norms[sizes] - (place_price + price) * sizes
    gaps, worth = widths, pairs
    if widest is not None:
        # One gap more stands for all wider ones, with 0 for its pairs; not where lags beyond are positive.
        widest = max(widest, max(distance for distance, lag in enumerate(lags.values) if lag > 0 or distance == 0))
        few = int(np.searchsorted(widths, widest, side="right"))
        far = np.where(np.add.outer(sizes, sizes) + widest + 1 <= lags.length, 0, _NEVER)
        gaps, worth = np.append(widths[:few], widest + 1), np.concatenate([pairs[:few], far[None]])
    worth = worth - place_price * gaps[:, None, None]
    links = np.maximum(worth.max(axis=0), _NEVER)
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
    backwards = [int(sizes[last])]
    for earlier in history[:count][::-1]:
        following, last = last, int((links[last] + earlier).argmax())
        backwards += [int(gaps[worth[:, last, following].argmax()]), int(sizes[last])]
    return value, backwards[::-1]


# Prices are tried one after the other with the same lags.
@lru_cache(maxsize=2)
def _pairs_across(lags: Lags, sizes: tuple[int, ...], widths: tuple[int, ...]) -> tuple[Table, Table]:
    """The norms, and `2 c(n, g, n')` by gap and the lengths beside it; `_NEVER` where they do not fit in."""
    norms, length = np.array(lags.norms(), dtype=np.int64), lags.length
    runs, gaps = np.array(sizes, dtype=np.int64), np.array(widths, dtype=np.int64)
    totals = runs[:, None] + runs + gaps[:, None, None]
    beside = norms[np.minimum(gaps[:, None] + runs, length)]
    pairs = norms[np.minimum(totals, length)] - beside[:, :, None] - beside[:, None, :] + norms[gaps][:, None, None]
    pairs[totals > length] = _NEVER
    return norms, pairs
