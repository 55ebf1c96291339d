"""How exact the released numbers are: ours, the paper's, independent noise and the limit, side by side.

    python benchmarks/accuracy.py [--repeats 20] [--cells rolling ...] [--chart docs/accuracy.svg]

For every cell (a window family over the 365 days of 2013, k, unit, budget) it releases counts of real flights
REPEATS times through the real kernel and measures the root mean square of (released - exact) over all numbers, beside
the forecast of the same plan, the reference strategy `paper`, independent noise for every answer (`direct`) and the
proved limit where one is known. Cells where items are protected come first. Then come rolling windows that are measured
together, each beside its own least error under the whole budget, and for cumulative counts published figures of other
libraries. Real noise is never seeded, so the last digits vary.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import dpwindows as dw
from dpwindows import reading
from dpwindows.ask.privacy import Budget, Unit
from dpwindows.ask.queries import Query
from dpwindows.count.answers import ExactAnswers
from dpwindows.count.counting import count_events
from dpwindows.count.events import EventColumns
from dpwindows.count.query.wanted import Wanted
from dpwindows.count.request import CountRequest
from dpwindows.demo import write_flights
from dpwindows.errors import InputError
from dpwindows.kernel.measure import measure
from dpwindows.plan.limits_together import limits_together
from dpwindows.release.run import draw_estimates
from dpwindows.report.charts import COLOURS, Chart, picture

YEAR = dw.Timeline("2013-01-01", "2014-01-01", time_zone="America/New_York")
APPROXIMATE, PURE = dw.ApproxDP(1.0, 1e-6), dw.PureDP(1.0)
EVENT, ADD_REMOVE, ITEM = dw.EventLevel(), dw.ItemAddRemove(), dw.ItemLevel()
WHO = {"limit": "limit", "forecast": "dpwindows", "direct": "independent noise", "paper": "the paper's"}
# Rolling windows that are measured together.
TOGETHER = ((7, 28), (1, 7, 28), (1, 7, 28, 90))
Counted = Callable[[Wanted], ExactAnswers]
# Published figures, in counts: (where, criterion, error). Matrix factorisations are per unit of Gaussian noise, here
# times 4.2247, the analytic scale at (1, 1e-6).
PUBLISHED = {
    "cumulative, item-add-remove, approximate": [
        ("square-root Toeplitz, n = 365", "rms", 2.782 * 4.2247),
        ("square-root Toeplitz, n = 365", "max", 2.944 * 4.2247),
        ("dense mean-optimal, n = 365", "rms", 2.635 * 4.2247),
        ("dense mean-optimal, n = 365", "max", 2.880 * 4.2247),
    ],
    "cumulative, item-add-remove, pure": [("8-ary tree, consistent", "rms", 10.3)],
}


@dataclass(frozen=True)
class Cell:
    """One row of the table."""

    name: str
    query: Query
    unit: Unit
    budget: Budget
    bound: dict[str, Any] = field(default_factory=dict)

    def plan(self, strategy: str = "auto", criterion: str = "rms") -> dw.Plan:
        return dw.Plan(
            [self.query],
            timeline=YEAR,
            unit=self.unit,
            budget=self.budget,
            strategy=strategy,
            criterion="max" if criterion == "max" else "rms",
            **self.bound,
        )


def cells() -> Iterator[Cell]:
    """The cells of the table, those first where items are protected."""
    budgets = (("approximate", APPROXIMATE), ("pure", PURE))
    for budget_name, budget in budgets:
        for unit in (ADD_REMOVE, ITEM):
            of = f"{unit.name}, {budget_name}"
            yield Cell(f"cumulative, {of}", dw.Cumulative().at_least(1), unit, budget)
            for length in (1, 7, 28):
                yield Cell(f"rolling:{length}, k=1, {of}", dw.Rolling(length).at_least(1), unit, budget)
            yield Cell(f"rolling:28, k=1 and 3, {of}", dw.Rolling(28).at_least(1, 3), unit, budget)
            runs = f"rolling:28, k=1, at most 5 runs, {of}"
            yield Cell(runs, dw.Rolling(28).at_least(1), unit, budget, {"max_runs": 5})
            yield Cell(f"any, k=1, {of}", dw.AnyWindow().at_least(1), unit, budget)
        for length, period in ((1, 7), (7, 7), (28, 7), (28, 28)):
            within = dw.ItemPerPeriod(period)
            of = f"{within.name}, {budget_name}"
            yield Cell(f"rolling:{length}, k=1, {of}", dw.Rolling(length).at_least(1), within, budget)
    for budget_name, budget in budgets:
        for length, k in ((7, 1), (28, 1), (28, 3), (28, 10), (90, 1), (365, 1)):
            query = dw.Rolling(length).at_least(k)
            yield Cell(f"rolling:{length}, k={k}, event, {budget_name}", query, EVENT, budget)
        yield Cell(f"rolling:28, exactly 1, event, {budget_name}", dw.Rolling(28).exactly(1), EVENT, budget)
        for k in (1, 3):
            yield Cell(f"any, k={k}, event, {budget_name}", dw.AnyWindow().at_least(k), EVENT, budget)
        yield Cell(f"any:90, k=1, event, {budget_name}", dw.AnyWindow(90).at_least(1), EVENT, budget)


def measured_error(plan: dw.Plan, answers: ExactAnswers, repeats: int) -> float:
    """Root mean square of released minus exact over `repeats` real releases, in counts."""
    allotment = plan.allotments[0]
    measurement, design = allotment.measurement, allotment.measurement.design

    def read(encoded: dict[int, np.ndarray]) -> np.ndarray:
        counts = {k: reading.of(design.at(k)).decode(values.astype(np.float64)) for k, values in encoded.items()}
        signed = [dict(zip(asked.thresholds, (1.0, -1.0), strict=False)) for asked in allotment.query.measures]
        return np.array([sum(sign * counts[k] for k, sign in signs.items()) for signs in signed])

    # The exact answers, by the design's own decoding of measurements without noise.
    exact = read({k: design.encode(answers, k) for k in design.problem.thresholds})
    drawn = [read(measure([measurement], plan.budget, answers)[0]) for _ in range(repeats)]
    return float(np.sqrt(np.mean([((released - exact) ** 2).mean() for released in drawn])))


def reference(cell: Cell, strategy: str) -> float | None:
    """The forecast error of another strategy; None where it does not serve."""
    try:
        return rms_of(cell.plan(strategy))
    except InputError:
        return None


def rms_of(plan: dw.Plan) -> float:
    """The root mean square over all that is released; every measure has as many numbers."""
    return float(np.sqrt(np.mean([entry.rms**2 for entry in plan.forecast()])))


def _least(plan: dw.Plan) -> float | None:
    """The limit of all that is released together; None if one measure has none."""
    entries = plan.forecast()
    if len(entries) == 1:
        return entries[0].limit
    return next((found.limit for found in limits_together(plan)), None)


def row_of(cell: Cell, counted: Counted, repeats: int) -> dict[str, Any]:
    """All figures of one cell, in counts (root mean square over all numbers)."""
    plan = cell.plan()
    forecast, *others = plan.forecast()
    # Releases of tens of thousands of numbers tell their error in fewer repeats.
    few = max(2, repeats // 8) if forecast.window.startswith("any") else repeats
    return {
        "name": cell.name,
        "strategy": forecast.strategy,
        "measured": measured_error(plan, counted(plan.wanted), few),
        "forecast": rms_of(plan),
        "largest": max(entry.max for entry in (forecast, *others)),
        "limit": _least(plan),
        "direct": reference(cell, "direct"),
        "paper": reference(cell, "paper"),
    }


def show(rows: list[dict[str, Any]]) -> None:
    """Print the table: figures in counts, then ratios to ours."""
    figures = ("measured", "forecast", "largest", "limit", "direct", "paper")
    ratios = (("forecast", "limit"), ("direct", "forecast"), ("paper", "forecast"))
    heads = [*figures, "ours/limit", "direct/ours", "paper/ours"]
    print(f"{'cell':44} {'strategy':22}" + "".join(f"{head:>12}" for head in heads))
    for row in rows:
        over = [row[one] / row[other] if row[one] and row[other] else None for one, other in ratios]
        shown = [f"{'-' if value is None else f'{value:.2f}':>12}" for value in [*map(row.get, figures), *over]]
        print(f"{row['name']:44} {row['strategy']:22}" + "".join(shown))


def show_published(chosen: list[Cell]) -> None:
    """Print ours beside published figures of other libraries, each by its own criterion."""
    for cell in chosen:
        for where, criterion, error in PUBLISHED.get(cell.name, []):
            forecast = cell.plan(criterion=criterion).forecast()[0]
            ours = forecast.max if criterion == "max" else forecast.rms
            print(f"{cell.name}: {criterion} {ours:.2f} ({forecast.strategy}), {where}: {error:.2f}, ", end="")
            print(f"{error / ours:.2f}x ours")


def show_together(counted: Counted, repeats: int) -> None:
    """Print rolling windows of several lengths measured together: the error of each over its own least error.

    Below stands the root mean square of these ratios, beside that of windows measured apart with equal shares.
    """
    print("\nrolling windows together, event, approximate: measured, forecast, forecast over own limit")
    for lengths in TOGETHER:
        plan = together_plan(lengths)
        answers = counted(plan.wanted)
        errors = np.array([entry.rms for entry in plan.forecast()])
        drawn = np.array([draw_estimates(plan, answers) for _ in range(repeats)])
        exact = np.array([answers.rolling(1, length) for length in lengths])
        measured = np.sqrt(((drawn - exact) ** 2).mean(axis=(0, 2)))
        limits = np.array([entry.limit for entry in plan.forecast()])
        for length, found, forecast, least in zip(lengths, measured, errors, limits, strict=True):
            print(f"  rolling:{length:<4} {found:7.2f} {forecast:7.2f} {forecast / least:7.3f}")
        mean = float(np.sqrt(((errors / limits) ** 2).mean()))
        print(f"  {len(lengths)} windows ({plan.forecast()[0].strategy}): {mean:.3f}; split: {len(lengths) ** 0.5:.3f}")


def together_plan(lengths: Sequence[int]) -> dw.Plan:
    """The plan of these rolling windows under one budget."""
    return dw.Plan([dw.Rolling(length) for length in lengths], timeline=YEAR, unit=EVENT, budget=APPROXIMATE)


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw the table as a chart on a logarithmic scale."""
    from log_axes import dot, names, powers

    kinds = {who: [row[figure] for row in rows] for figure, who in WHO.items()}
    x = powers(error for errors in kinds.values() for error in errors if error)
    y = names([row["name"] for row in rows])
    dots = [
        dot(x.share(error), 1 - y.share(place), colour, hollow=who == "limit")
        for colour, (who, errors) in zip(COLOURS, kinds.items(), strict=False)
        for (place, _), error in zip(y.marks, errors, strict=True)
        if error
    ]
    chart = Chart("How exact the released numbers are", x, y, "standard error (counts), rms over a year")
    drawn = replace(chart, dots="".join(dots), legend=tuple(zip(COLOURS, kinds, strict=False)), height=20 * len(rows))
    path.write_text(picture([drawn]), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--repeats", type=int, default=40, help="releases to measure the error on")
    parser.add_argument("--cells", nargs="*", default=[], help="only cells whose name holds one of these words")
    parser.add_argument("--chart", type=Path, help="also draw a chart (.svg)")
    parser.add_argument("--json", type=Path, help="also write the figures")
    arguments = parser.parse_args()
    chosen = [cell for cell in cells() if not arguments.cells or any(word in cell.name for word in arguments.cells)]
    with tempfile.TemporaryDirectory() as scratch:
        log = Path(scratch) / "flights.parquet"
        write_flights(log)

        def counted(wanted: Wanted) -> ExactAnswers:
            return count_events(CountRequest(log, EventColumns("tailnum", "time"), YEAR, wanted))

        rows = []
        for cell in chosen:
            began = time.perf_counter()
            rows.append(row_of(cell, counted, arguments.repeats))
            print(f"{cell.name}: {time.perf_counter() - began:.1f} s", file=sys.stderr)
        show(rows)
        if not arguments.cells or "together" in arguments.cells:
            show_together(counted, arguments.repeats)
    show_published(chosen)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=2), encoding="utf-8")
    if arguments.chart:
        draw(rows, arguments.chart)


if __name__ == "__main__":
    main()
