"""The factor form of an exported plan: what is measured as few small matrices of whole numbers, at any horizon.

**Factor form**, for these shapes; weights are whole numbers, texts of decimals where 64 bits are too few.

- `series`: y = matrix x, with x the answers of all windows in order; estimates are decoder_matrix y.
- `series of totals`: the same, with x the answers of the windows from step 1 on. Estimates of these are decoder_matrix
  y; that of any window is the difference of two, up to its last step and up to the step before its first.
- `series by threshold`: as `series`, threshold k with matrix_{k} and decoder_matrix_{k}.
- `blocks`: each row (first, starts, ends) of `blocks` measures `A X B'`, transposed and flattened, one block after
  another: X the answers of the starts first, first + 1, ... and of the ends from first on (0 where the end is before
  the start), ends taken last to first; A = matrix_{starts}, B = matrix_{ends}. An estimate of X comes from
  decoder_matrix_{starts} and decoder_matrix_{ends} on the two axes.
- `nested windows`: L is the lower-triangular matrix of `steps` rows and columns whose entry (i, j) is taps[i - j] (0
  where there is no such tap), X the square of all answers, starts taken last to first and ends first to last (0 where
  the end is before the start), and `P = L X L'`. Row i and column j stand for the window from `steps - i` to j + 1.
  y is P at the windows asked for, in order (times weights[n - 1] for a window of n steps, where there are weights). An
  estimate is `L^-1 P L^-T` at its window, P being 0 where it was not measured.
- `starts`: where there is a `unit`, y is every answer times it. Otherwise y = matrix X[a] for every start a, one after
  another, X[a, n] the answer of the n + 1 steps from step a + 1 on; where `continued` is true X[a] is continued to the
  longest length by its last value, else rows and columns beyond its length are left out. An estimate of X[a] is
  decoder_matrix times the numbers of the start, cut in the same way.
- `counters`: y = matrix X, flattened; X[n, a] is the answer of the n + 1 steps from step a + 1 on, cut at the horizon.
  Estimates are decoder_matrix y, by length and start.
- `crossed counters`: each row (first, starts, ends) of `blocks` measures a block X as above, but with ends from the
  first to the last, along both axes. L_n is the lower-triangular matrix of n rows whose entry (i, j) is taps[i - j] (0
  where there is no such tap), r and c are start_weights_{starts}_{ends} and end_weights_{starts}_{ends}. Flattened and
  one after the other: `P = diag(r) X L_ends'`, and `Q = L_starts J X diag(c)`, J taking starts from last to first.
  Least squares: with U = start_modes_..., V = end_modes_..., W = mode_variances_..., and `S(R) = U (W * (U' R V)) V'`
  (`*` entry by entry), the estimate is `E = S(diag(r) P L_ends + J L_starts' Q diag(c))`. Where pinned_root_... = K is
  not empty, the windows (c + 1, c), c = 0, 1, ... of a block, counted from 0, are known to be 0: let e be E there; the
  estimate is E less S of the array that holds `(K K')^-1 e` there and 0 elsewhere. Above 1,024 starts or ends U, V, W
  and K are left out.
- `windows in gaps`: X is the square of all answers, starts and ends from the first to the last, N its entry for 1..T,
  and `U = N - X` where the end is not before the start, 0 elsewhere. L is the lower-triangular matrix whose entry
  (i, j) is taps[i - j] (0 where there is no such tap), and `P = L U L`. y has, start by start and end by end,
  `weights[n - 1] P - offset N` for a window of n steps, but `total N` for that of all steps, so that N is its number
  over total. With that N an estimate is `N - L^-1 P L^-1`, where P is 0 for the window of all steps and where the end
  is before the start.
- `fixed-window trees`: y = matrix P, flattened. With R and Q the answers of the last W and W + 1 steps (0 before step
  1), column j of P holds at d = 0, 1, ..., W - 1 the arrivals of block j: `R[jW]` at 0, else `Q[jW+d] - R[jW+d-1]`;
  the second half of its columns the departures: 0 at 0, else `Q[jW+d] - R[jW+d]`; 0 beyond the horizon and from d = W
  on. An estimate is decoder_matrix of arrivals less decoder_matrix of departures, at (d, j) for the end jW + d.
- `time-window trees`: y = `matrix_starts P matrix_ends'`, flattened, for two squares P in turn. Let V be the sum of the
  answers of at least 1..k over starts x ends, ends taken last to first; the first P is the mixed difference of V along
  both axes (0 where the start is after the end), the second the same of at least 1..k-1. An estimate of the square is
  decoder_matrix_starts and decoder_matrix_ends on the two axes of the difference of the two.
- `rolling together`: x_t holds the answers of the windows that end at step t, one for each of `lengths`, 1 step or more
  as far as step 1; `y_t = sum_j taps[j] x_{t-j}`, with x_t = 0 before step 1, one step after another. Estimates are
  `x_t = taps[0]^-1 (y_t - sum_{j>=1} taps[j] x_{t-j})`; windows come one length after another.
- `compressed`: steps are taken in groups of `steps_per_group` (the last one may be short), and the stream of groups is
  measured by the design that `inner` describes, with its arrays named `inner/...`, its windows counted in groups. The
  estimate of window n is the inner estimate number nearest[n], and is off by `bias_bound[n]` at most in expectation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpwindows.ask.windows import count_windows, longest_window, window_steps
from dpwindows.kernel.designs import Design
from dpwindows.kernel.families.blocks import Blocks
from dpwindows.kernel.families.crossed import Crossed
from dpwindows.kernel.families.gaps import Gaps
from dpwindows.kernel.families.grouped_steps import GroupedSteps
from dpwindows.kernel.families.nested import Nested
from dpwindows.kernel.families.periods import SeriesInPeriods
from dpwindows.kernel.families.series import FromTotals, Series
from dpwindows.kernel.families.starts import Starts, blocks_of
from dpwindows.kernel.families.thresholds import SeriesByThreshold
from dpwindows.kernel.families.together import Together
from dpwindows.kernel.maps.filters import Identity
from dpwindows.kernel.maps.integer_maps import IntegerMap
from dpwindows.reading.any_windows import crossed_reader
from dpwindows.reading.designs import GroupedReader
from dpwindows.reading.maps import series_reader
from dpwindows.reading.reader import of
from dpwindows.strategies.paper.shapes import (
    CumulativeTree,
    FixedWindowTrees,
    RangeTree,
    TimeWindowTrees,
    TreeForEveryStart,
)

Arrays = dict[str, Any]
Matrix = Callable[[NDArray[Any]], NDArray[Any]]

# Largest matrices, in positions, that are written out whole.
_DENSE = 1024


def describe_inner(design: Design) -> dict[str, Any]:
    """What is said of the design within a compressed one."""
    if not isinstance(design.shape, GroupedSteps):
        return {}
    inner = design.shape.inner
    within = {"window": inner.problem.window.text, "steps": inner.problem.steps, "shape": factors(inner)[0]}
    return {"steps_per_group": design.shape.size, "inner": {**within, **describe_inner(inner)}}


def factors(design: Design) -> tuple[str, Arrays]:
    """The name of a design's shape, and the arrays of its factor form: none if it has none or they are too large."""
    problem = design.problem
    match design.shape:
        case Series(map=measured):
            return "series", _matrices(measured, count_windows(problem.window, problem.steps), "")
        case FromTotals(map=measured):
            return "series of totals", _matrices(measured, problem.steps, "")
        case SeriesInPeriods() as shape:
            windows = count_windows(problem.window, problem.steps)
            encode = partial(shape.encode_series, problem.window)
            return "series", _as_matrices(encode, lambda numbers: of(design).decode(numbers), windows, design.rows)
        case CumulativeTree(tree=tree) | TreeForEveryStart(tree=tree) as shape:
            # On the values of a series, not on their increments.
            name = "series" if isinstance(shape, CumulativeTree) else "counters"
            return name, _as_matrices(tree.encode, tree.decode, tree.length, tree.rows)
        case SeriesByThreshold(maps=maps):
            windows = count_windows(problem.window, problem.steps)
            named = [_matrices(own, windows, f"_{k}") for k, own in zip(problem.thresholds, maps, strict=True)]
            return "series by threshold", _together(named)
        case Blocks() as shape:
            return "blocks", _blocks(shape, design)
        case Nested(taps=taps, weights=weights):
            return "nested windows", _whole(taps=taps, **({"weights": weights} if weights else {}))
        case Starts() as shape:
            return "starts", _starts(shape, problem.steps)
        case Crossed() as shape:
            return "crossed counters", _crossed(shape, design)
        case Gaps(taps=taps, weights=weights, offset=offset, total=total):
            return "windows in gaps", _whole(taps=taps, weights=weights, offset=(offset,), total=(total,))
        case FixedWindowTrees(tree=tree):
            return "fixed-window trees", _tree(tree, "")
        case TimeWindowTrees(tree=tree):
            return "time-window trees", _tree(tree, "_starts") | _tree(RangeTree(tree.length), "_ends")
        case GroupedSteps():
            return "compressed", _compressed(design)
        case Together(lengths=lengths) as mixed:
            return "rolling together", {"lengths": np.array(lengths), "taps": mixed.matrices}
    return "explicit", {}


