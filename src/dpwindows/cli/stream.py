"""`dpwindows stream`: continual release, one step at a time, from a state that survives."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from dpwindows.ask.whole_numbers import MOST_STEPS_A_CALL
from dpwindows.cli import options
from dpwindows.cli.plan_files import PlannedCommand, plan_option
from dpwindows.cli.screen import json_option, screen, short_promise, show_json, tell
from dpwindows.cli.values import Asked, build_stream_plan
from dpwindows.errors import counted
from dpwindows.plan.forecast_table import say_notes, show_forecast

if TYPE_CHECKING:
    from dpwindows.count.events import EngineSettings, EventColumns
    from dpwindows.ledger.ledger import Ledger
    from dpwindows.release.release import Release
    from dpwindows.stream.stream import Stream

_WITHOUT_LEDGER = (
    "Without --ledger nothing can tell when STATE and STATE.mark are both put back from a backup, or when a copy goes "
    "on elsewhere: either would publish steps again with other noise. See that neither happens, or use a ledger."
)
_stream_ledger_options = options.ledger_options_saying(
    "Where the stream's ledger is now, if it has moved. Nothing more is spent."
)
_ITEMS = {
    "folder": "in the folder beside the state",
    "spark": "in a folder that Spark writes",
    "postgresql": "in a PostgreSQL database",
}
_STATE = click.argument("state", metavar="STATE", type=click.Path(path_type=Path))
_copy_option = click.option(
    "--copy-to",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Keep a copy of STATE and its folder there, on another disk: the stream goes on from it if this one is lost.",
)
_output_options = options.stack(
    [
        click.option("-o", "--output", type=click.Path(path_type=Path), help=".parquet, .csv or .json"),
        click.option("--force", is_flag=True, help="Replace the output if it exists."),
    ]
)


@click.group(short_help="Release counts as time goes on: create, advance, show.")
def stream() -> None:
    """Release window counts step by step, for as long as a service runs.

    `create` makes a state; `advance` closes the steps that have passed and writes their release; `show` writes
    everything released so far. Running the same `advance` again is safe: it returns what was released.
    """


@stream.command(cls=PlannedCommand)
@_STATE
@options.event_options
@click.option("--start", required=True, help="First moment of the first step. Public: never read from the data.")
@options.step_option
@options.zone_option
@click.option("--horizon", type=int, metavar="N", help="End the stream after N steps. Default: it has no end.")
@plan_option
@options.planned_options_with_draws
@click.option(
    "--items-at",
    metavar="PLACE",
    help="Where the items are kept: a folder that Spark writes, such as s3a://bucket/items, or tables of a database, "
    "postgresql://user@host/database#prefix. Default: the folder STATE-items.",
)
@options.ledger_options
@_copy_option
@json_option
def create(
    state: Path,
    columns: EventColumns,
    ledger: Ledger | None,
    *,
    copy_to: Path | None,
    start: str,
    step: str,
    time_zone: str,
    horizon: int | None,
    items_at: str | None,
    asked: Asked,
    plan_file: Path | None,
    as_json: bool,
) -> None:
    """Make the new stream STATE: what will be released at every step, for whom, under which budget.

    The budget is for the whole stream, however long it runs; with --ledger it is spent now. STATE and the folder
    STATE-items are made readable by their owner only, and will hold data: items, and when they last occurred. They
    belong together: copy, move and back up both.
    """
    from dpwindows.stream.creating import require_new
    from dpwindows.stream.store import usable_path
    from dpwindows.stream.stream import Stream

    planned = build_stream_plan(horizon, start, step, time_zone, asked)
    require_new(usable_path(state))
    say_notes(planned)
    layout = columns.layout
    laid_out: dict[str, Any] = {} if layout is None else {"delimiter": layout.delimiter, "columns": layout.names}
    Stream.create(
        state,
        planned,
        item=columns.item,
        time=columns.time,
        count=columns.count,
        time_format=columns.time_format,
        item_type=columns.item_type,
        **laid_out,
        start=start,
        step=step,
        time_zone=time_zone,
        ledger=ledger,
        copy_to=copy_to,
        items_at=items_at,
    ).close()
    promise = planned.describe()["guarantee"]
    if as_json:
        show_json({"state": str(state), "guarantee": promise, "budget": planned.budget.to_dict(), "horizon": horizon})
        return
    console = screen(stderr=True)
    console.print(f"Created the stream {state}.\n", soft_wrap=True)
    show_forecast(planned, console)
    if planned.rule.promise:
        tell(f"Note: {planned.rule.promise}")
    console.print(f"\n{short_promise(promise, f'dpwindows stream show {state}')}", style="dim", soft_wrap=True)
    if ledger is None:
        console.print(_WITHOUT_LEDGER, soft_wrap=True)


@stream.command()
@_STATE
@click.argument("events", required=False)
@click.option("--through", required=True, metavar="TIME", help="End of the last step to close, exclusive.")
@click.option("--table", metavar="NAME", help="Table to read, where EVENTS is a DuckDB or SQLite database.")
@click.option("--empty", is_flag=True, help="In place of EVENTS: the steps had no events.")
@click.option(
    "--late",
    type=click.Choice(["refuse", "ignore", "move"]),
    default="refuse",
    show_default=True,
    help="What to do with events of steps closed before: move counts them in the first step closed now.",
)
@click.option(
    "--later",
    type=click.Choice(["refuse", "ignore"]),
    default="refuse",
    show_default=True,
    help="What to do with events at or after TIME: ignore leaves them for a later call.",
)
@click.option(
    "--gaps",
    type=click.Choice(["accept", "refuse"]),
    default="accept",
    show_default=True,
    help="What to do if a step has no event in EVENTS: refuse closes no step at all.",
)
@click.option(
    "--max-steps",
    type=click.IntRange(min=1),
    default=MOST_STEPS_A_CALL,
    show_default=True,
    metavar="N",
    help="Close at most N steps at once; TIME may be mistyped.",
)
@click.option("--allow-future", is_flag=True, help="Close steps that end later than now, too; TIME may be mistyped.")
@options.reaching_options
@_stream_ledger_options
@_copy_option
@_output_options
@json_option
def advance(
    state: Path,
    events: str | None,
    through: str,
    settings: EngineSettings,
    ledger: Ledger | None,
    *,
    copy_to: Path | None,
    output: Path | None,
    force: bool,
    as_json: bool,
    **how: Any,
) -> None:
    """Close every step of the stream STATE up to TIME, and release the windows that end at them.

    EVENTS holds the events of these steps: a Parquet, CSV or JSON Lines file, a glob, a directory of such files, a
    DuckDB or SQLite database, or a Delta or Iceberg table, read by the columns and the layout that STATE was
    created with; where STATE keeps its items elsewhere, what is read there. A log that goes on after TIME can be
    handed over whole with --later ignore. The same TIME again, with the same EVENTS or none, returns the stored
    release.
    """
    from dpwindows.stream.stream import Stream

    source = events and options.at_one_state(events, settings)
    options.refuse_inputs(output, ledger, state=state, events=source)
    # Nobody else prepares the same file meanwhile, so that no step is closed for numbers that cannot be written.
    with (
        options.claim_output(output, force=force),
        Stream.open(state, ledger, copy_to=copy_to, settings=settings) as opened,
    ):
        before = opened.closed_steps
        released = opened.advance(source, through, **how)
        for note in opened.notes:
            tell(f"Note: {note}")
        _write(released, output, force, as_json=as_json)
        if as_json:
            closed = opened.closed_steps - before
            show_json(_summary(opened, released, output) | {"closed_now": closed})
        else:
            _say_advanced(opened, released, before, output)


@stream.command()
@_STATE
@_stream_ledger_options
@_output_options
@json_option
def show(state: Path, ledger: Ledger | None, output: Path | None, force: bool, as_json: bool) -> None:
    """Tell what the stream STATE releases and how far it is, and write everything released so far."""
    from dpwindows.stream.stream import Stream

    options.refuse_inputs(output, ledger, state=state)
    with options.claim_output(output, force=force), Stream.open(state, ledger, read_only=True) as opened:
        released = opened.show() if opened.closed_steps or output is not None else None
        if as_json:
            show_json(opened.description | _summary(opened, released, output))
        else:
            _describe(opened, screen())
        if released is not None:
            _write(released, output, force, as_json=as_json)


def _summary(opened: Stream, released: Release | None, output: Path | None) -> dict[str, Any]:
    """How far a stream is and what it released, as plain values; the numbers themselves where no file has them."""
    found: dict[str, Any] = {"closed_steps": opened.closed_steps, "through": opened.through}
    if released is not None:
        found |= {"release_id": released.metadata["release_id"], "numbers": released.table.num_rows}
        found |= {"output": str(output)} if output is not None else {"rows": released.table.to_pylist()}
    return found


def _write(released: Release, output: Path | None, force: bool, *, as_json: bool) -> None:
    if output is None and as_json:
        return
    if output is None:
        from dpwindows.report import preview

        screen().print(preview(released.to_arrow(), released.metadata))
        return
    again = "The numbers are stored in the stream: run the same again to write them, which draws no noise"
    options.save_spent(released, output, force=force, again=again)


def _say_advanced(opened: Stream, released: Release, before: int, output: Path | None) -> None:
    closed, made = opened.closed_steps - before, released.metadata["stream"]
    did = f"Closed {counted(closed, 'step')}" if closed else "Nothing new to close; as stored"
    where = f" to {output}" if output is not None else ""
    numbers, (first, last) = counted(released.table.num_rows, "number"), (made["first_step"], made["last_step"])
    steps = f"step {first}" if first == last else f"steps {first} to {last}"
    screen(stderr=True).print(
        f"{did}: {numbers} of {steps}{where} "
        f"(release {released.metadata['release_id']}). The stream is closed up to {opened.through}.",
        soft_wrap=True,
    )


def _describe(opened: Stream, console: Console) -> None:
    from dpwindows.report.words import measure_text

    about = opened.description
    timeline, horizon = about["timeline"], about["horizon"]
    asked = "; ".join(
        f"{query['window']}: {', '.join(measure_text(measure) for measure in query['measures'])}"
        for query in about["queries"]
    )
    zone = f" ({timeline['time_zone']})" if timeline.get("time_zone") is not None else ""
    paid_from = opened.paid_from
    ledger = "none: a copy, or an old state put back, may go unnoticed" if paid_from is None else ", ".join(paid_from)
    columns = ", ".join(f"{role} {name}" for role, name in about["columns"])
    lines = (
        f"Stream    {about['state_id']}",
        f"Ledger    {ledger}",
        f"Reads     {columns}",
        f"Items     {_ITEMS[about['items_at']]}",
        f"Releases  {asked}",
        f"Steps     {timeline['step']} from {timeline['start']}{zone}, "
        + ("without end" if horizon is None else f"{horizon:,} in all"),
        f"Closed    {counted(opened.closed_steps, 'step')}, up to {opened.through}",
        f"Promise   {about['guarantee']}",
    )
    for line in lines:
        console.print(line, soft_wrap=True)
