"""What a piece of work costs: wall and CPU seconds, peak memory, bytes spilled, and what Spark says it shuffled."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

_INTERVAL = 0.05
UNIT = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes, Linux kilobytes


@dataclass
class Cost:
    """Of this process and its children: seconds, and bytes.

    `peak` is the resident memory at its largest, of what was loaded before the work began too; `spilled` the largest
    size of the directory for what does not fit, or what Spark's tasks report. Of Spark also: `shuffles`, the number of
    tasks of each stage that wrote for the next one and the bytes they wrote, and `returned`, what tasks sent to the
    driver.
    """

    wall: float = 0.0
    cpu: float = 0.0
    peak: int = 0
    spilled: int = 0
    shuffles: list[tuple[int, int]] | None = None
    returned: int | None = None


def in_fresh_process(script: str, message: Any) -> tuple[Cost, Any]:
    """What `script --perform MESSAGE` tells in its last line, as `{"cost": ..., "found": ...}`.

    What it says on stderr (Spark does while it starts) is shown only where it fails.
    """
    command = [sys.executable, script, "--perform", json.dumps(message)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    told = json.loads(done.stdout.splitlines()[-1])
    return Cost(**told["cost"]), told["found"]


def measure(work: Callable[[], str], spill: Path) -> tuple[Cost, str]:
    """The cost of some work that may spill to a directory, and its result."""
    cost = Cost()
    with _watched(cost, spill):
        cpu, started = cpu_seconds(), time.perf_counter()
        result = work()
        cost.wall, cost.cpu = time.perf_counter() - started, cpu_seconds() - cpu
    return cost, result


@contextmanager
def _watched(cost: Cost, spill: Path) -> Iterator[None]:
    """Keep the peaks of memory and of the spill directory up to date."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(_INTERVAL):
            cost.peak = max(cost.peak, sum(_resident(process) for process in _processes()))
            cost.spilled = max(cost.spilled, sum(_size(path) for path in spill.rglob("*")))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
        # This process alone is known exactly.
        cost.peak = max(cost.peak, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * UNIT)


def _processes() -> list[psutil.Process]:
    own = psutil.Process()
    return [own, *own.children(recursive=True)]


def cpu_seconds() -> float:
    """User and system seconds of this process and of those it started."""
    times = [process.cpu_times() for process in _processes()]
    return float(sum(each.user + each.system for each in times))


def _resident(process: psutil.Process) -> int:
    with suppress(psutil.Error):
        return int(process.memory_info().rss)
    return 0


def _size(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_size
    return 0


def add_spark_metrics(cost: Cost, event_log: Path) -> None:
    """Put in what the tasks of a Spark application reported, by its event log (one file, not compressed)."""
    cost.returned = cost.spilled = 0
    written: dict[int, list[int]] = {}
    for file in event_log.iterdir():
        for line in file.read_text(encoding="utf-8").splitlines():
            event = json.loads(line)
            if event["Event"] == "SparkListenerTaskEnd" and "Task Metrics" in event:
                metrics = event["Task Metrics"]
                cost.spilled += metrics["Disk Bytes Spilled"]
                cost.returned += metrics["Result Size"]
                shuffled = metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"]
                written.setdefault(event["Stage ID"], []).append(shuffled)
    cost.shuffles = [(len(tasks), sum(tasks)) for _, tasks in sorted(written.items()) if sum(tasks)]
