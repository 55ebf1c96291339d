"""Durability bugs planted into a process before it works, by name: the simulator has to find each of them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpwindows import durable
from dpwindows.ledger import store as ledger_store
from dpwindows.ledger.ledger import Ledger
from dpwindows.stream import copying, creating, parts, publishing, records, store
from dpwindows.stream.mark import Mark, read_mark
from dpwindows.stream.parts import LocalFolder
from dpwindows.stream.place import Manifest, Part
from dpwindows.stream.publishing import Gate
from dpwindows.stream.recencies import Recencies, drop_garbage
from dpwindows.stream.records import ClosedStep, Creation, Position
from dpwindows.stream.store import StateFile
from tests.simulator import shim

PLANTED: dict[str, Callable[[], None]] = {}
# For each bug a schedule that finds it, and what is then said: family, seed, a part of the violation.
FOUND_BY: dict[str, tuple[str, int, str]] = {}


def found_by(family: str, seed: int, said: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Enter a bug, named as its function is, with the schedule that finds it and what is then said."""

    def entered(plant: Callable[[], None]) -> Callable[[], None]:
        name = plant.__name__.removeprefix("_").replace("_", "-")
        PLANTED[name], FOUND_BY[name] = plant, (family, seed, said)
        return plant

    return entered


@found_by("stream", 1, "after everything works again")
def _unsynced_state() -> None:
    """Neither the state nor its journal nor its items are synced, by us or by the database."""
    shim.leave_out_syncs("/disk/state")


@found_by("commit", 47, "after everything works again")
def _lazy_state() -> None:
    """The folder is not told that a journal is gone, which may come back and undo a step."""
    _replace(store, "DURABLE", "PRAGMA synchronous = FULL")


@found_by("commit", 21, "after everything works again")
def _unsettled_state() -> None:
    """What another process committed is relied upon before it is on disk."""
    _replace(StateFile, "settle", lambda self: None)


@found_by("backup", 27, "two noises")
def _unsettled_mark() -> None:
    """A mark that another process wrote is relied upon before its name is on disk."""
    clear = Gate.clear

    def rely_and_clear(self: Gate, position: Position, *, leaving: bool = False) -> None:
        reached = Mark.of(self._creation.state_id, position.step, position.token)
        self._state._settled |= read_mark(self._state.path) == reached
        clear(self, position, leaving=leaving)

    _replace(Gate, "clear", rely_and_clear)


@found_by("release", 201, "that is not in the ledger")
def _unsettled_ledger() -> None:
    """What another process recorded is relied upon before it is on disk."""
    _replace(ledger_store, "_settle", lambda path: None)


@found_by("stream", 1, "after everything works again")
def _unsynced_part() -> None:
    """A part gets its place in the manifest before its content is on disk."""
    _replace(parts, "sync_file", lambda path: None)


@found_by("stream", 1, "after everything works again")
def _unsynced_name_of_part() -> None:
    """A part gets its place in the manifest before its name is on disk."""
    _replace(parts, "sync_folder", lambda path: None)


@found_by("commit", 1, "after everything works again")
def _manifest_before_part() -> None:
    """A manifest is committed, and the parts it names are written to disk afterwards."""
    settle, close = LocalFolder.settle, records.close

    def settle_later(self: LocalFolder, named: Manifest) -> None:
        _replace(records, "close", lambda *given: (close(*given), settle(self, named)))

    _replace(LocalFolder, "settle", settle_later)


@found_by("commit", 2, "after everything works again")
def _dropped_before_commit() -> None:
    """Parts that were compacted are removed while the manifest on disk still names them."""
    settle, close = LocalFolder.settle, records.close

    def settle_only(self: LocalFolder, named: Manifest) -> None:
        settle(self, named)
        drop = partial(drop_garbage, self)
        _replace(records, "close", lambda *given: (drop(given[2].parts, given[2].step), close(*given)))

    _replace(LocalFolder, "settle", settle_only)


@found_by("release", 4, "was written, and is gone")
def _unsynced_folder() -> None:
    """The names of files are not made durable."""

    def nothing(path: str | Path) -> None:
        return None

    for module in (durable, creating, parts, store):
        _replace(module, "sync_folder", nothing)


@found_by("release", 5, "is not whole")
def _unsynced_output() -> None:
    """A file gets its name before its content is on disk."""
    _replace(durable, "sync_file", lambda path: None)


