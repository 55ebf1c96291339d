"""One step of a stream: exact counts in, released rows out. Everything a stream does with noise is here.

A `Mechanism` is fixed when the stream is created and made of integers; what changes from step to step is its memory,
which holds exact counts and noisy ones and must be kept as secret as the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from dpwindows.ask import formats
from dpwindows.ask.counting_rule import EVERY_OCCURRENCE, CountingRule
from dpwindows.ask.groups import Grouping, cells_of
from dpwindows.ask.periods import place_of
from dpwindows.ask.privacy import Budget, Unit, parse_budget, parse_unit
from dpwindows.ask.queries import OCCURRENCES, AnyWindow, Cumulative, Measure, PeriodFamily, Query, Rolling, query_name
from dpwindows.ask.shapes import read_shape
from dpwindows.ask.windows import are_complete
from dpwindows.count.query.first_runs import Series, series_number
from dpwindows.kernel.accounting import certify
from dpwindows.kernel.designs import StepAnswers, StepDesign
from dpwindows.kernel.maps.integer_maps import FloatArray, IntArray, Memory
from dpwindows.kernel.measure import EXACT, OPENDP, Measurement, Sampler, measure_step
from dpwindows.plan.description import ENDLESS, HORIZON
from dpwindows.plan.intervals import estimate_variance, half_widths
from dpwindows.plan.rebuilt import measurement_of, window_of
from dpwindows.reading.reader import steps_of

# Exact counts beyond this are taken for a fault: no log of events has as many items.
_MOST_ITEMS, _MOST_OCCURRENCES = 1 << 40, 1 << 46
# What encoding remembers of the data, and what reading does of noisy numbers.
_EXACT, _NOISY = "exact.", "noisy."


@dataclass(frozen=True)
class Mechanism:
    """The measurements of one stream, one step at a time.

    Attributes:
        queries: what is asked of each measurement, one query for each series of it.
        measurements: what is measured with what noise.
        budget: what the whole stream may spend.
        unit: the unit of privacy.
        horizon: the number of steps after which the stream ends; None: it is unlimited.
        confidence: coverage of each interval by itself.
        rule: which occurrences of an item count.
        grouping: the groups that everything is measured in, None for none.
    """

    queries: tuple[tuple[Query, ...], ...]
    measurements: tuple[Measurement, ...]
    budget: Budget
    unit: Unit
    horizon: int | None
    confidence: float
    rule: CountingRule = EVERY_OCCURRENCE
    grouping: Grouping | None = None
    noise: Sampler = EXACT

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> Mechanism:
        """The mechanism of a stream whose releases say this of themselves, its cost proved within its budget once more.

        Raises:
            ValueError, `BAD_VALUES` of `dpwindows.plan.stored_designs`: the values describe no mechanism that this
                version knows.
            BudgetExceededError: the cost cannot be proved within the budget.
        """
        asked = {
            query.name: query
            for query in (
                Query(
                    window_of(metadata, one["window"]),
                    tuple(Measure.of(measure["measure"], measure["k"]) for measure in one["measures"]),
                )
                for one in metadata["queries"]
            )
        }
        queries, measurements = [], []
        for entry in metadata["measurements"]:
            # Windows that are measured together have an entry each, all of one measurement.
            windows = entry.get("together") or [entry["window"]]
            if entry["window"] == windows[0]:
                occurrences = not entry["thresholds"]
                queries.append(tuple(asked[query_name(window, occurrences=occurrences)] for window in windows))
                measurements.append(measurement_of(metadata, entry))
        if {query for one in queries for query in one} != set(asked.values()):
            raise ValueError("a window that is asked for is not measured")
        grouping = read_shape(metadata["groups"], Grouping) if "groups" in metadata else None
        if grouping is not None and grouping.limits_groups:
            raise ValueError("a stream does not keep which groups an item was first in")
        spent, horizon, confidence = metadata["budget"], metadata[HORIZON], metadata["confidence"]
        if metadata["format"] != formats.RELEASE or (horizon != ENDLESS and type(horizon) is not int):
            raise ValueError(f"format {metadata['format']!r} and horizon {horizon!r}")
        if not isinstance(confidence, float) or not 0 < confidence < 1:
            raise ValueError(f"the confidence {confidence!r}")
        if metadata["noise"] not in (EXACT, OPENDP):
            raise ValueError(f"the noise {metadata['noise']!r}")
        budget = parse_budget(spent.get("epsilon"), spent.get("delta"), spent.get("rho"))
        certify(budget, [measurement.cost for measurement in measurements])
        return cls(
            tuple(queries),
            tuple(measurements),
            budget,
            parse_unit(metadata["unit"]["name"]),
            None if horizon == ENDLESS else horizon,
            confidence,
            CountingRule(**metadata.get("counting", {})),
            grouping,
            metadata["noise"],
        )

    @property
    def cells(self) -> int:
        """How many groups there are, totals included; 1 without groups."""
        return cells_of(self.grouping)

    @property
    def thresholds(self) -> tuple[int, ...]:
        """Every k whose "at least k" counts are needed, but for rolling counts with bounded runs."""
        problems = [design.problem for design in self._designs]
        if self.rule.max_runs is not None:
            problems = [problem for problem in problems if not isinstance(problem.window, Rolling)]
        return tuple(sorted({k for problem in problems for k in problem.thresholds}))

    @property
    def series(self) -> tuple[Series, ...]:
        """Where runs are bounded, the rolling counts that are needed: thresholds and lengths."""
        if self.rule.max_runs is None:
            return ()
        windows = {(design.problem.window, k) for design in self._designs for k in design.problem.thresholds}
        return tuple(sorted((k, window.length) for window, k in windows if isinstance(window, Rolling)))

    @property
    def counted(self) -> tuple[int, ...]:
        """What counts by recency are kept for: thresholds, and the numbers of series."""
        return (*self.thresholds, *(series_number(place) for place in range(len(self.series))))

    def _of(self, design: StepDesign, answers: StepAnswers) -> StepAnswers:
        """The answers that a design reads, by threshold."""
        window = design.problem.window
        if self.rule.max_runs is None or not isinstance(window, Rolling):
            return answers
        numbers = {k: series_number(self.series.index((k, window.length))) for k in design.problem.thresholds}
        return replace(answers, recent={k: answers.recent[number] for k, number in numbers.items()})

    @property
    def reach(self) -> int:
        """How many steps back recent counts are needed."""
        return max(design.reach for design in self._designs)

    @property
    def totals(self) -> tuple[int, ...]:
        """Every k whose counts since the start are needed."""
        problems = (one.problem for one in self._designs if isinstance(one.problem.window, Cumulative))
        return tuple(sorted({k for problem in problems for k in problem.thresholds}))

    @property
    def keeps_items(self) -> bool:
        """Whether an item must be known for good: its first occurrences count, and no others."""
        return any(k != OCCURRENCES for k in self.totals)

    @property
    def _designs(self) -> list[StepDesign]:
        return [one.design for one in self.measurements if isinstance(one.design, StepDesign)]

    # --- One step -----------------------------------------------------------------------------------------------------

    def fresh_memory(self) -> Memory:
        """The memory before the first step."""
        return {
            f"{index}.{k}.{name}": value
            for index, (design, measurement) in enumerate(zip(self._designs, self.measurements, strict=True))
            for k in design.problem.thresholds
            for name, value in _joined([_fresh(design, k)] * len(measurement.cells)).items()
        }

    def release_step(self, by_cell: Sequence[StepAnswers], memory: Memory) -> tuple[pa.Table, Memory]:
        """Measure one step under fresh noise: the rows of every window that ends at it, and the memory after it.

        Guarantee: the rows of all steps together satisfy the budget (`dpwindows.kernel.measure.measure_step`) if this
        is called once for each step, and no rows of a step are seen by anyone if it has to be called again for the
        step.

        Args:
            by_cell: the exact counts at the end of the step, of each group; steps come in order, from 1.
            memory: what the step before returned, or `fresh_memory()`.

        Returns:
            The rows, with the columns of a release but for `start`, `end` and `consistent`; and the memory. With groups
            their code stands in place of their values.

        Raises:
            ValueError: the answers are of other groups than are measured.
            BudgetExceededError: as `dpwindows.kernel.measure.measure_step`.
        """
        if len(by_cell) != self.cells:
            raise ValueError(f"the answers are of {len(by_cell)} groups, and {self.cells} are measured")
        step = by_cell[0].step
        self._require_sane(step, by_cell)
        encoded = [
            {
                k: [
                    design.encode_step(read, k, _part(kept, _EXACT))
                    for read, kept in self._given(index, by_cell, k, memory)
                ]
                for k in design.problem.thresholds
            }
            for index, design in enumerate(self._designs)
        ]
        exact = [{k: np.concatenate([own for own, _ in cells]) for k, cells in one.items()} for one in encoded]
        for measurement, design, numbers in zip(self.measurements, self._designs, exact, strict=True):
            if any(len(values) != design.rows_at(step) * len(measurement.cells) for values in numbers.values()):
                raise ValueError(f"step {step} was encoded in another count of numbers than its design measures")
        noisy = measure_step(self.measurements, self.budget, step, exact, self.noise)
        tables: list[pa.Table] = []
        after: Memory = {}
        for index, (queries, measurement, design) in enumerate(
            zip(self.queries, self.measurements, self._designs, strict=True)
        ):
            estimates = {}
            for k, values in noisy[index].items():
                parts = np.split(values.astype(np.float64), len(measurement.cells))
                reader = steps_of(_one(design, k))
                given = self._given(index, by_cell, k, memory)
                # Reading sees nothing exact.
                read = [
                    reader.decode_step(step, part, _part(own, _NOISY))
                    for part, (_, own) in zip(parts, given, strict=True)
                ]
                estimates[k] = np.concatenate([estimate for estimate, _ in read])
                both = zip(encoded[index][k], read, strict=True)
                kept = _joined([_kept(encoding, reading) for (_, encoding), (_, reading) in both])
                after |= {f"{index}.{k}.{name}": value for name, value in kept.items()}
            for series, query in enumerate(queries):
                mine = slice(series, series + 1) if len(queries) > 1 else slice(None)
                tables += [self._rows(step, query, measurement, one, estimates, mine) for one in query.measures]
        return pa.concat_tables(tables), after

    def _given(
        self, index: int, by_cell: Sequence[StepAnswers], k: int, memory: Memory
    ) -> list[tuple[StepAnswers, Memory]]:
        """What a measurement reads of a threshold in each of its groups: the answers, and its own memory there."""
        design, own = self._designs[index], _part(memory, f"{index}.{k}.")
        return [
            (self._of(design, by_cell[cell]), {name: value[place] for name, value in own.items()})
            for place, cell in enumerate(self.measurements[index].cells)
        ]

    def _require_sane(self, step: int, by_cell: Sequence[StepAnswers]) -> None:
        if self.horizon is not None and step > self.horizon:
            raise ValueError(f"the stream ends after {self.horizon} steps, and step {step} was to be released")
        counts = [(k, count) for one in by_cell for k, count in one.total.items()]
        counts += [(k, int(values.max(initial=0))) for one in by_cell for k, values in one.recent.items()]
        if any(count > (_MOST_OCCURRENCES if k == OCCURRENCES else _MOST_ITEMS) for k, count in counts):
            raise ValueError("the exact counts of a step are beyond anything a log can hold")

    def _rows(
        self,
        step: int,
        query: Query,
        measurement: Measurement,
        measure: Measure,
        estimates: dict[int, FloatArray],
        own: slice,
    ) -> pa.Table:
        """The rows of one measure; `own` are the query's numbers among those of the measurement."""
        estimate = estimates[measure.k]
        if measure.kind == "exactly":
            estimate = estimate - estimates[measure.k + 1]
        designs = [measurement.design.at(k) for k in measure.thresholds]
        readers = [steps_of(design) for design in designs if isinstance(design, StepDesign)]
        codes = np.array(measurement.cells)
        estimate = estimate.reshape(len(codes), -1)[:, own].ravel()
        squares = np.mean([reader.variance_at(step)[own] for reader in readers], axis=0)

        def fourths() -> FloatArray | None:
            known = [moment[own] for reader in readers if (moment := reader.fourth_moment_at(step)) is not None]
            return np.mean(known, axis=0) if len(known) == len(readers) else None

        half = np.tile(half_widths(measurement, measure, squares, fourths, self.confidence), len(codes))
        count, first = len(estimate), np.tile(_first_steps(query, step, len(squares)), len(codes))
        last = np.full(count, step)
        return pa.table(
            {
                "window": pa.array([query.window.text] * count, pa.string()),
                "measure": pa.array([measure.kind] * count, pa.string()),
                "k": pa.array([measure.written_k] * count, pa.int64()),
                "first_step": first,
                "last_step": last,
                "complete": are_complete(query.window, first, last, self.horizon),
                "estimate": estimate,
                "std_error": np.tile(np.sqrt(estimate_variance(measurement, measure, squares)), len(codes)),
                "bias_bound": np.zeros(count),
                "lower": estimate - half,
                "upper": estimate + half,
                **({} if measurement.groups is None else {"cell": np.repeat(codes, len(squares))}),
            }
        )


