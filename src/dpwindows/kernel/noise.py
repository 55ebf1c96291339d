r"""Independent discrete noise, drawn exactly and many numbers at a time, from the random bits of the operating system.

Two laws on the integers, `P(x) ~ w(|x|)` with `w(m) = e^(-phi(m))`. The scale s is the fraction that its floating-point
number is exactly:

- *discrete Gaussian*: `phi(m) = m^2 / (2 s^2)`;
- *discrete Laplace*: `phi(m) = m / s`.

**How a number is drawn.** Cut the integers m >= 0 into blocks: block 0 is {0}, and block i >= 1 has the B = 2^k
integers from `f_i = (i-1) B + 1` to `i B`. Give them the weights `c_0 = 1` and `c_i = 2 B w(f_i)`, with the sum Z and
the cumulative shares `C_i = (c_0 + ... + c_i) / Z`. Draw independently U and V, uniform on [0, 1), a place 0 <= j < B
and a sign. Then

1. the block is the i with `C_(i-1) <= U < C_i`, where `C_(-1) = 0`;
2. x = 0 if i = 0; otherwise x is `f_i + j`, or less than zero by the sign;
3. x is accepted if i = 0 or `V < w(|x|) / w(f_i)`, which is at most 1 as w falls. If not, all four are drawn anew.

**The law is exact.** *Proof.* One attempt gives x = 0 with probability `1/Z`. An x with |x| = m >= 1 is in one block,
at one place, and has one sign: an attempt gives it with probability `(c_i / Z) (1/B) (1/2) w(m) / w(f_i) = w(m) / Z`.
So what is accepted has probabilities in the ratio of w. Attempts are independent and all accepted with the same
positive probability, so with probability one there is an end. QED. This holds for every k, which is chosen for speed
alone.

**No probability is rounded.** U and V are endless strings of fair bits that are read as far as needed. After p bits,
with the value u, it is known that `u <= 2^p U < u + 1`. Of a probability P an interval is known, `L <= 2^p P <= H`. So

    u + 1 <= L  proves  U < P,        u >= H  proves  U >= P,

and if neither holds, more bits *of the same string* are read, and the interval is worked out anew for them (`_block`,
`_accepts`). What comes out is the function of the whole strings that (1) to (3) say, so its law is the one proved. With
probability zero U is one of the countably many C_i, or V its probability; otherwise narrower and narrower intervals
leave it out in the end, so with probability one every comparison is decided.

**The intervals hold.** They are made in ball arithmetic (Arb): each ball holds the true value, at whatever precision.
With `q_i = w(f_(i+1)) / w(f_i)` the weights are `c_(i+1) = c_i q_i`. The second difference of phi over B is the same
everywhere, `B^2 / s^2` or 0, so `q_(i+1) = q_i d` with one d <= 1. *The tail of Z:* q < 1 does not grow, so all blocks
from i on together weigh at most `c_i (1 + q_i + q_i^2 + ...) = c_i / (1 - q_i)`, and at least 0. A table for p bits
ends where this is at most 2^-p, and its Z is a ball around the sum so far with nothing and with all of it added. Blocks
beyond a table are reached as U is read on, in the tables for more bits.

**Many at a time.** Of each number the first 64 bits of U and of V are drawn at once, and 64 for the sign and the place.
`decide` looks for the block by a binary search, and trusts it in nothing: it is block i if u is at least `H_(i-1)` and
less than `L_i`. It accepts x if V is below `q_i`, which is at most `w(m) / w(f_i)` for every m of the block; where B =
1 the only one is accepted always. So what it decides is what (1) to (3) say of these bits. Of which it can say nothing,
`finish` goes on from the same bits, and puts the number at its own place: being late changes neither it nor another.
What is rejected is so there, and all of it drawn anew.

**Nothing wraps.** Numbers are made in 64 bits only where all in the table are below 2^62; at larger scales each is
drawn in Python's integers. A number beyond +-(2^63 - 1) is returned as this, which `measure.add_noise` is made for.

No caller can hand over bits or a seed: `sampler` reads those of the operating system (`os.urandom`), which has no state
in this process that a fork could copy. How long a draw takes depends on what is drawn, as with any rejection.
"""

from __future__ import annotations

import math
import os
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, partial

import flint
import numpy as np
from numpy.typing import NDArray

from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE, Law, floor_of

Words = NDArray[np.uint64]
# So many bytes of fair bits.
Source = Callable[[int], bytes]

