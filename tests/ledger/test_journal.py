"""A journal that an interrupted write left beside a ledger undoes that write, and never what was spent since."""

from __future__ import annotations

import io
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from dpwindows.ask.privacy import EventLevel, PureDP
from dpwindows.errors import EngineError, InputError
from dpwindows.ledger import journal as journals
from dpwindows.ledger.ledger import Ledger
from tests.ledger.requests import request

# A transaction of many pages with room for few of them: they go to the file, and the journal to disk, before it ends.
_BEGUN = """
connection = sqlite3.connect(path, isolation_level=None)
connection.execute("PRAGMA synchronous = EXTRA")
connection.execute("PRAGMA cache_size = 10")
connection.execute("BEGIN IMMEDIATE")
for number in range(100):
    connection.execute("INSERT INTO releases VALUES ('d', ?, '', '', '', randomblob(5000))", [number])
"""
_KILLED = f"import os, sqlite3, sys\npath = sys.argv[1]\n{_BEGUN}\nos.kill(os.getpid(), 9)"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    Ledger.create(tmp_path / "ledger.db", "d", budget=PureDP(10.0), unit=EventLevel())
    return tmp_path / "ledger.db"


def _journal(path: Path) -> Path:
    return path.with_name(path.name + "-journal")


def _spend(path: Path, start: int = 0) -> None:
    Ledger.open(path, "d").spend(request(PureDP(0.5), start, start + 10))


def _spent(path: Path) -> int:
    return len(Ledger.open(path, "d").book().entries)


def _left_by_a_commit(path: Path) -> bytes:
    """The journal of a transaction that has ended: what a process leaves that is killed before it removes it."""
    names: dict[str, object] = {"sqlite3": sqlite3, "path": path}
    exec(_BEGUN, names)
    connection = names["connection"]
    assert isinstance(connection, sqlite3.Connection)
    found = _journal(path).read_bytes()
    connection.execute("DELETE FROM releases")
    connection.execute("COMMIT")
    connection.close()
    return found


def test_an_interrupted_write_is_undone(path: Path) -> None:
    _spend(path)
    killed = subprocess.run([sys.executable, "-c", _KILLED, str(path)], check=False)
    assert killed.returncode == -9
    assert _journal(path).stat().st_size > 4096
    assert _spent(path) == 1
    assert not _journal(path).exists()


def test_a_write_that_ended_but_for_its_journal_is_undone(path: Path) -> None:
    """Its counter is one more than before, so that nobody can have relied on it."""
    left = _left_by_a_commit(path)
    _journal(path).write_bytes(left)
    journals.require_current_journal(path)


def test_what_was_spent_under_another_name_is_not_undone(path: Path, tmp_path: Path) -> None:
    """Moved without its journal, spent from, and moved back: SQLite would put back what it finds under the old name."""
    left = _left_by_a_commit(path)
    moved = path.rename(tmp_path / "moved.db")
    _spend(moved)
    _spend(moved, 20)
    moved.rename(path)
    kept = path.read_bytes()
    _journal(path).write_bytes(left)
    for use in (_spent, _spend, lambda path: Ledger.create(path, "e", budget=PureDP(1.0), unit=EventLevel())):
        with pytest.raises(EngineError, match=r"was written since ledger\.db-journal was left"):
            use(path)
    assert path.read_bytes() == kept
    _journal(path).unlink()
    assert _spent(path) == 2


def test_the_journal_is_found_through_a_symbolic_link(path: Path, tmp_path: Path) -> None:
    left = _left_by_a_commit(path)
    _spend(path)
    _spend(path, 20)
    link = tmp_path / "link.db"
    link.symlink_to(path)
    _journal(path).write_bytes(left)
    with pytest.raises(EngineError, match="was written since"):
        _spent(link)


def test_a_journal_without_the_first_page_goes_by_the_number_of_pages(path: Path) -> None:
    """Nothing of it is on disk yet, so that the file is as it was; SQLite cuts a longer file to its length."""
    head = _left_by_a_commit(path)[:512]
    pages = path.stat().st_size // 4096
    start = len(bytes.fromhex("d9d505f920a163d7"))
    for told, fits in ((pages, True), (pages + 1, True), (pages - 1, False)):
        counts = (0).to_bytes(4, "big") + head[start + 4 : start + 8] + told.to_bytes(4, "big")
        _journal(path).write_bytes(head[:start] + counts + head[start + 12 :])
        if fits:
            assert _spent(path) == 0
        else:
            with pytest.raises(EngineError, match="was written since"):
                _spent(path)


