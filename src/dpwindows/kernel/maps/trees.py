"""Trees of sums: increments added up over ever longer blocks, each measured when its last position is reached."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpwindows.kernel.maps.integer_maps import IntArray, Memory, require_positive, widen


@dataclass(frozen=True)
class CausalTree:
    """Sums of increments over the nodes of a `branching`-ary tree, each measured when its last position is reached.

    Level l has the sums over `branching^l` consecutive increments, times the integer `weights_l`.

    Raises:
        ValueError: nodes do not branch, or a weight is not positive: levels might cancel.
    """

    branching: int
    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        require_positive("branches beside the first, and weights of levels,", self.branching - 1, *self.weights)

    @property
    def levels(self) -> int:
        """How many nodes hold any one increment."""
        return len(self.weights)

    def complete(self, position: int) -> int:
        """How many levels have a node that ends at a position."""
        count, size = 1, self.branching
        while count < self.levels and position % size == 0:
            count, size = count + 1, size * self.branching
        return count

    def rows(self, length: int) -> int:
        return sum(self.complete(position) for position in range(1, length + 1))

    def encode(self, exact: IntArray) -> IntArray:
        """Position by position."""
        lanes = exact.reshape(len(exact), -1)
        memory, measured = self.fresh(lanes.shape[1]), []
        for position, values in enumerate(lanes, 1):
            numbers, memory = self.encode_step(position, values, memory)
            measured.append(numbers)
        return np.concatenate(measured).reshape(-1, *exact.shape[1:])

    def rows_at(self, position: int) -> int:
        """One for each node that ends at the position."""
        return self.complete(position)

    def fresh(self, lanes: int) -> Memory:
        """For each level the value at the end of its last complete node."""
        return {"exact": np.zeros((self.levels, lanes), dtype=np.int64)}

    def encode_step(self, position: int, exact: IntArray, memory: Memory) -> tuple[IntArray, Memory]:
        """Weighted node sums, differences of two values of the series; the value, for levels with a node that ends."""
        count = self.complete(position)
        wide = widen(np.concatenate([exact[None], memory["exact"][:count]]), 2 * max(self.weights))
        weights = np.array(self.weights[:count], dtype=wide.dtype)
        ends = memory["exact"].copy()
        ends[:count] = exact.astype(np.int64)
        return np.asarray(weights[:, None] * (wide[0] - wide[1:])), {"exact": ends}
