"""The terminal: results first, `--quiet` and `--json` on every command, no colour codes in pipes, completion."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

import dpwindows as dw
from dpwindows.cli import main
from tests.end_to_end.command_line import run, run_process

ASKED = ("--window", "rolling:2", "--unit", "event", "--epsilon", "1")
DATA = ("--item", "who", "--time", "at")
RANGE = ("--start", "2013-01-01", "--end", "2013-01-04")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("log.csv").write_text("who,at\na,2013-01-01T10:00\nb,2013-01-02T10:00\n")
    Path("day.csv").write_text("who,at\na,2013-01-01T10:00\n")


def commands(group: click.Group = main, *path: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, *path, name)
        else:
            yield (*path, name), command


def test_every_command_has_quiet_and_json() -> None:
    found = list(commands())
    assert len(found) >= 13
    for path, command in found:
        options = {option for param in command.params for option in param.opts}
        assert {"--quiet", "--json"} <= options, path


# What is run in order, each in the state that those before it left.
LINES: list[tuple[str, ...]] = [
    ("plan", *ASKED, "--steps", "5"),
    ("check", "log.csv"),
    ("ledger", "create", "l.db", "--dataset", "log", "--unit", "event", "--epsilon", "2"),
    ("release", "log.csv", *DATA, *RANGE, *ASKED, "--ledger", "l.db", "--dataset", "log", "-o", "out.json"),
    ("ledger", "show", "l.db"),
    ("stream", "create", "s.state", *DATA, "--start", "2013-01-01", *ASKED),
    ("stream", "advance", "s.state", "day.csv", "--through", "2013-01-02"),
    ("stream", "show", "s.state"),
    ("audit", *ASKED, "--steps", "3", "--check", "exact"),
    ("theory", "table", "--steps", "4", "--window", "2"),
    ("theory", "lower-bounds"),
]


@pytest.mark.slow
def test_json_is_json_alone_and_quiet_is_silent() -> None:
    for words in LINES:
        outcome = run(*words, "--json").must_work()
        assert isinstance(json.loads(outcome.out), dict), words
    for path in ("l.db", "s.state", "s.state.mark", "out.json"):
        Path(path).unlink()
    shutil.rmtree("s.state-items")
    for words in LINES:
        outcome = run(*words, "--quiet")
        assert (outcome.code, outcome.err) == (0, ""), words
    assert run("plan", *ASKED, "--steps", "5", "-q").out == run("plan", *ASKED, "--steps", "5").out


def test_quiet_ends_with_its_command() -> None:
    run("ledger", "create", "one.db", "--dataset", "log", "--unit", "event", "--epsilon", "1", "-q")
    said = run("ledger", "create", "two.db", "--dataset", "log", "--unit", "event", "--epsilon", "1").err
    assert said.startswith("Dataset 'log' may spend")


def test_warnings_and_errors_are_said_quietly_too() -> None:
    assert run("plan", *ASKED[:4], "--epsilon", "11", "--steps", "5", "-q").err.startswith("Warning: epsilon 11")
    assert run("plan", *ASKED, "--steps", "0", "-q").err.startswith("Error: ")


def test_a_release_says_its_result_first_and_its_promise_last() -> None:
    outcome = run("release", "log.csv", *DATA, *RANGE, *ASKED, "-o", "out.json")
    lines = outcome.err.strip().splitlines()
    assert lines[0].startswith("Released 3 numbers to out.json")
    assert lines[-1].startswith("This release satisfies epsilon = 1 (pure) differential privacy")
    assert "'guarantee' in its metadata" in lines[-1]
    assert dw.Release.load("out.json").metadata["guarantee"].partition(":")[0] in lines[-1]


def test_the_json_of_a_release_tells_where_it_is() -> None:
    asked = ("release", "log.csv", *DATA, *RANGE, *ASKED, "-o", "out.json", "--json")
    found: dict[str, Any] = json.loads(run(*asked).out)
    loaded = dw.Release.load("out.json")
    assert found["release_id"] == loaded.metadata["release_id"]
    assert (found["output"], found["numbers"], found["stored"]) == ("out.json", 3, False)


def test_the_json_of_a_stream_has_its_numbers() -> None:
    run("stream", "create", "s.state", *DATA, "--start", "2013-01-01", *ASKED).must_work()
    found = json.loads(run("stream", "advance", "s.state", "day.csv", "--through", "2013-01-02", "--json").out)
    assert (found["closed_now"], found["through"], found["numbers"]) == (1, "2013-01-02", 1)
    shown = json.loads(run("stream", "show", "s.state", "--json").out)
    assert shown["rows"] == found["rows"]


@pytest.mark.slow
def test_no_colour_codes_in_pipes() -> None:
    for words in (LINES[0], LINES[1], ("release", "log.csv", *DATA, *RANGE, *ASKED, "-o", "out.csv"), LINES[8]):
        outcome = run_process(*words, cwd=Path.cwd())
        assert outcome.code == 0, outcome.err
        assert "\x1b" not in outcome.out + outcome.err, words


def test_windows_that_look_like_markup_are_shown_as_they_are() -> None:
    """What users write reaches the screen: an unknown window with brackets, in the message about it."""
    outcome = run("audit", "--window", "[bold]x[/bold]", "--unit", "event", "--epsilon", "1", "--steps", "3")
    outcome.must_refuse("[bold]x[/bold]")


@pytest.mark.quick(1)
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands_and_options(shell: str) -> None:
    def completed(**more: str) -> str:
        environment = {**os.environ, **more}
        command = [sys.executable, "-m", "dpwindows"]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False).stdout

    assert "_DPWINDOWS_COMPLETE" in completed(_DPWINDOWS_COMPLETE=f"{shell}_source")
    if shell == "bash":
        for words, cword, wanted in (
            ("dpwindows re", "1", "release"),
            ("dpwindows plan --plan p.toml --wi", "4", "--window"),
            ("dpwindows stream cr", "2", "create"),
        ):
            shown = completed(_DPWINDOWS_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=cword)
            assert f"plain,{wanted}" in shown.splitlines(), words


def test_the_promise_names_the_whole_unit_and_the_stream_that_keeps_it() -> None:
    made = run("stream", "create", "a.state", *DATA, "--start", "2013-01-01", "--step", "1d", "--window", "rolling:2",
               "--unit", "item-per:3", "--epsilon", "1", "--horizon", "8")  # fmt: skip
    assert made.code == 0, made.err
    assert "level of the unit 'item-per:3'; what" in made.err
    assert "dpwindows stream show a.state." in made.err


def test_a_ledger_says_what_the_groups_were_and_epsilon_first() -> None:
    budget = ("--epsilon", "1", "--delta", "1e-6")
    run("ledger", "create", "l.db", "--dataset", "d", "--unit", "event", *budget).must_work()
    release = run("release", "log.csv", *DATA, *RANGE, "--window", "rolling:2", "--unit", "event", *budget,
                  "--by", "who", "--values", "a,b", "--ledger", "l.db", "--dataset", "d", "-o", "r.csv")  # fmt: skip
    assert release.code == 0, release.err
    (entry,) = json.loads(run("ledger", "show", "l.db", "--json").out)["datasets"][0]["entries"]
    assert entry["asked"] == "rolling:2 at least 1, by who"
    shown = run("ledger", "show", "l.db").out
    assert "epsilon = 1, delta = 1e-06 epsilon = 0, delta = 0" in shown
    assert "delta = 1e-06, epsilon" not in shown
