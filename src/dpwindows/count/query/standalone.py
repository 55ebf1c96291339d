"""The counting query as a text that stands alone: for whoever has a database that is not reached from here.

It is run by hand, and its result comes back as a file. The row that closes the result says what was counted, so that
nothing else is released from it (`count.engines.counts_file`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from dpwindows.ask.formats import COUNTS
from dpwindows.ask.queries import OCCURRENCES
from dpwindows.count.events import role_name
from dpwindows.count.query.closing import closed_sql
from dpwindows.count.query.dialect import Column, Dialect, Kind
from dpwindows.count.query.probe import Probe, probes, refused
from dpwindows.count.query.relation import counting_sql
from dpwindows.count.request import CountRequest
from dpwindows.errors import InputError, near

DESCRIPTION = "description"
"""The column whose value, in the row that closes a result, is what `made_for` says, as JSON."""

_HEAD = (
    "-- Written by dpwindows. Run it as it is, and save all of its result as CSV or Parquet, for\n"
    "-- 'dpwindows release --counts FILE'. The result holds exact counts: keep it as the log is kept.\n"
)
_PROBE_HEAD = (
    "-- Written by dpwindows: what a database must make of rows that are given here. No table is read. Each statement\n"
    "-- gives one row, in which found must be as many as wanted, and wrong be null; the last ones must fail.\n\n"
)
# What types are called wherever a database has no other meaning for the word.
_PLAIN = {
    "text": Kind.TEXT,
    "integer": Kind.INTEGER,
    "decimal": Kind.DECIMAL,
    "date": Kind.DATE,
    "timestamp": Kind.WALL,
    "timestamptz": Kind.INSTANT,
    "float": Kind.FLOAT,
    "boolean": Kind.EXACT,
}


def standalone_sql(dialect: Dialect, request: CountRequest, types: Mapping[str, str]) -> str:
    """The query for what a request counts in its table, whatever its source; `types` are those of its columns.

    They are known by `item`, `time`, `count` and the names of the columns that make groups, and called as the database
    calls them, or in the words of `_PLAIN`.

    Raises:
        InputError: there is no table, or it is not written as one; a type is missing, not known or does not serve.
    """
    columns = _typed(dialect, request, types)
    names = {role: dialect.identifier(name) for role, name in request.columns.roles}
    closed = closed_sql(counting_sql(dialect, request, _relation(dialect, request.table), names, columns))
    described = dialect.literal(json.dumps(made_for(request)))
    query = (
        f"SELECT k, step, recency, delta, counted, closing, CASE WHEN closing = 1 THEN {described} END AS "
        f"{DESCRIPTION}\nFROM ({closed}\n) AS closed"
    )
    return f"{_HEAD}{dialect.statement(query)}\n"


def standalone_probe(dialect: Dialect) -> str:
    """The probe, as statements that each give one row, and such as must fail: for whoever may run the query by hand."""
    statements = [dialect.statement(_verdict_sql(dialect, probe)) for probe in probes(dialect)]
    failing = [f"-- Must fail: a value that cannot be read ({what}).\n{query}" for what, query in refused(dialect)]
    return _PROBE_HEAD + "".join(f"{statement};\n\n" for statement in [*statements, *failing])


def _verdict_sql(dialect: Dialect, probe: Probe) -> str:
    """How many answers of a probe must be right, how many are, and the first that is wrong, null for none."""
    known = "\nUNION ALL ".join(
        f"SELECT {place} AS place, CAST({'NULL' if value is None else value} AS BIGINT) AS wanted, "
        f"{dialect.text_literal(about)} AS what"
        for place, (about, value) in enumerate(probe.rows)
    )
    right = "asked.found = known.wanted OR (asked.place IS NOT NULL AND asked.found IS NULL AND known.wanted IS NULL)"
    return (
        f"SELECT {dialect.text_literal(probe.about)} AS about, {len(probe.rows)} AS wanted, "
        f"sum(CASE WHEN {right} THEN 1 ELSE 0 END) AS found, min(CASE WHEN {right} THEN NULL ELSE what END) AS wrong\n"
        f"FROM ({known}) AS known\nLEFT JOIN ({probe.sql}\n) AS asked ON asked.place = known.place"
    )


def made_for(request: CountRequest) -> dict[str, Any]:
    """What a request counts and where, as plain values by the names of options."""
    columns, wanted, grouping = request.columns, request.wanted, request.columns.grouping
    groups = {} if grouping is None else {column.name: [*map(str, column.values)] for column in grouping.columns}
    return {
        "format": COUNTS,
        "table": request.table,
        **{role: getattr(columns, role) for role in ("item", "time", "count")},
        "item-type": columns.item_type,
        "time-format": columns.time_format,
        **{name.replace("_", "-"): value for name, value in request.timeline.to_dict().items()},
        **{name.replace("_", "-"): value for name, value in vars(wanted.rule).items()},
        "estimate-loss": wanted.loss,
        "by": groups,
        "group-of": None if grouping is None else grouping.group_of,
        "max-groups": None if grouping is None else grouping.max_groups,
        "totals": grouping is not None and grouping.totals is not None,
        "window": [f"rolling:{length} at least {k}" for k, length in wanted.series],
        "at-least": [k for k in wanted.thresholds if k != OCCURRENCES],
        "occurrences": OCCURRENCES in wanted.thresholds,
    }


def _typed(dialect: Dialect, request: CountRequest, types: Mapping[str, str]) -> dict[str, Column]:
    """The columns by their roles."""
    keys = {role: name if role_name(role) == "group" else role for role, name in request.columns.roles}
    known = list(keys.values())
    if twice := [key for key in known if known.count(key) > 1]:
        raise InputError(
            f"--types cannot tell the group column {twice[0]!r} from the {twice[0]} column: rename it, in a view for "
            "example"
        )
    if unknown := [key for key in types if key not in known]:
        raise InputError(
            f"--types gives a type for {unknown[0]!r}{near(unknown[0], known)}; it takes {', '.join(known)}"
        )
    for role, key in keys.items():
        if key not in types:
            raise InputError(
                f"--types must say of what type {request.columns.title(role)} is: give {key}=TYPE, such as {key}=text"
            )
    return {role: _column(dialect, key, types[key]) for role, key in keys.items()}


def _column(dialect: Dialect, key: str, type_name: str) -> Column:
    column = dialect.column_of(type_name)
    if column.kind is not Kind.OTHER:
        return column
    kind = _PLAIN.get(re.sub(r" *\(.*\)$", "", type_name.strip()).lower())
    if kind is Kind.WALL and kind not in dialect.kinds:
        kind = Kind.INSTANT  # all of its times are
    if kind is None or kind not in dialect.kinds:
        plain = [word for word, kind in _PLAIN.items() if kind in dialect.kinds]
        words = dict.fromkeys([*plain, *dialect.samples, *(name for names in dialect.kinds.values() for name in names)])
        raise InputError(
            f"--types {key}={type_name}: {dialect.name} has no such type{near(type_name, [*words])}; give the name "
            f"that the database itself has for it, or one of {', '.join(plain)}"
        )
    return Column(kind, "BOOLEAN" if kind is Kind.EXACT else dialect.kinds[kind][0].upper())


def _relation(dialect: Dialect, table: str | None) -> str:
    """A table as the dialect quotes it; its name may have parts, and a part with a point in it stands in quotes."""
    if table is None:
        raise InputError("give the table that is counted with --table NAME")
    parts = re.findall(r'(?:"((?:[^"]|"")+)"|([^".]+))(?:\.|$)', table)
    names = [quoted.replace('""', '"') or plain for quoted, plain in parts]
    if not names or ".".join(f'"{quoted}"' if quoted else plain for quoted, plain in parts) != table:
        raise InputError(
            f'--table takes NAME or SCHEMA.NAME, a part with a point or a quote in it as "NAME", got {table!r}'
        )
    return ".".join(map(dialect.identifier, names))
