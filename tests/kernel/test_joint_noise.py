"""Noise that is drawn for a whole vector: its law and its cost by enumeration, and its draws against that law."""

from __future__ import annotations

import itertools
import math
import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction

import flint
import numpy as np
import pytest
import scipy

from dpwindows.ask.privacy import ZCDP, ApproxDP, ItemLevel, PureDP
from dpwindows.ask.queries import Rolling
from dpwindows.kernel import joint_noise
from dpwindows.kernel import measure as kernel
from dpwindows.kernel.accounting import CUBE, GAUSSIAN, JOINT, LAPLACE, RANGE, BudgetExceededError, Cost, Law, certify
from dpwindows.kernel.designs import StepDesign
from dpwindows.kernel.families.series import Series
from dpwindows.kernel.joint_noise import RadiusLaw, draw_jointly, radius_law
from dpwindows.kernel.maps.filters import Identity
from dpwindows.kernel.measure import Measurement, add_noise, draw_noise, measure, measure_step
from dpwindows.reading.noise_moments import joint_variance, log_normaliser
from tests.kernel.joint_laws import LAWS, STEPS, Vector, design_of, norm
from tests.single_item import TableAnswers

# Honest draws fail a test of this chance once in a thousand million runs.
RARE = 1e-9


def moves(law: Law, size: int) -> Iterator[Vector]:
    """What one item may change of so many counts: anything by one, or some by one in one direction."""
    if law == CUBE:
        yield from itertools.product((-1, 0, 1), repeat=size)
        return
    for move in itertools.product((0, 1), repeat=size):
        yield move
        yield tuple(-value for value in move)


def box(size: int, reach: int) -> Iterator[Vector]:
    return itertools.product(range(-reach, reach + 1), repeat=size)


def less(one: Vector, other: Vector) -> Vector:
    return tuple(a - b for a, b in zip(one, other, strict=True))


# --- The law, and what it costs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("size", [1, 2, 3])
def test_no_item_changes_a_probability_by_more_than_the_ratio(law: Law, size: int) -> None:
    """P(z) / P(z - v) is a^(N(z) - N(z - v)): at most 1/a for every v and z, and that at z = 0."""
    reached = set()
    for move, z in itertools.product(moves(law, size), box(size, 3)):
        loss = norm(law, less(z, move)) - norm(law, z)
        assert abs(loss) <= norm(law, move) <= 1
        reached.add(loss)
    assert reached == {-1, 0, 1}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_radius_and_uniform_numbers_make_the_law(law: Law, size: int) -> None:
    """Every way to draw a vector with a radius of at most 4, in exact fractions, against the law that is paid for."""
    most, found, radii = 4, Counter[Vector](), radius_law(law, 1.0, size)
    ratio = Fraction(radii.numerator, 1 << radii.bits)
    for radius in range(most + 1):
        if law == RANGE:
            ways = [less(u[1:], (u[0],) * size) for u in itertools.product(range(radius + 1), repeat=size + 1)]
        else:
            ways = list(box(size, radius))
        for z in ways:
            found[z] += (radii.slope * radius + 1) ** radii.power * ratio**radius / len(ways)
    assert set(found) == {z for z in box(size, most) if norm(law, z) <= most}
    for z, weight in found.items():
        beyond = range(most - norm(law, z) + 1)
        assert weight == sum((g + 1 if law == RANGE else 1) * ratio ** (norm(law, z) + g) for g in beyond)


@pytest.mark.parametrize("scale", [1e-300, 1e-3, 0.05, 1.0, 7.3, 365.0, 1e6, 2.0**50, 1e15])
def test_the_ratio_is_rounded_to_the_private_side(scale: float) -> None:
    law = radius_law(RANGE, scale, 3)
    assert 0 < law.numerator < 1 << law.bits
    with flint.ctx.workprec(20_000):
        rate = 1 / flint.arb(flint.fmpq(*Fraction(scale).as_integer_ratio()))
        cost = -flint.arb(flint.fmpq(law.numerator, 1 << law.bits)).log()
        assert cost <= rate
        assert scale < 1e-4 or cost >= rate * (1 - flint.arb(2) ** -60)


def test_epsilons_of_pure_laws_add_up_and_mix_with_no_gaussian_noise() -> None:
    costs = [Cost(LAPLACE, 3, 12.0, 5), Cost(CUBE, 2, 8.0, 5), Cost(RANGE, 1, 2.0, 5)]
    certify(PureDP(1.0), costs)
    certify(ApproxDP(1.0, 1e-6), costs)
    for budget in (PureDP(0.999), ApproxDP(0.999, 1e-9), ZCDP(1e9)):
        with pytest.raises(BudgetExceededError):
            certify(budget, costs)
    with pytest.raises(BudgetExceededError):
        certify(ApproxDP(1e9, 0.5), [*costs, Cost(GAUSSIAN, 1, 1e9, 1)])
    # Squares are known of Laplace noise only: its concentrated route must not be taken for others.
    with pytest.raises(BudgetExceededError):
        certify(ApproxDP(1.0, 0.5), [Cost(CUBE, 2, 1.9, 5, squared=0)])


