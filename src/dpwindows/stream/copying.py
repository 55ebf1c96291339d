"""The copy of a stream from which it goes on where its machine is lost: on another disk, never behind what left.

A copy that is older than the ledger's position, or than what somebody saw, is no use: its stream has ended. So a copy
is part of each step. It is made when the step is on disk in the state, and is on disk itself before the ledger records
the step, and before a row leaves: the copy may be ahead of the ledger, as a state may, by a step that nobody saw.

A copy is a stream of its own, without the mark: first the parts that it lacks (where they lie beside the state: those
elsewhere are the place's to keep), then the state in one piece, by SQLite's
own backup, under a name that it gets when it is whole; then what it no longer names is removed. So whenever copying
ends, the copy is that of this step or the one before, each with its parts.

What is at the place must be an earlier copy of this stream. A later one says that the state was put back, and a copy
with another token that two copies went on; neither is replaced. Where there is none, one that is begun is claimed, and
no items but those of this stream may lie in its folder: of several streams that would begin one, one does.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path

from dpwindows.durable import claim, require_private, sync_folder, write_atomically
from dpwindows.errors import EngineError, InputError
from dpwindows.stream import records
from dpwindows.stream.records import Creation, Position
from dpwindows.stream.store import StateFile, in_use, items_folder, state_error


def copy_state(
    state: StateFile, creation: Creation, position: Position, token_at: Callable[[int], str], target: Path
) -> None:
    """Return when the copy at a place is on disk and as far as the state.

    Args:
        state: the state, settled, outside of a transaction.
        creation: its creation.
        position: its position.
        token_at: the token of each position that it has been at.
        target: the state file of the copy, as a real path; its folder is there.

    Raises:
        InputError: there is something else, or what is there is not to be replaced.
        EngineError: it cannot be written. The copy is as it was, or as it is to be.
    """
    if target == state.path:
        raise InputError(
            f"{target} is where the copy of this stream is to be, and cannot be the stream too: copy it and its folder "
            "to another disk and go on there, or name another place for the copy with --copy-to"
        )
    try:
        with _held(target) as there:
            behind = there is None or _is_behind(there, creation, position, token_at)
            if there is None:
                _require_no_others(position, items_folder(target))
            if behind:
                _write_parts(state, creation, position, items_folder(target))
            # Names too that another process gave, and did not live to see on disk.
            sync_folder(items_folder(target))
            if behind:
                write_atomically(target, lambda draft: _back_up(state, Path(draft)), replace=True, private=True)
                # Beside one that is new nothing else lies, and somebody may go on from it at once.
                if there is not None:
                    _drop_all_but(position, items_folder(target))
            else:
                sync_folder(target.parent)
    except OSError as error:
        raise EngineError(
            f"the copy {target} cannot be written: {error.strerror or error}. What was closed is stored, and did not "
            "leave: mend that, or name another place with --copy-to, and run the same again"
        ) from None


@contextmanager
def _held(target: Path) -> Iterator[StateFile | None]:
    """The copy that is there, None for none; meanwhile nobody goes on from it, and no other stream begins one."""
    with ExitStack() as held:
        try:
            held.enter_context(claim(target))
        except InputError:
            raise in_use(target) from None
        except EngineError as error:
            # Said as of whatever else fails there.
            raise error.__cause__ or error from None
        yield held.enter_context(closing(StateFile(target))) if target.exists() else None


def _require_no_others(position: Position, folder: Path) -> None:
    """Check that no items but those of a position lie where its first copy is to be; raises `InputError`."""
    named = {part.name for part in position.parts}
    others = [path.name for path in folder.iterdir()] if folder.exists() else []
    # Drafts of files begin with a dot, and a process that was killed leaves its own.
    if any(name not in named and not name.startswith(".") for name in others):
        raise InputError(
            f"{folder} holds items of another stream, or of another step, beside no copy: put the state that they "
            "belong to back, or move them away, or name another place with --copy-to"
        )


def _is_behind(there: StateFile, creation: Creation, position: Position, token_at: Callable[[int], str]) -> bool:
    """Whether a copy is to be replaced; raises `InputError` if it must not be."""
    with there.guarded() as connection:
        try:
            same = records.read_creation(connection).state_id == creation.state_id
        except ValueError:
            same = False
    if not same:
        raise InputError(f"{there.path} is no copy of this stream: move it away, or name another place with --copy-to")
    kept = records.read_position(there)
    step = kept.step
    if step > position.step:
        raise InputError(
            f"the copy {there.path} is at step {step}, and the state at step {position.step}: the state was put back "
            "to an earlier one. Put the copy and its folder in its place"
        )
    if kept.token != token_at(step):
        raise InputError(
            f"the copy {there.path} has another step {step} than the state: two copies of the stream went on. Go on "
            "with the one whose rows were published, and name another place for its copy with --copy-to"
        )
    return step < position.step


def _write_parts(state: StateFile, creation: Creation, position: Position, folder: Path) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    require_private(folder, "folder of a stream's items")
    for part in position.parts if creation.items_at is None else ():
        # What has its name is whole: names are random, and given last.
        if not (folder / part.name).exists():
            fill = partial(shutil.copyfile, state.folder / part.name)
            write_atomically(folder / part.name, fill, replace=True, private=True)


def _drop_all_but(position: Position, folder: Path) -> None:
    named = {part.name for part in position.parts}
    with suppress(OSError):
        for path in folder.iterdir():
            # Drafts of them as well, that a killed process left.
            if ".items" in path.name and path.name not in named:
                path.unlink(missing_ok=True)


def _back_up(state: StateFile, draft: Path) -> None:
    with state.guarded() as connection, closing(sqlite3.connect(draft)) as copy:
        try:
            # It is synced as a whole, and no journal of it is ever needed.
            copy.execute("PRAGMA journal_mode = OFF")
            copy.execute("PRAGMA synchronous = OFF")
            connection.backup(copy)
        except sqlite3.Error as error:
            raise state_error(draft, error) from None
