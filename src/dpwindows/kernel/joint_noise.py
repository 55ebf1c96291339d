r"""Noise drawn for a whole vector at once, for changes that move every number by at most one.

Two laws on the integer vectors of n numbers, `P(z) ~ a^N(z)` with `0 < a < 1` (Hardt and Talwar 2010, arXiv 0907.3754):

- *discrete cube*: `N(z) = max |z_i|`, which is at most 1 where every number moves by at most one;
- *discrete range*: `N(z) = max(0, z_1, ..., z_n) - min(0, z_1, ..., z_n)`, which is at most 1 where every number moves
  by at most one and all that move do in one direction.

Both are norms: symmetric, and at most the sum of the norms of two vectors for their sum. So with the noise z on what a
neighbour moves by v, an output has the probability of `z` for the one and of `z - v` for the other, and

    P(z) / P(z - v) = a^(N(z) - N(z - v)) <= a^(-N(v)),

**exactly N(v) ln(1/a) in epsilon**, reached at z = 0. A scale b is drawn with a rational `a >= e^(-1/b)`, rounded
upwards, so that it costs at most `N(v) / b`. Vectors drawn apart are independent, and what they cost adds up.

**The range law is drawn** by a radius r with `P(r) ~ (r+1)^(n+1) a^r`, r = 0, 1, 2, ..., independent `u_0, ..., u_n`,
each uniform on 0..r, and `z_i = u_i - u_0`. *Proof.* For a given r the vector z comes from the u_0 with
`0 <= u_0 + min(0, z)` and `u_0 + max(0, z) <= r`: from `r - N(z) + 1` of them if r >= N(z), and from none otherwise.
Each has the probability `(r+1)^-(n+1)`, so z has the weight `sum_{r >= N} (r - N + 1) a^r = a^N / (1-a)^2`. QED.

**The cube law is drawn** by a radius r with `P(r) ~ (2r+1)^n a^r` and independent z_i, each uniform on -r..r. *Proof.*
z comes from every r >= N(z) with the probability `(2r+1)^-n`, so its weight is `sum_{r >= N} a^r = a^N / (1-a)`. QED.

**The radius is drawn** by rejection, exactly. Let `phi(r) = e ln(c r + 1) + r ln a` be the logarithm of its weight; it
is concave. With a centre m and a width W such that

1. `W (phi(m+1) - phi(m)) <= ln 2` and, if m >= 1, `W (phi(m-1) - phi(m)) <= ln 2`;
2. `phi(m+W) <= phi(m) - ln 2` and, if m >= W, `phi(m-W) <= phi(m) - ln 2`,

propose a side, a block j >= 0 with probability `2^-(j+1)` and a place in it, `0 <= x < W`: `r = m + jW + x` to the
right and `r = m - 1 - jW - x` to the left. Every r is proposed in one way, with a probability proportional to `2^-j`,
and taken with probability `2^(j-1) e^(phi(r) - phi(m))`, where r < 0 is never taken; so r is taken with a probability
proportional to its weight. *That this is at most 1:* in block 0, r is at most W away from m, and concavity and (1) give
`phi(r) <= phi(m) + ln 2`. In block j >= 1, r is at least jW away, and the chord from m to the end of the first block
falls by `ln 2` over W by (2): by concavity phi lies below it beyond, so `phi(r) <= phi(m) - j ln 2`. QED.

(1) and (2) are proved in ball arithmetic before the first draw. Whether a proposal is taken is decided by the bits of a
uniform number: more bits are drawn until balls of growing precision tell on which side of the probability it lies. No
floating-point number decides anything, but for where the search for m and W begins. All random bits are those of the
operating system (`secrets`), which no seed decides.
"""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import flint
import numpy as np
from numpy.typing import NDArray

from dpwindows.kernel.accounting import RANGE, Law, ball_of, floor_of

# Bits that are drawn at a time, those that balls have beyond the bits drawn, and the most that a small ratio has more.
_BITS, _PRECISION, _MOST_BITS = 64, 256, 1 << 14
# The ends of what is returned: `dpwindows.kernel.measure.add_noise` tells nothing of noise beyond them.
_FURTHEST = (1 << 63) - 1


