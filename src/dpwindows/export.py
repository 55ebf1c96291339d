"""A plan's measurements as plain arrays: what anyone needs to check privacy and unbiasedness without this package.

The file is a NumPy archive (`.npz`) without pickled objects. `description` is a JSON text: what was asked, and for
measurement i the noise law and scale, the certified sensitivity with the name of its proof, and its `shape`. Arrays of
measurement i are named `i/...`. In lattice units, for each threshold k measured, `y = M x + z` with independent noise z
and exact integer answers x; estimates are `decoder y`.

**Explicit form**, up to 24 steps, for every strategy. Entry n of `entry_*` says that the exact count of at least
`entry_source[n]` in steps `entry_first[n]..entry_last[n]` enters number `entry_row[n]` of the vector of threshold
`entry_measured[n]` with weight `entry_value[n]`; everything else has weight 0. `decoder` turns one vector into the
estimates of the windows `first..last`, in their order; `bias_bound` says how far they may be off in expectation. To
recompute a sensitivity: the answers of one item are 0 or 1; take two histories of it that are neighbours, and the
vectors of all thresholds one after another.

**Factor form**, at any horizon, where the strategy has one of these shapes; weights are integers.

- `series`: y = matrix x, with x the answers of all windows in order; estimates are decoder_matrix y.
- `blocks`: each row (first, starts, ends) of `blocks` measures `A X B'`, transposed and flattened, one block after
  another: X the answers of the starts first, first + 1, ... and of the ends from first on (0 where the end is before
  the start), ends taken last to first; A = matrix_{starts}, B = matrix_{ends}. An estimate of X comes from
  decoder_matrix_{starts} and decoder_matrix_{ends} on the two axes.
- `counters`: y = matrix X where `measured` is true, row by row; X[n, a] the answer of the n + 1 steps from step a + 1
  on, cut at the horizon (what is not measured is taken as 0 when decoding).
- `fixed-window trees`: y = matrix P, flattened. With R and Q the answers of the last W and W + 1 steps (0 before step
  1), column j of P holds at d = 0, 1, ..., W - 1 the arrivals of block j: `R[jW]` at 0, else `Q[jW+d] - R[jW+d-1]`;
  the second half of its columns the departures: 0 at 0, else `Q[jW+d] - R[jW+d]`; 0 beyond the horizon and from d = W
  on. An estimate is decoder_matrix of arrivals less decoder_matrix of departures, at (d, j) for the end jW + d.
- `time-window trees`: y = `matrix P matrix'`, flattened, for two squares P in turn. Let V be the sum of the answers of
  at least 1..k over starts x ends, ends taken last to first; the first P is the mixed difference of V along both axes
  (0 where the start is after the end), the second the same of at least 1..k-1. An estimate of the square is
  decoder_matrix on both axes of the difference of the two.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpwindows import release_files
from dpwindows.errors import InputError
from dpwindows.integer_maps import IntegerMap
from dpwindows.strategies.compressed import CompressedDesign
from dpwindows.strategies.design import (
    BlocksDesign,
    CountersDesign,
    Design,
    PrescribedScale,
    SeriesDesign,
    blocks_of,
)
from dpwindows.strategies.paper.designs import FixedWindowTrees, TimeWindowTrees
from dpwindows.strategies.paper.range_tree import RangeTree
from dpwindows.windows import longest_window, window_steps

if TYPE_CHECKING:
    from dpwindows.plan import Allotment, Plan

FORMAT = 1
# Up to this horizon every weight on every window is written out.
_EXPLICIT = 24
# Largest matrices, in positions, that are written out whole.
_DENSE = 1024

Arrays = dict[str, Any]


def export_plan(plan: Plan, path: Path, *, force: bool = False) -> None:
    """Write the measurements of a plan to a `.npz` file (see the module's description).

    Raises:
        InputError: the file exists and `force` is not set, it does not end in .npz, or a measurement is too large to
            be written out.
        EngineError: the file cannot be written.
    """
    release_files.require_writable(path, force=force, endings=(".npz",))
    arrays: Arrays = {}
    described = []
    for number, allotment in enumerate(plan.allotments):
        shape, found = _measurement(allotment)
        described.append({"shape": shape, **_describe(allotment)})
        arrays |= {f"{number}/{name}": array for name, array in found.items()}
    description = {
        "format": FORMAT,
        "steps": plan.timeline.steps,
        "unit": plan.unit.name,
        "budget": plan.budget.to_dict(),
        "singleton": plan.singleton,
        "measurements": described,
        "reading": __doc__,
    }
    content = io.BytesIO()
    np.savez_compressed(content, description=np.array(json.dumps(description)), **arrays)
    release_files.write_bytes(content.getvalue(), path)


def _describe(allotment: Allotment) -> dict[str, Any]:
    measurement = allotment.measurement
    design = measurement.design
    return {
        "window": allotment.query.window.text,
        "thresholds": list(design.problem.thresholds),
        "strategy": design.strategy,
        "parameters": dict(design.parameters),
        "noise": {"law": measurement.law, "scale": measurement.scale},
        "sensitivity": {
            "norm": "squared L2" if measurement.law == "discrete Gaussian" else "L1",
            "bound": str(design.sensitivity),
            "proof": design.proof,
        },
        "rows": design.rows,
    }


def _measurement(allotment: Allotment) -> tuple[str, Arrays]:
    """The shape and the arrays of one measurement."""
    design = allotment.measurement.design
    problem = design.problem
    first, last = window_steps(problem.window, problem.steps)
    arrays: Arrays = {"first": first, "last": last, "bias_bound": allotment.bias_bounds()}
    shape, factors = _factors(design)
    if problem.steps <= _EXPLICIT:
        arrays |= _explicit(design)
    elif not factors:
        raise InputError(
            f"the measurement of {problem.window} by strategy {design.strategy!r} can be exported for at most "
            f"{_EXPLICIT} steps, got {problem.steps}: plan it for fewer, or choose another strategy"
        )
    return shape, arrays | factors


# --- Explicit form --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _OneWindow:
    """The answers of which one is 1, for one threshold and one window, and all others are 0."""

    steps: int
    k: int
    first: int
    last: int

    def cumulative(self, k: int) -> NDArray[Any]:
        return self.rolling(k, self.steps)

    def rolling(self, k: int, length: int) -> NDArray[Any]:
        ends = np.arange(1, self.steps + 1)
        found = (ends == self.last) & (np.maximum(1, ends - length + 1) == self.first) & (k == self.k)
        return np.asarray(found, dtype=np.int64)

    def windows(self, k: int, first_start: int, starts: int, first_end: int, ends: int) -> NDArray[Any]:
        found = np.zeros((starts, ends), dtype=np.int64)
        row, column = self.first - first_start, self.last - first_end
        if k == self.k and 0 <= row < starts and 0 <= column < ends:
            found[row, column] = 1
        return found


def _explicit(design: Design) -> Arrays:
    """Every weight, found by measuring answers that are 0 but for one window: encoding is linear."""
    entries = list(_entries(design))
    names = ("measured", "row", "source", "first", "last", "value")
    columns: list[list[int]] = [list(column) for column in zip(*entries, strict=True)] or [[] for _ in names]
    decoded = np.array([design.decode(column) for column in np.eye(design.rows)]).T
    return {
        **{
            f"entry_{name}": _integers(np.array(column, dtype=object))
            for name, column in zip(names, columns, strict=True)
        },
        "decoder": decoded,
    }


def _entries(design: Design) -> Iterator[tuple[int, int, int, int, int, int]]:
    problem = design.problem
    sources = design.counted if isinstance(design, PrescribedScale) else problem.thresholds
    for source in sources:
        for first in range(1, problem.steps + 1):
            for last in range(first, problem.steps + 1):
                answers = _OneWindow(problem.steps, source, first, last)
                for k in problem.thresholds:
                    encoded = design.encode(answers, k)
                    for row in np.flatnonzero(encoded):
                        yield k, int(row), source, first, last, int(encoded[row])


# --- Factor form ----------------------------------------------------------------------------------------------------


def _factors(design: Design) -> tuple[str, Arrays]:
    """The shape's name and its factors; no factors where there are none or they are too large."""
    match design:
        case SeriesDesign(map=found):
            return "series", _matrices(found, "")
        case BlocksDesign():
            problem = design.problem
            blocks = blocks_of(problem.steps, longest_window(problem.window, problem.steps), design.width)
            sizes = {size for block in blocks for size in (block.starts, block.ends)}
            named = [_matrices(design.make_map(size), f"_{size}") for size in sorted(sizes)]
            arrays = {name: array for part in named for name, array in part.items()}
            table = np.array([(block.first, block.starts, block.ends) for block in blocks])
            return "blocks", {"blocks": table, **arrays} if all(named) else {}
        case CountersDesign(map=found):
            arrays = _matrices(found, "")
            return "counters", {**arrays, "measured": _measured(design)} if arrays else {}
        case FixedWindowTrees():
            return "fixed-window trees", _tree(design.tree)
        case TimeWindowTrees():
            return "time-window trees", _tree(design.tree)
        case CompressedDesign():
            return "compressed", {}
    return "explicit", {}


def _measured(design: CountersDesign) -> NDArray[np.bool_]:
    lengths, room = np.arange(design.map.rows)[:, None] + 1, design.problem.steps - np.arange(design.problem.steps)
    return lengths <= room if design.causal else np.ones((design.map.rows, design.problem.steps), dtype=np.bool_)


def _tree(tree: RangeTree) -> Arrays:
    if tree.length > _DENSE:
        return {}
    points = np.eye(tree.length, dtype=np.int64)
    return {"matrix": _integers(tree.node_sums(points)), "decoder_matrix": tree.decode(np.eye(tree.rows))}


def _matrices(found: IntegerMap, suffix: str) -> Arrays:
    """An integer map and its left inverse as matrices, found by applying them to unit vectors."""
    if found.length > _DENSE:
        return {}
    units = np.eye(found.length, dtype=np.int64)
    matrix = found.encode(units)
    return {f"matrix{suffix}": _integers(matrix), f"decoder_matrix{suffix}": found.decode(np.eye(found.rows))}


def _integers(array: NDArray[Any]) -> NDArray[Any]:
    """64-bit integers where they fit, decimal texts otherwise."""
    largest = max((abs(int(value)) for value in (array.min(), array.max())), default=0) if array.size else 0
    return array.astype(np.int64) if largest < 1 << 63 else array.astype(str)
