"""Readers of streams: each gives estimates of the windows that end at a step, and remembers what the next one needs."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from dpwindows.ask.periods import place_of, sizes
from dpwindows.ask.queries import ToDate, Tumbling
from dpwindows.kernel.designs import StepDesign
from dpwindows.kernel.families.blocks import StepBlocks
from dpwindows.kernel.families.nested import Nested, one_step_longer
from dpwindows.kernel.families.periods import SeriesInPeriods
from dpwindows.kernel.families.series import Series
from dpwindows.kernel.families.starts import Starts
from dpwindows.kernel.families.together import Together
from dpwindows.kernel.maps.integer_maps import Memory
from dpwindows.reading.filters import invert_filter
from dpwindows.reading.maps import series_reader, step_reader
from dpwindows.reading.matrix_filters import MatrixFilterReader
from dpwindows.reading.moments import FloatArray
from dpwindows.reading.nested import nested_moments, nested_weights, real_weights
from dpwindows.reading.reader import Coefficients, StepDesignReader, Weights, reads_steps


@reads_steps(Series)
class SeriesStepReader(StepDesignReader):
    """One lane, one number a step."""

    def __init__(self, shape: Series, design: StepDesign) -> None:
        super().__init__(design)
        self._map = step_reader(shape.causal)

    def fresh(self) -> Memory:
        return self._map.fresh(1)

    def decode_step(self, step: int, measured: FloatArray, memory: Memory) -> tuple[FloatArray, Memory]:
        """The estimate of the one window that ends at the step, shape (1,), and the memory after it."""
        return self._map.decode_step(step, measured[:, None], memory)

    def moment_at(self, step: int, power: int) -> FloatArray:
        return self._map.moment(step, power)[-1:]

    def moments(self, power: int) -> FloatArray:
        return self._map.moment(self.steps, power)

    def noise_weights(self, coefficients: Coefficients, series: int = 0) -> Weights:
        line = np.zeros(max(last for _, last in coefficients))
        for (_, last), coefficient in coefficients.items():
            line[last - 1] += coefficient
        return {0: self._map.transposed(line)}


@reads_steps(SeriesInPeriods)
class PeriodStepReader(StepDesignReader):
    """One series from window to window, or for counts to date one in each period."""

    def __init__(self, shape: SeriesInPeriods, design: StepDesign) -> None:
        super().__init__(design)
        self._shape, self._map = shape, step_reader(shape.map)

    def fresh(self) -> Memory:
        return self._map.fresh(1)

    def decode_step(self, step: int, measured: FloatArray, memory: Memory) -> tuple[FloatArray, Memory]:
        """The estimate of the window that ends at the step, none where none does, and the memory after it."""
        position = self._shape.position(self.window, step)
        if position is None:
            return np.zeros(0), memory
        own = self._map.fresh(1) if position == 1 else memory
        return self._map.decode_step(position, measured[:, None], own)

    def moment_at(self, step: int, power: int) -> FloatArray:
        position = self._shape.position(self.window, step)
        return np.zeros(0) if position is None else self._map.moment(position, power)[-1:]

    def moments(self, power: int) -> FloatArray:
        if isinstance(self.window, ToDate):
            known = self._map.moment(min(self._shape.most, self.steps), power)
            return np.concatenate([known[:size] for size in sizes(self.window, self.steps)])
        assert isinstance(self.window, Tumbling)
        windows, _ = place_of(self.window, self.steps)
        ended = windows - (self._shape.position(self.window, self.steps) is None)
        return self._map.moment(ended, power) if ended else np.zeros(0)

    def noise_weights(self, coefficients: Coefficients, series: int = 0) -> Weights:
        lines: dict[int, dict[int, float]] = {}
        assert isinstance(self.window, Tumbling | ToDate)
        for (_, last), coefficient in coefficients.items():
            period, place = place_of(self.window, last)
            lane, position = (0, period) if isinstance(self.window, Tumbling) else (period, place)
            line = lines.setdefault(lane, {})
            line[position] = line.get(position, 0.0) + coefficient
        weights: Weights = {}
        for lane, line in lines.items():
            values = np.zeros(max(line))
            values[np.array(list(line)) - 1] = list(line.values())
            weights[lane] = self._map.transposed(values)
        return weights


@reads_steps(Together)
class TogetherReader(StepDesignReader):
    """Estimates of the windows that end at a step, shape (lengths,)."""

    def __init__(self, shape: Together, design: StepDesign) -> None:
        super().__init__(design)
        self._map = MatrixFilterReader(shape.map)

    def fresh(self) -> Memory:
        return self._map.fresh()

    def decode_step(self, step: int, measured: FloatArray, memory: Memory) -> tuple[FloatArray, Memory]:
        return self._map.decode_step(step, measured, memory)

    def moment_at(self, step: int, power: int) -> FloatArray:
        return np.asarray(self._map.moment(step, power)[-1])

    def moments(self, power: int) -> FloatArray:
        """One length after another."""
        return np.asarray(self._map.moment(self.steps, power).T.ravel())

    def noise_weights(self, coefficients: Coefficients, series: int = 0) -> Weights:
        lanes = np.zeros((max(last for _, last in coefficients), self._map.map.lanes))
        for (_, last), coefficient in coefficients.items():
            lanes[last - 1, series] += coefficient
        return {0: self._map.transposed(lanes).ravel()}


@reads_steps(Nested)
class NestedStepReader(StepDesignReader):
    """Both filters undone, that on starts first."""

    def __init__(self, shape: Nested, design: StepDesign) -> None:
        super().__init__(design)
        self._shape, self._ends = shape, step_reader(shape.along_ends)

    def fresh(self) -> Memory:
        return self._ends.fresh(self._shape.longest)

    def decode_step(self, step: int, measured: FloatArray, memory: Memory) -> tuple[FloatArray, Memory]:
        shape, by_length = self._shape, np.zeros(self._shape.longest)
        filtered = measured[::-1] / real_weights(shape.weights, shape.longest)[: len(measured)]
        by_length[: len(measured)] = invert_filter(shape.taps, filtered)
        estimates, after = self._ends.decode_step(step, by_length[None], memory)
        estimates[len(measured) :] = 0
        return estimates[: len(measured)][::-1], {name: one_step_longer(lanes) for name, lanes in after.items()}

    def moment_at(self, step: int, power: int) -> FloatArray:
        """By length alone, as in a release."""
        return nested_moments(self._shape, power)[: min(self._shape.longest, step)][::-1]

    def noise_weights(self, coefficients: Coefficients, series: int = 0) -> Weights:
        shape = self._shape
        by_start = np.zeros((shape.longest, max(last for _, last in coefficients)))
        for (first, last), coefficient in coefficients.items():
            by_start[last - first, first - 1] += coefficient
        weights = nested_weights(shape.taps, by_start)
        return {0: weights / real_weights(shape.weights, shape.longest)[:, None]}


@reads_steps(Starts)
class StartsStepReader(StepDesignReader):
    """The series of every start by itself."""

    def __init__(self, shape: Starts, design: StepDesign) -> None:
        super().__init__(design)
        self._shape, self._map = shape, step_reader(shape.causal)

    def fresh(self) -> Memory:
        return _no_rows(self._map.fresh(1))

    def decode_step(self, step: int, measured: FloatArray, memory: Memory) -> tuple[FloatArray, Memory]:
        estimates, memories, place = [], [], 0
        for first, own in self._shape.open(step, memory, self._map.fresh(1)):
            rows = self._map.map.rows_at(step - first + 1)
            estimate, after = self._map.decode_step(step - first + 1, measured[place : place + rows, None], own)
            place += rows
            estimates.append(estimate)
            memories.append(after)
        return np.concatenate(estimates), {name: np.stack([own[name] for own in memories]) for name in memory}

    def moment_at(self, step: int, power: int) -> FloatArray:
        """By length alone."""
        return self._map.moment(min(step, self._shape.longest), power)[::-1]

    def noise_weights(self, coefficients: Coefficients, series: int = 0) -> Weights:
        lines: dict[int, FloatArray] = {}
        for (first, last), coefficient in coefficients.items():
            line = lines.setdefault(first, np.zeros(self._shape.longest))
            line[last - first] += coefficient
        return {first: self._map.transposed(line) for first, line in lines.items()}


@reads_steps(StepBlocks)
class StepBlocksReader(StepDesignReader):
    """The causal map undone, then the tree on starts; the windows that are released, by first step."""

    def __init__(self, shape: StepBlocks, design: StepDesign) -> None:
        super().__init__(design)
        self._shape = shape
        self._starts, self._ends = series_reader(shape.starts, shape.width), step_reader(shape.ends)

    def fresh(self) -> Memory:
        return _no_rows(self._ends.fresh(self._shape.lanes))

    def decode_step(self, step: int, measured: FloatArray, memory: Memory) -> tuple[FloatArray, Memory]:
        estimates, memories, place, lanes = [], [], 0, self._shape.lanes
        for first, own in self._shape.open(step, memory, self._ends.fresh(lanes)):
            position = step - first + 1
            rows = self._shape.ends.rows_at(position)
            part = measured[place : place + rows * lanes].reshape(rows, lanes)
            place += part.size
            by_lane, after = self._ends.decode_step(position, part, own)
            estimates.append(self._released(step, first, self._starts.decode(by_lane)))
            memories.append(after)
        return np.concatenate(estimates), {name: np.stack([own[name] for own in memories]) for name in memory}

    def _released(self, step: int, first: int, by_start: FloatArray) -> FloatArray:
        """Picks a block's windows of at most `longest` steps: from last start first to first start first."""
        low, high = max(first, step - self._shape.longest + 1), min(first + self._shape.width - 1, step)
        return by_start[::-1][low - first : high - first + 1] if low <= high else by_start[:0]

    def moment_at(self, step: int, power: int) -> FloatArray:
        """Products of the two maps' moments; from the first full set of blocks on they come again with every block.

        Raises:
            ValueError: the tree on starts has no fourth moments at this length.
        """
        shape = self._shape
        settled = shape.extent + shape.width
        step = step if step <= settled else settled + (step - settled) % shape.width
        if (step, power) not in self._known:
            along_starts = self._starts.variance() if power == 2 else self._starts.fourth_moment()
            if along_starts is None:
                raise ValueError("the tree on starts has no fourth moments at this length")
            along_ends = self._ends.moment(shape.extent, power)
            parts = [
                self._released(step, first, along_starts * along_ends[step - first]) for first in shape.firsts(step)
            ]
            self._known[step, power] = np.concatenate(parts)
        return self._known[step, power]

    @cached_property
    def _known(self) -> dict[tuple[int, int], FloatArray]:
        return {}

    def noise_weights(self, coefficients: Coefficients, series: int = 0) -> Weights:
        shape, squares = self._shape, dict[int, FloatArray]()
        for (first, last), coefficient in coefficients.items():
            at = (first - 1) // shape.width
            square = squares.setdefault(at, np.zeros((shape.width, shape.extent)))
            square[shape.width - first + at * shape.width, last - 1 - at * shape.width] += coefficient
        return {at: self._ends.transposed(self._starts.transposed(square).T).ravel() for at, square in squares.items()}


def _no_rows(empty: Memory) -> Memory:
    return {name: np.zeros((0, *value.shape), dtype=value.dtype) for name, value in empty.items()}
