"""A statement answers every question from the metadata, and leaves open what only its reader knows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

import dpwindows as dw
from dpwindows.cli import main
from dpwindows.report.statement import statement_html, statement_markdown
from tests.report.made_up import EVIL, Reader, about

LOG = pa.table({"who": [1, 2, 1, 3], "at": [0, 1, 2, 4]})
QUERIES = [dw.Rolling(3).at_least(1, 2), dw.Cumulative().at_least(1)]


@pytest.fixture
def release(tmp_path: Path) -> Path:
    plan = dw.Plan(QUERIES, timeline=dw.Timeline.of_steps(6), unit=dw.EventLevel(), budget=dw.ApproxDP(1.5, 1e-7))
    plan.run(LOG, item="who", time="at").save(tmp_path / "out.parquet")
    return tmp_path / "out.parquet"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    plan = dw.StreamPlan(QUERIES, unit=dw.EventLevel(), budget=dw.ZCDP(0.25), horizon=6)
    dw.Stream.create(tmp_path / "visits.state", plan, item="who", time="at", start=0, step=1).close()
    return tmp_path / "visits.state"


def told(*arguments: str | Path) -> str:
    ended = CliRunner().invoke(main, ["statement", *map(str, arguments)])
    assert ended.exit_code == 0, ended.output
    return ended.output


def test_a_release_is_stated_in_full(release: Path) -> None:
    metadata = dw.Release.load(release).metadata
    said = told(release)
    for wanted in (
        "# Privacy statement of a release",
        metadata["release_id"],
        "epsilon = 1.5, delta = 10⁻⁷",
        "Approximate differential privacy",
        "Protects each single occurrence",
        "rolling:3: at least 1, at least 2; cumulative: at least 1",
        metadata["measurements"][0]["sensitivity"]["proof"],
        metadata["measurements"][0]["sensitivity"]["proved_in"],
        "On none but what the guarantee names in full",
        "To be answered by whoever runs this",
    ):
        assert wanted in said
    for entry in metadata["forecast"]:
        assert f"typically {entry['rms']:.3g}" in said


def test_a_stream_is_stated_by_its_state_alone(state: Path) -> None:
    said = told(state)
    assert "# Privacy statement of a stream" in said
    assert "rho = 0.25" in said


@pytest.mark.parametrize(("name", "begins"), [("s.html", "<!DOCTYPE html>"), ("s.md", "# Privacy statement")])
def test_pages_are_written_once(release: Path, tmp_path: Path, name: str, begins: str) -> None:
    told(release, "-o", tmp_path / name)
    assert (tmp_path / name).read_text(encoding="utf-8").startswith(begins)
    again = CliRunner().invoke(main, ["statement", str(release), "-o", str(tmp_path / name)])
    assert again.exit_code == 2
    assert "exists already" in again.output


def test_an_assumption_is_said_and_markup_is_text() -> None:
    hostile = about(singleton=True, guarantee=EVIL, release_id=EVIL, unit={"name": EVIL, "promise": EVIL})
    page = Reader(statement_html(hostile))
    assert page.open == []
    assert not {"script", "img"} & {tag for tag, _ in page.elements}
    assert "at most one event over all items" in page.text
    assert "\\<script\\>" in statement_markdown(hostile)


def test_what_is_no_release_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    ended = CliRunner().invoke(main, ["statement", str(tmp_path / "x.json")])
    assert ended.exit_code == 2
