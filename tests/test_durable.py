"""Files that appear whole and once, with the mode the umask gives, and leave nothing behind."""

from __future__ import annotations

import multiprocessing
import os
import signal
import stat
import threading
from pathlib import Path

import pytest

from dpwindows import durable
from dpwindows.errors import EngineError, InputError

_FORK = multiprocessing.get_context("fork")


def _write(path: Path, text: str = "new", *, replace: bool = True, private: bool = False) -> None:
    durable.write_atomically(path, lambda name: Path(name).write_text(text), replace=replace, private=private)


def _names(folder: Path) -> list[str]:
    return sorted(found.name for found in folder.iterdir())


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def _open_umask() -> object:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.usefixtures("_open_umask")
def test_the_mode_is_what_the_umask_leaves_and_private_files_are_the_owners(tmp_path: Path) -> None:
    _write(tmp_path / "open")
    _write(tmp_path / "mine", private=True)
    os.umask(0o027)
    _write(tmp_path / "group")
    assert [_mode(tmp_path / name) for name in ("open", "mine", "group")] == [0o644, 0o600, 0o640]


def test_the_umask_of_the_process_is_never_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_mask: int) -> int:
        raise AssertionError("the umask belongs to every thread of the process")

    monkeypatch.setattr(os, "umask", refuse)
    _write(tmp_path / "file")


def test_a_file_that_is_there_stays_unless_it_may_be_replaced(tmp_path: Path) -> None:
    path = tmp_path / "file"
    _write(path, "old", replace=False)
    with pytest.raises(FileExistsError):
        _write(path, replace=False)
    assert path.read_text() == "old"
    _write(path)
    assert path.read_text() == "new"
    assert _names(tmp_path) == ["file"]


