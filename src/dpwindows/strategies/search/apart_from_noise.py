"""The problem that searches see, without its budget and resolution: a plan for another budget searches nothing anew."""

from __future__ import annotations

from dataclasses import replace

from dpwindows.ask.queries import AnyWindow
from dpwindows.ask.windows import longest_window
from dpwindows.kernel.problem import Problem


def apart_from_noise(problem: Problem) -> Problem:
    """The problem with fixed values for what searches for filters ignore: noise, budget and resolution.

    Windows of any length are those of at most as many steps as there are.
    """
    window = problem.window
    if isinstance(window, AnyWindow):
        window = AnyWindow(longest_window(window, problem.steps))
    return replace(problem, window=window, noise_per_unit=1.0, bits=1, budget=None, singleton=False, shares=())
