"""Rolling counts of several lengths as one measurement: at every step one filter on all of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate

import numpy as np
from flint import fmpz_poly
from numpy.typing import NDArray

from dpwindows.ask.privacy import EventLevel, ItemPerPeriod
from dpwindows.ask.queries import RollingTogether, WindowFamily
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.designs import StepAnswers, StepShape
from dpwindows.kernel.maps.endless_counter import MOST_STEPS
from dpwindows.kernel.maps.integer_maps import IntArray, Memory, widen
from dpwindows.kernel.rules import Case, rule

Objects = NDArray[np.object_]


@dataclass(frozen=True)
class Together(StepShape):
    """Rolling counts of `lengths` through a filter that mixes them: `y_t = sum_j M_j x_{t-j}`, x_t one count of each.

    Attributes:
        lengths: of the windows.
        taps: the entries of the square integer matrices `M_0`, `M_1`, ..., each matrix row by row.

    Raises:
        ValueError: the taps make no such matrices.
    """

    lengths: tuple[int, ...]
    taps: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.taps or len(self.taps) % len(self.lengths) ** 2:
            raise ValueError(f"{len(self.taps)} taps make no square matrices for {len(self.lengths)} lengths")

    @property
    def memory(self) -> int:
        """How many steps back the filter looks."""
        return len(self.taps) // len(self.lengths) ** 2 - 1

    @cached_property
    def matrices(self) -> IntArray:
        """`M_0`, `M_1`, ... as an array, shape (memory + 1, lengths, lengths)."""
        taps = np.array(self.taps, dtype=np.int64).reshape(-1, len(self.lengths), len(self.lengths))
        taps.flags.writeable = False
        return taps

    @cached_property
    def _growth(self) -> int:
        return max(sum(abs(int(tap)) for tap in row.ravel()) for row in self.matrices.transpose(1, 0, 2))

    def moved(self, case: Case) -> int:
        """Changes of max W ends reach as many numbers further as the filter remembers."""
        return min(case.steps or MOST_STEPS, max(self.lengths) + self.memory) * len(self.lengths)

    def reach(self, window: WindowFamily) -> int:
        """The longest window."""
        return max(self.lengths)

    def rows_at(self, window: WindowFamily, step: int) -> int:
        """One for each length."""
        return len(self.lengths)

    def fresh(self) -> Memory:
        """Nothing but zeros before the first step."""
        return {"exact": np.zeros((self.memory, len(self.lengths)), dtype=np.int64)}

    def encode_step(
        self, window: WindowFamily, answers: StepAnswers, k: int, memory: Memory
    ) -> tuple[IntArray, Memory]:
        """The integers that the filter makes of the newest counts, shape (lengths,)."""
        recent = answers.recent[k]
        newest = [recent[min(length, answers.step) - 1] for length in self.lengths]
        return self.mix(np.array(newest, dtype=np.int64), memory)

    def mix(self, exact: IntArray, memory: Memory) -> tuple[IntArray, Memory]:
        """The exact integers of a step from the newest value of every series, shape (lengths,); the memory after it."""
        newest_first = np.concatenate([exact[None], memory["exact"]])
        series = widen(newest_first, self._growth)
        mixed = np.asarray(np.tensordot(self.matrices.astype(series.dtype), series, axes=([0, 2], [0, 1])))
        return mixed, {"exact": newest_first[:-1].astype(np.int64)}


@rule(
    "rolling-together-event",
    RollingTogether,
    (EventLevel, ItemPerPeriod),
    GAUSSIAN,
    Together,
    when="at least 1 alone, an item changed within one step at most",
)
def rolling_together_event_l2(case: Case) -> int | None:
    """At least 1 in rolling windows of several lengths, one occurrence added or removed, or an item within one step.

    The bound is the largest squared norm, exact on an unbounded horizon, of a change of the numbers measured,
    `y_t = sum_j M_j x_{t-j}` with one count in `x_t` for each length.

    Proof. Of one item the occurrences at one step t change. Where it occurs there before and after the change, no
    count of at least 1 does. Otherwise call the log with an occurrence at t the larger one; let the item's previous
    occurrence be at t - p and its next at t + q. The window of length W that ends at t + i holds t for 0 <= i < W. In
    the smaller log the item is in it as well if t - p >= t + i - W + 1, that is i < W - p, or if t + q <= t + i, that
    is i >= q. So the count of length W differs, by 1 and with the sign of the change, for i in
    `I_W = [max(0, W - p), min(W, q))` and nowhere else, for all W with the same p and q. That windows are cut at step
    1 changes nothing: the item has no occurrence before it. Values of p or q above the longest W, or none, give the
    intervals of p or q equal to it: so p and q in 1..max W are all.
    On an unbounded horizon, with `g_i` the change of `x_{t+i}`, the squared norm of `sum_j M_j g_{i-j}` over all i is
    `sum_{U,V} sum_{i in I_U, j in I_V} R_UV[j - i]` with `R_UV[m] = sum_n <M_{n+m} e_U, M_n e_V>`. A finite horizon
    leaves out rows of y, which lowers norms. With D the second antiderivative of R,
    `D[m+1] - 2 D[m] + D[m-1] = R[m]`, the inner sum over `[a, b) x [c, d)` telescopes to
    `D[d-a] + D[c-b] - D[c-a] - D[d-b]`, and to 0 where an interval is empty. The maximum is taken over all p and q, in
    whole numbers of any size. QED.
    """
    shape: Together = case.measured
    one_step = case.problem.unit in (EventLevel(), ItemPerPeriod(1))
    same = case.problem.window == RollingTogether(shape.lengths)
    return _largest_change(shape.taps, shape.lengths) if one_step and same and case.thresholds == (1,) else None


@lru_cache(maxsize=64)
def _largest_change(taps: tuple[int, ...], lengths: tuple[int, ...]) -> int:
    lanes, longest = len(lengths), max(lengths)
    matrices = np.array(taps, dtype=object).reshape(-1, lanes, lanes)
    p, q = np.meshgrid(np.arange(1, longest + 1), np.arange(1, longest + 1), indexing="ij")
    intervals = [(np.maximum(0, length - p), np.minimum(length, q)) for length in lengths]
    total: Objects = np.zeros(p.shape, dtype=object)
    for u, (a, b) in enumerate(intervals):
        for v, (c, d) in enumerate(intervals[: u + 1]):
            # Pairs (u, v) and (v, u) sum to the same.
            sums = _antiderivative(matrices[:, :, u], matrices[:, :, v], longest)
            of_pair = sums[d - a + longest] + sums[c - b + longest] - sums[c - a + longest] - sums[d - b + longest]
            total += np.where((a < b) & (c < d), of_pair * (1 if u == v else 2), 0)
    return int(total.max())


def _antiderivative(one: Objects, other: Objects, longest: int) -> Objects:
    """D from -longest to longest, where `R[m] = sum_n <one_{n+m}, other_n>` for arrays of shape (taps, rows)."""
    count = len(one)
    # Coefficient count - 1 + m of the product of one with the other reversed is R[m].
    products = [
        fmpz_poly([int(tap) for tap in one[:, row]]) * fmpz_poly([int(tap) for tap in other[::-1, row]])
        for row in range(one.shape[1])
    ]
    lags = [
        sum(int(product[count - 1 + m]) for product in products) if abs(m) < count else 0
        for m in range(-longest, longest)
    ]
    return np.array([0, *accumulate(accumulate(lags))], dtype=object)