def _whole(**numbers: Sequence[int]) -> Arrays:
    return {name: integers(np.array(values, dtype=object)) for name, values in numbers.items()}


def _together(parts: Sequence[Arrays]) -> Arrays:
    """All of these arrays; none where one part has none."""
    return {name: array for part in parts for name, array in part.items()} if all(parts) else {}


def _blocks(shape: Blocks, design: Design) -> Arrays:
    problem = design.problem
    blocks = blocks_of(problem.steps, longest_window(problem.window, problem.steps), shape.width)
    table = np.array([(block.first, block.starts, block.ends) for block in blocks])
    return _together([{"blocks": table}, *(_matrices(tree, tree.length, f"_{tree.length}") for tree in shape.trees)])


def _starts(shape: Starts, steps: int) -> Arrays:
    """The matrices of all lengths that series of starts have; causal maps are cut from the longest."""
    if isinstance(shape.map, Identity):
        return {"unit": np.array(shape.map.unit)}
    arrays = _matrices(shape.map, shape.longest, "")
    return {**arrays, "continued": np.array(shape.continued)} if arrays else {}


def _crossed(shape: Crossed, design: Design) -> Arrays:
    blocks = shape.list_blocks(design.problem.window, design.problem.steps)
    table = np.array([(block.first, block.starts, block.ends) for block, _ in blocks])
    arrays = {"blocks": table} | _whole(taps=shape.taps)
    for block, measured in blocks:
        suffix = f"_{block.starts}_{block.ends}"
        if f"start_weights{suffix}" in arrays:
            continue
        weights = {f"start_weights{suffix}": measured.start_weights, f"end_weights{suffix}": measured.end_weights}
        arrays |= _whole(**weights)
        if max(measured.shape) <= _DENSE:
            decoder = crossed_reader(measured).decoder()
            names = ("start_modes", "end_modes", "mode_variances", "pinned_root")
            arrays |= {f"{name}{suffix}": array for name, array in zip(names, decoder, strict=True)}
    return arrays


