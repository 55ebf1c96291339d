"""Cases for every reader: something valid, made once, then changed in none, one or a few places."""

from __future__ import annotations

import csv
import datetime
import io
import json
import sqlite3
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Literal

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from click.testing import CliRunner
from hypothesis import strategies as st

from dpwindows.cli import main
from dpwindows.release import checks
from dpwindows.release import files as release_files
from tests.fuzz.case import Case
from tests.fuzz.changes import NAMES, ODD_TEXTS, as_json, byte_changes, table_changes, tree_changes
from tests.fuzz.plan_inputs import plan_files
from tests.fuzz.state_inputs import ledgers, states
from tests.fuzz.words import COLUMNS, PLAN, RANGE, STREAM, release_words, run

# --- Events ---------------------------------------------------------------------------------------------------------

_ROWS = st.lists(
    st.tuples(
        st.sampled_from(("ann", "bob", "cy", "", "[/b]", "日本")),
        st.datetimes(datetime.datetime(2012, 12, 31), datetime.datetime(2013, 1, 9)),
        st.integers(0, 5),
    ),
    max_size=8,
)


@st.composite
def event_tables(draw: st.DrawFn) -> tuple[pa.Table, tuple[str, ...]]:
    """A log as a table, most often a valid one, and what was changed."""
    rows = draw(_ROWS)
    who, at, times = [row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows]
    kind = draw(st.sampled_from(("us", "s", "date", "text", "zone")))
    if kind == "date":
        when = pa.array([moment.date() for moment in at], pa.date32())
    elif kind == "text":
        when = pa.array([moment.isoformat(" ", "seconds") for moment in at], pa.string())
    else:
        whole = [moment.replace(microsecond=0) for moment in at]
        when = pa.array(whole, pa.timestamp("us" if kind == "zone" else kind, "UTC" if kind == "zone" else None))
    table = pa.table({"who": pa.array(who, pa.string()), "at": when, "times": pa.array(times, pa.int64())})
    changed = []
    for _ in range(draw(st.sampled_from((0, 0, 0, 1, 1, 2)))):
        if table.num_columns:
            table, how = draw(table_changes(table))
            changed.append(how)
    return table, tuple(changed)


def _counted(draw: st.DrawFn) -> tuple[str, ...]:
    return draw(st.sampled_from(((), (), ("--count", "times"))))


@st.composite
def csv_events(draw: st.DrawFn) -> Case:
    """CSV text with other values, quotes, lines, names, encodings."""
    lines = [["who", "at", "times"]]
    lines += [[who, at.isoformat(" ", "seconds"), str(n)] for who, at, n in draw(_ROWS)]
    changed = []
    for _ in range(draw(st.sampled_from((0, 0, 1, 1, 2)))):
        # The line of names once in a while only.
        row = draw(st.integers(min(1, len(lines) - 1) if draw(st.integers(0, 5)) else 0, len(lines) - 1))
        how = draw(st.sampled_from(("value", "value", "value", "drop", "add", "twice", "name")))
        changed.append(how)
        if how == "value" and lines[row]:
            lines[row][draw(st.integers(0, len(lines[row]) - 1))] = draw(st.sampled_from(ODD_TEXTS))
        elif how == "drop" and lines[row]:
            del lines[row][-1]
        elif how == "add":
            lines[row].append(draw(st.sampled_from(ODD_TEXTS)))
        elif how == "twice":
            lines.append(list(lines[row]))
        elif how == "name":
            lines[0].append(draw(st.sampled_from(NAMES)))
    text = io.StringIO()
    quoting: Literal[0, 1] = 1 if draw(st.booleans()) else 0  # every value in quotes, or where it needs them
    csv.writer(text, quoting=quoting, lineterminator=draw(st.sampled_from(("\n", "\r\n")))).writerows(lines)
    content = text.getvalue().encode(draw(st.sampled_from(("utf-8",) * 6 + ("utf-8-sig", "utf-16"))))
    if draw(st.integers(0, 9)) == 5:
        content = draw(byte_changes(content))
        changed.append("bytes")
    return Case(release_words("log.csv", *_counted(draw)), {"log.csv": content}, (0, 2), "out.json", tuple(changed))


