r"""How several thresholds change with one item's history: runs for larger ones lie inside the runs for the threshold 1.

Rolling windows of `W` steps over `N` places. h is the 0/1 series of an item being counted for the threshold 1, whether
that is measured or not, and f the one for a larger threshold k. An item that is counted k times is counted once, so f
is 1 only where h is.

**In one run of h of n places f has few runs** (`most_runs_inside`). Let the run begin at b. No window of it holds an
occurrence before b: the window that ends at b - 1 holds none, or b is the first place. Where f starts being counted,
something occurs. Up to b+W-1 no occurrence leaves, so f starts at most once in b..b+W-1, and at b+W only if it had not
before: **at most one start in the first W+1 places**. If the run ends within the range, the window after it is empty,
so nothing occurs in its last W-1 places: n-2W places are left for later starts. Of a run that the end of the range may
cut, n-W-1 are left. Any W+1 consecutive steps hold at most k starts (`dpwindows.kernel.bounds.sensitivity`), and
between two starts lies a place that is 0.

**Chains.** h is a chain of runs with a place at least between two, each of at least W places but for the last, which
the end of the range may cut. So whatever is a sum over the runs of h, and within each over the runs of the f's, is
bounded by the best chain (`best_chain_of_runs`) of what a run is worth by its length (`worth_inside`).

Both take exact integers for certificates, and floats where good prices are sought.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Values by number of places: exact integers, whose sums fit into their type, or floats.
Values = NDArray[Any]


def most_runs_inside(k: int, length: int, places: int, *, last: bool) -> int:
    """The most runs for threshold k in a run of `places` places (module docstring); `last`: it may be cut off."""
    later = max(0, places - (length + 1 if last else 2 * length))
    cycles, rest = divmod(later, length + 1)
    return min((places + 1) // 2, 1 + k * cycles + min(k, (rest + 1) // 2))


def worth_inside(worth: Values, k: int, length: int, *, last: bool) -> tuple[Values, NDArray[np.int64]]:
    """The most that the runs of one threshold are worth inside a run of h of n places, n = 0..N.

    Args:
        worth: of one run of n places, n = 0..N: concave in n, and 0 for n = 0.
        k: the threshold; for 1 it is the run itself.
        length: W.
        last: the run of h may be cut by the end of the range.

    Returns:
        The most, and how many places are 1 then, each of shape (N + 1,).

    Proof. s runs in n places hold `m <= n-s+1` places together, as a place is free between two. For a given m the most
    even split is worth the most, since `worth` is concave. Its worth does not decrease in m as long as no run of it is
    longer than the l that is worth the most, so `m = min(n-s+1, s l)` is best. QED.
    """
    lengths = np.arange(len(worth))
    if k == 1:
        return worth, lengths
    runs = _most_runs(k, length, len(worth), last=last)
    best, held, best_length = np.zeros_like(worth), np.zeros_like(lengths), int(worth.argmax())
    for count in range(1, int(runs.max()) + 1 if best_length else 0):
        fit = lengths[runs >= count]
        ones = np.minimum(fit - count + 1, count * best_length)
        size, longer = np.divmod(ones, count)
        split = (count - longer) * worth[size] + longer * worth[np.minimum(size + 1, len(worth) - 1)]
        better = split > best[fit]
        best[fit[better]], held[fit[better]] = split[better], ones[better]
    return best, held


@lru_cache(maxsize=16)
def _most_runs(k: int, length: int, count: int, *, last: bool) -> NDArray[np.int64]:
    """`most_runs_inside` of 0..count-1 places: prices are searched for on the same places many times."""
    runs = np.array([most_runs_inside(k, length, places, last=last) for places in range(count)])
    runs.flags.writeable = False
    return runs


def best_chain_of_runs(inner: Values, last: Values, length: int) -> tuple[Any, list[int], int]:
    """The most that a chain of runs in N places is worth, 0 for none; its inner runs' lengths, and the last one's.

    Args:
        inner: what a run of n places is worth that ends within the range, n = 0..N.
        last: what the last one is worth, which the end of the range may cut; no less.
        length: W, the least places of an inner run.

    Found by dynamic programming over where the free place after an inner run lies.
    """
    places = len(inner) - 1
    best, run = np.zeros_like(inner), [0] * (places + 1)
    for end in range(1, places + 1):
        best[end] = best[end - 1]
        if end > length:
            # A run of n = W..end-1 places and a free one.
            ended = best[end - 1 - length :: -1] + inner[length:end]
            longest = int(ended.argmax())
            if ended[longest] > best[end]:
                best[end], run[end] = ended[longest], length + longest
    cut = best[places - 1 :: -1] + last[1:]
    longest = int(cut.argmax())
    most, cut_run = (cut[longest], longest + 1) if cut[longest] > best[places] else (best[places], 0)
    chain, end = [], places - cut_run
    while end > 0:
        chain += [run[end]] if run[end] else []
        end -= run[end] + 1
    return most, chain, cut_run
