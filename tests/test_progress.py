"""Progress of long work: what a line says, and to whom."""

from __future__ import annotations

import re
import time

import pytest

from dpwindows.progress import QUIET, bar_text, painted, working
from tests.patience import PATIENCE
from tests.terminal import Terminal


def test_the_bar_tells_how_long_it_will_still_take() -> None:
    assert bar_text("counting", 50.0, 30.0) == "counting [" + "#" * 15 + "." * 15 + "]  50 %, 0:30 left"
    assert bar_text("counting", 10.0, 800.0).endswith(" 10 %, 2:00:00 left")
    assert bar_text("counting", -1.0, 5.0).endswith("  0 %"), "nothing is known yet"
    assert bar_text("counting", 100.0, 5.0).endswith("100 %, 0:00 left")
    assert working("planning")(65.2) == "planning, 1:05 so far"


@pytest.mark.parametrize("quiet", [False, True])
def test_a_line_is_shown_after_a_while_and_erased(quiet: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpwindows.progress._DELAY", 0.01)
    monkeypatch.setattr("dpwindows.progress._INTERVAL", 0.01)
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    token = QUIET.set(quiet)
    until = time.monotonic() + (0.1 if quiet else PATIENCE)
    try:
        with painted(working("planning")):
            while not terminal.written and time.monotonic() < until:
                time.sleep(0.01)
    finally:
        QUIET.reset(token)
    assert bool(terminal.written) is not quiet
    if not quiet:
        assert re.fullmatch(r"\rplanning, \d+:\d\d so far", terminal.written[0])
        assert terminal.written[-1].strip() == ""


def test_short_work_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpwindows.progress._DELAY", PATIENCE)
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with painted(working("planning")):
        pass
    assert terminal.written == []
