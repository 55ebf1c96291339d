"""`dpwindows audit` the way a reviewer runs it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dpwindows.kernel import measure as kernel
from tests.end_to_end.command_line import run

EVENT = ("--unit", "event", "--epsilon", "1")


def test_it_prints_claim_neighbours_loss_bound_and_verdict() -> None:
    outcome = run("audit", "--window", "rolling:3", "--at-least", "2", *EVENT, "--steps", "5", "--runs", "400")
    assert outcome.code == 0, outcome.err
    for words in (
        "Claim: epsilon = 1 (pure) for unit 'event', 5 steps",
        "rolling:3: direct, discrete Laplace noise",
        "log         1....\n  neighbour   2....\n  changed     ^",
        "Exact audit: every neighbouring pair, 810 compared",
        "epsilon = 1, claimed 1",
        "100.0% of what the certificates allow for",
        "within the claim",
        "Black-box audit: 400 releases of each log",
        "99.9999% confidence",
        "not contradicted",
    ):
        assert words in outcome.out


@pytest.mark.parametrize("privacy", [EVENT, (*EVENT, "--delta", "0.1"), ("--unit", "item", "--rho", "0.5")], ids=str)
def test_findings_as_json(privacy: tuple[str, ...]) -> None:
    asked = ("--window", "rolling:2", "--window", "any", "--exactly", "1", *privacy, "--steps", "4")
    outcome = run("audit", *asked, "--runs", "200", "--json")
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out)
    assert found["within_the_claim"] is True
    exact, seen = found["exact"], found["black_box"]
    assert exact["compared"] == "every neighbour"
    assert exact["loss"]["at_most"] <= exact["loss"]["claimed"]
    assert exact["verdict"] == "within the claim"
    assert seen["log"] == exact["worst"]["log"]
    assert seen["releases_of_each"] == 200
    assert 0 <= seen["epsilon_at_least"] <= seen["claim"]["epsilon"]


def test_either_audit_can_be_left_out() -> None:
    asked = ("--window", "cumulative", "--unit", "item-add-remove", "--epsilon", "1", "--steps", "4")
    exact = run("audit", *asked, "--exact")
    assert exact.code == 0
    assert "Exact audit" in exact.out
    assert "Black-box" not in exact.out
    seen = run("audit", *asked, "--black-box", "--runs", "200")
    assert seen.code == 0
    assert "Exact audit" not in seen.out
    assert "Black-box audit" in seen.out
    assert json.loads(run("audit", *asked, "--exact", "--json").out)["black_box"] is None


def test_long_horizons_are_searched_and_say_so() -> None:
    asked = ("--window", "rolling:7", "--unit", "item", "--rho", "0.5", "--steps", "40")
    outcome = run("audit", *asked, "--exact")
    assert outcome.code == 0, outcome.err
    assert "the worst of the pairs that a search tried" in outcome.out
    assert "a search is no proof" in outcome.out


def test_a_window_longer_than_the_audited_horizon_is_told() -> None:
    outcome = run("audit", "--window", "rolling:28", *EVENT, "--steps", "5", "--exact")
    assert outcome.code == 0
    assert "means cumulative here" in outcome.err


def test_a_violation_exits_with_one(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = kernel.draw_noise
    monkeypatch.setattr(kernel, "draw_noise", lambda law, scale, *more: draw(law, scale / 3, *more))
    outcome = run("audit", "--window", "rolling:2", *EVENT, "--steps", "3", "--runs", "600")
    assert outcome.code == 1
    assert "beyond the claim" in outcome.out
    assert "Traceback" not in outcome.err


def test_a_wrong_sensitivity_exits_with_one(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpwindows.kernel.bounds import sensitivity

    monkeypatch.setattr(sensitivity, "direct_cells", lambda *arguments, **named: 1)
    asked = ("--window", "rolling:2", "--strategy", "direct", *EVENT, "--steps", "3")
    outcome = run("audit", *asked, "--exact", "--json")
    assert outcome.code == 1
    found: dict[str, Any] = json.loads(outcome.out)
    assert found["exact"]["loss"]["at_least"] == pytest.approx(2.0)
    assert found["exact"]["verdict"] == "beyond the claim"
    assert found["within_the_claim"] is False


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        (("--steps", "0"), "--steps"),
        (("--steps", "5", "--runs", "10"), "at least 100"),
        (("--steps", "5", "--unit", "person"), "person"),
        (("--steps", "5", "--window", "daily"), "daily"),
        (("--steps", "150", "--window", "any"), "fewer steps"),
        ((), "--steps"),
    ],
)
def test_bad_requests_are_refused(changed: tuple[str, ...], word: str) -> None:
    outcome = run("audit", "--window", "rolling:2", *EVENT, *changed)
    assert outcome.code == 2
    assert word in outcome.err
    assert "Traceback" not in outcome.err
