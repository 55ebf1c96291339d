"""Cases for states of streams and for ledgers: other values, rows, columns and tables in them, or damaged bytes."""

from __future__ import annotations

import sqlite3
import tempfile
from functools import cache
from pathlib import Path

from hypothesis import strategies as st

from tests.fuzz.case import Case
from tests.fuzz.changes import NAMES, byte_changes
from tests.fuzz.words import COLUMNS, PLAN, RANGE, STREAM, release_words, run

# --- States -----------------------------------------------------------------------------------------------------------

_BY = ("--by", "origin", "--values", "EWR,JFK")


@cache
def _valid_state(*more: str) -> dict[str, bytes]:
    """The files of a state: itself, its mark and its items."""
    with tempfile.TemporaryDirectory() as folder:
        state, log = str(Path(folder) / "state"), Path(folder) / "log.csv"
        log.write_text("who,at,origin\nann,2013-01-02,EWR\nbob,2013-01-03,JFK\n")
        run("stream", "create", state, *STREAM, "--rho", "1", *more)
        run("stream", "advance", state, str(log), "--through", "2013-01-04", "-o", str(Path(folder) / "o.json"))
        files = [
            path for path in Path(folder).rglob("*") if path.is_file() and path not in (log, Path(folder) / "o.json")
        ]
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@st.composite
def states(draw: st.DrawFn) -> Case:
    """States, with and without groups: damaged bytes, changed tables, or a file that is lost."""
    files, changed = dict(_valid_state(*draw(st.sampled_from(((), _BY))))), []
    how = draw(st.sampled_from(("none",) * 7 + ("bytes", "bytes", "rows", "rows", "rows", "lost")))
    if how == "rows":
        files["state"], what = draw(_sqlite_changes(files["state"]))
        changed.append(what)
    elif how != "none":
        one = draw(st.sampled_from(sorted(files)))
        content = files.pop(one)
        changed.append(one)
        if how == "bytes":
            files[one] = draw(byte_changes(content, most=40))
    # The state is closed up to the fourth of January.
    through = draw(st.integers(5, 20))
    rows = draw(st.lists(st.tuples(st.sampled_from(("ann", "bob", "[/b]", "日本")), st.integers(4, through - 1))))
    log = "who,at,origin\n" + "".join(f"{who},2013-01-{day:02},JFK\n" for who, day in rows)
    commands = (
        ("stream", "show", "state"),
        ("stream", "show", "state", "-o", "out.json"),
        ("stream", "advance", "state", "--empty", "--through", f"2013-01-{through:02}"),
        *[("stream", "advance", "state", "log.csv", "--through", f"2013-01-{through:02}")] * 4,
        ("stream", "advance", "state", "--through", "2013-01-04"),
    )
    files["log.csv"] = log.encode()
    return Case(draw(st.sampled_from(commands)), files, (0, 1, 2), None, (how, *changed))


# --- Ledgers ----------------------------------------------------------------------------------------------------------


@cache
def _valid_ledger() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        ledger, log = str(Path(folder) / "ledger"), Path(folder) / "log.csv"
        log.write_text("who,at\nann,2013-01-02\nbob,2013-01-03\n")
        run("ledger", "create", ledger, "--dataset", "log", "--unit", "event", "--epsilon", "5")
        spend = (*COLUMNS, *RANGE, *PLAN, "--ledger", ledger, "--dataset", "log")
        run("release", str(log), *spend, "-o", str(Path(folder) / "out.json"))
        return Path(ledger).read_bytes()


@st.composite
def ledgers(draw: st.DrawFn) -> Case:
    """Ledgers with damaged bytes, or with values of their own tables changed."""
    content, changed = _valid_ledger(), ""
    how = draw(st.sampled_from(("none",) * 4 + ("bytes", "rows", "rows", "rows")))
    if how == "bytes":
        content = draw(byte_changes(content, most=10))
    elif how == "rows":
        content, changed = draw(_sqlite_changes(content))
    spend = ("--ledger", "ledger", "--dataset", "log")
    commands = (
        ("ledger", "show", "ledger"),
        ("ledger", "show", "ledger", "--json"),
        release_words("log.csv", *spend),
        ("stream", "create", "state", *STREAM, "--epsilon", "1", *spend),
        ("ledger", "create", "ledger", "--dataset", draw(st.sampled_from(NAMES)), "--unit", "item", "--rho", "1"),
    )
    log = b"who,at\nann,2013-01-02\nbob,2013-01-03\n"
    files = {"ledger": content, "log.csv": log}
    return Case(draw(st.sampled_from(commands)), files, (0, 1, 2), "out.json", (how, changed))


@st.composite
def _sqlite_changes(draw: st.DrawFn, content: bytes) -> tuple[bytes, str]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger"
        path.write_bytes(content)
        connection = sqlite3.connect(path)
        tables = sorted(name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'"))
        table = draw(st.sampled_from(tables))
        columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
        column = draw(st.sampled_from(columns))
        value = draw(st.sampled_from((None, 0, -1, 2**62, 1.5, "", "x", "[]", "{}", "[/b]", b"\xff", "nan", "1/0")))
        how = draw(st.sampled_from(("update", "update", "update", "delete", "drop")))
        try:
            if how == "update":
                connection.execute(f'UPDATE "{table}" SET "{column}" = ?', (value,))
            else:
                connection.execute(f'DELETE FROM "{table}"' if how == "delete" else f'DROP TABLE "{table}"')
            connection.commit()
        except sqlite3.Error:
            how = f"refused: {how}"
        connection.close()
        return path.read_bytes(), f"{how} {table}.{column} = {value!r}"
