"""Which columns DuckDB is asked to read: those of the names asked for, and no others that it has names for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import permutations
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpwindows.ask.timeline import Timeline
from dpwindows.count.events import EngineSettings, EventColumns
from dpwindows.count.sources.duckdb import _columns_of
from dpwindows.count.sources.names import require_told_apart
from dpwindows.errors import EngineError, InputError
from tests.counting import in_steps


@pytest.mark.parametrize(
    ("own", "within", "expected"),
    [(pa.timestamp("us"), pa.int64(), [1, 1]), (pa.date32(), pa.timestamp("us"), [0, 2])],
    ids=["an instant, with a number of its name", "a date, with an instant of its name"],
)
def test_a_field_within_a_column_is_no_column(
    tmp_path: Path, own: pa.DataType, within: pa.DataType, expected: list[int]
) -> None:
    """Timestamps of the old form (INT96) are instants, and dates and numbers are none, whatever a field is called."""
    times = pa.array([datetime(2013, 1, 1, 4), datetime(2013, 1, 1, 6)], pa.timestamp("us"))
    more = pa.StructArray.from_arrays([times.cast(within), pa.array([["a"], ["b"]])], ["when", "id"])
    rows = pa.table({"id": [1, 2], "when": times.cast(own), "more": more})
    pq.write_table(rows, tmp_path / "log.parquet", use_deprecated_int96_timestamps=True)
    days = Timeline("2012-12-31", "2013-01-02", time_zone="America/New_York")
    assert in_steps(tmp_path / "log.parquet", EventColumns("id", "when"), days) == expected


def test_the_columns_of_a_tree_of_fields() -> None:
    """Names are repeated at every level."""
    tree: list[tuple[str, int | None, str]] = [("root", 4, "")]
    tree += [("a", 2, "struct"), ("b", 1, "list"), ("list", 2, ""), ("a", None, "int"), ("c", None, "int")]
    tree += [("c", None, "int"), ("b", None, "text"), ("empty", 0, "struct"), ("c", 1, "list"), ("a", None, "int")]
    assert _columns_of(tree) == [("a", "struct"), ("b", "text"), ("empty", "struct"), ("c", "list")]
    assert _columns_of([("root", 0, "")]) == []


@pytest.mark.parametrize("limit", ["1KB", "300KB", "500KB", "1MB"])
@pytest.mark.parametrize("name", ["log.parquet", "log.duckdb"])
def test_too_little_memory_to_look_into_a_file(tmp_path: Path, name: str, limit: str) -> None:
    """It is not the file that is wrong, wherever the memory runs out."""
    rows = "SELECT 'item ' || range AS id, 0 AS day FROM range(100000)"
    if name == "log.parquet":
        duckdb.execute(f"COPY ({rows}) TO '{tmp_path / name}'")
    else:
        with duckdb.connect(tmp_path / name) as connection:
            connection.execute(f"CREATE TABLE log AS {rows}")
    settings = EngineSettings(limit, threads=1, progress=False)
    with pytest.raises(EngineError, match="raise memory_limit"):
        in_steps(tmp_path / name, EventColumns("id", "day"), Timeline.of_steps(1), settings=settings)


# --- names that differ in case only -----------------------------------------------------------------------------------

# For DuckDB the second of these is called U_1, and the third U_1_1.
THREE = pa.table({"u": ["a", "b", "c"], "U": ["z", "z", "z"], "U_1": ["p", "q", "p"], "at": [0, 0, 1]})
REFUSED = r"has columns whose names are the same but for case \(u, U\), and '{}' for the item may be read from"


def as_file(path: Path) -> object:
    pq.write_table(THREE, path / "log.parquet")
    return path / "log.parquet"


def as_one_of_two_files(path: Path) -> object:
    """The names of the first file are those that the engine looks for in the others."""
    pq.write_table(THREE.select(["u", "U_1", "at"]), path / "a.parquet")
    pq.write_table(THREE.select(["U", "u", "U_1", "at"]).rename_columns(["u", "U", "U_1", "at"]), path / "b.parquet")
    return path


def as_reader(path: Path) -> object:
    return THREE.to_reader()


def as_relation(path: Path) -> object:
    return duckdb.sql("SELECT 'a' AS u, 'z' AS U, 'p' AS U_1, 0 AS at")


@pytest.mark.parametrize("make", [as_file, as_one_of_two_files, as_reader, as_relation])
@pytest.mark.parametrize("name", ["u", "U_1"])
def test_a_column_that_may_be_another_one_is_refused(make: Callable[[Path], object], name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=REFUSED.format(name)):
        in_steps(make(tmp_path), EventColumns(name, "at"), Timeline.of_steps(2))


@pytest.mark.parametrize("role", ["time", "count"])
def test_in_every_role(role: str, tmp_path: Path) -> None:
    pq.write_table(THREE.set_column(1, "AT", pa.array([1, 1, 1])), tmp_path / "log.parquet")
    columns = {"time": EventColumns("u", "at"), "count": EventColumns("u", "U_1", "at")}[role]
    with pytest.raises(InputError, match=rf"the same but for case \(AT, at\), and 'at' for the {role} may be read"):
        in_steps(tmp_path / "log.parquet", columns, Timeline.of_steps(2))


def test_a_folder_of_the_same_name_in_other_letters(tmp_path: Path) -> None:
    """The value in the name of the folder would take the place of the column."""
    (tmp_path / "U=5").mkdir()
    pq.write_table(THREE.select(["u", "at"]), tmp_path / "U=5" / "log.parquet")
    for name in ("u", "U"):
        with pytest.raises(InputError, match="the same but for case"):
            in_steps(tmp_path, EventColumns(name, "at"), Timeline.of_steps(2))
    (tmp_path / "U=5").rename(tmp_path / "x=5")
    assert in_steps(tmp_path, EventColumns("u", "at"), Timeline.of_steps(2)) == [2, 1]
    assert in_steps(tmp_path, EventColumns("x", "at"), Timeline.of_steps(2)) == [1, 1]


def test_what_tells_names_apart_by_case_is_read(tmp_path: Path) -> None:
    """Data frames, of which only the columns that are needed are taken, and CSV files."""
    (tmp_path / "log.csv").write_text("u,U,U_1,at\na,z,p,0\nb,z,q,0\nc,z,p,1\n")
    for source in (THREE, THREE.to_pandas(), pl.DataFrame(THREE), pl.LazyFrame(THREE), tmp_path / "log.csv"):
        for name, expected in (("u", [2, 1]), ("U", [1, 1]), ("U_1", [2, 1])):
            assert in_steps(source, EventColumns(name, "at"), Timeline.of_steps(2)) == expected
    twice = THREE.set_column(1, "U", pa.array([0, 1, 1]))
    for source in (twice, twice.to_pandas()):
        with pytest.raises(InputError, match=r"the data frame has columns .* \(u, U\), and 'u' for the item"):
            in_steps(source, EventColumns("u", "U"), Timeline.of_steps(2))


def test_columns_that_are_not_read_may_differ_in_case_only(tmp_path: Path) -> None:
    pq.write_table(THREE.append_column("id", pa.array([1, 1, 2])), tmp_path / "log.parquet")
    assert in_steps(tmp_path / "log.parquet", EventColumns("id", "at"), Timeline.of_steps(2)) == [1, 1]


@pytest.mark.slow
def test_whatever_the_names_a_column_is_read_or_refused(tmp_path: Path) -> None:
    """In every order of up to four names, whatever the engine makes of them, none is read from another column."""
    names = ("u", "U", "u_1", "U_1", "u_1_1", "U_1_1")
    found = {"refused": 0, "read": 0, "absent": 0}
    with duckdb.connect() as connection:
        for order in (order for number in (1, 2, 3, 4) for order in permutations(names, number)):
            rows = pa.table({name: [1] for name in order})
            pq.write_table(rows, tmp_path / "log.parquet")
            connection.register("rows", rows)
            for relation in ("rows", f"'{tmp_path}/log.parquet'"):
                engine = connection.sql(f"SELECT * FROM {relation}").columns
                for name in (*names, "U_2", "u_1_2", "U_1_1_1"):
                    outcome = asked(name, order, engine)
                    found[outcome] += 1
    assert min(found.values()) > 100


def asked(name: str, own: Sequence[str], engine: Sequence[str]) -> str:
    """What becomes of a name, where the engine has other names than the columns' own ones."""
    try:
        require_told_apart(EventColumns(name, "at"), own, "the file")
    except InputError:
        return "refused"
    if name not in engine:
        return "absent"
    assert list(own).index(name) == list(engine).index(name), (name, own, engine)
    assert [other.lower() for other in engine].count(name.lower()) == 1
    return "read"
