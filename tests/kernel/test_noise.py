"""Independent noise: what is decided of given bits against the law in high precision, and draws against that law."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction

import flint
import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from numpy.typing import NDArray

from dpwindows.audit import noise_tests
from dpwindows.kernel import noise
from dpwindows.kernel.accounting import CUBE, GAUSSIAN, LAPLACE, Law
from dpwindows.kernel.noise import Blocks, Source

LAWS: tuple[Law, ...] = (GAUSSIAN, LAPLACE)
# Scales of few and of many bits, of plans with next to no noise and of those with most.
SCALES = (0.3, 0.5, 0.75, 1.0, 1.7, 2.5, 3.0, 5.0, 8.9, 33.3, 1000.0, 2.0**20, 2.0**30 + 0.5, 2.0**40)
ALL = (1 << 64) - 1
# Laws cut into blocks of one, of few and of many integers, fewer and more than there are in a scale.
CUTS = [
    Blocks(law, Fraction(scale), k)
    for law in LAWS
    for scale, k in ((1e-300, 0), (0.3, 0), (0.3, 2), (2.5, 0), (2.5, 1), (33.3, 3), (1000.0, 5), (2.0**40, 36))
]


class Bits:
    """A source of given words, which has no others."""

    def __init__(self, *words: int) -> None:
        self.left = b"".join(word.to_bytes(8, "little") for word in words)

    def __call__(self, size: int) -> bytes:
        assert size <= len(self.left), "more bits are read than are needed"
        taken, self.left = self.left[:size], self.left[size:]
        return taken


def phi(blocks: Blocks, size: int) -> mpmath.mpf:
    scale = mpmath.mpf(blocks.scale.numerator) / blocks.scale.denominator
    return (size / scale) ** 2 / 2 if blocks.law == GAUSSIAN else size / scale


def shares(blocks: Blocks) -> list[mpmath.mpf]:
    """The shares of blocks 0, 1, ... in 60 digits, by the definition, until the weights are below 1e-60."""
    length, weights = 1 << blocks.log_length, [mpmath.mpf(1)]
    while weights[-1] > mpmath.mpf(10) ** -60:
        weights.append(2 * length * mpmath.exp(-phi(blocks, (len(weights) - 1) * length + 1)))
    total = mpmath.fsum(weights)
    return [weight / total for weight in weights]


@pytest.fixture(autouse=True)
def digits() -> Iterator[None]:
    with mpmath.workdps(60):
        yield


# --- What is proved of blocks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [64, 128])
@pytest.mark.parametrize("blocks", CUTS, ids=str)
def test_tables_hold_the_shares_of_blocks_and_are_close_to_them(blocks: Blocks, bits: int) -> None:
    """The whole normaliser, of which the tail beyond a table is a part."""
    table, unit, below = noise._table(blocks, bits), mpmath.mpf(2) ** bits, mpmath.mpf(0)
    for low, high, share in zip(table.low, table.high, shares(blocks), strict=False):
        below += share
        assert low <= below * unit <= high
        assert high - low <= 3
    assert unit - below * unit < 3
    assert len(table.low) == len(table.high) == len(table.kept)


@pytest.mark.parametrize("blocks", CUTS, ids=str)
def test_tables_hold_the_shares_of_blocks_if_another_thread_changes_the_precision(
    blocks: Blocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is one for the whole process, and this comes after the budget is spent."""
    own, found, below = noise._exp, flint.ctx.prec, mpmath.mpf(0)

    def exp_and_change(exponent: flint.fmpq) -> flint.arb:
        try:
            return own(exponent)
        finally:
            flint.ctx.prec = 53

    monkeypatch.setattr(noise, "_exp", exp_and_change)
    table = noise._table.__wrapped__(blocks, 128)
    assert flint.ctx.prec == found
    for low, high, share in zip(table.low, table.high, shares(blocks), strict=False):
        below += share
        assert low <= below * mpmath.mpf(2) ** 128 <= high


