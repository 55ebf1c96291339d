"""Bounds under a rule of counting against every item there can be, with maps that no strategy would choose."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpwindows.ask.counting_rule import LOST, CountingRule
from dpwindows.ask.privacy import EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod, Unit
from dpwindows.ask.queries import LostItems, Rolling
from dpwindows.ask.windows import longest_window
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE, Law
from dpwindows.kernel.certificate import NotCertifiedError
from dpwindows.kernel.designs import Design, Shape
from dpwindows.kernel.families.chains_of_runs import SeriesByThreshold, rolling_chains_l2
from dpwindows.kernel.families.counted_by_rule import places_by_rule, runs_by_rule
from dpwindows.kernel.families.patterns import rolling_patterns_period_l2
from dpwindows.kernel.families.runs import most_runs, rolling_filter_l2
from dpwindows.kernel.families.series import Series
from dpwindows.kernel.families.starts import Starts
from dpwindows.kernel.maps.filters import Filter, Identity
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.rules import Case
from dpwindows.strategies import offset_filter
from dpwindows.strategies.search.witnesses import searched
from tests.brute_force import losers, once_a_step
from tests.kernel.cases import PRESENCE, bound_of
from tests.kernel.made_up import LAWS, THRESHOLDS, Draw
from tests.kernel.truth import largest_norm, matrices_of
from tests.single_item import Ints, all_logs, joint_answers, runs

RULES = [
    *(CountingRule(max_runs=most) for most in (1, 2)),
    *(CountingRule(max_occurrences=most) for most in (1, 2, 3, 4)),
    *(CountingRule(distinct_steps=True, max_occurrences=most) for most in (1, 2, 3)),
    CountingRule(distinct_steps=True, max_runs=1),
]
_TRIALS = 60


def kept(log: tuple[int, ...], rule: CountingRule) -> tuple[int, ...]:
    """The occurrences that count, one by one."""
    left, found = rule.max_occurrences if rule.max_occurrences is not None else 10**9, []
    for count in log:
        here = min(count, 1) if rule.distinct_steps else count
        found.append(min(here, left))
        left -= found[-1]
    return tuple(found)


def ruled_answers(steps: int, most: int, window: Rolling, thresholds: tuple[int, ...], rule: CountingRule) -> Ints:
    """The exact answers of every log of one item, shape (logs, thresholds, T); what is not unique is left out."""
    logs = np.array([kept(tuple(log), rule) for log in all_logs(steps, most).tolist()])
    answers = joint_answers(np.unique(logs, axis=0), window, thresholds)
    if rule.max_runs is not None:
        for log, place in itertools.product(range(len(answers)), range(len(thresholds))):
            for first, end in runs(answers[log, place])[rule.max_runs :]:
                answers[log, place, first:end] = 0
    return np.asarray(np.unique(answers.reshape(len(answers), -1), axis=0).reshape(-1, *answers.shape[1:]))


def changes(answers: Ints, unit: Unit) -> list[Ints]:
    if isinstance(unit, ItemAddRemove):
        return [answers]
    return [(one[None] - answers) for one in answers]


def shape_of(draw: Draw, steps: int, thresholds: tuple[int, ...]) -> Shape:
    """One map, or now and then a filter with an offset for each threshold."""
    if draw.whole(0, 3):
        return Series(draw.map(steps))
    return SeriesByThreshold(thresholds, tuple(draw.offset_filter(steps, 1) for _ in thresholds))


@pytest.mark.quick(2)
@pytest.mark.search(10)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: "-".join(f"{k}{v}" for k, v in rule.to_dict().items()))
@pytest.mark.parametrize("unit", [ItemAddRemove(), ItemLevel()], ids=lambda unit: unit.name)
def test_no_item_moves_any_map_by_more_than_its_certificate(rule: CountingRule, unit: Unit) -> None:
    draw = Draw(np.random.default_rng([RULES.index(rule), len(unit.name)]))
    met: Counter[str] = Counter()
    tighter = 0
    for _ in range(_TRIALS):
        steps, thresholds, law = draw.whole(2, 6), draw.one(*THRESHOLDS), draw.one(*LAWS)
        window = Rolling(draw.whole(1, steps))
        problem = Problem(window, steps, thresholds, unit, law, 1.0, rule=rule)
        design = Design(problem, shape_of(draw, steps, thresholds), "drawn")
        try:
            bound = design.certify(searched).bound
        except (NotCertifiedError, ValueError):
            continue
        pieces = changes(ruled_answers(steps, min(3, max(thresholds)), window, thresholds, rule), unit)
        true = largest_norm(pieces, matrices_of(design), law)
        assert true <= bound, f"certified {bound}, but an item moves it by {true}: {design}"
        without = Design(replace(problem, rule=CountingRule()), design.shape, "drawn")
        tighter += bound < without.certify(searched).bound
        met[design.certificate.proof] += 1
    print(f"\n{unit.name} {rule}: {dict(met)}, {tighter} of {met.total()} tighter than without")  # noqa: T201
    assert len(met) > 1
    assert tighter


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_runs_and_places_are_as_few_as_is_said(rule: CountingRule) -> None:
    """Over every item of a short range; and some item has as many runs where the rule is what bounds them."""
    for steps, length, k in itertools.product((4, 6), (1, 2, 3), (1, 2)):
        answers = ruled_answers(steps, k, Rolling(length), (k,), rule)[:, 0]
        most = runs_by_rule(rule, k, most_runs(k, length, steps))
        assert max(len(runs(row)) for row in answers) <= most
        assert answers.sum(axis=1).max() <= places_by_rule(rule, k, length, steps)
        if k == 1:
            assert max(len(runs(row)) for row in answers) == min(most, most_runs(1, length, steps))


OFFSET = offset_filter.filtered(0.6, 0.75, 0.2, 365, 2.0**20)
FILTER = Filter((1000, -400, -200, -120, -80, -50, -30, -20))


def week(bound: Callable[[Case], int | None], unit: Unit, rule: CountingRule, k: int = 1) -> int:
    """A bound for the rolling counts of a week, over a year."""
    return bound_of(bound, Rolling(7), FILTER, 365, (k,), unit, rule=rule)


@pytest.mark.slow
def test_fewer_runs_cost_less_over_a_year() -> None:
    bounds: dict[str, Any] = {
        "presence": lambda rule: bound_of(rolling_chains_l2, Rolling(7), OFFSET, 365, (1,), PRESENCE, rule=rule),
        "presence, k = 2": lambda rule: bound_of(rolling_chains_l2, Rolling(7), OFFSET, 365, (2,), PRESENCE, rule=rule),
        "presence by runs": lambda rule: week(rolling_filter_l2, PRESENCE, rule),
        "changed by runs": lambda rule: week(rolling_filter_l2, ItemLevel(), rule),
        "changed": lambda rule: week(rolling_patterns_period_l2, ItemLevel(), rule),
        "changed, k = 2": lambda rule: week(rolling_patterns_period_l2, ItemLevel(), rule, 2),
    }
    for name, bound in bounds.items():
        found = [bound(CountingRule(max_runs=most)) for most in (2, 5, 10)] + [bound(CountingRule())]
        assert found == sorted(found), name
        assert found[0] < 0.6 * found[-1], name
        few = [bound(CountingRule(max_occurrences=most)) for most in (2, 5, 10)]
        assert few[0] < few[1] < few[2] <= found[-1], name


@pytest.mark.parametrize("unit", [EventLevel(), ItemPerPeriod(2)], ids=lambda unit: unit.name)
@pytest.mark.parametrize("rule", [CountingRule(max_runs=1), CountingRule(max_occurrences=1)], ids=str)
def test_no_problem_bounds_items_where_less_than_an_item_is_protected(unit: Unit, rule: CountingRule) -> None:
    for law in (GAUSSIAN, LAPLACE):
        with pytest.raises(ValueError, match="for whole items"):
            Problem(Rolling(2), 12, (1,), unit, law, 1.0, rule=rule)


def test_one_event_more_would_change_many_runs() -> None:
    """Why runs are not bounded at event level: the trap of the proof, as an example of both signs."""
    rule = CountingRule(max_runs=1)
    one, other = (0, 0, 0, *(1,) * 9), (1, 0, 0, *(1,) * 9)
    series = []
    for log in (one, other):
        answers = joint_answers(np.array([log]), Rolling(2), (1,))[0, 0]
        for first, end in runs(answers)[rule.max_runs or 0 :]:
            answers[first:end] = 0
        series.append(answers)
    moved = series[1] - series[0]
    assert (moved > 0).any()
    assert (moved < 0).sum() >= 9


# What an item may lose runs of.
SERIES = [(1, 1), (2, 2)]


class Lost:
    """Answers of a log that hold the number of items that lost something, by the oracle, and nothing else."""

    def __init__(self, steps: int, number: int) -> None:
        self.steps, self._number = steps, number

    def cumulative(self, k: int) -> Ints:
        assert k == LOST
        return np.array([-1] * (self.steps - 1) + [self._number])

    def rolling(self, k: int, length: int) -> Ints:
        raise AssertionError("not asked for")

    def windows(self, *block: int) -> Ints:
        raise AssertionError("not asked for")


def lost_in(items: tuple[tuple[int, ...], ...], rule: CountingRule, steps: int) -> int:
    """The items that lost something in a log with these histories, by the definition."""
    log = [(who, step + 1, count) for who, own in enumerate(items) for step, count in enumerate(own) if count]
    held = once_a_step(log) if rule.distinct_steps else log
    return losers(held, steps, occurrences=rule.max_occurrences, runs=rule.max_runs, series=SERIES)


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("unit", [ItemAddRemove(), ItemLevel()], ids=lambda unit: unit.name)
@pytest.mark.parametrize(("law", "fine"), [(GAUSSIAN, 5), (LAPLACE, 1)])
def test_no_neighbour_moves_the_items_that_lost_something_by_more(
    rule: CountingRule, unit: Unit, law: Law, fine: int
) -> None:
    """Over every log of two items, and every log that differs in one of them."""
    steps, none = 3, (0,) * 3
    histories = [tuple(int(count) for count in log) for log in all_logs(steps, 2)]
    number = {pair: lost_in(pair, rule, steps) for pair in itertools.product(histories, repeat=2)}
    design = Design(Problem(LostItems(), steps, (1,), unit, law, 1.0, rule=rule), Series(Identity(fine)), "d")
    encoded = {found: int(design.encode(Lost(steps, found), 1)[0]) for found in set(number.values())}
    others = [none] if isinstance(unit, ItemAddRemove) else histories
    moved = {abs(encoded[number[one, kept]] - encoded[number[other, kept]]) for one, kept in number for other in others}
    power = 2 if law == GAUSSIAN else 1
    assert max(moved) ** power <= design.certificate.bound
    if max(number.values()):
        assert max(moved) ** power == design.certificate.bound
    assert design.certificate.proof == "items-that-lost"
    assert (design.certificate.moved, design.rows) == (1, 1)


def test_one_event_makes_or_mends_at_most_one_loser() -> None:
    """Where bounds are refused, at event level, the number would move by one at most all the same."""
    steps = 4
    for rule in RULES:
        for log in all_logs(steps, 2).tolist():
            for step in range(steps):
                more = tuple(count + (at == step) for at, count in enumerate(log))
                assert abs(lost_in((more,), rule, steps) - lost_in((tuple(log),), rule, steps)) <= 1


def test_the_items_that_lost_something_are_measured_as_one_number_only() -> None:
    """By no other map or shape, measured twice at twice the price, and never where nothing is left out."""
    rule = CountingRule(max_occurrences=2)
    problem = Problem(LostItems(), 4, (1,), ItemLevel(), GAUSSIAN, 1.0, rule=rule)
    assert Design(problem, Series(Identity(3)), "d").certificate.bound == 9
    assert Design(replace(problem, thresholds=(1, 2)), Series(Identity(3)), "d").certificate.bound == 18
    refused = [
        Design(problem, Series(Filter((3, -1))), "d"),
        Design(replace(problem, rule=CountingRule()), Series(Identity(1)), "d"),
        Design(problem, Starts(longest_window(problem.window, problem.steps), Identity(4)), "d"),
    ]
    for design in refused:
        with pytest.raises(NotCertifiedError):
            _ = design.certificate
