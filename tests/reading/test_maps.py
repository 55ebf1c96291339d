"""Readers of maps: the left inverse of what is measured, with the variance that they announce."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpwindows import reading
from dpwindows.kernel.maps.differences import AnchoredDifferences
from dpwindows.kernel.maps.integer_maps import CausalMap, IntegerMap
from dpwindows.kernel.maps.tent_tree import TentTree
from dpwindows.reading.moments import SeriesReader
from tests.kernel.maps.some_maps import SIZES, causal_maps, maps_of, matrix_of
from tests.search import examples

Floats = NDArray[np.float64]


def decoder_of(reader: SeriesReader) -> Floats:
    return reader.decode(np.eye(reader.shape[0]))


def read_as_series(length: int, rng: np.random.Generator) -> list[tuple[IntegerMap, SeriesReader]]:
    """Maps and how their whole series are read."""
    return [(one, reading.series_reader(one, length)) for one in maps_of(length, rng)]


@pytest.mark.parametrize("length", SIZES)
def test_decoding_inverts_what_is_encoded(length: int) -> None:
    rng = np.random.default_rng(length)
    for found, reader in read_as_series(length, rng):
        assert reader.shape == (found.rows(length), length)
        matrix = matrix_of(found, length).astype(np.float64)
        # Integers drawn at random have inverses that may be large.
        near = 1e-12 * np.linalg.cond(matrix) + 1e-9
        for shape in ((length,), (length, 2)):
            exact = rng.integers(-(10**6), 10**6, size=shape)
            decoded = reader.decode(found.encode(exact).astype(np.float64))
            assert np.allclose(decoded, exact, rtol=0, atol=1e6 * near)
        # A left inverse of the whole matrix, and linear.
        assert np.allclose(decoder_of(reader) @ matrix, np.eye(length), atol=1e2 * near)
        first, second = rng.normal(size=(2, reader.shape[0]))
        both = reader.decode(first) + 2 * reader.decode(second)
        assert np.allclose(reader.decode(first + 2 * second), both, rtol=1e-8, atol=1e-8 * abs(both).max())


@pytest.mark.parametrize("length", SIZES)
def test_moments_and_weights_are_those_of_the_decoder(length: int) -> None:
    rng = np.random.default_rng(length)
    for _, reader in read_as_series(length, rng):
        decoder = decoder_of(reader)
        assert np.allclose(reader.variance(), (decoder**2).sum(axis=1), rtol=1e-8)
        fourth = reader.fourth_moment()
        assert fourth is not None
        assert np.allclose(fourth, (decoder**4).sum(axis=1), rtol=1e-8)
        wanted = rng.normal(size=length)
        expected = decoder.T @ wanted
        assert np.allclose(reader.transposed(wanted), expected, rtol=1e-8, atol=1e-9 * abs(expected).max())


@pytest.mark.parametrize("length", SIZES)
def test_least_squares_maps_decode_by_the_pseudo_inverse(length: int) -> None:
    for found, reader in read_as_series(length, np.random.default_rng(length)):
        if isinstance(found, (TentTree, AnchoredDifferences)):
            best = np.linalg.pinv(matrix_of(found, length).astype(np.float64))
            assert np.allclose(decoder_of(reader), best, atol=1e-8)


@examples(60)
@given(length=st.integers(1, 70), shares=st.lists(st.floats(0, 0.99), max_size=3), unit=st.sampled_from([4, 7, 1000]))
def test_tent_trees_of_any_shape(length: int, shares: list[float], unit: int) -> None:
    tree = TentTree(length, tuple(int(share * length) for share in shares), unit)
    reader = reading.series_reader(tree, length)
    decoder = decoder_of(reader)
    assert np.allclose(decoder, np.linalg.pinv(matrix_of(tree, length).astype(np.float64)), atol=1e-8)
    assert np.allclose(reader.variance(), (decoder**2).sum(axis=1), rtol=1e-9)


def test_many_tents_on_a_long_series_are_read_as_exactly_as_few() -> None:
    """Long enough for sums to lose their digits where the algebra is careless."""
    length = 50_000
    tree = TentTree(length, (746, 11))
    reader = reading.series_reader(tree, length)
    tents, leaves = tree.tent_weights, tree.leaf_weights.astype(np.float64)
    variance = reader.variance()
    for t in (0, 1, 66, 9_999, 17_123, length - 2, length - 1):
        prefix = (np.arange(length) <= t).astype(np.float64)
        # Reading back `prefix / leaves` solves the normal equations for the prefix; put in, the solution must fit them.
        numbers = np.concatenate([prefix / leaves, np.zeros(tree.rows(length) - length)])
        solved = np.diff(reader.decode(numbers), prepend=0)
        assert abs(leaves**2 * solved + tents.T @ (tents @ solved) - prefix).max() < 1e-7
        assert variance[t] == pytest.approx(float(prefix @ solved), rel=1e-7)


@examples(60)
@given(
    length=st.integers(1, 60),
    every=st.integers(1, 70),
    step=st.integers(1, 1000),
    anchor=st.integers(1, 1000),
    offset=st.integers(0, 70),
)
def test_anchored_differences_of_any_shape(length: int, every: int, step: int, anchor: int, offset: int) -> None:
    found = AnchoredDifferences(every, step, anchor, offset)
    reader = reading.series_reader(found, length)
    decoder = decoder_of(reader)
    assert np.allclose(decoder @ matrix_of(found, length), np.eye(length), atol=1e-7)
    for power in (2, 4):
        moment = reader.moment(power)
        assert moment is not None
        assert np.allclose(moment, (decoder**power).sum(axis=1), rtol=1e-7, atol=0)


def test_a_long_tree_leaves_the_fourth_moment_open() -> None:
    reader = reading.series_reader(TentTree(3000, (10,)), 3000)
    assert reader.fourth_moment() is None
    assert len(reader.variance()) == 3000


def test_anchored_differences_of_one_position() -> None:
    reader = reading.series_reader(AnchoredDifferences(1, 3, 2), 1)
    assert reader.decode(np.array([3.0, 2.0])) == pytest.approx([1.0])


def read_by_step(length: int, rng: np.random.Generator) -> list[CausalMap]:
    """Causal maps; anchors with an offset are for whole series."""
    found = causal_maps(length, rng)
    return [one for one in found if not isinstance(one, AnchoredDifferences) or not one.offset]


def step_by_step(found: CausalMap, length: int, numbers: Floats) -> Floats:
    """The estimates of all positions, numbers given position by position: shape (rows, lanes)."""
    reader = reading.step_reader(found)
    memory, estimates, place = reader.fresh(numbers.shape[1]), [], 0
    for position in range(1, length + 1):
        rows = found.rows_at(position)
        estimate, memory = reader.decode_step(position, numbers[place : place + rows], memory)
        place += rows
        estimates.append(estimate)
    return np.stack(estimates)


@pytest.mark.parametrize("length", SIZES)
def test_steps_are_read_back_with_the_moments_that_are_announced(length: int) -> None:
    rng = np.random.default_rng(length)
    for found in read_by_step(length, rng):
        exact = rng.integers(0, 1000, size=(length, 2))
        memory, encoded = found.fresh(2), []
        for position, values in enumerate(exact, 1):
            measured, memory = found.encode_step(position, values, memory)
            encoded.append(measured)
        numbers = np.concatenate(encoded).astype(np.float64)
        decoder, reader = step_by_step(found, length, np.eye(len(numbers))), reading.step_reader(found)
        near = 1e-9 * max(1.0, abs(decoder).max() * abs(numbers).max())
        assert np.allclose(step_by_step(found, length, numbers), exact, rtol=0, atol=near)
        for power in (2, 4):
            assert np.allclose(reader.moment(length, power), (decoder**power).sum(axis=1), rtol=1e-7)
        wanted = rng.normal(size=length)
        expected = decoder.T @ wanted
        assert np.allclose(reader.transposed(wanted), expected, rtol=1e-7, atol=1e-8 * abs(expected).max())


def test_what_has_no_reader_is_said() -> None:
    with pytest.raises(TypeError, match="has no reader of single steps"):
        reading.step_reader(cast("CausalMap", TentTree(4, ())))
