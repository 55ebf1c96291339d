"""The reader of a filter over gaps: first the number of items, then both filters, then the items that windows hold.

With z the noise on the windows' numbers and z_N that on `total N`, the estimate of the window a..b errs by
`(1 - expected(a, b)) z_N / total - sum_{i, j} b_i b_j z(a - i, b + j) / w`, with b the inverse taps, and
`expected(a, b) = offset sum b_i b_j / w` what offset stands for: the part of all items that a..b is without.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import scipy

from dpwindows.ask.windows import longest_window
from dpwindows.kernel.designs import Design
from dpwindows.kernel.families.gaps import Gaps
from dpwindows.reading.filters import inverse_taps, invert_filter
from dpwindows.reading.moments import FloatArray
from dpwindows.reading.reader import Coefficients, Reader, Weights, reads


@reads(Gaps)
class GapsReader(Reader):
    """All windows of the range, then those that were asked for.

    Arrays are by start and end, 0 where a window would end before it starts.
    """

    def __init__(self, shape: Gaps, design: Design) -> None:
        super().__init__(design)
        self.map = shape
        # In both orders windows come by start and then by end.
        first, last = np.triu_indices(self.steps)
        self._asked = last - first < longest_window(self.window, self.steps)

    def decode(self, measured: FloatArray) -> FloatArray:
        steps = len(self.map.weights)
        everyone = measured[steps - 1] / self.map.total
        filtered = np.zeros((steps, steps))
        filtered[np.triu_indices(steps)] = measured + self.map.offset * everyone
        by_start = invert_filter(self.map.taps, filtered * self._reciprocals)
        absent = invert_filter(self.map.taps, by_start.T[::-1])[::-1].T
        return np.asarray((everyone - absent)[np.triu_indices(steps)][self._asked])

    def noise_weights(self, coefficients: Coefficients, series: int = 0) -> Weights:
        """`decode` the other way."""
        wanted = np.zeros(len(self._asked))
        wanted[self._asked] = self.canonical(coefficients)
        steps = len(self.map.weights)
        square = np.zeros((steps, steps))
        square[np.triu_indices(steps)] = wanted
        by_start = invert_filter(self.map.taps, square[::-1])[::-1]
        absent = invert_filter(self.map.taps, by_start.T).T * self._reciprocals
        weights = np.asarray(-absent[np.triu_indices(steps)])
        weights[steps - 1] = (wanted.sum() - self.map.offset * absent.sum()) / self.map.total
        return {0: weights}

    def moment(self, power: int) -> FloatArray:
        steps = len(self.map.weights)
        inverse = inverse_taps(self.map.taps, steps)
        moments = _along_both(inverse**power, self._reciprocals**power)
        items = (1 - self.map.offset * _along_both(inverse, self._reciprocals)) / self.map.total
        moments += items**power
        return np.asarray(moments[np.triu_indices(steps)][self._asked])

    @cached_property
    def _reciprocals(self) -> FloatArray:
        """1 / w for every window but that of all steps, whose number is exactly 0."""
        reciprocals = np.zeros((len(self.map.weights), len(self.map.weights)))
        first, last = np.triu_indices(len(self.map.weights))
        reciprocals[first, last] = 1 / np.array(self.map.weights, dtype=np.float64)[last - first]
        reciprocals[0, -1] = 0
        return reciprocals


def _along_both(taps: FloatArray, square: FloatArray) -> FloatArray:
    """`sum taps_i taps_j square(a - i, b + j)`."""
    along = scipy.linalg.toeplitz(taps, np.zeros(len(taps)))
    return np.asarray(along @ square @ along)
