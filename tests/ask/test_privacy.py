"""For whom and how much: units and budgets, and what is refused."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from fractions import Fraction
from typing import Any

import pytest

from dpwindows.ask.privacy import (
    ZCDP,
    ApproxDP,
    Budget,
    EventLevel,
    ItemAddRemove,
    ItemLevel,
    ItemPerPeriod,
    PureDP,
    Unit,
    exact,
    parse_budget,
    parse_unit,
)
from dpwindows.errors import InputError

UNITS: list[tuple[str, Unit]] = [
    ("event", EventLevel()),
    ("item", ItemLevel()),
    ("item-add-remove", ItemAddRemove()),
    ("item-per:1", ItemPerPeriod(1)),
    ("item-per:30", ItemPerPeriod(30)),
]


@pytest.mark.parametrize(("text", "unit"), UNITS)
def test_units_are_read_by_name(text: str, unit: Unit) -> None:
    assert parse_unit(text) == unit
    assert parse_unit(f" {text}\n") == unit
    assert unit.name == text


@pytest.mark.parametrize(("_text", "unit"), UNITS)
def test_a_unit_is_one_sentence_with_what_it_does_not_promise(_text: str, unit: Unit) -> None:
    assert unit.promise.startswith("Protects ")
    assert unit.promise.endswith(".")
    assert ". " not in unit.promise
    assert " not " in unit.promise


def test_units_differ() -> None:
    assert len({unit for _, unit in UNITS}) == 5
    assert EventLevel() == EventLevel()


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (
            ("", "user", "Event", "item-perf", "item:7", "event:1", "item add remove"),
            "unknown unit .*: use one of event, item, item-add-remove, item-per:STEPS",
        ),
        (
            ("item-per", "item-per:", "item-per:x", "item-per:-1", "item-per:1.5", "item-per:+3", "item-per:٣"),
            "needs a whole number of steps after a colon, for example item-per:30",
        ),
    ],
)
def test_texts_that_are_no_units_are_refused(texts: tuple[str, ...], said: str) -> None:
    for text in texts:
        with pytest.raises(InputError, match=said):
            parse_unit(text)


@pytest.mark.parametrize("steps", [0, -1, 1.5, "7", True, None])
def test_a_period_has_at_least_one_step(steps: Any) -> None:
    with pytest.raises(InputError, match="the period of item-per must be a whole number of at least 1 step, got"):
        ItemPerPeriod(steps)
    with pytest.raises(InputError, match=r"'item-per:0' needs a whole number of steps .*from 1 to"):
        parse_unit("item-per:0")


def test_a_period_is_no_longer_than_anything_is() -> None:
    assert ItemPerPeriod(10**100).steps == 10**100
    with pytest.raises(InputError, match=r"at most 10\^100 steps"):
        ItemPerPeriod(10**100 + 1)


def test_a_period_says_how_long_it_is() -> None:
    assert "within any 30 consecutive steps:" in ItemPerPeriod(30).promise
    assert "within any single step:" in ItemPerPeriod(1).promise
    assert ItemPerPeriod(7) != ItemPerPeriod(8)


@pytest.mark.parametrize("steps", [1, 7])
def test_only_a_period_that_spans_a_log_is_another_unit_for_it(steps: int) -> None:
    for unit in (EventLevel(), ItemAddRemove(), ItemLevel(), ItemPerPeriod(steps - 1) if steps > 1 else EventLevel()):
        assert unit.fit_to_range(steps) == unit
    assert ItemPerPeriod(steps).fit_to_range(steps) == ItemPerPeriod(steps + 1).fit_to_range(steps) == ItemLevel()


MAKERS: list[tuple[str, Callable[[Any], Budget]]] = [
    ("epsilon", PureDP),
    ("epsilon", lambda value: ApproxDP(value, 1e-6)),
    ("rho", ZCDP),
]


NONE = "must be finite and greater than 0, got"


@pytest.mark.parametrize(("name", "make"), MAKERS)
@pytest.mark.parametrize(
    ("value", "said"),
    [
        *((value, NONE) for value in (0, 0.0, -0.0, -1, -1e-9, math.nan, math.inf, -math.inf, 10**400)),
        *((value, "must be a number, got") for value in ("1", None, True, [1.0], 1j)),
    ],
)
def test_what_is_no_budget_is_refused(name: str, make: Callable[[Any], Budget], value: Any, said: str) -> None:
    with pytest.raises(InputError, match=f"{name} {said}"):
        make(value)


@pytest.mark.parametrize("value", [1e-300, 1e-9, 1, 3.5, 10**12, 1e12, 1e300])
def test_any_finite_positive_budget_is_legal(value: float) -> None:
    for name, make in MAKERS:
        assert make(value).to_dict()[name] == value


@pytest.mark.parametrize("delta", [0, 0.0, 1, 1.0, -1e-9, 2, math.nan, math.inf])
def test_delta_lies_strictly_between_0_and_1(delta: float) -> None:
    with pytest.raises(InputError, match="delta must lie strictly between 0 and 1"):
        ApproxDP(1.0, delta)


def test_budgets_are_told_in_plain_values_and_words() -> None:
    assert PureDP(1).to_dict() == {"kind": "pure", "epsilon": 1.0}
    assert ApproxDP(0.5, 1e-6).to_dict() == {"kind": "approximate", "epsilon": 0.5, "delta": 1e-6}
    assert ZCDP(0.25).to_dict() == {"kind": "zcdp", "rho": 0.25}
    assert str(PureDP(1.0)) == "epsilon = 1 (pure)"
    assert str(ApproxDP(1.0, 1e-6)) == "(epsilon, delta) = (1, 1e-06)"
    assert str(ZCDP(0.25)) == "rho = 0.25 (zCDP)"


def test_budgets_cannot_be_changed() -> None:
    budget = PureDP(1.0)
    with pytest.raises(FrozenInstanceError):
        budget.epsilon = 2.0  # type: ignore[misc]


@pytest.mark.parametrize(
    ("epsilon", "delta", "rho", "wanted"),
    [
        (1.0, None, None, PureDP(1.0)),
        (1.0, 0.0, None, PureDP(1.0)),
        (1.0, 1e-6, None, ApproxDP(1.0, 1e-6)),
        (None, None, 0.5, ZCDP(0.5)),
    ],
)
def test_options_are_read(epsilon: float | None, delta: float | None, rho: float | None, wanted: Budget) -> None:
    assert parse_budget(epsilon, delta, rho) == wanted


@pytest.mark.parametrize(
    ("epsilon", "delta", "rho", "message"),
    [
        (None, None, None, "no budget was given"),
        (1.0, None, 1.0, "and not both"),
        (None, 1e-6, None, "no budget was given"),
        (None, 1e-6, 1.0, "--delta goes with --epsilon"),
        (1.0, 1.0, None, r"delta must lie in \[0, 1\)"),
        (1.0, -0.1, None, r"delta must lie in \[0, 1\)"),
        (1.0, math.nan, None, r"delta must lie in \[0, 1\)"),
        (0.0, None, None, "epsilon must be finite and greater than 0"),
        (math.inf, 1e-6, None, "epsilon must be finite"),
        (None, None, -1.0, "rho must be finite"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    epsilon: float | None, delta: float | None, rho: float | None, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        parse_budget(epsilon, delta, rho)


def test_a_parameter_is_the_decimal_it_is_written_as() -> None:
    assert exact(0.1) == Fraction(1, 10)
    assert exact(1e-300) == Fraction(1, 10**300)
    # More digits than a float has: an integer is taken as it is.
    assert exact(10**17 + 1) == 10**17 + 1
    assert sum(exact(0.1) for _ in range(10)) == exact(1) == exact(1.0)


def test_the_ends_of_what_a_budget_may_be() -> None:
    """The largest float is a budget, one more is not; a delta of 0 is pure, however it is written."""
    largest = int(sys.float_info.max)
    assert PureDP(largest).to_dict()["epsilon"] == sys.float_info.max
    with pytest.raises(InputError, match="finite"):
        PureDP(largest + 1)
    assert parse_budget(1.0, -0.0, None) == PureDP(1.0)