def draw_jointly(law: Law, scale: float, count: int) -> NDArray[np.int64]:
    """One vector of noise of a joint law, shape (count,), saturated at the ends of the 64-bit range.

    Args:
        law: `CUBE` or `RANGE`.
        scale: b, in lattice units.
        count: n, how many numbers are drawn together.
    """
    if not count:
        return np.zeros(0, dtype=np.int64)
    radius = radius_law(law, scale, count).draw()
    if law == RANGE:
        first = secrets.randbelow(radius + 1)
        drawn = [secrets.randbelow(radius + 1) - first for _ in range(count)]
    else:
        drawn = [secrets.randbelow(2 * radius + 1) - radius for _ in range(count)]
    return np.array([max(-_FURTHEST, min(value, _FURTHEST)) for value in drawn], dtype=np.int64)


@lru_cache(maxsize=64)
def radius_law(law: Law, scale: float, count: int) -> RadiusLaw:
    """The law of the radius of a vector of `count` numbers (module docstring)."""
    slope, power = (1, count + 1) if law == RANGE else (2, count)
    return RadiusLaw(slope, power, *_rounded_up(scale))


def _rounded_up(scale: float) -> tuple[int, int]:
    """A numerator p and a number of bits with `e^(-1/scale) <= p / 2^bits < 1`, close to equality."""
    # A small scale makes it small, and its first bits late.
    bits = 2 * _BITS + max(0, math.frexp(scale)[1]) + min(math.ceil(1.45 / max(scale, 1e-9)), _MOST_BITS)
    with flint.ctx.workprec(bits + _PRECISION):
        scaled = (-1 / ball_of(Fraction(scale))).exp() * flint.arb(2) ** bits
        above = -floor_of(-scaled)
    # Another thread may have lowered the precision, which is one for all: then once more.
    return (above, bits) if above < 1 << bits else _rounded_up(scale)


@dataclass(frozen=True)
class RadiusLaw:
    """`P(r) ~ (slope r + 1)^power a^r` over r = 0, 1, 2, ... with `a = numerator / 2^bits`."""

    slope: int
    power: int
    numerator: int
    bits: int

    def draw(self) -> int:
        """One radius, exactly of this law."""
        centre, width = _blocks(self)
        while True:
            block = 0
            while secrets.randbits(1):
                block += 1
            place = block * width + secrets.randbelow(width)
            radius = centre + place if secrets.randbits(1) else centre - 1 - place
            if radius >= 0 and self._accepts(radius, centre, block):
                return radius

    def _accepts(self, radius: int, centre: int, block: int) -> bool:
        """True with probability `2^(block-1)` times the weight of the radius over that of the centre."""
        uniform, bits = 0, 0
        while True:
            uniform, bits = uniform << _BITS | secrets.randbits(_BITS), bits + _BITS
            with flint.ctx.workprec(bits + _PRECISION):
                chance = (self.rise(centre, radius) + (block - 1) * flint.arb(2).log()).exp() * flint.arb(2) ** bits
                # The uniform number lies between these two.
                if flint.arb(uniform + 1) <= chance:
                    return True
                if flint.arb(uniform) >= chance:
                    return False

    def rise(self, one: int, other: int) -> flint.arb:
        """`phi(other) - phi(one)`, as a ball."""
        ratio = Fraction(self.slope * other + 1, self.slope * one + 1)
        return (
            self.power * ball_of(ratio).log() + (other - one) * ball_of(Fraction(self.numerator, 1 << self.bits)).log()
        )


@lru_cache(maxsize=64)
def _blocks(law: RadiusLaw) -> tuple[int, int]:
    """A centre and a width that are proved to be what the proof needs.

    Raises:
        ArithmeticError: none was found (a bug; nothing was drawn).
    """
    with flint.ctx.workprec(law.bits + _PRECISION):
        reach = 1 / float(-ball_of(Fraction(law.numerator, 1 << law.bits)).log().mid())
        centre = max(0, int(law.power * Fraction(reach) - Fraction(1, law.slope)))
        width = max(1, math.ceil(1.2 * reach * math.sqrt(law.power)))
        for _ in range(64):
            if _proved(law, centre, width):
                return centre, width
            width += -(-width // 8)
            # The best whole radius is beside the best real one.
            centre += 1 if law.rise(centre, centre + 1) > 0 else 0
    raise ArithmeticError(f"no blocks were found for {law}")


def _proved(law: RadiusLaw, centre: int, width: int) -> bool:
    half = flint.arb(2).log()
    steps = [width * law.rise(centre, centre + 1) <= half, law.rise(centre, centre + width) <= -half]
    if centre >= 1:
        steps.append(width * law.rise(centre, centre - 1) <= half)
    if centre >= width:
        steps.append(law.rise(centre, centre - width) <= -half)
    return all(map(bool, steps))
