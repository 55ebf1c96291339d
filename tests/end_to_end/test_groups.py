"""Groups through the command line: right where noise vanishes, as noisy as promised, refused before any is spent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from scipy import stats

import dpwindows as dw
from tests.end_to_end.command_line import run

pytestmark = pytest.mark.usefixtures("one_engine")

DATA = ("--item", "user", "--time", "day", "--start", "0", "--end", "4", "--step", "1")
EVENT = ("--unit", "event", "--epsilon", "1", "--delta", "1e-6")
LISTS = ("--by", "country", "--values", "US,DE,NA")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(5)
    rows = 3000
    path = tmp_path_factory.mktemp("log") / "log.parquet"
    columns = {
        "user": rng.integers(0, 400, rows),
        "day": rng.integers(0, 4, rows),
        "country": rng.choice(["US", "DE", "NA", "XX"], rows),
        "store": rng.integers(1, 4, rows),
    }
    pq.write_table(pa.table(columns), path)
    return path


def exact(log: Path, row: dict[str, Any], names: Sequence[str] = ("country", "store")) -> int:
    """Distinct users of a released row's group and window, by what the row says."""
    frame = pq.read_table(log).to_pandas()
    frame = frame[frame["country"] != "XX"]
    frame = frame[(frame["day"] >= row["start"]) & (frame["day"] < row["end"])]
    for name in names:
        if row.get(name) is not None:
            frame = frame[frame[name].astype(str) == str(row[name])]
    return int(frame["user"].nunique())


@pytest.mark.quick(1)
@pytest.mark.parametrize("ending", ["parquet", "csv", "json"])
def test_without_noise_every_group_is_counted(log: Path, tmp_path: Path, ending: str) -> None:
    out = tmp_path / f"release.{ending}"
    (tmp_path / "stores.txt").write_text("1\n2\n3\n")
    by = (*LISTS, "--by", "store", "--values", tmp_path / "stores.txt", "--totals", "0.3")
    privacy = ("--unit", "event", "--rho", "1e9")
    run("release", log, *DATA, "--window", "rolling:2", "--window", "cumulative", *by, *privacy, "-o", out).must_work()
    release = dw.Release.load(out)
    rows = release.to_arrow().to_pylist()
    assert len(rows) == (3 * 3 + 3 + 3 + 1) * 2 * 4
    assert [round(row["estimate"]) for row in rows] == [exact(log, row) for row in rows]
    assert "each event in the group of its own values" in release.metadata["guarantee"]
    assert round(release.count(0, 2, group={"country": "NA", "store": "2"}).estimate) == exact(
        log, {"start": 0, "end": 2, "country": "NA", "store": 2}
    )
    assert round(release.count(0, 4).estimate) == exact(log, {"start": 0, "end": 4})
    shown = run("count", out, "0", "2", "--group", "country=NA", "--group", "store=2", "--json")
    assert json.loads(shown.out)["estimate"] == release.count(0, 2, group={"country": "NA", "store": "2"}).estimate
    less = run("count", out, "2", "4", "--group", "store=2", "--minus", "0", "2", "--json")
    difference = [release.count(start, start + 2, group={"store": "2"}).estimate for start in (2, 0)]
    assert json.loads(less.out)["estimate"] == pytest.approx(difference[0] - difference[1])
    assert run("count", out, "0", "2", "--group", "country").code == 2


# Four numbers of each of 300 groups: 1,200 draws, of one scale but for the totals.
MANY = tuple(f"g{number}" for number in range(300))


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    ("privacy", "groups"),
    [
        (("--unit", "event"), ()),
        (("--unit", "item-add-remove"), ("--group-of", "item")),
        (("--unit", "item"), ("--max-groups", "2")),
    ],
)
def test_noise_of_groups_is_independent_and_of_the_forecast_scale(
    tmp_path: Path, privacy: tuple[str, ...], groups: tuple[str, ...]
) -> None:
    """Groups without an event are released like others: here nothing is released but noise.

    The sum of squares over std_error^2 is chi-squared with 1,200 degrees of freedom (`direct` measures every number by
    itself): within 25 % of that but for 1 in 10^8 runs, and noise that is wrong by 30 % lies outside as surely.
    """
    path, values, out = tmp_path / "log.parquet", tmp_path / "values.txt", tmp_path / "out.parquet"
    pq.write_table(pa.table({"user": ["u"], "day": [0], "country": ["elsewhere"]}), path)
    values.write_text("\n".join(MANY))
    asked = ("--by", "country", "--values", str(values), *groups, "--totals", "0.5", "--strategy", "direct")
    budget = (*privacy, "--rho", "0.5")
    run("release", path, *DATA, "--window", "rolling:1", *asked, *budget, "-o", out).must_work()
    table = dw.Release.load(out).to_arrow()
    forecast = json.loads(run("plan", "--steps", "4", "--window", "rolling:1", *asked, *budget, "--json").out)[
        "queries"
    ]
    assert [entry["by"] for entry in forecast] == [["country"], []]
    grouped = table.filter(pc.is_valid(table["country"]))
    errors = grouped["std_error"].to_numpy()
    assert grouped.num_rows == 1200
    assert np.allclose(errors, forecast[0]["rms"], rtol=1e-12)
    sum_of_squares = float(((grouped["estimate"].to_numpy() / errors) ** 2).sum())
    low, high = stats.chi2.ppf([1e-9, 1 - 1e-9], 1200)
    assert 0.75 * 1200 < low < sum_of_squares < high < 1.3 * 1200
    # Groups beside each other share no noise: a correlation of more than 6 / sqrt(1196) is seen in 1 of 10^8 runs.
    drawn = grouped["estimate"].to_numpy() / errors
    assert abs(float((drawn[:-4] * drawn[4:]).mean())) < 6 / 1196**0.5


