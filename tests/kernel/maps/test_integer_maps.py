"""Integer maps: exact, linear, and decoded by the inverse whose variance they announce."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpwindows.kernel.maps.counters import MatrixCounter, WeightedCounter
from dpwindows.kernel.maps.differences import AnchoredDifferences
from dpwindows.kernel.maps.filters import Filter, Identity, convolve_exactly
from dpwindows.kernel.maps.integer_maps import IntegerMap, widen
from dpwindows.kernel.maps.tent_tree import TentTree
from dpwindows.kernel.maps.trees import Tree
from tests.search import examples

Floats = NDArray[np.float64]
SIZES = (1, 2, 3, 4, 5, 7, 10, 16, 17, 31, 50)


def maps_of(length: int, rng: np.random.Generator) -> list[IntegerMap]:
    """Maps of all kinds, with parameters a planner might choose and some it would not."""
    taps = (1 << 20, *(-int(tap) for tap in np.sort(rng.integers(0, (1 << 20) // length, size=length))[::-1]))
    root = (1 << 10, 1 << 9, 384, 320)
    weights = tuple(int(weight) for weight in rng.integers(1, 300, size=length))
    found: list[IntegerMap] = [Identity(length), Filter(taps), Filter(taps[:2]), Filter((7,))]
    found += [WeightedCounter(length, root, weights), WeightedCounter(length, (3,), (1,) * length)]
    found += [
        AnchoredDifferences(length, every, *(int(weight) for weight in rng.integers(1, 1001, size=2)))
        for every in sorted({1, 2, 3, max(1, length - 1), length, length + 3})
    ]
    found += [Tree(length, branching) for branching in (2, 3, 4, 7, 64)]
    found += [TentTree(length, ()), TentTree(length, (length // 3, 1 if length > 1 else 0), 97)]
    return found


def matrix_of(found: IntegerMap) -> NDArray[Any]:
    return found.encode(np.eye(found.length, dtype=np.int64))


def decoder_of(found: IntegerMap) -> Floats:
    return found.decode(np.eye(found.rows))


@pytest.mark.parametrize("length", SIZES)
def test_encode_is_linear_and_exact(length: int) -> None:
    rng = np.random.default_rng(length)
    for found in maps_of(length, rng):
        matrix = matrix_of(found)
        assert matrix.shape == (found.rows, length)
        for shape in ((length,), (length, 3)):
            exact = rng.integers(-(10**6), 10**6, size=shape)
            assert np.array_equal(found.encode(exact), matrix @ exact)
        huge = exact.astype(object) * 10**30
        assert np.array_equal(found.encode(huge), matrix.astype(object) @ huge)


@pytest.mark.parametrize("length", SIZES)
def test_encode_does_not_wrap(length: int) -> None:
    """Counts up to the ends of the 64-bit range, where products and sums are far beyond it."""
    rng = np.random.default_rng(length)
    for largest in (2**38, 2**42, 2**61, 2**63 - 1):
        exact = rng.integers(-largest, largest, size=length, endpoint=True)
        exact[0] = largest
        for found in maps_of(length, rng):
            wanted = matrix_of(found).astype(object) @ exact.astype(object)
            assert [int(value) for value in found.encode(exact)] == [int(value) for value in wanted]


@pytest.mark.parametrize("length", SIZES)
def test_decode_inverts_encode(length: int) -> None:
    rng = np.random.default_rng(length)
    for found in maps_of(length, rng):
        for shape in ((length,), (length, 2)):
            exact = rng.integers(-(10**6), 10**6, size=shape)
            assert np.allclose(found.decode(found.encode(exact).astype(np.float64)), exact, rtol=1e-9, atol=1e-5)
        # A left inverse of the whole matrix, and linear.
        assert np.allclose(decoder_of(found) @ matrix_of(found).astype(np.float64), np.eye(length), atol=1e-7)
        first, second = rng.normal(size=(2, found.rows))
        both = found.decode(first) + 2 * found.decode(second)
        assert np.allclose(found.decode(first + 2 * second), both, rtol=1e-8, atol=1e-8 * abs(both).max())


@pytest.mark.parametrize("length", SIZES)
def test_variance_and_fourth_moment_are_those_of_the_decoder(length: int) -> None:
    rng = np.random.default_rng(length)
    for found in maps_of(length, rng):
        decoder = decoder_of(found)
        assert np.allclose(found.variance(), (decoder**2).sum(axis=1), rtol=1e-8)
        fourth = found.fourth_moment()
        assert fourth is not None
        assert np.allclose(fourth, (decoder**4).sum(axis=1), rtol=1e-8)


@pytest.mark.parametrize("length", SIZES)
def test_least_squares_maps_decode_by_the_pseudo_inverse(length: int) -> None:
    rng = np.random.default_rng(length)
    for found in maps_of(length, rng):
        if isinstance(found, (Tree, TentTree, AnchoredDifferences)):
            best = np.linalg.pinv(matrix_of(found).astype(np.float64))
            assert np.allclose(decoder_of(found), best, atol=1e-8)


@examples(60)
@given(length=st.integers(1, 70), branching=st.integers(2, 20))
def test_trees_of_any_shape(length: int, branching: int) -> None:
    tree = Tree(length, branching)
    matrix = matrix_of(tree)
    differences = np.tril(np.ones((length, length), dtype=np.int64))
    nodes = matrix @ differences  # what each node holds of the increments
    assert set(np.unique(nodes)) <= {0, 1}
    assert (nodes.sum(axis=0) == tree.levels).all()
    assert len(nodes) == tree.rows == sum(tree.level_sizes)
    assert tree.level_sizes[-1] <= branching
    assert tree.levels == 1 or tree.level_sizes[-2] > branching
    decoder = decoder_of(tree)
    assert np.allclose(decoder, np.linalg.pinv(matrix.astype(np.float64)), atol=1e-8)
    assert np.allclose(tree.variance(), (decoder**2).sum(axis=1), rtol=1e-9)


@examples(60)
@given(length=st.integers(1, 70), shares=st.lists(st.floats(0, 0.99), max_size=3), unit=st.sampled_from([4, 7, 1000]))
def test_tent_trees_of_any_shape(length: int, shares: list[float], unit: int) -> None:
    tree = TentTree(length, tuple(int(share * length) for share in shares), unit)
    matrix = matrix_of(tree)
    weights = matrix @ np.tril(np.ones((length, length), dtype=np.int64))  # of the increments
    assert (weights >= 0).all()
    assert (weights.sum(axis=0) == tree.column_total).all()
    assert tree.column_total == unit * (1 + len(shares))
    leaves = weights[:length]
    assert (np.diagonal(leaves) > 0).all()
    assert np.count_nonzero(leaves) == length
    assert weights[length:].max(initial=0) <= unit
    # Tents overlap: up to rounding two of a level share what they weigh between their tops.
    if shares and tree.tents[0] >= 2:
        assert leaves[length // 2, length // 2] <= tree.column_total - unit + 1 + unit * (len(shares) - 1)
    decoder = decoder_of(tree)
    assert np.allclose(decoder, np.linalg.pinv(matrix.astype(np.float64)), atol=1e-8)
    assert np.allclose(tree.variance(), (decoder**2).sum(axis=1), rtol=1e-9)


def test_tents_are_as_they_are_described() -> None:
    tree = TentTree(10, (3,), 100)
    spacing = 10 / 3.7
    for tent, row in enumerate((matrix_of(tree) @ np.tril(np.ones((10, 10), dtype=np.int64)))[10:]):
        top = spacing * (tent + 0.7)
        for t, weight in enumerate(row):
            height = 1.0 if tent == 0 and t + 0.5 < top else max(0.0, 1 - abs(t + 0.5 - top) / spacing)
            assert weight == pytest.approx(100 * height, abs=0.5 + 1e-9)
    with pytest.raises(ValueError, match="fewer tents than the 3 positions"):
        TentTree(3, (3,))
    with pytest.raises(ValueError, match="too coarse"):
        TentTree(9, (2, 2, 2), 3)


def test_many_tents_on_a_long_series_are_read_as_exactly_as_few() -> None:
    """Long enough for sums to lose their digits where the algebra is careless."""
    length = 50_000
    tree = TentTree(length, (746, 11))
    tents, leaves = tree._tents, tree._leaves.astype(np.float64)
    variance = tree.variance()
    for t in (0, 1, 66, 9_999, 17_123, length - 2, length - 1):
        prefix = (np.arange(length) <= t).astype(np.float64)
        # Reading back `prefix / leaves` solves the normal equations for the prefix; put in, the solution must fit them.
        solved = np.diff(tree.decode(np.concatenate([prefix / leaves, np.zeros(tree.rows - length)])), prepend=0)
        assert abs(leaves**2 * solved + tents.T @ (tents @ solved) - prefix).max() < 1e-7
        assert variance[t] == pytest.approx(float(prefix @ solved), rel=1e-7)


@examples(60)
@given(length=st.integers(1, 60), every=st.integers(1, 70), step=st.integers(1, 1000), anchor=st.integers(1, 1000))
def test_anchored_differences_of_any_shape(length: int, every: int, step: int, anchor: int) -> None:
    found = AnchoredDifferences(every, step, anchor, offset=length % every)
    matrix = matrix_of(found)
    assert matrix.shape == (found.rows, length)
    anchors = [int(np.flatnonzero(row)[0]) + 1 for row in matrix[length:]]
    assert anchors == sorted(range(length, 0, -every))
    assert (matrix[length:].sum(axis=1) == anchor).all()
    decoder = decoder_of(found)
    assert np.allclose(decoder @ matrix, np.eye(length), atol=1e-7)
    assert np.allclose(found.variance(), (decoder**2).sum(axis=1), rtol=1e-7)


@examples(60)
@given(
    taps=st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=9),
    series=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=9),
)
def test_convolution_is_exact_in_python_integers(taps: list[int], series: list[int]) -> None:
    wanted = [sum(taps[j] * series[t - j] for j in range(min(t + 1, len(taps)))) for t in range(len(series))]
    for exact in (np.array(series, dtype=np.int64), np.array(series, dtype=object)):
        found = convolve_exactly(np.array(taps, dtype=object), exact)
        assert [int(value) for value in found] == wanted


@pytest.mark.parametrize("shape", [(5, 0), (0, 3), (4, 7), (4, 3, 5), (70000, 2)])
@pytest.mark.parametrize("at_once", [1, 9, 1 << 15])
def test_many_series_are_filtered_like_each_alone(
    shape: tuple[int, ...], at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpwindows.kernel.maps.filters._AT_ONCE", at_once)
    exact = np.random.default_rng(2).integers(-9, 9, shape)
    for values in (exact, exact.T.copy().T):
        taps = np.array((5, -2, 0, -1), dtype=object)
        found = convolve_exactly(taps, values)
        assert found.shape == shape
        for lane in np.ndindex(shape[1:] if shape[0] else (0,)):
            assert (found[:, *lane] == np.convolve((5, -2, 0, -1), values[:, *lane])[: shape[0]]).all()


@pytest.mark.parametrize(
    ("largest", "growth", "wide"),
    [
        (2**61, 1, False),
        (2**62, 1, True),
        (2**61, 2, True),
        (2**40, 2**21, False),
        (2**40, 2**22, True),
        (1, 2**80, True),
    ],
)
def test_widening_is_where_it_must_be(largest: int, growth: int, wide: bool) -> None:
    for sign in (1, -1):
        exact = np.array([0, sign * largest], dtype=np.int64)
        found = widen(exact, growth)
        assert (found.dtype == object) == wide
        assert [int(value) for value in found] == [0, sign * largest]
    assert widen(np.zeros(0, dtype=np.int64), 5).size == 0
    assert int(widen(np.array([-(2**63)], dtype=np.int64), 1)[0]) == -(2**63)


def test_long_maps_leave_the_fourth_moment_open() -> None:
    assert Tree(3000, 10).fourth_moment() is None
    assert AnchoredDifferences(8, 5, 7, offset=3000 % 8).fourth_moment() is None
    assert len(Tree(3000, 10).variance()) == 3000


def test_anchored_differences_of_one_position() -> None:
    assert AnchoredDifferences(1, 3, 2, offset=1 % 1).decode(np.array([3.0, 2.0])) == pytest.approx([1.0])


def test_zeros_are_widened_too() -> None:
    """A failure would tell an empty log from others."""
    assert convolve_exactly(np.array([1 << 63], dtype=object), np.zeros(2, dtype=np.int64)).tolist() == [0, 0]


@pytest.mark.parametrize("weights", [[[1, 1], [0, 1]], [[1, 0], [3, 0]], [[1, 0], [3, -1]]])
def test_rows_that_look_ahead_or_cannot_be_solved_are_no_triangular_counter(weights: list[list[int]]) -> None:
    MatrixCounter(np.array([[1, 0], [3, 1]]))
    with pytest.raises(ValueError, match="lower-triangular with a positive diagonal"):
        MatrixCounter(np.array(weights))
