"""Durability bugs planted into a process before it works, by name: the simulator has to find each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpwindows import durable
from dpwindows.ledger.ledger import Ledger
from dpwindows.stream import creating, gate, records, state_file, undo
from dpwindows.stream.publishing import Gate
from dpwindows.stream.store import StateFile
from tests.simulator import shim


def _unsynced_state() -> None:
    """Neither the state nor its log is synced, by us or by the engine."""
    shim.leave_out_syncs("/disk/state")


def _unsynced_folder() -> None:
    """The names of files are not made durable."""

    def nothing(path: str | Path) -> None:
        return None

    for module in (durable, creating, state_file):
        _replace(module, "sync_folder", nothing)


def _unsynced_output() -> None:
    """A file gets its name before its content is on disk."""
    _replace(durable, "sync_file", lambda path: None)


def _published_before_commit() -> None:
    """A step's rows leave in its transaction, which is committed when the stream is closed."""
    close = StateFile.close

    def commit_and_close(self: StateFile) -> None:
        with suppress(Exception):
            self._connection.execute("COMMIT")
        close(self)

    _replace(StateFile, "commit", lambda self: None)
    _replace(StateFile, "_shorten_log", lambda self, connection: None)
    _replace(Gate, "clear", lambda self: None)
    _replace(StateFile, "close", commit_and_close)


def _ledger_before_state() -> None:
    """The ledger records a position before the step is committed."""
    begin, commit = Gate.__init__, StateFile.commit
    gates: dict[int, Gate] = {}

    def begin_and_remember(self: Gate, state: StateFile, *arguments: Any) -> None:
        begin(self, state, *arguments)
        gates[id(state)] = self

    def record_and_commit(self: StateFile) -> None:
        used = gates.get(id(self))
        if used is not None and used._ledger is not None:
            closed = records.last_step(self)
            recorded = used._position(closed)
            assert recorded is not None
            used._ledger.advance(used._creation.state_id, *recorded, closed, used._token(closed))
        commit(self)

    _replace(Gate, "__init__", begin_and_remember)
    _replace(StateFile, "commit", record_and_commit)


def _no_mark() -> None:
    """Nothing beside the state says how far it was published."""
    _replace(gate, "write_mark", lambda path, mark: None)


def _no_undo() -> None:
    """What a checkpoint overwrites is not kept."""

    def keep(path: Path, handle: int, blocks: Iterable[int], block_bytes: int) -> None:
        return None

    _replace(undo, "keep", keep)


def _unread_headers() -> None:
    """A header that was cut short is taken for a new one."""
    _replace(undo, "_is_whole", lambda header: True)


def _ungated_show() -> None:
    """Stored rows leave whatever the mark and the ledger say."""

    def let_out(self: Gate, first: int, last: int) -> pa.Table:
        return records.read_released(self._state, first, last)

    _replace(Gate, "let_out", let_out)
    clear = Gate.clear

    def never_refuse(self: Gate) -> None:
        with suppress(Exception):
            clear(self)

    _replace(Gate, "clear", never_refuse)


def _unstored_release() -> None:
    """A release is handed out that the ledger does not keep."""

    def store(self: Ledger, number: int, release_id: str, content: bytes) -> None:
        return None

    _replace(Ledger, "store", store)


def _lazy_ledger() -> None:
    """The ledger's transactions are not synced."""
    from dpwindows.ledger import store as ledger_store

    _replace(ledger_store, "_DURABLE", "PRAGMA synchronous = OFF")


def _replace(place: Any, name: str, value: Any) -> None:
    if not hasattr(place, name):
        raise AttributeError(f"a planted bug does not fit its source any more: {place} has no {name}")
    setattr(place, name, value)


PLANTED: dict[str, Callable[[], None]] = {
    "unsynced-state": _unsynced_state,
    "unsynced-folder": _unsynced_folder,
    "unsynced-output": _unsynced_output,
    "published-before-commit": _published_before_commit,
    "ledger-before-state": _ledger_before_state,
    "no-mark": _no_mark,
    "no-undo": _no_undo,
    "unread-headers": _unread_headers,
    "ungated-show": _ungated_show,
    "unstored-release": _unstored_release,
    "lazy-ledger": _lazy_ledger,
}
# For each bug a schedule that finds it, and what is then said: family, seed, a part of the violation.
FOUND_BY: dict[str, tuple[str, int, str]] = {
    "unsynced-state": ("stream", 3, "after everything works again"),
    "unsynced-folder": ("release", 2, "was written, and is gone"),
    "unsynced-output": ("release", 5, "is not whole"),
    "published-before-commit": ("stream", 11, "two noises"),
    "ledger-before-state": ("stream", 7, "after everything works again"),
    "no-mark": ("backup", 6, "two noises"),
    "no-undo": ("checkpoint", 1, "is damaged or cut short"),
    "unread-headers": ("stream", 300005005, "is damaged or cut short"),
    "ungated-show": ("copies", 1, "a step that the ledger does not know of"),
    "unstored-release": ("release", 2, "that is not in the ledger"),
    "lazy-ledger": ("release", 3, "that is not in the ledger"),
}
