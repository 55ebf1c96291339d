"""CSV in Spark: the same events as DuckDB reads in the same files, or a refusal."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import duckdb
import pytest
from pyspark.sql import SparkSession

from dpwindows.ask.timeline import Timeline
from dpwindows.count.events import EngineSettings, EventColumns
from dpwindows.count.sources.csv_files import CsvHeader
from dpwindows.count.sources.duckdb import find_parts
from dpwindows.count.sources.spark import field_value, fields_of
from dpwindows.errors import InputError
from tests.count.engines.logs import LOGS, THRESHOLDS, Log
from tests.counting import count_events, in_steps

pytestmark = pytest.mark.xdist_group("spark")

STEPS = Timeline.of_steps(2)
COLUMNS = EventColumns("id", "at")
SPARK = EngineSettings(engine="spark")
AS_CSV = ["naive days", "integers as text"]


@pytest.fixture
def small_splits(spark: SparkSession) -> Iterator[None]:
    """Files are read in pieces of 64 bytes."""
    name = "spark.sql.files.maxPartitionBytes"
    before = spark.conf.get(name)
    spark.conf.set(name, "64")
    yield
    spark.conf.set(name, str(before))


def counted(source: object, columns: EventColumns = COLUMNS, *, k: int = 1, spark: bool = True) -> list[int]:
    return in_steps(source, columns, STEPS, k, settings=SPARK if spark else None)


def both(source: object, columns: EventColumns = COLUMNS, *, k: int = 1) -> list[int]:
    """What both engines count."""
    found = counted(source, columns, k=k)
    assert found == counted(source, columns, k=k, spark=False)
    return found


def written(path: Path, content: str | bytes) -> Path:
    """A file of this content, in folders made for it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


# --- lines ---------------------------------------------------------------------------------------------------------


def test_every_short_line_is_read_as_duckdb_reads_it(spark: SparkSession, tmp_path: Path) -> None:
    """All lines of up to six characters, most of them wrong: what Spark takes, DuckDB takes for the same."""
    lines = ["".join(line) for length in range(1, 7) for line in product('a," \r\n', repeat=length)]
    frame = spark.createDataFrame([(line,) for line in lines], "value string")
    cut = fields_of(frame, CsvHeader(",", ("x", "y"))).selectExpr(
        "line", "complete", f"{field_value('fields[0]')} AS x", f"if(complete, {field_value('fields[1]')}, '') AS y"
    )
    found = cut.where("complete").toArrow().to_pylist()
    assert 500 < len(found) < len(lines) / 5
    assert {None, "", " a", '"', ","} <= {row["x"] for row in found}
    for ending in ("\n", "\r\n"):
        found = [row for row in found if ending not in row["line"]]
        path = written(tmp_path / "lines.csv", f"x,y{ending}" + "".join(row["line"] + ending for row in found))
        connection = duckdb.connect()
        (part,) = find_parts(connection, path, EventColumns("x", "y"), None)
        read = Counter(connection.execute(part.sql).fetchall())
        assert read == Counter((row["x"], row["y"]) for row in found)


def test_lines_that_are_refused(spark: SparkSession) -> None:
    """Too few fields and too many, quotes where none may be, other line ends, and bytes that are not UTF-8."""
    lines = [b"a", b"a,0,0", b",", b'"a,0', b'"a"b,0', b'a"b,0', b'"a" ,0', b' "a",0', b'"a""b,0', b'a,0"', b"a,0\r"]
    lines += [b"a\r,0", b"a\n,0", b"\xff,0", b"\xed\xa0\x80,0", b"\xc3,0", b'"\xc3\xa4\x80",0', b"\x00\xff,0"]
    frame = spark.createDataFrame([(line,) for line in lines], "value binary").selectExpr("CAST(value AS STRING)")
    cut = fields_of(frame, CsvHeader(",", ("id", "at"))).selectExpr("CAST(line AS BINARY)", "complete").toArrow()
    assert {row["line"]: row["complete"] for row in cut.to_pylist()} == dict.fromkeys(lines, False) | {b",": True}


# --- files ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("log", [log for log in LOGS if log.name in AS_CSV], ids=lambda log: log.name)
def test_logs_as_csv_are_counted_as_the_definition_says(spark: SparkSession, log: Log, tmp_path: Path) -> None:
    rows = [row for row in log.rows if "\n" not in str(row[0])]
    kept = Log(log.name, log.timeline, log.time, rows, log.weighted)

    def field(value: object) -> str:
        text = "" if value is None else str(value).replace('"', '""')
        return f'"{text}"' if value is not None else ""

    lines = ["item,time,count", *(",".join(map(field, row)) for row in rows)]
    path = written(tmp_path / "log.csv", "\n".join(lines))
    columns = EventColumns("item", "time", "count" if log.weighted else None)
    answers = count_events(path, columns, log.timeline, THRESHOLDS, settings=SPARK)
    steps = log.timeline.steps
    for k in THRESHOLDS:
        assert answers.windows(k, 1, steps, 1, steps).tolist() == kept.windows[k]


