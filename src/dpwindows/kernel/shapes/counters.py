"""Any windows: one integer map along the windows of every start."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpwindows.ask.windows import Answers, longest_window
from dpwindows.kernel.certify import Certificate, NotCertifiedError
from dpwindows.kernel.certify import counters as certified
from dpwindows.kernel.maps.integer_maps import FloatArray, IntArray, IntegerMap
from dpwindows.kernel.shapes.blocks import blocks_of
from dpwindows.kernel.shapes.design import NamedDesign


@dataclass(frozen=True)
class CountersDesign(NamedDesign):
    """Any windows: for every start, the counts of the windows from it on as one series over their length.

    With `causal` maps only the rows of lengths that exist are measured; otherwise the series of late starts are
    continued past the horizon by their last value, which adds no change and so no cost.
    """

    map: IntegerMap = field(kw_only=True)
    causal: bool = field(kw_only=True)

    @cached_property
    def certificate(self) -> Certificate:
        """The certificate of the map for every start.

        Raises:
            NotCertifiedError: no proof covers it, or the map is not as long as the longest window.
        """
        if self._longest != longest_window(self.problem.window, self.problem.steps):
            raise NotCertifiedError(self.problem, self.map)
        return Certificate(*certified(self.problem, self.map, self._longest, self.problem.steps, cut=self.causal))

    @property
    def _longest(self) -> int:
        return self.map.length

    @cached_property
    def _exists(self) -> NDArray[np.bool_]:
        lengths = np.arange(1, self._longest + 1)
        return lengths[:, None] <= self.problem.steps - np.arange(self.problem.steps)[None, :]

    @cached_property
    def _measured(self) -> NDArray[np.bool_]:
        return self._exists if self.causal else np.ones((self.map.rows, self.problem.steps), dtype=np.bool_)

    @property
    def rows(self) -> int:
        return int(self._measured.sum())

    def encode(self, answers: Answers, k: int) -> IntArray:
        by_length = []
        for block in blocks_of(self.problem.steps, self._longest, max(self._longest, 256)):
            square = answers.windows(k, block.first, block.starts, block.first, block.ends)
            starts = np.arange(block.starts)
            ends = np.minimum(starts[None, :] + np.arange(self._longest)[:, None], block.ends - 1)
            by_length.append(square[starts[None, :], ends])
        return self.map.encode(np.concatenate(by_length, axis=1))[self._measured]

    def decode(self, measured: FloatArray) -> FloatArray:
        """The estimates of all windows: the map's left inverse for each start."""
        full = np.zeros(self._measured.shape)
        full[self._measured] = measured
        return self._asked(self.map.decode(full))

    def _asked(self, by_length: FloatArray) -> FloatArray:
        return by_length.T[self._exists.T]

    def variance(self) -> FloatArray:
        """Variance of each window's estimate, which depends on its length alone, shape (windows,)."""
        return self._by_length(self._length_variance)

    @cached_property
    def _length_variance(self) -> FloatArray:
        """The same, shape (longest,)."""
        return self.map.variance()

    def fourth_moment(self) -> FloatArray | None:
        moment = self.map.fourth_moment()
        return None if moment is None else self._by_length(moment)

    def _by_length(self, values: FloatArray) -> FloatArray:
        """The value of each window's length, for every window."""
        return self._asked(np.broadcast_to(values[:, None], self._exists.shape))
