"""Anchored differences: how far a series moved at each position and, now and then, the value itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpwindows.kernel.maps.integer_maps import IntArray, Memory, require_positive, widen


@dataclass(frozen=True)
class AnchoredDifferences:
    """First differences at every position and the value itself at every `every`-th, with integer weights.

    At position t: `step_weight (x_t - x_{t-1})` (`x_0 = 0`), and at an anchor, where `every` divides `t - offset`,
    `anchor_weight x_t` too. A whole series has its differences first and its anchors after them.

    Raises:
        ValueError: the spacing or a weight is not positive.
    """

    every: int
    step_weight: int
    anchor_weight: int
    offset: int = 0

    def __post_init__(self) -> None:
        require_positive(
            "spacing and weights of anchored differences", self.every, self.step_weight, self.anchor_weight
        )

    def is_anchor(self, position: int) -> bool:
        """Whether the value itself is measured at a position."""
        return (position - self.offset) % self.every == 0

    def anchors(self, length: int) -> slice:
        """The places of the anchors in a series, counted from 0."""
        return slice((self.offset - 1) % self.every, length, self.every)

    def rows(self, length: int) -> int:
        return length + len(range(length)[self.anchors(length)])

    def encode(self, exact: IntArray) -> IntArray:
        series = widen(exact, 2 * max(self.step_weight, self.anchor_weight))
        differences = np.diff(series, axis=0, prepend=0)
        anchors = self.anchor_weight * series[self.anchors(len(series))]
        return np.concatenate([self.step_weight * differences, anchors])

    def rows_at(self, position: int) -> int:
        return 2 if self.is_anchor(position) else 1

    def fresh(self, lanes: int) -> Memory:
        """The series is known to be 0 at position 0."""
        return {"exact": np.zeros(lanes, dtype=np.int64)}

    def encode_step(self, position: int, exact: IntArray, memory: Memory) -> tuple[IntArray, Memory]:
        """The weighted difference, and the weighted value at an anchor."""
        wide = widen(np.stack([exact, memory["exact"]]), 2 * max(self.step_weight, self.anchor_weight))
        rows = [self.step_weight * (wide[0] - wide[1])]
        if self.is_anchor(position):
            rows.append(self.anchor_weight * wide[0])
        return np.stack(rows), {"exact": exact.astype(np.int64)}
