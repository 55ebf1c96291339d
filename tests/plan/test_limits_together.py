"""The least error of several thresholds together: below what any noise has, and above the limits of each alone."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

import dpwindows as dw
from dpwindows.ask.queries import Rolling
from dpwindows.kernel.maps.integer_maps import FloatArray
from dpwindows.plan.limits_together import limits_together
from dpwindows.strategies.in_periods import together_limit
from tests.end_to_end.command_line import run
from tests.plans import plan_of
from tests.single_item import all_logs, differences
from tests.strategies.search.test_limits import least_error

ITEM, ADD_REMOVE = dw.ItemLevel(), dw.ItemAddRemove()
GAUSS = dw.ApproxDP(1.0, 1e-6)


def changes(length: int, thresholds: tuple[int, ...], unit: dw.Unit, steps: int) -> FloatArray:
    """All changes of all thresholds that one neighbour can make, by enumeration."""
    pieces = differences(all_logs(steps, max(thresholds)), Rolling(length), thresholds, unit)
    every = np.unique(np.concatenate([piece.reshape(len(piece), -1) for piece in pieces]), axis=0)
    return np.asarray(every[every.any(axis=1)], dtype=np.float64)


@pytest.mark.parametrize(
    ("length", "thresholds", "unit", "steps"),
    [
        (1, (1, 2), ADD_REMOVE, 5),
        (1, (1, 3), ADD_REMOVE, 4),
        (1, (1, 2), ITEM, 3),
        (1, (1, 2, 3), ITEM, 3),
        (2, (1, 2), ADD_REMOVE, 5),
        (3, (1, 2), ADD_REMOVE, 6),
        (2, (1, 2), ITEM, 4),
        (2, (1, 3), ITEM, 3),
    ],
)
def test_the_limit_is_below_the_best_mechanism_for_the_enumerated_changes(
    length: int, thresholds: tuple[int, ...], unit: dw.Unit, steps: int
) -> None:
    rows = changes(length, thresholds, unit, steps)
    _, achieved = least_error(rows)
    found = together_limit(Rolling(length), thresholds, unit, steps)
    assert found is not None
    assert found <= achieved * (1 + 1e-6)
    if length == 1:
        # Windows of one step are all alike, and nothing else is drawn.
        assert found > 0.8 * achieved


@pytest.mark.parametrize("unit", [ITEM, ADD_REMOVE], ids=lambda unit: unit.name)
@pytest.mark.parametrize("window", [dw.Rolling(28), dw.Rolling(1), dw.Tumbling(7)], ids=str)
def test_all_thresholds_together_are_shown_beside_their_limit(window: Any, unit: dw.Unit) -> None:
    plan = plan_of(window.at_least(1, 2, 3), steps=365, unit=unit, budget=GAUSS)
    (found,) = limits_together(plan)
    entries = plan.forecast()
    assert found.k == (1, 2, 3)
    assert found.rms == pytest.approx(math.sqrt(sum(entry.rms**2 for entry in entries) / 3))
    alone = math.sqrt(sum((entry.limit or 0.0) ** 2 for entry in entries) / 3)
    assert alone * 1.1 < found.limit < found.rms
    assert found.ratio_to_limit == pytest.approx(found.rms / found.limit)


def test_where_no_more_is_known_squares_of_limits_add_up() -> None:
    plan = plan_of(dw.Rolling(7).at_least(1, 3), steps=90, unit=dw.EventLevel(), budget=GAUSS)
    (found,) = limits_together(plan)
    assert found.limit == pytest.approx(math.sqrt(sum((entry.limit or 0.0) ** 2 for entry in plan.forecast()) / 2))
    assert not list(limits_together(plan_of(dw.Rolling(7), steps=90, unit=ITEM, budget=GAUSS)))
    counted = dw.Rolling(7).at_least(1, 2).exactly(1)
    assert not list(limits_together(plan_of(counted, steps=90, unit=ITEM, budget=GAUSS)))


def test_tumbling_windows_are_windows_of_one_step() -> None:
    assert together_limit(dw.Tumbling(5), (1, 2), ITEM, 50) == together_limit(Rolling(1), (1, 2), ITEM, 10)
    assert together_limit(Rolling(1), (1,), ITEM, 10) == pytest.approx(10**0.5)


def test_the_command_line_shows_it() -> None:
    asked = ["--window", "rolling:28", "--at-least", "1", "--at-least", "3", "--unit", "item-add-remove"]
    asked += ["--epsilon", "1", "--delta", "1e-6", "--steps", "365"]
    assert "all k of rolling:28 together: 1.3" in run("plan", *asked).must_work().out
    (entry,) = json.loads(run("plan", *asked, "--json").must_work().out)["together"]
    assert (entry["window"], entry["k"]) == ("rolling:28", [1, 3])
    assert "by" not in entry
