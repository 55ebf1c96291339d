r"""How the paper shares a budget among its range trees, and the noise each tree then needs.

A cell of the paper's table says how many range trees one neighbour can touch, and how many points, m, it moves in or
out of each. The budget goes down in three steps:

1. *Thresholds*: k and k+1 of an exact count get a share each. The paper halves; here shares are in proportion to m,
   which gives both one noise scale. For k = 1 the standard error is 5 % below that of halves, and next to none for
   large k.
2. *Trees*: basic composition gives each of c trees (epsilon/c, delta/c). Advanced composition (Dwork, Rothblum,
   Vadhan 2010) gives each epsilon_t with `sqrt(2 c ln(1/slack)) epsilon_t + c epsilon_t (e^epsilon_t - 1) <= epsilon`:
   as in its usual corollary `epsilon_t = epsilon / (2 sqrt(2 c ln(1/slack)))`, and less where epsilon is so large that
   the corollary fails. With Laplace trees the slack is all of delta; with Gaussian ones it is half, and the other half
   is shared by the trees.
3. *Points*: a tree must be (epsilon_t, delta_t) private for a change of m points. Group privacy: it is enough that it
   is (epsilon', delta') private for one, with `epsilon' = epsilon_t / m` and
   `delta' = delta_t (e^epsilon' - 1) / (e^epsilon_t - 1)`, since m steps cost `delta' sum_{j<m} e^(j epsilon')`. The
   paper's `delta_t / (2 m)` (printed `delta/(8k)` for fixed windows, `delta/(16 k T/W)` at item level, and another
   form for time windows) follows from it only while `epsilon_t` is at most about 1.25.

One point changes one node in each of L levels (each of L^2 products for two dimensions) by 1. So a node gets discrete
Laplace noise of scale `L / epsilon'`, or discrete Gaussian noise that is (epsilon', delta') private for a squared L2
sensitivity of L. The least such noise is taken: the analytic figure, not the textbook's `sqrt(2 ln(1.25/delta))`.

None of this is trusted: the kernel proves the cost of the scales found here against the budget by itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from dpwindows.ask.privacy import ApproxDP, Budget, PureDP
from dpwindows.errors import InputError
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE
from dpwindows.kernel.problem import Problem
from dpwindows.strategies.paper.bounds import Touched
from dpwindows.strategies.search import choice
from dpwindows.strategies.search.noise_scales import scales


@dataclass(frozen=True)
class PartNoise:
    """The noise of every node, `scale` in lattice units, and the guarantee it gives to one point of one tree."""

    scale: float
    epsilon: float
    delta: float
    composition: str


def part_noise(problem: Problem, touched: Touched) -> PartNoise | None:
    """The paper's noise for a problem, by the composition that needs the least, or None where it has none.

    None: the budget is neither pure nor approximate, or it is so extreme that delta' underflows.
    """
    budget = problem.budget
    if not isinstance(budget, (PureDP, ApproxDP)):
        return None
    noises = [
        PartNoise(scale, epsilon, delta, composition)
        for composition, epsilon, delta in _per_point(problem, budget, touched)
        if (scale := _scale(problem, touched, epsilon, delta)) is not None
    ]
    return choice.best_of(noises, lambda noise: noise.scale) if noises else None


def _per_point(problem: Problem, budget: PureDP | ApproxDP, touched: Touched) -> Iterator[tuple[str, float, float]]:
    """(composition, epsilon', delta') for each composition that applies; the least over the thresholds."""
    total, delta = sum(touched.points), budget.delta if isinstance(budget, ApproxDP) else 0.0
    # Of each threshold: its points and its share of the budget.
    shares = [(points, points / total) for points in touched.points]

    def delta_of(part: float, epsilon: float) -> float:
        """The least delta' of a point over the thresholds, each of which has this part of its share of delta."""
        each = (group_delta(delta * share * part / touched.trees, epsilon, points) for points, share in shares)
        return min(each) if problem.law == GAUSSIAN else 0.0

    basic = budget.epsilon / (total * touched.trees)
    yield "basic", basic, delta_of(1.0, basic)
    if isinstance(budget, ApproxDP):
        part = 0.5 if problem.law == GAUSSIAN else 1.0
        advanced = min(
            advanced_epsilon(budget.epsilon * share, delta * share * part, touched.trees) / points
            for points, share in shares
        )
        yield "advanced", advanced, delta_of(part, advanced)


def _scale(problem: Problem, touched: Touched, epsilon: float, delta: float) -> float | None:
    """The least scale for which a change of one point of one tree is (epsilon, delta) private."""
    if epsilon == 0:
        return None
    if problem.law == LAPLACE:
        return scales(PureDP(epsilon), LAPLACE, [touched.nodes_per_point], [1.0], [touched.rows])[0]
    if not 0 < delta < 1:
        return None
    sensitivity = touched.nodes_per_point * lattice_weight(problem) ** 2
    part: Budget = ApproxDP(epsilon, delta)
    try:
        return scales(part, GAUSSIAN, [sensitivity], [1.0], [touched.rows * len(problem.thresholds)])[0]
    except InputError:
        return None


def lattice_weight(problem: Problem) -> int:
    """Lattice units of one count: 1 for Laplace noise, exact on any lattice; a fine lattice for Gaussian noise."""
    return 1 if problem.law == LAPLACE else 1 << problem.bits


def group_delta(delta: float, epsilon: float, points: int) -> float:
    """The delta' for one point that makes `points` of them cost at most `delta`, each being `epsilon` private."""
    if epsilon == 0:  # a share too small for a floating-point number
        return 0.0
    return delta * math.exp(_log_expm1(epsilon) - _log_expm1(points * epsilon))


def advanced_epsilon(epsilon: float, slack: float, parts: int) -> float:
    """The epsilon of each of `parts` that advanced composition brings to `epsilon` with `slack` added to delta."""
    root = math.sqrt(2 * parts * math.log(1 / slack))

    def total(part: float) -> float:
        return root * part + parts * part * math.expm1(min(part, 700.0))

    # Beyond 720 a part costs more than any floating-point number.
    low, high = 0.0, min(epsilon / (2 * root), 720.0)
    if total(high) <= epsilon:
        return high
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if total(middle) <= epsilon else (low, middle)
    return low


def _log_expm1(x: float) -> float:
    return x + math.log(-math.expm1(-x))
