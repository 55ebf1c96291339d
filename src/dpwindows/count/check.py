"""A look at a log before anything is asked of it: what is in it, what is wrong with it, and what to run next.

For the operator's screen only: everything here is exact and is protected by nothing. Nothing is written and no budget
is spent. The public range is never suggested: one that was copied from the data would tell of the first and the last
event, which no noise protects.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from dpwindows.ask.groups import Grouping
from dpwindows.ask.timeline import Timeline
from dpwindows.count.engines import engine_name
from dpwindows.count.events import CsvLayout, EngineSettings, EventColumns
from dpwindows.count.guess import (
    INTEGER,
    NATIVE,
    Guess,
    are_hours_and_minutes,
    formats_of,
    guess_format,
    guess_item,
    guess_time,
    profiles_of,
)
from dpwindows.count.look import GroupLook, Look, look
from dpwindows.count.query.dialect import Kind
from dpwindows.count.sample import Log, Sample, remark_on_zones
from dpwindows.count.sources.batches import in_batches
from dpwindows.count.sources.csv_files import CsvHeader, one_column
from dpwindows.count.time_formats import EPOCHS
from dpwindows.errors import InputError, counted, near, percent

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
    grouping: Grouping | None = None


@dataclass(frozen=True)
class Findings:
    """What a log holds, and what to think of it.

    `problems` are what a release would fail on, or be nothing but noise for; `doubts` are what may be a mistake of the
    operator; `notes` are worth a look.
    """

    look: Look
    problems: tuple[str, ...]
    doubts: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Check(Findings):
    """What was found, and the reading that was used; of a table of a lake, also which of its states was looked at.

    `guessed` has what of the reading was guessed, by option, and `evidence` why, where it is a column. `command` is the
    shape of the release to run next, with START and END left to be filled in where no range was given.
    """

    columns: EventColumns
    guessed: dict[str, str]
    evidence: dict[str, Guess]
    step: str
    command: str
    version: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, ready for JSON."""
        columns = {name: getattr(self.columns, name) for name in ("item", "time", "count", "time_format", "item_type")}
        return {
            "warning": _WARNING,
            "columns": columns,
            "guessed": self.guessed,
            "evidence": {option: asdict(guess) for option, guess in self.evidence.items()},
            **asdict(self.look),
            "version": self.version,
            "step": self.step,
            "problems": list(self.problems),
            "doubts": list(self.doubts),
            "notes": list(self.notes),
            "command": self.command,
        }


def check_events(source: str, options: LogOptions, settings: EngineSettings | None = None) -> Check:
    """Look at a log: files, a DuckDB or SQLite database, or a table of a lake.

    Raises:
        InputError: it cannot be read at all, or a column is not there; its engine is another one; or which columns hold
            items and times, or how times are written, is not clear: the message names what it may be.
        EngineError: the engine failed.
    """
    batches = in_batches(source)
    opened = source if batches is None else batches
    log = Log(opened, options.layout, options.table, settings or EngineSettings())
    _require_files(log)
    columns, guessed, evidence, integer = _guessed_reading(log, options)
    timeline = _timeline(options, integer=integer)
    found = examine(log, columns, timeline, integer=integer, zone=options.time_zone or "UTC")
    step, notes = options.step or _suitable_step(found.look), found.notes
    asked = options.time_zone is None and not integer
    if asked and (unzoned := remark_on_zones(log, columns)):
        notes = (unzoned, *notes)
        options = replace(options, time_zone="UTC")
    command = _command(source, columns, options, step)
    version = None if batches is None else batches.version
    return Check(found.look, found.problems, found.doubts, notes, columns, guessed, evidence, step, command, version)


def examine(
    log: Log, columns: EventColumns, timeline: Timeline | None, *, integer: bool = False, zone: str = "UTC"
) -> Findings:
    """What a log holds as a release reads it, with nothing guessed, and what to think of it; arguments as of `look`.

    Raises:
        InputError: it cannot be read at all or cannot be read twice, or a column is not there.
        EngineError: the engine failed.
    """
    _require_files(log)
    seen = look(log, columns, timeline, integer=integer, zone=zone)
    times = log.sample.values.get(columns.time, [])
    formats = formats_of(times, log.sample.kinds.get(columns.time, Kind.TEXT))
    problems = tuple(_problems(seen, columns, timeline, formats))
    integer = timeline.is_integer if timeline is not None else integer
    clock = integer and are_hours_and_minutes(times)
    doubts = () if problems else tuple(_doubts(seen, columns, timeline, formats, clock=clock))
    return Findings(seen, problems, doubts, tuple(_notes(seen, columns, timeline)))


def _require_files(log: Log) -> None:
    """Refuse what is no file, database in a file or table of a lake, or can be read only once."""
    engine = engine_name(log.source, log.settings)
    if engine != "duckdb":
        raise InputError(
            f"check looks at files, tables of a lake and DuckDB and SQLite databases, and this source is read by the "
            f"engine {engine}: look at it with a query of its own, such as count(*), min and max of time"
        )
    if not log.again:
        raise InputError(f"check reads a log more than once, and {log.source} is a pipe: write it to a file")


