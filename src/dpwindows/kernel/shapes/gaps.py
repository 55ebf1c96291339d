"""Any windows at item level: every window of the range measured with the windows that contain it (`maps.gaps`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpwindows.ask.windows import Answers, longest_window
from dpwindows.kernel.certify import Certificate
from dpwindows.kernel.certify import gaps as certified
from dpwindows.kernel.maps.gaps import GapFilter
from dpwindows.kernel.maps.integer_maps import FloatArray, IntArray
from dpwindows.kernel.shapes.design import NamedDesign


@dataclass(frozen=True)
class GapDesign(NamedDesign):
    """All windows of the range, of which those that are asked for are read."""

    map: GapFilter = field(kw_only=True)

    @cached_property
    def certificate(self) -> Certificate:
        """The certificate of the map over the gaps of one item.

        Raises:
            NotCertifiedError: no proof covers it.
        """
        return Certificate(*certified(self.problem, self.map), self.rows)

    @property
    def rows(self) -> int:
        return self.map.rows

    @cached_property
    def _asked(self) -> NDArray[np.bool_]:
        """Which of all windows are asked for; in both orders they come by start and then by end."""
        first, last = np.triu_indices(self.map.steps)
        return np.asarray(last - first < longest_window(self.problem.window, self.problem.steps))

    def encode(self, answers: Answers, k: int) -> IntArray:
        """The map applied to the counts of all windows."""
        return self.map.encode(answers.windows(k, 1, self.map.steps, 1, self.map.steps))

    def decode(self, measured: FloatArray) -> FloatArray:
        """Both filters undone, then the windows that were asked for."""
        return self.map.decode(measured)[self._asked]

    def noise_weights(self, combination: FloatArray) -> FloatArray:
        """What a combination of the estimates puts on each number measured: `decode`, transposed."""
        wanted = np.zeros(self.rows)
        wanted[self._asked] = combination
        return self.map.transposed(wanted)

    def variance(self) -> FloatArray:
        """The map's, for the windows that were asked for."""
        return self._variance

    @cached_property
    def _variance(self) -> FloatArray:
        return self.map.variance()[self._asked]

    def fourth_moment(self) -> FloatArray:
        """The map's, for the windows that were asked for."""
        return self.map.fourth_moment()[self._asked]
