"""The published object: noisy numbers, their errors, and everything a reader may know about how they were made.

A `Release` holds one Arrow table, a row for each released number, and its metadata. Nothing in either depends on the
data but the noisy numbers: no path, no count of rows, no range read from the log.
"""

from __future__ import annotations

import platform
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cache, cached_property
from importlib import metadata as packages
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpwindows import release_files
from dpwindows.errors import InputError
from dpwindows.kernel import measure
from dpwindows.privacy import Budget, Unit
from dpwindows.progress import noise_progress
from dpwindows.queries import Measure, MeasureKind, Query, Rolling
from dpwindows.timeline import Timeline
from dpwindows.windows import Answers, window_steps

if TYPE_CHECKING:
    from dpwindows.answers import ExactAnswers
    from dpwindows.events import EngineSettings
    from dpwindows.integer_maps import FloatArray
    from dpwindows.ledger import Ledger
    from dpwindows.ledger_release import Outcome
    from dpwindows.plan import Allotment, Plan

FORMAT = 1
_UNVERIFIED = (
    "The release file carries no checksum, as files of older versions do not: that it is unchanged was not verified."
)
_VERSIONED = ("dpwindows", "opendp", "duckdb", "numpy", "scipy", "python-flint", "pyarrow")


@dataclass(frozen=True)
class Count:
    """One released number, with its error: what `Release.count` returns.

    `estimate` is in items; `std_error` is the standard deviation of its noise; `bias_bound` bounds its bias; `lower`
    and `upper` bound it at the release's confidence; `window` tells which family it was released in.
    """

    estimate: float
    std_error: float
    bias_bound: float
    lower: float
    upper: float
    window: str
    measure: str
    k: int

    def __str__(self) -> str:
        return f"{self.estimate:,.1f} ± {self.std_error:.2g} ({self.lower:,.1f} to {self.upper:,.1f})"


