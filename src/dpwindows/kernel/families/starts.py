"""Any windows: starts in blocks, with one map across the starts of a block and one along the ends of its windows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from dpwindows.ask.privacy import EventLevel
from dpwindows.ask.queries import AnyWindow, WindowFamily
from dpwindows.ask.windows import Answers, longest_window
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE
from dpwindows.kernel.certificate import NotCertifiedError
from dpwindows.kernel.designs import StepAnswers, StepShape
from dpwindows.kernel.families.lines import Lines, line_costs, lines_bound, lines_of_starts
from dpwindows.kernel.maps.filters import Filter, Identity
from dpwindows.kernel.maps.integer_maps import CausalMap, IntArray, IntegerMap, Memory, require_positive
from dpwindows.kernel.maps.tent_tree import TentTree
from dpwindows.kernel.maps.trees import CausalTree
from dpwindows.kernel.rules import ITEM_UNITS, Case, rule

# Starts whose windows are read at a time, at least.
_AT_ONCE = 256
_BY_ITSELF = Identity()


@dataclass(frozen=True)
class Block:
    """A rectangle of windows: `starts` first steps from `first` on, `ends` last steps from `first` on."""

    first: int
    starts: int
    ends: int


def blocks_of(steps: int, longest: int, width: int) -> list[Block]:
    """Blocks of `width` starts, each with every end that a window of at most `longest` steps from them can have."""
    return [
        Block(first, min(width, steps - first + 1), min(width + longest - 1, steps - first + 1))
        for first in range(1, steps + 1, width)
    ]


@dataclass(frozen=True)
class Starts(StepShape):
    """For each block of `width` starts, every end that a window of at most `longest` steps from them can have.

    `across` measures the counts of the starts, last start first; `map` measures each of its numbers as a series along
    the ends. A block of one start has one series, that of the windows from it on. A causal map measures the ends that
    exist; in a stream, at every step, that end. A map of the whole series measures late blocks with their series
    continued by its last value (`continued`), which adds no change.

    Raises:
        ValueError: there are no starts in a block, or the map across is for another number of them.
    """

    longest: int
    map: IntegerMap
    continued: bool = False
    width: int = 1
    across: IntegerMap = _BY_ITSELF

    def __post_init__(self) -> None:
        require_positive("starts of a block", self.width)
        self.across.rows(self.width)

    @property
    def causal(self) -> CausalMap:
        """The map of a stream."""
        return self.map  # type: ignore[return-value]

    @property
    def lanes(self) -> int:
        """How many series of ends each block has."""
        return self.across.rows(self.width)

    @property
    def extent(self) -> int:
        """How many ends each block has, as far as the range goes."""
        return self.width + self.longest - 1

    @property
    def by_start(self) -> bool:
        """Whether every start is measured by itself, as a line of windows."""
        return self.width == 1 and self.across == _BY_ITSELF

    def blocks_met(self, horizon: int | None) -> int:
        """The most blocks that hold windows with any one step."""
        return -(-(self.extent if horizon is None else min(self.extent, horizon)) // self.width)

    def is_for(self, case: Case) -> bool:
        """The windows that are asked for are as long as those that are measured."""
        return self.longest == longest_window(case.problem.window, case.steps or self.longest)

    def moved(self, case: Case) -> int:
        """All windows of the starts, or all numbers of the blocks, that a change can meet."""
        if self.by_start:
            return lines_bound(_lines(case), range(self.longest + 1), 1)
        return self.blocks_met(case.steps) * min(self.extent, case.steps or self.extent) * self.lanes

    def _encode_across(self, counts: IntArray) -> IntArray:
        """The map across the counts of a block's starts, last start first; of later ones than are handed in 0."""
        if self.by_start:
            return counts
        missing = np.zeros((self.width - len(counts), *counts.shape[1:]), dtype=np.int64)
        return self.across.encode(np.concatenate([missing, counts]))

    def _rows_of(self, first: int, steps: int) -> int:
        return self.lanes * self.map.rows(self.extent if self.continued else min(self.extent, steps - first + 1))

    def rows(self, window: WindowFamily, steps: int) -> int:
        return sum(self._rows_of(first, steps) for first in range(1, steps + 1, self.width))

    def encode(self, window: WindowFamily, answers: Answers, k: int) -> IntArray:
        """One block after another, in each of them one end after another."""
        encoded = []
        for read in blocks_of(answers.steps, self.longest, -(-max(self.longest, _AT_ONCE) // self.width) * self.width):
            square = answers.windows(k, read.first, read.starts, read.first, read.ends)
            for first in range(0, read.starts, self.width):
                counts = square[first : first + self.width, first : first + self.extent][::-1]
                if self.continued:
                    counts = np.pad(counts, ((0, 0), (0, self.extent - counts.shape[1])), mode="edge")
                encoded.append(self.map.encode(self._encode_across(counts).T).ravel())
        return np.concatenate(encoded)

    # --- Step by step ---

    def reach(self, window: WindowFamily) -> int:
        """The first start of a block is that far from its last end."""
        return self.extent

    def firsts(self, step: int) -> range:
        """The first starts of the blocks that are measured at a step."""
        oldest = max(0, -(-(step - self.extent) // self.width))
        return range(1 + oldest * self.width, step + 1, self.width)

    def open(self, step: int, memory: Memory, empty: Memory) -> Iterator[tuple[int, Memory]]:
        """The first start and the memory of every open block; one that opens at this step has an empty one.

        A memory has a row for each block that was open at the step before: one more in front where one is closed now.
        """
        firsts = self.firsts(step)
        known = len(firsts) - (step in firsts)
        for index, first in enumerate(firsts):
            yield first, {name: memory[name][index - known] if index < known else empty[name] for name in empty}

    def rows_at(self, window: WindowFamily, step: int) -> int:
        return sum(self.lanes * self.causal.rows_at(step - first + 1) for first in self.firsts(step))

    def fresh(self) -> Memory:
        """The memory of no block: arrays of shape (0, ...), to which every block adds a row when it opens."""
        return without_rows(self.causal.fresh(self.lanes))

    def _newest(self, answers: StepAnswers, k: int, first: int) -> IntArray:
        """The numbers across a block's windows that end at the step."""
        back = answers.step - first
        return self._encode_across(answers.recent[k][max(0, back - self.width + 1) : back + 1].astype(np.int64))

    def encode_step(
        self, window: WindowFamily, answers: StepAnswers, k: int, memory: Memory
    ) -> tuple[IntArray, Memory]:
        """What open blocks measure at a step, one after another, and their memories, a row for each."""
        blocks = self.open(answers.step, memory, self.causal.fresh(self.lanes))
        steps = [
            self.causal.encode_step(answers.step - first + 1, self._newest(answers, k, first), own)
            for first, own in blocks
        ]
        after = {name: np.stack([own[name] for _, own in steps]) for name in memory}
        return np.concatenate([measured.ravel() for measured, _ in steps]), after


def without_rows(empty: Memory) -> Memory:
    """Arrays of shape (0, ...) for rows of these shapes."""
    return {name: np.zeros((0, *value.shape), dtype=value.dtype) for name, value in empty.items()}


def _lines(case: Case) -> Lines:
    """A forward line for every start, where neighbours differ within a span."""
    if case.span is None:
        raise NotCertifiedError(case.problem, case.measured)
    return lines_of_starts(case.measured.longest, case.span, case.steps)


@rule(
    "windows-on-lines",
    AnyWindow,
    ITEM_UNITS,
    (GAUSSIAN, LAPLACE),
    Starts,
    when="every start by itself: answers, filters under Gaussian noise, trees under Laplace noise",
)
def lines_of_starts_bound(case: Case) -> int | None:
    """Any windows at item level: a forward line for every start."""
    shape: Starts = case.measured
    # What is continued by its last value has no more increments; of a line that is cut all is measured.
    legal = (TentTree,) if shape.continued else (Identity, Filter, CausalTree)
    if not shape.by_start or type(shape.map) not in legal:
        return None
    costs = line_costs(replace(case, measured=shape.map), shape.longest)
    return None if costs is None else lines_bound(_lines(case), costs, len(case.thresholds))


@rule("windows-on-lines", AnyWindow, EventLevel, (GAUSSIAN, LAPLACE), Starts, when="answers by themselves")
def windows_of_an_event(case: Case) -> int | None:
    """Any windows, one occurrence added or removed: each window by itself, for it changes for one threshold only."""
    shape: Starts = case.measured
    if not shape.by_start or shape.continued or type(shape.map) is not Identity:
        return None
    return lines_bound(_lines(case), range(shape.longest + 1), 1) * case.cell(shape.map.unit)
