"""`dpwindows count`: one number of a release, or a difference, ratio or mean of some, with its error."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpwindows.cli.groups import parse_group
from dpwindows.cli.screen import json_option, number_option, show_json
from dpwindows.errors import InputError

if TYPE_CHECKING:
    from dpwindows.release.derived import Derived
    from dpwindows.release.release import Count, Release
    from dpwindows.release.selection import Items, Window

Ends = tuple[str, str]


@click.command(short_help="One released number, a difference or a ratio, with its error.")
@click.argument("release_file", metavar="RELEASE", type=click.Path(path_type=Path))
@click.argument("start")
@click.argument("end")
@click.option("--at-least", type=int, metavar="K", help="Items seen at least K times. Default: 1, the distinct items.")
@click.option("--exactly", type=int, metavar="K", help="Items seen exactly K times.")
@click.option("--occurrences", is_flag=True, help="How often items were seen, all together.")
@click.option(
    "--new", "items", flag_value="new", help="Items not seen before START, from the beginning of the range on."
)
@click.option("--returning", "items", flag_value="returning", help="Items seen before START, too.")
@click.option("--minus", nargs=2, metavar="START END", help="Less the same count of this window.")
@click.option("--over", nargs=2, metavar="START END", help="Over the count of this window (of all items there).")
@click.option("--over-at-least", type=int, metavar="K", help="Over items seen at least K times. Default: as above it.")
@number_option(
    "--mean-over", 1, "The mean over N windows: from START to END, moved on step by step. The other window moves alike."
)
@click.option(
    "--group",
    "groups",
    multiple=True,
    metavar="COLUMN=VALUE",
    help="Of a release with groups: the one to show, by each of its columns. Default: the total.",
)
@click.option(
    "--over-group",
    "over_groups",
    multiple=True,
    metavar="all|COLUMN=VALUE",
    help="Over the count of this group, or of all groups. Default: the group above it.",
)
@json_option
def count(
    release_file: Path,
    start: str,
    end: str,
    *,
    at_least: int | None,
    exactly: int | None,
    occurrences: bool,
    items: Items | None,
    minus: Ends | None,
    over: Ends | None,
    over_at_least: int | None,
    mean_over: int,
    groups: tuple[str, ...],
    over_groups: tuple[str, ...],
    as_json: bool,
) -> None:
    """Show one number of the file RELEASE, from START (inclusive) to END (exclusive), and its interval.

    With --minus or --over it is a difference or a ratio, whose error knows how the noise of both is correlated, and the
    line below it names both sides. Nothing is spent: whatever is worked out of a release is as private as the release.
    """
    from dpwindows.release.derived import Derived
    from dpwindows.release.release import Release
    from dpwindows.release.selection import Window

    loaded = Release.load(release_file)
    counted: dict[str, Any] = {"at_least": at_least, "exactly": exactly, "occurrences": occurrences}
    counted |= {"group": parse_group(groups)}
    asked = Window(start, end, **counted, items=items or "all", mean_over=mean_over)
    found = _answer(loaded, asked, minus, over, over_at_least, over_groups)
    if as_json:
        values = {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in {"start": start, "end": end, **found.__dict__}.items()
        }
        show_json(values)
    else:
        click.echo(f"{found}\n{found.what}" if isinstance(found, Derived) else str(found))


def _answer(
    loaded: Release,
    asked: Window,
    minus: Ends | None,
    over: Ends | None,
    over_at_least: int | None,
    over_groups: tuple[str, ...],
) -> Count | Derived:
    if minus and over:
        raise InputError("give --minus or --over, not both")
    for option, given in (("--over-at-least", over_at_least), ("--over-group", over_groups)):
        if given not in (None, ()) and not over:
            raise InputError(f"{option} goes with --over START END")
    if minus:
        return loaded.difference(asked, replace(asked, start=minus[0], end=minus[1]))
    if over:
        other = replace(asked, start=over[0], end=over[1], items="all")
        if over_at_least is not None:
            other = replace(other, at_least=over_at_least, exactly=None, occurrences=False)
        if over_groups:
            other = replace(other, group=None if over_groups == ("all",) else parse_group(over_groups, "--over-group"))
        return loaded.ratio(asked, other)
    if asked.items == "all" and asked.mean_over == 1:
        counted: dict[str, Any] = {name: getattr(asked, name) for name in ("at_least", "exactly", "occurrences")}
        return loaded.count(asked.start, asked.end, **counted, group=asked.group)
    return loaded.estimate(asked)