def _compressed(design: Design) -> Arrays:
    reader = of(design)
    assert isinstance(reader, GroupedReader)
    _, inner = factors(reader.inner_design)
    if not inner:
        return {}
    problem = reader.inner_design.problem
    first, last = window_steps(problem.window, problem.steps)
    arrays = {**inner, "first": first, "last": last}
    return {"nearest": reader.nearest, **{f"inner/{name}": array for name, array in arrays.items()}}


def _tree(tree: RangeTree, suffix: str) -> Arrays:
    return _as_matrices(tree.node_sums, tree.decode, tree.length, tree.rows, suffix)


def _matrices(measured: IntegerMap, length: int, suffix: str) -> Arrays:
    if length > _DENSE:
        return {}
    return _as_matrices(measured.encode, series_reader(measured, length).decode, length, measured.rows(length), suffix)


def _as_matrices(encode: Matrix, decode: Matrix, length: int, rows: int, suffix: str = "") -> Arrays:
    """An integer map and its left inverse as matrices, found by applying them to unit vectors."""
    if length > _DENSE:
        return {}
    matrix = integers(encode(np.eye(length, dtype=np.int64)))
    return {f"matrix{suffix}": matrix, f"decoder_matrix{suffix}": decode(np.eye(rows))}


def integers(array: NDArray[Any]) -> NDArray[Any]:
    """64-bit integers where they fit, decimal texts otherwise."""
    largest = max((abs(int(value)) for value in (array.min(), array.max())), default=0) if array.size else 0
    return array.astype(np.int64) if largest < 1 << 63 else array.astype(str)
