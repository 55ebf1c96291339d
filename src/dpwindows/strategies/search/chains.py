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
# Links that are kept for the next price, in all.
_KEPT = 1 << 20


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
    known = _links_of(lags, tuple(sizes.tolist()), tuple(widths.tolist()))
    alone = known.norms[sizes] - (place_price + price) * sizes
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
    backwards = [int(sizes[last])]
    for earlier in history[:count][::-1]:
        following, last = last, int((links[last] + earlier).argmax())
        backwards += [known.gap(last, following, place_price, near), int(sizes[last])]
    return value, backwards[::-1]


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