def _guessed_reading(log: Log, options: LogOptions) -> tuple[EventColumns, dict[str, str], dict[str, Guess], bool]:
    """How the log is read, what of that was guessed, by option, why, and whether times are whole numbers."""
    sample = log.sample
    if not any(sample.values.values()):
        raise InputError("there is no row in it: a release of it would be nothing but noise")
    item, time, time_format = options.item, options.time, options.time_format
    if sample.delimiter is not None and len(sample.names) == 1 and not (item and time):
        raise one_column(str(log.source), CsvHeader(sample.delimiter, tuple(sample.names)))
    # Where both columns are known only how times are written is left to find out.
    grouped = () if options.grouping is None else options.grouping.names
    open_to = [time] if item and time else [name for name in sample.names if name not in (options.count, *grouped)]
    seen = {name: values for name, values in sample.values.items() if name in open_to}
    known = item and time and (time_format or time not in seen or sample.kinds[time] in NATIVE)
    profiles = {} if known else profiles_of(log, replace(sample, values=seen))
    evidence: dict[str, Guess] = {}
    if time is None:
        evidence["--time"] = guess_time(profiles, item)
        time = evidence["--time"].name
    if item is None:
        evidence = {"--item": guess_item(profiles, time), **evidence}
        item = evidence["--item"].name
    guessed = {option: guess.name for option, guess in evidence.items()}
    if (layout := sample.layout) is not None and layout != options.layout:
        guessed |= {"--delimiter": layout.delimiter} if layout.delimiter else {}
        guessed |= {"--no-header --columns": ",".join(layout.names)} if layout.names else {}
    fitting = "iso"
    if time_format is None and time in profiles and profiles[time].formats:
        fitting = guess_format(profiles[time])
        if fitting not in ("iso", INTEGER):
            time_format = guessed["--time-format"] = fitting
    item_type = options.item_type
    if item_type is None and item in sample.names and _wants_integers(sample, item):
        item_type = guessed["--item-type"] = "integer"
    columns = EventColumns(
        item, time, options.count, time_format, layout, item_type=item_type, grouping=options.grouping
    )
    return columns, guessed, evidence, fitting == INTEGER


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


def _problems(seen: Look, columns: EventColumns, timeline: Timeline | None, formats: tuple[str, ...]) -> Iterator[str]:
    if not seen.rows:
        yield "there is no row in it: a release of it would be nothing but noise"
        return
    if seen.bad_rows:
        first = seen.bad[0]
        where = f" in {first.place}" if first.place else ""
        yield (
            f"{counted(seen.bad_rows, 'row')} cannot be read, such as {first.text!r} in {columns.title(first.role)}"
            f"{where}: {_mend(first.role, columns, formats)}"
        )
    if seen.first is None and not seen.bad_rows:
        yield f"no row has a time in the column {columns.time!r}: a release of it would be nothing but noise"
    elif not seen.items:
        yield f"no row has an item in the column {columns.item!r}: a release of it would be nothing but noise"
    elif timeline is not None and not seen.rows_inside and not seen.bad_rows:
        meant = _unit_meant(columns, formats) or "is the year right?"
        yield (
            f"of {counted(seen.rows, 'row')} none lies in the range {timeline.start} to {timeline.end}, as times go "
            f"from {seen.first} to {seen.last}: a release of it would be nothing but noise; {meant}"
        )
    for group in seen.groups:
        if seen.rows_inside != 0 and len(group.absent) == group.listed:
            yield f"{_absent(group)}: a release of it would be nothing but noise"


def _mend(role: str, columns: EventColumns, formats: tuple[str, ...]) -> str:
    """What to do about rows that cannot be read."""
    if role == "count":
        return "counts are whole numbers: mend them, or leave --count out"
    fitting = [one for one in formats if one not in ("iso", INTEGER, columns.time_format)]
    meant = f"; the first ones fit --time-format {fitting[0]!r}" if fitting else ""
    if columns.time_format is None:
        return f"say how it is written with --time-format, or mend them{meant}"
    return f"it is not as --time-format {columns.time_format!r} says: give another, or mend them{meant}"


def _unit_meant(columns: EventColumns, formats: tuple[str, ...]) -> str:
    """What to ask if times are numbers of another unit than was said; empty if they are not."""
    if columns.time_format in EPOCHS and formats and formats[0] in EPOCHS and formats[0] != columns.time_format:
        return f"is --time-format {columns.time_format} right? By their size the first times are {formats[0]}"
    return ""


def _absent(group: GroupLook) -> str:
    """Which values of a list do not occur, with what may be meant."""
    others = [text for text, _ in group.others]
    shown = ", ".join(f"{value!r}{near(value, others)}" for value in group.absent[:5])
    more = ", ..." if len(group.absent) > 5 else ""
    number = len(group.absent)
    do = "does" if number == 1 else "do"
    return f"{number:,} of {counted(group.listed, 'value')} listed for {group.column!r} {do} not occur: {shown}{more}"


