r"""The least error of any windows over long ranges, from random changes on a circle of steps.

`limits` bounds the error over n answers by `tr S^(1/2) / sqrt(n w)`, with S the sum of `g g'` over changes g that
occur, or their mean products where they are drawn at random, and w the sum of their weights. Three steps follow.

*Fewer windows.* Those that begin at r, r + c, r + 2c, ... and end at s, s + c, ... are all windows of a range of fewer
steps: an event at the i-th start is in those that begin with it or before, and end at the i-th end or after. A release
of all windows is one of these, for each of the c^2 pairs (r, s). With the fewest starts m of any pair, and the longest
windows M of m steps, the squared errors sum to at least c^2 times those of any windows of at most M of m steps.

*Random changes.* One event at step t, the item's previous one P steps before and the next Q steps after it, changes the
windows that begin at most P - 1 steps before t and end at most Q - 1 after: each of m steps, with weights on (P, Q). An
item with each step active by itself with probability 1 - q is in a window with probability `1 - q^length`, and in both
of two with one less `q^length` for each plus `q^union`. One that changes does so by the difference of two such: twice
the covariance.

*The circle.* Let the m steps lie on a circle, with windows of up to M steps from each. Those of the range are those
that do not pass its end, and mean products of them are as on the line. The square root is operator concave, so the
trace of the root of a section is at least that of the section of the root (Berezin). On the circle S depends on the two
lengths and on the distance of the starts: a Fourier transform leaves one M x M matrix for each frequency, which is real
where windows are taken by their middles. A window of l steps is met m - l + 1 times in the range.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dpwindows.ask.queries import AnyWindow
from dpwindows.ask.windows import count_windows
from dpwindows.kernel.maps.integer_maps import FloatArray

# The work for all frequencies, in numbers: about a second.
_MOST = 1 << 28
# Weights of P and Q fall like this power; as many of them are looked at; active steps of an item in a range.
_FALL, _VALUES, _ACTIVE = 0.3, 22, 5.0
# Rounding allowed for in an eigenvalue, relative to the largest, for each row of the matrix; and in the sum.
_ROUNDING, _KEPT = 64 * 2.0**-52, 1 - 1e-6


def thinned(steps: int, longest: int, every: int) -> tuple[int, int]:
    """The fewest starts m that are `every` steps apart, and the longest windows M of such steps; see the module."""
    fewest = (steps + 1) // every - 1 if every > 1 else steps
    return fewest, min(fewest, longest // every)


def any_limit(steps: int, longest: int, *, event: bool, changed: bool) -> float:
    """A lower bound on the rms error of windows of at most `longest` of `steps` steps, per unit of Gaussian noise.

    At event level, or (`event` False) of an item that changes (`changed`) or is added or removed.
    """
    every = 1
    while True:
        fewer, within = thinned(steps, longest, every)
        if within < 1:
            return 0.0
        if (fewer // 2 + 1) * within**3 <= _MOST:
            break
        every += 1
    found = _events(fewer, within) if event else _items(fewer, within, changed=changed)
    root = sum(times * _root_of_range(square, fewer) for times, square in found) / fewer
    squared = root**2 / (fewer if event else 1)
    return float(every * np.sqrt(squared / count_windows(AnyWindow(longest), steps))) * _KEPT


def _root_of_range(square: FloatArray, steps: int) -> float:
    """What one frequency adds to the trace of the root over the windows of the range, times the steps of the circle."""
    values, vectors = np.linalg.eigh(square)
    roots = np.sqrt(np.maximum(values - _ROUNDING * len(values) * values[-1], 0.0))
    met = steps - np.arange(len(values), dtype=np.float64)
    return float(met @ (vectors**2 @ roots))


def _frequencies(steps: int) -> Iterator[tuple[int, float]]:
    """How often each frequency of half a circle comes, and its angle."""
    for place in range(steps // 2 + 1):
        yield (1 if place in (0, steps / 2) else 2), 2 * np.pi * place / steps


def _events(steps: int, longest: int) -> Iterator[tuple[int, FloatArray]]:
    """For each frequency how often it comes, and the sum of `g g'` over one event at each step of the circle."""
    values = np.unique(np.round(np.geomspace(1, longest, min(longest, _VALUES))).astype(np.int64))
    each = np.gradient(values.astype(np.float64)) if len(values) > 1 else np.ones(1)
    each = each * values**-_FALL
    before, after = (axis.ravel() for axis in np.meshgrid(values, values, indexing="ij"))
    weights = np.outer(each, each).ravel() / each.sum() ** 2
    lengths = np.arange(1, longest + 1)[:, None]
    # The event is the x-th step of a window, from 0 on: x is below P, and length - 1 - x below Q.
    low, high = np.maximum(0, lengths - after), np.minimum(before, lengths)
    for times, angle in _frequencies(steps):
        if angle:
            sums = (np.exp(1j * angle * high) - np.exp(1j * angle * low)) / (np.exp(1j * angle) - 1)
            met = np.where(high > low, sums * np.exp(-0.5j * angle * (lengths - 1)), 0)
        else:
            met = np.maximum(0, high - low).astype(np.complex128)
        # P and Q in turn have conjugate parts, of equal weights.
        yield times, np.asarray((met.real * weights) @ met.real.T + (met.imag * weights) @ met.imag.T)


def _items(steps: int, longest: int, *, changed: bool) -> Iterator[tuple[int, FloatArray]]:
    """For each frequency how often it comes, and the mean products of a random item on the circle."""
    quiet = max(0.5, 1 - _ACTIVE / longest)
    lengths = np.arange(1, longest + 1)
    missed = quiet**lengths
    products = np.empty((steps, longest, longest))
    for distance in range(steps):
        reach = distance + lengths[None, :]
        overlap = np.maximum(0, np.minimum(lengths[:, None], reach) - distance)
        overlap += np.minimum(np.maximum(0, reach - steps), lengths[:, None])
        products[distance] = quiet ** (lengths[:, None] + lengths[None, :] - overlap) - np.outer(missed, missed)
    products = 2 * products if changed else products + np.outer(1 - missed, 1 - missed)
    spectrum = np.fft.rfft(products, axis=0)
    for place, (times, angle) in enumerate(_frequencies(steps)):
        turned = np.exp(0.5j * angle * (lengths - 1))
        yield times, np.asarray((spectrum[place] * turned[:, None] * turned[None, :].conj()).real)
