"""What a disk holds, what was promised to stay, and what a power failure may leave.

The model replays the log of what processes did. It promises what POSIX does and no more: the content of a file is safe
when the file was synced, a name when its folder was. Of what came after, a power failure leaves any part: writes are
lost, torn at sectors or pages, and done out of order; files may have grown without their data (zeros); names of before
stand beside names of after; only a rename is whole or not done. After a sync that failed, the pages it was for count as
clean and are lost unless they are written again, as Linux does it.
"""

from __future__ import annotations

import os
import random
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.simulator.shim import Op, Record

SECTOR, PAGE = 512, 4096


class Change(NamedTuple):
    """A change of a file's content: data written at a place, or the length it was cut or grown to."""

    offset: int
    data: bytes
    length: int | None = None


@dataclass
class Inode:
    """A file, or a folder, which has no content: what processes see, what is safe, and the changes in between."""

    mode: int
    seen: bytearray = field(default_factory=bytearray)
    safe: bytes = b""
    unsynced: list[Change] = field(default_factory=list)
    # Pages of a sync that failed: clean for the system, and not on the disk.
    forgotten: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, content: bytes, mode: int) -> Inode:
        """A file that is on disk."""
        return cls(mode, bytearray(content), content)

    @property
    def is_folder(self) -> bool:
        """Whether names lie below its own."""
        return stat.S_ISDIR(self.mode)

    def change(self, change: Change) -> None:
        """A process changed it."""
        _apply(self.seen, change)
        self.unsynced.append(change)

    def sync(self) -> None:
        """Everything that is seen is safe, but for what an earlier sync lost."""
        content = bytearray(self.seen)
        self.forgotten -= _pages(self.unsynced)
        for page in self.forgotten:
            low, high = page * PAGE, min((page + 1) * PAGE, len(content))
            if low < high:
                content[low:high] = self.safe[low:high].ljust(high - low, b"\0")
        self.safe, self.unsynced = bytes(content), []

    def fail_to_sync(self) -> None:
        """The system reported the failure once, and holds the pages for clean from now on."""
        self.forgotten |= _pages(self.unsynced)
        self.unsynced = []

    def lose_power(self, dice: random.Random) -> None:
        """Leave what is safe, and some of what came after."""
        if self.unsynced:
            content = bytearray(self.safe)
            kept = _survivors(self.unsynced, dice)
            for change in kept:
                _apply(content, change)
            self.safe = bytes(content)
        self.seen, self.unsynced, self.forgotten = bytearray(self.safe), [], set()


class Naming(NamedTuple):
    """A change of names in one folder: a file gets a name, loses one, or changes it at once."""

    inode: Inode | None
    old: str | None
    new: str | None


