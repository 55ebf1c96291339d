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
from dpwindows.count.events import CsvLayout, EngineSettings, EventColumns
from dpwindows.count.look import Look, look
from dpwindows.count.query.dialect import Kind
from dpwindows.count.sample import Sample, guessed_columns, remark_on_zones, sample_of, time_guess
from dpwindows.errors import InputError, counted, percent

_WARNING = "For your eyes only: exact figures of the log, protected by nothing. Nothing was written or spent."
# A series of more steps than this is hard to read.
_MOST_STEPS = 500
_STEPS = {"1m": ("m", 60), "15m": ("m", 900), "1h": ("h", 3600), "1d": ("d", 86_400), "1w": ("d", 604_800)}
_GRAINS = ("s", "m", "h", "d")
_EARLIEST, _LATEST = "1990", "2100"
_PRIVACY = ("--unit", "item-add-remove", "--epsilon", "1", "--delta", "1e-6")


@dataclass(frozen=True)
class LogOptions:
    """The options by which an operator says how a log is to be read; None where one is left out."""

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


def check_events(source: str, options: LogOptions, settings: EngineSettings | None = None) -> Check:
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
    sample = sample_of(source, options.layout, options.table)
    columns, guessed, formats = _guessed_reading(sample, options)
    integer = formats[:1] == ("integer",)
    timeline = _timeline(options, integer=integer)
    seen = look(source, columns, timeline, integer=integer, table=options.table, settings=settings)
    step = options.step or _suitable_step(seen)
    notes = list(_notes(seen, formats, columns))
    asked = options.time_zone is None and not integer
    if asked and (unzoned := remark_on_zones(source, columns, options.table, settings)):
        notes.insert(0, unzoned)
        options = replace(options, time_zone="UTC")
    command, problems = _command(source, columns, options, step), tuple(_problems(seen, columns, timeline))
    return Check(columns, guessed, seen, step, problems, tuple(notes), command)


def _guessed_reading(sample: Sample, options: LogOptions) -> tuple[EventColumns, dict[str, str], tuple[str, ...]]:
    """How the log is read, what of that was guessed, by option, and the formats that its times may have."""
    item, time = guessed_columns(sample, options.item, options.time)
    guessed = {} if options.item else {"--item": item}
    guessed |= {} if options.time else {"--time": time}
    layout = sample.layout
    if layout is not None and layout != options.layout:
        guessed |= {"--delimiter": layout.delimiter} if layout.delimiter else {}
        guessed |= {"--no-header --columns": ",".join(layout.names)} if layout.names else {}
    time_format, item_type = options.time_format, options.item_type
    formats: tuple[str, ...] = ()
    if time in sample.names and time_format is None:
        guess = time_guess(sample.values[time], sample.kinds[time])
        formats = guess.formats if guess is not None else ()
    if formats and formats[0] not in ("iso", "integer"):
        time_format = guessed["--time-format"] = formats[0]
    if item_type is None and item in sample.names and _wants_integers(sample, item):
        item_type = guessed["--item-type"] = "integer"
    columns = EventColumns(item, time, options.count, time_format=time_format, item_type=item_type, layout=layout)
    return columns, guessed, formats


def _wants_integers(sample: Sample, item: str) -> bool:
    """Whether items are numbers such as 13085.0, all of them."""
    there = [value for value in sample.values[item] if value is not None]
    written = bool(there) and all(value.removesuffix(".0").lstrip("-").isdecimal() for value in there)
    return sample.kinds[item] is Kind.FLOAT or (written and any(value.endswith(".0") for value in there))


def _timeline(options: LogOptions, *, integer: bool) -> Timeline | None:
    """The public range, where all of it was given."""
    if options.start is None and options.end is None:
        return None
    if options.start is None or options.end is None:
        raise InputError("give both --start and --end, or neither")
    # Without a step any will do that cuts the range: only what lies inside is counted.
    refused = []
    for step in [options.step] if options.step else ["1"] if integer else ["1d", "1m", "1s"]:
        try:
            return Timeline(options.start, options.end, step, options.time_zone or "UTC")
        except InputError as error:
            refused.append(error)
    raise refused[0]


