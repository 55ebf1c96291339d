"""From a time to its step number: a piecewise linear map in exact integers, and its SQL.

Steps of equal length need one division. Calendar steps under daylight saving need a few pieces (a day of 23 or 25
hours is a piece of its own). The map for naive times goes from the wall clock straight to the step; where the clock
changes leave no trace, as for whole days, it collapses back to one division.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dpwindows.ask.timeline import Timeline
from dpwindows.ask.zones import OffsetTable


@dataclass(frozen=True)
class Piece:
    """Times t in [low, high) belong to step `first + (t - origin) // stride`, where origin <= low."""

    low: int
    high: int
    origin: int
    stride: int
    first: int

    def step(self, t: int) -> int:
        """The step of a time in [low, high)."""
        return self.first + (t - self.origin) // self.stride

    def from_(self, low: int) -> Piece:
        """This piece from an earlier time on, written so that its formula divides no negative number."""
        before = -((low - self.origin) // self.stride)
        return Piece(low, self.high, self.origin - before * self.stride, self.stride, self.first - before)

    @property
    def is_constant(self) -> bool:
        """True if the piece lies within one step."""
        return self.step(self.low) == self.step(self.high - 1)

    def agrees_on(self, other: Piece) -> bool:
        """True if this piece's formula gives the steps of `other` throughout the range of `other`."""
        if other.is_constant:
            wanted = other.step(other.low)
            return self.step(other.low) == wanted == self.step(other.high - 1)
        shift, rest = divmod(other.origin - self.origin, self.stride)
        return self.stride == other.stride and rest == 0 and other.first - self.first == shift


@dataclass(frozen=True)
class StepMap:
    """The steps of all times in a timeline: ascending pieces. A time in none of them is outside the range."""

    pieces: tuple[Piece, ...]

    @property
    def low(self) -> int:
        """The first time inside the range."""
        return self.pieces[0].low

    @property
    def high(self) -> int:
        """The end of the range (exclusive)."""
        return self.pieces[-1].high

    def sql(self, time: str, divide: str = "{} // {}") -> str:
        """SQL for the step of the bigint expression `time`, which lies in [low, high); null outside the range.

        `divide` is that of a `Dialect`.
        """
        branches: list[tuple[int, str]] = []
        for index, piece in enumerate(self.pieces):
            branches.append((piece.low, _piece_sql(piece, time, divide)))
            last = index + 1 == len(self.pieces)
            if not last and self.pieces[index + 1].low > piece.high:
                branches.append((piece.high, "NULL"))
        return case_sql(time, branches)


def instant_map(timeline: Timeline) -> StepMap:
    """The map from instants (microseconds since 1970 UTC), or from integer time, to steps."""
    bounds = timeline.boundary_values
    lengths = np.diff(bounds)
    edges = [0, *(int(i) + 1 for i in np.flatnonzero(np.diff(lengths))), len(lengths)]
    return _joined(
        Piece(int(bounds[i]), int(bounds[j]), int(bounds[i]), int(lengths[i]), i + 1)
        for i, j in pairwise(edges)
        if lengths[i] > 0
    )


def wall_map(timeline: Timeline) -> StepMap:
    """The map from local times (microseconds on the wall clock of the zone) to steps."""
    return _joined(_wall_pieces(instant_map(timeline), timeline.offsets))


def offset_sql(offsets: OffsetTable) -> str:
    """SQL for the zone's offset, in microseconds, at the local time `wall` (a bigint column)."""
    pieces = offsets.local_pieces()
    return case_sql("wall", [(piece.first or 0, str(piece.offset)) for piece in pieces])


def case_sql(time: str, branches: Sequence[tuple[int, str]]) -> str:
    """SQL that takes the last branch whose bound is at most `time`, the first one if none is.

    The comparisons form a balanced tree: hundreds of branches cost a handful of comparisons a row.
    """
    if len(branches) == 1:
        return branches[0][1]
    middle = len(branches) // 2
    before, after = case_sql(time, branches[:middle]), case_sql(time, branches[middle:])
    return f"CASE WHEN {time} < {branches[middle][0]} THEN {before} ELSE {after} END"


def _wall_pieces(instants: StepMap, offsets: OffsetTable) -> Iterator[Piece]:
    for stretch in offsets.local_pieces():
        shift = stretch.offset
        for piece in instants.pieces:
            low, high = piece.low + shift, piece.high + shift
            low = low if stretch.first is None else max(low, stretch.first)
            high = high if stretch.end is None else min(high, stretch.end)
            if low < high:
                yield Piece(low, high, piece.origin + shift, piece.stride, piece.first)


def _joined(pieces: Iterator[Piece]) -> StepMap:
    """Join neighbours that one formula covers."""
    joined: list[Piece] = []
    for piece in pieces:
        previous = joined[-1] if joined else None
        if previous is not None and previous.high == piece.low:
            if previous.agrees_on(piece):
                joined[-1] = Piece(previous.low, piece.high, previous.origin, previous.stride, previous.first)
                continue
            if piece.agrees_on(previous):
                joined[-1] = piece.from_(previous.low)
                continue
        joined.append(piece)
    return StepMap(tuple(joined))


def _piece_sql(piece: Piece, time: str, divide: str) -> str:
    if piece.is_constant:
        return str(piece.step(piece.low))
    return f"{piece.first} + {divide.format(f'({time} - ({piece.origin}))', piece.stride)}"
