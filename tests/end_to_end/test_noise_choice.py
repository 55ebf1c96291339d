"""`--noise`: who draws the noise, what says so afterwards, and what becomes of it where OpenDP is not installed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import dpwindows as dw
from dpwindows.kernel import measure as kernel
from dpwindows.kernel import opendp_noise
from dpwindows.kernel.accounting import Law
from dpwindows.kernel.measure import EXACT, OPENDP, Sampler
from dpwindows.plan.description import library_versions
from tests.end_to_end.command_line import run
from tests.plans import plan_of

ASKED = ("--item", "who", "--time", "at", "--start", "0", "--step", "1", "--window", "cumulative", "--unit", "event")
RELEASED = (*ASKED, "--epsilon", "1", "--end", "4")
LOG = pa.table({"who": ["ann", "bob"], "at": [1, 2]})


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text("who,at\nann,1\nbob,2\n")
    return tmp_path / "log.csv"


@pytest.fixture
def missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenDP is not installed."""
    monkeypatch.setattr(opendp_noise, "find_spec", lambda name: None)


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "name"), [(EXACT, "dpwindows"), (OPENDP, "OpenDP")])
def test_a_release_says_whose_sampler_drew_its_noise(log: Path, noise: Sampler, name: str) -> None:
    given = () if noise == EXACT else ("--noise", noise)
    run("release", log, *RELEASED, *given, "-o", "out.json").must_work()
    metadata = json.loads(Path("out.json").read_text())["metadata"]
    assert metadata["noise"] == noise
    assert ("opendp" in metadata["versions"]) == (noise == OPENDP)
    for form in ((), ("--json",), ("--yaml",)):
        assert f"drawn by an exact sampler of {name}" in " ".join(
            run("statement", "out.json", *form).must_work().out.split()
        )
    assert dw.Release.load("out.json").metadata["noise"] == noise


@pytest.mark.slow
def test_a_stream_draws_by_the_sampler_it_was_created_with(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []

    def noted(name: Sampler) -> Callable[..., Any]:
        honest = kernel._SAMPLERS[name]

        def sampler(law: Law, scale: float, count: int) -> Any:
            drawn.append(name)
            return honest(law, scale, count)

        return sampler

    for name in (EXACT, OPENDP):
        monkeypatch.setitem(kernel._SAMPLERS, name, noted(name))
    for by in (EXACT, OPENDP):
        drawn.clear()
        state = f"{by}.state"
        run("stream", "create", state, *ASKED, "--epsilon", "1", "--horizon", "4", "--noise", by).must_work()
        run("stream", "advance", state, log, "--through", "4", "-o", f"{by}.json").must_work()
        assert set(drawn) == {by}
        assert json.loads(Path(f"{by}.json").read_text())["metadata"]["noise"] == by


def test_without_opendp_nothing_is_read_or_spent(log: Path, missing: None) -> None:
    run("ledger", "create", "ledger", "--dataset", "log", "--unit", "event", "--epsilon", "2").must_work()
    paid = ("--ledger", "ledger", "--dataset", "log", "--noise", "opendp")
    outcome = run("release", "no-such-file.csv", *RELEASED, *paid, "-o", "out.json")
    outcome.must_refuse("pip install 'dpwindows[opendp]'")
    assert "--noise exact" in outcome.err
    created = run("stream", "create", "users.state", *ASKED, "--epsilon", "1", "--horizon", "4", *paid)
    created.must_refuse("dpwindows[opendp]")
    assert sorted(path.name for path in log.parent.iterdir() if "ledger" not in path.name) == ["log.csv"]
    assert json.loads(run("ledger", "show", "ledger", "--json").must_work().out)["datasets"][0]["spent"]["epsilon"] == 0


def test_without_opendp_a_stream_that_needs_it_waits_for_it(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = run("stream", "create", "users.state", *ASKED, "--epsilon", "1", "--horizon", "4", "--noise", "opendp")
    made.must_work()
    advance = ("stream", "advance", "users.state", log, "--through", "4", "-o", "out.json")
    with monkeypatch.context() as patch:
        patch.setattr(opendp_noise, "find_spec", lambda name: None)
        run(*advance).must_refuse("dpwindows[opendp]")
        assert not Path("out.json").exists()
    run(*advance).must_work()
    # What was released can be had again without it.
    monkeypatch.setattr(opendp_noise, "find_spec", lambda name: None)
    run(*advance[:-1], "again.json").must_work()


@pytest.mark.usefixtures("missing")
def test_without_opendp_everything_else_works(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("plan", *RELEASED[4:], "--noise", "opendp").must_work()
    run("release", log, *RELEASED, "-o", "out.csv").must_work()
    assert OPENDP not in library_versions(EXACT)


def test_other_samplers_are_refused() -> None:
    with pytest.raises(dw.InputError, match="noise must be exact or opendp, got 'seeded'"):
        dw.Plan(
            dw.Cumulative(),
            timeline=dw.Timeline.of_steps(4),
            unit=dw.EventLevel(),
            budget=dw.PureDP(1.0),
            noise="seeded",  # type: ignore[arg-type]
        )


def test_a_release_by_another_sampler_is_another_release(tmp_path: Path) -> None:
    ledger = dw.Ledger.create(tmp_path / "ledger", "log", budget=dw.PureDP(5.0), unit=dw.EventLevel())
    found = []
    for noise in (EXACT, OPENDP, EXACT, OPENDP):
        plan = plan_of(dw.Cumulative(), steps=4, unit=dw.EventLevel(), budget=dw.PureDP(1.0), noise=noise)
        found.append(plan.run(LOG, item="who", time="at", ledger=ledger).metadata["release_id"])
    assert found[:2] == found[2:]
    assert len(set(found)) == 2
