"""A look at a log before anything is asked of it: what is in it, what is wrong with it, and what to run next.

For the operator's screen only: everything here is exact and is protected by nothing. Nothing is written and no budget
is spent. The public range is never suggested: one that was copied from the data would tell of the first and the last
event, which no noise protects.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from dpwindows.ask.timeline import Timeline
from dpwindows.count.engines import engine_name
from dpwindows.count.engines.duckdb_look import Look, look
from dpwindows.count.engines.duckdb_sample import Sample, remark_on_zones, sample_of
from dpwindows.count.events import CsvLayout, EngineSettings, EventColumns
from dpwindows.count.guesses import guessed_columns, time_guess
from dpwindows.count.query.dialect import Kind
from dpwindows.errors import InputError, counted, percent

_WARNING = "For your eyes only: exact figures of the log, protected by nothing. Nothing was written or spent."
# A series of more steps than this is hard to read.
_MOST_STEPS = 500
_STEPS = {"1m": ("m", 60), "15m": ("m", 900), "1h": ("h", 3600), "1d": ("d", 86_400), "1w": ("d", 604_800)}
_GRAINS = ("s", "m", "h", "d")
_EARLIEST, _LATEST = "1990", "2100"


@dataclass(frozen=True)
class Told:
    """What the operator said of a log; None where nothing was said."""

    item: str | None = None
    time: str | None = None
    count: str | None = None
    time_format: str | None = None
    item_type: str | None = None
    layout: CsvLayout | None = None
    table: str | None = None
    start: str | None = None
    end: str | None = None
    step: str | None = None
    time_zone: str | None = None


@dataclass(frozen=True)
class Check:
    """What was found: the reading that was used, what of it was guessed, the figures, and what to think of them.

    `problems` are what a release would fail on, or be nothing but noise for; `notes` are worth a look. `command` is the
    shape of the release to run next, with START and END left to be filled in where no range was given.
    """

    columns: EventColumns
    guessed: dict[str, str]
    look: Look
    step: str
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    command: str

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, ready for JSON."""
        columns = {name: getattr(self.columns, name) for name in ("item", "time", "count", "time_format", "item_type")}
        return {
            "warning": _WARNING,
            "columns": columns,
            "guessed": self.guessed,
            **asdict(self.look),
            "step": self.step,
            "problems": list(self.problems),
            "notes": list(self.notes),
            "command": self.command,
        }


def check_events(source: str, told: Told, settings: EngineSettings | None = None) -> Check:
    """Look at a log: Parquet, CSV or JSON Lines files, or a DuckDB or SQLite database.

    Raises:
        InputError: it cannot be read at all, or a column is not there; or its engine is another one.
        EngineError: the engine failed.
    """
    settings = settings or EngineSettings()
    engine = engine_name(source, settings)
    if engine != "duckdb":
        raise InputError(
            f"check looks at Parquet, CSV and JSON Lines files and at DuckDB and SQLite databases, and {source!r} is "
            f"read by the engine {engine}: look at it with a query of its own, such as count(*), min and max of time"
        )
    sample = sample_of(source, told.layout, told.table)
    columns, guessed, formats = _reading(sample, told)
    timeline = _timeline(told, integer=formats[:1] == ("integer",))
    found = look(source, columns, timeline, integer=formats[:1] == ("integer",), table=told.table, settings=settings)
    step = told.step or _step(found)
    asked = told.time_zone is None and formats[:1] != ("integer",)
    unzoned = remark_on_zones(source, columns, told.table, settings) if asked else None
    notes = [*([unzoned] if unzoned else []), *_notes(found, formats, columns)]
    zone = "UTC" if unzoned else told.time_zone
    command = _command(source, columns, replace(told, time_zone=zone), step)
    return Check(columns, guessed, found, step, tuple(_problems(found, columns, timeline)), tuple(notes), command)


def _reading(sample: Sample, told: Told) -> tuple[EventColumns, dict[str, str], tuple[str, ...]]:
    """How the log is read, what of that was guessed, by option, and the formats that its times may have."""
    item, time = guessed_columns(sample, told.item, told.time)
    guessed = {} if told.item else {"--item": item}
    guessed |= {} if told.time else {"--time": time}
    layout = sample.layout
    if layout is not None and layout != told.layout:
        guessed |= {"--delimiter": layout.delimiter} if layout.delimiter else {}
        guessed |= {"--no-header --columns": ",".join(layout.names)} if layout.names else {}
    guess = time_guess(sample.values[time], sample.kinds[time]) if time in sample.names else None
    formats = guess.formats if guess is not None and told.time_format is None else ()
    time_format = told.time_format
    if formats and formats[0] not in ("iso", "integer"):
        time_format = guessed["--time-format"] = formats[0]
    item_type = told.item_type
    if item_type is None and item in sample.names and _wants_integers(sample, item):
        item_type = guessed["--item-type"] = "integer"
    columns = EventColumns(item, time, told.count, time_format=time_format, item_type=item_type, layout=layout)
    return columns, guessed, formats


