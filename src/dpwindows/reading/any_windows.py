"""Readers of any windows: estimates in canonical order, or of the windows that end at a step, by first step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from dpwindows.ask.windows import longest_window, window_steps
from dpwindows.kernel.designs import Design, StepDesign
from dpwindows.kernel.families.blocks import Blocks
from dpwindows.kernel.families.crossed import Crossed, CrossedFilters
from dpwindows.kernel.families.nested import Nested, index_by_end, index_by_start, lengths_exist, one_step_longer
from dpwindows.kernel.families.starts import Block, Starts, without_rows
from dpwindows.kernel.maps.integer_maps import Memory
from dpwindows.reading.crossed import CrossedReader
from dpwindows.reading.filters import inverse_taps, invert_backwards, invert_filter, invert_in_place
from dpwindows.reading.maps import series_reader, step_reader
from dpwindows.reading.moments import FloatArray, SeriesReader, StepsReader
from dpwindows.reading.reader import Coefficients, Reader, StepDesignReader, Weights, reads


@reads(Starts)
class StartsReader(StepDesignReader):
    """In each block the map along ends undone, then that across starts."""

    def __init__(self, shape: Starts, design: Design) -> None:
        super().__init__(design)
        self._shape, self._across = shape, series_reader(shape.across, shape.width)

    def _along(self, first: int) -> SeriesReader:
        """How the ends of the block from a first start on are read."""
        shape = self._shape
        if isinstance(self.design, StepDesign):
            return StepsReader(step_reader(shape.causal), shape.extent)
        return series_reader(shape.map, shape.extent if shape.continued else min(shape.extent, self.steps - first + 1))

    def decode(self, measured: FloatArray) -> FloatArray:
        if isinstance(self.design, StepDesign):
            return super().decode(measured)
        estimates, place = [], 0
        for first in range(1, self.steps + 1, self._shape.width):
            along = self._along(first)
            part = measured[place : place + along.shape[0] * self._shape.lanes].reshape(along.shape[0], -1)
            place += part.size
            by_start = self._across.decode(along.decode(part).T)[::-1]
            for start, counts in enumerate(by_start[: self.steps - first + 1]):
                estimates.append(counts[start : min(start + self._shape.longest, self.steps - first + 1)])
        return np.concatenate(estimates)

    def fresh(self) -> Memory:
        return without_rows(step_reader(self._shape.causal).fresh(self._shape.lanes))

    def decode_step(self, step: int, measured: FloatArray, memory: Memory) -> tuple[FloatArray, Memory]:
        along, lanes = step_reader(self._shape.causal), self._shape.lanes
        estimates, memories, place = [], [], 0
        for first, own in self._shape.open(step, memory, along.fresh(lanes)):
            position = step - first + 1
            rows = self._shape.causal.rows_at(position)
            part = measured[place : place + rows * lanes].reshape(rows, lanes)
            place += part.size
            by_lane, after = along.decode_step(position, part, own)
            memories.append(after)
            if not self._shape.by_start:
                low, high = max(first, step - self._shape.longest + 1), min(first + self._shape.width - 1, step)
                by_lane = self._across.decode(by_lane)[::-1][low - first : max(low, high + 1) - first]
            estimates.append(by_lane)
        return np.concatenate(estimates), {name: np.stack([own[name] for own in memories]) for name in memory}

    def moment(self, power: int) -> FloatArray | None:
        return self._moment_of(*window_steps(self.window, self.steps), power)

    def moment_at(self, step: int, power: int) -> FloatArray | None:
        return self._moment_of(np.arange(max(1, step - self._shape.longest + 1), step + 1), step, power)

    def _moment_of(self, first: NDArray[np.int64], last: NDArray[np.int64] | int, power: int) -> FloatArray | None:
        """Products of the two maps' moments, by the places of a window's start and end in its block."""
        if power not in self._known:
            self._known[power] = self._across.moment(power), self._along(1).moment(power)
        across, along = self._known[power]
        if across is None or along is None:
            return None
        start = (first - 1) % self._shape.width
        return np.asarray(across[self._shape.width - 1 - start] * along[last - first + start])

    @cached_property
    def _known(self) -> dict[int, tuple[FloatArray | None, FloatArray | None]]:
        return {}

    def noise_weights(self, coefficients: Coefficients, series: int = 0) -> Weights:
        squares: dict[int, FloatArray] = {}
        for (first, last), coefficient in coefficients.items():
            start = (first - 1) % self._shape.width
            begun = first - start
            square = squares.setdefault(begun, np.zeros((self._shape.width, self._along(begun).shape[1])))
            square[self._shape.width - 1 - start, last - begun] += coefficient
        return {
            begun: self._along(begun).transposed(self._across.transposed(square).T).ravel()
            for begun, square in squares.items()
        }


# --- Blocks that are read by themselves -------------------------------------------------------------------------------


@dataclass(frozen=True)
class TwoTreesReader:
    """Both trees undone; ends were measured last to first."""

    starts: SeriesReader
    ends: SeriesReader

    @property
    def rows(self) -> int:
        return self.starts.shape[0] * self.ends.shape[0]

    def decode(self, measured: FloatArray) -> FloatArray:
        numbers = measured.reshape(self.ends.shape[0], self.starts.shape[0])
        return self.starts.decode(self.ends.decode(numbers).T)[:, ::-1]

    def moment(self, power: int) -> FloatArray | None:
        starts, ends = self.starts.moment(power), self.ends.moment(power)
        return None if starts is None or ends is None else np.outer(starts, ends[::-1])

    def transposed(self, square: FloatArray) -> FloatArray:
        """With S and E the two decoders, estimates are `S (E P)'` of the numbers P: V on them puts `E'(S'V)'` on P."""
        return self.ends.transposed(self.starts.transposed(square[:, ::-1]).T).ravel()


BlockReader = TwoTreesReader | CrossedReader


class BlocksReader(Reader):
    """Each block by itself, then the windows that were asked for."""

    def __init__(self, design: Design, width: int, blocks: Sequence[tuple[Block, BlockReader]]) -> None:
        super().__init__(design)
        self._width, self.blocks = width, blocks

    def decode(self, measured: FloatArray) -> FloatArray:
        parts = np.split(measured, np.cumsum([own.rows for _, own in self.blocks])[:-1])
        return self._asked([own.decode(part) for (_, own), part in zip(self.blocks, parts, strict=True)])

    def _asked(self, squares: Sequence[FloatArray]) -> FloatArray:
        """The windows that were asked for, by start and then by end, from the square of each block."""
        asked, longest = [], longest_window(self.window, self.steps)
        for (block, _), square in zip(self.blocks, squares, strict=True):
            lengths = np.arange(block.ends) - np.arange(block.starts)[:, None]
            asked.append(square[(lengths >= 0) & (lengths < longest)])
        return np.concatenate(asked)

    def moment(self, power: int) -> FloatArray | None:
        """None where a block is too large for it."""
        known = {own: own.moment(power) for own in {own for _, own in self.blocks}}
        squares = [moment for _, own in self.blocks if (moment := known[own]) is not None]
        return self._asked(squares) if len(squares) == len(self.blocks) else None

    def noise_weights(self, coefficients: Coefficients, series: int = 0) -> Weights:
        squares: dict[int, FloatArray] = {}
        for (first, last), coefficient in coefficients.items():
            at = (first - 1) // self._width
            block = self.blocks[at][0]
            square = squares.setdefault(at, np.zeros((block.starts, block.ends)))
            square[first - block.first, last - block.first] += coefficient
        return {at: self.blocks[at][1].transposed(square) for at, square in squares.items()}


@reads(Blocks)
def read_trees(shape: Blocks, design: Design) -> Reader:
    """Blocks of two trees."""
    blocks = [
        (block, TwoTreesReader(series_reader(starts, block.starts), series_reader(ends, block.ends)))
        for block, starts, ends in shape.list_blocks(design.problem.window, design.problem.steps)
    ]
    return BlocksReader(design, shape.width, blocks)


@reads(Crossed)
def read_crossed(shape: Crossed, design: Design) -> Reader:
    """Blocks of crossed counters."""
    problem = design.problem
    blocks = [(block, crossed_reader(own)) for block, own in shape.list_blocks(problem.window, problem.steps)]
    return BlocksReader(design, shape.width, blocks)


@lru_cache(maxsize=16)
def crossed_reader(measured: CrossedFilters) -> CrossedReader:
    """The reader of a block, which is the same for all blocks of a form."""
    return CrossedReader(measured)


# --- Windows measured with those inside them, or with those that contain them -----------------------------------------


@reads(Nested)
class NestedReader(StepDesignReader):
    """Both filters undone, that on starts first; arrays are by length and start, or length and end."""

    def __init__(self, shape: Nested, design: Design) -> None:
        super().__init__(design)
        self._shape, self._ends = shape, step_reader(shape.along_ends)
        # By length: 1 where windows are not weighed.
        self._weights = np.array(shape.weights[: shape.longest] or [1] * shape.longest, dtype=np.float64)

    def decode(self, measured: FloatArray) -> FloatArray:
        if isinstance(self.design, StepDesign):
            return super().decode(measured)
        exist = lengths_exist(self._shape.longest, self.steps)
        # One table for all, by start and length: for millions of windows every table counts.
        table = np.zeros(exist.shape)
        table[exist] = measured
        del measured
        table /= self._weights
        invert_in_place(self._shape.taps, table.T)
        invert_in_place(self._shape.taps, index_by_end(table.T))
        index_by_start(table.T)
        return table[exist]

    def fresh(self) -> Memory:
        return self._ends.fresh(self._shape.longest)

    def decode_step(self, step: int, measured: FloatArray, memory: Memory) -> tuple[FloatArray, Memory]:
        by_length = np.zeros(self._shape.longest)
        filtered = measured[::-1] / self._weights[: len(measured)]
        by_length[: len(measured)] = invert_filter(self._shape.taps, filtered)
        estimates, after = self._ends.decode_step(step, by_length[None], memory)
        estimates[len(measured) :] = 0
        return estimates[: len(measured)][::-1], {name: one_step_longer(lanes) for name, lanes in after.items()}

    def moment(self, power: int) -> FloatArray:
        exist = lengths_exist(self._shape.longest, self.steps)
        return np.broadcast_to(self._by_length(power), exist.shape)[exist]

    def moment_at(self, step: int, power: int) -> FloatArray:
        return self._by_length(power)[: min(self._shape.longest, step)][::-1]

    def _by_length(self, power: int) -> FloatArray:
        """Moments of the weights of a window's estimate, by length: shape (longest,).

        With c the inverse taps the weight of the number of a + i..b - j is `c_i c_j`, for i + j less than the length,
        over what that number itself is weighed with.
        """
        longest = self._shape.longest
        if power not in self._known:
            powers = inverse_taps(self._shape.taps, longest) ** power
            both = np.convolve(powers, powers)[:longest]
            self._known[power] = np.convolve(both, self._weights**-power)[:longest]
        return self._known[power]

    @cached_property
    def _known(self) -> dict[int, FloatArray]:
        return {}

    def noise_weights(self, coefficients: Coefficients, series: int = 0) -> Weights:
        by_start = np.zeros((self._shape.longest, max(self._shape.longest, *(last for _, last in coefficients))))
        for (first, last), coefficient in coefficients.items():
            by_start[last - first, first - 1] += coefficient
        by_end = index_by_end(invert_backwards(self._shape.taps, by_start))
        weights = index_by_start(invert_backwards(self._shape.taps, by_end)) / self._weights[:, None]
        # By start and then by length: combinations that end earlier hold nothing of what comes last.
        return {0: weights.T}
