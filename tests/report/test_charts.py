"""Charts for a notebook, the preview for the terminal and words for times, over made-up releases."""

from __future__ import annotations

import importlib
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console

from dpwindows.errors import InputError
from dpwindows.report import chart, chosen, preview
from dpwindows.report.clock import Clock
from dpwindows.report.figures import figures
from dpwindows.report.notebook import release_html
from dpwindows.report.series import cells, families, records
from dpwindows.report.terminal import sparkline
from tests.report.made_up import SHAPES, a_release, about

SVG = "http://www.w3.org/2000/svg"


def rows_of(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """All rows a chart carries, wherever Altair put them."""
    found = [row for rows in spec.get("datasets", {}).values() for row in rows]
    for part in (spec, *spec.get("vconcat", ()), *spec.get("layer", ())):
        found += part.get("data", {}).get("values", [])
    return found


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", SHAPES)
def test_chart_and_preview_of_every_shape(name: str) -> None:
    assert chart(SHAPES[name], about()).to_dict()["vconcat"]
    Console(width=160, quiet=True).print(preview(SHAPES[name], about()))


@pytest.mark.parametrize(
    ("asked", "left"), [({"windows": "any:5"}, 190), ({"windows": ["cumulative", "any:5"], "k": 1}, 230), ({}, 270)]
)
def test_only_what_is_asked_is_drawn(asked: dict[str, Any], left: int) -> None:
    assert chosen(SHAPES["several families"], **asked).num_rows == left


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"windows": "rolling:8"}, "no window rolling:8; it holds rolling:7, cumulative, any:5"),
        ({"k": [1, 2]}, "no k 2; it holds 1"),
        ({"groups": {"origin": "EWR"}}, "no groups named origin; it has none"),
    ],
)
def test_what_is_not_there_is_refused(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        chosen(SHAPES["several families"], **asked)


@pytest.mark.slow
def test_charts_are_valid_vega_lite() -> None:
    converter = pytest.importorskip("vl_convert")
    for name in ("several families", "one row of any", "integer time, any", "two measures"):
        svg = converter.vegalite_to_svg(chart(SHAPES[name], about()).to_dict())
        assert svg.startswith("<svg")
        assert "NaN" not in svg


@pytest.mark.parametrize(
    ("step", "steps", "words"),
    [
        ("1d", 28, "28 days"),
        ("1d", 1, "1 day"),
        ("15m", 28, "7 hours"),
        ("15m", 3, "45 minutes"),
        ("30s", 2, "1 minute"),
        ("2w", 3, "6 weeks"),
        ("1mo", 12, "12 months"),
        ("nonsense", 4, "4 steps"),
    ],
)
def test_lengths_in_words(step: str, steps: int, words: str) -> None:
    clock = Clock.of(SHAPES["rolling"], {"timeline": {"step": step}})
    assert clock.length(steps) == words


def test_hours_are_shown_with_their_time_and_an_excluded_end() -> None:
    table = SHAPES["rolling"]
    clock = Clock.of(table, {"timeline": {"step": "1h"}})
    assert not clock.dates
    assert clock.until == "until"
    assert clock.ends(clock.wall(table["end"]))[0] == "2013-02-02 00:00"


def test_integer_time_names_the_last_value_inside() -> None:
    table = SHAPES["integer time"]
    clock = Clock.of(table, {"timeline": {"step": 10}})
    assert clock.starts(clock.wall(table["start"]))[0] == "1000"
    assert clock.ends(clock.wall(table["end"]))[0] == "1009"
    assert clock.length(3) == "3 steps"


def test_heat_map_cells_are_released_windows() -> None:
    table = a_release("any:12")
    series = families(table)[0].series[0]
    clock = Clock.of(table, about())
    drawn = cells(series, clock, 5_000)
    assert (drawn.every_end, drawn.every_length) == (1, 1)
    assert len(drawn.rows) == table.num_rows
    released = {round(value, 2) for value in table["estimate"].to_pylist() if abs(value) >= 1}
    assert {row["y"] for row in drawn.rows if abs(row["y"]) >= 1} <= released
    assert all(row["x0"] < row["x1"] and row["n"] < row["n1"] for row in drawn.rows)


def test_sparkline_runs_from_lowest_to_highest() -> None:
    assert sparkline(np.arange(8.0), 8) == "▁▂▃▄▅▆▇█"
    assert sparkline(np.array([3.0, 3.0]), 8) == "▁▁"
    assert sparkline(np.array([0.0, np.nan, 1.0]), 8) == "▁ █"
    assert sparkline(np.array([]), 8) == ""
    assert len(sparkline(np.arange(1000.0), 32)) == 32


def test_preview_does_not_read_markup() -> None:
    table = SHAPES["rolling"]
    hostile = table.set_column(0, "window", pa.array(["[bold]x[/]"] * table.num_rows))
    shown = Console(width=160, color_system=None)
    with shown.capture() as text:
        shown.print(preview(hostile, about()))
    assert "[bold]x[/]" in text.get()


def test_a_day_is_the_last_day_inside_the_window_whatever_the_zone_and_daylight() -> None:
    table = a_release("cumulative", steps=60)
    rows = list(records(families(table)[0].series[0], Clock.of(table, about())))
    assert [row["b"] for row in rows][:2] == ["2013-02-01", "2013-02-02"]
    assert rows[-1]["b"] == "2013-04-01"
    day = 86_400_000
    assert {later["x"] - row["x"] for row, later in pairwise(rows)} == {day}
    assert rows[0]["x"] % day == 0


def test_long_lines_are_thinned_keep_the_last_window_and_say_so() -> None:
    table = a_release("cumulative", steps=20_000)
    (figure,) = figures(table, about()).shown
    assert figure.notes == ("Drawn: every 14th window; all of them are in the released file.",)
    rows = rows_of(chart(table, about()).to_dict())
    assert len(rows) <= 1_500
    assert rows[-1]["n"] == 20_000


def test_cut_windows_are_marked_and_meet_the_whole_ones() -> None:
    rows = rows_of(chart(SHAPES["rolling"], about()).to_dict())
    assert sum(row["cut"] for row in rows if "bridge" not in row) == 6
    bridge = [row for row in rows if "bridge" in row]
    assert len(bridge) == 1
    assert bridge[0]["cut"]


def test_without_altair_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    original = importlib.import_module

    def without(name: str, package: str | None = None) -> Any:
        if name == "altair":
            raise ModuleNotFoundError(name)
        return original(name, package)

    monkeypatch.setattr(importlib, "import_module", without)
    with pytest.raises(InputError, match=r"pip install 'dpwindows\[report\]'"):
        chart(SHAPES["rolling"], about())
    assert preview(SHAPES["rolling"], about()).row_count == 1


def test_no_rows() -> None:
    assert preview(SHAPES["several families"], about()).row_count == 3
    empty = SHAPES["rolling"].slice(0, 0)
    assert preview(empty, about()).row_count == 0
    with pytest.raises(InputError, match="no rows"):
        chart(empty, about())
    assert "no rows" in release_html(empty, about())


@pytest.mark.parametrize("name", SHAPES)
def test_a_notebook_shows_every_shape_small_and_loads_nothing(name: str) -> None:
    shown = release_html(SHAPES[name], about())
    assert shown.count("<tr>") == 1 + min(8, sum(len(family.series) for family in families(SHAPES[name])))
    assert len(shown.encode()) < 300_000
    assert "://" not in shown.replace(SVG, "")


def test_a_notebook_of_a_long_release_stays_small() -> None:
    assert len(release_html(a_release("cumulative", steps=90_000, error=1e4), about()).encode()) < 300_000


def test_the_preview_tells_the_groups() -> None:
    table = SHAPES["rolling"]
    in_groups = [
        table.add_column(table.column_names.index("first_step"), "country", pa.array([value] * len(table), pa.string()))
        for value in ("DE", "FR", None)
    ]
    shown = Console(width=160, color_system=None)
    with shown.capture() as text:
        shown.print(preview(pa.concat_tables(in_groups), about()))
    lines = text.get().splitlines()
    assert lines[0].split()[:2] == ["window", "country"]
    assert [line.split()[1] for line in lines[1:]] == ["DE", "FR", "all"]


def test_the_preview_of_groups_leaves_names_whole_in_80_columns() -> None:
    table = SHAPES["rolling"]
    place = table.column_names.index("k") + 1
    grouped = table.add_column(place, "country", pa.array(["DE"] * table.num_rows))
    shown = Console(width=80, color_system=None)
    with shown.capture() as text:
        shown.print(preview(grouped, about()))
    header = text.get().splitlines()[0].split()
    assert header[:3] == ["window", "country", "seen"]
