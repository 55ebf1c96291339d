"""`dpwindows theory`: the theory in figures."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table

from dpwindows.ask.whole_numbers import read_whole
from dpwindows.cli.screen import json_option, number_option, screen, show_json, tell
from dpwindows.errors import InputError, counted
from dpwindows.progress import show_progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dpwindows.theory.reductions import Reduction
    from dpwindows.theory.table import Row

_NOTES = """\
Errors in counts, root mean square over the windows of one release.
bound, pure: on the largest error, with probability 1/2, of every mechanism (*);
bound, approximate: on the standard error of any Gaussian noise, rms or largest
(*). Laplace noise may be below it.
x bound: our standard error over it, rms over rms or largest over (*)."""

_REDUCTION_NOTES = """\
Every problem was solved from its own definition too, with these answers.
Bounds are in counts, for all windows of the family over the log's steps, at
{budget}: largest errors with probability 1/2 on some
log; of Gaussian noise, its standard error."""

# Beyond these the formulas of the table leave the range of floating-point numbers.
_LEAST_EPSILON, _MOST_EPSILON = 1e-9, 1e9
# Beyond this k the logs no longer fit on a screen.
_MOST_K = 9


@click.group()
def theory() -> None:
    """The bounds of the theory for your parameters."""


@theory.command()
@click.option("--steps", type=int, required=True, metavar="T", help="Number of steps.")
@click.option(
    "--window", "windows", multiple=True, required=True, metavar="W", help="Length of a rolling window. Repeatable."
)
@click.option("--k", "ks", type=int, multiple=True, metavar="K", help="Items seen at least K times. Repeatable.  [1]")
@number_option("--epsilon", 1.0, "Budget epsilon.", metavar="E")
@number_option("--delta", 1e-6, "Budget delta of the cells with an approximate budget; 0 leaves them out.", metavar="D")
@json_option
def table(
    steps: int, windows: tuple[str, ...], ks: tuple[int, ...], epsilon: float, delta: float, as_json: bool
) -> None:
    """Table 1 of the paper for given parameters: its algorithms, ours, and the lower bounds.

    A cell is a window family (cumulative, rolling, any), event level or item level, a stream of bundles or of at most
    one event a step (singleton), and a pure or an approximate budget.
    """
    from dpwindows.theory.table import families
    from dpwindows.theory.table import table as cells

    lengths = [_parse_length(text) for text in windows]
    _require_steps(steps)
    _require_epsilon(epsilon)
    if len(families(steps, lengths)) < len(lengths) + 2:
        tell(f"Note: window families of too many windows for one release of {steps:,} steps are left out")
    with show_progress("working out the table"):
        rows = list(cells(steps, lengths, ks or (1,), epsilon, delta))
    if as_json:
        parameters = {"steps": steps, "windows": lengths, "k": list(ks or (1,)), "epsilon": epsilon, "delta": delta}
        show_json({**parameters, "cells": [row.to_dict() for row in rows]})
        return
    _show(rows, screen())


@theory.command("lower-bounds")
@click.option(
    "--k",
    type=click.IntRange(1, _MOST_K),
    default=2,
    show_default=True,
    metavar="K",
    help=f"Items seen at least K times, 1 to {_MOST_K}; linear queries need 2.",
)
@click.option("--singleton", is_flag=True, help="Logs with at most one event a step.")
@number_option("--epsilon", 0.1, "Budget epsilon.", metavar="E")
@number_option("--delta", 0.0, "Budget delta: bounds for Gaussian noise.", metavar="D")
@json_option
def lower_bounds(k: int, singleton: bool, epsilon: float, delta: float, as_json: bool) -> None:
    """The reductions behind the lower bounds, each run on a small instance.

    Each turns a hard problem into a log whose window counts answer it, so that what no mechanism can do for the
    problem none can do for the windows. Shown are the problem, the log, the windows and how their counts answer it, and
    the lower bound for such windows.
    """
    from dpwindows.theory.reductions import reductions

    _require_epsilon(epsilon)
    shown = reductions(k, epsilon, delta, singleton=singleton)
    if as_json:
        parameters = {"k": k, "singleton": singleton, "epsilon": epsilon, "delta": delta}
        show_json({**parameters, "reductions": [one.to_dict() for one in shown]})
        return
    console = screen()
    for one in shown:
        _show_reduction(one, console)
    console.print(_REDUCTION_NOTES.format(budget=f"epsilon = {epsilon:g}, delta = {delta:g}"), style="dim")


def _show_reduction(one: Reduction, console: Console) -> None:
    """Problem, log, windows, bound; the log and the windows in full where they are few."""
    log = one.log
    console.print(one.name, style="bold")
    shown = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    shown.add_column(style="dim")
    shown.add_column(overflow="fold")
    shown.add_row("problem", one.problem)
    element = "an item" if log.unit.name == "item" else counted(log.distance, "event")
    shown.add_row("log", f"{counted(log.horizon, 'step')}, unit {log.unit.name}; adding one element adds {element}")
    for number, history in enumerate(log.histories, 1):
        shown.add_row("", f"item {number}  {''.join(str(count or '.') for count in history)}")
    windows = [f"{first}-{last}" for first, last in zip(log.first, log.last, strict=True)]
    shown.add_row("windows", f"{log.window.text}, at least {log.k}, in steps {', '.join(windows)}")
    shown.add_row("counts", " ".join(map(str, one.counts)))
    if one.points is not None:
        shown.add_row("", f"which are range counts of {counted(one.points, 'point')} of the log")
    shown.add_row("answers", " ".join(map(str, one.answers.ravel())))
    if one.bound is not None:
        kind = "largest error" if one.bound.of == "largest" else "rms error"
        shown.add_row("bound", f"{kind} of at least {_number(one.bound.value)}, for {one.bound.holds}")
    shown.add_row("grows like", one.law.formula)
    console.print(shown, "")


def _parse_length(text: str) -> int:
    """A number of steps, or the window as other commands take it: `rolling:28`."""
    size = text.removeprefix("rolling:").removeprefix("fixed:")
    length = read_whole(size)
    if not length:
        raise InputError(f"--window must be the length of a rolling window in steps, for example 28, got {text!r}")
    return length


def _require_epsilon(epsilon: float) -> None:
    if not _LEAST_EPSILON <= epsilon <= _MOST_EPSILON:
        raise InputError(f"--epsilon must lie between {_LEAST_EPSILON:g} and {_MOST_EPSILON:g} here, got {epsilon:g}")


def _require_steps(steps: int) -> None:
    if steps < 1:
        raise InputError(f"--steps must be at least 1, got {steps}")


def _show(rows: Sequence[Row], console: Console) -> None:
    """One table for each window family and k; strategies and growth laws where there is room."""
    for (window, k), group in groupby(rows, key=lambda row: (row.window, row.at.k)):
        console.print(f"{window}, at least {k}", style="bold")
        console.print(_table(list(group), strategies=console.width >= 90, laws=console.width >= 160), "")
    if console.width < 160:
        console.print("Growth laws are shown on screens of 160 columns, and by --json.", style="dim")
    console.print(_NOTES, style="dim")


def _table(rows: Sequence[Row], *, strategies: bool, laws: bool) -> Table:
    shown = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("unit", "stream", "budget"):
        shown.add_column(name)
    for name in ("paper", "ours", "bound", "x bound"):
        shown.add_column(name, justify="right")
    for name in (["strategy"] if strategies else []) + (["paper grows like", "bound grows like"] if laws else []):
        shown.add_column(name, overflow="fold")
    for row in rows:
        lower = row.lower
        bound = "-" if lower is None else _number(lower.value) + ("*" if lower.of == "largest" else " ")
        ratio = "-" if row.ratio is None else f"{row.ratio:.3g}"
        figures = [_number(row.paper.rms), _number(row.ours.rms), bound, ratio]
        further = ([row.ours.strategy] if strategies else []) + (
            [row.paper_law.formula, row.lower_law.formula] if laws else []
        )
        shown.add_row(row.unit, row.stream, row.budget, *figures, *further)
    return shown


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"
