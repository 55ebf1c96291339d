"""Where tests keep their files: streams and ledgers wait for a disk at each write, and for memory they do not."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path


def _in_memory(folder: str = "/dev/shm", room: int = 4 << 30) -> str | None:
    """A folder in memory, where there is one with room, and from which programs may be run."""
    if not os.access(folder, os.W_OK) or os.statvfs(folder).f_flag & os.ST_NOEXEC:
        return None
    return folder if shutil.disk_usage(folder).free > room else None


IN_MEMORY = _in_memory()


def use_memory() -> None:
    """Have temporary files of this process, and of those that it starts, in memory; unless `TMPDIR` says where."""
    if IN_MEMORY is None or "TMPDIR" in os.environ:
        return
    # What processes leave that are killed goes with the folder.
    folder, process = tempfile.mkdtemp(prefix="dpwindows-tests-", dir=IN_MEMORY), os.getpid()
    Path(folder).chmod(0o1777)
    os.environ |= {"TMPDIR": folder, "PYTEST_DEBUG_TEMPROOT": IN_MEMORY}
    tempfile.tempdir = None
    atexit.register(_remove, folder, process)


def _remove(folder: str, owner: int) -> None:
    """Not at the end of a process that was forked from the one it belongs to."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