# --- Draws ------------------------------------------------------------------------------------------------------------


def chance(seen: Counter[Vector], law: Law, scale: float, size: int) -> float:
    """Of such frequencies under the law of a scale, by the chi-square test; rare vectors count as one."""
    normaliser, draws = log_normaliser(law, scale, size), seen.total()
    expected = {z: draws * math.exp(-norm(law, z) / scale - normaliser) for z in box(size, 9)}
    often = {z: count for z, count in expected.items() if count >= 8}
    counts = [seen[z] for z in often]
    return float(
        scipy.stats.chisquare(
            [*counts, draws - sum(counts)], [*often.values(), draws - math.fsum(often.values())]
        ).pvalue
    )


@pytest.mark.quick(1)
@pytest.mark.parametrize(("law", "size", "scale"), [(CUBE, 2, 0.8), (RANGE, 2, 0.8), (CUBE, 3, 0.5), (RANGE, 3, 0.4)])
def test_draws_are_of_the_law_and_of_no_scale_near_it(law: Law, size: int, scale: float) -> None:
    seen = Counter(tuple(draw_jointly(law, scale, size).tolist()) for _ in range(6000))
    assert chance(seen, law, scale, size) > RARE
    for wrong in (scale * 0.7, scale * 1.3):
        assert chance(seen, law, wrong, size) < RARE
    other: Law = CUBE if law == RANGE else RANGE
    assert chance(seen, other, scale, size) < RARE


@pytest.mark.parametrize(
    ("law", "size", "scale"), [(CUBE, 1, 3.0), (RANGE, 1, 3.0), (CUBE, 40, 2.0), (RANGE, 365, 5.0)]
)
def test_radii_are_of_their_weights_and_of_no_scale_near_them(law: Law, size: int, scale: float) -> None:
    def weights(scale: float, radii: range) -> np.ndarray:
        of = radius_law(law, scale, size)
        logs = [of.power * math.log(of.slope * radius + 1) - radius / scale for radius in radii]
        return np.exp(np.array(logs) - max(logs))

    draws = np.array([radius_law(law, scale, size).draw() for _ in range(3000)])
    for factor, honest in ((1.0, True), (0.7, False), (1.3, False)):
        radii = range(round(3 * scale * (size + 20)) + 1)
        shares = weights(scale * factor, radii)
        cuts = np.unique(np.searchsorted(np.cumsum(shares) / shares.sum(), np.arange(1, 20) / 20))
        expected = np.add.reduceat(shares, [0, *(cuts + 1)])
        seen = np.bincount(np.searchsorted(cuts, draws), minlength=len(expected))
        found = scipy.stats.chisquare(seen, expected / expected.sum() * len(draws)).pvalue
        assert (found > RARE) == honest, (factor, found)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("size", [1, 2, 7, 60])
@pytest.mark.parametrize("scale", [1e-3, 0.2, 0.5, 1.0, 1.7, 4.0, 25.0])
def test_no_radius_is_taken_with_more_than_certainty(law: Law, size: int, scale: float) -> None:
    """What the rejection rests on, for every radius as far as any weight is."""
    of = radius_law(law, scale, size)
    centre, width = joint_noise._blocks(of)
    for radius in range(centre + 12 * width):
        block = (radius - centre if radius >= centre else centre - 1 - radius) // width
        assert of.rise(centre, radius) <= (1 - block) * flint.arb(2).log()


@pytest.mark.parametrize(("law", "size", "scale"), [(RANGE, 100_000, 1.0), (CUBE, 100_000, 0.01), (RANGE, 50, 2.0**50)])
def test_long_vectors_and_wide_scales_are_drawn(law: Law, size: int, scale: float) -> None:
    drawn = draw_jointly(law, scale, size)
    assert drawn.shape == (size,)
    assert drawn.dtype == np.int64
    deviation = math.sqrt(joint_variance(law, scale, size))
    assert abs(float(drawn[0])) < 60 * deviation
    assert len(set(drawn.tolist())) > size / 100


def test_what_is_beyond_64_bits_is_saturated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RadiusLaw, "draw", lambda self: 1 << 70)
    for law in LAWS:
        drawn = draw_jointly(law, 2.0**60, 40)
        # All but one in 64 are, and none has wrapped.
        assert sum(abs(drawn) == (1 << 63) - 1) > 20
        assert len({value > 0 for value in drawn.tolist()}) == 2 or law == RANGE
        noisy = add_noise(np.full(40, 5), drawn)
        assert (abs(noisy) <= 1 << 61).all()
    assert draw_jointly(CUBE, 1.0, 0).tolist() == []


