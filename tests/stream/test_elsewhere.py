"""Items that are kept by Spark or a database: the same integers as beside the state, and every way that it can fail."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import dpwindows as dw
from dpwindows.errors import EngineError, InputError
from dpwindows.stream import database_parts, records
from dpwindows.stream.database_parts import DatabaseTables
from dpwindows.stream.given_events import Given
from dpwindows.stream.place import Name
from dpwindows.stream.places import place_text
from dpwindows.stream.spark_parts import SparkFolder
from dpwindows.stream.store import DamagedError
from dpwindows.stream.stream import Stream
from tests.stream.elsewhere import SETTINGS, Elsewhere, InPostgreSQL, InSpark, closed, exact_and_fingerprints
from tests.stream.streams import PLAN, STEP, Event, new_stream, plan_of, same, table_of

PLACES = [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in ("postgresql", "spark")]
FIRST: list[Event] = [("a", 1, 1), ("b'\\ü", 1, 3)]
SECOND: list[Event] = [("a", 2, 2), ("c", 2, 1)]
THIRD: list[Event] = [("b'\\ü", 3, 1), ("c", 3, 1)]


def in_each_place(cases: Iterable[str], by_spark: Collection[str]) -> list[Any]:
    """Cases in each place. Spark is slow: but for a few of them, what it is asked is left to `make search`."""
    return [
        pytest.param(*place.values, case, marks=[*place.marks, *([] if here else [pytest.mark.search(0)])])
        for place in PLACES
        for case in cases
        for here in (place.values != ("spark",) or case in by_spark,)
    ]


@pytest.fixture(params=PLACES)
def at(request: pytest.FixtureRequest, tmp_path: Path) -> Elsewhere:
    """A place that is not beside the state, with its engine running."""
    if request.param == "spark":
        request.getfixturevalue("spark")
        return InSpark(tmp_path)
    return InPostgreSQL(request.getfixturevalue("server"))


@contextmanager
def both(folder: Path, plan: dw.StreamPlan, at: Elsewhere) -> Iterator[tuple[Stream, Stream]]:
    """Two streams with the same key of fingerprints: one with its items beside its state, one with them there."""
    with ExitStack() as opened:
        here = opened.enter_context(new_stream(folder / "here", plan))
        there = opened.enter_context(new_stream(folder / "there", plan, items_at=at.place, settings=SETTINGS))
        for stream in (here, there):
            stream._creation = replace(stream._creation, secret="5" * 32)
        yield here, there


def closed_alike(here: Stream, there: Stream, events: list[Event], through: int, at: Elsewhere) -> None:
    closed(here, events, through, None)
    closed(there, events, through, at)


@contextmanager
def begun(folder: Path, at: Elsewhere) -> Iterator[Stream]:
    """A stream with its items there and one step closed."""
    with new_stream(folder / "state", plan_of(*PLAN), items_at=at.place, settings=SETTINGS) as stream:
        closed(stream, FIRST, STEP, at)
        yield stream


def reopened(stream: Stream) -> Stream:
    stream.close()
    return Stream.open(stream._state.path, settings=SETTINGS)


# --- The same integers ------------------------------------------------------------------------------------------------

GROUPS = {"g": ["x", "y"], "h": ["1", "2"]}
PLANS: dict[str, Callable[[], dw.StreamPlan]] = {
    "plain": lambda: plan_of("rolling:2", "cumulative"),
    "bounded": lambda: plan_of("rolling:2", thresholds=(1, 2), unit="item-add-remove", max_occurrences=2),
    "runs": lambda: plan_of("rolling:2", unit="item-add-remove", max_runs=1),
    "groups": lambda: plan_of.__wrapped__("rolling:3", by=GROUPS, totals=0.2),
    "one group": lambda: plan_of.__wrapped__(
        "rolling:3", unit="item-add-remove", by=GROUPS, group_of="item", totals=0.2
    ),
}


def in_groups(events: pa.Table, dice: random.Random) -> pa.Table:
    for name, values in GROUPS.items():
        drawn = [dice.choice([*values, "none"]) for _ in range(events.num_rows)]
        events = events.append_column(name, pa.array(drawn, pa.string()))
    return events


@pytest.mark.parametrize(("at", "kind"), in_each_place(PLANS, ["runs", "one group"]), indirect=["at"])
def test_the_integers_and_fingerprints_of_a_stream_beside_its_state(
    kind: str, at: Elsewhere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpwindows.stream import recencies

    monkeypatch.setattr(recencies, "_MOST_PARTS", 3)
    monkeypatch.setattr(recencies, "_FEW_ROWS", 6)
    dice, plan = random.Random(kind), PLANS[kind]()
    with both(tmp_path, plan, at) as (here, there):
        for step in range(1, 7):
            late = [("late", step - 1, 1)] if step > 1 and step % 2 else []
            rows = [(f"it\\'em {dice.randrange(7)} ö", step, dice.randrange(1, 4)) for _ in range(dice.randrange(6))]
            events = table_of([*late, *rows])
            if "group" in kind:
                events = in_groups(events, dice)
            here.advance(events, step * STEP, late="move")
            there.advance(through=step * STEP, late="move", **at.put(events))
            assert exact_and_fingerprints(here) == exact_and_fingerprints(there)
        assert any("base" in part for part in there.parts)
        assert sorted(at.names()) == sorted(at.name_of(part) for part in there.parts)


def test_items_that_are_whole_numbers(at: Elsewhere, tmp_path: Path) -> None:
    with both(tmp_path, plan_of("rolling:2", "cumulative"), at) as (here, there):
        for step in (1, 2, 3):
            who = pa.array([step, -(2**63), 2**63 - 1, step, None], pa.int64())
            time, times = pa.array([(step - 1) * STEP] * 5, pa.int64()), pa.array([1, 2**62, 2**62, 3, 1], pa.int64())
            events = pa.table({"who": who, "at": time, "times": times})
            here.advance(events, step * STEP)
            there.advance(through=step * STEP, **at.put(events))
        assert exact_and_fingerprints(here) == exact_and_fingerprints(there)


def test_a_state_that_is_opened_again_goes_on(at: Elsewhere, tmp_path: Path) -> None:
    with begun(tmp_path, at) as stream, reopened(stream) as again:
        released = closed(again, SECOND, 2 * STEP, at)
        assert same(released, closed(again, SECOND, 2 * STEP, at))
        assert same(released, again.advance(through=2 * STEP))
        assert again.description["items_at"] in ("spark", "postgresql")
        assert at.place not in json.dumps(released.metadata)
        assert not list((tmp_path / "state-items").iterdir())


def test_no_query_shows_the_key_of_the_fingerprints(
    at: Elsewhere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Servers show queries to other roles, and Spark keeps plans in its logs."""
    kind, shown = SparkFolder if isinstance(at, InSpark) else DatabaseTables, list[str]()
    ask = kind.ask

    def ask_and_show(self: Any, query: str) -> Any:
        shown.append(query)
        if isinstance(at, InSpark):
            shown.append(self._used.sql(query)._jdf.queryExecution().toString())
        return ask(self, query)

    monkeypatch.setattr(kind, "ask", ask_and_show)
    with begun(tmp_path, at) as stream:
        key = stream._creation.secret
    assert any("sha2" in text for text in shown)
    assert not any(key in text for text in shown)


