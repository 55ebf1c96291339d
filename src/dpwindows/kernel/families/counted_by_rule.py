r"""Smaller bounds where a public rule limits what is counted of an item: to fewer runs, or to fewer places.

A rule (`dpwindows.ask.counting_rule`) looks at the events of one item only, and is enforced before counting. So two
logs that differ in one item still do when it is enforced, and every bound for a changed, added or removed item holds
as it is. It may be smaller: with f the rolling answers of one item for a threshold k, windows of W steps, T of them,

- *at most R runs* (`max_runs`): the item is counted in the first R maximal runs only: f has at most R runs, each as
  long as it was;
- *at most N occurrences* (`max_occurrences`) of it count: runs start at different steps, and at each step one of them
  lies, and there are k of them up to the first start, so f has **at most N - k + 1 runs**. A window that is counted
  holds k of them, and each lies in at most W windows, so f is 1 at **at most N W / k places**. The same for N steps
  in which it occurs (`distinct_steps`), which are N occurrences.

For an item that changes, `g = f - f'`, each run of g begins where one of the runs of f and f' begins or ends, and each
ends at another such place or after the last one. So g has at most as many runs, of either sign, as both together have,
and is not 0 at as many places at most.
"""

from __future__ import annotations

from dpwindows.ask.counting_rule import CountingRule
from dpwindows.ask.privacy import ItemAddRemove, ItemLevel
from dpwindows.ask.queries import LostItems
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE
from dpwindows.kernel.maps.filters import Identity
from dpwindows.kernel.rules import Case, rule


def runs_by_rule(rule: CountingRule, k: int, runs: int) -> int:
    """The most runs of one item's rolling counts for a threshold k, where without a rule there are at most `runs`."""
    if rule.max_runs is not None:
        runs = min(runs, rule.max_runs)
    if rule.max_occurrences is not None:
        runs = min(runs, max(0, rule.max_occurrences - k + 1))
    return runs


def places_by_rule(rule: CountingRule, k: int, length: int, steps: int) -> int:
    """The most places, of all `steps`, at which one item is counted for a threshold k."""
    if rule.max_occurrences is None:
        return steps
    return min(steps, rule.max_occurrences * min(length, steps) // k)


@rule(
    "items-that-lost",
    LostItems,
    (ItemLevel, ItemAddRemove),
    (GAUSSIAN, LAPLACE),
    Identity,
    when="a rule that bounds what an item adds",
)
def items_that_lost(case: Case) -> int | None:
    """The number of items that lost something by a rule, one item changed, added or removed.

    Proof. Whether an item lost something is decided by the rule, which is public, and by the item's own events: they
    number more than N, or one of the rolling counts that were asked for has more than R runs of it. So the number is a
    sum over items of terms 0 or 1, each a function of one item's events. Neighbours differ in the events of one item,
    of which either may have none; its term changes by at most 1 and no other does. The number is measured `unit` times
    as large, once for each threshold: by at most `unit` each, so by `unit` or `unit^2` in either norm, added up. QED.
    """
    return case.cell(case.measured.unit) * len(case.thresholds) if case.rule.bounded else None
