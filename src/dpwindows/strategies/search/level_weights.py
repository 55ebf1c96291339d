"""Trees that are decoded causally: the level weights of least error for one branching."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from dpwindows.kernel.maps.endless_counter import MOST_STEPS
from dpwindows.kernel.maps.trees import CausalTree
from dpwindows.strategies.search import choice
from dpwindows.strategies.search.choice import Place

# Integer weights are this fine.
_WEIGHT = 1000
# The grid of what is searched: parts of a power; of an octave, and how many of these the weights are apart at most.
_PARTS, _PER_OCTAVE, _STRIDES = 100, 16, (16, 4, 2, 1)
_OCTAVES = 8 * _PER_OCTAVE
_BRANCHINGS = (2, 3, 4, 6, 8, 12, 16, 24, 32)
# Steps, spread over all orders of magnitude, at which trees for unlimited streams are compared.
_SPREAD = np.unique(np.rint(np.geomspace(1, 1 << 20, 200)).astype(np.int64))


def branchings(length: int) -> list[int]:
    """Branchings worth trying for `length` positions."""
    return [branching for branching in _BRANCHINGS if branching < length] or [2]


def best_of_trees(criterion: str, tried: Sequence[int], horizon: int | None) -> CausalTree:
    """The tree of least error among those of some branchings."""
    best = choice.best_of([best_tree(criterion, branching, horizon) for branching in tried], lambda one: one[0])
    return best[1]


# Thresholds and units of one plan ask for the same trees.
@lru_cache(maxsize=256)
def best_tree(criterion: str, branching: int, horizon: int | None) -> tuple[float, CausalTree]:
    """(error per unit of noise and moved end, tree) for one branching.

    With a horizon all level weights are searched, for the error over its steps; without, a power law of the level,
    for the geometric mean of the error over all orders of magnitude of time.
    """
    levels = _levels(branching, horizon or MOST_STEPS)
    steps = _SPREAD if horizon is None else np.arange(1, horizon + 1)
    digits = np.array(
        [
            steps // branching**level if level == levels - 1 else steps // branching**level % branching
            for level in range(levels)
        ],
        dtype=np.float64,
    )

    def error(whole: tuple[int, ...]) -> float:
        weights = np.array(whole) / _WEIGHT
        variances = [weights[0] ** -2]
        for weight in weights[1:]:
            variances.append(1 / (1 / (branching * variances[-1]) + weight**2))
        by_step = np.array(variances) @ digits
        if horizon is None:
            typical = np.exp(np.log(by_step).mean())
        else:
            typical = by_step.max() if criterion == "max" else by_step.mean()
        return float(np.sqrt(typical) * weights.sum())

    def whole(place: Place) -> tuple[int, ...]:
        """The weights of the levels, the first one of them as it is."""
        if horizon is None:
            weights = [level ** (-place[0] / _PARTS) for level in range(1, levels + 1)]
        else:
            weights = [1.0, *(2.0 ** (at / _PER_OCTAVE) for at in place)]
        return tuple(max(1, round(weight / max(weights) * _WEIGHT)) for weight in weights)

    size, low, high = (1, 0, 3 * _PARTS) if horizon is None else (levels - 1, -_OCTAVES, _OCTAVES)
    start = (_PARTS if horizon is None else 0,) * size
    best = choice.descend(lambda place: error(whole(place)), start, (low,) * size, (high,) * size, _STRIDES)
    return error(whole(best)), CausalTree(branching, whole(best))


def _levels(branching: int, steps: int) -> int:
    """Levels of a tree over `steps` steps, the root left out."""
    levels, size = 1, branching
    while size < steps:
        levels, size = levels + 1, size * branching
    return levels
