"""Readers of designs: each gives estimates of all windows in canonical order, or of those that end at a step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from functools import cached_property, lru_cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpwindows.ask.periods import place_of, sizes
from dpwindows.ask.queries import AnyWindow, RollingTogether, ToDate, Tumbling
from dpwindows.ask.windows import count_windows, longest_window, window_steps
from dpwindows.errors import InputError
from dpwindows.kernel.designs import Design, Shape, StepDesign
from dpwindows.kernel.families.blocks import Block, Blocks, StepBlocks
from dpwindows.kernel.families.crossed import Crossed, CrossedFilters
from dpwindows.kernel.families.gaps import Gaps
from dpwindows.kernel.families.grouped_steps import GroupedSteps
from dpwindows.kernel.families.nested import Nested, lengths_exist, one_step_longer
from dpwindows.kernel.families.periods import SeriesInPeriods
from dpwindows.kernel.families.series import Series
from dpwindows.kernel.families.starts import Starts
from dpwindows.kernel.families.together import Together
from dpwindows.kernel.maps.integer_maps import Memory
from dpwindows.reading.crossed import CrossedReader
from dpwindows.reading.filters import invert_filter
from dpwindows.reading.gaps import GapReader
from dpwindows.reading.grouped import Nearest, nearest_windows
from dpwindows.reading.maps import RepeatedReader, series_reader, step_reader
from dpwindows.reading.matrix_filters import MatrixFilterReader
from dpwindows.reading.moments import FloatArray, SeriesReader
from dpwindows.reading.nested import nested_estimates, nested_moments, nested_weights, real_weights

# Weights on the numbers measured, by the part of the measurement that they are in; a part left out has none.
Weights = dict[Hashable, FloatArray]
# Coefficients of windows, by first and last step.
Coefficients = Mapping[tuple[int, int], float]

# Readers that are kept, and the most numbers where a decoder is only known as a function of all of them.
_KEPT, _MOST = 32, 4096


class Reader(ABC):
    """How the noisy numbers of a design are read back, of one threshold.

    Estimates are a linear function D of the numbers measured, so a combination `sum_w c_w estimate_w` has the error
    `(D'c) z` with z the independent noise values. Combinations of the same measurement have the covariance of their
    weights; whatever was measured apart has none.
    """

    def __init__(self, design: Design) -> None:
        self.design = design
        self.window, self.steps = design.problem.window, design.problem.steps

    @abstractmethod
    def decode(self, measured: FloatArray) -> FloatArray:
        """Estimates for every window in canonical order, in counts, from measured numbers of shape (rows,)."""

    @abstractmethod
    def variance(self) -> FloatArray:
        """Variance of each window's estimate under noise of unit variance; not to be changed."""

    def fourth_moment(self) -> FloatArray | None:
        """Sum of fourth powers of each estimate's weights, or None where it is not worked out."""
        return None

    def bias_bound(self) -> FloatArray | None:
        """How far each estimate may be off in expectation, in counts; None for unbiased designs."""
        return None

    def noise_weights(self, coefficients: Coefficients, series: int = 0) -> Weights:
        """The weights of a combination of estimates on the noise values.

        Args:
            coefficients: the combination, by the first and last step of its windows.
            series: of a design that serves several families, the place of the one that they are windows of.

        Raises:
            InputError: the decoder has no transpose here and is too large to be written out.
        """
        if self.design.rows > _MOST:
            raise InputError(
                f"the strategy {self.design.strategy} measured {self.design.rows:,} numbers for {self.window}, and how "
                f"their noise is correlated is worked out for at most {_MOST:,}: release with --strategy auto"
            )
        wanted = self.canonical(coefficients)
        return {0: np.array([wanted @ self.decode(unit) for unit in np.eye(self.design.rows)])}

    def canonical(self, coefficients: Coefficients) -> FloatArray:
        """The coefficients of all windows in canonical order."""
        first, last = window_steps(self.window, self.steps)
        places = {window: place for place, window in enumerate(zip(first.tolist(), last.tolist(), strict=True))}
        wanted = np.zeros(len(first))
        for window, coefficient in coefficients.items():
            wanted[places[window]] += coefficient
        return wanted


