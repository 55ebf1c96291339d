"""Rules of counting: what they refuse, and what they say."""

from __future__ import annotations

from typing import Any

import pytest

import dpwindows as dw
from dpwindows.ask.counting_rule import EVERY_OCCURRENCE, CountingRule, require_fit, require_loss
from dpwindows.ask.queries import WindowFamily, normalise


def test_the_rule_that_leaves_nothing_out_says_nothing() -> None:
    assert CountingRule() == EVERY_OCCURRENCE
    assert CountingRule().to_dict() == {}
    assert CountingRule().promise == ""


def test_a_rule_is_read_back_from_plain_values() -> None:
    rule = CountingRule(distinct_steps=True)
    assert rule.to_dict() == {"distinct_steps": True}
    assert CountingRule(**rule.to_dict()) == rule
    assert "not an active step with several" in rule.promise


@pytest.mark.parametrize("value", [1, "yes", None])
def test_what_is_no_rule_is_refused(value: Any) -> None:
    with pytest.raises(dw.InputError, match="distinct_steps must be True or False"):
        CountingRule(value)


@pytest.mark.parametrize(
    ("window", "most", "steps"),
    [
        (dw.Rolling(7), 7, 365),
        (dw.Rolling(7), 7, None),
        (dw.Rolling(28), 10, 10),
        (dw.Cumulative(), 10, 10),
        (dw.AnyWindow(3), 3, 10),
        (dw.AnyWindow(3), 3, None),
        (dw.AnyWindow(), 10, 10),
    ],
)
def test_more_active_steps_than_a_window_has_are_refused(window: WindowFamily, most: int, steps: int | None) -> None:
    once = CountingRule(distinct_steps=True)
    require_fit(once, normalise([window.at_least(1, most)]), dw.EventLevel(), steps)
    require_fit(CountingRule(), normalise([window.at_least(most + 1)]), dw.EventLevel(), steps)
    for query in (window.at_least(1, most + 1), window.exactly(most + 1)):
        with pytest.raises(dw.InputError, match=f"{window} holds at most {most} steps.*{most + 1} is always 0"):
            require_fit(once, normalise([query]), dw.EventLevel(), steps)


def test_a_cumulative_count_of_a_stream_without_end_can_reach_any_k() -> None:
    require_fit(CountingRule(distinct_steps=True), normalise([dw.Cumulative().at_least(10**9)]), dw.EventLevel(), None)


ITEM, PRESENCE = dw.ItemLevel(), dw.ItemAddRemove()


@pytest.mark.parametrize("unit", [dw.EventLevel(), dw.ItemPerPeriod(3)])
@pytest.mark.parametrize("rule", [CountingRule(max_runs=2), CountingRule(max_occurrences=2)])
def test_what_an_item_adds_is_bounded_at_item_levels_only(rule: CountingRule, unit: dw.Unit) -> None:
    queries = normalise([dw.Rolling(7)])
    with pytest.raises(dw.InputError, match=f"at the level of {unit.name} one occurrence more changes which later"):
        require_fit(rule, queries, unit, 30)
    for whole in (ITEM, PRESENCE):
        require_fit(rule, queries, whole, 30)
        with pytest.raises(dw.InputError, match="needs a horizon"):
            require_fit(rule, queries, whole, None)


@pytest.mark.parametrize(
    ("query", "why"),
    [
        (dw.AnyWindow(), "means nothing for any"),
        (dw.AnyWindow(3), "means nothing for any:3"),
        (dw.Rolling(7).exactly(2), "might be below 0"),
        (dw.Cumulative(), "none is asked for"),
    ],
)
def test_what_runs_mean_nothing_for_is_refused(query: dw.Query | WindowFamily, why: str) -> None:
    with pytest.raises(dw.InputError, match=why):
        require_fit(CountingRule(max_runs=2), normalise([query]), PRESENCE, 30)
    require_fit(CountingRule(max_occurrences=2), normalise([query]), PRESENCE, 30)


def test_cumulative_counts_beside_bounded_runs_lose_nothing() -> None:
    require_fit(CountingRule(max_runs=1), normalise([dw.Rolling(7), dw.Cumulative().exactly(2)]), ITEM, 30)


def test_no_more_occurrences_are_asked_for_than_count() -> None:
    rule = CountingRule(max_occurrences=3)
    require_fit(rule, normalise([dw.Rolling(7).at_least(3)]), ITEM, 30)
    with pytest.raises(dw.InputError, match="at least 4 is always 0: ask for k up to 3"):
        require_fit(rule, normalise([dw.Rolling(7).at_least(4)]), ITEM, 30)


@pytest.mark.parametrize("value", [0, -1, 1.5, True, 2**31])
@pytest.mark.parametrize("name", ["max_runs", "max_occurrences"])
def test_a_bound_is_a_whole_number(name: str, value: Any) -> None:
    with pytest.raises(dw.InputError, match=f"{name} must be a whole number from 1"):
        CountingRule(**{name: value})


def test_one_bound_is_enough() -> None:
    with pytest.raises(dw.InputError, match="and not both"):
        CountingRule(max_runs=1, max_occurrences=1)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (CountingRule(max_runs=1), "counted in its first run only"),
        (CountingRule(max_runs=5), "counted in its first 5 runs only"),
        (CountingRule(max_occurrences=1), "only the first occurrence within the range counted"),
        (
            CountingRule(distinct_steps=True, max_occurrences=9),
            "only the first 9 active steps within the range counted",
        ),
    ],
)
def test_a_bound_says_that_nobody_knows_what_was_lost(rule: CountingRule, said: str) -> None:
    assert said in rule.promise
    assert "Estimates and intervals are of this bounded count." in rule.promise
    assert "cannot say by how much" in rule.promise


@pytest.mark.parametrize("share", [0, 1, -0.5, 1.5, float("nan"), True, "0.1"])
def test_the_share_for_the_loss_lies_between_nothing_and_all(share: Any) -> None:
    with pytest.raises(dw.InputError, match=r"strictly between 0 and 1, such as 0\.05: got"):
        require_loss(share, CountingRule(max_runs=2))


def test_where_nothing_is_left_out_no_loss_is_estimated() -> None:
    for rule in (CountingRule(), CountingRule(distinct_steps=True)):
        require_loss(None, rule)
        with pytest.raises(dw.InputError, match="give --max-runs or --max-occurrences"):
            require_loss(0.1, rule)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (CountingRule(max_runs=1), "items with more than 1 run in a rolling count"),
        (CountingRule(max_runs=5), "items with more than 5 runs in a rolling count"),
        (CountingRule(max_occurrences=1), "items with more than 1 occurrence in the range"),
        (CountingRule(distinct_steps=True, max_occurrences=9), "items with more than 9 active steps in the range"),
    ],
)
def test_which_items_lose_something_is_said(rule: CountingRule, said: str) -> None:
    assert rule.loss == said
