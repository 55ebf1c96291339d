"""From the values of group columns to one code a row, in any engine's SQL, and the rules that limit an item's groups.

Values are matched exactly with a public list: text byte for byte, whole numbers as numbers, by the type of the column.
So a row's group is a function of the row. Rows whose values are not on the lists are no events.

Where an item has a group, or is counted in a limited number of them, a rule decides which, from the item's own rows
alone: by the moments of its events, and by the order of the lists where these are the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from dpwindows.ask.groups import GroupColumn, Grouping, Level
from dpwindows.count.query.dialect import Column, Dialect, Kind
from dpwindows.errors import InputError

_TRUTHS = ("true", "false")


def listed_values(dialect: Dialect, group: GroupColumn, role: str, column: Column) -> tuple[str, list[str]]:
    """The column of a role as it is compared, and the public values as literals of the same type.

    Raises:
        InputError: the column's type does not serve, or values are not of it.
    """
    match column.kind:
        case Kind.INTEGER:
            return role, [_number(number) for number in group.numbers(column.type_name)]
        case Kind.TEXT:
            return role, [dialect.text_literal(text) for text in group.texts(column.type_name)]
        case Kind.EXACT if column.type_name == "ENUM":
            return f"CAST({role} AS VARCHAR)", [dialect.text_literal(text) for text in group.texts("ENUM")]
        case Kind.EXACT if column.type_name == "BOOLEAN":
            texts = group.texts("BOOLEAN")
            if unknown := [text for text in texts if text not in _TRUTHS]:
                raise InputError(f"--values of {group.name!r} must be true and false, got {unknown[0]!r}")
            truth = f"CASE WHEN {role} THEN {dialect.text_literal('true')} ELSE {dialect.text_literal('false')} END"
            return f"CASE WHEN {role} IS NOT NULL THEN {truth} END", [dialect.text_literal(text) for text in texts]
        case Kind.NULL:
            return "CAST(NULL AS BIGINT)", [str(place) for place in range(len(group.values))]
    raise InputError(
        f"the group column {group.name!r} is of type {column.type_name}; groups are by text, by whole numbers or by "
        f"true and false: make it one of these, in a view for example"
    )


def _number(number: int) -> str:
    """A whole number as a literal of one type with all others, where that has room for it."""
    return f"CAST({number} AS BIGINT)" if -(2**63) <= number < 2**63 else f"({number})"


def coded_sql(dialect: Dialect, timed: str, grouping: Grouping, types: Mapping[str, Column]) -> str:
    """A relation with the columns group_0, group_1, ... as one with the code of all of them together, `code`.

    Raises:
        InputError: as `listed_values`.
    """
    lists, joins, code = [], [], "0"
    for place, group in enumerate(grouping.columns):
        compared, literals = listed_values(dialect, group, f"group_{place}", types[f"group_{place}"])
        lists.append(f"list_{place} AS ({dialect.listed(literals)})")
        joins.append(f"JOIN list_{place} ON {compared} = list_{place}.listed")
        code = f"list_{place}.place" if place == 0 else f"({code}) * {len(group.values)} + list_{place}.place"
    kept = "item, step, count, moment" if grouping.has_rule else "item, step, count"
    coded = f"SELECT {kept}, CAST({code} AS INTEGER) AS code FROM ({timed}) AS placed {' '.join(joins)}"
    return f"SELECT * FROM (WITH {', '.join(lists)} {coded}) AS matched"


def places_sql(dialect: Dialect, coded: str, grouping: Grouping, span: int) -> str:
    """The relation (item, step, count) of every group, totals included, out of that of `coded_sql`.

    An event is there once for every level, in the cell that it is in on that level; its step is a place,
    `cell * span + step`.
    """
    kind = "INTEGER" if (grouping.levels[-1].first + grouping.levels[-1].count) * span < 2**31 else "BIGINT"
    place = f"CAST(cell AS {kind}) * {span} + step"
    if grouping.group_of == "item":
        first = "first_value(code) OVER (PARTITION BY item ORDER BY moment, code ROWS UNBOUNDED PRECEDING)"
        coded = f"SELECT item, step, count, {first} AS code FROM ({coded}) AS coded"
    ruled = grouping.has_rule and grouping.group_of == "event"
    kept = "item, step, count, moment" if ruled else "item, step, count"
    levelled = levels_sql(dialect, coded, grouping, kept)
    if not ruled:
        return f"SELECT item, {place} AS step, count FROM ({levelled}) AS levelled"
    since = f"SELECT *, min(moment) OVER (PARTITION BY item, cell) AS since FROM ({levelled}) AS levelled"
    rank = "dense_rank() OVER (PARTITION BY item, level ORDER BY since, cell)"
    ranked = f"SELECT item, step, count, cell, {rank} AS place FROM ({since}) AS since_when"
    return f"SELECT item, {place} AS step, count FROM ({ranked}) AS ranked WHERE place <= {grouping.max_groups}"


def levels_sql(dialect: Dialect, coded: str, grouping: Grouping, kept: str) -> str:
    """The columns `kept` of a relation with a `code`, once for every level, with that level and the cell on it."""
    if len(grouping.levels) == 1:
        return f"SELECT {kept}, 0 AS level, code AS cell FROM ({coded}) AS coded"
    numbers = " UNION ALL ".join(f"SELECT {number} AS level" for number in range(len(grouping.levels)))
    cells = " ".join(
        f"WHEN {number} THEN {_cell(dialect, grouping, level)}" for number, level in enumerate(grouping.levels)
    )
    return (
        f"SELECT {kept}, level, CASE level {cells} END AS cell FROM ({coded}) AS coded CROSS JOIN ({numbers}) AS levels"
    )


def _cell(dialect: Dialect, grouping: Grouping, level: Level) -> str:
    """The code on one level out of that of all columns together; every division leaves no rest."""
    sizes = [len(column.values) for column in grouping.columns]
    digits, weight = [str(level.first)], 1
    for place in reversed(level.kept):
        after = math.prod(sizes[place + 1 :])
        rests = " - ".join(dialect.remainder.format("code", size) for size in (after * sizes[place], after))
        digits.append(f"{dialect.divide.format(f'({rests})', after)} * {weight}")
        weight *= sizes[place]
    return f"CAST({' + '.join(digits)} AS INTEGER)"
