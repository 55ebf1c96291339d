"""Any windows at item level: every window of the range measured with the windows that contain it (`maps.gaps`)."""

from __future__ import annotations

from dataclasses import dataclass

from dpwindows.ask.queries import WindowFamily
from dpwindows.ask.windows import Answers
from dpwindows.kernel.advice import Advise
from dpwindows.kernel.certify import Certificate
from dpwindows.kernel.certify import gaps as certified
from dpwindows.kernel.designs import Shape
from dpwindows.kernel.maps.gaps import GapFilter
from dpwindows.kernel.maps.integer_maps import IntArray
from dpwindows.kernel.problem import Problem


@dataclass(frozen=True)
class Gaps(Shape):
    """All windows of the range are measured, and those that are asked for are read."""

    map: GapFilter

    def certify(self, problem: Problem, horizon: int | None, advise: Advise) -> Certificate:
        """The certificate of the map over the gaps of one item.

        Raises:
            NotCertifiedError: no proof covers it.
        """
        return Certificate(*certified(problem, self.map), self.map.rows)

    def rows(self, window: WindowFamily, steps: int) -> int:
        return self.map.rows

    def encode(self, window: WindowFamily, answers: Answers, k: int) -> IntArray:
        """The map applied to the counts of all windows."""
        return self.map.encode(answers.windows(k, 1, self.map.steps, 1, self.map.steps))
