"""How exact the released numbers are: ours, the paper's, independent noise and the limit, side by side.

    python benchmarks/accuracy.py [--repeats 20] [--cells rolling ...] [--chart docs/accuracy.svg]

For every cell (a window family over the 365 days of 2013, k, unit, budget) it releases counts of real flights
REPEATS times through the real kernel and measures the root mean square of (released - exact) over all numbers, beside
the forecast of the same plan, the reference strategy `paper`, independent noise for every answer (`direct`) and the
least error of any Gaussian noise where it is known. For cumulative counts it adds published figures of other
libraries. Each row also gives the ratios to ours. Real noise is never seeded, so the last digits vary.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import dpwindows as dw
from dpwindows.ask.privacy import Budget, Unit
from dpwindows.ask.queries import Query
from dpwindows.count.answers import ExactAnswers
from dpwindows.count.counting import count_events
from dpwindows.count.events import EventColumns
from dpwindows.count.request import CountRequest
from dpwindows.count.wanted import Wanted
from dpwindows.demo import write_flights
from dpwindows.kernel.measure import measure

YEAR = dw.Timeline("2013-01-01", "2014-01-01", time_zone="America/New_York")
APPROXIMATE, PURE = dw.ApproxDP(1.0, 1e-6), dw.PureDP(1.0)
EVENT, ADD_REMOVE, ITEM = dw.EventLevel(), dw.ItemAddRemove(), dw.ItemLevel()
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

    def plan(self, strategy: str = "auto", criterion: str = "rms") -> dw.Plan:
        return dw.Plan(
            [self.query],
            timeline=YEAR,
            unit=self.unit,
            budget=self.budget,
            strategy=strategy,
            criterion="max" if criterion == "max" else "rms",
        )


@dataclass(frozen=True)
class Row:
    """The figures of one cell, in counts (root mean square over all numbers)."""

    name: str
    strategy: str
    measured: float
    forecast: float
    largest: float
    limit: float | None
    direct: float
    paper: float | None


def cells() -> Iterator[Cell]:
    """The cells of the table."""
    for budget_name, budget in (("approximate", APPROXIMATE), ("pure", PURE)):
        for length, k in ((7, 1), (28, 1), (28, 3), (28, 10), (90, 1), (365, 1)):
            query = dw.Rolling(length).at_least(k)
            yield Cell(f"rolling:{length}, k={k}, event, {budget_name}", query, EVENT, budget)
        yield Cell(f"rolling:28, exactly 1, event, {budget_name}", dw.Rolling(28).exactly(1), EVENT, budget)
        for k in (1, 3):
            yield Cell(f"any, k={k}, event, {budget_name}", dw.AnyWindow().at_least(k), EVENT, budget)
        yield Cell(f"any:90, k=1, event, {budget_name}", dw.AnyWindow(90).at_least(1), EVENT, budget)
        for unit in (ADD_REMOVE, ITEM):
            yield Cell(f"cumulative, {unit.name}, {budget_name}", dw.Cumulative().at_least(1), unit, budget)
            yield Cell(f"rolling:28, k=1, {unit.name}, {budget_name}", dw.Rolling(28).at_least(1), unit, budget)
            yield Cell(f"any, k=1, {unit.name}, {budget_name}", dw.AnyWindow().at_least(1), unit, budget)


def measured_error(plan: dw.Plan, answers: ExactAnswers, repeats: int) -> float:
    """Root mean square of released minus exact over `repeats` real releases, in counts."""
    allotment = plan.allotments[0]
    measurement, asked = allotment.measurement, allotment.query.measures[0]
    signs = dict(zip(asked.thresholds, (1.0, -1.0), strict=False))
    design = measurement.design
    # The exact answers, by the design's own decoding of measurements without noise.
    exact = sum(sign * design.decode(design.encode(answers, k).astype(np.float64)) for k, sign in signs.items())
    squares = []
    for _ in range(repeats):
        noisy = measure([measurement], plan.budget, answers)[0]
        released = sum(sign * design.decode(noisy[k].astype(np.float64)) for k, sign in signs.items())
        squares.append(float(((released - exact) ** 2).mean()))
    return float(np.sqrt(np.mean(squares)))


def row_of(cell: Cell, answers: ExactAnswers, repeats: int) -> Row:
    """All figures of one cell."""
    plan = cell.plan()
    forecast = plan.forecast()[0]
    # Releases of tens of thousands of numbers tell their error in fewer repeats.
    few = max(2, repeats // 8) if forecast.window.startswith("any") else repeats
    return Row(
        name=cell.name,
        strategy=forecast.strategy,
        measured=measured_error(plan, answers, few),
        forecast=forecast.rms,
        largest=forecast.max,
        limit=forecast.limit,
        direct=cell.plan("direct").forecast()[0].rms,
        paper=cell.plan("paper").forecast()[0].rms,
    )


def show(rows: list[Row]) -> None:
    """Print the table: figures in counts, then ratios to ours."""
    head = f"{'cell':44} {'strategy':22} {'measured':>9} {'forecast':>9} {'largest':>9} {'limit':>8} "
    print(head + f"{'direct':>9} {'paper':>10}   ours/limit direct/ours paper/ours")
    for row in rows:
        limit = f"{row.limit:8.2f}" if row.limit else f"{'-':>8}"
        paper = f"{row.paper:10.1f}" if row.paper else f"{'-':>10}"
        ratios = [
            f"{row.forecast / row.limit:10.3f}" if row.limit else f"{'-':>10}",
            f"{row.direct / row.forecast:11.2f}",
            f"{row.paper / row.forecast:10.1f}" if row.paper else f"{'-':>10}",
        ]
        print(
            f"{row.name:44} {row.strategy:22} {row.measured:9.2f} {row.forecast:9.2f} {row.largest:9.2f} {limit} "
            f"{row.direct:9.1f} {paper}   {' '.join(ratios)}"
        )


def show_published(chosen: list[Cell]) -> None:
    """Print ours beside published figures of other libraries, each by its own criterion."""
    for cell in chosen:
        for where, criterion, error in PUBLISHED.get(cell.name, []):
            forecast = cell.plan(criterion=criterion).forecast()[0]
            ours = forecast.max if criterion == "max" else forecast.rms
            print(f"{cell.name}: {criterion} {ours:.2f} ({forecast.strategy}), {where}: {error:.2f}, ", end="")
            print(f"{error / ours:.2f}x ours")


def draw(rows: list[Row], path: Path) -> None:
    """Draw the table as a chart on a logarithmic scale."""
    import altair as alt

    points = [
        {"cell": row.name, "who": who, "error": error}
        for row in rows
        for who, error in (
            ("the paper's", row.paper),
            ("independent noise", row.direct),
            ("dpwindows", row.forecast),
            ("limit (Gaussian)", row.limit),
        )
        if error
    ]
    order = ["limit (Gaussian)", "dpwindows", "independent noise", "the paper's"]
    chart = alt.Chart(alt.Data(values=points)).mark_point(filled=True, size=70, opacity=0.9)
    chart = chart.encode(
        x=alt.X("error:Q", scale=alt.Scale(type="log"), title="standard error (counts), rms over a year"),
        y=alt.Y("cell:N", sort=None, title=None, axis=alt.Axis(labelLimit=320, grid=True)),
        color=alt.Color("who:N", title=None, sort=order, scale=alt.Scale(domain=order)),
        shape=alt.Shape("who:N", title=None, sort=order, scale=alt.Scale(domain=order)),
    ).properties(width=520)
    chart.save(str(path))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--repeats", type=int, default=40, help="releases to measure the error on")
    parser.add_argument("--cells", nargs="*", default=[], help="only cells whose name holds one of these words")
    parser.add_argument("--chart", type=Path, help="also draw a chart (.svg, .png or .html)")
    parser.add_argument("--json", type=Path, help="also write the figures")
    arguments = parser.parse_args()
    chosen = [cell for cell in cells() if not arguments.cells or any(word in cell.name for word in arguments.cells)]
    with tempfile.TemporaryDirectory() as scratch:
        log = Path(scratch) / "flights.parquet"
        write_flights(log)
        answers = count_events(CountRequest(log, EventColumns("tailnum", "time"), YEAR, Wanted((1, 2, 3, 10))))
    rows = []
    for cell in chosen:
        began = time.perf_counter()
        rows.append(row_of(cell, answers, arguments.repeats))
        print(f"{cell.name}: {time.perf_counter() - began:.1f} s", file=sys.stderr)
    show(rows)
    show_published(chosen)
    if arguments.json:
        arguments.json.write_text(json.dumps([row.__dict__ for row in rows], indent=2), encoding="utf-8")
    if arguments.chart:
        draw(rows, arguments.chart)


if __name__ == "__main__":
    main()