@pytest.mark.parametrize(
    ("start", "ending", "end"), [("\ufeff", "\n", "\n\n"), ("", "\r\n", "")], ids=["line feeds", "two characters"]
)
def test_items_keep_their_bytes(spark: SparkSession, tmp_path: Path, start: str, ending: str, end: str) -> None:
    """Ids that are equal as numbers or after trimming, 17 digits that doubles merge, quotes, and text like NULL."""
    ids = ["007", "7", "7.0", "12345678901234567", "12345678901234568", " 7", "'7'", "#7", '"a,b"', "NULL", "nan", '""']
    ids += ["ä", "a\u0308", "\ufffd", "\\", '"\\,"', '"a""b"', "\x00", "a\x00", "x" * 40_000, '"' + '""' * 5000 + '"']
    text = start + "id,at\n" + "".join(f"{item},0\n" for item in ids * 2) + ",0" + end
    assert both(written(tmp_path / "ids.csv", text.replace("\n", ending))) == [len(ids), 0]


def test_delimiters_and_names(spark: SparkSession, tmp_path: Path) -> None:
    names = ["my `id`.x", "at", "n's \\ {0}"]
    for place, delimiter in enumerate(",;\t|"):
        rows = [names, [f"a{place}", "0", "2"], ["b", "1", "1"], ["", "1", "1"], ["c", "", "1"], ["d", "1", ""]]
        written(tmp_path / f"{place}.csv", "\n".join(delimiter.join(row) for row in rows))
    assert both(tmp_path, EventColumns(names[0], "at", names[2]), k=2) == [4, 1]
    assert both(tmp_path / "3.csv", EventColumns("at", "at")) == [1, 1]


def test_folders_compression_and_pieces(spark: SparkSession, small_splits: None, tmp_path: Path) -> None:
    """Files of several shapes in one folder, one in many pieces, with what writers leave beside them."""
    log = tmp_path / "log [1] *{x}" / "id=5"
    written(log / "a.csv", "id,at\n" + "".join(f"item-{i},{i % 2}\n" for i in range(50)))
    written(log / "b.csv.gz", gzip.compress(b"id,at\nitem-0,1\nzipped,1\n"))
    written(log / "more" / "c?.tsv", "at\tother\tid\n1\t\tmore\n0\t\tmore\n")
    written(log / "_temporary" / "d.csv", "id,at\nleft over,0\n")
    assert both(log.parent) == [26, 28]
    assert counted(f"file://{tmp_path}/log*/*/a.csv") == [25, 25]


def test_a_line_of_names_that_is_repeated_is_no_event(spark: SparkSession, tmp_path: Path) -> None:
    """Only where all of our columns hold their names: an item may be called as its column is."""
    parts = ["", *(f"item-{i},1,{i % 2}\n" * 9 for i in range(9))]
    path = written(tmp_path / "joined.csv", "id,n,at\n".join(parts) + "id,1,0\n")
    assert both(path, EventColumns("id", "at", "n")) == [6, 4]


MALFORMED = "a CSV file is malformed: it must be UTF-8"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"id,at\nb,0\nsecret\n", MALFORMED),
        (b'id,at\n"line\nend",0\n', f"{MALFORMED}.* a field with a line end in it, which the engine duckdb reads"),
        (b"id,at\r\na,0\r\nsecret,1\nb,0\r\n", MALFORMED),
        (b"id,at\na,secret\n", "the time column 'at' is text and not all of it can be read"),
        (b"", "is empty; a CSV file begins with a line of column names"),
        (b"secret,0\n", "names none of the columns 'id', 'at': is the line of names missing"),
        (b"id,at,id\n1,0,2\n", "has 2 columns named 'id'"),
        (b"\x1f\x8bid,at\n", "no column 'id'"),
    ],
)
def test_files_that_are_no_csv(spark: SparkSession, tmp_path: Path, content: bytes, message: str) -> None:
    path = written(tmp_path / "bad.csv", content)
    for source in (path, f"file://{path}"):
        with pytest.raises(InputError, match=message) as caught:
            counted(source)
        assert "secret" not in str(caught.value)


def test_files_that_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    for source, message in (
        (f"file://{tmp_path}/none.csv", r"Spark cannot read the events \(PATH_NOT_FOUND\)"),
        (tmp_path / "none.csv", "there is no file or directory"),
        ("none.csv", "there is no file or directory none.csv"),
        (written(tmp_path / "a.csv.zst", b""), "Spark does not read CSV compressed with zstd; use gzip"),
        (f"file://{tmp_path}/a.csv.zst", "Spark does not read CSV compressed with zstd"),
    ):
        with pytest.raises(InputError, match=message):
            counted(source)
    # The first file at an address says what the columns are; one that disagrees has a first line that is no event.
    written(tmp_path / "two.csv" / "a.csv", "id,at\nx,0\n")
    written(tmp_path / "two.csv" / "b.csv", "at,id\n0,x\n")
    with pytest.raises(InputError, match="the time column 'at' is text and not all of it can be read"):
        counted(f"file://{tmp_path}/two.csv")