@pytest.mark.parametrize("blocks", CUTS, ids=str)
def test_every_number_is_accepted_with_no_less_than_is_stated(blocks: Blocks) -> None:
    length, table = 1 << blocks.log_length, noise._table(blocks, 64)
    assert table.kept[0] == 1 << 64
    for block, kept in list(enumerate(table.kept))[1:]:
        first = (block - 1) * length + 1
        least = mpmath.exp(phi(blocks, first) - phi(blocks, first + length - 1)) * 2**64
        after = mpmath.exp(phi(blocks, first) - phi(blocks, first + length)) * 2**64
        assert kept <= least
        assert kept == 2**64 if length == 1 else abs(kept - after) <= 1


# --- What is decided of given bits ------------------------------------------------------------------------------------


class _TooFewError(Exception):
    """A string of bits ends before anything is decided."""


class _RejectedError(Exception):
    """An attempt is over."""


def _outcomes(run: Callable[[Source], int], most: int) -> tuple[Counter[object], Fraction]:
    """What comes of all strings of bits, each as often as it is drawn, and of how many nothing after `most` bytes."""
    found, unknown, beginnings = Counter[object](), Fraction(0), [b""]
    while beginnings:
        string = beginnings.pop()
        left, chance = list(string), Fraction(1, 256 ** len(string))

        def source(size: int, left: list[int] = left) -> bytes:
            if len(left) < size:
                raise _TooFewError
            return bytes([left.pop(0) for _ in range(size)])

        try:
            outcome: object = run(source)
        except _RejectedError:
            outcome = "rejected"
        except _TooFewError:
            if len(string) < most:
                beginnings += [string + bytes([byte]) for byte in range(256)]
            else:
                unknown += chance
            continue
        assert not left, "no string is read further than it has to be"
        found[outcome] += chance  # type: ignore[assignment]
    return found, unknown


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("scale", "k"), [(0.7, 0), (1.3, 1), (2.0, 2)])
def test_the_law_by_every_string_of_bits(law: Law, scale: float, k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Words of one byte: all beginnings of U for each place and sign, and all of V for what is proposed then."""

    def over(*arguments: object) -> None:
        raise _RejectedError

    monkeypatch.setattr(noise, "_WORD", 8)
    monkeypatch.setattr(noise, "_table", noise._table.__wrapped__)
    monkeypatch.setattr(Blocks, "_attempt", over)
    blocks, places = Blocks(law, Fraction(scale), k), range(2 << k)
    proposed, loose = Counter[int](), Counter[int]()
    begins: dict[int, int] = {}
    for place in places:
        # V begins with nothing but zeros: what is proposed is accepted.
        found, unknown = _outcomes(lambda source: blocks.finish(source, source(1)[0], 0, place), 2)  # noqa: B023
        assert sum(found.values()) + unknown == 1
        assert unknown < 1e-3
        for x, chance in found.items():
            assert isinstance(x, int)
            proposed[x] += chance / len(places)  # type: ignore[assignment]
            loose[x] += 2 * unknown / len(places)  # type: ignore[assignment]
    for u in range(256):
        with contextlib.suppress(AssertionError):
            begins[blocks._block(noise._Uniform(u, 8), Bits())] = u
    assert len(begins) >= 3
    for block, place in itertools.product(begins, places):
        size = 0 if block == 0 else (block - 1 << k) + 1 + (place >> 1)
        x = -size if place & 1 else size
        begin = begins[block]
        found, unknown = _outcomes(lambda source: blocks.finish(source, begin, source(1)[0], place), 2)  # noqa: B023
        assert set(found) <= {x, "rejected"}
        # Against the weight of 0, which is proposed as often as it should be and always accepted.
        share, error = proposed[x] * found[x] / proposed[0], (loose[x] + loose[0] + unknown) / proposed[0]
        assert abs(float(share) - math.exp(-float(phi(blocks, size)))) <= float(error)


@pytest.mark.parametrize("blocks", CUTS, ids=str)
def test_what_is_decided_at_once_is_what_the_same_bits_say_one_by_one(blocks: Blocks) -> None:
    """And to that no bit more is read."""
    table = noise._words(blocks)
    assert table is not None
    u, v, place = _words_at_random(2000, table)
    drawn, sure = blocks.decide(table, u, v, place)
    assert sure.mean() > 0.2
    for x, *words in zip(drawn[sure].tolist(), *(one[sure].tolist() for one in (u, v, place)), strict=True):
        assert blocks.finish(Bits(), *words) == x


def _words_at_random(count: int, table: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Words of U, V and places: half of them at random, half at and beside the bounds of a table."""
    rng = np.random.default_rng(0)
    words = rng.integers(0, ALL, (3, count), dtype=np.uint64, endpoint=True)
    edges = np.concatenate([table.ravel() + np.uint64(by) for by in (0, 1, ALL)])
    words[:2, : count // 2] = rng.choice(edges, (2, count // 2))
    return words


# --- What is too close to call ----------------------------------------------------------------------------------------

LARGE = Blocks(GAUSSIAN, Fraction(1000), 5)


def _after(exact: mpmath.mpf, words: int) -> list[int]:
    """The first words of the number itself: a uniform number that begins with them is too close to it to call."""
    whole = int(mpmath.floor(exact * mpmath.mpf(2) ** (64 * words)))
    return [whole >> 64 * (words - 1 - i) & ALL for i in range(words)]


@pytest.mark.parametrize(
    "blocks", [LARGE, Blocks(LAPLACE, Fraction(1000), 5), Blocks(GAUSSIAN, Fraction(2), 0)], ids=str
)
@pytest.mark.parametrize("block", [0, 1, 7])
def test_blocks_too_close_to_call_are_told_by_more_bits_of_the_same_number(blocks: Blocks, block: int) -> None:
    bound = mpmath.fsum(shares(blocks)[: block + 1])
    u, more = _after(bound, 2)
    table = noise._words(blocks)
    assert table is not None
    _, sure = blocks.decide(table, *np.array([[u], [0], [0]], dtype=np.uint64))
    assert not sure[0]
    for after, chosen in ((0, block), (more - 2, block), (more + 2, block + 1), (ALL, block + 1)):
        assert blocks._block(noise._Uniform(u, 64), Bits(after)) == chosen
    # As close once more.
    u, more, last = _after(bound, 3)
    assert blocks._block(noise._Uniform(u, 64), Bits(more, last - 3)) == block
    assert blocks._block(noise._Uniform(u, 64), Bits(more, last + 3)) == block + 1


@pytest.mark.parametrize("blocks", [LARGE, Blocks(LAPLACE, Fraction(1000), 5)], ids=str)
def test_numbers_too_close_to_call_are_told_by_more_bits_of_the_same_number(blocks: Blocks) -> None:
    place = 2 * 11
    u = noise._table(blocks, 64).high[6] + 1000
    first = 6 * 32 + 1
    chance = mpmath.exp(phi(blocks, first) - phi(blocks, first + 11))
    v, more = _after(chance, 2)
    again = (noise._table(blocks, 64).high[2] + 1000, 0, 2 * 5 + 1)
    accepted, rejected = first + 11, -(2 * 32 + 1 + 5)
    for after, x in ((0, accepted), (more - 1, accepted), (more + 1, rejected), (ALL, rejected)):
        assert blocks.finish(Bits(after, *(again if x == rejected else ())), u, v, place) == x
    v, more, last = _after(chance, 3)
    assert blocks.finish(Bits(more, last - 1), u, v, place) == accepted
    assert blocks.finish(Bits(more, last + 1, *again), u, v, place) == rejected
    # One less or more in the first word is told at once.
    assert blocks.finish(Bits(), u, v - 1, place) == accepted
    assert blocks.finish(Bits(*again), u, v + 1, place) == rejected


def test_a_rejected_number_is_drawn_anew_in_all_its_parts() -> None:
    bounds = noise._table(LARGE, 64).high
    first, second, third = ((bounds[i] + 1000, v, place) for i, v, place in ((50, ALL, 62), (60, ALL, 63), (4, 0, 9)))
    assert LARGE.finish(Bits(*second, *third), *first) == -(4 * 32 + 1 + 4)


def test_what_lies_beyond_a_table_is_reached_by_more_bits() -> None:
    """Where U is 2^-128 less than 1."""
    for blocks in (Blocks(GAUSSIAN, Fraction(3), 0), Blocks(LAPLACE, Fraction(3), 0), LARGE):
        block = blocks._block(noise._Uniform(ALL, 64), Bits(ALL, 0))
        assert block >= len(noise._table(blocks, 64).low)
        beyond = [mpmath.fsum(shares(blocks)[place:]) * 2**128 for place in (block, block + 1)]
        assert beyond[1] < 1 < beyond[0] + mpmath.mpf(2) ** -64
        x = blocks.finish(Bits(ALL, 0, 0, 0, 0), ALL, 0, 0)
        assert x == (block - 1 << blocks.log_length) + 1


def test_zero_has_one_sign_and_is_never_rejected() -> None:
    for blocks, v, place in itertools.product(CUTS, (0, ALL), (0, 1, ALL)):
        assert blocks.finish(Bits(), 0, v, place) == 0
        table = noise._words(blocks)
        assert table is not None
        drawn, sure = blocks.decide(table, *np.array([[0], [min(v, ALL - 1)], [place]], dtype=np.uint64))
        assert (drawn[0], sure[0]) == (0, True)


def test_numbers_decided_late_stand_at_their_own_place_and_change_no_other() -> None:
    table, bounds = noise._words(LARGE), noise._table(LARGE, 64)
    assert table is not None
    rng = np.random.default_rng(3)
    words = rng.integers(0, ALL, (3, 3000), dtype=np.uint64)
    late = rng.permutation(3000)[:300]
    words[1, late[:200]] = ALL
    words[0, late[200:]] = bounds.low[9]
    later = rng.integers(0, ALL, 3000, dtype=np.uint64).tolist()
    drawn = LARGE.draw(Bits(*words.ravel().tolist(), *later), 3000)
    at_once, sure = LARGE.decide(table, *words)
    assert not sure[late].any()
    assert np.array_equal(drawn[sure], at_once[sure])
    source = Bits(*later)
    for at in np.flatnonzero(~sure):
        assert drawn[at] == LARGE.finish(source, *(int(word) for word in words[:, at]))


# --- Scales -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS)
def test_nothing_wraps_at_any_scale(law: Law) -> None:
    rng = np.random.default_rng(0)
    for power in (40, 48, 52, 54, 55, 56, 58, 60):
        blocks = noise._blocks_for(law, 2.0**power, 10**6)
        table = noise._words(blocks)
        if table is None:
            assert power > 50
            continue
        # The last block, its last place.
        u = np.array([table[0, -1] - 1], dtype=np.uint64)
        drawn, _ = blocks.decide(table, u, u * 0, np.array([ALL], dtype=np.uint64))
        assert drawn[0] == -(table.shape[1] - 1 << blocks.log_length) < 0
    for power in (55, 57, 59):
        drawn = noise.sampler(law, 2.0**power, 400)(400)
        assert min(noise_tests.law_chances(law, noise_tests.uniforms(law, 2.0**power, drawn, rng)).values()) > RARE


def test_larger_numbers_than_fit_are_held_at_the_ends() -> None:
    # Of 50 numbers at the least of these scales one would fit once in 10^15 runs.
    for law, scale in itertools.product(LAWS, (2.0**120, 1e300, np.finfo(float).max)):
        drawn = noise.sampler(law, scale, 50)(50)
        assert set(drawn.tolist()) == {(1 << 63) - 1, 1 - (1 << 63)}


def test_the_least_scales_give_nothing_but_zeros() -> None:
    for law, scale in itertools.product(LAWS, (5e-324, 1e-300, 1e-3)):
        assert not noise.sampler(law, scale, 1000)(1000).any()


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf])
def test_scales_and_laws_that_are_none_are_refused(scale: float) -> None:
    with pytest.raises(ValueError, match="finite scale > 0"):
        noise.sampler(GAUSSIAN, scale, 1)
    with pytest.raises(ValueError, match="Gaussian or Laplace"):
        noise.sampler(CUBE, 1.0, 1)


