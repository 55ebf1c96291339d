"""Maps, parameters and problems that no planner would choose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from dpwindows.ask.calendar import Calendar
from dpwindows.ask.privacy import EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod, Unit
from dpwindows.ask.queries import AnyWindow, Cumulative, Rolling, ToDate, Tumbling, WindowFamily
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE, Law
from dpwindows.kernel.maps.counters import MatrixCounter
from dpwindows.kernel.maps.differences import AnchoredDifferences
from dpwindows.kernel.maps.endless_counter import EndlessCounter
from dpwindows.kernel.maps.filters import Filter, Identity, OffsetFilter
from dpwindows.kernel.maps.integer_maps import CausalMap, IntegerMap
from dpwindows.kernel.maps.tent_tree import TentTree
from dpwindows.kernel.maps.trees import CausalTree
from dpwindows.kernel.problem import Problem
from tests.single_item import Ints

EVENT, ITEM, ADD_REMOVE = EventLevel(), ItemLevel(), ItemAddRemove()
UNITS: tuple[Unit, ...] = (EVENT, ITEM, ADD_REMOVE)

LAWS: tuple[Law, ...] = (GAUSSIAN, LAPLACE)
THRESHOLDS = ((1,), (2,), (3,), (1, 2), (1, 3), (2, 3), (1, 2, 3))
# Of more steps only what can be enumerated.
_OF_MORE_STEPS = {5: ((1,), (2,)), 7: ((1,),)}

# From February on: quarters of two, three and as many months as are left.
MONTHS = Calendar("2013-02-01", "1mo", "UTC")
PERIODS: tuple[Tumbling | ToDate, ...] = (
    *(family(period) for family in (Tumbling, ToDate) for period in (1, 2, 3, 9)),
    *(family("quarter", calendar=MONTHS) for family in (Tumbling, ToDate)),
)


@dataclass
class Draw:
    """Parameters at random."""

    rng: np.random.Generator

    def whole(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def one(self, *things: Any) -> Any:
        return things[self.whole(0, len(things) - 1)]

    def contracting(self, longest: int) -> tuple[int, ...]:
        tail = sorted((self.whole(0, 9) for _ in range(self.whole(0, longest - 1))), reverse=True)
        return (sum(tail) + self.whole(1, 12), *(-tap for tap in tail))

    def taps(self, longest: int) -> tuple[int, ...]:
        if self.rng.random() < 0.5:
            return self.contracting(longest)
        return (self.whole(1, 9), *(self.whole(-9, 9) for _ in range(self.whole(0, longest - 1))))

    def weights(self, count: int) -> tuple[int, ...]:
        return tuple(self.whole(1, 9) for _ in range(count))

    def unit(self, steps: int) -> Unit:
        return cast(
            "Unit",
            self.one(EventLevel(), EventLevel(), ItemLevel(), ItemAddRemove(), ItemPerPeriod(self.whole(1, steps))),
        )

    def along_time(self, steps: int) -> WindowFamily:
        return cast("WindowFamily", self.one(Cumulative(), Rolling(self.whole(1, steps + 1))))

    def any_windows(self, steps: int) -> AnyWindow:
        return cast("AnyWindow", self.one(AnyWindow(), AnyWindow(self.whole(1, steps + 1))))

    def periods(self) -> Tumbling | ToDate:
        return cast("Tumbling | ToDate", self.one(*PERIODS))

    def thresholds(self, steps: int) -> tuple[int, ...]:
        return cast("tuple[int, ...]", self.one(*_OF_MORE_STEPS.get(steps, THRESHOLDS)))

    def problem(self, window: WindowFamily, steps: int) -> Problem:
        return Problem(window, steps, self.thresholds(steps), self.unit(steps), self.one(*LAWS), 1.0)

    def tree(self, length: int) -> TentTree:
        return TentTree(length, (self.whole(0, max(0, length - 1)),), self.whole(2, 5))

    def triangle(self, steps: int) -> np.ndarray:
        matrix = np.tril(self.rng.integers(-9, 10, (steps, steps)))
        np.fill_diagonal(matrix, self.rng.integers(1, 10, steps))
        return np.asarray(matrix)

    def offset_filter(self, steps: int, shift: int | None = None) -> OffsetFilter:
        """Rows of any sign, and weights and offsets that the bound just allows or that leave it room."""
        weights, offsets = [self.whole(1, 39)], [self.whole(0, 5)]
        for _ in range(steps - 1):
            offsets.append(self.whole(max(1, offsets[-1] - 1), offsets[-1] + 2))
            weights.append(-(-offsets[-2] * (weights[-1] + offsets[-2]) // offsets[-1]) + self.whole(0, 2))
        signs = [self.one(-1, 1, 1) for _ in range(steps)]
        rough = (self.whole(1, 19), *(self.whole(-6, 2) for _ in range(steps - 1)))
        taps = cast("tuple[int, ...]", self.one(rough, self.contracting(steps)))
        weights, offsets = (
            [sign * one for sign, one in zip(signs, part[::-1], strict=True)] for part in (weights, offsets)
        )
        return OffsetFilter(taps, tuple(weights), tuple(offsets), self.whole(0, 3) if shift is None else shift)

    def map(self, steps: int) -> IntegerMap:
        made: tuple[IntegerMap, ...] = (
            Filter(self.taps(steps + 2)),
            Filter(self.contracting(steps + 2)),
            AnchoredDifferences(
                self.whole(1, steps), self.whole(1, 5), self.whole(1, 5), offset=steps % self.whole(1, steps)
            ),
            Identity(self.whole(1, 3)),
            self.tree(steps),
            CausalTree(self.whole(2, 3), self.weights(self.whole(1, 4))),
            MatrixCounter(self.triangle(steps)),
            EndlessCounter(self.whole(2, 8)),
            self.offset_filter(steps),
        )
        return cast("IntegerMap", self.one(*made))

    def causal_map(self, steps: int) -> CausalMap:
        made: tuple[CausalMap, ...] = (
            Filter(self.taps(steps + 2)),
            Filter(self.contracting(steps + 2)),
            AnchoredDifferences(self.whole(1, steps), self.whole(1, 5), self.whole(1, 5), offset=self.whole(0, steps)),
            Identity(self.whole(1, 3)),
            CausalTree(self.whole(2, 3), self.weights(self.whole(1, 4))),
            MatrixCounter(self.triangle(steps)),
            MatrixCounter(self.triangle(steps + 2)),
            EndlessCounter(self.whole(2, 8)),
        )
        return cast("CausalMap", self.one(*made))


def contracting_taps(rng: np.random.Generator, count: int) -> tuple[int, ...]:
    """Random integers with the signs the lemma asks for, from barely to strongly contracting."""
    tail = np.sort(rng.integers(0, int(rng.choice([2, 5, 1000])), size=count - 1))[::-1]
    tail[int(rng.integers(0, count)) :] = 0
    slack = int(rng.choice([1, 2, 50, 5000]))
    return (int(tail.sum()) + slack, *(-int(tap) for tap in tail))


def any_taps(rng: np.random.Generator, count: int) -> tuple[int, ...]:
    """Random integers of any sign, the first one positive."""
    return (int(rng.integers(1, 30)), *map(int, rng.integers(-30, 31, size=count - 1)))


def toeplitz(taps: Sequence[int], steps: int) -> Ints:
    matrix = np.zeros((steps, steps), dtype=np.int64)
    for lag, tap in enumerate(taps[:steps]):
        matrix += tap * np.eye(steps, k=-lag, dtype=np.int64)
    return matrix


def falling_taps(rng: np.random.Generator, count: int) -> tuple[int, ...]:
    tail = np.sort(rng.random(count))[::-1]
    tail *= rng.random() / tail.sum()
    return (1000, *(-int(1000 * tap) for tap in tail))


def arbitrary_taps(rng: np.random.Generator, count: int) -> tuple[int, ...]:
    return (int(rng.integers(50, 120)), *(int(tap) for tap in rng.integers(-60, 60, size=count)))


def some_taps(seed: int, count: int) -> tuple[int, ...]:
    rng = np.random.default_rng(seed)
    return any_taps(rng, count) if seed % 2 else contracting_taps(rng, count)


DAYS = 40
# Forty days of Berlin, the change of the clocks among them, that begin and end within a week and a month.
SPRING = Calendar("2013-02-20", "1d", "Europe/Berlin")
PERIODS_OF_SPRING = (
    Tumbling(7),
    ToDate(7),
    *(family(name, calendar=SPRING) for family in (Tumbling, ToDate) for name in ("week", "month")),
)
