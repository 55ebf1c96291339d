"""Table 1 measured: errors of real releases over sweeps of T, W and k, and how fast they grow beside what is stated.

    python benchmarks/table1.py [--draws 60000] [--only "rolling, event"] [--json FILE] [--charts docs]

A *series* (`table1_series`) is one cell of the table (window family, event or item level, bundle or singleton stream,
pure or approximate budget) under the paper's algorithms or ours, swept over one parameter. At every point real releases
are made through the public interface, on the hard instance of that cell's lower bound
(`dpwindows.theory.constructions`; in singleton streams on a new item at every step, where time compression errs most)
and on real flights, in hours. The error is the root mean square of released minus
exact over all windows. Noise does not depend on the data, so both should agree with the forecast: the column
*measured/forecast* gives its mean, least and largest over the points of the series. (In singleton streams the forecast
holds a bound on the bias, which data may stay below.)

What is fitted is the slope of log(error / rest of the law) against log(variable of the law), on what was measured and
on the forecasts. Real noise is never seeded: the last digits vary.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from table1_series import FIELDS, Series, all_series

import dpwindows as dw
from dpwindows.ask.queries import WindowFamily
from dpwindows.ask.windows import window_steps
from dpwindows.count.counting import count_events
from dpwindows.count.events import EventColumns
from dpwindows.count.query.wanted import Wanted
from dpwindows.count.request import CountRequest
from dpwindows.demo import flights
from dpwindows.theory import constructions
from dpwindows.theory.bounds import Family, Level, Setting
from dpwindows.theory.hard_instance import HardInstance
from dpwindows.theory.table import planned, squared_errors

# 2013-01-01T00:00 in New York, and an hour, in microseconds.
_YEAR, _HOUR = 1_357_016_400_000_000, 3_600_000_000
_ITEMS = 30


@dataclass(frozen=True)
class Point:
    """One point of a series: errors in counts, root mean square over all windows."""

    setting: Setting
    forecast: float
    hard: float
    flights: float


# --- Data -------------------------------------------------------------------------------------------------------------


def window_of(family: Family, at: Setting) -> WindowFamily:
    match family:
        case "cumulative":
            return dw.Cumulative()
        case "rolling":
            return dw.Rolling(at.length)
    return dw.AnyWindow()


def hard_instance(family: Family, level: Level, at: Setting) -> HardInstance:
    """The construction behind the lower bound of a cell, filled at random, within T steps."""
    draw = np.random.default_rng(at.steps + at.length + at.k)
    match family, level:
        case "cumulative", _:
            return constructions.range_queries(draw.integers(0, at.steps + 1, _ITEMS), at.steps, at.k)
        case "rolling", "event" if at.k == 1:
            points = draw.integers(0, at.length + 1, _ITEMS)
            return constructions.as_rolling(constructions.range_queries(points, at.length), at.length)
        case "rolling", "event":
            queries = min(2 * at.k - 3, at.length - 1, at.steps - at.length)
            present = draw.integers(0, 2, _ITEMS)
            return constructions.linear_queries(draw.integers(0, 2, (queries, _ITEMS)), present, at.k, length=at.length)
        case "rolling", _:
            table = draw.integers(0, 2, (_ITEMS, at.steps // at.length))
            return constructions.marginals_rolling(table, at.length, at.k)
        case _, "event":
            size = (at.steps - 1) // 2
            return constructions.dominance_queries(draw.integers(1, size + 1, (_ITEMS, 2)), size, at.k)
    return constructions.marginals_any(draw.integers(0, 2, (_ITEMS, at.steps)), at.k)


def hard_log(family: Family, level: Level, at: Setting) -> pa.Table:
    """The hard instance of a cell; in singleton streams a new item at every step, where every shifted end errs."""
    if at.singleton:
        steps = np.arange(at.steps)
        return pa.table({"item": steps, "time": steps, "count": np.ones(at.steps, np.int64)})
    found = hard_instance(family, level, at)
    if found.horizon > at.steps:
        raise ValueError(f"the hard instance takes {found.horizon} of {at.steps} steps")
    return found.table()


def hourly_flights() -> pa.Table:
    """All flights of 2013 from New York: aircraft (item) and hour of the year (time, from 0)."""
    table = flights()
    hours = pc.divide(pc.subtract(pc.cast(table["time"], pa.int64()), _YEAR), _HOUR)
    return pa.table({"item": table["tailnum"], "time": hours, "count": pa.array(np.ones(len(hours), np.int64))})


def one_a_step(table: pa.Table) -> pa.Table:
    """The first event of every step: a singleton stream."""
    _, first = np.unique(table["time"].to_numpy(), return_index=True)
    return table.take(first)


# --- Measuring --------------------------------------------------------------------------------------------------------


def exact_counts(plan: dw.Plan, events: pa.Table) -> Any:
    """The exact answers in the order of a release."""
    (query,) = plan.queries
    (measure,) = query.measures
    exact = count_events(
        CountRequest(events, EventColumns("item", "time", "count"), plan.timeline, Wanted((measure.k,)))
    )
    match query.window:
        case dw.Cumulative():
            return exact.cumulative(measure.k)
        case dw.Rolling(length=length):
            return exact.rolling(measure.k, length)
    first, last = window_steps(query.window, exact.steps)
    return exact.windows(measure.k, 1, exact.steps, 1, exact.steps)[first - 1, last - 1]


def measured_error(plan: dw.Plan, events: pa.Table, repeats: int) -> float:
    """Root mean square of released minus exact over all windows of `repeats` real releases, in counts."""
    exact = exact_counts(plan, events)
    squares = []
    for _ in range(repeats):
        released = plan.run(events, item="item", time="time", count="count").to_arrow()["estimate"].to_numpy()
        squares.append(float(((released - exact) ** 2).mean()))
    return float(np.sqrt(np.mean(squares)))


def point_of(series: Series, at: Setting, hours: pa.Table, draws: int) -> Point:
    plan = planned(window_of(series.family, at), series.level, at, series.strategy)
    (allotment,) = plan.allotments
    # A cumulative release is hardly more than one number's worth of noise, however long: it needs many repeats.
    least = 40 if series.family == "cumulative" else 4
    repeats = min(100, max(least, draws // allotment.measurement.design.rows))
    real = hours.filter(pc.less(hours["time"], at.steps))
    return Point(
        setting=at,
        forecast=float(np.sqrt(squared_errors(allotment).mean())),
        hard=measured_error(plan, hard_log(series.family, series.level, at), repeats),
        flights=measured_error(plan, one_a_step(real) if at.singleton else real, repeats),
    )


def slope(series: Series, points: list[Point], error: Callable[[Point], float]) -> float:
    """The slope of log(error / rest) against log(variable), or against log(parameter) where the variable has none."""
    law = series.law
    variable = [log(law.variable(point.setting)) for point in points]
    errors = [log(error(point) / law.rest(point.setting)) for point in points]
    return float(np.polyfit(variable, errors, 1)[0])


def row_of(series: Series, points: list[Point]) -> dict[str, Any]:
    """The figures of one series, as plain values."""
    ratios = [measured / point.forecast for point in points for measured in (point.hard, point.flights)]
    law = series.law
    return {
        "family": series.family,
        "level": series.level,
        "cell": series.cell,
        "who": series.who,
        "parameter": series.parameter,
        "range": series.range,
        "law": law.text,
        "stated": law.exponent,
        "slopes": {
            of: slope(series, points, lambda p, of=of: getattr(p, of)) for of in ("hard", "flights", "forecast")
        },
        "ratios": [min(ratios), float(np.mean(ratios)), max(ratios)],
        "points": [
            {
                "value": getattr(point.setting, FIELDS[series.parameter]),
                "law": law.at(point.setting),
                "forecast": point.forecast,
                "hard": point.hard,
                "flights": point.flights,
                "setting": point.setting.__dict__,
            }
            for point in points
        ],
    }


def name_of(row: dict[str, Any]) -> tuple[str, str, str, str]:
    """What tells the figures of one series from others."""
    return row["cell"], row["who"], row["law"], row["range"]


def show(row: dict[str, Any]) -> None:
    slopes, (low, mean, high) = row["slopes"], row["ratios"]
    fitted = " | ".join(f"{slopes[of]:.2f}" for of in ("hard", "flights", "forecast"))
    head = f"| {row['cell']} | {row['who']} | {row['law']} | {row['range']} | {row['stated']:.2f} | {fitted} | "
    print(f"{head}{mean:.2f} ({low:.2f}–{high:.2f}) |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--draws", type=int, default=60_000, help="noise values to draw for each point and data set")
    parser.add_argument("--only", default="", help="only cells whose name begins like this")
    parser.add_argument("--json", type=Path, help="also write all figures; what is in it is not measured again")
    parser.add_argument("--charts", type=Path, help="also draw the charts into this directory")
    arguments = parser.parse_args()
    hours = hourly_flights()
    print("| cell | algorithms | law | sweep | stated | hard instance | flights | forecast | measured/forecast |")
    print("| --- | --- | --- | --- | --: | --: | --: | --: | --: |")
    known = json.loads(arguments.json.read_text(encoding="utf-8")) if arguments.json and arguments.json.exists() else []
    rows = {name_of(row): row for row in known}
    for series in (found for found in all_series() if found.cell.startswith(arguments.only)):
        name = (series.cell, series.who, series.law.text, series.range)
        if name not in rows:
            began = time.perf_counter()
            rows[name] = row_of(series, [point_of(series, at, hours, arguments.draws) for at in series.settings])
            print(f"{', '.join(name)}: {time.perf_counter() - began:.1f} s", file=sys.stderr, flush=True)
        show(rows[name])
        if arguments.json:
            arguments.json.write_text(json.dumps(list(rows.values()), indent=1), encoding="utf-8")
    if arguments.charts:
        from table1_charts import draw

        draw(list(rows.values()), arguments.charts)


if __name__ == "__main__":
    main()
