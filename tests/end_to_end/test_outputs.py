"""What a command writes is never what it reads, is written by one process, and is refused before anything is spent."""

from __future__ import annotations

import json
import shlex
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

import dpwindows as dw
from dpwindows.durable import claim
from dpwindows.ledger.ledger import Ledger
from tests.end_to_end.command_line import Outcome, run, run_process
from tests.forked_commands import shown_as

ASKED = shlex.split(
    "--item who --time at --start 2013-01-01 --end 2013-02-01 --window rolling:7 --unit event --epsilon 0.1"
)
LOG = "who,at\nann,2013-01-02\nbob,2013-01-03 10:00:00\nann,2013-01-20\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.csv"
    path.write_text(LOG)
    return path


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    path = tmp_path / "ledger.json"
    run("ledger", "create", path, "--dataset", "d", "--unit", "event", "--epsilon", "1").must_work()
    return path


def spent(ledger: Path) -> int:
    return len(Ledger.open(ledger, "d").book().entries)


def paid(log: Path | str, ledger: Path, output: Path | str, *more: str) -> Outcome:
    return run("release", log, *ASKED, "--ledger", ledger, "--dataset", "d", "-o", output, *more)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def _itself(file: Path) -> Path:
    return file


def _spelled_otherwise(file: Path) -> Path:
    folder = file.parent / "beside"
    folder.mkdir(exist_ok=True)
    return folder / ".." / file.name


def _by_a_soft_link(file: Path) -> Path:
    link = file.parent / "soft.json"
    link.symlink_to(file)
    return link


def _by_a_hard_link(file: Path) -> Path:
    link = file.parent / "hard.csv"
    link.hardlink_to(file)
    return link


WAYS = [_itself, _spelled_otherwise, _by_a_soft_link, _by_a_hard_link]


@pytest.mark.parametrize("way", WAYS)
def test_a_release_never_replaces_its_ledger(log: Path, ledger: Path, way: Callable[[Path], Path]) -> None:
    output = way(ledger)
    before = contents(ledger.parent)
    paid(log, ledger, output, "--force").must_refuse("ledger")
    assert contents(ledger.parent) == before
    if ledger.stat().st_nlink > 1:
        output.unlink()  # a ledger with two names is refused whatever is asked of it
    assert spent(ledger) == 0


@pytest.mark.parametrize("way", WAYS)
def test_a_release_never_replaces_its_log(log: Path, ledger: Path, way: Callable[[Path], Path]) -> None:
    output = way(log)
    paid(log, ledger, output, "--force").must_refuse("is a file that is read here")
    assert log.read_text() == LOG
    assert spent(ledger) == 0


@pytest.mark.parametrize("events", ["logs", "logs/*.csv", "logs/**/*.csv"])
def test_a_release_never_replaces_a_file_of_its_log(tmp_path: Path, ledger: Path, events: str) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for name in ("one.csv", "two.csv"):
        (folder / name).write_text(LOG)
    paid(str(tmp_path / events), ledger, folder / "two.csv", "--force").must_refuse()
    assert (folder / "two.csv").read_text() == LOG
    assert spent(ledger) == 0


def test_metadata_beside_an_output_are_an_output(tmp_path: Path, ledger: Path) -> None:
    log = tmp_path / "out.csv.meta.json"
    (tmp_path / "log.csv").write_text(LOG)
    log.hardlink_to(tmp_path / "log.csv")
    assert paid(tmp_path / "log.csv", ledger, tmp_path / "out.csv", "--force").code == 2
    assert log.read_text() == LOG
    assert spent(ledger) == 0


def test_a_release_never_replaces_a_database_or_its_log(tmp_path: Path, ledger: Path) -> None:
    named = tmp_path / "events.parquet"
    duckdb.connect(str(named)).execute(f"CREATE TABLE log AS FROM read_csv('{_csv(tmp_path)}')").close()
    journal = tmp_path / "events.parquet.wal"
    journal.write_bytes(b"the last rows")
    link = tmp_path / "link.json"
    link.symlink_to(journal)
    elsewhere = tmp_path / "someone.csv"
    with sqlite3.connect(elsewhere) as other:
        other.execute("CREATE TABLE t (x)")
    other.close()
    before = contents(tmp_path)
    for events, output in ((named, named), (named, link), (_csv(tmp_path), named), (_csv(tmp_path), elsewhere)):
        paid(events, ledger, output, "--force").must_refuse()
        assert contents(tmp_path) == before
    assert spent(ledger) == 0


