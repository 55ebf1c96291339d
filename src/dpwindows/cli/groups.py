"""Reads `--by` and `--values` as columns with public lists of values, and `--group` as one group of a release."""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from pathlib import Path

from dpwindows.cli.plan_files import groups_in_file
from dpwindows.errors import InputError


def groups_asked(names: Sequence[str], lists: Sequence[str]) -> Mapping[str, Sequence[str | int]] | None:
    """The columns that events are counted by, each with its public list of values; None without them.

    Raises:
        InputError: columns and lists do not go together, or a list cannot be read.
    """
    if len(names) != len(lists):
        raise InputError(
            f"each --by COLUMN needs a public list of its values, --values FILE or --values A,B,C, in the same order: "
            f"got {len(names)} --by and {len(lists)} --values"
        )
    if len(set(names)) < len(names):
        raise InputError("--by names a column twice: give each column once")
    return {name: read_values(name, text) for name, text in zip(names, lists, strict=True)} or groups_in_file()


def read_values(name: str, text: str) -> list[str]:
    """The values that an option gives: the lines of a file if there is one of that name, else what is between commas.

    Raises:
        InputError: the file cannot be read, or what was given can hardly be meant.
    """
    path = Path(text)
    try:
        if path.is_file():
            lines = path.read_text(encoding="utf-8-sig").splitlines()
            return [line for line in lines if line]
    except UnicodeError:
        raise InputError(f"the file of --values {text!r} is not UTF-8 text") from None
    except (OSError, ValueError) as error:
        # A list may be longer than the name of a file can be.
        if getattr(error, "errno", None) != errno.ENAMETOOLONG:
            raise InputError(f"--values {text!r} cannot be read: {error}") from None
    if "/" in text or path.suffix in (".txt", ".csv"):
        raise InputError(f"--values {text!r} of {name!r} looks like a file, and there is none of that name")
    values = text.split(",")
    if any(value != value.strip() for value in values):
        raise InputError(
            f"--values {text!r} of {name!r} has spaces around a comma, and values are matched exactly: leave them out, "
            f"or write the values to a file, one a line"
        )
    return values


def parse_group(texts: tuple[str, ...], option: str = "--group") -> dict[str, str] | None:
    """What `--group COLUMN=VALUE`, or another option like it, names: once for each column.

    Raises:
        InputError: it is written otherwise.
    """
    found: dict[str, str] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name or name in found:
            raise InputError(f"{option} takes COLUMN=VALUE, once for each column, got {text!r}")
        found[name] = value
    return found or None
