"""Logs in batches: the same integers as the files they are made of, of one state, and never held whole."""

from __future__ import annotations

import json
import struct
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.catalog import Catalog
from pyroaring import BitMap

from dpwindows.ask.queries import OCCURRENCES
from dpwindows.ask.timeline import Timeline
from dpwindows.count.counting import count_events as counted
from dpwindows.count.events import EventColumns
from dpwindows.count.sources.batches import Batches, in_batches
from dpwindows.errors import EngineError, InputError
from tests.count.engines.logs import LOGS, THRESHOLDS, Log
from tests.counting import count_events, in_steps, request
from tests.lakes import NAME, NAMESPACE, configured
from tests.search import examples

pytestmark = pytest.mark.usefixtures("one_engine")

COLUMNS = EventColumns("item", "time")
STEPS = Timeline.of_steps(3)
ROWS = pa.table({"item": ["a", "b", "a"], "time": [0, 1, 2]})


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with configured(tmp_path) as catalog:
        yield catalog


# --- the same integers -----------------------------------------------------------------------------------------------


def with_rows_to_delete(rows: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The rows in two tables, and in the second some of them once more: these are to be deleted (kept = 0)."""
    half = rows.num_rows // 2
    more = pa.concat_tables([rows.slice(half), rows.slice(0, half)])
    marks = [1] * (rows.num_rows - half) + [0] * half
    return rows.slice(0, half).append_column("kept", pa.array([1] * half, pa.int64())), more.append_column(
        "kept", pa.array(marks, pa.int64())
    )


def in_delta(rows: pa.Table, folder: Path) -> str:
    path = str(folder / "events")
    for part in with_rows_to_delete(rows):
        write_deltalake(path, part, mode="append")
    DeltaTable(path).delete("kept = 0")
    return path


def in_delta_table(rows: pa.Table, folder: Path) -> object:
    return DeltaTable(in_delta(rows, folder))


def in_iceberg(rows: pa.Table, folder: Path) -> object:
    with configured(folder) as catalog:
        one, other = with_rows_to_delete(rows)
        table = catalog.create_table(f"{NAMESPACE}.events", one.schema)
        table.append(one)
        table.append(other)
        table.delete("kept = 0")
        return table


def in_dataset(rows: pa.Table, folder: Path) -> object:
    (folder / "files").mkdir()
    half = rows.num_rows // 2
    pq.write_table(rows.slice(0, half), folder / "files" / "a.parquet")
    pq.write_table(rows.slice(half), folder / "files" / "b.parquet")
    return ds.dataset(folder / "files")


class Stream:
    """Anything with Arrow's stream interface, that can be read once."""

    def __init__(self, rows: pa.Table) -> None:
        self._reader = pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches(max_chunksize=50))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._reader.__arrow_c_stream__(requested_schema)


def in_stream(rows: pa.Table, folder: Path) -> object:
    return Stream(rows)


PUT: list[Callable[[pa.Table, Path], object]] = [in_delta, in_delta_table, in_iceberg, in_dataset, in_stream]


@pytest.mark.quick(4)
@pytest.mark.parametrize("log", LOGS[::4], ids=lambda log: log.name)
@pytest.mark.parametrize("put", PUT)
def test_they_count_as_the_definition_says(put: Callable[[pa.Table, Path], object], log: Log, tmp_path: Path) -> None:
    columns = EventColumns("item", "time", "count" if log.weighted else None)
    answers = count_events(put(log.table, tmp_path), columns, log.timeline, [OCCURRENCES, *THRESHOLDS])
    for k in THRESHOLDS:
        assert answers.windows(k, 1, log.timeline.steps, 1, log.timeline.steps).tolist() == log.windows[k]


ITEMS = st.sampled_from(["a", "A", "a ", "ä", "", None, "7", "07"]) | st.text("ab\0\n", max_size=2)
EVENTS = st.lists(st.tuples(ITEMS, st.none() | st.integers(-1, 5), st.none() | st.integers(-1, 3)), max_size=12)


