"""How a plan is shown in the terminal: its forecast and its notes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from dpwindows.plan.description import loss_forecast
from dpwindows.plan.warnings import budget_warnings
from dpwindows.progress import QUIET

if TYPE_CHECKING:
    from dpwindows.plan.forecast import Forecast
    from dpwindows.plan.planned import Planned


def say_notes(planned: Planned, expect: float | None = None) -> None:
    """Print a plan's remarks, and what its budget does not promise, on standard error."""
    for warning in budget_warnings(planned.budget, expect):
        click.echo(f"Warning: {warning}", err=True)
    for note in () if QUIET.get() else planned.notes:
        click.echo(f"Note: {note}", err=True)


def said_groups(by: tuple[str, ...]) -> str:
    """The groups of a forecast in words."""
    return f"each {' x '.join(by)}" if by else "total"


def _window(entry: Forecast) -> str:
    return entry.window if entry.by is None else f"{entry.window}, {said_groups(entry.by)}"


def show_bars(planned: Planned, console: Console) -> None:
    """Standard errors side by side, to scale: which of several queries costs the most."""
    entries = planned.forecast()
    most = max(entry.rms for entry in entries)
    if len(entries) < 2 or most <= 0:
        return
    names = [f"{_window(entry)}, {entry.measure.replace('_', ' ')} {entry.k}" for entry in entries]
    wide = max(map(len, names))
    room = max(10, min(40, console.width - wide - 12))
    console.print("\nStandard errors, to scale")
    for name, entry in zip(names, entries, strict=True):
        bar = "\N{FULL BLOCK}" * max(1, round(room * entry.rms / most))
        console.print(f"  {name:<{wide}} {bar} {entry.rms:,.4g}", highlight=False, markup=False)


def show_forecast(planned: Planned, console: Console, expect: float | None = None) -> None:
    """The forecast as a table, with relative errors at a typical count; narrow terminals have runners-up below it."""
    wide = console.width >= 112
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("window", "counted", "strategy"):
        table.add_column(name, overflow="fold")
    relative = [] if expect is None else [f"of {expect:,.10g}"]
    numbers = ["std error", *relative, f"{planned.confidence:.0%} interval", "x limit"]
    for name in [*numbers, *(["largest"] if wide else [])]:
        table.add_column(name, justify="right")
    if wide:
        table.add_column("runner-up", overflow="fold")
    runners_up: dict[str, None] = {}
    for entry in planned.forecast():
        limit = "-" if entry.ratio_to_limit is None else f"{entry.ratio_to_limit:.2f}"
        row = [_window(entry), f"{entry.measure.replace('_', ' ')} {entry.k}", entry.strategy]
        row += [
            f"{entry.rms:,.4g}",
            *([] if expect is None else [f"{entry.rms / expect:.2%}"]),
            f"±{entry.half_width:,.4g}",
            limit,
        ]
        other = "" if entry.runner_up_ratio is None else f"{entry.runner_up}, error x {entry.runner_up_ratio:.2f}"
        if other:
            runners_up[f"  {_window(entry)}: {other}"] = None
        table.add_row(*row, *([f"{entry.max:,.4g}", other] if wide else []))
    # A name broken in two is harder to read than columns that stand close.
    table.collapse_padding = Measurement.get(console, console.options.update_width(1000), table).maximum > console.width
    console.print(table)
    if any(entry.limit is not None for entry in planned.forecast()):
        console.print("x limit: over the least error of any Gaussian noise; Laplace may be below 1", style="dim")
    if (loss := planned.loss) is not None:
        said = loss_forecast(planned, loss)
        share = f"{loss.share:.3g} of the budget"
        console.print(f"{said['of']}: std error {said['std_error']:,.4g}, ±{said['half_width']:,.4g} ({share})")
    if runners_up and not wide:
        console.print("Next best:\n" + "\n".join(runners_up), highlight=False)