def test_a_plan_says_the_error_of_each_group_and_of_totals() -> None:
    plan = run("plan", "--steps", "4", "--window", "cumulative", *LISTS, "--totals", "0.2", *EVENT).must_work()
    assert "each country" in plan.out
    assert "total" in plan.out
    assert "alike-in-groups" in plan.out
    alone = json.loads(run("plan", "--steps", "4", "--window", "cumulative", *EVENT, "--json").out)["queries"]
    grouped = json.loads(run("plan", "--steps", "4", "--window", "cumulative", *LISTS, *EVENT, "--json").out)["queries"]
    # The whole budget is each group's.
    assert [entry["rms"] for entry in grouped] == [entry["rms"] for entry in alone]
    assert "by" not in alone[0]


# What the options say by themselves, and one of each that their values are refused for (`tests/ask/test_groups.py`).
REFUSED = [
    ((*EVENT, "--by", "country"), "each --by COLUMN needs a public list"),
    ((*EVENT, "--by", "country", "--values", "US,"), "must be texts of at least one character"),
    ((*EVENT, "--by", "country", "--values", "US, DE"), "spaces around a comma"),
    ((*EVENT, "--by", "country", "--values", "missing.txt"), "looks like a file"),
    ((*EVENT, "--by", "nation", "--values", "US"), "no column 'nation' for the group"),
    ((*EVENT, *LISTS, *LISTS), "names a column twice"),
    ((*EVENT, *LISTS, "--group-of", "item"), "would move all of its history"),
    ((*EVENT, "--totals", "0.5"), "give --by COLUMN and --values too"),
    ((*EVENT, "--max-groups", "2"), "give --by COLUMN and --values too"),
    (("--unit", "item", "--epsilon", "1", *LISTS), "give --max-groups N"),
    (("--unit", "item", "--epsilon", "1", *LISTS, "--max-groups", "2", "--strategy", "paper"), "paper has no groups"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_what_makes_no_groups_is_refused_and_nothing_is_spent(
    log: Path, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    ledger, out = tmp_path / "ledger.db", tmp_path / "out.parquet"
    unit = options[options.index("--unit") + 1]
    budget = ("--epsilon", "5", "--delta", "1e-5")
    run("ledger", "create", ledger, "--dataset", "log", "--unit", unit, *budget).must_work()
    before = run("ledger", "show", ledger, "--json").out
    spend = ("--ledger", ledger, "--dataset", "log", "-o", out)
    run("release", log, *DATA, "--window", "cumulative", *options, *spend).must_refuse(message)
    assert not out.exists()
    assert run("ledger", "show", ledger, "--json").out == before


def test_a_ledger_knows_a_grouped_release_again(log: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    budget = ("--epsilon", "2.5", "--delta", "1e-5")
    run("ledger", "create", ledger, "--dataset", "log", "--unit", "event", *budget).must_work()
    asked = ("--window", "cumulative", *EVENT, "--ledger", ledger, "--dataset", "log")
    first = run("release", log, *DATA, *asked, *LISTS, "-o", tmp_path / "first.parquet")
    again = run("release", log, *DATA, *asked, *LISTS, "-o", tmp_path / "again.csv")
    assert (first.code, again.code) == (0, 0), first.err + again.err
    assert "Nothing was spent" in " ".join(again.err.split())
    assert dw.Release.load(tmp_path / "again.csv") == dw.Release.load(tmp_path / "first.parquet")
    other = run("release", log, *DATA, *asked, "--by", "country", "--values", "US", "-o", tmp_path / "other.csv")
    other.must_work()
    assert "Nothing was spent" not in " ".join(other.err.split())


def test_a_plan_file_keeps_groups(log: Path, tmp_path: Path) -> None:
    saved, out = tmp_path / "plan.toml", tmp_path / "out.parquet"
    asked = ("--window", "cumulative", *LISTS, "--totals", "0.25", *EVENT)
    run("plan", *DATA[4:], *asked, "--save", saved).must_work()
    assert dw.Plan.from_file(saved).to_dict()["by"] == {"country": ["US", "DE", "NA"]}
    run("release", log, *DATA[:4], "--plan", saved, "-o", out).must_work()
    assert dw.Release.load(out).metadata["groups"]["columns"] == [{"name": "country", "values": ["US", "DE", "NA"]}]
    line = ("--by", "country", "--values", "US")
    run("release", log, *DATA[:4], "--plan", saved, *line, "-o", out, "--force").must_work()
    assert dw.Release.load(out).metadata["groups"]["columns"] == [{"name": "country", "values": ["US"]}]
    audited = run("audit", "--plan", saved, "--check", "encoding")
    assert (audited.code, "cumulative: " in audited.out, "in each country" in audited.out) == (0, True, True), audited


def test_an_audit_shows_the_groups_that_the_worst_neighbours_differ_in(tmp_path: Path) -> None:
    item = ("--unit", "item", "--epsilon", "1", "--steps", "3", "--check", "exact")
    asked = ("audit", "--window", "cumulative", *LISTS, "--max-groups", "1", "--totals", "0.3", *item)
    shown = run(*asked).must_work()
    assert "every neighbouring pair" in shown.out
    assert "in total" in shown.out
    assert "country=US" in shown.out
    worst = json.loads(run(*asked, "--json").out)["exact"]["worst"]["groups"]
    assert all(len(one["log"]) == 3 and one["log"] != one["neighbour"] for one in worst.values())
    many = ("--by", "store", "--values", ",".join(map(str, range(3000))))
    refused = run("audit", "--window", "cumulative", *many, *EVENT, "--steps", "90")
    assert (refused.code, "name fewer groups (--values)" in " ".join(refused.err.split())) == (2, True)


def test_an_exported_plan_says_how_it_is_measured_in_groups(tmp_path: Path) -> None:
    path = tmp_path / "plan.npz"
    asked = ("--steps", "4", "--window", "cumulative", *LISTS, "--max-groups", "2", "--totals", "0.25")
    run("plan", *asked, "--unit", "item", "--rho", "1", "--export", path).must_work()
    with np.load(path, allow_pickle=False) as file:
        described = json.loads(str(file["description"]))
    assert described["groups"]["max_groups"] == 2
    assert [one["groups"]["by"] for one in described["measurements"]] == [["country"], []]
    assert [one["groups"]["count"] for one in described["measurements"]] == [3, 1]
    for one in described["measurements"]:
        assert int(one["groups"]["bound"]) >= int(one["sensitivity"]["bound"])


@pytest.mark.slow
def test_a_stream_releases_by_group(log: Path, tmp_path: Path) -> None:
    planned = run("plan", "--stream", "--steps", "4", "--window", "cumulative", *LISTS, *EVENT)
    assert (planned.code, "each country" in planned.out) == (0, True), planned
    state, out = tmp_path / "state", tmp_path / "out.parquet"
    wide = ("--unit", "event", "--rho", "1e9")
    asked = ("--window", "rolling:2", "--window", "cumulative", *LISTS, "--totals", "0.25", *wide)
    columns = ("--item", "user", "--time", "day", "--start", "0", "--step", "1")
    created = run("stream", "create", state, *columns, *asked)
    assert (created.code, "each country" in created.err) == (0, True), created
    for end in ("1", "4"):
        assert (
            run("stream", "advance", state, log, "--through", end, "--later", "ignore", "-o", out, "--force").code == 0
        )
    assert "Counts are by country" in run("stream", "show", state).out
    run("stream", "show", state, "-o", out, "--force").must_work()
    released = dw.Release.load(out)
    rows = released.table.to_pylist()
    assert len(rows) == 2 * 4 * (3 + 1)
    assert all(round(row["estimate"]) == exact(log, row, ("country",)) for row in rows)
    run("count", out, "1", "3", "--group", "country=DE", "--json").must_work()
    audited = run("audit", "--stream", "--steps", "2", "--window", "rolling:2", *LISTS, *EVENT, "--check", "exact")
    assert (audited.code, "every neighbouring pair" in audited.out) == (0, True), audited


def test_a_stream_refuses_what_it_does_not_keep(tmp_path: Path) -> None:
    item = ("--unit", "item", "--epsilon", "1", "--horizon", "4", "--window", "cumulative")
    columns = ("--item", "user", "--time", "day", "--start", "0", "--step", "1")
    refused = run("stream", "create", tmp_path / "state", *columns, *item, *LISTS, "--max-groups", "2")
    refused.must_refuse("--max-groups 2 is for releases")
    assert not (tmp_path / "state").exists()
    for place, option in enumerate((("--max-groups", "3"), ("--group-of", "item"))):
        run("stream", "create", tmp_path / f"state-{place}", *columns, *item, *LISTS, *option).must_work()
