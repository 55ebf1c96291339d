"""How the square of starts and ends may be cut into blocks for windows of bounded length.

Windows of at most m steps fill a band of the square. A band clips the rectangles on which one event changes the
answers, so it is not measured itself: starts are cut into blocks, and with each block whole ends are measured. Wide
blocks are met by fewer events twice; narrow ones are smaller problems.
"""

from __future__ import annotations

import numpy as np

from dpwindows.integer_maps import FloatArray
from dpwindows.strategies.design import Criterion, Problem
from dpwindows.windows import longest_window


def block_widths(problem: Problem) -> list[int]:
    """Widths worth trying: one, two and four times the longest window, and everything in one block."""
    longest = longest_window(problem.window, problem.steps)
    return sorted({*(width for width in (longest, 2 * longest, 4 * longest) if width < problem.steps), problem.steps})


def block_variance(along_starts: FloatArray, along_ends: FloatArray, longest: int, criterion: Criterion) -> float:
    """The mean, or the largest, product of a start's and an end's variance over the windows of one block.

    The first end is that of the first start; windows have at most `longest` steps.
    """
    starts = np.arange(len(along_starts))
    until = np.minimum(starts + longest, len(along_ends))
    if criterion == "max":
        return max(float(along_starts[a] * along_ends[a : until[a]].max()) for a in starts)
    totals = np.concatenate([[0.0], np.cumsum(along_ends)])
    return float(along_starts @ (totals[until] - totals[starts]) / (until - starts).sum())
