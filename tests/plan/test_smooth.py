"""No forecast rises much from one number of steps to the next, whatever limits the code has: `benchmarks/smooth.py`."""

from __future__ import annotations

import pytest

import dpwindows as dw
from dpwindows.ask.privacy import parse_unit
from dpwindows.ask.queries import parse_window


def error(window: str, thresholds: tuple[int, ...], unit: str, steps: int) -> float:
    """The largest error forecast of any threshold."""
    query, timeline = parse_window(window).at_least(*thresholds), dw.Timeline.of_steps(steps)
    plan = dw.Plan([query], timeline=timeline, unit=parse_unit(unit), budget=dw.ApproxDP(1.0, 1e-6))
    return max(entry.rms for entry in plan.forecast())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("window", "thresholds", "unit", "steps"),
    [
        ("rolling:28", (1,), "item-add-remove", 512),
        pytest.param("rolling:28", (1,), "item-add-remove", 1024, marks=pytest.mark.search(0)),
        pytest.param("rolling:7", (3,), "item-add-remove", 512, marks=pytest.mark.search(0)),
        pytest.param("rolling:7", (1, 2), "item-add-remove", 512, marks=pytest.mark.search(0)),
        pytest.param("rolling:28", (1, 2), "item", 512, marks=pytest.mark.search(0)),
        pytest.param("rolling:28", (1,), "item", 6000, marks=pytest.mark.search(0)),
        ("tumbling:7", (1,), "item-add-remove", 512 * 7),
        pytest.param("cumulative", (1,), "event", 4096, marks=pytest.mark.search(0)),
        pytest.param("cumulative", (1,), "item-add-remove", 1024, marks=pytest.mark.search(0)),
    ],
    ids=str,
)
def test_one_step_more_is_no_cliff(window: str, thresholds: tuple[int, ...], unit: str, steps: int) -> None:
    few, many = (error(window, thresholds, unit, one) for one in (steps, steps + 1))
    assert few * 0.985 < many < few * 1.015
