"""The disk model by itself: what is safe stays, what is not may go in pieces, and nothing else happens."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from tests.simulator.disk import PAGE, Disk
from tests.simulator.shim import Op, Record


def record(op: Op, path: str = "", path2: str = "", **values: Any) -> Record:
    given: dict[str, Any] = {"who": 0, "mode": 0o600, "inode": 1, "number": 0, "offset": 0, "length": 0, "data": b""}
    given |= values
    return Record(op=op, path=path, path2=path2, **given)


def disk_after(root: Path, *records: Record) -> Disk:
    """A disk after records whose paths are relative to it."""
    disk = Disk(root)
    disk.lay_out()
    disk.replay(
        one._replace(path=str(root / one.path), path2=str(root / one.path2) if one.path2 else "") for one in records
    )
    return disk


def left(tmp_path: Path, *records: Record, tries: int = 300) -> list[dict[str, bytes]]:
    """The different disks that a power failure leaves."""
    found = []
    for seed in range(tries):
        disk = disk_after(tmp_path, *records)
        disk.lose_power(random.Random(seed))
        assert disk.difference() is None
        after = {name: content for name, (content, _) in disk.snapshot().items()}
        if after not in found:
            found.append(after)
    return found


CREATED = (record(Op.CREATE, "a"), record(Op.WRITE, data=b"old"))
SAFE = (*CREATED, record(Op.SYNC, "a"), record(Op.SYNC_FOLDER, "."))


def test_what_is_synced_stays(tmp_path: Path) -> None:
    assert left(tmp_path, *SAFE, tries=50) == [{"a": b"old"}]


def test_a_name_needs_its_folder_and_content_its_file(tmp_path: Path) -> None:
    without_folder = left(tmp_path, *CREATED, record(Op.SYNC, "a"))
    assert sorted(map(str, without_folder)) == sorted(map(str, [{}, {"a": b"old"}]))
    without_file = left(tmp_path, *CREATED, record(Op.SYNC_FOLDER, "."))
    assert {"a": b""} in without_file
    assert {"a": b"old"} in without_file


def test_a_rename_is_whole_or_not_done(tmp_path: Path) -> None:
    new = (record(Op.CREATE, "b", inode=2), record(Op.WRITE, inode=2, data=b"new"), record(Op.SYNC, "b", inode=2))
    replaced = left(tmp_path, *SAFE, *new, record(Op.RENAME, "b", "a"))
    assert all(disk["a"] in (b"old", b"new") for disk in replaced)
    assert {disk["a"] for disk in replaced} == {b"old", b"new"}
    without_sync = left(tmp_path, *SAFE, *new[:2], record(Op.RENAME, "b", "a"))
    assert b"" in {disk["a"] for disk in without_sync}


def test_an_unlink_may_come_back(tmp_path: Path) -> None:
    assert sorted(map(str, left(tmp_path, *SAFE, record(Op.UNLINK, "a")))) == sorted(map(str, [{}, {"a": b"old"}]))


def test_a_second_name_is_the_same_file(tmp_path: Path) -> None:
    linked = (*SAFE, record(Op.LINK, "b"), record(Op.SYNC_FOLDER, "."), record(Op.WRITE, data=b"new"))
    disks = left(tmp_path, *linked)
    assert all(disk["a"] == disk["b"] for disk in disks)
    assert {b"old", b"new"} <= {disk["a"] for disk in disks}


def test_pages_are_lost_torn_and_reordered(tmp_path: Path) -> None:
    pages = [bytes([number + 1]) * PAGE for number in range(4)]
    writes = [record(Op.WRITE, offset=number * PAGE, data=page) for number, page in enumerate(pages)]
    disks = [disk["a"] for disk in left(tmp_path, *SAFE, *writes)]
    assert b"".join(pages) in disks
    later_alone = [disk for disk in disks if len(disk) == 4 * PAGE and disk[PAGE : 2 * PAGE] == bytes(PAGE)]
    assert later_alone, "a later page is there without an earlier one, which reads as zeros"
    assert [disk for disk in disks if len(disk) % PAGE not in (0, 3)], "a page is torn"


def test_what_a_failed_sync_lost_is_lost_although_the_next_one_succeeds(tmp_path: Path) -> None:
    failed = (*SAFE, record(Op.WRITE, data=b"new"), record(Op.SYNC_FAILED, "a"), record(Op.SYNC, "a"))
    assert left(tmp_path, *failed, tries=20) == [{"a": b"old"}]
    again = (*failed, record(Op.WRITE, data=b"new"), record(Op.SYNC, "a"))
    assert left(tmp_path, *again, tries=20) == [{"a": b"new"}]


def test_what_lies_in_a_folder_needs_its_name_too(tmp_path: Path) -> None:
    made = (record(Op.MKDIR, "f"), record(Op.CREATE, "f/a"), record(Op.WRITE, data=b"old"), record(Op.SYNC, "f/a"))
    disks = [sorted(disk) for disk in left(tmp_path, *made, record(Op.SYNC_FOLDER, "f"))]
    assert sorted(disks) == [[], ["f", "f/a"]]
    safe = (*made[:1], record(Op.SYNC_FOLDER, "."), *made[1:])
    assert sorted(sorted(disk) for disk in left(tmp_path, *safe)) == [["f"], ["f", "f/a"]]
