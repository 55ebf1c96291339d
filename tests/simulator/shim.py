"""The library between a process and its files: built, loaded, told what to break, and its log read.

`shim.c` has the other half. The control block is shared with the processes it is for; the log is one file for all.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import mmap
import os
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple

_LIBRARY = ctypes.PyDLL(None)
SOURCE = Path(__file__).with_name("shim.c")


class Op(IntEnum):
    """What a record of the log says was done."""

    CREATE = 1
    WRITE = 2
    TRUNCATE = 3
    SYNC = 4
    SYNC_FOLDER = 5
    RENAME = 6
    LINK = 7
    UNLINK = 8
    MKDIR = 9
    RMDIR = 10
    CHMOD = 11
    NOTE = 12
    PUNCH = 13
    SYNC_FAILED = 14
    SYMLINK = 15
    NAMELESS = 16
    FAULT = 17


class Class(IntEnum):
    """What faults count: any change, or one sort of calls."""

    ANY = 0
    DATA = 1
    SYNCS = 2
    NAMES = 3
    NOTES = 4
    READS = 5


class Action(IntEnum):
    """What becomes of a call."""

    GO = 0
    KILL_BEFORE = 1
    KILL_AFTER = 2
    KILL_SHORT = 3
    FAIL = 4
    SHORT = 5


@dataclass(frozen=True)
class Fault:
    """One process's fault: the call it begins at, counted in a class, and for how many calls it lasts (-1: all)."""

    action: Action = Action.GO
    of: Class = Class.ANY
    at: int = 0
    code: int = 0
    times: int = 1
    share: int = 50

    def __str__(self) -> str:
        if self.action == Action.GO:
            return "no fault"
        named = f" {errno.errorcode[self.code]}" if self.action == Action.FAIL else ""
        lasting = "" if self.times == 1 else " and after" if self.times < 0 else f", {self.times} times"
        return f"{self.action.name}{named} at {self.of.name} {self.at}{lasting}"


class Clock(NamedTuple):
    """The wall clock of a process, in nanoseconds: where it begins, and by how much it jumps at which operation."""

    start: int
    jump: int = 0
    jump_at: int = 1 << 60


class _Control(ctypes.Structure):
    """`struct control` of shim.c."""

    _fields_ = (
        ("root", ctypes.c_char * 256),
        ("seed", ctypes.c_uint64),
        *((name, ctypes.c_int64) for name in ("wall_start", "wall_tick", "wall_jump", "wall_jump_at")),
        *((f"fault_{name}", ctypes.c_int64) for name in ("class", "at", "action", "errno", "times", "share")),
        ("pauses", ctypes.c_int64),
        ("pause_at", ctypes.c_int64 * 8),
        *((name, ctypes.c_int64) for name in ("log_fd", "pause_out", "pause_in", "who")),
        ("counted", ctypes.c_int64 * len(Class)),
        ("fired", ctypes.c_int64),
    )


class Control:
    """A control block in memory that a process shares with the children it forks."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, ctypes.sizeof(_Control))
        self._block: Any = _Control.from_buffer(self._memory)

    def set(
        self,
        root: Path,
        log: int,
        seed: int,
        *,
        who: int = 0,
        fault: Fault | None = None,
        clock: Clock,
        pauses: tuple[int, ...] = (),
        pipes: tuple[int, int] = (-1, -1),
    ) -> None:
        """Get ready for one process."""
        ctypes.memset(ctypes.addressof(self._block), 0, ctypes.sizeof(_Control))
        block, fault = self._block, fault or Fault()
        block.root, block.seed, block.log_fd, block.who = os.fsencode(root), seed, log, who
        block.wall_start, block.wall_tick = clock.start, 1_000_000
        block.wall_jump, block.wall_jump_at = clock.jump, clock.jump_at
        block.fault_action, block.fault_at, block.fault_errno = fault.action, fault.at, fault.code
        block.fault_class = fault.of
        block.fault_times, block.fault_share = fault.times, fault.share
        block.pauses, block.pause_out, block.pause_in = len(pauses), *pipes
        for index, at in enumerate(pauses):
            block.pause_at[index] = at

    @property
    def counted(self) -> dict[Class, int]:
        """How many calls of each class there were."""
        return {of: int(self._block.counted[of]) for of in Class}

    @property
    def fired(self) -> int:
        """How many calls met the fault."""
        return int(self._block.fired)

    def begin(self) -> None:
        """In a child: from here on everything is seen."""
        _LIBRARY.dpsim_begin(ctypes.c_void_p(ctypes.addressof(self._block)))


def note(text: bytes) -> None:
    """In a child: enter into the log that this was said now. It is an operation like any other."""
    _LIBRARY.dpsim_note(text, ctypes.c_size_t(len(text)))


def leave_out_syncs(part: str) -> None:
    """In a child: syncs of files whose path has this part are as if they had not been asked for."""
    _LIBRARY.dpsim_leave_out(part.encode())


class Record(NamedTuple):
    """One thing done, in the order of the log."""

    op: Op
    who: int
    mode: int
    inode: int
    number: int
    offset: int
    length: int
    path: str
    path2: str
    data: bytes


_HEAD = struct.Struct("<IBBHHIQQqq")


def read_log(content: bytes) -> Iterator[Record]:
    """The records of a log."""
    at = 0
    while at < len(content):
        size, op, who, path, path2, mode, inode, number, offset, length = _HEAD.unpack_from(content, at)
        first = at + _HEAD.size
        second, data = first + path, first + path + path2
        yield Record(
            *(Op(op), who, mode, inode, number, offset, length),
            *(os.fsdecode(content[first:second]), os.fsdecode(content[second:data])),
            content[data : at + size],
        )
        at += size


def build() -> Path:
    """Compile the library, once for each version of its source; needs a C compiler (`cc`).

    Raises:
        RuntimeError: it cannot be compiled.
    """
    folder = Path(tempfile.gettempdir()) / f"dpwindows-simulator-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    built = folder / f"shim-{hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]}.so"
    if not built.exists():
        draft = built.with_suffix(f".{os.getpid()}")
        command = [os.environ.get("CC", "cc"), "-O1", "-Wall", "-shared", "-fPIC", "-o", str(draft), str(SOURCE)]
        try:
            subprocess.run([*command, "-ldl", "-lpthread"], check=True, capture_output=True, text=True)
        except FileNotFoundError:
            raise RuntimeError("the simulator needs a C compiler and its headers (gcc and libc6-dev)") from None
        except subprocess.CalledProcessError as error:
            raise RuntimeError(f"the simulator's library cannot be compiled: {error.stderr}") from None
        draft.replace(built)
    return built


def environment() -> dict[str, str]:
    """The environment of a process that is started with the library."""
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    fixed = {"PYTHONHASHSEED": "0", "ARROW_DEFAULT_MEMORY_POOL": "system"}
    return os.environ | {"LD_PRELOAD": str(build())} | fixed | single


def loaded() -> bool:
    """Whether this process was started with the library."""
    return hasattr(_LIBRARY, "dpsim_begin")
