"""Limited-memory BFGS in a few lines of NumPy: the same result on every machine, with any number of threads.

Planning runs many small minimisations. The library routine hands each of their steps to a threaded linear algebra
that takes longer to start than to run, and whose rounding depends on the processor and the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpwindows.kernel.maps.integer_maps import FloatArray

Objective = Callable[[FloatArray], tuple[float, FloatArray]]

_MEMORY = 12
_SHORTEST_STEP = 1e-10


def minimise(objective: Objective, start: FloatArray, rounds: int = 100, tolerance: float = 1e-9) -> FloatArray:
    """A point near `start` where a smooth function is small (Nocedal and Wright, algorithm 7.5, with backtracking).

    Args:
        objective: from a point to the value and the gradient there.
        start: where to begin.
        rounds: the most steps to take.
        tolerance: stop once two steps in a row lower the value by less than this.
    """
    point = start
    value, gradient = objective(point)
    steps: list[tuple[FloatArray, FloatArray, float]] = []
    idle = 0
    for _ in range(rounds):
        direction = _direction(gradient, steps)
        slope = float((direction * gradient).sum())
        if slope >= 0:
            steps, direction = [], -gradient
            slope = float((direction * gradient).sum())
        # The first step has no scale of its own: move no coordinate by more than a tenth.
        size = 1.0 if steps else min(1.0, 0.1 / max(float(np.abs(direction).max()), 1e-300))
        while size > _SHORTEST_STEP:
            after, (lower, slant) = point + size * direction, objective(point + size * direction)
            if lower <= value + 1e-4 * size * slope:
                break
            size /= 2
        else:
            return point
        curvature = float(((after - point) * (slant - gradient)).sum())
        if curvature > 1e-12:
            steps = [*steps[1 - _MEMORY :], (after - point, slant - gradient, curvature)]
        idle = idle + 1 if value - lower < tolerance else 0
        point, value, gradient = after, lower, slant
        if idle == 2:
            break
    return point


def _direction(gradient: FloatArray, steps: list[tuple[FloatArray, FloatArray, float]]) -> FloatArray:
    """Minus the approximate inverse Hessian times the gradient, by the two loops over the last steps."""
    direction = -gradient
    shares = []
    for moved, turned, curvature in reversed(steps):
        share = float((moved * direction).sum()) / curvature
        shares.append(share)
        direction = direction - share * turned
    if steps:
        _, turned, curvature = steps[-1]
        direction = direction * (curvature / float((turned * turned).sum()))
    for (moved, turned, curvature), share in zip(steps, reversed(shares), strict=True):
        direction = direction + (share - float((turned * direction).sum()) / curvature) * moved
    return direction
