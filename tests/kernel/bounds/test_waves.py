"""What a changed item is charged through a wave: against every change, for any wave, grid, jump, clock and cycle."""

from __future__ import annotations

import cmath
import math
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest

from dpwindows.kernel.bounds import pattern_sensitivity
from dpwindows.kernel.bounds.pattern_sensitivity import rolling_patterns_period_l2, waves_bound
from dpwindows.kernel.bounds.sensitivity import autocorrelation
from dpwindows.kernel.bounds.waves import Cycle, Grid, Paths, Wave, Waves
from dpwindows.kernel.untrusted.wave_search import good_waves
from dpwindows.strategies.notch_filter import integer_taps
from tests.kernel.bounds.test_signed_patterns import costs, item_counts
from tests.single_item import Ints

NEVER = Cycle(10**6, 1)


def item_changes(length: int, steps: int) -> Ints:
    """Every change that one item can make within all steps, for k = 1."""
    counts = item_counts(length, steps, steps)
    return np.unique((counts[:, None] - counts[None]).reshape(-1, steps), axis=0)


def waving_taps(rng: np.random.Generator, pole: complex, count: int) -> tuple[int, ...]:
    """Taps that are one wave but for the first, and rounding."""
    turned = np.real(rng.normal() * cmath.exp(6j * rng.random()) * pole ** np.arange(count))
    turned[0] = 1.0
    return tuple(int(tap) for tap in np.rint(turned * 2.0**11))


def lags_of(taps: tuple[int, ...], steps: int) -> list[float]:
    return [float(lag) for lag in (autocorrelation(taps) + [0] * steps)[:steps]]


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
    wave = Wave(pole, complex(*rng.uniform(-1, 1, 2)) * lags[0] * 0.3)
    grid = Grid(2 * int(rng.integers(1, 10)), float(rng.uniform(0.3, 6)))
    paths = Paths(length, int(rng.integers(1, 5)), int(rng.integers(1, 3)))
    true = costs(taps, item_changes(length, steps)).max()
    for cycle in (NEVER, Cycle(int(rng.integers(0, 4)), int(rng.integers(1, 3)))):
        bound = Waves.of(lags, wave, grid, paths).bound(steps, cycle)
        assert bound is None or bound >= true


@pytest.mark.parametrize("seed", range(12))
def test_on_a_fine_grid_the_bound_is_nearly_the_truth(seed: int) -> None:
    rng = np.random.default_rng(seed)
    length, steps = 2 + seed % 4, 8
    pole = cmath.rect(rng.uniform(0.3, 0.7), rng.uniform(0.5, 2.5))
    taps = waving_taps(rng, pole, 60)
    lags = lags_of(taps, 60)
    powers = pole ** np.arange(2, 60)
    cosine, sine = np.linalg.lstsq(np.stack([powers.real, powers.imag], axis=1), np.array(lags[2:]), rcond=None)[0]
    reach = 1.05 * abs(pole) / (1 - abs(pole))
    true = costs(taps, item_changes(length, steps)).max()
    for jump in (1, 2):
        waves = Waves.of(lags[:steps], Wave(pole, complex(cosine, -sine)), Grid(60, reach), Paths(length, jump, 1))
        assert waves.near == pytest.approx(lags[1] - (waves.wave.amplitude * pole).real)
        found = waves.bound(steps, NEVER)
        assert found is not None
        assert true <= found <= 1.02 * true
        # What leaves a grid that is too small is charged for it.
        smaller = replace(waves, grid=Grid(40, reach / 4)).bound(steps, NEVER)
        assert smaller is None or smaller >= true


@pytest.mark.parametrize("nodes", [2, 4, 12])
def test_shares_have_a_point_for_their_mean_but_for_what_is_told(nodes: int) -> None:
    grid = Grid(nodes, 3.0)
    whole = np.concatenate([grid.half, -grid.half[:, ::-1]], axis=1)
    assert len({tuple(point) for point in whole.T}) == nodes**2
    assert np.abs(whole).max() == 3.0
    points = np.concatenate([np.random.default_rng(nodes).uniform(-4, 4, (2, 2000)), whole], axis=1)
    shares, away = grid.shares(points)
    parts = shares.toarray()
    assert (parts >= 0).all()
    assert (parts == np.rint(parts)).all()
    assert (parts.sum(axis=1) == 2**20).all()
    missed = np.abs(points - whole @ parts.T / 2**20).sum(axis=0)
    outside = np.maximum(np.abs(points) - 3, 0).sum(axis=0)
    assert (missed <= away).all()
    assert (away <= outside + 1e-5 * grid.cell + 1e-12).all()


def test_rounding_is_against_us() -> None:
    """Without a wave the bound is the truth, and a unit more for each jump and for the start."""
    g = np.array(list(product((-1, 0, 1), repeat=6)))
    wave, grid = Wave(0.5 + 0.1j, 0j), Grid(2, 1.0)
    for jump, near in product((1, 3), (-1, 0, 1)):
        true = (5 * g**2).sum(axis=1) + 2 * near * (g[:, 1:] * g[:, :-1]).sum(axis=1)
        assert Waves(5.0, near, wave, grid, Paths(1, jump, 1)).bound(6, NEVER) == true.max() + 6 // jump + 1
    waves = Waves.of([4.0, 1.0, -0.5, 0.25], wave, grid, Paths(1, 1, 1))
    assert 5.5 < waves.place < 5.6
    assert waves.near == 1.0


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


