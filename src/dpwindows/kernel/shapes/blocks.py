"""Any windows: the square of starts and ends, or blocks of it, with one integer map on each axis."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpwindows.ask.windows import Answers, longest_window
from dpwindows.kernel.certify import Certificate, NotCertifiedError
from dpwindows.kernel.certify import blocks as certified
from dpwindows.kernel.maps.integer_maps import FloatArray, IntArray, IntegerMap
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.shapes.design import NamedDesign


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
class BlocksDesign(NamedDesign):
    """Any windows: in each block of starts, one map on starts times one map on ends, the ends taken last to first.

    Reversing the ends leaves the sensitivity as it is and lowers the error: a filter's error grows along its axis, and
    then no window is late on both axes.

    Attributes:
        width: starts of a block, but for the last.
        maps: one for each length that an axis of a block has; starts and ends of one length share it.
    """

    width: int = field(kw_only=True)
    maps: tuple[IntegerMap, ...] = field(kw_only=True)

    @classmethod
    def made_of(
        cls,
        problem: Problem,
        strategy: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        width: int,
        make_map: Callable[[int], IntegerMap],
    ) -> BlocksDesign:
        """The design whose axes of each length have the map that is made for it."""
        blocks = blocks_of(problem.steps, longest_window(problem.window, problem.steps), width)
        sizes = sorted({size for block in blocks for size in (block.starts, block.ends)})
        return cls(problem, strategy, parameters or {}, width=width, maps=tuple(map(make_map, sizes)))

    @cached_property
    def by_length(self) -> dict[int, IntegerMap]:
        """The maps by their length."""
        return {one.length: one for one in self.maps}

    @cached_property
    def _blocks(self) -> list[tuple[Block, IntegerMap, IntegerMap]]:
        longest = longest_window(self.problem.window, self.problem.steps)
        found = blocks_of(self.problem.steps, longest, self.width)
        return [(block, self.by_length[block.starts], self.by_length[block.ends]) for block in found]

    @cached_property
    def certificate(self) -> Certificate:
        """The certificate of the two maps over all blocks.

        Raises:
            NotCertifiedError: no proof covers it, or no map is as long as an axis.
        """
        try:
            axes = [(starts, ends) for _, starts, ends in self._blocks]
        except KeyError:
            raise NotCertifiedError(self.problem, *self.maps) from None
        extent = min(self.width + longest_window(self.problem.window, self.problem.steps) - 1, self.problem.steps)
        bound, proof = certified(self.problem, axes, min(self.width, self.problem.steps), extent, len(axes))
        return Certificate(bound, proof, moved=self.rows)

    @property
    def rows(self) -> int:
        return sum(starts.rows * ends.rows for _, starts, ends in self._blocks)

    def encode(self, answers: Answers, k: int) -> IntArray:
        """Both maps applied to each block of exact answers, one block after another."""
        encoded = []
        for block, starts, ends in self._blocks:
            exact = answers.windows(k, block.first, block.starts, block.first, block.ends)[:, ::-1]
            half = starts.encode(exact)
            encoded.append(ends.encode(half.T).ravel())
        return np.concatenate(encoded)

    def decode(self, measured: FloatArray) -> FloatArray:
        """Both left inverses in each block, then the windows that were asked for."""
        return np.concatenate(
            [
                self._asked(block, starts.decode(ends.decode(part.reshape(ends.rows, starts.rows)).T))
                for (block, starts, ends), part in zip(self._blocks, self._split(measured), strict=True)
            ]
        )

    def _split(self, measured: FloatArray) -> Iterator[FloatArray]:
        position = 0
        for _, starts, ends in self._blocks:
            yield measured[position : position + starts.rows * ends.rows]
            position += starts.rows * ends.rows

    def _asked(self, block: Block, square: FloatArray) -> FloatArray:
        """The released windows of a block, whose ends come reversed, in canonical order."""
        return square[self._places(block)]

    def _places(self, block: Block) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where the released windows of a block are in it, its ends reversed: by start, and by end."""
        longest = longest_window(self.problem.window, self.problem.steps)
        starts = np.arange(block.starts)
        lengths = np.minimum(longest, block.ends - starts)
        begun = np.cumsum(lengths) - lengths
        start = np.repeat(starts, lengths)
        return start, block.ends - 1 - (np.arange(len(start)) - np.repeat(begun - starts, lengths))

    def _moment(self, of: Callable[[IntegerMap], FloatArray | None]) -> FloatArray | None:
        known: dict[tuple[int, int], FloatArray] = {}
        for block, starts, ends in self._blocks:
            if (block.starts, block.ends) not in known:
                along_starts, along_ends = of(starts), of(ends)
                if along_starts is None or along_ends is None:
                    return None
                start, end = self._places(block)
                known[block.starts, block.ends] = along_starts[start] * along_ends[end]
        return np.concatenate([known[block.starts, block.ends] for block, _, _ in self._blocks])

    def variance(self) -> FloatArray:
        found = self._moment(lambda axis: axis.variance())
        assert found is not None
        return found

    def fourth_moment(self) -> FloatArray | None:
        return self._moment(lambda axis: axis.fourth_moment())