@pytest.mark.parametrize("links", [True, False])
def test_of_writers_at_once_exactly_one_wins(tmp_path: Path, links: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not links:

        def no_links(*_: object, **__: object) -> None:
            raise PermissionError(1, "Operation not permitted")

        monkeypatch.setattr(os, "link", no_links)
    for trial in range(10):
        path, outcomes = tmp_path / f"file{trial}", []
        ready = threading.Barrier(4)

        def writer(number: int) -> None:
            def fill(name: str) -> None:
                Path(name).write_text(str(number))
                ready.wait()  # noqa: B023

            try:
                durable.write_atomically(path, fill, replace=False)  # noqa: B023
                outcomes.append(number)  # noqa: B023
            except FileExistsError:
                pass

        threads = [threading.Thread(target=writer, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [str(winner) for winner in outcomes] == [path.read_text()]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    _write(path, "old")
    monkeypatch.setattr(os, "fsync", lambda _handle: (_ for _ in ()).throw(OSError(5, "Input/output error")))
    with pytest.raises(EngineError, match="cannot be written: Input/output error"):
        _write(path)
    assert path.read_text() == "old"
    assert _names(tmp_path) == ["file"]


def test_content_is_on_disk_before_the_name_and_the_name_before_it_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    fsync, replace, link = os.fsync, Path.replace, os.link

    def synced(handle: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "content")
        fsync(handle)

    def named(draft: Path, path: Path) -> Path:
        done.append("name")
        return replace(draft, path)

    def linked(draft: Path, path: Path) -> None:
        done.append("name")
        link(draft, path)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", named)
    monkeypatch.setattr(os, "link", linked)
    for replace_it in (False, True):
        done.clear()
        _write(tmp_path / "file", replace=replace_it)
        assert done == ["content", "name", "folder"]


def _killed_while_filling(path: Path) -> None:
    def fill(name: str) -> None:
        Path(name).write_text("fresh numbers")
        os.kill(os.getpid(), signal.SIGKILL)

    process = _FORK.Process(target=durable.write_atomically, args=(path, fill), kwargs={"replace": True})
    process.start()
    process.join()


def test_what_a_killed_writer_left_is_removed_by_the_next_one(tmp_path: Path) -> None:
    path = tmp_path / "file"
    _killed_while_filling(path)
    _killed_while_filling(tmp_path / "other")
    assert len(_names(tmp_path)) == 2
    _write(path)
    left = _names(tmp_path)
    assert len(left) == 2
    assert left[0].startswith(".other.")
    assert left[1] == "file"


def test_the_draft_of_a_living_writer_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"

    def fill(name: str) -> None:
        Path(name).write_text("outer")
        _write(path, "inner")
        assert Path(name).read_text() == "outer"

    durable.write_atomically(path, fill, replace=True)
    assert path.read_text() == "outer"
    assert _names(tmp_path) == ["file"]


def test_one_process_claims_an_output_and_a_kill_gives_it_free(tmp_path: Path) -> None:
    path = tmp_path / "file"
    holds, end = _FORK.Event(), _FORK.Event()

    def hold() -> None:
        with durable.claim(path):
            holds.set()
            end.wait()

    process = _FORK.Process(target=hold)
    process.start()
    holds.wait()
    with pytest.raises(InputError, match="another process is writing"), durable.claim(path):
        pass
    process.kill()
    process.join()
    with durable.claim(path):
        pass
    assert _names(tmp_path) == []


def test_a_claim_has_one_holder_whatever_is_removed_meanwhile(tmp_path: Path) -> None:
    path, inside, most, failures = tmp_path / "file", [0], [0], [0]
    guard = threading.Lock()

    def try_often() -> None:
        for _ in range(300):
            try:
                with durable.claim(path):
                    with guard:
                        inside[0] += 1
                        most[0] = max(most[0], inside[0])
                    with guard:
                        inside[0] -= 1
            except InputError:
                failures[0] += 1

    threads = [threading.Thread(target=try_often) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]


def test_files_are_compared_by_what_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, folder = tmp_path / "file", tmp_path / "folder"
    folder.mkdir()
    path.write_text("")
    (folder / "hard").hardlink_to(path)
    (folder / "soft").symlink_to(path)
    (tmp_path / "way").symlink_to(folder)
    monkeypatch.chdir(folder)
    for same in ("../file", folder / ".." / "file", folder / "hard", "soft", tmp_path / "way" / "soft"):
        assert durable.same_file(path, same)
        assert durable.same_file(same, path)
    (folder / "file").write_text("")
    assert not durable.same_file(path, folder / "file")


def test_files_that_are_not_there_yet_are_compared_by_where_they_would_be(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "way").symlink_to(folder)
    (tmp_path / "soft").symlink_to(folder / "new")
    assert durable.same_file(folder / "new", tmp_path / "way" / "new")
    assert durable.same_file(folder / "new", tmp_path / "soft")
    assert not durable.same_file(folder / "new", tmp_path / "new")
    assert not durable.same_file(folder / "new", folder / "old")
    assert not durable.same_file(folder / "new", tmp_path / "nowhere" / "new")


@pytest.mark.parametrize("mode", [0o602, 0o620, 0o666])
def test_a_file_others_may_write_is_refused_with_what_mends_it(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "ledger.db"
    path.write_text("")
    path.chmod(mode)
    with pytest.raises(InputError, match=f"others may write the ledger.*{mode:04o}.*chmod 600"):
        durable.require_private(path, "ledger")
    path.chmod(0o600)
    durable.require_private(path, "ledger")


def test_a_file_everybody_may_replace_is_refused_unless_the_folder_is_sticky(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    path.write_text("")
    tmp_path.chmod(0o777)
    with pytest.raises(InputError, match=r"everybody may replace the ledger.*chmod o-w"):
        durable.require_private(path, "ledger")
    tmp_path.chmod(0o1777)
    durable.require_private(path, "ledger")


def test_a_file_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger.db"
    path.write_text("")
    if path.stat().st_uid == 0:
        os.chown(path, 12345, -1)
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    with pytest.raises(InputError, match="belongs to another user"):
        durable.require_private(path, "ledger")


def test_names_that_no_file_has_are_no_file(tmp_path: Path) -> None:
    for odd in ("a\0b", "x" * 5000, "", "~nobody-here/x"):
        assert not durable.same_file(tmp_path / "file", odd)
    (tmp_path / "round").symlink_to(tmp_path / "round")
    assert not durable.same_file(tmp_path / "file", tmp_path / "round")
    assert durable.same_file(tmp_path / "round", tmp_path / "round")