@dataclass(frozen=True)
class Release:
    """Released window counts and how they were made; save it, load it, ask it.

    Attributes:
        table: one row a released number, with the columns of the release format: `window`, `measure`, `k`,
            `first_step`, `last_step` (1-based, inclusive), `start`, `end` (inclusive, exclusive), `complete`,
            `estimate`, `std_error`, `bias_bound`, `lower`, `upper`, `consistent`.
        metadata: plain values: what was asked, the guarantee, budget and shares, strategies, noise, certified
            sensitivities and their proofs, forecast, versions, release id and time.
        verified: False if the release was loaded from a file that carries no checksum, as older versions wrote them;
            it is saved without one then. A checksum stops accidents and careless edits, not forgery.
    """

    table: pa.Table
    metadata: dict[str, Any]
    verified: bool = field(default=True, compare=False)

    @classmethod
    def load(cls, path: str | Path) -> Release:
        """Read a release from a `.parquet`, `.csv` (with its `.meta.json` beside it) or `.json` file.

        Raises:
            InputError: there is no such file, it is not a release of a known format, or its numbers or what it says
                about them were changed after it was written.
        """
        return cls(*release_files.read(Path(path), FORMAT))

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the release, whole and durably, to a `.parquet`, `.csv` or `.json` file.

        The file carries a checksum over its numbers and its metadata, which `load` checks.

        Args:
            path: where to; a CSV file gets its metadata beside it as `PATH.meta.json`, written first.
            force: replace what is there.

        Raises:
            InputError: the file exists and `force` is not set, or the ending is unknown.
            EngineError: the file cannot be written.
        """
        release_files.write(self.table, self.metadata, Path(path), force=force, verified=self.verified)

    def to_arrow(self) -> pa.Table:
        """The released numbers as an Arrow table."""
        return self.table

    def to_pandas(self) -> Any:
        """The released numbers as a pandas data frame."""
        return self.table.to_pandas()

    def to_polars(self) -> Any:
        """The released numbers as a Polars data frame.

        Raises:
            InputError: Polars is not installed.
        """
        try:
            import polars
        except ImportError:
            raise InputError("to_polars needs Polars: pip install polars") from None
        return polars.from_arrow(self.table)

    @cached_property
    def timeline(self) -> Timeline:
        """The public range and step."""
        return Timeline.from_dict(self.metadata["timeline"])

    def count(
        self,
        start: str | date | datetime | int,
        end: str | date | datetime | int,
        *,
        at_least: int | None = None,
        exactly: int | None = None,
    ) -> Count:
        """The released number of one window, whatever family it was released in.

        Args:
            start: first moment of the window, a step boundary.
            end: first moment after the window, a step boundary.
            at_least: the k of "at least k" (default 1 if `exactly` is not given either).
            exactly: the k of "exactly k".

        Returns:
            The estimate of least standard error among those released for this very window.

        Raises:
            InputError: the window was not released, or its ends are no step boundaries.
        """
        if at_least is not None and exactly is not None:
            raise InputError("give at_least or exactly, not both")
        kind: MeasureKind = "at_least" if exactly is None else "exactly"
        k = exactly if exactly is not None else (at_least if at_least is not None else 1)
        first, last = self.timeline.step_of(start) + 1, self.timeline.step_of(end)
        if last < first:
            raise InputError(f"the end of a window must be after its start, got start={start} and end={end}")
        wanted = Measure(kind, k)
        matches = self.table.filter(
            (pc.field("first_step") == first)
            & (pc.field("last_step") == last)
            & (pc.field("measure") == wanted.kind)
            & (pc.field("k") == wanted.k)
        ).to_pylist()
        if not matches:
            released = sorted(
                {f"{row['window']} ({row['measure'].replace('_', ' ')} {row['k']})" for row in self._asked}
            )
            raise InputError(
                f"the window {start} to {end} ({wanted}) was not released; this release holds {', '.join(released)}: "
                "ask for any windows when planning to have every pair of dates"
            )
        best = min(matches, key=lambda row: row["std_error"] + row["bias_bound"])
        return Count(**{name: best[name] for name in Count.__dataclass_fields__})

    @property
    def _asked(self) -> list[dict[str, Any]]:
        return [
            {"window": query["window"], **asked} for query in self.metadata["queries"] for asked in query["measures"]
        ]

    def plot(self) -> Any:
        """An Altair chart of the release: estimates with their intervals (needs `pip install 'dpwindows[report]'`)."""
        from dpwindows.report import chart

        return chart(self.table, self.metadata)

    def report(self, path: str | Path, *, force: bool = False) -> None:
        """Write the release as one self-contained HTML page (needs `pip install 'dpwindows[report]'`).

        Raises:
            InputError: the file exists and `force` is not set.
            EngineError: the file cannot be written.
        """
        from dpwindows.report import page

        release_files.require_writable(Path(path), force=force, endings=(".html", ".htm"))
        shown = self.metadata
        if not self.verified:
            shown = shown | {"notes": [*(shown.get("notes") or []), _UNVERIFIED]}
        release_files.write_text(page(self.table, shown), Path(path), force=force)

    def __repr__(self) -> str:
        asked = ", ".join(f"{row['window']} {row['measure'].replace('_', ' ')} {row['k']}" for row in self._asked)
        budget = ", ".join(f"{name} = {value}" for name, value in self.metadata["budget"].items() if name != "kind")
        return f"Release({self.table.num_rows} numbers: {asked}; {self.metadata['unit']['name']} level; {budget})"

    def _repr_html_(self) -> str:
        """A notebook shows the release as its chart, drawn without loading anything, and a table of its first rows."""
        from html import escape

        try:
            from dpwindows.report import drawing

            drawn = drawing(self.table, self.metadata)
        except InputError:
            drawn = ""
        shown = ("window", "measure", "k", "start", "end", "estimate", "std_error", "lower", "upper")
        head = "".join(f"<th>{name}</th>" for name in shown)
        rows = "".join(
            "<tr>" + "".join(f"<td>{escape(_shown(row[name]))}</td>" for name in shown) + "</tr>"
            for row in self.table.slice(0, 10).to_pylist()
        )
        more = f"<p>... and {self.table.num_rows - 10:,} more</p>" if self.table.num_rows > 10 else ""
        return f"<p>{escape(self.metadata['guarantee'])}</p>{drawn}<table><tr>{head}</tr>{rows}</table>{more}"


def _shown(value: Any) -> str:
    return f"{value:,.1f}" if isinstance(value, float) else str(value)


def run_plan(
    plan: Plan,
    events: Any,
    *,
    item: str,
    time: str,
    count: str | None,
    table: str | None,
    settings: EngineSettings,
    ledger: Ledger | None = None,
) -> Outcome:
    """Count exactly, measure under noise, decode: see `Plan.run`. Tells whether the release was in the ledger."""
    from dpwindows.events import EventColumns
    from dpwindows.ledger_release import Outcome, release_once
    from dpwindows.ledger_request import batch_request
    from dpwindows.recency import count_events

    columns = EventColumns(item, time, count)
    # Everything that can be worked out without noise is, so that nothing is left to fail once noise is drawn.
    described = describe(plan)
    public = [
        (asked, _public_columns(plan, allotment, asked))
        for allotment in plan.allotments
        for asked in allotment.query.measures
    ]

    def read() -> ExactAnswers:
        return count_events(events, columns, plan.timeline, plan.thresholds, table=table, settings=settings)

    def draw(answers: ExactAnswers, paid: dict[str, Any]) -> Release:
        with noise_progress(_rows(plan), shown=settings.progress) as progress:
            drawn = draw_estimates(plan, answers, progress)
        tables = [_table(columns, estimate) for (_, columns), estimate in zip(public, drawn, strict=True)]
        return Release(pa.concat_tables(tables), described | paid)

    if ledger is None:
        return Outcome(draw(read(), {}), stored=False)
    return release_once(ledger, batch_request(plan, item=item, time=time, count=count), read, draw)


def draw_estimates(
    plan: Plan, answers: Answers, progress: Callable[[int], None] = lambda drawn: None
) -> list[FloatArray]:
    """The part of `Plan.run` that follows counting: measure under fresh noise, then decode.

    Guarantee: the result satisfies the plan's budget for the plan's unit of privacy. Every call spends it again.

    Returns:
        The estimates of every measure of every query, in the order asked, windows in canonical order.
    """
    measured = measure([allotment.measurement for allotment in plan.allotments], plan.budget, answers, progress)
    decoded = [
        {k: allotment.measurement.design.decode(values.astype(np.float64)) for k, values in noisy.items()}
        for allotment, noisy in zip(plan.allotments, measured, strict=True)
    ]
    return [
        _estimate(asked, estimates)
        for allotment, estimates in zip(plan.allotments, decoded, strict=True)
        for asked in allotment.query.measures
    ]


def _estimate(asked: Measure, decoded: dict[int, FloatArray]) -> FloatArray:
    return decoded[asked.k] if asked.kind == "at_least" else decoded[asked.k] - decoded[asked.k + 1]


def _rows(plan: Plan) -> int:
    return sum(allotment.measurement.cost.rows for allotment in plan.allotments)


def _public_columns(plan: Plan, allotment: Allotment, asked: Measure) -> dict[str, Any]:
    """Every column of one measure of one window family that needs no data, in canonical order."""
    window = allotment.query.window
    first, last = window_steps(window, plan.timeline.steps)
    boundaries = plan.timeline.boundaries()
    rows = len(last)
    cut = isinstance(window, Rolling) and last < min(window.length, plan.timeline.steps + 1)
    return {
        "window": pa.DictionaryArray.from_arrays(np.zeros(rows, dtype=np.int32), [window.text]).cast(pa.string()),
        "measure": pa.DictionaryArray.from_arrays(np.zeros(rows, dtype=np.int32), [asked.kind]).cast(pa.string()),
        "k": np.full(rows, asked.k, dtype=np.int64),
        "first_step": first,
        "last_step": last,
        "start": boundaries.take(pa.array(first - 1)),
        "end": boundaries.take(pa.array(last)),
        "complete": ~np.broadcast_to(cut, rows),
        "std_error": allotment.std_errors(asked),
        "bias_bound": allotment.bias_bounds(),
        "half_width": allotment.half_widths(asked, plan.confidence),
    }


def _table(public: dict[str, Any], estimate: FloatArray) -> pa.Table:
    """The rows of one measure of one window family."""
    half = public["half_width"]
    columns = public | {
        "estimate": estimate,
        "lower": estimate - half,
        "upper": estimate + half,
        "consistent": pa.nulls(len(estimate), pa.int64()),
    }
    return pa.table({name: columns[name] for name in release_files.COLUMNS})


def describe(plan: Plan) -> dict[str, Any]:
    """The metadata of a release of this plan: plain values, with a new release id and the time."""
    return {
        "format": FORMAT,
        "release_id": uuid.uuid4().hex,
        "released_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "guarantee": guarantee(plan.budget, plan.unit, singleton=plan.singleton),
        "unit": {"name": plan.unit.name, "promise": plan.unit.promise},
        "budget": plan.budget.to_dict(),
        "singleton": plan.singleton,
        "timeline": {**plan.timeline.to_dict(), "steps": plan.timeline.steps},
        "queries": [_describe_query(query) for query in plan.queries],
        "notes": list(plan.notes),
        "strategy": plan.strategy,
        "criterion": plan.criterion,
        "confidence": plan.confidence,
        "measurements": [_describe_allotment(allotment) for allotment in plan.allotments],
        "forecast": [forecast.to_dict() for forecast in plan.forecast()],
        "versions": dict(library_versions()),
    }


@cache
def library_versions() -> dict[str, str]:
    """The versions of everything that a release depends on."""
    return {"python": platform.python_version(), **{name: packages.version(name) for name in _VERSIONED}}


def guarantee(budget: Budget, unit: Unit, *, singleton: bool, over: str = "this release") -> str:
    """What a release promises, in plain words; the part before the first colon is the claim itself."""
    condition = " It assumes the public promise that every step holds at most one event." if singleton else ""
    others = "other releases" if over == "this release" else "releases outside the stream"
    return (
        f"{over[0].upper()}{over[1:]} satisfies {budget} differential privacy at the level of the unit '{unit.name}': "
        f"{unit.promise} The guarantee covers all numbers of {over} together, whatever else an attacker knows; "
        f"{others} about the same log spend further budget.{condition}"
    )


def _describe_query(query: Query) -> dict[str, Any]:
    return {
        "window": query.window.text,
        "measures": [{"measure": measure.kind, "k": measure.k} for measure in query.measures],
    }


def _describe_allotment(allotment: Allotment) -> dict[str, Any]:
    measurement = allotment.measurement
    design = measurement.design
    gaussian = measurement.law == "discrete Gaussian"
    return {
        "window": allotment.query.window.text,
        "thresholds": list(design.problem.thresholds),
        "strategy": design.strategy,
        "parameters": dict(design.parameters),
        "noise": {"law": measurement.law, "scale": measurement.scale, "unit": "lattice units"},
        "sensitivity": {
            "norm": "L2" if gaussian else "L1",
            "value": design.sensitivity**0.5 if gaussian else float(design.sensitivity),
            "bound": str(design.sensitivity),
            "bound_is": "squared L2 norm" if gaussian else "L1 norm",
            "unit": "lattice units",
            "proof": design.proof,
        },
        "numbers_measured": measurement.cost.rows,
        "budget_share": allotment.share,
    }
