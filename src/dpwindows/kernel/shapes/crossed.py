"""Any windows: in each block of starts a filtered counter for every start and one for every end."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpwindows.ask.queries import WindowFamily
from dpwindows.ask.windows import Answers, longest_window
from dpwindows.kernel.advice import Advise
from dpwindows.kernel.certify import Certificate, NotCertifiedError
from dpwindows.kernel.certify import crossed as certified
from dpwindows.kernel.designs import Shape
from dpwindows.kernel.families.lines import CrossedBlock
from dpwindows.kernel.maps.crossed import CrossedFilters
from dpwindows.kernel.maps.integer_maps import IntArray
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.shapes.blocks import Block, blocks_of


@dataclass(frozen=True)
class Crossed(Shape):
    """Crossed counters in blocks of `width` starts; a line of n windows has the weight `weights[n - 1]`.

    Windows with a > b, which no item changes, are measured as well where a block holds them: the pattern of a full
    block is what makes least squares cheap.
    """

    width: int
    taps: tuple[int, ...]
    weights: tuple[int, ...]

    def list_blocks(self, window: WindowFamily, steps: int) -> list[tuple[Block, CrossedFilters]]:
        """The blocks and their maps, one map for all blocks of a form."""
        return _blocks(self, longest_window(window, steps), steps)

    def certify(self, problem: Problem, horizon: int | None, advise: Advise) -> Certificate:
        """The certificate of all lines of all blocks.

        Raises:
            NotCertifiedError: no proof covers it, or a line has no weight.
        """
        if len(self.weights) < min(self.width + longest_window(problem.window, problem.steps) - 1, problem.steps):
            raise NotCertifiedError(problem, self)
        blocks = self.list_blocks(problem.window, problem.steps)
        lines = [CrossedBlock(block.first, own.start_weights, own.end_weights) for block, own in blocks]
        return Certificate(
            *certified(problem, self.taps, self.weights, lines), moved=self.rows(problem.window, problem.steps)
        )

    def rows(self, window: WindowFamily, steps: int) -> int:
        return sum(own.rows for _, own in self.list_blocks(window, steps))

    def encode(self, window: WindowFamily, answers: Answers, k: int) -> IntArray:
        """Each block's map applied to its exact answers, one block after another."""
        return np.concatenate(
            [
                own.encode(answers.windows(k, block.first, block.starts, block.first, block.ends))
                for block, own in self.list_blocks(window, answers.steps)
            ]
        )


@lru_cache(maxsize=16)
def _blocks(shape: Crossed, longest: int, steps: int) -> list[tuple[Block, CrossedFilters]]:
    def weigh(lengths: list[int]) -> tuple[int, ...]:
        return tuple(shape.weights[length - 1] for length in lengths)

    maps: dict[tuple[int, int], CrossedFilters] = {}
    blocks = blocks_of(steps, longest, shape.width)
    for block in blocks:
        if (block.starts, block.ends) not in maps:
            # How many windows (a <= b) each start's line and each end's line holds.
            along_ends = [block.ends - start for start in range(block.starts)]
            along_starts = [min(end, block.starts) for end in range(1, block.ends + 1)]
            form = CrossedFilters(shape.taps, weigh(along_ends), weigh(along_starts), longest)
            maps[block.starts, block.ends] = form
    return [(block, maps[block.starts, block.ends]) for block in blocks]