# --- What can fail there ----------------------------------------------------------------------------------------------


def test_a_part_with_the_rows_of_a_doubled_task_stops_the_stream(at: Elsewhere, tmp_path: Path) -> None:
    with begun(tmp_path, at) as stream:
        at.double(at.name_of(stream.parts[0]))
        with reopened(stream) as again:
            with pytest.raises(DamagedError, match="written"):
                closed(again, SECOND, 2 * STEP, at)
            assert again.closed_steps == 1


@pytest.mark.xdist_group("spark")
@pytest.mark.usefixtures("spark")
def test_rows_that_two_tasks_wrote_are_noticed_before_they_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at, doubled, files = InSpark(tmp_path), list[str](), SparkFolder._files

    def double_and_list(self: SparkFolder, session: Any, folder: str) -> dict[str, int]:
        name = folder.rpartition("/")[2]
        if name.startswith("step=2") and not doubled:
            doubled.append(name)
            at.double(name)
        return files(self, session, folder)

    with begun(tmp_path, at) as stream:
        monkeypatch.setattr(SparkFolder, "_files", double_and_list)
        with pytest.raises(EngineError, match="doubled"):
            closed(stream, SECOND, 2 * STEP, at)
        assert (stream.closed_steps, doubled[0] in at.names()) == (1, False)
        closed(stream, SECOND, 2 * STEP, at)
        assert stream.closed_steps == 2