def _suitable_step(seen: Look) -> str:
    """The finest usual step that is no finer than the times are written, and leaves a series that can be read."""
    if isinstance(seen.first, int):
        return str(max(1, 10 ** max(0, len(str(seen.span // _MOST_STEPS)) - 1))) if seen.span > _MOST_STEPS else "1"
    coarsest = _GRAINS.index(seen.grain) if seen.grain else 0
    for step, (grain, seconds) in _STEPS.items():
        if _GRAINS.index(grain) >= coarsest and seen.span <= _MOST_STEPS * seconds * 10**6:
            return step
    return "1mo"


def _problems(seen: Look, columns: EventColumns, timeline: Timeline | None) -> Iterator[str]:
    if not seen.rows:
        yield "there is no row in it: a release of it would be nothing but noise"
        return
    if seen.bad_rows:
        first = seen.bad[0]
        where = f" in {first.place}" if first.place else ""
        yield (
            f"{counted(seen.bad_rows, 'row')} cannot be read, such as {first.text!r} in {columns.title(first.role)}"
            f"{where}: {_mend(first.role, columns)}"
        )
    if seen.first is None and not seen.bad_rows:
        yield f"no row has a time in the column {columns.time!r}: a release of it would be nothing but noise"
    elif not seen.items:
        yield f"no row has an item in the column {columns.item!r}: a release of it would be nothing but noise"
    elif timeline is not None and not seen.rows_inside and not seen.bad_rows:
        yield (
            f"of {counted(seen.rows, 'row')} none lies in the range {timeline.start} to {timeline.end}, as times go "
            f"from {seen.first} to {seen.last}: a release of it would be nothing but noise; is the year right?"
        )


def _mend(role: str, columns: EventColumns) -> str:
    """What to do about rows that cannot be read."""
    if role == "count":
        return "counts are whole numbers: mend them, or leave --count out"
    if columns.time_format is None:
        return "say how it is written with --time-format, or mend them"
    return f"it is not as --time-format {columns.time_format!r} says: give another, or mend them"


def _notes(seen: Look, formats: tuple[str, ...], columns: EventColumns) -> Iterator[str]:
    outside = seen.rows - (seen.rows_inside or 0) - min(seen.rows, seen.null_items + seen.null_times)
    if seen.rows_inside and outside > 0 and not seen.bad_rows:
        share = percent(outside / seen.rows)
        yield f"{share} of the rows lie outside the range, or have a count below 1, and are ignored"
    if len(formats) > 1:
        others = ", ".join(formats[1:3])
        yield f"the first times fit --time-format {formats[0]!r} and {others!r} alike: which one is meant, you must say"
    if isinstance(seen.first, str) and not _EARLIEST <= seen.first < _LATEST:
        right = f"{columns.time!r} the column of times"
        if columns.time_format is not None:
            right = f"--time-format {columns.time_format} right (seconds, milliseconds, microseconds)"
        yield f"the first time is {seen.first}: is {right}?"
    elif isinstance(seen.last, str) and seen.last > datetime.now(UTC).isoformat():
        yield f"the last time is {seen.last}, which is still to come"
    if seen.items == seen.rows > 1:
        yield f"every item occurs once: is {columns.item!r} the column of items?"
    if seen.items == 1 < seen.rows:
        yield f"all rows have the same item: is {columns.item!r} the column of items?"


def _command(source: str, columns: EventColumns, options: LogOptions, step: str) -> str:
    """The release to run next, with what only its operator can say left in capitals."""
    layout = columns.layout or CsvLayout()
    given: list[tuple[str, str | None]] = [("--item", columns.item), ("--time", columns.time)]
    given += [("--count", columns.count), ("--time-format", columns.time_format), ("--item-type", columns.item_type)]
    given += [("--table", options.table), ("--delimiter", layout.delimiter)]
    given += [("--columns", None if layout.names is None else ",".join(layout.names))]
    given += [("--start", options.start or "START"), ("--end", options.end or "END"), ("--step", step)]
    given += [("--time-zone", options.time_zone), ("--window", f"rolling:{7 if step == '1d' else 10}")]
    words = [word for option, value in given if value is not None for word in (option, value)]
    words = ["dpwindows", "release", source, *["--no-header"] * (layout.names is not None), *words]
    return shlex.join([*words, *_PRIVACY, "-o", "release.parquet"])
