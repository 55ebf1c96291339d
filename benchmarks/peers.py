"""What a general library gives for the same job: OpenDP's own counts and noise for every window, beside ours.

    python benchmarks/peers.py [--repeats 5]

The job is the 28-day (7-day, cumulative) distinct count of real flights on each day of 2013, at (1, 1e-6). The peer
counts each window by itself with `make_count_distinct` and adds `make_gaussian`; the noise is the least for which
OpenDP's own accounting stays within the budget. How many windows one unit can change is worked out by hand and given
to it, since no general library knows: 28 for one flight, all 365 for one aircraft. Both errors are measured on the
same log, as the root mean square of (released - exact).
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import opendp.prelude as dp
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import dpwindows as dw
from dpwindows.ask.privacy import Unit
from dpwindows.ask.queries import WindowFamily
from dpwindows.demo import write_flights

EPSILON, DELTA = 1.0, 1e-6
DAYS = dw.Timeline("2013-01-01", "2014-01-01", time_zone="America/New_York")


def items_by_day(path: Path) -> list[set[int]]:
    """The aircraft of each day, as numbers."""
    table = pq.read_table(path, columns=["tailnum", "time"])
    table = table.filter(pc.is_valid(table["tailnum"]))
    codes = table["tailnum"].combine_chunks().dictionary_encode().indices.to_numpy()
    local = pc.local_timestamp(table["time"].cast(pa.timestamp("us", tz="America/New_York")))
    day = pc.subtract(pc.day_of_year(local), 1).to_numpy()
    found: list[set[int]] = [set() for _ in range(365)]
    for item, at in zip(codes.tolist(), day.tolist(), strict=True):
        found[at].add(item)
    return found


def opendp_error(days: list[set[int]], length: int, changed: int, repeats: int) -> float:
    """The error of OpenDP's counts where one unit changes at most `changed` windows by one each."""
    atom = dp.atom_domain(T="i32"), dp.absolute_distance(T="i32")

    def epsilon(scale: float) -> float:
        together = dp.c.make_composition([dp.m.make_gaussian(*atom, scale)] * changed)
        return float(dp.c.make_zCDP_to_approxDP(together).map(1).epsilon(DELTA))

    scale = dp.binary_search(lambda tried: epsilon(tried) <= EPSILON, bounds=(1.0, 1e3))
    items = dp.vector_domain(dp.atom_domain(T="i64")), dp.symmetric_distance()
    released = dp.t.make_count_distinct(*items, TO="i32") >> dp.m.make_gaussian(*atom, scale)
    windows = [list(set().union(*days[max(0, end - length + 1) : end + 1])) for end in range(len(days))]
    errors = [released(window) - len(window) for _ in range(repeats) for window in windows]
    return float(np.sqrt(np.mean(np.square(errors))))


def our_error(path: Path, days: list[set[int]], family: WindowFamily, length: int, unit: Unit, repeats: int) -> float:
    """The error of our releases of the same log."""
    plan = dw.Plan(family, timeline=DAYS, unit=unit, budget=dw.ApproxDP(EPSILON, DELTA))
    exact = np.array([len(set().union(*days[max(0, end - length + 1) : end + 1])) for end in range(len(days))])
    released = [plan.run(path, item="tailnum", time="time").to_pandas()["estimate"] for _ in range(repeats)]
    return float(np.sqrt(np.mean([np.square(estimate - exact).mean() for estimate in released])))


def main() -> None:
    """Measure every job and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    dp.enable_features("contrib")
    jobs: list[tuple[str, WindowFamily, int, str, Unit, int]] = [
        ("rolling:7", dw.Rolling(7), 7, "one flight", dw.EventLevel(), 7),
        ("rolling:28", dw.Rolling(28), 28, "one flight", dw.EventLevel(), 28),
        ("rolling:1", dw.Rolling(1), 1, "an aircraft's presence", dw.ItemAddRemove(), 365),
        ("rolling:7", dw.Rolling(7), 7, "an aircraft's presence", dw.ItemAddRemove(), 365),
        ("rolling:28", dw.Rolling(28), 28, "an aircraft's presence", dw.ItemAddRemove(), 365),
        ("cumulative", dw.Cumulative(), 365, "an aircraft's presence", dw.ItemAddRemove(), 365),
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "flights.parquet"
        write_flights(path)
        days = items_by_day(path)
        print(
            "| windows | protected | OpenDP, each window by itself | dpwindows | ratio |\n"
            "| --- | --- | --: | --: | --: |"
        )
        for name, family, length, protected, unit, changed in jobs:
            theirs = opendp_error(days, length, changed, repeats)
            ours = our_error(path, days, family, length, unit, repeats)
            print(f"| {name} | {protected} | {theirs:.1f} | {ours:.1f} | {theirs / ours:.1f} |", flush=True)


if __name__ == "__main__":
    main()
