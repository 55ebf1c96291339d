"""A request for a ledger to pay for one release or one stream, in plain public values.

Nothing in a request depends on the data. Its canonical text decides whether two requests are the same.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from dpwindows.ask.privacy import Budget, EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod, Unit
from dpwindows.ask.timeline import Timeline, longest_step, step_phase
from dpwindows.count.events import EventColumns
from dpwindows.errors import InputError
from dpwindows.ledger.parallel import SLACK_US, Span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dpwindows.ask.queries import Query

Kind = Literal["release", "stream"]
_UNITS = (EventLevel, ItemPerPeriod, ItemLevel, ItemAddRemove)


@dataclass(frozen=True)
class Request:
    """One release, or one stream, as a ledger sees it.

    Attributes:
        asked: what is published and how, as plain JSON values, in a canonical form: windows, measures, strategy and
            all else that shapes the output. Budget, unit, timeline and columns need not be repeated.
        budget: what it spends, a stream over its whole life.
        timeline: its public range and step. A stream without end (`endless`) gives any with its start, step and zone.
        columns: how rows of the log are read: all of it, for a row that is read in two ways may count twice.
        singleton: whether its guarantee rests on the public promise of at most one event a step.
    """

    kind: Kind
    asked: dict[str, Any] = field(hash=False)
    budget: Budget
    unit: Unit
    timeline: Timeline
    columns: EventColumns
    singleton: bool = False
    endless: bool = False

    @cached_property
    def facts(self) -> dict[str, Any]:
        """Everything a ledger keeps of the request, as plain values."""
        timeline = self.timeline.to_dict() | ({"end": None} if self.endless else {})
        return {
            "kind": self.kind,
            "asked": self.asked,
            "budget": self.budget.to_dict(),
            "unit": self.unit.name,
            "singleton": self.singleton,
            "timeline": timeline,
            "columns": self.columns.facts,
        }

    @property
    def key(self) -> str:
        """A hash of the facts: two requests share it if and only if they ask for the same."""
        return hashlib.sha256(canonical(self.facts).encode()).hexdigest()

    @property
    def place(self) -> dict[str, Any]:
        """Where in time it reads, with its clock and its steps: what parallel composition needs to know.

        `start` and `end` are instants, `longest` is at least the length of any step, in the same unit. A column read
        by another format is another clock: of one event it may make two times.
        """
        first, last = (int(self.timeline.boundary_values[at]) for at in (0, -1))
        zone = "integer" if self.timeline.is_integer else self.timeline.time_zone
        columns, time_format = self.facts["columns"], self.columns.time_format
        return {
            "start": first,
            "end": None if self.endless else last,
            "clock": [zone, columns["time"], *([] if time_format is None else [time_format])],
            "grid": [self.timeline.step_text, zone, step_phase(self.timeline)],
            "longest": longest_step(self.timeline),
        }


def asked_queries(queries: Sequence[Query]) -> list[dict[str, Any]]:
    """Queries in canonical form, for `Request.asked["queries"]`."""
    return [
        {"window": query.window.text, "measures": sorted([measure.kind, measure.k] for measure in query.measures)}
        for query in queries
    ]


def canonical(values: Any) -> str:
    """JSON text that is equal for equal values."""
    return json.dumps(values, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def require_unit(unit: Unit) -> None:
    """Check that a ledger knows what a unit implies; raises `InputError` if it does not."""
    if type(unit) not in _UNITS:
        raise InputError(f"a ledger knows the units event, item, item-add-remove and item-per:L, got {unit.name!r}")


def implies(protected: Unit, wanted: Unit) -> bool:
    """True if a guarantee at the level of the unit `protected` holds at that of `wanted`, at the same budget.

    *Proof.* Neighbours of `wanted` are neighbours of `protected` in each case. One occurrence added or removed is a
    change of one item, in one step. An item added or removed is a change of one item, and so is a change of one within
    some steps; changes within L steps are changes within any more. The rest do not hold: an item that gains one
    occurrence is, for add/remove, two changes. All of it speaks of one reading of the log: of events counted alike, and
    of spans of one clock and grid (`require_fit`).
    """
    match protected, wanted:
        case ItemLevel(), _:
            return type(wanted) in _UNITS
        case ItemPerPeriod(longest), ItemPerPeriod(length):
            return length <= longest
        case ItemPerPeriod(), EventLevel():
            return True
    return protected == wanted


def span_of(place: dict[str, Any], unit: Unit) -> Span:
    """The instants at which a release counts in a ledger of this unit, by the rules that `parallel` proves."""
    span = Span(place["start"], place["end"])
    match unit:
        case EventLevel():
            return span
        case ItemPerPeriod(steps):
            slack = 0 if place["clock"][0] == "integer" else SLACK_US
            return span.widened(steps * place["longest"] + slack)
    return Span()


def require_fit(request: Request, unit: Unit, *, singleton: bool, first: dict[str, Any] | None) -> None:
    """Check that what a request promises includes what a dataset is promised, with its unit, `singleton` or not.

    Facts and place of the dataset's `first` entry set what later ones must share.

    Raises:
        InputError: it does not.
    """
    if not implies(request.unit, unit):
        raise InputError(
            f"the dataset is protected at the level of the unit {unit.name!r}, which a release at the level of "
            f"{request.unit.name!r} does not imply at its budget: ask for --unit {unit.name}"
        )
    if request.singleton and not singleton:
        raise InputError(
            "the release rests on the public promise of at most one event a step, and the dataset was created without "
            "it: leave --singleton out, or create the dataset with it"
        )
    if first is not None:
        _require_alike(request, unit, first)


def _require_alike(request: Request, unit: Unit, first: dict[str, Any]) -> None:
    """Check that what is protected is the same in the log as this request and as the first one reads it.

    - *Rows* are cut alike: what is one row by one delimiter may be several by another. And columns are known alike, by
      their names or, where files have none, by their places: nothing says which place is that of a name.
    - *Items* are those of one column, read alike.
    - *Events* are counted alike where one is protected: a row that is one event to one release is fifty to another, of
      which it protects one.
    - *Spans* of steps are of one grid and one clock: what lies within some days by one column of times may be spread
      over years by another.
    - *One event a step* is promised of the steps and the events of the first request.
    """
    columns, own = first["columns"], request.facts["columns"]
    by_item, by_step = not isinstance(unit, EventLevel), isinstance(unit, ItemPerPeriod) or request.singleton
    by_event = isinstance(request.unit, EventLevel) or request.singleton
    if own.get("layout") != columns.get("layout"):
        raise InputError(
            f"this dataset was first read from files cut into columns {_layout_text(columns)}, and this request cuts "
            f"them {_layout_text(own)}: nothing says that a row is the same by both. Read the log as before, or keep "
            "another dataset for it"
        )
    if by_item and own["item"] != columns["item"]:
        raise InputError(
            f"the items of this dataset are those of {_column_text(columns['item'])}, and a release that protects "
            f"those of {_column_text(own['item'])} does not protect them: keep another dataset for other items"
        )
    if by_item and own.get("item_type") != columns.get("item_type"):
        raise InputError(
            f"the first release of this dataset read {_column_text(own['item'])} "
            f"{'with' if columns.get('item_type') else 'without'} --item-type integer, and this one reads it "
            f"{'with' if own.get('item_type') else 'without'}: what is one item to one of them may be several to the "
            "other, so read items in one way"
        )
    if by_event and own["count"] != columns["count"]:
        raise InputError(
            f"to the first release of this dataset {_events_text(columns['count'])}, and to this one "
            f"{_events_text(own['count'])}: count them in one way, or keep another dataset for other events"
        )
    place = request.place
    if by_step and place["grid"] != first["grid"]:
        raise InputError(
            f"the first release of this dataset had steps of {_grid_text(first['grid'])}, and this one has steps of "
            f"{_grid_text(place['grid'])}: keep to one step, time zone and alignment"
        )
    if by_step and place["clock"] != first["clock"]:
        raise InputError(
            f"the first release of this dataset took times from {_clock_text(first['clock'])}, and this one takes them "
            f"from {_clock_text(place['clock'])}: keep to one column of times, read in one way"
        )


def _layout_text(columns: dict[str, Any]) -> str:
    layout = columns.get("layout", {"delimiter": None, "names": True})
    cut = "" if layout["delimiter"] is None else f", cut at --delimiter {layout['delimiter']!r}"
    return f"{'by their line of names' if layout['names'] else 'by --columns'}{cut}"


def _column_text(known: str | int) -> str:
    return f"the column {known!r}" if isinstance(known, str) else f"column {known}"


def _events_text(count: str | int | None) -> str:
    return "rows are the events" if count is None else f"units of {_column_text(count)} are the events"


def _clock_text(clock: list[Any]) -> str:
    _, column, *time_format = clock
    return _column_text(column) + "".join(f" (--time-format {text!r})" for text in time_format)


def _grid_text(grid: list[str]) -> str:
    step, zone, phase = grid
    return f"{step} ({zone}, aligned at {phase})"