def _csv(folder: Path) -> Path:
    path = folder / "log.csv"
    path.write_text(LOG)
    return path


def test_a_release_never_replaces_a_password_file(log: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text("hush")
    run("release", log, *ASKED, "--password-file", secret, "-o", secret, "--force").must_refuse()
    assert secret.read_text() == "hush"


def test_a_report_never_replaces_its_release(log: Path, tmp_path: Path) -> None:
    made = tmp_path / "out.csv"
    run("release", log, *ASKED, "-o", made).must_work()
    link = tmp_path / "page.html"
    for file in (made, tmp_path / "out.csv.meta.json"):
        link.unlink(missing_ok=True)
        link.hardlink_to(file)
        before = contents(tmp_path)
        run("report", made, "-o", link, "--force").must_refuse()
        assert contents(tmp_path) == before


def test_a_stream_never_replaces_its_state_its_ledger_or_its_log(log: Path, tmp_path: Path, ledger: Path) -> None:
    state = tmp_path / "state.json"
    options = shlex.split("--item who --time at --start 2013-01-01 --window rolling:7 --unit event --epsilon 0.1")
    bought = ("--ledger", ledger, "--dataset", "d")
    run("stream", "create", state, *options, *bought).must_work()
    soft = tmp_path / "soft.json"
    soft.symlink_to(state)
    before = contents(tmp_path)
    for output in (state, soft, ledger, log):
        arguments = ("--through", "2013-02-01", *bought, "-o", output, "--force")
        run("stream", "advance", state, log, *arguments).must_refuse()
        assert contents(tmp_path) == before
        if output != log:
            assert run("stream", "show", state, *bought, "-o", output, "--force").code == 2
            assert contents(tmp_path) == before


@pytest.mark.quick(1)
@pytest.mark.parametrize("ending", ["csv", "parquet", "json"])
def test_of_processes_that_write_one_output_one_wins_and_the_others_spend_nothing(
    log: Path, tmp_path: Path, ledger: Path, forking: Path, ending: str
) -> None:
    """They are forked, so that all of them are at work at the same time, and not at loading libraries."""
    output, budgets = tmp_path / f"out.{ending}", ("0.11", "0.12", "0.13")
    shown_as(tmp_path / "bin" / "dpwindows", forking)
    command = [tmp_path / "bin" / "dpwindows", "release", log, *ASKED]
    processes = [
        subprocess.Popen(
            [*map(str, command), "--epsilon", budget, "--ledger", ledger, "--dataset", "d", "-o", output],
            stderr=subprocess.PIPE,
            text=True,
        )
        for budget in budgets
    ]
    said = {budget: process.communicate()[1] for budget, process in zip(budgets, processes, strict=True)}
    codes = [process.returncode for process in processes]
    assert sorted(codes) == [0, 2, 2], said
    assert spent(ledger) == 1
    winner = budgets[codes.index(0)]
    assert dw.Release.load(output).metadata["budget"]["epsilon"] == float(winner)
    assert not [file for file in tmp_path.iterdir() if file.name.startswith(".")]


def test_an_output_that_another_process_prepares_is_refused(log: Path, tmp_path: Path, ledger: Path) -> None:
    output = tmp_path / "out.parquet"
    with claim(output):
        for more in ((), ("--force",)):
            paid(log, ledger, output, *more).must_refuse("another process is writing")
    assert spent(ledger) == 0
    assert paid(log, ledger, output).code == 0


@pytest.mark.parametrize("with_ledger", [True, False])
def test_an_output_that_appears_after_spending_exits_1_and_is_kept(
    log: Path, tmp_path: Path, ledger: Path, with_ledger: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "out.json"
    save = dw.Release.save

    def late(self: dw.Release, path: Path, *, force: bool) -> None:
        Path(path).write_text("somebody else's")
        save(self, path, force=force)

    with monkeypatch.context() as patched:
        patched.setattr(dw.Release, "save", late)
        if with_ledger:
            outcome = paid(log, ledger, output)
            assert "running this again writes it and spends nothing" in outcome.err
        else:
            outcome = run("release", log, *ASKED, "-o", output)
            assert "discarded and nothing was published" in outcome.err
    assert outcome.code == 1
    assert output.read_text() == "somebody else's"
    assert spent(ledger) == int(with_ledger)
    if with_ledger:
        assert paid(log, ledger, output, "--force").code == 0
        assert spent(ledger) == 1


def test_a_failure_between_spending_and_storing_exits_1(
    log: Path, tmp_path: Path, ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise dw.InputError("these numbers cannot be drawn")

    monkeypatch.setattr("dpwindows.release.run.measure", refuse)
    outcome = paid(log, ledger, tmp_path / "out.csv")
    assert spent(ledger) == 1
    assert outcome.code == 1
    assert "entry 1 is spent" in outcome.err


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_a_ledger_that_others_may_write_is_refused_and_may_be_looked_at(
    log: Path, tmp_path: Path, ledger: Path, mode: int
) -> None:
    ledger.chmod(mode)
    more = ("--unit", "event", "--epsilon", "1")
    for outcome in (paid(log, ledger, tmp_path / "out.csv"), run("ledger", "create", ledger, "--dataset", "e", *more)):
        assert outcome.code == 2
        assert "others may write the ledger" in outcome.err
        assert "chmod 600" in outcome.err
    shown = run("ledger", "show", ledger).must_work()
    assert "others may write the ledger" in shown.err
    ledger.chmod(0o600)
    assert spent(ledger) == 0
    assert run("ledger", "show", ledger).err == ""


@pytest.mark.parametrize("checksum", [None, "sha256:" + "0" * 64])
def test_no_page_is_drawn_of_a_release_without_its_checksum(log: Path, tmp_path: Path, checksum: str | None) -> None:
    made = tmp_path / "out.json"
    run("release", log, *ASKED, "-o", made).must_work()
    content = json.loads(made.read_text())
    content["metadata"]["checksum"] = checksum
    made.write_text(json.dumps(content))
    run("report", made, "-o", tmp_path / "page.html").must_refuse("checksum")
    assert not (tmp_path / "page.html").exists()


@pytest.mark.slow
def test_a_process_of_its_own_leaves_its_output_and_nothing_else(log: Path, tmp_path: Path) -> None:
    outcome = run_process("release", log, *ASKED, "-o", tmp_path / "out.csv")
    assert outcome.code == 0
    assert {file.name for file in tmp_path.iterdir()} == {"log.csv", "out.csv", "out.csv.meta.json"}


@pytest.mark.parametrize("first", [(), ("--raw",)])
def test_a_retry_asks_for_consistent_numbers_as_before(log: Path, ledger: Path, first: tuple[str, ...]) -> None:
    """One release id, one set of numbers: whether there are consistent ones was decided when they were drawn."""
    again = ("--raw",) if not first else ()
    one, two = log.with_name("one.csv"), log.with_name("two.csv")
    paid(log, ledger, one, *first).must_work()
    way = "ask for it with --raw" if first else "ask for it without --raw"
    assert way in paid(log, ledger, two, *again).must_refuse("was released").err
    assert not two.exists()
    paid(log, ledger, two, *first).must_work()
    assert one.read_bytes() == two.read_bytes()
    assert spent(ledger) == 1


def test_a_retry_of_a_release_that_can_have_no_consistent_numbers_is_one(log: Path, tmp_path: Path) -> None:
    """They are not made where runs are bounded, and that nobody left them out is remembered."""
    ledger = tmp_path / "ledger"
    run("ledger", "create", ledger, "--dataset", "d", "--unit", "item-add-remove", "--epsilon", "1").must_work()
    bounded = ("--unit", "item-add-remove", "--max-runs", "1")
    for name in ("one.csv", "two.csv"):
        paid(log, ledger, log.with_name(name), *bounded).must_work()
    assert log.with_name("one.csv").read_bytes() == log.with_name("two.csv").read_bytes()