def test_any_count_may_be_drawn_whatever_was_said() -> None:
    # Those of the second scale are made one by one.
    for said, count, scale in itertools.product((0, 1, 10**7), (0, 1, 50), (1000.0, 2.0**80)):
        drawn = noise.sampler(LAPLACE, scale, said)(count)
        assert drawn.shape == (count,)
        assert drawn.dtype == np.int64


def test_bits_are_those_of_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    system = os.urandom

    def reading(size: int) -> bytes:
        read.append(size)
        return system(size)

    monkeypatch.setattr(os, "urandom", reading)
    for scale, count in ((3.0, 100), (2.0**60, 7)):
        read.clear()
        noise.sampler(GAUSSIAN, scale, count)(count)
        assert sum(read) >= 24 * count
    monkeypatch.setattr(os, "urandom", bytes)
    assert set(noise.sampler(GAUSSIAN, 3.0, 100)(100).tolist()) == {0}


# --- The draws themselves ---------------------------------------------------------------------------------------------

# Each chance is a bound on the false alarms of honest noise (`audit.noise_tests`).
RARE, DRAWS = 1e-10, 1 << 17


def fits(law: Law, scale: float, drawn: NDArray[np.int64]) -> dict[str, float]:
    """The chances of draws under a law: in ranges, at the ends of blocks, by places in blocks, beside each other."""
    rng = np.random.default_rng(1)
    uniform = noise_tests.uniforms(law, scale, drawn, rng)
    length = 1 << noise._blocks_for(law, scale, len(drawn)).log_length
    ends = noise_tests.distribution(law, scale, np.arange(-40, 41) * length)
    chances = noise_tests.law_chances(law, uniform) | {
        "ends": noise_tests.shape_chance(uniform, ends[(ends > 1e-3) & (ends < 1 - 1e-3)]),
        "neighbours": noise_tests.pair_chance(uniform[1:], uniform[:-1]),
        "sizes": noise_tests.pair_chance(abs(2 * uniform[1:] - 1), abs(2 * uniform[:-1] - 1)),
    }
    for modulus in sorted({2, 3, length, 2 * length} - {1}):
        chances[f"modulo {modulus}"] = places_chance(law, scale, drawn, modulus)
    return chances