# Bits of a word, those that balls have beyond the bits read, and the most that a number of a table may have.
_WORD, _PRECISION, _MOST_BITS = 64, 64, 62
_ALL = (1 << _WORD) - 1
_FURTHEST = (1 << 63) - 1
# A scale has at most between two to the power of this and twice as many blocks: more are dearer to tabulate, and leave
# fewer numbers to be drawn one by one. Tables of the Laplace law are longer, for its tail is.
_FINEST = {GAUSSIAN: 8, LAPLACE: 7}


def sampler(law: Law, scale: float, count: int) -> Callable[[int], NDArray[np.int64]]:
    """A function that draws as many numbers as it is asked for, independent and exactly of this law.

    They are of the shape (numbers,), and saturated at +-(2^63 - 1).

    Args:
        law: `GAUSSIAN` or `LAPLACE`.
        scale: s, in lattice units.
        count: about how many numbers will be asked for. It changes how fast they come, and not their law.

    Raises:
        ValueError: the law is none of the two, or the scale is not positive and finite.
    """
    return partial(_blocks_for(law, scale, count).draw, os.urandom)


def _blocks_for(law: Law, scale: float, count: int) -> Blocks:
    """The law, cut into blocks as it is best for so many numbers."""
    if law not in _FINEST or not 0 < scale < math.inf:
        raise ValueError(f"independent noise is discrete Gaussian or Laplace of a finite scale > 0, not {law}, {scale}")
    exact = Fraction(scale)
    in_a_scale = min(max(count.bit_length() // 2 - 1, 0), _FINEST[law])
    return Blocks(law, exact, max(0, int(exact).bit_length() - 1 - in_a_scale))


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
        """The number whose first attempt begins with these bits of U and V, and has this place and sign."""
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
                chance = _exp(-self.rise(first, size)) * flint.arb(2) ** uniform.bits
                if flint.arb(uniform.value + 1) <= chance:
                    return True
                if flint.arb(uniform.value) >= chance:
                    return False
            uniform.read_on(source)

    def rise(self, one: int, other: int) -> flint.fmpq:
        """`phi(other) - phi(one)`."""
        further: int = other**self._power - one**self._power
        return further * self._rate

    @property
    def _power(self) -> int:
        return 2 if self.law == GAUSSIAN else 1

    @cached_property
    def _rate(self) -> flint.fmpq:
        """`phi(1)`."""
        rate = 1 / (self._power * self.scale**self._power)
        return flint.fmpq(rate.numerator, rate.denominator)


@lru_cache(maxsize=16)
def _table(blocks: Blocks, bits: int) -> _Table:
    length = 1 << blocks.log_length
    rise, next_rise = blocks.rise(1, length + 1), blocks.rise(length + 1, 2 * length + 1)
    with flint.ctx.workprec(bits + _PRECISION):
        unit = flint.arb(2) ** bits
        weight, falls, faster = 2 * length * _exp(-blocks.rise(0, 1)), _exp(-rise), _exp(rise - next_rise)
        # Block 0 has one number, which is accepted always.
        sums, kept = [flint.arb(1)], [1 << bits]
        while not (beyond := weight / (1 - falls)) * unit <= 1:
            sums.append(sums[-1] + weight)
            kept.append(floor_of(unit * (1 if length == 1 else falls)))
            weight, falls = weight * falls, falls * faster
        share = unit / (sums[-1] + flint.arb(0).union(beyond))
        shares = [one * share for one in sums]
        return _Table(tuple(map(floor_of, shares)), tuple(-floor_of(-one) for one in shares), tuple(kept))


def _exp(exponent: flint.fmpq) -> flint.arb:
    return flint.arb(exponent).exp()


@lru_cache(maxsize=16)
def _words(blocks: Blocks) -> Words | None:
    """The table as words, shape (3, blocks): `L_i`, `H_(i-1)`, and what V is below in all that is accepted at once.

    None where numbers in it would not fit. Bounds from below may be lowered to fit; a block that only follows on one
    whose share may reach the end is left out.
    """
    table = _table(blocks, _WORD)
    # The last share of a table reaches the end: less than 2^-64 lies beyond it.
    count = next(i for i, high in enumerate(table.high, 1) if high > _ALL)
    if count << blocks.log_length >= 1 << _MOST_BITS:
        return None
    lowered = [[min(max(0, one), _ALL) for one in bound[:count]] for bound in (table.low, table.kept)]
    return np.array([lowered[0], [0, *table.high[: count - 1]], lowered[1]], dtype=np.uint64)


def _held(number: int) -> int:
    return max(-_FURTHEST, min(number, _FURTHEST))
