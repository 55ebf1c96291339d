"""`tensor-filter`: a fractional-difference filter on starts times the same on ends; any windows, Gaussian noise.

At event level the two filters work on (blocks of) the square of starts and ends. At item level one item can change
every start's counts, so filtering over starts gains nothing: each start gets one filtered counter of its own
(`counters`), all calibrated jointly.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial
from itertools import product

import numpy as np

from dpwindows.ask.privacy import EventLevel
from dpwindows.ask.queries import AnyWindow
from dpwindows.ask.windows import longest_window
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.maps.filters import CausalFilter, Filter
from dpwindows.kernel.problem import Criterion, Problem
from dpwindows.kernel.shapes.blocks import BlocksDesign
from dpwindows.kernel.shapes.causal import BlocksShape, StepDesign
from dpwindows.kernel.shapes.design import Design
from dpwindows.strategies.scoring import score
from dpwindows.strategies.search import choice
from dpwindows.strategies.search.fractional import LONGEST, integer_taps, real_interval_norms, real_taps, search
from dpwindows.strategies.square import block_widths, event_cost, stream_extent, stream_widths

NAME = "tensor-filter"
# Blocks are certified whose estimated error is at most so many times the least; estimates are 5 % off at most.
_HOPELESS = 1.12

# Of a block: its starts, the steps of the longest window, its ends.
_Sizes = tuple[int, int, int]


def design(problem: Problem) -> Design | None:
    """The filters of least error, or None where they do not apply."""
    if problem.law != GAUSSIAN or not _on_squares(problem):
        return None
    errors = {width: _estimate(problem, width) for width in block_widths(problem)}
    hopeful = [width for width, error in errors.items() if error <= _HOPELESS * min(errors.values())]
    return choice.best_of([_best_square(problem, width) for width in hopeful], score)


def _sizes(problem: Problem, width: int) -> _Sizes:
    longest = longest_window(problem.window, problem.steps)
    return width, longest, min(width + longest - 1, problem.steps)


def _estimate(problem: Problem, width: int) -> float:
    """The error with blocks of so many starts, up to a constant: nearly, and in far less time than a certificate."""
    sizes, asked = _sizes(problem, width), (problem.thresholds, problem.criterion)
    return _error(sizes, *asked, *_parameters(sizes, *asked))


def _best_square(problem: Problem, width: int) -> Design:
    sizes = _sizes(problem, width)
    alpha, decay = _parameters(sizes, problem.thresholds, problem.criterion)
    extent = sizes[2]
    # Two filters multiply, so each gets half the resolution and a little more: counts of billions stay far from the
    # kernel's bounds on integers.
    bits = problem.bits // 2 + 1
    taps = integer_taps(alpha, decay, extent, bits)
    return BlocksDesign.made_of(
        problem,
        NAME,
        {"alpha": alpha, "decay": decay, "taps": len(taps), "width": width, "bits_per_axis": bits},
        width=width,
        make_map=lambda size: Filter(size, taps[:size]),
    )


@lru_cache(maxsize=512)
def _parameters(sizes: _Sizes, thresholds: tuple[int, ...], criterion: Criterion) -> tuple[float, float]:
    return search(partial(_error, sizes, thresholds, criterion), sizes[1])


def _error(sizes: _Sizes, thresholds: tuple[int, ...], criterion: Criterion, alpha: float, decay: float) -> float:
    """Error of real filters on one full block, up to a constant."""
    width, longest, extent = sizes
    taps = real_taps(alpha, decay, min(extent, LONGEST))
    inverse = np.zeros(extent)
    inverse[: len(taps)] = real_taps(-alpha, decay, len(taps))
    variance = np.cumsum(inverse**2)
    reversed_ends = variance[::-1]
    if criterion == "max":
        worst = float((variance[:width] * reversed_ends[:width]).max())
    else:
        # Ends a..a+longest-1 of each start a, by running sums.
        totals = np.concatenate([[0.0], np.cumsum(reversed_ends)])
        starts = np.arange(width)
        until = np.minimum(starts + longest, extent)
        worst = float((variance[:width] * (totals[until] - totals[starts])).sum() / (until - starts).sum())
    return float(np.sqrt(worst * event_cost(real_interval_norms(taps, extent), width, extent, thresholds)))


# --- In a stream: blocks of starts, and every end as it comes ---------------------------------------------------------


def stream(problem: Problem, horizon: int | None) -> Iterator[StepDesign]:
    """A filter on the starts of a block times a filter on its ends; event level, Gaussian noise."""
    if problem.law != GAUSSIAN or not _on_squares(problem):
        return
    longest = longest_window(problem.window, problem.steps)
    for width, backward in product(stream_widths(longest, horizon), (True, False)):
        extent = stream_extent(width, longest, horizon)
        sizes = width, longest, extent
        alpha, decay = _stream_parameters(sizes, problem.thresholds, problem.criterion, backward)
        bits = problem.bits // 2 + 1
        taps = integer_taps(alpha, decay, extent, bits)
        shape = BlocksShape(longest, width, extent, Filter(width, taps[:width]), CausalFilter(taps), backward)
        parameters = {"alpha": alpha, "decay": decay, "taps": len(taps), "width": width, "bits_per_axis": bits}
        yield StepDesign(problem, shape, NAME, horizon, parameters | {"starts_backward": backward})


@lru_cache(maxsize=512)
def _stream_parameters(
    sizes: _Sizes, thresholds: tuple[int, ...], criterion: Criterion, backward: bool
) -> tuple[float, float]:
    return search(partial(_stream_error, sizes, thresholds, criterion, backward), sizes[1])


def _stream_error(
    sizes: _Sizes, thresholds: tuple[int, ...], criterion: Criterion, backward: bool, alpha: float, decay: float
) -> float:
    """Error of real filters on one block, up to a constant."""
    width, longest, extent = sizes
    taps = real_taps(alpha, decay, min(extent, LONGEST))
    inverse = np.zeros(extent)
    inverse[: len(taps)] = real_taps(-alpha, decay, len(taps))
    variance = np.cumsum(inverse**2)
    # The window from the block's start a on that spans n + 1 ends is at place a + n of ends.
    starts = np.arange(width)
    until = np.minimum(starts + longest, extent)
    along_starts = variance[width - 1 - starts] if backward else variance[starts]
    if criterion == "max":
        typical = float((along_starts * variance[until - 1]).max())
    else:
        totals = np.concatenate([[0.0], np.cumsum(variance)])
        spans = totals[until] - totals[starts]
        typical = float((along_starts * spans).sum() / (until - starts).sum())
    return float(np.sqrt(typical * event_cost(real_interval_norms(taps, extent), width, extent, thresholds)))


def _on_squares(problem: Problem) -> bool:
    """Whether one event changes rectangles of the square of starts and ends."""
    return isinstance(problem.window, AnyWindow) and isinstance(problem.unit, EventLevel)
