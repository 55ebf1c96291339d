"""Memory and time of a whole release of many windows: any two steps out of 2,350, which are 2.76 million windows.

    python benchmarks/memory.py [--window any] [--steps 2350] [--raw] [-- MORE OPTIONS OF PLAN AND RELEASE]

makes two logs of 200,000 events (one even, one with a heavy item and a heavy step), runs `dpwindows release` on each at
event level and (epsilon, delta) = (1, 1e-6), and tells the resident memory of that process at its largest, what `plan`
says it is, and its processor time. With --raw the column `consistent` stays empty. The column `group` of the logs has
the numbers from 0 to 39.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from metering import UNIT

EVENTS = 200_000


def log(steps: int, *, skewed: bool) -> pa.Table:
    """Events of 50,000 items; skewed, a tenth are of one item and three tenths in one step."""
    generator = np.random.default_rng(1)
    items, times = generator.integers(0, 50_000, EVENTS), generator.integers(0, steps, EVENTS)
    if skewed:
        items[generator.random(EVENTS) < 0.1] = 0
        times[generator.random(EVENTS) < 0.3] = steps // 2
    return pa.table({"item": items, "time": times, "group": items % 40})


def asked(options: argparse.Namespace) -> list[str]:
    """The options that a plan and its release share."""
    every = ["--start", "0", "--end", str(options.steps), "--step", "1", "--window", options.window]
    return [*every, "--unit", "event", "--epsilon", "1", "--delta", "1e-6", *options.more]


def forecast(options: argparse.Namespace) -> int:
    """Bytes at the most, as `plan` says it."""
    command = [sys.executable, "-m", "dpwindows", "plan", *asked(options), "--json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: int = json.loads(done.stdout)["workload"]["bytes"]
    return found


def release(path: Path, options: argparse.Namespace) -> tuple[int, float]:
    """Bytes at the most and processor seconds of one release."""
    command = [sys.executable, "-m", "dpwindows", "release", str(path), "--item", "item", "--time", "time"]
    command += [*asked(options), "-o", str(path.with_name("out.parquet")), "--force", "--quiet"]
    command += ["--raw"] if options.raw else []
    _, status, used = os.wait4(os.posix_spawn(sys.executable, command, os.environ), 0)
    if status:
        raise SystemExit("the release failed")
    return used.ru_maxrss * UNIT, used.ru_utime + used.ru_stime


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--window", default="any")
    parser.add_argument("--steps", type=int, default=2350)
    parser.add_argument("--raw", action="store_true", help="without consistent numbers")
    parser.add_argument("more", nargs="*", help="further options, such as: -- --histogram 5")
    options = parser.parse_args()
    print(f"forecast{forecast(options) / 1e6:8.0f} MB", flush=True)
    for skewed in (False, True):
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "log.parquet"
            pa.parquet.write_table(log(options.steps, skewed=skewed), path)
            memory, seconds = release(path, options)
        print(f"{'skewed' if skewed else 'even':8}{memory / 1e6:8.0f} MB{seconds:8.1f} CPU s", flush=True)


if __name__ == "__main__":
    main()