@pytest.mark.xdist_group("spark")
@pytest.mark.usefixtures("spark")
def test_files_that_come_after_a_folder_was_checked_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was checked is what was listed: it is not listed anew for what is read, or for what the state names."""
    at, written, late = InSpark(tmp_path), SparkFolder._written, ["call-", "step=3"]

    def write_and_double(self: SparkFolder, session: Any, folder: str, query: str) -> Any:
        files, name = written(self, session, folder, query), folder.rpartition("/")[2]
        if late and name.startswith(late[0]):
            late.pop(0)
            at.double(name)
        return files

    with both(tmp_path, plan_of(*PLAN), at) as (here, there):
        closed_alike(here, there, FIRST, STEP, at)
        monkeypatch.setattr(SparkFolder, "_written", write_and_double)
        closed_alike(here, there, SECOND, 2 * STEP, at)
        assert exact_and_fingerprints(here) == exact_and_fingerprints(there)
        with pytest.raises(DamagedError, match="not those that were written"):
            closed(there, THIRD, 3 * STEP, at)
        assert (there.closed_steps, late) == (2, [])


@pytest.mark.xdist_group("postgresql")
def test_the_bytes_of_items_are_those_of_utf_8_whatever_the_role_is_set_to(server: Any, tmp_path: Path) -> None:
    at = InPostgreSQL(server)
    at.ask("ALTER ROLE owner SET client_encoding = 'LATIN1'")
    try:
        given = at.put(table_of([("\u00e9", 1, 1)]))
        at.ask("ALTER TABLE events ALTER who TYPE char(3)")
        with new_stream(tmp_path / "state", plan_of(*PLAN), items_at=at.place, settings=SETTINGS) as stream:
            stream.advance(through=STEP, **given)
            assert [bytes(row[0]).rstrip() for row in at.rows(at.name_of(stream.parts[0]))] == ["\u00e9".encode()]
    finally:
        at.ask("ALTER ROLE owner RESET client_encoding")


def test_a_late_writer_is_never_read_and_is_removed_once_its_step_is_closed(at: Elsewhere, tmp_path: Path) -> None:
    def late(step: int) -> str:
        """A name as of another attempt to close a step."""
        written = at.name_of(there.parts[0])
        _, token = there.parts[0].removesuffix(".items").split("token=")
        return written.replace(token, "f" * len(token)).replace("step=1", f"step={step}").replace("_1_", f"_{step}_")

    with both(tmp_path, plan_of(*PLAN), at) as (here, there):
        closed_alike(here, there, FIRST, STEP, at)
        for step in (1, 2, 9):
            at.copy(at.name_of(there.parts[0]), late(step))
        closed_alike(here, there, SECOND, 2 * STEP, at)
        assert exact_and_fingerprints(here) == exact_and_fingerprints(there)
        # The attempt of a step to come may be under way.
        assert sorted(at.names()) == sorted([late(9), *map(at.name_of, there.parts)])


def test_events_that_arrive_while_a_step_reads_are_late(
    at: Elsewhere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = SparkFolder if isinstance(at, InSpark) else DatabaseTables
    hand_over = kind.hand_over

    def hand_over_and_grow(self: Any, given: Given) -> Any:
        handed = hand_over(self, given)
        grown = table_of([*SECOND, ("new", 2, 1)])
        at.put(grown) if isinstance(at, InPostgreSQL) else pa.parquet.write_table(grown, given.source)
        return handed

    with both(tmp_path, plan_of(*PLAN), at) as (here, there):
        closed_alike(here, there, FIRST, STEP, at)
        with monkeypatch.context() as patch:
            patch.setattr(kind, "hand_over", hand_over_and_grow)
            closed(there, SECOND, 2 * STEP, at)
        closed(here, SECOND, 2 * STEP, None)
        assert exact_and_fingerprints(here) == exact_and_fingerprints(there)
        with pytest.raises(InputError, match="not the ones"):
            closed(there, [*SECOND, ("new", 2, 1)], 2 * STEP, at)


def test_a_place_that_was_put_back_to_an_earlier_time_stops_the_stream(at: Elsewhere, tmp_path: Path) -> None:
    with begun(tmp_path, at) as stream:
        released = closed(stream, SECOND, 2 * STEP, at)
        at.drop(at.name_of(stream.parts[-1]))
        with reopened(stream) as again:
            with pytest.raises(DamagedError, match="missing"):
                closed(again, THIRD, 3 * STEP, at)
            assert again.closed_steps == 2
            assert same(released, again.advance(through=2 * STEP))


def test_a_part_that_is_deleted_while_a_step_reads_it_closes_nothing(
    at: Elsewhere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = SparkFolder if isinstance(at, InSpark) else DatabaseTables
    rows = kind.rows

    def rows_and_delete(self: Any, part: Any) -> str:
        query = rows(self, part)
        at.drop(at.name_of(part.name))
        return query

    with begun(tmp_path, at) as stream:
        stored = stream.show()
        monkeypatch.setattr(kind, "rows", rows_and_delete)
        with pytest.raises(EngineError, match="cannot be read"):
            closed(stream, SECOND, 2 * STEP, at)
        assert stream.closed_steps == 1
        assert same(stored, stream.show())


def test_whoever_reads_by_hand_finds_the_state_under_the_names_of_the_stream(
    at: Elsewhere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpwindows.stream import recencies

    monkeypatch.setattr(recencies, "_MOST_PARTS", 2)
    with begun(tmp_path, at) as stream:
        began_with = at.name_of(stream.parts[0])
        at.copy(began_with, began_with.replace("step=1", "step=7").replace("_1_", "_7_"))
        closed(stream, SECOND, 2 * STEP, at)
        held = [row for part in stream.parts for row in at.rows(at.name_of(part))]
        newest = {bytes(row[0]): row[1:4] for row in held}
        # Compacted, a row is an item with its last three occurrences.
        assert newest == {b"a": (2, 2, 0), "b'\\ü".encode(): (0, 0, 0), b"c": (2, None, None)}
        assert len(held) == len(newest) < sum(len(at.rows(name)) for name in at.names())
        # What a reader began with is gone once it was compacted: it asks for the names again.
        assert began_with not in at.names()


@pytest.mark.xdist_group("postgresql")
def test_what_the_role_looks_for_first_stands_in_for_nothing(server: Any, tmp_path: Path) -> None:
    """Neither functions that others made, nor tables of another schema."""
    at = InPostgreSQL(server)
    at.ask(
        "CREATE SCHEMA mine; CREATE FUNCTION mine.md5(text) RETURNS text LANGUAGE sql IMMUTABLE AS "
        "$$ SELECT repeat('0', 32) $$; ALTER ROLE owner SET search_path = public, mine, pg_catalog"
    )
    try:
        with begun(tmp_path, at) as stream:
            part = at.name_of(stream.parts[0])
            at.ask(f"UPDATE {part} SET r1 = 0")
            with reopened(stream) as again, pytest.raises(DamagedError, match="not as it was written"):
                closed(again, SECOND, 2 * STEP, at)
        at.ask(f"UPDATE {part} SET r1 = 1; ALTER TABLE {part} SET SCHEMA mine")
        with reopened(stream) as again, pytest.raises(DamagedError, match=r"public.*missing"):
            closed(again, SECOND, 2 * STEP, at)
    finally:
        at.ask("ALTER ROLE owner RESET search_path; DROP SCHEMA mine CASCADE")


def test_names_of_tables_fit_a_database() -> None:
    place = "postgresql://me@host/base#" + "p" * 16
    at = DatabaseTables(Path("state"), place_text(place), "f" * 32, SETTINGS)
    assert len(at._name(Name(2**31 - 1, "f" * 48, base=True))) <= 63


@pytest.mark.xdist_group("postgresql")
def test_a_reader_does_not_hold_up_a_step(server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it reads is left, and dropped by the next step."""
    from dpwindows.stream import recencies

    monkeypatch.setattr(recencies, "_MOST_PARTS", 2)
    monkeypatch.setattr(database_parts, "_SETTINGS", ("lock_timeout = '100ms'",))
    at = InPostgreSQL(server)
    with begun(tmp_path, at) as stream:
        first = at.name_of(stream.parts[0])
        with server.connect() as reader:
            reader.execute("BEGIN")
            reader.execute(f"SELECT * FROM {first}")
            closed(stream, SECOND, 2 * STEP, at)
            assert first in at.names()
        closed(stream, THIRD, 3 * STEP, at)
        assert first not in at.names()


