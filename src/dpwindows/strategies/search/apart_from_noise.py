"""Searches are worked out once for all budgets and resolutions: a plan for another budget searches nothing anew."""

from __future__ import annotations

from dataclasses import replace

from dpwindows.kernel.problem import Problem


def apart_from_noise(problem: Problem) -> Problem:
    """The problem with what searches for filters do not look at the same for all: its noise, budget and resolution."""
    return replace(problem, noise_per_unit=1.0, bits=1, budget=None, singleton=False, shares=())
