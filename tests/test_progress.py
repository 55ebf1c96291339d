"""Progress of long work: what is shown, and to whom."""

from __future__ import annotations

import re
import time

import pytest

from dpwindows.progress import QUIET, show_progress
from tests.patience import PATIENCE
from tests.terminal import Terminal


def at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """In the test itself: pytest has standard error of its own from there on."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr("dpwindows.progress._DELAY", 0.01)
    stand_in = Terminal()
    monkeypatch.setattr("sys.stderr", stand_in)
    return stand_in


def wait_for(pattern: str, terminal: Terminal, seconds: float = PATIENCE) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if re.search(pattern, re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", "".join(terminal.written))):
            return True
        time.sleep(0.01)
    return False


def test_work_of_unknown_length_tells_the_time_so_far_and_is_erased(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = at_a_terminal(monkeypatch)
    with show_progress("planning"):
        assert wait_for(r"planning .* \d:\d\d:\d\d so far", terminal)
    assert re.search(r"\x1b\[(?:1A\x1b\[)?2K", terminal.written[-1])


@pytest.mark.parametrize("asked", [False, True])
def test_work_of_known_length_tells_its_share(monkeypatch: pytest.MonkeyPatch, asked: bool) -> None:
    terminal = at_a_terminal(monkeypatch)
    found = iter([-1.0, 10.0])
    with show_progress("counting", 20, done=(lambda: next(found, 5.0)) if asked else None) as advance:
        if not asked:
            advance(5)
        assert wait_for(r"counting .* 25% .* left", terminal)


@pytest.mark.parametrize("why", ["quiet", "short", "no terminal", "not wanted"])
def test_nothing_is_shown(monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    terminal = at_a_terminal(monkeypatch)
    if why == "short":
        monkeypatch.setattr("dpwindows.progress._DELAY", PATIENCE)
    if why == "no terminal":
        monkeypatch.setattr(terminal, "isatty", lambda: False)
    token = QUIET.set(why == "quiet")
    try:
        with show_progress("planning", shown=why != "not wanted"):
            assert not wait_for(".", terminal, 0 if why == "short" else 0.1)
    finally:
        QUIET.reset(token)
    assert terminal.written == []
