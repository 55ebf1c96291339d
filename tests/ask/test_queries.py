"""What is asked: value types, their texts and their refusals."""

from __future__ import annotations

from typing import Any

import pytest

from dpwindows.ask.queries import (
    AnyWindow,
    Cumulative,
    Measure,
    Query,
    Rolling,
    RollingTogether,
    WindowFamily,
    normalise,
    parse_window,
)
from dpwindows.errors import InputError


def test_a_unit_after_the_steps_is_told_what_steps_are() -> None:
    with pytest.raises(InputError, match=r"steps have no unit: rolling:28 is that many steps, and --step says"):
        parse_window("rolling:28d")


def test_measures_are_combinations_of_at_least_counts() -> None:
    assert Measure("at_least", 3).thresholds == (3,)
    assert Measure("exactly", 3).thresholds == (3, 4)
    assert str(Measure("at_least", 3)) == "at least 3"
    assert str(Measure("exactly", 1)) == "exactly 1"
    assert Measure("at_least", 2) < Measure("at_least", 10) < Measure("exactly", 1)


@pytest.mark.parametrize("k", [0, -1, 1.0, 1.5, "1", None, True, float("nan")])
def test_k_must_be_a_whole_number(k: Any) -> None:
    with pytest.raises(InputError, match="k must be a whole number of at least 1, got"):
        Measure("at_least", k)
    with pytest.raises(InputError, match="k must be a whole number"):
        Rolling(3).at_least(1, k)


def test_other_measures_are_refused() -> None:
    kind: Any = "at_most"
    with pytest.raises(InputError, match="'at_least' or 'exactly', got 'at_most'"):
        Measure(kind, 1)


@pytest.mark.parametrize("steps", [0, -3, 2.0, "28", None, False])
def test_lengths_must_be_whole_numbers(steps: Any) -> None:
    with pytest.raises(InputError, match="a rolling window must be a whole number of at least 1 step, got"):
        Rolling(steps)
    if steps is not None:
        with pytest.raises(InputError, match="longest window of `any` must be a whole number"):
            AnyWindow(steps)


WINDOWS: list[tuple[str, WindowFamily]] = [
    ("cumulative", Cumulative()),
    ("rolling:1", Rolling(1)),
    ("rolling:28", Rolling(28)),
    ("any", AnyWindow()),
    ("any:90", AnyWindow(90)),
]


@pytest.mark.parametrize(("text", "window"), WINDOWS)
def test_texts_are_read_and_written_alike(text: str, window: WindowFamily) -> None:
    assert parse_window(text) == window
    assert window.text == str(window) == text
    assert parse_window(f"  {text} ") == window
    assert len({window, parse_window(text)}) == 1


def test_fixed_is_an_alias_of_rolling() -> None:
    assert parse_window("fixed:7") == Rolling(7)
    assert parse_window("rolling:007") == Rolling(7)


@pytest.mark.parametrize("text", ["", "rolling", "fixed", "weekly", "cumulative:3", "Any", "rolling 28", ":", "any 3"])
def test_unknown_windows_are_refused(text: str) -> None:
    with pytest.raises(
        InputError, match=r"unknown window .*: use cumulative, rolling:STEPS, any, any:MAX_STEPS, tumbl"
    ):
        parse_window(text)


def test_the_nearest_family_is_named() -> None:
    with pytest.raises(InputError, match=r"unknown window 'roling:7' \(did you mean 'rolling'\?\): use"):
        parse_window("roling:7")
    with pytest.raises(InputError, match=r"unknown window 'rolling': use"):
        parse_window("rolling")
    with pytest.raises(InputError, match=r"unknown window 'todate:month' \(did you mean 'to-date'\?\): use"):
        parse_window("todate:month")


@pytest.mark.parametrize(
    "text", ["rolling:", "rolling:x", "any:-1", "any:1.5", "any:", "rolling:²", "rolling:1_0", "rolling:+3"]
)
def test_sizes_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="needs a whole number of steps after the colon"):
        parse_window(text)


@pytest.mark.parametrize("text", ["rolling:0", "any:0"])
def test_sizes_of_nothing_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="at least 1 step, got 0"):
        parse_window(text)


def test_queries_are_built_as_they_are_said() -> None:
    query = Rolling(28).at_least(1, 3).exactly(2)
    assert query == Query(Rolling(28), (Measure("at_least", 1), Measure("at_least", 3), Measure("exactly", 2)))
    assert Cumulative().exactly(1).measures == (Measure("exactly", 1),)
    with pytest.raises(InputError, match=r"at_least needs at least one k, for example at_least\(1\)"):
        Rolling(28).at_least()
    with pytest.raises(InputError, match="exactly needs at least one k"):
        AnyWindow().exactly()


def test_queries_of_one_family_are_merged_in_the_order_asked() -> None:
    merged = normalise([Rolling(7).at_least(3), Cumulative(), Rolling(7).at_least(1, 3), Rolling(7)])
    assert merged == (
        Query(Rolling(7), (Measure("at_least", 3), Measure("at_least", 1))),
        Query(Cumulative(), (Measure("at_least", 1),)),
    )


def test_asking_for_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="no query was given"):
        normalise([])


@pytest.mark.parametrize("asked", ["rolling:7", 7, None, Rolling])
def test_asking_for_something_else_is_refused(asked: Any) -> None:
    with pytest.raises(InputError, match="expected Cumulative"):
        normalise([asked])


def test_windows_measured_together_have_legal_lengths() -> None:
    with pytest.raises(InputError, match="a rolling window"):
        RollingTogether((0, 3))
