"""Rolling counts of whole items, for k > 1 or for several k: changes by one item whose occurrences are drawn.

An item is counted for at least W steps if k = 1. For larger k it stops whenever one of its last k occurrences leaves
the window, about k times in W steps, so that it can change more often than what `item_limits` draws; and of several k
it changes one or the other. Here occurrences themselves are drawn, and then they are counted. So every change is one
that a neighbour can make, whatever was drawn, and the mean of `g g'` over all that were drawn is that of a random
change (`dual`).

- *An item added or removed* comes to have enough for the largest k by chance, at any step, or else for a smaller one.
- *Of an item changed* one log's item is counted for the largest k at every step, and never both: where neither is, one
  of them starts. The other one comes to have enough for a smaller k by chance.

Of one k alone, what is not counted comes to have k - 1 occurrences. The first k leave together, which would end the
first run of all items at one step: k more are spread over it, and what is not counted begins with k - 1 spread over as
many steps.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

# Changes that are drawn at a time.
_DRAWN = 4096
# Chances that whoever was counted last is counted on; how many steps what has left stays away, over W, and the most
# often that it comes back; how often, over k / W (of several k over 1 / W), an item has more by chance, and the most.
_AGAIN, _AWAY, _BACK, _STARTS, _MOST = (0.1, 0.6), 0.1, 0.5, 1.2, 0.4


def drawn_changes(steps: int, length: int, thresholds: Sequence[int], *, changed: bool) -> NDArray[np.float32]:
    """Changes of the counts of one item that is changed, or added or removed: shape (thresholds, steps, changes)."""
    *smaller, largest = thresholds
    chance, rows = np.random.default_rng(0), np.arange(1 + changed)[:, None]
    often = min(_MOST, _STARTS / length * (1 if smaller else largest))
    again = min(_MOST, _AGAIN[0] + _AGAIN[1] / length)
    back = often if smaller else min(_BACK, 1 / (_AWAY * length)) if changed else 1.0
    came = _first_occurrences(chance, steps + length, length, largest, changed=changed)
    inside, last = np.zeros(came.shape[1:], dtype=np.int16), np.zeros(_DRAWN, dtype=np.int64)
    changes = np.empty((len(thresholds), steps, _DRAWN), dtype=np.float32)
    for step in range(steps):
        inside += came[step]
        if step >= length:
            inside -= came[step - length]
        counted, luck = inside >= largest, chance.random((2 + len(smaller), _DRAWN))
        free = ~counted.any(axis=0)
        if changed:
            last = np.where(free, np.where(luck[0] < again, last, 1 - last), counted[1])
        starts = free & ((last == rows) if changed else (luck[0] < often))
        # How many there are to be: enough to be counted, or for a smaller k, or one occurrence short of it.
        wanted = (largest - 1) * ((luck[1] < back) & (step >= length) & (changed or not smaller))
        for k, own in zip(smaller, luck[2:], strict=True):
            wanted = np.maximum(wanted, k * (own < often))
        more = np.maximum(np.where(starts, largest, wanted) - inside, 0).astype(np.int16)
        came[step] += more
        inside += more
        for place, k in enumerate(thresholds):
            one, *other = (inside >= k).astype(np.float32)
            changes[place, step] = one - other[0] if changed else one
    return changes


def _first_occurrences(
    chance: np.random.Generator, steps: int, length: int, k: int, *, changed: bool
) -> NDArray[np.int16]:
    """Those that do not depend on what is counted by then, by step, item and change."""
    came, each = np.zeros((steps, 1 + changed, _DRAWN), dtype=np.int16), np.arange(_DRAWN)
    # Of a changed item that of one log begins, of others half.
    begin = np.zeros(came.shape[1:], dtype=bool)
    begin[0] = changed or chance.random(_DRAWN) < 0.5
    came[0] += k * begin.astype(np.int16)
    for item, begins in enumerate(begin):
        for number in range(k):
            came[chance.integers(1, length, _DRAWN), item, each] += begins
            came[chance.integers(0, length, _DRAWN), item, each] += ~begins & (number < k - 1)
    return came
