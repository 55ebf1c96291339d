"""The command line: `dpwindows plan | release | report | demo`.

Exit codes: 0 success, 2 bad usage or bad input, 1 the surroundings failed. Every failure is one message on standard
error. Nothing here knows more than how to read options and show results; the work is done by the library.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from rich.console import Console
from rich.table import Table

from dpwindows import __version__
from dpwindows.errors import EngineError, InputError

if TYPE_CHECKING:
    from dpwindows.plan import Plan

Command = TypeVar("Command", bound=Callable[..., Any])

_DEMO_OUTPUT = Path("out/flights.parquet")


class _Commands(click.Group):
    """A group that turns the library's two kinds of failure into a message and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except InputError as error:
            _fail(str(error), 2)
        except (EngineError, OSError, MemoryError) as error:
            _fail(str(error) or type(error).__name__, 1)


def _fail(message: str, code: int) -> None:
    click.echo(f"Error: {message}", err=True)
    sys.exit(code)


def _stack(options: list[Callable[[Command], Command]]) -> Callable[[Command], Command]:
    """One decorator that applies several options, shown in `--help` in the order listed."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


_query_options = _stack(
    [
        click.option(
            "--window",
            "windows",
            multiple=True,
            required=True,
            metavar="WINDOW",
            help="cumulative, rolling:STEPS (or fixed:STEPS), any or any:MAX_STEPS. Repeatable.",
        ),
        click.option(
            "--at-least",
            "at_least",
            multiple=True,
            type=int,
            metavar="K",
            help="Count items seen at least K times. Repeatable. Default: at least 1, the distinct items.",
        ),
        click.option(
            "--exactly", multiple=True, type=int, metavar="K", help="Count items seen exactly K times. Repeatable."
        ),
    ]
)

_privacy_options = _stack(
    [
        click.option(
            "--unit",
            required=True,
            metavar="UNIT",
            help="What is protected: event (one occurrence), item (everything about one item) or "
            "item-add-remove (the presence of one item).",
        ),
        click.option("--epsilon", type=float, metavar="E", help="Budget epsilon, with or without --delta."),
        click.option("--delta", type=float, metavar="D", help="Budget delta, in [0, 1). Left out or 0: pure."),
        click.option("--rho", type=float, metavar="R", help="Budget rho of zero-concentrated DP, in place of epsilon."),
        click.option(
            "--strategy",
            default="auto",
            show_default=True,
            metavar="NAME",
            help="auto, a strategy's name, or paper (a reference to compare with).",
        ),
        click.option(
            "--criterion",
            type=click.Choice(["rms", "max"]),
            default="rms",
            show_default=True,
            help="The error strategies are chosen by: typical or largest.",
        ),
        click.option(
            "--weights",
            metavar="W,W,...",
            help="Relative importance of the windows, in the order asked. Default: all alike.",
        ),
        click.option(
            "--singleton",
            is_flag=True,
            help="Public promise: every step holds at most one event, over all items. Not checked.",
        ),
        click.option(
            "--confidence",
            type=float,
            default=0.95,
            show_default=True,
            help="Coverage of each interval, between 0 and 1.",
        ),
    ]
)

_step_option = click.option(
    "--step", default="1d", show_default=True, help="Length of a step: a number and s, m, h, d, w or mo; or an integer."
)
_zone_option = click.option(
    "--time-zone", default="UTC", show_default=True, help="Zone of days, weeks, months and of times that carry none."
)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="dpwindows")
def main() -> None:
    """Publish how many distinct items were seen in time windows, under differential privacy."""


@main.command()
@_query_options
@_privacy_options
@click.option("--steps", type=int, metavar="N", help="Plan for N steps; or give --start and --end.")
@click.option("--start", help="First moment of the range, inclusive, such as 2013-01-01 or 2013-01-01T06:00.")
@click.option("--end", help="End of the range, exclusive.")
@_step_option
@_zone_option
@click.option(
    "--target-std",
    type=float,
    metavar="S",
    help="In place of a budget: find the smallest one whose worst query has a standard error of at most S counts.",
)
@click.option(
    "--solve",
    type=click.Choice(["epsilon", "rho"]),
    help="With --target-std: the budget to find. Default: epsilon, with --delta or pure.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the forecast as JSON.")
@click.option(
    "--export",
    "exported",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write what would be measured, as integer matrices, to a .npz file: for others to check.",
)
@click.option("--force", is_flag=True, help="Replace the exported file if it exists.")
def plan(
    steps: int | None,
    start: str | None,
    end: str | None,
    as_json: bool,
    exported: Path | None,
    force: bool,
    **options: Any,
) -> None:
    """Forecast the error of every number before any data is read."""
    if exported is not None:
        from dpwindows.release_files import require_writable

        require_writable(exported, force=force, endings=(".npz",))
    timeline = _planned_timeline(steps, start, end, options)
    planned = _plan(timeline, options) if options["target_std"] is None else _solved(timeline, options)
    _say_notes(planned)
    if exported is not None:
        from dpwindows.export import export_plan

        export_plan(planned, exported, force=force)
        click.echo(f"Measurements written to {exported}", err=True)
    if as_json:
        queries = [entry.to_dict() for entry in planned.forecast()]
        click.echo(json.dumps({"queries": queries, "budget": planned.budget.to_dict()}, indent=2))
    else:
        console = Console()
        if options["target_std"] is not None:
            console.print(
                f"{planned.budget} is the smallest budget, to three digits, for a standard error of "
                f"{options['target_std']:g} in the worst query.\n",
                highlight=False,
            )
        _show_forecast(planned, console)
        console.print(f"\n{planned.unit.name} level, {planned.budget} for everything above together.", highlight=False)
        console.print("How far one neighbour can move what is measured is proved in the docstrings of:")
        for allotment in planned.allotments:
            console.print(f"  {allotment.query.window}: {allotment.measurement.design.proof}", highlight=False)


@main.command()
@click.argument("events")
@click.option("--item", required=True, metavar="COLUMN", help="Column that identifies items.")
@click.option("--time", required=True, metavar="COLUMN", help="Column of times: timestamp, date or integer.")
@click.option("--count", metavar="COLUMN", help="Column of multiplicities: an event is one occurrence, not one row.")
@click.option("--table", metavar="NAME", help="Table to read, where EVENTS is a DuckDB database.")
@click.option("--start", required=True, help="First moment of the range, inclusive. Public: never read from the data.")
@click.option("--end", required=True, help="End of the range, exclusive.")
@_step_option
@_zone_option
@click.option("--engine", type=click.Choice(["duckdb"]), default="duckdb", show_default=True, help="Who counts.")
@click.option("--memory-limit", metavar="SIZE", help="Memory the engine may use, for example 2GB; it spills beyond.")
@click.option("--spill-directory", type=click.Path(path_type=Path), help="Where the engine spills to.")
@_query_options
@_privacy_options
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help=".parquet, .csv or .json")
@click.option("--force", is_flag=True, help="Replace the output if it exists.")
def release(events: str, output: Path, force: bool, start: str, end: str, **options: Any) -> None:
    """Release window counts of the log EVENTS once, with fresh noise.

    EVENTS is a Parquet or CSV file, a glob, a directory of such files, or a DuckDB database (with --table where it
    has several tables).
    """
    from dpwindows.events import EngineSettings
    from dpwindows.release_files import require_writable
    from dpwindows.timeline import Timeline

    require_writable(output, force=force)
    timeline = Timeline(start, end, step=options["step"], time_zone=options["time_zone"])
    planned = _plan(timeline, options)
    settings = EngineSettings(memory_limit=options["memory_limit"], spill_directory=options["spill_directory"])
    _say_notes(planned)
    released = planned.run(
        events,
        item=options["item"],
        time=options["time"],
        count=options["count"],
        table=options["table"],
        settings=settings,
    )
    try:
        released.save(output, force=force)
    except (InputError, EngineError) as error:
        raise type(error)(
            f"{error}. The numbers drawn were discarded and nothing was published; running again draws fresh noise"
        ) from error
    console = Console(stderr=True)
    _show_forecast(planned, console)
    console.print(f"{released.metadata['guarantee']}", style="dim", highlight=False)
    console.print(
        f"Released {released.table.num_rows:,} numbers to {output} (release {released.metadata['release_id']}). "
        "Running this again draws fresh noise and spends the budget again.",
        highlight=False,
        soft_wrap=True,
    )


@main.command(short_help="Draw the charts of a release.")
@click.argument("release_file", metavar="RELEASE", type=click.Path(path_type=Path))
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="Page to write, ending in .html")
@click.option("--force", is_flag=True, help="Replace the output if it exists.")
def report(release_file: Path, output: Path, force: bool) -> None:
    """Draw the charts of a release, on one page that loads nothing from anywhere."""
    from dpwindows.release import Release

    Release.load(release_file).report(output, force=force)
    click.echo(f"Report written to {output}", err=True)


@main.command(short_help="Do the main job on real data.")
@click.option(
    "-o",
    "--output",
    default=_DEMO_OUTPUT,
    show_default=True,
    type=click.Path(path_type=Path),
    help="Where the release goes; its report is written beside it.",
)
@click.option("--force", is_flag=True, help="Replace the outputs if they exist (the default ones are replaced anyway).")
def demo(output: Path, force: bool) -> None:
    """Do the main job on real data: a year of flights, released and drawn."""
    from dpwindows.demo import run_demo
    from dpwindows.release_files import ENDINGS, require_writable

    own = output == _DEMO_OUTPUT
    if own:
        output.parent.mkdir(parents=True, exist_ok=True)
    page = output.with_suffix(".html")
    require_writable(output, force=force or own, endings=ENDINGS)
    require_writable(page, force=force or own, endings=(".html",))
    run_demo(output, page, Console())


def _planned_timeline(steps: int | None, start: str | None, end: str | None, options: dict[str, Any]) -> Any:
    from dpwindows.timeline import Timeline

    if steps is not None:
        if start is not None or end is not None:
            raise InputError("give either --steps, or --start and --end")
        if options["step"] != "1d" or options["time_zone"] != "UTC":
            raise InputError("--step and --time-zone go with --start and --end: --steps plans for steps of any length")
        if steps < 1:
            raise InputError(f"--steps must be at least 1, got {steps}")
        return Timeline.of_steps(steps)
    if start is None or end is None:
        raise InputError("give the number of steps with --steps, or the range with --start and --end")
    return Timeline(start, end, step=options["step"], time_zone=options["time_zone"])


def _plan(timeline: Any, options: dict[str, Any]) -> Plan:
    from dpwindows.plan import Plan
    from dpwindows.privacy import parse_budget

    if options.get("solve") is not None:
        raise InputError("--solve says which budget to find for --target-std: give --target-std too")
    budget = parse_budget(options["epsilon"], options["delta"], options["rho"])
    return Plan(budget=budget, timeline=timeline, **_asked(options))


def _solved(timeline: Any, options: dict[str, Any]) -> Plan:
    from dpwindows.solve import solve_epsilon, solve_rho

    if options["epsilon"] is not None or options["rho"] is not None:
        raise InputError("give either --target-std, to find a budget, or --epsilon or --rho, and not both")
    target = options["target_std"]
    if options["solve"] == "rho":
        if options["delta"] is not None:
            raise InputError("delta goes with epsilon; a rho budget has none")
        return solve_rho(timeline=timeline, target_std=target, **_asked(options))
    return solve_epsilon(timeline=timeline, target_std=target, delta=options["delta"], **_asked(options))


def _asked(options: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `Plan` but for the budget and the timeline."""
    from dpwindows.privacy import parse_unit
    from dpwindows.queries import Query, parse_window

    queries = []
    for text in options["windows"]:
        query = Query(parse_window(text))
        query = query.at_least(*options["at_least"]) if options["at_least"] else query
        queries.append(query.exactly(*options["exactly"]) if options["exactly"] else query)
    return {
        "queries": queries,
        "unit": parse_unit(options["unit"]),
        "strategy": options["strategy"],
        "criterion": options["criterion"],
        "weights": _parse_weights(options["weights"]),
        "singleton": options["singleton"],
        "confidence": options["confidence"],
    }