class Disk:
    """Files below one folder; paths are relative to it. The folders `there` were always there."""

    def __init__(self, root: Path, there: Iterable[str] = ()) -> None:
        self.root, self._there = root, {".", *there}
        self.seen: dict[str, Inode] = {}
        self.safe: dict[str, Inode] = {}
        self.unsynced: list[Naming] = []
        self._numbered: dict[int, Inode] = {}

    # --- what processes do --------------------------------------------------------------------------------------------

    def replay(self, records: Iterable[Record]) -> None:
        """Bring the model to where the files are."""
        for record in records:
            self._replay(record)

    def _replay(self, record: Record) -> None:
        match record.op:
            case Op.CREATE | Op.NAMELESS:
                inode = Inode(record.mode)
                self._numbered[record.inode] = inode
                if record.op == Op.CREATE:
                    self._rename(Naming(inode, None, self._name(record.path)))
            case Op.WRITE:
                self._file(record).change(Change(record.offset, record.data))
            case Op.TRUNCATE:
                self._file(record).change(Change(0, b"", record.length))
            case Op.PUNCH:
                inode = self._file(record)
                length = max(0, min(record.length, len(inode.seen) - record.offset))
                inode.change(Change(record.offset, bytes(length)))
            case Op.SYNC:
                self._file(record).sync()
            case Op.SYNC_FAILED:
                if record.inode in self._numbered:
                    self._file(record).fail_to_sync()
            case Op.SYNC_FOLDER:
                self._sync_names(self._name(record.path))
            case Op.RENAME:
                old, new = self._name(record.path), self._name(record.path2)
                if self.seen[old] is not self.seen.get(new):
                    self._rename(Naming(self.seen[old], old, new))
            case Op.MKDIR:
                self._rename(Naming(Inode(stat.S_IFDIR | record.mode), None, self._name(record.path)))
            case Op.RMDIR:
                self._rename(Naming(None, self._name(record.path), None))
            case Op.LINK:
                self._rename(Naming(self._file(record), None, self._name(record.path)))
            case Op.UNLINK:
                self._rename(Naming(None, self._name(record.path), None))
            case Op.CHMOD:
                if record.inode in self._numbered:
                    self._file(record).mode = record.mode

    def _file(self, record: Record) -> Inode:
        return self._numbered[record.inode]

    def _name(self, path: str) -> str:
        return os.path.relpath(path, self.root)

    def _rename(self, naming: Naming) -> None:
        _name(self.seen, naming)
        self.unsynced.append(naming)

    def _sync_names(self, folder: str) -> None:
        left = []
        for naming in self.unsynced:
            if str(Path(naming.new or naming.old or "").parent) == folder:
                _name(self.safe, naming)
            else:
                left.append(naming)
        self.unsynced = left

    # --- what happens to the machine ----------------------------------------------------------------------------------

    def lose_power(self, dice: random.Random) -> None:
        """Leave what a power failure may leave, and put it in place of the files."""
        names = dict(self.safe)
        for naming in _chosen(self.unsynced, dice):
            _name(names, naming)
        # What lies in a folder whose own name is lost is lost with it.
        folders = self._there | {name for name, inode in names.items() if inode.is_folder}
        names = {name: inode for name, inode in names.items() if str(Path(name).parent) in folders}
        self.seen, self.safe, self.unsynced = dict(names), names, []
        for inode in {id(inode): inode for inode in names.values()}.values():
            inode.lose_power(dice)
        self.lay_out()

    def sync(self) -> None:
        """Everything becomes safe: time passes."""
        for inode in self.seen.values():
            inode.safe, inode.unsynced, inode.forgotten = bytes(inode.seen), [], set()
        self.safe, self.unsynced = dict(self.seen), []

    def snapshot(self) -> dict[str, tuple[bytes, int]]:
        """All files as processes see them: content and mode by name."""
        return {name: (bytes(inode.seen), inode.mode) for name, inode in self.seen.items()}

    def restore(self, files: dict[str, tuple[bytes, int]], gone: Iterable[str] = ()) -> None:
        """Somebody puts these files in place, takes others away, and all of it is synced."""
        self.sync()
        for name in gone:
            self.seen.pop(name, None)
        for name, (content, mode) in files.items():
            self.seen[name] = Inode.of(content, mode)
        self.sync()
        self.lay_out()

    def lay_out(self) -> None:
        """Write the files as they are seen."""
        for path in sorted(self._found(), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        placed: dict[int, Path] = {}
        self._numbered = {}
        for name, inode in sorted(self.seen.items()):
            path = self.root / name
            if inode.is_folder:
                path.mkdir(mode=0o700)
                continue
            if id(inode) in placed:
                path.hardlink_to(placed[id(inode)])
                continue
            path.write_bytes(inode.seen)
            path.chmod(inode.mode)
            placed[id(inode)] = path
            self._numbered[path.stat().st_ino] = inode

    def _found(self) -> list[Path]:
        """All files, and the folders that were made."""
        return [path for path in self.root.rglob("*") if str(path.relative_to(self.root)) not in self._there]

    def difference(self) -> str | None:
        """Where the model is not what the files are: then the library did not see everything."""
        there = {str(path.relative_to(self.root)) for path in self._found()}
        if there != set(self.seen):
            return f"names differ: {sorted(there ^ set(self.seen))}"
        for name, inode in self.seen.items():
            if not inode.is_folder and (self.root / name).read_bytes() != inode.seen:
                return f"the content of {name} differs"
        return None


def _apply(content: bytearray, change: Change) -> None:
    if change.length is not None:
        del content[change.length :]
        content.extend(bytes(change.length - len(content)))
        return
    if len(content) < change.offset:
        content.extend(bytes(change.offset - len(content)))
    content[change.offset : change.offset + len(change.data)] = change.data


def _name(names: dict[str, Inode], naming: Naming) -> None:
    if naming.old is not None:
        names.pop(naming.old, None)
    if naming.new is not None:
        assert naming.inode is not None
        names[naming.new] = naming.inode


def _pages(changes: Iterable[Change]) -> set[int]:
    return {
        page
        for change in changes
        for page in range(change.offset // PAGE, (change.offset + max(len(change.data), 1) - 1) // PAGE + 1)
    }


def _chosen(namings: list[Naming], dice: random.Random) -> list[Naming]:
    """The changes of names that reached the disk: those up to a moment, as a journal keeps them, or any."""
    if dice.random() < 0.5:
        return namings[: dice.randint(0, len(namings))]
    share = dice.choice((0.1, 0.5, 0.9))
    return [naming for naming in namings if dice.random() < share]


def _survivors(changes: list[Change], dice: random.Random) -> list[Change]:
    """The changes of content that reached the disk."""
    how = dice.choice(("none", "all", "prefix", "prefix", "torn", "torn", "reordered", "reordered"))
    if how == "none":
        return []
    if how == "all":
        return changes
    kept = changes[: dice.randint(0, len(changes))] if how in ("prefix", "torn") else []
    if how == "prefix" or (how == "torn" and len(kept) == len(changes)):
        return kept
    grain, share = dice.choice((SECTOR, PAGE)), dice.choice((0.1, 0.5, 0.9))
    pieces = [
        piece for change in (changes[len(kept) :][:1] if how == "torn" else changes) for piece in _cut(change, grain)
    ]
    if how == "torn":
        return kept + pieces[: dice.randint(0, len(pieces))]
    return [piece for piece in pieces if dice.random() < share]


def _cut(change: Change, grain: int) -> list[Change]:
    """A change in pieces that the disk writes at once."""
    if change.length is not None or not change.data:
        return [change]
    pieces, at, last = [], change.offset, change.offset + len(change.data)
    while at < last:
        end = min(last, (at // grain + 1) * grain)
        pieces.append(Change(at, change.data[at - change.offset : end - change.offset]))
        at = end
    return pieces
