"""Charts, page and terminal preview over made-up releases of every awkward shape."""

from __future__ import annotations

import datetime as dt
import importlib
import json
import re
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console

from dpwindows.errors import InputError
from dpwindows.report import chart, page, preview
from dpwindows.report.clock import Clock
from dpwindows.report.figures import figures
from dpwindows.report.series import cells, families
from dpwindows.report.terminal import sparkline

NEW_YORK = ZoneInfo("America/New_York")
EVIL = "<script>alert('x')</script>\"&</style><img src=http://evil.example/x.png>"


def a_release(
    window: str = "rolling:7",
    measures: tuple[tuple[str, int], ...] = (("at_least", 1),),
    steps: int = 40,
    level: float = 100.0,
    error: float = 9.5,
    zone: str | None = "America/New_York",
    bias: float = 0.0,
) -> pa.Table:
    """A made-up release: one family, daily steps (or integer ones without a zone), waves with noise around `level`."""
    first, last = _windows(window, steps)
    rng = np.random.default_rng(7)
    parts = []
    for measure, k in measures:
        estimate = level / k * (1 + np.sin(last / 9)) + error * rng.standard_normal(len(last))
        parts.append(
            pa.table(
                {
                    "window": pa.array([window] * len(last)),
                    "measure": pa.array([measure] * len(last)),
                    "k": pa.array([k] * len(last), pa.int64()),
                    "first_step": first,
                    "last_step": last,
                    "start": _times(first - 1, zone),
                    "end": _times(last, zone),
                    "complete": ~((first == 1) & np.full(len(last), window.startswith("rolling"))) | (last == 7),
                    "estimate": estimate,
                    "std_error": np.full(len(last), error),
                    "bias_bound": np.full(len(last), bias),
                    "lower": estimate - 1.96 * error - bias,
                    "upper": estimate + 1.96 * error + bias,
                    "consistent": pa.nulls(len(last), pa.int64()),
                }
            )
        )
    return pa.concat_tables(parts)


