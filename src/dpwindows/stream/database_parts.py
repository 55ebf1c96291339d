"""Tables of a PostgreSQL database: the events are read, joined and counted by the server, and no item leaves it.

A part is a table, made whole by one statement and never changed. Its name begins with the prefix that the place gives
and the beginning of the stream's id. How many rows it has and the sum of their hashes are kept in the manifest; both
are compared with the table when a stream that was opened first reads it.

Every statement is a transaction of its own. What no manifest names was never read by anything that released a number,
so that nothing has to hold over several of them.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpwindows.ask.counting_rule import EVERY_OCCURRENCE
from dpwindows.count.dialects.postgresql import DIALECT
from dpwindows.count.engines.postgresql import Server, explained, first_line, opened
from dpwindows.count.engines.sql import require_as_meant
from dpwindows.count.engines.sql_alchemy import engine_of
from dpwindows.count.events import EngineSettings, EventColumns
from dpwindows.count.query.dialect import quote_name, quote_text
from dpwindows.count.query.relation import events_sql
from dpwindows.count.query.wanted import Wanted
from dpwindows.count.request import CountRequest
from dpwindows.count.sources.database import database_of, parse_address, translated
from dpwindows.errors import EngineError, InputError
from dpwindows.stream.given_events import (
    MOST,
    Given,
    Handed,
    fingerprint_sql,
    fingerprints_of,
    kind_elsewhere,
)
from dpwindows.stream.place import Manifest, Name, Part
from dpwindows.stream.store import damaged

if TYPE_CHECKING:
    from sqlalchemy import Connection

_ITEM_TYPES = {"integer": "BIGINT", "text": "BYTEA"}
# What the roles and databases of users are set to must not matter.
_SETTINGS = (
    "synchronous_commit = on",
    "bytea_output = 'hex'",
    "lock_timeout = '10s'",
    "standard_conforming_strings = on",
)
_OWN_FUNCTIONS = (
    "SELECT set_config('search_path', concat_ws(', ', 'pg_catalog', nullif(current_setting('search_path'), '')), false)"
)
_OURS = re.compile(r"_([0-9]+)_([0-9a-f]+)(_b)?")
_KEY = "dpwindows.key"


class DatabaseTables:
    """The place (`place.Place`) of a stream whose items a PostgreSQL database keeps."""

    dialect, shared = DIALECT, True

    def __init__(self, state: Path, place: str, stream_id: str, settings: EngineSettings) -> None:
        self._state, self._settings = state, settings
        self._address, _, names = place.partition("#")
        schema, _, prefix = names.rpartition(".")
        # By default that which the role's own tables go to, once there is a connection.
        self._schema, self._prefix = schema, f"{prefix}_{stream_id[:8]}"
        self._begun = ExitStack()
        self._used: Connection | None = None
        self._whole: set[Part] = set()
        self._call = f"{self._prefix}_call_{secrets.token_hex(8)}"
        self._probed = False

    @property
    def handed(self) -> str:
        return self._table(self._call)

    def item_type(self, kind: str) -> str:
        """As `Place` says; text is kept as its bytes, which have no collation."""
        return _ITEM_TYPES[kind]

    def hand_over(self, given: Given) -> Handed:
        """As `Place` says: a table or view of the same database, given by its address."""
        columns = given.columns
        self._require_same_database(given.source)
        self._probe(given)
        self.forget()
        with translated(lambda error: _refused(error, columns)):
            server = Server(self._connection(), DIALECT)
            relation = server.relation(columns, given.table)
            kind = kind_elsewhere(relation.types["item"], columns)
            events = events_sql(DIALECT, columns, given.timeline, *relation, cap=MOST, later=given.later)
            of_bytes = relation.types["item"].type_name == "CHARACTER"
            item = "CAST(item AS BIGINT)" if kind == "integer" else "item" if of_bytes else "convert_to(item, 'UTF8')"
            grouped = given.grouped_sql(DIALECT, events, item)
            rows = server.execute(f"CREATE TABLE {self.handed} AS {grouped}").rowcount
        if rows == 0:
            return Handed(None, {})
        given.require_kind(kind)
        item = "item" if kind == "text" else "convert_to(CAST(item AS text), 'UTF8')"
        # Bound to the session, so that the key stands in no text that a server shows or logs of a slow query.
        with self._guarded() as connection:
            connection.exec_driver_sql(f"SELECT set_config('{_KEY}', %s, false)", (given.key,))
        row = given.text_of_row(f"current_setting('{_KEY}')")
        hashed = f"encode(sha256(convert_to({row}, 'UTF8') || {item}), 'hex')"
        # Of the digits one is left out at a time: what has a sign in 64 bits has none then.
        high, low = (
            f"CAST(('x' || substr(hash, {at}, 8))::bit(32)::bigint AS numeric) * 4294967296 + "
            f"('x' || substr(hash, {at + 8}, 8))::bit(32)::bigint"
            for at in (1, 17)
        )
        return Handed(kind, fingerprints_of(self.ask(fingerprint_sql(self.handed, hashed, high, low, "text"))))

    def keep(self, name: Name, step: int, query: str) -> Part | None:
        """As `Place` says. Raises `EngineError` where the database fails."""
        table = self._table(self._name(name))
        with self._guarded() as connection:
            made = Server(connection, DIALECT).execute(f"CREATE TABLE {table} AS {query}").rowcount
        if made == 0:
            self.remove(str(name))
            return None
        rows, size, digest = self._seen(table)
        if rows != made:
            self.remove(str(name))
            raise EngineError(f"the database wrote {made:,} rows, and {rows:,} are in its table: run the same again")
        part = Part(str(name), step, rows, size, digest)
        self._whole.add(part)
        return part

    def rows(self, part: Part) -> str:
        """As `Place` says, once its rows are known to be those that were written. Raises `DamagedError` if not."""
        table = self._table(self._name_of(part.name))
        if part not in self._whole:
            if part.name not in self.names():
                raise damaged(self._state, f"the table {table} is missing, which holds items. Put it back as it was")
            if (part.rows, part.size, part.digest) != self._seen(table):
                raise damaged(self._state, f"the table {table} is not as it was written")
            self._whole.add(part)
        return f"SELECT * FROM {table}"

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        with self._guarded() as connection:
            return Server(connection, DIALECT).ask(query)

    def settle(self, parts: Manifest) -> None:
        """As `Place` says: a statement was answered when its transaction was on the server's disk."""

    def names(self) -> Iterable[str]:
        """As `Place` says, as the names of parts."""
        found = (_OURS.fullmatch(table.removeprefix(self._prefix)) for table in self._tables())
        return [str(Name(int(one[1]), one[2], one[3] is not None)) for one in found if one]

    def remove(self, name: str) -> None:
        """As `Place` says: a reader's lock is waited for, but not for long."""
        with suppress(EngineError):
            self._drop(self._name_of(name))

    def forget(self) -> None:
        """As `Place` says; also of calls that were interrupted."""
        if self._used is not None:
            for table in self._tables():
                if table.startswith(f"{self._prefix}_call_"):
                    with suppress(EngineError):
                        self._drop(table)

    def close(self) -> None:
        self._used = None
        self._begun.close()

    # --- The database -------------------------------------------------------------------------------------------------

    def _name(self, name: Name) -> str:
        return f"{self._prefix}_{name.step}_{name.token[:24]}{'_b' * name.base}"

    def _name_of(self, text: str) -> str:
        name = Name.of(text)
        assert name is not None, "manifests and listings hold names of parts"
        return self._name(name)

    def _table(self, name: str) -> str:
        return f"{quote_name(self._own_schema())}.{quote_name(name)}"

    def _own_schema(self) -> str:
        with self._guarded():
            return self._schema

    def _tables(self) -> list[str]:
        """The tables of this stream, parts or not."""
        schema = quote_text(self._own_schema())
        return [
            name
            for (name,) in self.ask(
                f"SELECT CAST(relname AS text) FROM pg_class JOIN pg_namespace AS n ON n.oid = relnamespace "
                f"WHERE nspname = {schema} AND relkind = 'r' AND starts_with(CAST(relname AS text), "
                f"{quote_text(self._prefix + '_')})"
            )
        ]

    def _drop(self, table: str) -> None:
        with self._guarded() as connection:
            Server(connection, DIALECT).execute(f"DROP TABLE IF EXISTS {self._table(table)}")

    def _seen(self, table: str) -> tuple[int, int, str]:
        """The rows of a table, the length of their text, and the sum of their hashes."""
        hashed = "CAST(('x' || substr(md5(CAST(part AS text)), 1, 15))::bit(60)::bigint AS numeric)"
        length = "CAST(coalesce(sum(length(CAST(part AS text))), 0) AS bigint)"
        query = f"SELECT count(*), {length}, CAST(coalesce(sum({hashed}), 0) AS text) FROM {table} AS part"
        ((rows, size, digest),) = self.ask(query)
        return int(rows), int(size), str(digest)

    def _require_same_database(self, source: object) -> None:
        if isinstance(source, str) and database_of(source) == "postgresql":
            theirs, ours = parse_address(source, "postgresql"), parse_address(self._address, "postgresql")
            if theirs == ours and "?" not in source:
                return
        raise InputError(
            "the items of this stream are in a database, which reads its own events: give the address of that database "
            "for EVENTS, user and all, and the name of the table or view with --table"
        )

    def _probe(self, given: Given) -> None:
        """Ask the server what is known, once, as before it counts for a release."""
        if not self._probed:
            wanted = Wanted((1,), EVERY_OCCURRENCE)
            columns = replace(given.columns, grouping=None)
            request = CountRequest(self._address, columns, given.timeline, wanted, given.table, self._settings)
            require_as_meant(opened, request, DIALECT)
            self._probed = True

    def _connection(self) -> Connection:
        if self._used is None:
            why = "the settings of the server apply"
            engine = engine_of(
                self._address, self._settings, "postgresql", memory_limit=why, spill_directory=why, threads=why
            )
            self._used = self._begun.enter_context(engine.connect().execution_options(isolation_level="AUTOCOMMIT"))
            for setting in _SETTINGS:
                self._used.exec_driver_sql(f"SET {setting}")
            own = self._used.exec_driver_sql("SELECT current_schema()").scalar()
            if not self._schema and own is None:
                raise InputError(
                    "the role has no schema of its own: name one for the items, postgresql://...#schema.prefix"
                )
            self._schema = self._schema or str(own)
            # Functions are the server's own, whatever the role looks for first; tables are named with their schemas.
            self._used.exec_driver_sql(_OWN_FUNCTIONS)
        return self._used

    @contextmanager
    def _guarded(self) -> Iterator[Connection]:
        """The connection; its failures become ours, without rows."""
        with translated(_failed):
            yield self._connection()


def _refused(error: BaseException | None, columns: EventColumns) -> InputError | EngineError:
    """As `explained`, for a role that may read the events and not write beside them too."""
    if getattr(error, "sqlstate", None) == "42501" and "for schema" in str(error):
        return InputError(
            f"the database refuses: {first_line(str(error))}; the role needs USAGE and CREATE on the schema of items"
        )
    return explained(error, columns)


def _failed(error: BaseException | None) -> EngineError:
    said = _refused(error, EventColumns("item", "step"))
    return EngineError(f"the items of the stream cannot be read or written: {said}")
