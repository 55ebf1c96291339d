"""The audit of what is measured on large logs: it finds what changes with the data, and nothing in what does not."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dpwindows as dw
from dpwindows.ask.privacy import ZCDP, Budget, EventLevel, PureDP, Unit
from dpwindows.ask.queries import AnyWindow, Cumulative, Query, Rolling, WindowFamily
from dpwindows.audit import audit_encoding, audit_exactly, large_logs
from dpwindows.kernel import designs
from tests.audit.asked import UNITS
from tests.plans import plan_of

FAMILIES: tuple[WindowFamily | Query, ...] = (Cumulative(), Rolling(3).at_least(1, 2), AnyWindow(2))


@pytest.mark.quick(1)
@pytest.mark.search(4)
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
@pytest.mark.parametrize("budget", [PureDP(1.0), ZCDP(0.5)], ids=lambda budget: budget.kind)
def test_every_cell_applies_one_matrix(unit: Unit, budget: Budget) -> None:
    for asked in FAMILIES:
        found = audit_encoding(plan_of(asked, unit=unit, budget=budget, steps=6))
        assert found.verdict == "one matrix", found.faults
        assert found.largest == 2**40
        assert found.logs == 4 * len(large_logs.SIZES)
        assert found.neighbours == 2 * found.logs


@pytest.mark.slow
def test_streams_apply_one_matrix() -> None:
    plan = dw.StreamPlan([Rolling(3).at_least(1, 2), Cumulative()], horizon=8, unit=EventLevel(), budget=ZCDP(0.5))
    assert audit_encoding(plan).verdict == "one matrix"


# --- Encodings that depend on the data ------------------------------------------------------------------------------

Encode = Callable[..., Any]


def above(limit: int, change: Callable[[Any], Any]) -> Callable[[Encode], Encode]:
    """Another encoding where some count is above a limit."""

    def planted(encode: Encode) -> Encode:
        def encoded(self: Any, answers: Any, k: int) -> Any:
            values = encode(self, answers, k)
            return change(values) if answers.cumulative(k).max() > limit else values

        return encoded

    return planted


def rounded(encode: Encode) -> Encode:
    """Through floating point, which is exact for small counts only."""
    return lambda self, answers, k: np.asarray(encode(self, answers, k), dtype=np.float32).astype(np.int64)


def wrapped(encode: Encode) -> Encode:
    """In 32 bits."""
    return lambda self, answers, k: np.asarray(encode(self, answers, k)).astype(np.int64).astype(np.int32)


def learning(encode: Encode) -> Encode:
    """By what it has seen before."""
    seen = [0]

    def encoded(self: Any, answers: Any, k: int) -> Any:
        largest = int(answers.cumulative(k).max())
        seen[0] += largest > 1000
        return encode(self, answers, k) + (seen[0] % 2 if largest > 1000 else 0)

    return encoded


WRONG: dict[str, Callable[[Encode], Encode]] = {
    "twice as much above 2,000": above(2000, lambda values: 2 * values),
    "rounded to hundreds above 2,000": above(2000, lambda values: values // 100 * 100),
    "cut off above 10^9": above(10**9, lambda values: np.minimum(values, 10**9)),
    "floating point": rounded,
    "32 bits": wrapped,
    "what was seen before": learning,
}


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_an_encoding_that_depends_on_the_data_is_found(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(Rolling(3), unit=EventLevel(), budget=PureDP(1.0), steps=6)
    assert isinstance(plan.allotments[0].measurement.design, designs.Design)
    monkeypatch.setattr(designs.Design, "encode", WRONG[wrong](designs.Design.encode))
    # What one item shows is as it should be.
    assert audit_exactly(plan).verdict == "within the claim"
    found = audit_encoding(plan)
    assert found.verdict == "depends on the data"
    assert 0 < len(found.faults) <= 20
    assert found.to_dict()["faults"] == found.faults


def test_neighbours_that_are_too_far_apart_on_top_of_a_large_log_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(Rolling(3), unit=EventLevel(), budget=PureDP(1.0), steps=6)
    planted = above(2000, lambda values: 2 * values)
    monkeypatch.setattr(designs.Design, "encode", planted(designs.Design.encode))
    faults = " ".join(audit_encoding(plan).faults)
    assert "beyond the certified" in faults
    assert "with another log added" in faults


def test_a_log_of_many_items_that_is_counted_wrongly_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpwindows.count import counting as recency
    from dpwindows.count.answers import ExactAnswers

    count = recency.count_events

    def sampled(*asked: Any, **more: Any) -> ExactAnswers:
        answers = count(*asked, **more)

        class Estimated(ExactAnswers):
            def rolling(self, k: int, length: int) -> Any:
                exact = answers.rolling(k, length)
                return np.where(exact > 1000, exact // 16 * 16, exact)

        return Estimated(answers.steps, {})

    monkeypatch.setattr(recency, "count_events", sampled)
    found = audit_encoding(plan_of(Cumulative(), unit=EventLevel(), budget=PureDP(1.0), steps=6))
    assert any("counted wrongly" in fault for fault in found.faults)


# --- The parts ------------------------------------------------------------------------------------------------------


def test_a_crowd_is_what_its_items_are_together() -> None:
    rng = np.random.default_rng(0)
    histories = large_logs.random_histories(5, 4, 2, rng)
    weights = np.array([1, 0, 3, 2, 7])
    found = large_logs.crowd(histories, weights[None], (1, 2, 5))
    for k, (first, last) in itertools.product((1, 2, 5), itertools.combinations_with_replacement(range(4), 2)):
        held = histories[:, first : last + 1].sum(axis=1) >= k
        assert found[k][0, first, last] == int((held * weights).sum())
