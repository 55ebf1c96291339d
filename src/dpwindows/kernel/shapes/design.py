"""What a strategy answers: an integer measurement of one window family, and how noisy measurements are read back.

A design says how the exact answers of one threshold become a vector of integers (`encode`, trusted) and how noisy
vectors are read back (`decode`, free). It states no bound: `certificate` derives how far one neighbour can move the
vectors of all thresholds together from the maps that `encode` applies.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from dpwindows.ask.windows import Answers
from dpwindows.kernel.advice import Advise, Witness, from_witness
from dpwindows.kernel.certify import Certificate
from dpwindows.kernel.maps.integer_maps import FloatArray, IntArray
from dpwindows.kernel.problem import Problem


class Design(ABC):
    """An integer measurement of one problem.

    Attributes:
        problem: what is measured, for whom.
        strategy: the name users see and may ask for.
        parameters: what was chosen, as plain values for metadata.
    """

    problem: Problem
    strategy: str
    parameters: Mapping[str, Any]

    @property
    @abstractmethod
    def certificate(self) -> Certificate:
        """What is proved of the measurement, from the integers it applies (`dpwindows.kernel.certify`)."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """Numbers measured for each threshold."""

    def at(self, k: int) -> Design:
        """What measures and reads back one threshold: the design itself, if all thresholds are measured alike."""
        return self

    @property
    def alike(self) -> bool:
        """Whether all thresholds are measured alike."""
        return self.at(self.problem.thresholds[0]) is self

    @abstractmethod
    def encode(self, answers: Answers, k: int) -> IntArray:
        """The exact integers of threshold k, shape (rows,)."""

    @abstractmethod
    def decode(self, measured: FloatArray) -> FloatArray:
        """Estimates for every window in canonical order, in counts, from measured numbers of shape (rows,)."""

    @abstractmethod
    def variance(self) -> FloatArray:
        """Variance of each window's estimate under noise of unit variance; not to be changed."""

    @abstractmethod
    def fourth_moment(self) -> FloatArray | None:
        """Sum of fourth powers of each estimate's weights, or None where it is not computed."""

    def bias_bound(self) -> FloatArray | None:
        """How far each estimate may be off in expectation, in counts; None for unbiased designs."""
        return None

    @property
    def sensitivity(self) -> int:
        """The certified bound: L1 (Laplace) or squared L2 (Gaussian), over all thresholds, in lattice units."""
        return self.certificate.bound

    @property
    def proof(self) -> str:
        """The name of the bound's proof."""
        return self.certificate.proof

    @property
    def moved(self) -> int:
        """The most numbers, measured for one threshold, that one neighbour can change."""
        return self.certificate.moved


@dataclass(frozen=True)
class NamedDesign(Design):
    """What most designs carry beside their shape."""

    problem: Problem
    strategy: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


class AdvisedDesign(Design):
    """A design whose bound may have free choices.

    Attributes:
        witness: the answers to what its bound asks (`dpwindows.kernel.advice`), which no proof rests on.
    """

    witness: Witness

    @abstractmethod
    def certified(self, advise: Advise) -> Certificate:
        """The certificate, with free choices by these answers."""

    @cached_property
    def certificate(self) -> Certificate:
        """The certificate, with free choices by the answers that the design carries."""
        return self.certified(from_witness(self.witness))


class PrescribedScale(Design):
    """A design that fixes its own noise scale instead of taking the least one its sensitivity needs.

    The kernel proves the cost of that scale like any other.

    Attributes:
        scale: the noise scale, in lattice units.
    """

    scale: float

    @property
    @abstractmethod
    def counted(self) -> tuple[int, ...]:
        """The thresholds whose exact answers `encode` reads."""
