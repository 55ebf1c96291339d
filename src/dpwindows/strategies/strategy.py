"""What a strategy is: its name, what it measures in a release, and what it measures in a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dpwindows.kernel.problem import Problem
from dpwindows.kernel.shapes.causal import StepDesign
from dpwindows.kernel.shapes.design import Design

# From a problem to a design, None where the strategy does not apply.
Batch = Callable[[Problem], Design | None]
# From a problem and a horizon (None: the stream has no end) to designs, none where the strategy does not apply.
Stream = Callable[[Problem, int | None], Iterator[StepDesign]]


@dataclass(frozen=True)
class Strategy:
    """One way to measure a window family.

    Attributes:
        name: what users call it.
        batch: its design for a release; None where it has nothing for releases.
        stream: its designs for a stream; None where it needs the future.
        outdone: whether another strategy always errs less on a problem; it is asked then by its name only.
    """

    name: str
    batch: Batch | None
    stream: Stream | None
    outdone: Callable[[Problem], bool] = lambda _: False
