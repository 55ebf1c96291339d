r"""How far an item that changes can move rolling counts, through a filter whose autocorrelation is a decaying wave.

As in `dpwindows.kernel.families.signed_patterns`, g = f - f' for two 0/1 vectors in the places 1..N costs `g'Gg`, with
`r_d` the autocorrelation of a causal filter and G its Gram matrix on an unbounded horizon. f and f' are one item's
counts for k = 1: each starts at any place and then stays 1 for W places or more, unless the horizon cuts it.

**A wave.** Take any complex p with `|p| < 1`, the pole, and any amplitude a; let `w_d = Re(a p^d)`, `e = r_1 - w_1`
and `E = sum_{2 <= d < N} |r_d - w_d|`. With `z_t = sum_{d>=1} p^d g_{t-d}`, and since `2 |g_t g_{t-d}|` is at most
`g_t^2 + g_{t-d}^2`,

    g'Gg <= sum_t charge_t,   charge_t = (r_0 + 2E) g_t^2 + 2 e g_t g_{t-1} + 2 g_t Re(a z_t).

All that later charges ask of earlier places is the last g, and z, which is 0 before the first place and then
`z_{t+1} = p (z_t + g_t)`.

**What is left.** Let `R(n, s, z)` be the most that the last n places are charged, where s says of f and of f' whether
it is 1 and how long it must stay so (`Paths`). It is a maximum over what f and f' do there, and for each of these the
charge is affine in z; so R is convex in z, and its slope is at most `2 |a| sum_i |p|^i = 2 |a| / (1 - |p|)`.

**Tables** (`Waves`, an automaton for `dearest_path`). A table holds a V(s, x) for each s and each point x of a grid, at
least `R(n, s, x)`. Then for every y and any shares >= 0 of the points that sum to 1

    R(n, s, y) <= sum_x share_x V(s, x) + slope |y - sum_x share_x x|,

by convexity and by the slope. To go u places back take, for everything that f and f' can do in u places from a state s
and a point x, what is charged for these, and this bound on what is left at the y they lead to. The largest is a table
for n + u places. The table of nothing but 0 is one for n = 0. Exchanging f and f' negates g and z, and changes no
charge. So one half of a grid that is symmetric about 0 stands for the other: `V((s, s'), x) = V((s', s), -x)`.

**Numbers** are integers of 64 bits; what makes sums too large for them is refused. Points have units of `2^-POINT`,
and their images under p are rounded down, by less than 2 units each: by the slope that is charged, as is what shares
are off. Charges and sums of shares are rounded up.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import isqrt

import numpy as np
import scipy

from dpwindows.kernel.dearest_path import Table

Pattern = tuple[int, ...]

# Bits of fractions of poles, points and shares, and of the largest value.
POLE, POINT, _SHARE, _VALUE = 12, 26, 22, 40
# The most cells of a table, and of the moves between two: searches propose less than a tenth of it.
_CELLS = 1 << 23


@dataclass(frozen=True)
class Paths:
    """The moves of one count in `jump` places. State 0: it is 0. State 1+i: it is 1, and held for `i clock` places.

    A start holds a count for the W-1 places after it. How long it is held is rounded down to a multiple of `clock`
    after each jump, which forbids nothing.
    """

    length: int
    jump: int
    clock: int

    @property
    def states(self) -> int:
        """How many states there are."""
        return 2 + (self.length - 1) // self.clock

    @cached_property
    def rows(self) -> list[tuple[Pattern, int]]:
        """All that a count can do in a jump, and the state it is in after it, in order of patterns."""
        return sorted({move for state in range(self.states) for move in self._moves(state)})

    @cached_property
    def out_of(self) -> list[list[int]]:
        """The rows that are possible in every state."""
        number = {row: at for at, row in enumerate(self.rows)}
        return [sorted(number[move] for move in self._moves(state)) for state in range(self.states)]

    def _moves(self, state: int) -> set[tuple[Pattern, int]]:
        # Here a count is -1 where it is 0, and otherwise the number of places it is held for.
        reached: set[tuple[Pattern, int]] = {((), (state - 1) * self.clock if state else -1)}
        for _ in range(self.jump):
            reached = {((*past, one), after) for past, held in reached for one, after in self._step(held)}
        return {(pattern, 1 + held // self.clock if held >= 0 else 0) for pattern, held in reached}

    def _step(self, held: int) -> tuple[tuple[int, int], ...]:
        """What a count may be at the next place, and for how long it is held there."""
        if held > 0:
            return ((1, held - 1),)
        return ((0, -1), (1, self.length - 1 if held < 0 else 0))


@dataclass(frozen=True)
class Waves:
    """What paths are charged, from no counts and z = 0, on points whose parts are odd multiples of `half` units.

    Attributes:
        charged: for a place where g is not 0, `r_0 + 2E`, and for two beside one another, e.
        pole: the two parts of p, in units of `2^-POLE`.
        amplitude: those of a.
        nodes: on how many odd multiples of `half` the parts of points lie, an even number of them around 0.
        half: half of how far apart neighbouring nodes are.
        paths: what f and f' can do.
        places: how many jumps there are; those missing to a whole one are added before the first, where all begin.
    """

    charged: tuple[int, int]
    pole: tuple[int, int]
    amplitude: tuple[int, int]
    nodes: int
    half: int
    paths: Paths
    places: int

    @classmethod
    def of(
        cls,
        lags: Sequence[int],
        shift: int,
        pole: tuple[int, int],
        amplitude: tuple[int, int],
        nodes: int,
        half: int,
        paths: Paths,
    ) -> Waves:
        """What an autocorrelation, `2^shift r_d` from d = 0 to N-1, is charged with a wave.

        `a p^d` is rounded down to units of which E may be off by one in all: by less than 2 d of them at distance d.

        Raises:
            ValueError: they make no table, or one with numbers that are too large.
        """
        unlike, bits = [0, 0], 2 * len(lags).bit_length() + 2
        (cosine, sine), (real, imaginary) = (part << bits for part in amplitude), pole
        if (
            min(len(lags) - 1, nodes // 2, half, paths.length, paths.jump, paths.clock) < 1
            or nodes % 2
            or _decay(pole) < 1
        ):
            raise ValueError("no table is made of these numbers")
        if nodes**2 * paths.states**2 > _CELLS or nodes**2 * len(paths.rows) ** 2 > _CELLS:
            raise ValueError("a table of these numbers would be too large")
        for lag in lags[1:]:
            cosine, sine = real * cosine - imaginary * sine >> POLE, imaginary * cosine + real * sine >> POLE
            unlike.append((lag << bits) - (cosine << shift))
        near = unlike[2] >> bits + shift
        # One unit for E, and one for e, which is rounded.
        place = -(-lags[0] >> shift) + 2 * (-(-sum(map(abs, unlike[3:])) >> bits + shift) + 2)
        return cls((place, near), pole, amplitude, nodes, half, paths, -(-len(lags) // paths.jump))

    def __post_init__(self) -> None:
        """See that no sum can wrap. Raises `ValueError` if one might."""
        furthest = 2 * (self.nodes * self.half + ((self.paths.jump + 1) << POINT))
        amplitude, (place, near) = sum(map(abs, self.amplitude)), self.charged
        products = (furthest * max(2 * amplitude, 4 * self.slope, 1 << POLE + 1), self.half << _SHARE + 1)
        if max(products) >= 1 << 62 or max(place, abs(near), amplitude, self.slope) > 1 << _VALUE:
            raise ValueError("numbers are so large that sums might wrap")

    @cached_property
    def slope(self) -> int:
        """The most that the remaining charge changes with z."""
        size = isqrt(self.amplitude[0] ** 2 + self.amplitude[1] ** 2) + 1
        return -(-(2 * size << 2 * POLE) // _decay(self.pole))

    def kind(self, place: int) -> Hashable:
        """All jumps are alike."""
        return 0

    @property
    def last(self) -> Table:
        """The table of nothing but 0, shape (points / 2, states, states)."""
        return np.zeros((self.nodes**2 // 2, self.paths.states, self.paths.states), dtype=np.int64)

    def largest_entry(self, values: Table) -> int:
        """The bound at z = 0, with no counts."""
        shares, away = self.shares(np.zeros((2, 1), dtype=np.int64))
        return int(_mixed(shares, _whole(values)[:, :1, 0])[0, 0] + self._charge_of(away)[0])

    def before(self, place: int, values: Table) -> Table:
        """The table a jump before."""
        after, rows, out_of = _whole(values), self.paths.rows, self.paths.out_of
        states = np.array([state for _, state in rows])
        moved = np.empty((len(values), len(rows), len(rows)), dtype=np.int64)
        for f, other, (shares, charge) in self._jumps:
            there = after[:, states[f, None], states[None, other]]
            left = _mixed(shares, there.reshape(len(after), -1)) + charge
            moved[:, f, other] = left.reshape(len(values), *there.shape[1:])
        before = _best(_best(moved, 1, out_of), 2, out_of)
        # The last g is 1 where f is 1 and f' is not, -1 where it is the other way round, and otherwise 0.
        first = np.array([pattern[0] for pattern, _ in rows])
        near = 2 * self.charged[1] * (first[:, None] - first[None, :])
        off = out_of[0]
        before[:, 1:, 0] = _best(moved[:, :, off] + near[:, off], 1, out_of[1:]).max(axis=2)
        before[:, 0, 1:] = _best(moved[:, off] - near[off], 2, out_of[1:]).max(axis=1)
        return before

    @cached_property
    def _jumps(self) -> list[tuple[slice, slice, tuple[scipy.sparse.csr_array, Table]]]:
        """For every two patterns of f and f': the rows of either, and `_jump` for the g that they make."""
        every = [pattern for pattern, _ in self.paths.rows]
        rows = {one: slice(every.index(one), every.index(one) + every.count(one)) for one in dict.fromkeys(every)}
        known: dict[Pattern, tuple[scipy.sparse.csr_array, Table]] = {}
        jumps = []
        for f, other in product(rows, repeat=2):
            change = tuple(one - two for one, two in zip(f, other, strict=True))
            if change not in known:
                known[change] = self._jump(change)
            jumps.append((rows[f], rows[other], known[change]))
        return jumps

    def _jump(self, change: Pattern) -> tuple[scipy.sparse.csr_array, Table]:
        """The targets of a change from the points of one half of the grid, and its charge but for the g before."""
        nodes = np.indices((self.nodes, self.nodes)).reshape(2, -1)[:, : self.nodes**2 // 2].astype(np.int64)
        x, y = (2 * nodes - self.nodes + 1) * self.half
        last, charge, (real, imaginary) = 0, np.zeros_like(x), self.pole
        for g in change:
            wave = 2 * g * (self.amplitude[0] * x - self.amplitude[1] * y)
            charge += self.charged[0] * g * g + 2 * self.charged[1] * g * last - (-wave >> POINT)
            x, last = x + (g << POINT), g
            x, y = real * x - imaginary * y >> POLE, imaginary * x + real * y >> POLE
        shares, away = self.shares(np.stack([x, y]))
        return shares, (charge + self._charge_of(away + 2 * len(change)))[:, None]

    def _charge_of(self, away: Table) -> Table:
        return np.asarray(-(-self.slope * away >> POINT))

    def shares(self, points: Table) -> tuple[scipy.sparse.csr_array, Table]:
        """Shares of the grid's points, in parts of `2^_SHARE`, and how far their mean is from some points at most.

        A point is moved into the grid, and shared among the corners of its cell. Along each axis its share of the far
        corners is rounded down, by less than one part.
        """
        edge, cell = (self.nodes - 1) * self.half, 2 * self.half
        inside = np.clip(points, -edge, edge)
        cells = np.minimum((inside + edge) // cell, self.nodes - 2)
        along, across = (inside + edge - cells * cell << _SHARE) // cell
        both = along * across >> _SHARE
        near = (1 << _SHARE) - along - across + both
        corner = cells[0] * self.nodes + cells[1]
        corners = np.stack([corner, corner + self.nodes, corner + 1, corner + self.nodes + 1], axis=1)
        parts = np.stack([near, along - both, across - both, both], axis=1)
        where = (corners.ravel(), np.arange(0, 4 * len(corner) + 1, 4))
        shares = scipy.sparse.csr_array((parts.ravel(), *where), shape=(len(corner), self.nodes**2))
        return shares, np.abs(points - inside).sum(axis=0) + 2 * ((cell >> _SHARE) + 1)


def _decay(pole: tuple[int, int]) -> int:
    """At most `1 - |p|`, in units of `2^(-2 POLE)`."""
    return (1 << 2 * POLE) - isqrt((pole[0] ** 2 + pole[1] ** 2) << 2 * POLE) - 1


def _mixed(shares: scipy.sparse.csr_array, values: Table) -> Table:
    """Means of values, rounded up."""
    return np.asarray(-(-(shares @ values) >> _SHARE))


def _whole(values: Table) -> Table:
    """The table at all points of the grid.

    Raises:
        ValueError: sums of its values' shares might wrap.
    """
    if int(np.abs(values).max()) > 1 << _VALUE:
        raise ValueError("a value is so large that a sum might wrap")
    return np.concatenate([values, values.transpose(0, 2, 1)[::-1]])


def _best(moved: Table, axis: int, out_of: list[list[int]]) -> Table:
    """The largest over the rows out of every state of one of the two counts."""
    rows = np.moveaxis(moved, axis, 0)
    return np.moveaxis(np.stack([rows[possible].max(axis=0) for possible in out_of]), 0, axis)
