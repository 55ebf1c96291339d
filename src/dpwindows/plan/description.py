"""What a plan says of itself in everything made from it: plain values that are known before any data is seen."""

from __future__ import annotations

import platform
import uuid
from datetime import UTC, datetime
from functools import cache
from importlib import metadata as packages
from typing import Any

from dpwindows import __version__
from dpwindows.ask import formats
from dpwindows.ask.counting_rule import BOUNDED_COUNT, EVERY_OCCURRENCE
from dpwindows.kernel.accounting import GAUSSIAN, NORMS
from dpwindows.kernel.measure import OPENDP, Sampler
from dpwindows.kernel.rules import PROOFS
from dpwindows.ledger.request import asked_queries
from dpwindows.plan.allotment import Allotment
from dpwindows.plan.planned import Planned
from dpwindows.plan.stored_designs import design_to_dict

# How long a stream is, by its name in metadata, and the word for one that does not end.
HORIZON, ENDLESS = "horizon", "endless"
_HANDED_OVER = (
    "The exact counts were handed over as a file: the guarantee assumes that they are those of a log by the query that "
    "dpwindows printed, which nobody but whoever ran it can know."
)
_VERSIONED = ("duckdb", "numpy", "scipy", "python-flint", "pyarrow")


def describe(plan: Planned, *, handed_over: bool = False) -> dict[str, Any]:
    """The metadata of a release of this plan: plain values, with a new release id and the time.

    The exact counts may have been `handed_over`, rather than counted here.
    """
    return {
        "format": formats.RELEASE,
        "release_id": uuid.uuid4().hex,
        "released_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "guarantee": f"{guarantee(plan)}{f' {_HANDED_OVER}' if handed_over else ''}",
        "unit": {"name": plan.unit.name, "promise": plan.unit.promise},
        "budget": plan.budget.to_dict(),
        "singleton": plan.singleton,
        **({"exact_counts": "handed over"} if handed_over else {}),
        **_counting(plan),
        "timeline": {**plan.timeline.to_dict(), "steps": plan.timeline.steps},
        "queries": [
            {
                **({"counts": BOUNDED_COUNT} if plan.rule.bounds(query.window) else {}),
                "window": query.window.text,
                "measures": [{"measure": measure.kind, "k": measure.written_k} for measure in query.measures],
            }
            for query in plan.queries
        ],
        "notes": list(plan.notes),
        "strategy": plan.strategy,
        "criterion": plan.criterion,
        "noise": plan.noise,
        "confidence": plan.confidence,
        "measurements": [_describe_allotment(allotment, plan) for allotment in plan.allotments],
        **({} if plan.loss is None else {"loss": loss_forecast(plan, plan.loss)}),
        "forecast": [forecast.to_dict() for forecast in plan.forecast()],
        "versions": dict(library_versions(plan.noise)),
    }


def asked_of(plan: Planned) -> dict[str, Any]:
    """The request behind a plan, for a ledger to recognise: queries, shares and how strategies are chosen."""
    return {
        "queries": asked_queries(plan.queries),
        "shares": [allotment.share for allotment in plan.allotments],
        **({} if plan.loss is None else {"loss": plan.loss.share}),
        "strategy": plan.strategy,
        "criterion": plan.criterion,
        "noise": plan.noise,
        "confidence": plan.confidence,
        **_counting(plan),
    }


def loss_forecast(plan: Planned, loss: Allotment) -> dict[str, Any]:
    """A description of the number of items that lost something, with its error, before data are seen."""
    (measure,) = loss.query.measures
    described = _describe_allotment(loss, plan)
    left_out = ("groups", "together")
    return {
        "of": plan.rule.loss,
        "std_error": float(loss.std_errors(measure)[0]),
        "half_width": float(loss.half_widths(measure, plan.confidence)[0]),
        **{name: value for name, value in described.items() if name not in left_out},
    }


def _counting(plan: Planned) -> dict[str, Any]:
    """The rule of counting and the groups, where there are."""
    rule = {"counting": plan.rule.to_dict()} if plan.rule != EVERY_OCCURRENCE else {}
    return rule if plan.grouping is None else rule | {"groups": plan.grouping.to_dict()}


@cache
def library_versions(noise: Sampler) -> dict[str, str]:
    """The versions of everything that a release with noise by this sampler depends on."""
    ours = {"python": platform.python_version(), "dpwindows": __version__}
    return ours | {name: packages.version(name) for name in (*_VERSIONED, *([OPENDP] if noise == OPENDP else []))}


def guarantee(plan: Planned, over: str = "this release") -> str:
    """What a release promises, in plain words; the part before the first colon is the claim itself."""
    unit = plan.unit
    condition = " It assumes the public promise that every step holds at most one event." if plan.singleton else ""
    counting = f" {plan.rule.promise}" if plan.rule.promise else ""
    counting += "" if plan.grouping is None else f" {plan.grouping.statement(unit)}"
    others = "other releases" if over == "this release" else "releases outside the stream"
    return (
        f"{over[0].upper()}{over[1:]} satisfies {plan.budget} differential privacy at the level of the unit "
        f"'{unit.name}': {unit.promise} The guarantee covers all numbers of {over} together, whatever else an attacker "
        f"knows; {others} about the same log spend further budget.{condition}{counting}"
    )


def _describe_allotment(allotment: Allotment, plan: Planned) -> dict[str, Any]:
    measurement = allotment.measurement
    design = measurement.design
    gaussian = measurement.law == GAUSSIAN
    bound, by = measurement.certificate.bound, allotment.by
    together = [one.query.window.text for one in plan.allotments if one.series is not None]
    groups = {} if by is None else {"by": list(by), "count": allotment.groups, "proof": measurement.certificate.proof}
    return {
        "window": allotment.query.window.text,
        "thresholds": [] if design.problem.counts_occurrences else list(design.problem.thresholds),
        "strategy": design.strategy,
        "parameters": dict(design.parameters),
        "noise": {"law": measurement.law, "scale": measurement.scale, "unit": "lattice units"},
        "sensitivity": {
            "norm": NORMS[measurement.law],
            "value": bound**0.5 if gaussian else float(bound),
            "bound": str(bound),
            "bound_is": "squared L2 norm" if gaussian else f"{NORMS[measurement.law]} norm",
            "unit": "lattice units",
            "proof": design.proof,
            **({} if design.certificate.of_one is None else {"proof_of_one": design.certificate.of_one}),
            # The source file of this version, below the package.
            "proved_in": PROOFS[design.proof].__module__.removeprefix("dpwindows.").replace(".", "/") + ".py",
        },
        "numbers_measured": measurement.cost.rows,
        "budget_share": allotment.share,
        **({} if by is None else {"groups": groups}),
        # One measurement of all of these: noise, sensitivity and numbers measured are those of it.
        **({} if allotment.series is None else {"together": together}),
        "integers": design_to_dict(design),
    }
