"""The least error of rolling counts where whole items are protected: from random histories of one item.

`limits` bounds the error by the mean products `E[g g']` of any random change g that one neighbour can make. Here

- *an item added or removed*: g = f, with f the counts of the item: it is counted for at least W steps, out for at
  least one, and so on, for times of random length;
- *an item changed*: g is 1 or -1 at every step, and keeps its sign for at least W steps; the next sign is the same or
  the other with some probability. Where g is 1 only the item of one log is counted, where it is -1 only that of the
  other: each is counted in runs of at least W steps (signs that stay the same make longer ones), and so both occur.

*They occur.* An item is counted in given runs, each of at least W steps and with a step between any two, where it
occurs at the first step of each run, then at every W-th step of it or earlier, the last time W - 1 steps before its
end. A run that the end of the range cuts may be shorter. One that begins at step 1 may not: the range begins with
nothing. So the first run begins with the range and is longer by what is left of one that began before.

Times are those of Markov chains: W steps, and each further one with the same probability. Mixtures of chains are
weighed like changes. For k > 1 the same histories occur with k occurrences at each of these steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dpwindows.kernel.maps.integer_maps import FloatArray

# Mean times beyond W steps, and of being out, over W; and how a sign says what the next one is.
_SHARES = (0.03, 0.1, 0.3, 1.0)
_SIGNS = (-1.0, -0.6, -0.3, 0.0, 0.3)


@dataclass(frozen=True)
class History:
    """A random history: W steps and then each further one with probability `staying`, and what comes then.

    With `sign` another run follows at once, of the same or the other sign, in the mean `sign` times this one: an item
    that changes. Without, the item is out for a step and for each further one with probability `away`.
    """

    length: int
    staying: float
    away: float = 0.0
    sign: float | None = None

    @property
    def stationary(self) -> FloatArray:
        """How often the history is in each of its W steps (further ones count as the last), and how often it is out."""
        ages = np.ones(self.length + 1)
        ages[-2], ages[-1] = 1 / (1 - self.staying), 0.0 if self.sign is not None else 1 / (1 - self.away)
        return np.asarray(ages / ages.sum())

    def _moves(self, begun: float) -> FloatArray:
        """Chances of every state one step on, from every state, what comes after a run counted `begun` times.

        Shape (states, states). Where a run is glued to the next one, which is none of these states, that is 0 times.
        """
        chances = np.zeros((self.length + 1, self.length + 1))
        last, out = self.length - 1, self.length
        chances[np.arange(last), np.arange(1, out)] = 1.0
        chances[last, last] = self.staying
        chances[last, out if self.sign is None else 0] += begun * (1 - self.staying)
        if self.sign is None:
            chances[out, out], chances[out, 0] = self.away, 1 - self.away
        return chances

    @property
    def _ending(self) -> FloatArray:
        """Chances that a run passes into the next one, where the two are glued together."""
        chances = np.zeros((self.length + 1, self.length + 1))
        chances[self.length - 1, 0] = 1 - self.staying
        return chances

    def ahead(self, steps: int) -> tuple[FloatArray, FloatArray]:
        """The mean of g up to `steps` steps later, over g now: for every state, and for a first run's; by step."""
        now = np.append(np.ones(self.length), 0.0)
        on, glued = self._moves(1.0 if self.sign is None else self.sign), self._moves(0.0)
        both = _iterate(np.append(now, now), np.block([[on.T, self._ending.T], [np.zeros_like(on), glued.T]]), steps)
        return both[:, : self.length + 1], both[:, self.length + 1 :]

    def from_the_start(self, steps: int) -> FloatArray:
        """`E[g_s g_t]` over the first steps of a range."""
        later, early = self.ahead(steps)
        first, state = self.stationary, np.zeros(self.length + 1)
        first, state[-1] = first * (np.arange(self.length + 1) < self.length), first[-1]
        both = np.block([[self._moves(0.0), self._ending], [np.zeros_like(self._ending), self._moves(1.0)]])
        states = _iterate(np.append(first, state), both, steps)
        running = np.delete(states, [self.length, 2 * self.length + 1], axis=1)
        by_distance = running @ np.hstack([early[:, :-1], later[:, :-1]]).T
        return np.asarray(by_distance.ravel()[_earlier_and_distance(steps)])

    def later_on(self, steps: int) -> FloatArray:
        """`E[g_s g_t]` over steps far from the start, where runs may be in any phase."""
        ahead = self.ahead(steps)[0][:, :-1] @ self.stationary[:-1]
        index = np.arange(steps)
        return np.asarray(ahead[np.abs(index[:, None] - index[None, :])])


def histories(length: int, *, changed: bool) -> list[History]:
    """The histories that are weighed, of an item changed or of one added or removed."""
    chances = [0.0, *(length * share / (1 + length * share) for share in _SHARES)]
    if changed:
        return [History(length, staying, sign=sign) for staying, sign in product(chances, _SIGNS)]
    return [History(length, staying, away) for staying, away in product(chances, repeat=2)]


@lru_cache(maxsize=4)
def _earlier_and_distance(steps: int) -> NDArray[np.int64]:
    """For two steps, where the earlier one and their distance stand in an array of shape (steps, steps) made flat."""
    index = np.arange(steps)
    one, other = index[:, None], index[None, :]
    return np.asarray(np.minimum(one, other) * steps + np.abs(one - other))


def _iterate(start: FloatArray, moves: FloatArray, steps: int) -> FloatArray:
    """`start`, and what it becomes step by step, as rows: shape (steps, states). Each pass doubles the rows."""
    rows = start[None, :]
    while len(rows) < steps:
        rows, moves = np.concatenate([rows, rows @ moves]), moves @ moves
    return rows[:steps]
