"""The reader of sums over the nodes of a tree, in a stream: as they come, in floating point."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpwindows.kernel.maps.integer_maps import Memory
from dpwindows.kernel.maps.trees import CausalTree
from dpwindows.reading.moments import FloatArray, StepReader


@dataclass(frozen=True)
class TreeStepReader(StepReader):
    """The sum of the estimates of the complete nodes that make up 1..t, each from its own subtree.

    Nodes that are not complete are not measured yet, so this is least squares on everything measured so far.
    """

    map: CausalTree

    def fresh(self, lanes: int) -> Memory:
        """For each level the estimates of nodes since the last one of their parent's level."""
        return {"decoded": np.zeros((self.map.levels, lanes))}

    def decode_step(self, position: int, measured: FloatArray, memory: Memory) -> tuple[FloatArray, Memory]:
        """Precision-weighted sums upward, then the sum of all complete nodes."""
        pending = memory["decoded"].copy()
        own, below = self._shares
        estimate = measured[0] * own[0]
        for level in range(1, len(measured)):
            estimate = below[level] * (pending[level - 1] + estimate) + own[level] * measured[level]
            pending[level - 1] = 0.0
        pending[len(measured) - 1] += estimate
        return pending.sum(axis=0), {"decoded": pending}

    @cached_property
    def _shares(self) -> tuple[list[float], list[float]]:
        """What a node's estimate takes of its own number, and of the sum of its children's estimates."""
        own, below = [1.0 / self.map.weights[0]], [0.0]
        for weight, variance in zip(self.map.weights[1:], self._moments(2), strict=False):
            children = self.map.branching * variance
            precision = 1 / children + weight**2
            own.append(weight / precision)
            below.append(1 / children / precision)
        return own, below

    def _moments(self, power: int) -> list[float]:
        """The moment of one complete node's estimate, for each level."""
        variance = moment = 1.0 / self.map.weights[0] ** 2
        moment = 1.0 / float(self.map.weights[0]) ** power
        moments = [moment]
        for weight in self.map.weights[1:]:
            children = self.map.branching * variance
            variance = 1 / (1 / children + weight**2)
            moment = (variance / children) ** power * self.map.branching * moment + (variance * weight) ** power
            moments.append(moment)
        return moments

    def work_out(self, count: int, power: int) -> FloatArray:
        """By the digits of the position in base `branching`."""
        positions, total = np.arange(1, count + 1), np.zeros(count)
        for level, moment in enumerate(self._moments(power)):
            nodes = positions // self.map.branching**level
            total += (nodes if level == self.map.levels - 1 else nodes % self.map.branching) * moment
        return total