@found_by("stream", 1, "a step that the ledger does not know of")
def _published_before_commit() -> None:
    """A step's rows leave in its transaction, which is committed when the stream is closed."""
    close = StateFile.close

    def commit_and_close(self: StateFile) -> None:
        with suppress(Exception):
            self._connection.execute("COMMIT")
        close(self)

    _replace(StateFile, "commit", lambda self: None)
    _replace(Gate, "clear", lambda self, position, leaving=False: None)
    _replace(StateFile, "close", commit_and_close)


@found_by("commit", 1, "after everything works again")
def _ledger_before_state() -> None:
    """The ledger records a position before the step is committed."""
    begin, close = Gate.__init__, records.close
    gates: dict[int, Gate] = {}

    def begin_and_remember(self: Gate, state: StateFile, *arguments: Any) -> None:
        begin(self, state, *arguments)
        gates[id(state)] = self

    def record_and_close(state: StateFile, before: Position, after: Position, *given: Any) -> None:
        gates[id(state)].record(after)
        close(state, before, after, *given)

    _replace(Gate, "__init__", begin_and_remember)
    _replace(records, "close", record_and_close)


@found_by("others", 2, "in place of")
def _forgotten_part() -> None:
    """A step does not read the newest part, so that items in it are taken for new."""
    write = Recencies.write

    def write_and_forget(self: Recencies, known: Manifest, step: int, token: str, occurrences: str) -> Part | None:
        return write(self, known[:-1], step, token, occurrences)

    _replace(Recencies, "write", write_and_forget)


@found_by("commit", 1, "after everything works again")
def _forgotten_position() -> None:
    """The position is put behind a step in a transaction of its own."""
    close = records.close

    def close_and_move(state: StateFile, before: Position, after: Position, closed: ClosedStep, rows: pa.Table) -> None:
        close(state, before, before, closed, rows)
        with state.transaction() as connection:
            connection.execute("DELETE FROM position")
            connection.execute("INSERT INTO position VALUES (?, ?, ?, ?, ?, ?)", after.sealed())

    _replace(records, "close", close_and_move)


@found_by("copies", 1, "a step that the ledger does not know of")
def _unrecorded_position() -> None:
    """The ledger is not told how far a stream is."""
    _replace(Gate, "record", lambda self, position: None)


@found_by("backup", 6, "two noises")
def _no_mark() -> None:
    """Nothing beside the state says how far it was published."""
    _replace(publishing, "write_mark", lambda path, mark: None)


@found_by("losses", 76, "after everything works again")
def _late_copy() -> None:
    """The copy is made when the ledger has the step on record and the mark says that it may leave."""
    clear, copy = Gate.clear, Gate._copy

    def clear_and_copy(self: Gate, position: Position, *, leaving: bool = False) -> None:
        clear(self, position, leaving=leaving)
        copy(self, position)

    _replace(Gate, "_copy", lambda self, position: None)
    _replace(Gate, "clear", clear_and_copy)


@found_by("losses", 1, "after everything works again")
def _unsynced_copy() -> None:
    """The copy is relied upon before it is on disk."""
    shim.leave_out_syncs("/disk/safe")


@found_by("losses", 74, "after everything works again")
def _copy_before_its_parts() -> None:
    """The copy of a state gets its name before the items that it needs are beside it."""
    write = copying._write_parts

    def write_state_first(state: StateFile, creation: Creation, position: Position, folder: Path) -> None:
        target = folder.with_name(folder.name.removesuffix("-items"))
        if target.exists():
            fill = partial(copying._back_up, state)
            durable.write_atomically(target, lambda draft: fill(Path(draft)), replace=True, private=True)
        write(state, creation, position, folder)

    _replace(copying, "_write_parts", write_state_first)


@found_by("copies", 13, "two noises")
def _ungated_show() -> None:
    """Stored rows leave whatever the mark and the ledger say."""

    clear = Gate.clear

    def never_refuse(self: Gate, position: Position, *, leaving: bool = False) -> None:
        with suppress(Exception):
            clear(self, position, leaving=leaving)

    _replace(Gate, "clear", never_refuse)


@found_by("release", 2, "that is not in the ledger")
def _unstored_release() -> None:
    """A release is handed out that the ledger does not keep."""

    def store(self: Ledger, number: int, release_id: str, content: bytes) -> bytes:
        return content

    _replace(Ledger, "store", store)


@found_by("release", 3, "the ledger cannot be read any more")
def _lazy_ledger() -> None:
    """The ledger's transactions are not synced."""
    _replace(ledger_store, "DURABLE", "PRAGMA synchronous = OFF")


def _replace(place: Any, name: str, value: Any) -> None:
    if not hasattr(place, name):
        raise AttributeError(f"a planted bug does not fit its source any more: {place} has no {name}")
    setattr(place, name, value)
