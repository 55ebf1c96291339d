"""Helpers that run the command line the way a user does, and the plain query its answers are compared with."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
from click.testing import CliRunner

from dpwindows.cli import main


@dataclass(frozen=True)
class Outcome:
    """What a command left behind."""

    code: int
    out: str
    err: str


def run(*arguments: str | Path) -> Outcome:
    """Run `dpwindows ARGUMENTS` in this process."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments], catch_exceptions=True)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Outcome(result.exit_code, result.stdout, result.stderr)


def run_process(*arguments: str | Path, cwd: Path | None = None) -> Outcome:
    """Run `dpwindows ARGUMENTS` in a process of its own, with its own interpreter and exit code."""
    command = [sys.executable, "-c", "from dpwindows.cli import main; main()", *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)
    return Outcome(result.returncode, result.stdout, result.stderr)


def plain_counts(daily: str, windows: list[tuple[int, int]], ks: list[int]) -> dict[tuple[int, int, int], int]:
    """Items with at least k occurrences in each window, by a join over windows and `count(distinct item)`.

    Args:
        daily: SQL of a query with columns item, step, occurrences.
        windows: (first step, last step) of each window.
        ks: thresholds.

    Returns:
        The count by (first step, last step, k).
    """
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE daily AS {daily}")
    asked = pa.table({"first_step": [first for first, _ in windows], "last_step": [last for _, last in windows]})
    connection.register("windows", asked)
    columns = ", ".join(f"count(DISTINCT CASE WHEN total >= {k} THEN item END)" for k in ks)
    rows = connection.execute(
        f"""SELECT first_step, last_step, {columns} FROM (
                SELECT first_step, last_step, item, sum(occurrences) AS total
                FROM windows JOIN daily ON step BETWEEN first_step AND last_step GROUP BY ALL)
            GROUP BY ALL"""
    ).fetchall()
    found = {(row[0], row[1], k): row[2 + i] for row in rows for i, k in enumerate(ks)}
    return {(first, last, k): found.get((first, last, k), 0) for first, last in windows for k in ks}
