"""Where a stream keeps its items, as `--items-at` says it, and how such a place is opened."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from dpwindows.count.dialects import DIALECTS
from dpwindows.count.events import EngineSettings
from dpwindows.count.sources.database import database_of, parse_address
from dpwindows.errors import InputError
from dpwindows.stream.parts import LocalFolder
from dpwindows.stream.place import Place

if TYPE_CHECKING:
    from dpwindows.stream.store import StateFile

_PREFIX = re.compile(r"(?:[a-z_][a-z0-9_]{0,62}\.)?[a-z][a-z0-9_]{0,15}")
_ELSEWHERE = re.compile(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]*:/")
# A host and its port, or of Azure's stores a container and its account; neither there nor after it an @, a ? or a #.
_PLAIN = re.compile(
    r"(?:(?:abfss?|wasbs?)://[^/:@?#]+@[^/:@?#]+|[^:]*://[^/:@?#]*(?::[0-9]+)?|[^:]*:(?!//))(?:/[^@?#]*)?"
)
_DEFAULT_PREFIX = "dpwindows"
_WRITTEN = "a folder that Spark writes, such as s3a://bucket/items, or postgresql://user@host/database#prefix"


def place_text(given: str) -> str:
    """A place as a state keeps it: without secrets, and the same from wherever it is read.

    Raises:
        InputError: it is no place for items, or holds a secret. No message repeats an address with one.
    """
    database = database_of(given)
    if database == "postgresql":
        address, _, prefix = given.partition("#")
        if "?" in address:
            raise InputError("the address of --items-at has options after a ?: leave them out")
        parse_address(address, database)
        if not _PREFIX.fullmatch(prefix := prefix or _DEFAULT_PREFIX):
            raise InputError(
                f"the prefix of the tables in --items-at must be 1 to 16 lower-case letters, digits and _, with the "
                f"name of a schema and a dot before it where that is another than the first, got {prefix!r}"
            )
        return f"{address}#{prefix}"
    if database in DIALECTS or re.match(r"(delta|iceberg):", given):
        kind = database or given.partition(":")[0]
        raise InputError(f"items of streams cannot be kept in {kind}: --items-at takes {_WRITTEN}")
    elsewhere = _ELSEWHERE.match(given)
    if elsewhere and not _PLAIN.fullmatch(given):
        raise InputError(
            "the address of --items-at holds a name, a password or options: leave them out; credentials for files are "
            "in Spark's own configuration"
        )
    text = given.rstrip("/") if elsewhere else f"file://{Path(given.removeprefix('file:')).resolve()}"
    # Hadoop decodes nothing in an address, and others do: where they differ, items would lie in another folder.
    if not given or re.search(r"[*?\[\]{}\\`%#\s]|[^\x21-\x7e]", text):
        raise InputError(
            f"--items-at must be {_WRITTEN}, in ASCII, without blanks, back-quotes, #, % and marks of patterns"
        )
    return text


def kind_of_place(text: str | None) -> str:
    """What kind of place it is, for everybody to see; None is the folder beside the state."""
    if text is None:
        return "folder"
    return "postgresql" if database_of(text) == "postgresql" else "spark"


def require_settings(text: str | None, settings: EngineSettings) -> None:
    """Refuse settings that mean nothing at a place. Raises `InputError`."""
    if kind_of_place(text) == "folder":
        settings.refuse("duckdb", password_file="its files have no password", spark_master="it is for Spark")


def open_place(state: StateFile, text: str | None, stream_id: str, settings: EngineSettings) -> Place:
    """The place of a stream, which begins its engine when it is first asked.

    Raises:
        InputError: a setting means nothing there.
    """
    require_settings(text, settings)
    match kind_of_place(text):
        case "folder":
            return LocalFolder(state.path, state.folder, settings)
        case "spark":
            from dpwindows.stream.spark_parts import SparkFolder

            return SparkFolder(state.path, f"{text}/{stream_id}", settings)
        case _:
            from dpwindows.stream.database_parts import DatabaseTables

            return DatabaseTables(state.path, str(text), stream_id, settings)
