"""Integer maps: exact, linear, and position by position what they are for a whole series."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpwindows.kernel.families.gaps import GapFilter
from dpwindows.kernel.maps.counters import MatrixCounter
from dpwindows.kernel.maps.differences import AnchoredDifferences
from dpwindows.kernel.maps.endless_counter import EndlessCounter
from dpwindows.kernel.maps.filters import Filter, Identity, OffsetFilter, convolve_exactly
from dpwindows.kernel.maps.integer_maps import CausalMap, IntegerMap, widen
from dpwindows.kernel.maps.tent_tree import TentTree
from dpwindows.kernel.maps.trees import CausalTree
from tests.search import examples

SIZES = (1, 2, 3, 4, 5, 7, 10, 16, 17, 31, 50)


def causal_maps(length: int, rng: np.random.Generator) -> list[CausalMap]:
    """Causal maps of all kinds, with parameters a planner might choose and some it would not."""
    taps = (1 << 20, *(-int(tap) for tap in np.sort(rng.integers(0, (1 << 20) // length, size=length))[::-1]))
    matrix = np.tril(rng.integers(-300, 300, (length, length)))
    np.fill_diagonal(matrix, rng.integers(1, 300, length))
    found: list[CausalMap] = [Identity(length), Filter(taps), Filter(taps[:2]), Filter((7,))]
    found += [MatrixCounter(matrix), MatrixCounter(np.tril(np.ones((length, length), dtype=np.int64)))]
    found += [EndlessCounter(12)]
    weights, offsets = (tuple(int(one) for one in rng.integers(1, most, length)) for most in (900, 9))
    found += [OffsetFilter(taps, weights, offsets, 0)]
    found += [OffsetFilter((7, -2), tuple(32 * one for one in weights), tuple(32 * one for one in offsets), 5)]
    found += [
        AnchoredDifferences(every, int(rng.integers(1, 1001)), int(rng.integers(1, 1001)), offset)
        for every in sorted({1, 2, 3, max(1, length - 1), length, length + 3})
        for offset in sorted({0, length % every, every - 1})
    ]
    return found + [CausalTree(branching, weights) for branching in (2, 3, 7) for weights in ((5,), (9, 1, 400))]


def maps_of(length: int, rng: np.random.Generator) -> list[IntegerMap]:
    """Maps of all kinds."""
    tents = [TentTree(length, ()), TentTree(length, (length // 3, 1 if length > 1 else 0), 97)]
    return [*causal_maps(length, rng), *tents]


def matrix_of(found: IntegerMap, length: int) -> NDArray[Any]:
    return found.encode(np.eye(length, dtype=np.int64))


@pytest.mark.parametrize("length", SIZES)
def test_encode_is_linear_and_exact(length: int) -> None:
    rng = np.random.default_rng(length)
    for found in maps_of(length, rng):
        matrix = matrix_of(found, length)
        assert matrix.shape == (found.rows(length), length)
        for shape in ((length,), (length, 3)):
            exact = rng.integers(-(10**6), 10**6, size=shape)
            assert np.array_equal(found.encode(exact), matrix @ exact)
        huge = exact.astype(object) * 10**30
        if isinstance(found, CausalTree):  # its memory holds counts of 64 bits, and nothing wraps
            with pytest.raises(OverflowError):
                found.encode(huge)
            continue
        assert np.array_equal(found.encode(huge), matrix.astype(object) @ huge)


@pytest.mark.parametrize("length", SIZES)
def test_encode_does_not_wrap(length: int) -> None:
    """Counts up to the ends of the 64-bit range, where products and sums are far beyond it."""
    rng = np.random.default_rng(length)
    for largest in (2**38, 2**42, 2**61, 2**63 - 1):
        exact = rng.integers(-largest, largest, size=length, endpoint=True)
        exact[0] = largest
        for found in maps_of(length, rng):
            wanted = matrix_of(found, length).astype(object) @ exact.astype(object)
            assert [int(value) for value in found.encode(exact)] == [int(value) for value in wanted]


@pytest.mark.parametrize("length", SIZES)
@pytest.mark.parametrize("largest", [10**6, 2**61])
def test_a_whole_series_is_its_positions_one_after_another(length: int, largest: int) -> None:
    """Integer by integer, for any number of lanes; only anchors stand apart in a whole series, after the rest."""
    rng = np.random.default_rng(length)
    exact = rng.integers(-largest, largest, size=(length, 3), endpoint=True)
    for found in causal_maps(length, rng):
        rows: list[list[int]] = []
        kinds: list[int] = []
        memory = found.fresh(3)
        for position, values in enumerate(exact, 1):
            measured = found.encode_step(position, values, memory)
            assert measured.shape == (found.rows_at(position), 3)
            memory = found.remember(position, values, memory)
            rows.extend(measured.tolist())
            kinds.extend(range(len(measured)))
        if isinstance(found, AnchoredDifferences):
            rows = [rows[place] for place in np.argsort(kinds, kind="stable")]
        assert len(rows) == found.rows(length)
        assert found.encode(exact).tolist() == rows


@pytest.mark.parametrize("length", SIZES)
def test_no_row_of_a_causal_map_needs_what_comes_after_its_position(length: int) -> None:
    """Its memory holds nothing but what has been, so a series that is cut is measured by its first rows."""
    rng = np.random.default_rng(length)
    for found in causal_maps(length, rng):
        counts = [found.rows_at(position) for position in range(1, length + 1)]
        assert sum(counts) == found.rows(length)
        if isinstance(found, (AnchoredDifferences, MatrixCounter, OffsetFilter)):
            continue  # the first puts anchors last, the others are for series of one length
        exact = rng.integers(-9, 9, size=length)
        for cut in {1, length // 2, length - 1} - {0}:
            assert found.encode(exact[:cut]).tolist() == found.encode(exact)[: sum(counts[:cut])].tolist()


@examples(60)
@given(length=st.integers(1, 70), branching=st.integers(2, 20), weights=st.lists(st.integers(1, 9), min_size=1))
def test_trees_of_any_shape(length: int, branching: int, weights: list[int]) -> None:
    """On every level each complete node weighs its own increments, and no increment is in two of them."""
    tree = CausalTree(branching, tuple(weights[:7]))
    nodes = matrix_of(tree, length) @ np.tril(np.ones((length, length), dtype=np.int64))  # of the increments
    wanted = []
    for end in range(1, length + 1):
        for level, weight in enumerate(tree.weights):
            if end % branching**level:
                break
            wanted.append([weight * (end - branching**level < place <= end) for place in range(1, length + 1)])
    assert nodes.tolist() == wanted
    assert nodes.sum(axis=0).max() <= sum(tree.weights)


@examples(60)
@given(length=st.integers(1, 70), shares=st.lists(st.floats(0, 0.99), max_size=3), unit=st.sampled_from([4, 7, 1000]))
def test_tent_trees_of_any_shape(length: int, shares: list[float], unit: int) -> None:
    tree = TentTree(length, tuple(int(share * length) for share in shares), unit)
    weights = matrix_of(tree, length) @ np.tril(np.ones((length, length), dtype=np.int64))  # of the increments
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


def test_tents_are_as_they_are_described() -> None:
    tree = TentTree(10, (3,), 100)
    spacing = 10 / 3.7
    for tent, row in enumerate((matrix_of(tree, 10) @ np.tril(np.ones((10, 10), dtype=np.int64)))[10:]):
        top = spacing * (tent + 0.7)
        for t, weight in enumerate(row):
            height = 1.0 if tent == 0 and t + 0.5 < top else max(0.0, 1 - abs(t + 0.5 - top) / spacing)
            assert weight == pytest.approx(100 * height, abs=0.5 + 1e-9)
    with pytest.raises(ValueError, match="fewer tents than the 3 positions"):
        TentTree(3, (3,))
    with pytest.raises(ValueError, match="too coarse"):
        TentTree(9, (2, 2, 2), 3)


@examples(60)
@given(
    length=st.integers(1, 60),
    every=st.integers(1, 70),
    step=st.integers(1, 1000),
    anchor=st.integers(1, 1000),
    offset=st.integers(-70, 70),
)
def test_anchored_differences_of_any_shape(length: int, every: int, step: int, anchor: int, offset: int) -> None:
    found = AnchoredDifferences(every, step, anchor, offset)
    matrix = matrix_of(found, length)
    assert matrix.shape == (found.rows(length), length)
    unit = np.eye(length, dtype=np.int64)
    assert np.array_equal(matrix[:length], step * (unit - np.eye(length, k=-1, dtype=np.int64)))
    anchors = [t for t in range(1, length + 1) if (t - offset) % every == 0]
    assert [t for t in range(1, length + 1) if found.is_anchor(t)] == anchors
    assert np.array_equal(matrix[length:], anchor * unit[np.array(anchors, dtype=np.int64) - 1])


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


def test_zeros_are_widened_too() -> None:
    """A failure would tell an empty log from others."""
    assert convolve_exactly(np.array([1 << 63], dtype=object), np.zeros(2, dtype=np.int64)).tolist() == [0, 0]


@pytest.mark.parametrize("weights", [[[1, 1], [0, 1]], [[1, 0], [3, 0]], [[1, 0], [3, -1]]])
def test_rows_that_look_ahead_or_cannot_be_solved_are_no_triangular_counter(weights: list[list[int]]) -> None:
    MatrixCounter(np.array([[1, 0], [3, 1]]))
    with pytest.raises(ValueError, match="lower-triangular with a positive diagonal"):
        MatrixCounter(np.array(weights))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Identity(0),
        lambda: Identity(-1),
        lambda: AnchoredDifferences(0, 5, 4),
        lambda: AnchoredDifferences(1, 0, 4),
        lambda: AnchoredDifferences(1, 5, -4),
        lambda: CausalTree(1, (5, 4)),
        lambda: CausalTree(2, (5, -4)),
        lambda: CausalTree(2, (0, 4)),
        lambda: GapFilter((8, -4), (3, 0), 0, 9),
        lambda: GapFilter((8, -4), (3, 3), 0, 0),
    ],
)
def test_weights_that_bounds_add_up_are_positive(make: Callable[[], object]) -> None:
    """One below 0 would be taken off what the others are charged."""
    with pytest.raises(ValueError, match="must be positive"):
        make()
