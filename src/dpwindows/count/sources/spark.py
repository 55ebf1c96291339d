"""What Spark is asked to read, as a Spark data frame: a frame as it is, a table by its name, Parquet or CSV files.

CSV files are read by the rules of `csv_files` or refused. Spark's own reader of CSV takes what is malformed for
something else: bytes that are not UTF-8 all become one character, so that different items become one, and quotes in the
middle of a field are kept, dropped or paired up depending on its settings. Here Spark reads lines, which it does byte
by byte, and one regular expression cuts a line into fields. What the fields and delimiters do not make up again to the
last byte is refused.

A field with the line end of its file in it is refused too: the first of its lines ends within quotes, where no field
ends. That leaves files that are distributed by their lines, however long they are.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet

from dpwindows.count.events import EventColumns
from dpwindows.count.query.dialect import quote_text
from dpwindows.count.sources.csv_files import CsvHeader, parse_header, read_header
from dpwindows.count.sources.files import (
    CSV_SUFFIXES,
    PARQUET_SUFFIXES,
    TABLE_FORMAT_MARKS,
    at_home,
    files_of,
    folder_keys,
    kind_of,
    require_one_place,
    require_one_type,
    table_format,
)
from dpwindows.count.sources.names import require_columns
from dpwindows.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_INFERENCE = "spark.sql.sources.partitionColumnTypeInference.enabled"
_MARK = "dpwindows cannot read a line of CSV"


@contextmanager
def open_frame(session: SparkSession, source: object, columns: EventColumns, table: str | None) -> Iterator[DataFrame]:
    """The frame of a source.

    Raises:
        InputError: the source is none of those that Spark reads here, or its files do not go together.
    """
    if isinstance(source, str | Path):
        if table is not None:
            raise InputError(
                "with the engine spark the table's name takes the place of the path, and table is not given"
            )
        with _text_partitions(session):
            yield _named(session, str(source), columns)
    elif hasattr(source, "toDF") and hasattr(source, "sparkSession"):
        if table is not None:
            raise InputError("table goes with a Spark session; a Spark data frame is one already")
        if source.isStreaming:  # type: ignore[attr-defined]
            raise InputError("a streaming data frame has no end to count up to; write it to a table, and count that")
        yield source  # type: ignore[misc]  # what has these two is a data frame of Spark
    elif source is session:
        if table is None:
            raise InputError("a Spark session has many tables: name one with table")
        yield session.table(table)
    else:
        raise InputError(
            "the engine spark reads a path, the name of a table, a Spark session with table, or a Spark data frame; "
            f"got {type(source).__name__}"
        )


@contextmanager
def _text_partitions(session: SparkSession) -> Iterator[None]:
    """Leave what stands in directory names text, so that id=007 and id=7 remain two items."""
    before = session.conf.get(_INFERENCE)
    session.conf.set(_INFERENCE, "false")
    try:
        yield
    finally:
        session.conf.set(_INFERENCE, str(before))


def _named(session: SparkSession, text: str, columns: EventColumns) -> DataFrame:
    if re.match(r"(spark|k8s)://", text):
        raise InputError(
            "events must be a path or the name of a table; give the address of a cluster as --spark-master"
        )
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:/", text):
        return _at_address(session, text, columns)
    path = at_home(text)
    if path.exists() or glob.has_magic(text) or "/" in text or text.lower().endswith(PARQUET_SUFFIXES + CSV_SUFFIXES):
        return _local(session, text, columns)
    return session.table(text)


def _at_address(session: SparkSession, text: str, columns: EventColumns) -> DataFrame:
    """Files that only Spark can list: CSV if the address ends as such files do, else Parquet."""
    if not text.lower().rstrip("/").endswith(CSV_SUFFIXES):
        frame = session.read.parquet(text)
        if _is_table_format(session, text):
            raise table_format(text)
        _require_one_layout(frame, text, columns)
        return _of_one_type(session, frame, text, columns)
    _require_codec([text.rstrip("/")])
    return _csv_frame(session, {_first_line_header(session, text, columns): [text]}, columns)


def _require_one_layout(frame: DataFrame, address: str, columns: EventColumns) -> None:
    """Refuse files that are partly in folders such as day=2013-01-31 and partly not: Spark drops the latter."""
    found = [unquote(name).removeprefix(address.rstrip("/")) for name in frame.inputFiles()]
    layouts = sorted({folder_keys(name.split("/")[:-1]) for name in found})
    if len(layouts) > 1:
        shown = ", ".join("/".join(f"{key}=..." for key in keys) or "none" for keys in layouts)
        raise InputError(
            f"the files at {address} are not all in folders of the same names ({shown}), and Spark would leave some "
            f"of them out: give the address of those that belong together"
        )
    # What stands in names of folders alone comes after the columns of the files.
    own = frame.columns[: len(frame.columns) - len(layouts[0])] if layouts else frame.columns
    require_one_place(columns, own, layouts[0] if layouts else (), address)


def _of_one_type(session: SparkSession, frame: DataFrame, address: str, columns: EventColumns) -> DataFrame:
    """The frame of all files at an address, once our columns are known to be of one type in all of them.

    Without being told Spark takes the types of one file for those of all, and converts the others: of times with a zone
    and times without one, and of texts and bytes, those in the first file would say what all others are.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        return session.read.option("mergeSchema", "true").parquet(address)
    except (PySparkException, Py4JError) as error:
        if "CANNOT_MERGE" not in str(error):
            raise
    # Columns that are not read may differ: one file after the other.
    schemas = [dict(session.read.parquet(_plain(unquote(name))).dtypes) for name in frame.inputFiles()]
    for role, name in columns.roles:
        require_one_type(columns, role, {schema[name] for schema in schemas if name in schema})
    return frame


