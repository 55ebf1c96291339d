"""`dpwindows ledger`: one budget a dataset, set once, and what was spent of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dpwindows.cli.screen import budget_options, json_option, screen, show_json, tell
from dpwindows.errors import InputError

if TYPE_CHECKING:
    from dpwindows.ledger.places import Place

_FILE = click.argument("file", metavar="LEDGER", type=click.Path())


@click.group(short_help="One budget a dataset: create it, show it.")
def ledger() -> None:
    """Keep one budget for everything that is released from a dataset.

    `release --ledger LEDGER --dataset NAME` and `stream create` with the same options spend from it. LEDGER is a file,
    or the address of a database, postgresql://USER@HOST/DATABASE; its password is taken from PGPASSWORD, from ~/.pgpass
    or from a service file (?service=NAME), and never from the command line.
    """


@ledger.command()
@_FILE
@click.option("--dataset", required=True, metavar="NAME", help="A name of your choice; public.")
@click.option("--unit", required=True, metavar="UNIT", help="What the total protects, as in 'dpwindows release'.")
@budget_options(
    "Total epsilon, with or without --delta.",
    "Total delta, in [0, 1). Left out or 0: pure.",
    "Total rho of zero-concentrated DP, in place of epsilon.",
)
@click.option("--singleton", is_flag=True, help="Admit releases that rest on the public promise of the same name.")
@json_option
def create(
    file: str,
    dataset: str,
    unit: str,
    epsilon: float | None,
    delta: float | None,
    rho: float | None,
    singleton: bool,
    as_json: bool,
) -> None:
    """Add a dataset to a ledger, with its total budget and unit: once, and for good.

    The ledger is made if there is none: a file that its owner alone may read, or a schema of the database. It may hold
    many datasets. For a database, this prints what lets another role spend and not erase.
    """
    from dpwindows.ask.privacy import parse_budget, parse_unit
    from dpwindows.ledger.ledger import Ledger

    budget = parse_budget(epsilon, delta, rho)
    ledger = Ledger.create(file, dataset, budget=budget, unit=parse_unit(unit), singleton=singleton)
    if as_json:
        made = {"file": str(file), "dataset": dataset, "unit": unit, "singleton": singleton}
        show_json(made | {"total": budget.to_dict()})
    else:
        tell(f"Dataset {dataset!r} may spend {budget} in total, at the level of the unit '{unit}'.")
        _tell_grants(ledger.path)


@ledger.command()
@_FILE
@click.option("--dataset", metavar="NAME", help="Show this dataset only.")
@budget_options(
    "Tell how many more releases of this epsilon fit.",
    "With --epsilon: of this delta.",
    "Tell how many more releases of this rho fit.",
)
@json_option
def show(
    file: str, dataset: str | None, epsilon: float | None, delta: float | None, rho: float | None, as_json: bool
) -> None:
    """Print what was spent, by what, and what is left. Nothing that depends on exact counts is shown.

    What is left is told in releases too: as many as fit of the last budget that was spent, or of the one given.
    """
    from dpwindows.ask.privacy import parse_budget
    from dpwindows.ledger.ledger import book_of, datasets, store_at

    names = [dataset] if dataset is not None else datasets(file)
    budget = None if (epsilon, delta, rho) == (None, None, None) else parse_budget(epsilon, delta, rho)
    books = [book_of(file, name) for name in names]
    pages = [book.to_dict() for book in books]
    if budget is not None:
        for book, page in zip(books, pages, strict=True):
            page["room"] = {"budget": budget.to_dict(), "releases": book.room(budget)}
    try:
        store_at(file).require_trusted()
    except InputError as error:
        # It may be looked at, which is what tells whether to go on with it.
        tell(f"Note: nothing is spent from it: {error}")
    if as_json:
        show_json({"datasets": pages})
        return
    if not pages:
        raise InputError(f"the ledger {file!r} has no datasets yet: add one with 'dpwindows ledger create'")
    console = screen()
    for page in pages:
        _show_page(page, console)


def _tell_grants(place: Place) -> None:
    """What another role needs to spend, where the ledger is on a server."""
    if isinstance(place, str):
        from dpwindows.ledger.server import grants

        tell("To let another role spend from it, and erase nothing, its owner runs, with the name of the role:")
        tell("\n".join(f"  {statement};" for statement in grants("ROLE")))


def _show_page(page: dict[str, Any], console: Console) -> None:
    singleton = ", under the promise of at most one event a step" if page["singleton"] else ""
    console.print(
        Text(page["dataset"], style="bold"), f"{page['unit']} level{singleton}, since {page['created']}", sep=": "
    )
    for name in ("total", "spent", "left"):
        console.print(f"  {name:<6}{_amount(page[name])}")
    if "room" in page:
        console.print(f"  {'room':<6}{_room(page)}", soft_wrap=True)
    if page["entries"]:
        console.print(_entries(page["entries"]))
    if "by_time" in page:
        console.print("\nReleases of disjoint ranges do not add up.", _by_what(page["unit"]))
        console.print(_pieces(page["by_time"]))
    if "rho" in page["left"] and "epsilon" in page["left"]:
        console.print(
            "\nWhere a rho was spent, converting it took its part of epsilon, once, and all the delta that was left."
        )
    if any(entry["kind"] == "release" and entry["release_id"] is None for entry in page["entries"]):
        console.print(
            "\n'nothing stored': the budget is spent; the release is being drawn now, or it was lost in a crash before "
            "anybody saw it, and the same request on the same data draws it and spends nothing more."
        )
    console.print()


def _by_what(unit: str) -> str:
    _, _, steps = unit.partition(":")
    if not steps:
        return "By the time of an event:"
    return f"Any {steps} steps in a row are charged for the releases on the line of their first step:"


def _room(page: dict[str, Any]) -> str:
    from dpwindows.ledger.book import MOST_ROOM

    releases, budget = page["room"]["releases"], _amount(page["room"]["budget"])
    if not releases:
        return f"for no further release of {budget}"
    count = f"more than {MOST_ROOM:,}" if releases >= MOST_ROOM else f"{releases:,}"
    more = f"{count} more release{'s' if releases > 1 else ''} of {budget}{' each' if releases > 1 else ''}"
    return f"for {more}{', over any range' if 'by_time' in page else ''}"


def _entries(entries: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("", "when (UTC)", "what", "range", "spent", "became"):
        table.add_column(name, overflow="fold")
    for entry in entries:
        span = f"{entry['start']} to {entry['end'] or 'ever'}"
        when = entry["at"][:16].replace("T", " ")
        row = (str(entry["number"]), when, entry["asked"], span, _amount(entry["budget"]), _became(entry))
        table.add_row(*row)
    return table


def _became(entry: dict[str, Any]) -> str:
    if entry["kind"] == "stream":
        return f"stream {entry['state'][:12]} at step {entry['last_step']}"
    return "nothing stored" if entry["release_id"] is None else f"release {entry['release_id'][:12]}"


def _pieces(by_time: list[dict[str, Any]]) -> Table:
    from dpwindows.ledger.book import short_instant

    # Closer together, two amounts with a delta fit 80 columns.
    table = Table(box=None, pad_edge=False, collapse_padding=True, header_style="bold")
    for name in ("from", "to", "spent", "left"):
        table.add_column(name, overflow="fold")
    for piece in by_time:
        first = "the beginning" if piece["start"] is None else str(short_instant(piece["start"]))
        last = "ever" if piece["end"] is None else str(short_instant(piece["end"]))
        table.add_row(first, last, _amount(piece["spent"]), _amount(piece["left"]))
    return table


def _amount(values: dict[str, Any]) -> str:
    from dpwindows.ledger.book import amount_text

    return amount_text(values)
