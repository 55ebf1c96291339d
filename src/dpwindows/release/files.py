"""Release files: Parquet, CSV with its metadata beside it, and JSON; written whole and durably, read back unchanged.

Parquet keeps the metadata under the schema key `dpwindows`; JSON is `{"format", "metadata", "rows"}`; CSV has it in
`PATH.meta.json`. In each the metadata hold a checksum over themselves and the rows; `release.checks` says what it is
good for.

**A CSV release is two files**, and no file system replaces two at once. So the metadata are put in place first, with
the hash of the table they belong to, and, until that table is in place, with the metadata of the table before it. A
reader takes those that belong to the table it finds: whenever writing ends, by a crash or a loss of power, what can be
read is the release before or the one after, whole, and never a table under the metadata of another.

No thread of Arrow's reads memory that Python owns: one that gives it back while Python ends aborts the process.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from dpwindows.ask.shapes import read_json
from dpwindows.durable import UnsettledError, claim, write_atomically
from dpwindows.errors import EngineError, InputError
from dpwindows.release.checks import CHECKSUM, checked_metadata, checked_rows, checksum_of, schema_of, without_checksum
from dpwindows.release.outputs import meta_path, parts_of, require_no_database

KEY = b"dpwindows"
ENDINGS = (".parquet", ".csv", ".json")
_HASH = "table_sha256"
# Beside the metadata of a CSV table that is not in place yet: those of the table before it, null if there is none.
_BEFORE = "until_table_is_replaced"
_READINGS = 5
# Columns whose numbers hardly ever occur twice.
_DISTINCT = ("estimate", "std_error", "lower", "upper")
# Rows that are written at a time, as text or as one group of a Parquet file: no more of them is held a second time.
_ROWS = 1 << 16
# Files have 255 bytes for their names; what is written aside at first has a longer one.
_LONGEST_NAME = 200


def require_writable(path: Path, *, force: bool, endings: tuple[str, ...] = ENDINGS) -> None:
    """Check that a file may be written, before anything is spent on its content.

    Raises:
        InputError: its ending is unknown, its folder is missing, it exists and `force` is not set, or the metadata
            file beside a CSV file does; or something is there that is no file.
    """
    if "\0" in str(path):
        raise InputError(f"no file can have the name {str(path)!r}")
    if any(len(part.encode("utf-8", "surrogateescape")) > _LONGEST_NAME for part in path.parts):
        raise InputError(f"the output needs a name of at most {_LONGEST_NAME} bytes, got {str(path)!r}")
    for part in parts_of(path):
        if part.is_dir():
            raise InputError(f"the output is a folder: {part}")
        if part.exists() and not part.is_file():
            raise InputError(f"the output is a device, a pipe or a socket, which a file would replace: {part}")
    if path.suffix.lower() not in endings:
        *others, last = endings
        wanted = f"{', '.join(others)} or {last}" if others else last
        raise InputError(f"the output must end in {wanted}, got {str(path)!r}")
    if not path.parent.is_dir():
        raise InputError(f"the folder of the output does not exist: {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise EngineError(f"the folder of the output cannot be written to: {path.parent}")
    require_no_database(path)
    found = next((part for part in parts_of(path) if os.path.lexists(part)), None)
    if found is not None and not force and not _is_unfinished(path):
        raise InputError(
            f"{found} exists already: name another output, or replace it with --force (in Python force=True)"
        )


def write(table: pa.Table, metadata: dict[str, Any], path: Path, *, force: bool) -> None:
    """Write a release; each file appears whole or not at all, and is on disk when this returns. `force` replaces files.

    Raises:
        InputError: see `require_writable`; also if the file appeared meanwhile.
        EngineError: the file cannot be written.
    """
    require_writable(path, force=force)
    stated = metadata | {CHECKSUM: checksum_of(table, metadata)}
    match path.suffix.lower():
        case ".parquet":
            _write(path, lambda file: _write_parquet(table, stated, file), force=force)
        case ".csv":
            _write_csv(table, stated, path, force=force)
        case _:
            _write(path, lambda file: _write_json(table, stated, file), force=force)


def to_bytes(table: pa.Table, metadata: dict[str, Any]) -> bytes:
    """A release as the content of a Parquet file; `from_bytes` gives it back unchanged."""
    sink = pa.BufferOutputStream()
    _write_parquet(table, metadata | {CHECKSUM: checksum_of(table, metadata)}, sink)
    return bytes(sink.getvalue().to_pybytes())


def from_bytes(content: bytes) -> tuple[pa.Table, dict[str, Any]]:
    """The release that `to_bytes` wrote.

    Raises:
        InputError: it was changed since, or is of another format.
    """
    table, metadata = _read_parquet(pa.BufferReader(content))
    return table, without_checksum(table, metadata)


def _write_parquet(table: pa.Table, metadata: dict[str, Any], sink: Any) -> None:
    text = json.dumps(metadata, ensure_ascii=False, allow_nan=False)
    told = table.cast(table.schema.with_metadata({KEY: text.encode()}))
    # Looking for numbers that occur again takes memory, and finds none where each has its own noise.
    shared = [name for name in table.column_names if name not in _DISTINCT]
    pa.parquet.write_table(told, sink, use_dictionary=shared, row_group_size=_ROWS)


def _write_json(table: pa.Table, metadata: dict[str, Any], file: str) -> None:
    def text(value: Any) -> bytes:
        return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8")

    with Path(file).open("wb") as sink:
        sink.write(text({"format": metadata["format"], "metadata": metadata})[:-1] + b', "rows": [')
        for at, rows in enumerate(_with_text_times(table)):
            sink.write((b", " if at else b"") + text(rows.to_pylist())[1:-1])
        sink.write(b"]}")


def _write_csv(table: pa.Table, metadata: dict[str, Any], path: Path, *, force: bool) -> None:
    beside = meta_path(path)

    def put_in_place(file: str) -> None:
        pieces = _with_text_times(table)
        first = next(pieces)
        with pa.csv.CSVWriter(file, first.schema) as writer:
            for piece in chain([first], pieces):
                writer.write_table(piece)
        described.update(metadata | {_HASH: _hash(Path(file))})
        _write_meta(described | {_BEFORE: before}, beside)

    # Two writers of one pair, one file each, would leave a pair that does not belong together.
    with claim(beside):
        require_writable(path, force=force)
        before, described, placed = _in_force(path), dict[str, Any](), False
        try:
            _write(path, put_in_place, force=force)
            placed = True
        except UnsettledError:
            placed = True
            raise
        finally:
            # Whichever table stands there now; until this is done a reader finds its metadata, too.
            if described:
                _tidy(path, described, before, placed=placed)


def _tidy(path: Path, after: dict[str, Any], before: dict[str, Any] | None, *, placed: bool) -> None:
    """Leave of the metadata those that belong to the table that is there; a failure does no harm."""
    with suppress(EngineError, OSError):
        differs = before is None or before[_HASH] != after[_HASH]
        if placed or (differs and path.is_file() and _hash(path) == after[_HASH]):
            _write_meta(after, meta_path(path))
        elif before is not None:
            _write_meta(before, meta_path(path))
        else:
            meta_path(path).unlink(missing_ok=True)


def _write_meta(metadata: dict[str, Any], beside: Path) -> None:
    text = json.dumps(metadata, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    try:
        write_text(text, beside, force=True)
    except UnsettledError as error:
        raise EngineError(f"{str(beside)!r} cannot be written: {error}") from error


def _in_force(path: Path) -> dict[str, Any] | None:
    """The metadata that belong to a CSV table, as stored; None if there are none, or no table."""
    with suppress(OSError, ValueError):
        stored = _read_meta(meta_path(path))
        return _of_table(stored, _hash(path))
    return None


def _read_meta(beside: Path) -> dict[str, Any]:
    """What stands beside a table: its metadata, and perhaps those of the table before it."""
    stored = read_json(beside.read_bytes())
    if not isinstance(stored, dict):
        raise ValueError("its metadata are no names with values")
    return stored


def _of_table(stored: dict[str, Any], table: str) -> dict[str, Any] | None:
    """The metadata, of those beside a table, that belong to one of this hash; None if none do."""
    after, before = {name: value for name, value in stored.items() if name != _BEFORE}, stored.get(_BEFORE)
    return next((one for one in (after, before) if isinstance(one, dict) and one.get(_HASH) == table), None)


def _is_unfinished(path: Path) -> bool:
    """True for what a writer leaves that was ended before its table was in place: metadata, and no table."""
    if path.suffix.lower() == ".csv" and not os.path.lexists(path) and meta_path(path).is_file():
        with suppress(OSError, ValueError):
            return _BEFORE in _read_meta(meta_path(path))
    return False


def _hash(table: Path | BinaryIO) -> str:
    if isinstance(table, Path):
        with table.open("rb") as file:
            return _hash(file)
    return hashlib.file_digest(table, "sha256").hexdigest()  # type: ignore[arg-type]


def write_text(text: str, path: Path, *, force: bool) -> None:
    """Write a text file in UTF-8; raises as `write` does."""
    write_bytes(text.encode("utf-8"), path, force=force)


def write_bytes(content: bytes, path: Path, *, force: bool) -> None:
    """Write a binary file; raises as `write` does."""
    _write(path, lambda file: Path(file).write_bytes(content), force=force)


def _write(path: Path, fill: Callable[[str], object], *, force: bool) -> None:
    try:
        write_atomically(path, fill, replace=force)
    except FileExistsError:
        raise InputError(
            f"{path} exists already, since a moment ago: another process wrote it; name another output, or replace it "
            "with --force"
        ) from None


def read(path: Path) -> tuple[pa.Table, dict[str, Any]]:
    """Read the rows and the metadata of a release; see `Release.load`.

    Raises:
        InputError: there is no release that this version can use.
        EngineError: the file cannot be read.
    """
    if not path.is_file():
        raise InputError(f"there is no release file {str(path)!r}")
    readers = {".parquet": _read_parquet, ".csv": _read_csv, ".json": _read_json}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise InputError(
            f"a release ends in {', '.join(ENDINGS)}, got {str(path)!r}; what a stream has released is written "
            "to such a file by 'dpwindows stream show STATE -o FILE'"
        )
    try:
        table, metadata = reader(path)
        return table, without_checksum(checked_rows(table, metadata), metadata)
    except InputError as error:
        raise InputError(f"{str(path)!r} cannot be used: {error}") from error
    except OSError as error:
        # Arrow says so, too, of content that it cannot read.
        if error.errno is None:
            raise InputError(f"{str(path)!r} is not a release written by dpwindows: {error}") from error
        raise EngineError(f"{str(path)!r} cannot be read: {error.strerror or error}") from error
    except (pa.ArrowException, ValueError, LookupError, TypeError, OverflowError, AttributeError) as error:
        raise InputError(f"{str(path)!r} is not a release written by dpwindows: {error}") from error


def _read_parquet(source: Any) -> tuple[pa.Table, dict[str, Any]]:
    with pa.parquet.ParquetFile(source) as file:
        table = file.read(use_threads=False)
    stored = (table.schema.metadata or {}).get(KEY)
    if stored is None:
        raise ValueError("it has no dpwindows metadata")
    metadata = checked_metadata(read_json(stored))
    return table.replace_schema_metadata(None).cast(schema_of(metadata)), metadata


def _read_csv(path: Path) -> tuple[pa.Table, dict[str, Any]]:
    beside = meta_path(path)
    for _ in range(_READINGS):
        if not beside.is_file():
            raise InputError(f"its metadata are missing: {beside} should stand beside it")
        beside_now = _read_meta(beside)
        with path.open("rb") as file:
            stored = _of_table(beside_now, _hash(file))
            if stored is None:
                continue  # a writer may have replaced both between the two readings
            metadata = checked_metadata({name: value for name, value in stored.items() if name != _HASH})
            file.seek(0)
            return _parsed_csv(file, schema_of(metadata)), metadata
    raise InputError(f"{beside} belongs to another table than {str(path)!r}, or the table was changed")


def _parsed_csv(file: BinaryIO, schema: pa.Schema) -> pa.Table:
    # A text that is null, all values of a column of groups, is written as nothing, and no text is empty.
    options = pa.csv.ConvertOptions(
        column_types=_text_times(schema), strings_can_be_null=True, null_values=[""], quoted_strings_can_be_null=False
    )
    content = pa.BufferOutputStream()
    shutil.copyfileobj(file, content)
    return _from_text_times(pa.csv.read_csv(pa.BufferReader(content.getvalue()), convert_options=options), schema)


def _read_json(path: Path) -> tuple[pa.Table, dict[str, Any]]:
    content = read_json(path.read_bytes())
    if not isinstance(content, dict) or set(content) != {"format", "metadata", "rows"}:
        raise ValueError("it is not format, metadata and rows, and nothing else")
    metadata = checked_metadata(content["metadata"])
    if content["format"] != metadata["format"]:
        raise ValueError("it states two formats")
    schema = schema_of(metadata)
    rows, names = content["rows"], set(schema.names)
    if not isinstance(rows, list) or not all(isinstance(row, dict) and row.keys() <= names for row in rows):
        raise ValueError("its rows are not those of a release")
    return _from_text_times(pa.Table.from_pylist(rows, schema=_text_times(schema)), schema), metadata


def _text_times(schema: pa.Schema) -> pa.Schema:
    """The columns with times as text: Arrow's CSV reader takes no offsets for zoned columns."""
    texts = {field.name: pa.string() for field in schema if pa.types.is_timestamp(field.type)}
    return pa.schema([(field.name, texts.get(field.name, field.type)) for field in schema])


