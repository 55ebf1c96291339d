r"""Table 1: how the error of every cell grows, upper and lower bounds with their conditions, the paper's errors mended.

A cell is a window family, an event-level or item-level guarantee, a bundle or a singleton stream (at most one event a
step over all items), and a pure or an approximate budget. Every function returns a `Growth`: a formula in T, W, k,
epsilon and delta, and its value **with leading constant 1**. Errors are root mean squares of one answer unless said
otherwise. What they are with all constants: upper bounds are forecasts of `dpwindows.plan.plan`; lower bounds with
constants are in `packing` (pure) and `dpwindows.strategies.search.limits` (Gaussian noise).

`L(n)` is the number of levels of a range tree on n leaves, log2 n rounded up. A range tree whose nodes must each be
epsilon'-private adds up at most L nodes with noise of scale L/epsilon': `L^1.5/epsilon'` under Laplace noise,
`L sqrt(ln(1/delta'))/epsilon'` under Gaussian noise; on two axes there are L^2 nodes of L^2 levels: `L^3`, and
`L^2 sqrt(ln(1/delta'))`. The smaller one is taken. The constructions and their sensitivities are proved in
`dpwindows.strategies.paper.bounds`, their shares of the budget in `dpwindows.strategies.paper.composition`.

Lower bounds are those of the hard problem that a construction of `constructions` turns into window counts:

- 1-way marginals of d columns and n rows: error at least of the order of `min(n, d/epsilon)` under a pure budget
  (Hardt, Talwar 2010) and `min(n, sqrt(d ln(1/delta))/epsilon)` under an approximate one (Bun, Ullman, Vadhan,
  arXiv 1311.3158; Steinke, Ullman, arXiv 1501.06095), for delta small against 1/n and not exponentially small;
- d random linear queries on d elements: `sqrt(d)` for constant epsilon and delta (Dinur, Nissim 2003);
- 1-D range queries on T values: `ln(T)/epsilon`, pure (Dwork, Naor, Pitassi, Rothblum 2010; `packing.cumulative`), and
  `log(T)^1.5`, approximate, for the expected largest error and constant epsilon (arXiv 2607.00876);
- 2-D range queries on T x T values: `log(T)`, approximate (Muthukrishnan, Nikolov, arXiv 1203.5453).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from dpwindows.errors import InputError
from dpwindows.theory.hard_instance import require_at_least

Family = Literal["cumulative", "rolling", "any"]
Level = Literal["event", "item"]


@dataclass(frozen=True)
class Setting:
    """What the bounds depend on: `steps` T, `length` W, `k`, `epsilon`, `delta` (0: pure), singleton or bundle.

    Raises:
        InputError: a field is out of range.
    """

    steps: int
    length: int
    k: int
    epsilon: float
    delta: float = 0.0
    singleton: bool = False

    def __post_init__(self) -> None:
        for name in ("steps", "length", "k"):
            require_at_least(name, getattr(self, name), 1)
        if not (self.epsilon > 0 and 0 <= self.delta < 1):
            raise InputError(f"epsilon must exceed 0 and delta lie in [0, 1), got {self.epsilon:g} and {self.delta:g}")

    @property
    def pure(self) -> bool:
        """Whether delta is 0."""
        return self.delta == 0

    @property
    def slack(self) -> float:
        """`ln(1/delta)`, infinite for a pure budget: no law with it is then the least."""
        return math.inf if self.pure else -math.log(self.delta)


@dataclass(frozen=True)
class Growth:
    """A growth law: its formula, and its value with leading constant 1."""

    value: float
    formula: str


def levels(leaves: int) -> int:
    """L(n): levels of a binary range tree, log2 n rounded up, and at least 1."""
    return max(1, (leaves - 1).bit_length())


def _least(*laws: Growth) -> Growth:
    return min(laws, key=lambda law: law.value)


# --- Upper bounds: what the paper's algorithms reach -----------------------------------------------------------------


def cumulative_upper(at: Setting) -> Growth:
    """Cumulative counts, event and item level alike: one range tree on the steps at which items reach k.

    Independent of k. (The paper's cumulative lemma; a moved point is two changes, not one: the paper's error 4.)
    """
    depth = levels(at.steps)
    return _least(
        Growth(depth**1.5 / at.epsilon, "log(T)^1.5 / eps"),
        Growth(depth * math.sqrt(at.slack) / at.epsilon, "log(T) sqrt(ln 1/delta) / eps"),
    )


def rolling_event_upper(at: Setting) -> Growth:
    """Rolling counts, event level: two trees in each of two overlapping blocks of 2W, group privacy 2k.

    **Independent of T, polylogarithmic in W**, linear in k. (The paper's fixed-window lemma and its reduction of the
    horizon; errata 1, 2 and 11.) Under Gaussian noise sqrt(k) is enough (`docs/growth.md`).
    """
    depth, noise = levels(2 * at.length), math.sqrt(math.log(at.k) + at.slack)
    return _least(
        Growth(at.k * depth**1.5 / at.epsilon, "k log(W)^1.5 / eps"),
        Growth(at.k * depth * noise / at.epsilon, "k log(W) sqrt(ln k/delta) / eps"),
    )


def any_event_upper(at: Setting) -> Growth:
    """Any windows, event level: two trees on starts x ends, group privacy 2k+1.

    (The paper's time-window lemma; errata 3, 12 and 13.)
    """
    depth, noise = levels(at.steps), math.sqrt(math.log(at.k) + at.slack)
    return _least(
        Growth(at.k * depth**3 / at.epsilon, "k log(T)^3 / eps"),
        Growth(at.k * depth**2 * noise / at.epsilon, "k log(T)^2 sqrt(ln k/delta) / eps"),
    )


def rolling_item_upper(at: Setting) -> Growth:
    """Rolling counts, item level: the same trees, composed over all T/W blocks, basic or advanced.

    (The paper's corollaries for item level; error 10.) sqrt(k) is enough in place of k (`docs/growth.md`).
    """
    depth, blocks = levels(2 * at.length), -(-at.steps // at.length)
    root, noise = at.k * math.sqrt(blocks * at.slack) / at.epsilon, math.sqrt(math.log(at.k * blocks) + at.slack)
    return _least(
        Growth(at.k * blocks * depth**1.5 / at.epsilon, "k (T/W) log(W)^1.5 / eps"),
        Growth(root * depth**1.5, "k sqrt(T/W ln 1/delta) log(W)^1.5 / eps"),
        Growth(root * depth * noise, "k sqrt(T/W) ln(1/delta) log(W) / eps"),
    )


def any_item_upper(at: Setting) -> Growth:
    """Any windows, item level: a cumulative tree for every start, composed; in singleton streams on groups of steps.

    Bundle: T (pure) and sqrt(T) (approximate), independent of k. Singleton: groups of g steps cost g of bias and leave
    T/g starts, so the best g gives sqrt(T/eps) and (T/eps^2)^(1/3), each with logarithms. The paper prints these four
    in the wrong rows of Table 1 (error 6); this is what its corollaries say. Time compression: error 5.
    """
    tree = levels(at.steps) ** 1.5 / at.epsilon
    bundle = (
        Growth(at.steps * tree, "T log(T)^1.5 / eps"),
        Growth(math.sqrt(at.steps * at.slack) * tree, "sqrt(T ln 1/delta) log(T)^1.5 / eps"),
    )
    grouped = (
        Growth(math.sqrt(at.steps * tree), "sqrt(T / eps) log(T)^0.75"),
        Growth((at.steps * at.slack * tree**2) ** (1 / 3), "(T ln(1/delta) / eps^2)^(1/3) log(T)"),
    )
    return _least(*bundle, *grouped) if at.singleton else _least(*bundle)


# --- Lower bounds -----------------------------------------------------------------------------------------------------


def cumulative_lower(at: Setting) -> Growth:
    """Cumulative counts, event and item level, bundle and singleton (T large against ln(T)/eps): 1-D range queries.

    `constructions.range_queries`. Pure: the largest error. Approximate: the expected largest error, constant epsilon.
    """
    log = math.log(max(at.steps, 2))
    return Growth(log / at.epsilon, "log(T) / eps") if at.pure else Growth(log**1.5, "log(T)^1.5")


def rolling_event_lower(at: Setting) -> Growth:
    """Rolling counts, event level: linear queries, and cumulative counts of W steps (T >= 2W).

    `constructions.linear_queries`, d = min(2k - 3, W - 1) queries, k >= 2; `constructions.as_rolling`. Bundle: every
    pattern has as many dormant items as one likes, so rows of marginals are events: k (pure), sqrt(k) (approximate).
    Singleton: W steps hold W/(4d) elements, so d = min(k, sqrt(W)) random queries: sqrt(d), constant epsilon and delta.
    """
    short = cumulative_lower(replace(at, steps=at.length))
    formula = short.formula.replace("T", "W")
    queries = min(2 * at.k - 3, at.length - 1)
    if queries < 1:
        return Growth(short.value, formula)
    many = _marginals(queries, at, "min(k, W)")
    if at.singleton:
        many = Growth(math.sqrt(min(queries, math.sqrt(at.length / 4))), "min(sqrt(k), W^(1/4))")
    return Growth(many.value + short.value, f"{many.formula} + {formula}")


def any_event_lower(at: Setting) -> Growth:
    """Any windows, event level: rolling counts of T/2 steps are among them.

    2-D range queries (`constructions.dominance_queries`, two events to a point) give log(T) in root mean
    square for approximate budgets and constant epsilon, where one dimension speaks of the largest error.
    """
    rolling = rolling_event_lower(replace(at, length=max(1, at.steps // 2)))
    return Growth(rolling.value, rolling.formula.replace("W", "T"))


def rolling_item_lower(at: Setting) -> Growth:
    """Rolling counts, item level: marginals of T/W columns, one to a window; in bundle streams of min(k, W) T/W.

    `constructions.marginals_rolling`. A window of a singleton stream holds at most W/k items k times, which bounds the
    error from above in this construction. For k >= 2 in bundle streams `constructions.dense_marginals_rolling` (ours):
    the error grows with k, like sqrt(k) under Gaussian noise, and so does what is reached, up to logarithms of W
    (`docs/growth.md`). What holds at event level holds too.
    """
    if at.singleton:
        return _least(_marginals(at.steps // at.length, at, "(T/W)"), Growth(at.length / at.k, "W / k"))
    dense = min(at.k, at.length)
    return _marginals(dense * at.steps // at.length, at, "(T/W)" if dense == 1 else "min(k, W) (T/W)")


def any_item_lower(at: Setting) -> Growth:
    """Any windows, item level: marginals of T columns; in singleton streams of T/(nk) for n rows, at the best n.

    `constructions.marginals_any`. With d = T/(nk), the error min(n, d/eps) is largest at `n = sqrt(T/(k eps))`, and
    min(n, sqrt(d ln(1/delta))/eps) at `n = (T ln(1/delta) / (k eps^2))^(1/3)`. What holds at event level holds too.
    """
    if not at.singleton:
        return _marginals(at.steps, at, "T")
    if at.pure:
        return Growth(math.sqrt(at.steps / (at.k * at.epsilon)), "sqrt(T / (k eps))")
    cube = (at.steps * at.slack / (at.k * at.epsilon**2)) ** (1 / 3)
    return Growth(cube, "(T ln(1/delta) / (k eps^2))^(1/3)")


def _marginals(columns: int, at: Setting, text: str) -> Growth:
    if at.pure:
        return Growth(columns / at.epsilon, f"{text} / eps")
    return Growth(math.sqrt(columns * at.slack) / at.epsilon, f"sqrt({text} ln 1/delta) / eps")


Law = Callable[[Setting], Growth]

UPPER: dict[tuple[Family, Level], Law] = {
    ("cumulative", "event"): cumulative_upper,
    ("cumulative", "item"): cumulative_upper,
    ("rolling", "event"): rolling_event_upper,
    ("rolling", "item"): rolling_item_upper,
    ("any", "event"): any_event_upper,
    ("any", "item"): any_item_upper,
}

LOWER: dict[tuple[Family, Level], Law] = {
    ("cumulative", "event"): cumulative_lower,
    ("cumulative", "item"): cumulative_lower,
    ("rolling", "event"): rolling_event_lower,
    ("rolling", "item"): rolling_item_lower,
    ("any", "event"): any_event_lower,
    ("any", "item"): any_item_lower,
}