def _parse_weights(text: str | None) -> list[float] | None:
    if text is None:
        return None
    try:
        return [float(weight) for weight in text.split(",")]
    except ValueError:
        raise InputError(f"--weights takes numbers separated by commas, got {text!r}") from None


def _say_notes(planned: Plan) -> None:
    for note in planned.notes:
        click.echo(f"Note: {note}", err=True)


def _show_forecast(planned: Plan, console: Console) -> None:
    """The forecast as a table; on a narrow terminal runners-up come below it."""
    wide = console.width >= 112
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("window", "counted", "strategy"):
        table.add_column(name, overflow="fold")
    numbers = ["std error", f"{planned.confidence:.0%} interval", "x limit"]
    for name in [*numbers, *(["largest"] if wide else [])]:
        table.add_column(name, justify="right")
    if wide:
        table.add_column("runner-up", overflow="fold")
    runners_up: dict[str, None] = {}
    for entry in planned.forecast():
        limit = "-" if entry.ratio_to_limit is None else f"{entry.ratio_to_limit:.2f}"
        row = [entry.window, f"{entry.measure.replace('_', ' ')} {entry.k}", entry.strategy]
        row += [f"{entry.rms:,.4g}", f"±{entry.half_width:,.4g}", limit]
        other = "" if entry.runner_up_ratio is None else f"{entry.runner_up}, error x {entry.runner_up_ratio:.2f}"
        if other:
            runners_up[f"  {entry.window}: {other}"] = None
        table.add_row(*row, *([f"{entry.max:,.4g}", other] if wide else []))
    console.print(table)
    if any(entry.limit is not None for entry in planned.forecast()):
        console.print("x limit: over the least error of any Gaussian noise; Laplace may be below 1", style="dim")
    if runners_up and not wide:
        console.print("Next best:\n" + "\n".join(runners_up), highlight=False)