def test_all_random_bits_are_those_of_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """With these replaced by known ones, the same vector comes out twice: nothing else has a part in it."""

    def known() -> Callable[[int], int]:
        state = np.random.default_rng(3)
        return lambda below: int(state.integers(0, below))

    found = []
    for _ in range(2):
        source = known()
        monkeypatch.setattr(secrets, "randbelow", source)
        monkeypatch.setattr(secrets, "randbits", lambda bits, source=source: source(1 << min(bits, 62)))
        found.append([draw_jointly(law, 3.0, 20).tolist() for law in LAWS])
    assert found[0] == found[1]
    monkeypatch.undo()
    assert draw_jointly(CUBE, 3.0, 20).tolist() != draw_jointly(CUBE, 3.0, 20).tolist()


# --- What the kernel measures with it ---------------------------------------------------------------------------------


def test_it_is_drawn_for_each_vector_apart_and_never_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Law, float, int]] = []

    def draw(law: Law, scale: float, count: int) -> np.ndarray:
        asked.append((law, scale, count))
        return np.full(count, len(asked))

    monkeypatch.setattr(kernel, "draw_jointly", draw)
    assert draw_noise(RANGE, 2.0, 6, lambda drawn: None, 3).tolist() == [1, 1, 2, 2, 3, 3]
    assert asked == [(RANGE, 2.0, 2)] * 3
    design = design_of(Rolling(2), CUBE, ItemLevel(), 1, 2)
    answers = TableAnswers(np.zeros((STEPS, STEPS), dtype=np.int64))
    (found,) = measure([Measurement(design, CUBE, 2.0)], PureDP(1.0), answers)
    assert asked[3:] == [(CUBE, 2.0, STEPS)] * 2
    assert found[1].tolist() != found[2].tolist()
    with pytest.raises(BudgetExceededError):
        measure([Measurement(design, CUBE, 1.999)], PureDP(1.0), answers)
    by_step = StepDesign(design.problem, Series(Identity()), "test", horizon=STEPS)
    with pytest.raises(ValueError, match="for a whole vector at once was asked for step by step"):
        measure_step([Measurement(by_step, CUBE, 2.0)], PureDP(1.0), 1, [{1: np.zeros(1), 2: np.zeros(1)}])
    assert len(asked) == 5


# --- What is known of it before it is drawn ---------------------------------------------------------------------------


@pytest.mark.quick(15)
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("size", [1, 2, 5, 30])
@pytest.mark.parametrize("scale", [0.05, 0.3, 1.0, 6.0])
def test_the_variance_is_that_of_the_law(law: Law, size: int, scale: float) -> None:
    """From the weights of radii as whole numbers: of a uniform number, or of the difference of two."""
    of = radius_law(law, scale, size)
    radii = range(round(scale * (size + 12) * 4) + 60)
    weights = [((of.slope * r + 1) ** of.power * of.numerator**r) << of.bits * (len(radii) - r) for r in radii]
    squares = [(2 * r + 1) ** 2 - 1 if law == CUBE else 2 * (r + 1) ** 2 - 2 for r in radii]
    exact = Fraction(sum(w * square for w, square in zip(weights, squares, strict=True)), 12 * sum(weights))
    assert joint_variance(law, scale, size) == pytest.approx(float(exact), rel=1e-8)


@pytest.mark.parametrize("law", LAWS)
def test_formulas_for_wide_noise_go_on_where_sums_end(law: Law, monkeypatch: pytest.MonkeyPatch) -> None:
    for size, scale in ((1, 300.0), (5, 40.0), (365, 3.0), (2000, 1.0)):
        summed = joint_variance.__wrapped__(law, scale, size), log_normaliser.__wrapped__(law, scale, size)
        with monkeypatch.context() as patched:
            patched.setattr("dpwindows.reading.noise_moments._SUMMED", 0)
            known = joint_variance.__wrapped__(law, scale, size), log_normaliser.__wrapped__(law, scale, size)
        assert known == pytest.approx(summed, rel=1e-6)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [0.3, 0.8])
def test_the_normaliser_is_the_sum_over_all_vectors(law: Law, scale: float) -> None:
    total = math.fsum(math.exp(-norm(law, z) / scale) for z in box(2, 40))
    assert log_normaliser(law, scale, 2) == pytest.approx(math.log(total), rel=1e-9)


def test_the_laws_of_one_number_are_laplace() -> None:
    for law in JOINT:
        assert joint_variance(law, 3.0, 1) == pytest.approx(2 * math.exp(-1 / 3) / math.expm1(-1 / 3) ** 2, rel=1e-9)
