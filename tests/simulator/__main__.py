"""The command of the simulator: so many schedules from a seed on, in several processes, and what they found."""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
import traceback
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.simulator import shim

# A seed for each schedule, so that one can be run again by itself.
_SEEDS = 1 << 32


def main() -> int:
    """Run what the command line asks for; 1 if something was violated."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulator", description=__doc__)
    parser.add_argument("--schedules", type=int, default=100, help="how many (default: 100)")
    parser.add_argument("--seed", type=int, help="of the first schedule; the next ones follow (default: random)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes (default: all cores)")
    parser.add_argument("--family", help="only schedules of this family")
    parser.add_argument("--planted", default="", help="plant a durability bug; the run should then fail (or: all)")
    parser.add_argument("--tell", action="store_true", help="print what happens in each schedule")
    parser.add_argument("--twice", action="store_true", help="run each schedule twice, for a comparison with --json")
    parser.add_argument("--go-on", action="store_true", help="do not stop at the first violation")
    parser.add_argument("--json", action="store_true", help="print a line of JSON for each schedule")
    given = parser.parse_args()
    if given.seed is None:
        given.seed = random.SystemRandom().randrange(_SEEDS)
    if shim.loaded():
        from tests.simulator.worker import work

        status = 3
        try:
            status = work(given)
        except Exception:
            traceback.print_exc()
        # Nothing is left to tidy up, and engines that were forked from have much to say about it.
        os._exit(status)
    return _spread(given)


def _spread(given: argparse.Namespace) -> int:
    """Run workers under the library, each with every so-manieth schedule."""
    begun, environment = time.perf_counter(), shim.environment()
    count = max(1, min(given.workers, given.schedules))
    share = [len(range(first, given.schedules, count)) for first in range(count)]
    flags = [f"--{name.replace('_', '-')}" for name in ("tell", "twice", "go_on", "json") if getattr(given, name)]
    flags += [f"--{name}={getattr(given, name)}" for name in ("family", "planted") if getattr(given, name)]
    _say(f"{given.schedules} schedules from seed {given.seed} on, {count} workers")
    workers = [
        subprocess.Popen(
            [
                *(sys.executable, "-m", "tests.simulator"),
                *(f"--seed={given.seed + first}", f"--schedules={share[first]}", f"--workers={count}", *flags),
            ],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        for first in range(count)
    ]
    failed, done, operations, endings = False, 0, 0, Counter[str]()
    with ThreadPoolExecutor(len(workers)) as followed:
        summaries = list(followed.map(_follow, workers))
    for worker, summary in zip(workers, summaries, strict=True):
        if worker.returncode not in (0, 1) or not summary.startswith("{"):
            _say(f"a worker failed with status {worker.returncode}")
            failed = True
            continue
        found = json.loads(summary)
        failed |= worker.returncode != 0
        done, operations = done + found["schedules"], operations + found["operations"]
        endings.update(found["endings"])
    seconds = time.perf_counter() - begun
    _say(f"{done} schedules, {operations} operations, {seconds:.1f} s; {dict(endings)}")
    return int(failed)


def _follow(worker: subprocess.Popen[str]) -> str:
    """Say what a worker says as it says it, but for its last line, which is returned: long runs are watched."""
    assert worker.stdout is not None
    last = ""
    for line in worker.stdout:
        if last:
            _say(last)
        last = line.rstrip("\n")
    worker.wait()
    return last


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
