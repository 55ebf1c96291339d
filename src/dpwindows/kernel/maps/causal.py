"""Integer maps along time, evaluated one position at a time: what a step measures and how it is decoded.

Each class here is the causal side of a matrix `M` in which no row needs anything after the position at which it is
measured. A map keeps a *memory* of fixed shape (exact integers and decoded numbers of earlier positions), so that a
stream can run for ever; it acts on several series at once, its *lanes*. Positions are numbered from 1.

- `encode` is part of the trusted kernel: the integers `(M x)` of one position, exact.
- `decode` is post-processing: the estimate at the position, from all that was measured up to it.
- `variance` and `fourth_moment` give `sum c^2` and `sum c^4` over the weights c that an estimate puts on independent
  noise of unit variance, for positions 1..count.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from dpwindows.kernel.maps.integer_maps import FloatArray, IntArray, invert_filter, widen

Memory = dict[str, np.ndarray]

# Variances are worked out up to this position; beyond, a stable filter's are at their limit.
_SETTLED = 1 << 15


class CausalMap(Protocol):
    """One causal integer map, for any number of lanes."""

    def rows_at(self, position: int) -> int:
        """How many numbers are measured at a position, for each lane."""
        ...

    def fresh(self, lanes: int) -> Memory:
        """The memory before the first position."""
        ...

    def encode(self, position: int, exact: IntArray, memory: Memory) -> IntArray:
        """The exact integers measured at a position: values of shape (lanes,) to (rows_at, lanes)."""
        ...

    def decode(self, position: int, measured: FloatArray, memory: Memory) -> tuple[FloatArray, Memory]:
        """Estimates (lanes,) from numbers (rows_at, lanes), and what `decode` is to remember."""
        ...

    def remember(self, position: int, exact: IntArray, memory: Memory) -> Memory:
        """What `encode` is to remember after a position."""
        ...

    def variance(self, count: int) -> FloatArray:
        """Variance of the estimates at positions 1..count."""
        ...

    def fourth_moment(self, count: int) -> FloatArray:
        """Fourth moment of the weights at positions 1..count."""
        ...


def pushed(newest: np.ndarray, past: np.ndarray) -> np.ndarray:
    """The past, newest first, with one more value in front and the oldest gone."""
    return np.concatenate([newest[None], past[:-1]]) if len(past) else past


def weighted_sum(weights: IntArray, values: IntArray) -> IntArray:
    """`sum_j weights_j values_j` along the first axis, in exact integers."""
    if not len(weights):
        return np.zeros(values.shape[1:], dtype=np.int64)
    wide = widen(values, int(sum(abs(int(weight)) for weight in weights)))
    return np.asarray(np.tensordot(weights.astype(wide.dtype), wide, axes=1))


class KnownMoments:
    """Moments of the estimates, kept once worked out: asked for step by step they would be worked out every time."""

    @cached_property
    def _known(self) -> dict[int, FloatArray]:
        return {}

    def _worked_out(self, count: int, power: int) -> FloatArray:
        """Moments at positions 1..count or more."""
        raise NotImplementedError

    def _moment(self, count: int, power: int) -> FloatArray:
        known = self._known.get(power)
        if known is None or len(known) < count:
            known = self._known[power] = self._worked_out(1 << (count - 1).bit_length(), power)
        return known[:count]

    def variance(self, count: int) -> FloatArray:
        """Variance of the estimates at positions 1..count."""
        return self._moment(count, 2)

    def fourth_moment(self, count: int) -> FloatArray:
        """Fourth moment of their weights at positions 1..count."""
        return self._moment(count, 4)


@dataclass(frozen=True)
class CausalFilter(KnownMoments):
    """`y_t = sum_j taps_j x_{t-j}`, integer taps: the causal side of `integer_maps.Filter`, with the same estimates."""

    taps: tuple[int, ...]

    @cached_property
    def _tail(self) -> IntArray:
        return np.array(self.taps[1:], dtype=np.int64)

    def rows_at(self, position: int) -> int:
        """Always 1: one number for each value."""
        return 1

    def fresh(self, lanes: int) -> Memory:
        """Nothing but zeros before the first position."""
        past = len(self.taps) - 1
        return {"exact": np.zeros((past, lanes), dtype=np.int64), "decoded": np.zeros((past, lanes))}

    def encode(self, position: int, exact: IntArray, memory: Memory) -> IntArray:
        """The newest value of the filtered series."""
        weights = np.array(self.taps, dtype=np.int64)
        return weighted_sum(weights, np.concatenate([exact[None], memory["exact"]]))[None]

    def decode(self, position: int, measured: FloatArray, memory: Memory) -> tuple[FloatArray, Memory]:
        """The newest value of the inverse filter's output."""
        past = memory["decoded"]
        estimate = (measured[0] - self._tail.astype(np.float64) @ past) / self.taps[0]
        return estimate, {"decoded": pushed(estimate, past)}

    def remember(self, position: int, exact: IntArray, memory: Memory) -> Memory:
        """The last values, newest first, with this one among them; shape (taps - 1, lanes)."""
        return {"exact": pushed(exact.astype(np.int64), memory["exact"])}

    def _worked_out(self, count: int, power: int) -> FloatArray:
        """Running sums of powers of the inverse taps, taken as settled after 32,768 positions."""
        impulse = np.zeros(min(count, _SETTLED))
        impulse[0] = 1.0
        sums = np.cumsum(invert_filter(self.taps, impulse) ** power)
        return np.concatenate([sums, np.full(count - len(sums), sums[-1])])


