"""Shapes of plain values from files: each is declared once, as a typed struct, and checked by one function."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from dpwindows.errors import near

Whole = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
"""A whole number of 64 bits."""
Positive = Annotated[int, Meta(ge=1, le=2**63 - 1)]
"""A whole number of 64 bits, at least 1."""
Share = Annotated[float, Meta(gt=0, le=1)]
"""A share of something."""
AtLeast0 = Annotated[float, Meta(ge=0)]
"""A number of at least 0."""

_WORDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "null": "nothing",
    "object": "a table",
    "array": "a list",
}
# Characters of a message that may quote what a file holds.
_LONGEST = 300


class Shape(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Names, each with the type of its value; a name that is not declared is refused."""


Read = TypeVar("Read")


def read_shape(values: object, shape: type[Read]) -> Read:
    """Plain values as an object of this shape.

    Raises:
        ValueError: they are not of it; the message names the first field that is wrong.
    """
    try:
        return msgspec.convert(values, shape)
    except msgspec.ValidationError as error:
        raise ValueError(_in_words(str(error), shape)) from None


def plain_values(shape: msgspec.Struct) -> dict[str, Any]:
    """What `read_shape` reads as this object, as JSON holds it: lists and no tuples."""
    values: dict[str, Any] = json.loads(json.dumps(msgspec.to_builtins(shape)))
    return values


def read_json(text: str | bytes) -> Any:
    """A JSON document; raises `ValueError` where it holds numbers that JSON does not have, or is too deep."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _in_words(message: str, shape: Any) -> str:
    """What is wrong, and with which field: `'queries[0].k': expected a whole number, got text`."""
    found = re.fullmatch(r"(.*?)(?: - at (?:`key` in )?`\$\.?(.*)`)?", message, re.DOTALL)
    assert found is not None
    what, place = found[1][:_LONGEST], found[2] or ""
    if field := re.fullmatch(r"Object (missing required|contains unknown) field `(.*)`", what, re.DOTALL):
        name = repr(f"{place}.{field[2]}".lstrip("."))
        if field[1] == "missing required":
            return f"{name} is missing"
        _, parts = msgspec.json.schema_components([shape])
        known = list(dict.fromkeys(name for part in parts.values() for name in part.get("properties", ())))
        keys = "" if place else f"; keys are {', '.join(shape.__struct_encode_fields__)}"
        return f"unknown key {name}{near(field[2], known)}{keys}"
    words = re.sub(r"`([^`]*)`", lambda types: " or ".join(_WORDS.get(one, one) for one in types[1].split(" | ")), what)
    return f"{place!r}: {words[:1].lower()}{words[1:]}" if place else words[:1].lower() + words[1:]
