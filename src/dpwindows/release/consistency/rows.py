"""Any windows in rows: by last step, the shortest first, or by first step; views of one table wherever that can be.

Windows of at most m steps stand in a table of shape (..., steps, m) *by end*: `by_end[..., b, j]` is the window of
j + 1 steps that ends with step b + 1, 0 where there is none. The windows that start at one step are a diagonal of it.
In canonical order windows come by first step, and then by length.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from dpwindows.kernel.maps.integer_maps import FloatArray, IntArray

# Rows that are worked on at a time: few enough to stay in a processor's cache, many enough to be worth a call.
AT_ONCE = 64


def row_lengths(steps: int, longest: int) -> IntArray:
    """How many windows end at each step, shape (steps,); backwards, how many start at each."""
    return np.asarray(np.minimum(np.arange(1, steps + 1), longest))


def in_order(steps: int, longest: int) -> list[slice]:
    """For each first step, where its windows stand in canonical order."""
    ends = np.cumsum(row_lengths(steps, longest)[::-1]).tolist()
    return [slice(begin, end) for begin, end in pairwise([0, *ends])]


def rows_by_end(by_end: FloatArray) -> Iterator[FloatArray]:
    """The windows that end at each step, the shortest first: views of a table by end."""
    for steps, row in zip(row_lengths(*by_end.shape).tolist(), by_end, strict=True):
        yield row[:steps]


def rows_by_start(by_end: FloatArray) -> Iterator[FloatArray]:
    """The windows that start at each step, the shortest first: diagonals of a table by end, as views."""
    for start, steps in enumerate(row_lengths(*by_end.shape)[::-1].tolist()):
        yield np.einsum("ii->i", by_end[start : start + steps, :steps])


def rows_by_start_at(by_end: FloatArray, start: int, rows: int, longest: int) -> FloatArray:
    """The windows of at most `longest` steps that start at some steps, one row for each: a view of a table by end.

    A table of some more rows than there are steps takes what stands in places that are no windows.

    Raises:
        ValueError: the table ends before the last window of these rows.
    """
    *outer, down, along = by_end.strides
    if start + rows + longest - 1 > by_end.shape[-2] or longest > by_end.shape[-1]:
        raise ValueError("the rows reach beyond the table")
    return np.lib.stride_tricks.as_strided(
        by_end[..., start:, :], (*by_end.shape[:-2], rows, longest), (*outer, down, down + along)
    )


def by_start(by_end: FloatArray) -> FloatArray:
    """A table by end as rows of windows by start: shape (..., steps, longest), the shortest first."""
    steps, longest = by_end.shape[-2:]
    found = np.zeros_like(by_end)
    for place in range(min(steps, longest)):
        found[..., : steps - place, place] = by_end[..., place:, place]
    return found
