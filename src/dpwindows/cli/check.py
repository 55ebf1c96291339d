"""`dpwindows check`: what is in a log, for the operator's eyes only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dpwindows.cli.groups import groups_asked
from dpwindows.cli.options import list_options, memory_options, row_options, zone_is_given, zone_option
from dpwindows.cli.screen import json_option, screen, show_json
from dpwindows.errors import InputError, counted, percent

if TYPE_CHECKING:
    from rich.console import Console

    from dpwindows.count.check import Check
    from dpwindows.count.events import EngineSettings


@click.command(short_help="Look at a log, for your eyes only.")
@click.argument("events")
@click.option("--item", metavar="COLUMN", help="Column that identifies items. Default: a guess.")
@click.option("--time", metavar="COLUMN", help="Column of times. Default: a guess.")
@row_options
@click.option("--table", metavar="NAME", help="Table of a database, or sheet of a workbook, to read.")
@click.option("--start", help="With --end, count what lies in this range. It is public: never copy it from the data.")
@click.option("--end", help="End of the range, exclusive.")
@click.option("--step", help="Length of a step, as in 'dpwindows release'. Default: one that suits is suggested.")
@zone_option
@list_options
@memory_options
@json_option
def check(
    events: str,
    settings: EngineSettings,
    time_zone: str,
    by: tuple[str, ...],
    values: tuple[str, ...],
    as_json: bool,
    **said: Any,
) -> None:
    """Say what is in the log EVENTS, for the operator's eyes only: the figures are exact and protected by nothing.

    Nothing is written and nothing is spent. EVENTS is a Parquet, CSV, JSON Lines or Excel file, a glob, a directory of
    files, a DuckDB or SQLite database, or a Delta or Iceberg table; not PostgreSQL or Spark. What is not said is
    guessed from all rows, and shown with what speaks for it and what else it may be. With --by and --values it says
    which values of the list do not occur, and which frequent ones are not on it. At the end stands the shape of a
    release to run next, whose public range is for you to fill in: from what you know of the log, and not from its
    first and last time.

    Exits with 2 if a release would be refused, or would be nothing but noise, and where it is not clear which columns
    or which format are meant: then it names what may be.
    """
    from dpwindows.ask.groups import grouping as groups_of
    from dpwindows.count.check import LogOptions, check_events

    grouping = groups_of(groups_asked(by, values))
    zone = time_zone if zone_is_given() else None
    found = check_events(events, LogOptions(**said, time_zone=zone, grouping=grouping), settings)
    if as_json:
        show_json(found.to_dict())
    else:
        _show(found, screen())
    if found.problems:
        raise InputError(f"{events}: {'; '.join(found.problems)}")


def _show(found: Check, console: Console) -> None:
    console.print(found.to_dict()["warning"], style="bold", soft_wrap=True)
    console.print()
    for name, value in _figures(found):
        console.print(f"{name:<18}{value}", soft_wrap=True)
    for option, guess in found.evidence.items():
        rivals = f"; else perhaps {', '.join(guess.rivals)}" if guess.rivals else ""
        console.print(f"Guessed {option} {guess.name}: {guess.evidence}{rivals}", soft_wrap=True)
    for bad in found.look.bad:
        place = f", first in {bad.place}" if bad.place else ""
        console.print(f"  {bad.role} {bad.text!r}: {counted(bad.rows, 'row')}{place}", soft_wrap=True)
    for doubt in found.doubts:
        console.print(f"Careful: {doubt}", soft_wrap=True)
    for note in found.notes:
        console.print(f"Note: {note}", soft_wrap=True)
    left = "--step and --unit are for you to choose"
    if found.look.rows_inside is None:
        left = f"START and END are for you to fill in, from what you know and not from the times above, and {left}"
    console.print(f"\nTo run next; {left}:")
    console.print(f"  {found.command}", soft_wrap=True)


def _figures(found: Check) -> list[tuple[str, str]]:
    seen, columns = found.look, found.columns
    clock = "" if seen.zone == "UTC" or isinstance(seen.first, int) else f" ({seen.zone})"
    rows = [
        ("item column", columns.item),
        ("time column", columns.time + (f", read as {columns.time_format}" if columns.time_format else "")),
        ("guessed", ", ".join(f"{option} {value}" for option, value in found.guessed.items()) or "nothing"),
        *([] if found.version is None else [("state read", found.version)]),
        ("rows", f"{seen.rows:,}"),
        ("distinct items", f"{seen.items:,}"),
        ("first time", "none" if seen.first is None else f"{seen.first}{clock}"),
        ("last time", "none" if seen.last is None else f"{seen.last}{clock}"),
        ("without item", _share(seen.null_items, seen.rows)),
        ("without time", _share(seen.null_times, seen.rows)),
        ("not readable", f"{seen.bad_rows:,}"),
        ("step that suits", found.step),
    ]
    if neither := seen.null_items + seen.null_times - seen.null_rows:
        rows.insert(9, ("without either", f"{neither:,}, counted in both lines above"))
    if columns.count is not None:
        rows.insert(-1, ("count below 1", f"{seen.ignored + seen.null_counts:,}"))
    if seen.rows_inside is not None:
        share = seen.rows_inside / seen.rows if seen.rows else 0.0
        events, items = counted(seen.inside or 0, "event"), counted(seen.items_inside or 0, "item")
        inside = f"{events} of {items}, {percent(share)} of the rows"
        rows.insert(7, ("in the range", inside))
    return rows


def _share(rows: int, of: int) -> str:
    return f"{rows:,}, {percent(rows / of)} of the rows" if rows else "0"
