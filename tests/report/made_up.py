"""Made-up releases of every awkward shape, and a reader of pages."""

from __future__ import annotations

import base64
import datetime as dt
import gzip
import json
import re
from html.parser import HTMLParser
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

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
        "notes": [],
        "strategy": "auto",
        "criterion": "rms",
        "noise": "exact",
        "confidence": 0.95,
        "measurements": [
            {
                "window": "rolling:7",
                "thresholds": [1],
                "strategy": "filter",
                "parameters": {"alpha": 0.5, "bits": 20, "long": list(range(1000))},
                "noise": {"law": "discrete Gaussian", "scale": 123.5, "unit": "lattice"},
                "sensitivity": {"norm": "L2", "value": 2.5, "proof": "rolling-filter", "proved_in": "runs.py"},
                "numbers_measured": 40,
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
                "half_width": 18.6,
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

    def data(self, name: str) -> str:
        """The content of the script with this id."""
        scripts = [attrs for tag, attrs in self.elements if tag == "script"]
        return next(text for attrs, text in zip(scripts, self.inside["script"], strict=True) if attrs.get("id") == name)

    @property
    def index(self) -> dict[str, Any]:
        """What the packed numbers hold."""
        found: dict[str, Any] = json.loads(self.data("index"))
        return found

    def columns(self) -> dict[str, list[int]]:
        """The packed columns, read as the page's script reads them."""
        return unpacked(self.index, self.data("numbers").strip())


def unpacked(index: dict[str, Any], text: str) -> dict[str, list[int]]:
    """The columns that `pack` wrote."""
    content, at, rows = gzip.decompress(base64.b64decode(text)), 0, index["rows"]
    found = {}
    for name, planes in index["columns"]:
        values, before = [], 0
        for row in range(rows):
            folded = sum(content[at + plane * rows + row] << (8 * plane) for plane in range(planes))
            before += -(folded + 1) // 2 if folded % 2 else folded // 2
            values.append(before)
        found[name] = values
        at += planes * rows
    assert at == len(content)
    return found


def check_page(text: str) -> Reader:
    """Every page parses, refers to nothing outside itself, and stays light enough to mail."""
    reader = Reader(text)
    assert reader.open == []
    for tag, attributes in reader.elements:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "audio", "video")
        assert not {"src", "srcset", "action", "data", "poster"} & attributes.keys()
        assert str(attributes.get("href", "#")).startswith("#")
        assert not any(name.startswith("on") for name in attributes)
    assert not any(re.search(r"url\(|@import", style) for style in reader.inside["style"])
    policy = [attrs["content"] for tag, attrs in reader.elements if "http-equiv" in attrs]
    assert policy
    assert str(policy[0]).startswith("default-src 'none'")
    assert "eval" not in str(policy[0])
    assert "http:" not in str(policy[0])
    assert len(text.encode()) < 5_000_000
    ids = [attrs["id"] for _, attrs in reader.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
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