def _fresh(design: StepDesign, k: int) -> Memory:
    """What encoding and reading of a threshold remember before step 1."""
    return _kept(design.shape.fresh(), steps_of(_one(design, k)).fresh())


def _one(design: StepDesign, k: int) -> StepDesign:
    one = design.at(k)
    assert isinstance(one, StepDesign)
    return one


def _kept(exact: Memory, noisy: Memory) -> Memory:
    """What encoding remembers and what reading does, under names that cannot meet."""
    return {_EXACT + name: value for name, value in exact.items()} | {
        _NOISY + name: value for name, value in noisy.items()
    }


def _joined(memories: Sequence[Memory]) -> Memory:
    """The memory of a measurement in all of its groups, along the first axis."""
    return {name: np.stack([memory[name] for memory in memories]) for name in memories[0]}


def _part(memory: Memory, prefix: str) -> Memory:
    return {name.removeprefix(prefix): value for name, value in memory.items() if name.startswith(prefix)}


def _first_steps(query: Query, step: int, count: int) -> IntArray:
    """First steps of the windows that end at a step, in the order of their estimates."""
    match query.window:
        case Cumulative():
            first = 1
        case Rolling(length=length):
            first = max(1, step - length + 1)
        case AnyWindow():
            return np.arange(step - count + 1, step + 1, dtype=np.int64)
        case PeriodFamily() as window:
            first = step - place_of(window, step)[1] + 1
        case _:
            raise ValueError(f"unknown window family {query.window!r}")
    return np.full(count, first, dtype=np.int64)