def test_a_finer_grid_and_a_clock_of_one_step_only_tighten() -> None:
    taps = integer_taps(7, 120, 20)
    lags = [lag / 2.0**22 for lag in lags_of(taps, 120)]
    proposed = good_waves(lags, 7)
    assert proposed is not None
    waves, _ = proposed
    found = [replace(waves, grid=replace(waves.grid, nodes=nodes)).bound(120, NEVER) or 0 for nodes in (8, 16, 32)]
    assert all(finer < coarser for coarser, finer in pairwise(found))
    slower = replace(waves, paths=Paths(7, 2, 2)).bound(120, NEVER)
    assert slower is not None
    assert (replace(waves, paths=Paths(7, 2, 1)).bound(120, NEVER) or 0) < slower


@pytest.mark.slow
def test_cycles_cost_next_to_nothing() -> None:
    taps = integer_taps(7, 1000, 24)
    found = waves_bound(taps, 7, 1000)
    lags = [lag / 2.0**30 for lag in lags_of(taps, 1000)]
    proposed = good_waves(lags, 7)
    assert proposed is not None
    plain = proposed[0].bound(1000, NEVER)
    assert found is not None
    assert plain is not None
    assert plain <= found / 2.0**30 <= 1.001 * plain
    # A cycle that begins too early rises more.
    early = proposed[0].bound(1000, Cycle(2, 3))
    assert early is not None
    assert early > found / 2.0**30


@pytest.mark.quick(1)
@pytest.mark.parametrize("length", [2, 7, 28, 40])
def test_no_item_that_a_search_finds_exceeds_the_bound(length: int) -> None:
    """Runs that take turns, alone and with gaps, come near it."""
    steps = 365
    taps = integer_taps(length, steps, 24)
    bound = rolling_patterns_period_l2(taps, length, steps, steps, (1,))
    assert bound == waves_bound(taps, length, steps)
    lags = np.array(lags_of(taps, steps))
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
    lags, wave, grid, paths = [4.0, 1.0, 0.5], Wave(0.5 + 0.2j, 1 + 0j), Grid(4, 2.0), Paths(3, 2, 1)
    for pole in (1 + 0j, 0.9 + 0.6j, complex(math.nan, 0)):
        with pytest.raises(ValueError, match="no table"):
            Waves.of(lags, Wave(pole, 1 + 0j), grid, paths)
    for nodes, reach in ((3, 1.0), (0, 1.0), (4, 0.0), (4, -1.0), (4, math.nan)):
        with pytest.raises(ValueError, match="no table"):
            Waves.of(lags, wave, Grid(nodes, reach), paths)
    for length, jump, clock in ((0, 1, 1), (1, 0, 1), (1, 1, 0)):
        with pytest.raises(ValueError, match="no table"):
            Waves.of(lags, wave, grid, Paths(length, jump, clock))
    with pytest.raises(ValueError, match="rounding errors"):
        Waves.of(lags, replace(wave, amplitude=1e14 + 0j), grid, paths)
    for settling, jumps in ((-1, 1), (0, 0), (0, -1)):
        with pytest.raises(ValueError, match="cycle"):
            Waves.of(lags, wave, grid, paths).bound(9, Cycle(settling, jumps))
    # So far outside a grid that is too small what is left is charged too much to be counted exactly.
    assert Waves.of(lags, Wave(0.9 + 0.3j, 1e7 + 0j), Grid(2, 0.1), paths).bound(400, NEVER) is None


def test_filters_that_are_no_wave_are_bounded_otherwise() -> None:
    taps = tuple(int(tap) for tap in np.random.default_rng(1).integers(-50, 50, 30))
    assert waves_bound((*taps, 1000), 7, 100) is None
    assert waves_bound((1,), 7, 100) is None
    assert waves_bound((3, 1), 2, 4) is None
    # Its tail is so small that the wave would have to be huge.
    assert waves_bound((4096, -1221, -344, 988, 1), 49, 258) is None


@pytest.mark.parametrize("cycle", [(158, 99), (10, 7)])
def test_proposals_are_made_anew_of_numbers_that_do_not_wrap(
    cycle: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unsigned ones would wrap where places are counted down, and leave a table of zeros in the bound."""
    taps = integer_taps(7, 200, 24)
    plain = waves_bound(taps, 7, 200)

    def proposed(lags: list[float], length: int) -> object:
        found = good_waves(lags, length)
        return None if found is None else (found[0], Cycle(*map(np.uint8, cycle)))  # type: ignore[arg-type]

    monkeypatch.setattr(pattern_sensitivity, "good_waves", proposed)
    found = waves_bound(taps, 7, 200)
    assert plain is not None
    assert found is not None
    assert found > 0.95 * plain
