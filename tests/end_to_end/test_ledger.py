"""The ledger through the command line: created, spent from, shown, and honest when it refuses."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pyarrow.parquet
import pytest

import dpwindows as dw
from dpwindows.ledger import store as ledger_store
from dpwindows.ledger.ledger import Ledger
from tests.end_to_end.command_line import Outcome, run, run_process

pytestmark = pytest.mark.usefixtures("one_engine")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.csv"
    path.write_text("who,at\nann,2013-01-02\nbob,2013-01-03 10:00:00\nann,2013-02-03\n")
    return path


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    path = tmp_path / "ledger.db"
    created = run("ledger", "create", path, "--dataset", "visits", "--unit", "event", "--epsilon", "1").must_work()
    assert "epsilon = 1 (pure)" in created.err
    return path


def release(log: Path, ledger: Path, output: Path, **changes: str) -> Outcome:
    options = {"item": "who", "time": "at", "start": "2013-01-01", "end": "2013-02-01", "window": "rolling:7"}
    options |= {"unit": "event", "epsilon": "0.6", "ledger": str(ledger), "dataset": "visits"} | changes
    arguments = [word for name, value in options.items() for word in (f"--{name}", value)]
    return run("release", log, *arguments, "-o", output)


def test_spend_find_again_refuse_and_show(log: Path, ledger: Path, tmp_path: Path) -> None:
    first = release(log, ledger, tmp_path / "first.parquet")
    assert first.code == 0
    assert "spent from dataset 'visits'" in first.err
    again = release(log, ledger, tmp_path / "again.parquet")
    assert "Nothing was spent" in again.err
    assert (tmp_path / "first.parquet").read_bytes() == (tmp_path / "again.parquet").read_bytes()

    # The events do not exist, which nobody finds out: the budget is looked at first.
    over = release(tmp_path / "missing.csv", ledger, tmp_path / "over.csv", window="cumulative").must_refuse()
    for said in ("'visits'", "epsilon = 1 (pure)", "epsilon = 0.6 is spent", "epsilon = 0.6 (pure)", "0.4 is left"):
        assert said in over.err
    assert not (tmp_path / "over.csv").exists()

    # February has no event of January.
    later = release(log, ledger, tmp_path / "later.json", start="2013-02-01", end="2013-03-01")
    assert later.code == 0
    release(log, ledger, tmp_path / "both.csv", start="2013-01-31", end="2013-02-02", epsilon="0.5").must_refuse()

    shown = run("ledger", "show", ledger).must_work()
    for said in ("visits", "event level", "epsilon = 0.4", "rolling:7 at", "2013-02-01", "disjoint", "the beginning"):
        assert said in shown.out
    page = json.loads(run("ledger", "show", ledger, "--json").out)["datasets"][0]
    assert (page["spent"], page["left"]) == ({"epsilon": 0.6}, {"epsilon": 0.4})
    assert page["total"] == {"kind": "pure", "epsilon": 1.0}
    assert [entry["asked"] for entry in page["entries"]] == ["rolling:7 at least 1"] * 2
    stored = json.loads(pyarrow.parquet.read_schema(tmp_path / "first.parquet").metadata[b"dpwindows"])
    assert stored["release_id"] == page["entries"][0]["release_id"]
    assert stored["ledger"] == {"dataset": "visits", "entry": 1}
    assert [(piece["start"], piece["spent"]["epsilon"]) for piece in page["by_time"]] == [
        (None, 0.0),
        ("2013-01-01", 0.6),
        ("2013-02-01", 0.6),
        ("2013-03-01", 0.0),
    ]


def test_other_totals_and_several_datasets(ledger: Path) -> None:
    run("ledger", "create", ledger, "--dataset", "a", "--unit", "item", "--rho", "0.5").must_work()
    options = ("--unit", "event", "--epsilon", "1", "--delta", "1e-6", "--singleton")
    run("ledger", "create", ledger, "--dataset", "b", *options).must_work()
    shown = run("ledger", "show", ledger)
    assert shown.out.index("a: item level") < shown.out.index("b: event level, under the promise")
    assert "rho = 0.5" in shown.out
    assert "delta = 1e-06" in shown.out
    one = run("ledger", "show", ledger, "--dataset", "a", "--json")
    assert [page["dataset"] for page in json.loads(one.out)["datasets"]] == ["a"]


def test_what_was_lost_in_a_crash_is_said(
    log: Path, ledger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert release(log, ledger, tmp_path / "first.parquet").code == 0
    assert "nothing stored" not in run("ledger", "show", ledger).out

    def lost(*_: object) -> None:
        raise dw.EngineError("the process is gone")

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "store", lost)
        second = release(log, ledger, tmp_path / "second.parquet", start="2013-02-01", end="2013-03-01")
    assert second.code == 1
    assert "is spent" in second.err
    assert "lost in a crash" in run("ledger", "show", ledger).out


def test_a_stored_release_that_is_missing_is_damage(log: Path, ledger: Path, tmp_path: Path) -> None:
    assert release(log, ledger, tmp_path / "first.parquet").code == 0
    with sqlite3.connect(ledger) as connection:
        connection.execute("DELETE FROM releases")
    connection.close()
    for outcome in (run("ledger", "show", ledger), release(log, ledger, tmp_path / "second.parquet")):
        assert outcome.code == 1
        assert "is damaged" in outcome.err
        assert "Traceback" not in outcome.err
    assert not (tmp_path / "second.parquet").exists()


MISTAKES = [
    (["ledger", "show", "{folder}/missing.db"], "ledger create"),
    (["ledger", "show", "{log}"], "not a ledger"),
    (["ledger", "show", "{folder}"], "no ledger"),
    (["ledger", "show", "{ledger}", "--dataset", "visit"], "'visits'"),
    (["ledger", "create", "{ledger}", "--dataset", "visits", "--unit", "event", "--epsilon", "2"], "set once"),
    (["ledger", "create", "{ledger}", "--dataset", "v", "--unit", "person", "--epsilon", "2"], "person"),
    (["ledger", "create", "{ledger}", "--dataset", "v", "--unit", "event"], "no budget"),
    (["ledger", "create", "{ledger}", "--dataset", "v", "--unit", "event", "--rho", "-1"], "rho"),
    (["ledger", "create", "{ledger}", "--unit", "event", "--rho", "1"], "--dataset"),
    (["ledger", "create", "{folder}/no/l.db", "--dataset", "v", "--unit", "event", "--rho", "1"], "folder"),
    (["ledger", "destroy", "{ledger}"], "destroy"),
]


@pytest.mark.parametrize(("command", "said"), MISTAKES)
def test_mistakes_exit_2_with_one_message(
    command: list[str], said: str, log: Path, ledger: Path, tmp_path: Path
) -> None:
    before = ledger.read_bytes()
    outcome = run(*(word.format(folder=tmp_path, log=log, ledger=ledger) for word in command)).must_refuse(said)
    assert "Traceback" not in outcome.err
    assert ledger.read_bytes() == before


def test_half_of_the_options_and_an_unfit_ledger(log: Path, ledger: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.csv"
    asked = "--item who --time at --start 2013-01-01 --end 2013-02-01 --window any:3 --unit event --epsilon 1"
    run("release", log, *asked.split(), "--dataset", "visits", "-o", output).must_refuse("go together")
    assert release(log, ledger, output, dataset="visit").code == 2
    assert release(log, log, output).code == 2
    release(log, ledger, output, unit="item-add-remove").must_refuse("--unit event")
    assert list(tmp_path.glob("out*")) == []


def test_a_locked_ledger_exits_1(ledger: Path, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_store, "PATIENCE", 0.05)
    other = sqlite3.connect(ledger, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    for outcome in (run("ledger", "show", ledger), release(log, ledger, tmp_path / "out.csv")):
        assert outcome.code == 1
        assert "locked by another process" in outcome.err
    other.close()


def test_a_process_of_its_own(ledger: Path) -> None:
    outcome = run_process("ledger", "show", ledger)
    assert (outcome.code, outcome.err) == (0, "")
    assert "left  epsilon = 1" in outcome.out


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    ("total", "each", "room"),
    [
        (("--epsilon", "3", "--delta", "3e-6"), ("--epsilon", "0.3", "--delta", "1e-7"), "9 more releases"),
        (("--epsilon", "3", "--delta", "3e-6"), ("--epsilon", "1", "--delta", "1e-6"), "2 more releases"),
        (("--epsilon", "1"), ("--epsilon", "0.5"), "1 more release of"),
        (("--epsilon", "1"), ("--epsilon", "1"), "no further release of"),
        (("--rho", "1"), ("--rho", "1e-9"), "more than 1,000,000 more releases"),
    ],
)
def test_what_is_left_is_told_in_releases(
    total: tuple[str, ...], each: tuple[str, ...], room: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And as many as are told do fit, and not one more."""
    monkeypatch.chdir(tmp_path)
    Path("log.csv").write_text("who,at\na,2013-01-01\n")
    run("ledger", "create", "l.db", "--dataset", "log", "--unit", "event", *total).must_work()
    log = ("log.csv", "--item", "who", "--time", "at", "--start", "2013-01-01", "--end", "2013-01-04")
    spend = ("release", *log, "--unit", "event", *each, "--ledger", "l.db", "--dataset", "log")
    run(*spend, "--window", "cumulative", "-o", "0.json").must_work()
    assert f"  room  for {room}" in run("ledger", "show", "l.db").out
    left = json.loads(run("ledger", "show", "l.db", "--json").out)["datasets"][0]["room"]["releases"]
    if left > 9:
        return
    for number in range(1, left + 2):
        outcome = run(*spend, "--window", f"rolling:{number + 3}", "-o", f"{number}.json")
        assert outcome.code == (0 if number <= left else 2), outcome.err
    assert "no further release" in run("ledger", "show", "l.db").out


def test_room_is_told_for_a_budget_that_is_given(tmp_path: Path) -> None:
    ledger = tmp_path / "l.db"
    run("ledger", "create", ledger, "--dataset", "log", "--unit", "event", "--epsilon", "3", "--delta", "3e-6")
    assert "room" not in run("ledger", "show", ledger).out
    shown = run("ledger", "show", ledger, "--epsilon", "0.3", "--delta", "1e-7").out
    assert "room  for 10 more releases of epsilon = 0.3, delta = 1e-07 each" in shown
    assert "room  for 30 more releases of delta" not in shown
    run("ledger", "show", ledger, "--delta", "1e-7").must_refuse()
