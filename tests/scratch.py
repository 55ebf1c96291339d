"""Where tests keep their files: streams and ledgers wait for a disk at each write, and for memory they do not."""

from __future__ import annotations

import os
import shutil
import tempfile


def _in_memory(folder: str = "/dev/shm", room: int = 4 << 30) -> str | None:
    """A folder in memory, where there is one with room, and from which programs may be run."""
    if not os.access(folder, os.W_OK) or os.statvfs(folder).f_flag & os.ST_NOEXEC:
        return None
    return folder if shutil.disk_usage(folder).free > room else None


IN_MEMORY = _in_memory()


def use_memory() -> None:
    """Have temporary files of this process, and of those that it starts, in memory; unless `TMPDIR` says where."""
    if IN_MEMORY is not None:
        os.environ.setdefault("TMPDIR", IN_MEMORY)
        tempfile.tempdir = None