def _doubts(
    seen: Look, columns: EventColumns, timeline: Timeline | None, formats: tuple[str, ...], *, clock: bool
) -> Iterator[str]:
    """What may be a mistake: of a column, a format, a range or a list."""
    for missing, role in ((seen.null_items, "item"), (seen.null_times, "time")):
        if missing >= 0.1 * seen.rows:
            yield (
                f"{missing:,} of {counted(seen.rows, 'row')} ({percent(missing / seen.rows)}) have nothing in "
                f"{columns.title(role)}, and are ignored: is it the right one?"
            )
    if unit := _unit_meant(columns, formats):
        yield f"times go from {seen.first} to {seen.last}: {unit}"
    elif isinstance(seen.first, str) and not _EARLIEST <= seen.first < _LATEST:
        yield f"the first time is {seen.first}: is {columns.time!r} the column of times?"
    elif isinstance(seen.last, str) and seen.last > datetime.now(ZoneInfo(seen.zone)).isoformat():
        yield f"the last time is {seen.last}, which is still to come"
    if clock:
        yield f"all times in {columns.time!r} are as hours and minutes are written (1955): times of day without a day?"
    if timeline is not None and seen.first_step is not None and seen.last_step is not None:
        if _outside(seen) > 0.5 * seen.rows:
            yield f"{percent(_outside(seen) / seen.rows)} of the rows lie outside the range: is it the right one?"
        before, after = seen.first_step - 1, timeline.steps - seen.last_step
        empty = timeline.steps - (seen.steps_inside or 0)
        if max(before, after) >= 2 and max(before, after) >= 0.1 * timeline.steps:
            where = "first" if before >= after else "last"
            yield f"the {where} {max(before, after):,} of {timeline.steps:,} steps hold no event: is the range right?"
        elif empty > 0.5 * timeline.steps:
            yield f"{empty:,} of {timeline.steps:,} steps hold no event: is the step right?"
    for group in seen.groups:
        if group.absent:
            yield _absent(group)
        if group.other_rows > 0.5 * seen.rows:
            share = percent(group.other_rows / seen.rows)
            yield f"{share} of the rows have a value for {group.column!r} that is not on its list"
    if seen.items == seen.rows > 1:
        yield f"every item occurs once: is {columns.item!r} the column of items?"
    if seen.items == 1 < seen.rows:
        yield f"all rows have the same item: is {columns.item!r} the column of items?"


def _outside(seen: Look) -> int:
    """The rows with item and time that the range leaves out."""
    return seen.rows - (seen.rows_inside or 0) - seen.null_rows


def _notes(seen: Look, columns: EventColumns, timeline: Timeline | None) -> Iterator[str]:
    outside = _outside(seen)
    if seen.rows_inside and outside > 0 and not seen.bad_rows:
        share = percent(outside / seen.rows)
        yield f"{share} of the rows lie outside the range, or have a count below 1, and are ignored"
    if timeline is not None and seen.steps_inside and (empty := timeline.steps - seen.steps_inside):
        yield f"{empty:,} of {timeline.steps:,} steps hold no event"
    if seen.placeholders:
        yield (
            f"{counted(seen.placeholders, 'row')} have a text such as NULL for {columns.title('item')}, which is one "
            f"item to a release: empty it if it means that there is none"
        )
    for group in seen.groups:
        if group.others:
            shown = ", ".join(f"{text!r} ({counted(rows, 'row')})" for text, rows in group.others[:5])
            share = percent(group.other_rows / seen.rows)
            yield f"{share} of the rows are ignored, as their {group.column!r} is not on its list: {shown}"


def _command(source: str, columns: EventColumns, options: LogOptions, step: str) -> str:
    """The release to run next, with what only its operator can say left in capitals."""
    layout = columns.layout or CsvLayout()
    given: list[tuple[str, str | None]] = [("--item", columns.item), ("--time", columns.time)]
    given += [("--count", columns.count), ("--time-format", columns.time_format), ("--item-type", columns.item_type)]
    given += [("--table", options.table), ("--delimiter", layout.delimiter)]
    given += [("--columns", None if layout.names is None else ",".join(layout.names))]
    given += [("--start", options.start or "START"), ("--end", options.end or "END"), ("--step", step)]
    for group in () if columns.grouping is None else columns.grouping.columns:
        listed = ",".join(map(str, group.values))
        shown = listed if len(listed) <= 100 and listed.count(",") == len(group.values) - 1 else "VALUES"
        given += [("--by", group.name), ("--values", shown)]
    given += [("--max-groups", None if columns.grouping is None else "N")]
    given += [("--time-zone", options.time_zone), ("--window", f"rolling:{7 if step == '1d' else 10}")]
    words = [word for option, value in given if value is not None for word in (option, value)]
    words = ["dpwindows", "release", source, *["--no-header"] * (layout.names is not None), *words]
    return shlex.join([*words, *_PRIVACY, "-o", "release.parquet"])