@pytest.mark.parametrize("content", [b"", b"\0" * 512, b"no journal", bytes.fromhex("d9d505f920a163d7") + b"\0" * 504])
def test_what_sqlite_takes_for_no_journal_is_none(path: Path, content: bytes) -> None:
    _spend(path)
    _journal(path).write_bytes(content)
    assert _spent(path) == 1


def test_a_second_name_is_refused(path: Path, tmp_path: Path) -> None:
    os.link(path, tmp_path / "second.db")
    for name in (path, tmp_path / "second.db"):
        with pytest.raises(InputError, match="has 2 names"):
            _spend(name)
    (tmp_path / "second.db").unlink()
    _spend(path)


def test_a_file_that_is_mounted_by_itself_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = path.with_name("mounts")
    spaced = path.with_name("a ledger.db")
    shutil.move(path, spaced)
    line = "36 35 98:0 / {} rw,noatime master:1 - ext3 /dev/root rw\n"
    monkeypatch.setattr(journals, "_MOUNTS", mounts)
    mounts.write_text(line.format("/") + line.format(str(spaced).replace(" ", r"\040")))
    with pytest.raises(InputError, match="mounted as a single file"):
        _spend(spaced)
    mounts.write_text(line.format(str(spaced.parent).replace(" ", r"\040")))
    _spend(spaced)


def test_one_lock_serves_all_links(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(path)
    with Ledger.open(link, "d").turn():
        assert path.with_name("ledger.db.lock").exists()
        assert not tmp_path.joinpath("link.db.lock").exists()


def _journal_of(*segments: list[int], told: int | None = None, cut: int = 0) -> bytes:
    """A journal of such pages in each segment, the first page with a counter of 7; of a file of 9 pages."""
    sector, page = 512, 1024
    made = b""
    for pages in segments:
        made += b"\0" * (-len(made) % sector)
        count = len(pages) if told is None else told
        header = b"".join(value.to_bytes(4, "big") for value in (count, 1, 9, sector, page))
        made += (bytes.fromhex("d9d505f920a163d7") + header).ljust(sector, b"\0")
        for number in pages:
            content = (b"\0" * 24 + (7 if number == 1 else 8).to_bytes(4, "big")).ljust(page, b"\0")
            made += number.to_bytes(4, "big") + content + b"\0" * 4
    return made[: len(made) - cut]


@pytest.mark.parametrize(
    ("content", "counter"),
    [
        (_journal_of([1]), 7),
        (_journal_of([5, 6], [4, 1, 3]), 7),
        (_journal_of([5, 1], told=0xFFFFFFFF), 7),
        (_journal_of([5, 6]), None),
        (_journal_of([5, 1], told=1), None),
        (_journal_of([5, 1], cut=1), None),
        (_journal_of([5], told=3), None),
    ],
)
def test_the_first_page_is_found_wherever_it_is(content: bytes, counter: int | None) -> None:
    assert journals._before(io.BytesIO(content)) == (counter, 9)


@pytest.mark.parametrize(
    ("counter", "fits"), [(7, True), (8, True), (9, False), (1000, False), (2, True), (6, True), (2**32 - 1, True)]
)
def test_a_counter_may_be_one_ahead(path: Path, monkeypatch: pytest.MonkeyPatch, counter: int, fits: bool) -> None:
    """Behind: the journal is that of somebody who began after the counter was read."""
    _journal(path).write_bytes(_journal_of([1]))
    monkeypatch.setattr(os, "pread", lambda *_: counter.to_bytes(4, "big") + (9).to_bytes(4, "big"))
    if fits:
        journals.require_current_journal(path)
    else:
        with pytest.raises(EngineError, match="was written since"):
            journals.require_current_journal(path)


def test_a_journal_that_is_gone_meanwhile_is_none(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _journal(path).write_bytes(_journal_of([1]))
    read = os.pread

    def gone(*given: int) -> bytes:
        _journal(path).unlink(missing_ok=True)
        return read(*given)

    monkeypatch.setattr(os, "pread", gone)
    assert _spent(path) == 0


def test_a_journal_that_cannot_be_read_is_said(path: Path) -> None:
    _journal(path).mkdir()
    with pytest.raises(EngineError, match="cannot be read"):
        _spent(path)
