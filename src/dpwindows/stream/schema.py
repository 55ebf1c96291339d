"""The tables of a state file, their version, and how an older version becomes this one.

| table | holds |
| --- | --- |
| `state_schema` | the version of these tables |
| `creation` | what was fixed when the stream was created: plan, mechanism, columns, timeline, identity |
| `item_kind` | the type of the items, once there were any |
| `items` | for every item known: the steps of its last occurrences, newest first; made with the first item |
| `working` | exact counts by recency and the mechanism's memory, after the last step |
| `steps` | a row for each closed step: its end, fingerprint of its events, token, time and versions of its release |
| `calls` | the steps that each call closed or was asked to close, and what it moved |
| `released` | the released rows; in a stream with groups with the code of the group |

A stream with groups has tables of a version of its own, so that no older library takes a group for the whole.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

from dpwindows.errors import InputError
from dpwindows.stream.state_file import StateFile

VERSION, GROUPED = 1, 2
TABLES = (
    "CREATE TABLE state_schema (version INTEGER NOT NULL)",
    f"INSERT INTO state_schema VALUES ({VERSION})",
    "CREATE TABLE creation (facts VARCHAR NOT NULL, arrays BLOB NOT NULL, digest VARCHAR NOT NULL)",
    "CREATE TABLE item_kind (kind VARCHAR NOT NULL)",
    "CREATE TABLE working (step INTEGER NOT NULL, content BLOB NOT NULL, digest VARCHAR NOT NULL)",
    """CREATE TABLE steps (
        step INTEGER NOT NULL, ends BIGINT NOT NULL, fingerprint VARCHAR NOT NULL, token VARCHAR NOT NULL,
        released_at VARCHAR NOT NULL, versions VARCHAR NOT NULL, rows_digest VARCHAR NOT NULL)""",
    "CREATE TABLE calls (first INTEGER NOT NULL, last INTEGER NOT NULL, moved VARCHAR NOT NULL)",
    """CREATE TABLE released (
        step INTEGER NOT NULL, place INTEGER NOT NULL, "window" VARCHAR NOT NULL, measure VARCHAR NOT NULL,
        k BIGINT NOT NULL, first_step BIGINT NOT NULL, last_step BIGINT NOT NULL, complete BOOLEAN NOT NULL,
        estimate DOUBLE NOT NULL, std_error DOUBLE NOT NULL, bias_bound DOUBLE NOT NULL,
        "lower" DOUBLE NOT NULL, "upper" DOUBLE NOT NULL)""",
)
# From each older version, the statements that make the next one of it.
UPGRADES: dict[int, tuple[str, ...]] = {}


def make_tables(connection: duckdb.DuckDBPyConnection, *, grouped: bool) -> None:
    """Make all tables of a new state, inside the caller's transaction."""
    for statement in TABLES:
        connection.execute(statement)
    if grouped:
        connection.execute("ALTER TABLE released ADD COLUMN cell INTEGER")
        connection.execute("UPDATE state_schema SET version = ?", [GROUPED])


def require_version(state: StateFile) -> None:
    """See that the tables are of this version; upgrade older ones, in one transaction.

    Raises:
        InputError: the file is no state of a stream, is newer than this version, or is older and open for reading only.
        EngineError: the file is damaged or cannot be written.
    """
    found = _version(state)
    if found > max(VERSION, GROUPED):
        raise InputError(
            f"the state {state.path} is of version {found}, and this dpwindows knows versions up to "
            f"{max(VERSION, GROUPED)}: use a newer dpwindows"
        )
    if found in (VERSION, GROUPED):
        return
    if state.read_only:
        raise InputError(
            f"the state {state.path} is of version {found}, older than {VERSION}, and can only be read here: run "
            "'dpwindows stream advance' once where it can be written, which upgrades it"
        )
    with state.transaction() as connection:
        for version in range(found, VERSION):
            for statement in UPGRADES[version]:
                connection.execute(statement)
        connection.execute("UPDATE state_schema SET version = ?", [VERSION])


def _version(state: StateFile) -> int:
    with state.guarded() as connection:
        tables = {name for (name,) in connection.execute("SHOW TABLES").fetchall()}
        rows = connection.execute("SELECT version FROM state_schema").fetchall() if "state_schema" in tables else []
    if len(rows) != 1 or "creation" not in tables:
        raise _foreign(state.path)
    return int(rows[0][0])


def _foreign(path: Path) -> InputError:
    return InputError(f"{path} is a DuckDB database, but not the state of a stream")
