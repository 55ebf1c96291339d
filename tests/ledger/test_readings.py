"""Whatever decides how a row is read is part of what a ledger and a stream remember, or is listed here with its reason.

A new field of what a count is asked with fails the first test until somebody says where it belongs.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

import dpwindows as dw
from dpwindows.ask.groups import grouping
from dpwindows.ask.privacy import Unit
from dpwindows.count.events import CsvLayout, EngineSettings, EventColumns
from dpwindows.count.request import CountRequest
from dpwindows.errors import InputError
from dpwindows.ledger.request import Request, require_fit
from dpwindows.plan.plan import Plan
from dpwindows.release.once import batch_request
from tests.ledger.requests import request

UNNAMED = CsvLayout(",", ("who", "at", "times", "other", "kind"))
COLUMNS = EventColumns("who", "at", "times", layout=UNNAMED)
MONTH = dw.Timeline("2013-01-01", "2013-02-01")

# By the field: where a ledger has it, and another value of it. All of them are in the key besides.
READING: dict[tuple[type, str], tuple[str, Any]] = {
    (EventColumns, "item"): ("alike", "other"),
    (EventColumns, "time"): ("clock", "other"),
    (EventColumns, "count"): ("alike", "other"),
    (EventColumns, "time_format"): ("clock", "epoch-s"),
    (EventColumns, "layout"): ("alike", None),
    (EventColumns, "item_type"): ("alike", "integer"),
    # Each release protects its units whatever groups it counts them in: the sum of two needs nothing else.
    (EventColumns, "grouping"): ("key", grouping({"kind": ["a", "b"]})),
    (CsvLayout, "delimiter"): ("alike", ";"),
    (CsvLayout, "names"): ("alike", None),
    (CountRequest, "timeline"): ("clock", dw.Timeline("2013-01-01", "2013-02-01", time_zone="Europe/Paris")),
    # Which occurrences count, and for what: a matter of one release, as its groups are.
    (CountRequest, "wanted"): ("key", {"distinct_steps": True}),
}
ALL_ENGINES = "every engine counts one log to the same integers: tests/count/engines/test_conformance.py"
NO_PART = {
    (CountRequest, "source"): "which log it is: that all releases of a dataset are of one log, in whose files, tables "
    "and frames a column of one name holds one thing, is the promise of whoever names the dataset",
    (CountRequest, "table"): "as the source: another table is another log",
    (CountRequest, "columns"): "its fields are above",
    (CountRequest, "settings"): "its fields are below",
    (EngineSettings, "engine"): ALL_ENGINES,
    (EngineSettings, "spark_master"): ALL_ENGINES,
    (EngineSettings, "memory_limit"): "how much memory there is changes no count",
    (EngineSettings, "spill_directory"): "where an engine spills to changes no count",
    (EngineSettings, "threads"): "how many threads count changes no count",
    (EngineSettings, "progress"): "what is shown",
    (EngineSettings, "password_file"): "who may read the log, and not how",
}
OTHER_UNITS = (dw.EventLevel(), dw.ItemLevel(), dw.ItemPerPeriod(3))


def test_every_field_that_decides_how_a_row_is_read_is_listed() -> None:
    known = {
        (kind, field.name) for kind in (EventColumns, CsvLayout, CountRequest, EngineSettings) for field in fields(kind)
    }
    assert set(READING) | set(NO_PART) == known
    assert not set(READING) & set(NO_PART)


def asked(columns: EventColumns = COLUMNS, timeline: dw.Timeline = MONTH, **options: Any) -> Request:
    plan = Plan([dw.Cumulative()], timeline=timeline, unit=dw.EventLevel(), budget=dw.PureDP(1.0), **options)
    return batch_request(plan, columns)


def changed(field: tuple[type, str]) -> Request:
    """The same request, but for one field."""
    (kind, name), (_, value) = field, READING[field]
    if kind is EventColumns:
        return asked(replace(COLUMNS, **{name: value}))
    if kind is CsvLayout:
        return asked(replace(COLUMNS, layout=replace(UNNAMED, **{name: value})))
    return asked(timeline=value) if name == "timeline" else asked(**value)


def alike(one: Request, other: Request, unit: Unit) -> bool:
    """Whether a dataset of the unit that has the one admits the other, both at that level."""
    one, other = replace(one, unit=unit), replace(other, unit=unit)
    try:
        require_fit(other, unit, singleton=False, first=one.facts | one.place)
    except InputError:
        return False
    return True


@pytest.mark.parametrize("field", READING, ids=lambda field: f"{field[0].__name__}.{field[1]}")
def test_a_ledger_knows_it_again_where_the_list_says(field: tuple[type, str]) -> None:
    first, other, (where, _) = asked(), changed(field), READING[field]
    assert other.key != first.key
    if where != "alike":
        assert (other.place["clock"] != first.place["clock"]) == (where == "clock")
    for unit in OTHER_UNITS:
        assert alike(first, first, unit)
    refused = [unit.name for unit in OTHER_UNITS if not alike(first, other, unit)]
    assert bool(refused) == (where in ("alike", "clock")), "spans of steps are of one clock"
    if where == "clock":
        assert refused == ["item-per:3"], "the others count a release by another clock everywhere"


@pytest.mark.parametrize("field", READING, ids=lambda field: f"{field[0].__name__}.{field[1]}")
def test_a_stream_remembers_it(field: tuple[type, str]) -> None:
    """But for groups, which it describes."""
    columns = replace(changed(field).columns, grouping=None)
    assert EventColumns.from_dict(columns.to_dict()) == columns


def test_what_columns_without_a_line_of_names_are_called_changes_nothing() -> None:
    renamed = EventColumns("a", "b", "c", layout=CsvLayout(None, ("a", "b", "c", "d", "e")))
    assert renamed.facts == COLUMNS.facts
    assert asked(renamed).key == asked().key
    assert asked(renamed).place == asked().place
    swapped = replace(COLUMNS, layout=CsvLayout(",", ("who", "other", "times", "at", "kind")))
    assert asked(swapped).place["clock"] == ["UTC", 4]
    assert asked(swapped).key != asked().key


def test_what_is_left_out_reads_alike_however_it_is_left_out() -> None:
    plain = EventColumns("who", "at")
    assert plain.facts == plain.to_dict() == {"item": "who", "time": "at", "count": None}
    for same in (EventColumns("who", "at", layout=CsvLayout()), EventColumns("who", "at", time_format="iso")):
        assert same == plain
    assert COLUMNS.facts == {"item": 1, "time": 2, "count": 3, "layout": {"delimiter": ",", "names": False}}
    named = EventColumns("who", "at", layout=CsvLayout("tab"), grouping=grouping({"kind": ["a"]}))
    assert named.facts["layout"] == {"delimiter": "\t", "names": True}
    assert named.facts["grouping"] == ["kind"]


def test_a_refusal_says_how_rows_were_read_and_are_now() -> None:
    named, unnamed = request(dw.PureDP(1.0)), request(dw.PureDP(1.0), layout=CsvLayout(";", ("at", "who")))
    with pytest.raises(InputError) as raised:
        require_fit(unnamed, dw.EventLevel(), singleton=False, first=named.facts | named.place)
    assert "cut into columns by their line of names, and this request cuts them by --columns" in str(raised.value)
    assert "by --columns, cut at --delimiter ';'" in str(raised.value)


@pytest.mark.parametrize(
    ("unit", "change", "said"),
    [
        (dw.ItemLevel(), {"item": "other"}, "of column 1, and a release that protects those of column 4 does not"),
        (dw.EventLevel(), {"count": "other"}, "to the first release of this dataset units of column 3 are the events"),
        (dw.ItemPerPeriod(3), {"time": "other"}, "took times from column 2, and this one takes them from column 4"),
    ],
    ids=["items", "events", "times"],
)
def test_a_refusal_names_columns_without_names_by_their_places(unit: Unit, change: dict[str, Any], said: str) -> None:
    first, other = (replace(asked(columns), unit=unit) for columns in (COLUMNS, replace(COLUMNS, **change)))
    with pytest.raises(InputError) as raised:
        require_fit(other, unit, singleton=False, first=first.facts | first.place)
    assert said in str(raised.value)
    assert "column 'other'" not in str(raised.value)