@examples(5)
@given(EVENTS)
def test_a_lake_counts_the_same_integers_as_the_file_it_is_made_of(events: list[tuple[Any, Any, Any]]) -> None:
    items, times, counts = zip(*events, strict=True) if events else ((), (), ())
    rows = pa.table(
        [pa.array(items, pa.string()), pa.array(times, pa.int64()), pa.array(counts, pa.int64())],
        ["item", "time", "count"],
    )
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(rows, Path(folder) / "log.parquet")
        asked = request(f"{folder}/log.parquet", EventColumns("item", "time", "count"), STEPS, [1, 2])
        wanted = counted(asked)
        for put in (in_delta, in_iceberg, in_dataset):
            found = counted(replace(asked, source=put(rows, Path(folder))))
            for k in (1, 2):
                assert found.windows(k, 1, 3, 1, 3).tolist() == wanted.windows(k, 1, 3, 1, 3).tolist()


def written_by_hand(
    folder: Path,
    features: list[str],
    *,
    deleted: list[int] | None = None,
    stored_as: str = "item",
    configuration: dict[str, str] | None = None,
) -> Path:
    """A Delta table as other engines write them: rows deleted by a vector, a column with another name in its files."""
    (folder / "_delta_log").mkdir(parents=True)
    rows = ROWS.rename_columns([stored_as, "time"])
    pq.write_table(rows, folder / "part.parquet")
    told: dict[str, Any] = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": stored_as}
    kinds = {"item": "string", "time": "long"}
    renamed = {name: told if name == "item" else {**told, "delta.columnMapping.id": 2} for name in kinds}
    renamed["time"] = {**renamed["time"], "delta.columnMapping.physicalName": "time"}
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": renamed[name] if stored_as != "item" else {}}
        for name, kind in kinds.items()
    ]
    add: dict[str, Any] = {
        "path": "part.parquet",
        "partitionValues": {},
        "size": (folder / "part.parquet").stat().st_size,
        "modificationTime": 0,
        "dataChange": True,
        "stats": json.dumps({"numRecords": 3}),
    }
    if deleted is not None:
        vector = struct.pack("<IQI", 1681511377, 1, 0) + BitMap(deleted).serialize()
        inline = {"storageType": "i", "pathOrInlineDv": _z85(vector), "sizeInBytes": len(vector)}
        add["deletionVector"] = inline | {"cardinality": len(deleted)}
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}
    metadata = {
        "id": "00000000-0000-0000-0000-000000000001",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": configuration or {},
        "createdTime": 0,
    }
    actions = [{"protocol": protocol}, {"metaData": metadata}, {"add": add}]
    (folder / "_delta_log" / f"{0:020}.json").write_text("\n".join(map(json.dumps, actions)))
    return folder


