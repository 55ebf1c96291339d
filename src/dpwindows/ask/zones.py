"""Offsets of a named time zone as a small table, so that many times convert at once and without a time-zone engine.

Instants are microseconds since 1970-01-01T00:00Z; local times are microseconds since 1970-01-01T00:00 on the wall
clock of the zone. An ambiguous local time (clocks went back) is its first occurrence, a local time that never
happened (clocks went forward) is read with the offset from before the change: Python's rule for `fold=0`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

Int64Array = npt.NDArray[np.int64]

MICROSECOND = timedelta(microseconds=1)
DAY_US = 86_400_000_000
EPOCH = datetime(1970, 1, 1)
# Python's datetimes end at the years 1 and 9999; two days of slack leave room for any offset.
_FIRST_US = (datetime(1, 1, 3) - EPOCH) // MICROSECOND
_LAST_US = (datetime(9999, 12, 29) - EPOCH) // MICROSECOND


def to_microseconds(wall: datetime) -> int:
    """Microseconds from 1970-01-01T00:00 to a naive datetime, exactly."""
    return (wall - EPOCH) // MICROSECOND


def from_microseconds(value: int) -> datetime:
    """The naive datetime `value` microseconds after 1970-01-01T00:00."""
    return EPOCH + timedelta(microseconds=value)


@dataclass(frozen=True)
class OffsetPiece:
    """Local times in [first, end) lie `offset` microseconds ahead of UTC; None stands for no bound."""

    first: int | None
    end: int | None
    offset: int


@dataclass(frozen=True)
class OffsetTable:
    """The offsets of one zone over a stretch of time.

    `changes` are the n instants at which the offset changes, ascending; `offsets` the n + 1 offsets around them.
    """

    changes: Int64Array
    offsets: Int64Array

    def to_instants(self, local: Int64Array, fold: int = 0) -> Int64Array:
        """Instants of local times, in microseconds, of the same shape; `fold=1` is the second of two alike."""
        return local - self.offsets[np.searchsorted(self._local_changes(fold), local, side="right")]

    def to_local(self, instants: Int64Array) -> Int64Array:
        """Local times of instants, in microseconds, of the same shape."""
        return instants + self.offsets[np.searchsorted(self.changes, instants, side="right")]

    def local_pieces(self) -> list[OffsetPiece]:
        """The map from local time to offset (fold=0) as consecutive pieces covering all local times."""
        edges: list[int | None] = [None, *(int(edge) for edge in self._local_changes(0)), None]
        return [
            OffsetPiece(first, end, int(offset))
            for first, end, offset in zip(edges[:-1], edges[1:], self.offsets, strict=True)
        ]

    def _local_changes(self, fold: int) -> Int64Array:
        """Local times at which the offset in use changes.

        Around a change at instant u from offset o0 to o1 the wall clock is unclear between u + o0 and u + o1, in
        whichever order these come. fold=0 keeps o0 until the later one, fold=1 takes o1 from the earlier one.
        """
        pick = np.maximum if fold == 0 else np.minimum
        edges: Int64Array = self.changes + pick(self.offsets[:-1], self.offsets[1:])
        return edges


def offset_table(zone: ZoneInfo, first: int, last: int) -> OffsetTable:
    """The offsets of `zone` for instants from `first` to `last` (microseconds), and two days to either side."""
    if (fixed := zone.utcoffset(None)) is not None:  # only a zone whose clock is never put forward or back has one
        return OffsetTable(np.array([], dtype=np.int64), np.array([fixed // MICROSECOND], dtype=np.int64))
    low, high = (min(max(one, _FIRST_US), _LAST_US) for one in (first - 2 * DAY_US, last + 2 * DAY_US))
    # No zone changes its offset and back within a day, so daily samples meet every change.
    samples = [*range(low, high, DAY_US), high]
    offsets = [_offset_at(zone, samples[0])]
    changes: list[int] = []
    for before, after in pairwise(samples):
        offset = _offset_at(zone, after)
        if offset != offsets[-1]:
            changes.append(_change_between(zone, before, after))
            offsets.append(offset)
    return OffsetTable(np.array(changes, dtype=np.int64), np.array(offsets, dtype=np.int64))


def _offset_at(zone: ZoneInfo, instant: int) -> int:
    moment = (EPOCH.replace(tzinfo=UTC) + timedelta(microseconds=instant)).astimezone(zone)
    offset = moment.utcoffset()
    assert offset is not None, "a ZoneInfo always has an offset"
    return offset // MICROSECOND


def _change_between(zone: ZoneInfo, before: int, after: int) -> int:
    """The first instant in (before, after] with the offset of `after`, by bisection."""
    wanted = _offset_at(zone, after)
    while after - before > 1:
        middle = (before + after) // 2
        if _offset_at(zone, middle) == wanted:
            after = middle
        else:
            before = middle
    return after
