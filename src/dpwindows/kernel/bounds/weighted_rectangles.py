r"""Certified sensitivity at event level, any windows: a filter over the windows inside, weighed by length; k = 1.

Notation: as in `dpwindows.kernel.bounds.sensitivity`; `C(i)` is the sum of the first i + 1 taps, of all where there
are no more, 0 for i < 0, and `w_n` the weight of windows of n steps. Measured is, for windows of at most L steps,

    y(a, b) = w_n sum_{i, j >= 0} taps_i taps_j F(a + i, b - j),    n = b - a + 1,

over the windows a + i..b - j that exist: those within a..b (`shapes.nested`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from dpwindows.kernel.maps.integer_maps import FloatArray
from dpwindows.kernel.proofs import proves

# Bits that are kept of squared responses, of squared weights and of their sums over one axis; and the most places.
# Products of whole numbers with these bits, summed over that many places, are below 2^53: exact in floating point.
_RESPONSES, _WEIGHTS, _SUMS, MOST_PLACES = 17, 16, 24, 4096
# Into how many parts the places of an event are cut where the ends of the range are near for all of them.
_PARTS = 32


@proves("any-weighted-event")
def any_weighted_event_l2(taps: Sequence[int], weights: Sequence[int], steps: int | None) -> int:
    """Any windows of at most `len(weights)` steps, one occurrence added or removed: squared L2 bound, at least 1.

    Args:
        taps: of the filter on starts and on ends.
        weights: by length of a window, from 1 step on.
        steps: the steps of the range, None if it has no end.

    Proof. Let an occurrence at step s change, p be the last step before s and q the first after s in which the item
    occurs besides (p < 1 or q > T where there is none). If it occurs in s besides, nothing changes. Otherwise F changes
    by 1, and all in the same direction, for the windows that hold s and neither p nor q: starts p + 1..s, ends
    s..q - 1. Let x = s - p and y = q - s. A window within a..b holds s only if a..b does. So y(a, b) changes only where
    d = s - a >= 0 and e = b - s >= 0, and then by `w_{d+e+1} A_x(d) A_y(e)`, `A_x(d) = C(d) - C(d - x)`: the sum of
    the taps i with p < a + i <= s. With d + e + 1 <= L, responses are those of x = L for all larger x, and likewise of
    y. The squared norm is `sum_{d, e} A_x(d)^2 w_{d+e+1}^2 A_y(e)^2`, whose largest value over x and y in 1..L is
    returned. In a range of T steps d < s, x <= s (x = s stands for no p at all), e <= T - s and y <= T - s + 1: where
    T < 2 L - 1 the places s are cut into stretches, each of which takes the first two limits from its last place and
    the others from its first. All terms are positive, so rounding each factor up gives an upper bound. QED.

    Raises:
        ValueError: there are more lengths, or larger taps or weights, than it is worked out for.
    """
    longest = len(weights)
    largest = max(sum(abs(int(tap)) for tap in taps), *(abs(int(weight)) for weight in weights))
    if longest > MOST_PLACES or largest >= 1 << 31:
        raise ValueError(f"{longest} lengths, or taps or weights up to {largest}, are more than there is a bound for")
    sums = np.zeros(2 * longest, dtype=np.int64)
    known = list(accumulate([int(tap) for tap in taps[:longest]]))
    sums[longest:] = known + [known[-1]] * (longest - len(known))
    # By x - 1 and d: sums has C(i) at longest + i.
    places = np.arange(longest)
    responses, shift = _coarse((sums[longest + places] - sums[longest + places - places[:, None] - 1]) ** 2, _RESPONSES)
    squares, rest = _coarse(np.array([int(weight) ** 2 for weight in weights], dtype=np.int64), _WEIGHTS)
    across = np.where(np.add.outer(places, places) < longest, squares[np.add.outer(places, places) % longest], 0.0)
    worst = max(_largest_sum(responses, across, *met) for met in _starts_and_ends(longest, steps))
    return worst << (2 * shift + rest)


def _largest_sum(responses: FloatArray, across: FloatArray, before: int, after: int) -> int:
    """The largest sum where an event has `before` places for starts and `after` for ends."""
    inner, shift = _coarse((responses[:before, :before] @ across[:before, :after]).astype(np.int64), _SUMS)
    return int((inner @ responses[:after, :after].T).max()) << shift


def _starts_and_ends(longest: int, steps: int | None) -> list[tuple[int, int]]:
    """How many starts and ends an event may meet; what is mirrored is left out, for both axes are filtered alike."""
    if steps is None or steps >= 2 * longest - 1:
        return [(longest, longest)]
    width = -(-steps // _PARTS)
    stretches = [(first, min(first + width - 1, steps)) for first in range(1, steps + 1, width)]
    met = {(min(last, longest), min(steps - first + 1, longest)) for first, last in stretches}
    return [pair for pair in met if pair[0] <= pair[1] or pair[::-1] not in met]


def _coarse(values: NDArray[np.int64], bits: int) -> tuple[FloatArray, int]:
    """Values that are not negative in units of a power of two, rounded up to integers of `bits` bits; the power."""
    shift = max(0, int(values.max()).bit_length() - bits)
    return np.asarray(-(-values >> shift), dtype=np.float64), shift
