"""Tables of lakes through the command line: looked at, released and streamed in a state that is shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog import Catalog

import dpwindows as dw
from tests.end_to_end.command_line import run
from tests.lakes import NAME, NAMESPACE, configured

TIMES = [datetime(2020, 1, 1, tzinfo=UTC) + timedelta(hours=8 * n) for n in range(12)]
ROWS = pa.table({"user": [f"u{n % 3}" for n in range(12)], "at": pa.array(TIMES, pa.timestamp("us", "UTC"))})
RANGE = ("--start", "2020-01-01", "--end", "2020-01-05")
ASKED = ("--window", "cumulative", "--unit", "event", "--rho", "1e12")
COLUMNS = ("--item", "user", "--time", "at")


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalog]:
    monkeypatch.chdir(tmp_path)
    with configured(tmp_path) as catalog:
        yield catalog


@pytest.fixture(params=["delta", "iceberg"])
def events(request: pytest.FixtureRequest, catalog: Catalog) -> str:
    """Where a table is."""
    if request.param == "delta":
        write_deltalake("events", ROWS)
        return "events"
    catalog.create_table(f"{NAMESPACE}.events", ROWS.schema).append(ROWS)
    return f"iceberg:{NAME}.{NAMESPACE}.events"


def state_of(events: str, catalog: Catalog) -> str:
    if events == "events":
        return f"the Delta table events, version {DeltaTable('events').version()}"
    snapshot = catalog.load_table(f"{NAMESPACE}.events").current_snapshot()
    assert snapshot is not None
    return f"the Iceberg table {events}, snapshot {snapshot.snapshot_id}"


def rounded(path: str) -> list[int]:
    return [round(value) for value in dw.Release.load(path).table["estimate"].to_pylist()]


def test_one_state_is_looked_at_released_and_shown(events: str, catalog: Catalog) -> None:
    state = state_of(events, catalog)
    figures: dict[str, Any] = json.loads(run("check", events, *RANGE, "--json").must_work().out)
    assert (figures["version"], figures["rows"], figures["guessed"]) == (state, 12, {"--time": "at", "--item": "user"})
    assert events in figures["command"]
    assert state in run("check", events).must_work().out
    done = run("release", events, *COLUMNS, *RANGE, *ASKED, "-o", "out.json", "--check-first").must_work()
    assert done.err.count(f"Reading {state}.") == 1
    assert "nothing looks wrong" in done.err
    assert rounded("out.json") == [3, 3, 3, 3]
    # Which state it was depends on the data: it is not published.
    written = Path("out.json").read_text("utf-8")
    hints = (f'"{events}"', "version 0", state.split(", ")[1], "warehouse", "Iceberg", "Delta")
    assert [hint for hint in hints if hint in written] == []


def test_a_ledger_knows_equal_data_in_another_state(events: str, catalog: Catalog) -> None:
    run("ledger", "create", "book", "--dataset", "d", "--unit", "event", "--rho", "1e13").must_work()
    command = ("release", events, *COLUMNS, *RANGE, *ASKED, "--ledger", "book", "--dataset", "d")
    run(*command, "-o", "one.json").must_work()
    before = state_of(events, catalog)
    if events == "events":
        write_deltalake("events", ROWS, mode="overwrite")
    else:
        catalog.load_table(f"{NAMESPACE}.events").overwrite(ROWS)
    assert state_of(events, catalog) != before
    assert "Nothing was spent" in run(*command, "-o", "two.json").must_work().err
    assert dw.Release.load("one.json").metadata == dw.Release.load("two.json").metadata


def test_a_stream_reads_a_table(events: str, catalog: Catalog) -> None:
    run("stream", "create", "state", *COLUMNS, *RANGE[:2], "--step", "1d", "--horizon", "4", *ASKED).must_work()
    advance = ("stream", "advance", "state", events, "--through", "2020-01-03", "--later", "ignore")
    done = run(*advance, "-o", "out.json").must_work()
    assert f"Reading {state_of(events, catalog)}." in done.err
    assert rounded("out.json") == [3, 3]


def test_no_output_becomes_a_file_of_a_table(events: str, catalog: Catalog) -> None:
    folder = Path("events") if events == "events" else Path("warehouse")
    data, log = next(folder.rglob("*.parquet")), next(folder.rglob("*.json"))
    before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    # The name of the last one is that of the next state of a Delta table.
    for file in (data, log, log.with_name(f"{7:020}.json")):
        command = ("release", events, *COLUMNS, *RANGE, *ASKED, "-o", file, "--force")
        run(*command).must_refuse("is in the folder of a table that is read here")
    assert {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()} == before
