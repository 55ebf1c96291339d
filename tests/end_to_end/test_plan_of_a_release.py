"""`plan --release` and `audit --release`: what was published, by the integers that it carries."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.command_line import run

ASKED = ("--window", "rolling:3", "--unit", "event", "--epsilon", "1")
LOG = "user,at\nana,2\nbob,3\n"


@pytest.fixture
def released(tmp_path: Path) -> Path:
    (tmp_path / "log.csv").write_text(LOG)
    out = tmp_path / "out.json"
    read = ("--item", "user", "--time", "at", "--start", "0", "--end", "8", "--step", "1")
    assert run("release", tmp_path / "log.csv", *read, *ASKED, "-o", out).code == 0
    return out


def test_a_release_is_shown_exported_saved_and_audited(released: Path, tmp_path: Path) -> None:
    shown = run("plan", "--release", released)
    assert shown.code == 0
    assert "The release was 8 numbers from" in shown.out
    assert run("plan", "--release", released, "--export", tmp_path / "m.npz", "--save", tmp_path / "p.toml").code == 0
    assert (tmp_path / "m.npz").exists()
    assert 'window = ["rolling:3"]' in (tmp_path / "p.toml").read_text()
    audited = run("audit", "--release", released, "--check", "exact")
    assert audited.code == 0
    assert "within the claim" in audited.out


@pytest.mark.parametrize("option", [("--unit", "item"), ("--epsilon", "2"), ("--window", "any")])
def test_nothing_on_the_line_asks_for_another_plan(option: tuple[str, str], released: Path) -> None:
    for command in ("plan", "audit"):
        refused = run(command, "--release", released, *option)
        assert refused.code == 2
        assert f"which {option[0]} cannot change" in refused.err
        assert run(command, "--release", released, "--steps", "3").code == 2


def test_the_first_steps_of_a_stream_without_end_are_audited(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(LOG)
    state, out = tmp_path / "state", tmp_path / "out.json"
    made = run("stream", "create", state, "--item", "user", "--time", "at", "--start", "0", "--step", "1", *ASKED)
    assert made.code == 0
    assert run("stream", "advance", state, tmp_path / "log.csv", "--through", "4", "-o", out).code == 0
    audited = run("audit", "--release", out, "--steps", "6", "--check", "exact")
    assert audited.code == 0
    assert "6 steps" in audited.out
    refused = run("plan", "--release", out, "--export", tmp_path / "m.npz")
    assert refused.code == 2
    assert "--export goes with a batch release" in refused.err
    assert not (tmp_path / "m.npz").exists()