def _with_text_times(table: pa.Table) -> Iterator[pa.Table]:
    """The table in pieces of rows, with times as ISO text with their offset, such as 2013-07-01T00:00:00-04:00."""
    for begin in range(0, max(1, table.num_rows), _ROWS):
        piece = table.slice(begin, _ROWS)
        for name in ("start", "end"):
            position = table.schema.get_field_index(name)
            column = piece.column(name)
            if pa.types.is_timestamp(column.type):
                times = _by_distinct(column, pa.string(), lambda time: time.isoformat())
                piece = piece.set_column(position, name, times)
        yield piece


def _from_text_times(table: pa.Table, schema: pa.Schema) -> pa.Table:
    for field in schema:
        if pa.types.is_timestamp(field.type):
            position = table.schema.get_field_index(field.name)
            times = _by_distinct(table.column(field.name), field.type, datetime.fromisoformat)
            table = table.set_column(position, field.name, times)
    return table.cast(schema)


def _by_distinct(column: pa.ChunkedArray, result: pa.DataType, convert: Callable[[Any], Any]) -> pa.ChunkedArray:
    """Convert a column value by value, each distinct value once: windows share few boundaries."""
    encoded = column.combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    distinct = pa.array([convert(value) for value in encoded.dictionary.to_pylist()], type=result)
    return pa.chunked_array([distinct.take(encoded.indices)])
