"""`dpwindows theory lower-bounds`: every reduction on its small instance, as the command shows it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from dpwindows.errors import EngineError
from dpwindows.theory import constructions
from dpwindows.theory import reductions as module
from dpwindows.theory.bounds import Setting
from dpwindows.theory.reductions import reductions
from dpwindows.theory.table import lower
from tests.end_to_end.command_line import run
from tests.theory.test_constructions import answers, held, is_singleton

BUNDLE = [
    ("cumulative", "event"),
    ("rolling:5", "event"),
    ("rolling:4", "event"),
    ("any", "event"),
    ("rolling:2", "item"),
    ("rolling:4", "item"),
    ("any", "item"),
]


def shown(*words: str) -> dict[str, Any]:
    outcome = run("theory", "lower-bounds", *words, "--json")
    assert outcome.code == 0, outcome.err
    found: dict[str, Any] = json.loads(outcome.out)
    return found


def test_the_command_shows_problem_log_windows_answers_and_bound() -> None:
    outcome = run("theory", "lower-bounds")
    assert outcome.code == 0, outcome.err
    assert outcome.err == ""
    lines = [line.rstrip() for line in outcome.out.splitlines()]
    first = lines.index("1-D range queries, as cumulative counts")
    assert lines[first + 1 : lines.index("", first)] == [
        "problem     points 3, 1, 5, 3 of 1..5: how many are at most y, for y = 1..5?",
        "log         5 steps, unit event; adding one element adds 1 event",
        "            item 1  1.1..",
        "            item 2  2....",
        "            item 3  1...1",
        "            item 4  1.1..",
        "windows     cumulative, at least 2, in steps 1-1, 1-2, 1-3, 1-4, 1-5",
        "counts      1 1 3 3 4",
        "            which are range counts of 4 points of the log",
        "answers     1 1 3 3 4",
        "bound       largest error of at least 4.5, for every epsilon-private mechanism",
        "grows like  log(T) / eps",
    ]
    assert "epsilon = 0.1, delta = 0:" in outcome.out


def test_every_reduction_of_the_paper_is_run() -> None:
    found = shown()["reductions"]
    assert [(one["window"], one["unit"]) for one in found] == BUNDLE
    for one in found:
        histories = np.array(one["log"])
        counts = [int((histories[:, first - 1 : last].sum(axis=1) >= one["k"]).sum()) for first, last in one["windows"]]
        assert one["counts"] == counts
        assert one["lower"] > 0
        assert one["lower_holds_for"] == "every epsilon-private mechanism"
    assert [one["points"] for one in found] == [4, None, None, 25, None, None, None]
    assert found[3]["answers"] == [[0, 1, 1], [0, 1, 2], [1, 2, 3]]
    assert [one["window"] for one in shown("--k", "1")["reductions"]] == [
        "cumulative",
        "rolling:5",
        "any",
        "rolling:2",
        "any",
    ]
    assert {one["lower_of"] for one in shown("--delta", "1e-6")["reductions"]} == {"rms"}
    assert {one["lower"] for one in shown("--delta", "1e-6", "--singleton")["reductions"]} == {None}


@pytest.mark.parametrize("singleton", [False, True])
@pytest.mark.parametrize("k", [1, 2, 3, 9])
def test_answers_and_bounds_are_those_of_the_definitions(k: int, singleton: bool) -> None:
    for one in reductions(k, 0.1, 0.0, singleton=singleton):
        assert not singleton or is_singleton(one.log)
        assert np.array_equal(one.counts, (held(one.log) >= k).sum(axis=0))
        assert np.array_equal(one.answers, answers(one.log))
        at = Setting(one.log.horizon, getattr(one.log.window, "length", one.log.horizon), k, 0.1, singleton=singleton)
        assert one.bound == lower(one.log.window.text.partition(":")[0], one.log.unit.name, at)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", ["read", "points"])
def test_a_reduction_that_does_not_answer_is_a_bug_and_says_so(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if wrong == "read":
        build = constructions.marginals_any
        monkeypatch.setattr(constructions, "marginals_any", lambda table, k, **more: build(1 - table, k, **more))
    else:
        monkeypatch.setattr(module, "cumulative_points", lambda histories, k: np.array([1]))
    with pytest.raises(EngineError, match="do not answer the problem"):
        reductions(2, 0.1, 0.0, singleton=False)


@pytest.mark.parametrize(
    ("words", "word"),
    [
        (("--k", "0"), "--k"),
        (("--k", "10"), "--k"),
        (("--epsilon", "0"), "--epsilon"),
        (("--epsilon", "nan"), "--epsilon"),
        (("--delta", "1"), "delta"),
    ],
)
def test_bad_requests_are_refused(words: tuple[str, ...], word: str) -> None:
    outcome = run("theory", "lower-bounds", *words)
    assert outcome.code == 2
    assert word in outcome.err
    assert "Traceback" not in outcome.err
