"""Plain values as YAML in block style, easy to edit and valid for every reader of YAML 1.1 or 1.2."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

# What no reader takes for anything but text: words, but for those that YAML 1.1 knows.
_WORDS = re.compile(r"(?!(?:y|n|yes|no|on|off|true|false|null)\Z)[^\W\d_][\w -]*(?<! )", re.IGNORECASE)


def to_yaml(values: dict[str, Any]) -> str:
    """Text, numbers, lists of these and tables of all of it as YAML.

    Text of several lines is a block (`|`), which keeps them; a number always has the form that YAML 1.1 asks for.
    """
    return "".join(f"{line}\n" for line in _table(values))


def _table(values: dict[str, Any]) -> Iterator[str]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield f"{_text(name)}:"
            yield from (f"  {line}" for line in _table(value))
        elif isinstance(value, list):
            yield f"{_text(name)}:"
            yield from (f"  - {_scalar(one)}" for one in value)
        elif _is_block(value):
            yield f"{_text(name)}: |-"
            yield from (f"  {line}" if line else "" for line in value.split("\n"))
        else:
            yield f"{_text(name)}: {_scalar(value)}"


def _is_block(value: Any) -> bool:
    """Whether a text has several lines that a block keeps as they are."""
    if not isinstance(value, str) or "\n" not in value:
        return False
    # The first line sets the indentation, and blank lines at the end would be dropped.
    return value == value.strip() and all(line.isprintable() for line in value.split("\n"))


def _scalar(value: str | float) -> str:
    return _text(value) if isinstance(value, str) else _number(value)


def _number(value: float) -> str:
    """A number with a point where it has an exponent: YAML 1.1 takes 1e-07 for text."""
    mantissa, e, power = repr(value).partition("e")
    return mantissa + ".0" * ("." not in mantissa and bool(e)) + e + power


def _text(value: str) -> str:
    """One line: as it is where that is plain, else in quotes, with escapes for what does not print."""
    if _WORDS.fullmatch(value):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return '"' + "".join(one if one.isprintable() else f"\\U{ord(one):08X}" for one in escaped) + '"'
