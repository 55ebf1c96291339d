"""The largest rise of a forecast from one number of steps to the next: limits in the code must not show as cliffs.

    python benchmarks/smooth.py [--only "rolling:28 item"] [--most 10000] [--around 512 1024]

Every cell is a window family, a k, a unit and a budget. Its error is forecast on both sides of the numbers that the
code treats apart, of powers of two and of a few others. For each cell the steepest rise is told, and where it is; a
rise of more than 1.5 % where windows are at most an eighth of the steps, or of 2 points more than the limit rises, is
marked.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from itertools import product

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import dpwindows as dw
from dpwindows.ask.privacy import parse_unit
from dpwindows.ask.queries import parse_window
from dpwindows.errors import InputError

# Before the step to the next number of steps: limits that the code has, powers of two, and numbers that are nothing.
STEPS = (*(1 << octave for octave in range(4, 14)), 23, 24, 97, 100, 365, 400, 500, 1300, 3000, 6000, 9999)
WINDOWS = ("rolling:1", "rolling:7", "rolling:28", "rolling:90", "cumulative", "any:7", "any:30", "tumbling:7")
UNITS = ("item-add-remove", "item", "event", "item-per:7", "item-per:30", "item-per:365")
THRESHOLDS: tuple[tuple[int, ...], ...] = ((1,), (3,), (1, 2))
MOST_RISE, BEYOND_LIMIT = 0.015, 0.02


def forecast(window: str, thresholds: tuple[int, ...], unit: str, steps: int) -> tuple[float, float | None] | None:
    """The error of the first threshold and its limit; None where nothing is planned."""
    try:
        made = dw.Plan(
            [parse_window(window).at_least(*thresholds)],
            timeline=dw.Timeline.of_steps(steps),
            unit=parse_unit(unit),
            budget=dw.ApproxDP(1.0, 1e-6),
        )
        first = made.forecast()[0]
    except InputError:
        return None
    return first.rms, first.limit


def rises(
    window: str, thresholds: tuple[int, ...], unit: str, around: Iterator[int]
) -> Iterator[tuple[float, int, bool]]:
    """The rise from each number of steps to the next, the number, and whether it is too much."""
    length = int(window.partition(":")[2] or 1)
    for steps in around:
        few, many = (forecast(window, thresholds, unit, one) for one in (steps, steps + 1))
        if few is None or many is None:
            continue
        rise = many[0] / few[0] - 1
        of_limit = many[1] / few[1] - 1 if many[1] and few[1] else 0.0
        # In few steps one more is much: no error may grow faster than their number.
        most = max(MOST_RISE, 1 / steps)
        most = most if steps >= 8 * length else max(most, of_limit + BEYOND_LIMIT)
        yield rise, steps, rise > most


def _main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", default="", help="cells whose name holds this text")
    options.add_argument("--most", type=int, default=10_000, help="no more steps than these")
    options.add_argument("--around", type=int, nargs="*", default=STEPS, help="numbers of steps to go on from")
    given = options.parse_args()
    around = sorted({before for steps in given.around for before in (steps - 1, steps) if 2 <= before < given.most})
    failed = 0
    for window, thresholds, unit in product(WINDOWS, THRESHOLDS, UNITS):
        name = f"{window} {unit} k={','.join(map(str, thresholds))}"
        if given.only not in name:
            continue
        found = sorted(rises(window, thresholds, unit, iter(around)), reverse=True)
        if found:
            over = [(rise, steps) for rise, steps, marked in found if marked]
            failed += len(over)
            marks = "".join(f"  CLIFF {rise:+.1%} after {steps}" for rise, steps in over)
            print(f"{name:40} {found[0][0]:+8.2%} after {found[0][1]:5}{marks}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(_main())
