"""Groups from public lists: counts by country, platform and such, and totals over them.

The lists are public and never read from data: a group without any event is released like all others. Each group has a
number, its code, from 0 on. First come the combinations of values of all columns, in the order of the lists, where the
last column varies fastest. If totals are asked for, those over some of the columns follow, and last the total over all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from typing import Any, Literal

import msgspec

from dpwindows.ask.privacy import EventLevel, ItemPerPeriod, Unit
from dpwindows.ask.shapes import plain_values
from dpwindows.ask.whole_numbers import is_whole, read_whole
from dpwindows.errors import InputError

GroupOf = Literal["event", "item"]
Value = str | int

# What a release says of each number, beside its groups.
COLUMNS_BEFORE = ("window", "measure", "k")
COLUMNS_AFTER = (
    *("first_step", "last_step", "start", "end", "complete"),
    *("estimate", "std_error", "bias_bound", "lower", "upper", "consistent"),
)
_MOST_COLUMNS, _MOST_GROUPS = 6, 5_000_000


class GroupColumn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A column of the log, and the public list of its values that make groups: all text, or all whole numbers.

    Raises:
        InputError: the name or a value is not legal, or a release has a column of that name.
    """

    name: str
    values: tuple[Value, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip() or "\0" in self.name:
            raise InputError(f"--by takes the name of a column, got {self.name!r}")
        if self.name.casefold() in (*COLUMNS_BEFORE, *COLUMNS_AFTER):
            raise InputError(
                f"--by {self.name!r}: a release has a column of that name: rename it, in a view for example"
            )
        if not self.values:
            raise InputError(f"--by {self.name!r} needs a public list of its values: give --values with at least one")
        for value in self.values:
            if not _is_value(value) or type(value) is not type(self.values[0]):
                raise InputError(
                    f"the values of {self.name!r} must be texts of at least one character, or all of them whole "
                    f"numbers of 64 bits, got {value!r}"
                )
        if len(set(self.values)) < len(self.values):
            raise InputError(f"--values of {self.name!r} has {_repeated(self.values)!r} twice: each value is one group")

    def numbers(self, type_name: str) -> tuple[int, ...]:
        """The values for a column of whole numbers.

        Raises:
            InputError: one is no whole number, or two are the same.
        """
        numbers = tuple(value if isinstance(value, int) else _whole(value) for value in self.values)
        for value, number in zip(self.values, numbers, strict=True):
            if number is None:
                raise InputError(
                    f"--values of {self.name!r} must be whole numbers of 64 bits, since the column is of type "
                    f"{type_name}, got {value!r}"
                )
        if len(set(numbers)) < len(numbers):
            raise InputError(f"--values of {self.name!r} has the number {_repeated(numbers)} twice: each is one group")
        return tuple(number for number in numbers if number is not None)

    def texts(self, type_name: str) -> tuple[str, ...]:
        """The values for a column of text; raises `InputError` if they are numbers."""
        texts = tuple(value for value in self.values if isinstance(value, str))
        if len(texts) < len(self.values):
            raise InputError(
                f"the values of {self.name!r} are whole numbers, and the column is of type {type_name}: give them as "
                f"text, such as {str(self.values[0])!r}"
            )
        return texts


@dataclass(frozen=True)
class Level:
    """The groups by some of the columns, over all values of the others: `count` codes from `first` on."""

    kept: tuple[int, ...]
    first: int
    count: int


class Grouping(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """Which groups are counted, what has a group, and in how many groups one item counts.

    Attributes:
        columns: the columns that make groups, with their public values.
        group_of: `event`: each event is in the group of its own row. `item`: each item is in one group, that of its
            first event; of several at that moment, or in that step of a stream, the first by the lists.
        max_groups: the most groups that one item counts in, those it was first seen in (ties: the first by the lists);
            None where a unit of privacy needs no such limit.
        totals: the share of the budget that goes to totals over all values of a column, or of several; None for none.

    Raises:
        InputError: something of it is not legal.
    """

    columns: tuple[GroupColumn, ...]
    group_of: GroupOf = "event"
    max_groups: int | None = None
    totals: float | None = None

    def __post_init__(self) -> None:
        if not 1 <= len(self.columns) <= _MOST_COLUMNS:
            raise InputError(f"groups are by 1 to {_MOST_COLUMNS} columns, got {len(self.columns)}")
        names = [column.name.casefold() for column in self.columns]
        if len(set(names)) < len(names):
            raise InputError(f"--by names the column {_repeated(names)!r} twice")
        if self.group_of not in ("event", "item"):
            raise InputError(f"--group-of must be event or item, got {self.group_of!r}")
        if self.max_groups is not None and not is_whole(self.max_groups):
            raise InputError(f"--max-groups must be a whole number of at least 1, got {self.max_groups!r}")
        share = self.totals
        if share is not None and (
            isinstance(share, bool) or not isinstance(share, (int, float)) or not 0.001 <= share <= 0.999
        ):
            raise InputError(f"--totals must be a share of the budget between 0.001 and 0.999, got {share!r}")
        if math.prod(len(column.values) for column in self.columns) > _MOST_GROUPS:
            raise InputError(f"--by makes more than {_MOST_GROUPS:,} groups: give fewer values or columns")

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that make groups."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """All columns together, then, with totals, every choice of fewer of them, more columns before fewer."""
        places = range(len(self.columns))
        fewer = [kept for size in reversed(places) for kept in combinations(places, size)] if self.totals else []
        levels, first = [], 0
        for kept in (tuple(places), *fewer):
            count = math.prod(len(self.columns[place].values) for place in kept)
            levels.append(Level(kept, first, count))
            first += count
        return tuple(levels)

    def shares(self) -> tuple[float, ...]:
        """The share of the budget of every level; all but the first have equal parts of that for totals."""
        totals = self.totals or 0.0
        others = len(self.levels) - 1
        return (1.0 - totals, *[totals / others for _ in range(others)])

    def values_of(self, level: Level) -> list[tuple[Value | None, ...]]:
        """For each group of a level its value of every column, None for all values."""
        kept = [self.columns[place].values if place in level.kept else (None,) for place in range(len(self.columns))]
        return list(product(*kept))

    def most(self, level: Level) -> int:
        """The most groups of a level that one item is in."""
        return 1 if self.group_of == "item" else min(level.count, self.max_groups or level.count)

    @property
    def limits_groups(self) -> bool:
        """Whether an item counts in fewer groups than it may have events in, those that it was first seen in."""
        return self.group_of == "event" and (self.max_groups or self.levels[0].count) < self.levels[0].count

    @property
    def has_rule(self) -> bool:
        """Whether an item's groups are decided by its events' moments."""
        return self.group_of == "item" or self.limits_groups

    def require_fit(self, unit: Unit, steps: int) -> None:
        """Check that what has a group goes with what is protected.

        Raises:
            InputError: it does not; the message says why, and what does.
        """
        if isinstance(unit, EventLevel):
            self._require_event()
        elif self.group_of == "item" and self.max_groups is not None:
            raise InputError("--max-groups goes with a group per event: with --group-of item an item is in one group")
        elif isinstance(unit.fit_to_range(steps), ItemPerPeriod):
            self.require_period(unit.name)
        elif self.group_of == "event" and self.max_groups is None:
            raise InputError(
                f"at the level of {unit.name} one item may have events in every group: give --max-groups N, which "
                f"counts each item in its first N groups, or --group-of item"
            )

    def _require_event(self) -> None:
        if self.group_of == "item":
            raise InputError(
                "--group-of item does not go with --unit event: one event, if it is an item's first, would move all of "
                "its history to another group. Leave --group-of out, or protect items"
            )
        if self.max_groups is not None:
            raise InputError(
                "--max-groups does not go with --unit event, which needs no limit: one event is in one group. Leave it "
                "out"
            )

    def require_period(self, name: str) -> None:
        """Check that nothing about an item's groups depends on what it does in other periods than one.

        Raises:
            InputError: it does.
        """
        most = self.levels[0].count
        if self.group_of == "item":
            raise InputError(
                f"--group-of item does not go with --unit {name}: a change within the period may move what an item did "
                f"long before or after to another group. Protect whole items (item, item-add-remove)"
            )
        if self.max_groups is None or self.max_groups < most:
            raise InputError(
                f"with --unit {name} an item must count in all of its groups, since a limit would let a change within "
                f"the period move what the item did outside of it: give --max-groups {most}, at {most} times the cost, "
                f"or protect whole items (item, item-add-remove)"
            )

    def statement(self, unit: Unit) -> str:
        """What groups mean for a promise, in plain words."""
        by = " and ".join(self.names)
        beside = " Events whose values are not on the public lists are not counted, not even in totals."
        if isinstance(unit, EventLevel):
            return (
                f"Counts are by {by}, each event in the group of its own values; to move one event to another group is "
                f"two changes, so its group is protected at twice the epsilon and a larger delta (four times the rho)."
                f"{beside}"
            )
        if self.group_of == "item":
            return f"Counts are by {by}, each item in one group, the first that it was seen in.{beside}"
        first = self.max_groups
        groups = "group" if first == 1 else f"{first} groups"
        return f"Counts are by {by}, each item in at most {first} of them, the first {groups} it was seen in.{beside}"

    def to_dict(self) -> dict[str, Any]:
        """The grouping as plain values, for metadata, ledgers and states; `read_shape` gives it back."""
        return plain_values(self)


def cells_of(grouping: Grouping | None) -> int:
    """The number of groups, totals included, that every query is answered in; 1 without groups."""
    return 1 if grouping is None else sum(level.count for level in grouping.levels)


def grouping(
    by: Mapping[str, Iterable[Value]] | None,
    *,
    group_of: str | None = None,
    max_groups: int | None = None,
    totals: float | None = None,
) -> Grouping | None:
    """The groups that options ask for; None if there are none.

    Args:
        by: the columns with their public values, in the order of the released columns.
        group_of: `event` (the default) or `item`.
        max_groups: see `Grouping`.
        totals: see `Grouping`.

    Raises:
        InputError: something of it is not legal, or means nothing without groups.
    """
    if by is None:
        others = {"--group-of": group_of, "--max-groups": max_groups, "--totals": totals}
        for name, value in others.items():
            if value is not None:
                raise InputError(f"{name} says how groups are counted: give --by COLUMN and --values too")
        return None
    if not isinstance(by, Mapping):
        raise InputError(f'by must give the values of each column, such as {{"origin": ["EWR", "JFK"]}}, got {by!r}')
    for name, values in by.items():
        if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
            raise InputError(f"the values of {name!r} must be a list such as ['EWR', 'JFK'], got {values!r}")
    columns = tuple(GroupColumn(name, tuple(values)) for name, values in by.items())
    return Grouping(columns, group_of or "event", max_groups, totals)  # type: ignore[arg-type]  # checked there


def _is_value(value: object) -> bool:
    if isinstance(value, str):
        return value != "" and "\0" not in value and not any("\ud800" <= letter <= "\udfff" for letter in value)
    return is_whole(value, -(2**63), 2**63 - 1)


def _whole(text: str) -> int | None:
    digits = read_whole(text.removeprefix("-"))
    number = -digits if digits is not None and text.startswith("-") else digits
    return number if is_whole(number, -(2**63), 2**63 - 1) else None


def _repeated(values: Iterable[object]) -> object:
    seen: set[object] = set()
    return next(value for value in values if value in seen or seen.add(value))  # type: ignore[func-returns-value]
