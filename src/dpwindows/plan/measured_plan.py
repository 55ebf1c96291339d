"""The plan of a release or a stream that exists, with the very integers that it was measured by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Protocol

from dpwindows.ask.counting_rule import CountingRule
from dpwindows.ask.privacy import parse_budget, parse_unit
from dpwindows.ask.queries import Measure, PeriodFamily, Query, parse_window, query_name
from dpwindows.ask.shapes import read_shape
from dpwindows.ask.timeline import Timeline
from dpwindows.ask.whole_numbers import LARGEST_COUNT, MAX_DRAWS
from dpwindows.errors import InputError
from dpwindows.kernel.measure import Measurement
from dpwindows.plan.allotment import Allotment, Alternative
from dpwindows.plan.description import ENDLESS, HORIZON
from dpwindows.plan.plan import Plan
from dpwindows.plan.planned import Planned
from dpwindows.plan.rebuilt import rebuilt, thresholds_of
from dpwindows.plan.shapes import Forecast
from dpwindows.plan.sharing import Part
from dpwindows.plan.stream_plan import StreamPlan


class Described(Protocol):
    """An object with metadata, such as a `Release`."""

    @property
    def metadata(self) -> Mapping[str, Any]:
        """What it says of itself."""
        ...


def plan_of(release: Described, *, steps: int | None = None) -> Plan | StreamPlan:
    """The plan that a release was made by, from what it says of itself; nothing is searched for.

    Its measurements, their noise and its forecast are those of the release, whatever this version would choose for the
    same queries. So an audit or an export of it speaks of the numbers that were published.

    Args:
        release: a release, or rows of a stream.
        steps: of a stream, how many of its first steps the plan is to be looked at for.

    Raises:
        InputError: the release does not say enough, this version knows no such measurement, or it is no release.

    Example:
        `audit_exactly(plan_of(Release.load("out.parquet")))`
    """
    metadata: Any = getattr(release, "metadata", None)
    if not isinstance(metadata, Mapping):
        raise InputError(f"plan_of takes a release, got {release!r}: load it, dw.plan_of(dw.Release.load(path))")
    streamed = metadata.get("stream") is not None
    if steps is not None and not (streamed and steps >= 1):
        raise InputError(
            f"a plan over {steps} steps is for streams, of at least 1 step: the plan of a release is of all its steps"
        )
    try:
        return MeasuredStreamPlan(metadata, steps) if streamed else MeasuredPlan(metadata)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"the release does not say what it was planned by ({type(error).__name__}: {error})") from None


class _Measured(Planned):
    """What both kinds have in common."""

    _metadata: Mapping[str, Any]

    def _by_threshold(self, parts: Sequence[Part]) -> list[Part]:
        """As they were measured."""
        known = iter((entry["window"], set(thresholds_of(entry))) for entry in self._metadata["measurements"])
        found: list[Part] = []
        for part in parts:
            query = part.query
            while query.measures:
                window, thresholds = next(known, ("", set()))
                own = tuple(one for one in query.measures if thresholds.issuperset(one.thresholds))
                if window != query.window.text or not own:
                    raise ValueError(f"{query.window} was measured for other k than were asked")
                found.append(replace(part, query=Query(query.window, own)))
                query = Query(query.window, tuple(one for one in query.measures if one not in own))
        return found

    def _allotted(self, parts: Sequence[Part], last_step: int | None) -> tuple[Allotment, ...]:
        metadata = self._metadata
        entries = [*metadata["measurements"], *([metadata["loss"]] if metadata.get("loss") else [])]
        known: dict[str, Measurement] = {}
        allotments = []
        for part, entry in zip(parts, entries, strict=True):
            if set(thresholds_of(entry)) != set(part.query.thresholds):
                raise ValueError(f"{entry['window']} was measured for other k than were asked")
            together = entry.get("together") or []
            measurement = known.get(str(together)) if together else None
            measurement = rebuilt(metadata, entry) if measurement is None else measurement
            if together:
                known[str(together)] = measurement
            series = together.index(entry["window"]) if together else None
            chosen = Alternative(entry["strategy"], 0.0)
            allotments.append(Allotment(part.query, measurement, float(entry["budget_share"]), chosen, (), series))
        return tuple(allotments)

    @cached_property
    def _forecast(self) -> tuple[Forecast, ...]:
        return tuple(read_shape(entry, Forecast) for entry in self._metadata["forecast"])


class MeasuredPlan(_Measured, Plan):
    """The plan of a batch release; `plan_of` makes it."""

    def __init__(self, metadata: Mapping[str, Any]) -> None:
        self._metadata = metadata
        loss = float(metadata["loss"]["budget_share"]) if metadata.get("loss") else None
        timeline = Timeline.from_dict(metadata["timeline"])
        super().__init__(**_asked(metadata), timeline=timeline, singleton=metadata["singleton"], estimate_loss=loss)
        self.max_draws = max(MAX_DRAWS, self.workload.draws)


class MeasuredStreamPlan(_Measured, StreamPlan):
    """The plan of a stream; `plan_of` makes it."""

    def __init__(self, metadata: Mapping[str, Any], steps: int | None = None) -> None:
        self._metadata = metadata
        horizon = None if metadata[HORIZON] == ENDLESS else int(metadata[HORIZON])
        asked, timeline = _asked(metadata), metadata["timeline"]
        clock = {name: timeline[name] for name in ("start", "step", "time_zone")}
        periods = any(isinstance(query.window, PeriodFamily) for query in asked["queries"])
        super().__init__(**asked, horizon=horizon, **(clock if periods else {}))
        if steps is not None:
            self.timeline = Timeline.of_steps(min(steps, self.timeline.steps))
            self.allotments = tuple(self._with_forecast(one, self.timeline.steps) for one in self.allotments)
        self.max_draws = max(MAX_DRAWS, self.workload.draws)


def _asked(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that `Plan` and `StreamPlan` share."""
    budget, groups = metadata["budget"], metadata.get("groups")
    grouped = {} if groups is None else {name: groups[name] for name in ("group_of", "max_groups", "totals")}
    shares: dict[str, float] = {}
    for entry in metadata["measurements"]:
        name = query_name(entry["window"], occurrences=not entry["thresholds"])
        shares[name] = shares.get(name, 0.0) + float(entry["budget_share"])
    return {
        "queries": [
            Query(
                parse_window(query["window"]), tuple(Measure.of(one["measure"], one["k"]) for one in query["measures"])
            )
            for query in metadata["queries"]
        ],
        "unit": parse_unit(metadata["unit"]["name"]),
        "budget": parse_budget(budget.get("epsilon"), budget.get("delta"), budget.get("rho")),
        "strategy": metadata["strategy"],
        "criterion": metadata["criterion"],
        "noise": metadata["noise"],
        "weights": shares,
        **CountingRule(**metadata.get("counting", {})).__dict__,
        "confidence": metadata["confidence"],
        "max_draws": LARGEST_COUNT,
        **({} if groups is None else {"by": {one["name"]: one["values"] for one in groups["columns"]}, **grouped}),
    }