@lru_cache(maxsize=_KEPT)
def of(design: Design) -> Reader:
    """The reader of a design.

    Raises:
        ValueError: every threshold has a map of its own: ask the design `at` one.
    """
    if not design.alike:
        raise ValueError("every threshold has a map of its own here: ask the design `at` one")
    readers = _STEP_READERS if isinstance(design, StepDesign) else _READERS
    return readers[type(design.shape)](design.shape, design)


Class = TypeVar("Class", bound=type[Reader])
_READERS: dict[type[Shape], Callable[[Any, Any], Reader]] = {}
_STEP_READERS: dict[type[Shape], Callable[[Any, Any], Reader]] = {}


def reads(shape: type[Shape]) -> Callable[[Class], Class]:
    """Register the reader of designs of a shape that are measured all at once."""

    def register(reader: Class) -> Class:
        _READERS[shape] = reader
        return reader

    return register


def reads_steps(shape: type[Shape]) -> Callable[[Class], Class]:
    """Register the reader of designs of a shape that are measured step by step."""

    def register(reader: Class) -> Class:
        _STEP_READERS[shape] = reader
        return reader

    return register


# --- One series -------------------------------------------------------------------------------------------------------


@reads(Series)
class SeriesDesignReader(Reader):
    """One series, by the reader of its map."""

    def __init__(self, shape: Series, design: Design) -> None:
        super().__init__(design)
        self._series = series_reader(shape.map, count_windows(self.window, self.steps))

    def decode(self, measured: FloatArray) -> FloatArray:
        return self._series.decode(measured)

    @cached_property
    def _variance(self) -> FloatArray:
        return self._series.variance()

    def variance(self) -> FloatArray:
        return self._variance

    def fourth_moment(self) -> FloatArray | None:
        return self._series.fourth_moment()

    def noise_weights(self, coefficients: Coefficients, series: int = 0) -> Weights:
        wanted = self.canonical(coefficients)
        if isinstance(self._series, RepeatedReader):
            return self._series.by_stretch(wanted)
        return {0: self._series.transposed(wanted)}


# --- Any windows ------------------------------------------------------------------------------------------------------


