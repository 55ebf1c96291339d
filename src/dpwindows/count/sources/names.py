"""Finds tables and columns by name, and says which there are where one is missing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from dpwindows.count.events import EventColumns, role_name
from dpwindows.count.query.dialect import quote_name
from dpwindows.errors import InputError, near


def require_columns(columns: EventColumns, available: Sequence[str], what: str) -> None:
    """Raise `InputError` unless `what` has every column that is read, each of them once."""
    missing = {
        role: f"{name!r} for the {role_name(role)}{near(name, available)}"
        for role, name in columns.roles
        if name not in available
    }
    if missing:
        lacks = "no column" if len(missing) == 1 else "none of the columns"
        raise InputError(f"{what} has {lacks} {', '.join(missing.values())}; its columns are {listed(available)}")
    for role, name in columns.roles:
        if (times := available.count(name)) > 1:
            raise InputError(f"{what} has {times} columns named {name!r}; rename the {role_name(role)} column")


def require_told_apart(columns: EventColumns, available: Sequence[str], what: str) -> None:
    """Raise `InputError` if a column that is read may be taken for one whose name differs from another's in case only.

    For an engine that tells u from U by a number, U is U_1, and what was U_1 is U_1_1: each name may be that of any
    other one that it is made of.
    """
    folded = Counter(map(str.lower, available))
    for role, name in columns.roles:
        makings = {name.lower()[: found.start()] for found in re.finditer(r"(?=(_[0-9]+)*\Z)", name.lower())}
        twins = [other for other in available if folded[other.lower()] > 1 and other.lower() in makings]
        if twins:
            raise InputError(
                f"{what} has columns whose names are the same but for case ({listed(twins)}), and {name!r} for the "
                f"{role_name(role)} may be read from another one than is meant: rename them, or leave out those not "
                f"needed"
            )


def chosen_table(
    tables: Sequence[tuple[str, str]], shown: Sequence[str], table: str | None, where: str
) -> tuple[str, str]:
    """The one of `tables`, pairs (schema, name) that are called `shown`, which is asked for.

    It is asked for as name or schema.name, as it is or as SQL quotes names.

    Raises:
        InputError: there is no such table, several may be meant, or none is named and there are several.
    """
    if table is None:
        if len(tables) == 1:
            return tables[0]
        raise InputError(f"{where} has {len(tables)} tables, name one of them: {listed(shown)}")
    meant = [
        pair
        for pair, text in zip(tables, shown, strict=True)
        if table in (text, ".".join(pair), _quoted(pair), quote_name(text) if text == pair[1] else text)
    ]
    if not meant:
        raise InputError(f"{where} has no table {table!r}{near(table, shown)}; its tables are {listed(shown)}")
    if len(meant) > 1:
        quoted = listed([_quoted(pair) for pair in meant])
        raise InputError(f"{where} has {len(meant)} tables that {table!r} may mean; write the one that is: {quoted}")
    return meant[0]


def _quoted(pair: tuple[str, str]) -> str:
    return ".".join(map(quote_name, pair))


def listed(names: Sequence[str]) -> str:
    """The first names of a list, made safe to print."""
    shown = ", ".join(repr(name[:80])[1:-1] for name in names[:20])
    return f"{shown} and {len(names) - 20} more" if len(names) > 20 else shown or "none"
