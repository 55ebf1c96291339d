"""Words of command lines that cases share, and how a valid file is made with them."""

from __future__ import annotations

from click.testing import CliRunner

from dpwindows.cli import main

PLAN = ("--window", "cumulative", "--unit", "event", "--epsilon", "1")
RANGE = ("--start", "2013-01-01", "--end", "2013-01-08")
COLUMNS = ("--item", "who", "--time", "at")
STREAM = ("--item", "who", "--time", "at", "--start", "2013-01-01", "--window", "rolling:3", "--unit", "event")


def release_words(events: str, *more: str) -> tuple[str, ...]:
    """A command that releases counts of events."""
    return ("release", events, *COLUMNS, *RANGE, *PLAN, *more, "-o", "out.json")


def run(*arguments: str) -> None:
    """Run a command that must succeed."""
    result = CliRunner().invoke(main, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
