"""Charts for a notebook, the preview for the terminal and words for times, over made-up releases."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console

from dpwindows.errors import InputError
from dpwindows.release.release import Plot
from dpwindows.report import chosen, preview
from dpwindows.report.charts import counts, times
from dpwindows.report.clock import Clock
from dpwindows.report.figures import Figure, figures
from dpwindows.report.notebook import plot_html, plot_page, plot_picture, release_html
from dpwindows.report.series import families
from dpwindows.report.terminal import sparkline
from dpwindows.report.words import in_words
from tests.report.made_up import SHAPES, a_release, about, check_page

NAMESPACE = "http://www.w3.org/2000/svg"


def figures_of(table: pa.Table) -> list[Figure]:
    return figures(families(table), Clock.of(table, about()), about())


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", SHAPES)
def test_charts_and_preview_of_every_shape(name: str) -> None:
    table = SHAPES[name]
    drawn = plot_picture(table, about())
    assert ElementTree.fromstring(drawn).tag == f"{{{NAMESPACE}}}svg"
    for text in (drawn, plot_html(table, about())):
        assert not re.search(r"\bnan\b|inf[%\" ]", text, re.I)
        assert "://" not in text.replace(NAMESPACE, "")
    assert "var(" not in drawn, "other programs than browsers know no variables"
    check_page(plot_page(table, about()))
    Console(width=160, quiet=True).print(preview(table, about()))


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


def test_every_cell_of_a_map_is_a_released_window_in_the_colour_of_its_count() -> None:
    table = a_release("any:12", level=700.0)
    (figure,) = figures_of(table)
    chart = figure.panels[0].chart
    assert figure.panels[0].along == "both"
    seen = dict[tuple[int, int], int]()
    for colour, runs in re.findall(r'fill="var\(--h(\d)\)"[^>]* d="([^"]+)"', chart.lines):
        for at, top, wide in re.findall(r"M(\d+) (\d+)h(\d+)v1h-\d+z", runs):
            for end in range(int(at), int(at) + int(wide)):
                assert (end, 11 - int(top)) not in seen
                seen[end, 11 - int(top)] = int(colour)
    froms = [float(text.removeprefix("from ").replace(",", "").replace("\u2212", "-")) for _, text in chart.legend]
    expected = {
        (row["last_step"] - 1, row["last_step"] - row["first_step"]): sum(row["estimate"] >= one for one in froms[1:])
        for row in table.to_pylist()
    }
    assert seen == expected
    assert len(set(expected.values())) > 4


def test_a_line_is_where_its_numbers_are() -> None:
    table = a_release("cumulative", steps=60)
    (figure,) = figures_of(table)
    chart = figure.panels[0].chart
    (drawn,) = re.findall(r'd="M([^"]+)" class="line"', chart.lines)
    places = np.array([[float(part) for part in place.split()] for place in drawn.split("L")]) / 1000
    assert places[:, 0] == pytest.approx(np.arange(60) / 59, abs=1e-4)
    heights = chart.y.low + (1 - places[:, 1]) * (chart.y.high - chart.y.low)
    assert heights == pytest.approx(table["estimate"].to_numpy(), abs=1e-4 * (chart.y.high - chart.y.low))
    (band,) = re.findall(r'd="M([^"]+)Z"', chart.lines)
    assert band.count("L") == 2 * 60 - 1


@pytest.mark.parametrize(
    ("low", "high", "first", "step"),
    [
        ("2013-01-01T00:00", "2013-01-01T05:00", "00:00", "01:00"),
        ("2013-01-01T00:00", "2013-01-05T00:00", "2013-01-01", "2013-01-02"),
        ("2013-01-15T00:00", "2013-06-15T00:00", "2013-02", "2013-03"),
        ("2012-05-01T00:00", "2016-05-01T00:00", "2013", "2014"),
    ],
)
def test_marks_of_time_are_round(low: str, high: str, first: str, step: str) -> None:
    ends = [int(np.datetime64(end, "ms").astype(np.int64)) for end in (low, high)]
    marks = [text for _, text in times(*ends).marks]
    assert 3 <= len(marks) <= 7
    assert marks[1 if first == "00:00" else 0 :][:2] == ([first, step] if first != "00:00" else [step, "02:00"])


@pytest.mark.parametrize("values", [[0.0], [3.0, 740.0], [-12.0, 5.0], [-500.0, -400.0], [0.02, 0.05], [1e12, -1e12]])
def test_an_axis_of_counts_holds_zero_and_all_values(values: list[float]) -> None:
    axis = counts(np.array(values))
    assert axis.low == min(0.0, *values)
    assert axis.high >= max(0.0, *values)
    assert axis.high > axis.low
    assert 0.0 in [at for at, _ in axis.marks]
    assert len({text for _, text in axis.marks}) == len(axis.marks) <= 7


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
    clock = Clock.of(table, about())
    (family,) = families(table)
    ends = clock.wall(family.main.rows["end"])
    assert clock.ends(ends)[:2] == ["2013-02-01", "2013-02-02"]
    assert in_words(family.main, -1, clock).end == "2013-04-01"
    places = clock.positions(ends)
    assert {later - place for place, later in pairwise(places)} == {86_400_000}
    assert places[0] % 86_400_000 == 0


def test_long_lines_are_thinned_keep_the_last_window_and_say_so() -> None:
    (figure,) = figures_of(a_release("cumulative", steps=20_000))
    assert "Drawn is one window in 14." in figure.notes
    (drawn,) = re.findall(r'd="M([^"]+)" class="line"', figure.panels[0].chart.lines)
    assert 1_000 < drawn.count("L") < 1_500
    assert drawn.rpartition("L")[2].startswith("1000.0 ")


def test_cut_windows_are_dashed_and_meet_the_whole_ones() -> None:
    (figure,) = figures_of(a_release(steps=60))
    dashed, whole = re.findall(
        r'd="M([^"]+)" class="line"[^>]*?( stroke-dasharray="4 3")?/>', figure.panels[0].chart.lines
    )
    assert dashed[1]
    assert dashed[0].count("L") == 5
    assert not whole[1]
    assert dashed[0].rpartition("L")[2] == whole[0].partition("L")[0]
    assert any(note.startswith("Dashed") for note in figure.notes)


def test_a_plot_is_saved_as_a_picture_or_a_page_and_replaces_nothing(tmp_path: Path) -> None:
    plot = Plot(SHAPES["rolling"], about())
    assert "<svg" in plot._repr_html_()
    for name, begin in (("plot.svg", "<svg xmlns"), ("plot.html", "<!DOCTYPE html>")):
        plot.save(tmp_path / name)
        written = (tmp_path / name).read_text(encoding="utf-8")
        assert written.startswith(begin)
        with pytest.raises(InputError, match="exists already"):
            plot.save(tmp_path / name)
        plot.save(tmp_path / name, force=True)
    with pytest.raises(InputError, match=r"must end in \.html or \.svg"):
        plot.save(tmp_path / "plot.png")


def test_no_rows() -> None:
    assert preview(SHAPES["several families"], about()).row_count == 3
    empty = SHAPES["rolling"].slice(0, 0)
    assert preview(empty, about()).row_count == 0
    with pytest.raises(InputError, match="no rows"):
        plot_html(empty, about())
    assert "no rows" in release_html(empty, about())


@pytest.mark.parametrize("name", SHAPES)
def test_a_notebook_shows_every_shape_small_and_loads_nothing(name: str) -> None:
    shown = release_html(SHAPES[name], about())
    assert shown.count("<tr>") == 1 + min(8, sum(len(family.series) for family in families(SHAPES[name])))
    assert len(shown.encode()) < 300_000
    assert "://" not in shown.replace(NAMESPACE, "")


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
