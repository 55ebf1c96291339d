"""The wave that makes up a filter's autocorrelation, for `kernel.bounds.waves`: a search that no proof rests on."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpwindows.kernel.bounds.waves import Cycle, Grid, Paths, Wave, Waves

# Poles are multiples of it, so that every machine finds the same; filters that decay in a wave are made of such poles.
POLES = 2.0**-12
# What is read of a wave is a multiple of it, in parts of the first lag: coarse, for the same reason.
_FINENESS = 2.0**-22
# The largest pole, the part of the first lag that a wave may leave of all others together, the fewest lags that tell.
_SLOWEST, _LEFT, _FEWEST = 0.999, 1e-3, 12
# Most ticks that a count is held for, and places in a jump; cells of a table, and nodes of its grid.
_TICKS, _LONGEST_JUMP = 32, 3
_CELLS, _FEWEST_NODES, _MOST_NODES = 350_000, 12, 40
# Windows, and places, after which what jumps add is taken for settled; and windows in a cycle.
_SETTLING, _SETTLED, _CYCLE = 12, 400, 2
# How many phases are tried for the worst.
_PHASES = 64


def good_waves(lags: Sequence[float], length: int) -> tuple[Waves, Cycle] | None:
    """The wave of an autocorrelation, and how to go through places.

    Args:
        lags: the autocorrelation, from distance 0 on, in the units that values are rounded to.
        length: W.

    Returns:
        None where no wave makes up the lags.
    """
    known = np.array(lags[2 : 2 + max(_FEWEST, 2 * length)])
    pole = _pole(known / lags[0]) if len(known) >= _FEWEST else None
    if pole is None:
        return None
    powers = pole ** np.arange(2, len(known) + 2)
    cosine, sine = np.linalg.lstsq(np.stack([powers.real, powers.imag], axis=1), known, rcond=None)[0]
    unit = max(1.0, lags[0] * _FINENESS)
    wave = Wave(pole, complex(*(round(round(part / unit) * unit) for part in (cosine, -sine))))
    clock = -(-length // _TICKS)
    paths = Paths(length, clock * max(1, min(_LONGEST_JUMP, length // 7) // clock), clock)
    nodes = int(_CELLS**0.5 / paths.states) // 2 * 2
    grid = Grid(min(max(nodes, _FEWEST_NODES), _MOST_NODES), _reach(pole))
    waves = Waves.of(lags, wave, grid, paths)
    if waves.place > (1 + _LEFT) * lags[0]:
        return None
    settling = max(_SETTLED, _SETTLING * length)
    return waves, Cycle(settling // paths.jump, -(-_CYCLE * length // paths.jump))


def _pole(lags: NDArray[np.float64]) -> complex | None:
    """The pole of a turning wave, by linear prediction of an autocorrelation from distance 2 on."""
    before = np.stack([lags[1:-1], lags[:-2]], axis=1)
    roots = np.roots([1.0, *-np.linalg.lstsq(before, lags[2:], rcond=None)[0]])
    pole = complex(*(round(part / POLES) * POLES for part in (roots[0].real, abs(roots[0].imag))))
    return pole if pole.imag and abs(pole) < _SLOWEST else None


def _reach(pole: complex) -> float:
    """How far from 0 along an axis signs can drive the state of a wave, and little more."""
    powers = pole ** np.arange(1, math.ceil(20 / (1 - abs(pole))))
    phases = np.exp(1j * np.linspace(0, np.pi, _PHASES))
    driven = np.abs((powers[None, :] * phases[:, None]).real).sum(axis=1).max()
    return math.ceil(float(driven) * 64 + 0.5) / 64
