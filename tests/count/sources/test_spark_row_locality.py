"""What an event means to Spark does not depend on the files beside its own, in any order of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpwindows.ask.timeline import Timeline
from dpwindows.count.events import EngineSettings, EventColumns
from dpwindows.errors import InputError
from tests.counting import in_steps

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

COLUMNS = EventColumns("id", "at")
DAYS = Timeline("2013-01-01", "2013-01-04", time_zone="America/New_York")
NIGHT = datetime(2013, 1, 2, 2, 30)
PLACES: dict[str, Callable[[Path], str]] = {"a folder": str, "an address": lambda folder: f"file://{folder}"}
either = pytest.mark.parametrize("place", PLACES)


def counted(source: object) -> list[int]:
    return in_steps(source, COLUMNS, DAYS, settings=EngineSettings(engine="spark", progress=False))


def write(path: Path, items: pa.Array, times: pa.Array, **more: pa.Array) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": items, "at": times, **more}), path)


LOCAL = pa.array([NIGHT], pa.timestamp("us"))
INSTANT = pa.array([NIGHT.replace(tzinfo=UTC)], pa.timestamp("us", "UTC"))
TEXT, BYTES, NUMBER = pa.array(["x"]), pa.array([b"x"]), pa.array([7], pa.int32())
PAIRS = {
    "times with and without a zone": ((TEXT, LOCAL), (TEXT, INSTANT)),
    "dates and times": ((TEXT, pa.array([NIGHT.date()])), (TEXT, LOCAL)),
    "texts and bytes": ((TEXT, LOCAL), (BYTES, LOCAL)),
    "integers of two widths": ((NUMBER, LOCAL), (NUMBER.cast(pa.int64()), LOCAL)),
}


@pytest.mark.parametrize(
    ("pair", "first", "place"),
    # Either file first, in either place, of half of the pairs.
    [(pair, (at + of) % 2, place) for at, pair in enumerate(PAIRS) for of, place in enumerate(PLACES)],
)
def test_files_of_two_types_are_refused(spark: SparkSession, pair: str, first: int, place: str, tmp_path: Path) -> None:
    """The one whose name is first would say what the other means."""
    one, other = PAIRS[pair] if first == 0 else reversed(PAIRS[pair])
    write(tmp_path / "log" / "a.parquet", *one)
    write(tmp_path / "log" / "b [1] %20.parquet", *other)
    with pytest.raises(InputError, match="has different types in different files"):
        counted(PLACES[place](tmp_path / "log"))


@either
def test_columns_that_are_not_read_may_differ(spark: SparkSession, place: str, tmp_path: Path) -> None:
    write(tmp_path / "log" / "a.parquet", TEXT, LOCAL, more=NUMBER)
    write(tmp_path / "log" / "b [1] %20.parquet", pa.array(["y"]), LOCAL, more=TEXT)
    assert counted(PLACES[place](tmp_path / "log")) == [0, 2, 0]


def test_files_in_folders_with_values_and_beside_them_are_all_counted(spark: SparkSession, tmp_path: Path) -> None:
    """Spark alone leaves out those that are in no such folder, as soon as there is one that is."""
    log = tmp_path / "log"
    write(log / "a.parquet", pa.array(["a", "b"]), pa.array([NIGHT] * 2, pa.timestamp("us")))
    assert counted(log) == counted(f"file://{log}") == [0, 2, 0]
    write(log / "part=1" / "b.parquet", TEXT, LOCAL)
    assert counted(log) == [0, 3, 0]
    with pytest.raises(InputError, match=r"not all in folders of the same names \(none, part=...\), and Spark would"):
        counted(f"file://{log}")


@either
def test_a_column_in_a_file_and_in_the_name_of_its_folder_is_refused(
    spark: SparkSession, place: str, tmp_path: Path
) -> None:
    write(tmp_path / "log" / "id=7" / "a.parquet", pa.array(["a", "b"]), pa.array([NIGHT] * 2, pa.timestamp("us")))
    with pytest.raises(InputError, match="has a column 'id' for the item, and a folder that it is in is called id="):
        counted(PLACES[place](tmp_path / "log"))
