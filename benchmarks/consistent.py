"""Error of the consistent column beside the raw estimates, on real logs: each family alone, and families together.

    python benchmarks/consistent.py LOG=EVENTS:START:END [...] [--seeds 20] [--held-out NAME] [--only TEXT]

EVENTS is a file of the columns item and time; the demo's flights are always there. Counts are exact, noise is simulated
with the law, scale and decoder of a release at (epsilon, delta) = (1, 1e-6), and the table is made as a release makes
it. For each family and measure: the root mean square error of the estimates over all windows and seeds, that of the
consistent numbers over it, and how many of these lie outside the 95 % intervals of their estimates, where
5 % of true counts do.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import numpy as np
import pyarrow.parquet

import dpwindows as dw
from dpwindows import reading
from dpwindows.ask.privacy import parse_unit
from dpwindows.ask.queries import Measure, Query, WindowFamily, parse_window
from dpwindows.ask.windows import window_steps
from dpwindows.count.answers import ExactAnswers
from dpwindows.count.counting import count_events
from dpwindows.count.events import EventColumns
from dpwindows.count.query.wanted import Wanted
from dpwindows.count.request import CountRequest
from dpwindows.demo import flights
from dpwindows.kernel.accounting import GAUSSIAN, JOINT
from dpwindows.kernel.joint_noise import draw_jointly
from dpwindows.kernel.maps.integer_maps import FloatArray
from dpwindows.plan.allotment import Allotment
from dpwindows.release.consistency.table import consistent_counts

ALONE = ("cumulative", "rolling:1", "rolling:7", "rolling:28", "any:90", "any")
TOGETHER = (
    ("rolling:1 rolling:7 rolling:28 cumulative", (1,)),
    ("rolling:7 rolling:28 cumulative any:90", (1, 3)),
    ("rolling:7 rolling:28 tumbling:month", (1,)),
    ("tumbling:week tumbling:month to-date:quarter", (1,)),
    ("tumbling:quarter to-date:year", (1,)),
    ("any:7 rolling:28 tumbling:month", (1, 2)),
    ("any:28 tumbling:week tumbling:month", (1,)),
    ("any:90 tumbling:month tumbling:quarter", (1,)),
    ("any:31 to-date:month cumulative", (1,)),
)
CONFIDENCE = 0.95
BUDGET = dw.ApproxDP(epsilon=1.0, delta=1e-6)


def exact(answers: ExactAnswers, window: WindowFamily, k: int) -> FloatArray:
    first, last = window_steps(window, answers.steps)
    square = answers.windows(k, 1, answers.steps, 1, answers.steps)
    return square[first - 1, last - 1].astype(np.float64)


def simulate(allotment: Allotment, generator: np.random.Generator) -> dict[int, FloatArray]:
    """What the noise of a release does to the estimates of each threshold."""
    measurement = allotment.measurement
    design, scale = measurement.design, measurement.scale

    def draw(rows: int) -> FloatArray:
        if measurement.law in JOINT:
            return draw_jointly(measurement.law, scale, rows).astype(np.float64)
        return scale * (generator.standard_normal if measurement.law == GAUSSIAN else generator.laplace)(size=rows)

    return {
        k: allotment.own(reading.of(design.at(k)).decode(draw(design.at(k).rows))) for k in design.problem.thresholds
    }


def compare(plan: dw.Plan, answers: ExactAnswers, seeds: int) -> Iterator[tuple[str, Measure, float, float, float]]:
    """For each measure: the raw error, that of the consistent number over it, and the share outside the interval."""
    asked = [(one, measure) for one in plan.allotments for measure in one.query.measures]
    truth = [exact(answers, one.query.window, measure.k) for one, measure in asked]
    errors = np.zeros((len(asked), 3))
    generator = np.random.default_rng(1)
    for _ in range(seeds):
        noises = [simulate(one, generator) for one in plan.allotments]
        noise = [noises[at][measure.k] for at, one in enumerate(plan.allotments) for measure in one.query.measures]
        drawn = [true + noisy for true, noisy in zip(truth, noise, strict=True)]
        found = consistent_counts(plan, drawn)
        assert found is not None
        for at, (raw, made) in enumerate(zip(drawn, found, strict=True)):
            one, measure = asked[at]
            far = np.abs(made - raw) > one.half_widths(measure, CONFIDENCE)
            squares = [float(((values - truth[at]) ** 2).mean()) for values in (raw, made)]
            errors[at] += [*squares, float(far.mean())]
    for (one, measure), (raw, made, far) in zip(asked, errors / seeds, strict=True):
        yield one.query.window.text, measure, raw**0.5, (made / raw) ** 0.5, far


def read_log(text: str, folder: Path) -> tuple[str, dw.Timeline, ExactAnswers]:
    name, _, rest = text.partition("=")
    events, start, end = rest.rsplit(":", 2)
    if name == "flights":
        events = str(folder / "flights.parquet")
        pyarrow.parquet.write_table(flights().rename_columns(["item", "time"]), events)
    zone = "America/New_York" if name == "flights" else "UTC"
    timeline = dw.Timeline(start, end, step="1d", time_zone=zone)
    return name, timeline, count_events(CountRequest(events, EventColumns("item", "time"), timeline, Wanted((1, 2, 3))))


@click.command()
@click.argument("logs", nargs=-1, metavar="LOG=EVENTS:START:END...")
@click.option("--seeds", default=20, show_default=True)
@click.option("--held-out", multiple=True, metavar="NAME", help="A log that was looked at only in the end.")
@click.option("--only", default="", metavar="TEXT", help="Only releases of which the windows hold this text.")
@click.option("--unit", "units", multiple=True, default=("event", "item-add-remove"), show_default=True)
def main(logs: Sequence[str], seeds: int, held_out: Sequence[str], only: str, units: Sequence[str]) -> None:
    """Print the table."""
    ratios: dict[str, list[float]] = {}
    print("| released | unit | of | log | raw error | consistent over raw | outside their intervals |")
    print("|---|---|---|---|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        read = [read_log(text, Path(folder)) for text in ("flights=:2013-01-01:2014-01-01", *logs)]
    released = [(name, (1,)) for name in ALONE] + list(TOGETHER)
    for (windows, thresholds), unit in [(one, unit) for unit in units for one in released if only in one[0]]:
        queries = [Query(parse_window(text)).at_least(*thresholds) for text in windows.split()]
        for name, timeline, answers in read:
            plan = dw.Plan(queries, timeline=timeline, unit=parse_unit(unit), budget=BUDGET)
            for window, measure, raw, ratio, far in compare(plan, answers, seeds):
                shown = f"{name} (held out)" if name in held_out else name
                of = f"{window}, {measure}" if windows != window else window
                print(f"| {windows} | {unit} | {of} | {shown} | {raw:.1f} | {ratio:.2f} | {far:.1%} |", flush=True)
                if raw >= 3:
                    ratios.setdefault(shown, []).append(ratio)
    print()
    for name, found in ratios.items():
        print(f"{name}: mean {np.mean(found):.2f}, worst {np.max(found):.3f}, {len(found)} families")
    every = [ratio for found in ratios.values() for ratio in found]
    print(f"all: mean {np.mean(every):.3f}, worst {np.max(every):.3f}")


if __name__ == "__main__":
    main()
