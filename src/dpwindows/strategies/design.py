"""What a strategy is asked (`Problem`) and what it answers (`Design`): an integer measurement of one window family.

A design says how the exact answers of one threshold become a vector of integers (`encode`, trusted), how far one
neighbour can move the vectors of all thresholds together (`sensitivity`, proved), and how noisy vectors are read back
(`decode`, free). Three shapes cover every family:

- `SeriesDesign`: one integer map along time (cumulative, rolling);
- `BlocksDesign`: the square of starts and ends, or blocks of it, with one map on each axis (any windows);
- `CountersDesign`: one map along the window's length for every start (any windows).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpwindows.accounting import GAUSSIAN, Law
from dpwindows.integer_maps import FloatArray, IntArray, IntegerMap
from dpwindows.privacy import Budget, EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod, Unit
from dpwindows.queries import Cumulative, Rolling, WindowFamily
from dpwindows.windows import Answers, longest_window

Criterion = Literal["rms", "max"]

# The units of privacy that have bounds; a strategy must not serve any other, nor one that its own bounds do not name.
BOUNDED_UNITS = (EventLevel, ItemPerPeriod, ItemLevel, ItemAddRemove)


@dataclass(frozen=True)
class Problem:
    """One window family with all thresholds measured in it, for one unit of privacy and one noise law.

    `bits` is the resolution of the integer lattice: one count is about `2^bits` lattice units. `noise_per_unit` is
    the noise scale, in counts, that the budget buys for a sensitivity of 1; strategies that trade noise for bias
    need it. `singleton` is the public promise of at most one event in each step. `budget` is what this problem may
    spend of the whole budget, for the strategies that share it out among parts of their own.
    """

    window: WindowFamily
    steps: int
    thresholds: tuple[int, ...]
    unit: Unit
    law: Law
    noise_per_unit: float
    criterion: Criterion = "rms"
    bits: int = 24
    singleton: bool = False
    budget: Budget | None = None


class Design(Protocol):
    """An integer measurement of one problem."""

    @property
    def problem(self) -> Problem:
        """What is measured, for whom."""
        ...

    @property
    def strategy(self) -> str:
        """The name users see and may ask for."""
        ...

    @property
    def parameters(self) -> Mapping[str, Any]:
        """What was chosen, as plain values for metadata."""
        ...

    @property
    def sensitivity(self) -> int:
        """Certified bound on the change over all thresholds: L1 (Laplace) or squared L2 (Gaussian), lattice units."""
        ...

    @property
    def proof(self) -> str:
        """Dotted name of the function whose docstring proves the bound."""
        ...

    @property
    def rows(self) -> int:
        """Numbers measured for each threshold."""
        ...

    def encode(self, answers: Answers, k: int) -> IntArray:
        """The exact integers of threshold k, shape (rows,)."""
        ...

    def decode(self, measured: FloatArray) -> FloatArray:
        """Estimates for every window in canonical order, from measured numbers of shape (rows,)."""
        ...

    def variance(self) -> FloatArray:
        """Variance of each window's estimate under noise of unit variance; worked out once, and not to be changed."""
        ...

    def fourth_moment(self) -> FloatArray | None:
        """Sum of fourth powers of each estimate's weights, or None where it is not computed."""
        ...

    def bias_bound(self) -> FloatArray | None:
        """How far each estimate may be off in expectation, in counts; None for unbiased designs."""
        ...


@runtime_checkable
class PrescribedScale(Design, Protocol):
    """A design that fixes its own noise scale instead of taking the least one its sensitivity needs.

    The kernel proves the cost of that scale like any other; `squared` lets it do so for Laplace noise under an
    approximate budget too.
    """

    @property
    def scale(self) -> float:
        """The noise scale, in lattice units."""
        ...

    @property
    def squared(self) -> int:
        """Certified bound on the squared L2 norm of the change over all thresholds, in squared lattice units."""
        ...

    @property
    def counted(self) -> tuple[int, ...]:
        """The thresholds whose exact answers `encode` reads."""
        ...


@runtime_checkable
class MovesFew(Protocol):
    """A design of which a neighbour can change a known number of the numbers measured, however many there are."""

    @property
    def moved(self) -> int:
        """The most numbers, measured for one threshold, that one neighbour can change."""
        ...


def moved_rows(design: Design) -> int:
    """How many numbers the lattice is charged for, per threshold: those that a neighbour can change.

    Total variation between the discrete and the rounded law is paid for each number measured; the numbers that both
    neighbours give one distribution can be measured with the same discrete law in both, and cost nothing.
    """
    return design.moved if isinstance(design, MovesFew) else design.rows


def score(design: Design) -> float:
    """The error of a design in counts, by its problem's criterion: the smaller the better.

    The root of the mean (or the largest) over windows of variance plus squared bias bound.
    """
    squared = noise_factor(design) ** 2 * design.variance()
    bias = design.bias_bound()
    if bias is not None:
        squared = squared + bias**2
    return float(np.sqrt(squared.max() if design.problem.criterion == "max" else squared.mean()))


