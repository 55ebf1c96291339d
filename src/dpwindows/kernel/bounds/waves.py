r"""How far an item that changes can move rolling counts, through a filter whose autocorrelation is a decaying wave.

As in `dpwindows.kernel.bounds.signed_patterns`, g = f - f' for two 0/1 vectors in the places 1..N costs `g'Gg`, with
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

**Tables** (`Waves.bound`). A table holds a V(s, x) for each s and each point x of a grid, at least `R(n, s, x)`. Then
for every y and any shares >= 0 of the points that sum to 1

    R(n, s, y) <= sum_x share_x V(s, x) + slope |y - sum_x share_x x|,

by convexity and by the slope. To go u places back take, for everything that f and f' can do in u places from a state s
and a point x, what is charged for these, and this bound on what is left at the y they lead to. The largest is a table
for n + u places. The table of nothing but 0 is one for n = 0. Raising a table by a number raises the next one by it,
and a table that is larger everywhere makes the next one larger. So where tables rose by at most some number over some
places, they rise by at most as much over as many places more.

Exchanging f and f' negates g and z, and changes no charge. So one half of a grid that is symmetric about 0 stands for
the other: `V((s, s'), x) = V((s', s), -x)`.

**Numbers.** Values are whole numbers up to 2^32 and shares whole parts of 2^20: products and sums are exact in
floating-point numbers, in any order. What is charged for u places is computed in some hundreds of floating-point
operations on numbers below 2^40, with an error far below 1; 1 is added, and the sum is rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
import scipy
from numpy.typing import NDArray

Values = NDArray[np.float64]
Pattern = tuple[int, ...]

# Bits of shares, and of values.
_SHARE_BITS, _BITS = 20, 32


@dataclass(frozen=True)
class Wave:
    """`Re(amplitude pole^d)`."""

    pole: complex
    amplitude: complex

    @property
    def slope(self) -> float:
        """How much what is left changes with z at most."""
        return 2 * abs(self.amplitude) / (1 - abs(self.pole))

    def values(self, point: Values) -> Values:
        """`Re(amplitude z)` at points z, their two parts in the first axis."""
        return np.asarray(self.amplitude.real * point[0] - self.amplitude.imag * point[1])

    def turned(self, point: Values) -> Values:
        """`pole z`. Products are of real numbers, one by one: so every machine rounds alike."""
        real, other = self.pole.real, self.pole.imag
        return np.stack([real * point[0] - other * point[1], other * point[0] + real * point[1]])


@dataclass(frozen=True)
class Paths:
    """What one count can do in `jump` places. State 0: it is 0. State 1+i: it is 1, and held for `i clock` places.

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
class Grid:
    """Points z whose two parts are so many nodes each, an even number, evenly from -reach to reach."""

    nodes: int
    reach: float

    @property
    def cell(self) -> float:
        """How far apart neighbouring nodes are."""
        return 2 * self.reach / (self.nodes - 1)

    @property
    def half(self) -> Values:
        """The first half of the points, shape (2, points / 2); the others are these, negated and reversed."""
        nodes = np.indices((self.nodes, self.nodes)).reshape(2, -1)[:, : self.nodes**2 // 2]
        return np.asarray((2 * nodes - self.nodes + 1) * (self.cell / 2))

    def shares(self, points: Values) -> tuple[scipy.sparse.csr_array, Values]:
        """Shares of the grid's points, in parts of `2^_SHARE_BITS`, and how far their mean is from some points at most.

        A point is moved into the grid, and shared among the corners of its cell. Shares are rounded down, and what is
        missing, less than 1 for each of four, is added to the first: the mean moves by less than 4 such parts of a cell
        along each axis.
        """
        inside = np.clip(points, -self.reach, self.reach)
        places = (inside + self.reach) / self.cell
        cells = np.clip(np.floor(places), 0, self.nodes - 2)
        parts = np.clip(places - cells, 0, 1)
        corners = [(i, j) for i in (0, 1) for j in (0, 1)]
        found = [(parts[0] if i else 1 - parts[0]) * (parts[1] if j else 1 - parts[1]) for i, j in corners]
        whole = np.floor(np.array(found) * 2.0**_SHARE_BITS)
        whole[0] += 2.0**_SHARE_BITS - whole.sum(axis=0)
        columns = np.concatenate([(cells[0] + i) * self.nodes + cells[1] + j for i, j in corners]).astype(np.intp)
        rows = np.tile(np.arange(points.shape[1]), len(corners))
        shares = scipy.sparse.csr_array((whole.ravel(), (rows, columns)), shape=(points.shape[1], self.nodes**2))
        return shares, np.abs(points - inside).sum(axis=0) + 8 * 2.0**-_SHARE_BITS * self.cell


@dataclass(frozen=True)
class Cycle:
    """Jumps after which a cycle begins, and jumps in it; what follows is taken to rise as much as over that cycle."""

    settling: int
    jumps: int


@dataclass(frozen=True)
class Waves:
    """Two counts, and what they are charged (module docstring).

    Attributes:
        place: `r_0 + 2E`, or a little more.
        near: e.
        wave: the wave.
        grid: where tables have values.
        paths: what each count can do.

    Raises:
        ValueError: these make no table, or numbers are large enough for rounding errors of 1.
    """

    place: float
    near: float
    wave: Wave
    grid: Grid
    paths: Paths

    @classmethod
    def of(cls, lags: Sequence[float], wave: Wave, grid: Grid, paths: Paths) -> Waves:
        """What an autocorrelation, `r_d` from d = 0 to N-1, is charged with a wave."""
        point, unlike = np.array([1.0, 0.0]), []
        for lag in lags[1:]:
            point = wave.turned(point)
            unlike.append(lag - float(wave.values(point)))
        # Each has an error below 2^-10.
        place = lags[0] + 2 * math.fsum(map(abs, unlike[1:])) + len(lags) * 2.0**-8
        return cls(place, unlike[0], wave, grid, paths)

    def __post_init__(self) -> None:
        grid, paths = self.grid, self.paths
        numbers = grid.nodes // 2, paths.length, paths.jump, paths.clock
        if not (abs(self.wave.pole) < 1 <= min(numbers) and grid.nodes % 2 == 0 and grid.reach > 0):
            raise ValueError(f"no table is made of {self.wave}, {grid}, {paths}")
        sizes = self.place, abs(self.near), self.wave.slope * (grid.reach + paths.jump)
        if not max(sizes) <= 2.0**40:
            raise ValueError(f"rounding errors might not be below 1, with {sizes}")

    def bound(self, places: int, cycle: Cycle) -> int | None:
        """The most that so many places are charged, from no counts and z = 0; None if a value is too large.

        Places that are missing to a whole number of jumps are added before the first: what begins later is possible.

        Raises:
            ValueError: the cycle holds no jumps.
        """
        if cycle.settling < 0 or cycle.jumps < 1:
            raise ValueError(f"a cycle needs jumps, got {cycle}")
        left = -(-places // self.paths.jump)
        begins, ends = left - cycle.settling, left - cycle.settling - cycle.jumps
        values = marked = np.zeros((self.grid.nodes**2 // 2, self.paths.states, self.paths.states))
        while left:
            if left == begins:
                marked = values
            if left == ends >= cycle.jumps:
                values = values + left // cycle.jumps * max(0.0, float((values - marked).max()))
                left %= cycle.jumps
            else:
                values, left = self._earlier(values), left - 1
            if not np.abs(values).max() <= 2.0**_BITS:
                return None
        shares, away = self.grid.shares(np.zeros((2, 1)))
        start = float((shares @ _whole(values)[:, 0, 0])[0]) * 2.0**-_SHARE_BITS
        return max(0, math.ceil(start + self.wave.slope * float(away[0])) + 1)

    def _earlier(self, values: Values) -> Values:
        """The table a jump before."""
        after, rows, out_of = _whole(values), self.paths.rows, self.paths.out_of
        states = np.array([state for _, state in rows])
        moved = np.empty((len(values), len(rows), len(rows)))
        for f, other, (shares, charge) in self._jumps:
            there = after[:, states[f, None], states[None, other]]
            left = np.ceil(shares @ there.reshape(len(after), -1) * 2.0**-_SHARE_BITS) + charge
            moved[:, f, other] = left.reshape(len(values), *there.shape[1:])
        found = _best(_best(moved, 1, out_of), 2, out_of)
        # The last g is 1 where f is 1 and f' is not, -1 where it is the other way round, and otherwise 0.
        first = np.array([pattern[0] for pattern, _ in rows])
        near = 2 * self.near * (first[:, None] - first[None, :])
        off = out_of[0]
        found[:, 1:, 0] = _best(moved[:, :, off] + np.ceil(near[:, off]), 1, out_of[1:]).max(axis=2)
        found[:, 0, 1:] = _best(moved[:, off] + np.ceil(-near[off]), 2, out_of[1:]).max(axis=1)
        return found

    @cached_property
    def _jumps(self) -> list[tuple[slice, slice, tuple[scipy.sparse.csr_array, Values]]]:
        """For every two patterns of f and f': the rows of either, and `_jump` for the g that they make."""
        every = [pattern for pattern, _ in self.paths.rows]
        rows = {one: slice(every.index(one), every.index(one) + every.count(one)) for one in dict.fromkeys(every)}
        known: dict[Pattern, tuple[scipy.sparse.csr_array, Values]] = {}
        found = []
        for f, other in product(rows, repeat=2):
            change = tuple(one - two for one, two in zip(f, other, strict=True))
            if change not in known:
                known[change] = self._jump(change)
            found.append((rows[f], rows[other], known[change]))
        return found

    def _jump(self, change: Pattern) -> tuple[scipy.sparse.csr_array, Values]:
        points, last = self.grid.half, 0
        charge = np.zeros(points.shape[1])
        for g in change:
            charge += self.place * g * g + 2 * self.near * g * last + 2 * g * self.wave.values(points)
            points[0] += g
            points, last = self.wave.turned(points), g
        shares, away = self.grid.shares(points)
        charge = np.ceil(charge + self.wave.slope * away + 1)
        if not np.abs(charge).max() <= 2.0**_BITS:
            raise ValueError("a charge is so large that sums might not be exact")
        return shares, charge[:, None]


def _whole(values: Values) -> Values:
    """The table at all points of the grid."""
    return np.concatenate([values, values.transpose(0, 2, 1)[::-1]])


def _best(moved: Values, axis: int, out_of: Sequence[Sequence[int]]) -> Values:
    """The largest over the rows out of every state of one of the two counts."""
    rows = np.moveaxis(moved, axis, 0)
    best = rows[[possible[0] for possible in out_of]]
    for state, possible in enumerate(out_of):
        if len(possible) > 1:
            best[state] = rows[list(possible)].max(axis=0)
    return np.moveaxis(best, 0, axis)