def _windows(window: str, steps: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    family, _, size = window.partition(":")
    last = np.arange(1, steps + 1)
    if family == "cumulative":
        return np.ones_like(last), last
    if family == "rolling":
        return np.maximum(1, last - int(size) + 1), last
    longest = int(size or steps)
    first_all, last_all = np.meshgrid(last, last, indexing="xy")
    kept = (first_all <= last_all) & (last_all - first_all < longest)
    return first_all[kept], last_all[kept]


def _times(steps: np.ndarray[Any, Any], zone: str | None) -> pa.Array:
    if zone is None:
        return pa.array(steps * 10 + 1000, pa.int64())
    start = dt.datetime(2013, 2, 1)
    distinct = {int(step): (start + dt.timedelta(days=int(step))).replace(tzinfo=ZoneInfo(zone)) for step in set(steps)}
    return pa.array([distinct[int(step)] for step in steps], pa.timestamp("us", zone))


def about(**changed: Any) -> dict[str, Any]:
    return {
        "format": 1,
        "release_id": "0f1e2d3c",
        "released_at": "2026-01-02T03:04:05Z",
        "timeline": {
            "start": "2013-02-01",
            "end": "2013-03-13",
            "step": "1d",
            "time_zone": "America/New_York",
            "steps": 40,
        },
        "queries": [{"window": "rolling:7", "measures": [{"measure": "at_least", "k": 1}]}],
        "unit": {"name": "event", "promise": "Protects each single occurrence."},
        "budget": {"kind": "approximate", "epsilon": 1.0, "delta": 1e-6},
        "guarantee": "Almost as likely either way.",
        "singleton": False,
        "confidence": 0.95,
        "measurements": [
            {
                "window": "rolling:7",
                "thresholds": [1],
                "strategy": "filter",
                "parameters": {"alpha": 0.5, "bits": 20, "long": list(range(1000))},
                "noise": {"law": "discrete Gaussian", "scale": 123.5, "unit": "lattice"},
                "sensitivity": {"norm": "L2", "value": 2.5, "proof": "dpwindows.kernel.bounds.sensitivity.runs"},
                "budget_share": 0.25,
            }
        ],
        "forecast": [
            {
                "window": "rolling:7",
                "measure": "at_least",
                "k": 1,
                "strategy": "filter",
                "rms": 9.5,
                "max": 9.5,
                "limit": None,
                "ratio_to_limit": None,
            }
        ],
        "versions": {"dpwindows": "0.1.0"},
    } | changed


class Reader(HTMLParser):
    """Collects what a browser would: elements, text outside scripts and styles, and contents of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.inside: dict[str, list[str]] = {"script": [], "style": []}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "br", "wbr"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in self.inside:
            self.inside[self.open[-1]].append(data)
        else:
            self.text += data

    def specs(self) -> list[dict[str, Any]]:
        kinds = [attrs.get("type") for tag, attrs in self.elements if tag == "script"]
        assert len(kinds) == len(self.inside["script"])
        contents = zip(kinds, self.inside["script"], strict=True)
        return [json.loads(content) for kind, content in contents if kind == "application/json"]


def rows_of(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """All rows a chart carries, wherever Altair put them."""
    found = [row for rows in spec.get("datasets", {}).values() for row in rows]
    for part in (spec, *spec.get("layer", ())):
        found += part.get("data", {}).get("values", [])
    return found


def check_page(text: str) -> Reader:
    """Every page parses, refers to nothing outside itself, and stays light enough to mail."""
    reader = Reader(text)
    assert reader.open == []
    for tag, attributes in reader.elements:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "audio", "video")
        assert not {"src", "srcset", "href", "action", "data", "poster"} & attributes.keys()
        assert not any(name.startswith("on") for name in attributes)
    assert not any(re.search(r"url\(|@import", style) for style in reader.inside["style"])
    policy = [attrs["content"] for tag, attrs in reader.elements if "http-equiv" in attrs]
    assert policy
    assert str(policy[0]).startswith("default-src 'none'")
    assert "eval" not in str(policy[0])
    assert "http:" not in str(policy[0])
    assert len(text.encode()) < 5_000_000
    drawn = [attrs["data-chart"] for _, attrs in reader.elements if "data-chart" in attrs]
    ids = [attrs["id"] for _, attrs in reader.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert set(drawn) <= set(ids)
    assert len(reader.specs()) == len(drawn)
    return reader


SHAPES = {
    "rolling": a_release(),
    "two measures": a_release(measures=(("at_least", 1), ("exactly", 3))),
    "many measures": a_release(measures=tuple(("at_least", k) for k in range(1, 15))),
    "cumulative": a_release("cumulative"),
    "any with a longest": a_release("any:12"),
    "any": a_release("any"),
    "one row": a_release("cumulative", steps=1),
    "one row of any": a_release("any", steps=1),
    "window longer than the range": a_release("rolling:100"),
    "integer time": a_release(zone=None),
    "integer time, any": a_release("any:5", zone=None),
    "one row of integer time": a_release("any", steps=1, zone=None),
    "all negative": a_release(level=-500.0),
    "zero": a_release(level=0.0, error=0.0),
    "no noise": a_release(error=0.0),
    "drowned in noise": a_release("any:9", error=1e12),
    "biased": a_release(bias=3.0),
    "several families": pa.concat_tables([a_release("rolling:7"), a_release("cumulative"), a_release("any:5")]),
}


@pytest.mark.parametrize("name", SHAPES)
def test_page_chart_and_preview_of_every_shape(name: str) -> None:
    table = SHAPES[name]
    reader = check_page(page(table, about()))
    assert reader.specs()
    assert sum(len(rows_of(spec)) for spec in reader.specs()) > 0
    assert chart(table, about()).to_dict()["vconcat"]
    Console(width=160, quiet=True).print(preview(table, about()))


def test_charts_are_valid_vega_lite() -> None:
    converter = pytest.importorskip("vl_convert")
    for name in ("several families", "one row of any", "integer time, any", "two measures"):
        svg = converter.vegalite_to_svg(chart(SHAPES[name], about()).to_dict())
        assert svg.startswith("<svg")
        assert "NaN" not in svg


def test_page_says_guarantee_budget_errors_and_making() -> None:
    text = check_page(page(SHAPES["two measures"], about())).text
    for said in (
        "Protects each single occurrence.",
        "Almost as likely either way.",
        "approximate differential privacy",
        "ε = 1",
        "δ = 10⁻⁶",
        "Items seen in the last 7 days",
        "2013-03-12",
        "discrete Gaussian",
        "scale 123.5",
        "L2 2.5",
        "dpwindows.kernel.bounds.sensitivity.runs",
        "25%",
        "0f1e2d3c",
        "dpwindows 0.1.0",
        "America/New_York",
        "Dashed: windows cut at the first step",
    ):
        assert said in text


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        ({"kind": "pure", "epsilon": 0.5}, "pure differential privacy ε = 0.5"),
        ({"kind": "zcdp", "rho": 0.125}, "zero-concentrated differential privacy ρ = 0.125"),
    ],
)
def test_other_budgets(budget: dict[str, Any], said: str) -> None:
    assert said in re.sub(r"\s+", " ", check_page(page(SHAPES["rolling"], about(budget=budget))).text)


def test_singleton_and_bias_are_said() -> None:
    text = check_page(page(SHAPES["biased"], about(singleton=True, notes=["This is a note."]))).text
    assert "This is a note." in text
    assert "at most one event in each step" in text
    assert "bias" in text


def test_text_from_metadata_is_escaped() -> None:
    hostile = json.loads(json.dumps(about()), object_hook=lambda found: found)
    for key in ("release_id", "released_at", "guarantee"):
        hostile[key] = EVIL
    hostile["unit"] = {"name": EVIL, "promise": EVIL}
    hostile["timeline"] |= {"time_zone": EVIL, "start": EVIL, "end": EVIL, "step": EVIL, "steps": EVIL}
    hostile["budget"] = {"kind": EVIL, "epsilon": EVIL}
    hostile["versions"] = {EVIL: EVIL}
    hostile["notes"] = [EVIL]
    hostile["measurements"][0] |= {"strategy": EVIL, "window": EVIL, "parameters": {EVIL: EVIL}, "budget_share": EVIL}
    hostile["measurements"][0] |= {"noise": {"law": EVIL, "scale": EVIL, "unit": EVIL}, "thresholds": [EVIL]}
    hostile["measurements"][0]["sensitivity"] = {"norm": EVIL, "value": EVIL, "proof": EVIL}
    hostile["forecast"][0] |= {"window": EVIL, "strategy": EVIL, "measure": EVIL, "k": EVIL}
    written = page(SHAPES["rolling"], hostile)
    reader = check_page(written)
    assert "alert('x')" in reader.text
    assert not any("evil.example" in content for content in reader.inside["script"])
    assert chart(SHAPES["rolling"], hostile).to_dict()


def test_text_from_rows_cannot_leave_the_data_script() -> None:
    table = SHAPES["rolling"]
    hostile = table.set_column(0, "window", pa.array([EVIL] * table.num_rows))
    hostile = hostile.set_column(1, "measure", pa.array([EVIL] * table.num_rows))
    check_page(page(hostile, about()))


def test_sparse_metadata_is_enough() -> None:
    check_page(page(SHAPES["several families"], {"format": 1}))
    assert preview(SHAPES["several families"], {}).row_count == 3


def test_release_without_rows() -> None:
    empty = SHAPES["rolling"].slice(0, 0)
    assert "no rows" in check_page(page(empty, about())).text
    assert preview(empty, about()).row_count == 0
    with pytest.raises(InputError, match="no rows"):
        chart(empty, about())


def test_numbers_that_are_not_finite_are_left_out() -> None:
    table = SHAPES["rolling"]
    for column, value in (("lower", -np.inf), ("upper", np.inf), ("estimate", np.nan), ("std_error", np.inf)):
        at = table.schema.get_field_index(column)
        table = table.set_column(at, column, pa.array([value] * table.num_rows, pa.float64()))
    rows = rows_of(check_page(page(table, about())).specs()[0])
    assert {row["y"] for row in rows} == {None}


def test_the_band_is_the_released_interval_and_never_clamped() -> None:
    table = a_release(level=-50.0)
    rows = [row for row in rows_of(check_page(page(table, about())).specs()[0]) if "bridge" not in row]
    assert [row["y"] for row in rows] == pytest.approx(table["estimate"].to_pylist(), abs=0.006)
    assert [row["lo"] for row in rows] == pytest.approx(table["lower"].to_pylist(), abs=0.006)
    assert [row["hi"] for row in rows] == pytest.approx(table["upper"].to_pylist(), abs=0.006)
    assert min(row["lo"] for row in rows) < 0


def test_cut_windows_are_marked_and_meet_the_whole_ones() -> None:
    rows = rows_of(check_page(page(SHAPES["rolling"], about())).specs()[0])
    assert sum(row["cut"] for row in rows if "bridge" not in row) == 6
    bridge = [row for row in rows if "bridge" in row]
    assert len(bridge) == 1
    assert bridge[0]["cut"]


def test_a_day_is_the_last_day_inside_the_window_whatever_the_zone_and_daylight() -> None:
    rows = rows_of(check_page(page(a_release("cumulative", steps=60), about())).specs()[0])
    assert [row["b"] for row in rows][:2] == ["2013-02-01", "2013-02-02"]
    assert rows[-1]["b"] == "2013-04-01"
    day = 86_400_000
    assert {later["x"] - row["x"] for row, later in pairwise(rows)} == {day}
    assert rows[0]["x"] % day == 0


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


def test_pointing_at_a_chart_tells_window_and_interval() -> None:
    for name in ("two measures", "any"):
        told = re.findall(r'"tooltip":{"expr":"(.*?[^\\\\])"}', page(SHAPES[name], about()))
        assert told
        for field in ("a", "b", "y", "e", "lo", "hi"):
            assert all(f"(datum.datum || datum).{field}" in expression for expression in told)


def test_another_converter_than_altairs_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    converter = importlib.import_module("vl_convert")

    def only_its_own(vl_version: str | None = None) -> str:
        if vl_version is not None:
            raise ValueError(vl_version)
        return "const vegaEmbed = 0;"

    monkeypatch.setattr(converter, "javascript_bundle", only_its_own)
    assert "const vegaEmbed = 0;" in page(SHAPES["rolling"], about())


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


def test_big_heat_map_is_thinned_and_says_so() -> None:
    table = a_release("any", steps=300)
    reader = check_page(page(table, about()))
    assert "all 45,150 windows are in the released file" in reader.text
    assert max(len(rows_of(spec)) for spec in reader.specs()) <= 6_000
    assert families(table)[0].series[0].last_end().rows.num_rows == 300


def test_long_lines_are_thinned_keep_the_last_window_and_say_so() -> None:
    table = a_release("cumulative", steps=20_000)
    reader = check_page(page(table, about()))
    rows = rows_of(reader.specs()[0])
    assert len(rows) <= 1_500
    assert "Drawn: every 14th window" in reader.text
    assert rows[-1]["n"] == 20_000


@pytest.mark.slow
def test_a_million_rows_in_many_series_stay_light() -> None:
    whole = [a_release(f"any:{longest}", (("at_least", 1), ("at_least", 2)), steps=400) for longest in range(180, 190)]
    lines = [a_release(f"rolling:{length}", tuple(("at_least", k) for k in range(1, 4))) for length in range(1, 90)]
    table = pa.concat_tables([*whole, *lines])
    assert table.num_rows > 1_000_000
    assert "more charts are not drawn" in check_page(page(table, about())).text
    assert len(figures(table, about()).shown) == 60


@pytest.mark.parametrize("missing", ["altair", "vl_convert"])
def test_missing_libraries_say_what_to_install(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    original = importlib.import_module

    def without(name: str, package: str | None = None) -> Any:
        if name == missing:
            raise ModuleNotFoundError(name)
        return original(name, package)

    monkeypatch.setattr(importlib, "import_module", without)
    with pytest.raises(InputError, match=r"pip install 'dpwindows\[report\]'"):
        page(SHAPES["rolling"], about())
    if missing == "altair":
        with pytest.raises(InputError, match=r"pip install 'dpwindows\[report\]'"):
            chart(SHAPES["rolling"], about())
    assert preview(SHAPES["rolling"], about()).row_count == 1


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