def _z85(content: bytes) -> str:
    digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    padded = content + bytes(-len(content) % 4)
    words = [int.from_bytes(padded[at : at + 4], "big") for at in range(0, len(padded), 4)]
    return "".join(digits[word // 85**place % 85] for word in words for place in (4, 3, 2, 1, 0))


def test_rows_deleted_by_a_vector_stay_deleted(tmp_path: Path) -> None:
    on = {"delta.enableDeletionVectors": "true"}
    table = written_by_hand(tmp_path / "events", ["deletionVectors"], deleted=[1], configuration=on)
    assert in_steps(table, COLUMNS, Timeline.of_steps(3)) == [1, 0, 1]


def test_a_column_that_was_renamed_is_read_by_its_name(tmp_path: Path) -> None:
    mapped = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "2"}
    table = written_by_hand(tmp_path / "events", ["columnMapping"], stored_as="col-7", configuration=mapped)
    assert in_steps(table, COLUMNS, Timeline.of_steps(3)) == [1, 1, 1]


@pytest.mark.parametrize(("feature", "named"), [("sorcery", "sorcery"), ("typeWidening", "TypeWidening")])
def test_what_the_package_does_not_read_is_refused(feature: str, named: str, tmp_path: Path) -> None:
    table = written_by_hand(tmp_path / "events", [feature])
    with pytest.raises(InputError, match=f"a feature that the package does not read .*{named}"):
        in_steps(table, COLUMNS, STEPS)


# --- one state, in batches -------------------------------------------------------------------------------------------


def test_a_delta_table_is_counted_as_it_was_when_it_was_opened(tmp_path: Path) -> None:
    path = in_delta(ROWS, tmp_path)
    opened = in_batches(path)
    assert opened is not None
    assert opened.version == f"the Delta table {path}, version 2"
    write_deltalake(path, ROWS.append_column("kept", pa.array([1] * 3)), mode="append")
    assert in_steps(opened, COLUMNS, STEPS, 2) == [0, 0, 0]
    assert in_steps(path, COLUMNS, STEPS, 2) == [1, 1, 1]


def test_a_delta_table_that_its_owner_updates_meanwhile_is_not_mixed(tmp_path: Path) -> None:
    table = DeltaTable(in_delta(ROWS, tmp_path))
    opened = in_batches(table)
    table.delete("time = 0")
    with pytest.raises(EngineError, match="was updated from version 2 while it was counted"):
        in_steps(opened, COLUMNS, STEPS)
    assert in_steps(table, COLUMNS, STEPS) == [0, 1, 1]


def test_an_iceberg_table_is_counted_as_it_was_when_it_was_opened(catalog: Catalog) -> None:
    table = catalog.create_table(f"{NAMESPACE}.events", ROWS.schema)
    address = f"iceberg:{NAME}.{NAMESPACE}.events"
    empty = in_batches(address)
    assert empty is not None
    assert empty.version == f"the Iceberg table {address}, snapshot none yet"
    table.append(ROWS)
    opened = in_batches(address)
    assert opened is not None
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert opened.version == f"the Iceberg table {address}, snapshot {snapshot.snapshot_id}"
    table.append(ROWS)
    # A column that is added later is no part of it, and one that is renamed is called as it was.
    with table.update_schema() as update:
        update.rename_column("item", "who")
    assert in_steps(empty, COLUMNS, STEPS) == [0, 0, 0]
    assert in_steps(opened, COLUMNS, STEPS, 1) == [1, 1, 1]
    assert in_steps(opened, COLUMNS, STEPS, 2) == [0, 0, 0]
    assert in_steps(address, EventColumns("who", "time"), STEPS, 2) == [1, 1, 1]


def test_a_file_that_is_gone_is_no_end_of_the_log(tmp_path: Path) -> None:
    path = in_delta(ROWS, tmp_path)
    opened = in_batches(path)
    for file in Path(path).glob("*.parquet"):
        file.unlink()
    with pytest.raises(EngineError, match="gone since it was opened, as after VACUUM; nothing was counted"):
        in_steps(opened, COLUMNS, STEPS)


def test_only_columns_that_are_asked_for_are_read(tmp_path: Path) -> None:
    opened, asked = in_batches(in_delta(ROWS, tmp_path)), list[list[str]]()
    assert opened is not None

    def read(names: list[str]) -> pa.RecordBatchReader:
        asked.append(names)
        return opened.read(names)

    in_steps(replace(opened, read=read), COLUMNS, STEPS)
    assert asked
    assert {tuple(names) for names in asked} == {("item", "time")}


def test_no_log_is_held_whole() -> None:
    """Of a stream few batches are there at a time, however many there are."""
    alive: list[weakref.ref[pa.RecordBatch]] = []
    most = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal most
        for number in range(200):
            batch = pa.record_batch({"item": ["a"] * 4096, "time": [number % 3] * 4096})
            alive.append(weakref.ref(batch))
            most = max(most, sum(one() is not None for one in alive))
            yield batch
            del batch

    schema = pa.schema([("item", pa.string()), ("time", pa.int64())])
    assert in_steps(pa.RecordBatchReader.from_batches(schema, batches()), COLUMNS, STEPS) == [1, 1, 1]
    assert len(alive) == 200
    assert most < 20


def test_what_was_read_before_is_no_empty_log() -> None:
    reader = ROWS.to_reader()
    assert in_steps(reader, COLUMNS, STEPS) == [1, 1, 1]
    with pytest.raises(InputError, match="was read before, and what is left of it is no log: make a new one"):
        in_steps(reader, COLUMNS, STEPS)


def test_files_of_iceberg_are_read_one_after_another(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyiceberg.io.pyarrow import ArrowScan

    table = catalog.create_table(f"{NAMESPACE}.events", ROWS.schema)
    for _ in range(3):
        table.append(ROWS)
    handed, own = list[int](), ArrowScan.to_record_batches

    def read(self: ArrowScan, tasks: list[Any]) -> Iterator[pa.RecordBatch]:
        handed.append(len(tasks))
        return own(self, tasks)

    monkeypatch.setattr(ArrowScan, "to_record_batches", read)
    assert in_steps(table, COLUMNS, STEPS, 3) == [1, 1, 1]
    assert set(handed) == {1}


# --- what a value means ----------------------------------------------------------------------------------------------


def test_a_dataset_whose_files_say_other_types_is_refused(tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "a.parquet")
    pq.write_table(ROWS.set_column(1, "time", pa.array([0, 1, 2], pa.int32())), tmp_path / "b.parquet")
    with pytest.raises(InputError, match="'time' of the Arrow dataset is int64, and int32 in one of its files"):
        in_steps(ds.dataset(tmp_path), COLUMNS, STEPS)


def test_names_of_folders_are_text_or_refused(tmp_path: Path) -> None:
    for name in ("7", "007"):
        (tmp_path / f"item={name}").mkdir()
        pq.write_table(pa.table({"time": [0]}), tmp_path / f"item={name}" / "a.parquet")
    with pytest.raises(InputError, match=r"'item' of the Arrow dataset is int32 .* declare it as text"):
        in_steps(ds.dataset(tmp_path, partitioning="hive"), COLUMNS, STEPS)
    text = ds.partitioning(pa.schema([("item", pa.string())]), flavor="hive")
    answers = count_events(ds.dataset(tmp_path, partitioning=text), COLUMNS, STEPS, [1])
    assert answers.cumulative(1).tolist() == [2, 2, 2]


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("package", ["deltalake", "pyiceberg.catalog"])
def test_a_package_that_is_missing_is_named(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = in_delta(ROWS, tmp_path) if package == "deltalake" else "iceberg:lake.reports.events"
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=r"pip install 'dpwindows\[lake\]'"):
        in_steps(source, COLUMNS, STEPS)


def test_tables_that_there_are_not(catalog: Catalog, tmp_path: Path) -> None:
    for source, message in (
        (f"iceberg:{NAME}.{NAMESPACE}.absent", "there is no such table"),
        (f"iceberg:{NAME}.absent.events", "there is no such table"),
        ("iceberg:laki.reports.events", r"no Iceberg catalogue 'laki' is configured \(did you mean 'lake'\?\)"),
        ("iceberg:lake.events", "is written iceberg:CATALOG.NAMESPACE.TABLE"),
        (tmp_path / "warehouse", "has no Parquet or CSV files"),
    ):
        with pytest.raises(InputError, match=message):
            in_steps(source, COLUMNS, STEPS)


def test_options_of_other_logs_do_not_go_with_a_table_of_a_lake(tmp_path: Path) -> None:
    path = in_delta(ROWS, tmp_path)
    with pytest.raises(InputError, match="does not go with the Delta table"):
        in_steps(path, COLUMNS, STEPS, table="t")
    with pytest.raises(InputError, match="'who' for the item"):
        in_steps(path, EventColumns("who", "time"), STEPS)
    with pytest.raises(InputError, match="give the folder of one Delta table"):
        in_steps(tmp_path, COLUMNS, STEPS)


def test_a_catalogue_that_cannot_be_reached_is_no_mistake_of_the_caller(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(name: str) -> Any:
        raise OSError("https://user:hunter2@catalog")

    monkeypatch.setattr("pyiceberg.catalog.load_catalog", load)
    with pytest.raises(EngineError, match=r"cannot be reached, read or written \(OSError\)") as caught:
        in_batches(f"iceberg:{NAME}.{NAMESPACE}.events")
    assert "hunter2" not in str(caught.value)


def test_other_sources_do_not_come_in_batches(tmp_path: Path) -> None:
    for source in (ROWS, ROWS.to_pandas(), "log.parquet", tmp_path, "postgresql://host/db", None):
        assert in_batches(source) is None
    assert isinstance(in_batches(ROWS.to_reader()), Batches)
