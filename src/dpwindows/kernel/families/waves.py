r"""How far an item that changes can move rolling counts, through a filter whose autocorrelation is a decaying wave.

As in `dpwindows.kernel.families.signed_patterns`, g = f - f' in the places 1..N costs `g'Gg`, with `r_d` the
autocorrelation of the filter. f and f' are one item's counts for k = 1: each starts anywhere, and then stays 1 for W
places or more, unless the horizon cuts it.

**A wave.** Take any complex p with `|p| < 1`, the pole, and any amplitude a; let `w_d = Re(a p^d)`, `e = r_1 - w_1`
and `E = sum_{2 <= d < N} |r_d - w_d|`. With `z_t = sum_{d>=1} p^d g_{t-d}`, and since `2 |g_t g_{t-d}|` is at most
`g_t^2 + g_{t-d}^2`,

    g'Gg <= sum_t charge_t,   charge_t = (r_0 + 2E) g_t^2 + 2 e g_t g_{t-1} + 2 g_t Re(a z_t).

Of earlier places later charges ask for the last g and for z alone, which is 0 before the first place and then
`z_{t+1} = p (z_t + g_t)`. What is left to be charged is, in each state of f and f', a maximum of affine functions of
z: convex, with a slope of at most `2 |a| sum_i |p|^i = 2 |a| / (1 - |p|)`. A table holds a V(x) for each state and each
point x of a grid, at least what is left there. Then for every y, and any shares >= 0 of the points that sum to 1, what
is left at y is at most `sum_x share_x V(x) + slope |y - sum_x share_x x|`.

**States.** A count that starts is held for the ticks in the W-1 places after it; every `every`-th place is one.
Exchanging f and f' negates g and z and changes no charge: a state at z stands for its mirror image at -z. *none*:
neither is 1. *one[i]*: f is 1 and held for i more ticks, f' is 0. *both[i]*: both are 1, f held for i ticks, f' for
none. Where f' starts and is held for s ticks, while f is held for `j <= s` or starts too (j = s), g is 0 up to the j-th
tick, and after it f' is held for s - j. This is the mirror image of both[s - j] after j ticks: *later[j - 1, s - j]*.

**Numbers** are integers of 64 bits; what makes sums too large for them is refused. Points have units of `2^-POINT`;
under p they are rounded down, by less than 2 units for each place. The slope pays for that, and for what shares are
off. Charges and sums of shares are rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpwindows.kernel.advice import Advise, Question, ask
from dpwindows.kernel.dearest_path import Automaton, Table, dearest_path
from dpwindows.kernel.families.signed_patterns import SignedLags

# Bits of fractions of poles, points and shares, of the largest value, and of the first lag.
POLE, POINT, _SHARE, _VALUE, _LAG = 12, 26, 20, 42, 28
# The most cells of a table.
_CELLS = 1 << 24


class Waves(Automaton):
    """The automaton of all changes, on a grid of points whose parts are odd multiples of some units.

    Args:
        lags: the autocorrelation.
        places: N.
        length: W, at least 2.
        witness: the parts of the pole in units of `2^-POLE`, those of the amplitude, on how many odd multiples of how
            many units the parts of points lie, an even number of them around 0, and how many places apart ticks are.

    Raises:
        ValueError: the numbers make no table, or one of numbers that are too large.
    """

    def __init__(self, lags: SignedLags, places: int, length: int, witness: Sequence[int]) -> None:
        *self._pole, cosine, sine, self._nodes, self._half, self._every = real, imaginary, *_ = witness
        # At most 1 - |p|, in units of 2^(-2 POLE).
        decay = (1 << 2 * POLE) - math.isqrt((real**2 + imaginary**2) << 2 * POLE) - 1
        if min(self._nodes // 2, self._half, places - 1, length - 1, self._every, decay) < 1 or self._nodes % 2:
            raise ValueError("no table is made of these numbers")
        self.places, self._length = places, length
        # The most ticks that a count is held for, and the most that what is left changes with z.
        self._ticks = -(-(length - 1) // self._every)
        self._heads = np.cumsum([0, *range(self._ticks + 1, 1, -1)])
        self.slope = -(-(2 * (math.isqrt(cosine**2 + sine**2) + 1) << 2 * POLE) // decay)
        self.charged = _charges_beside_a_wave(lags, places, (real, imaginary), (cosine, sine))
        furthest, size = 2 * self._nodes * self._half + (4 << POINT), abs(cosine) + abs(sine)
        if max(furthest * max(4 * size, 4 * self.slope, 2 << POLE), self._half << _SHARE + 1) >= 1 << 62:
            raise ValueError("points are so large that sums might wrap")
        self._shape = int(self._heads[-1]) + self._ticks + 3, self._nodes**2
        if max(*map(abs, self.charged), size, self.slope) > 1 << _VALUE or math.prod(self._shape) > _CELLS:
            raise ValueError("charges or tables are too large")
        nodes = np.indices((self._nodes, self._nodes), dtype=np.int64).reshape(2, -1)
        self._points = x, y = (2 * nodes - self._nodes + 1) * self._half
        self._charge = self.charged[0] - (2 * (sine * y - cosine * x) >> POINT)
        self._moves: dict[tuple[tuple[int, ...], int], tuple[Table, Table, Table]] = {}

    def kind(self, place: int) -> int:
        """How far the last tick is back."""
        return place % self._every

    @property
    def last(self) -> Table:
        """Nothing is charged after the last place."""
        return np.zeros(self._shape, dtype=np.int64)

    def largest_entry(self, values: Table) -> int:
        """The bound at z = 0, with no counts."""
        return int(self._mixed(values[-1], *self._shares(np.zeros((2, 1), dtype=np.int64)))[0])

    def before(self, place: int, values: Table) -> Table:
        """The table before a place, of the rows both[0], all of later[0], both[1], and so on; then all of one; none.

        There are `ticks - i` rows of later[i]: at a tick each is what the one below was.
        """
        heads, lines, near = self._heads, self._heads[-1] + 1, self.charged[1]
        # How far ahead the next tick is, and for how many ticks a count is held that starts here.
        ahead, tick = self._every - place % self._every, place % self._every == 0
        start = (self._length - 1 - ahead) // self._every + 1
        held = np.maximum(np.arange(self._ticks + 1) - tick, 0)
        *both, none = self._moved(values[[*heads, -1]], (1,))[:, 0]
        one = self._moved(values[lines:-1], (1,), 1)[:, 0] + self._charge
        # What is left where f' starts, by what f is held for; it is for `start` ticks at most.
        ticks = np.minimum(np.arange(self._ticks + 1), start)
        after = (1, *range(1 + ahead, 1 + ahead + self._ticks * self._every, self._every))
        met = self._moved(values[heads[start - ticks] + ticks].ravel(), after)[:, ::-1]
        other = one[:, ::-1]
        alone, together = np.maximum(one[held] + near, met[held]), np.maximum(np.array(both)[held], one[held])
        alone[0] = np.maximum.reduce([alone[0], none, other[start] - near])
        together[0] = np.maximum.reduce([together[0], none, other[0]])
        before = np.empty_like(values)
        before[tick:lines] = values[: lines - tick]
        before[heads], before[lines:-1] = together, alone
        before[-1] = np.maximum.reduce([none, one[start], other[start], met[start]])
        return before

    def _moved(self, values: Table, places: tuple[int, ...], g: int = 0) -> Table:
        """What is left after some numbers of places, if g is this in the first and then 0.

        Values are of shape (rows, points) for one number, and otherwise rows one after another, one for each number.
        """
        if (places, g) not in self._moves:
            (x, y), (real, imaginary), reached = self._points, self._pole, []
            x = x + (g << POINT)
            for _ in range(max(places)):
                x, y = real * x - imaginary * y >> POLE, imaginary * x + real * y >> POLE
                reached.append((x, y))
            corners, parts, away = self._shares(np.array([reached[after - 1] for after in places]).swapaxes(0, 1))
            row = self._nodes**2 * np.arange(len(places))[:, None, None]
            self._moves[places, g] = corners + row, parts, away + 2 * np.array(places)[:, None]
        return self._mixed(values, *self._moves[places, g])

    def _mixed(self, values: Table, corners: NDArray[np.intp], parts: Table, away: Table) -> Table:
        """Means of values with these shares, and what the slope adds for points so far away, rounded up."""
        if max(int(values.max()), -int(values.min())) > 1 << _VALUE:
            raise ValueError("a value is so large that a sum might wrap")
        return np.asarray(-(-(values[..., corners] * parts).sum(axis=-1) >> _SHARE) - (-self.slope * away >> POINT))

    def _shares(self, points: Table) -> tuple[NDArray[np.intp], Table, Table]:
        """Four points of the grid for each of some, their shares in parts of `2^_SHARE`, and how far their mean is off.

        A point is moved into the grid, and shared among the corners of its cell. Along each axis its share of the far
        corners is rounded down, by less than one part.
        """
        edge, cell = (self._nodes - 1) * self._half, 2 * self._half
        inside = np.clip(points, -edge, edge)
        cells = np.minimum((inside + edge) // cell, self._nodes - 2)
        along, across = (inside + edge - cells * cell << _SHARE) // cell
        both = along * across >> _SHARE
        corner = cells[0] * self._nodes + cells[1]
        corners = np.stack([corner, corner + self._nodes, corner + 1, corner + self._nodes + 1], axis=-1)
        parts = np.stack([(1 << _SHARE) - along - across + both, along - both, across - both, both], axis=-1)
        return corners, parts, np.abs(points - inside).sum(axis=0) + 2 * ((cell >> _SHARE) + 1)


def _charges_beside_a_wave(
    lags: SignedLags, places: int, pole: tuple[int, int], amplitude: tuple[int, int]
) -> tuple[int, int]:
    """For a place where g is not 0, `r_0 + 2E`, and for two beside one another, 2e.

    `a p^d` is rounded down, by less than 2 d small units at distance d: E is off by less than one in all. So one is
    added to E, and one for e, which is rounded down.
    """
    unlike, bits = [], 2 * places.bit_length() + 2
    (cosine, sine), (real, imaginary) = (part << bits for part in amplitude), pole
    for lag in (*lags.values[1:], *[0] * places)[: places - 1]:
        cosine, sine = real * cosine - imaginary * sine >> POLE, imaginary * cosine + real * sine >> POLE
        unlike.append((lag << bits) - cosine)
    return lags.values[0] + 2 * (-(-sum(map(abs, unlike[1:])) >> bits) + 2), 2 * (unlike[0] >> bits)


def waves_bound(taps: tuple[int, ...], length: int, places: int, advise: Advise) -> int | None:
    """Bound on `g'Gg` over all changes for k = 1 of one item within all steps (module docstring).

    None where no wave makes up the filter's autocorrelation, or numbers would be too large.

    Proof. An item that starts being counted at a step occurs there, so it is counted at the W-1 ends after it too, or
    up to the horizon; it may start at any step, and nothing is counted before the first. So its changes are paths of
    `Waves`, charged at least `g'Gg / 2^shift`, whatever the wave, the grid and the ticks are. QED.
    """
    lags = SignedLags.of(taps, places, _LAG)
    pole, size = (-(1 << POLE), 1 << POLE), (-(1 << _VALUE), 1 << _VALUE)
    question = Question("rolling-patterns-period-wave", 1, (lags, places, length))
    answer = ask(advise, question, [pole, pole, size, size, (0, 64), (0, 1 << 40), (0, length)])
    most = _most_by_waves(lags, places, length, answer)
    return None if most is None else most << lags.shift


@lru_cache(maxsize=64)
def _most_by_waves(lags: SignedLags, places: int, length: int, answer: tuple[int, ...]) -> int | None:
    every = answer[-1]
    try:
        waves = Waves(lags, places, length, answer)
        # Whole ticks, after which what places add is taken for settled.
        settling, cycle = (-(-some // every) * every for some in (max(600, 12 * length), 2 * length))
        return dearest_path(waves, settling=settling, cycle=cycle, tick=every)
    except ValueError:
        return None
