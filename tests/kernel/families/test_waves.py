"""What a changed item is charged through a wave: against every change, for any wave, grid, ticks and cycle."""

from __future__ import annotations

import cmath
from itertools import pairwise, product

import numpy as np
import pytest

from dpwindows.ask.privacy import ItemLevel
from dpwindows.ask.queries import Rolling
from dpwindows.kernel.dearest_path import dearest_path
from dpwindows.kernel.families.norms import autocorrelation
from dpwindows.kernel.families.patterns import rolling_patterns_period_l2
from dpwindows.kernel.families.signed_patterns import SignedLags
from dpwindows.kernel.families.waves import POINT, POLE, Waves, waves_bound
from dpwindows.kernel.maps.filters import Filter
from dpwindows.strategies.notch_filter import integer_taps
from dpwindows.strategies.search.wave_search import good_waves
from dpwindows.strategies.search.witnesses import searched
from tests.kernel.cases import bound_of
from tests.kernel.item_changes import costs, item_counts
from tests.single_item import Ints

UNIT = 1 << POINT


def bounded(waves: Waves, settling: int = 10**6, cycle: int = 12) -> int:
    return dearest_path(waves, settling=settling, cycle=cycle, tick=cycle)


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


@pytest.mark.quick(22)
@pytest.mark.parametrize("seed", range(160))
def test_no_change_exceeds_the_bound_of_any_proposal(seed: int) -> None:
    """Random taps and waves that have nothing to do with them, coarse grids that are too small, ticks and cycles."""
    rng = np.random.default_rng(seed)
    length, steps = int(rng.integers(2, 7)), int(rng.integers(3, 9))
    pole = complex(*rng.uniform(-0.65, 0.65, 2))
    if seed % 2:
        taps = waving_taps(rng, pole, steps + 12)
    else:
        taps = (540, *(60 * int(tap) for tap in rng.integers(-9, 10, int(rng.integers(1, 8)))))
    every, nodes, reach = int(rng.integers(1, 4)), 2 * int(rng.integers(1, 10)), float(rng.uniform(0.3, 6))
    size = complex(*rng.uniform(-1, 1, 2)) * autocorrelation(taps)[0] * 0.3
    true = costs(taps, item_changes(length, steps)).max()
    for bits in (60, autocorrelation(taps)[0].bit_length() - 3):
        lags = SignedLags.of(taps, steps, bits)
        witness = *whole(pole, 1 << POLE), *whole(size, 2.0**-lags.shift), nodes, half_of(nodes, reach), every
        waves = Waves(lags, steps, length, witness)
        for cycle in ((10**6, every), (int(rng.integers(0, 4)), every * int(rng.integers(1, 3)))):
            assert bounded(waves, *cycle) << lags.shift >= true


