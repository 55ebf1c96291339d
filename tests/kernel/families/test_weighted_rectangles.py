"""The bound of weighed windows against all neighbours: exact but for rounding, which costs little."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpwindows.ask.privacy import EventLevel, ItemLevel
from dpwindows.ask.queries import AnyWindow, Rolling
from dpwindows.ask.windows import longest_window
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE
from dpwindows.kernel.certificate import NotCertifiedError
from dpwindows.kernel.designs import Design
from dpwindows.kernel.families import rectangles
from dpwindows.kernel.families.nested import Nested
from dpwindows.kernel.families.rectangles import any_weighted_event_l2
from dpwindows.kernel.problem import Problem
from tests.kernel.cases import bound_of, case
from tests.kernel.test_certificate import worst
from tests.search import examples


def design(steps: int, taps: tuple[int, ...], weights: tuple[int, ...]) -> Design:
    problem = Problem(AnyWindow(len(weights)), steps, (1,), EventLevel(), GAUSSIAN, 1.0)
    return Design(problem, Nested(longest_window(problem.window, steps), taps, weights), "")


@examples(60)
@given(data=st.data(), steps=st.integers(1, 7))
def test_the_bound_is_what_the_worst_neighbour_moves(data: st.DataObject, steps: int) -> None:
    """Whatever the signs of taps, for windows of any length, so that the ends of the range matter or do not."""
    longest = data.draw(st.integers(1, steps))
    taps = data.draw(st.lists(st.integers(-9, 9), min_size=1, max_size=steps + 1))
    weights = data.draw(st.lists(st.integers(1, 9), min_size=longest, max_size=longest))
    found = design(steps, (abs(taps[0]) + 1, *taps[1:]), tuple(weights))
    norm, moved = worst(found)
    assert found.certificate.bound == norm
    assert moved <= found.certificate.moved


def in_full(taps: tuple[int, ...], weights: tuple[int, ...], steps: int) -> int:
    """By definition in Python's integers: every place of the occurrence, every occurrence before and after it."""
    longest, largest = len(weights), 0
    for place in range(1, steps + 1):
        for before in range(place):
            for after in range(place + 1, steps + 2):
                total = 0
                for a in range(max(1, place - longest + 1), place + 1):
                    along = sum(tap for i, tap in enumerate(taps) if before < a + i <= place)
                    for b in range(place, min(steps, a + longest - 1) + 1):
                        total += (
                            weights[b - a] * along * sum(tap for i, tap in enumerate(taps) if place <= b - i < after)
                        ) ** 2
                largest = max(largest, total)
    return largest


def weighted(taps: tuple[int, ...], weights: tuple[int, ...], steps: int | None) -> int:
    """The bound of any windows that weights are for."""
    shape = Nested(len(weights), taps, weights)
    return bound_of(any_weighted_event_l2, AnyWindow(len(weights)), shape, steps)


@pytest.mark.parametrize(("steps", "longest"), [(20, 5), (20, 14), (20, 20), (18, 18), (34, 3)])
def test_rounding_and_stretches_cost_little(steps: int, longest: int) -> None:
    taps = (2048, -1024, -256, -128, -64)
    weights = tuple(int(64 * (n / longest) ** 0.3) + 1 for n in range(1, longest + 1))
    exact = in_full(taps, weights, steps)
    assert exact <= weighted(taps, weights, steps) <= 1.06 * exact
    # A range without end has room for all that a long one has.
    assert weighted(taps, weights, None) == weighted(taps, weights, 2 * longest - 1)


@pytest.mark.parametrize("parts", [2, 3, 7])
def test_places_of_a_stretch_take_the_limits_of_all_of_them(parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the middle of a range costs most and is the last place of its stretch, too."""
    monkeypatch.setattr(rectangles, "_PARTS", parts)
    for steps in range(2, 12):
        taps, weights = (16, -8, -2, -1), tuple(range(3, 3 + steps))
        exact = in_full(taps, weights, steps)
        assert exact <= weighted(taps, weights, steps) <= weighted(taps, weights, None)


def test_large_numbers_are_rounded_up() -> None:
    generator = np.random.default_rng(5)
    for _ in range(20):
        taps = (1 << 30, *(-int(tap) for tap in generator.integers(0, 1 << 27, size=5)))
        weights = tuple(int(weight) for weight in generator.integers(1, 1 << 31, size=4))
        exact = in_full(taps, weights, 6)
        assert exact <= weighted(taps, weights, 6) <= 1.001 * exact


@pytest.mark.parametrize(
    ("taps", "weights"), [((1 << 31, -5), (1, 1)), ((5, -1), (1, 1 << 31)), ((5, -1), (1,) * 4097)], ids=["t", "w", "n"]
)
def test_numbers_that_would_wrap_are_refused(taps: tuple[int, ...], weights: tuple[int, ...]) -> None:
    asked = case(AnyWindow(len(weights)), Nested(len(weights), taps, weights), None)
    assert any_weighted_event_l2(asked) is None


@pytest.mark.parametrize(
    ("taps", "weights"), [((8, -4), (3, -4, 5)), ((8, -4), (3, 0, 5)), ((), (3, 4, 5)), ((8, -4), np.array((3, 4, 5)))]
)
def test_weights_that_are_not_positive_whole_numbers_are_not_certified(
    taps: tuple[int, ...], weights: tuple[int, ...]
) -> None:
    with pytest.raises((NotCertifiedError, ValueError)):
        _ = design(6, taps, weights).certificate


def test_other_thresholds_units_and_laws_have_no_bound() -> None:
    found = design(6, (8, -4, -1), (3, 4, 5))
    assert found.certificate.bound > 0
    for problem in (
        replace(found.problem, thresholds=(2,)),
        replace(found.problem, thresholds=(1, 2)),
        replace(found.problem, unit=ItemLevel()),
        replace(found.problem, law=LAPLACE),
        replace(found.problem, window=Rolling(3)),
        # The longest window is longer than weights are for.
        replace(found.problem, window=AnyWindow(4)),
    ):
        with pytest.raises(NotCertifiedError):
            _ = replace(found, problem=problem).certificate
