"""Drivers and executors of Spark that are killed while they write items of a stream: one noise, no item twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from dpwindows.stream.stream import Stream
from tests.stream.elsewhere import SETTINGS, InSpark, exact_and_fingerprints
from tests.stream.streams import PLAN, STEP, Event, new_stream, plan_of, same, table_of

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.usefixtures("spark")]
LOG: list[Event] = [(f"item {number}", 1, 1 + number % 3) for number in range(50)]


@contextmanager
def victim(master: str, folder: Path) -> Iterator[tuple[subprocess.Popen[str], Iterator[str]]]:
    """A process that closes the first step, and what it tells; see `spark_victim`."""
    pq.write_table(table_of(LOG), folder / "events.parquet")
    command = [sys.executable, "-m", "tests.stream.spark_victim", master]
    with subprocess.Popen(
        [*command, str(folder / "state"), str(folder / "events.parquet"), str(STEP)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=Path(__file__).parents[2],
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield process, (line.split()[-1] for line in process.stdout if line.startswith("victim: "))
        finally:
            _kill_all(process)


def _kill_all(process: subprocess.Popen[str]) -> None:
    """Kill the driver and all that it started, at once."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def executors(process: subprocess.Popen[str]) -> list[int]:
    """The processes of the executors that a driver started."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if (
                    os.getsid(int(entry.name)) == process.pid
                    and b"CoarseGrainedExecutorBackend" in (entry / "cmdline").read_bytes()
                ):
                    found.append(int(entry.name))
            except (OSError, ProcessLookupError):
                continue
    return found


def require_as_here(folder: Path, at: InSpark) -> None:
    """The call again, wherever it was left, gives the integers of a stream that keeps its items beside its state."""
    with (
        new_stream(folder / "here", plan_of(*PLAN)) as here,
        Stream.open(folder / "state", settings=SETTINGS) as there,
    ):
        here.advance(table_of(LOG), STEP)
        released = there.advance(str(folder / "events.parquet"), STEP)
        assert same(released, there.advance(through=STEP))
        assert exact_and_fingerprints(here)[0] == exact_and_fingerprints(there)[0]
        # The next step removes what was left.
        there.advance(str(_second(folder)), 2 * STEP)
        here.advance(_second(folder), 2 * STEP)
        assert exact_and_fingerprints(here)[0] == exact_and_fingerprints(there)[0]
        assert sorted(at.names()) == sorted(there.parts)


def _second(folder: Path) -> Path:
    path = folder / "second.parquet"
    pq.write_table(table_of([("item 1", 2, 1), ("new", 2, 4)]), path)
    return path


@pytest.mark.search(1)
@pytest.mark.parametrize("moment", ["writing", "keeping", "kept", "closed"])
def test_a_driver_that_is_killed_leaves_nothing_that_counts(moment: str, tmp_path: Path) -> None:
    at = InSpark(tmp_path)
    new_stream(tmp_path / "state", plan_of(*PLAN), items_at=at.place, settings=SETTINGS).close()
    with victim("local[1]", tmp_path) as (process, tells):
        assert moment in tells
        _kill_all(process)
        process.wait()
    require_as_here(tmp_path, at)


def test_a_task_whose_executor_is_killed_is_done_again_and_counts_once(tmp_path: Path) -> None:
    at = InSpark(tmp_path)
    new_stream(tmp_path / "state", plan_of(*PLAN), items_at=at.place, settings=SETTINGS).close()
    with victim("local-cluster[1,1,512]", tmp_path) as (process, tells):
        assert "keeping" in tells
        one, *_ = executors(process)
        os.kill(one, signal.SIGKILL)
        assert "closed" in tells
        assert process.wait() == 0
    require_as_here(tmp_path, at)
