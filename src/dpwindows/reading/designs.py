"""Readers of releases: each gives estimates of all windows in canonical order."""

from __future__ import annotations

from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from dpwindows.ask.windows import count_windows, longest_window, window_steps
from dpwindows.kernel.designs import Design
from dpwindows.kernel.families.blocks import Block, Blocks
from dpwindows.kernel.families.crossed import Crossed, CrossedFilters
from dpwindows.kernel.families.gaps import Gaps
from dpwindows.kernel.families.grouped_steps import GroupedSteps
from dpwindows.kernel.families.nested import Nested, lengths_exist
from dpwindows.kernel.families.series import Series
from dpwindows.kernel.families.starts import Starts
from dpwindows.reading.crossed import CrossedReader
from dpwindows.reading.gaps import GapReader
from dpwindows.reading.grouped import Nearest, nearest_windows
from dpwindows.reading.maps import RepeatedReader, series_reader
from dpwindows.reading.moments import FloatArray, SeriesReader
from dpwindows.reading.nested import nested_estimates, nested_moments, nested_weights, real_weights
from dpwindows.reading.reader import Coefficients, Reader, Weights, of, reads


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
        return np.broadcast_to(nested_moments(self._shape, power), self._exist.shape)[self._exist]

    def noise_weights(self, coefficients: Coefficients, series: int = 0) -> Weights:
        weights = nested_weights(self._shape.taps, self._by_length(self.canonical(coefficients))) / self._weights
        return {0: np.asarray(weights.T[self._exist])}


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
