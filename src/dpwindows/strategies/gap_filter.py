"""`gap-filter`: every window measured with the windows that contain it; any windows, item level, at least 1.

An item changes the counts of windows by the gaps between its occurrences, and only few long gaps fit the range: at most
T / (g + 1) of g steps. So windows are weighed by length, by about a cube root under Gaussian noise: most windows are
long, and err as if an item had a handful of gaps. A filter on starts, and one like it on ends, make the error of each
window depend on all windows around it; half a difference is best, `(1 - decay B)^alpha` with alpha 1/2. In contrast,
counters for every start and end (`crossed-counters`) charge each item for T steps whatever the windows' length.

For items that are added or removed the number of all items is measured too, and what is left is measured as the
difference to a small multiple of it. Under Laplace noise plain differences are best, with weights in proportion to the
length, and no offset.

Decay, power of the weights and offset are searched by sums over all windows of a length, which are quickly worked out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from dpwindows.ask.privacy import ItemAddRemove, ItemLevel
from dpwindows.ask.queries import AnyWindow
from dpwindows.ask.windows import longest_window
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.designs import Design
from dpwindows.kernel.families.gaps import Gaps
from dpwindows.kernel.maps.integer_maps import FloatArray
from dpwindows.kernel.problem import Problem
from dpwindows.strategies.search import choice
from dpwindows.strategies.search.choice import Place, apart_from_noise
from dpwindows.strategies.search.fractional import decay_at, held_taps, real_taps

NAME = "gap-filter"
# The longest horizon: all its windows are measured.
LARGEST = 2400
# About the mean square of what an offset stands for, over the square of its mean.
_SPREAD = 1.2
# The grid that filters are searched on: parts of an octave of memory, of a power, and of an offset; strides.
_FINE, _STRIDES = (40, 400, 40), (64, 32, 16, 8, 4, 2, 1)


def design(problem: Problem) -> Design | None:
    """The filter of least error, or None where there is none."""
    item = isinstance(problem.unit, (ItemLevel, ItemAddRemove))
    applies = item and isinstance(problem.window, AnyWindow) and problem.thresholds == (1,)
    if not applies or not 1 < problem.steps <= LARGEST:
        return None
    parameters = _searched(apart_from_noise(problem))
    # Two filters multiply, and weights besides: counts of billions stay far from the kernel's bounds on integers.
    bits = problem.bits // 2 - 1 if problem.law == GAUSSIAN else 0
    fine = problem.bits // 5 + 1 if problem.law == GAUSSIAN else problem.bits // 2
    unit = 4.0**bits * 2.0**fine
    taps = held_taps(parameters.alpha, parameters.decay, problem.steps, bits) if bits else (1, -1)
    weights = tuple(max(1, round(2**fine * weight)) for weight in parameters.weights(problem.steps).tolist())
    made = Gaps(taps, weights, round(unit * parameters.offset), max(1, round(unit * parameters.total)))
    chosen = {"alpha": parameters.alpha, "decay": parameters.decay, "power": parameters.power, "bits_per_axis": bits}
    return Design(problem, made, NAME, chosen | {"offset": made.offset / unit, "total": made.total / unit})


@dataclass(frozen=True)
class _Filter:
    """The parameters of a filter over gaps, in counts.

    Attributes:
        alpha: the power of the differences.
        decay: of their memory.
        power: of a window's length in its weight.
        offset: how often the number of items is taken off each window's.
        total: how often it is measured itself.
    """

    alpha: float
    decay: float
    power: float
    offset: float = 0.0
    total: float = 0.0

    def weights(self, steps: int) -> FloatArray:
        """By length, 1 for the heaviest."""
        weights = np.arange(1, steps + 1) ** self.power
        return np.asarray(weights / weights.max())

    def sums(self, steps: int) -> FloatArray:
        """The sums of the first taps."""
        return np.cumsum(real_taps(self.alpha, self.decay, steps))

    def inverse(self, steps: int) -> FloatArray:
        """The taps that undo it."""
        return real_taps(-self.alpha, self.decay, steps)


@lru_cache(maxsize=256)
def _searched(problem: Problem) -> _Filter:
    """The filter of least error."""
    gaussian = problem.law == GAUSSIAN
    centred = gaussian and isinstance(problem.unit, ItemAddRemove)

    def filter_of(place: Place) -> _Filter:
        memory, power, offset = (value / fine for value, fine in zip(place, _FINE, strict=True))
        decay = decay_at(memory) if gaussian else 1.0
        return _Filter(0.5 if gaussian else 1.0, decay, power, float(f"{offset / problem.steps:.3g}"))

    # Plain differences have no memory, and one unit alone has an offset.
    # The largest error is least with a short memory and all windows alike.
    part, power, offset = (2, 120, 56) if problem.criterion == "rms" else (20, 0, 120)
    start = (round(_FINE[0] * math.log2(problem.steps / part)), power, offset) if gaussian else (0, 400, 0)
    most = (20 * _FINE[0] if gaussian else 0, 2 * _FINE[1], 9 * _FINE[2] if centred else 0)
    place_of_best = choice.descend(
        lambda place: _error(problem, filter_of(place)), start, (0, -most[1], 0), most, _STRIDES
    )
    best = filter_of(place_of_best)
    return replace(best, total=float(f"{_best_total(problem, *_parts(problem, best)):.4g}"))


def _error(problem: Problem, candidate: _Filter) -> float:
    """About the error of a filter, up to what noise costs."""
    gaussian, (charged, of_items, others) = problem.law == GAUSSIAN, _parts(problem, candidate)
    total = _best_total(problem, charged, of_items, others)
    typical = math.sqrt(others + of_items / total**2)
    if isinstance(problem.unit, ItemLevel):
        return typical * (math.sqrt(2 * charged) if gaussian else 2 * charged)
    return typical * (math.sqrt(charged + total**2) if gaussian else charged + total)


def _parts(problem: Problem, candidate: _Filter) -> tuple[float, float, float]:
    """What an item is charged, and what the number of items and all others put into a typical window."""
    return _item_charge(problem, candidate), _items_part(problem, candidate), _typical(problem, candidate)


def _best_total(problem: Problem, charged: float, of_items: float, others: float) -> float:
    """The best weight for the number of items, in measurements of it."""
    gaussian = problem.law == GAUSSIAN
    if isinstance(problem.unit, ItemLevel):
        # Who changes leaves the number of items as it is, so that it costs nothing up to here.
        return math.sqrt(charged) if gaussian else charged
    return float((charged * of_items / others) ** (1 / 4 if gaussian else 1 / 3))


def _items_part(problem: Problem, candidate: _Filter) -> float:
    """About the mean square of the part of an error in the number of items that windows have."""
    steps, offset = problem.steps, candidate.offset
    if not offset:
        return 1.0
    stands_for = offset * _mean(problem, candidate.inverse(steps), 1 / candidate.weights(steps))
    return 1 - 2 * stands_for + _SPREAD * stands_for**2


def _typical(problem: Problem, candidate: _Filter) -> float:
    """The mean variance of windows for noise of unit variance, or about the largest; without the number of items."""
    steps, longest = problem.steps, longest_window(problem.window, problem.steps)
    powers, reciprocals = candidate.inverse(steps) ** 2, candidate.weights(steps) ** -2.0
    if problem.criterion == "rms":
        return _mean(problem, powers, reciprocals)
    reciprocals[-1] = 0.0
    return float(_longer(reciprocals, powers)[:longest].max())


def _mean(problem: Problem, inverse: FloatArray, reciprocals: FloatArray) -> float:
    """The mean over all windows of `sum inverse_i inverse_j reciprocals(a - i, b + j)`.

    Of the windows of n steps T - n + 1 - m have room for m steps more, at whichever ends.
    """
    windows, longest = problem.steps - np.arange(problem.steps), longest_window(problem.window, problem.steps)
    each = windows * reciprocals
    # The window of all steps has no noise.
    each[-1] = 0.0
    return float(_longer(each, inverse)[:longest].sum() / windows[:longest].sum())


def _longer(values: FloatArray, taps: FloatArray) -> FloatArray:
    """`sum taps_i taps_j values_{n + i + j}` for every length n."""
    steps = len(values)
    return np.convolve(values[::-1], np.convolve(taps, taps)[:steps])[:steps][::-1]


def _item_charge(problem: Problem, candidate: _Filter) -> float:
    """About what `families.gaps` charges for one item that is added, less what it charges for the number of items."""
    steps, offset = problem.steps, candidate.offset
    weights, sums = candidate.weights(steps), candidate.sums(steps)
    charges = np.convolve(weights, np.convolve(sums, sums)[:steps])[:steps]
    if problem.law == GAUSSIAN:
        charges *= -2 * offset
        charges += np.convolve(weights**2, np.convolve(sums**2, sums**2)[:steps])[:steps]
    charges = np.concatenate([[0.0], charges[:-1]])
    return _worst_cuts(charges) + steps * (steps + 1) / 2 * offset**2


def _worst_cuts(charges: FloatArray) -> float:
    """About `families.gaps._worst_gaps`, in floating point."""
    steps = len(charges)
    # From the last cut to the first, so that what is added stands in one order.
    best = np.zeros(steps + 2)
    for cut in range(1, steps + 2):
        gaps, later = min(cut, steps), steps + 2 - cut
        best[later - 1] = np.maximum.reduce(charges[:gaps] + best[later : later + gaps])
    return float(best[0])
