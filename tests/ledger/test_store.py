"""The file of a ledger: who may change it, and what is said of text in it that is none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dpwindows.ask.privacy import PureDP
from dpwindows.errors import EngineError, InputError
from dpwindows.ledger.ledger import Ledger
from tests.ledger.requests import make, request


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = make(tmp_path / "ledger.db")
    made.spend(request(PureDP(0.1), kind="stream"), state="s", token="t0")
    return made


ACTS: dict[str, Callable[[Ledger], object]] = {
    "position": lambda ledger: ledger.position("s"),
    "stored": lambda ledger: ledger.stored(request(PureDP(0.1)), "f"),
    "spend": lambda ledger: ledger.spend(request(PureDP(0.1))),
    "advance": lambda ledger: ledger.advance("s", 0, "t0", 1, "t1"),
}


@pytest.mark.parametrize("act", ACTS)
def test_nothing_is_done_by_what_a_ledger_says_that_others_may_write(ledger: Ledger, act: str) -> None:
    """Whoever may write it could put a stored release or a position of a stream in."""
    Path(ledger.path).chmod(0o666)
    with pytest.raises(InputError, match="ledger"):
        ACTS[act](ledger)
    Path(ledger.path).chmod(0o600)
    ACTS[act](ledger)


def test_a_schema_that_is_no_text_is_damage(ledger: Ledger) -> None:
    """What SQLite says of it quotes it, and cannot be read either."""
    whole = Path(ledger.path).read_bytes()
    Path(ledger.path).write_bytes(whole.replace(b"request_key", b"\xffequest_key", 1))
    with pytest.raises(EngineError, match="is damaged"):
        ledger.book()


def test_a_ledger_that_is_gone_is_missed_and_not_made_anew(ledger: Ledger) -> None:
    Path(ledger.path).unlink()
    for act in (Ledger.book, *ACTS.values()):
        with pytest.raises(InputError, match="there is no ledger"):
            act(ledger)
    assert not Path(ledger.path).exists()


def test_a_lock_that_cannot_be_had_at_all_is_not_waited_for(ledger: Ledger) -> None:
    Path(ledger.path).with_name("ledger.db.lock-journal").mkdir()
    with pytest.raises(EngineError, match="cannot be used: unable to open"), ledger.turn():
        pass


def test_a_process_with_no_file_left_to_open_cannot_use_a_ledger(ledger: Ledger) -> None:
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        with pytest.raises(EngineError, match="cannot be used: unable to open"):
            ledger.book()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert len(ledger.book().entries) == 1
