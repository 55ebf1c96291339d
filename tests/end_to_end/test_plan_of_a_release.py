"""`plan --release` and `audit --release`: what was published, by the integers that it carries."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.command_line import run

pytestmark = pytest.mark.usefixtures("one_engine")

ASKED = ("--window", "rolling:3", "--unit", "event", "--epsilon", "1")
LOG = "user,at\nana,2\nbob,3\n"


@pytest.fixture
def released(tmp_path: Path) -> Path:
    (tmp_path / "log.csv").write_text(LOG)
    out = tmp_path / "out.json"
    read = ("--item", "user", "--time", "at", "--start", "0", "--end", "8", "--step", "1")
    run("release", tmp_path / "log.csv", *read, *ASKED, "-o", out).must_work()
    return out


def test_a_release_is_shown_exported_saved_and_audited(released: Path, tmp_path: Path) -> None:
    shown = run("plan", "--release", released).must_work()
    assert "The release was 8 numbers from" in shown.out
    run("plan", "--release", released, "--export", tmp_path / "m.npz", "--save", tmp_path / "p.toml").must_work()
    assert (tmp_path / "m.npz").exists()
    assert 'window = ["rolling:3"]' in (tmp_path / "p.toml").read_text()
    audited = run("audit", "--release", released, "--check", "exact").must_work()
    assert "within the claim" in audited.out
    for plan in (("--release", released), ("--plan", tmp_path / "p.toml")):
        attacked = run("audit", *plan, "--attack", "--time", "10m").must_work()
        assert "nothing was found beyond 1 bound" in attacked.out


@pytest.mark.parametrize("option", [("--unit", "item"), ("--epsilon", "2"), ("--window", "any")])
def test_nothing_on_the_line_asks_for_another_plan(option: tuple[str, str], released: Path) -> None:
    for command in ("plan", "audit"):
        run(command, "--release", released, *option).must_refuse(f"which {option[0]} cannot change")
        assert run(command, "--release", released, "--steps", "3").code == 2


def test_the_first_steps_of_a_stream_without_end_are_audited(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(LOG)
    state, out = tmp_path / "state", tmp_path / "out.json"
    run("stream", "create", state, "--item", "user", "--time", "at", "--start", "0", "--step", "1", *ASKED).must_work()
    run("stream", "advance", state, tmp_path / "log.csv", "--through", "4", "-o", out).must_work()
    audited = run("audit", "--release", out, "--steps", "6", "--check", "exact").must_work()
    assert "6 steps" in audited.out
    run("plan", "--release", out, "--export", tmp_path / "m.npz").must_refuse("--export goes with a batch release")
    assert not (tmp_path / "m.npz").exists()
