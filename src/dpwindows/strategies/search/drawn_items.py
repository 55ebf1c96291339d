"""Rolling counts of at least k > 1 where whole items are protected: changes by one item whose occurrences are drawn.

An item is counted for at least W steps if k = 1. For larger k it stops whenever one of its last k occurrences leaves
the window, about k times in W steps, so that it can change more often than what `item_limits` draws. Here occurrences
themselves are drawn, and then they are counted. So every change is one that a neighbour can make, whatever was drawn,
and the mean of `g g'` over all that were drawn is that of a random change (`dual`).

- *An item added or removed* that is not counted is counted again by chance, at any step.
- *Of an item changed* one log's item is counted at every step, and never both: where neither is, one of them starts.

What is not counted has k - 1 occurrences in the window, or comes to have them. The first k leave together, which would
end the first run of all items at one step: k more are spread over it, and what is not counted begins with k - 1 spread
over as many steps.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Changes that are drawn at a time.
_DRAWN = 4096
# Chances that whoever was counted last is counted on; how many steps what has left stays away, over W, and the most
# often that it comes back; how often, over k / W, an item is counted again by chance, and the most.
_AGAIN, _AWAY, _BACK, _STARTS, _MOST = (0.1, 0.6), 0.1, 0.5, 1.2, 0.4


def drawn_changes(steps: int, length: int, k: int, *, changed: bool) -> NDArray[np.float32]:
    """Changes of the counts of one item that is changed, or added or removed, each a column: shape (steps, changes)."""
    chance, rows = np.random.default_rng(0), np.arange(1 + changed)[:, None]
    start = min(_MOST, _STARTS * k / length)
    back, again = (min(_BACK, 1 / (_AWAY * length)), min(_MOST, _AGAIN[0] + _AGAIN[1] / length)) if changed else (1, 0)
    came = _first_occurrences(chance, steps + length, length, k, changed=changed)
    inside, last = np.zeros(came.shape[1:], dtype=np.int16), np.zeros(_DRAWN, dtype=np.int64)
    changes = np.empty((steps, _DRAWN), dtype=np.float32)
    for step in range(steps):
        inside += came[step]
        if step >= length:
            inside -= came[step - length]
        counted, luck = inside >= k, chance.random((2, _DRAWN))
        free = ~counted.any(axis=0)
        if changed:
            last = np.where(free, np.where(luck[0] < again, last, 1 - last), counted[1])
        starts = free & ((last == rows) if changed else (luck[0] < start))
        # What is missing to be counted, or to be one occurrence short of it.
        missing = np.where(starts, k, (k - 1) * ((luck[1] < back) & (step >= length))) - inside
        more = np.maximum(missing, 0).astype(np.int16)
        came[step] += more
        inside += more
        one, *other = (inside >= k).astype(np.float32)
        changes[step] = one - other[0] if changed else one
    return changes


def _first_occurrences(
    chance: np.random.Generator, steps: int, length: int, k: int, *, changed: bool
) -> NDArray[np.int16]:
    """Those that do not depend on what is counted by then, by step, item and change."""
    came, each = np.zeros((steps, 1 + changed, _DRAWN), dtype=np.int16), np.arange(_DRAWN)
    # Of a changed item that of one log begins, of others half.
    begin = np.ones((1, _DRAWN), dtype=bool) if changed else chance.random((1, _DRAWN)) < 0.5
    begin = np.concatenate([begin, np.zeros_like(begin)]) if changed else begin
    came[0] += k * begin.astype(np.int16)
    for item, begins in enumerate(begin):
        for number in range(k):
            came[chance.integers(1, length, _DRAWN), item, each] += begins
            came[chance.integers(0, length, _DRAWN), item, each] += ~begins & (number < k - 1)
    return came
