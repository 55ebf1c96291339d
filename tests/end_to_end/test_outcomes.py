"""How the command line ends: names of any letters, absurd numbers, Ctrl-C, screens and pipes, too much work."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

import dpwindows as dw
from dpwindows.cli.outcome import ARGUMENTS, PLAIN_ARGUMENTS
from dpwindows.cli.plan import plan
from dpwindows.cli.release import release
from dpwindows.cli.stream import stream
from tests.end_to_end.command_line import run
from tests.patience import PATIENCE
from tests.plans import plan_of

BASE = ("--item", "who", "--time", "at", "--start", "2013-01-01", "--end", "2013-02-01", "--unit", "event")
ASKED = (*BASE, "--window", "rolling:7", "--epsilon", "1")
PLAN = ("plan", "--window", "rolling:7", "--unit", "event", "--epsilon", "1")
MANY = "9" * 5000


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "log.csv"
    path.write_text("who,at\nann,2013-01-02\nbob,2013-01-03 10:00:00\n")
    return path


def _one_message(err: str) -> None:
    assert "Traceback" not in err
    assert len([line for line in err.splitlines() if line.startswith("Error: ")]) == 1, err


def _start(*arguments: str | bytes | Path, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "dpwindows", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="surrogateescape",
        env={**os.environ, "PYTHONPATH": str(Path(dw.__file__).resolve().parents[1]), **(env or {})},
    )


# --- Names ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["x [/x]", "[/]", "[red]", "x\\", "x\\[/b]", ":smile:", "日本"])
def test_names_are_shown_as_they_are(log: Path, name: str) -> None:
    run("ledger", "create", "ledger", "--dataset", name, "--unit", "event", "--epsilon", "5").must_work()
    Path("[").mkdir()
    outcome = run("release", log, *ASKED, "-o", "[/b].json", "--ledger", "ledger", "--dataset", name).must_work()
    assert "[/b].json" in outcome.err
    shown = run("ledger", "show", "ledger").must_work()
    assert name in shown.out


def test_an_argument_that_is_no_utf_8_is_refused_before_anything_is_spent(log: Path) -> None:
    process = _start("release", log, *ASKED, "-o", b"\xff.json")
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    _one_message(err)
    assert r"\xff" in err or r"\udcff" in err
    assert sorted(path.name for path in log.parent.iterdir()) == ["log.csv"]


def test_homes_of_nobody_and_roots_are_refused(log: Path) -> None:
    run("release", "~nouser/x.csv", *ASKED, "-o", "out.json").must_refuse("~nouser/x.csv")
    asked = ("--item", "who", "--time", "at", "--start", "2013-01-01", "--window", "rolling:7", "--unit", "event")
    outcome = run("stream", "create", "/", *asked, "--epsilon", "1").must_refuse()
    _one_message(outcome.err)


def test_messages_are_one_line_that_no_terminal_obeys(log: Path) -> None:
    outcome = run("release", log, *ASKED, "-o", "a\n\x1b[31mError: b\u202e.json", "--item", "\x1b[2J").must_refuse()
    assert outcome.err.isprintable() or outcome.err[:-1].isprintable()
    _one_message(outcome.err)


# --- Numbers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "--window", f"rolling:{MANY}", "--unit", "event", "--epsilon", "1", "--steps", "9"),
        ("plan", "--window", "cumulative", "--unit", f"item-per:{MANY}", "--epsilon", "1", "--steps", "9"),
        (*PLAN, "--steps", MANY),
        (*PLAN, "--steps", "9", "--at-least", MANY),
        (*PLAN, "--steps", "9", "--exactly", "9223372036854775807"),
        (*PLAN, "--start", "0", "--end", "5", "--step", MANY),
        (*PLAN, "--start", MANY, "--end", "5", "--step", "1"),
        (*PLAN, "--steps", "9", "--max-draws", "0"),
        ("theory", "table", "--steps", "9", "--window", MANY),
        ("theory", "table", "--steps", "9", "--window", "3", "--epsilon", "1e300"),
        ("release", "log.csv", *ASKED, "-o", "out.json", "--memory-limit", "9" * 30 + "GB"),
    ],
    ids=lambda arguments: " ".join(word[:20] for word in arguments[:9]),
)
def test_absurd_numbers_are_refused(log: Path, arguments: tuple[str, ...]) -> None:
    outcome = run(*arguments).must_refuse()
    _one_message(outcome.err)
    assert len(outcome.err) < 4000
    assert not Path("out.json").exists()


def test_a_message_names_options_on_the_command_line_and_arguments_in_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    twice = ("--unit", "item", "--max-runs", "2", "--max-occurrences", "3")
    run("plan", "--window", "rolling:7", "--epsilon", "1", "--steps", "9", *twice).must_refuse(
        "give --max-occurrences or --max-runs, and not both"
    )
    asked: dict[str, Any] = {"unit": dw.ItemLevel(), "budget": dw.PureDP(1.0), "max_runs": 2, "max_occurrences": 3}
    with pytest.raises(dw.InputError, match="give max_occurrences or max_runs"):
        dw.Plan(dw.Rolling(7), timeline=dw.Timeline.of_steps(9), **asked)
    every = [option for command in (release, plan, stream.commands["advance"]) for option in command.params]
    options = {name for option in every for name in option.opts}
    assert {f"--{name.replace('_', '-')}" for name in (*ARGUMENTS, *PLAIN_ARGUMENTS)} <= options
    run(*PLAN[:-2], "--steps", "9", "--target-std", "0").must_refuse("Error: --target-std must be")
    # A database may be called like an option.
    with duckdb.connect(str(tmp_path / "window")) as connection:
        connection.execute("CREATE TABLE a AS SELECT 1 AS b; CREATE TABLE c AS SELECT 1 AS d")
    monkeypatch.chdir(tmp_path)
    run("check", "window").must_refuse("Error: window has 2 tables")


@pytest.mark.parametrize(
    ("command", "missing"),
    [
        (("release", "log.csv"), "'--item', '--time', '--start', '--end', '--window', '--unit', '-o' / '--output'"),
        (("release", "log.csv", *ASKED[:4]), "'--start', '--end', '--window', '--unit', '-o' / '--output'"),
        (("stream", "create", *ASKED[:4]), "'STATE', '--start', '--window', '--unit'"),
        (("publish", "--table", "visits"), "'RELEASE', 'DESTINATION'"),
    ],
)
def test_all_that_is_missing_is_named_at_once(command: tuple[str, ...], missing: str) -> None:
    run(*command).must_refuse(f"Error: Missing: {missing}. (see '")


def test_what_a_plan_file_gives_is_not_missing(tmp_path: Path) -> None:
    file = tmp_path / "plan.toml"
    run(*PLAN, "--start", "2013-01-01", "--end", "2013-02-01", "--save", file).must_work()
    run("release", "log.csv", "--plan", file).must_refuse("Error: Missing: '--item', '--time', '-o' / '--output'.")


def test_an_error_below_every_lattice_is_solved_for_or_refused() -> None:
    outcome = run("plan", "--window", "rolling:7", "--unit", "event", "--target-std", "1e-17", "--steps", "9")
    assert outcome.code in (0, 2)
    assert "Traceback" not in outcome.err


# --- Screens and pipes ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_screens_that_know_ascii_only_get_ascii() -> None:
    process = _start(*PLAN, "--steps", "9", env={"PYTHONIOENCODING": "ascii", "LANG": "C", "LC_ALL": "C"})
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert out.isascii()
    assert "+-" in out


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_output_that_cannot_be_written_is_a_failure() -> None:
    command = [sys.executable, "-m", "dpwindows", *PLAN, "--steps", "9"]
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert result.returncode == 1
    _one_message(result.stderr)


@pytest.mark.slow
def test_a_reader_that_goes_away_is_one_message() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "dpwindows", *PLAN, "--steps", "9", "--json"]
    result = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert result.returncode == 1
    _one_message(result.stderr)


# --- Ctrl-C ---------------------------------------------------------------------------------------------------------


def _wait_until(process: subprocess.Popen[str], moment: str, scratch: Path) -> None:
    """Wait until a process loads NumPy, has an engine that counts, or draws noise.

    While DuckDB's library is being set up it may end the process itself, by SIGABRT: that moment is not tried.
    """
    maps = Path(f"/proc/{process.pid}/maps")
    reached: dict[str, Callable[[], bool]] = {
        "loading": lambda: "_multiarray_umath" in maps.read_text(),
        # Its folder for what does not fit into memory is made by what has loaded the library.
        "counting": lambda: any(scratch.iterdir()),
        "drawing": lambda: "opendp" in maps.read_text(),
    }
    until = time.monotonic() + PATIENCE
    while process.poll() is None and not reached[moment]():
        assert time.monotonic() < until, f"never {moment}"
        time.sleep(0.02)
    time.sleep(1.0 if moment == "drawing" else 0.0)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("moment", ["loading", "counting", "drawing"])
def test_ctrl_c_is_130_and_one_line(log: Path, moment: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    scratch = tmp_path_factory.mktemp("scratch")
    many = ["--item", "who", "--time", "at", "--start", "2010-01-01", "--end", "2013-01-01", "--unit", "event"]
    # OpenDP draws slowly enough to be interrupted, and is seen to be loaded.
    many += ["--window", "any", "--rho", "1", "--noise", "opendp"]
    process = _start("release", log, *many, "-o", "out.parquet", env={"TMPDIR": str(scratch)})
    _wait_until(process, moment, scratch)
    assert process.poll() is None, process.communicate()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, err
    _one_message(err)
    assert not Path("out.parquet").exists()
    assert sorted(path.name for path in log.parent.iterdir()) == ["log.csv"]


def test_ctrl_c_is_130_within_code_that_is_made_from_text(tmp_path: Path) -> None:
    """As data classes are, at any import: `python -m` ends by the signal, unless what is raised is not its very own."""
    text = "import os, signal; os.kill(os.getpid(), signal.SIGINT); [None for _ in range(10**9)]"
    program = f"from dpwindows.cli.outcome import whole_run\nwith whole_run([]):\n    exec({text!r})"
    (tmp_path / "interrupted.py").write_text(program)
    command = [sys.executable, "-m", "interrupted"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert result.returncode == 130
    _one_message(result.stderr)


# --- Work -----------------------------------------------------------------------------------------------------------

LARGE = ("--window", "any:100", "--unit", "item", "--rho", "1", "--steps", "40000")


def test_work_beyond_the_limit_is_refused_with_what_it_would_take() -> None:
    outcome = run("plan", *LARGE, "--max-draws", "1000000").must_refuse()
    for word in ("noise values", "1,000,000", "memory", "--max-draws"):
        assert word in outcome.err


def test_a_release_beyond_the_limit_reads_and_spends_nothing(log: Path) -> None:
    outcome = run("release", "no-such-file.csv", *ASKED, "-o", "out.json", "--max-draws", "10")
    outcome.must_refuse("noise values")
    assert "no-such-file" not in outcome.err


def test_plans_tell_the_size_of_their_release_exactly() -> None:
    outcome = run(*PLAN, "--steps", "90", "--json")
    work = json.loads(outcome.out)["workload"]
    plan = dw.Plan([dw.Rolling(7)], timeline=dw.Timeline.of_steps(90), unit=dw.EventLevel(), budget=dw.PureDP(1.0))
    assert work["rows"] == 90
    assert work["noise_values"] == sum(allotment.measurement.design.rows for allotment in plan.allotments)
    with pytest.raises(dw.InputError, match="noise values"):
        plan_of(
            dw.Rolling(7), steps=90, unit=dw.EventLevel(), budget=dw.PureDP(1.0), max_draws=work["noise_values"] - 1
        )


@pytest.mark.slow
def test_bounded_any_windows_over_many_steps_take_little_memory() -> None:
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_DATA, ({3 << 30},) * 2); "
    call = "from dpwindows.cli import main; main()"
    arguments = ("plan", "--window", "any:30", "--unit", "event", "--rho", "1", "--steps", "20000")
    command = [sys.executable, "-c", limited + call, *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("length", [240, 254, 300])
def test_names_too_long_for_a_file_are_refused_before_anything_is_spent(log: Path, length: int) -> None:
    outcome = run("release", log, *ASKED, "-o", "x" * (length - 5) + ".json").must_refuse()
    _one_message(outcome.err)
    assert sorted(path.name for path in log.parent.iterdir()) == ["log.csv"]


def test_a_ledger_whose_stored_release_is_no_bytes_is_damaged(log: Path) -> None:
    run("ledger", "create", "ledger", "--dataset", "log", "--unit", "event", "--epsilon", "5")
    spend = ("release", log, *ASKED, "--ledger", "ledger", "--dataset", "log")
    run(*spend, "-o", "one.json").must_work()
    with sqlite3.connect("ledger") as connection:
        connection.execute("UPDATE releases SET content = 'x'")
    connection.close()
    outcome = run(*spend, "-o", "two.json").must_fail()
    _one_message(outcome.err)
    assert not Path("two.json").exists()


def test_windows_of_any_length_in_streams_are_planned_quickly_or_refused() -> None:
    asked = ("--unit", "event", "--rho", "1", "--stream")
    run("plan", "--window", "rolling:1000000", *asked).must_work()
    for window in ("rolling:" + "9" * 30, "any:100000"):
        run("plan", "--window", window, *asked).must_refuse("--max-draws")


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--epsilon", "1,0", "'1,0' is not a number such as 0.5."),
        ("--at-least", "few", "'few' is not a whole number such as 3."),
    ],
)
def test_values_are_refused_in_words_and_not_in_types(option: str, value: str, words: str) -> None:
    refused = run("plan", "--window", "rolling:2", "--steps", "4", "--unit", "event", "--epsilon", "1", option, value)
    refused.must_refuse(words)
