"""Filters that mix series, and the whole matrix that each stands for."""

from __future__ import annotations

import numpy as np

from dpwindows.kernel.families.together import Together

STEPS = 9


def drawn_filter(lanes: int, memory: int, scale: int = 1) -> Together:
    taps = np.random.default_rng([lanes, memory]).integers(-3, 4, (memory + 1, lanes, lanes))
    taps[0] += 9 * np.eye(lanes, dtype=np.int64)
    return Together(tuple(range(1, lanes + 1)), tuple(scale * tap for tap in taps.ravel().tolist()))


def whole(mixed: Together) -> np.ndarray:
    """The matrix on all steps, one step after another, as Python's integers."""
    lanes = len(mixed.lengths)
    matrix = np.zeros((STEPS * lanes, STEPS * lanes), dtype=object)
    for t in range(STEPS):
        for back in range(min(t, mixed.memory) + 1):
            place = t - back
            matrix[t * lanes : (t + 1) * lanes, place * lanes : (place + 1) * lanes] = mixed.matrices[back].astype(
                object
            )
    return matrix


def run(mixed: Together, series: np.ndarray) -> np.ndarray:
    """Step by step, as a stream does: the integers measured."""
    memory, measured = mixed.fresh(), []
    for exact in series:
        numbers, memory = mixed.mix(exact, memory)
        measured.append(numbers)
    return np.array(measured)
