r"""Independent discrete noise, drawn exactly and many numbers at a time, from the random bits of the operating system.

Two laws on the integers, `P(x) ~ w(|x|)` with `w(m) = e^(-phi(m))`, for a scale s that is exactly the fraction that its
floating-point number is:

- *discrete Gaussian*: `phi(m) = m^2 / (2 s^2)`;
- *discrete Laplace*: `phi(m) = m / s`.

**How a number is drawn.** Cut the integers m >= 0 into blocks: block 0 is {0}, and block i >= 1 has the B = 2^k integers
from `f_i = (i-1) B + 1` to `iB`. Give them the weights `c_0 = 1` and `c_i = 2 B w(f_i)`, with the sum Z and the
cumulative shares `C_i = (c_0 + ... + c_i) / Z`. From two numbers U, V, uniform on [0, 1), and a place 0 <= j < B and a
sign, all independent and uniform:

1. the block is the i with `C_(i-1) <= U < C_i` (`C_(-1) = 0`);
2. x = 0 if i = 0; otherwise m = f_i + j, and x = m or -m by the sign;
3. x is accepted if i = 0 or `V < w(m) / w(f_i)`, which is at most 1 as w falls; if not, all four are drawn anew.

**The law is exact.** *Proof.* One attempt gives x = 0 with the probability `1/Z`. It gives an x of absolute value m >= 1,
which is in one block and has one sign, with `(c_i / Z) (1/B) (1/2) w(m)/w(f_i) = w(m)/Z`. So what is accepted has
probabilities in the ratio of w. Attempts are independent, and each is accepted with the same positive probability, so
one of them is with probability one. QED. That is so for every k: a caller's count chooses it, for speed alone.

**No probability is rounded.** U and V are endless strings of fair bits, read as far as they are needed: after p bits with
the value u it is known that `u <= 2^p U < u + 1`. A probability P is known by an interval, `L <= 2^p P <= H`. So

    u + 1 <= L  proves  U < P,        u >= H  proves  U >= P,

and if neither holds, more bits are read *of the same string*, and the interval is made narrower (`_Uniform`, `_accepts`,
`_block`). What is decided is a function of the whole strings, the one of (1) to (3), so the law is as proved. U equals
one of the countably many C_i, or V its probability, with probability zero; otherwise the intervals of growing precision
leave it in the end, so the decision comes with probability one.

**The intervals hold.** All are made in ball arithmetic (Arb), each ball of which holds the true value whatever the
precision. Balls for the weights follow by `c_(i+1) = c_i q_i` with `q_i = w(f_(i+1)) / w(f_i)`, and `q_(i+1) = q_i d` with
`d = e^-(phi(f_(i+1) + B) - 2 phi(f_(i+1)) + phi(f_(i+1) - B))`, which is `e^(-B^2 / s^2)` or 1 at every i. *The tail of Z:* d <= 1,
so q falls, and blocks from i on weigh at most `c_i (1 + q_i + q_i^2 + ...) = c_i / (1 - q_i)`. A table ends where that is
at most 2^-p, and its Z is a ball around the sum so far and all up to this much more. Blocks beyond a table are reached
with more bits of U, in the table for these.

**Many at a time.** The first 64 bits of U and V, and 64 for sign and place, are drawn for all numbers at once. `decide`
looks the block up by a binary search, of which nothing is taken on trust: it is the block if u is at least `H_(i-1)` and
less than `L_i`. There every x is accepted whose V is below the first element of the *next* block over the first of this,
`q_i <= w(m) / w(f_i)`. (Where B = 1, the only element is accepted always.) What is decided so is what (1) to (3) say. A
number of which this says nothing goes on by itself, from the same bits and at its own place (`finish`): that it was not
decided at once changes neither its value nor any other. Nothing is ever rejected here, so what is drawn anew is drawn
there, all of it.

**Nothing wraps.** Numbers are made in 64 bits only while every one in the table is below 2^62; at larger scales each
is drawn in Python's integers. What is beyond +-(2^63 - 1) is returned as that, which `measure.add_noise` is made for.

No caller can hand over bits or a seed: `draw` reads those of the operating system, `os.urandom`. How long it takes
depends on what is drawn, as with every exact sampler by rejection.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import flint
import numpy as np
from numpy.typing import NDArray

from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE, Law, ball_of

Words = NDArray[np.uint64]
Source = Callable[[int], bytes]

# Bits of a word, those that balls have beyond the bits read, and the most that a number of a table may have.
_WORD, _PRECISION, _MOST_BITS = 64, 64, 62
_ALL = (1 << _WORD) - 1
_FURTHEST = (1 << 63) - 1
# Blocks in a scale are between two to the power of this and twice as many: more are dearer to tabulate, and leave less.
_FINEST = 8


def draw(law: Law, scale: float, count: int) -> NDArray[np.int64]:
    """Independent noise of exactly this law, shape (count,), saturated at +-(2^63 - 1).

    Args:
        law: `GAUSSIAN` or `LAPLACE`.
        scale: s, in lattice units.
        count: how many numbers.

    Raises:
        ValueError: the law is none of the two, or the scale is not positive and finite.
    """
    return blocks_for(law, scale, count).draw(os.urandom, count)


def blocks_for(law: Law, scale: float, count: int) -> Blocks:
    """The law cut into blocks as it is best for so many numbers."""
    if law not in (GAUSSIAN, LAPLACE) or not 0 < scale < float("inf"):
        raise ValueError(f"noise is drawn of a discrete Gaussian or Laplace law with a finite scale > 0, not {law}, {scale}")
    exact = Fraction(scale)
    in_a_scale = min(max(count.bit_length() // 2 - 1, 0), _FINEST)
    return Blocks(law, exact, max(0, (exact.numerator // exact.denominator).bit_length() - 1 - in_a_scale))


class _Uniform:
    """A uniform number of [0, 1): so many of its bits are read, and they are those of `value`."""

    def __init__(self, value: int, bits: int) -> None:
        self.value, self.bits = value, bits

    def read_on(self, source: Source) -> None:
        """Read another word of the same number."""
        self.value, self.bits = self.value << _WORD | _integer(source, _WORD // 8), self.bits + _WORD


def _integer(source: Source, size: int) -> int:
    return int.from_bytes(source(size), "little")


@dataclass(frozen=True)
class _Table:
    """What is proved of blocks 0, 1, ... in units of 2^-bits.

    Block i has `low[i] <= 2^bits C_i <= high[i]`, and of its numbers each is accepted with at least `kept[i] / 2^bits`.
    """

    low: tuple[int, ...]
    high: tuple[int, ...]
    kept: tuple[int, ...]


@dataclass(frozen=True)
class Blocks:
    """One law, its scale, and the k of its blocks of 2^k integers."""

    law: Law
    scale: Fraction
    log_length: int

    def draw(self, source: Source, count: int) -> NDArray[np.int64]:
        """Noise from the bits of a source, which for all but tests is the operating system."""
        table = _words(self)
        if table is None:
            return np.array([_held(self.finish(source, *self._attempt(source))) for _ in range(count)], dtype=np.int64)
        u, v, place = np.frombuffer(source(3 * _WORD // 8 * count), dtype="<u8").reshape(3, count)
        noise, sure = self.decide(table, u, v, place)
        for at in np.flatnonzero(~sure):
            noise[at] = _held(self.finish(source, int(u[at]), int(v[at]), int(place[at])))
        return noise

    def decide(self, table: Words, u: Words, v: Words, place: Words) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The numbers of these bits, and of which of them that is proved; the others mean nothing."""
        low, previous, kept = table
        block = np.minimum(np.searchsorted(low, u, side="right"), len(low) - 1)
        sure = (previous[block] <= u) & (u < low[block]) & (v < kept[block])
        size = ((block - 1) << self.log_length) + 1 + (place >> 1 & ((1 << self.log_length) - 1)).astype(np.int64)
        size[block == 0] = 0
        return np.where(place & 1, -size, size), sure

    def finish(self, source: Source, u: int, v: int, place: int) -> int:
        """The number whose first attempt begins with these bits of U and V, its place and sign; read on where needed."""
        while True:
            block = self._block(_Uniform(u, _WORD), source)
            first = (block - 1 << self.log_length) + 1
            size = first + (place >> 1 & (1 << self.log_length) - 1)
            if not block:
                return 0
            if self._accepts(first, size, _Uniform(v, _WORD), source):
                return -size if place & 1 else size
            u, v, place = self._attempt(source)

    def _attempt(self, source: Source) -> tuple[int, int, int]:
        """The first bits of a new attempt; the last are its sign and at least k for its place."""
        size = _WORD // 8
        return _integer(source, size), _integer(source, size), _integer(source, size * (self.log_length // _WORD + 1))

    def _block(self, uniform: _Uniform, source: Source) -> int:
        """The block i with `C_(i-1) <= U < C_i`."""
        while True:
            table = _table(self, uniform.bits)
            block = bisect_right(table.low, uniform.value)
            if block < len(table.low) and uniform.value >= (table.high[block - 1] if block else 0):
                return block
            uniform.read_on(source)

    def _accepts(self, first: int, size: int, uniform: _Uniform, source: Source) -> bool:
        """Whether `V < w(size) / w(first)`."""
        while True:
            with flint.ctx.workprec(uniform.bits + _PRECISION):
                chance = (-self.rise(first, size)).exp() * flint.arb(2) ** uniform.bits
                if flint.arb(uniform.value + 1) <= chance:
                    return True
                if flint.arb(uniform.value) >= chance:
                    return False
            uniform.read_on(source)

    def rise(self, one: int, other: int) -> flint.arb:
        """`phi(other) - phi(one)`, as a ball."""
        return ball_of((self._phi(other) - self._phi(one)))

    def _phi(self, size: int) -> Fraction:
        return (size / self.scale) ** 2 / 2 if self.law == GAUSSIAN else size / self.scale


@lru_cache(maxsize=32)
def _table(blocks: Blocks, bits: int) -> _Table:
    length, unit = 1 << blocks.log_length, 1 << bits
    with flint.ctx.workprec(bits + _PRECISION):
        weight = 2 * length * (-blocks.rise(0, 1)).exp()
        falls = (-blocks.rise(1, length + 1)).exp()
        faster = (-(blocks.rise(length + 1, 2 * length + 1) - blocks.rise(1, length + 1))).exp()
        # Block 0 has one number, which is accepted always.
        sums, kept = [flint.arb(1)], [unit]
        while not (beyond := weight / (1 - falls)) * unit <= 1:
            sums.append(sums[-1] + weight)
            kept.append(unit if length == 1 else _floor(falls * unit))
            weight, falls = weight * falls, falls * faster
        shares = [unit * one / (sums[-1] + flint.arb(0).union(beyond)) for one in sums]
        return _Table(tuple(map(_floor, shares)), tuple(-_floor(-share) for share in shares), tuple(kept))


@lru_cache(maxsize=32)
def _words(blocks: Blocks) -> Words | None:
    """The table as words, shape (3, blocks): `L_i`, `H_(i-1)`, and what V is below in all that is accepted at once.

    None where numbers in it would not fit. Bounds from below may be lowered to fit; a block that only follows on one
    whose share may reach the end is left out.
    """
    table = _table(blocks, _WORD)
    count = next((i for i, high in enumerate(table.high, 1) if high > _ALL), len(table.high))
    if count << blocks.log_length >= 1 << _MOST_BITS:
        return None
    lowered = [[min(max(0, one), _ALL) for one in bound[:count]] for bound in (table.low, table.kept)]
    return np.array([lowered[0], [0, *table.high[: count - 1]], lowered[1]], dtype=np.uint64)


def _floor(ball: flint.arb) -> int:
    """A whole number that is proved to be no larger."""
    whole = ball.lower().floor().unique_fmpz()
    assert whole is not None, "an exact whole number"
    return int(whole)


def _held(number: int) -> int:
    return max(-_FURTHEST, min(number, _FURTHEST))
