"""Trees that are decoded causally: the level weights of least error for one branching."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import scipy

from dpwindows.kernel.maps.endless_counter import MOST_STEPS
from dpwindows.kernel.maps.integer_maps import FloatArray
from dpwindows.kernel.maps.trees import CausalTree

# Integer weights are this fine.
_WEIGHT = 1000
_BRANCHINGS = (2, 3, 4, 6, 8, 12, 16, 24, 32)
# Steps, spread over all orders of magnitude, at which trees for unlimited streams are compared.
_SPREAD = np.unique(np.rint(np.geomspace(1, 1 << 20, 200)).astype(np.int64))


def branchings(length: int) -> list[int]:
    """Branchings worth trying for so many positions."""
    return [branching for branching in _BRANCHINGS if branching < length] or [2]


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

    def error(logs: FloatArray) -> float:
        weights = np.exp(np.concatenate([[0.0], logs]))
        variances = [weights[0] ** -2]
        for weight in weights[1:]:
            variances.append(1 / (1 / (branching * variances[-1]) + weight**2))
        by_step = np.array(variances) @ digits
        if horizon is None:
            typical = np.exp(np.log(by_step).mean())
        else:
            typical = by_step.max() if criterion == "max" else by_step.mean()
        return float(np.sqrt(typical) * weights.sum())

    if horizon is None:
        ladder = np.log(np.arange(1, levels) + 1.0)
        found = scipy.optimize.minimize_scalar(
            lambda power: error(-power * ladder), bounds=(0.0, 3.0), method="bounded"
        )
        logs = -float(found.x) * ladder
    elif levels == 1:
        logs = np.zeros(0)
    else:
        logs = scipy.optimize.minimize(error, np.zeros(levels - 1), method="Nelder-Mead", options={"xatol": 1e-3}).x
    weights = np.exp(np.concatenate([[0.0], logs]))
    whole = tuple(max(1, round(float(weight))) for weight in weights / weights.max() * _WEIGHT)
    return error(np.log(np.array(whole[1:]) / whole[0])), CausalTree(branching, whole)


def _levels(branching: int, steps: int) -> int:
    """Levels of a tree over so many steps, the root left out."""
    levels, size = 1, branching
    while size < steps:
        levels, size = levels + 1, size * branching
    return levels
