"""`dpwindows release`: one batch release of a log."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpwindows.cli import options
from dpwindows.cli.plan_files import PlannedCommand, plan_option
from dpwindows.cli.screen import json_option, screen, short_promise, show_json, tell
from dpwindows.cli.values import Asked, build_plan
from dpwindows.count.events import CountsFile
from dpwindows.errors import InputError, counted
from dpwindows.plan.forecast_table import say_notes, show_forecast

if TYPE_CHECKING:
    from dpwindows.ask.timeline import Timeline
    from dpwindows.count.events import EngineSettings, EventColumns
    from dpwindows.count.sample import Log
    from dpwindows.count.sources.batches import Batches
    from dpwindows.ledger.ledger import Ledger
    from dpwindows.release.release import Release


@click.command(cls=PlannedCommand)
@click.argument("events", required=False)
@options.event_options
@click.option("--table", metavar="NAME", help="Table of a database, or sheet of a workbook, to read.")
@click.option(
    "--counts", metavar="FILE", help="In place of EVENTS: the result of the query that 'dpwindows sql' prints."
)
@options.range_options
@options.engine_options
@plan_option
@options.planned_options_with_draws
@options.ledger_options
@click.option("--raw", is_flag=True, help="Leave the column of numbers made consistent with one another empty.")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help=".parquet, .csv or .json")
@click.option("--force", is_flag=True, help="Replace the output if it exists.")
@click.option("--check-first", is_flag=True, help="Look at the log first, and ask if something looks wrong.")
@json_option
def release(
    events: str | None,
    columns: EventColumns,
    table: str | None,
    counts: str | None,
    settings: EngineSettings,
    ledger: Ledger | None,
    *,
    start: str,
    end: str,
    step: str,
    time_zone: str,
    asked: Asked,
    plan_file: Path | None,
    output: Path,
    force: bool,
    raw: bool,
    check_first: bool,
    as_json: bool,
) -> None:
    """Release window counts of the log EVENTS once, with fresh noise.

    With --ledger the budget is taken from a dataset's total before anything is drawn, and the same request on the
    same data returns the release that was stored.

    EVENTS is a Parquet, CSV, JSON Lines or Excel file, a glob, a directory of files, or a DuckDB or SQLite database
    (with --table where it has several tables); the folder of a Delta table, or iceberg:CATALOG.NAMESPACE.TABLE, of
    which the state that is read is shown; or the address of a PostgreSQL server,
    postgresql://USER@HOST/DATABASE, with --table; or, with --engine spark, Parquet files or the name of a table. The
    password of a database comes from --password-file, PGPASSWORD or ~/.pgpass, and never stands in the address.

    With --check-first the log is read as by 'dpwindows check' before anything is spent. If something looks like a
    mistake, such as a range in another year or a group that does not occur, you are asked whether to go on. Where there
    is no terminal to ask on, it ends with exit code 2, and nothing is spent or written.

    With --counts FILE, and no EVENTS, the counts are those that a database gave for the query of 'dpwindows sql': CSV
    or Parquet. Give the options that the query was printed with.
    """
    from dpwindows.ask.timeline import Timeline
    from dpwindows.count.sample import Log, remark_on_zones
    from dpwindows.plan.measured_plan import plan_of
    from dpwindows.release.run import run_plan

    source = _source(events, counts, settings, check_first=check_first)
    read = counts if isinstance(source, CountsFile) else source
    options.refuse_inputs(output, ledger, events=read, plan_file=plan_file, password_file=settings.password_file)
    timeline = Timeline(start, end, step=step, time_zone=time_zone)
    planned = build_plan(timeline, asked)
    say_notes(planned)
    log = None if isinstance(source, CountsFile) else Log(source, columns.layout, table, settings)
    if check_first and log is not None:
        _look_first(log, replace(columns, grouping=planned.grouping), timeline)
    # Nobody else prepares the same file meanwhile, so that nothing is spent on numbers that cannot be written.
    with options.claim_output(output, force=force):
        outcome = run_plan(planned, source, columns, table=table, settings=settings, ledger=ledger, consistent=not raw)
        released = outcome.release
        # A release that was stored errs as it was measured, whatever would be chosen today.
        shown = plan_of(released) if outcome.stored else planned
        again = (
            "The numbers drawn were discarded and nothing was published; running again draws fresh noise"
            if ledger is None
            else "The release is kept in the ledger: running this again writes it and spends nothing"
        )
        options.save_spent(released, output, force=force, again=again)
    if as_json:
        show_json(_summary(released, output, stored=outcome.stored, ledger=ledger))
        return
    what = f"{counted(released.table.num_rows, 'number')} to {output} (release {released.metadata['release_id']})"
    if ledger is None:
        said = f"Released {what}. Running this again draws fresh noise and spends the budget again."
    elif outcome.stored:
        said = f"Wrote {what}, as stored in the ledger: same request, same data. Nothing was spent."
    else:
        said = (
            f"Released {what}, spent from dataset {ledger.dataset!r}. Running this again on the same data returns "
            "this release."
        )
    console = screen(stderr=True)
    console.print(said, "", soft_wrap=True, sep="\n")
    show_forecast(shown, console)
    zone = None
    if not (log is None or timeline.is_integer or options.zone_is_given()):
        zone = remark_on_zones(log, columns)
    for remark in [*filter(None, [zone, planned.rule.promise]), *_remarks(released, raw=raw)]:
        tell(f"Note: {remark}")
    promise = short_promise(released.metadata["guarantee"], "'guarantee' in its metadata, and docs/promise.md")
    console.print(f"\n{promise}", style="dim", soft_wrap=True)


def _source(
    events: str | None, counts: str | None, settings: EngineSettings, *, check_first: bool
) -> str | Batches | CountsFile:
    """What is released: the log, as it is from here on, or the file with its counts.

    Raises:
        InputError: there is none of them, or both, or what was asked goes with a log.
    """
    if (events is None) == (counts is None):
        raise InputError("give either EVENTS, the log that is counted, or --counts FILE, counts that were made of it")
    if events is not None:
        return options.at_one_state(events, settings)
    if check_first:
        raise InputError("--check-first looks at a log, and --counts FILE holds none: leave one of them out")
    return CountsFile(str(counts))


def _look_first(log: Log, columns: EventColumns, timeline: Timeline) -> None:
    """Look at the log, for the operator's eyes only, and ask whether to go on if something looks like a mistake.

    Raises:
        InputError: it could not be released, or the answer is no, or there is nobody to ask.
    """
    from dpwindows.count.check import examine

    found = examine(log, columns, timeline)
    suspect = [*found.problems, *found.doubts]
    if not suspect:
        tell("Looked at the log first: nothing looks wrong.")
        return
    if not found.look.bad_rows and sys.stdin.isatty() and sys.stderr.isatty():
        click.echo("For your eyes only, exact figures of the log:", err=True)
        for one in suspect:
            click.echo(f"  {one}", err=True)
        if click.confirm("Release all the same?", err=True):
            return
        raise InputError("not released: nothing was spent or written")
    doubts = " ".join(one if one.endswith("?") else f"{one}." for one in suspect)
    advice = "leave --check-first out to release all the same"
    if found.look.bad_rows:
        advice = "without --check-first a release is refused too where it meets such a value"
    raise InputError(
        f"{log.source} (for your eyes only, exact figures of the log): {doubts} Nothing was spent or written; {advice}"
    )


def _summary(released: Release, output: Path, *, stored: bool, ledger: Ledger | None) -> dict[str, Any]:
    """What was done, as plain values: nothing that is not in the release."""
    known = ("release_id", "released_at", "guarantee", "budget", "timeline")
    return {
        "output": str(output),
        "numbers": released.table.num_rows,
        "stored": stored,
        "dataset": None if ledger is None else ledger.dataset,
        **{name: released.metadata[name] for name in known},
        **({"loss": released.metadata["loss"]} if "loss" in released.metadata else {}),
    }


def _remarks(released: Release, *, raw: bool) -> list[str]:
    missing = []
    if not raw and "max_runs" in released.metadata.get("counting", {}):
        missing = [
            "no consistent numbers were made: --max-runs bounds each window and k by itself, so they may disagree"
        ]
    elif not raw and released.table["consistent"].null_count:
        missing = ["no consistent numbers were found: too many sums of shorter windows to look at, or a solver failed"]
    return [*missing, *released.remarks]