@pytest.mark.parametrize("seed", range(12))
def test_on_a_fine_grid_the_bound_is_nearly_the_truth(seed: int) -> None:
    rng = np.random.default_rng(seed)
    length, steps = 2 + seed % 4, 8
    pole = complex(*whole(cmath.rect(rng.uniform(0.3, 0.7), rng.uniform(0.5, 2.5)), 1 << POLE)) / (1 << POLE)
    taps = waving_taps(rng, pole, 60)
    lags = autocorrelation(taps)
    powers = pole ** np.arange(2, 60)
    listed = np.stack([powers.real, powers.imag], axis=1)
    cosine, sine = np.linalg.lstsq(listed, np.array(lags[2:], dtype=np.float64), rcond=None)[0]
    reach = 1.05 * abs(pole) / (1 - abs(pole))
    true = costs(taps, item_changes(length, steps)).max()
    size = whole(complex(cosine, -sine), 1)
    known = SignedLags.of(taps, steps)
    waves = Waves(known, steps, length, (*whole(pole, 1 << POLE), *size, 60, half_of(60, reach), 1))
    assert abs(waves.charged[1] - 2 * (lags[1] - (complex(*size) * pole).real)) <= 2
    assert true <= bounded(waves) <= 1.02 * true
    # What leaves a grid that is too small is charged for it, and ticks that are rare only loosen.
    small = Waves(known, steps, length, (*whole(pole, 1 << POLE), *size, 40, half_of(60, reach) // 4, 1))
    rare = Waves(known, steps, length, (*whole(pole, 1 << POLE), *size, 60, half_of(60, reach), length - 1))
    assert true <= min(bounded(small), bounded(rare) * 1.001)


@pytest.mark.parametrize("nodes", [2, 4, 12])
@pytest.mark.parametrize("half", [1, 1000, 3 << POINT])
def test_shares_have_a_point_for_their_mean_but_for_what_is_told(nodes: int, half: int) -> None:
    waves = Waves(SignedLags((5, 0, 0), 0), 6, 2, (2048, 400, 0, 0, nodes, half, 1))
    grid = (2 * np.indices((nodes, nodes)).reshape(2, -1) - nodes + 1) * half
    edge = (nodes - 1) * half
    around = np.random.default_rng(nodes).integers(-edge * 4 // 3 - 9, edge * 4 // 3 + 9, (2, 2000))
    points = np.concatenate([around, grid], axis=1)
    corners, parts, away = waves._shares(points)
    assert (parts >= 0).all()
    assert (parts.sum(axis=1) == 1 << 20).all()
    missed = np.abs(points - (grid[:, corners] * parts).sum(axis=-1) / 2**20).sum(axis=0)
    outside = np.maximum(np.abs(points) - edge, 0).sum(axis=0)
    assert (missed <= away).all()
    assert (away <= outside + 4 * half / 2**20 + 2).all()


@pytest.mark.parametrize("near", [-1, 0, 1])
def test_rounding_is_against_us(near: int) -> None:
    """Without a wave the bound is the truth, but for what is added to each place."""
    changes = item_changes(2, 6)
    lags = SignedLags((5, near, 0), 0)
    for every in (1, 2):
        waves = Waves(lags, 6, 2, (2048, 400, 0, 0, 2, 2 * UNIT, every))
        place, beside = waves.charged
        assert (place, beside) == (5 + 2 * 2, 2 * near)
        true = (place * changes**2).sum(axis=1) + beside * (changes[:, 1:] * changes[:, :-1]).sum(axis=1)
        # The slope is that of an amplitude of one.
        assert true.max() <= bounded(waves) <= true.max() + 7
    # What lags are off is added, rounded up, for E and for e.
    left = Waves(SignedLags((37, -9, 4, -2), 0), 4, 2, (2048, 400, 0, 0, 2, 1000, 1))
    assert left.charged == (37 + 2 * (6 + 2), -18)


@pytest.mark.parametrize("seed", range(6))
def test_what_is_left_is_at_most_what_the_table_holds_anywhere(seed: int) -> None:
    """One place before the end, exactly: from every point of the grid and every state, along every path."""
    rng = np.random.default_rng(seed)
    pole, size = (int(rng.integers(-1500, 1500)), int(rng.integers(-1500, 1500))), (700, -300)
    lags = SignedLags((900, int(rng.integers(-200, 200)), 0), 0)
    waves = Waves(lags, 3, 3, (*pole, *size, 4, 2 * UNIT, 1))
    (place, near), table = waves.charged, waves.before(1, waves.last)
    grid = [2 * complex(x, y) for x in (-3, -1, 1, 3) for y in (-3, -1, 1, 3)]
    # By row: the last g, and what g may be next. First both[0], later, both[1], later, both[2]; then one, and none.
    everything, free = (-1, 0, 1), (0, 1)
    rows = [(0, everything), None, None, (0, free), None, (0, free), (1, everything), (1, free), (1, free)]
    for at, row in [*enumerate(rows), (-1, (0, everything))]:
        for point, z in enumerate(grid):
            if row is not None:
                last, possible = row
                wave = 2 * (complex(*size) * z).real
                least = max(place * g * g + near * g * last + g * wave for g in possible)
                assert least - 1e-6 <= table[at, point] <= least + 4 + 3 * waves.slope / UNIT * 4


def proposed(taps: tuple[int, ...], length: int, steps: int, **others: int) -> Waves:
    """What a filter's search proposes, but for some numbers of it."""
    lags = SignedLags.of(taps, steps, 28)
    names = ("real", "imaginary", "cosine", "sine", "nodes", "half", "every")
    witness = dict(zip(names, good_waves(lags, steps, length), strict=True)) | others
    return Waves(lags, steps, length, tuple(witness.values()))


def test_a_finer_grid_and_ticks_at_every_place_only_tighten() -> None:
    taps = integer_taps(7, 120, 20)
    reach = 39 * good_waves(SignedLags.of(taps, 120, 28), 120, 7)[5]
    bounds = [bounded(proposed(taps, 7, 120, nodes=nodes, half=reach // (nodes - 1))) for nodes in (8, 16, 32)]
    assert all(finer < coarser for coarser, finer in pairwise(bounds))
    assert bounded(proposed(taps, 7, 120)) < bounded(proposed(taps, 7, 120, every=2))


@pytest.mark.slow
def test_cycles_cost_next_to_nothing() -> None:
    taps = integer_taps(7, 1000, 24)
    bound = waves_bound(taps, 7, 1000, searched)
    assert bound is not None
    waves = proposed(taps, 7, 1000)
    shift = SignedLags.of(taps, 1000, 28).shift
    plain = bounded(waves)
    assert plain <= bound / 2.0**shift <= 1.001 * plain
    # A cycle that begins too early rises more.
    assert bounded(waves, 4, 6) > bound / 2.0**shift


@pytest.mark.quick(1)
@pytest.mark.parametrize("length", [2, 7, 28, 40])
def test_no_item_that_a_search_finds_exceeds_the_bound(length: int) -> None:
    """Runs that take turns, alone and with gaps, come near it."""
    steps = 365
    taps = integer_taps(length, steps, 24)
    bound = bound_of(rolling_patterns_period_l2, Rolling(length), Filter(taps), steps, (1,), ItemLevel())
    assert bound == waves_bound(taps, length, steps, searched)
    lags = np.array((autocorrelation(taps) + [0] * steps)[:steps], dtype=np.float64)
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


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        *(({"real": real, "imaginary": other}, "no table") for real, other in ((4096, 0), (3700, 2500), (-4096, 1))),
        *(({"nodes": nodes}, "no table") for nodes in (3, 0)),
        *(({"half": half}, "no table") for half in (0, -1)),
        ({"every": 0}, "no table"),
        ({"length": 1}, "no table"),
        ({"places": 1}, "no table"),
        ({"length": 10_000, "nodes": 64}, "too large"),
        ({"cosine": 1 << 34}, "might wrap"),
        ({"half": 1 << 42}, "might wrap"),
        ({"first": 1 << 43}, "too large"),
        ({"beside": -1 << 42}, "too large"),
    ],
    ids=str,
)
def test_proposals_that_prove_nothing_are_refused(changed: dict[str, int], match: str) -> None:
    numbers = {"real": 2048, "imaginary": 800, "cosine": 100, "sine": 0, "nodes": 4, "half": UNIT, "every": 1}
    others = {"places": 3, "length": 3, "first": 400, "beside": 100}
    given = numbers | others | changed
    with pytest.raises(ValueError, match=match):
        Waves(
            SignedLags((given["first"], given["beside"], 50), 0),
            given["places"],
            given["length"],
            [given[name] for name in numbers],
        )


def test_values_whose_sums_might_wrap_are_refused() -> None:
    waves = Waves(SignedLags((400, 100, 50), 0), 3, 3, (2048, 800, 100, 0, 4, UNIT, 1))
    for refused in (waves.largest_entry, lambda table: waves.before(1, table)):
        for value in ((1 << 42) + 1, -(1 << 42) - 1):
            with pytest.raises(ValueError, match="might wrap"):
                refused(waves.last + value)


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
    answer += (int(rng.integers(0, 1 << 28)), int(rng.integers(0, 4)))
    bound = waves_bound(taps, 3, 7, lambda question: answer)
    assert bound is None or bound >= true
