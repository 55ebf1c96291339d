"""Opens a state after a crash: a process that was killed, or a power failure.

Rows leave only when their step is in the file itself (`gate`). So a log that is left beside the file holds no published
step. It is folded in as far as the engine can read it. Where a power failure tore it beyond reading, it is given up,
provided that the mark beside the state says that the file alone holds everything published.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from dpwindows.count.events import EngineSettings
from dpwindows.durable import same_file, sync_folder
from dpwindows.errors import EngineError
from dpwindows.stream import records, schema
from dpwindows.stream.claims import set_aside
from dpwindows.stream.creating import draft_path
from dpwindows.stream.gate import covers
from dpwindows.stream.mark import read_mark
from dpwindows.stream.state_file import StateFile, TornLogError, logs_left
from dpwindows.stream.undo import take_back, undo_path


def open_state(path: Path, *, read_only: bool = False, settings: EngineSettings | None = None) -> StateFile:
    """Open a state file; see the module.

    Args:
        path: its real path.
        read_only: it will only be read. If a log was left beside it, it is written once, to fold that in.
        settings: memory limit, spill directory and threads of the engine.

    Raises:
        InputError: there is no such file, it is no DuckDB database, or others may write it.
        EngineError: it is in use, damaged or cannot be read or written.
    """
    _take_back(path)
    if logs_left(path):
        _fold_in_log(path, settings)
    state = StateFile(path, read_only=read_only, settings=settings)
    if not read_only:
        _forget_draft(path)
    return state


def _take_back(path: Path) -> None:
    """Undo a folding-in of the log that was cut short, before anything reads the file."""
    if not undo_path(path).exists():
        return
    try:
        with set_aside(path):
            take_back(path)
    except OSError as error:
        raise EngineError(
            f"the state {path} cannot be mended after a crash: {error.strerror or error}. Nothing that was published "
            "is lost: mend that, and run the same again"
        ) from None


def _fold_in_log(path: Path, settings: EngineSettings | None) -> None:
    try:
        state = StateFile(path, settings=settings)
        try:
            state.settle()
        finally:
            state.close()
    except TornLogError as torn:
        _give_up_log(path, torn, settings)


def _give_up_log(path: Path, torn: TornLogError, settings: EngineSettings | None) -> None:
    """Remove a log that cannot be read, if nothing that was published can be in it.

    Raises:
        TornLogError: something may be.
        EngineError: the file is damaged too, or there is no room for a copy of it to look at.
    """
    marked = read_mark(path)
    if marked is None:
        raise torn
    try:
        spill = None if settings is None else settings.spill_directory
        with tempfile.TemporaryDirectory(prefix="dpwindows-", dir=spill) as scratch:
            alone = Path(scratch) / "state"
            with set_aside(path):
                shutil.copyfile(path, alone)
                alone.chmod(0o600)
            state = StateFile(alone, settings=settings)
            try:
                schema.require_version(state)
                creation, _ = records.read_creation(state)
                whole = marked.state_id == creation.state_id and covers(state, creation, marked)
            finally:
                state.close()
        if not whole:
            raise torn
        for log in logs_left(path):
            log.unlink()
        sync_folder(path.parent)
    except OSError as error:
        raise EngineError(
            f"the log beside the state {path} was torn and cannot be given up: {error.strerror or error}"
        ) from None


def _forget_draft(path: Path) -> None:
    """Remove the other name of a state whose creation was interrupted after it got its own."""
    draft = draft_path(path)
    with suppress(OSError):
        if draft.exists() and same_file(draft, path):
            draft.unlink()
