"""Logs that come as batches of Arrow: tables of a lake, datasets and streams, read as they come and never held whole.

**One state.** A table of a lake has many. The one that is there when it is opened is read, whatever is written
meanwhile, and as often as the engine reads it. Which one that is, `Batches.version` says: for the screen of the
operator only. It depends on the data, so it goes into no release and no key of a ledger.

**Types come from the schema.** Delta and Iceberg keep one for the whole table, and a stream has one. A dataset has one
too, but it may have been read from its first file: one file that says something else is refused, since then a value
would mean what a row of another file says. So are columns that stand in the names of folders and are no text: 7 and 007
are one number, and whether a column is one was found by looking at all of its folders.

Only the columns that are asked for are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import duckdb
import narwhals.stable.v2 as nw
import pyarrow as pa

from dpwindows.count.sources.database import module_roots
from dpwindows.count.sources.files import at_home
from dpwindows.errors import EngineError, InputError, near

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

ICEBERG = "iceberg:"
"""How the name of a table in a catalogue of Iceberg begins."""
_NOT_INSTALLED = "needs packages that are not installed: pip install 'dpwindows[lake]'"
_ABSENT = ("NoSuchTableError", "NoSuchNamespaceError", "NoSuchIcebergTableError", "TableNotFoundError")


@dataclass(frozen=True)
class Batches:
    """A log in batches: what messages call it, its columns, and what reads some of these from the beginning.

    `again` says whether it can be read more than once, always with the same rows. `version` is the state of a table
    that is read, and `folder` where its files are, if that is known.
    """

    what: str
    schema: pa.Schema
    read: Callable[[list[str]], pa.RecordBatchReader]
    again: bool = True
    version: str | None = None
    folder: str | None = None

    def chosen(self, names: list[str]) -> Any:
        """Some columns, for an engine that takes Arrow: anew for each reading, where that can be.

        Raises:
            InputError, EngineError: they cannot be read, as far as is known before the first batch.
        """
        first = self.read(names)
        return _Chosen(self, names, first.schema, [first]) if self.again else first

    def __str__(self) -> str:
        return self.what


@dataclass(frozen=True)
class _Chosen:
    batches: Batches
    names: list[str]
    schema: pa.Schema
    opened: list[pa.RecordBatchReader]

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        reader = self.opened.pop() if self.opened else self.batches.read(self.names)
        return reader.__arrow_c_stream__(requested_schema)


def in_batches(source: object) -> Batches | None:
    """A source that comes in batches, opened; None for any other.

    These are `Batches`, the folder of a Delta table, `iceberg:CATALOG.NAMESPACE.TABLE`, tables of the packages
    deltalake and pyiceberg, Arrow datasets, and everything with Arrow's stream interface that is no data frame.

    Raises:
        InputError: the table is not there, cannot be read by these packages, or they are not installed.
        EngineError: its catalogue or storage cannot be reached.
    """
    if isinstance(source, Batches):
        return source
    if isinstance(source, str | Path):
        if str(source).startswith(ICEBERG):
            return _iceberg(_iceberg_table(str(source)), str(source))
        folder = at_home(str(source))
        return _delta(_delta_table(folder), str(folder)) if (folder / "_delta_log").is_dir() else None
    roots = module_roots(source)
    if "deltalake" in roots and hasattr(source, "scan"):
        return _delta(source, None)
    if "pyiceberg" in roots and hasattr(source, "scan"):
        return _iceberg(source, None)
    if "pyarrow" in roots and hasattr(source, "get_fragments"):
        return _dataset(source)
    # Of relations of today's DuckDB the first narwhals that serve know nothing.
    if isinstance(source, duckdb.DuckDBPyRelation) or not hasattr(source, "__arrow_c_stream__"):
        return None
    framed = nw.from_native(source, pass_through=True)
    return None if isinstance(framed, nw.DataFrame | nw.LazyFrame) else _stream(source)


# --- streams and datasets --------------------------------------------------------------------------------------------


# What was read to its end looks like one without rows.
_READ = WeakSet[pa.RecordBatchReader]()


def _stream(source: Any) -> Batches:
    what = "the record batch reader" if isinstance(source, pa.RecordBatchReader) else "the stream of record batches"
    if isinstance(source, pa.RecordBatchReader) and source in _READ:
        raise InputError(f"{what} was read before, and what is left of it is no log: make a new one, or give a table")
    try:
        reader = pa.RecordBatchReader.from_stream(source)
    except Exception as error:  # any library may raise anything of its own
        raise InputError(f"the stream of record batches cannot be read ({type(error).__name__})") from None

    def read(names: list[str]) -> pa.RecordBatchReader:
        if isinstance(source, pa.RecordBatchReader):
            _READ.add(source)
        return reader

    return Batches(what, reader.schema, read, again=False)


def _dataset(source: Any) -> Batches:
    def read(names: list[str]) -> pa.RecordBatchReader:
        for fragment in source.get_fragments():
            _require_types(source.schema, fragment.physical_schema, names)
        return source.scanner(columns=names).to_reader()

    return Batches("the Arrow dataset", source.schema, read)


def _require_types(schema: pa.Schema, own: pa.Schema, names: list[str]) -> None:
    """Refuse a file that says another type of a column than the dataset does, and folders that say no text."""
    for name in names:
        wanted = schema.field(name).type
        if name in own.names:
            if (found := own.field(name).type) != wanted:
                raise InputError(
                    f"the column {name!r} of the Arrow dataset is {wanted}, and {found} in one of its files, which "
                    f"would be converted: write it with one type"
                )
        elif not _is_text(wanted):
            raise InputError(
                f"the column {name!r} of the Arrow dataset is {wanted} and stands in none or only some of its files: "
                f"where it is in the names of folders, declare it as text, with "
                f"pyarrow.dataset.partitioning(pyarrow.schema([({name!r}, pyarrow.string())]), flavor='hive')"
            )


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


# --- Delta -----------------------------------------------------------------------------------------------------------


def _delta_table(folder: Path) -> Any:
    with reading(f"the Delta table {folder}"):
        from deltalake import DeltaTable

        return DeltaTable(folder)


def _delta(table: Any, text: str | None) -> Batches:
    what = "the Delta table" if text is None else f"the Delta table {text}"
    version = table.version()

    def read(names: list[str] | None) -> pa.RecordBatchReader:
        with reading(what):
            if table.version() != version:
                raise EngineError(f"{what} was updated from version {version} while it was counted: count it again")
            return pa.RecordBatchReader.from_stream(table.scan(columns=names))

    folder = local_folder(table.table_uri) if text is None else text
    return Batches(what, read(None).schema, read, version=f"{what}, version {version}", folder=folder)


# --- Iceberg ---------------------------------------------------------------------------------------------------------


def iceberg_catalog(name: str) -> Catalog:
    """A catalogue that is configured as pyiceberg wants it.

    Raises:
        InputError: it is not, or pyiceberg is not installed.
        EngineError: it cannot be reached.
    """
    with reading(f"the Iceberg catalogue {name!r}"):
        from pyiceberg.catalog import list_catalogs, load_catalog

        # Asked first: what pyiceberg says of one that it does not know may hold what others are configured with.
        known = list_catalogs()
        if name.lower() not in known:
            raise InputError(
                f"no Iceberg catalogue {name!r} is configured{near(name, known)}: name it in ~/.pyiceberg.yaml, or in "
                f"the environment as PYICEBERG_CATALOG__{name.upper().replace('-', '_')}__URI"
            )
        return load_catalog(name)


def _iceberg_table(text: str) -> Any:
    catalog, _, table = text.removeprefix(ICEBERG).partition(".")
    if not catalog or "." not in table:
        raise InputError(f"a table of Iceberg is written {ICEBERG}CATALOG.NAMESPACE.TABLE, got {text!r}")
    opened = iceberg_catalog(catalog)
    with reading(f"the Iceberg table {text}"):
        return opened.load_table(table)


def _iceberg(table: Any, text: str | None) -> Batches:
    what = "the Iceberg table" if text is None else f"the Iceberg table {text}"
    with reading(what):
        from pyiceberg.io.pyarrow import ArrowScan, schema_to_pyarrow

        # It holds the table's metadata as they are now, whatever becomes of the table.
        scan = table.scan()
        tasks, snapshot = list(scan.plan_files()), table.current_snapshot()
        schema = schema_to_pyarrow(scan.projection())

    def read(names: list[str]) -> pa.RecordBatchReader:
        with reading(what):
            projection = scan.select(*names).projection()
            reader = ArrowScan(scan.table_metadata, scan.io, projection, scan.row_filter)
        # One file after another: given all of them, it reads ahead as many as there are.
        batches = (batch for task in tasks for batch in reader.to_record_batches([task]))
        own = schema_to_pyarrow(projection)
        return pa.RecordBatchReader.from_batches(own, batches).cast(own)

    version = f"{what}, snapshot {'none yet' if snapshot is None else snapshot.snapshot_id}"
    return Batches(what, schema, read, version=version, folder=local_folder(table.location()))


# --- both ------------------------------------------------------------------------------------------------------------


def local_folder(address: str) -> str | None:
    """The folder that an address stands for; None if it is not on this machine."""
    scheme, found, path = address.partition("://")
    return address if not found else path if scheme == "file" else None


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Turn what the packages raise into our two kinds of errors. Their messages may hold addresses and keys."""
    try:
        yield
    except (InputError, EngineError):
        raise
    except ImportError:
        raise InputError(f"{what} {_NOT_INSTALLED}") from None
    except Exception as error:
        kind, text = type(error).__name__, str(error)
        if kind in _ABSENT:
            raise InputError(f"there is no such table: {what}") from None
        if kind == "NotInstalledError":
            raise InputError(f"{what} {_NOT_INSTALLED}") from None
        if "equality delete" in text.lower():
            raise InputError(
                f"{what} cannot be read: it holds equality deletes, which pyiceberg does not read; have it rewritten "
                f"(rewrite_data_files in Spark), or count it with --engine spark"
            ) from None
        if "nsupported" in text or "not supported" in text:
            raise InputError(
                f"{what} cannot be read: it uses a feature that the package does not read ({_plain(text)})"
            ) from None
        raise EngineError(f"{what} cannot be reached, read or written ({kind})") from None


def _plain(text: str) -> str:
    """The end of a message about a feature, if it can hold no address."""
    last = text.splitlines()[0].rpartition("nsupported")[2].strip(" :")
    return last[:80] if "/" not in last and "@" not in last else "unnamed"
