"""What one window family measures at each step, how it is decoded, and how exact it will be.

A `StepDesign` is a design for streams: run over all steps of a horizon at once it measures and decodes the same
numbers, which is how plans forecast it and how tests compare the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np

from dpwindows.ask.privacy import EventLevel, ItemPerPeriod, Unit
from dpwindows.ask.queries import AnyWindow, Cumulative, Rolling, RollingTogether, WindowFamily
from dpwindows.ask.windows import Answers, longest_window
from dpwindows.ask.zones import Int64Array
from dpwindows.kernel.advice import Advise, Witness
from dpwindows.kernel.certify import Certificate, NotCertifiedError, start_counters
from dpwindows.kernel.certify import blocks as certified_blocks
from dpwindows.kernel.certify_series import along_time, moved_along_time
from dpwindows.kernel.maps.filters import Identity
from dpwindows.kernel.maps.integer_maps import CausalMap, FloatArray, IntArray, IntegerMap, Memory, read_back
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.shapes.design import AdvisedDesign


@dataclass(frozen=True)
class StepAnswers:
    """Exact counts at the end of one step: all that a mechanism sees of the data.

    `recent[k][j]` is the number of items with at least k occurrences in the last j + 1 steps, for j = 0.. as far as
    the mechanism reaches; `total[k]` is the number with at least k occurrences since step 1.
    """

    step: int
    recent: Mapping[int, Int64Array]
    total: Mapping[int, int]


class Shape(Protocol):
    """How the exact counts of a step become the lanes of causal maps, and back."""

    @property
    def reach(self) -> int:
        """How many steps back recent counts are needed."""
        ...

    def rows_at(self, step: int) -> int:
        """Numbers measured at a step, for each threshold."""
        ...

    def fresh(self) -> Memory:
        """The memory before step 1."""
        ...

    def encode(self, answers: StepAnswers, k: int, memory: Memory) -> IntArray:
        """The exact integers measured at a step, shape (rows_at,)."""
        ...

    def decode(self, answers: StepAnswers, k: int, measured: FloatArray, memory: Memory) -> tuple[FloatArray, Memory]:
        """Estimates of the windows that end at the step, by first step, and the memory after it."""
        ...

    def moment(self, step: int, power: int) -> FloatArray:
        """Second or fourth moments of the weights of the estimates of the windows that end at a step."""
        ...

    def moments(self, steps: int, power: int) -> FloatArray | None:
        """Moments of all estimates of steps 1..steps, one after another; None where they are asked for by step."""
        ...

    def certificate(self, problem: Problem, horizon: int | None, advise: Advise) -> Certificate:
        """What is proved of all steps up to the horizon (None: without end) together.

        Raises:
            NotCertifiedError: no proof covers it, or the shape is one for another problem.
        """
        ...


def moment_of(causal_map: CausalMap, count: int, power: int) -> FloatArray:
    """The second or fourth moments of a map."""
    return causal_map.variance(count) if power == 2 else causal_map.fourth_moment(count)


@dataclass(frozen=True)
class SeriesShape:
    """Cumulative or rolling counts: one lane, one number a step."""

    window: Cumulative | Rolling
    map: CausalMap

    @property
    def reach(self) -> int:
        """The length of the window; none for totals."""
        return self.window.length if isinstance(self.window, Rolling) else 0

    def rows_at(self, step: int) -> int:
        return self.map.rows_at(step)

    def fresh(self) -> Memory:
        """The map's memory before step 1, of one lane."""
        return self.map.fresh(1)

    def _exact(self, answers: StepAnswers, k: int) -> IntArray:
        if isinstance(self.window, Cumulative):
            return np.array([answers.total[k]], dtype=np.int64)
        recent = answers.recent[k]
        return np.asarray(recent[min(self.window.length, answers.step) - 1])[None].astype(np.int64)

    def encode(self, answers: StepAnswers, k: int, memory: Memory) -> IntArray:
        return self.map.encode(answers.step, self._exact(answers, k), memory).ravel()

    def decode(self, answers: StepAnswers, k: int, measured: FloatArray, memory: Memory) -> tuple[FloatArray, Memory]:
        """The estimate of the one window that ends at the step, shape (1,), and the memory after it."""
        kept = self.map.remember(answers.step, self._exact(answers, k), memory)
        return read_back(partial(self.map.decode, answers.step, measured[:, None]), memory, kept)

    def moment(self, step: int, power: int) -> FloatArray:
        """The moment of the one estimate of the step, shape (1,)."""
        return moment_of(self.map, step, power)[-1:]

    def moments(self, steps: int, power: int) -> FloatArray:
        return moment_of(self.map, steps, power)

    def certificate(self, problem: Problem, horizon: int | None, advise: Advise) -> Certificate:
        """The certificate of the map along time.

        Raises:
            NotCertifiedError: no proof covers it, or the shape is one for another family.
        """
        if problem.window != self.window:
            raise NotCertifiedError(problem, self.map)
        bound, proof = along_time(problem, self.map, horizon, advise)
        return Certificate(bound, proof, moved_along_time(problem, self.map, horizon))


