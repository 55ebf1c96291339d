"""Counts that were made elsewhere: the result of the query that `dpwindows sql` prints, read from a file.

The file must be whole, and made for what is asked of it; both are read off the row that closes it. What its numbers
must obey, whatever log they are of, is looked at where they are used (`count.possible`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from dpwindows.ask.counting_rule import LOST
from dpwindows.ask.formats import COUNTS, require_known
from dpwindows.ask.queries import OCCURRENCES
from dpwindows.count.engines.sql import SCHEMA, whole
from dpwindows.count.events import CountsFile
from dpwindows.count.query.first_runs import series_number
from dpwindows.count.query.standalone import DESCRIPTION, made_for
from dpwindows.count.request import CountRequest
from dpwindows.count.sources.csv_files import delimiter_of
from dpwindows.count.sources.files import files_of, first_text, kind_of
from dpwindows.count.sources.names import listed
from dpwindows.errors import EngineError, InputError

_NAMES = (*SCHEMA.names, DESCRIPTION)
_LONGEST_HEADER = 1 << 16
_AGAIN = "Give the options that the query was printed with, or print it again with these ('dpwindows sql') and run that"


def signed_counts(request: CountRequest) -> pa.Table:
    """As `engines.signed_counts` says, of the counts in a file.

    Raises:
        InputError: the file cannot be read, is no whole result, or is of another query than is asked for.
    """
    assert isinstance(request.source, CountsFile)
    path = str(request.source.path)
    reason = "counts in a file were made before"
    request.settings.refuse(
        "counts",
        **dict.fromkeys(("memory_limit", "spill_directory", "threads", "password_file", "spark_master"), reason),
    )
    files = files_of(path)
    kind = kind_of(files, path)
    if kind not in ("CSV", "Parquet"):
        raise InputError(f"counts are read from CSV and Parquet, and {path} is {kind}")
    read = pa.concat_tables([_csv(file) if kind == "CSV" else _parquet(file) for file in files])
    try:
        counts = whole(read.select(SCHEMA.names))
    except EngineError:
        raise InputError(
            f"{path} is not the whole result of the query: {read.num_rows:,} rows are there, and the one that closes "
            "it says otherwise, is missing or is there twice. Save all rows, once, without a limit"
        ) from None
    held = _description(path, read)
    _require_same(path, held, json.loads(json.dumps(made_for(request))))
    _require_no_others(path, counts, held)
    return counts


def _csv(file: Path) -> pa.Table:
    """The columns of a CSV file; the names of columns in any case, for there are databases that change it."""
    mark = delimiter_of(re.split("[\r\n]", first_text(file, _LONGEST_HEADER), maxsplit=1)[0])
    try:
        names = pa_csv.open_csv(file, parse_options=pa_csv.ParseOptions(delimiter=mark)).schema.names
        texts = pa_csv.read_csv(
            file,
            parse_options=pa_csv.ParseOptions(delimiter=mark),
            convert_options=pa_csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string())),
        )
    except (OSError, UnicodeError, pa.ArrowException) as error:
        raise InputError(f"{file} cannot be read as CSV: {str(error).partition(chr(10))[0]}") from None
    return _typed(file, texts, "line", 2)


def _parquet(file: Path) -> pa.Table:
    try:
        return _typed(file, pq.read_table(file, partitioning=None), "row", 1)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{file} cannot be read as Parquet: {str(error).partition(chr(10))[0]}") from None


def _typed(file: Path, table: pa.Table, row: str, first: int) -> pa.Table:
    """Our columns of a table; what is in its rows that close a result is left to the column of descriptions."""
    table = table.rename_columns([name.strip().lower() for name in table.column_names])
    for name in _NAMES:
        if table.column_names.count(name) != 1:
            raise InputError(
                f"{file} has no column {name!r}, or several, and so is no result of a query that 'dpwindows sql' "
                f"printed; its columns are {listed(table.column_names)}"
            )
    closing = _integers(file, "closing", table["closing"], row, first)
    found = {"closing": closing, DESCRIPTION: pc.cast(table[DESCRIPTION], pa.string())}
    for name in SCHEMA.names[:-1]:
        column = table[name] if table[name].type != pa.null() else table[name].cast(pa.int64())
        if name in ("k", "step", "recency"):
            # Of a row that closes they mean nothing, and are null, or the text that a database has for it.
            column = pc.if_else(pc.equal(closing, 1), pa.scalar("0").cast(column.type), column)
        found[name] = _integers(file, name, column, row, first)
    return pa.table({name: found[name] for name in _NAMES})


def _integers(file: Path, name: str, column: pa.ChunkedArray, row: str, first: int) -> pa.ChunkedArray:
    kind, wrong = column.type, pc.is_null(column)
    if pa.types.is_string(kind):
        wrong = pc.or_kleene(wrong, pc.invert(pc.match_substring_regex(column, r"^-?[0-9]{1,18}$")))
    elif not (pa.types.is_integer(kind) or pa.types.is_decimal(kind)):
        raise InputError(f"the column {name!r} of {file} is of type {kind}: write it as whole numbers")
    if (at := pc.index(wrong, True).as_py()) >= 0:
        value = column[at].as_py()
        shown = "null" if value is None else repr(value)
        raise InputError(f"{row} {at + first:,} of {file}: {name} must be a whole number, got {shown}")
    try:
        return pc.cast(column, pa.int64())
    except pa.ArrowException:
        raise InputError(f"the column {name!r} of {file} holds other numbers than whole ones of 64 bits") from None


def _description(path: str, read: pa.Table) -> dict[str, Any]:
    """What the row that closes a whole result says."""
    (text,) = read.filter(pc.equal(read["closing"], 1))[DESCRIPTION].to_pylist()
    try:
        held = json.loads(text or "")
    except ValueError:
        held = None
    if not isinstance(held, dict) or "format" not in held:
        raise InputError(
            f"the row that closes {path} does not say what was counted: save the column {DESCRIPTION!r} as the query "
            "gives it"
        )
    require_known(held["format"], COUNTS, f"{path} holds counts")
    return held


def _require_same(path: str, held: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """Check that a file holds what is asked of it; it may hold more thresholds, and occurrences."""
    for name, wanted in asked.items():
        own = held.get(name)
        if name == "at-least" and isinstance(own, list):
            missing = [f"at least {k}" for k in wanted if k not in own]
        elif name == "occurrences" and isinstance(own, bool):
            missing = ["occurrences"] * (wanted and not own)
        elif own == wanted:
            continue
        else:
            raise InputError(
                f"{path} was counted {_option(name, own)}, and this release asks for counts {_option(name, wanted)}. "
                f"{_AGAIN}"
            )
        if missing:
            raise InputError(f"{path} holds no counts of {missing[0]}, which this release measures. {_AGAIN}")


def _option(name: str, value: Any) -> str:
    """An option with its value, in words."""
    if value in (None, False, [], {}):
        return f"without --{name}"
    if isinstance(value, dict):
        value = " and ".join(f"{key} --values {','.join(map(str, values))}" for key, values in value.items())
    text = "" if value is True else ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return f"with --{name} {text[:200]}".rstrip()


def _require_no_others(path: str, counts: pa.Table, held: Mapping[str, Any]) -> None:
    """Check that there are no counts but those that the file says it has."""
    series = [series_number(place) for place in range(len(held["window"]))]
    known = [*held["at-least"], *[OCCURRENCES] * held["occurrences"], *[LOST] * held["estimate-loss"], *series]
    for k in pc.unique(counts["k"]).to_pylist():
        if k not in known:
            raise InputError(f"{path} has rows with k = {k}, and its query counts none. Save the result as it is")
