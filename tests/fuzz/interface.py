"""Parts of the Python interface as commands, so that what they raise is judged as the command line's failures are."""

from __future__ import annotations

import click
import polars
import pyarrow as pa

import dpwindows as dw
from dpwindows.cli import _Commands
from dpwindows.report import preview


@click.group(cls=_Commands)
def interface() -> None:
    """What users call in Python."""


@interface.command("@load")
@click.argument("path")
def load(path: str) -> None:
    """Load a release and look at it in every way that is quick."""
    from rich.console import Console

    release = dw.Release.load(path)
    repr(release)
    Console(markup=False).print(preview(release.to_arrow(), release.metadata))
    boundaries = release.timeline.boundaries().to_pylist()
    release.count(boundaries[0], boundaries[2])


@interface.command("@frame")
@click.argument("kind")
@click.option("--count")
def frame(kind: str, count: str | None) -> None:
    """Count a data frame."""
    with pa.memory_map("frame") as source:
        table = pa.ipc.open_file(source).read_all()
    plan = dw.Plan(
        [dw.Cumulative()],
        timeline=dw.Timeline("2013-01-01", "2013-01-08"),
        unit=dw.EventLevel(),
        budget=dw.PureDP(1.0),
    )
    try:
        given = table if kind == "arrow" else table.to_pandas() if kind == "pandas" else polars.from_arrow(table)
    except Exception:  # the frame's library does not take the table: nothing of ours was called
        return
    plan.run(given, item="who", time="at", count=count)


FUNCTIONS = dict.fromkeys(("@load", "@frame"), interface)
