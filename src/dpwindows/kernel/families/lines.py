r"""How far one item moves a measurement made along lines of windows, for every map that is applied along a line.

Notation as in `dpwindows.kernel.families.runs`. A window (a, b) has the first step a and the last step b; f and
f' are the answers of two logs of one item, `g = f - f'`.

**A line** is an ordered list of windows that one map measures as one series, and on which f is a **step**: 0 up to some
place, and 1 from there on, or 0 everywhere. Windows lie on lines in three ways.

- *Forward*: one start a, and ends in ascending order. More steps hold no fewer occurrences.
- *Backward*: one end b, and starts in descending order, for the same reason.
- *Alone*: a line of one place, where any 0/1 answer is a step.

Cumulative counts are one forward line, that of start 1; counts to date have one for the first step of every period. A
block of windows has a line for each start or each end, or for both. A line of a block may begin with windows where
a > b. They hold no step and never change; here they are not counted among the line's places.

**What a neighbour changes on a line.** Neighbours are two logs of one item that are equal outside a **span** p..q of
steps: all steps for an item that is changed, added or removed; L steps for an item that is changed within L; one step
for an event, as one occurrence more or less is such a change. A window can change only if `a <= q` and `b >= p`.

- *Forward*, with the last end E: nothing changes if a > q or E < p. Otherwise g is 0 at all ends before p, so g lies in
  the last `n = E - max(a, p) + 1` places.
- *Backward*, with the last start F: nothing changes if F > q or b < p. Otherwise g is 0 at all starts after q, so g
  lies in the last `n = min(b, q) - F + 1` places.

In both, n is at most the number of places, which is smaller where a block holds only some of the windows. Two steps
that begin at places i < j differ at all places i..j-1. So if g is not 0 and lies in the last n places, i is one of
these, and j is another or lies beyond the line: **g is, up to its sign, the difference of two steps that both begin in
the last n places**, where the second may be 0. If the item is added or removed, f' = 0 and **g is one such step**.

**What that costs.** `cost[n]` bounds the norm of the map's answer to such a g: the L1 norm (power p = 1, Laplace noise)
or the squared L2 norm (p = 2, Gaussian noise). A larger n allows more, so costs do not fall.

- *Filter*. A step that begins n places before the end is answered by the running sums C(0), ..., C(n-1) of the taps;
  the difference of two by `C(i) - C(i - d)`, i < n, with C = 0 before 0, where the second begins d places after the
  first. Each is a sum over i < n, so those that begin later cost no more (`norms.step_norms`). The cost does not
  depend on how many places are before the last n: they are answered by 0.
- *Every answer by itself*, u lattice units to a count: at most n places change, by u each, so `u^p n`.
- *Sums of increments* `x_t - x_{t-1}`, `x_0 = 0`: a step moves one increment by 1, the difference of two moves two at
  most. So the cost is that of the largest column, once or twice: for a tree in L1 what the weights of one increment add
  up to. For squares of entries that are all >= 0 twice is enough too, as the inner product of two columns that are
  subtracted is >= 0; of other matrices only a single step is bounded here.

**Theorem.** A weight w multiplies the cost of a line by `|w|^p`. Over all neighbours and thresholds, what is measured
changes by at most

    (number of thresholds) * max over spans of  sum over lines of |w|^p cost[n].

Proof. Answers of different items add up and neighbours differ in one item, so the change of the exact answers is g. For
each threshold g on a line is as said, and costs at most cost[n]. Lines and thresholds are measured apart, as different
numbers, so L1 norms add and squared L2 norms add, whatever the histories have in common. The span is one of those over
which the largest sum is taken; one that leaves the range is part of one inside it, which changes no fewer places. QED.

It needs no signs and no law but independent noise. It is attained wherever one history is the worst for all lines at
once: if an item is added or removed by the item that occurs k times in every step, whatever the taps.

**Where it is loose or silent.** *Rolling counts* lie on no common line: each is alone. *Event level*: each window
changes for one threshold only (`families.runs`), so lines of one place are charged for one threshold in all.
*A rule that remembers*, such as a bound on occurrences, makes a change in the span move what counts after it: with
one, the span must be all steps (`Problem` refuses others). The log that is left by the rule is a log of the item.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpwindows.ask.privacy import EventLevel
from dpwindows.ask.queries import Cumulative, LostItems, Rolling
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE
from dpwindows.kernel.families.norms import (
    formal_step_norms,
    has_contracting_signs,
    interval_norms,
    runs_bound,
    step_norms,
)
from dpwindows.kernel.families.runs import affected_ends, changed_runs
from dpwindows.kernel.maps.counters import MatrixCounter
from dpwindows.kernel.maps.endless_counter import MOST_STEPS, EndlessCounter
from dpwindows.kernel.maps.filters import Filter, Identity
from dpwindows.kernel.maps.tent_tree import TentTree
from dpwindows.kernel.maps.trees import CausalTree
from dpwindows.kernel.rules import ALL_UNITS, Case, proves, rule


@dataclass(frozen=True)
class Line:
    """Windows that are measured as one series.

    Attributes:
        first: the first step of any of its windows.
        last: the last step of any of them.
        places: how many windows it has.
        times: what its cost is multiplied by: the weight to the power of the norm, and the lines that are alike.
        backward: starts in descending order, not ends in ascending order.
    """

    first: int
    last: int
    places: int
    times: int = 1
    backward: bool = False


@dataclass(frozen=True)
class Lines:
    """A measurement as lines, with the spans of steps in which a neighbour may differ.

    Attributes:
        lines: the lines that any of the spans meets.
        begins: the first steps of the spans that can be the worst.
        span: how many steps each span has.
    """

    lines: Sequence[Line]
    begins: range
    span: int


@proves("windows-on-lines")
def lines_bound(measured: Lines, cost: Sequence[int], thresholds: int) -> int:
    """Windows on lines, one item changed, added or removed: the largest sum of what its lines cost.

    Proof. The theorem in the module docstring. All arithmetic is in whole numbers: of 64 bits if no sum can exceed
    these, otherwise Python's own. QED.

    Args:
        measured: the lines and the spans.
        cost: for n = 0, 1, ... what a change in the last n places of a line costs; the last one is for larger n too.
        thresholds: for how many thresholds each line is measured.

    Raises:
        ValueError: a line would be paid for less than not at all.
    """
    if min(cost) < 0 or any(line.times < 0 for line in measured.lines):
        raise ValueError("a line cannot cost less than nothing")
    most = sum(line.times for line in measured.lines) * max(cost)
    kind = np.int64 if most < 1 << 62 else object
    costs, sums = np.array(cost, dtype=kind), np.zeros(len(measured.begins), dtype=kind)
    for line in measured.lines:
        begins = np.arange(
            max(measured.begins.start, line.first - measured.span + 1), min(measured.begins.stop, line.last + 1)
        )
        if line.backward:
            changed = np.minimum(line.last, begins + measured.span - 1) - line.first + 1
        else:
            changed = line.last - np.maximum(line.first, begins) + 1
        changed = np.minimum(changed, min(line.places, len(cost) - 1))
        sums[begins - measured.begins.start] += line.times * costs[changed]
    return thresholds * int(sums.max())


# --- Which lines there are ------------------------------------------------------------------------------------------


def one_line(places: int) -> Lines:
    """Cumulative counts of `places` steps: a change may begin at the first of them, which is worst in every unit."""
    return Lines([Line(1, places, places)], range(1, 2), 1)


def lines_of_starts(longest: int, span: int, steps: int | None) -> Lines:
    """A forward line for every start, of the windows of at most `longest` steps within the horizon.

    Without a horizon, or where it is far, the worst span begins at step `longest`: all starts that lie less than that
    before a span are there, and no line that it meets is cut. The L lines that start in the span have all their places
    after its first step. If the span is all steps, every line changes as a whole.

    Args:
        longest: the most steps of a window; longer ones than the horizon there are none.
        span: the steps within which an item may change.
        steps: the horizon, None if there is none.
    """
    longest = longest if steps is None else min(longest, steps)
    if steps is not None and span >= steps:
        alike = Line(1, longest, longest, steps - longest + 1)
        return Lines([alike, *(Line(steps - n + 1, steps, n) for n in range(1, longest))], range(1, 2), steps)
    if steps is None or steps >= 2 * longest + span - 2:
        within = Line(longest, 2 * longest - 1, longest, span)
        before = [Line(a, a + longest - 1, longest) for a in range(1, longest)]
        return Lines([*before, within], range(longest, longest + 1), span)
    lines = [Line(a, min(steps, a + longest - 1), min(longest, steps - a + 1)) for a in range(1, steps + 1)]
    return Lines(lines, range(1, steps - span + 2), span)


# --- What a change in the last places of a line costs -----------------------------------------------------------------


def filter_costs(taps: Sequence[int], longest: int, power: int, *, formal: bool) -> list[int]:
    """Costs of a filter for n = 0..longest: of one step, or of the difference of two (`formal`)."""
    if formal and power == 2:
        return formal_step_norms(taps, longest)
    return step_norms(taps, longest, np.square if power == 2 else np.abs, formal=formal)


def line_costs(case: Case, places: int | None) -> Sequence[int] | None:
    """For n = 0, 1, ... what a change in the last n of the places of a line costs; None where nothing is proved.

    Args:
        case: the map and the unit.
        places: how many places the line has, None if there is no end of them.
    """
    ends, gaussian = 2 if case.formal else 1, case.problem.law == GAUSSIAN
    match case.measured:
        case Filter(taps=taps) if gaussian and places is not None:
            return filter_costs(taps, places, 2, formal=case.formal)
        case Identity(unit=unit) if places is not None:
            cell = case.cell(unit)
            return range(0, cell * (places + 1), cell)
        case TentTree(column_total=column) if not gaussian:
            return 0, ends * column
        case CausalTree(weights=weights) if not gaussian:
            return 0, ends * sum(weights)
        # Where it runs out of rows there is no bound.
        case MatrixCounter(weights=matrix) if (
            gaussian and not case.formal and places is not None and places <= len(matrix)
        ):
            return 0, int((matrix.astype(object) ** 2).sum(axis=0).max())
        case EndlessCounter() if gaussian:
            return 0, ends * case.measured.column
    return None


# --- Rules of series ------------------------------------------------------------------------------------------------


@rule(
    "windows-on-lines",
    Cumulative,
    ALL_UNITS,
    (GAUSSIAN, LAPLACE),
    (Filter, Identity, TentTree, CausalTree, MatrixCounter, EndlessCounter),
    when="filters and matrices under Gaussian noise, trees under Laplace noise",
)
def cumulative_on_a_line(case: Case) -> int | None:
    """Cumulative counts: the one forward line of start 1."""
    costs = line_costs(case, case.steps)
    return None if costs is None else lines_bound(one_line(len(costs) - 1), costs, len(case.thresholds))


@rule("cumulative-filter-event", Cumulative, EventLevel, GAUSSIAN, Filter, when="a horizon, taps whose signs contract")
def cumulative_filter_event_l2(case: Case) -> int | None:
    """Cumulative counts, one occurrence added or removed, measured through a filter with contracting signs.

    Proof. Each threshold changes on one interval of ends, and the intervals of m thresholds are disjoint
    (`families.runs`). They cost at most `runs_bound(q, m, T)` together. QED.
    """
    if case.steps is None or not has_contracting_signs(case.measured.taps):
        return None
    norms, steps = interval_norms(case.measured.taps, case.steps), case.steps
    return runs_bound(norms, len(case.thresholds), steps, gaps=False, places=steps)


@rule(
    "windows-on-lines",
    (Cumulative, Rolling),
    ALL_UNITS,
    (GAUSSIAN, LAPLACE),
    Identity,
    when="a horizon, but for rolling counts of events and of items within L steps",
)
def answers_alone(case: Case) -> int | None:
    """Every answer measured as it is: `lines_bound` of lines of one place, as many as one neighbour can change."""
    if isinstance(case.problem.window, Rolling):
        changes = changed_runs(case)
        changed = None if changes is None else sum(one.places for one in changes)
    else:
        # By an event each window changes for one threshold.
        times = 1 if isinstance(case.problem.unit, EventLevel) else len(case.thresholds)
        changed = None if case.steps is None else case.steps * times
    return None if changed is None else changed * case.cell(case.measured.unit)


def count_moved(case: Case) -> int:
    """How many numbers one neighbour can change where each looks back over as many ends as the map remembers."""
    if isinstance(case.problem.window, LostItems):
        return 1
    match case.measured:
        case Filter(taps=taps):
            memory = len(taps) - 1
        case Identity():
            memory = 0
        case _:
            memory = MOST_STEPS
    most = changed = case.steps or MOST_STEPS
    if isinstance(case.problem.window, Rolling) and case.span is not None:
        changed = affected_ends(case.length, case.span, case.steps)
    return min(most, changed + memory)
