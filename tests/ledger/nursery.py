"""Real processes that use one ledger at once, forked on demand; run as `python -m` by the tests.

Reads a line of JSON, a list of jobs; forks a process for each, lets them loose at one moment, and prints a line of JSON
with what each of them said. A job says what to `do`, and when its process is killed, if ever: after how many seconds,
or `before` or `after` which of the things that it asks of a server.
"""

from __future__ import annotations

import gc
import importlib
import itertools
import json
import os
import select
import signal
import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa

import dpwindows as dw
from dpwindows.ask.privacy import parse_unit
from dpwindows.errors import EngineError, InputError, OverBudgetError, StateBehindLedgerError
from dpwindows.kernel.measure import draw_noise
from dpwindows.ledger.book import budget_of
from dpwindows.ledger.ledger import Ledger
from tests.ledger.requests import request

# What a command line makes of each error.
EXITS = ((InputError, 2), (EngineError, 1))


def spend(ledger: Ledger, job: dict[str, Any]) -> dict[str, Any]:
    """Spend for a release or a stream, and draw nothing."""
    state = job.get("state")
    asked = request(
        *(budget_of(job["budget"]), job["start"], job["end"]),
        unit=parse_unit(job["unit"]),
        time=job["time"],
        kind="stream" if state else "release",
    )
    return {"number": ledger.spend(asked, state=state, token="t0" if state else "")}


def planned(unit: str, budget: dict[str, Any], start: int, end: int) -> dw.Plan:
    """Of all events up to the end of each step."""
    timeline = dw.Timeline(start, end, 1)
    return dw.Plan(dw.Cumulative(), timeline=timeline, unit=parse_unit(unit), budget=budget_of(budget))


def release(ledger: Ledger, job: dict[str, Any]) -> dict[str, Any]:
    """A whole release of a small log, of which there are two versions that differ at every step."""
    plan = planned(job["unit"], job["budget"], job["start"], job["end"])
    steps = list(range(job["start"], job["end"]))
    items = [f"{name}{step}" for name in ("a", "b")[: job["data"]] for step in steps]
    log = pa.table({"who": items, job["time"]: steps * job["data"]})
    made = plan.run(log, item="who", time=job["time"], ledger=ledger)
    described = made.metadata
    rows = made.to_arrow()["estimate"].to_pylist()
    return {"number": described["ledger"]["entry"], "release": [described["release_id"], rows]}


def advance(ledger: Ledger, job: dict[str, Any]) -> dict[str, Any]:
    """Record a position of a stream."""
    ledger.advance(job["state"], *job["known"], *job["new"])
    return {"position": job["new"]}


JOBS = {"spend": spend, "release": release, "advance": advance}


def _killed_at(number: int, moment: str) -> Callable[[], int]:
    """Have this process killed before or after it asks something of a server; gives what tells how often it did."""
    import psycopg

    asked = 0

    def dying(ask: Callable[..., Any]) -> Callable[..., Any]:
        def asking(*arguments: Any) -> Any:
            nonlocal asked
            asked += 1
            if (asked, "before") == (number, moment):
                os.kill(os.getpid(), signal.SIGKILL)
            answer = ask(*arguments)
            if (asked, "after") == (number, moment):
                os.kill(os.getpid(), signal.SIGKILL)
            return answer

        return asking

    for name in ("execute", "commit"):
        setattr(psycopg.Connection, name, dying(getattr(psycopg.Connection, name)))
    return lambda: asked


def _said_of(job: dict[str, Any]) -> dict[str, Any]:
    asked = _killed_at(*job["killed_at"]) if "killed_at" in job else int
    try:
        ledger = Ledger.open(job["path"], job.get("dataset", "d"))
        return JOBS[job["do"]](ledger, job) | {"asked": asked()}
    except (InputError, EngineError) as error:
        code = next(code for kind, code in EXITS if isinstance(error, kind))
        return {
            "exit": code,
            "over": isinstance(error, OverBudgetError),
            "behind": isinstance(error, StateBehindLedgerError),
            "message": str(error),
        }


def _forked(job: dict[str, Any], gate: int) -> tuple[int, int]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        select.select([gate], [], [])
        try:
            said = json.dumps(_said_of(job))
        except BaseException as error:
            said = json.dumps({"broken": f"{type(error).__name__}: {error}"})
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    return child, reading


def _all_said(jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What each job said; an empty one for a process that was killed before it could."""
    gate, opens = os.pipe()
    children = [_forked(job, gate) for job in jobs]
    os.write(opens, b"go")
    for job, (child, reading) in zip(jobs, children, strict=True):
        if "kill_after" in job:
            # It may have ended by then; until it is waited for, its number is nobody else's.
            select.select([reading], [], [], job["kill_after"])
            os.kill(child, signal.SIGKILL)
    said = []
    for child, reading in children:
        with os.fdopen(reading) as pipe:
            text = pipe.read()
        os.waitpid(child, 0)
        said.append(json.loads(text) if text else {})
    os.close(gate)
    os.close(opens)
    return said


if __name__ == "__main__":
    # Loaded once, before anything is forked.
    draw_noise("discrete Laplace", 1.0, 1)
    for library in ("pandas", "psycopg", "scipy.signal", "sqlalchemy.dialects.postgresql.psycopg"):
        importlib.import_module(library)
    import dpwindows.count.engines.duckdb
    import dpwindows.ledger.server
    import dpwindows.release.files
    import dpwindows.release.run

    for unit, epsilon in itertools.product(("event", "item-per:2", "item"), (0.1, 0.2, 0.3)):
        planned(unit, {"epsilon": epsilon}, 0, 3)
    # Out of the reach of the children's garbage collectors, which would copy all of it.
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        print(json.dumps(_all_said(json.loads(line))), flush=True)  # noqa: T201
