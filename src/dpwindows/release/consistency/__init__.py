"""The table that agrees with itself: post-processing of released numbers, see `table`; and what to say of it."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

# A consistent number may differ from its estimate by so many standard errors before that is told, and by so much more
# for being whole.
_FAR, _ROUNDING = 3, 0.5


def remarks(table: pa.Table) -> list[str]:
    """What a reader should know of the consistent numbers in the rows of a release, one sentence each."""
    moved = pc.abs(pc.subtract(pc.cast(table["consistent"], pa.float64(), safe=False), table["estimate"]))
    allowed = pc.add(pc.add(pc.multiply(table["std_error"], _FAR), table["bias_bound"]), _ROUNDING)
    far = pc.sum(pc.greater(moved, allowed)).as_py() or 0
    if not far:
        return []
    return [f"consistent numbers lie more than {_FAR} standard errors from {far:,} of {table.num_rows:,} estimates"]
