"""The command line: one module a command, and the group that holds them.

Exit codes: 0 success, 2 bad usage or bad input, 1 the surroundings failed. Every failure is one message on standard
error. Nothing here knows more than how to read options and show results; the work is done by the library.
"""

from __future__ import annotations

import sys
from typing import Any

import click

from dpwindows import __version__
from dpwindows.cli.audit import audit
from dpwindows.cli.ledger import ledger
from dpwindows.cli.pages import demo, report
from dpwindows.cli.plan import plan
from dpwindows.cli.release import release
from dpwindows.cli.stream import stream
from dpwindows.cli.theory import theory
from dpwindows.errors import EngineError, InputError


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


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="dpwindows")
def main() -> None:
    """Publish how many distinct items were seen in time windows, under differential privacy."""


for command in (
    plan,
    release,
    report,
    stream,
    ledger,
    theory,
    audit,
    demo,
):
    main.add_command(command)
