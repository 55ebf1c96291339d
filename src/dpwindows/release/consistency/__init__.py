"""Post-processing of released numbers into one table that agrees with itself (see `table`), and notes on it."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

# A consistent number may differ from its estimate by this many standard errors before that is said, and by `_ROUNDING`
# more for being whole.
_FAR, _ROUNDING = 3, 0.5
# Rows that are looked at at a time.
_ROWS = 1 << 16
_READ = ["consistent", "estimate", "std_error", "bias_bound"]


def remarks(table: pa.Table) -> list[str]:
    """What a reader should know of the consistent numbers in the rows of a release, one sentence each."""
    far = sum(_far_in(rows) for rows in table.select(_READ).to_batches(_ROWS))
    if not far:
        return []
    return [f"consistent numbers lie more than {_FAR} standard errors from {far:,} of {table.num_rows:,} estimates"]


def _far_in(rows: pa.RecordBatch) -> int:
    moved = pc.abs(pc.subtract(pc.cast(rows["consistent"], pa.float64(), safe=False), rows["estimate"]))
    allowed = pc.add(pc.add(pc.multiply(rows["std_error"], _FAR), rows["bias_bound"]), _ROUNDING)
    return pc.sum(pc.greater(moved, allowed)).as_py() or 0
