"""The console that commands print on: it shows text as it is, whatever is in the names that users chose.

Results go to standard output; what is said about them goes to standard error, and with `--quiet` nowhere.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

import click
from rich.console import Console

from dpwindows.progress import QUIET
from dpwindows.progress import tell as tell

Command = TypeVar("Command", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON, and nothing else.")


def screen(*, stderr: bool = False, soft_wrap: bool = False) -> Console:
    """A console that takes no text for markup, for emoji or for something to colour; styles are given as such.

    With `soft_wrap` long lines are left to the terminal, so that what is cut out of them or piped on is whole.
    """
    quiet = stderr and QUIET.get()
    return Console(stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=soft_wrap, quiet=quiet)


def number_option(name: str, default: float, said: str, metavar: str = "N") -> Callable[[Command], Command]:
    """An option for a number, whole if its default is."""
    kind = type(default)
    return click.option(name, type=kind, default=default, show_default=True, metavar=metavar, help=said)


def budget_options(*said: str) -> Callable[[Command], Command]:
    """`--epsilon`, `--delta` and `--rho`, with what is said of each."""

    def decorate(command: Command) -> Command:
        for letter, text in reversed(list(zip(("epsilon", "delta", "rho"), said, strict=True))):
            command = click.option(f"--{letter}", type=float, metavar=letter[0].upper(), help=text)(command)
        return command

    return decorate


def show_json(values: dict[str, Any]) -> None:
    """Print a result as JSON; times in it as text."""
    click.echo(json.dumps(values, indent=2, ensure_ascii=False, default=str))


def short_promise(guarantee: str, where: str) -> str:
    """The claim itself, which is the guarantee up to its first colon, and where all of it stands."""
    # A colon without a space after it is within a name, as in item-per:30.
    return f"{guarantee.partition(': ')[0]}; what that does and does not promise: {where}."
