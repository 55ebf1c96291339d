"""What a changed item is charged through a wave: against every change, for any wave, grid, jump, clock and cycle."""

from __future__ import annotations

import cmath
import math
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest

from dpwindows.ask.privacy import ItemLevel
from dpwindows.ask.queries import Rolling
from dpwindows.kernel.dearest_path import dearest_path
from dpwindows.kernel.families.norms import autocorrelation
from dpwindows.kernel.families.patterns import rolling_patterns_period_l2, waves_bound
from dpwindows.kernel.families.waves import POINT, POLE, Paths, Waves
from dpwindows.kernel.maps.filters import Filter
from dpwindows.strategies.notch_filter import integer_taps
from dpwindows.strategies.search.wave_search import good_waves
from dpwindows.strategies.search.witnesses import searched
from tests.kernel.cases import bound_of
from tests.kernel.item_changes import costs, item_counts
from tests.single_item import Ints

NEVER = (10**6, 1)
UNIT = 1 << POINT


def bounded(waves: Waves, cycle: tuple[int, int] = NEVER) -> int:
    return dearest_path(waves, settling=cycle[0], cycle=cycle[1])


def whole(number: complex, unit: float) -> tuple[int, int]:
    return round(number.real * unit), round(number.imag * unit)


def half_of(nodes: int, reach: float) -> int:
    """Half of how far apart nodes are that reach so far."""
    return int(reach * UNIT / (nodes - 1))


def item_changes(length: int, steps: int) -> Ints:
    """Every change that one item can make within all steps, for k = 1."""
    counts = item_counts(length, steps, steps)
    return np.unique((counts[:, None] - counts[None]).reshape(-1, steps), axis=0)


def waving_taps(rng: np.random.Generator, pole: complex, count: int) -> tuple[int, ...]:
    """Taps that are one wave but for the first, and rounding."""
    turned = np.real(rng.normal() * cmath.exp(6j * rng.random()) * pole ** np.arange(count))
    turned[0] = 1.0
    return tuple(int(tap) for tap in np.rint(turned * 2.0**11))


def lags_of(taps: tuple[int, ...], steps: int) -> list[int]:
    return (autocorrelation(taps) + [0] * steps)[:steps]


@pytest.mark.quick(22)
@pytest.mark.parametrize("seed", range(160))
def test_no_change_exceeds_the_bound_of_any_proposal(seed: int) -> None:
    """Random taps and waves that have nothing to do with them, coarse grids that are too small, clocks and cycles."""
    rng = np.random.default_rng(seed)
    length, steps = int(rng.integers(1, 6)), int(rng.integers(3, 9))
    pole = complex(*rng.uniform(-0.65, 0.65, 2))
    if seed % 2:
        taps = waving_taps(rng, pole, steps + 12)
    else:
        taps = (540, *(60 * int(tap) for tap in rng.integers(-9, 10, int(rng.integers(1, 8)))))
    lags = lags_of(taps, steps)
    size = complex(*rng.uniform(-1, 1, 2)) * lags[0] * 0.3
    nodes, reach = 2 * int(rng.integers(1, 10)), float(rng.uniform(0.3, 6))
    paths = Paths(length, int(rng.integers(1, 5)), int(rng.integers(1, 3)))
    true = costs(taps, item_changes(length, steps)).max()
    for shift in (0, 3):
        waves = Waves.of(
            lags, shift, whole(pole, 1 << POLE), whole(size, 2.0**-shift), nodes, half_of(nodes, reach), paths
        )
        for cycle in (NEVER, (int(rng.integers(0, 4)), int(rng.integers(1, 3)))):
            assert bounded(waves, cycle) << shift >= true


