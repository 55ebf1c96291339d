"""A release table cut into what is drawn: families of windows, their series, and rows few enough for a page.

Thinning picks released numbers, each with its own error; it never averages them, so whatever is drawn is in the file.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dpwindows.report.clock import Clock

_MOST_NAMED = 6
# The value of a group column in the rows over all groups.
ALL = "all"


def seen(measure: str, k: object) -> str:
    """A measure in words: `at least once`, `exactly 3 times`, `occurrences`."""
    if k is None:
        return measure
    return f"{measure.replace('_', ' ')} {'once' if k == 1 else 'twice' if k == 2 else f'{k} times'}"


@dataclass(frozen=True)
class Series:
    """One measure in the windows of one family, in the order of the windows' ends.

    Attributes:
        window: canonical text of the family, such as `rolling:28`.
        kind: `at_least`, `exactly` or `occurrences`.
        k: the number of occurrences of an item; None where they are counted themselves.
        rows: its rows of the release.
        groups: for each group column its name and the group counted; "all" where it is not told apart.
    """

    window: str
    kind: str
    k: int | None
    rows: pa.Table
    groups: tuple[tuple[str, str], ...] = ()

    @property
    def label(self) -> str:
        """The measure in words: `at least once`, `exactly 3 times`."""
        groups = (f"{name} {value}" for name, value in self.groups if value != ALL)
        return ", ".join((seen(self.kind, self.k), *groups))

    @property
    def full_label(self) -> str:
        """The label with what is counted in every group column, `all` too."""
        return ", ".join((seen(self.kind, self.k), *(f"{name} {value}" for name, value in self.groups)))

    def named(self, noun: str) -> str:
        """What its numbers are numbers of: `distinct items`, `items seen at least twice`, `occurrences`."""
        if self.distinct:
            return f"distinct {noun}"
        return self.label if self.k is None else f"{noun} seen {self.label}"

    @property
    def total(self) -> bool:
        """Whether this counts over all groups."""
        return all(value == ALL for _, value in self.groups)

    @property
    def distinct(self) -> bool:
        """Whether this counts distinct items."""
        return self.kind == "at_least" and self.k == 1

    def numbers(self, column: str) -> npt.NDArray[np.float64]:
        """One column as floating numbers; what is missing is NaN."""
        return np.asarray(pc.cast(self.rows[column], pa.float64()).to_numpy(), dtype=np.float64)

    def steps(self, column: str) -> npt.NDArray[np.int64]:
        """`first_step` or `last_step` as an array."""
        return np.asarray(self.rows[column].to_numpy(), dtype=np.int64)

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """How many steps each window covers."""
        return self.steps("last_step") - self.steps("first_step") + 1

    def thinned(self, most: int) -> Series:
        """The series with at most `most` windows (at least one), evenly spaced, the last one among them."""
        count = self.rows.num_rows
        stride = max(1, math.ceil(count / max(1, most)))
        return self if stride == 1 else self.take(np.arange((count - 1) % stride, count, stride))

    def last_end(self) -> Series:
        """Only the windows with the latest end, shortest first."""
        last = self.steps("last_step")
        chosen = np.flatnonzero(last == last.max())
        return self.take(chosen[np.argsort(self.lengths[chosen], kind="stable")])

    @property
    def windows(self) -> npt.NDArray[np.int64]:
        """A number for each window, ascending."""
        return (self.steps("last_step") << 32) + self.steps("first_step")

    @property
    def counted(self) -> tuple[str, int | None, tuple[tuple[str, str], ...]]:
        """What is counted, whatever the windows."""
        return self.kind, self.k, self.groups

    def take(self, chosen: npt.NDArray[np.int64]) -> Series:
        """The series with only these rows."""
        return replace(self, rows=self.rows.take(pa.array(chosen)))


@dataclass(frozen=True)
class Family:
    """All series of one window family."""

    window: str
    series: tuple[Series, ...]

    @property
    def name(self) -> str:
        """The kind of family, such as `cumulative` or `rolling`: what stands before the colon."""
        return self.window.partition(":")[0]

    @property
    def main(self) -> Series:
        """The series to tell of first: the first over all groups, where there is one."""
        return next((one for one in self.series if one.total), self.series[0])

    @property
    def together(self) -> str:
        """The groups that a total adds up, in words: `DE, FR and NA together`; empty where there is no such total."""
        if not (self.main.total and self.main.groups):
            return ""
        columns = []
        for place, (name, _) in enumerate(self.main.groups):
            values = list(dict.fromkeys(one.groups[place][1] for one in self.series if one.groups[place][1] != ALL))
            shown = values if len(values) <= _MOST_NAMED else [*values[: _MOST_NAMED - 1], "others on the public list"]
            said = " and ".join([*([", ".join(shown[:-1])] if shown[1:] else []), *shown[-1:]])
            columns.append(said if len(self.main.groups) == 1 else f"{name} {said}")
        return f"{', '.join(columns)}{',' if len(columns) > 1 else ''} together"

    @property
    def size(self) -> int | None:
        """The number after the colon: the length of a rolling window or of a period, the longest of any windows."""
        digits = self.window.partition(":")[2]
        return int(digits) if digits.isdigit() else None

    def in_windows(self, clock: Clock) -> str:
        """Where items are counted, to follow what is counted: `in the last 28 days`, `in each month`."""
        span = clock.length(self.size) if self.size else self.window.partition(":")[2]
        match self.name:
            case "rolling" if self.size and (self.size > 1 or clock.count > 1):
                return f"in the last {span}"
            case "rolling":
                return f"in each {clock.unit or 'step'}"
            case "tumbling":
                return f"in each {span}" if not self.size else f"in each window of {span}"
            case "to-date":
                return f"since the {span} began"
            case "any":
                return f"in every window of up to {span}" if self.size else "in every window"
            case "cumulative":
                return f"since {clock.starts(clock.wall(self.main.rows['start'].slice(0, 1)))[0]}"
        return f"in the windows {self.window}"

    def kind_of_windows(self, clock: Clock) -> str:
        """What the windows of a rolling or tumbling family are called, in the plural."""
        return f"windows of {clock.length(self.size)}" if self.size else f"{self.window.partition(':')[2]}s"


def mean_square(std_error: Any, bias_bound: Any) -> Any:
    """What decides between released numbers for one window: the one to quote is the first of the least."""
    return std_error**2 + bias_bound**2


def to_quote(one: Series, alike: Sequence[Series]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """For each window of a series the number to quote: which of the series that count the same has it, in which row."""
    windows = one.windows
    least, which, rows = np.full(len(windows), np.inf), np.full(len(windows), -1), np.zeros(len(windows), np.int64)
    for at, other in enumerate(alike):
        place = np.minimum(np.searchsorted(other.windows, windows), other.rows.num_rows - 1)
        error = mean_square(other.numbers("std_error"), other.numbers("bias_bound"))[place]
        better = (other.windows[place] == windows) & ((error < least) | (which < 0))
        least[better], which[better], rows[better] = np.nan_to_num(error[better], nan=np.inf), at, place[better]
    return which, rows


def group_columns(table: pa.Table) -> list[str]:
    """The columns that name groups: those between `k` and `first_step`."""
    names: list[str] = table.column_names
    return names[names.index("k") + 1 : names.index("first_step")]


def families(table: pa.Table) -> list[Family]:
    """The families of a release with their series, in the order of the table; series without rows do not occur."""
    groups = group_columns(table)
    names = ["window", "measure", "k", *groups]
    keys = table.select(names).group_by(names, use_threads=False).aggregate([]).to_pylist()
    found: dict[str, list[Series]] = {}
    for key in keys:
        same = [pc.is_null(table[name]) if key[name] is None else pc.equal(table[name], key[name]) for name in names]
        rows = table.filter(reduce(pc.and_, same))
        ordered = rows.sort_by([("last_step", "ascending"), ("first_step", "ascending")])
        told = tuple((name, ALL if key[name] is None else str(key[name])) for name in groups)
        one = Series(key["window"], key["measure"], key["k"], ordered, groups=told)
        found.setdefault(key["window"], []).append(one)
    return [Family(window, tuple(series)) for window, series in found.items()]
