"""A plan's measurements as plain arrays: what anyone needs to check privacy and unbiasedness without this package.

The file is a NumPy archive (`.npz`) without pickled objects. `description` is a JSON text: what was asked, and for
measurement i the noise law and scale, the certified sensitivity with the name of its proof, and its `shape`. Arrays of
measurement i are named `i/...`. In lattice units, for each threshold k measured, `y = M x + z` with noise z of the law
and scale that are named and exact integer answers x; estimates are `decoder y`.

**Explicit form**, up to 24 steps, for every strategy. Entry n of `entry_*` says that the exact count of at least
`entry_source[n]` in steps `entry_first[n]..entry_last[n]` enters number `entry_row[n]` of the vector of threshold
`entry_measured[n]` with weight `entry_value[n]`; everything else has weight 0. `decoder` turns one vector into the
estimates of the windows `first..last`, in their order (where each threshold has its own: `decoder_{k}`); `bias_bound`
says how far they may be off in expectation. To recompute a sensitivity: the answers of one item are 0 or 1; take two
histories of it that are neighbours, and the vectors of all thresholds one after another. The threshold -1 stands for
occurrences, of which one item may have many.

**Groups.** `groups` of the description lists the columns with their public values, `group_of`, `max_groups` and the
share of the totals. A measurement then has `groups` too: it is made in every group by the columns `by`, in `count`
groups, each with noise of its own, of the group's own log. `bound` is the sensitivity of all of them together. In which
group an event counts is said in `docs/groups.md`; where a rule asks which group was first and moments are equal, the
order of the lists decides, the last column varying fastest.

**Factor form**: see `dpwindows.plan.export_factors`, whose description is written into the file too.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpwindows import reading
from dpwindows.ask import formats
from dpwindows.ask.windows import window_steps
from dpwindows.count.answers import ExactAnswers
from dpwindows.errors import InputError
from dpwindows.kernel.accounting import GAUSSIAN, NORMS
from dpwindows.kernel.designs import Design
from dpwindows.plan import export_factors
from dpwindows.plan.export_factors import Arrays, describe_inner, factors, integers
from dpwindows.strategies.strategy import PrescribedScale

if TYPE_CHECKING:
    from dpwindows.kernel.measure import Measurement
    from dpwindows.plan.planned import Planned

# Up to this horizon every weight on every window is written out.
_EXPLICIT = 24


def export_plan(plan: Planned) -> bytes:
    """The measurements of a plan, as the bytes of a `.npz` file (see the module's description).

    Raises:
        InputError: a measurement is too large to be written out.
    """
    arrays: Arrays = {}
    described = []
    for number, measurement in enumerate(plan.measurements):
        shape, factored = factors(measurement.design)
        described.append({"shape": shape, **_describe(measurement)})
        own = _arrays(measurement.design, factored)
        arrays |= {f"{number}/{name}": array for name, array in own.items()}
    description = {
        "format": formats.EXPORT,
        "steps": plan.timeline.steps,
        "unit": plan.unit.name,
        "budget": plan.budget.to_dict(),
        "singleton": plan.singleton,
        **({} if plan.grouping is None else {"groups": plan.grouping.to_dict()}),
        "measurements": described,
        "reading": f"{__doc__}\n{export_factors.__doc__}",
    }
    content = io.BytesIO()
    np.savez_compressed(content, description=np.array(json.dumps(description)), **arrays)
    return content.getvalue()


def _describe(measurement: Measurement) -> dict[str, Any]:
    design = measurement.design
    return {
        **describe_inner(design),
        "window": design.problem.window.text,
        "thresholds": list(design.problem.thresholds),
        "strategy": design.strategy,
        "parameters": dict(design.parameters),
        "noise": {"law": measurement.law, "scale": measurement.scale},
        "sensitivity": {
            "norm": "squared L2" if measurement.law == GAUSSIAN else NORMS[measurement.law],
            "bound": str(design.sensitivity),
            "proof": design.proof,
        },
        "rows": design.rows,
        **_in_groups(measurement),
    }


def _in_groups(measurement: Measurement) -> dict[str, Any]:
    """The groups of a measurement, and what is certified of all of them together."""
    if measurement.groups is None:
        return {}
    level, certificate = measurement.groups.level, measurement.certificate
    by = [measurement.groups.grouping.names[place] for place in level.kept]
    return {"groups": {"by": by, "count": level.count, "bound": str(certificate.bound), "proof": certificate.proof}}


def _arrays(design: Design, factored: Arrays) -> Arrays:
    """The arrays of one measurement, those of its factor form among them."""
    problem = design.problem
    bias = reading.of(design).bias_bound() if design.alike else None
    first, last = window_steps(problem.window, problem.steps)
    arrays: Arrays = {"first": first, "last": last, "bias_bound": np.zeros(len(first)) if bias is None else bias}
    if problem.steps <= _EXPLICIT:
        arrays |= _explicit(design)
    elif not factored:
        raise InputError(
            f"the measurement of {problem.window} by strategy {design.strategy!r} can be exported for at most "
            f"{_EXPLICIT} steps, got {problem.steps}: plan it for fewer, or choose another strategy"
        )
    return arrays | factored


# --- Explicit form --------------------------------------------------------------------------------------------------


def _of_one_window(design: Design, k: int, first: int, last: int) -> ExactAnswers:
    """The answers that are 1 for one threshold and one window, and 0 elsewhere."""
    steps = design.problem.steps
    corners = [
        (step, recency, sign)
        for step, recency, sign in (
            (last, first, 1),
            (last + 1, first, -1),
            (last, first - 1, -1),
            (last + 1, first - 1, 1),
        )
        if recency >= 1 and step <= steps
    ]
    nothing = np.zeros((3, 0), dtype=np.int64)
    return ExactAnswers(steps, dict.fromkeys(_sources(design), nothing) | {k: np.array(corners).T})


def _sources(design: Design) -> Sequence[int]:
    """The thresholds whose answers a design reads."""
    shape, thresholds = design.shape, design.problem.thresholds
    return shape.counted(thresholds) if isinstance(shape, PrescribedScale) else thresholds


def _explicit(design: Design) -> Arrays:
    """Every weight, found by measuring answers that are 0 but for one window: encoding is linear."""
    entries = list(_entries(design))
    names = ("measured", "row", "source", "first", "last", "value")
    columns: list[list[int]] = [list(column) for column in zip(*entries, strict=True)] or [[] for _ in names]
    decoders = {
        "decoder" if design.alike else f"decoder_{k}": np.array([own.decode(one) for one in np.eye(design.rows)]).T
        for k in design.problem.thresholds[: 1 if design.alike else None]
        for own in [reading.of(design.at(k))]
    }
    return {
        **{
            f"entry_{name}": integers(np.array(column, dtype=object))
            for name, column in zip(names, columns, strict=True)
        },
        **decoders,
    }


def _entries(design: Design) -> Iterator[tuple[int, int, int, int, int, int]]:
    problem = design.problem
    for source in _sources(design):
        for first in range(1, problem.steps + 1):
            for last in range(first, problem.steps + 1):
                answers = _of_one_window(design, source, first, last)
                for k in problem.thresholds:
                    encoded = design.encode(answers, k)
                    for row in np.flatnonzero(encoded):
                        yield k, int(row), source, first, last, int(encoded[row])
