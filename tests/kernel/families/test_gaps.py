"""Bounds of filters over gaps against all histories of an item: attained, and never below what a change moves."""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

from dpwindows.ask.privacy import ItemLevel
from dpwindows.ask.queries import AnyWindow
from dpwindows.kernel.families.gaps import Gaps, gap_filter_l1, gap_filter_l2
from tests.kernel.cases import PRESENCE, bound_of, case

Histories = dict[tuple[int, ...], NDArray[np.int64]]


def asked(measured: Gaps) -> tuple[AnyWindow, Gaps, int, tuple[int, ...]]:
    """At least 1, over all windows of the map's range."""
    return AnyWindow(), measured, measured.steps, (1,)


def histories(measured: Gaps) -> Histories:
    """What is measured of the log that holds one item alone, for all sets of steps that it may occur in."""
    found: Histories = {}
    for occurs in product((0, 1), repeat=measured.steps):
        before = np.concatenate([[0], np.cumsum(occurs)])
        exact = np.triu(before[None, 1:] > before[:-1, None]).astype(np.int64)
        found[occurs] = measured.encode_windows(exact)
    return found


def test_a_change_of_an_item_is_not_charged_much_too_much() -> None:
    """Falling responses: the bound is that of two items, and a change moves nearly as much."""
    measured = Gaps((16, -8, -2, -1), (5, 6, 7, 8, 8, 9, 9), 0, 100)
    moved = list(histories(measured).values())
    furthest = max(int(((one - other) ** 2).sum()) for one in moved for other in moved)
    assert furthest <= bound_of(gap_filter_l2, *asked(measured), ItemLevel()) < 1.6 * furthest


def test_numbers_beyond_64_bits_are_charged_exactly() -> None:
    measured = Gaps((1 << 40, -(1 << 39)), (1 << 30, 1 << 31, 1 << 31), 1 << 60, 1 << 90)
    worst = max(sum(int(value) ** 2 for value in one) for one in histories(measured).values())
    assert bound_of(gap_filter_l2, *asked(measured), PRESENCE) == worst > 1 << 180


def test_an_offset_has_no_bound_for_absolute_values() -> None:
    assert gap_filter_l1(case(AnyWindow(), Gaps((1,), (1, 1), 1, 1), 2, (1,), PRESENCE)) is None