@reads(Blocks)
class BlocksReader(Reader):
    """Both trees undone in each block, then the windows that were asked for."""

    def __init__(self, shape: Blocks, design: Design) -> None:
        super().__init__(design)
        self._width = shape.width
        self._blocks = [
            (block, series_reader(starts, block.starts), series_reader(ends, block.ends))
            for block, starts, ends in shape.list_blocks(self.window, self.steps)
        ]

    def decode(self, measured: FloatArray) -> FloatArray:
        estimates, place = [], 0
        for block, starts, ends in self._blocks:
            rows = ends.shape[0], starts.shape[0]
            part = measured[place : place + rows[0] * rows[1]].reshape(rows)
            place += part.size
            # Ends come reversed.
            estimates.append(starts.decode(ends.decode(part).T)[self._places(block)])
        return np.concatenate(estimates)

    def _places(self, block: Block) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where the released windows of a block are in it, its ends reversed: by start, and by end."""
        starts = np.arange(block.starts)
        lengths = np.minimum(longest_window(self.window, self.steps), block.ends - starts)
        begun = np.cumsum(lengths) - lengths
        start = np.repeat(starts, lengths)
        return start, block.ends - 1 - (np.arange(len(start)) - np.repeat(begun - starts, lengths))

    @cached_property
    def _variance(self) -> FloatArray:
        moment = self._moment(2)
        assert moment is not None
        return moment

    def variance(self) -> FloatArray:
        return self._variance

    def fourth_moment(self) -> FloatArray | None:
        return self._moment(4)

    def _moment(self, power: int) -> FloatArray | None:
        known: dict[tuple[int, int], FloatArray] = {}
        for block, starts, ends in self._blocks:
            if (block.starts, block.ends) not in known:
                along = [axis.variance() if power == 2 else axis.fourth_moment() for axis in (starts, ends)]
                if along[0] is None or along[1] is None:
                    return None
                start, end = self._places(block)
                known[block.starts, block.ends] = along[0][start] * along[1][end]
        return np.concatenate([known[block.starts, block.ends] for block, _, _ in self._blocks])

    def noise_weights(self, coefficients: Coefficients, series: int = 0) -> Weights:
        """On each block `X = S (E P)'`, with S and E the two decoders and P the numbers: for V on X, `P ~ E'(S'V)'`."""
        squares: dict[int, FloatArray] = {}
        for (first, last), coefficient in coefficients.items():
            at = (first - 1) // self._width
            block = self._blocks[at][0]
            square = squares.setdefault(at, np.zeros((block.starts, block.ends)))
            # Ends are measured last to first.
            square[first - block.first, block.ends - 1 - (last - block.first)] += coefficient
        return {
            at: self._blocks[at][2].transposed(self._blocks[at][1].transposed(square).T).ravel()
            for at, square in squares.items()
        }


@reads(Starts)
class StartsReader(Reader):
    """The series of every start by itself."""

    def __init__(self, shape: Starts, design: Design) -> None:
        super().__init__(design)
        self._shape = shape
        self._lengths = [min(shape.longest, self.steps - first) for first in range(self.steps)]

    def _series(self, length: int) -> SeriesReader:
        """How the series of a start with `length` windows is read."""
        return series_reader(self._shape.map, self._shape.longest if self._shape.continued else length)

    def decode(self, measured: FloatArray) -> FloatArray:
        each = [self._series(length) for length in self._lengths]
        parts = np.split(measured, np.cumsum([one.shape[0] for one in each])[:-1])
        series = (one.decode(part) for one, part in zip(each, parts, strict=True))
        return np.concatenate([one[:length] for one, length in zip(series, self._lengths, strict=True)])

    def variance(self) -> FloatArray:
        """By length alone."""
        by_length = series_reader(self._shape.map, self._shape.longest).variance()
        return np.concatenate([by_length[:length] for length in self._lengths])

    def fourth_moment(self) -> FloatArray | None:
        by_length = series_reader(self._shape.map, self._shape.longest).fourth_moment()
        return None if by_length is None else np.concatenate([by_length[:length] for length in self._lengths])

    def noise_weights(self, coefficients: Coefficients, series: int = 0) -> Weights:
        lines: dict[int, FloatArray] = {}
        for (first, last), coefficient in coefficients.items():
            line = lines.setdefault(first, np.zeros(self._series(self._lengths[first - 1]).shape[1]))
            line[last - first] += coefficient
        return {first: self._series(self._lengths[first - 1]).transposed(line) for first, line in lines.items()}


@reads(Nested)
class NestedReader(Reader):
    """Both filters undone, along the lengths."""

    def __init__(self, shape: Nested, design: Design) -> None:
        super().__init__(design)
        self._shape = shape
        self._exist = lengths_exist(shape.longest, self.steps)
        self._weights = real_weights(shape.weights, shape.longest)[:, None]

    def decode(self, measured: FloatArray) -> FloatArray:
        filtered = self._by_length(measured) / self._weights
        return np.asarray(nested_estimates(self._shape.taps, filtered).T[self._exist])

    def _by_length(self, values: FloatArray) -> FloatArray:
        """Shape (lengths, starts)."""
        by_length = np.zeros(self._exist.shape)
        by_length[self._exist] = values
        return by_length.T

    def variance(self) -> FloatArray:
        """By length alone."""
        return self._moment(2)

    def fourth_moment(self) -> FloatArray:
        return self._moment(4)

    def _moment(self, power: int) -> FloatArray:
        by_length = self._moments.setdefault(power, _nested_moments(self._shape, power))
        return np.broadcast_to(by_length, self._exist.shape)[self._exist]

    @cached_property
    def _moments(self) -> dict[int, FloatArray]:
        return {}

    def noise_weights(self, coefficients: Coefficients, series: int = 0) -> Weights:
        weights = nested_weights(self._shape.taps, self._by_length(self.canonical(coefficients))) / self._weights
        return {0: np.asarray(weights.T[self._exist])}


@lru_cache(maxsize=16)
def _nested_moments(shape: Nested, power: int) -> FloatArray:
    """Second or fourth moments by length, shape (longest,)."""
    return nested_moments(shape.taps, shape.longest, power, shape.weights)


@reads(Crossed)
class CrossedDesignReader(Reader):
    """Least squares in each block, then the windows that were asked for."""

    def __init__(self, shape: Crossed, design: Design) -> None:
        super().__init__(design)
        self._width = shape.width
        self.blocks = [(block, crossed_reader(own)) for block, own in shape.list_blocks(self.window, self.steps)]

    def decode(self, measured: FloatArray) -> FloatArray:
        parts = np.split(measured, np.cumsum([own.map.rows for _, own in self.blocks])[:-1])
        return np.concatenate(
            [self._asked(block, own.decode(part)) for (block, own), part in zip(self.blocks, parts, strict=True)]
        )

    def _asked(self, block: Block, square: FloatArray) -> FloatArray:
        spans = np.arange(block.ends)[None, :] - np.arange(block.starts)[:, None]
        return square[(spans >= 0) & (spans < longest_window(self.window, self.steps))]

    @cached_property
    def _variance(self) -> FloatArray:
        known = {own: own.variance() for own in {own for _, own in self.blocks}}
        return np.concatenate([self._asked(block, known[own]) for block, own in self.blocks])

    def variance(self) -> FloatArray:
        return self._variance

    @cached_property
    def _fourth_moment(self) -> FloatArray | None:
        known = {own: own.fourth_moment() for own in {own for _, own in self.blocks}}
        parts = [(block, moment) for block, own in self.blocks if (moment := known[own]) is not None]
        if len(parts) < len(self.blocks):
            return None
        return np.concatenate([self._asked(block, moment) for block, moment in parts])

    def fourth_moment(self) -> FloatArray | None:
        """None where a block is too large for it."""
        return self._fourth_moment

    def noise_weights(self, coefficients: Coefficients, series: int = 0) -> Weights:
        squares: dict[int, FloatArray] = {}
        for (first, last), coefficient in coefficients.items():
            at = (first - 1) // self._width
            block, own = self.blocks[at]
            square = squares.setdefault(at, np.zeros(own.map.shape))
            square[first - block.first, last - block.first] += coefficient
        return {at: self.blocks[at][1].transposed(square) for at, square in squares.items()}


@lru_cache(maxsize=16)
def crossed_reader(measured: CrossedFilters) -> CrossedReader:
    """The reader of a block, which is the same for all blocks of a form."""
    return CrossedReader(measured)


@reads(Gaps)
class GapsReader(Reader):
    """Both filters undone, then the windows that were asked for."""

    def __init__(self, shape: Gaps, design: Design) -> None:
        super().__init__(design)
        self._gaps = GapReader(shape.map)
        # In both orders windows come by start and then by end.
        first, last = np.triu_indices(self.steps)
        self._asked = last - first < longest_window(self.window, self.steps)

    def decode(self, measured: FloatArray) -> FloatArray:
        return self._gaps.decode(measured)[self._asked]

    @cached_property
    def _variance(self) -> FloatArray:
        return self._gaps.variance()[self._asked]

    def variance(self) -> FloatArray:
        return self._variance

    def fourth_moment(self) -> FloatArray:
        return self._gaps.fourth_moment()[self._asked]

    def noise_weights(self, coefficients: Coefficients, series: int = 0) -> Weights:
        wanted = np.zeros(len(self._asked))
        wanted[self._asked] = self.canonical(coefficients)
        return {0: self._gaps.transposed(wanted)}


@reads(GroupedSteps)
class GroupedReader(Reader):
    """The inner estimates, each read for all the windows that it is nearest to."""

    def __init__(self, shape: GroupedSteps, design: Design) -> None:
        super().__init__(design)
        self.inner_design, self.inner = shape.inner, of(shape.inner)
        self._size = shape.size

    @cached_property
    def nearest(self) -> Nearest:
        """For each window the inner estimate that answers it, and the steps moved."""
        return nearest_windows(self.window, self.steps, self._size, self.inner_design.problem)

    def decode(self, measured: FloatArray) -> FloatArray:
        return self.inner.decode(measured)[self.nearest.position]

    @cached_property
    def _variance(self) -> FloatArray:
        return self.inner.variance()[self.nearest.position]

    def variance(self) -> FloatArray:
        return self._variance

    def fourth_moment(self) -> FloatArray | None:
        moment = self.inner.fourth_moment()
        return None if moment is None else moment[self.nearest.position]

    def bias_bound(self) -> FloatArray:
        """How many steps the two ends of each window were moved, together."""
        return self.nearest.moved

    def noise_weights(self, coefficients: Coefficients, series: int = 0) -> Weights:
        of_groups = np.bincount(self.nearest.position, self.canonical(coefficients))
        first, last = window_steps(self.inner.window, self.inner.steps)
        inner = {(int(first[at]), int(last[at])): float(of_groups[at]) for at in np.flatnonzero(of_groups)}
        return self.inner.noise_weights(inner)


# --- One step at a time -----------------------------------------------------------------------------------------------


class StepDesignReader(Reader):
    """How the numbers of a step are read back, with a memory of estimates."""

    @abstractmethod
    def fresh(self) -> Memory:
        """The memory of estimates before step 1."""

    @abstractmethod
    def decode_step(self, step: int, measured: FloatArray, memory: Memory) -> tuple[FloatArray, Memory]:
        """Estimates of the windows that end at a step, by first step, and the memory after it."""

    @abstractmethod
    def moment_at(self, step: int, power: int) -> FloatArray:
        """Second or fourth moments of the weights of the estimates of the windows that end at a step.

        Raises:
            ValueError: they are not worked out.
        """

    def moments(self, power: int) -> FloatArray | None:
        """Moments of all estimates at once, one step after another; None where they are asked for by step."""
        return None

    def decode(self, measured: FloatArray) -> FloatArray:
        """The estimates of all steps, in the canonical order of the window family."""
        assert isinstance(self.design, StepDesign)
        memory, estimates, place = self.fresh(), [], 0
        for step in range(1, self.steps + 1):
            rows = self.design.rows_at(step)
            estimate, memory = self.decode_step(step, measured[place : place + rows], memory)
            estimates.append(estimate)
            place += rows
        return self._in_order(estimates)

    @cached_property
    def _variance(self) -> FloatArray:
        return self._moments(2)

    def variance(self) -> FloatArray:
        return self._variance

    def fourth_moment(self) -> FloatArray | None:
        try:
            return self._moments(4)
        except ValueError:
            return None

    def _moments(self, power: int) -> FloatArray:
        # Where possible all at once: one step after another they would take time and room for each pair.
        moments = self.moments(power)
        if moments is not None:
            return moments
        return self._in_order([self.moment_at(step, power) for step in range(1, self.steps + 1)])

    def variance_at(self, step: int) -> FloatArray:
        """Variance of the estimates of the windows that end at a step."""
        return self.moment_at(step, 2)

    def fourth_moment_at(self, step: int) -> FloatArray | None:
        """Fourth moments of these estimates, None where they are not worked out."""
        try:
            return self.moment_at(step, 4)
        except ValueError:
            return None

    def _in_order(self, by_step: list[FloatArray]) -> FloatArray:
        """Any windows come by first step and then by last, here by last and then by first; lengths one by one."""
        if isinstance(self.window, RollingTogether):
            return np.stack(by_step, axis=1).ravel()
        if not isinstance(self.window, AnyWindow):
            return np.concatenate(by_step)
        longest = longest_window(self.window, self.steps)
        # A row for each first step; the windows of one last step are `apart` places from each other.
        flat, apart = np.full(self.steps * longest, np.nan), max(1, longest - 1)
        for last, estimates in enumerate(by_step):
            first = last - len(estimates) + 1
            flat[last + first * (longest - 1) : last * longest + 1 : apart] = estimates
        return np.asarray(flat[~np.isnan(flat)])


def steps_of(design: StepDesign) -> StepDesignReader:
    """The reader of a design that is measured step by step."""
    reader = of(design)
    assert isinstance(reader, StepDesignReader)
    return reader


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
        return _nested_moments(self._shape, power)[: min(self._shape.longest, step)][::-1]

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
