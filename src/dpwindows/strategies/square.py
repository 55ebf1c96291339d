"""How the square of starts and ends may be cut into blocks for windows of bounded length.

Windows of at most m steps fill a band of the square. A band clips the rectangles on which one event changes the
answers, so it is not measured itself: starts are cut into blocks, and with each block whole ends are measured. Wide
blocks are met by fewer events twice; narrow ones are smaller problems.
"""

from __future__ import annotations

from dpwindows.strategies.design import Problem
from dpwindows.windows import longest_window


def block_widths(problem: Problem) -> list[int]:
    """Widths worth trying: one, two and four times the longest window, and everything in one block."""
    longest = longest_window(problem.window, problem.steps)
    return sorted({*(width for width in (longest, 2 * longest, 4 * longest) if width < problem.steps), problem.steps})
