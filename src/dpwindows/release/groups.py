"""Groups in a release: one row for each group and window, and finding those of one group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpwindows.ask.groups import Grouping, Value
from dpwindows.errors import InputError
from dpwindows.kernel.groups import Groups


def group_type(values: list[Value]) -> pa.DataType:
    """The type of the column that tells groups by these values."""
    return pa.int64() if isinstance(values[0], int) else pa.string()


def in_groups(columns: dict[str, Any], groups: Groups) -> dict[str, Any]:
    """The columns of one group repeated for every group, with the values that tell them; null stands for all."""
    rows, cells = len(columns["k"]), np.array(groups.cells)
    within, of = np.tile(np.arange(rows), len(cells)), np.repeat(cells, rows)
    repeated = {
        name: column[within] if isinstance(column, np.ndarray) else column.take(pa.array(within))
        for name, column in columns.items()
    }
    return repeated | group_columns(groups.grouping, pa.array(of))


def group_columns(grouping: Grouping, cells: pa.Array) -> dict[str, pa.Array]:
    """The value of every column in groups with these codes; null stands for all."""
    values = [value for level in grouping.levels for value in grouping.values_of(level)]
    listed = {
        column.name: pa.array([value[place] for value in values], group_type(list(column.values)))
        for place, column in enumerate(grouping.columns)
    }
    return {name: column.take(cells) for name, column in listed.items()}


def columns_of_groups(metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The columns that make the groups of a release, by name and values; none without groups."""
    groups = metadata.get("groups")
    return [] if groups is None else list(groups["columns"])


def group_names(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the columns that make the groups of a release."""
    return tuple(column["name"] for column in columns_of_groups(metadata))


def rows_of_group(table: pa.Table, metadata: dict[str, Any], group: Mapping[str, Value] | None) -> pa.Table:
    """The rows of one group; of columns that are not named, those for all values.

    Raises:
        InputError: the release has no such group.
    """
    columns = {column["name"]: column["values"] for column in columns_of_groups(metadata)}
    asked = dict(group or {})
    if unknown := [name for name in asked if name not in columns]:
        known = f"has groups by {', '.join(columns)}, and not" if columns else "has no groups, so none"
        raise InputError(f"this release {known} by {unknown[0]!r}")
    for name, values in columns.items():
        if name not in asked:
            table = table.filter(pc.is_null(table[name]))
            continue
        # A command line has nothing but text.
        found = next((value for value in values if value == asked[name] or str(value) == asked[name]), None)
        if found is None:
            shown = ", ".join(map(str, values[:20])) + (", ..." if len(values) > 20 else "")
            raise InputError(f"there is no group {name}={asked[name]}; the values of {name!r} are {shown}")
        table = table.filter(pc.equal(table[name], pa.scalar(found, table.schema.field(name).type)))
    missing = [name for name in columns if name not in asked]
    # Where every column is named, what holds no such window says so itself.
    if missing and not table.num_rows:
        raise InputError(
            f"this release has no totals over {' and '.join(missing)}: name a group of each, such as "
            f"{missing[0]}={columns[missing[0]][0]}, or plan with totals=SHARE"
        )
    return table
