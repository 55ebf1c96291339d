r"""Occurrences in windows: what moves one of them, as often as a neighbour may.

Give every occurrence that counts an item of its own. A window holds as many occurrences of the log as distinct items of
this *apart log*, so every count of occurrences is one of "at least 1" there, by the same map. Two logs that differ in
one occurrence have apart logs that differ in one item with one occurrence: they are neighbours at event level with
k = 1, and for an item added or removed that occurs once (`max_occurrences` of 1). So each bound for those holds.

A rule that lets at most N occurrences of an item count (`max_occurrences`) sees the events of that item alone, and is
enforced before counting (`families.counted_by_rule`). An item added or removed is so at most N items of the apart log
added or removed. An item that changes is m <= N of them that leave and n <= N that come: pair them as far as that goes,
and it is at most N items of the apart log of which each comes, leaves or moves, that is *changes* with at most one
occurrence before and after; or at most 2 N occurrences that come or leave.

A measurement is linear in the counts, and these add up over items. So a neighbour moves it by a sum of N (or 2 N)
vectors, each of which a bound for one holds: N (2 N) times that in any norm, the square of this in the square, and as
many times the numbers that can change. Nothing smaller holds for all logs: they may be N times the same vector.
"""

from __future__ import annotations

from dataclasses import replace

from dpwindows.ask.counting_rule import CountingRule
from dpwindows.ask.privacy import EventLevel, ItemAddRemove, ItemLevel
from dpwindows.ask.queries import Cumulative, Tumbling
from dpwindows.kernel.certificate import Certificate
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.rules import proves


def problem_of_one(problem: Problem) -> tuple[Problem, int]:
    """The problem of distinct items that a single occurrence stands in, and the most of them that a neighbour changes.

    Raises:
        ValueError: the unit lets an item occur any number of times.
    """
    unit, most = problem.unit, problem.rule.max_occurrences
    if not isinstance(unit, EventLevel) and (most is None or not isinstance(unit, ItemLevel | ItemAddRemove)):
        raise ValueError(f"occurrences are counted for unit {unit.name} where a rule bounds those of an item")
    one = replace(problem, thresholds=(1,), singleton=False, unit=EventLevel(), rule=CountingRule())
    formal = isinstance(unit, ItemLevel)
    if isinstance(problem.window, Cumulative) or (formal and isinstance(problem.window, Tumbling)):
        # What comes or leaves changes cumulative counts up to the end; what moves, two tumbling counts.
        whole = ItemAddRemove() if isinstance(unit, EventLevel) else unit
        return replace(one, unit=whole, rule=CountingRule(max_occurrences=1)), most or 1
    return one, (most or 1) * (1 + formal)


@proves("occurrences-one-by-one")
def occurrences_one_by_one(bound: int, most: int, power: int) -> int:
    """Occurrences, of which a neighbour changes at most a given number: what one costs, so many times.

    Args:
        bound: for one occurrence, in a norm or its square.
        most: how many a neighbour changes.
        power: 2 for the square, 1 for the norm.

    Proof: module docstring.
    """
    return int(bound * most**power)


def certificate_of_all(one: Certificate, most: int, power: int, numbers: int | None) -> Certificate:
    """What is proved of `most` occurrences, from what is proved of one; `numbers` are all there are, if they end."""
    moved = one.moved * most if numbers is None else min(one.moved * most, numbers)
    squared = None if one.squared is None else occurrences_one_by_one(one.squared, most, 2)
    return Certificate(
        occurrences_one_by_one(one.bound, most, power), "occurrences-one-by-one", moved, squared, one.proof
    )
