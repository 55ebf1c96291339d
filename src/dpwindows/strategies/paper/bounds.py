r"""Certified sensitivities of the paper's range trees, by its own group-privacy accounting.

One neighbour touches at most `trees` trees for each threshold, and moves at most m points in or out of each. A point
is in one node of every level (one product of nodes for every pair of levels, in two dimensions), `nodes` in all, and
changes it by one. Hence for one threshold, in lattice units of `weight` a count,

    L1 norm           <= trees * m * nodes * weight                     (one by one)
    squared L2 norm   <= trees * m^2 * nodes * weight^2                 (triangle inequality in each tree)

and over thresholds, which have trees of their own, these add up. What remains is to bound trees and m, cell by cell.
`S` counts the occurrences of the one item that differs; a point set is a multiset, and its change the L1 distance.

**Cumulative** (`cumulative_points`). One tree. Each item has one point: the step of its k-th occurrence, or none.
Added or removed with its item it is one change. One occurrence more or less, or an item changed arbitrarily, *moves*
it: two. (The paper's proof allows one, which is half of what its neighbours can do.)

**Fixed window** (`fixed_window_points`). Within a block around the step m, follow one item through the sequence of
windows `[m-W+1, m], [m-W+1, m+1], [m-W+2, m+1], [m-W+2, m+2], ...`: alternately one step longer and one shorter.
It is counted in a window iff S >= k there. Its *arrivals* are the extensions at which it becomes counted, and 0 if it
is counted in the first window; its *departures* the shortenings at which it stops being counted. They are the paper's
points: `#{arrivals <= d} - #{departures <= d}` is 1 iff it is counted in the d-th window of length W.

- *One occurrence at step s added.* The windows of the sequence that hold s are consecutive; along them the occurrences
  left of s (s included) do not increase, and those right of it do not decrease. The item changes from uncounted to
  counted where both sum to k-1; two such windows with the same number on the right have the same on the left, and so
  do all between. So the change is at most k runs of windows. A run has two ends, and each end adds an arrival, removes
  one, adds a departure or removes one: at most 2k changes of arrivals and 2k of departures. m = 2k.
- *Blocks.* The block of m = jW uses steps in (jW - W, jW + W) only, so a step is used by at most two blocks, each with
  two trees: 4 trees.
- *An item changed arbitrarily.* With `a_i` the i-th occurrence from m backwards and `b_i` the i-th from m+1 forwards,
  the item is counted iff for some i <= k the window has begun at or before `a_i` and ends at or after `b_(k-i)`. That
  is a union of k+1 intervals of the sequence, so it has at most k+1 <= 2k arrivals and at most as many departures.
  All of the blocks' trees may change: 2 trees for each block; m = 2k if the item comes or goes, m = 4k if it changes.

**Time window, event level** (`time_window_points`). Let `s_1 <= ... <= s_n` be the occurrences of an item, with k
zeros before and k times T+1 after. Its points in x are the pairs `(s_l + 1, s_(l+k) - 1)` over all l, in x' the same
with k-1 in place of k. A window (a, b) with j < k occurrences has k - j points of x with first coordinate <= a and
second >= b (for `s_l < a` and `s_(l+k) > b` leave k - j values of l), and k - 1 - j of x'; with j >= k it has none.
So the item is *not* counted in (a, b) iff x has one point more than x' there. An added occurrence at position p of the
sequence leaves all pairs with both places before p or both after it; pairs `k` places apart around p were k and
become k+1, so x changes by at most 2k+1 points and x' by at most 2k-1. m = 2k+1; two trees. Points whose first
coordinate exceeds the second are in no window's count and are dropped (the paper's points beyond T among them).

Sums over items: x as a function of (a, b) is a constant less `sum_{i<=k} CountAtLeast_i(a, b)`, since
`(k - j)_+ = k - sum_{i<=k} 1(j >= i)`. So its points are mixed differences of exact answers.

**Time window, item level** (`cumulative_points` again). A cumulative tree for every start, T trees.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpwindows.ask.privacy import EventLevel, ItemAddRemove, Unit
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.certificate import Certificate
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.rules import proves


@dataclass(frozen=True)
class Touched:
    """What one neighbour can touch: `trees` for each threshold, and in each at most `points` of that threshold.

    `nodes_per_point` is L, or L^2 for trees on two axes; `rows` is how many nodes there are for one threshold.
    """

    trees: int
    points: tuple[int, ...]
    nodes_per_point: int
    rows: int


def certified(problem: Problem, touched: Touched, weight: int) -> Certificate:
    """The certificate of trees with `weight` lattice units a count, from what a neighbour can touch of them."""
    squared = group_privacy_l2(touched, weight)
    if problem.law == GAUSSIAN:
        return Certificate(squared, "paper-group-privacy-squares", touched.rows, squared)
    return Certificate(group_privacy_l1(touched, weight), "paper-group-privacy", touched.rows, squared)


def cumulative_points(unit: Unit) -> int:
    """How many points of one cumulative tree a neighbour changes: 2, or 1 under add/remove (module docstring)."""
    return 1 if isinstance(unit, ItemAddRemove) else 2


def fixed_window_points(unit: Unit, k: int) -> int:
    """How many arrivals, or departures, of one block a neighbour changes: 2k or 4k (module docstring)."""
    return 2 * k if isinstance(unit, (EventLevel, ItemAddRemove)) else 4 * k


def fixed_window_trees(unit: Unit, blocks: int) -> int:
    """How many trees a neighbour touches: two in each of two blocks, or in every block (module docstring)."""
    return 4 if isinstance(unit, EventLevel) else 2 * blocks


def time_window_points(k: int) -> int:
    """How many points of one two-dimensional tree one occurrence changes: 2k + 1 (module docstring)."""
    return 2 * k + 1


@proves("paper-group-privacy")
def group_privacy_l1(touched: Touched, weight: int) -> int:
    """L1 sensitivity over all thresholds, in lattice units (module docstring)."""
    return touched.trees * sum(touched.points) * touched.nodes_per_point * weight


@proves("paper-group-privacy-squares")
def group_privacy_l2(touched: Touched, weight: int) -> int:
    """Squared L2 sensitivity over all thresholds, in squared lattice units (module docstring)."""
    return touched.trees * sum(points**2 for points in touched.points) * touched.nodes_per_point * weight**2