@dataclass(frozen=True)
class CausalIdentity:
    """Every value measured directly, on a lattice of `unit` to a count."""

    unit: int = 1

    def rows_at(self, position: int) -> int:
        """Always 1: one number for each value."""
        return 1

    def fresh(self, lanes: int) -> Memory:
        """An empty memory: every value is measured by itself."""
        return {}

    def encode(self, position: int, exact: IntArray, memory: Memory) -> IntArray:
        """The values, times `unit`."""
        return (widen(exact, self.unit) * self.unit)[None]

    def decode(self, position: int, measured: FloatArray, memory: Memory) -> tuple[FloatArray, Memory]:
        """The numbers, over `unit`."""
        return measured[0] / self.unit, {}

    def remember(self, position: int, exact: IntArray, memory: Memory) -> Memory:
        """Nothing."""
        return {}

    def variance(self, count: int) -> FloatArray:
        """`unit^-2` everywhere."""
        return np.full(count, float(self.unit) ** -2)

    def fourth_moment(self, count: int) -> FloatArray:
        """`unit^-4` everywhere."""
        return np.full(count, float(self.unit) ** -4)


@dataclass(frozen=True)
class CausalAnchors(KnownMoments):
    """First differences at every position and the value itself at every `every`-th, with integer weights.

    At position t: `step_weight (x_t - x_{t-1})` (`x_0 = 0`), and `anchor_weight x_t` where `every` divides t. The rows
    form a chain, so least squares on all rows up to t is one recursion (a scalar Kalman filter): the estimate moves by
    the measured difference, and at an anchor it is averaged with the anchor by precision.
    """

    every: int
    step_weight: int
    anchor_weight: int

    def _anchored(self, position: int) -> bool:
        return position % self.every == 0

    def rows_at(self, position: int) -> int:
        """Two at an anchor, else one."""
        return 2 if self._anchored(position) else 1

    def fresh(self, lanes: int) -> Memory:
        """The series is known to be 0 at position 0."""
        return {"exact": np.zeros(lanes, dtype=np.int64), "decoded": np.zeros(lanes)}

    def encode(self, position: int, exact: IntArray, memory: Memory) -> IntArray:
        """The weighted difference, and the weighted value at an anchor."""
        wide = widen(np.stack([exact, memory["exact"]]), 2 * max(self.step_weight, self.anchor_weight))
        rows = [self.step_weight * (wide[0] - wide[1])]
        if self._anchored(position):
            rows.append(self.anchor_weight * wide[0])
        return np.stack(rows)

    def decode(self, position: int, measured: FloatArray, memory: Memory) -> tuple[FloatArray, Memory]:
        """The recursion's next estimate."""
        estimate = memory["decoded"] + measured[0] / self.step_weight
        if self._anchored(position):
            share = self._shares(position)
            estimate = (1 - share) * estimate + share * measured[1] / self.anchor_weight
        return estimate, {"decoded": estimate}

    def remember(self, position: int, exact: IntArray, memory: Memory) -> Memory:
        """The value at this position, shape (lanes,), for the next difference."""
        return {"exact": exact.astype(np.int64)}

    @cached_property
    def _anchor_shares(self) -> FloatArray:
        """The weight of the first anchors in their average; it settles at once."""
        shares, variance = [], 0.0
        for _ in range(256):
            variance += self.every / self.step_weight**2
            shares.append(variance / (variance + 1 / self.anchor_weight**2))
            variance *= 1 - shares[-1]
        return np.array(shares)

    def _shares(self, position: int) -> float:
        anchor = position // self.every - 1
        return float(self._anchor_shares[min(anchor, len(self._anchor_shares) - 1)])

    def _worked_out(self, count: int, power: int) -> FloatArray:
        """The sums for positions 1..count, shape (count,), by the recursion that decodes."""
        values, value = np.empty(count), 0.0
        for position in range(1, count + 1):
            value += float(self.step_weight) ** -power
            if self._anchored(position):
                share = self._shares(position)
                value = (1 - share) ** power * value + (share / self.anchor_weight) ** power
            values[position - 1] = value
        return values
