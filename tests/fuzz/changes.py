"""How valid things are changed: values, trees of JSON, tables, texts, bytes."""

from __future__ import annotations

import copy
import json
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

NAMES = (
    *("who", "at", "times", "", " ", "a b", "a,b", 'a"b', "a'b", "a;--", "[/b]", "[red]x", "x [/x]", "\\", "a\\[/"),
    *("a\nb", "a\rb", "\u202eabc", "\x1b[31m", "naïve", "日本", "e\u0301", "x" * 300, "WHO", "who_1", "rowid"),
    *("%s", ":x:"),
)
ODD_VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 2**31, 2**63, -(2**63) - 1, 10**400, 0.5, float("inf"), 1e308, -0.0),
    *("", "x", "[/b]", "\x00", "\ud83d\ude00", "9" * 400, "NaN", "2013-02-30", [], {}, [[]], {"a": {"b": []}}, [None]),
)
ODD_TEXTS = (
    *("", " ", "NULL", "NaN", "inf", "-1", "0", "1e400", "9" * 30, "1.5", "0x10", "1_000", "١٢", "true"),
    *('"', '""', "'"),
    *("2013-01-02", "2013-02-30", "0001-01-01", "9999-12-31", "99999-01-01", "-0044-03-15", "1900-02-29T00:00:00"),
    *("2013-01-02T00:00:00+18:00", "2013-01-02T00:00:00Z", "2016-12-31 23:59:60", "24:00:00"),
    *("2013-01-02 10:00:00.5",),
    *("a\nb", "a,b", 'a"b', "\u202e", "\ufeff", "\x1f", "日本", "[/x]", "=1+1", "who"),
)


@st.composite
def byte_changes(draw: st.DrawFn, content: bytes, *, most: int = 3) -> bytes:
    """Bytes flipped, cut, doubled, zeroed or put in."""
    for _ in range(draw(st.integers(1, most))):
        if not content:
            break
        # Spread over the whole content: drawn numbers are small ones mostly, and would only ever hit its beginning.
        place = draw(st.integers(0, 2**32 - 1)) * 2654435761 % 2**32 % len(content)
        length = draw(st.integers(1, 16))
        match draw(st.sampled_from(("flip", "flip", "flip", "flip", "zero", "zero", "cut", "double", "put", "end"))):
            case "flip":
                content = content[:place] + bytes([content[place] ^ draw(st.integers(1, 255))]) + content[place + 1 :]
            case "cut":
                content = content[:place] + content[place + length :]
            case "double":
                content = content[:place] + content[place : place + length] + content[place:]
            case "zero":
                content = content[:place] + bytes(min(length, len(content) - place)) + content[place + length :]
            case "put":
                content = content[:place] + draw(st.binary(min_size=1, max_size=8)) + content[place:]
            case "end":
                content = content[:place]
    return content


@st.composite
def tree_changes(draw: st.DrawFn, tree: Any) -> tuple[Any, str]:
    """A JSON tree with one node dropped, replaced, doubled or nested, and where that was."""
    tree = copy.deepcopy(tree)
    node, path = tree, ""
    while True:
        keys: list[Any] = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            return tree, f"{path}: nothing"
        key = draw(st.sampled_from(keys))
        below = node[key]
        path = f"{path}/{key}"
        if isinstance(below, (dict, list)) and below and draw(st.integers(0, 3)):
            node = below
            continue
        how = draw(st.sampled_from(("drop", "odd", "odd", "odd", "nest", "deep", "double")))
        if how == "drop":
            del node[key]
        elif how == "odd":
            node[key] = draw(st.sampled_from(ODD_VALUES))
        elif how == "nest":
            node[key] = {str(key): [below]}
        elif how == "deep":
            deep: Any = below
            for _ in range(60):
                deep = [deep]
            node[key] = deep
        elif isinstance(node, list):
            node.append(copy.deepcopy(below))
        else:
            node[f"{key} "] = copy.deepcopy(below)
        return tree, f"{path}: {how}"


TYPES = (
    *(pa.int8(), pa.int32(), pa.int64(), pa.uint64(), pa.float32(), pa.float64(), pa.string(), pa.large_string()),
    *(pa.bool_(), pa.date32(), pa.timestamp("s"), pa.timestamp("ns", "UTC"), pa.timestamp("us", "Asia/Kolkata")),
    *(pa.binary(), pa.decimal128(38, 3), pa.dictionary(pa.int32(), pa.string()), pa.null(), pa.duration("s")),
)


@st.composite
def table_changes(draw: st.DrawFn, table: pa.Table) -> tuple[pa.Table, str]:
    """A table with one column dropped, renamed, doubled, retyped or with other values in it."""
    index = draw(st.integers(0, table.num_columns - 1))
    name, column = table.column_names[index], table.column(index)
    how = draw(st.sampled_from(("drop", "rename", "double", "retype", "retype", "nulls", "extreme", "rows", "none")))
    match how:
        case "drop":
            return table.remove_column(index), f"without {name}"
        case "rename":
            other = draw(st.sampled_from(NAMES))
            names = [other if i == index else old for i, old in enumerate(table.column_names)]
            return table.rename_columns(names), f"{name} is {other!r}"
        case "double":
            return table.append_column(name, column), f"{name} twice"
        case "retype":
            kind = draw(st.sampled_from(TYPES))
            try:
                changed = column.cast(kind, safe=False)
            except pa.ArrowException:
                changed = pa.chunked_array([pa.nulls(len(column), kind)])
            return table.set_column(index, name, changed), f"{name} as {kind}"
        case "nulls":
            return table.set_column(index, name, pa.nulls(len(column), column.type)), f"{name} null"
        case "extreme":
            return table.set_column(index, name, _extreme(draw, column)), f"{name} extreme"
        case "rows":
            rows = draw(st.lists(st.integers(0, max(0, table.num_rows - 1)), max_size=2 * table.num_rows))
            return (table.take(pa.array(rows, pa.int64())) if table.num_rows else table), "other rows"
    return table, "nothing"


def _extreme(draw: st.DrawFn, column: pa.ChunkedArray) -> pa.Array:
    kind, length = column.type, len(column)
    if pa.types.is_floating(kind):
        value: Any = draw(st.sampled_from((float("nan"), float("inf"), -float("inf"), 1e308, -1e308, 0.0, 5e-324)))
    elif pa.types.is_integer(kind) or pa.types.is_timestamp(kind):
        widest = 63 if not pa.types.is_integer(kind) else kind.bit_width - 1
        number = draw(st.sampled_from((2**widest - 1, -(2**widest), 0, -1)))
        if pa.types.is_unsigned_integer(kind):
            number = abs(number)
        raw = pa.array([number] * length, pa.int64() if pa.types.is_timestamp(kind) else kind)
        return raw.cast(kind, safe=False)
    elif pa.types.is_string(kind):
        value = draw(st.sampled_from((*NAMES, *ODD_TEXTS)))
    else:
        return pa.nulls(length, kind)
    return pa.array([value] * length, kind)


def as_json(tree: Any) -> bytes:
    """JSON as Python writes it, NaN and Infinity included, and without failing at lone surrogates."""
    return json.dumps(tree).encode()
