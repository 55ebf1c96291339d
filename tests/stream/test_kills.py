"""Real processes killed at any moment of a stream's life: nothing lost, nothing doubled, nothing published twice."""

from __future__ import annotations

import logging
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

import dpwindows as dw
from dpwindows.stream.closing import progress_at
from dpwindows.stream.stream import Stream
from tests.search import SEARCHING, TIMES
from tests.stream.streams import new_stream, plan_of, require_exact
from tests.stream.victim import PLAN, SETTINGS, calls, events_of, output

KILLS = 12 * TIMES
LOG = logging.getLogger(__name__)
MOMENTS = ("commit", "committed", "anywhere", "commit", "committed", "close", "commit", "committed", "open")


class Victims:
    """Processes that advance one stream, one after the other; see `tests.stream.victim`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.orders, self.reports = process.stdin, process.stdout

    def hear(self) -> tuple[str, int]:
        what, number = self.reports.readline().split()
        return what, int(number)

    def kill(self, at: str, skip: int, delay: float) -> tuple[list[tuple[str, int]], str]:
        """Start a process and kill it.

        It is killed so many seconds after it has reported `at`, or after its start if that is `anywhere`, for the
        time after `skip` other times. Returns all that it reported, and the phase it died in: the last report.
        """
        self.orders.write("\n")
        self.orders.flush()
        what, process = self.hear()
        assert what == "child"
        heard: list[tuple[str, int]] = [("start", 0)]
        if at != "anywhere":
            while sum(what == at for what, _ in heard) <= skip:
                heard.append(self.hear())
        time.sleep(delay)
        os.kill(process, signal.SIGKILL)
        while (report := self.hear())[0] != "gone":
            heard.append(report)
        return heard, heard[-1][0]


@contextmanager
def victims(folder: Path) -> Iterator[Victims]:
    command = [sys.executable, "-m", "tests.stream.victim", str(folder)]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        found = Victims(process)
        assert found.hear() == ("ready", 0)
        yield found
        found.orders.close()


class Witness:
    """What has been seen of the stream so far, and must stay true."""

    def __init__(self, folder: Path, plan: dw.StreamPlan, ledger: dw.Ledger, state_id: str) -> None:
        self.folder, self.plan, self.ledger, self.state_id = folder, plan, ledger, state_id
        self.shown: pa.Table | None = None
        self.published: set[int] = set()
        self.looked = 0

    def look(self, heard: list[tuple[str, int]]) -> None:
        """Compare the state that a killed process left with all that is known."""
        published = {int(path.stem) for path in (self.folder / "published").glob("*.parquet")}
        recorded = self.ledger.position(self.state_id).step
        assert max(published, default=0) <= recorded, "published before the ledger knew it"
        with Stream.open(self.folder / "state", read_only=True, settings=SETTINGS) as stream:
            closed = stream.closed_steps
            committed = [step for what, step in heard if what == "committed"]
            begun = [step for what, step in heard if what == "commit"]
            assert closed >= max([*committed, *published, 0]), "an acknowledged step is lost"
            if begun:
                assert closed <= max(begun), "a step was closed that no commit was begun for"
            counts, _ = progress_at(stream._position, stream._mechanism)
            if closed:
                log = [event for step in range(1, closed + 1) for event in events_of(step)]
                require_exact(counts.answers()[0], log, self.plan)
            self.looked += 1
            if closed and self.looked % 8 == 0:
                self.compare(stream.show().table, published)

    def compare(self, shown: pa.Table, published: set[int]) -> None:
        """Rows once there stay as they are, and what was published is what is stored."""
        if self.shown is not None:
            assert shown.slice(0, self.shown.num_rows).equals(self.shown), "stored rows changed"
        self.shown = shown
        steps = shown["last_step"].to_numpy()
        for first, last in calls():
            if last in published - self.published:
                stored = shown.filter((steps >= first) & (steps <= last))
                assert dw.Release.load(output(self.folder, last)).table.equals(stored), "published something else"
        assert self.published <= published
        self.published = published


@pytest.mark.slow
@pytest.mark.search
def test_kills_at_random_moments(tmp_path: Path) -> None:
    plan = plan_of(*PLAN, horizon=None)
    ledger = dw.Ledger.create(tmp_path / "ledger", "log", budget=dw.ApproxDP(1.0, 1e-6), unit=dw.EventLevel())
    with new_stream(tmp_path / "state", plan, ledger=ledger) as stream:
        witness = Witness(tmp_path, plan, ledger, stream.description["state_id"])
    (tmp_path / "published").mkdir()
    phases, dice, enough = Counter[str](), random.Random(None if SEARCHING else 4), KILLS // 10

    def missing() -> list[str]:
        hit = {"commit": phases["commit"], "committed": phases["committed"] + phases["publish"]}
        return [phase for phase, kills in hit.items() if kills < enough]

    with victims(tmp_path) as processes:
        number = 0
        # How far a process gets before the signal is the machine's choice: moments are aimed at until enough were hit.
        while number < KILLS or (missing() and number < 4 * KILLS):
            at = MOMENTS[number % len(MOMENTS)] if number < KILLS else missing()[0]
            delay = dice.random() * (0.2 if at == "anywhere" else 0.004 if number < KILLS else 0.0005)
            heard, phase = processes.kill(at, int(dice.random() < 0.1), delay)
            LOG.info("kill %d while: %s %d", number + 1, *heard[-1])
            phases[phase] += 1
            witness.look(heard)
            number += 1
    LOG.info("phases: %s", dict(phases))
    assert sum(phases.values()) >= KILLS
    assert not missing(), phases
    # What is left goes on as if nothing had happened.
    with Stream.open(tmp_path / "state", settings=SETTINGS) as stream:
        assert stream.closed_steps >= enough
        witness.compare(stream.show().table, witness.published)
