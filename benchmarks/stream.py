"""What a step of a stream costs: seconds, their slope over many steps, file size and memory.

    python benchmarks/stream.py --items 1000000 --events 100000 --at-least 1 --steps 100

closes one step with all items, to make them known, and then STEPS steps of EVENTS events each, drawn from all items
(some far more frequent than others) with one in twenty of a new item. Each step's events are a Parquet file. What is
timed is what a service does for a step: open the state, advance, close it; with --keep-open the state stays open.
The stream releases rolling:7, rolling:28 and cumulative counts without end, or what --window says.

With --items-at PLACE, such as a folder for Spark, the items lie there, and a second stream, which is not timed, keeps
them beside its state. After each step the exact counts of both must be the same integers.
"""

from __future__ import annotations

import argparse
import math
import resource
import tempfile
import time
from pathlib import Path

import duckdb
import numpy as np
from metering import UNIT, cpu_seconds

import dpwindows as dw
from dpwindows.ask.queries import Query, parse_window

ITEMS = {"integer": "code", "text": "printf('user-%010d', code)"}


def write_events(path: Path, step: int, codes: str, item_type: str) -> None:
    """A Parquet file with one event for each row of a query of item codes, all within one step."""
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT {ITEMS[item_type]} AS item, {step - 1} AS time FROM ({codes})) TO '{path}' (FORMAT parquet)"
        )


def run(options: argparse.Namespace, folder: Path) -> None:
    """Create the stream, fill it, measure the steps, print."""
    queries = [Query(parse_window(window)).at_least(*options.at_least) for window in options.window]
    plan = dw.StreamPlan(queries, unit=dw.EventLevel(), budget=dw.ApproxDP(1.0, 1e-6), horizon=options.horizon)
    path, events = folder / "stream.state", folder / "events.parquet"
    settings = dw.EngineSettings(memory_limit=options.memory_limit, progress=False)
    given = {"item": "item", "time": "time", "start": 0, "step": 1, "settings": settings}
    stream = dw.Stream.create(path, plan, items_at=options.items_at, **given)
    here = None if options.items_at is None else dw.Stream.create(folder / "here.state", plan, **given)
    write_events(events, 1, f"SELECT range AS code FROM range({options.items})", options.item_type)
    started = time.perf_counter()
    stream.advance(events, 1)
    print(f"the first step, which makes all items known: {time.perf_counter() - started:.1f} s")
    compare(stream, here, events, 1)
    stream.close()
    print(f"{options.items:,} {options.item_type} items known, {options.events:,} events a step")
    print(", ".join(options.window), end=", ")
    print(
        f"at least {options.at_least}; state and items {size_of(path):.1f} MB; DuckDB {duckdb.__version__}", flush=True
    )
    seconds, busy, sizes = [], [], []
    opened = dw.Stream.open(path, settings=settings) if options.keep_open else None
    last = math.inf if options.minutes is None else time.perf_counter() + 60 * options.minutes
    for step in range(2, options.steps + 2):
        fresh = options.items + (step - 2) * (options.events // 20)
        drawn = f"floor({options.items} * power(random(), 1.3))"
        codes = f"CASE WHEN range % 20 = 0 THEN {fresh} + range // 20 ELSE CAST({drawn} AS BIGINT) END"
        write_events(events, step, f"SELECT {codes} AS code FROM range({options.events})", options.item_type)
        started, worked = time.perf_counter(), cpu_seconds()
        if opened is not None:
            opened.advance(events, step)
        else:
            with dw.Stream.open(path, settings=settings) as stream:
                stream.advance(events, step)
        seconds.append(time.perf_counter() - started)
        busy.append(cpu_seconds() - worked)
        compare(opened or stream, here, events, step)
        sizes.append(size_of(path))
        if options.every and (step - 1) % options.every == 0:
            print(f"  step {step:5}: {seconds[-1]:.3f} s, {busy[-1]:.3f} CPU s, ", end="")
            print(f"{sizes[-1]:.1f} MB, {peak():.0f} MB memory", flush=True)
        if time.perf_counter() > last:
            print(f"stopped after {len(seconds)} steps of {options.steps}")
            break
    report(np.array(seconds), np.array(busy), np.array(sizes))


def compare(stream: dw.Stream, here: dw.Stream | None, events: Path, step: int) -> None:
    """Close the same step of the stream that keeps its items here, and compare what both know exactly."""
    if here is None:
        return
    here.advance(events, step)
    ours, theirs = (
        {name: values.tolist() for name, values in one._position.working.items() if name.startswith("counts/")}
        for one in (here, stream)
    )
    if ours != theirs:
        raise SystemExit(f"step {step} has other exact counts than where the items lie here")


def size_of(path: Path) -> float:
    """The megabytes of a state and its items."""
    files = [path, *path.with_name(path.name + "-items").iterdir()]
    return sum(file.stat().st_size for file in files) / 1e6


def report(seconds: np.ndarray, busy: np.ndarray, sizes: np.ndarray) -> None:
    """Print what a step took."""
    at = np.arange(len(seconds))
    slope = np.polyfit(at, seconds, 1)[0] * 1000
    tenth = max(len(seconds) // 10, 1)
    print(f"seconds a step: median {np.median(seconds):.3f}, 95 % {np.quantile(seconds, 0.95):.3f}, ", end="")
    print(f"largest {seconds.max():.3f}; first tenth {np.median(seconds[:tenth]):.3f}, ", end="")
    print(f"last tenth {np.median(seconds[-tenth:]):.3f}; slope {slope:+.4f} s per 1,000 steps")
    print(f"CPU seconds a step: median {np.median(busy):.3f}, largest {busy.max():.3f}; ", end="")
    print(f"slope {np.polyfit(at, busy, 1)[0] * 1000:+.4f} s per 1,000 steps")
    print(f"state: {sizes[0]:.1f} MB after the first step, largest {sizes.max():.1f}, {sizes[-1]:.1f} MB at the end")
    print(f"peak memory: {peak():.0f} MB")


def peak() -> float:
    """The most memory this process ever had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * UNIT / 1e6


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--at-least", type=int, nargs="+", default=[1])
    parser.add_argument("--window", nargs="+", default=["rolling:7", "rolling:28", "cumulative"])
    parser.add_argument("--horizon", type=int)
    parser.add_argument("--item-type", choices=sorted(ITEMS), default="text")
    parser.add_argument("--memory-limit", help='such as "1GB"')
    parser.add_argument("--items-at", metavar="PLACE", help="keep the items there, and compare with a stream here")
    parser.add_argument("--keep-open", action="store_true")
    parser.add_argument("--minutes", type=float, help="take no further step after so long")
    parser.add_argument("--every", type=int, default=0, help="print every so many steps")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run(options, Path(folder))


if __name__ == "__main__":
    main()
