"""How the noisy numbers of a design are read back: what every reader gives, and which one reads a design."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from functools import cached_property, lru_cache
from typing import Any, TypeVar

import numpy as np

from dpwindows.ask.queries import AnyWindow, RollingTogether
from dpwindows.ask.windows import longest_window, window_steps
from dpwindows.errors import InputError
from dpwindows.kernel.designs import Design, StepDesign
from dpwindows.kernel.maps.integer_maps import Memory
from dpwindows.reading.moments import FloatArray

# Weights on the numbers measured, by the part of the measurement that they are in; a part left out has none.
Weights = dict[Hashable, FloatArray]
# Coefficients of windows, by first and last step.
Coefficients = Mapping[tuple[int, int], float]

# Readers that are kept, and the most numbers where a decoder is only known as a function of all of them.
_KEPT, _MOST = 32, 4096


class Reader(ABC):
    """How the noisy numbers of a design are read back, of one threshold.

    Estimates are a linear function D of the numbers measured, so a combination `sum_w c_w estimate_w` has the error
    `(D'c) z` with z the independent noise values. Combinations of the same measurement have the covariance of their
    weights; whatever was measured apart has none.
    """

    def __init__(self, design: Design) -> None:
        self.design = design
        self.window, self.steps = design.problem.window, design.problem.steps

    @abstractmethod
    def decode(self, measured: FloatArray) -> FloatArray:
        """Estimates for every window in canonical order, in counts, from measured numbers of shape (rows,)."""

    def decode_each(self, measured: FloatArray) -> FloatArray:
        """Estimates of many measurements, shape (measurements, windows), from numbers of shape (measurements, rows)."""
        return np.array([self.decode(one) for one in measured])

    @abstractmethod
    def moment(self, power: int) -> FloatArray | None:
        """Sum of the squares or fourth powers of each estimate's weights on the noise; None where not worked out."""

    @cached_property
    def _moments(self) -> dict[int, FloatArray | None]:
        return {}

    def _kept_moment(self, power: int) -> FloatArray | None:
        if power not in self._moments:
            self._moments[power] = self.moment(power)
        return self._moments[power]

    def variance(self) -> FloatArray:
        """Variance of each window's estimate under noise of unit variance; not to be changed."""
        variance = self._kept_moment(2)
        assert variance is not None
        return variance

    def fourth_moment(self) -> FloatArray | None:
        """Sum of fourth powers of each estimate's weights, or None where it is not worked out."""
        return self._kept_moment(4)

    def bias_bound(self) -> FloatArray | None:
        """How far each estimate may be off in expectation, in counts; None for unbiased designs."""
        return None

    def noise_weights(self, coefficients: Coefficients, series: int = 0) -> Weights:
        """The weights of a combination of estimates on the noise values.

        Args:
            coefficients: the combination, by the first and last step of its windows.
            series: of a design that serves several families, the place of the one that they are windows of.

        Raises:
            InputError: the decoder has no transpose here and is too large to be written out.
        """
        if self.design.rows > _MOST:
            raise InputError(
                f"the strategy {self.design.strategy} measured {self.design.rows:,} numbers for {self.window}, and how "
                f"their noise is correlated is worked out for at most {_MOST:,}: release with --strategy auto"
            )
        wanted = self.canonical(coefficients)
        return {0: np.array([wanted @ self.decode(unit) for unit in np.eye(self.design.rows)])}

    def canonical(self, coefficients: Coefficients) -> FloatArray:
        """The coefficients of all windows in canonical order."""
        first, last = window_steps(self.window, self.steps)
        places = {window: place for place, window in enumerate(zip(first.tolist(), last.tolist(), strict=True))}
        wanted = np.zeros(len(first))
        for window, coefficient in coefficients.items():
            wanted[places[window]] += coefficient
        return wanted


@lru_cache(maxsize=_KEPT)
def of(design: Design) -> Reader:
    """The reader of a design; raises `ValueError` if every threshold has a map of its own: ask the design `at` one."""
    if not design.alike:
        raise ValueError("every threshold has a map of its own here: ask the design `at` one")
    return _READERS[type(design.shape)](design.shape, design)


Make = TypeVar("Make", bound=Callable[[Any, Any], Reader])
_READERS: dict[type, Callable[[Any, Any], Reader]] = {}


def reads(shape: type) -> Callable[[Make], Make]:
    """Register what makes the reader of designs of a shape."""

    def register(make: Make) -> Make:
        _READERS[shape] = make
        return make

    return register


# --- One step at a time -----------------------------------------------------------------------------------------------


class StepDesignReader(Reader):
    """How the numbers of a step are read back, with a memory of estimates; or those of a release, all at once."""

    @abstractmethod
    def fresh(self) -> Memory:
        """The memory of estimates before step 1."""

    @abstractmethod
    def decode_step(self, step: int, measured: FloatArray, memory: Memory) -> tuple[FloatArray, Memory]:
        """Estimates of the windows that end at a step, by first step, and the memory after it."""

    @abstractmethod
    def moment_at(self, step: int, power: int) -> FloatArray | None:
        """Second or fourth moments of the weights of the estimates of the windows that end at a step, by first step."""

    def decode(self, measured: FloatArray) -> FloatArray:
        """The estimates of all steps, in the canonical order of the window family."""
        assert isinstance(self.design, StepDesign)
        memory, estimates, place = self.fresh(), [], 0
        for step in range(1, self.steps + 1):
            rows = self.design.rows_at(step)
            estimate, memory = self.decode_step(step, measured[place : place + rows], memory)
            estimates.append(estimate)
            place += rows
        return self._in_order(estimates)

    def variance_at(self, step: int) -> FloatArray:
        """Variance of the estimates of the windows that end at a step."""
        variance = self.moment_at(step, 2)
        assert variance is not None
        return variance

    def fourth_moment_at(self, step: int) -> FloatArray | None:
        """Fourth moments of these estimates, None where they are not worked out."""
        return self.moment_at(step, 4)

    def _in_order(self, by_step: list[FloatArray]) -> FloatArray:
        """Any windows come by first step and then by last, here by last and then by first; lengths one by one."""
        if isinstance(self.window, RollingTogether):
            return np.stack(by_step, axis=1).ravel()
        if not isinstance(self.window, AnyWindow):
            return np.concatenate(by_step)
        longest = longest_window(self.window, self.steps)
        # A row for each first step; the windows of one last step are `apart` places from each other.
        flat, apart = np.full(self.steps * longest, np.nan), max(1, longest - 1)
        for last, estimates in enumerate(by_step):
            first = last - len(estimates) + 1
            flat[last + first * (longest - 1) : last * longest + 1 : apart] = estimates
        return np.asarray(flat[~np.isnan(flat)])


def steps_of(design: StepDesign) -> StepDesignReader:
    """The reader of a design that is measured step by step."""
    reader = of(design)
    assert isinstance(reader, StepDesignReader)
    return reader
