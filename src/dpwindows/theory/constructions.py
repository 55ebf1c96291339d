r"""The lower bounds' constructions: for every hard problem a log whose window counts are its answers.

| function | hard problem | window counts | one element is |
|---|---|---|---|
| `range_queries` | 1-D range queries: `#{i : x_i <= y}` | cumulative | one event |
| `as_rolling` | any cumulative instance | rolling | the same |
| `linear_queries` | linear queries `A x`, x in {0,1}^m | rolling | one event |
| `dominance_queries` | 2-D range queries: `#{i : x_i <= y}` in both coordinates | any | two events |
| `marginals_rolling` | 1-way marginals: column sums of a 0/1 table | rolling | one item |
| `marginals_any` | the same | any | one item |
| `dense_marginals_rolling` | the same, min(k, W) times as many columns (ours) | rolling | one item |

A mechanism for window counts is thus one for the hard problem, on the same budget where an element is one event or
one item, and what no mechanism can do for the hard problem none can do for the windows.

Every builder has a *bundle* and a *singleton* form (at most one event a step over all items). The singleton form is the
bundle form with one occurrence of an item in any step, spread out: `hard_instance.spread_over_slots`. Elements that
are absent keep an item that occurs k-1 times, *dormant*: one occurrence short of being counted, so that one event makes
the difference.

In all of them but `dominance_queries` no window that is asked holds more than k occurrences of an item: it has as many
items with exactly k as with at least k, and the bounds hold for "exactly k" too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpwindows.ask.privacy import EventLevel, ItemLevel, Unit
from dpwindows.ask.queries import AnyWindow, Cumulative, Rolling, WindowFamily
from dpwindows.errors import InputError
from dpwindows.theory.hard_instance import HardInstance, Ints, Reader, require_at_least, spread_over_slots

# Items, steps and how often they occur there, broadcast to one shape.
Occurrences = tuple[Any, Any, Any]


def range_queries(points: Any, size: int, k: int = 1, *, singleton: bool = False) -> HardInstance:
    """1-D range queries as cumulative counts (the paper's lower bound for cumulative counts).

    `points` are integers in 1..size, or 0 for a point that is absent; the answers are `#{i : 1 <= x_i <= y}` for
    y = 1..size. Adding or removing a point is one event.

    Construction. Item i occurs k-1 times at the beginning and once more at x_i. It is counted in (1, y) iff x_i is
    present and at most y. Singleton, for n points: T = n (k - 1 + size).
    """
    values = np.asarray(points)
    item, present, dormant = np.arange(len(values)), values > 0, np.full(len(values), k - 1)
    # The dormant occurrences: together in step 1, or one a step before the first value.
    before = k - 1 if singleton else 0
    log = [_repeated(item, 1, dormant, 1, singleton), (item, before + values, present)]
    last = before + np.arange(1, size + 1)
    return _built(log, len(values), before + size, np.ones_like(last), last, k, Cumulative(), singleton=singleton)


def as_rolling(instance: HardInstance, length: int) -> HardInstance:
    """A cumulative instance as rolling windows of `length` steps (the paper: fixed windows are as hard as cumulative).

    `length - 1` empty steps are put before it. The window that ends `t` steps later then begins at or before the first
    of its steps, and holds exactly steps 1..t of it, for t <= length.

    Raises:
        InputError: the instance is not cumulative, or its horizon exceeds `length`.
    """
    if not isinstance(instance.window, Cumulative):
        raise InputError(f"as_rolling needs an instance of cumulative windows, got {instance.window}")
    require_at_least(f"length, for an instance of {instance.horizon} steps,", length, instance.horizon)
    empty = length - 1
    return replace(
        instance,
        histories=np.pad(instance.histories, ((0, 0), (empty, 0))),
        window=Rolling(length),
        first=instance.last,
        last=instance.last + empty,
    )


def linear_queries(
    matrix: Any, present: Any, k: int, *, length: int | None = None, singleton: bool = False
) -> HardInstance:
    """Linear queries `A x` as rolling counts (the paper's sqrt(k) lower bound for fixed windows at event level).

    `matrix` is A, zeros and ones of shape (d, m); `present` is x, zeros and ones of shape (m,). Adding or removing a
    column's element is one event. A column that falls back from 1 to 0 F times needs k >= F + 2: k >= 2 + d // 2 is
    always enough.

    Construction. `length` counts steps (bundle; d+1 if not given), or groups of m steps (singleton; 4d if not given,
    so W = 4dm); write L for it. Query i = 1..d is the window i+1..i+L. Let A_0 = 0. Where column u rises,
    `A_iu > A_(i-1)u`, item u occurs at i+L, which query i is the first to hold; where it falls, at i, which
    query i is the first to have lost. With k-2-F further occurrences, and one if x_u = 1, in the steps d+1..L that
    all queries share, query i holds `k - 2 + A_iu + x_u` occurrences of u: k iff `A_iu = x_u = 1`, and less otherwise.
    Singleton: fall and rise of one item never meet in a step, and each further occurrence has a step of its own.

    Raises:
        InputError: k or `length` are too small (or k too large for a singleton log).
    """
    queries = np.asarray(matrix)
    d, m = queries.shape
    size = (4 * d if singleton else d + 1) if length is None else length
    require_at_least("length", size, d + 1)
    # Row by row the rises (1) and falls (-1) of each column, from zeros.
    changes = np.diff(queries, axis=0, prepend=0)
    further = k - 2 - (changes < 0).sum(axis=0)
    if (missing := -int(further.min())) > 0:
        raise InputError(f"k must be at least {k + missing} for this matrix, got {k}")
    if singleton and (beyond := int(further.max()) - (size - d - 1)) > 0:
        raise InputError(f"k must be at most {k - beyond} for a singleton log with groups for {size} steps, got {k}")
    item = np.arange(m)
    falls, fallen = np.nonzero(changes < 0)
    rises, risen = np.nonzero(changes > 0)
    log = [
        (fallen, falls + 1, 1),
        (risen, rises + 1 + size, 1),
        (item, d + 1, np.asarray(present)),
        _repeated(item, size, further, -1, singleton),
    ]
    first = np.arange(2, d + 2)
    last = first + size - 1
    window = Rolling(size * (m if singleton else 1))
    return _built(log, m, size + d, first, last, k, window, singleton=singleton)


def dominance_queries(points: Any, size: int, k: int = 1, *, singleton: bool = False) -> HardInstance:
    """2-D range queries as counts of any windows (the paper's lower bound for time windows at event level).

    `points` are pairs of integers in 1..size, shape (n, 2), or (0, 0) for a point that is absent. The answers are
    `#{i : x_i1 <= y_1 and x_i2 <= y_2}` over present points, shape (size, size). A point is two events.

    Construction. Item i occurs k-1 times in the middle, at `middle + 1 - x_i1` before it and at `middle + x_i2` after
    it. The window that reaches y_1 steps to the left of the middle and y_2 to its right, with count C(y_1, y_2), counts
    a present item iff `x_i1 <= y_1` or `x_i2 <= y_2`; so `C(y) = n - #{x_i1 > y_1 and x_i2 > y_2}` for n present
    points, and `#{x_i <= y} = C(y_1, 0) + C(0, y_2) - C(y_1, y_2)`; C(0, 0) is 0 and is not asked. The points of a
    rectangle, `z < x_i <= y`, are `C(y_1, z_2) + C(z_1, y_2) - C(z_1, z_2) - C(y_1, y_2)`: with N(y) the present points
    above y in both coordinates, `N(z_1, z_2) - N(y_1, z_2) - N(z_1, y_2) + N(y_1, y_2)`, and C = n - N. (The paper
    equates C(y) with `n - #{x_i <= y}`, which is another number.)

    Singleton, n points: one occurrence in each of the k-1 middle groups; with Q = n size + 1 and R = Q + n (k - 2) the
    two events of item j = 1..n are at `Q - n x_j1 + j - 1` and `R + n x_j2 + j - 1`; T = n (2 size + k - 1).
    """
    values = np.asarray(points)
    item, present, dormant = np.arange(len(values)), values[:, 0] > 0, np.full(len(values), k - 1)
    width = k - 1 if singleton else 1
    log = [
        _repeated(item, size + 1, dormant, 1, singleton),
        (item, size + 1 - values[:, 0], present),
        (item, size + width + values[:, 1], present),
    ]
    left, right = (axis.ravel()[1:] for axis in np.indices((size + 1, size + 1)))
    first, last = size + 1 - left, size + width + right

    def read(counts: Any) -> Any:
        # C(0, 0) = 0 in its place.
        square = np.insert(counts, 0, 0).reshape(size + 1, size + 1)
        return square[1:, :1] + square[:1, 1:] - square[1:, 1:]

    return _built(
        log, len(values), 2 * size + width, first, last, k, AnyWindow(), singleton=singleton, distance=2, read=read
    )


def marginals_rolling(table: Any, length: int, k: int = 1, *, singleton: bool = False) -> HardInstance:
    """1-way marginals as rolling counts (the paper's lower bound for fixed windows at item level).

    `table` holds zeros and ones, shape (n, d); the answers are its d column sums. A row is one item.

    Construction. T = dW is cut into d windows. Item j occurs k times in the i-th iff `table[j, i] = 1`: at its first
    step, or, in a singleton log, which needs W >= n k, at every n-th step from its j-th on.

    Raises:
        InputError: `length` is too small for a singleton log.
    """
    return _marginals(table, length, k, Rolling(length), singleton=singleton)


def marginals_any(table: Any, k: int = 1, *, singleton: bool = False) -> HardInstance:
    """1-way marginals as counts of any windows (the paper's lower bound for time windows at item level).

    As `marginals_rolling`, with the shortest windows that hold a column: one step, so T = d, or n k steps in a
    singleton log, so T = d n k.
    """
    return _marginals(table, len(table) * k if singleton else 1, k, AnyWindow(), singleton=singleton)


def dense_marginals_rolling(table: Any, length: int, k: int) -> HardInstance:
    """1-way marginals as rolling counts, more than one to a window: a lower bound that grows with k (ours).

    `table` holds zeros and ones, shape (n, d). A row is one item. Blocks of `b = min(2k - 3, W - 1)` columns take
    `W + b` steps each, so T = d (W + b) / b where b divides d: of the order of `d W / min(k, W)` steps, where
    `marginals_rolling` takes d W.

    Construction. In each block item j is the item of `linear_queries` whose column is the block's part of row j, with
    its element present; a block's queries lie inside its own steps. b <= 2k - 3 makes k >= 2 + b // 2.

    Raises:
        InputError: k < 2 or `length` < 2.
    """
    rows = np.asarray(table)
    require_at_least("k", k, 2)
    require_at_least("length", length, 2)
    width = min(2 * k - 3, length - 1)
    present = np.ones(len(rows), np.int64)
    blocks = [
        linear_queries(rows[:, column : column + width].T, present, k, length=length)
        for column in range(0, rows.shape[1], width)
    ]
    starts = np.cumsum([0, *(block.horizon for block in blocks[:-1])])
    first = np.concatenate([block.first + start for block, start in zip(blocks, starts, strict=True)])
    histories = np.concatenate([block.histories for block in blocks], axis=1)
    return replace(blocks[0], histories=histories, unit=ItemLevel(), first=first, last=first + length - 1)


def _marginals(table: Any, length: int, k: int, window: WindowFamily, *, singleton: bool) -> HardInstance:
    rows = np.asarray(table)
    n, d = rows.shape
    require_at_least("length", length, n * k if singleton else 1)
    item, column = np.nonzero(rows)
    begin = column * length
    parts = [(item, begin + n * i + item + 1, 1) for i in range(k)] if singleton else [(item, begin + 1, k)]
    first = np.arange(d) * length + 1
    # The singleton form has its own slots: what is built is not spread again.
    return _built(parts, n, d * length, first, first + length - 1, k, window, unit=ItemLevel())


def _repeated(item: Ints, step: int, times: Ints, way: int, singleton: bool) -> Occurrences:
    """`times[u]` occurrences of item u from `step` on: all in that step, or one a step, forwards (1) or backwards."""
    if not singleton:
        return item, np.array(step), times
    far = np.arange(int(times.max(initial=0)))
    return item[:, None], step + way * far, far < times[:, None]


def _built(
    log: Sequence[Occurrences],
    items: int,
    horizon: int,
    first: Ints,
    last: Ints,
    k: int,
    window: WindowFamily,
    *,
    singleton: bool = False,
    unit: Unit | None = None,
    distance: int = 1,
    read: Reader = np.asarray,
) -> HardInstance:
    """The instance, with every step spread over one slot for each item if it is to be a singleton log."""
    histories = np.zeros((items, horizon), dtype=np.int64)
    for item, step, times in log:
        np.add.at(histories, (item, step - 1), times)
    slots = items if singleton else 1
    histories = spread_over_slots(histories) if singleton else histories
    first, last = (first - 1) * slots + 1, last * slots
    return HardInstance(histories, k, window, unit or EventLevel(), distance, first, last, read)
