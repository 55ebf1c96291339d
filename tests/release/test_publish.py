"""A release in tables: all of it or none of it, once for each release id, whatever is interrupted."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import dpwindows as dw
from dpwindows.errors import EngineError, InputError
from dpwindows.release import destinations
from dpwindows.release import publish as publishing
from dpwindows.release.checks import checksum_of
from tests.end_to_end.command_line import run
from tests.patience import PATIENCE
from tests.release.destinations import Destination, InDelta, InDuckDB, InIceberg, InPostgreSQL

PLACES = [
    "duckdb",
    pytest.param("postgresql", marks=pytest.mark.xdist_group("postgresql")),
    "delta",
    "iceberg",
]
everywhere = pytest.mark.parametrize("destination", PLACES, indirect=True)


@cache
def made(*, groups: bool = True) -> dw.Release:
    plan = dw.Plan(
        [dw.Rolling(2), dw.Cumulative()],
        timeline=dw.Timeline("2020-03-07", "2020-03-10", time_zone="America/New_York"),
        unit=dw.EventLevel(),
        budget=dw.ZCDP(1.0),
        by={"origin %(a)s:b": ["x", "ä"]} if groups else None,
        totals=0.3 if groups else None,
    )
    log = pa.table({"u": ["a"], "t": [datetime(2020, 3, 8, tzinfo=UTC)], "origin %(a)s:b": ["x"]})
    return plan.run(log, item="u", time="t")


def another(release: dw.Release) -> dw.Release:
    """The same numbers as another release."""
    return replace(release, metadata=release.metadata | {"release_id": uuid.uuid4().hex})


def sorted_rows(rows: pa.Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in rows.to_pylist()), key=str)


def require_once(destination: Destination, table: str, *releases: dw.Release) -> None:
    """A reader finds these releases, each whole and once, and nothing else; and there is nothing else."""
    rows, commits = destination.read(table), destination.read(f"{table}_releases")
    assert rows is not None
    assert commits is not None
    wanted = [
        (release.metadata["release_id"], *row.values()) for release in releases for row in release.table.to_pylist()
    ]
    assert sorted_rows(rows) == sorted(wanted, key=str)
    stated = {row["release_id"]: row for row in commits.to_pylist()}
    assert len(stated) == commits.num_rows == len(releases)
    for release in releases:
        found = stated[release.metadata["release_id"]]
        assert found["checksum"] == checksum_of(release.table, release.metadata)
        assert found["numbers"] == release.table.num_rows
        assert found["released_at"] == datetime.fromisoformat(release.metadata["released_at"])
        assert release.metadata["guarantee"] == found["guarantee"]
        assert f'"{found["checksum"]}"' in found["metadata"]


@everywhere
def test_a_release_is_published_once(destination: Destination) -> None:
    first, second = made(), another(made())
    assert first.publish(destination.address, table="reach")
    assert second.publish(destination.address, table="reach")
    assert not first.publish(destination.address, table="reach")
    require_once(destination, "reach", first, second)
    # Other numbers, or another claim, under an id that is there.
    changed = first.table.set_column(
        first.table.schema.get_field_index("estimate"), "estimate", pc.add(first.table["estimate"], 1.0)
    )
    for forged in (replace(first, table=changed), replace(first, metadata=first.metadata | {"guarantee": "all"})):
        with pytest.raises(InputError, match="is there already, with other numbers or other metadata"):
            forged.publish(destination.address, table="reach")
    require_once(destination, "reach", first, second)


@everywhere
def test_no_table_of_somebody_else_is_written_to(destination: Destination) -> None:
    release = made()
    assert release.publish(destination.address, table="ours")
    ours, commits = destination.read("ours"), destination.read("ours_releases")
    assert ours is not None
    assert commits is not None
    # With the very columns, be it that of the rows or that of the commits; and a log.
    for name, rows in (("theirs", ours), ("other_releases", commits), ("log", pa.table({"who": ["ann"]}))):
        destination.write_foreign(name, rows)
        with pytest.raises(InputError, match="writes to no such table"):
            release.publish(destination.address, table=name.removesuffix("_releases"))
        found = destination.read(name)
        assert found is not None
        assert sorted_rows(found) == sorted_rows(rows)
    with pytest.raises(InputError, match="holds releases with other columns"):
        made(groups=False).publish(destination.address, table="ours")
    require_once(destination, "ours", release)


@pytest.mark.parametrize("destination", ["delta", "iceberg"], indirect=True)
def test_nothing_is_made_where_the_other_table_is_refused(destination: Destination) -> None:
    destination.write_foreign("reach_releases", pa.table({"who": ["ann"]}))
    with pytest.raises(InputError, match="reach_releases was not made by dpwindows"):
        made().publish(destination.address, table="reach")
    assert destination.read("reach") is None


@everywhere
def test_a_null_character_is_a_character_or_refused(destination: Destination) -> None:
    """PostgreSQL holds none, neither in a value nor in a name."""
    group = next(name for name in made().table.column_names if name.startswith("origin"))
    column = pa.array(["a\0b"] * made().table.num_rows)
    place = made().table.schema.get_field_index(group)
    valued = replace(made(), table=made().table.set_column(place, group, column), metadata=_with_values(["a\0b"]))
    if not isinstance(destination, InPostgreSQL):
        assert valued.publish(destination.address, table="reach")
        require_once(destination, "reach", valued)
        return
    with pytest.raises(InputError, match=r"holds no null character .* a value of the column 'origin") as caught:
        valued.publish(destination.address, table="reach")
    assert "\0" not in str(caught.value)
    assert destination.read("reach") is None


def _with_values(values: list[str]) -> dict[str, Any]:
    (column,) = made().metadata["groups"]["columns"]
    groups = made().metadata["groups"] | {"columns": [column | {"values": values}]}
    return made().metadata | {"groups": groups}


# --- What is interrupted ---------------------------------------------------------------------------------------------

STEPS = ["prepare", "checksums", "rows", "add", "settle", "add", "settle"]
CLASSES = [destinations._DuckDB, destinations._PostgreSQL, destinations._Delta, destinations._Iceberg]


class KilledError(BaseException):
    """No handler of errors sees it, as none sees a signal."""


def before_each(patch: pytest.MonkeyPatch, act: Any) -> None:
    """Do something before each step of a publisher."""
    for kind in CLASSES:
        for step in set(STEPS):
            patch.setattr(kind, step, _stepped(step, getattr(kind, step), act))


def _stepped(step: str, own: Any, act: Any) -> Any:
    def stepped(self: Any, *given: Any, **more: Any) -> Any:
        act(step)
        return own(self, *given, **more)

    return stepped


@everywhere
def test_what_ends_at_any_step_goes_on_from_there(destination: Destination) -> None:
    before: list[dw.Release] = []
    for last in range(len(STEPS) + 1):
        release, done = another(made()), list[str]()
        # Where tables are made, in new ones; later steps in one that holds other releases.
        table, before = f"reach{min(last, 2)}", before if last > 2 else []

        def act(step: str) -> None:
            if len(done) == last:  # noqa: B023
                raise KilledError
            done.append(step)  # noqa: B023

        with pytest.MonkeyPatch.context() as patch:
            before_each(patch, act)
            if last < len(STEPS):
                with pytest.raises(KilledError):
                    release.publish(destination.address, table=table)
            else:
                assert release.publish(destination.address, table=table)
        assert done == STEPS[:last]
        seen = destination.joined(table)
        # In a database the end of the transaction commits, in a lake the last write.
        committed = last >= len(STEPS) - isinstance(destination, InDelta | InIceberg)
        assert (seen.num_rows if seen else 0) == release.table.num_rows * (len(before) + committed)
        release.publish(destination.address, table=table)
        before.append(release)
        require_once(destination, table, *before)


@pytest.mark.parametrize("destination", ["delta", "iceberg"], indirect=True)
def test_rows_that_were_left_are_those_of_the_release_or_refused(destination: Destination) -> None:
    release, adds = made(), 0

    def act(step: str) -> None:
        nonlocal adds
        adds += step == "add"
        if adds == 2:
            raise KilledError

    with pytest.MonkeyPatch.context() as patch:
        before_each(patch, act)
        with pytest.raises(KilledError):
            release.publish(destination.address, table="reach")
    changed = release.table.set_column(
        release.table.schema.get_field_index("estimate"), "estimate", pc.add(release.table["estimate"], 1.0)
    )
    with pytest.raises(InputError, match="with other numbers"):
        replace(release, table=changed).publish(destination.address, table="reach")
    assert release.publish(destination.address, table="reach")
    require_once(destination, "reach", release)


@pytest.mark.parametrize("destination", ["delta", "iceberg"], indirect=True)
def test_rows_are_on_disk_before_they_can_be_seen(destination: Destination, tmp_path: Path) -> None:
    """With all files of their table, and the folders that name them; then so is the row that commits them."""
    synced, own = set[Path](), {name: getattr(destinations, name) for name in ("sync_file", "sync_folder")}

    def noted(name: str) -> Callable[[Path], None]:
        def sync(path: Path) -> None:
            own[name](path)
            synced.add(Path(path))

        return sync

    def missing(table: str) -> set[Path]:
        top = next(path for path in tmp_path.rglob(table) if path.is_dir())
        return {path for path in (*top.rglob("*"), top, top.parent, top.parent.parent) if path not in synced}

    def act(step: str) -> None:
        if step == "add":
            adds.append(missing("reach"))

    adds: list[set[Path]] = []
    with pytest.MonkeyPatch.context() as patch:
        before_each(patch, act)
        for name in own:
            patch.setattr(destinations, name, noted(name))
        made().publish(destination.address, table="reach")
    assert adds[0]
    assert adds[1] == set()
    assert missing("reach_releases") == set()


# --- Several at once -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("before", ["add", "commit"])
@everywhere
def test_who_is_overtaken_by_the_same_release_finds_it(destination: Destination, before: str) -> None:
    release, earlier = made(), another(made())
    assert earlier.publish(destination.address, table="reach")
    adds = overtaken = 0

    def act(step: str) -> None:
        nonlocal adds, overtaken
        adds += step == "add"
        at = step == before if before != "commit" else adds == 2
        if at and not overtaken:
            overtaken = 1
            assert release.publish(destination.address, table="reach")

    with pytest.MonkeyPatch.context() as patch:
        before_each(patch, act)
        assert not release.publish(destination.address, table="reach")
    assert overtaken
    require_once(destination, "reach", earlier, release)


@everywhere
def test_of_two_at_once_one_publishes(destination: Destination) -> None:
    release, other = made(), another(made())
    start, written = threading.Barrier(3), list[bool]()

    def publish(one: dw.Release) -> None:
        start.wait(PATIENCE)
        written.append(one.publish(destination.address, table="reach"))

    threads = [threading.Thread(target=publish, args=(one,)) for one in (release, release, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert sorted(written) == [False, True, True]
    require_once(destination, "reach", release, other)


KILLED = """
import sys
import dpwindows as dw
from dpwindows.release import destinations, publish
import deltalake, pyiceberg.catalog, pyiceberg.io.pyarrow, sqlalchemy, psycopg
release = dw.Release.load(sys.argv[1])
print("ready", flush=True)
release.publish(sys.argv[2], table="reach")
print("done", flush=True)
"""


def publish_and_kill(release: Path, address: str, after: float | None) -> float:
    """Publish in a process of its own, killed so many seconds after it begins; how long it took."""
    command = [sys.executable, "-c", KILLED, str(release), address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        began = time.monotonic()
        if after is None:
            assert process.stdout.readline() == "done\n"
        else:
            time.sleep(after)
            process.kill()
        return time.monotonic() - began


@pytest.mark.search(2)
@pytest.mark.parametrize("seed", range(25))
@everywhere
def test_a_publisher_that_is_killed_leaves_all_or_nothing(destination: Destination, seed: int, tmp_path: Path) -> None:
    """25 kills in each place, at a moment drawn from somewhat longer than publishing takes."""
    release, rng = made(), random.Random(seed)
    release.save(tmp_path / "release.parquet")
    whole = {InDuckDB: 0.15, InDelta: 0.15, InIceberg: 0.8}.get(type(destination), 0.2)
    publish_and_kill(tmp_path / "release.parquet", destination.address, rng.uniform(0, 1.3 * whole))
    seen = destination.joined("reach")
    assert seen is None or seen.num_rows in (0, release.table.num_rows)
    release.publish(destination.address, table="reach")
    require_once(destination, "reach", release)


# --- What is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "table", "message"),
    [
        ("mysql://me@host/db", "t", "mysql is no destination: .* was never shown for it"),
        ("sqlite:///reports.db", "t", "sqlite is no destination: its tables have no comments"),
        ("clickhouse://me@host/db", "t", "clickhouse is no destination: it has no transactions"),
        ("snowflake://me@host/db", "t", "snowflake is no destination: it enforces no key"),
        ("p3.dukdb", "t", r"has the ending .dukdb, which says nothing: .* one of .duckdb, .ddb, .db, and a new folder"),
        ("s3://bucket/folder", "t", "s3 is no destination"),
        ("postgresql://me:hunter2@host/db", "t", "holds a password"),
        ("reports.duckdb", "a b", "--table must be a name"),
        ("reports.duckdb", "a.b.c", "--table must be a name"),
        ("reports.duckdb", "x" * 52, "--table must be a name"),
        ("reports.duckdb", "nowhere.t", "does not take the tables"),
        ("absent/reports.duckdb", "t", "the folder of the database does not exist"),
        ("absent/tables", "t", "does not exist"),
        ("tables", "a.b", "tables in a folder have no schema"),
        ("log.csv", "t", "is no DuckDB database"),
        ("events", "t", "give the folder that it is in"),
        ("iceberg:reports", "t", "CATALOG.NAMESPACE"),
        ("iceberg:nowhere.reports", "t", "no Iceberg catalogue 'nowhere' is configured"),
    ],
)
def test_what_is_no_destination(
    address: str, table: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text("who,at\n")
    (tmp_path / "events" / "_delta_log").mkdir(parents=True)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError, match=message) as caught:
        made().publish(address, table=table)
    assert "hunter2" not in str(caught.value)
    assert [path for path in sorted(tmp_path.rglob("*")) if path.suffix != ".duckdb"] == before


def test_a_part_of_a_release_is_no_release(tmp_path: Path) -> None:
    release, place = made(), InDuckDB(tmp_path)
    rolling = release.table.filter(pc.equal(release.table["window"], "rolling:2"))
    for part in (release.table.slice(1), rolling, pa.concat_tables([release.table, rolling])):
        # Also where it came by way of a file, which has a checksum of its own.
        dw.Release(part, release.metadata).save(tmp_path / "part.json", force=True)
        for given in (dw.Release(part, release.metadata), dw.Release.load(tmp_path / "part.json")):
            with pytest.raises(InputError, match=f"not the whole release {release.metadata['release_id']}: it has"):
                given.publish(place.address, table="reach")
    assert not place.path.exists()


def test_a_folder_that_is_there_may_have_a_dot(tmp_path: Path) -> None:
    place = InDelta(tmp_path)
    place.folder = tmp_path / "tables.v2"
    place.folder.mkdir()
    assert made().publish(place.address, table="reach")
    require_once(place, "reach", made())


def test_a_namespace_is_not_made(iceberg: InIceberg) -> None:
    with pytest.raises(InputError, match="has no namespace 'absent'"):
        made().publish(iceberg.address.replace("reports", "absent"), table="t")


HOLDING = "import duckdb, sys; held = duckdb.connect(sys.argv[1]); print('held', flush=True); sys.stdin.read()"


def test_who_waits_in_vain_for_a_database_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = InDuckDB(tmp_path)
    command = [sys.executable, "-c", HOLDING, place.address]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with monkeypatch.context() as patch:
            patch.setattr(publishing, "_PATIENCE", 0.0)
            with pytest.raises(EngineError, match="others keep writing to the destination, or have it open"):
                made().publish(place.address, table="reach")
        # It waits, and goes on when it may.
        threading.Timer(0.2, holder.stdin.close).start()
        assert made().publish(place.address, table="reach")
    require_once(place, "reach", made())


def test_a_column_of_groups_that_is_called_as_ours(tmp_path: Path) -> None:
    release = made(groups=False)
    named = replace(release, table=release.table.append_column("Release_ID", release.table["window"]))
    with pytest.raises(InputError, match="do not tell from one another"):
        named.publish(tmp_path / "reports.duckdb", table="t")


@pytest.mark.xdist_group("postgresql")
@pytest.mark.parametrize("destination", ["postgresql"], indirect=True)
def test_postgresql_says_what_is_missing(destination: Destination, tmp_path: Path) -> None:
    reader = destination.address.replace("owner", "reader")
    for table, address, error, message in (
        ("t", reader, InputError, "the role must own both tables"),
        ("absent.t", destination.address, InputError, "no schema of this name"),
        ("t", destination.address.replace("/logs", "/absent"), EngineError, "cannot be reached"),
    ):
        with pytest.raises(error, match=message):
            made().publish(address, table=table)
    secret = tmp_path / "password"
    secret.write_text("wrong\n")
    with pytest.raises(EngineError, match="cannot be reached") as caught:
        made().publish(destination.address, table="t", settings=dw.EngineSettings(password_file=secret))
    assert "wrong" not in str(caught.value)
    assert "127.0.0.1" not in str(caught.value)


# --- The command -----------------------------------------------------------------------------------------------------


def test_the_command_says_what_it_did(tmp_path: Path) -> None:
    release, other = made(), tmp_path / "other.json"
    path, place = tmp_path / "release.csv", InDuckDB(tmp_path)
    release.save(path)
    replace(release, metadata=release.metadata | {"guarantee": "all"}).save(other)
    command = ("publish", path, place.address, "--table", "reach")
    done = run(*command).must_work()
    assert f"Published {release.table.num_rows} numbers of release" in done.err
    assert "is in reach already: nothing was written" in run(*command).must_work().err
    assert '"written": false' in run(*command, "--json").must_work().out
    run("publish", other, place.address, "--table", "reach").must_refuse("with other numbers or other metadata")
    require_once(place, "reach", release)
