"""Any windows: in each block of starts a filtered counter for every start and one for every end.

A block is an array `x` of shape (starts, ends). With `L` the causal filter of the integer taps (lower-triangular
Toeplitz, of the size of the axis), `J` the reversal of starts, and whole weights r on starts and c on ends, measured
are

    rows     y[a, :] = r_a L x[a, :]          for every start, along ends from the first to the last
    columns  z[:, b] = c_b L J x[:, b]        for every end, along starts from the last to the first

so the matrix M has twice as many rows as columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpwindows.ask.queries import AnyWindow, WindowFamily
from dpwindows.ask.windows import Answers, longest_window
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE
from dpwindows.kernel.designs import Shape
from dpwindows.kernel.families.lines import Line, Lines, filter_costs, lines_bound
from dpwindows.kernel.families.starts import Block, blocks_of
from dpwindows.kernel.maps.filters import convolve_exactly
from dpwindows.kernel.maps.integer_maps import IntArray, widen
from dpwindows.kernel.rules import ITEM_UNITS, Case, rule


@dataclass(frozen=True)
class CrossedFilters:
    """The map for a block of `len(start_weights)` starts and `len(end_weights)` ends; taps[0] and weights positive.

    The first end is that of the first start. Windows of at most `longest` steps are asked for (default: all).
    """

    taps: tuple[int, ...]
    start_weights: tuple[int, ...]
    end_weights: tuple[int, ...]
    longest: int | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """How many starts and how many ends the block has."""
        return len(self.start_weights), len(self.end_weights)

    @property
    def rows(self) -> int:
        starts, ends = self.shape
        return 2 * starts * ends

    def encode(self, exact: IntArray) -> IntArray:
        """Weighted and filtered rows, then columns; exact integers of shape (rows,).

        Weighing comes first, in a type wide enough for it; `convolve_exactly` widens what it gets as it needs.
        """
        taps = np.array(self.taps, dtype=object)
        wide = widen(exact, max(*self.start_weights, *self.end_weights))
        by_start = wide * np.array(self.start_weights, dtype=wide.dtype)[:, None]
        by_end = wide * np.array(self.end_weights, dtype=wide.dtype)[None, :]
        along_ends = convolve_exactly(taps, by_start.T).T
        along_starts = convolve_exactly(taps, by_end[::-1])
        return np.concatenate([along_ends.ravel(), along_starts.ravel()])


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

    def is_for(self, case: Case) -> bool:
        """Every line has a weight."""
        steps = case.problem.steps
        return len(self.weights) >= min(self.width + longest_window(case.problem.window, steps) - 1, steps)

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


@rule("windows-on-lines", AnyWindow, ITEM_UNITS, (GAUSSIAN, LAPLACE), Crossed, when="positive weights")
def crossed_lines_bound(case: Case) -> int | None:
    """Any windows at item level: in each block a forward line for every start and a backward line for every end."""
    shape: Crossed = case.measured
    steps, power = case.problem.steps, case.power
    if min(shape.weights) < 1 or case.span is None:
        return None
    blocks = shape.list_blocks(case.problem.window, steps)
    costs = filter_costs(shape.taps, max(block.ends for block, _ in blocks), power, formal=case.formal)
    return lines_bound(crossed_lines(blocks, power, case.span, steps), costs, len(case.thresholds))


def crossed_lines(blocks: Sequence[tuple[Block, CrossedFilters]], power: int, span: int, steps: int) -> Lines:
    """Forward lines of all starts and backward lines of all ends of every block, within the horizon."""
    lines = []
    for block, measured in blocks:
        first = block.first
        for place, weight in enumerate(measured.start_weights):
            lines.append(Line(first + place, first + block.ends - 1, block.ends - place, abs(weight) ** power))
        for place, weight in enumerate(measured.end_weights):
            lines.append(Line(first, first + place, min(place + 1, block.starts), abs(weight) ** power, backward=True))
    span = min(span, steps)
    return Lines(lines, range(1, steps - span + 2), span)
