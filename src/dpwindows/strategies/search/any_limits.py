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
    spectra = _events(fewer, within) if event else _items(fewer, within, changed=changed)
    times, _ = _frequencies(fewer)
    root = float(times @ _roots_of_range(spectra, fewer)) / fewer
    squared = root**2 / (fewer if event else 1)
    return float(every * np.sqrt(squared / count_windows(AnyWindow(longest), steps))) * _KEPT


def _roots_of_range(squares: FloatArray, steps: int) -> FloatArray:
    """The share of each frequency in the trace of the root over the range's windows, times the steps of the circle.

    All frequencies are made from the same sums, so what is rounded in them is in proportion to the largest of all.
    """
    values, vectors = np.linalg.eigh(squares)
    roots = np.sqrt(np.maximum(values - _ROUNDING * values.shape[1] * values.max(), 0.0))
    met = steps - np.arange(values.shape[1], dtype=np.float64)
    return np.asarray((met @ vectors**2 * roots).sum(axis=1))


def _frequencies(steps: int) -> tuple[FloatArray, FloatArray]:
    """How often each frequency of half a circle comes, and its angle."""
    place = np.arange(steps // 2 + 1)
    return np.where((place == 0) | (2 * place == steps), 1.0, 2.0), 2 * np.pi * place / steps


def _events(steps: int, longest: int) -> FloatArray:
    """For each frequency the sum of `g g'` over one event at each step of the circle.

    The event is the x-th step of a window of l steps, from 0 on, where x is below P and `l - 1 - x` below Q. So with
    A(x) the weight of all P above x, and of all Q, it is the x-th of l and the y-th of m steps with the weight
    `A(max(x, y)) A(max(l - 1 - x, m - 1 - y))`. Where `x - y` is d >= 0 these add up to `E(d, min(l, m + d))`, the sum
    of `A(x) A(max(l, m + d) - 1 - x)` over x from the one to the other. The middles are `d - (l - m) / 2` apart, and
    as often that much in the other direction, so turns add up to cosines.
    """
    values = np.unique(np.round(np.geomspace(1, longest, min(longest, _VALUES))).astype(np.int64))
    each = np.gradient(values.astype(np.float64)) if len(values) > 1 else np.ones(1)
    each = each * values**-_FALL
    above = np.zeros(2 * longest)
    above[:longest] = [each[values > x].sum() / each.sum() for x in range(longest)]
    sums = np.zeros((2 * longest, longest + 1))
    for n in range(1, 2 * longest):
        until = min(n, longest)
        sums[n, 1 : until + 1] = np.cumsum(above[:until] * above[n - until : n][::-1])
    first, second = np.indices((longest, longest))
    # By twice the distance of the middles, and by the two lengths less 1.
    apart = np.zeros((2 * longest - 1, longest, longest))
    for distance in range(longest):
        one, other = first[distance:], second[distance:]
        low, high = np.sort([one + 1, other + 1 + distance], axis=0)
        overlaps = sums[high, low] - sums[high, distance]
        twice = np.abs(2 * distance - one + other)
        apart[twice, one, other] += overlaps
        if distance:
            apart[twice, other, one] += overlaps
    turns = np.cos(np.outer(_frequencies(steps)[1] / 2, np.arange(len(apart))))
    return np.asarray((turns @ apart.reshape(len(apart), -1)).reshape(-1, longest, longest))


def _items(steps: int, longest: int, *, changed: bool) -> FloatArray:
    """For each frequency the mean products of a random item on the circle."""
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
    turned = np.exp(0.5j * np.outer(_frequencies(steps)[1], lengths - 1))
    return np.asarray((np.fft.rfft(products, axis=0) * turned[:, :, None] * turned[:, None, :].conj()).real)
