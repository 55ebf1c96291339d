"""`release --check-first`: a look at the log before anything is spent, and a question if something looks wrong."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.end_to_end.command_line import Outcome, run, run_process

pytestmark = pytest.mark.usefixtures("one_engine")

EPOCH = datetime(1970, 1, 1)
ASKED = ("--window", "rolling:2", "--unit", "event", "--epsilon", "1", "-o", "out.csv", "--check-first")
OF_ONE_RUN = ("release_id", "released_at", "table_sha256", "checksum")
JANUARY = ("--start", "2013-01-01", "--end", "2013-02-01")


@pytest.fixture(autouse=True)
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A month with events on every day, by two countries."""
    monkeypatch.chdir(tmp_path)
    times = [datetime(2013, 1, 1) + timedelta(hours=6 * n) for n in range(124)]
    lines = [
        f"u{n % 9},{at},{(at - EPOCH).total_seconds() * 1000:.0f},{['de', 'fr'][n % 2]}\n" for n, at in enumerate(times)
    ]
    Path("log.csv").write_text("user,time,ms,land\n" + "".join(lines))
    return "log.csv"


def release(*options: str) -> Outcome:
    return run("release", "log.csv", "--item", "user", *options, *ASKED)


def test_it_goes_on_where_all_looks_right() -> None:
    outcome = release("--time", "time", *JANUARY).must_work()
    assert "Looked at the log first: nothing looks wrong." in outcome.err
    assert Path("out.csv").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--time", "time", "--start", "2014-01-01", "--end", "2014-02-01"), "none lies in the range"),
        (("--time", "time", "--start", "2013-01-01", "--end", "2014-02-01"), "the last 365 of 396 steps hold no event"),
        (("--time", "ms", "--time-format", "epoch-s", *JANUARY), "By their size the first times are epoch-ms"),
        (("--time", "ms", "--time-format", "epoch-us", *JANUARY), "By their size the first times are epoch-ms"),
        (("--time", "time", *JANUARY, "--by", "land", "--values", "de,fra"), "'fra' (did you mean 'fr'?)"),
        (("--time", "ms", *JANUARY), "column"),
    ],
)
def test_it_stops_without_a_terminal(options: tuple[str, ...], said: str) -> None:
    """Nothing is spent from the ledger, which has the same total afterwards, and nothing is written."""
    run("ledger", "create", "book.db", "--dataset", "log", "--unit", "event", "--epsilon", "1").must_work()
    before = json.loads(run("ledger", "show", "book.db", "--json").must_work().out)
    release(*options, "--ledger", "book.db", "--dataset", "log").must_refuse(said)
    assert json.loads(run("ledger", "show", "book.db", "--json").must_work().out) == before
    assert not list(Path().glob("out*"))


@pytest.mark.parametrize("asked", [ASKED, ASKED[:-1]])
def test_a_look_refuses_values_as_a_release_does(asked: tuple[str, ...]) -> None:
    """Leaving it out would not help, and it is not said. A row without an item hinders neither of them."""
    command = ("release", "log.csv", "--item", "user", "--time", "time", *JANUARY, *asked, "--force")
    with Path("log.csv").open("a") as log:
        log.write(",soon,0,de\n")
    run(*command).must_work()
    with Path("log.csv").open("a") as log:
        log.write("ann,soon,0,de\n")
    outcome = run(*command).must_refuse("'soon'", "without --check-first" if asked == ASKED else "")
    assert "leave --check-first out" not in outcome.err


def test_a_look_changes_nothing_of_a_release() -> None:
    """Whether it looks wrong or not: but for the noise, what is released is what would be without a look."""
    released = []
    for look in (ASKED, ASKED[:-1]):
        run("release", "log.csv", "--item", "user", "--time", "time", *JANUARY, *look, "--force").must_work()
        metadata = json.loads(Path("out.csv.meta.json").read_text())
        text = json.dumps({name: metadata[name] for name in metadata if name not in OF_ONE_RUN})
        released.append((text, [line.split(",")[:8] for line in Path("out.csv").read_text().splitlines()]))
    assert released[0] == released[1]


def answered(answer: str) -> tuple[int, str]:
    """The exit code and what was shown where the question is answered on a terminal."""
    wrong = ("--time", "time", "--start", "2012-01-01", "--end", "2014-01-01")
    command = [sys.executable, "-m", "dpwindows", "release", "log.csv", "--item", "user", *wrong, *ASKED]
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True) as process:
        os.close(theirs)
        os.write(ours, f"{answer}\n".encode())
        shown = b""
        try:
            while part := os.read(ours, 4096):
                shown += part
        except OSError:  # Linux says so where the other end is closed
            pass
    os.close(ours)
    return process.returncode, shown.decode()


@pytest.mark.quick(8)
def test_it_asks_on_a_terminal() -> None:
    code, shown = answered("n")
    assert (code, Path("out.csv").exists()) == (2, False)
    assert "For your eyes only" in shown
    assert "Release all the same? [y/N]" in shown
    assert "nothing was spent or written" in shown
    code, shown = answered("y")
    assert (code, Path("out.csv").exists()) == (0, True)


def test_other_engines_and_pipes_are_refused(tmp_path: Path) -> None:
    where = ("--table", "visits", "--item", "user", "--time", "time", *JANUARY, *ASKED)
    run("release", "postgresql://reader@localhost/shop", *where).must_refuse("the engine postgresql")
    os.mkfifo("pipe.csv")
    run("release", "pipe.csv", "--item", "user", "--time", "time", *JANUARY, *ASKED).must_refuse("is a pipe")


def test_quiet_says_nothing_where_all_looks_right() -> None:
    outcome = run_process("release", "log.csv", "--item", "user", "--time", "time", *JANUARY, *ASKED, "--quiet")
    assert "Looked" not in outcome.must_work().err


def test_a_password_in_an_address_is_not_repeated() -> None:
    address = "postgresql://ann:s3cret@localhost/shop"
    columns = ("--item", "who", "--time", "at")
    for refused in (run("check", address, *columns), run("release", address, *columns, *JANUARY, *ASKED)):
        refused.must_refuse("")
        assert "s3cret" not in refused.err + refused.out