def _wants_integers(sample: Sample, item: str) -> bool:
    """Whether items are numbers such as 13085.0, all of them."""
    there = [value for value in sample.values[item] if value is not None]
    written = bool(there) and all(value.removesuffix(".0").lstrip("-").isdecimal() for value in there)
    return sample.kinds[item] is Kind.FLOAT or (written and any(value.endswith(".0") for value in there))


def _timeline(told: Told, *, integer: bool) -> Timeline | None:
    """The public range, where all of it was said."""
    if told.start is None and told.end is None:
        return None
    if told.start is None or told.end is None:
        raise InputError("give both --start and --end, or neither")
    # Without a step any will do that cuts the range: only what lies inside is counted.
    steps = [told.step] if told.step else ["1"] if integer else ["1d", "1m", "1s"]
    refused = []
    for step in steps:
        try:
            return Timeline(told.start, told.end, step, told.time_zone or "UTC")
        except InputError as error:
            refused.append(error)
    raise refused[0]


def _step(found: Look) -> str:
    """The finest usual step that is no finer than the times are written, and leaves a series that can be read."""
    if isinstance(found.first, int):
        return str(max(1, 10 ** max(0, len(str(found.span // _MOST_STEPS)) - 1))) if found.span > _MOST_STEPS else "1"
    coarsest = _GRAINS.index(found.grain) if found.grain else 0
    for step, (grain, seconds) in _STEPS.items():
        if _GRAINS.index(grain) >= coarsest and found.span <= _MOST_STEPS * seconds * 10**6:
            return step
    return "1mo"


def _problems(found: Look, columns: EventColumns, timeline: Timeline | None) -> Iterator[str]:
    if not found.rows:
        yield "there is no row in it: a release of it would be nothing but noise"
        return
    if found.bad_rows:
        first = found.bad[0]
        where = f" in {first.place}" if first.place else ""
        name = dict(columns.roles)[first.role]
        yield (
            f"{counted(found.bad_rows, 'row')} cannot be read, such as {first.text!r} in the {first.role} column "
            f"{name!r}{where}: {_mend(first.role, columns)}"
        )
    if found.first is None and not found.bad_rows:
        yield f"no row has a time in the column {columns.time!r}: a release of it would be nothing but noise"
    elif not found.items:
        yield f"no row has an item in the column {columns.item!r}: a release of it would be nothing but noise"
    elif timeline is not None and not found.rows_inside and not found.bad_rows:
        yield (
            f"of {counted(found.rows, 'row')} none lies in the range {timeline.start} to {timeline.end}, as times go "
            f"from {found.first} to {found.last}: a release of it would be nothing but noise; is the year right?"
        )


def _mend(role: str, columns: EventColumns) -> str:
    """What to do about rows that cannot be read."""
    if role == "count":
        return "counts are whole numbers: mend them, or leave --count out"
    if columns.time_format is None:
        return "say how it is written with --time-format, or mend them"
    return f"it is not as --time-format {columns.time_format!r} says: give another, or mend them"


def _notes(found: Look, formats: tuple[str, ...], columns: EventColumns) -> Iterator[str]:
    outside = found.rows - (found.rows_inside or 0) - min(found.rows, found.null_items + found.null_times)
    if found.rows_inside and outside > 0 and not found.bad_rows:
        share = percent(outside / found.rows)
        yield f"{share} of the rows lie outside the range, or have a count below 1, and are ignored"
    if len(formats) > 1:
        others = ", ".join(formats[1:3])
        yield f"the first times fit --time-format {formats[0]!r} and {others!r} alike: which one is meant, you must say"
    if isinstance(found.first, str) and not _EARLIEST <= found.first < _LATEST:
        right = f"{columns.time!r} the column of times"
        if columns.time_format is not None:
            right = f"--time-format {columns.time_format} right (seconds, milliseconds, microseconds)"
        yield f"the first time is {found.first}: is {right}?"
    elif isinstance(found.last, str) and found.last > datetime.now(UTC).isoformat():
        yield f"the last time is {found.last}, which is still to come"
    if found.items == found.rows > 1:
        yield f"every item occurs once: is {columns.item!r} the column of items?"
    if found.items == 1 < found.rows:
        yield f"all rows have the same item: is {columns.item!r} the column of items?"


def _command(source: str, columns: EventColumns, told: Told, step: str) -> str:
    """The release to run next, with what only its operator can say left in capitals."""
    words = ["dpwindows", "release", source, "--item", columns.item, "--time", columns.time]
    for option, value in (
        ("--count", columns.count),
        ("--time-format", columns.time_format),
        ("--item-type", columns.item_type),
        ("--table", told.table),
    ):
        words += [option, value] if value is not None else []
    if columns.layout is not None:
        words += ["--delimiter", columns.layout.delimiter] if columns.layout.delimiter else []
        words += ["--no-header", "--columns", ",".join(columns.layout.names)] if columns.layout.names else []
    words += ["--start", told.start or "START", "--end", told.end or "END", "--step", step]
    words += ["--time-zone", told.time_zone] if told.time_zone is not None else []
    words += ["--window", f"rolling:{7 if step == '1d' else 10}", "--unit", "item-add-remove"]
    words += ["--epsilon", "1", "--delta", "1e-6"]
    return shlex.join([*words, "-o", "release.parquet"])
