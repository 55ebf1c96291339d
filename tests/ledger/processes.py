"""Real processes that use one ledger at once, or are killed while they do; run as `python -m` by the tests.

Each mode prints one line of JSON. Children are forked from a process without threads, so that many fit into a second.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpwindows.ask.privacy import PureDP
from dpwindows.errors import OverBudgetError
from dpwindows.ledger.ledger import Ledger
from tests.ledger.requests import request


def _forked(work: Callable[[int], None]) -> tuple[int, int]:
    """Start a child that gets the writing end of a pipe; returns its id and the reading end."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            work(writing)
        except BaseException as error:
            os.write(writing, f"!{type(error).__name__}: {error}\n".encode())
        os._exit(0)
    os.close(writing)
    return child, reading


def _said(reading: int) -> list[str]:
    with os.fdopen(reading) as pipe:
        return pipe.read().splitlines()


def spend_at_once(path: Path) -> dict[str, Any]:
    """Eight processes that spend at once, more often than the total allows."""

    def work(writing: int) -> None:
        ledger = Ledger.open(path, "d")
        for _ in range(8):
            try:
                os.write(writing, f"{ledger.spend(request(PureDP(0.05)))}\n".encode())
            except OverBudgetError:
                os.write(writing, b"refused\n")

    children = [_forked(work) for _ in range(8)]
    said = [line for _, reading in children for line in _said(reading)]
    for child, _ in children:
        os.waitpid(child, 0)
    return {"said": said}


def kill_while_spending(path: Path) -> dict[str, Any]:
    """Children that spend without pause, each killed at a random moment; what each was told was recorded."""

    def work(writing: int) -> None:
        ledger = Ledger.open(path, "d")
        while True:
            os.write(writing, f"{ledger.spend(request(PureDP(0.001)))}\n".encode())

    acknowledged, interrupted, dice = [], 0, random.Random(4)
    for _ in range(12):
        child, reading = _forked(work)
        first = os.read(reading, 1)
        time.sleep(dice.uniform(0, 0.15))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        interrupted += path.with_name(path.name + "-journal").exists()
        acknowledged.append([int(line) for line in (first.decode() + "\n".join(_said(reading))).split()])
    return {"acknowledged": acknowledged, "interrupted": interrupted}


def release(path: Path) -> dict[str, Any]:
    """Releases killed between their phases, and several of one request at once."""
    plan, table = _plan_and_log()
    return {"killed": _kill_between_phases(path, plan, table), "at once": _release_at_once(path, plan, table)}


def _release_at_once(path: Path, plan: Any, table: Any) -> list[str]:
    """Three processes that ask for the same release of the same data at once."""

    def work(writing: int) -> None:
        release = plan.run(table, item="who", time="at", ledger=Ledger.open(path, "at once"))
        said = [release.metadata["release_id"], release.to_arrow()["estimate"].to_pylist()]
        os.write(writing, (json.dumps(said) + "\n").encode())

    children = [_forked(work) for _ in range(3)]
    said = [line for _, reading in children for line in _said(reading)]
    for child, _ in children:
        os.waitpid(child, 0)
    return said


def _kill_between_phases(path: Path, plan: Any, table: Any) -> dict[str, list[str]]:
    """A release killed after spending, after drawing, and after storing; then one that is left alone, and one more."""
    from dpwindows.release import files as release_files

    def die(*arguments: Any) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)

    def run(phase: str) -> Callable[[int], None]:
        def work(writing: int) -> None:
            ledger = Ledger.open(path, "d")
            if phase == "after spending":
                spend = Ledger.spend
                Ledger.spend = lambda *a, **k: die(spend(*a, **k))  # type: ignore[method-assign]
            elif phase == "after drawing":
                release_files.to_bytes = die  # type: ignore[assignment]
            elif phase == "after storing":
                release_files.from_bytes = die  # type: ignore[assignment]
            release = plan.run(table, item="who", time="at", ledger=ledger)
            os.write(writing, (release.metadata["release_id"] + "\n").encode())

        return work

    said = {}
    for phase in ("after spending", "after drawing", "after storing", "left alone", "once more"):
        child, reading = _forked(run(phase))
        said[phase] = _said(reading)
        os.waitpid(child, 0)
        entries = Ledger.open(path, "d").book().entries
        said[phase] += [str(len(entries)), str(sum(entry.release_id is not None for entry in entries))]
    return said


def _plan_and_log() -> Any:
    import pyarrow as pa

    import dpwindows as dw
    from dpwindows.kernel.measure import draw_noise

    # Loaded once, before the children are forked.
    draw_noise("discrete Laplace", 1.0, 1)
    plan = dw.Plan(
        dw.Rolling(2), timeline=dw.Timeline(0, 4, 1), unit=dw.EventLevel(), budget=dw.PureDP(0.25), strategy="direct"
    )
    return plan, pa.table({"who": ["a", "b", "a"], "at": [0, 1, 3]})


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](Path(sys.argv[2]))))  # noqa: T201