@dataclass(frozen=True)
class BlocksShape:
    """Windows of at most `longest` steps: starts in blocks of `width`, a map on a block's starts, a causal one on ends.

    Ends are taken as they come; the starts of a block last to first where `backward` (then no window shorter than the
    block is late on both axes, where a filter's error grows), else first to last. With each block every end is measured
    that a released window from it can have, `extent` of them: `width + longest - 1`, or as many as the horizon has.
    """

    longest: int
    width: int
    extent: int
    starts: IntegerMap
    ends: CausalMap
    backward: bool = True

    @property
    def reach(self) -> int:
        """The first start of a block is that far from its last end."""
        return self.extent

    def _firsts(self, step: int) -> list[int]:
        """The first starts of the blocks that are measured at a step."""
        newest = (step - 1) // self.width
        oldest = max(0, -(-(step - self.reach) // self.width))
        return [1 + block * self.width for block in range(oldest, newest + 1)]

    @property
    def _order(self) -> slice:
        return slice(None, None, -1 if self.backward else 1)

    def rows_at(self, step: int) -> int:
        return sum(self.starts.rows * self.ends.rows_at(step - first + 1) for first in self._firsts(step))

    def fresh(self) -> Memory:
        """The memory of no block: arrays of shape (0, ...), to which every block adds a row when it opens."""
        empty = self.ends.fresh(self.starts.rows)
        return {name: np.zeros((0, *value.shape), dtype=value.dtype) for name, value in empty.items()}

    def _open(self, step: int, memory: Memory) -> Iterator[tuple[int, Memory]]:
        """The first start and the memory of every open block; one that opens at this step has a fresh one."""
        firsts = self._firsts(step)
        opening = (step - 1) % self.width == 0
        known = len(firsts) - opening
        empty = self.ends.fresh(self.starts.rows)
        for index, first in enumerate(firsts):
            # The memory holds the blocks of the step before: one more in front where a block has just been closed.
            place = index - known
            own = index < known
            yield first, {name: memory[name][place] if own else empty[name] for name in empty}

    def _lanes(self, answers: StepAnswers, k: int, first: int) -> IntArray:
        """The exact counts of a block's windows that end at the step, in the order of its starts; 0 from later ones."""
        recent = answers.recent[k]
        starts = np.arange(first, first + self.width)[self._order]
        back = answers.step - starts
        column = np.where(back >= 0, recent[np.maximum(back, 0)], 0).astype(np.int64)
        return self.starts.encode(column)

    def encode(self, answers: StepAnswers, k: int, memory: Memory) -> IntArray:
        return np.concatenate(
            [
                self.ends.encode(answers.step - first + 1, self._lanes(answers, k, first), own).ravel()
                for first, own in self._open(answers.step, memory)
            ]
        )

    def decode(self, answers: StepAnswers, k: int, measured: FloatArray, memory: Memory) -> tuple[FloatArray, Memory]:
        """The causal map undone, then the map on starts; the windows that are released, by first step."""
        estimates, memories, place = [], [], 0
        for first, own in self._open(answers.step, memory):
            position = answers.step - first + 1
            rows = self.ends.rows_at(position)
            part = measured[place : place + rows * self.starts.rows].reshape(rows, self.starts.rows)
            place += part.size
            kept = self.ends.remember(position, self._lanes(answers, k, first), own)
            lanes, after = read_back(partial(self.ends.decode, position, part), own, kept)
            estimates.append(self._released(answers.step, first, self.starts.decode(lanes)))
            memories.append(after)
        return np.concatenate(estimates), {name: np.stack([own[name] for own in memories]) for name in memory}

    def _released(self, step: int, first: int, by_start: FloatArray) -> FloatArray:
        """Of a block's numbers those of windows of at most `longest` steps, first start first."""
        low, high = max(first, step - self.longest + 1), min(first + self.width - 1, step)
        return by_start[self._order][low - first : high - first + 1] if low <= high else by_start[:0]

    def moment(self, step: int, power: int) -> FloatArray:
        """Products of the two maps' moments; from the first full set of blocks on they come again with every block."""
        settled = self.reach + self.width
        step = step if step <= settled else settled + (step - settled) % self.width
        known = self._known.get((step, power))
        if known is None:
            along_starts, along_ends = self._along(power)
            parts = [
                self._released(step, first, along_starts * along_ends[step - first]) for first in self._firsts(step)
            ]
            known = self._known[step, power] = np.concatenate(parts)
        return known

    def moments(self, steps: int, power: int) -> None:
        """By step: windows come by start in a release, by end in a stream."""

    def certificate(self, problem: Problem, horizon: int | None, advise: Advise) -> Certificate:
        """The certificate of the two maps over all blocks, or of the map on ends where every start is a block.

        Raises:
            NotCertifiedError: no proof covers it, or the shape is one for another length.
        """
        if self.longest != longest_window(problem.window, horizon or self.longest):
            raise NotCertifiedError(problem, self.starts, self.ends)
        if self.width == 1 and self.extent == self.longest and self.starts == Identity(1):
            return Certificate(*start_counters(problem, self.ends, self.longest, horizon))
        if self.starts.length != self.width:
            raise NotCertifiedError(problem, self.starts, self.ends)
        bound, proof = certified_blocks(problem, [(self.starts, self.ends)], self.width, self.extent)
        met = -(-self.extent // self.width)
        return Certificate(bound, proof, met * self.extent * self.starts.rows)

    @cached_property
    def _known(self) -> dict[tuple[int, int], FloatArray]:
        return {}

    def _along(self, power: int) -> tuple[FloatArray, FloatArray]:
        along_starts = self.starts.variance() if power == 2 else self.starts.fourth_moment()
        if along_starts is None:
            raise ValueError("the map on starts has no fourth moments at this length")
        return along_starts, moment_of(self.ends, self.reach, power)


@dataclass(frozen=True)
class StepDesign(AdvisedDesign):
    """A causal measurement of one window family.

    Attributes:
        problem: what is measured for whom; its `steps` are those a forecast is for.
        shape: the integers measured at each step, and how they are decoded.
        strategy: the name users see.
        horizon: the steps after which the stream ends, which the certificate is for; None: it has no end.
        parameters: what was chosen, as plain values.
        witness: the answers to what its bound asks.
    """

    problem: Problem
    shape: Shape
    strategy: str
    horizon: int | None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    witness: Witness = field(default_factory=dict)

    def certified(self, advise: Advise) -> Certificate:
        """The certificate of the shape over all steps up to the horizon."""
        return self.shape.certificate(self.problem, self.horizon, advise)

    def over(self, steps: int) -> StepDesign:
        """The same design with its forecast over so many steps."""
        return replace(self, problem=replace(self.problem, steps=steps))

    @property
    def rows(self) -> int:
        return sum(self.shape.rows_at(step) for step in self._steps)

    @property
    def _steps(self) -> range:
        return range(1, self.problem.steps + 1)

    # --- One step at a time: what a stream does -----------------------------------------------------------------

    def variance_at(self, step: int) -> FloatArray:
        """Variance of the estimates of the windows that end at a step."""
        return self.shape.moment(step, 2)

    def fourth_moment_at(self, step: int) -> FloatArray | None:
        """Fourth moments of these estimates, None where the map does not know them."""
        try:
            return self.shape.moment(step, 4)
        except ValueError:
            return None

    # --- All steps at once: what plans and tests do ---------------------------------------------------------------

    def encode(self, answers: Answers, k: int) -> IntArray:
        memory, encoded = self.shape.fresh(), []
        for step in self._steps:
            now = self._answers_at(answers, step, k)
            encoded.append(self.shape.encode(now, k, memory))
            _, memory = self.shape.decode(now, k, np.zeros(len(encoded[-1])), memory)
        return np.concatenate(encoded)

    def _answers_at(self, answers: Answers, step: int, k: int) -> StepAnswers:
        if self.problem.rule.max_runs is None or not isinstance(self.shape, SeriesShape):
            return step_answers(answers, step, k, self.shape.reach)
        # Bounded runs are those of one length: it is counted by itself, and nothing else is read.
        if isinstance(self.shape.window, Cumulative):
            return StepAnswers(step, {}, {k: int(answers.cumulative(k)[step - 1])})
        length = self.shape.window.length
        count = answers.rolling(k, length)[step - 1]
        return StepAnswers(step, {k: np.full(min(length, step), count)}, {})

    def decode(self, measured: FloatArray) -> FloatArray:
        """The estimates of all steps, in the canonical order of the window family."""
        memory, found, place = self.shape.fresh(), [], 0
        for step in self._steps:
            nothing = StepAnswers(step, {0: np.zeros(max(step, self.shape.reach), dtype=np.int64)}, {0: 0})
            rows = self.shape.rows_at(step)
            estimates, memory = self.shape.decode(nothing, 0, measured[place : place + rows], memory)
            found.append(estimates)
            place += rows
        return self._canonical(found)

    @cached_property
    def _variance(self) -> FloatArray:
        return self._moments(2)

    def _moments(self, power: int) -> FloatArray:
        # Where possible all at once: one step after another they would take time and room for each pair.
        found = self.shape.moments(self.problem.steps, power)
        return self._canonical([self.shape.moment(step, power) for step in self._steps]) if found is None else found

    def variance(self) -> FloatArray:
        return self._variance

    def fourth_moment(self) -> FloatArray | None:
        try:
            return self._moments(4)
        except ValueError:
            return None

    def _canonical(self, by_step: list[FloatArray]) -> FloatArray:
        """Any windows come by first step and then by last, here by last and then by first; lengths one by one."""
        if isinstance(self.problem.window, RollingTogether):
            return np.stack(by_step, axis=1).ravel()
        if not isinstance(self.problem.window, AnyWindow):
            return np.concatenate(by_step)
        longest = longest_window(self.problem.window, self.problem.steps)
        # A row for each first step; the windows of one last step are so many places apart.
        flat, apart = np.full(self.problem.steps * longest, np.nan), max(1, longest - 1)
        for last, estimates in enumerate(by_step):
            first = last - len(estimates) + 1
            flat[last + first * (longest - 1) : last * longest + 1 : apart] = estimates
        return np.asarray(flat[~np.isnan(flat)])


def horizon_of(window: WindowFamily, unit: Unit, horizon: int | None) -> int | None:
    """The horizon that a family's measurement is bounded by in a stream; None where it is the same without one.

    A stream that ends is one without end whose later steps are never seen. A neighbour changes a bounded number of
    short windows, so families of these are measured alike with and without a horizon.
    """
    match window:
        case Rolling(length=length) | AnyWindow(max_length=int(length)):
            shorter = horizon is None or length < horizon
            return None if shorter and isinstance(unit, (EventLevel, ItemPerPeriod)) else horizon
        case RollingTogether(lengths=lengths):
            return horizon_of(Rolling(max(lengths)), unit, horizon)
    return horizon


def step_answers(answers: Answers, step: int, k: int, reach: int) -> StepAnswers:
    """One step of the exact answers of a whole log."""
    first = max(1, step - reach + 1)
    recent = answers.windows(k, first, step - first + 1, step, 1)[::-1, 0] if reach else np.zeros(0, dtype=np.int64)
    return StepAnswers(step, {k: recent}, {k: int(answers.windows(k, 1, 1, step, 1)[0, 0])})
