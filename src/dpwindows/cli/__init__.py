"""The command line: one module a command, and the group that holds them.

Exit codes: 0 success, 2 bad usage or bad input, 1 the surroundings failed, 130 interrupted. Every failure is one
message on standard error (`outcome`). Nothing here knows more than how to read options and show results; the work is
done by the library.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from dpwindows import __version__
from dpwindows.cli.audit import audit
from dpwindows.cli.check import check
from dpwindows.cli.count import count
from dpwindows.cli.ledger import ledger
from dpwindows.cli.outcome import told, whole_run
from dpwindows.cli.pages import demo, report
from dpwindows.cli.plan import plan
from dpwindows.cli.publish import publish
from dpwindows.cli.release import release
from dpwindows.cli.sql import sql
from dpwindows.cli.statement import statement
from dpwindows.cli.stream import stream
from dpwindows.cli.theory import theory
from dpwindows.progress import QUIET


class _Commands(click.Group):
    """A group whose commands end in one of the exit codes, with one message where they fail."""

    def main(self, args: Sequence[str] | None = None, *more: Any, **extra: Any) -> Any:
        arguments = sys.argv[1:] if args is None else args
        with whole_run(arguments):
            return super().main(arguments, *more, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        # Within click's own handling, which has other messages and codes for some of it.
        with told():
            return super().invoke(ctx)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="dpwindows")
def main() -> None:
    """Publish how many distinct items were seen in time windows, under differential privacy."""


for command in (plan, check, release, sql, count, report, publish, statement, stream, ledger, theory, audit, demo):
    main.add_command(command)


def _be_quiet(ctx: click.Context, _: click.Parameter, quiet: bool) -> None:
    if quiet:
        token = QUIET.set(True)
        ctx.call_on_close(lambda: QUIET.reset(token))


def _with_quiet(command: click.Command) -> None:
    """Give a command, or all commands of a group, the option that every command has."""
    if isinstance(command, click.Group):
        for one in command.commands.values():
            _with_quiet(one)
    else:
        said = "Say nothing but results, warnings and errors."
        flag = {"is_flag": True, "is_eager": True, "expose_value": False}
        command.params.append(click.Option(["-q", "--quiet"], callback=_be_quiet, help=said, **flag))


_with_quiet(main)
