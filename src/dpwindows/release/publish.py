"""A release as tables where dashboards look: in DuckDB, PostgreSQL, a folder of Delta tables or a catalogue of Iceberg.

Each table NAME is two: NAME holds the rows of all releases, each under its release id, and NAME_releases one row for
each release. **That row is the commit.** It comes after all rows, so a reader who joins with it sees a release whole or
not at all, whatever was interrupted and however many publish at once.

**Once for each release id.** Whoever publishes looks first whether the release is there, and what is written depends on
nothing having changed since:

- DuckDB and PostgreSQL write both tables in one transaction, and the release id is the key of NAME_releases: of two
  transactions with the same id one fails, starts anew, and finds the release.
- Delta and Iceberg write one table at a time, each time whole. A write fails if another one came in between: in Delta
  one with the same transaction id, which is made of the release id; in Iceberg any other, since our tables say that
  a write is not to be tried again of itself. What fails starts anew, and finds what is there. If only the rows are,
  they are compared with those of the release before the row that commits them is written.

So the same command again, after whatever happened, ends with the release there once. A release id with other content is
refused: it has one set of numbers.

"""

from __future__ import annotations

import json
import random
import re
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from dpwindows.count.events import EngineSettings
from dpwindows.errors import EngineError, InputError
from dpwindows.release.checks import CHECKSUM, checksum_of
from dpwindows.release.destinations import COMMITS, ID, UTC_TIME, ConflictError, Place, place_opener

# Seconds for which a destination that others write to is tried again.
_PATIENCE = 20.0


@dataclass(frozen=True)
class _Content:
    """What is written of a release: its rows and the row that commits them."""

    release_id: str
    rows: pa.Table
    commit: pa.Table

    @property
    def checksum(self) -> str:
        return str(self.commit[CHECKSUM][0].as_py())


def publish(
    numbers: pa.Table,
    metadata: dict[str, Any],
    destination: object,
    table: str,
    settings: EngineSettings | None = None,
) -> bool:
    """Write a release into the tables `table` and `table`_releases of a destination; see `Release.publish`.

    Returns:
        False if it was there already.

    Raises:
        InputError: the destination is none, rows are missing, a table is not ours, or the id is there with other
            content.
        EngineError: the destination cannot be reached or written to; the same call again goes on from there.
    """
    if not re.fullmatch(r"([A-Za-z_][A-Za-z0-9_]{0,50}\.)?[A-Za-z_][A-Za-z0-9_]{0,50}", table):
        raise InputError(
            f"--table must be a name of at most 50 letters, digits and underscores, or SCHEMA.NAME in a database, got "
            f"{table!r}"
        )
    if numbers.num_rows != metadata["numbers"]:
        raise InputError(
            f"this is not the whole release {metadata['release_id']}: it has {metadata['numbers']:,} numbers, and "
            f"{numbers.num_rows:,} rows were given. A release id has one set of numbers: publish all of them, and "
            f"choose rows where they are read"
        )
    content = _content_of(numbers, metadata)
    open_place = place_opener(destination, table, settings or EngineSettings())
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            with open_place() as place:
                return _put(place, content)
        except ConflictError:
            if time.monotonic() > deadline:
                raise EngineError(
                    "others keep writing to the destination, or have it open: nothing of the release can be seen "
                    "there; publish it again later"
                ) from None
            time.sleep(random.uniform(0.05, 0.3))


def _content_of(numbers: pa.Table, metadata: dict[str, Any]) -> _Content:
    folded = [name.casefold() for name in (ID, *numbers.column_names)]
    if len(set(folded)) < len(folded):
        raise InputError(
            f"the release has columns that databases do not tell from one another or from {ID!r}: "
            f"{', '.join(numbers.column_names)}; rename the column of groups in the log"
        )
    release_id, checksum = str(metadata["release_id"]), checksum_of(numbers, metadata)
    columns = {ID: pa.array([release_id] * numbers.num_rows, pa.string())}
    for name in numbers.column_names:
        column = numbers[name]
        columns[name] = column.cast(UTC_TIME) if pa.types.is_timestamp(column.type) else column
    stated = {
        ID: release_id,
        "released_at": datetime.fromisoformat(metadata["released_at"]).astimezone(UTC),
        "guarantee": metadata["guarantee"],
        "numbers": numbers.num_rows,
        CHECKSUM: checksum,
        "metadata": json.dumps(metadata | {CHECKSUM: checksum}, ensure_ascii=False, allow_nan=False),
    }
    return _Content(release_id, pa.table(columns), pa.Table.from_pylist([stated], COMMITS))


def _put(place: Place, content: _Content) -> bool:
    place.prepare(content.rows)
    there = place.checksums(content.release_id)
    if there:
        if there != [content.checksum]:
            raise _other_content(content)
        place.settle()
        return False
    rows = place.rows(content.release_id, content.rows.schema)
    if rows.num_rows == 0:
        place.add(content.rows, content.release_id, commit=False)
    elif not _in_order(rows).equals(_in_order(content.rows)):
        raise _other_content(content)
    place.settle()
    place.add(content.commit, content.release_id, commit=True)
    place.settle()
    return True


def _other_content(content: _Content) -> InputError:
    return InputError(
        f"the release {content.release_id} is there already, with other numbers or other metadata: a release id has "
        f"one set of numbers, so one of both was changed; nothing was written"
    )


def _in_order(rows: pa.Table) -> pa.Table:
    return rows.sort_by([(name, "ascending") for name in rows.column_names])
