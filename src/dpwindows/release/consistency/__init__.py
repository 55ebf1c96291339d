"""Post-processing of released numbers into one table that agrees with itself (see `table`), and notes on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dpwindows.report.headlines import widest_factor

# How often a note would be made of consistent numbers that are the true counts, but for rounding.
_FALSE_ALARMS, _ROUNDING = 1 / 1000, 0.5
# Rows that are looked at at a time.
_ROWS = 1 << 16
_READ = ["consistent", "estimate", "std_error", "bias_bound"]


def remarks(table: pa.Table, metadata: Mapping[str, Any]) -> list[str]:
    """What a reader should know of the consistent numbers in the rows of a release, one sentence each.

    They are told of where they lie farther from their estimates than true counts would. Of n estimates each errs by
    more than `factor` standard errors with probability 1 / (1000 n) at most, so that any does in one release of 1,000.
    """
    made = table.num_rows - table["consistent"].null_count
    if not made:
        return []
    factor = widest_factor(_FALSE_ALARMS / made, metadata, pc.unique(table["window"]).to_pylist())
    far = sum(_far_in(rows, factor) for rows in table.select(_READ).to_batches(_ROWS))
    if not far:
        return []
    return [
        f"consistent numbers lie more than {factor:.1f} standard errors from {far:,} of {made:,} estimates; true "
        "counts lie that far from any in at most one of 1,000 releases"
    ]


def _far_in(rows: pa.RecordBatch, factor: float) -> int:
    moved = pc.abs(pc.subtract(pc.cast(rows["consistent"], pa.float64(), safe=False), rows["estimate"]))
    allowed = pc.add(pc.add(pc.multiply(rows["std_error"], factor), rows["bias_bound"]), _ROUNDING)
    return pc.sum(pc.greater(moved, allowed)).as_py() or 0
