"""Groups as they are asked for: codes, shares, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import pytest

from dpwindows.ask.groups import Grouping, grouping
from dpwindows.ask.privacy import EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod
from dpwindows.errors import InputError


def by(lists: dict[str, Any], **options: Any) -> Grouping:
    found = grouping(lists, **options)
    assert found is not None
    return found


def test_codes_run_over_all_columns_then_over_fewer() -> None:
    found = by({"a": ["x", "y"], "b": [1, 2, 3]}, totals=0.4)
    assert [(level.kept, level.first, level.count) for level in found.levels] == [
        ((0, 1), 0, 6),
        ((0,), 6, 2),
        ((1,), 8, 3),
        ((), 11, 1),
    ]
    assert found.values_of(found.levels[0])[:4] == [("x", 1), ("x", 2), ("x", 3), ("y", 1)]
    assert found.values_of(found.levels[2]) == [(None, 1), (None, 2), (None, 3)]
    assert found.values_of(found.levels[3]) == [(None, None)]
    assert found.shares() == pytest.approx((0.6, 0.4 / 3, 0.4 / 3, 0.4 / 3))
    assert math.isclose(sum(found.shares()), 1.0)


def test_without_totals_there_is_one_level_with_everything() -> None:
    found = by({"a": ["x", "y"], "b": [1]})
    assert (len(found.levels), found.shares()) == (1, (1.0,))


def test_how_many_groups_one_item_is_in() -> None:
    lists = {"a": ["x", "y", "z"]}
    for options, most in (({}, (3, 1)), ({"max_groups": 2}, (2, 1)), ({"max_groups": 9}, (3, 1))):
        found = by(lists, totals=0.5, **options)
        assert tuple(map(found.most, found.levels)) == most
    found = by(lists, totals=0.5, group_of="item")
    assert tuple(map(found.most, found.levels)) == (1, 1)


@pytest.mark.parametrize(
    ("lists", "options", "message"),
    [
        ({}, {}, "by 1 to 6 columns"),
        ({"a": "x,y"}, {}, "must be a list such as"),
        ({"a": []}, {}, "at least one"),
        ({"a": ["x", "x"]}, {}, "'x' twice"),
        ({"a": [1, "x"]}, {}, "all of them whole numbers"),
        ({"a": [True]}, {}, "got True"),
        ({"a": [1.5]}, {}, "got 1.5"),
        ({"a": [None]}, {}, "got None"),
        ({"a": [""]}, {}, "at least one character"),
        ({"a": ["x\0"]}, {}, "must be texts"),
        ({"a": ["\ud800"]}, {}, "must be texts"),
        ({"a": [2**63]}, {}, "64 bits"),
        ({"a": ["x"], "A": ["y"]}, {}, "twice"),
        ({"Estimate": ["x"]}, {}, "a release has a column of that name"),
        ({"": ["x"]}, {}, "takes the name of a column"),
        ({"a": ["x"]}, {"group_of": "row"}, "must be event or item"),
        ({"a": ["x"]}, {"max_groups": 0}, "at least 1"),
        ({"a": ["x"]}, {"max_groups": True}, "at least 1"),
        ({"a": ["x"]}, {"totals": 0.0}, "share of the budget"),
        ({"a": ["x"]}, {"totals": 1}, "share of the budget"),
        ({"a": range(3000), "b": range(3000)}, {}, "more than 5,000,000 groups"),
        (["a"], {}, "must give the values of each column"),
        (None, {"totals": 0.5}, "give --by COLUMN"),
    ],
)
def test_what_makes_no_groups_is_refused(lists: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        grouping(lists, **options)


@pytest.mark.parametrize(
    ("unit", "options", "message"),
    [
        (EventLevel(), {"group_of": "item"}, "would move all of its history"),
        (EventLevel(), {"max_groups": 1}, "needs no limit"),
        (ItemLevel(), {}, "give --max-groups N"),
        (ItemAddRemove(), {"group_of": "item", "max_groups": 1}, "an item is in one group"),
        (ItemPerPeriod(3), {"group_of": "item"}, "long before or after"),
        (ItemPerPeriod(3), {"max_groups": 1}, "give --max-groups 2, at 2 times the cost"),
        (ItemPerPeriod(3), {}, "give --max-groups 2"),
    ],
)
def test_groups_that_do_not_go_with_a_unit_are_refused(unit: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        by({"a": ["x", "y"]}, **options).require_fit(unit, 10)


def test_a_period_as_long_as_the_range_is_the_whole_item() -> None:
    by({"a": ["x", "y"]}, group_of="item").require_fit(ItemPerPeriod(10), 10)
    by({"a": ["x", "y"]}, max_groups=2).require_fit(ItemPerPeriod(3), 10)
