"""Any windows: one map along the ends of every start."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dpwindows.ask.privacy import EventLevel
from dpwindows.ask.queries import AnyWindow, WindowFamily
from dpwindows.ask.windows import Answers, longest_window
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE
from dpwindows.kernel.advice import Advise
from dpwindows.kernel.certificate import Certificate, NotCertifiedError
from dpwindows.kernel.designs import StepAnswers, StepShape
from dpwindows.kernel.families.blocks import blocks_of, join_blocks
from dpwindows.kernel.families.lines import Lines, line_costs, lines_bound, lines_of_starts
from dpwindows.kernel.maps.filters import Filter, Identity
from dpwindows.kernel.maps.integer_maps import CausalMap, IntArray, IntegerMap, Memory
from dpwindows.kernel.maps.tent_tree import TentTree
from dpwindows.kernel.maps.trees import CausalTree
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.rules import ITEM_UNITS, Case, certify, rule

# Starts whose windows are read at a time, at least.
_AT_ONCE = 256


@dataclass(frozen=True)
class Starts(StepShape):
    """For every start, the counts of the windows of at most `longest` steps from it on as one series over their length.

    A causal map measures the lengths that exist; in a stream, at every step, those of the windows that end at it. A map
    of the whole series measures late starts with their series continued to `longest` by its last value (`continued`),
    which adds no change.
    """

    longest: int
    map: IntegerMap
    continued: bool = False

    @property
    def causal(self) -> CausalMap:
        """The map of a stream."""
        return self.map  # type: ignore[return-value]

    def certify(self, problem: Problem, horizon: int | None, advise: Advise) -> Certificate:
        """The certificate of the map for every start.

        Raises:
            NotCertifiedError: no proof covers it, or the shape is one for another length.
        """
        if self.longest != longest_window(problem.window, horizon or self.longest):
            raise NotCertifiedError(problem, self)
        case = Case(problem, self, horizon, advise)
        return Certificate(*certify(case), lines_bound(_lines(case), range(self.longest + 1), 1))

    def _rows_of(self, start: int, steps: int) -> int:
        return self.map.rows(self.longest if self.continued else min(self.longest, steps - start + 1))

    def rows(self, window: WindowFamily, steps: int) -> int:
        return sum(self._rows_of(start, steps) for start in range(1, steps + 1))

    def encode(self, window: WindowFamily, answers: Answers, k: int) -> IntArray:
        """The map along the windows of each start, one start after another."""
        encoded = []
        for block in blocks_of(answers.steps, self.longest, max(self.longest, _AT_ONCE)):
            square = answers.windows(k, block.first, block.starts, block.first, block.ends)
            for start in range(block.starts):
                counts = square[start, start : start + self.longest]
                if self.continued:
                    counts = np.pad(counts, (0, self.longest - len(counts)), mode="edge")
                encoded.append(self.map.encode(counts))
        return np.concatenate(encoded)

    def reach(self, window: WindowFamily) -> int:
        """The longest window's steps."""
        return self.longest

    def firsts(self, step: int) -> range:
        """The starts of the windows that end at a step."""
        return range(max(1, step - self.longest + 1), step + 1)

    def rows_at(self, window: WindowFamily, step: int) -> int:
        return sum(self.causal.rows_at(step - first + 1) for first in self.firsts(step))

    def fresh(self) -> Memory:
        """The memory of no start: arrays of shape (0, ...), to which every start adds a row."""
        return {name: np.zeros((0, *value.shape), dtype=value.dtype) for name, value in self.causal.fresh(1).items()}

    def open(self, step: int, memory: Memory, empty: Memory) -> list[tuple[int, Memory]]:
        """The starts and their memory; that of the step itself is empty."""
        firsts = self.firsts(step)
        return [
            (first, {name: memory[name][first - step] if first < step else empty[name] for name in empty})
            for first in firsts
        ]

    def encode_step(
        self, window: WindowFamily, answers: StepAnswers, k: int, memory: Memory
    ) -> tuple[IntArray, Memory]:
        return join_blocks(
            self.causal.encode_step(answers.step - first + 1, _count_since(answers, k, first), own)
            for first, own in self.open(answers.step, memory, self.causal.fresh(1))
        )


def _count_since(answers: StepAnswers, k: int, first: int) -> IntArray:
    """The count of the window from a start to the step, shape (1,)."""
    return np.asarray(answers.recent[k][answers.step - first])[None].astype(np.int64)


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
    when="answers by themselves, filters under Gaussian noise, trees under Laplace noise",
)
def lines_of_starts_bound(case: Case) -> int | None:
    """Any windows at item level: a forward line for every start."""
    shape: Starts = case.measured
    # What is continued by its last value has no more increments; of a line that is cut all is measured.
    if type(shape.map) not in ((TentTree,) if shape.continued else (Identity, Filter, CausalTree)):
        return None
    costs = line_costs(replace(case, measured=shape.map), shape.longest)
    return None if costs is None else lines_bound(_lines(case), costs, len(case.thresholds))


@rule("windows-on-lines", AnyWindow, EventLevel, (GAUSSIAN, LAPLACE), Starts, when="answers by themselves")
def windows_of_an_event(case: Case) -> int | None:
    """Any windows, one occurrence added or removed: each window by itself, for it changes for one threshold only."""
    shape: Starts = case.measured
    if shape.continued or type(shape.map) is not Identity:
        return None
    return lines_bound(_lines(case), range(shape.longest + 1), 1) * case.cell(shape.map.unit)
