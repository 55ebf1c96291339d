"""Files that are whole, private where they must be, written once, and on disk when it is said that they are.

- *Whole*: a file is filled under another name and gets its own when its content is on disk.
- *Once*: without `replace`, a file that is there already, even since a moment ago, is left as it is.
- *On disk*: the content is synced before the file gets its name, and the folder, which records the name, after it.
- *Nothing stays behind*: a draft is locked by the process that fills it. The next write of the same file removes drafts
  that nobody holds any more, such as those of a process that was killed.

The kernel applies the umask when it creates a file. It is never read here: that can only be done by setting it, for
every thread of the process.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path

from dpwindows.errors import EngineError, InputError

try:
    import fcntl
except ImportError:  # pragma: no cover - not a POSIX system
    fcntl = None  # type: ignore[assignment]

_DRAFT_BYTES = 8
# How every database of SQLite begins.
SQLITE = b"SQLite format 3\0"


class UnsettledError(EngineError):
    """A file is in place and whole, but the disk did not confirm its name: a loss of power may still take it away."""


# What a file system without hard links, or without locks, answers.
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
_NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}


def sync_file(path: str | Path) -> None:
    """Return when the content of a file is on disk.

    Raises:
        OSError: it is not there, cannot be read, or the disk failed.
    """
    _sync(path, os.O_RDONLY)


def sync_folder(path: str | Path) -> None:
    """Return when a folder's record of the names in it is on disk; where folders cannot be synced, at once.

    Raises:
        OSError: it is not there, cannot be read, or the disk failed.
    """
    if os.name != "posix":  # pragma: no cover - such systems do not open folders
        return
    try:
        _sync(path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise


def _sync(path: str | Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_atomically(path: str | Path, fill: Callable[[str], object], *, replace: bool, private: bool = False) -> None:
    """Write a file that appears whole, with its content on disk, or not at all.

    Args:
        path: the file; its folder must be there.
        fill: writes the content into the empty file whose name it is given.
        replace: take the place of a file of that name. Otherwise one that is there stays, and of two writers at once
            exactly one succeeds.
        private: only the owner may read and write the file; otherwise the umask says who may.

    Raises:
        FileExistsError: something of that name is there, and `replace` is not set.
        UnsettledError: the file is in place, and its name is not known to be on disk.
        EngineError: the file cannot be written; nothing was left behind, and a file of that name is as it was.
    """
    path = Path(path)
    try:
        _remove_stale_drafts(path)
        draft, handle = _new_draft(path, 0o600 if private else 0o666)
        try:
            fill(str(draft))
            sync_file(draft)
            _put_in_place(draft, path, replace=replace)
        finally:
            # The name goes while the lock is held, so that nobody takes the draft for a stale one of another writer.
            draft.unlink(missing_ok=True)
            os.close(handle)
    except FileExistsError:
        raise
    except OSError as error:
        raise EngineError(f"{str(path)!r} cannot be written: {error.strerror or error}") from error
    sync_new_name(path)


def sync_new_name(path: Path) -> None:
    """Return when a file's name is on disk.

    Raises:
        UnsettledError: the disk failed.
    """
    try:
        sync_folder(path.parent)
    except OSError as error:
        raise UnsettledError(
            f"{str(path)!r} is written, but a loss of power may still take it away, since its folder cannot be synced: "
            f"{error.strerror or error}"
        ) from error


def _new_draft(path: Path, mode: int) -> tuple[Path, int]:
    """A new empty file beside `path`, locked for as long as the handle is open."""
    while True:
        draft = path.with_name(f".{path.name}.{secrets.token_hex(_DRAFT_BYTES)}.part")
        handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, mode)
        try:
            ours = try_lock(handle) is not Lock.ANOTHERS
            if ours and _is_named(handle, draft):
                return draft, handle
        except BaseException:
            draft.unlink(missing_ok=True)
            os.close(handle)
            raise
        # Between its creation and its lock another took it for a stale one, and has removed it, or is about to.
        os.close(handle)


def _remove_stale_drafts(path: Path) -> None:
    """Remove the drafts of `path` that no living process fills."""
    drafts = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{{2 * _DRAFT_BYTES}}}\.part")
    with suppress(OSError), os.scandir(path.parent) as entries:
        for draft in [Path(entry.path) for entry in entries if drafts.fullmatch(entry.name)]:
            _remove_if_unlocked(draft)


def _remove_if_unlocked(draft: Path) -> None:
    # Another user's draft, or one that is gone by now, is none of ours.
    with suppress(OSError):
        handle = os.open(draft, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            if try_lock(handle) is Lock.OURS:
                draft.unlink()
        finally:
            os.close(handle)


def _put_in_place(draft: Path, path: Path, *, replace: bool) -> None:
    if replace:
        draft.replace(path)
        return
    try:
        os.link(draft, path)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # Without links the name is taken first, by an empty file, which the draft then replaces.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        try:
            draft.replace(path)
        except OSError:
            path.unlink(missing_ok=True)
            raise


@contextmanager
def claim(path: str | Path) -> Iterator[None]:
    """Hold the right to write a file, so that no two processes prepare the same one: the second is told at once.

    The claim is a locked file beside it, and ends with the process however that ends. On a file system without locks
    it is not held; `write_atomically` still lets one writer win.

    Raises:
        InputError: another process holds it.
        EngineError: the folder cannot be written to.
    """
    path = Path(path)
    claim = path.with_name(f".{path.name}.claim")
    try:
        handle = _taken(claim, path)
    except OSError as error:
        raise EngineError(f"{str(path)!r} cannot be written: {error.strerror or error}") from error
    try:
        yield
    finally:
        # The name goes while the lock is held: whoever waits for it finds its own file without a name, and starts anew.
        with suppress(OSError):
            claim.unlink(missing_ok=True)
        os.close(handle)


def _taken(claim: Path, path: Path) -> int:
    while True:
        handle = os.open(claim, os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0), 0o600)
        try:
            if try_lock(handle) is Lock.ANOTHERS:
                raise InputError(f"another process is writing {str(path)!r}: name another output, or wait for it")
            if _is_named(handle, claim):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


class Lock(Enum):
    """What became of an attempt to lock a file."""

    OURS, ANOTHERS, NOT_KNOWN_HERE = range(3)


def try_lock(handle: int) -> Lock:
    """Lock an open file until it is closed, unless another process has locked it."""
    if fcntl is None:  # pragma: no cover - not a POSIX system
        return Lock.NOT_KNOWN_HERE
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return Lock.ANOTHERS
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        return Lock.NOT_KNOWN_HERE
    return Lock.OURS


def unlock(handle: int) -> None:
    """Give up the lock of an open file, also for processes that were forked with it."""
    if fcntl is not None:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_UN)


def _is_named(handle: int, path: Path) -> bool:
    """True if an open file is still the one of that name."""
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    except FileNotFoundError:
        return False


def same_file(first: str | Path, second: str | Path) -> bool:
    """True if two paths are one file, however they are spelled: through links of either kind, too.

    Of files that are not there yet it tells whether they would be one.
    """
    first, second = Path(first), Path(second)
    try:
        if first.samefile(second):
            return True
    except (OSError, ValueError):
        pass
    # A link that leads nowhere yet, or a file that is not there: by the folder it would be in, and its name.
    return any(_same_place(one, other) for one in (first, _led_to(first)) for other in (second, _led_to(second)))


def _led_to(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        return path.absolute()


def _same_place(first: Path, second: Path) -> bool:
    if first.name != second.name:
        return False
    try:
        return first.parent.samefile(second.parent)
    except (OSError, ValueError):
        return first.absolute() == second.absolute()


def require_private(path: str | Path, what: str) -> None:
    """Check that nobody else may change or replace a file that the guarantee rests on (on POSIX systems).

    Args:
        path: the file.
        what: what it is, for the message, such as `ledger`.

    Raises:
        InputError: its group or everybody may write it, it belongs to another user, or everybody may replace it since
            its folder is theirs to write and not sticky.
        OSError: it is not there.
    """
    if os.name != "posix":  # pragma: no cover - owners and modes are those of POSIX
        return
    path = Path(path)
    found, me = path.stat(), os.geteuid()
    mode = stat.S_IMODE(found.st_mode)
    if mode & 0o022:
        raise InputError(
            f"others may write the {what} {str(path)!r} (mode {mode:04o}), so what it says cannot be relied upon: "
            f"look at it, and then make it yours alone with chmod {'700' if path.is_dir() else '600'} {path}"
        )
    # Root's files are as safe as root is, and root may use the files of others.
    if found.st_uid not in (me, 0) and me != 0:
        raise InputError(
            f"the {what} {str(path)!r} belongs to another user (number {found.st_uid}), who may change it: "
            "use your own, or have it given to you with chown"
        )
    require_private_folder(path, what)


def require_private_folder(path: Path, what: str) -> None:
    """Check that not everybody may replace a file, there or yet to be made, through its folder.

    Raises:
        InputError: everybody may write its folder, which is not sticky.
    """
    folder = path.resolve().parent
    rights = stat.S_IMODE(folder.stat().st_mode)
    if os.name == "posix" and rights & stat.S_IWOTH and not rights & stat.S_ISVTX:
        raise InputError(
            f"everybody may replace the {what} {str(path)!r}, since everybody may write its folder (mode "
            f"{rights:04o}): keep it in a folder of your own, or use chmod o-w {folder}, or chmod +t, which leaves "
            "files to their owners"
        )
