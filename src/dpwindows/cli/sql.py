"""`dpwindows sql`: the counting query as a text, to run by hand."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpwindows.cli.options import counts_options, range_options, table_options
from dpwindows.cli.plan_files import PlannedCommand, plan_option
from dpwindows.cli.screen import json_option, show_json, tell
from dpwindows.cli.values import AskedCounts
from dpwindows.count.dialects import DIALECTS
from dpwindows.errors import InputError

if TYPE_CHECKING:
    from dpwindows.count.events import EventColumns


_PROBE = "dpwindows.probe"


def _show_probe(ctx: click.Context, option: click.Parameter, value: Any) -> Any:
    """Print the probe and end, once it is known that it is asked for, and for which dialect."""
    known = ctx.meta.setdefault(_PROBE, {})
    known[option.name] = value
    if known.get("probe") and known.get("dialect"):
        from dpwindows.count.dialects import dialect_named
        from dpwindows.count.query.standalone import standalone_probe

        click.echo(standalone_probe(dialect_named(known["dialect"])), nl=False)
        ctx.exit()
    return value


@click.command(cls=PlannedCommand, short_help="Print the counting query, to run by hand.")
@click.option(
    "--dialect",
    required=True,
    type=click.Choice(DIALECTS),
    is_eager=True,
    callback=_show_probe,
    help="How the database spells SQL.",
)
@click.option(
    "--probe",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_probe,
    help="Print the probe, and nothing else: what the database must make of literal rows. With --dialect alone.",
)
@click.option("--table", required=True, metavar="NAME", help="Table or view to count, as NAME or SCHEMA.NAME.")
@table_options
@click.option(
    "--types",
    required=True,
    metavar="item=TYPE,time=TYPE",
    help="The type of each column as the database calls it: of item, time, count, and of each --by COLUMN by its name.",
)
@range_options
@plan_option
@counts_options
@json_option
def sql(
    dialect: str,
    table: str,
    columns: EventColumns,
    types: str,
    start: str,
    end: str,
    step: str,
    time_zone: str,
    plan_file: Path | None,
    asked: AskedCounts,
    as_json: bool,
) -> None:
    """Print the query that counts, for a database that dpwindows does not reach. Nothing is read.

    Run it as it is, save its whole result as CSV or Parquet, and release that with 'dpwindows release --counts FILE'
    and the same options. The result holds exact counts, protected by nothing. That they are exact is a promise of
    yours then: dpwindows sees no more than whether they can be of some log. Where dpwindows has not counted in such a
    database before, run what --probe prints first.
    """
    from dpwindows.ask.timeline import Timeline
    from dpwindows.count.dialects import dialect_named
    from dpwindows.count.engines.sql import RUN_HERE
    from dpwindows.count.query.standalone import made_for, standalone_sql
    from dpwindows.count.request import CountRequest

    timeline = Timeline(start, end, step=step, time_zone=time_zone)
    wanted, grouping = asked.wanted(timeline)
    request = CountRequest(None, replace(columns, grouping=grouping), timeline, wanted, table)
    if dialect not in RUN_HERE:
        tell(
            f"Note: the query has been written for {dialect}, and never run there by its makers: run what --probe "
            "prints first"
        )
    query = standalone_sql(dialect_named(dialect), request, _types(types))
    if as_json:
        show_json({"dialect": dialect, "query": query, "description": made_for(request)})
    else:
        click.echo(query, nl=False)


def _types(text: str) -> dict[str, str]:
    """What --types says; within brackets a comma parts nothing."""
    found: dict[str, str] = {}
    for part in re.findall(r"(?:[^,(]|\([^)]*\))+", text):
        name, sign, type_name = map(str.strip, part.partition("="))
        if not (name and sign and type_name) or name in found:
            raise InputError(f"--types takes NAME=TYPE, once for each column, parted by commas, got {text!r}")
        found[name] = type_name
    return found
