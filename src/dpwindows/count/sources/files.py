"""Files that a path, a glob or a directory stands for, what kind of files they are, and the text in them."""

from __future__ import annotations

import glob
import io
import os
import re
from collections.abc import Collection, Container, Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from dpwindows.count.events import EventColumns
from dpwindows.durable import SQLITE
from dpwindows.errors import InputError

CSV_SUFFIXES = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz", ".csv.zst", ".tsv.zst", ".txt.zst")
JSON_LINES_SUFFIXES = tuple(name + packed for name in (".jsonl", ".ndjson") for packed in ("", ".gz", ".zst"))
EXCEL_SUFFIXES = (".xlsx", ".xlsm")
PARQUET_SUFFIXES = (".parquet", ".parq", ".pq")
# What files of other kinds are, and what to do with them.
_UNPACK = "an archive of files: unpack it, and give the files in it, or the folder"
_TO_PARQUET = "write it to Parquet and give that, in R with arrow::write_parquet(events, 'events.parquet')"
_PANDAS = "write it to Parquet and give that, in Python with pandas.{}({!r}).to_parquet('events.parquet')"
_OTHER_KINDS = {
    (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst", ".zip", ".7z", ".rar"): _UNPACK,
    (".rda", ".rdata", ".rds"): f"a file of R: {_TO_PARQUET}",
    (".sas7bdat", ".xpt"): "a table of SAS: " + _PANDAS.format("read_sas", "{name}"),
    (".dta",): "a table of Stata: " + _PANDAS.format("read_stata", "{name}"),
    (".sav", ".zsav", ".por"): "a table of SPSS: " + _PANDAS.format("read_spss", "{name}"),
    (".feather", ".arrow", ".ipc"): "an Arrow file: " + _PANDAS.format("read_feather", "{name}"),
    (".orc",): "an ORC file: " + _PANDAS.format("read_orc", "{name}"),
    (".pkl", ".pickle"): "a pickle of Python, which may run anything when it is opened: have it written to Parquet",
    (".h5", ".hdf5", ".hdf"): "an HDF5 file: " + _PANDAS.format("read_hdf", "{name}"),
    (".avro",): "an Avro file, which is not read: write it to Parquet, with DuckDB or Spark for example, and give that",
    (
        ".xes",
        ".xes.gz",
    ): "an event log in XES: write it to CSV, in Python with pm4py.convert_to_dataframe, and give that",
    (".xml",): "an XML document, which is not read: write a CSV file of its events, and give that",
    (".json", ".json.gz"): (
        "JSON, which is read with one object a line: if each line is one, rename it to .jsonl; if all is one list, "
        "write its objects as lines, with jq -c '.[]' {name} > events.jsonl for example"
    ),
    (".xls", ".xlsb", ".ods"): "a workbook in a format that is not read: save it as .xlsx or the sheet as CSV UTF-8",
    (".mdb", ".accdb"): "a database of Access: export the table as CSV, and give that",
    (".bz2", ".xz"): "packed in a way that is not read: unpack it, or pack it with gzip or zstd",
}
# What is beside the files of a Delta, a Hudi and an Iceberg table: what keeps track of their versions.
TABLE_FORMAT_MARKS = ("_delta_log", ".hoodie", "metadata/*.metadata.json")


def files_of(text: str) -> list[Path]:
    """The files a path, glob or directory stands for, sorted.

    Raises:
        InputError: there are none, or the text is a network address.
    """
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://|jdbc:", text):
        raise InputError(
            "events must be a local file, glob, directory or database, got a network address; databases are "
            "reached at postgresql://, sqlite:// and such (docs/engines.md), files of a lake with --engine spark"
        )
    path = at_home(text)
    if path.is_dir():
        below = sorted(path.rglob("*"))
        if any(file.match(mark) for file in below for mark in TABLE_FORMAT_MARKS):
            raise table_format(text)
        files = [file for file in below if _is_data(file, path)]
        if not files:
            raise InputError(f"the directory {text} has no Parquet or CSV files")
        return files
    if path.exists():
        return [path]
    if glob.has_magic(text):
        files = sorted(file for file in map(Path, glob.glob(str(path), recursive=True)) if file.is_file())  # noqa: PTH207 (absolute patterns)
        if not files:
            raise InputError(f"no file matches {text}")
        return files
    raise absent("file or directory", text)


def at_home(text: str) -> Path:
    """The path, `~` and `~NAME` standing for a home folder where there is such a user."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)


def absent(what: str, text: str) -> InputError:
    """The error for a path that leads nowhere, without the path if it looks like a mistyped address."""
    if "@" in text:
        return InputError(f"there is no such {what}; a connection address is written engine://user@host:port/database")
    return InputError(f"there is no {what} {text}")


def folder_keys(names: Iterable[str]) -> tuple[str, ...]:
    """The columns that stand in names of folders such as day=2013-01-31, from the outermost one."""
    return tuple(name.partition("=")[0] for name in names if "=" in name)


def require_one_place(columns: EventColumns, own: Container[str], keys: Container[str], file: str) -> None:
    """Raise `InputError` if a column stands in a file and in the name of a folder: which one is meant, nothing says.

    Engines choose by how all files are laid out, so that one file more would change what those before it mean.
    """
    for role, name in columns.roles:
        if name in own and name in keys:
            raise InputError(
                f"{file} has a column {name!r} for the {role}, and a folder that it is in is called {name}=... too: "
                f"rename one of them, or write the files without that column"
            )


def require_one_type(columns: EventColumns, role: str, types: Collection[str]) -> None:
    """Raise `InputError` if a column is of several types in several files."""
    if len(types) > 1:
        raise InputError(
            f"{columns.title(role)} has different types in different files ({', '.join(sorted(types))}); write it "
            f"with one type"
        )


def table_format(directory: str) -> InputError:
    """The error for a directory whose Parquet files are those of a table in several versions."""
    return InputError(
        f"the directory {directory} holds a table in the format of Delta, Hudi or Iceberg, whose files keep rows of "
        f"older versions too; give the folder of one Delta table, which holds its _delta_log, or "
        f"iceberg:CATALOG.NAMESPACE.TABLE, without --engine; or read it as a table of Spark"
    )


def kind_of(files: list[Path], text: str, *, csv: bool = False) -> str:
    """What all files are: Parquet, DuckDB, SQLite, JSON Lines, Excel or CSV. Raises `InputError` if they differ.

    With `csv`, that they are CSV was said, and their names need not end as CSV does.
    """
    kinds = {_kind(path, csv=csv) for path in files}
    if len(kinds) > 1:
        raise InputError(f"{text} holds files of several kinds ({', '.join(sorted(kinds))}); give a glob for one kind")
    return kinds.pop()


def _is_data(file: Path, directory: Path) -> bool:
    """False for what writers leave beside their data: names that begin with a dot or an underscore."""
    hidden = any(part.startswith((".", "_")) for part in file.relative_to(directory).parts)
    suffixes = CSV_SUFFIXES + PARQUET_SUFFIXES + JSON_LINES_SUFFIXES
    return not hidden and file.name.lower().endswith(suffixes) and file.is_file()


def _kind(path: Path, *, csv: bool) -> str:
    """What a file is, by its first bytes where these tell and by its name otherwise."""
    try:
        head = first_bytes(path, 16)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    name = path.name.lower()
    # Encrypted files begin with the second; what reads them says so.
    if head[:4] in (b"PAR1", b"PARE"):
        return "Parquet"
    if head[8:12] == b"DUCK":
        return "DuckDB"
    if head == SQLITE:
        return "SQLite"
    if name.endswith(EXCEL_SUFFIXES):
        return "Excel"
    for suffixes, said in _OTHER_KINDS.items():
        if name.endswith(suffixes):
            raise InputError(f"{path} is {said.format(name=path.name)}")
    if head[:4] == b"PK\3\4":
        raise InputError(f"{path} is {_UNPACK}; if it is a workbook of Excel, its name must end in .xlsx")
    if name.endswith(PARQUET_SUFFIXES) and not csv:
        raise InputError(
            f"{path} is no Parquet file, whatever its name says: if it is CSV, give it a name that ends in "
            f"{CSV_SUFFIXES[0]}, or say how it is laid out with --delimiter; else it is packed and has to be unpacked, "
            f"or damaged and has to be written again"
        )
    if name.endswith(JSON_LINES_SUFFIXES):
        return "JSON Lines"
    if csv or name.endswith(CSV_SUFFIXES):
        return "CSV"
    raise InputError(
        f"{path} is neither Parquet nor a DuckDB or SQLite database, and its name does not end as CSV does "
        f"({CSV_SUFFIXES[0]}); if it is CSV all the same, say how it is laid out with --delimiter"
    )


def first_bytes(path: Path, number: int) -> bytes:
    """The first bytes of a file, without taking its locks from a database that is open in this process.

    A process that closes a file gives up every lock it has on it (POSIX has it so), also those that a database library
    relies on which has the same file open: another process could then write to it at the same time. So where this
    process has the file open already, it is read through that handle, and none is closed.

    Raises:
        OSError: the file cannot be read.
    """
    for handle in _handles_of(path):
        try:
            head = os.pread(handle, number, 0)
            if os.path.samestat(os.fstat(handle), path.stat()):
                return head
        except OSError:  # open for writing only, or closed by now
            continue
    with path.open("rb") as stream:
        return stream.read(number)


def _handles_of(path: Path) -> Iterator[int]:
    """The handles that this process has of a file, where the system tells."""
    wanted = path.stat()
    try:
        names = [file.name for file in Path("/dev/fd").iterdir()]
    except OSError:
        return
    for handle in map(int, filter(str.isdigit, names)):
        try:
            found = os.fstat(handle)
        except OSError:  # closed by now, as is the one that the folder was listed by
            continue
        if os.path.samestat(found, wanted):
            yield handle


def text_of(file: Path) -> io.TextIOWrapper:
    """A file of text, compressed or not; what is not UTF-8 is replaced."""
    return io.TextIOWrapper(
        pa.input_stream(str(file), compression="detect"), encoding="utf-8-sig", errors="replace", newline=""
    )


def first_text(file: Path, characters: int) -> str:
    """The first characters of a file of text; raises `InputError` if it cannot be read."""
    try:
        with text_of(file) as stream:
            return stream.read(characters)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{file} cannot be read: {str(error).partition(chr(10))[0]}") from None
