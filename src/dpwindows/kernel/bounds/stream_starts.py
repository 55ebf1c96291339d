r"""Certified sensitivities of any windows in a stream at item level: a causal map along the ends of every start.

Notation as in `bounds.sensitivity`; m is the longest window, in steps.
"""

from __future__ import annotations

import numpy as np

from dpwindows.kernel.bounds.sensitivity import step_norms
from dpwindows.kernel.proofs import proves


@proves("stream-counters-item")
def start_counters_l2(
    taps: tuple[int, ...], longest: int, starts: int, thresholds: tuple[int, ...], *, formal: bool
) -> int:
    """Any windows of at most `longest` steps, one item changed in the windows of `starts` starts: squared L2.

    Proof. For each start a and threshold `f(a, .)` is 1 from some end on, for an item at all and for what it was
    before. One item added or removed: the counter's filter answers `C(0), C(1), ...`, at most `sum_{m<n} C(m)^2` over
    n <= longest ends. Changed in any way (`formal`): `f - f'` is one interval of one sign, at most the longest norm of
    an interval over as many ends. Occurrences changed within L consecutive steps change only windows that meet them,
    whose starts are at most longest + L - 1. Squared norms of starts and thresholds add. QED.
    """
    return len(thresholds) * starts * step_norms(taps, longest, np.square, formal=formal)[longest]


@proves("stream-trees-item")
def start_trees_l1(weights: tuple[int, ...], starts: int, thresholds: tuple[int, ...], *, formal: bool) -> int:
    """Any windows, one item changed in the windows of `starts` starts, through a weighted tree for every start: L1.

    Proof. As in `start_counters_l2`: for each start and threshold the increments along ends change at one end (one
    item added or removed) or at two, each in at most one node of each level, by the level's weight. QED.
    """
    return (2 if formal else 1) * sum(weights) * starts * len(thresholds)
