"""`dpwindows audit` the way a reviewer runs it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from dpwindows.kernel import measure as kernel
from dpwindows.kernel.designs import Design
from tests.end_to_end.command_line import run

pytestmark = pytest.mark.usefixtures("one_engine", "seeded_noise")

EVENT = ("--unit", "event", "--epsilon", "1")


@pytest.mark.slow
def test_it_prints_claim_neighbours_loss_bound_and_verdict() -> None:
    asked = ["--window", "rolling:3", "--at-least", "2", "--steps", "5", "--runs", "400", "--draws", "600"]
    outcome = run("audit", *asked, *EVENT).must_work()
    for words in (
        "Claim: epsilon = 1 (pure) for unit 'event', 5 steps",
        "rolling:3: direct, discrete Laplace noise",
        "log         1....\n  neighbour   2....\n  changed     ^",
        "Exact audit: every neighbouring pair, 810 compared",
        "epsilon = 1, claimed 1",
        "  100% of what the certificates allow for",
        "within the claim",
        "Noise: what is measured less what is exact",
        "1,200 draws, discrete Laplace of scale 3 stated",
        "of that scale (probability 0.99)",
        "false alarm: probability 1e-06 over all tests",
        "Encoding: 56 made-up logs of up to 1,099,511,627,776 items",
        "one matrix",
        "Replay: 10 pairs of neighbours",
        "nothing but noise",
        "Black-box audit: 400 releases of each log",
        "99.9999% confidence",
        "not contradicted",
    ):
        assert words in outcome.out


@pytest.mark.slow
@pytest.mark.search(1)
@pytest.mark.parametrize("privacy", [EVENT, (*EVENT, "--delta", "0.1"), ("--unit", "item", "--rho", "0.5")], ids=str)
def test_findings_as_json(privacy: tuple[str, ...]) -> None:
    asked = ("--window", "rolling:2", "--window", "any", "--exactly", "1", *privacy, "--steps", "4")
    outcome = run("audit", *asked, "--runs", "200", "--draws", "300", "--json").must_work()
    found = json.loads(outcome.out)
    assert found["within_the_claim"] is True
    exact, seen = found["exact"], found["black_box"]
    assert exact["compared"] == "every neighbour"
    assert exact["loss"]["at_most"] <= exact["loss"]["claimed"]
    assert exact["verdict"] == "within the claim"
    assert seen["log"] == exact["worst"]["log"]
    assert seen["releases_of_each"] == 200
    assert 0 <= seen["epsilon_at_least"] <= seen["claim"]["epsilon"]
    assert found["noise"]["verdict"] == "as stated"
    assert [one["window"] for one in found["noise"]["measurements"]] == ["rolling:2", "any"]
    assert found["encoding"]["verdict"] == "one matrix"
    assert found["replay"]["verdict"] == "nothing but noise"
    assert 0 < found["replay"]["of_certified"] <= 1


def test_either_audit_can_be_left_out() -> None:
    asked = ("--window", "cumulative", "--unit", "item-add-remove", "--epsilon", "1", "--steps", "4")
    exact = run("audit", *asked, "--exact").must_work()
    assert "Exact audit" in exact.out
    assert "Black-box" not in exact.out
    seen = run("audit", *asked, "--black-box", "--runs", "200").must_work()
    assert "Exact audit" not in seen.out
    assert "Black-box audit" in seen.out
    assert json.loads(run("audit", *asked, "--exact", "--json").out)["black_box"] is None


def test_long_horizons_are_searched_and_say_so() -> None:
    asked = ("--window", "rolling:7", "--unit", "item", "--rho", "0.5", "--steps", "40")
    outcome = run("audit", *asked, "--exact").must_work()
    assert "the worst of the pairs that a search tried" in outcome.out
    assert "a search is no proof" in outcome.out


def test_a_window_longer_than_the_audited_horizon_is_told() -> None:
    outcome = run("audit", "--window", "rolling:28", *EVENT, "--steps", "5", "--exact").must_work()
    assert "means cumulative here" in outcome.err


@pytest.mark.slow
def test_half_the_noise_of_the_documented_example_exits_with_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """What thousands of releases do not show: the noise by itself does, in a few hundred draws."""
    asked = ("--window", "rolling:7", "--at-least", "3", "--unit", "item-per:3", "--epsilon", "1", "--steps", "8")
    wanted = (*asked, "--check", "noise", "--draws", "400")
    run("audit", *wanted).must_work()
    draw = kernel.draw_noise
    monkeypatch.setattr(kernel, "draw_noise", lambda law, scale, *more: draw(law, scale / 2, *more))
    outcome = run("audit", *wanted)
    assert (outcome.code, "Traceback" in outcome.err) == (1, False)
    assert "FAULT: scale (rolling:7, an empty log)" in outcome.out
    assert "not as stated" in outcome.out


def test_an_encoding_that_heeds_the_data_exits_with_one(monkeypatch: pytest.MonkeyPatch) -> None:
    encode = Design.encode
    monkeypatch.setattr(
        Design,
        "encode",
        lambda self, answers, k: encode(self, answers, k) * (2 if answers.cumulative(k).max() > 2000 else 1),
    )
    asked = ("--window", "rolling:2", *EVENT, "--steps", "4")
    run("audit", *asked, "--check", "exact").must_work()
    outcome = run("audit", *asked, "--check", "encoding", "--json")
    assert outcome.code == 1
    found = json.loads(outcome.out)
    assert found["encoding"]["verdict"] == "depends on the data"
    assert found["exact"] is found["noise"] is found["replay"] is found["black_box"] is None


def test_metadata_that_heed_the_data_exit_with_one(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpwindows.release import run as release

    made = release.draw_estimates

    def clamped(plan: Any, answers: Any, *more: Any) -> Any:
        return [np.minimum(values, answers.cumulative(1)[-1]) for values in made(plan, answers, *more)]

    monkeypatch.setattr(release, "draw_estimates", clamped)
    asked = ("--window", "rolling:2", "--unit", "item-add-remove", "--epsilon", "0.01", "--steps", "4")
    outcome = run("audit", *asked, "--check", "replay")
    assert outcome.code == 1
    assert "column 'estimate' of the release differs between neighbours" in outcome.out
    assert "Traceback" not in outcome.err


@pytest.mark.slow
def test_a_stream_is_audited_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpwindows.stream import mechanism

    asked = ("--window", "rolling:2", "--unit", "event", "--rho", "0.5", "--steps", "3", "--stream", "--json")
    outcome = run("audit", *asked, "--check", "noise", "--check", "replay", "--draws", "300").must_work()
    found = json.loads(outcome.out)
    assert found["noise"]["verdict"] == "as stated"
    assert found["replay"]["verdict"] == "nothing but noise"
    assert found["black_box"] is None
    step = vars(mechanism)["measure_step"]

    def halved(measurements: Any, budget: Any, number: int, exact: Any, by: Any) -> Any:
        noisy = step(measurements, budget, number, exact, by)
        return [{k: (values + exact[i][k]) // 2 for k, values in one.items()} for i, one in enumerate(noisy)]

    monkeypatch.setattr(mechanism, "measure_step", halved)
    assert run("audit", *asked, "--check", "replay").code == 1


def test_a_wrong_sensitivity_exits_with_one(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpwindows.kernel.families import runs

    monkeypatch.setattr(runs, "affected_ends", lambda length, span, steps: 1)
    asked = ("--window", "rolling:2", "--strategy", "direct", *EVENT, "--steps", "3")
    outcome = run("audit", *asked, "--exact", "--json")
    assert outcome.code == 1
    found: dict[str, Any] = json.loads(outcome.out)
    assert found["exact"]["loss"]["at_least"] == pytest.approx(2.0)
    assert found["exact"]["verdict"] == "beyond the claim"
    assert found["within_the_claim"] is False


def test_an_attack_says_what_was_tried_and_what_was_found() -> None:
    asked = ("audit", "--attack", "--window", "rolling:3", "--at-least", "2", *EVENT)
    short = run(*asked, "--steps", "5").must_work()
    for words in (
        "rolling:3, L1 norm: bound 3 (proof windows-on-lines)",
        "log         1....\n  neighbour   2....\n  changed     ^",
        "largest change found: 3, 100% of the bound",
        "every pair of neighbours was compared, 810: nothing is worse over these steps",
        "nothing was found beyond 1 bound",
    ):
        assert words in short.out
    assert "no proof" not in short.out
    long = run(*asked, "--steps", "40", "--time", "1s").must_work()
    assert "pairs with every event in a few steps, all there are of these" in long.out
    assert "tried by annealing:" in long.out
    assert "an attack that finds nothing is no proof" in long.out


def test_a_bound_that_an_attack_breaks_exits_with_one(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpwindows.kernel.families import runs

    monkeypatch.setattr(runs, "affected_ends", lambda length, span, steps: length - 1)
    asked = ("audit", "--attack", "--window", "rolling:4", "--strategy", "direct", *EVENT, "--steps", "30")
    outcome = run(*asked, "--time", "10m")
    assert outcome.code == 1
    assert "largest change found: 4, 133.3% of the bound" in outcome.out
    assert "BEYOND THE BOUND" in outcome.out
    assert "1 of 1 bound broken" in outcome.out
    found = json.loads(run(*asked, "--time", "10m", "--json").out)
    assert found["within_the_claim"] is found["attack"]["holds"] is False
    (one,) = found["attack"]["bounds"]
    assert (one["bound"], one["reached"], one["of"], one["holds"]) == ("3", "4", "L1 norm", False)
    assert sum(one["worst"]["neighbour"]) == sum(one["worst"]["log"]) + 1


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        (("--steps", "0"), "--steps"),
        (("--steps", "5", "--runs", "10"), "at least 100"),
        (("--steps", "5", "--unit", "person"), "person"),
        (("--steps", "5", "--window", "daily"), "daily"),
        (("--steps", "150", "--window", "any"), "fewer steps"),
        (("--steps", "5", "--draws", "10"), "at least 300"),
        (("--steps", "5", "--exactly", "9223372036854775807"), "--exactly must be at most 10^18"),
        (("--steps", "5", "--exactly", "2147483648"), "below 2**31"),
        (("--steps", "5", "--runs", "1000000000000000000"), "--max-minutes"),
        (("--steps", "5", "--draws", "1000000000000000000"), "--max-minutes"),
        (("--steps", "5", "--runs", "1e18"), "--runs"),
        (("--steps", "5", "--runs", "1000000000", "--max-minutes", "1e9"), "GiB"),
        (("--steps", "5", "--max-minutes", "0"), "--max-minutes"),
        (("--steps", "5", "--max-minutes", "nan"), "--max-minutes"),
        (("--steps", "5", "--check", "noise", "--exact"), "--check"),
        (("--steps", "5", "--check", "everything"), "--check"),
        (("--steps", "5", "--stream", "--black-box"), "--stream"),
        (("--steps", "5", "--attack", "--exact"), "--attack stands by itself"),
        (("--steps", "5", "--time", "5m"), "--attack"),
        (("--steps", "5", "--attack", "--time", "5"), "such as 90s, 5m or 1h"),
        (("--steps", "5", "--attack", "--time", "-1m"), "such as 90s, 5m or 1h"),
        (("--steps", "5", "--attack", "--time", "nanh"), "such as 90s, 5m or 1h"),
        ((), "--steps"),
    ],
)
def test_bad_requests_are_refused(changed: tuple[str, ...], word: str) -> None:
    run("audit", "--window", "rolling:2", *EVENT, *changed).must_refuse(word)


@pytest.mark.slow
def test_what_an_audit_will_take_is_said_and_can_be_allowed() -> None:
    asked = ("--window", "rolling:2", *EVENT, "--steps", "3", "--check", "black-box", "--runs", "3000")
    refused = run("audit", *asked, "--max-minutes", "0.01").must_refuse("noise values, which takes about")
    assert "allowed 0.01 minutes" in refused.err
    run("audit", *asked, "--max-minutes", "1").must_work()


def test_few_releases_are_said_to_show_nothing_and_to_be_no_fault() -> None:
    outcome = run("audit", "--window", "rolling:2", *EVENT, "--steps", "3", "--check", "black-box", "--runs", "100")
    outcome.must_work()
    said = " ".join(outcome.out.split())
    assert "which shows nothing of the 1 claimed there; that is no fault" in said
    assert "So few releases can only find a mechanism that has no privacy at all." in said
