"""`notch-filter`: a filter with a notch, for rolling counts of distinct items under item level, Gaussian noise.

An item that changes moves rolling counts most where one log counts it while the other does not, and they take turns: a
run of windows holds at least W of them, so most of the change has a period of about 2W steps. A filter that lets less
of that frequency pass has to hide less, and pays by errors there only. Its taps are those of

    (1 - 2 r cos(u) B + r^2 B^2) (1 - s B) / ((1 - p B) (1 - conj(p) B)),   B the shift by one step,

a pair of zeros at the angle u near pi/W, a pair of poles p beside it, and a zero s. From distance 2 on its
autocorrelation is a decaying wave, which is what its certificate (`dpwindows.kernel.families.waves`) needs. The five
numbers were sought for some lengths at the very bound they are charged for, over a year of steps; between these
lengths they are interpolated.
"""

from __future__ import annotations

import math

import numpy as np

from dpwindows.ask.privacy import ItemLevel, ItemPerPeriod
from dpwindows.ask.queries import Rolling
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.designs import Design
from dpwindows.kernel.families.series import Series
from dpwindows.kernel.maps.filters import Filter
from dpwindows.kernel.problem import Problem
from dpwindows.strategies.search.fractional import LONGEST, as_integers
from dpwindows.strategies.search.wave_search import POLES

NAME = "notch-filter"
# Lengths W; and for each of them the zeros' radius and angle, the poles', and the zero by itself. Radii and the zero as
# inverse hyperbolic tangents, angles in parts of pi/W.
_LENGTHS = (2, 3, 5, 7, 14, 28, 48, 90)
_SOUGHT = (
    (0.571, 0.966, 0.459, 1.062, 0.084),
    (0.746, 0.972, 0.596, 1.073, 0.067),
    (0.942, 0.966, 0.695, 1.062, 0.073),
    (1.086, 0.944, 0.841, 0.982, 0.156),
    (1.472, 1.107, 1.246, 1.234, 0.323),
    (1.918, 1.205, 1.707, 1.376, 0.538),
    (2.170, 1.206, 1.923, 1.391, 0.653),
    (2.418, 1.202, 2.107, 1.364, 0.790),
)
# Longer windows gain next to nothing; in fewer steps `filter` may err less, and in many more what the wave leaves over,
# which is charged at every lag, may be too much for a bound by waves.
_LONGEST_WINDOW, _SHORTEST, _LONGEST_RANGE = 128, 24, 6000
# How much longer than a period the range may be.
_NEARLY_ALL = 1.25


def design(problem: Problem) -> Design | None:
    """The filter, or None where it does not apply."""
    window, steps = problem.window, problem.steps
    if not _applies(problem) or not isinstance(window, Rolling):
        return None
    taps = integer_taps(window.length, steps, problem.bits)
    return Design(problem, Series(Filter(taps)), NAME, {"taps": len(taps), "bits": problem.bits})


def outdoes(problem: Problem) -> bool:
    """True where `filter` errs more by 2 % at least: measured for windows of up to 90 steps, over three of them on."""
    window = problem.window
    longest = min(problem.steps // 3, _LENGTHS[-1])
    steps = _SHORTEST <= problem.steps <= _LONGEST_RANGE
    whole = isinstance(problem.unit, ItemLevel)
    return whole and _applies(problem) and isinstance(window, Rolling) and window.length <= longest and steps


def _applies(problem: Problem) -> bool:
    """Whether it is for a problem: for others nothing is known of it."""
    window = problem.window
    unit = problem.unit
    # A period that is nearly all of the range is charged for all of it.
    nearly = isinstance(unit, ItemPerPeriod) and problem.steps <= _NEARLY_ALL * unit.steps
    if problem.law != GAUSSIAN or not isinstance(window, Rolling) or not (nearly or isinstance(unit, ItemLevel)):
        return False
    if problem.thresholds != (1,) or problem.rule.bounded:
        return False
    return _LENGTHS[0] <= window.length <= min(_LONGEST_WINDOW, problem.steps // 2)


def integer_taps(length: int, steps: int, bits: int) -> tuple[int, ...]:
    """The taps times `2^bits`, rounded; trailing zeros dropped."""
    at = math.log(length)
    sought = (float(np.interp(at, np.log(_LENGTHS), column)) for column in zip(*_SOUGHT, strict=True))
    radius, angle, of_pole, angle_of_pole, zero = sought
    zeros = _pair(math.tanh(radius), angle * math.pi / length)
    poles = _pair(math.tanh(of_pole), angle_of_pole * math.pi / length)
    alone = _rounded(math.tanh(zero))
    ahead = (1.0, zeros[0] - alone, zeros[1] - alone * zeros[0], -alone * zeros[1])
    taps: list[float] = []
    for step in range(min(steps, LONGEST)):
        past = sum(part * taps[step - lag] for lag, part in enumerate(poles, 1) if step >= lag)
        taps.append((ahead[step] if step < len(ahead) else 0.0) - past)
    return as_integers(np.rint(np.array(taps) * 2.0**bits))


def _pair(radius: float, angle: float) -> tuple[float, float]:
    """The last two coefficients of `(1 - z B) (1 - conj(z) B)`, with z rounded."""
    real, other = _rounded(radius * math.cos(angle)), _rounded(radius * math.sin(angle))
    return -2 * real, real**2 + other**2


def _rounded(part: float) -> float:
    # All that follows is exact, or rounded alike on every machine.
    return round(part / POLES) * POLES
