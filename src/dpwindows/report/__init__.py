"""Show a release: charts for a notebook, a page to publish, a preview for the terminal.

Everything here draws what is already released, so nothing here can leak: the input is the table of noisy numbers and
its metadata.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from dpwindows.errors import InputError
from dpwindows.report.page import page
from dpwindows.report.series import group_columns
from dpwindows.report.terminal import preview

__all__ = ["chosen", "page", "preview"]


def chosen(
    table: pa.Table,
    windows: str | Sequence[str] | None = None,
    k: int | Sequence[int] | None = None,
    groups: Mapping[str, str | Sequence[str]] | None = None,
) -> pa.Table:
    """The rows of a release with these windows (canonical texts), these k and these groups; None for all.

    Raises:
        InputError: the release holds no such window, k or group; the message lists those it holds.
    """
    named = set(group_columns(table))
    if unknown := set(groups or {}) - named:
        known = ", ".join(sorted(named)) or "none"
        raise InputError(f"this release has no groups named {', '.join(sorted(unknown))}; it has {known}")
    for column, wanted in {"window": windows, "k": k, **(groups or {})}.items():
        if wanted is None:
            continue
        values = [wanted] if isinstance(wanted, (str, int)) else list(wanted)
        held = [str(value) for value in pc.unique(table[column]).to_pylist()]
        if missing := [str(value) for value in values if str(value) not in held]:
            raise InputError(f"this release holds no {column} {', '.join(missing)}; it holds {', '.join(held[:30])}")
        table = table.filter(pc.is_in(pc.cast(table[column], pa.string()), pa.array([str(value) for value in values])))
    return table
