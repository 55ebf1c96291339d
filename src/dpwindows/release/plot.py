"""The charts of a release: what `Release.plot` gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpwindows.release.files import require_writable, write_text


@dataclass(frozen=True, repr=False)
class Plot:
    """Charts, of the rows of a release with its metadata, that a notebook shows, and that load nothing."""

    table: pa.Table
    metadata: Mapping[str, Any]

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the charts as a page (`.html`) or as one picture (`.svg`).

        Raises:
            InputError: the file has another ending, or exists and `force` is not set; or there are no rows to draw.
            EngineError: the file cannot be written.
        """
        from dpwindows.report.notebook import plot_page, plot_picture

        path = Path(path)
        require_writable(path, force=force, endings=(".html", ".svg"))
        made = plot_picture if path.suffix.lower() == ".svg" else plot_page
        write_text(made(self.table, self.metadata), path, force=force)

    def _repr_html_(self) -> str:
        from dpwindows.report.notebook import plot_html

        return plot_html(self.table, self.metadata)
