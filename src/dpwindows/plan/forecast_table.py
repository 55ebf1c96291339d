"""How a plan is shown in the terminal: its forecast and its notes."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from dpwindows.ask.privacy import PureDP
from dpwindows.ask.queries import Measure
from dpwindows.errors import percent
from dpwindows.plan.warnings import budget_warnings
from dpwindows.progress import QUIET

if TYPE_CHECKING:
    from dpwindows.plan.planned import Planned
    from dpwindows.plan.shapes import Forecast


def say_notes(planned: Planned, expect: float | None = None) -> None:
    """Print a plan's remarks, and what its budget does not promise, on standard error."""
    for warning in budget_warnings(planned.budget, expect):
        click.echo(f"Warning: {warning}", err=True)
    for note in () if QUIET.get() else planned.notes:
        click.echo(f"Note: {note}", err=True)


def groups_text(by: Sequence[str]) -> str:
    """The groups of a forecast in words."""
    return f"each {' x '.join(by)}" if by else "total"


def _window(entry: Forecast) -> str:
    return entry.window if entry.by is None else f"{entry.window}, {groups_text(entry.by)}"


def _window_and_groups(entry: Forecast) -> str:
    """The window and the groups of an entry on several lines, each of whole words."""
    groups = [] if entry.by is None else wrap(groups_text(entry.by), 12, break_long_words=False)
    return "\n".join([entry.window, *groups])


def show_bars(planned: Planned, console: Console) -> None:
    """Standard errors side by side, to scale: which of several queries costs the most."""
    entries = planned.forecast()
    most = max(entry.rms for entry in entries)
    if len(entries) < 2 or most <= 0:
        return
    names = [f"{_window(entry)}, {Measure.of(entry.measure, entry.k)}" for entry in entries]
    wide = max(map(len, names))
    room = max(10, min(40, console.width - wide - 12))
    console.print("\nStandard errors, to scale")
    for name, entry in zip(names, entries, strict=True):
        bar = "\N{FULL BLOCK}" * max(1, round(room * entry.rms / most))
        console.print(f"  {name:<{wide}} {bar} {entry.rms:,.4g}", highlight=False, markup=False)


def show_forecast(planned: Planned, console: Console, expect: float | None = None) -> None:
    """The forecast as a table, with relative errors at a typical count; narrow terminals have runners-up below it."""
    wide = console.width >= 112
    table = _forecasts(planned, wide, expect)
    # A name broken in two is harder to read than columns that stand close.
    if Measurement.get(console, console.options.update_width(1000), table).maximum > console.width:
        table = _forecasts(planned, wide, expect, close=True)
    console.print(table)
    if any(entry.limit is not None for entry in planned.forecast()):
        from dpwindows.plan.limits_together import limits_together

        pure = isinstance(planned.budget, PureDP)
        least = "any noise" if pure else "any Gaussian noise; other noise may be below 1"
        console.print(f"x limit: relative to the least error of {least}", style="dim")
        for together in limits_together(planned):
            groups = "" if together.by is None else f", {groups_text(together.by)}"
            ratio = f"{together.ratio_to_limit:.2f}"
            console.print(f"  all k of {together.window}{groups} together: {ratio}", style="dim", highlight=False)
    if (loss := planned.loss) is not None:
        from dpwindows.plan.description import loss_forecast

        forecast = loss_forecast(planned, loss)
        interval = f"{percent(planned.confidence, 6)} interval ±{forecast['half_width']:,.4g}"
        share = f"{loss.share:.3g} of the budget"
        console.print(f"{forecast['of']}: std error {forecast['std_error']:,.4g}, {interval} ({share})")
    runners_up = dict.fromkeys(
        f"  {_window(entry)}: {_runner_up(entry)}" for entry in planned.forecast() if entry.runner_up_ratio is not None
    )
    if runners_up and not wide:
        console.print("Next best:\n" + "\n".join(runners_up), highlight=False)


def _runner_up(entry: Forecast) -> str:
    return "" if entry.runner_up_ratio is None else f"{entry.runner_up}, error x {entry.runner_up_ratio:.2f}"


def _forecasts(planned: Planned, wide: bool, expect: float | None, *, close: bool = False) -> Table:
    """One row for each forecast; in a `close` table the groups stand on lines of their own below the window."""
    table = Table(box=None, pad_edge=False, collapse_padding=close, header_style="bold")
    table.add_column("window", overflow="fold", no_wrap=close)
    table.add_column("counted")
    table.add_column("strategy", no_wrap=close)
    relative = [] if expect is None else [f"of {expect:,.10g}"]
    numbers = ["std error", *relative, f"{percent(planned.confidence, 6)} interval", "x limit"]
    for name in [*numbers, *(["largest"] if wide else [])]:
        table.add_column(name, justify="right")
    if wide:
        table.add_column("runner-up", overflow="fold")
    for entry in planned.forecast():
        limit = "-" if entry.ratio_to_limit is None else f"{entry.ratio_to_limit:.2f}"
        window = _window_and_groups(entry) if close else _window(entry)
        row = [window, str(Measure.of(entry.measure, entry.k)), entry.strategy]
        row += [
            f"{entry.rms:,.4g}",
            *([] if expect is None else [percent(entry.rms / expect)]),
            f"±{entry.half_width:,.4g}",
            limit,
        ]
        table.add_row(*row, *([f"{entry.max:,.4g}", _runner_up(entry)] if wide else []))
    return table
