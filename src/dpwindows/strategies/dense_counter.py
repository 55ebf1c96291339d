"""`dense-counter`: the optimal dense factorisation of prefix sums, for cumulative counts under item add/remove.

Noise of covariance C on d answers has error `tr C / d` (rms) or `max C_tt` (max); the changes are the suffixes
`1_[x,T]`. Up to a factor the best C is `V^(-1/2) (V^(1/2) X V^(1/2))^(1/2) V^(-1/2)`, with `X = sum w_x 1_[x,T]
1_[x,T]'`, for weights w on changes and v on answers (v = 1 for rms) at which no change costs more, and no answer errs
more, than those with weight do. Both are found by multiplicative updates (for rms, the dual of
`dpwindows.strategies.search.dual`). A few suffice: all columns of the factor are then scaled to one length, which
costs nothing. The factor `E` of `C^-1 = (E D)' (E D)`, D the first differences, is lower-triangular: a continual
mechanism.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dpwindows.ask.privacy import ItemAddRemove
from dpwindows.ask.queries import Cumulative
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.designs import Design
from dpwindows.kernel.families.series import Series
from dpwindows.kernel.maps.counters import MatrixCounter
from dpwindows.kernel.maps.integer_maps import FloatArray
from dpwindows.kernel.problem import Criterion, Problem
from dpwindows.strategies.search.dual import Suffixes
from dpwindows.strategies.search.portable import cholesky, to_lattice

NAME = "dense-counter"
# Factorisation takes O(steps^3).
_LONGEST = 1024
# Horizons solved from scratch, and how much shorter the one is that a longer horizon's weights come from.
_SHORT, _COARSENING = 64, 3
# Power of the multiplicative updates: changes and answers that do not interact would take one step at 2.
_POWER = 1.8
# Bits after the point that are kept of the factor, all of it made by a library's eigenvectors.
_KEPT = 14


def design(problem: Problem) -> Design | None:
    """The counter, or None where it does not apply."""
    applies = isinstance(problem.window, Cumulative) and isinstance(problem.unit, ItemAddRemove)
    if problem.law != GAUSSIAN or not applies or problem.steps > _LONGEST:
        return None
    factor = _factor(problem.steps, problem.criterion)
    weights = to_lattice(factor, problem.bits, _KEPT)
    if not (np.diagonal(weights) > 0).all():
        return None
    return Design(problem, Series(MatrixCounter(weights)), NAME, {"bits": problem.bits})


@lru_cache(maxsize=8)
def _factor(steps: int, criterion: Criterion) -> FloatArray:
    """`E`, lower-triangular, its columns of length 1."""
    precision, _, _ = _solved(steps, criterion)
    # C^-1 = M'M with M lower-triangular: Cholesky's factor of the matrix with rows and columns reversed.
    lower = cholesky(precision[::-1, ::-1]).T[::-1, ::-1]
    # On increments: E = M D^-1, whose columns are sums of M's from x on.
    factor = np.cumsum(lower[:, ::-1], axis=1)[:, ::-1]
    return np.asarray(np.tril(factor / np.sqrt((factor**2).sum(axis=0))))


def _solved(steps: int, criterion: Criterion) -> tuple[FloatArray, FloatArray, FloatArray]:
    """`C^-1` up to a factor, and the weights of changes and answers; from the weights of a shorter horizon."""
    changes, answers, rounds = np.ones(steps), np.ones(steps), 6 if criterion == "rms" else 16
    if steps > _SHORT:
        _, changes, answers = _solved(-(-steps // _COARSENING), criterion)
        changes, answers = _stretch_weights(changes, steps), _stretch_weights(answers, steps)
        rounds = 5 if criterion == "max" and steps <= _LONGEST // 2 else 3
    suffixes = Suffixes(steps)
    for _ in range(rounds):
        changes, answers = changes / changes.sum(), answers * (steps / answers.sum())
        root = np.sqrt(answers)
        values, vectors = np.linalg.eigh(root[:, None] * suffixes.moment(changes) * root)
        values = np.sqrt(np.maximum(values, values[-1] * 2.0**-50))
        precision = root[:, None] * ((vectors / values) @ vectors.T) * root
        changes = changes * (suffixes.costs(precision) / values.sum()) ** _POWER
        if criterion == "max":
            answers = answers * ((vectors**2 * values).sum(axis=1) / answers / values.sum() * steps) ** _POWER
    return precision, changes, answers


def _stretch_weights(weights: FloatArray, steps: int) -> FloatArray:
    """Weights of the same shape on more steps."""
    position = np.linspace(0.0, len(weights) - 1, steps)
    return np.asarray(np.interp(position, np.arange(len(weights)), weights))