def _is_table_format(session: SparkSession, address: str) -> bool:
    """Whether there is beside the files what keeps track of their versions: looked for, and no matter if in vain."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    with suppress(PySparkException, Py4JError):
        session.read.text(f"{address.rstrip('/')}/{{{','.join(TABLE_FORMAT_MARKS)}}}")
        return True
    return False


def _local(session: SparkSession, text: str, columns: EventColumns) -> DataFrame:
    """Local files. They are listed here: Spark would pass over those in folders within folders."""
    files = files_of(text)
    kind = kind_of(files, text)
    if kind == "CSV":
        _require_codec(list(map(str, files)))
        headers: dict[CsvHeader, list[str]] = {}
        for file in files:
            headers.setdefault(read_header(file, columns), []).append(_uri(file))
        return _csv_frame(session, headers, columns)
    if kind != "Parquet":
        raise InputError(
            f"the engine spark reads Parquet and CSV files, and {text} is {kind}; leave --engine out for DuckDB"
        )
    base, reader = at_home(text), session.read
    keys: dict[Path, tuple[str, ...]] = dict.fromkeys(files, ())
    if base.is_dir():
        keys = {file: folder_keys(file.relative_to(base).parts[:-1]) for file in files}
        reader = reader.option("basePath", f"file://{base.absolute()}")
    _require_same_types(keys, columns)
    # Apart: where some files are in such folders and some are not, Spark would leave out the latter.
    layouts = [[file for file in files if keys[file] == layout] for layout in dict.fromkeys(keys.values())]
    frames = [reader.parquet(*map(_uri, members)) for members in layouts]
    if len(frames) == 1:
        return frames[0]
    for frame, members in zip(frames, layouts, strict=True):
        require_columns(columns, frame.columns, str(members[0].parent))
    ours = list(dict.fromkeys(name for _, name in columns.roles))
    quoted = ["`" + name.replace("`", "``") + "`" for name in ours]
    return reduce(lambda one, other: one.union(other), (frame.select(*quoted) for frame in frames))


def _require_codec(names: Sequence[str]) -> None:
    """Refuse files compressed as Spark reads only where Hadoop's native libraries are installed."""
    if any(name.lower().endswith(".zst") for name in names):
        raise InputError("Spark does not read CSV compressed with zstd; use gzip, or leave --engine out for DuckDB")


def _uri(path: Path) -> str:
    return f"file://{_plain(str(path.absolute()))}"


def _plain(name: str) -> str:
    """A path as Hadoop reads it: it decodes nothing, and takes a backslash to mean that what follows is no pattern."""
    return re.sub(r"([*?\[\]{}\\])", r"\\\1", name)


def _require_same_types(files: Mapping[Path, tuple[str, ...]], columns: EventColumns) -> None:
    """Refuse files that differ in the type of a column: Spark takes the types of one file for those of all.

    `files` maps each to the columns that stand in the names of its folders.
    """
    schemas = {path: _schema(path) for path in files}
    for path, schema in schemas.items():
        require_one_place(columns, schema, files[path], str(path))
    for role, name in columns.roles:
        types = {schema.get(name, "absent") for schema in schemas.values()}
        require_one_type(columns, role, types)
        if "[ns" in types.pop():
            title = columns.title(role)
            raise InputError(f"{title} holds nanoseconds, which Spark does not read; write microseconds")


