"""What a strategy is: its name, what it measures in a release and in a stream."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dpwindows.ask.queries import AnyWindow, Cumulative, Rolling
from dpwindows.kernel.designs import Design, Shape, StepDesign, StepShape
from dpwindows.kernel.problem import Problem

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


def to_stream(batch: Batch) -> Stream:
    """The designs that a strategy has for releases, measured step by step.

    They need nothing of the future, so a stream measures the same integers. Cumulative counts without a horizon have
    none, for their designs end with the range.
    """

    def stream(problem: Problem, horizon: int | None) -> Iterator[StepDesign]:
        endless = isinstance(problem.window, Cumulative) and horizon is None
        if endless or not isinstance(problem.window, (Cumulative, Rolling, AnyWindow)):
            return
        design = batch(problem)
        if design is not None and isinstance(design.shape, StepShape):
            yield StepDesign(problem, design.shape, design.strategy, design.parameters, horizon=horizon)

    return stream


class PrescribedScale(Shape):
    """A shape that fixes its own noise scale instead of taking the least one that its sensitivity needs.

    The kernel proves the cost of that scale like any other.
    """

    @property
    @abstractmethod
    def prescribed(self) -> float:
        """The noise scale, in lattice units."""

    def counted(self, thresholds: tuple[int, ...]) -> tuple[int, ...]:
        """The thresholds whose exact answers are read to measure these."""
        return thresholds
