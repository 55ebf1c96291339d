"""Rules of counting on the command line: planned, released, streamed and audited, or refused with nothing spent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.end_to_end.command_line import run

pytestmark = pytest.mark.usefixtures("one_engine", "seeded_noise")

ONCE = ("--window", "rolling:2", "--at-least", "1", "--at-least", "2", "--distinct-steps")
ALMOST_EXACT = ("--unit", "event", "--epsilon", "1e9", "--delta", "1e-6")
LOG = "who,at\na,0\na,0\na,0\nb,0\nb,1\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.csv"
    path.write_text(LOG)
    return path


def test_active_steps_on_the_command_line(log: Path, tmp_path: Path) -> None:
    out, columns = tmp_path / "out.json", ("--item", "who", "--time", "at", "--start", "0", "--step", "1")
    outcome = run("release", log, *columns, "--end", "3", *ONCE, *ALMOST_EXACT, "-o", out).must_work()
    written = json.loads(out.read_text())
    found = {(row["k"], row["last_step"]): round(row["estimate"]) for row in written["rows"]}
    assert found == {(1, 1): 2, (1, 2): 2, (1, 3): 1, (2, 1): 0, (2, 2): 1, (2, 3): 0}
    assert "at most once in a step" in " ".join(outcome.err.split())
    state = tmp_path / "state"
    run("stream", "create", state, *columns, *ONCE, *ALMOST_EXACT).must_work()
    run("stream", "advance", state, log, "--through", "3", "-o", tmp_path / "rows.json").must_work()
    rows = json.loads((tmp_path / "rows.json").read_text())["rows"]
    assert {(row["k"], row["last_step"]): round(row["estimate"]) for row in rows} == found


@pytest.mark.parametrize("kind", ["release", "stream", "plan"])
def test_more_active_steps_than_there_are_change_nothing(kind: str, log: Path, tmp_path: Path) -> None:
    asked = ("--window", "rolling:2", "--at-least", "3", "--distinct-steps", *ALMOST_EXACT)
    columns = ("--item", "who", "--time", "at", "--start", "0", "--step", "1")
    commands: dict[str, tuple[str | Path, ...]] = {
        "release": ("release", log, *columns, "--end", "3", "-o", tmp_path / "out.json"),
        "stream": ("stream", "create", tmp_path / "state", *columns),
        "plan": ("plan", "--steps", "9"),
    }
    run(*commands[kind], *asked).must_refuse("ask for k up to 2")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.csv"]


@pytest.mark.slow
@pytest.mark.parametrize("stream", [(), ("--stream",)])
def test_the_audit_knows_the_rule(stream: tuple[str, ...]) -> None:
    budget = ("--unit", "item-per:2", "--epsilon", "1", "--steps", "4")
    checks = ("--check", "exact", "--check", "encoding", "--check", "replay", "--json")
    run("audit", *ONCE, *budget, *checks, *stream).must_work()
    run("audit", *ONCE, *budget, "--check", "noise", "--draws", "500", *stream).must_work()


PRESENCE = ("--unit", "item-add-remove", "--epsilon", "1e9", "--delta", "1e-6")


@pytest.mark.parametrize("bound", [("--max-runs", "1"), ("--max-occurrences", "2")])
def test_bounded_counts_on_the_command_line(bound: tuple[str, str], tmp_path: Path) -> None:
    log, out, state = tmp_path / "log.csv", tmp_path / "out.json", tmp_path / "state"
    # a is seen in steps 1, 2, 4, 5; b in 1; c in 5.
    log.write_text("who,at\na,0\na,1\na,3\na,4\nb,0\nc,4\n")
    columns = ("--item", "who", "--time", "at", "--start", "0", "--step", "1")
    asked = ("--window", "rolling:1", *bound, *PRESENCE)
    outcome = run("release", log, *columns, "--end", "6", *asked, "-o", out).must_work()
    written = json.loads(out.read_text())
    assert [round(row["estimate"]) for row in written["rows"]] == [2, 1, 0, 0, 1, 0]
    assert "bounded count" in " ".join(outcome.err.split())
    run("stream", "create", state, *columns, "--horizon", "6", *asked).must_work()
    run("stream", "advance", state, log, "--through", "6", "-o", tmp_path / "rows.json").must_work()
    rows = json.loads((tmp_path / "rows.json").read_text())["rows"]
    assert [round(row["estimate"]) for row in rows] == [2, 1, 0, 0, 1, 0]
    run("plan", "--window", "rolling:7", *bound, "--unit", "event", "--epsilon", "1", "--steps", "9").must_refuse(
        "goes with --unit item or item-add-remove"
    )


@pytest.mark.parametrize("bound", [("--max-runs", "1"), ("--max-occurrences", "2")])
def test_what_was_lost_on_the_command_line(bound: tuple[str, str], tmp_path: Path) -> None:
    log, out = tmp_path / "log.csv", tmp_path / "out.json"
    log.write_text("who,at\na,0\na,1\na,3\na,4\nb,0\nc,4\n")
    columns = ("--item", "who", "--time", "at", "--start", "0", "--step", "1")
    asked = ("--window", "rolling:1", *bound, *PRESENCE, "--estimate-loss")
    outcome = run("release", log, *columns, "--end", "6", *asked, "-o", out).must_work()
    loss = json.loads(out.read_text())["metadata"]["loss"]
    assert (round(loss["estimate"]), loss["budget_share"]) == (1, 0.05)
    assert f"{loss['of']}, which were counted in part: 1" in " ".join(outcome.err.split())
    assert "items-that-lost" in run("statement", out).out
    planned = run("plan", *asked, "0.1", "--steps", "6", "--json")
    assert json.loads(planned.out)["loss"]["budget_share"] == 0.1
    assert f"{loss['of']}: std error" in " ".join(run("plan", *asked, "--steps", "6").out.split())
    for refused, said in (
        (("stream", "create", tmp_path / "state", *columns, "--horizon", "6", *asked), "is for releases"),
        (("plan", "--window", "rolling:1", *PRESENCE, "--estimate-loss", "--steps", "6"), "give --max-runs or"),
        (("plan", "--window", "rolling:1", *bound, "--unit", "event", "--rho", "1", "--steps", "6"), "--unit item or"),
    ):
        run(*refused).must_refuse(said)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.csv", "out.json"]


@pytest.mark.slow
@pytest.mark.parametrize("bound", [("--max-runs", "1"), ("--max-occurrences", "2")])
def test_the_audit_knows_what_is_lost(bound: tuple[str, str]) -> None:
    asked = ("--window", "rolling:2", *bound, "--unit", "item", "--rho", "1", "--steps", "4", "--estimate-loss", "0.5")
    checks = ("--check", "exact", "--check", "encoding", "--check", "replay", "--check", "black-box")
    outcome = run("audit", *asked, *checks, "--runs", "300", "--json").must_work()
    assert 0.5 < json.loads(outcome.out)["exact"]["of_certified"] <= 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bound", "unit", "stream"),
    [
        (("--max-runs", "1"), "item", ("--stream",)),
        (("--max-runs", "1"), "item-add-remove", ()),
        (("--max-occurrences", "2"), "item", ()),
        (("--max-occurrences", "2"), "item-add-remove", ("--stream",)),
    ],
)
def test_the_audit_knows_bounds(bound: tuple[str, str], unit: str, stream: tuple[str, ...]) -> None:
    steps = "4" if stream else "6"
    asked = ("--window", "rolling:2", "--window", "cumulative", *bound, "--unit", unit, "--rho", "1", "--steps", steps)
    # Replay of a stream takes seconds, most with bounded occurrences.
    replayed = () if stream and unit == "item-add-remove" else ("--check", "replay")
    outcome = run("audit", *asked, "--check", "exact", "--check", "encoding", *replayed, "--json", *stream).must_work()
    found = json.loads(outcome.out)["exact"]
    assert found["compared"] == "every neighbour"
    assert 0.3 < found["of_certified"] <= 1
