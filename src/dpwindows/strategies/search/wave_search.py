"""The search for a wave near a filter's autocorrelation, for `kernel.families.waves`: no proof rests on it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpwindows.kernel.families.signed_patterns import SignedLags
from dpwindows.kernel.families.waves import POINT, Waves

# Poles are multiples of it, so that every machine finds the same; filters that decay in a wave are made of such poles.
POLES = 2.0**-12
# What is read of a wave is a multiple of it, in parts of the first lag: coarse, for the same reason.
_FINENESS = 2.0**-22
# The largest pole, the part of the first lag that a wave may leave of all others together, the fewest lags that tell.
_SLOWEST, _LEFT, _FEWEST = 0.999, 1e-3, 12
# Most ticks that a count is held for; cells of a table with a row for each, and nodes along an axis of its grid.
_TICKS, _CELLS, _FEWEST_NODES, _MOST_NODES = 32, 802_816, 12, 40
# How many phases are tried for the worst.
_PHASES = 64


def good_waves(exact: SignedLags, places: int, length: int) -> tuple[int, ...]:
    """The wave of an autocorrelation, and how to go through places; none where no wave makes up the lags.

    Args:
        exact: the autocorrelation.
        places: how many places changes lie in.
        length: W.
    """
    lags = exact.values
    known = np.array(lags[2 : 2 + max(_FEWEST, 2 * length)], dtype=np.float64)
    pole = _pole(known / lags[0]) if len(known) >= _FEWEST else None
    if pole is None:
        return ()
    powers = pole ** np.arange(2, len(known) + 2)
    parts = np.linalg.lstsq(np.stack([powers.real, powers.imag], axis=1), known, rcond=None)[0]
    unit = max(1.0, lags[0] * _FINENESS)
    cosine, sine = (round(round(float(part) / unit) * unit) for part in (parts[0], -parts[1]))
    every = -(-length // _TICKS)
    nodes = min(max(int(_CELLS**0.5 * every / length) // 2 * 2, _FEWEST_NODES), _MOST_NODES)
    half = int(_reach(pole) * 2.0**POINT / (nodes - 1))
    witness = (round(pole.real / POLES), round(pole.imag / POLES), cosine, sine, nodes, half, every)
    try:
        waves = Waves(exact, places, length, witness)
    except ValueError:
        return ()
    return witness if waves.charged[0] <= (1 + _LEFT) * lags[0] else ()


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
