"""Any SQL database: one text, spelled by its dialect, run by an executor; what comes back is the small table.

An executor is what reaches the database: SQLAlchemy, or a client of its own. It knows nothing of what is counted.
Before a database counts for the first time it is asked for what is known (`count.query.probe`), and is refused unless
all of its answers are right. That they were is remembered for its version and settings (`passed_probes`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from importlib import import_module
from typing import NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from dpwindows.count.dialects import dialect_named
from dpwindows.count.engines.passed_probes import is_passed, keep_passed, probe_key
from dpwindows.count.events import EventColumns
from dpwindows.count.query.closing import closed_sql
from dpwindows.count.query.dialect import Column, Dialect
from dpwindows.count.query.probe import PROBED_COLUMNS, Probe, probes, refused
from dpwindows.count.query.relation import counting_sql, unreadable_values
from dpwindows.count.request import CountRequest
from dpwindows.errors import EngineError, InputError
from dpwindows.progress import tell

SCHEMA = pa.schema([(name, pa.int64()) for name in ("k", "step", "recency", "delta", "counted", "closing")])
"""The columns of a result, all of them integers."""


class Relation(NamedTuple):
    """A table or view, as SQL, and the names of our columns, as SQL, and their types, by role."""

    sql: str
    names: dict[str, str]
    types: dict[str, Column]


class Executor(Protocol):
    """What reaches one database, for reading only, until the block ends that it was opened for.

    All that it runs sees one snapshot, where the database has such. What fails is one of our two kinds of errors.
    """

    def relation(self, columns: EventColumns, table: str | None) -> Relation:
        """The table of this name, and our columns in it. Raises `InputError` if there is none, or it lacks one."""

    def run(self, query: str) -> pa.Table:
        """The result of a query, with the names and the exact integers that the database gives."""

    def server(self) -> str:
        """What decides how the database reads a query: its version, and its settings where they matter."""


Opening = Callable[[CountRequest, Dialect], AbstractContextManager[Executor]]
"""How the executor for the source of a request is opened."""

# The others are reached by SQLAlchemy, as it describes them.
_OWN_EXECUTORS = ("clickhouse", "datafusion", "postgresql")
RUN_HERE = ("clickhouse", "datafusion", "duckdb", "postgresql", "spark")
"""The databases that the tests run; of all others nothing is known but what the probe shows."""
_PROBED: set[tuple[Dialect, str]] = set()


def signed_counts(request: CountRequest, name: str) -> pa.Table:
    """As `engines.signed_counts` says: counts a table or view of the database whose dialect has this name."""
    dialect = dialect_named(name)
    module = name if name in _OWN_EXECUTORS else "sql_alchemy"
    opening: Opening = import_module(f"dpwindows.count.engines.{module}").opened
    with opening(request, dialect) as executor:
        relation = executor.relation(request.columns, request.table)
        known = dialect, executor.server()
        if known not in _PROBED:
            if not is_passed(key := probe_key(*known)):
                require_as_meant(opening, request, dialect)
                keep_passed(key)
            _PROBED.add(known)
        return whole(executor.run(dialect.statement(closed_sql(counting_sql(dialect, request, *relation)))))


def require_as_meant(opening: Opening, request: CountRequest, dialect: Dialect) -> None:
    """Ask a database for all that the probe knows, through connections of their own.

    Raises:
        InputError: an answer is wrong; it is named.
    """
    if dialect.name not in RUN_HERE:
        tell(
            f"{dialect.name}: the query has been written for it, and never run there by its makers; the probe that "
            f"follows is all that has been checked"
        )
    literal_rows, about, wrong = replace(request, columns=PROBED_COLUMNS), "", ""
    try:
        with opening(literal_rows, dialect) as executor:
            for probe in probes(dialect):
                about = probe.about
                if wrong := _wrong(probe, executor.run(dialect.statement(probe.sql))):
                    break
    except (InputError, EngineError) as error:
        wrong = f"it fails on {about}: {error}"
    if wrong:
        raise _unfit(dialect, wrong)
    # A statement that fails may be the last one of its connection.
    for what, query in refused(dialect):
        said = "nothing"
        try:
            with opening(literal_rows, dialect) as executor:
                executor.run(query)
        except (InputError, EngineError) as error:
            said = str(error)
        if said != str(unreadable_values(what, PROBED_COLUMNS)):
            raise _unfit(dialect, f"of a value that cannot be read ({what}) it says: {said}")


def _wrong(probe: Probe, answer: pa.Table) -> str:
    """The first answer that is not what it must be, in words; empty if all are."""
    places, answers = (column.to_pylist() for column in answer.columns)
    found = dict(zip(places, answers, strict=True))
    for place, (about, value) in enumerate(probe.rows):
        if (answered := found.get(place, "no row")) != value:
            return f"{about} is {answered} there, and must be {value}"
    return ""


def _unfit(dialect: Dialect, why: str) -> InputError:
    return InputError(f"{dialect.name} does not read the query as it is meant, and nothing was counted: {why}")


def whole(result: pa.Table) -> pa.Table:
    """The signed counts in a result of `closed_sql`.

    Raises:
        EngineError: the result does not say where it ends, or is not whole.
    """
    read = result.rename_columns(SCHEMA.names).cast(SCHEMA)
    rows, ends = (read.filter(pc.equal(read["closing"], closing)) for closing in (0, 1))
    sums = [{name: pc.sum(part[name]).as_py() or 0 for name in ("delta", "counted")} for part in (rows, ends)]
    if ends.num_rows != 1 or len(rows) + 1 != len(read) or sums[0] != sums[1]:
        raise EngineError(
            f"the database gave {len(read):,} rows, which are not all of its result: it or its driver cuts results off"
        )
    return rows.select(SCHEMA.names[:4])
