"""What groups cost: the same log counted whole and by groups, in fresh processes, and their CPU times compared.

    python benchmarks/groups.py --events 10M --groups 100 1000 --items integer text

makes a log (`event_logs`) with a column of so many groups, all of them filled: each item has a group of its own nine
times in ten, and any other else. It is counted by DuckDB, without groups and with, and the ratio of the CPU times (user
and system, of the whole process while it counts) is printed. It fails unless the counts of a few groups
are those of the log of these groups alone.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import asdict
from pathlib import Path

import duckdb
from event_logs import ITEMS, number, write_log
from metering import Cost, in_fresh_process, measure

from dpwindows.ask.groups import grouping
from dpwindows.ask.timeline import Timeline
from dpwindows.count.counting import count_events, count_groups
from dpwindows.count.events import EngineSettings, EventColumns
from dpwindows.count.query.wanted import Wanted
from dpwindows.count.request import CountRequest

YEAR = Timeline("2013-01-01", "2014-01-01")


def perform(
    path: Path, groups: int, thresholds: list[int], reach: int | None, memory_limit: str, spill: Path
) -> tuple[Cost, str]:
    """Count the log, by groups if there are any, and measure it."""
    settings = EngineSettings(memory_limit=memory_limit, spill_directory=spill, progress=False)

    def whole() -> str:
        columns = EventColumns("item", "time")
        answers = count_events(CountRequest(path, columns, YEAR, Wanted(tuple(thresholds)), settings=settings))
        return json.dumps({"28 days": int(answers.rolling(1, 28).sum())})

    def by_groups() -> str:
        asked = grouping({"of": [f"group {number}" for number in range(groups)]})
        columns = EventColumns("item", "time", grouping=asked)
        wanted = Wanted(tuple(thresholds), reach=reach)
        answers = count_groups(CountRequest(path, columns, YEAR, wanted, settings=settings))
        return json.dumps({str(cell): int(answers.group(cell).rolling(1, 28).sum()) for cell in range(groups)})

    return measure(by_groups if groups else whole, spill)


def performed(path: Path, groups: int, options: argparse.Namespace) -> tuple[Cost, dict[str, int]]:
    """The cost and the counts of `perform`, in a process of its own."""
    with tempfile.TemporaryDirectory() as spill:
        given = [str(path), groups, options.thresholds, options.reach, options.memory_limit, spill]
        return in_fresh_process(__file__, given)


def add_groups(path: Path, groups: int, to: Path) -> None:
    """The log with a column of groups, which every group has events in."""
    home = f"hash(item) % {groups}"
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT *, 'group ' || CAST(CASE WHEN random() < 0.9 THEN {home} "
            f"ELSE floor({groups} * random()) END AS INTEGER) AS of FROM '{path}') TO '{to}' (FORMAT parquet)"
        )


def check(path: Path, cells: list[int], found: dict[str, int]) -> None:
    """Stop unless groups count what the log of their events alone does."""
    with tempfile.TemporaryDirectory() as directory:
        for cell in cells:
            alone = Path(directory) / f"{cell}.parquet"
            duckdb.sql(f"COPY (SELECT * FROM '{path}' WHERE of = 'group {cell}') TO '{alone}' (FORMAT parquet)")
            counted = count_events(CountRequest(alone, EventColumns("item", "time"), YEAR, Wanted((1,))))
            if int(counted.rolling(1, 28).sum()) != found[str(cell)]:
                raise SystemExit(f"group {cell} is counted wrongly")


def run(options: argparse.Namespace, item_type: str) -> None:
    """One log, counted without groups and with each number of them."""
    with tempfile.TemporaryDirectory() as directory:
        plain, path = Path(directory) / "plain.parquet", Path(directory) / "log.parquet"
        write_log(plain, options.events, item_type)
        for groups in options.groups:
            add_groups(plain, groups, path)
            costs = {}
            for many in (0, groups):
                tries = [performed(path, many, options) for _ in range(options.repeats)]
                costs[many], found = min(tries, key=lambda tried: tried[0].cpu)
            check(path, [0, groups - 1], found)
            whole, by = costs[0], costs[groups]
            print(
                f"{options.events:,} events, {item_type} items, {groups:,} groups, k = {options.thresholds}: "
                f"CPU {whole.cpu:.1f} s whole, "
                f"{by.cpu:.1f} s by groups, {by.cpu / whole.cpu:.2f} times; wall {whole.wall:.1f} and {by.wall:.1f} s; "
                f"peak {whole.peak / 1e9:.2f} and {by.peak / 1e9:.2f} GB",
                flush=True,
            )


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=number, default=1_000_000, help="number of events, such as 10M")
    parser.add_argument("--groups", type=number, nargs="+", default=[100], help="numbers of groups")
    parser.add_argument("--thresholds", type=int, nargs="+", default=[1])
    parser.add_argument("--reach", type=int, default=28, help="the longest window asked of groups; below 28: any")
    parser.add_argument("--items", choices=sorted(ITEMS), nargs="+", default=["integer"], help="types of items")
    parser.add_argument("--memory-limit", default="2GB")
    parser.add_argument("--repeats", type=int, default=1, help="runs of each, of which the cheapest is shown")
    parser.add_argument("--perform", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.perform:
        path, groups, thresholds, reach, memory_limit, spill = json.loads(options.perform)
        cost, found = perform(Path(path), groups, thresholds, reach if reach >= 28 else None, memory_limit, Path(spill))
        print(json.dumps({"cost": asdict(cost), "found": json.loads(found)}))
        return
    for item_type in options.items:
        run(options, item_type)


if __name__ == "__main__":
    main()
