"""What is asked: value types, their texts and their refusals."""

from __future__ import annotations

from typing import Any

import pytest

from dpwindows.ask.queries import (
    OCCURRENCES,
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


def test_measures_are_combinations_of_at_least_counts() -> None:
    assert Measure("at_least", 3).thresholds == (3,)
    assert Measure("exactly", 3).thresholds == (3, 4)
    assert str(Measure("at_least", 3)) == "at least 3"
    assert str(Measure("exactly", 1)) == "exactly 1"
    assert Measure("at_least", 2) < Measure("at_least", 10) < Measure("exactly", 1)


@pytest.mark.parametrize("k", [0, -1, 1.0, 1.5, "1", None, True, float("nan")])
def test_k_must_be_a_whole_number(k: Any) -> None:
    with pytest.raises(InputError, match="at_least must be a whole number of at least 1, got"):
        Measure("at_least", k)
    with pytest.raises(InputError, match="at_least must be a whole number"):
        Rolling(3).at_least(1, k)


def test_occurrences_have_no_k_and_are_a_query_of_their_own() -> None:
    counted = Measure("occurrences")
    assert (str(counted), counted.written_k) == ("occurrences", None)
    assert Measure.of("occurrences", None) == counted
    assert Measure.of("exactly", 2).written_k == 2
    with pytest.raises(InputError, match="without a k: got 1"):
        Measure("occurrences", 1)
    with pytest.raises(InputError, match="at_least must be a whole number"):
        Measure.of("at_least", None)
    asked = normalise([Rolling(3).at_least(2).occurrences().exactly(1), Cumulative(), Rolling(3).occurrences()])
    assert [query.name for query in asked] == ["rolling:3", "rolling:3 occurrences", "cumulative"]
    assert [query.thresholds for query in asked] == [(1, 2), (OCCURRENCES,), (1,)]


def test_other_measures_are_refused() -> None:
    kind: Any = "at_most"
    with pytest.raises(InputError, match="one of at_least, exactly, occurrences, got 'at_most'"):
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


UNKNOWN = r"unknown window .*: use cumulative, rolling:STEPS, any, any:MAX_STEPS, tumbl"
NO_NUMBER = "needs a whole number of steps after the colon"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *((text, UNKNOWN) for text in ("", "weekly", "cumulative:3", "Any", ":")),
        ("roling:7", r"unknown window 'roling:7' \(did you mean 'rolling'\?\): use"),
        *((text, NO_NUMBER) for text in ("rolling", "fixed")),
        *((text, r"\(did you mean 'rolling:28'\?\)") for text in ("rolling28", "rolling 28", "rolling-28")),
        ("anyweek", r"did you mean 'any:week'"),
        ("to-date", r"needs a period after the colon: week, .* for example to-date:month or to-date:7"),
        ("to-date:weeks", r"needs a period after the colon \(did you mean 'week'\?\): week, .* to-date:month or"),
        ("todate:month", r"unknown window 'todate:month' \(did you mean 'to-date'\?\): use"),
        *((f"rolling:{size}", NO_NUMBER) for size in ("", "x", "²", "1_0", "+3")),
        *((f"any:{size}", NO_NUMBER) for size in ("-1", "1.5", "")),
        *((text, rf"'{text}' {NO_NUMBER}.*from 1 to") for text in ("rolling:0", "any:0")),
        ("rolling:28d", r"steps have no unit: rolling:28 is that many steps, and --step says"),
    ],
)
def test_texts_that_are_no_windows_are_refused(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
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


@pytest.mark.parametrize(
    ("asked", "said"),
    [([], "no query was given"), *(([asked], "expected Cumulative") for asked in ("rolling:7", 7, None, Rolling))],
)
def test_asking_for_nothing_or_something_else_is_refused(asked: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        normalise(asked)


def test_windows_measured_together_have_legal_lengths() -> None:
    with pytest.raises(InputError, match="a rolling window"):
        RollingTogether((0, 3))
