"""The dearest changes of one item within a period not longer than windows, for k = 1, while a filter is designed.

A change is one run of changed counts, or two of any signs; there are few, so every one is tried. The certificate of the
filter is over all of them, too (`dpwindows.kernel.families.changes_of_two_counts.two_runs_bound`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpwindows.kernel.maps.integer_maps import FloatArray, IntArray
from dpwindows.strategies.search.spectrum import Column, pair_counts

# How many of the dearest are told of each kind, and lengths of runs to begin with.
_TOLD, _BEGUN = 5, 12


@dataclass(frozen=True)
class TwoRuns:
    """The changes for windows of `length` steps within a period of `span`, in `places` window ends."""

    length: int
    span: int
    places: int

    @property
    def first(self) -> list[Column]:
        """Pair counts of single runs, to begin with."""
        lengths = np.unique(np.linspace(1, self.places, _BEGUN).astype(int))
        return [self._pairs(int(ones), 0, 0, 1) for ones in lengths]

    def __call__(self, lags: FloatArray) -> list[Column]:
        """Pair counts at each distance of the dearest changes under an autocorrelation, the dearest last."""
        norms = np.concatenate([[0.0], np.cumsum(np.cumsum(np.concatenate([lags[:1], 2 * lags[1:]])))])
        one, zeros, other = self._pairs_of_runs
        between = norms[one + zeros + other] - norms[one + zeros] - norms[zeros + other] + norms[zeros]
        apart = norms[one] + norms[other]
        worst = [(float(norms[ones]), (ones, 0, 0, 1)) for ones in _places_of_largest(norms, np.arange(1, len(norms)))]
        # Between two runs of one sign the other log counts the item for W ends.
        possible = {-1: np.arange(len(zeros)), 1: np.flatnonzero(zeros >= self.length)}
        for sign, of_them in possible.items():
            costs = apart + sign * between
            places = _places_of_largest(costs, of_them)
            worst += [(float(costs[i]), (int(one[i]), int(zeros[i]), int(other[i]), sign)) for i in places]
        return [self._pairs(*runs) for _, runs in sorted(worst)]

    @cached_property
    def _pairs_of_runs(self) -> tuple[IntArray, IntArray, IntArray]:
        """The lengths of two runs and of the zeros between them, the longer run first; all that fit in."""
        outer = np.arange(1, min(self.span - 1, self.places) + 1)
        zeros = np.arange(self.length + 1 - self.span, self.places - 1)
        one, between, other = np.meshgrid(outer, zeros, outer, indexing="ij")
        fits = (one + between + other <= self.places) & (one >= other)
        return one[fits], between[fits], other[fits]

    def _pairs(self, one: int, zeros: int, other: int, sign: int) -> Column:
        change = np.zeros(self.places)
        change[:one], change[one + zeros : one + zeros + other] = 1, sign
        return pair_counts(change)


def _places_of_largest(costs: FloatArray, of_them: IntArray) -> list[int]:
    """The places of a few of the largest costs among some."""
    if not len(of_them):
        return []
    told = np.argsort(costs[of_them], kind="stable")[-_TOLD:]
    return [int(place) for place in of_them[told]]
