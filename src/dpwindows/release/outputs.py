"""Checks that no file that a command writes is one that it reads.

Files are compared by identity (`durable.same_file`), so neither a link nor another spelling is a way around.
"""

from __future__ import annotations

import re
from pathlib import Path

from dpwindows.count.sources.batches import Batches
from dpwindows.count.sources.files import files_of, first_bytes
from dpwindows.durable import SQLITE, same_file
from dpwindows.errors import InputError

# What databases keep beside their file: logs and journals that hold part of the content, and locks.
_COMPANIONS = ("-journal", "-wal", "-shm", ".wal", ".lock", ".mark")
_SQLITE_ADDRESS = re.compile(r"sqlite(?:\+[a-z0-9]+)?:///(?P<path>[^?]+)", re.IGNORECASE)


def meta_path(path: Path) -> Path:
    """Where the metadata of a CSV file is kept."""
    return path.with_name(path.name + ".meta.json")


def parts_of(output: Path) -> tuple[Path, ...]:
    """The files that an output consists of."""
    return (output, meta_path(output)) if output.suffix.lower() == ".csv" else (output,)


def require_no_database(output: Path) -> None:
    """Check that no output would replace a database: it may be a ledger, the state of a stream, or somebody's log.

    Raises:
        InputError: one would.
    """
    for part in parts_of(output):
        try:
            head = first_bytes(part, 16) if part.is_file() else b""
        except OSError:
            continue
        if head == SQLITE or head[8:12] == b"DUCK":
            raise InputError(
                f"{part} is a database, and no output replaces one, with --force neither: it may be a ledger, a "
                "stream's state or a log. Name another output"
            )


def require_not_read(output: Path | None, **read: str | Path | Batches | None) -> None:
    """Check that an output (None writes none) is none of the files that its command reads, before anything is spent.

    What is `read` is given by what messages call it (`ledger_file`, `state`, ...): a path, and what databases keep
    beside it; `events` is anything that stands for files, `release` a release with its metadata, None is not read.

    Raises:
        InputError: it is one of them, however it is spelled and whatever links lead to it.
    """
    if output is None:
        return
    for what, source in read.items():
        if source is None:
            continue
        if isinstance(source, Batches):
            if source.folder is not None:
                _require_outside(output, Path(source.folder))
            continue
        if what == "events":
            files = files_behind(str(source))
        elif what == "release":
            files = list(parts_of(Path(source)))
        else:
            files = with_companions(Path(source))
        for part in parts_of(output):
            for file in files:
                if same_file(part, file):
                    raise InputError(
                        f"the output {str(part)!r} is a file that is read here ({what.replace('_', ' ')}: "
                        f"{str(file)!r}), and would replace it: name another output"
                    )


def _require_outside(output: Path, folder: Path) -> None:
    """Check that an output is not in the folder of a lake table, where a new file may be a state of it, or replace one.

    Raises:
        InputError: it is.
    """
    if output.resolve().is_relative_to(folder.resolve()):
        raise InputError(
            f"the output {str(output)!r} is in the folder of a table that is read here ({str(folder)!r}), and would "
            "become a file of it: name another output"
        )


def with_companions(path: Path) -> list[Path]:
    """A file and what a database may keep beside it, by its own name and by the name that links lead to."""
    try:
        names = {path, path.resolve()}
    except (OSError, RuntimeError, ValueError):
        names = {path}
    return sorted(names | {name.with_name(name.name + ending) for name in names if name.name for ending in _COMPANIONS})


def files_behind(events: str) -> list[Path]:
    """The local files that events are read from, with what databases keep beside them; none for a server."""
    address = _SQLITE_ADDRESS.match(events)
    if address is not None:
        return with_companions(Path(address["path"]))
    try:
        files = files_of(events)
    except (OSError, RuntimeError, ValueError):
        # What cannot be read is refused elsewhere, and the files of a lake table are all that its folder holds.
        folder = Path(events)
        return [file for file in folder.rglob("*") if file.is_file()] if folder.is_dir() else []
    return [near for file in files for near in with_companions(file)]
