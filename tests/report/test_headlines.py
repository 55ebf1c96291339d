"""Headlines hold with the certainty they state, the selected one included."""

from __future__ import annotations

import html
import math
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import dpwindows as dw
from dpwindows.kernel.accounting import LAPLACE, RANGE
from dpwindows.reading.lattice_noise import Noise, lattice_quantile
from dpwindows.report import page
from dpwindows.report.clock import Clock
from dpwindows.report.headlines import factor, headlines, widest_factor
from dpwindows.report.series import families
from dpwindows.report.statement import statement_html
from dpwindows.report.words import TO_QUOTE
from tests.report.made_up import a_release, about, check_page

TRUE = 666.0
ERROR = 160.0
LAWS = ("discrete Gaussian", "discrete Laplace")


@cache
def made_up(windows: tuple[str, ...]) -> pa.Table:
    return pa.concat_tables([a_release(window, steps=60, error=ERROR) for window in windows])


def simulated(rng: np.random.Generator, law: str, windows: list[str]) -> pa.Table:
    """A release in which every true count is the same, with independent noise in every window."""
    table = made_up(tuple(windows))
    draws = rng.normal(0, ERROR, table.num_rows)
    if law == "discrete Laplace":
        draws = rng.laplace(0, ERROR / math.sqrt(2), table.num_rows)
    return table.set_column(table.schema.get_field_index("estimate"), "estimate", pa.array(TRUE + draws))


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
def test_a_page_with_any_false_headline_is_rarer_than_it_says(law: str) -> None:
    rng = np.random.default_rng(3)
    windows = ["rolling:7", "tumbling:3", "cumulative", "any:5"]
    metadata = about(measurements=[{"window": window, "noise": {"law": law, "scale": 1e9}} for window in windows])
    false = selected = 0
    for _ in range(250):
        table = simulated(rng, law, windows)
        said = headlines(families(table), Clock.of(table, metadata), metadata)
        assert len(said) == 5
        false += any(not one.lower <= TRUE <= one.upper for one in said)
        # What the page said before: the largest number with its own interval.
        largest = max(table["estimate"].to_pylist())
        selected += largest - 1.96 * ERROR > TRUE
    assert false <= 0.08 * 250
    assert selected > 0.9 * 250


def test_the_largest_is_told_with_how_many_it_was_picked_from() -> None:
    table = a_release("rolling:7", steps=40)
    (latest, largest) = headlines(families(table), Clock.of(table, about()), about())
    assert latest.text.startswith("From 2013-03-06 through 2013-03-12 (7 days): about ")
    assert largest.text.startswith("Highest of the 34 windows of 7 days: from 2013-")
    assert largest.upper - largest.lower > latest.upper - latest.lower
    assert "standard error 9.5" in latest.text


def test_no_window_that_is_cut_short_is_called_the_last() -> None:
    table = a_release("rolling:100", steps=40)
    table = table.set_column(table.schema.get_field_index("complete"), "complete", pa.array([False] * 39 + [True]))
    (latest,) = headlines(families(table), Clock.of(table, about()), about())
    assert (latest.first_step, latest.last_step) == (1, 40)


@pytest.mark.parametrize("alpha", [0.05, 0.01, 1e-4])
def test_factors_cover_what_they_are_for(alpha: float) -> None:
    assert factor(alpha, gaussian=True) == pytest.approx(stats.norm.isf(alpha / 2))
    wide = factor(alpha, gaussian=False)
    assert wide >= stats.laplace(scale=1 / math.sqrt(2)).isf(alpha / 2)
    assert wide >= stats.norm.isf(alpha / 2)
    rng = np.random.default_rng(1)
    for terms in (1, 2, 5, 40):
        sums = rng.laplace(0, 1, (20_000, terms)).sum(axis=1) / math.sqrt(2 * terms)
        assert (np.abs(sums) > wide).mean() <= alpha


@pytest.mark.parametrize(
    "noise", [Noise(LAPLACE, 0.3), Noise(LAPLACE, 0.7), Noise(LAPLACE, 2.0), Noise(RANGE, 0.3, 5)], ids=str
)
@pytest.mark.parametrize("alpha", [0.05, 0.01, 1e-4])
def test_factors_hold_for_noise_on_whole_numbers(alpha: float, noise: Noise) -> None:
    """At the exact quantiles of one number and of sums of two and three."""
    metadata = {"measurements": [{"window": "rolling:7", "noise": {"law": noise.law, "scale": noise.scale}}]}
    found = widest_factor(alpha, metadata, ["rolling:7"])
    assert factor(alpha, gaussian=False) < found
    for draws in (1, 2, 3):
        assert found * noise.deviation * math.sqrt(draws) >= lattice_quantile(noise, draws, 1 - alpha)


def two_families(exact: float) -> tuple[pa.Table, dict[str, object]]:
    """A release of weeks and of any windows, whose errors are smaller; one week stands out in both."""
    weeks = a_release("rolling:7", error=48.6, level=exact)
    table = pa.concat_tables([weeks, a_release("any:9", error=8.5, level=exact + 20)])
    noise = {"law": LAWS[0], "scale": 1e9}
    return table, about(measurements=[{"window": window, "noise": noise} for window in ("rolling:7", "any:9")])


def test_a_window_has_one_number() -> None:
    """Of several that were released for it the one of least error: in a headline, in a count and on the page."""
    table, metadata = two_families(600.0)
    release = dw.Release(table, metadata)
    said = headlines(families(table), Clock.of(table, metadata), metadata)
    assert [one.last_step - one.first_step + 1 for one in said] == [7, 9, 7]
    assert {one.window for one in said} == {"any:9"}
    ends = {(row["first_step"], row["last_step"]): (row["start"], row["end"]) for row in table.to_pylist()}
    for one in said:
        quoted = release.count(*ends[one.first_step, one.last_step])
        assert (one.estimate, one.window) == (quoted.estimate, quoted.window)
        assert "(standard error 8.5)" in one.text
    highest = [row for row in table.to_pylist() if row["window"] == "any:9" and row["last_step"] >= 7]
    weeks = [row["estimate"] for row in highest if row["last_step"] - row["first_step"] == 6]
    assert said[2].estimate == max(weeks)
    reader = check_page(page(table, about()))
    assert TO_QUOTE in reader.text
    assert TO_QUOTE in html.unescape(statement_html(about()))
    surpassed = dict(zip(("rolling:7", "any:9"), (reader.columns()["surpassed"][at] for at in (0, -1)), strict=True))
    assert surpassed == {"rolling:7": 1, "any:9": 0}


def test_a_window_of_two_families_has_one_headline() -> None:
    table = pa.concat_tables([a_release("rolling:7"), a_release("any:7")])
    said = headlines(families(table), Clock.of(table, about()), about())
    assert [one.text.partition(" 2013")[0] for one in said] == ["From", "Highest of the 34 windows of 7 days: from"]


@pytest.mark.parametrize(
    ("level", "words"), [(-26.0, "at most "), (3.0, "about 3 distinct items, at most "), (400.0, "items, between ")]
)
def test_a_headline_has_no_number_below_0(level: float, words: str) -> None:
    table = a_release("cumulative", steps=1, error=20.0)
    table = table.set_column(table.schema.get_field_index("estimate"), "estimate", pa.array([level]))
    (one,) = headlines(families(table), Clock.of(table, about()), about())
    assert one.estimate == level
    assert words in one.text
    assert "\N{MINUS SIGN}" not in one.text
