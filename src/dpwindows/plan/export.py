"""A plan's measurements as plain arrays: what anyone needs to check privacy and unbiasedness without this package.

The file is a NumPy archive (`.npz`) without pickled objects. `description` is a JSON text: what was asked, and for
measurement i the noise law and scale, the certified sensitivity with the name of its proof, and its `shape`. Arrays of
measurement i are named `i/...`. In lattice units, for each threshold k measured, `y = M x + z` with noise z of the law
and scale that are named and exact integer answers x; estimates are `decoder y`.

**Explicit form**, up to 24 steps, for every strategy. Entry n of `entry_*` says that the exact count of at least
`entry_source[n]` in steps `entry_first[n]..entry_last[n]` enters number `entry_row[n]` of the vector of threshold
`entry_measured[n]` with weight `entry_value[n]`; everything else has weight 0. `decoder` turns one vector into the
estimates of the windows `first..last`, in their order (where each threshold has its own: `decoder_{k}`); `bias_bound`
says how far they may be off in expectation. To recompute a sensitivity: the answers of one item are 0 or 1; take two
histories of it that are neighbours, and the vectors of all thresholds one after another. The threshold -1 stands for
occurrences, of which one item may have many.

**Groups.** `groups` of the description lists the columns with their public values, `group_of`, `max_groups` and the
share of the totals. A measurement then has `groups` too: it is made in every group by the columns `by`, in `count`
groups, each with noise of its own, of the group's own log. `bound` is the sensitivity of all of them together. In which
group an event counts is said in `docs/groups.md`; where a rule asks which group was first and moments are equal, the
order of the lists decides, the last column varying fastest.

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

import io
import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpwindows import reading
from dpwindows.ask import formats
from dpwindows.ask.windows import count_windows, longest_window, window_steps
from dpwindows.count.answers import ExactAnswers
from dpwindows.errors import InputError
from dpwindows.kernel.accounting import GAUSSIAN, NORMS
from dpwindows.kernel.designs import Design
from dpwindows.kernel.families.blocks import Blocks
from dpwindows.kernel.families.chains_of_runs import SeriesByThreshold
from dpwindows.kernel.families.crossed import Crossed
from dpwindows.kernel.families.gaps import Gaps
from dpwindows.kernel.families.grouped_steps import GroupedSteps
from dpwindows.kernel.families.nested import Nested
from dpwindows.kernel.families.periods import SeriesInPeriods
from dpwindows.kernel.families.series import FromTotals, Series
from dpwindows.kernel.families.starts import Starts, blocks_of
from dpwindows.kernel.families.together import Together
from dpwindows.kernel.maps.filters import Identity
from dpwindows.kernel.maps.integer_maps import IntegerMap
from dpwindows.reading.any_windows import crossed_reader
from dpwindows.reading.designs import GroupedReader
from dpwindows.reading.maps import series_reader
from dpwindows.strategies.paper.range_tree import RangeTree
from dpwindows.strategies.paper.shapes import (
    CumulativeTree,
    FixedWindowTrees,
    TimeWindowTrees,
    TreeForEveryStart,
)
from dpwindows.strategies.strategy import PrescribedScale

if TYPE_CHECKING:
    from dpwindows.kernel.measure import Measurement
    from dpwindows.plan.planned import Planned

Arrays = dict[str, Any]
Matrix = Callable[[NDArray[Any]], NDArray[Any]]

# Up to this horizon every weight on every window is written out.
_EXPLICIT = 24
# Largest matrices, in positions, that are written out whole.
_DENSE = 1024


def export_plan(plan: Planned) -> bytes:
    """The measurements of a plan, as the bytes of a `.npz` file (see the module's description).

    Raises:
        InputError: a measurement is too large to be written out.
    """
    arrays: Arrays = {}
    described = []
    for number, measurement in enumerate(plan.measurements):
        shape, factored = _factors(measurement.design)
        described.append({"shape": shape, **_describe(measurement)})
        own = _arrays(measurement.design, factored)
        arrays |= {f"{number}/{name}": array for name, array in own.items()}
    description = {
        "format": formats.EXPORT,
        "steps": plan.timeline.steps,
        "unit": plan.unit.name,
        "budget": plan.budget.to_dict(),
        "singleton": plan.singleton,
        **({} if plan.grouping is None else {"groups": plan.grouping.to_dict()}),
        "measurements": described,
        "reading": __doc__,
    }
    content = io.BytesIO()
    np.savez_compressed(content, description=np.array(json.dumps(description)), **arrays)
    return content.getvalue()


def _describe(measurement: Measurement) -> dict[str, Any]:
    design = measurement.design
    return {
        **_describe_inner(design),
        "window": design.problem.window.text,
        "thresholds": list(design.problem.thresholds),
        "strategy": design.strategy,
        "parameters": dict(design.parameters),
        "noise": {"law": measurement.law, "scale": measurement.scale},
        "sensitivity": {
            "norm": "squared L2" if measurement.law == GAUSSIAN else NORMS[measurement.law],
            "bound": str(design.sensitivity),
            "proof": design.proof,
        },
        "rows": design.rows,
        **_in_groups(measurement),
    }


def _in_groups(measurement: Measurement) -> dict[str, Any]:
    """The groups of a measurement, and what is certified of all of them together."""
    if measurement.groups is None:
        return {}
    level, certificate = measurement.groups.level, measurement.certificate
    by = [measurement.groups.grouping.names[place] for place in level.kept]
    return {"groups": {"by": by, "count": level.count, "bound": str(certificate.bound), "proof": certificate.proof}}


def _arrays(design: Design, factored: Arrays) -> Arrays:
    """The arrays of one measurement, those of its factor form among them."""
    problem = design.problem
    bias = reading.of(design).bias_bound() if design.alike else None
    first, last = window_steps(problem.window, problem.steps)
    arrays: Arrays = {"first": first, "last": last, "bias_bound": np.zeros(len(first)) if bias is None else bias}
    if problem.steps <= _EXPLICIT:
        arrays |= _explicit(design)
    elif not factored:
        raise InputError(
            f"the measurement of {problem.window} by strategy {design.strategy!r} can be exported for at most "
            f"{_EXPLICIT} steps, got {problem.steps}: plan it for fewer, or choose another strategy"
        )
    return arrays | factored


# --- Explicit form --------------------------------------------------------------------------------------------------


def _of_one_window(design: Design, k: int, first: int, last: int) -> ExactAnswers:
    """The answers that are 1 for one threshold and one window, and 0 elsewhere."""
    steps = design.problem.steps
    corners = [
        (step, recency, sign)
        for step, recency, sign in (
            (last, first, 1),
            (last + 1, first, -1),
            (last, first - 1, -1),
            (last + 1, first - 1, 1),
        )
        if recency >= 1 and step <= steps
    ]
    nothing = np.zeros((3, 0), dtype=np.int64)
    return ExactAnswers(steps, dict.fromkeys(_sources(design), nothing) | {k: np.array(corners).T})


def _sources(design: Design) -> Sequence[int]:
    """The thresholds whose answers a design reads."""
    shape, thresholds = design.shape, design.problem.thresholds
    return shape.counted(thresholds) if isinstance(shape, PrescribedScale) else thresholds


def _explicit(design: Design) -> Arrays:
    """Every weight, found by measuring answers that are 0 but for one window: encoding is linear."""
    entries = list(_entries(design))
    names = ("measured", "row", "source", "first", "last", "value")
    columns: list[list[int]] = [list(column) for column in zip(*entries, strict=True)] or [[] for _ in names]
    decoders = {
        "decoder" if design.alike else f"decoder_{k}": np.array([own.decode(one) for one in np.eye(design.rows)]).T
        for k in design.problem.thresholds[: 1 if design.alike else None]
        for own in [reading.of(design.at(k))]
    }
    return {
        **{
            f"entry_{name}": _integers(np.array(column, dtype=object))
            for name, column in zip(names, columns, strict=True)
        },
        **decoders,
    }


def _entries(design: Design) -> Iterator[tuple[int, int, int, int, int, int]]:
    problem = design.problem
    for source in _sources(design):
        for first in range(1, problem.steps + 1):
            for last in range(first, problem.steps + 1):
                answers = _of_one_window(design, source, first, last)
                for k in problem.thresholds:
                    encoded = design.encode(answers, k)
                    for row in np.flatnonzero(encoded):
                        yield k, int(row), source, first, last, int(encoded[row])


# --- Factor form ------------------------------------------------------------------------------------------------------


def _describe_inner(design: Design) -> dict[str, Any]:
    """What is said of the design within a compressed one."""
    if not isinstance(design.shape, GroupedSteps):
        return {}
    inner = design.shape.inner
    within = {"window": inner.problem.window.text, "steps": inner.problem.steps, "shape": _factors(inner)[0]}
    return {"steps_per_group": design.shape.size, "inner": {**within, **_describe_inner(inner)}}


def _factors(design: Design) -> tuple[str, Arrays]:
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
            return "series", _as_matrices(
                encode, lambda numbers: reading.of(design).decode(numbers), windows, design.rows
            )
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
    return {name: _integers(np.array(values, dtype=object)) for name, values in numbers.items()}


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
    reader = reading.of(design)
    assert isinstance(reader, GroupedReader)
    _, inner = _factors(reader.inner_design)
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
    matrix = _integers(encode(np.eye(length, dtype=np.int64)))
    return {f"matrix{suffix}": matrix, f"decoder_matrix{suffix}": decode(np.eye(rows))}


def _integers(array: NDArray[Any]) -> NDArray[Any]:
    """64-bit integers where they fit, decimal texts otherwise."""
    largest = max((abs(int(value)) for value in (array.min(), array.max())), default=0) if array.size else 0
    return array.astype(np.int64) if largest < 1 << 63 else array.astype(str)
