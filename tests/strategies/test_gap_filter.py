"""Filters over gaps: exact integers in, unbiased estimates out, with the error that was forecast."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dpwindows as dw
from dpwindows.ask.privacy import Unit
from dpwindows.audit.encoding import audit_encoding
from dpwindows.kernel.accounting import GAUSSIAN, Law
from dpwindows.kernel.families.gaps import Gaps
from dpwindows.kernel.problem import Problem
from dpwindows.strategies import crossed_counters, gap_filter
from dpwindows.strategies.scoring import score


def asked(steps: int, unit: Unit, law: Law, longest: int | None = None, **more: object) -> Problem:
    noise = 4.2247 if law == GAUSSIAN else 1.0
    return Problem(dw.AnyWindow(longest), steps, (1,), unit, law, noise, **more)  # type: ignore[arg-type]


@pytest.mark.slow
def test_crossed_counters_err_ever_more_as_ranges_grow() -> None:
    ratios = []
    for steps in (16, 64, 256):
        problem = asked(steps, dw.ItemAddRemove(), GAUSSIAN)
        gaps, crossed = gap_filter.design(problem), crossed_counters.design(problem)
        assert gaps is not None
        assert crossed is not None
        ratios.append(score(crossed) / score(gaps))
    assert ratios == sorted(ratios)
    assert ratios[0] > 1.05
    assert ratios[-1] > 1.5


def test_counts_beyond_64_bits_are_encoded_exactly() -> None:
    """By definition: every window with those that contain it, in Python's integers."""
    found = Gaps((1 << 20, -(1 << 19), -9), (3, 1 << 20, 7), -5, 1 << 22)
    exact = np.array([[1 << 40, 1 << 41, 1 << 42], [0, 1 << 39, 1 << 41], [0, 0, 5]])
    items, taps = 1 << 42, found.taps
    expected = [
        found.weights[b - a]
        * sum(taps[i] * taps[j] * (items - int(exact[a - i, b + j])) for i in range(a + 1) for j in range(3 - b))
        + 5 * items
        for a in range(3)
        for b in range(a, 3)
    ]
    expected[2] = (1 << 22) * items
    assert [int(value) for value in found.encode_windows(exact)] == expected
    assert max(map(abs, expected)) > 1 << 63


def test_other_units_windows_and_thresholds_are_left_to_others() -> None:
    whole = asked(30, dw.ItemLevel(), GAUSSIAN)
    for problem in (
        replace(whole, unit=dw.EventLevel()),
        replace(whole, unit=dw.ItemPerPeriod(7)),
        replace(whole, unit=Unit()),
        replace(whole, window=dw.Cumulative()),
        replace(whole, thresholds=(2,)),
        replace(whole, thresholds=(1, 2)),
        replace(whole, steps=1),
        replace(whole, steps=100_000),
    ):
        assert gap_filter.design(problem) is None


def test_beyond_64_bits_all_numbers_are_pythons() -> None:
    """Those of numpy would wrap when they are squared."""
    exact = np.triu(np.full((3, 3), 4, dtype=np.int64))
    encoded = Gaps((1 << 16,), (1 << 30,) * 3, 0, 1 << 32).encode_windows(
        exact - exact // 2 * np.eye(3, dtype=np.int64)
    )
    assert encoded.dtype == object
    assert {type(value) for value in encoded} == {int}


@pytest.mark.quick(1)
@pytest.mark.parametrize("unit", [dw.ItemAddRemove(), dw.ItemLevel()], ids=lambda unit: unit.name)
@pytest.mark.parametrize("steps", [8, pytest.param(20, marks=pytest.mark.search(0))])
def test_a_plan_is_found_to_apply_one_matrix(unit: Unit, steps: int) -> None:
    budget = dw.ApproxDP(1.0, 1e-6)
    plan = dw.Plan([dw.AnyWindow()], timeline=dw.Timeline.of_steps(steps), unit=unit, budget=budget)
    assert audit_encoding(plan).verdict == "one matrix"