@pytest.mark.parametrize("seed", range(12))
def test_on_a_fine_grid_the_bound_is_nearly_the_truth(seed: int) -> None:
    rng = np.random.default_rng(seed)
    length, steps = 2 + seed % 4, 8
    pole = complex(*whole(cmath.rect(rng.uniform(0.3, 0.7), rng.uniform(0.5, 2.5)), 1 << POLE)) / (1 << POLE)
    taps = waving_taps(rng, pole, 60)
    lags = lags_of(taps, 60)
    powers = pole ** np.arange(2, 60)
    listed = np.stack([powers.real, powers.imag], axis=1)
    cosine, sine = np.linalg.lstsq(listed, np.array(lags[2:], dtype=np.float64), rcond=None)[0]
    reach = 1.05 * abs(pole) / (1 - abs(pole))
    true = costs(taps, item_changes(length, steps)).max()
    for jump in (1, 2):
        size, paths = whole(complex(cosine, -sine), 1), Paths(length, jump, 1)
        waves = Waves.of(lags[:steps], 0, whole(pole, 1 << POLE), size, 60, half_of(60, reach), paths)
        assert abs(waves.charged[1] - (lags[1] - (complex(*size) * pole).real)) <= 1
        assert true <= bounded(waves) <= 1.02 * true
        # What leaves a grid that is too small is charged for it.
        assert bounded(replace(waves, nodes=40, half=waves.half // 4)) >= true


@pytest.mark.parametrize("nodes", [2, 4, 12])
@pytest.mark.parametrize("half", [1, 1000, 3 << POINT])
def test_shares_have_a_point_for_their_mean_but_for_what_is_told(nodes: int, half: int) -> None:
    waves = Waves((5, 0), (2048, 400), (0, 0), nodes, half, Paths(1, 1, 1), 6)
    grid = (2 * np.indices((nodes, nodes)).reshape(2, -1) - nodes + 1) * half
    edge = (nodes - 1) * half
    around = np.random.default_rng(nodes).integers(-edge * 4 // 3 - 9, edge * 4 // 3 + 9, (2, 2000))
    points = np.concatenate([around, grid], axis=1)
    shares, away = waves.shares(points)
    parts = shares.toarray()
    assert (parts >= 0).all()
    assert (parts.sum(axis=1) == 1 << 22).all()
    missed = np.abs(points - grid @ parts.T / 2**22).sum(axis=0)
    outside = np.maximum(np.abs(points) - edge, 0).sum(axis=0)
    assert (missed <= away).all()
    assert (away <= outside + 4 * half / 2**22 + 2).all()


def test_rounding_is_against_us() -> None:
    """Without a wave the bound is the truth."""
    g = np.array(list(product((-1, 0, 1), repeat=6)))
    for jump, near in product((1, 3), (-1, 0, 1)):
        true = (5 * g**2).sum(axis=1) + 2 * near * (g[:, 1:] * g[:, :-1]).sum(axis=1)
        waves = Waves((5, near), (2048, 400), (0, 0), 2, 2 * UNIT, Paths(1, jump, 1), 6 // jump)
        # The slope is that of an amplitude of one.
        assert true.max() <= bounded(waves) <= true.max() + 7
    # Rounded up, with two for what all lags are off, and two for the one beside.
    assert Waves.of([37, 9, -4, 2], 3, (2048, 400), (0, 0), 2, 1000, Paths(1, 1, 1)).charged == (5 + 2 * (1 + 2), 1)
    assert Waves.of([37, -9, 0, 0], 3, (2048, 400), (0, 0), 2, 1000, Paths(1, 1, 1)).charged == (5 + 2 * 2, -2)


@pytest.mark.parametrize("seed", range(6))
def test_what_is_left_is_at_most_what_the_table_holds_anywhere(seed: int) -> None:
    """One jump before the end, exactly: from every point of the grid and every state, along every path."""
    rng = np.random.default_rng(seed)
    paths = Paths(3, 1 + seed % 3, 1)
    pole, size = (int(rng.integers(-1500, 1500)), int(rng.integers(-1500, 1500))), (700, -300)
    waves = Waves((900, int(rng.integers(-200, 200))), pole, size, 4, 2 * UNIT, paths, 1)
    table = waves.before(1, waves.last)
    grid = [2 * complex(x, y) for x in (-3, -1, 1, 3) for y in (-3, -1, 1, 3)][:8]
    a, p = complex(*size), complex(*pole) / (1 << POLE)
    rows_of = list(enumerate(paths.out_of))
    for (at, start), (f, one), (other, two) in product(enumerate(grid), rows_of, rows_of):
        least = -math.inf
        for rows in product(one, two):
            z, last, charge = start, int(f > 0) - int(other > 0), 0.0
            for g in np.subtract(paths.rows[rows[0]][0], paths.rows[rows[1]][0]):
                charge += 900 * g * g + 2 * waves.charged[1] * g * last + 2 * g * (a * z).real
                z, last = p * (z + g), int(g)
            least = max(least, charge)
        assert least - 1e-6 <= table[at, f, other] <= least + 4


def test_every_change_of_an_item_is_a_path() -> None:
    """And with a clock of one step nothing else is; with a coarser one there is more."""
    for length, jump, clock, steps in product((1, 2, 3, 5), (1, 2, 3), (1, 2), (6,)):
        paths = Paths(length, jump, clock)
        reached: set[tuple[tuple[int, ...], int]] = {((), 0)}
        for _ in range(steps // jump):
            moves = [[paths.rows[row] for row in rows] for rows in paths.out_of]
            reached = {((*past, *pattern), after) for past, state in reached for pattern, after in moves[state]}
        found = {past for past, _ in reached}
        true = {tuple(int(one) for one in count) for count in item_counts(length, steps, steps)}
        assert found >= true
        if clock == 1:
            assert found == true


def proposed(taps: tuple[int, ...], length: int, steps: int, shift: int) -> Waves:
    """What a filter's search proposes."""
    lags = lags_of(taps, steps)
    real, imaginary, cosine, sine, nodes, half, jump, clock = good_waves(lags, shift, length)
    return Waves.of(lags, shift, (real, imaginary), (cosine, sine), nodes, half, Paths(length, jump, clock))


def test_a_finer_grid_and_a_clock_of_one_step_only_tighten() -> None:
    waves = proposed(integer_taps(7, 120, 20), 7, 120, 20)
    reach = waves.half * (waves.nodes - 1)
    bounds = [bounded(replace(waves, nodes=nodes, half=reach // (nodes - 1))) for nodes in (8, 16, 32)]
    assert all(finer < coarser for coarser, finer in pairwise(bounds))
    slower, faster = (bounded(replace(waves, paths=Paths(7, 2, clock), places=60)) for clock in (2, 1))
    assert faster < slower


@pytest.mark.slow
def test_cycles_cost_next_to_nothing() -> None:
    taps = integer_taps(7, 1000, 24)
    bound = waves_bound(taps, 7, 1000, searched)
    assert bound is not None
    waves = proposed(taps, 7, 1000, 26)
    plain = bounded(waves)
    assert plain <= bound / 2.0**26 <= 1.001 * plain
    # A cycle that begins too early rises more.
    assert bounded(waves, (2, 3)) > bound / 2.0**26


@pytest.mark.quick(1)
@pytest.mark.parametrize("length", [2, 7, 28, 40])
def test_no_item_that_a_search_finds_exceeds_the_bound(length: int) -> None:
    """Runs that take turns, alone and with gaps, come near it."""
    steps = 365
    taps = integer_taps(length, steps, 24)
    bound = bound_of(rolling_patterns_period_l2, Rolling(length), Filter(taps), steps, (1,), ItemLevel())
    assert bound == waves_bound(taps, length, steps, searched)
    lags = np.array(lags_of(taps, steps), dtype=np.float64)
    places = np.arange(steps)
    worst = 0.0
    for on, off in product(range(length, 2 * length), range(1, 2 * length, max(1, length // 7))):
        period = on + off
        for shift in range(0, period, max(1, period // 12)):
            counts = [(places + late) % period < on for late in (period, period + shift)]
            for count in counts:
                if count[0] and not count[:length].all():
                    count[: int(np.argmin(count))] = False
            g = counts[0].astype(np.float64) - counts[1]
            pairs = np.correlate(g, g, mode="full")[steps - 1 :]
            worst = max(worst, float(2 * pairs @ lags - pairs[0] * lags[0]))
    assert 0.9 * bound <= worst <= bound


def test_proposals_that_prove_nothing_are_refused() -> None:
    lags, pole, size, paths = [400, 100, 50], (2048, 800), (100, 0), Paths(3, 2, 1)
    for wild in ((4096, 0), (3700, 2500), (-4096, 1)):
        with pytest.raises(ValueError, match="no table"):
            Waves.of(lags, 0, wild, size, 4, UNIT, paths)
    for nodes, half in ((3, UNIT), (0, UNIT), (4, 0), (4, -1)):
        with pytest.raises(ValueError, match="no table"):
            Waves.of(lags, 0, pole, size, nodes, half, paths)
    for length, jump, clock in ((0, 1, 1), (1, 0, 1), (1, 1, 0)):
        with pytest.raises(ValueError, match="no table"):
            Waves.of(lags, 0, pole, size, 4, UNIT, Paths(length, jump, clock))
    with pytest.raises(ValueError, match="no table"):
        Waves.of([400], 0, pole, size, 4, UNIT, paths)
    for large in (Paths(10_000, 1, 1), Paths(1, 8, 1)):
        with pytest.raises(ValueError, match="too large"):
            Waves.of(lags, 0, pole, size, 64, UNIT, large)
    for huge in ({"amplitude": (1 << 34, 0)}, {"half": 1 << 40}, {"charged": (1 << 41, 0)}, {"charged": (1, -1 << 41)}):
        with pytest.raises(ValueError, match="might wrap"):
            replace(Waves.of(lags, 0, pole, size, 4, UNIT, paths), **huge)
    waves = Waves.of(lags, 0, pole, size, 4, UNIT, paths)
    for refused in (waves.largest_entry, lambda table: waves.before(1, table)):
        with pytest.raises(ValueError, match="might wrap"):
            refused(waves.last - (1 << 40) - 1)


def test_filters_that_are_no_wave_are_bounded_otherwise() -> None:
    taps = tuple(int(tap) for tap in np.random.default_rng(1).integers(-50, 50, 30))
    assert waves_bound((*taps, 1000), 7, 100, searched) is None
    assert waves_bound((1,), 7, 100, searched) is None
    assert waves_bound((3, 1), 2, 4, searched) is None
    # Its tail is so small that the wave would have to be huge.
    assert waves_bound((4096, -1221, -344, 988, 1), 49, 258, searched) is None


@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_answered_a_bound_is_no_less_than_what_an_item_moves(seed: int) -> None:
    rng = np.random.default_rng(seed)
    taps = waving_taps(rng, 0.5 + 0.4j, 20)
    true = costs(taps, item_changes(3, 7)).max()
    limits = (1 << 12, 1 << 12, 1 << 22, 1 << 22)
    answer = (*(int(rng.integers(-most, most)) for most in limits), 2 * int(rng.integers(0, 5)))
    answer += (int(rng.integers(0, 1 << 28)), int(rng.integers(0, 4)), int(rng.integers(0, 4)))
    bound = waves_bound(taps, 3, 7, lambda question: answer)
    assert bound is None or bound >= true
