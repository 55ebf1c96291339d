"""CPU seconds that a plan takes, worked out anew in a process of its own; imports are not counted.

    python benchmarks/planning.py [--only "any, "] [--repeat 3]

Each row is a `dpwindows plan` command with all that it prints: strategies, bounds, errors, limits and runners-up. The
least of the repetitions is told, and the aim: a second for one window family, three for several.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shlex
import sys
import time
from contextlib import redirect_stdout
from io import StringIO
from multiprocessing.connection import Connection

from dpwindows.cli import main

# As the command line does (`dpwindows.__main__`); nothing above has loaded NumPy.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

_APPROX, _PURE = "--epsilon 1 --delta 1e-6", "--epsilon 1"
_USERS = "--unit item-add-remove"
# What is asked, the budget, and the aim in seconds.
CASES: tuple[tuple[str, float], ...] = (
    (f"--window rolling:28 --steps 365 --unit event {_APPROX}", 1),
    (f"--window rolling:28 --steps 365 --unit item {_APPROX}", 1),
    (f"--window rolling:28 --steps 365 {_USERS} {_APPROX}", 1),
    (f"--window rolling:28 --steps 365 {_USERS} {_PURE}", 1),
    (f"--window rolling:28 --steps 365 {_USERS} {_APPROX} --max-runs 5", 1),
    (f"--window rolling:28 --steps 365 --unit item-per:30 {_APPROX}", 1),
    (
        "--window rolling:28 --at-least 1 --at-least 2 --at-least 3 --at-least 4 --at-least 5 --steps 365 "
        f"--unit event {_APPROX}",
        1,
    ),
    (f"--window rolling:28 --histogram 10 --steps 365 --unit event {_APPROX}", 1),
    (f"--window rolling:28 --histogram 10 --steps 365 --unit item {_APPROX}", 1),
    (f"--window rolling:28 --steps 10000 --unit event {_APPROX}", 1),
    (f"--window rolling:28 --steps 10000 {_USERS} {_APPROX}", 1),
    (f"--window rolling:1440 --steps 10080 --unit event {_APPROX}", 1),
    (f"--window rolling:1440 --window rolling:60 --steps 10080 --unit event {_APPROX}", 3),
    (f"--window cumulative --steps 365 --unit event {_APPROX}", 1),
    (f"--window cumulative --steps 365 {_USERS} {_PURE}", 1),
    (f"--window cumulative --steps 10000 {_USERS} {_APPROX}", 1),
    (f"--window any --steps 16 --unit event {_APPROX}", 1),
    (f"--window any --steps 365 --unit event {_APPROX}", 1),
    (f"--window any --at-least 3 --steps 365 --unit event {_APPROX}", 1),
    (f"--window any --steps 365 {_USERS} {_APPROX}", 1),
    (f"--window any --steps 365 --unit event {_PURE}", 1),
    (f"--window any:90 --steps 2000 --unit event {_APPROX}", 1),
    (f"--window any:30 --steps 10000 --unit event {_APPROX}", 1),
    (f"--window tumbling:7 --steps 10000 --unit item {_APPROX}", 1),
    (f"--window to-date:28 --steps 365 {_USERS} {_APPROX}", 1),
    (f"--window rolling:1 --window rolling:7 --window rolling:28 --steps 365 --unit event {_APPROX}", 3),
    (f"--window rolling:1 --window rolling:7 --window rolling:28 --steps 365 {_USERS} {_APPROX}", 3),
    (
        "--window rolling:1 --window rolling:7 --window rolling:28 --window rolling:90 --steps 365 "
        f"--unit event {_APPROX}",
        3,
    ),
    (f"--window rolling:1 --window rolling:7 --window rolling:364 --steps 3650 --unit event {_APPROX}", 3),
    (f"--window rolling:24 --window rolling:168 --steps 8760 --unit event {_APPROX}", 3),
    (f"--window rolling:28 --window any:90 --steps 365 --unit event {_APPROX}", 3),
    (
        "--window rolling:28 --window cumulative --window any:90 --at-least 1 --at-least 3 --steps 365 "
        f"--unit event {_APPROX}",
        3,
    ),
    (f"--window rolling:7 --window rolling:28 --stream --unit event {_APPROX}", 3),
    (f"--window rolling:28 --window cumulative --stream --steps 3650 {_USERS} {_APPROX}", 3),
)


def _main() -> None:
    """Print a row for each case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="cases with this text in them")
    parser.add_argument("--repeat", type=int, default=1)
    given = parser.parse_args()
    sys.stdout.write(f"{'seconds':>7} {'aim':>3}  dpwindows plan ...\n")
    missed = 0
    for line, aim in CASES:
        if given.only in line:
            seconds = min(_seconds(line) for _ in range(given.repeat))
            missed += seconds > aim
            sys.stdout.write(f"{seconds:7.2f} {aim:3.0f}{'*' if seconds > aim else ' '} {line}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{missed} above their aim\n")


def _seconds(line: str) -> float:
    """CPU seconds of a command in a process forked for it, which has no cache filled."""
    ours, theirs = multiprocessing.get_context("fork").Pipe()
    child = multiprocessing.get_context("fork").Process(target=_timed, args=(line, theirs))
    child.start()
    theirs.close()
    seconds = float(ours.recv())
    child.join()
    return seconds


def _timed(line: str, pipe: Connection) -> None:
    _command(f"--window rolling:2 --steps 4 --unit event {_PURE}")  # loads what is loaded late
    begun = time.process_time()
    _command(line)
    pipe.send(time.process_time() - begun)


def _command(line: str) -> None:
    with redirect_stdout(StringIO()):
        main(["plan", *shlex.split(line)], standalone_mode=False)


if __name__ == "__main__":
    _main()