def _schema(path: Path) -> dict[str, str]:
    """The types of a file's columns by name; those of the old form that Spark writes instants in are "int96"."""
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            types = {field.name: str(field.type) for field in file.schema_arrow}
            flat = [file.schema.column(place) for place in range(len(file.schema))]
    except (OSError, pa.ArrowException):
        raise InputError(f"{path} cannot be read: it is no whole Parquet file") from None
    return types | {column.path: "int96" for column in flat if column.physical_type == "INT96"}


# --- CSV -------------------------------------------------------------------------------------------------------------


def _csv_frame(session: SparkSession, files: Mapping[CsvHeader, Sequence[str]], columns: EventColumns) -> DataFrame:
    """Our columns, as text, of files grouped by their header; each is given as Spark names it."""
    frames = [_frame(_lines(session, paths, header.line_end), header, columns) for header, paths in files.items()]
    return reduce(lambda one, other: one.union(other), frames)


def _first_line_header(session: SparkSession, address: str, columns: EventColumns) -> CsvHeader:
    """The header of the first file at an address that Spark reads. Raises `InputError` as `parse_header` does."""
    first = _lines(session, [address]).where("_metadata.file_block_start = 0").select("value").first()
    return parse_header("" if first is None else first[0], columns, address)


def malformed(message: str) -> InputError | None:
    """The error for a line that is no CSV, if this is what Spark's message is about."""
    if _MARK not in message:
        return None
    return InputError(
        "a CSV file is malformed: it must be UTF-8, with the same number of fields in every line, and fields with "
        "delimiters in double quotes; a field with a line end in it, which the engine duckdb reads, Spark does not"
    )


def _lines(session: SparkSession, paths: Sequence[str], line_end: str = "\n") -> DataFrame:
    """The lines of files, as bytes that are perhaps no text, with the names of folders left alone."""
    return session.read.text(list(paths), lineSep=line_end, recursiveFileLookup=True)


def _frame(lines: DataFrame, header: CsvHeader, columns: EventColumns) -> DataFrame:
    """Our columns of files with one header."""
    from pyspark.sql.functions import col, lit

    failure = f"CAST(raise_error(concat('{_MARK}', left(line, 0))) AS ARRAY<STRING>)"
    checked = _with(fields_of(lines, header), f"CASE WHEN complete THEN fields ELSE {failure} END", "checked")
    names = list(dict.fromkeys(name for _, name in columns.roles))
    fields = [field_value(f"checked[{header.names.index(name)}]") for name in names]
    values = checked.selectExpr(*(f"{field} AS c{place}" for place, field in enumerate(fields)))
    # Lines that hold the names are no events.
    pairs = zip(values.columns, names, strict=True)
    is_header = reduce(lambda one, other: one & other, (col(place) == lit(name) for place, name in pairs))
    return values.where(~is_header).toDF(*names)


def fields_of(lines: DataFrame, header: CsvHeader) -> DataFrame:
    """Each line with its fields as they are written, and whether these are all of it and as many as there should be."""
    delimiter = quote_text(header.delimiter)
    whole = lines.selectExpr("value AS line").where("line <> ''")
    cut = f"regexp_extract_all(concat(line, {delimiter}), r'{_field_pattern(header.delimiter)}', 1)"
    complete = f"size(fields) = {len(header.names)} AND array_join(fields, {delimiter}) = line AND is_valid_utf8(line)"
    return _with(whole, cut, "fields").selectExpr("*", f"{complete} AS complete")


def field_value(field: str) -> str:
    """What a field that is written so stands for, as an expression."""
    quoted = f"""replace(substr({field}, 2, length({field}) - 2), '""', '"')"""
    return f"CASE WHEN {field} = '' THEN NULL WHEN startswith({field}, '\"') THEN {quoted} ELSE {field} END"


def _field_pattern(delimiter: str) -> str:
    """One field and the delimiter after it, where the one before has ended; the quantifiers never go back."""
    mark = rf"\x{ord(delimiter):02x}"
    return rf'\G("[^"]*+(?:""[^"]*+)*+"|[^"\r\n{mark}]*+){mark}'


def _with(frame: DataFrame, expression: str, name: str) -> DataFrame:
    """A frame with one column more, by a generator: the one expression that Spark neither repeats nor moves."""
    return frame.selectExpr("*", f"explode(array({expression})) AS {name}")
