"""`plan --save` and `--plan`: one file holds what was asked, and options on the line win."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest

import dpwindows as dw
from dpwindows.cli import main
from dpwindows.cli.options import group_options, privacy_options, query_options
from dpwindows.plan.shapes import PlanFile
from tests.end_to_end.command_line import run

pytestmark = pytest.mark.usefixtures("one_engine")

RANGE = ("--start", "2013-01-01", "--end", "2013-01-11", "--time-zone", "America/New_York")
QUERY = ("--window", "rolling:3", "--window", "cumulative", "--at-least", "1", "--at-least", "2")
PRIVACY = ("--unit", "event", "--epsilon", "1", "--delta", "1e-6", "--weights", "1,2")

# For every option of a query or of privacy, words that give it, and those that then are in its way.
OPTIONS: dict[str, tuple[str, ...]] = {
    "window": ("--window", "rolling:3"),
    "at-least": ("--window", "rolling:3", "--at-least", "2"),
    "exactly": ("--window", "rolling:3", "--exactly", "1"),
    "histogram": ("--window", "rolling:3", "--histogram", "3"),
    "occurrences": ("--window", "rolling:3", "--occurrences"),
    "distinct-steps": ("--window", "rolling:3", "--distinct-steps"),
    "max-runs": ("--window", "rolling:3", "--max-runs", "2", "--unit", "item"),
    "max-occurrences": ("--window", "rolling:3", "--max-occurrences", "2", "--unit", "item"),
    "estimate-loss": ("--window", "rolling:3", "--max-runs", "2", "--estimate-loss", "0.1", "--unit", "item"),
    "by": ("--window", "rolling:3", "--by", "kind", "--values", "a,b", "--by", "place", "--values", "x"),
    "values": ("--window", "rolling:3", "--by", "kind", "--values", "a,b"),
    "group-of": ("--window", "rolling:3", "--by", "kind", "--values", "a,b", "--group-of", "item", "--unit", "item"),
    "max-groups": ("--window", "rolling:3", "--by", "kind", "--values", "a,b", "--max-groups", "1", "--unit", "item"),
    "totals": ("--window", "rolling:3", "--by", "kind", "--values", "a,b", "--totals", "0.5"),
    "unit": ("--window", "rolling:3", "--unit", "item"),
    "epsilon": ("--window", "rolling:3", "--epsilon", "0.1"),
    "delta": ("--window", "rolling:3", "--epsilon", "0.1", "--delta", "1e-9"),
    "rho": ("--window", "rolling:3", "--rho", "0.2"),
    "strategy": ("--window", "rolling:3", "--strategy", "paper"),
    "criterion": ("--window", "rolling:3", "--criterion", "max"),
    "noise": ("--window", "rolling:3", "--noise", "opendp"),
    "weights": ("--window", "rolling:3", "--window", "any:2", "--weights", "1,3"),
    "singleton": ("--window", "rolling:3", "--singleton"),
    "confidence": ("--window", "rolling:3", "--confidence", "0.5"),
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("log.csv").write_text("who,at\n" + "".join(f"u{n % 5},2013-01-0{n % 9 + 1}T10:00\n" for n in range(40)))
    return tmp_path


def planned(*words: str) -> dict[str, Any]:
    outcome = run("plan", *words, "--json").must_work()
    found: dict[str, Any] = json.loads(outcome.out)
    return found


def own_options() -> set[str]:
    """The names of all options of a query and of privacy."""

    @query_options
    @group_options
    @privacy_options
    def command() -> None: ...

    options: list[click.Option] = command.__click_params__  # type: ignore[attr-defined]
    return {option.opts[0].removeprefix("--") for option in options}


@pytest.mark.slow
def test_every_option_is_carried_by_a_file() -> None:
    """A new option fails here until a plan file carries it, and it has its example."""
    assert own_options() == set(OPTIONS)
    # A file has the values in the table of their column.
    assert set(OPTIONS) - {"values"} <= set(PlanFile.__struct_encode_fields__)
    for name, words in OPTIONS.items():
        more = () if {"--rho", "--epsilon"} & set(words) else ("--epsilon", "1")
        asked = (*words, *more, *(() if "--unit" in words else ("--unit", "event")), "--steps", "6")
        direct = planned(*asked, "--save", f"{name}.toml")
        assert planned("--plan", f"{name}.toml") == direct, name
        forecast = [entry.to_dict() for entry in dw.Plan.from_file(f"{name}.toml").forecast()]
        assert forecast == direct["queries"], name


def test_a_release_takes_all_but_the_data_from_a_file() -> None:
    direct = planned(*QUERY, *PRIVACY, *RANGE, "--save", "plan.toml")
    run("release", "log.csv", "--item", "who", "--time", "at", "--plan", "plan.toml", "-o", "out.json").must_work()
    metadata = dw.Release.load("out.json").metadata
    assert metadata["forecast"] == direct["queries"]
    assert metadata["timeline"] == {
        "start": "2013-01-01",
        "end": "2013-01-11",
        "step": "1d",
        "time_zone": "America/New_York",
        "steps": 10,
    }


@pytest.mark.slow
def test_options_on_the_line_win() -> None:
    planned(*QUERY, *PRIVACY, *RANGE, "--save", "plan.toml")
    for words in (("--epsilon", "2"), ("--rho", "1"), ("--steps", "5"), ("--at-least", "3"), ("--end", "2013-01-21")):
        said = {"--rho": ("--epsilon", "--delta"), "--steps": RANGE[::2], "--at-least": ("--at-least",)}
        left_out = said.get(words[0], (words[0],))
        pairs = list(zip(*[iter((*QUERY, *PRIVACY, *RANGE))] * 2, strict=True))
        rest = [word for pair in pairs if pair[0] not in left_out for word in pair]
        assert planned("--plan", "plan.toml", *words) == planned(*rest, *words), words
    assert planned("--plan", "plan.toml", "--window", "any:2")["queries"][0]["window"] == "any:2"


def test_each_window_may_be_asked_its_own() -> None:
    plan = dw.Plan(
        [dw.Rolling(3).at_least(1, 3), dw.Cumulative().exactly(1)],
        timeline=dw.Timeline("2013-01-01", "2013-01-11"),
        unit=dw.EventLevel(),
        budget=dw.PureDP(1.0),
    )
    from dpwindows.plan.plan_file import to_toml

    Path("own.toml").write_text(to_toml(plan.to_dict()))
    expected = [entry.to_dict() for entry in plan.forecast()]
    assert planned("--plan", "own.toml")["queries"] == expected
    assert planned("--plan", "own.toml", "--save", "again.toml")["queries"] == expected
    assert planned("--plan", "again.toml")["queries"] == expected
    run("plan", "--plan", "own.toml", "--at-least", "2").must_refuse("--window with --at-least")
    assert len(planned("--plan", "own.toml", "--window", "any:2", "--at-least", "2")["queries"]) == 1


def test_one_value_needs_no_brackets_and_weights_may_name_their_windows() -> None:
    rest = 'unit = "event"\nepsilon = 1\nsteps = 9\n'
    Path("one.toml").write_text('window = "rolling:3"\nat-least = 2\nexactly = 1\nhistogram = 4\n' + rest)
    asked = ("--window", "rolling:3", "--at-least", "2", "--exactly", "1", "--histogram", "4")
    assert planned("--plan", "one.toml") == planned(*asked, "--unit", "event", "--epsilon", "1", "--steps", "9")
    Path("two.toml").write_text('window = ["rolling:3", "any:2", "fixed:4"]\n' + rest + '[weights]\n"rolling:4" = 2\n')
    asked = ("--window", "rolling:3", "--window", "any:2", "--window", "rolling:4", "--weights", "1,1,2")
    assert planned("--plan", "two.toml") == planned(*asked, "--unit", "event", "--epsilon", "1", "--steps", "9")
    for wrong, said in (('"any:3" = 1', "not asked for: any:3"), (f'"any:2" = {"9" * 400}', "number out of range")):
        Path("wrong.toml").write_text(Path("two.toml").read_text() + wrong + "\n")
        run("plan", "--plan", "wrong.toml").must_refuse(said)


def test_an_editor_may_mark_a_file_as_utf_8() -> None:
    """A byte order mark, as some editors write it, is no part of the plan."""
    text = 'window = "rolling:3"\nunit = "event"\nepsilon = 1\nsteps = 9\n'
    Path("plain.toml").write_text(text)
    Path("marked.toml").write_text(text, encoding="utf-8-sig")
    assert planned("--plan", "marked.toml") == planned("--plan", "plain.toml")


def test_an_audit_and_a_stream_take_their_length_from_the_range() -> None:
    planned("--window", "rolling:3", "--unit", "event", "--epsilon", "1", *RANGE, "--save", "plan.toml")
    outcome = run("audit", "--plan", "plan.toml", "--check", "encoding").must_work()
    assert "10 steps" in outcome.out
    run("stream", "create", "s.state", "--item", "who", "--time", "at", "--plan", "plan.toml").must_work()
    shown = run("stream", "show", "s.state").out
    assert "1d from 2013-01-01 (America/New_York), 10 in all" in shown


def test_the_plan_of_a_stream_makes_the_stream() -> None:
    asked = ("--window", "rolling:3", "--unit", "event", "--epsilon", "1", "--stream")
    planned(*asked, *RANGE, "--save", "stream.toml")
    assert tomllib.loads(Path("stream.toml").read_text())["stream"] is True
    assert planned("--plan", "stream.toml") == planned(*asked, "--steps", "10")
    run("stream", "create", "s.state", "--item", "who", "--time", "at", "--plan", "stream.toml").must_work()
    assert "1d from 2013-01-01 (America/New_York), 10 in all" in run("stream", "show", "s.state").out
    outcome = run("release", "log.csv", "--item", "who", "--time", "at", "--plan", "stream.toml", "-o", "out.json")
    outcome.must_refuse("stream create")


def test_a_budget_that_was_found_is_saved() -> None:
    found = planned("--window", "rolling:3", "--unit", "event", "--target-std", "5", "--steps", "9", "--save", "p.toml")
    assert planned("--plan", "p.toml")["budget"] == found["budget"]
    again = planned("--plan", "p.toml", "--target-std", "9")
    assert again["budget"]["epsilon"] < found["budget"]["epsilon"]


def test_a_wrong_file_is_refused_and_nothing_is_overwritten() -> None:
    Path("plan.toml").write_text('widnow = "any"\n')
    outcome = run("release", "log.csv", "--item", "who", "--time", "at", "--plan", "plan.toml", "-o", "out.json")
    outcome.must_refuse("unknown key 'widnow' (did you mean 'window'?)")
    assert not Path("out.json").exists()
    words = ("plan", *QUERY, *PRIVACY, "--steps", "5")
    for save, said in (("plan.toml", "exists"), ("plan.txt", ".toml")):
        run(*words, "--save", save).must_refuse(said)
    run(*words, "--save", "plan.toml", "--force").must_work()
    outcome = run("plan", "--plan", "plan.toml", "--save", "plan.toml", "--force").must_refuse()


def test_every_command_that_plans_takes_a_file() -> None:
    for words in (("plan",), ("release",), ("audit",), ("stream", "create")):
        assert "--plan FILE" in run(*words, "--help").out
    assert main.commands.keys() >= {"plan", "release", "audit", "stream"}


@pytest.mark.parametrize("refused", [("--report", "p.html"), ("--stream", "--export", "p.npz")])
def test_what_is_refused_leaves_no_file(folder: Path, refused: tuple[str, ...]) -> None:
    before = sorted(folder.iterdir())
    groups = ("--by", "kind", "--values", "a,b")
    run("plan", *QUERY, *PRIVACY, *groups, "--steps", "5", "--save", "p.toml", *refused).must_refuse()
    assert sorted(folder.iterdir()) == before
