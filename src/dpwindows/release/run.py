"""One batch release: count exactly, measure under noise, decode, and put what came out beside its errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from dpwindows import reading
from dpwindows.ask.queries import Measure
from dpwindows.ask.windows import Answers, are_complete, window_steps
from dpwindows.errors import InputError
from dpwindows.kernel.measure import measure, require_sampler
from dpwindows.plan.allotment import served_by
from dpwindows.plan.description import describe
from dpwindows.progress import show_progress
from dpwindows.release.checks import columns_of
from dpwindows.release.consistency.table import consistent_counts
from dpwindows.release.groups import in_groups
from dpwindows.release.once import Outcome, batch_request, release_once
from dpwindows.release.release import Release
from dpwindows.strategies import paper
from dpwindows.strategies.paper.shapes import ADMITTED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpwindows.count.answers import ExactAnswers
    from dpwindows.count.events import EngineSettings, EventColumns
    from dpwindows.count.groups import GroupedAnswers
    from dpwindows.kernel.maps.integer_maps import FloatArray, IntArray
    from dpwindows.kernel.measure import Measurement
    from dpwindows.ledger.ledger import Ledger
    from dpwindows.plan.allotment import Allotment
    from dpwindows.plan.planned import Planned


# Rows that share what is the same in all of them; and how many, in the mean, must follow one another to share that.
_CHUNK, _STRETCH = 1 << 16, 512
# Numbers of groups that are decoded together, about.
_DECODED = 1 << 20


def run_plan(
    plan: Planned,
    events: Any,
    columns: EventColumns,
    *,
    table: str | None,
    settings: EngineSettings,
    ledger: Ledger | None = None,
    consistent: bool = True,
) -> Outcome:
    """Count exactly, measure under noise, decode: see `Plan.run`. Tells whether the release was in the ledger.

    The groups are those of the plan, whatever the columns say of them.
    """
    from dpwindows.count.counting import count_events, count_groups
    from dpwindows.count.events import CountsFile
    from dpwindows.count.request import CountRequest

    require_sampler(plan.noise)
    columns = replace(columns, grouping=plan.grouping)
    # What can be worked out without noise is, so that little is left to fail once noise is drawn. Public columns wait:
    # there may be millions of rows of them. They need errors and intervals, as the forecast does, and no data.
    described = describe(plan, handed_over=isinstance(events, CountsFile))
    boundaries = plan.timeline.boundaries()

    def read() -> ExactAnswers | GroupedAnswers:
        request = CountRequest(events, columns, plan.timeline, plan.wanted, table, settings)
        return count_events(request) if plan.grouping is None else count_groups(request)

    def draw(answers: ExactAnswers | GroupedAnswers, paid: dict[str, Any]) -> Release:
        with show_progress("drawing noise", plan.workload.draws, shown=settings.progress) as progress:
            drawn = draw_estimates(plan, answers, progress)
        found = {} if plan.loss is None else {"loss": _loss(described["loss"], float(drawn.pop()[0]))}
        names = columns_of(described)
        agreed = _agreed(plan, drawn, shown=settings.progress) if consistent else None
        fitted = [None] * len(drawn) if agreed is None else agreed
        asked = [(allotment, one) for allotment in plan.allotments for one in allotment.query.measures]
        tables = [
            _table(_public_columns(plan, *of, boundaries), estimate, names, numbers)
            for of, estimate, numbers in zip(asked, drawn, fitted, strict=True)
        ]
        rows = pa.concat_tables(tables)
        left_out = {} if consistent else {"raw": True}
        return Release(rows, described | {"numbers": rows.num_rows} | left_out | found | paid)

    if ledger is None:
        return Outcome(draw(read(), {}), stored=False)
    outcome = release_once(ledger, batch_request(plan, columns), read, draw)
    if outcome.stored:
        _require_as_drawn(outcome.release, consistent=consistent)
    return outcome


def _require_as_drawn(stored: Release, *, consistent: bool) -> None:
    """Check that a stored release has consistent numbers where they are asked for, and none where they are left out.

    They are made of the noisy numbers, and cost no budget: so they are no part of the request that is paid for, which
    would pay again for the same estimates. But one release id stands for one set of numbers.

    Raises:
        InputError: they were decided upon otherwise when its noise was drawn.
    """
    if ("raw" in stored.metadata) == consistent:
        had, way = ("without", "with") if consistent else ("with", "without")
        raise InputError(
            f"the same request on the same data was released {had} consistent numbers (release "
            f"{stored.metadata['release_id']}), and a release has one set of numbers: ask for it {way} --raw (in "
            f"Python with consistent={not consistent}). "
            "Nothing was spent"
        )


def draw_estimates(
    plan: Planned, answers: Answers | GroupedAnswers, progress: Callable[[int], None] = lambda drawn: None
) -> list[FloatArray]:
    """The part of `Plan.run` that follows counting: measure under fresh noise, then decode.

    Guarantee: the result satisfies the plan's budget for the plan's unit of privacy. Every call spends it again.

    Returns:
        The estimates of every measure of every query, in the order asked, windows in canonical order; in groups, one
        group after another. If the plan asks for it, the number of items that lost something comes last.
    """
    # The constructions of the paper are measured for whoever asks for them by name.
    admitted = ADMITTED if plan.strategy == paper.NAME else ()
    noisy = measure(plan.measurements, plan.budget, answers, progress, admitted, plan.noise)
    # What was measured is let go as it is decoded, for there may be millions.
    decoded = [
        {k: _decode(measurement, k, drawn.pop(k)) for k in list(drawn)}
        for measurement, drawn in zip(plan.measurements, noisy, strict=True)
    ]
    return [
        allotment.own(_estimate(asked, decoded[place]))
        for allotment, place in zip(plan.every_allotment, served_by(plan.every_allotment), strict=True)
        for asked in allotment.query.measures
    ]


def _loss(forecast: dict[str, Any], estimate: float) -> dict[str, Any]:
    half = forecast["half_width"]
    return {**forecast, "estimate": estimate, "lower": estimate - half, "upper": estimate + half}


def _decode(measurement: Measurement, k: int, noisy: NDArray[Any]) -> FloatArray:
    reader, groups = reading.of(measurement.design.at(k)), len(measurement.cells)
    if groups == 1:
        # Nobody else holds these numbers: a reader lets them go once it has read them.
        return reader.decode(noisy.astype(np.float64))
    by_group = noisy.astype(np.float64).reshape(groups, -1)
    at_once = max(1, _DECODED // max(1, by_group.shape[1]))
    return np.concatenate(
        [reader.decode_each(by_group[first : first + at_once]).ravel() for first in range(0, groups, at_once)]
    )


def _agreed(plan: Planned, drawn: list[FloatArray], *, shown: bool) -> list[IntArray] | None:
    """The consistent numbers beside the estimates drawn; None where none are found, and where runs are bounded.

    These are counted for each window length and threshold by itself, so that no two of them need agree. What was drawn
    is kept whatever its numbers are: were a failure of a solver (in Rust, a panic) to end the release, a retry would
    draw anew, and which draw is kept would depend on them.
    """
    if plan.rule.max_runs is not None:
        return None
    with show_progress("making numbers agree", sum(map(len, drawn)), shown=shown) as progress:
        try:
            return consistent_counts(plan, drawn, progress)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:
            return None


def _estimate(asked: Measure, decoded: dict[int, FloatArray]) -> FloatArray:
    return decoded[asked.k] - decoded[asked.k + 1] if asked.kind == "exactly" else decoded[asked.k]


def _public_columns(plan: Planned, allotment: Allotment, asked: Measure, boundaries: pa.Array) -> dict[str, Any]:
    """Every column of one measure of one window family that needs no data, in canonical order."""
    window = allotment.query.window
    # What is worked out in several arrays comes first, as long as few are held: there may be millions of rows.
    errors = {
        "std_error": allotment.std_errors(asked),
        "half_width": allotment.half_widths(asked, plan.confidence),
    }
    bias = allotment.bias_bounds()
    first, last = window_steps(window, plan.timeline.steps)
    rows = len(last)
    columns = errors | {
        "bias_bound": bias if bias.any() else _repeated(pa.scalar(0.0), rows),
        "window": _repeated(pa.scalar(window.text), rows),
        "measure": _repeated(pa.scalar(asked.kind), rows),
        "k": _repeated(pa.scalar(asked.written_k, pa.int64()), rows),
        "first_step": first,
        "last_step": _stretches(pa.array(np.arange(plan.timeline.steps + 1)), last),
        # Steps are numbered from 1 on.
        "start": pa.concat_arrays([boundaries[:1], boundaries]).take(pa.array(first)),
        "end": _stretches(boundaries, last),
        "complete": are_complete(window, first, last, plan.timeline.steps),
    }
    groups = allotment.measurement.groups
    return columns if groups is None else in_groups(columns, groups)


def _repeated(value: pa.Scalar, rows: int) -> pa.ChunkedArray:
    """One value in every row, held in memory for a few of them: all chunks are the same."""
    chunk = pa.repeat(value, min(rows, _CHUNK))
    return pa.chunked_array([chunk.slice(0, min(_CHUNK, rows - begin)) for begin in range(0, rows, _CHUNK)])


def _stretches(values: pa.Array, places: IntArray) -> pa.ChunkedArray:
    """The values at some places; where these follow one another for long, memory is not held twice for them."""
    begins = [0, *(np.flatnonzero(np.diff(places) != 1) + 1).tolist()]
    if len(places) < _STRETCH * len(begins):
        return pa.chunked_array([values.take(pa.array(places))])
    ends = [*begins[1:], len(places)]
    return pa.chunked_array(
        [values.slice(int(places[begin]), end - begin) for begin, end in zip(begins, ends, strict=True)]
    )


def _table(
    public: dict[str, Any], estimate: FloatArray, names: tuple[str, ...], consistent: IntArray | None
) -> pa.Table:
    """The rows of one measure of one window family; `consistent` is None where there are no such numbers."""
    half = public["half_width"]
    columns = public | {
        "estimate": estimate,
        "lower": estimate - half,
        "upper": estimate + half,
        "consistent": pa.nulls(len(estimate), pa.int64()) if consistent is None else consistent,
    }
    return pa.table({name: columns[name] for name in names})
