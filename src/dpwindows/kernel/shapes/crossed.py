"""Any windows: in each block of starts a filtered counter for every start and one for every end, read together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpwindows.ask.windows import Answers, longest_window
from dpwindows.kernel.certify import Certificate
from dpwindows.kernel.certify import crossed as certified
from dpwindows.kernel.families.lines import CrossedBlock
from dpwindows.kernel.maps.crossed import CrossedFilters
from dpwindows.kernel.maps.integer_maps import FloatArray, IntArray
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.shapes.blocks import Block, blocks_of
from dpwindows.kernel.shapes.design import Design


@dataclass(frozen=True)
class CrossedDesign(Design):
    """Any windows: in each block of starts, crossed counters with weights `scale (windows on the line / most)^power`.

    Windows with a > b, which no item changes, are measured as well where a block holds them: the pattern of a full
    block is what makes least squares cheap.
    """

    problem: Problem
    taps: tuple[int, ...]
    width: int
    power: float
    weight_scale: int
    parameters: Mapping[str, Any]
    strategy: str = "crossed-counters"

    @cached_property
    def blocks(self) -> list[tuple[Block, CrossedFilters]]:
        """The blocks and their maps, one map for all blocks of a shape."""
        longest = longest_window(self.problem.window, self.problem.steps)
        maps: dict[tuple[int, int], CrossedFilters] = {}
        found = blocks_of(self.problem.steps, longest, self.width)
        for block in found:
            if (block.starts, block.ends) not in maps:
                start_weights, end_weights = (self._weights(lengths) for lengths in _lengths(block))
                maps[block.starts, block.ends] = CrossedFilters(self.taps, start_weights, end_weights, longest)
        return [(block, maps[block.starts, block.ends]) for block in found]

    def _weights(self, lengths: Iterable[int]) -> tuple[int, ...]:
        most = min(self.width + longest_window(self.problem.window, self.problem.steps) - 1, self.problem.steps)
        # A negative power favours short lines: the largest weight is `scale` either way.
        largest = max(1.0, most**-self.power)
        return tuple(max(1, round(self.weight_scale * (n / most) ** self.power / largest)) for n in lengths)

    @cached_property
    def certificate(self) -> Certificate:
        """The certificate of all lines of all blocks."""
        lines = [CrossedBlock(block.first, found.start_weights, found.end_weights) for block, found in self.blocks]
        bound, proof = certified(self.problem, self.taps, lines)
        return Certificate(bound, proof, moved=self.rows)

    @property
    def rows(self) -> int:
        return sum(found.rows for _, found in self.blocks)

    def encode(self, answers: Answers, k: int) -> IntArray:
        """Each block's map applied to its exact answers, one block after another."""
        return np.concatenate(
            [
                found.encode(answers.windows(k, block.first, block.starts, block.first, block.ends))
                for block, found in self.blocks
            ]
        )

    def decode(self, measured: FloatArray) -> FloatArray:
        """Least squares in each block, then the windows that were asked for."""
        return np.concatenate(
            [
                self._asked(block, found.decode(part))
                for (block, found), part in zip(self.blocks, self._split(measured), strict=True)
            ]
        )

    def _split(self, measured: FloatArray) -> Iterator[FloatArray]:
        position = 0
        for _, found in self.blocks:
            yield measured[position : position + found.rows]
            position += found.rows

    def _asked(self, block: Block, square: FloatArray) -> FloatArray:
        longest = longest_window(self.problem.window, self.problem.steps)
        spans = np.arange(block.ends)[None, :] - np.arange(block.starts)[:, None]
        return square[(spans >= 0) & (spans < longest)]

    def variance(self) -> FloatArray:
        """The maps', for the windows that were asked for."""
        return self._variance

    @cached_property
    def _variance(self) -> FloatArray:
        known = {found: found.variance() for found in {found for _, found in self.blocks}}
        return np.concatenate([self._asked(block, known[found]) for block, found in self.blocks])

    def fourth_moment(self) -> FloatArray | None:
        """The maps', or None where one is too large for it."""
        return self._fourth_moment

    @cached_property
    def _fourth_moment(self) -> FloatArray | None:
        known = {found: found.fourth_moment() for found in {found for _, found in self.blocks}}
        parts = [(block, moment) for block, found in self.blocks if (moment := known[found]) is not None]
        if len(parts) < len(self.blocks):
            return None
        return np.concatenate([self._asked(block, moment) for block, moment in parts])


def _lengths(block: Block) -> tuple[range, list[int]]:
    """How many windows (a <= b) each start's line and each end's line holds in a block."""
    ends = [min(end, block.starts) for end in range(1, block.ends + 1)]
    return range(block.ends, block.ends - block.starts, -1), ends
