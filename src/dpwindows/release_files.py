"""Release files: Parquet, CSV with its metadata beside it, and JSON; written atomically, read back unchanged.

Parquet keeps the metadata under the schema key `dpwindows`; JSON is `{"format", "metadata", "rows"}`; CSV has it in
`PATH.meta.json`, which is put in place first so that no table ever stands without it, and which holds the table's hash
so that a table never passes under the metadata of another release.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from dpwindows.errors import EngineError, InputError
from dpwindows.timeline import Timeline

KEY = b"dpwindows"
ENDINGS = (".parquet", ".csv", ".json")
_HASH = "table_sha256"
# What every release says about itself, and the type of each statement.
_STATED: dict[str, type | tuple[type, ...]] = {
    "release_id": str,
    "guarantee": str,
    "unit": dict,
    "budget": dict,
    "timeline": dict,
    "queries": list,
    "measurements": list,
    "forecast": list,
    "confidence": (int, float),
    "versions": dict,
}
COLUMNS = (
    *("window", "measure", "k", "first_step", "last_step", "start", "end", "complete"),
    *("estimate", "std_error", "bias_bound", "lower", "upper", "consistent"),
)
_NULLABLE = ("consistent",)


def require_writable(path: Path, *, force: bool, endings: tuple[str, ...] = ENDINGS) -> None:
    """Check that a file may be written, before anything is spent on its content.

    Raises:
        InputError: its ending is unknown, its folder is missing, it exists and `force` is not set, or the metadata
            file beside a CSV file does.
    """
    if path.is_dir():
        raise InputError(f"the output is a folder: {path}")
    if path.suffix.lower() not in endings:
        raise InputError(f"the output must end in {', '.join(endings)}, got {str(path)!r}")
    if not path.parent.is_dir():
        raise InputError(f"the folder of the output does not exist: {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise EngineError(f"the folder of the output cannot be written to: {path.parent}")
    for existing in (path, meta_path(path)) if path.suffix.lower() == ".csv" else (path,):
        if existing.exists() and not force:
            raise InputError(f"{existing} exists already: name another output, or replace it with --force")


def meta_path(path: Path) -> Path:
    """Where the metadata of a CSV file is kept."""
    return path.with_name(path.name + ".meta.json")


def write(table: pa.Table, metadata: dict[str, Any], path: Path, *, force: bool) -> None:
    """Write a release; each file appears whole or not at all."""
    require_writable(path, force=force)
    match path.suffix.lower():
        case ".parquet":
            _atomically(path, lambda file: _write_parquet(table, metadata, file))
        case ".csv":
            _write_csv(table, metadata, path)
        case _:
            content = {"format": metadata["format"], "metadata": metadata, "rows": _json_rows(table)}
            write_text(json.dumps(content, ensure_ascii=False, allow_nan=False), path)


def to_bytes(table: pa.Table, metadata: dict[str, Any]) -> bytes:
    """A release as the content of a Parquet file; `from_bytes` gives it back unchanged."""
    sink = pa.BufferOutputStream()
    _write_parquet(table, metadata, sink)
    return bytes(sink.getvalue().to_pybytes())


def from_bytes(content: bytes, known_format: int) -> tuple[pa.Table, dict[str, Any]]:
    """The release that `to_bytes` wrote."""
    return _read_parquet(pa.BufferReader(content), known_format)


def _write_parquet(table: pa.Table, metadata: dict[str, Any], sink: Any) -> None:
    text = json.dumps(metadata, ensure_ascii=False, allow_nan=False)
    pa.parquet.write_table(table.cast(table.schema.with_metadata({KEY: text.encode()})), sink)


def _write_csv(table: pa.Table, metadata: dict[str, Any], path: Path) -> None:
    """The table is written aside, then an old one is taken away, then metadata and table are put in place."""

    def put_in_place(file: str) -> None:
        pa.csv.write_csv(_with_text_times(table), file)
        described = metadata | {_HASH: _hash(Path(file))}
        path.unlink(missing_ok=True)
        write_text(json.dumps(described, indent=2, ensure_ascii=False, allow_nan=False) + "\n", meta_path(path))

    try:
        _atomically(path, put_in_place)
    except EngineError:
        if not path.exists():
            meta_path(path).unlink(missing_ok=True)
        raise


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_text(text: str, path: Path) -> None:
    """Write a text file atomically, in UTF-8."""
    _atomically(path, lambda file: Path(file).write_text(text, encoding="utf-8"))


def write_bytes(content: bytes, path: Path) -> None:
    """Write a binary file atomically."""
    _atomically(path, lambda file: Path(file).write_bytes(content))


def read(path: Path, known_format: int) -> tuple[pa.Table, dict[str, Any]]:
    """Read a release; see `Release.load`."""
    if not path.is_file():
        raise InputError(f"there is no release file {str(path)!r}")
    readers = {".parquet": _read_parquet, ".csv": _read_csv, ".json": _read_json}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise InputError(f"a release ends in {', '.join(ENDINGS)}, got {str(path)!r}")
    try:
        table, metadata = reader(path, known_format)
        return _complete(table), metadata
    except (pa.ArrowInvalid, pa.ArrowTypeError, ValueError, KeyError, TypeError, UnicodeDecodeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{str(path)!r} is not a release written by dpwindows: {error}") from error
    except OverflowError as error:
        raise InputError(
            f"{str(path)!r} is not a release written by dpwindows: a time or number in it is absurd"
        ) from error
    except OSError as error:
        if error.errno is None:  # what Arrow raises for damaged content
            raise InputError(f"{str(path)!r} is not a release written by dpwindows: {error}") from error
        raise EngineError(f"{str(path)!r} cannot be read: {error}") from error


def _read_parquet(source: Any, known_format: int) -> tuple[pa.Table, dict[str, Any]]:
    table = pa.parquet.read_table(source)
    stored = (table.schema.metadata or {}).get(KEY)
    if stored is None:
        raise ValueError("it has no dpwindows metadata")
    metadata = _checked(json.loads(stored), known_format)
    return table.replace_schema_metadata(None).cast(_schema(metadata)), metadata


def _read_csv(path: Path, known_format: int) -> tuple[pa.Table, dict[str, Any]]:
    beside = meta_path(path)
    if not beside.is_file():
        raise InputError(f"the metadata of {str(path)!r} is missing: {beside} should stand beside it")
    metadata = _checked(json.loads(beside.read_text(encoding="utf-8")), known_format)
    if metadata.pop(_HASH, None) not in (None, _hash(path)):
        raise InputError(f"{beside} belongs to another table than {str(path)!r}, or the table was changed")
    schema = _schema(metadata)
    # Times are read as text, because Arrow's CSV reader takes no offsets for zoned columns.
    types = {field.name: pa.string() if pa.types.is_timestamp(field.type) else field.type for field in schema}
    options = pa.csv.ConvertOptions(column_types=types, strings_can_be_null=False)
    table = pa.csv.read_csv(path, convert_options=options)
    return _from_text_times(table, schema), metadata


def _read_json(path: Path, known_format: int) -> tuple[pa.Table, dict[str, Any]]:
    content = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict) or not {"format", "metadata", "rows"} <= set(content):
        raise ValueError("it lacks format, metadata or rows")
    metadata = _checked(content["metadata"], known_format)
    schema = _schema(metadata)
    types = [(field.name, pa.string() if pa.types.is_timestamp(field.type) else field.type) for field in schema]
    return _from_text_times(pa.Table.from_pylist(content["rows"], schema=pa.schema(types)), schema), metadata


def _checked(metadata: Any, known_format: int) -> dict[str, Any]:
    if not isinstance(metadata, dict) or "format" not in metadata:
        raise ValueError("its metadata carry no format")
    if metadata["format"] != known_format:
        raise InputError(
            f"the release is of format {metadata['format']!r}, and this version reads format {known_format}: "
            "use a newer dpwindows"
        )
    for name, kind in _STATED.items():
        if not isinstance(metadata.get(name), kind):
            raise ValueError(f"its metadata lack {name!r}, or it is of the wrong type")
    try:
        Timeline.from_dict(metadata["timeline"])
    except InputError as error:
        raise ValueError(f"its timeline cannot be read: {error}") from None
    return metadata


def _complete(table: pa.Table) -> pa.Table:
    """The table, if every value that must be there is."""
    for name in table.column_names:
        if name not in _NULLABLE and table.column(name).null_count:
            raise ValueError(f"its column {name!r} has missing values")
    return table


def _schema(metadata: dict[str, Any]) -> pa.Schema:
    """The columns of format 1."""
    timeline = metadata["timeline"]
    time = pa.int64() if isinstance(timeline["step"], int) else pa.timestamp("us", tz=timeline["time_zone"])
    texts, numbers = pa.string(), pa.float64()
    kinds = [texts, texts, *[pa.int64()] * 3, time, time, pa.bool_(), *[numbers] * 5, pa.int64()]
    return pa.schema(list(zip(COLUMNS, kinds, strict=True)))


def _with_text_times(table: pa.Table) -> pa.Table:
    """The table with times as ISO text with their offset, such as 2013-07-01T00:00:00-04:00."""
    for name in ("start", "end"):
        position = table.schema.get_field_index(name)
        column = table.column(name)
        if pa.types.is_timestamp(column.type):
            table = table.set_column(position, name, _by_distinct(column, pa.string(), lambda time: time.isoformat()))
    return table


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


def _json_rows(table: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = _with_text_times(table).to_pylist()
    return rows


def _atomically(path: Path, fill: Callable[[str], object]) -> None:
    """Let `fill` write a temporary file in the same folder, then put it in place."""
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
        os.close(handle)
        fill(temporary)
        _settle_on_disk(temporary)
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(path)
    except OSError as error:
        raise EngineError(f"{str(path)!r} cannot be written: {error.strerror or error}") from error
    finally:
        if temporary:
            Path(temporary).unlink(missing_ok=True)


def _settle_on_disk(name: str) -> None:
    with Path(name).open("rb") as file:
        os.fsync(file.fileno())


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
