"""Integer maps of all kinds: exact, linear, and position by position what they are for a whole series."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from dpwindows.kernel.families.gaps import Gaps
from dpwindows.kernel.maps.counters import MatrixCounter
from dpwindows.kernel.maps.differences import AnchoredDifferences
from dpwindows.kernel.maps.filters import Identity, OffsetFilter
from dpwindows.kernel.maps.integer_maps import widen
from dpwindows.kernel.maps.trees import CausalTree
from tests.kernel.maps.some_maps import SIZES, causal_maps, maps_of, matrix_of


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
            measured, memory = found.encode_step(position, values, memory)
            assert measured.shape == (found.rows_at(position), 3)
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
        lambda: Gaps((8, -4), (3, 0), 0, 9),
        lambda: Gaps((8, -4), (3, 3), 0, 0),
    ],
)
def test_weights_that_bounds_add_up_are_positive(make: Callable[[], object]) -> None:
    """One below 0 would be taken off what the others are charged."""
    with pytest.raises(ValueError, match="must be positive"):
        make()
