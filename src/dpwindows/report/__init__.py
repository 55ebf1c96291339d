"""Show a release: charts for a notebook, a page to publish, a preview for the terminal.

Everything here draws what is already released, so nothing here can leak: the input is the table of noisy numbers and
its metadata. Charts for a notebook need the optional library of `pip install 'dpwindows[report]'`; the page and
`preview` do not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from dpwindows.errors import InputError
from dpwindows.report.charts import LOOK, require
from dpwindows.report.figures import figures
from dpwindows.report.page import page
from dpwindows.report.series import group_columns
from dpwindows.report.terminal import preview

if TYPE_CHECKING:
    import altair as alt

_LINE = 105

__all__ = ["chart", "chosen", "page", "preview"]


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


def chart(table: pa.Table, metadata: Mapping[str, Any]) -> alt.VConcatChart:
    """Draw a release for a notebook: one chart under the other, each with its title and what it says.

    Args:
        table: rows of a release, with the columns of a release file.
        metadata: the metadata of the release.

    Raises:
        InputError: Altair is not installed, or the release has no rows.
    """
    altair = require("altair")
    shown = figures(table, metadata).shown
    if not shown:
        raise InputError("this release holds no rows, so there is nothing to draw")
    titled = [
        figure.draw(f"near_{at}").properties(
            title=altair.Title(
                figure.title,
                subtitle=[line for text in (figure.finding, *figure.notes) for line in wrap(text, _LINE)],
                anchor="start",
                offset=14,
            )
        )
        for at, figure in enumerate(shown)
    ]
    drawn: Any = altair.vconcat(*titled, spacing=36).resolve_scale(color="independent")
    finished: alt.VConcatChart = drawn.configure(**LOOK)
    return finished
