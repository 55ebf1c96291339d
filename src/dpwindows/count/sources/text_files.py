"""Files of text, compressed or not, and the objects of JSON Lines in them."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpwindows.errors import InputError


def text_of(file: Path) -> io.TextIOWrapper:
    """A file of text, compressed or not; what is not UTF-8 is replaced."""
    return io.TextIOWrapper(
        pa.input_stream(str(file), compression="detect"), encoding="utf-8-sig", errors="replace", newline=""
    )


def first_text(file: Path, characters: int) -> str:
    """The first characters of a file of text.

    Raises:
        InputError: it cannot be read.
    """
    try:
        with text_of(file) as stream:
            return stream.read(characters)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{file} cannot be read: {str(error).partition(chr(10))[0]}") from None


def objects_of(lines: Iterable[str]) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Each line that is an object of JSON: its number from 1, the line, and the object, with numbers as text."""
    for number, line in enumerate(lines, 1):
        try:
            found = json.loads(line, parse_int=str, parse_float=str)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            yield number, line, found
