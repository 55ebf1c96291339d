"""Integer maps of all kinds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpwindows.kernel.maps.counters import MatrixCounter
from dpwindows.kernel.maps.differences import AnchoredDifferences
from dpwindows.kernel.maps.endless_counter import EndlessCounter
from dpwindows.kernel.maps.filters import Filter, Identity, OffsetFilter
from dpwindows.kernel.maps.integer_maps import CausalMap, IntegerMap
from dpwindows.kernel.maps.tent_tree import TentTree
from dpwindows.kernel.maps.trees import CausalTree

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
