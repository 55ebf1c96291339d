"""How counting scales: our exact counting beside the plain queries a user would write, on one synthetic log.

    python benchmarks/scale.py --events 10000000 --thresholds 1 5

makes a log of EVENTS events of EVENTS / 2 items (some far more frequent than others) over 365 days as a temporary
Parquet file, and runs each task in a fresh process, where it measures wall time, CPU time (user and system) and peak
memory of the task alone: imports come before the clock starts, memory includes them. Ratios are of CPU time to the
exact per-day `count(DISTINCT item)` of DuckDB on the same file, in the same run.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb

from dpwindows.events import EngineSettings, EventColumns
from dpwindows.recency import count_events
from dpwindows.timeline import Timeline

DAYS = 365
YEAR = Timeline("2013-01-01", "2014-01-01")
PER_DAY = "SELECT CAST(time AS DATE) AS day, count(DISTINCT item) AS items FROM '{path}' GROUP BY day ORDER BY day"
# What a user writes first for a rolling 28-day count.
SLIDING = """
SELECT day, count(DISTINCT item) AS items
FROM (SELECT CAST(range AS DATE) AS day FROM range(TIMESTAMP '2013-01-01', TIMESTAMP '2014-01-01', INTERVAL 1 DAY))
JOIN (SELECT item, CAST(time AS DATE) AS seen FROM '{path}') ON seen BETWEEN day - 27 AND day
GROUP BY day ORDER BY day"""
ITEMS = {
    "integer": "code",
    "text": "printf('user-%010d', code)",
    "uuid": "CAST(md5(CAST(code AS VARCHAR)) AS UUID)",
}


def generate(path: Path, events: int, item_type: str) -> None:
    """Write the log: item i is drawn with a weight that falls with i; times are uniform over the year."""
    item = ITEMS[item_type]
    with duckdb.connect(config={"preserve_insertion_order": False}) as connection:
        connection.execute(f"""
COPY (
    SELECT {item} AS item, time, CAST(1 + floor(3 * random()) AS INTEGER) AS occurrences
    FROM (
        SELECT CAST(floor({events // 2} * power(random(), 1.3)) AS BIGINT) AS code,
            TIMESTAMP '2013-01-01' + to_seconds(CAST(floor(random() * {DAYS * 86400}) AS BIGINT)) AS time
        FROM range({events})
    )
) TO '{path}' (FORMAT parquet)""")


def run_plain(query: str, path: Path, memory_limit: str | None) -> int:
    """One query in DuckDB with its own settings; gives a number to compare runs by."""
    with tempfile.TemporaryDirectory() as spill:
        config: dict[str, str | bool | int | float | list[str]] = {"temp_directory": spill}
        if memory_limit:
            config["memory_limit"] = memory_limit
        with duckdb.connect(config=config) as connection:
            return sum(items for _, items in connection.sql(query.format(path=path)).fetchall())


def run_ours(thresholds: list[int], path: Path, memory_limit: str | None, count: str | None) -> int:
    """Our exact counting; gives the sum of the per-day answers of the first threshold."""
    settings = EngineSettings(memory_limit=memory_limit, progress=False)
    answers = count_events(path, EventColumns("item", "time", count), YEAR, thresholds, settings=settings)
    return int(answers.rolling(thresholds[0], 1).sum())


def measure(task: Callable[[], int]) -> dict[str, float]:
    """Wall and CPU seconds of a task, and the peak memory of this process in GB."""
    before, started = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    result = task()
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    unit = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes, Linux kilobytes
    return {"wall": wall, "cpu": cpu, "peak": after.ru_maxrss * unit / 1e9, "result": result}


def in_fresh_process(task: str, path: Path, memory_limit: str | None) -> dict[str, float]:
    """Run one task of this file in a process of its own."""
    command = [sys.executable, __file__, "--task", task, "--file", str(path)]
    command += ["--memory-limit", memory_limit] if memory_limit else []
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def run_task(task: str, path: Path, memory_limit: str | None) -> dict[str, float]:
    """What a fresh process does: `exact`, `naive` or thresholds such as `1,5` or `5 by COLUMN`."""
    if task in ("exact", "naive"):
        query = PER_DAY if task == "exact" else SLIDING
        return measure(lambda: run_plain(query, path, memory_limit))
    listed, _, count = task.partition(" by ")
    thresholds = [int(k) for k in listed.split(",")]
    return measure(lambda: run_ours(thresholds, path, memory_limit, count or None))


def report(events: int, item_type: str, thresholds: list[int], memory_limit: str | None, naive: bool) -> None:
    """Generate the log, run every task, print a table."""
    tasks = {"exact": "DuckDB count(DISTINCT) a day"}
    tasks |= {str(k): f"dpwindows, k={k}" for k in thresholds}
    if len(thresholds) > 1:
        tasks[",".join(map(str, thresholds))] = f"dpwindows, k={' and '.join(map(str, thresholds))} at once"
    tasks[f"{max(thresholds)} by occurrences"] = f"dpwindows, k={max(thresholds)}, count column"
    if naive:
        tasks["naive"] = "DuckDB sliding 28-day join"
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "events.parquet"
        generate(path, events, item_type)
        size = path.stat().st_size / 1e6
        print(
            f"{events:,} events of up to {events // 2:,} {item_type} items in {DAYS} days, {size:,.0f} MB Parquet; ",
            end="",
        )
        print(f"DuckDB {duckdb.__version__}, memory limit {memory_limit or 'none'}")
        print(f"{'task':32} {'wall s':>8} {'CPU s':>8} {'CPU ratio':>10} {'peak GB':>8}")
        floor: dict[str, float] = {}
        for task, name in tasks.items():
            found = in_fresh_process(task, path, memory_limit)
            floor = floor or found
            if task.split(",")[0] == "1" and "by" not in task and found["result"] != floor["result"]:
                raise SystemExit(f"{name} counted {found['result']}, the exact query {floor['result']}")
            ratio = found["cpu"] / floor["cpu"]
            print(f"{name:32} {found['wall']:8.2f} {found['cpu']:8.2f} {ratio:10.2f} {found['peak']:8.2f}", flush=True)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--thresholds", type=int, nargs="+", default=[1, 5])
    parser.add_argument("--memory-limit", help='for every task, such as "2GB"')
    parser.add_argument("--items", choices=sorted(ITEMS), default="integer", help="the type of the item column")
    parser.add_argument("--naive", action="store_true", help="also the sliding join (slow: 1M events or fewer)")
    parser.add_argument("--task", help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        print(json.dumps(run_task(options.task, options.file, options.memory_limit)))
    else:
        report(options.events, options.items, options.thresholds, options.memory_limit, options.naive)


if __name__ == "__main__":
    main()
