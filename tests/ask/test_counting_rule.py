"""Rules of counting: what they refuse, and what they say."""

from __future__ import annotations

from typing import Any

import pytest

import dpwindows as dw
from dpwindows.ask.counting_rule import EVERY_OCCURRENCE, CountingRule, require_reachable
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
    require_reachable(once, normalise([window.at_least(1, most)]), steps)
    require_reachable(CountingRule(), normalise([window.at_least(most + 1)]), steps)
    for query in (window.at_least(1, most + 1), window.exactly(most + 1)):
        with pytest.raises(dw.InputError, match=f"{window} holds at most {most} steps.*{most + 1} is always 0"):
            require_reachable(once, normalise([query]), steps)


def test_a_cumulative_count_of_a_stream_without_end_can_reach_any_k() -> None:
    require_reachable(CountingRule(distinct_steps=True), normalise([dw.Cumulative().at_least(10**9)]), None)