def noise_factor(design: Design) -> float:
    """Noise per measured number that the budget buys for this design's sensitivity, in lattice units."""
    reach = design.sensitivity**0.5 if design.problem.law == GAUSSIAN else float(design.sensitivity)
    spread = 1.0 if design.problem.law == GAUSSIAN else 2**0.5
    if isinstance(design, PrescribedScale):
        return spread * design.scale
    return spread * design.problem.noise_per_unit * reach


@dataclass(frozen=True)
class _Named:
    """What every design carries beside its shape."""

    problem: Problem
    strategy: str
    sensitivity: int
    proof: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def bias_bound(self) -> FloatArray | None:
        """None: these designs are unbiased."""
        return None


@dataclass(frozen=True)
class SeriesDesign(_Named):
    """Cumulative or rolling counts as one series over time, measured through one integer map."""

    map: IntegerMap = field(kw_only=True)

    @property
    def rows(self) -> int:
        """Rows of the map."""
        return self.map.rows

    def encode(self, answers: Answers, k: int) -> IntArray:
        """The map applied to the exact series."""
        return self.map.encode(series(self.problem.window, answers, k))

    def decode(self, measured: FloatArray) -> FloatArray:
        """The map's left inverse."""
        return self.map.decode(measured)

    def variance(self) -> FloatArray:
        """The map's."""
        return self._variance

    @cached_property
    def _variance(self) -> FloatArray:
        return self.map.variance()

    def fourth_moment(self) -> FloatArray | None:
        """The map's."""
        return self.map.fourth_moment()


def series(window: WindowFamily, answers: Answers, k: int) -> NDArray[Any]:
    """The exact series of a cumulative or rolling family."""
    match window:
        case Cumulative():
            return answers.cumulative(k)
        case Rolling(length=length):
            return answers.rolling(k, length)
    raise ValueError(f"{window} is not a series over time")


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
class BlocksDesign(_Named):
    """Any windows: in each block of starts, one map on starts times one map on ends, the ends taken last to first.

    Reversing the ends leaves the sensitivity as it is and lowers the error: a filter's error grows along its axis, and
    then no window is late on both axes.
    """

    width: int = field(kw_only=True)
    make_map: Callable[[int], IntegerMap] = field(kw_only=True)

    @cached_property
    def _blocks(self) -> list[tuple[Block, IntegerMap, IntegerMap]]:
        longest = longest_window(self.problem.window, self.problem.steps)
        found = blocks_of(self.problem.steps, longest, self.width)
        maps = {size: self.make_map(size) for block in found for size in (block.starts, block.ends)}
        return [(block, maps[block.starts], maps[block.ends]) for block in found]

    @property
    def rows(self) -> int:
        """Numbers measured over all blocks."""
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
        """Products of the two maps' variances."""
        return self._variance

    @cached_property
    def _variance(self) -> FloatArray:
        found = self._moment(lambda axis: axis.variance())
        assert found is not None
        return found

    def fourth_moment(self) -> FloatArray | None:
        """Products of the two maps' fourth moments."""
        return self._moment(lambda axis: axis.fourth_moment())


@dataclass(frozen=True)
class CountersDesign(_Named):
    """Any windows: for every start, the counts of the windows from it on as one series over their length.

    With `causal` maps only the rows of lengths that exist are measured; otherwise the series of late starts are
    continued past the horizon by their last value, which adds no change and so no cost.
    """

    map: IntegerMap = field(kw_only=True)
    causal: bool = field(kw_only=True)

    @property
    def _longest(self) -> int:
        return self.map.length

    @cached_property
    def _exists(self) -> NDArray[np.bool_]:
        lengths = np.arange(1, self._longest + 1)
        return lengths[:, None] <= self.problem.steps - np.arange(self.problem.steps)[None, :]

    @cached_property
    def _measured(self) -> NDArray[np.bool_]:
        return self._exists if self.causal else np.ones((self.map.rows, self.problem.steps), dtype=np.bool_)

    @property
    def rows(self) -> int:
        """Numbers measured over all starts."""
        return int(self._measured.sum())

    def encode(self, answers: Answers, k: int) -> IntArray:
        """The map applied to each start's series of exact counts."""
        by_length = []
        for block in blocks_of(self.problem.steps, self._longest, max(self._longest, 256)):
            square = answers.windows(k, block.first, block.starts, block.first, block.ends)
            starts = np.arange(block.starts)
            ends = np.minimum(starts[None, :] + np.arange(self._longest)[:, None], block.ends - 1)
            by_length.append(square[starts[None, :], ends])
        return self.map.encode(np.concatenate(by_length, axis=1))[self._measured]

    def decode(self, measured: FloatArray) -> FloatArray:
        """The map's left inverse for each start."""
        full = np.zeros(self._measured.shape)
        full[self._measured] = measured
        return self._asked(self.map.decode(full))

    def _asked(self, by_length: FloatArray) -> FloatArray:
        return by_length.T[self._exists.T]

    def variance(self) -> FloatArray:
        """The map's, by length."""
        return self._variance

    @cached_property
    def _variance(self) -> FloatArray:
        return self._asked(np.repeat(self.map.variance()[:, None], self.problem.steps, axis=1))

    def fourth_moment(self) -> FloatArray | None:
        """The map's, by length."""
        moment = self.map.fourth_moment()
        return None if moment is None else self._asked(np.repeat(moment[:, None], self.problem.steps, axis=1))
