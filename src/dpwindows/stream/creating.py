"""Making a new state: claimed, filled, paid for and named, in this order, so that it is paid for once.

1. *Claim.* Of several that would make the same state one goes on, and the others are told before they pay.
2. *Draft.* The folder of the items is made, the state is written whole beside its place, and both are on disk.
3. *Pay.* The ledger records the budget with the draft's random id.
4. *Name.* The draft gets the name of the state.

If the process ends, or the disk fails, after the budget was spent, the draft stays, and the ledger has its id on
record. The same `create` again finds it, pays nothing, and gives it its name. That is sound: a draft is a state before
its first step, so no noise was drawn from what it paid for, and it is used once, since naming takes its name away. A
draft that was not paid for is removed, and so is one that a refusal of the ledger leaves.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from dpwindows.durable import claim, require_private, same_file, sync_folder, write_atomically
from dpwindows.errors import EngineError, InputError
from dpwindows.ledger.database import make_tables, opened
from dpwindows.plan.stream_plan import StreamPlan
from dpwindows.stream import publishing, records
from dpwindows.stream.records import Creation
from dpwindows.stream.store import KIND, DamagedError, connected, items_folder, journal_of, state_error

if TYPE_CHECKING:
    from dpwindows.ledger.ledger import Ledger


def create_state(path: Path, creation: Creation, plan: StreamPlan, ledger: Ledger | None) -> None:
    """Make a new state file, and pay for it once; see the module.

    Args:
        path: where, really; nothing may be there.
        creation: what is asked for, under a new id.
        plan: what it is asked for by; its budget is spent under the id of `creation`.
        ledger: what it is spent from, None for nothing.

    Raises:
        InputError: something is there already, another process makes it, the budget is refused, or another stream was
            paid for under this name and did not get it. Nothing was spent.
        EngineError: the file or the ledger cannot be written. The same call again pays no second time.
    """
    with claim(path):
        require_new(path)
        try:
            draft = _paid_draft(path, creation, ledger)
            if draft is None:
                draft = draft_path(path)
                items_folder(path).mkdir(mode=0o700, exist_ok=True)
                # It syncs the folder that both are in.
                write_atomically(draft, lambda name: _fill(Path(name), creation), replace=True, private=True)
                _pay(draft, path, creation, plan, ledger)
            _name(draft, path)
        except FileExistsError:
            raise EngineError(
                f"{path} appeared while the stream was made: move it away, and run the same again, which pays no "
                "second time"
            ) from None
        except sqlite3.Error as error:
            raise state_error(path, error) from None
        except OSError as error:
            raise EngineError(
                f"the state {path} cannot be written: {error.strerror or error}. Run the same again: it pays once"
            ) from None


def _pay(draft: Path, path: Path, creation: Creation, plan: StreamPlan, ledger: Ledger | None) -> None:
    """Pay for a state that can be opened once it has its name; whatever is refused here leaves nothing."""
    try:
        require_private(items_folder(path), "folder of a stream's items")
        require_private(draft, "state of a stream")
        if ledger is not None:
            publishing.spend(ledger, plan, creation)
    except InputError:
        draft.unlink(missing_ok=True)
        with suppress(OSError):
            items_folder(path).rmdir()
        raise


def require_new(path: Path) -> None:
    """Check that a state may be made at a path.

    Raises:
        InputError: something is there already.
        EngineError: the folder cannot be written to.
    """
    folder = items_folder(path)
    for existing in (path, journal_of(path), folder):
        # An empty folder is one that a creation left which was interrupted.
        left = existing == folder and folder.is_dir() and not any(folder.iterdir())
        if existing.is_symlink() or (existing.exists() and not left):
            raise InputError(f"{existing} exists already: a stream is created once; name another state")
    if not os.access(path.parent, os.W_OK):
        raise EngineError(f"the folder of the state cannot be written to: {path.parent}")


def draft_path(path: Path) -> Path:
    """Where a new state waits for its name."""
    return path.with_name(f".{path.name}.part")


def _paid_draft(path: Path, creation: Creation, ledger: Ledger | None) -> Path | None:
    """A draft that an earlier call paid for and did not name; what is left of calls that paid nothing is removed.

    Raises:
        InputError: a draft that was paid for, or may have been, is of another stream than the one asked for.
    """
    draft = draft_path(path)
    if not draft.exists():
        return None
    # With a second name it has got its own, and whoever removed that gave the stream up.
    left = _read_draft(draft) if draft.stat().st_nlink == 1 else None
    paid_here = left is not None and ledger is not None and ledger.knows(left.state_id)
    if left is not None and left.ledger is not None and (left.ledger != creation.ledger or paid_here):
        if left.asked == creation.asked:
            return draft
        raise InputError(
            f"an earlier 'stream create' of {path} asked for another stream, or another ledger, and was interrupted "
            "when it may have been paid for: repeat it as it was, which pays no second time, or give its budget up by "
            f"removing {draft}"
        )
    for leftover in (draft, journal_of(draft)):
        leftover.unlink(missing_ok=True)
    return None


def _read_draft(draft: Path) -> Creation | None:
    """What a draft holds; None if it was not finished, and so not paid for."""
    try:
        with closing(connected(draft)) as connection:
            return records.read_creation(connection)
    except (InputError, DamagedError, ValueError, sqlite3.DatabaseError):
        return None


def _fill(path: Path, creation: Creation) -> None:
    """Make an empty file a state before its first step; whoever made it puts it on disk."""
    with closing(opened(path, patience=0)) as connection:
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("BEGIN")
        make_tables(connection, KIND)
        records.write_creation(connection, creation)
        connection.execute("COMMIT")


def _name(draft: Path, path: Path) -> None:
    """Give the draft its name, unless something else has it by now."""
    if not items_folder(path).exists():  # somebody took it away since the draft was written
        items_folder(path).mkdir(mode=0o700)
        sync_folder(path.parent)
    try:
        path.hardlink_to(draft)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if os.path.lexists(path):
            raise FileExistsError from None
        draft.replace(path)
    sync_folder(path.parent)
    draft.unlink(missing_ok=True)
    sync_folder(path.parent)


def forget_draft(path: Path) -> None:
    """Remove the other name of a state whose creation was interrupted after it got its own."""
    draft = draft_path(path)
    with suppress(OSError):
        if draft.exists() and same_file(draft, path):
            draft.unlink()
