"""What noise costs: draws of the exact sampler beside OpenDP's, of the same laws and scales, in turn in one run.

    python benchmarks/noise.py [--draws 1000000] [--theirs 50000] [--repeats 3]

For each law and scale: processor microseconds a number on one core, with all that is worked out before the first
(tables of the exact sampler are thrown away before each run), the least of some runs, and the ratio. Then the noise of
a year of `rolling:28` in 1,000 groups with totals, as one release draws it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

import dpwindows as dw
from dpwindows.kernel import noise
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE, Law
from dpwindows.kernel.measure import EXACT, OPENDP, Sampler, draw_noise

SCALES = (0.5, 8.9, 1000.0, 2.0**20, 2.0**30 + 0.5, 2.0**40)


def fresh() -> None:
    """Throw away what the exact sampler has worked out."""
    noise._table.cache_clear()
    noise._words.cache_clear()


def seconds(work: Callable[[], object]) -> tuple[float, float]:
    """Processor and wall seconds of some work."""
    fresh()
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - cpu, time.perf_counter() - wall


def per_draw(by: Sampler, law: Law, scale: float, draws: int) -> float:
    """Processor microseconds a number."""
    return seconds(lambda: draw_noise(law, scale, draws, by=by))[0] / draws * 1e6


def of_groups() -> tuple[int, float, float]:
    """How many numbers a year of rolling counts in 1,000 groups with totals draws, and what that takes."""
    plan = dw.Plan(
        dw.Rolling(28),
        timeline=dw.Timeline.of_steps(365),
        unit=dw.EventLevel(),
        budget=dw.ApproxDP(1.0, 1e-6),
        by={"of": [f"group {number}" for number in range(1000)]},
        totals=0.3,
    )

    def draw() -> None:
        for one in plan.measurements:
            for _ in one.design.problem.thresholds:
                draw_noise(one.law, one.scale, one.design.rows * len(one.cells), lambda drawn: None, len(one.cells))

    return plan.workload.draws, *seconds(draw)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=1_000_000)
    parser.add_argument("--theirs", type=int, default=50_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    for by in (EXACT, OPENDP):
        draw_noise(LAPLACE, 3.0, 1, by=by)  # what is loaded once is loaded
    ratios = []
    print("| law | scale | exact, microseconds | OpenDP, microseconds | ratio |\n| --- | --: | --: | --: | --: |")
    for law in (GAUSSIAN, LAPLACE):
        for scale in SCALES:
            times = [
                (per_draw(EXACT, law, scale, options.draws), per_draw(OPENDP, law, scale, options.theirs))
                for _ in range(options.repeats)
            ]
            ours, theirs = (min(one) for one in zip(*times, strict=True))
            ratios.append(theirs / ours)
            print(f"| {law} | {scale:.6g} | {ours:.2f} | {theirs:.1f} | {theirs / ours:.0f} |", flush=True)
    print(f"\nratio: least {min(ratios):.0f}, median {np.median(ratios):.0f}")
    draws, cpu, wall = of_groups()
    print(f"1,000 groups x 365 steps, rolling:28 with totals: {draws:,} numbers in {cpu:.2f} CPU s, {wall:.2f} s")


if __name__ == "__main__":
    main()