@st.composite
def parquet_events(draw: st.DrawFn) -> Case:
    """Parquet files of any types and names; some with damaged bytes."""
    table, changed = draw(event_tables())
    sink = pa.BufferOutputStream()
    try:
        pa.parquet.write_table(table, sink, compression=draw(st.sampled_from(("none", "snappy", "zstd"))))
        content = bytes(sink.getvalue().to_pybytes())
    except pa.ArrowException:  # a type that Parquet has not
        content = b"PAR1"
    if draw(st.integers(0, 9)) == 5:
        content, changed = draw(byte_changes(content)), (*changed, "bytes")
    files = {"log/a.parquet": content}
    if draw(st.integers(0, 9)) == 5:
        other = pa.BufferOutputStream()
        pa.parquet.write_table(pa.table({"who": ["ann"], "at": [datetime.date(2013, 1, 2)], "times": [1]}), other)
        files["log/b.parquet"] = bytes(other.getvalue().to_pybytes())
    return Case(release_words("log", *_counted(draw)), files, (0, 2), "out.json", changed)


@cache
def _counts() -> pa.Table:
    """The result of the query that is printed for the commands here."""
    columns = ("--dialect", "duckdb", "--table", "log", "--types", "item=text,time=date")
    printed = CliRunner().invoke(main, ["sql", *COLUMNS, *RANGE, "--window", "cumulative", *columns])
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE log AS SELECT 'u' || range % 7 AS who, DATE '2012-12-30' + CAST(range * 5 % 13 AS INTEGER) "
            "AS at FROM range(60)"
        )
        return connection.sql(printed.stdout).to_arrow_table()


@st.composite
def counts_files(draw: st.DrawFn) -> Case:
    """Counts that were handed over, as CSV or Parquet: other rows, types, names, values or bytes."""
    # The order of rows means nothing, and makes one valid file many.
    table, changed = _counts().take(pa.array(draw(st.permutations(range(_counts().num_rows))))), []
    for _ in range(draw(st.sampled_from((0, 0, 0, 1, 1, 2)))):
        if table.num_columns:
            table, how = draw(table_changes(table))
            changed.append(how)
    sink, ending = pa.BufferOutputStream(), draw(st.sampled_from(("csv", "parquet")))
    try:
        pa.parquet.write_table(table, sink) if ending == "parquet" else pa.csv.write_csv(table, sink)
        content = bytes(sink.getvalue().to_pybytes())
    except pa.ArrowException:  # a type that the format has not
        content = b"PAR1"
    if draw(st.integers(0, 9)) == 5:
        content = draw(byte_changes(content))
        changed.append("bytes")
    name = f"counts.{ending}"
    words = ("release", "--counts", name, *COLUMNS, *RANGE, *PLAN, "--table", "log", "-o", "out.json")
    return Case(words, {name: content}, (0, 2), "out.json", tuple(changed))


