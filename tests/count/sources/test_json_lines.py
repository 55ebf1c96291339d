"""JSON Lines: every value is read by itself, whatever types the other rows have."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import dpwindows as dw
from dpwindows.count.engines.duckdb import open_events
from dpwindows.count.events import EventColumns
from dpwindows.errors import InputError

STEPS = dw.Timeline.of_steps(3)


def rows(source: object, item_type: str | None = None, count: str | None = None) -> list[Any]:
    columns = EventColumns("who", "at", count, item_type=item_type)
    with open_events(source, columns, STEPS, cap=9) as events:
        return sorted(events.connection.sql(events.sql).fetchall())


def written(folder: Path, *lines: str, name: str = "log.jsonl") -> Path:
    (folder / name).write_text("\n".join(lines) + "\n")
    return folder / name


GOOD = [
    '{"who": "a", "at": 0, "n": 2}',
    '{"at": "1", "who": "a", "other": {"deep": [1, "x"]}, "n": "3"}',
    '{"who": 13085, "at": 2, "n": 1}',
    '{"who": "13085", "at": 2, "n": 1}',
    '{"who": "\\u00e9\\"\\n", "at": 0, "n": 1}',
    '{"who": 123456789012345678901234567890, "at": 0, "n": 1}',
    '{"who": "null", "at": 0, "n": 1}',
    '{"who": "", "at": 0, "n": 1}',
]
IGNORED = ['{"who": null, "at": 0}', '{"at": 0}', '{"who": "z", "at": null}', '{"who": "z", "at": 7}', "{}"]
READ = [
    ("", 1, 1),
    ("123456789012345678901234567890", 1, 1),
    ("13085", 3, 1),
    ("13085", 3, 1),
    ("a", 1, 1),
    ("a", 2, 1),
    ("null", 1, 1),
    ('é"\n', 1, 1),
]


def test_strings_and_numbers_are_their_text(tmp_path: Path) -> None:
    assert rows(written(tmp_path, *IGNORED[:2], *GOOD, "", *IGNORED)) == READ
    assert [row[2] for row in rows(written(tmp_path, *GOOD[:2]), count="n")] == [2, 3]


def test_each_line_alone_is_read_as_among_the_others(tmp_path: Path) -> None:
    alone = [row for line in GOOD for row in rows(written(tmp_path, line))]
    assert sorted(alone) == READ


def test_compressed_and_in_folders(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson.gz").write_bytes(gzip.compress("\n".join(GOOD).encode()))
    assert rows(tmp_path / "a.ndjson.gz") == rows(tmp_path) == READ


@pytest.mark.parametrize("value", [True, False, {"x": 1}, [1], 1.5, 1e300])
def test_what_is_no_text_and_no_whole_number_is_refused(value: Any, tmp_path: Path) -> None:
    for place, field in (("item", "who"), ("time", "at"), ("count", "n")):
        log = written(tmp_path, json.dumps({"who": "a", "at": 0, "n": 1} | {field: value}), *GOOD)
        with pytest.raises(InputError, match=f"the {place} column '{field}'"):
            rows(log, count="n")


def test_whole_numbers_of_floats(tmp_path: Path) -> None:
    log = written(tmp_path, '{"who": 13085.0, "at": 0}', '{"who": "13085", "at": 0}', '{"who": 0.5, "at": 0}')
    assert rows(log, "integer") == [(13085, 1, 1)] * 2


def test_a_field_that_is_nowhere_and_malformed_lines_are_told(tmp_path: Path) -> None:
    log = written(tmp_path, '{"whom": "a", "time": 0}')
    with pytest.raises(InputError, match=r"'who' for the item \(did you mean 'whom'\?\).*columns are whom, time"):
        rows(log)
    for line in ('{"who": "a"', '{"who": "a", "who": "b", "at": 0}', "[1]", "nonsense"):
        with pytest.raises(InputError, match="JSON Lines is malformed"):
            rows(written(tmp_path, *GOOD, line))
