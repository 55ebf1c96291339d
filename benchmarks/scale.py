"""How counting scales: our exact counting beside the plain queries a user would write, on one synthetic log a size.

    python benchmarks/scale.py --sizes 1M 10M 100M --engines duckdb spark --thresholds 1 5 --skew

makes a log of each size (half as many items, 365 days) as a temporary Parquet file, and runs each task in a fresh
process, where it measures wall time, CPU time (user and system), peak memory and bytes spilled of the task alone:
imports and the start of Spark come before the clock starts, memory includes them. The tasks are our counts for every
threshold, without and with a count column, by every engine; the exact per-day count(DISTINCT item) of the same
engine; and up to 10M events the sliding 28-day join in DuckDB. Ratios are of CPU time to the exact per-day count of
DuckDB on the same file, in the same run. It fails unless all engines give the same counts to the last integer, and
these agree with the plain queries. With --skew it does all of this on logs with a heavy item and a heavy day as well,
and with several sizes it prints how CPU time grows by tenfold events.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import math
import os
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import duckdb
from event_logs import DAYS, ITEMS, SKEWS, number, write_log
from metering import Cost, add_spark_metrics, in_fresh_process, measure

from dpwindows.ask.timeline import Timeline
from dpwindows.count.answers import ExactAnswers
from dpwindows.count.counting import count_events
from dpwindows.count.events import EngineSettings, EventColumns
from dpwindows.count.query.wanted import Wanted
from dpwindows.count.request import CountRequest

YEAR = Timeline("2013-01-01", "2014-01-01")
NAIVE_UP_TO = 10_000_000
PER_DAY = "SELECT CAST(time AS DATE) AS day, count(DISTINCT item) AS items FROM {events} GROUP BY CAST(time AS DATE)"
# What a user writes first for a rolling 28-day count.
SLIDING = """
SELECT day, count(DISTINCT item) AS items
FROM (SELECT CAST(range AS DATE) AS day FROM range(TIMESTAMP '2013-01-01', TIMESTAMP '2014-01-01', INTERVAL 1 DAY))
JOIN (SELECT item, CAST(time AS DATE) AS seen FROM {events}) ON seen BETWEEN day - 27 AND day
GROUP BY day"""


@dataclass(frozen=True)
class Task:
    """What one fresh process does: `query` is `exact`, `naive`, or `ours` for a threshold."""

    engine: str
    query: str
    threshold: int = 1
    count: bool = False

    @property
    def name(self) -> str:
        engine = {"duckdb": "DuckDB", "spark": "Spark"}[self.engine]
        if self.query == "ours":
            return f"{engine}: dpwindows, k={self.threshold}{', count column' * self.count}"
        return f"{engine}: {'count(DISTINCT) a day' if self.query == 'exact' else 'sliding 28-day join'}"


@dataclass(frozen=True)
class Run:
    """A task on a log, its cost, and what it found: sums to check plain queries by, and a digest of all counts."""

    events: int
    skew: str
    task: Task
    cost: Cost
    found: dict[str, str]


def tasks_of(engines: list[str], thresholds: list[int], events: int, naive: bool) -> list[Task]:
    """All tasks on a log, the per-day count of DuckDB first."""
    tasks = [Task("duckdb", "exact")]
    for engine in engines:
        tasks += [Task(engine, "exact")] if engine != "duckdb" else []
        tasks += [Task(engine, "ours", k, count) for count in (False, True) for k in thresholds]
    return tasks + ([Task("duckdb", "naive")] if naive and events <= NAIVE_UP_TO else [])


# --- in the fresh process -------------------------------------------------------------------------------------


def perform(task: Task, path: Path, memory_limit: str, scratch: Path) -> tuple[Cost, dict[str, str]]:
    """Run one task and measure it."""
    spill = scratch / "spill"
    spill.mkdir()
    if task.engine == "spark":
        return _with_spark(task, path, memory_limit, scratch, spill)
    settings = EngineSettings(memory_limit=memory_limit, spill_directory=spill, progress=False)
    if task.query == "ours":
        cost, found = measure(lambda: _ours(task, path, settings), spill)
    else:
        cost, found = measure(lambda: _plain(task, path, memory_limit, spill), spill)
    return cost, json.loads(found)


def _ours(task: Task, path: Path, settings: EngineSettings) -> str:
    columns = EventColumns("item", "time", "occurrences" if task.count else None)
    answers = count_events(CountRequest(path, columns, YEAR, Wanted((task.threshold,)), settings=settings))
    sums = {
        "exact": str(answers.rolling(task.threshold, 1).sum()),
        "naive": str(answers.rolling(task.threshold, 28).sum()),
    }
    return json.dumps({**sums, "digest": _digest(answers, task.threshold)})


def _digest(answers: ExactAnswers, k: int) -> str:
    """All window counts of a threshold in a few letters."""
    return hashlib.sha256(answers.windows(k, 1, DAYS, 1, DAYS).tobytes()).hexdigest()[:16]


def _plain(task: Task, path: Path, memory_limit: str, spill: Path) -> str:
    """One query in DuckDB with its own settings."""
    query = (PER_DAY if task.query == "exact" else SLIDING).format(events=f"'{path}'")
    with duckdb.connect(config={"temp_directory": str(spill), "memory_limit": memory_limit}) as connection:
        return json.dumps({task.query: str(sum(items for _, items in connection.sql(query).fetchall()))})


def _with_spark(task: Task, path: Path, memory_limit: str, scratch: Path, spill: Path) -> tuple[Cost, dict[str, str]]:
    """A task in a local Spark that runs already, as that of a user would."""
    from pyspark.sql import SparkSession

    event_log = scratch / "log"
    event_log.mkdir()
    options = {
        "spark.driver.memory": memory_limit.removesuffix("B"),
        "spark.local.dir": spill,
        "spark.log.level": "OFF",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": event_log.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }
    builder = SparkSession.builder.master(f"local[{os.cpu_count()}]")
    for name, value in options.items():
        builder = builder.config(name, str(value))
    session = builder.getOrCreate()
    try:
        if task.query == "ours":
            cost, found = measure(lambda: _ours(task, path, EngineSettings(engine="spark", progress=False)), spill)
        else:
            query = PER_DAY.format(events=f"parquet.`{path}`")
            cost, found = measure(
                lambda: json.dumps({"exact": str(sum(row.items for row in session.sql(query).collect()))}), spill
            )
    finally:
        session.stop()
    add_spark_metrics(cost, event_log)
    return cost, json.loads(found)


# --- in the first process -------------------------------------------------------------------------------------


def run_all(options: argparse.Namespace) -> list[Run]:
    """Every task on every log, each log written once and removed after; prints as it goes."""
    runs: list[Run] = []
    for events in options.sizes:
        for skew in SKEWS if options.skew else ("none",):
            with tempfile.TemporaryDirectory() as directory:
                path = Path(directory) / "events.parquet"
                write_log(path, events, options.items, skew)
                _print_head(path, events, options.items, skew, options.memory_limit)
                runs += _run_log(path, events, skew, options)
    return runs


def _run_log(path: Path, events: int, skew: str, options: argparse.Namespace) -> list[Run]:
    runs: list[Run] = []
    for task in tasks_of(options.engines, options.thresholds, events, options.naive and skew == "none"):
        tries = [_performed(task, path, options.memory_limit) for _ in range(options.repeats)]
        cost, found = min(tries, key=lambda tried: tried[0].cpu)
        runs.append(Run(events, skew, task, cost, found))
        _check(runs)
        _print_run(runs[-1], floor=runs[0].cost.cpu)
    return runs


def _performed(task: Task, path: Path, memory_limit: str) -> tuple[Cost, dict[str, str]]:
    with tempfile.TemporaryDirectory() as scratch:
        message = {"task": asdict(task), "path": str(path), "memory_limit": memory_limit, "scratch": scratch}
        return in_fresh_process(__file__, message)


def _check(runs: list[Run]) -> None:
    """Stop unless the last run found what the others of its log did."""
    last = runs[-1]
    for other in runs[:-1]:
        alike = other.task.count == last.task.count or 1 in (other.task.threshold, last.task.threshold)
        if alike and other.task.threshold == last.task.threshold:
            shared = other.found.keys() & last.found.keys()
            if any(other.found[name] != last.found[name] for name in shared):
                raise SystemExit(f"{last.task.name} and {other.task.name} count differently")


def _print_head(path: Path, events: int, items: str, skew: str, memory_limit: str) -> None:
    size = path.stat().st_size / 1e6
    shape = {"none": "no skew", "item": "10 % of one item", "step": "50 % on one day"}.get(
        skew, "one heavy item and day"
    )
    print(f"\n{events:,} events, {shape}; up to {events // 2:,} {items} items, {DAYS} days, {size:,.0f} MB Parquet")
    print(f"DuckDB {duckdb.__version__}, memory limit {memory_limit}, {os.cpu_count()} processors")
    heads = ("wall s", "CPU s", "CPU ratio", "peak GB", "spill GB", "shuffle B/event")
    print(f"{'task':40}" + "".join(f"{head:>{len(head) + 3}}" for head in heads))


def _print_run(run: Run, floor: float) -> None:
    cost = run.cost
    shuffled = "-" if cost.shuffles is None else f"{sum(size for _, size in cost.shuffles) / run.events:.1f}"
    print(
        f"{run.task.name:40}{cost.wall:9.1f}{cost.cpu:8.1f}{cost.cpu / floor:12.2f}{cost.peak / 1e9:10.2f}"
        f"{cost.spilled / 1e9:11.2f}{shuffled:>18}",
        flush=True,
    )
    if cost.shuffles and cost.returned is not None:
        stages = ", ".join(f"{size / 1e6:,.1f} MB by {tasks} tasks" for tasks, size in cost.shuffles)
        print(f"    shuffled: {stages}; to the driver {cost.returned / 1e6:,.1f} MB", flush=True)


def print_growth(runs: list[Run]) -> None:
    """How CPU time grows by tenfold events, from each size to the next; linear growth is 10."""
    sizes = sorted({run.events for run in runs})
    for smaller, larger in itertools.pairwise(sizes):
        print(f"\nCPU time by tenfold events, from {smaller:,} to {larger:,}")
        costs = {(run.events, run.skew, run.task): run.cost.cpu for run in runs}
        for (events, skew, task), cpu in costs.items():
            if events == larger and (smaller, skew, task) in costs:
                growth = (cpu / costs[smaller, skew, task]) ** (1 / math.log10(larger / smaller))
                print(f"{task.name:40}{'' if skew == 'none' else f'skew {skew}':12}{growth:8.1f}")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=number, nargs="+", default=[1_000_000], help="numbers of events, such as 10M")
    parser.add_argument("--engines", choices=("duckdb", "spark"), nargs="+", default=["duckdb"])
    parser.add_argument("--thresholds", type=int, nargs="+", default=[1, 5])
    parser.add_argument(
        "--memory-limit", default="2GB", help="for every task; for Spark, the memory of its one process"
    )
    parser.add_argument("--items", choices=sorted(ITEMS), default="integer", help="the type of the item column")
    parser.add_argument("--skew", action="store_true", help="skewed logs of the same sizes as well")
    parser.add_argument("--no-naive", dest="naive", action="store_false", help="leave out the sliding join")
    parser.add_argument("--repeats", type=int, default=1, help="runs of each task, of which the cheapest is shown")
    parser.add_argument("--json", type=Path, help="also write the figures")
    parser.add_argument("--perform", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.perform:
        told = json.loads(options.perform)
        task, path, scratch = Task(**told["task"]), Path(told["path"]), Path(told["scratch"])
        cost, found = perform(task, path, told["memory_limit"], scratch)
        print(json.dumps({"cost": asdict(cost), "found": found}))
        return
    runs = run_all(options)
    print_growth(runs)
    if options.json:
        options.json.write_text(json.dumps([asdict(run) for run in runs], indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
