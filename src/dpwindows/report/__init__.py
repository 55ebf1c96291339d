"""Show a release: charts for a notebook, a page to publish, a preview for the terminal.

Everything here draws what is already released, so nothing here can leak: the input is the table of noisy numbers and
its metadata. Charts and the page need the optional libraries of `pip install 'dpwindows[report]'`; importing this
module and `preview` do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dpwindows.errors import InputError
from dpwindows.report.charts import LOOK, NOTEBOOK, require
from dpwindows.report.figures import figures
from dpwindows.report.page import page
from dpwindows.report.terminal import preview

if TYPE_CHECKING:
    import altair as alt

_LINE = 105

__all__ = ["chart", "drawing", "page", "preview"]


def drawing(table: pa.Table, metadata: Mapping[str, Any]) -> str:
    """Draw a release as one SVG picture, for places that must not load anything.

    Raises:
        InputError: Altair or vl-convert is not installed, or the release has no rows.
    """
    drawn = chart(table, metadata)
    converter: Any = require("vl_convert")
    picture: str = converter.vegalite_to_svg(drawn.to_dict())
    return picture


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
        figure.draw(replace(NOTEBOOK, name=f"near_{at}")).properties(
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