def places_chance(law: Law, scale: float, drawn: NDArray[np.int64], modulus: int) -> float:
    """The chance of the places of |x| - 1 in stretches of so many integers, by sixteenths of these."""
    edges = np.unique(np.arange(17) * modulus // 16)
    # One place in short stretches is as likely as another but for a part in a hundred thousand.
    short = modulus < scale / 1e5
    begins = np.arange(1 if short else math.ceil((40 if law == LAPLACE else 12) * scale / modulus) + 1) * modulus
    up_to = noise_tests.distribution(law, scale, begins[:, None] + edges)
    shares = np.diff(edges) / modulus if short else 2 * np.diff(up_to, axis=1).sum(axis=0)
    # Zero is at the last place.
    shares[-1] += 1 - shares.sum()
    places = np.searchsorted(edges, (abs(drawn) - 1) % modulus, side="right") - 1
    bounds = np.cumsum(shares)
    return noise_tests.shape_chance((bounds - shares / 2)[places], bounds[:-1])


@pytest.mark.quick(4)
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", SCALES)
def test_draws_are_of_the_law_and_of_no_scale_near_it(law: Law, scale: float) -> None:
    """Honest noise is refused in one of 10^9 runs."""
    chances = fits(law, scale, noise.sampler(law, scale, DRAWS)(DRAWS))
    assert min(chances.values()) > RARE, chances
    for factor in (0.7, 1.3):
        chances = fits(law, scale, noise.sampler(law, scale * factor, DRAWS)(DRAWS))
        assert min(chances.values()) < RARE


@pytest.mark.parametrize("law", LAWS)
def test_draws_that_depend_on_each_other_or_favour_a_place_do_not_pass(law: Law) -> None:
    drawn = noise.sampler(law, 1000.0, DRAWS)(DRAWS)
    repeated = drawn.copy()
    repeated[1::40] = repeated[::40][: len(repeated[1::40])]
    assert fits(law, 1000.0, repeated)["neighbours"] < RARE
    same_size = drawn.copy()
    same_size[1::30] = -same_size[::30][: len(same_size[1::30])]
    assert fits(law, 1000.0, same_size)["sizes"] < RARE
    even = np.where(np.arange(DRAWS) % 30, drawn, drawn & ~1)
    assert fits(law, 1000.0, even)["modulo 2"] < RARE
    # Rejections left out: 30 numbers in a scale to a block, and every place of a block as likely as another.
    places, flat = np.random.default_rng(0).integers(0, 256, DRAWS), abs(drawn)
    flat[flat > 0] = (flat[flat > 0] - 1) // 256 * 256 + 1 + places[flat > 0]
    assert places_chance(law, 1000.0, flat, 256) < RARE
