"""Weeks, months and so many steps from the command line: released, charted, audited, paid for, and in streams."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import dpwindows as dw
from tests.end_to_end.command_line import run

pytestmark = pytest.mark.usefixtures("one_engine")

BERLIN = ZoneInfo("Europe/Berlin")
START, END = datetime(2013, 2, 20, tzinfo=BERLIN), datetime(2013, 5, 6, tzinfo=BERLIN)
DATA = ("--item", "who", "--time", "at", "--start", "2013-02-20", "--time-zone", "Europe/Berlin")
ASKED = ("--window", "tumbling:month", "--window", "to-date:week", "--at-least", "1", "--exactly", "2")
# So much budget that estimates are exact once rounded.
EXACT = ("--unit", "item", "--epsilon", "1e6")
EVENT = ("--unit", "event", "--epsilon", "1")
PROOFS = ("one-series-for-periods", "windows-on-lines")


Visit = tuple[str, float]


def write_log(path: Path) -> list[Visit]:
    """Visits of a few people at random instants, near the midnights of Berlin among them; as (who, epoch seconds)."""
    rng, hours = np.random.default_rng(0), int((END.timestamp() - START.timestamp()) / 3600)
    at = [
        datetime.fromtimestamp(START.timestamp() + 1800 + 3600 * hour, BERLIN) for hour in rng.integers(0, hours, 300)
    ]
    table = pa.table(
        {
            "who": pa.array([f"p{number}" for number in rng.zipf(1.5, 300) % 40]),
            "at": pa.array(at, pa.timestamp("us", tz="UTC")),
        }
    )
    pq.write_table(table, path)
    return [(who, moment.timestamp()) for who, moment in zip(table["who"].to_pylist(), at, strict=True)]


def expected(visits: list[Visit], row: dict[str, Any]) -> int:
    """The count of a released window, from its stated ends alone."""
    seen: dict[str, int] = {}
    start, end = row["start"].timestamp(), row["end"].timestamp()
    for who, at in visits:
        if start <= at < end:
            seen[who] = seen.get(who, 0) + 1
    if row["measure"] == "exactly":
        return sum(count == row["k"] for count in seen.values())
    return sum(count >= row["k"] for count in seen.values())


def local(row: dict[str, Any]) -> tuple[datetime, datetime]:
    return row["start"].astimezone(BERLIN), row["end"].astimezone(BERLIN)


def require_calendar(rows: list[dict[str, Any]], end: datetime) -> None:
    """Check where windows begin and end, and which are cut, by the calendar of the standard library."""
    for row in rows:
        first, last = local(row)
        if row["window"] == "tumbling:month":
            assert first == START or (first.day, first.hour) == (1, 0)
            assert last == end or (last.day, last.hour) == (1, 0)
            assert row["complete"] == ((first.day, last.day) == (1, 1))
        else:
            assert first == START or (first.weekday(), first.hour) == (0, 0)
            assert last - first <= timedelta(days=7)
            assert row["complete"] == (first != START)


def test_months_and_weeks_to_date_of_a_range(tmp_path: Path) -> None:
    visits, out = write_log(tmp_path / "log.parquet"), tmp_path / "out.parquet"
    run("release", tmp_path / "log.parquet", *DATA, "--end", "2013-05-06", *ASKED, *EXACT, "-o", out).must_work()
    rows = dw.Release.load(out).to_arrow().to_pylist()
    for row in rows:
        assert round(row["estimate"]) == expected(visits, row), row
    require_calendar(rows, END)
    months = [row for row in rows if (row["window"], row["measure"]) == ("tumbling:month", "at_least")]
    assert [(local(row)[0].month, row["complete"]) for row in months] == [(2, False), (3, True), (4, True), (5, False)]
    assert sum(row["window"] == "to-date:week" for row in rows) == 2 * 75
    run("report", out, "-o", tmp_path / "out.html").must_work()
    page = (tmp_path / "out.html").read_text()
    assert "in each month" in page
    assert "since the week began" in page
    march = dw.Release.load(out).count("2013-03-01", "2013-04-01")
    assert march.window == "tumbling:month"
    assert round(march.estimate) == expected(visits, months[1])
    friday = dw.Release.load(out).count("2013-03-04", "2013-03-09", exactly=2)
    assert friday.window == "to-date:week"


@pytest.mark.slow
def test_a_stream_releases_the_same_as_it_goes(tmp_path: Path) -> None:
    state, horizon = tmp_path / "state", str((END.replace(tzinfo=None) - START.replace(tzinfo=None)).days)
    run("stream", "create", state, *DATA, "--horizon", horizon, *ASKED, *EXACT).must_work()
    visits = write_log(tmp_path / "log.parquet")
    # Closed in pieces, one of them without a month's end; every call opens the state anew.
    for through in ("2013-02-27", "2013-03-03", "2013-03-31", "2013-04-01", "2013-05-05"):
        before = pq.read_table(tmp_path / "log.parquet", filters=[("at", "<", midnight(through))])
        pq.write_table(before, tmp_path / "part.parquet")
        part = ("--through", through, "-o", tmp_path / "p.csv", "--force")
        run("stream", "advance", state, tmp_path / "part.parquet", *part).must_work()
    last = dw.Release.load(tmp_path / "p.csv").to_arrow()
    assert last.filter(pc.equal(last["window"], "tumbling:month")).num_rows == 2
    run("stream", "advance", state, tmp_path / "log.parquet", "--through", "2013-05-06").must_work()
    run("stream", "show", state, "-o", tmp_path / "all.parquet").must_work()
    rows = dw.Release.load(tmp_path / "all.parquet").to_arrow().to_pylist()
    for row in rows:
        assert round(row["estimate"]) == expected(visits, row), row
    require_calendar(rows, END)
    batch = tmp_path / "out.parquet"
    run("release", tmp_path / "log.parquet", *DATA, "--end", "2013-05-06", *ASKED, *EXACT, "-o", batch).must_work()
    assert key(rows) == key(dw.Release.load(batch).to_arrow().to_pylist())


def key(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    names = ("window", "measure", "k", "first_step", "last_step", "start", "end", "complete")
    return sorted((*(row[name] for name in names), round(row["estimate"])) for row in rows)


def midnight(day: str) -> datetime:
    return datetime.fromisoformat(day).replace(tzinfo=BERLIN)


def test_steps_without_a_window_that_ends_release_nothing(tmp_path: Path) -> None:
    state, out = tmp_path / "state", tmp_path / "out.parquet"
    run("stream", "create", state, *DATA, "--window", "tumbling:7", *EVENT).must_work()
    run("stream", "advance", state, "--empty", "--through", "2013-02-26", "-o", out).must_work()
    assert dw.Release.load(out).to_arrow().num_rows == 0
    run("stream", "advance", state, "--empty", "--through", "2013-02-26").must_work()
    run("stream", "advance", state, "--empty", "--through", "2013-02-27", "-o", out, "--force").must_work()
    assert dw.Release.load(out).to_arrow()["last_step"].to_pylist() == [7]


def test_a_stream_counts_by_the_calendar_it_was_planned_for(tmp_path: Path) -> None:
    plan = dw.StreamPlan(dw.ToDate("month"), unit=dw.EventLevel(), budget=dw.PureDP(1.0), start="2013-02-20")
    columns: dict[str, Any] = {"item": "who", "time": "at", "step": "1d"}
    complaint = r"to-date:month by the calendar of steps of 1d from 2013-02-20.*give StreamPlan the start"
    with pytest.raises(dw.InputError, match=complaint):
        dw.Stream.create(tmp_path / "state", plan, start="2013-02-21", **columns)
    dw.Stream.create(tmp_path / "state", plan, start="2013-02-20", **columns).close()
    with pytest.raises(dw.InputError, match="to-date:month needs a calendar"):
        dw.StreamPlan(dw.ToDate("month"), unit=dw.EventLevel(), budget=dw.PureDP(1.0))
    with pytest.raises(dw.InputError, match=r"tumbling:9999999 may have 9,999,999 steps in a period"):
        dw.StreamPlan(dw.Tumbling(9_999_999), unit=dw.EventLevel(), budget=dw.PureDP(1.0))


@pytest.mark.quick(2)
@pytest.mark.parametrize("unit", ["event", "item-per:10", "item", "item-add-remove"])
@pytest.mark.parametrize("budget", [("--epsilon", "1"), ("--epsilon", "1", "--delta", "1e-6"), ("--rho", "0.1")])
def test_plans_at_every_unit_and_budget(unit: str, budget: tuple[str, ...]) -> None:
    asked = ("--window", "tumbling:week", "--window", "to-date:month", "--exactly", "1")
    days = ("--start", "2013-02-20", "--end", "2013-05-06")
    planned = run("plan", *asked, "--unit", unit, *budget, *days, "--json").must_work()
    queries = json.loads(planned.out)["queries"]
    assert [query["window"] for query in queries] == ["tumbling:week", "to-date:month"]
    joint = {"discrete cube": "item-in-a-cube", "discrete range": "item-in-one-direction"}
    # One event changes one period; an item changes the line of every period that it may.
    known = PROOFS[0], PROOFS[0] if unit == "event" else PROOFS[1]
    proofs = [joint.get(query["noise"], proof) for query, proof in zip(queries, known, strict=True)]
    assert [query["proof"] for query in queries] == proofs
    assert proofs[1] not in joint.values(), "counts to date of so many steps err less through a tree"
    assert all(0 < query["rms"] <= query["max"] for query in queries)
    stream = run("plan", "--stream", *asked, "--unit", unit, *budget, *days, "--json").must_work()
    causal = json.loads(stream.out)["queries"]
    # Without the future to decode with a stream errs no less, over both windows together.
    assert np.prod([query["rms"] for query in causal]) >= 0.95 * np.prod([query["rms"] for query in queries])


@pytest.mark.slow
def test_at_event_level_a_long_range_costs_no_more_than_a_month() -> None:
    errors = []
    for end in ("2013-02-01", "2023-01-01"):
        days = ("--start", "2013-01-01", "--end", end)
        planned = run("plan", "--window", "tumbling:month", "--window", "to-date:month", *EVENT, *days, "--json")
        errors.append([query["rms"] for query in json.loads(planned.out)["queries"]])
    assert errors[1] == pytest.approx(errors[0], rel=0.03)
    alone = run("plan", "--window", "tumbling:month", *EVENT, "--start", "2013-01-01", "--end", "2023-01-01", "--json")
    # Laplace noise of scale 1 on one count.
    assert json.loads(alone.out)["queries"][0]["rms"] == pytest.approx(np.sqrt(2), rel=0.06)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--steps", "60", "--window", "tumbling:month"), "tumbling:month needs a calendar"),
        (
            ("--start", "2013-01-01", "--end", "2013-12-31", "--step", "1w", "--window", "to-date:month"),
            "a month begins at 2013-02-01",
        ),
        (("--start", "0", "--end", "60", "--step", "1", "--window", "to-date:year"), "to-date:year needs a calendar"),
        (("--steps", "60", "--window", "tumbling:decade"), "needs a period after the colon"),
    ],
)
def test_refusals_say_what_to_do(options: tuple[str, ...], complaint: str) -> None:
    refused = run("plan", *EVENT, *options).must_refuse(complaint)
    assert refused.err.count("\n") == 1


@pytest.mark.slow
@pytest.mark.usefixtures("seeded_noise")
def test_the_noise_is_as_wide_as_stated(tmp_path: Path) -> None:
    """An empty log: what is released is noise. One test in a million fails by chance."""
    (tmp_path / "log.csv").write_text("who,at\n")
    out = tmp_path / "out.parquet"
    asked = ("--window", "tumbling:7", "--window", "to-date:7", "--item", "who", "--time", "at", "--step", "1")
    run(
        *("release", tmp_path / "log.csv", *asked, "--start", "0", "--end", "7000"),
        *("--unit", "event", "--rho", "0.02", "-o", out),
    ).must_work()
    table = dw.Release.load(out).to_arrow()
    for window, free in (("tumbling:7", 1000), ("to-date:7", 1000)):
        rows = table.filter(pc.equal(table["window"], window))
        scores = rows["estimate"].to_numpy() / rows["std_error"].to_numpy()
        # Estimates of one period are correlated: no fewer than one free number a period. Noise that is 30 % too wide
        # or too narrow is off by 0.69 or 0.51, which is at least 6 standard errors beyond what is let pass here.
        assert np.mean(scores**2) == pytest.approx(1, abs=5 * np.sqrt(2 / free))
        assert abs(scores.mean()) < 5 / np.sqrt(free)


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["event", "item", "item-per:3"])
def test_plans_are_audited_and_exported(tmp_path: Path, unit: str) -> None:
    asked = ("--window", "tumbling:3", "--window", "to-date:3", "--at-least", "2", "--unit", unit, "--epsilon", "1")
    run("audit", *asked, "--steps", "7", "--check", "exact").must_work()
    where = ("--start", "2013-01-29", "--steps", "6", "--time-zone", "Asia/Tokyo")
    months = ("--window", "tumbling:month", *asked[4:], *where)
    run("audit", *months, "--check", "exact", "--check", "replay", "--check", "encoding").must_work()
    out = tmp_path / "plan.npz"
    run("plan", *asked, "--steps", "40", "--export", out).must_work()
    exported = np.load(out)
    description = json.loads(str(exported["description"]))
    for number, measurement in enumerate(description["measurements"]):
        matrix, decoder = exported[f"{number}/matrix"].astype(float), exported[f"{number}/decoder_matrix"]
        windows = len(exported[f"{number}/first"])
        assert np.allclose(decoder @ matrix, np.eye(windows)), measurement["window"]
        assert measurement["sensitivity"]["proof"] in (*PROOFS, "item-in-a-cube")