@pytest.mark.parametrize(("at", "moment"), in_each_place(["keep", "settle", "close"], ["settle"]), indirect=["at"])
def test_a_step_that_was_interrupted_has_one_noise(
    moment: str, at: Elsewhere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Gone(BaseException):
        pass

    with begun(tmp_path, at) as stream:
        owner: Any = records if moment == "close" else SparkFolder if isinstance(at, InSpark) else DatabaseTables
        done = getattr(owner, moment)

        def ended(*given: Any) -> None:
            if moment != "close":
                done(*given)
            raise Gone

        with monkeypatch.context() as patch:
            patch.setattr(owner, moment, ended)
            with pytest.raises(Gone):
                closed(stream, SECOND, 2 * STEP, at)
        with reopened(stream) as again:
            assert again.closed_steps == 1
            released = closed(again, SECOND, 2 * STEP, at)
            assert same(released, closed(again, SECOND, 2 * STEP, at))
            assert sorted(at.names()) == sorted(map(at.name_of, again.parts))


# --- What is refused --------------------------------------------------------------------------------------------------


def test_items_keep_their_type(at: Elsewhere, tmp_path: Path) -> None:
    numbers = pa.table({"who": [1], "at": pa.array([STEP], pa.int64()), "times": [1]})
    with begun(tmp_path, at) as stream:
        with pytest.raises(InputError, match="are of type text"):
            stream.advance(through=2 * STEP, **at.put(numbers))
        assert stream.closed_steps == 1


@pytest.mark.xdist_group("spark")
def test_a_session_where_integers_wrap_is_refused(tmp_path: Path, spark: Any) -> None:
    """Items of more than 64 bits would become others there: one item would have two rows, and count twice."""
    at, ansi = InSpark(tmp_path), "spark.sql.ansi.enabled"
    with new_stream(tmp_path / "state", plan_of(*PLAN), items_at=at.place, settings=SETTINGS) as stream:
        spark.conf.set(ansi, "false")
        try:
            with pytest.raises(InputError, match=ansi):
                stream.advance(through=STEP, **at.put(table_of(FIRST)))
        finally:
            spark.conf.set(ansi, "true")
        assert stream.closed_steps == 0


@pytest.mark.xdist_group("spark")
@pytest.mark.usefixtures("spark")
def test_items_that_are_neither_text_nor_integers_are_refused(tmp_path: Path) -> None:
    at = InSpark(tmp_path)
    events = pa.table({"who": [True], "at": pa.array([0], pa.int64()), "times": [1]})
    with new_stream(tmp_path / "state", plan_of(*PLAN), items_at=at.place, settings=SETTINGS) as stream:
        with pytest.raises(InputError, match=r"of type BOOLEAN.*in a view"):
            stream.advance(through=STEP, **at.put(events))
        assert (Path(at.place) / stream.description["state_id"]).stat().st_mode & 0o777 == 0o700


@pytest.mark.xdist_group("postgresql")
def test_events_of_another_database_and_roles_that_may_not_write_are_refused(server: Any, tmp_path: Path) -> None:
    at = InPostgreSQL(server)
    with new_stream(tmp_path / "state", plan_of(*PLAN), items_at=at.place, settings=SETTINGS) as stream:
        with pytest.raises(InputError, match="reads its own events"):
            stream.advance(table_of(FIRST), STEP)
        given = at.put(table_of(FIRST))
        # Options may name another schema, or another server.
        with pytest.raises(InputError, match="reads its own events"):
            stream.advance(through=STEP, **(given | {"events": f"{given['events']}?options=-csearch_path%3Dmine"}))
    at.ask("GRANT USAGE ON SCHEMA public TO reader; GRANT SELECT ON events TO reader")
    place = f"{server.address('reader')}#kept"
    with new_stream(tmp_path / "other", plan_of(*PLAN), items_at=place, settings=SETTINGS) as stream:
        with pytest.raises((InputError, EngineError), match="USAGE and CREATE"):
            stream.advance(through=STEP, **(given | {"events": server.address("reader")}))
        assert stream.closed_steps == 0


@pytest.mark.parametrize(
    "place",
    [
        "postgresql://me:hidden@host/base",
        "postgresql://me@host/base?password=hidden",
        "postgresql://me@host/base?options=-csearch_path%3Dhidden#kept",
        "postgresql://me@host/base#Hidden-Prefix",
        "postgresql://me@host/base#longer_than_a_prefix",
        "s3a://key:hidden@bucket/items",
        "s3a://key:hidden@",
        "s3a:/key:hidden@bucket/items",
        "s3a://key:hid/den@bucket/items",
        "s3a://bucket:hidden/items",
        "abfss://key:hidden@account/items",
        "abfss://container@account@hidden/items",
        "s3a://bucket/items?sig=hidden",
        "clickhouse://host/base",
        "delta:/items",
        "",
        "/items/*",
        "/it ems",
    ],
)
def test_places_that_hold_secrets_or_keep_no_items_are_refused(place: str) -> None:
    with pytest.raises(InputError) as refused:
        place_text(place)
    assert "hidden" not in str(refused.value)


def test_how_places_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert place_text("items") == place_text(f"file:{tmp_path}/items") == f"file://{tmp_path}/items"
    assert place_text("s3a://bucket/items/") == "s3a://bucket/items"
    for address in (
        "abfss://container@account.dfs.core.windows.net/items",
        "wasbs://container@account.blob.core.windows.net",
        "hdfs://name-node:8020/lake/items",
        "hdfs:/lake/items",
        "dbfs:/lake/v1:2/items",
    ):
        assert place_text(address) == address
    assert place_text("at@home/items:1") == f"file://{tmp_path}/at@home/items:1"
    assert place_text("postgresql://me@host/base") == "postgresql://me@host/base#dpwindows"
    assert place_text("postgresql://me@host/base#lake.kept_") == "postgresql://me@host/base#lake.kept_"
