"""Designs carry answers to all that their certificates ask, and any legal answers are paid for, not for free."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dpwindows.ask.counting_rule import EVERY_OCCURRENCE, CountingRule
from dpwindows.ask.privacy import EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod, Unit
from dpwindows.ask.queries import Rolling
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.problem import Problem
from dpwindows.plan.stored_designs import design_from_dict, design_to_dict
from dpwindows.strategies import candidates, offset_filter, stream_candidates, threshold_filters
from dpwindows.strategies.search.witnesses import searched, with_witness

FEW = CountingRule(max_runs=2)
CASES: list[tuple[Unit, tuple[int, ...], CountingRule]] = [
    (EventLevel(), (2,), EVERY_OCCURRENCE),
    (EventLevel(), (1, 2, 3), EVERY_OCCURRENCE),
    (ItemPerPeriod(9), (1,), EVERY_OCCURRENCE),
    (ItemPerPeriod(9), (1, 2), EVERY_OCCURRENCE),
    # Charged for all steps too: two answers to questions of one kind.
    (ItemPerPeriod(36), (1, 2), EVERY_OCCURRENCE),
    (ItemLevel(), (1,), EVERY_OCCURRENCE),
    (ItemLevel(), (1, 2), EVERY_OCCURRENCE),
    (ItemLevel(), (1,), FEW),
    (ItemAddRemove(), (1, 2), EVERY_OCCURRENCE),
    (ItemAddRemove(), (1,), FEW),
]


def asked(unit: Unit, thresholds: tuple[int, ...], rule: CountingRule) -> Problem:
    return Problem(Rolling(4), 40, thresholds, unit, GAUSSIAN, 4.0, rule=rule)


@pytest.mark.quick(3)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_candidate_carries_all_that_its_certificate_asks(case: Any) -> None:
    problem = asked(*case)
    found = 0
    for design in (*candidates(problem), *stream_candidates(problem, 40)):
        found += bool(design.witness)
        witness = design.witness
        known = design.certify(lambda question: witness[question.key])  # noqa: B023
        assert known == design.certificate == design.certify(searched)
        # Nothing known is legal, and seldom as good.
        assert replace(design, witness={}).certificate.bound >= known.bound * 0.95
        stored = design_from_dict(design_to_dict(design), design.problem, design.strategy, design.parameters)
        assert (stored.witness, stored.certificate) == (witness, known)
    assert found


@pytest.mark.slow
def test_a_filter_with_an_offset_in_many_steps_carries_its_answers() -> None:
    problem = replace(asked(ItemAddRemove(), (1, 2), EVERY_OCCURRENCE), steps=offset_filter.DENSE + 1)
    for strategy in (offset_filter.NAME, threshold_filters.NAME):
        design = candidates(problem, strategy)[0]
        known = design.certify(lambda question: design.witness[question.key])  # noqa: B023
        assert known == design.certificate == design.certify(searched)
        stored = design_from_dict(design_to_dict(design), design.problem, design.strategy, design.parameters)
        assert (stored, stored.certificate) == (design, known)


def test_in_groups_an_item_that_changes_may_come_and_go() -> None:
    design = candidates(asked(ItemLevel(), (1,), EVERY_OCCURRENCE), "notch-filter")[0]
    assert "rolling-patterns-period/1/one log" in design.witness
    present = replace(design, problem=replace(design.problem, unit=ItemAddRemove()))
    assert present.certificate == with_witness(present).certificate


def test_an_answer_that_is_not_legal_is_refused() -> None:
    design = candidates(asked(ItemLevel(), (2,), EVERY_OCCURRENCE), "filter")[0]
    wild = {key: tuple(-number - 1 for number in answer) for key, answer in design.witness.items()}
    with pytest.raises(ValueError, match="no answer"):
        _ = replace(design, witness=wild).certificate