def _made(suffix: str, make: Callable[[Path], None]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"made{suffix}"
        make(path)
        return path.read_bytes()


@st.composite
def sqlite_events(draw: st.DrawFn) -> Case:
    """SQLite files: any value in any column, odd table and column names, damaged pages."""
    affinity = draw(st.sampled_from(("", "TEXT", "TEXT", "TEXT", "INTEGER", "BLOB", "NUMERIC", "REAL")))
    rows: list[list[Any]] = [[who, at.isoformat(" ", "seconds"), n] for who, at, n in draw(_ROWS)]
    values = [*ODD_TEXTS, None, 0, -1, 2**62, 1.5, b"\xff\x00", "2013-01-03"]
    changed = draw(st.sampled_from((0, 0, 1, 2))) if rows else 0
    for _ in range(changed):
        rows[draw(st.integers(0, len(rows) - 1))][draw(st.integers(0, 2))] = draw(st.sampled_from(values))
    table = draw(st.sampled_from(("log", "log", "a.b", "[/b]", 'q"q', "日本", "a'b")))

    def make(path: Path) -> None:
        name = '"' + table.replace('"', '""') + '"'
        with sqlite3.connect(path) as connection:
            connection.execute(f"CREATE TABLE {name} (who {affinity}, at TEXT, times INTEGER)")
            connection.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", rows)
        connection.close()

    content = _made(".sqlite", make)
    bytes_too = draw(st.integers(0, 7)) == 5
    if bytes_too:
        content = draw(byte_changes(content, most=20))
    more = ("--table", draw(st.sampled_from((*(table,) * 20, *NAMES)))) if draw(st.integers(0, 2)) == 1 else ()
    arguments = release_words("log.sqlite", *more, *_counted(draw))
    return Case(arguments, {"log.sqlite": content}, (0, 2), "out.json", (f"{changed} values", f"bytes: {bytes_too}"))


@st.composite
def duckdb_events(draw: st.DrawFn) -> Case:
    """DuckDB files with tables of any types, views, damaged blocks."""
    table, changed = draw(event_tables())
    view = draw(st.sampled_from((None, None, "SELECT * FROM log", "SELECT who, at, 1 / 0 AS times FROM log")))

    def make(path: Path) -> None:
        with duckdb.connect(str(path)) as connection:
            connection.register("given", table)
            connection.execute("CREATE TABLE log AS SELECT * FROM given")
            if view:
                connection.execute(f"CREATE VIEW seen AS {view}")

    try:
        content = _made(".duckdb", make)
    except duckdb.Error:  # two columns of one name, or a name or type that it has not
        table, view, changed = pa.table({"who": ["ann"], "at": [datetime.date(2013, 1, 2)], "times": [1]}), None, ()
        content = _made(".duckdb", make)
    if draw(st.integers(0, 9)) == 5:
        content, changed = draw(byte_changes(content, most=20)), (*changed, "bytes")
    more = ("--table", "seen" if view else "log")
    return Case(
        release_words("log.duckdb", *more, *_counted(draw)), {"log.duckdb": content}, (0, 1, 2), "out.json", changed
    )


@st.composite
def frames(draw: st.DrawFn) -> Case:
    """Data frames and Arrow tables, handed to the Python interface."""
    table, changed = draw(event_tables())
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    kind = draw(st.sampled_from(("arrow", "pandas", "polars")))
    return Case(("@frame", kind, *_counted(draw)), {"frame": bytes(sink.getvalue().to_pybytes())}, changed=changed)


# --- Releases -------------------------------------------------------------------------------------------------------


@cache
def _valid_release() -> tuple[pa.Table, dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        log, out = Path(folder) / "log.csv", Path(folder) / "out.parquet"
        log.write_text("who,at\nann,2013-01-02\nbob,2013-01-03\n")
        asked = ("--window", "rolling:3", "--window", "any:2", "--at-least", "1", "--exactly", "2")
        run("release", str(log), *COLUMNS, *RANGE, *asked, "--unit", "event", "--rho", "1", "-o", str(out))
        return release_files.read(out)


@st.composite
def releases(draw: st.DrawFn) -> Case:
    """Release files of every format whose metadata or rows were changed before they were written, or bytes after."""
    table, metadata = _valid_release()
    changed: list[str] = []
    for _ in range(draw(st.sampled_from((0, 0, 0, 0, 0, 1, 1, 2)))):
        if draw(st.integers(0, 4)):
            metadata, how = draw(tree_changes(metadata))
        else:
            table, how = draw(table_changes(table))
        changed.append(how)
    ending = draw(st.sampled_from((".parquet", ".csv", ".json")))
    with tempfile.TemporaryDirectory() as folder:
        try:
            release_files.write(table, metadata, Path(folder) / f"given{ending}", force=False)
        except Exception as error:  # what our own writer cannot write, another may have written
            changed.append(f"unwritable: {type(error).__name__}")
            ending, described = ".parquet", {release_files.KEY: as_json(metadata)}
            pa.parquet.write_table(table.replace_schema_metadata(described), Path(folder) / "given.parquet")
        files = {path.name: path.read_bytes() for path in Path(folder).iterdir()}
    if draw(st.integers(0, 9)) == 5:
        name = draw(st.sampled_from(sorted(files)))
        files[name] = draw(byte_changes(files[name]))
        changed.append("bytes")
    reader = draw(st.sampled_from((*(("@load",),) * 7, ("report", "-o", "page.html"))))
    return Case((reader[0], f"given{ending}", *reader[1:]), files, (0, 2), "page.html", tuple(changed))


def _computed_again(tree: Any) -> str:
    """Give a changed release the checksum of what it holds now, if it can be read, so that it passes the comparison."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "given.json"
        path.write_bytes(as_json(tree))
        try:
            table, metadata = release_files._read_json(path)
            stated = {name: value for name, value in metadata.items() if name != checks.CHECKSUM}
            tree["metadata"][checks.CHECKSUM] = checks.checksum_of(table, stated)
        except Exception as error:  # whatever the reader is in for
            return f"no checksum: {type(error).__name__}"
    return "another checksum"


@st.composite
def json_releases(draw: st.DrawFn) -> Case:
    """A JSON release changed as a tree: rows too, without the checks of a writer."""
    table, metadata = _valid_release()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "given.json"
        release_files.write(table, metadata, path, force=False)
        tree: Any = json.loads(path.read_text())
    changed = []
    forged = bool(draw(st.integers(0, 3)))
    if forged:
        for row in draw(st.lists(st.integers(0, len(tree["rows"]) - 1), max_size=3)):
            tree["rows"][row]["estimate"] = draw(st.floats(-1e9, 1e9))
    for _ in range(draw(st.sampled_from((0, 0, 0, 1, 1, 2)))):
        part = draw(st.sampled_from(("metadata",) * 5 + ("rows",) * 4 + (None,)))
        if part is None or not (isinstance(tree, dict) and isinstance(tree.get(part), (dict, list)) and tree[part]):
            break
        tree[part], how = draw(tree_changes(tree[part]))
        changed.append(f"{part}{how}")
    if forged:
        changed.append(_computed_again(tree))
    if draw(st.integers(0, 15)) == 7:
        tree, how = draw(tree_changes(tree))
        changed.append(how)
    return Case(("@load", "given.json"), {"given.json": as_json(tree)}, (0, 2), None, tuple(changed))


# --- Command lines --------------------------------------------------------------------------------------------------

_NUMBERS = (
    *("0", "-1", "1", "2", "3", "7", "1e300", "1e-300", "nan", "inf", "-inf", "5e-324", "1e-17", "0.5", "9" * 19),
    *("9" * 400, "9" * 5000, "9223372036854775807", "9223372036854775808", "1_0", "١", "", " 1", "+1", "0x1", "1e6"),
)
_WINDOWS = (
    *("cumulative", "rolling:3", "rolling:1", "any", "any:2", "fixed:2", "rolling:0", "rolling:", "any:-1", "any:x"),
    *(f"rolling:{'9' * 30}", f"any:{'9' * 5000}", "rolling:٣", "[/b]", "", " rolling:3 ", "rolling:3:3", "CUMULATIVE"),
)
_UNITS = ("event", "item", "item-add-remove", "item-per:2", f"item-per:{'9' * 5000}", "item-per:0", "[/b]", "")
_OPTIONS: dict[str, tuple[str, ...]] = {
    "--window": _WINDOWS,
    "--unit": _UNITS,
    "--epsilon": _NUMBERS,
    "--delta": _NUMBERS,
    "--rho": _NUMBERS,
    "--steps": _NUMBERS,
    "--at-least": _NUMBERS,
    "--exactly": _NUMBERS,
    "--confidence": _NUMBERS,
    "--max-draws": _NUMBERS,
    "--weights": (*_NUMBERS, "1,1", "1,,1", ","),
    "--criterion": ("rms", "max", "[/b]"),
    "--strategy": ("auto", "direct", "filter", "tree", "paper", "[/b]", ""),
    "--start": (*ODD_TEXTS, "2013-01-01"),
    "--end": (*ODD_TEXTS, "2013-01-08"),
    "--step": ("1d", "1mo", "7", "0d", "9" * 5000, "9" * 5000 + "d", "١d", "1y", "", "24h", "1s"),
    "--time-zone": ("UTC", "Asia/Kolkata", "../etc/passwd", "[/b]", "", "a" * 300, "/etc/localtime"),
    "--memory-limit": ("1GB", "9" * 30 + "GB", "0GB", "[/b]", "-1GB"),
    "--item": NAMES,
    "--time": NAMES,
    "--count": NAMES,
    "--dataset": NAMES,
    "--ledger": ("ledger", "/", ".", "[/b]", "~nouser/x", "no/such"),
    "-o": ("out.json", "out.csv", "[/b].json", "/", ".", "", "~nouser/x.csv", "x" * 300 + ".json", "out.json/x.json"),
    "--target-std": _NUMBERS,
    "--horizon": _NUMBERS,
    "--through": (*ODD_TEXTS, "2013-01-06"),
    "--k": _NUMBERS,
}
_PLANNED = ("--window", "rolling:3", "--unit", "event", "--epsilon", "1")
_LINES: tuple[tuple[str, ...], ...] = (
    ("plan", *_PLANNED, "--steps", "9"),
    ("plan", *_PLANNED, "--start", "2013-01-01", "--end", "2013-01-08", "--json"),
    ("plan", "--window", "any:3", "--unit", "item", "--rho", "1", "--steps", "9"),
    ("plan", "--window", "rolling:3", "--unit", "event", "--target-std", "5", "--steps", "9"),
    ("plan", *_PLANNED, "--stream"),
    (*release_words("log.csv"), "--memory-limit", "1GB"),
    ("stream", "create", "state", *STREAM, "--rho", "1"),
    ("ledger", "create", "ledger", "--dataset", "log", "--unit", "event", "--epsilon", "1"),
    ("theory", "table", "--steps", "6", "--window", "3", "--epsilon", "1"),
    (*release_words("log.csv"), "--count", "times", "--confidence", "0.9"),
)


_USUAL = {
    "--epsilon": st.floats(0.01, 20).map(repr),
    "--rho": st.floats(0.01, 20).map(repr),
    "--steps": st.integers(1, 30).map(str),
    "--window": st.one_of(
        st.integers(1, 40).map(lambda n: f"rolling:{n}"),
        st.integers(1, 5).map(lambda n: f"any:{n}"),
        st.just("cumulative"),
    ),
    "--confidence": st.floats(0.5, 0.999).map(repr),
    "--target-std": st.floats(1, 100).map(repr),
}


@st.composite
def lines(draw: st.DrawFn) -> Case:
    """Command lines with other values, without some words, with others twice."""
    words = list(draw(st.sampled_from(_LINES)))
    changed = []
    if words[0] != "theory":
        for place, word in enumerate(words[:-1]):
            if word in _USUAL:
                words[place + 1] = draw(_USUAL[word])
    for _ in range(draw(st.sampled_from((0, 0, 0, 1, 1, 2)))):
        named = [i for i, word in enumerate(words[:-1]) if word in _OPTIONS]
        how = draw(st.sampled_from(("value", "value", "value", "value", "option", "drop", "place")))
        if how == "value" and named:
            place = draw(st.sampled_from(named))
            words[place + 1] = draw(st.sampled_from(_OPTIONS[words[place]]))
        elif how == "option":
            option = draw(st.sampled_from(sorted(_OPTIONS)))
            words += [option, draw(st.sampled_from(_OPTIONS[option]))]
        elif how == "drop":
            del words[draw(st.integers(0, len(words) - 1))]
        elif how == "place":
            place = draw(st.integers(1, len(words) - 1))
            words[place] = draw(st.sampled_from((*NAMES, *_NUMBERS, "/", ".", "log.csv", "~nouser/x.csv")))
        changed.append(how)
    log = b"who,at,times\nann,2013-01-02,1\nbob,2013-01-03,2\n"
    return Case(tuple(words), {"log.csv": log}, (0, 2), None, tuple(changed))


READERS: dict[str, Callable[[], st.SearchStrategy[Case]]] = {
    "csv": csv_events,
    "parquet": parquet_events,
    "sqlite": sqlite_events,
    "duckdb": duckdb_events,
    "frames": frames,
    "releases": releases,
    "json-releases": json_releases,
    "states": states,
    "ledgers": ledgers,
    "lines": lines,
    "plan-files": plan_files,
    "counts": counts_files,
}
