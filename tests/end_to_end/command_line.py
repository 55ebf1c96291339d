"""Helpers that run the command line the way a user does, and the plain query its answers are compared with."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
from click.testing import CliRunner

from dpwindows.cli import main


@dataclass(frozen=True)
class Outcome:
    """What a command left behind."""

    code: int
    out: str
    err: str

    def must_work(self) -> Outcome:
        """Fail with what was said unless the command did what was asked."""
        assert self.code == 0, self
        return self

    def must_refuse(self, *parts: str) -> Outcome:
        """Fail unless the command was refused, in one message that has these parts."""
        return self._must_end(2, parts)

    def must_fail(self, *parts: str) -> Outcome:
        """Fail unless the environment failed the command, which says so in one message that has these parts."""
        return self._must_end(1, parts)

    def _must_end(self, code: int, parts: tuple[str, ...]) -> Outcome:
        assert self.code == code, self
        assert "Traceback" not in self.err
        assert sum(line.startswith("Error: ") for line in self.err.splitlines()) == 1, self.err
        said = " ".join(self.err.split())
        for part in parts:
            assert part in said or part in self.err, self.err
        return self


def run(*arguments: str | Path) -> Outcome:
    """Run `dpwindows ARGUMENTS` in this process."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments], catch_exceptions=True)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Outcome(result.exit_code, result.stdout, result.stderr)


def run_process(*arguments: str | Path, cwd: Path | None = None) -> Outcome:
    """Run `dpwindows ARGUMENTS` in a process of its own, with its own interpreter and exit code."""
    command = [sys.executable, "-m", "dpwindows", *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)
    return Outcome(result.returncode, result.stdout, result.stderr)


def plain_counts(daily: str, windows: list[tuple[int, int]], ks: list[int]) -> dict[tuple[int, int, int], int]:
    """Items with at least k occurrences in each window: a sum for each item and window, and no recency.

    Args:
        daily: SQL of a query with columns item, step, occurrences, a row for each item and step that has any.
        windows: (first step, last step) of each window.
        ks: thresholds.

    Returns:
        The count by (first step, last step, k).
    """
    with duckdb.connect() as connection:
        found = connection.execute(daily).fetchnumpy()
    _, items = np.unique(found["item"], return_inverse=True)
    last_step = max(int(found["step"].max()), *(last for _, last in windows))
    totals = np.zeros((items.max() + 1, last_step + 1), dtype=np.int64)
    np.add.at(totals, (items, found["step"]), found["occurrences"])
    until = totals.cumsum(axis=1)
    inside = {(first, last): until[:, last] - until[:, first - 1] for first, last in windows}
    return {(*window, k): int((total >= k).sum()) for window, total in inside.items() for k in ks}
