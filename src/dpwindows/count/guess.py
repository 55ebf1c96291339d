"""Which columns of a log hold items and times, and how times are written: guesses with their evidence, or a question.

For the operator's screen only, and no release depends on it. Evidence is the name of a column and what all rows of the
log hold in it. Where that does not decide, the operator is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from shlex import quote
from typing import NoReturn

from dpwindows.count.dialects.duckdb import patterned_sql
from dpwindows.count.engines.duckdb import private_engine, progress_bar, running
from dpwindows.count.events import EventColumns
from dpwindows.count.look import PLACEHOLDERS
from dpwindows.count.query.dialect import TIME_TEXT, Kind, quote_text
from dpwindows.count.sample import Log, Sample
from dpwindows.count.sources.duckdb import find_parts
from dpwindows.count.time_formats import EPOCHS, has_clock
from dpwindows.errors import InputError, counted, percent

INTEGER = "integer"
"""The format of whole numbers that are times of their own."""
NATIVE = (Kind.WALL, Kind.INSTANT, Kind.DATE)
"""The kinds of columns whose type says that they hold times."""

_TIMES, _MOST_SHOWN = 200, 4
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p")
_DAYS = (
    *("%m/%d/%Y", "%d/%m/%Y", "%m/%d/%y", "%d/%m/%y", "%d.%m.%Y", "%d.%m.%y", "%d-%m-%Y", "%m-%d-%Y"),
    *("%Y/%m/%d", "%Y.%m.%d", "%d-%b-%Y", "%d-%b-%y", "%d/%b/%Y", "%d/%b/%y"),
    *("%d %b %Y", "%b %d %Y", "%b %d, %Y", "%B %d, %Y"),
)
_PATTERNS = (
    *(day + clock for day in _DAYS for clock in _CLOCKS),
    *("%Y%m%d", "%Y%m%d %H:%M:%S", "%Y%m%d%H%M", "%Y%m%d%H%M%S", "%d%b%Y", "%d %B %Y", "%a %b %d %H:%M:%S %Y"),
    *("%d/%b/%Y:%H:%M:%S %z", "[%d/%b/%Y:%H:%M:%S %z]", "[%d/%b/%Y:%H:%M:%S", "%a, %d %b %Y %H:%M:%S %z"),
    *("%Y-%m-%d %H:%M:%S UTC", "%Y-%m-%d %H:%M:%S.%f UTC", "%Y-%m-%d %H:%M:%S %z", "%Y-%m-%dT%H:%M:%S%z"),
    *("%Y-%m-%dT%H:%M:%S.%f%z", "%Y-%m-%d %I:%M:%S %p", "%Y-%m-%d %H:%M:%S,%f"),
)
# Seconds since 1970 of the years 1990 to 2100.
_FIRST, _LAST = 631_152_000, 4_102_444_800
# What names of columns say. People come before things, and things before whatever has an id.
_PEOPLE = (
    "user|visitor|customer|cust|client|member|account|acct|person|patient|subject|player|driver|passenger|rider|"
    "student|employee|subscriber|household|citizen|voter|author|actor|guest|buyer|donor|borrower|participant|"
    "respondent|learner|mail|email|username|who|case|kunde|kunden|benutzer|nutzer|cliente|usuario|utilisateur"
)
_THINGS = "device|host|hostname|session|machine|cookie|bike|vehicle|car|ip|tail|phone|imei|mac|fingerprint|sensor"
_IDS = "id|ids|uid|uuid|guid|key|no|num|nr|number|nummer|name|code|address|addr|hash|item"
_RANKS = [re.compile(rf"(?:{nouns})s?(?:{_IDS})?") for nouns in (_PEOPLE, _THINGS)]
_ID = re.compile(r"(?:item|product|order|movie|track|content|trip|ride|transaction)?ids?|uid|key|hash|item|.*[ug]uid")
_ATTRIBUTES = re.compile(
    "of|type|kind|status|state|city|country|zip|postcode|region|age|sex|gender|birth|year|segment|group|category|"
    "class|level|tier|plan|rating|score|count|amount|total|price|income|tenure|lat|lon|latitude|longitude|role|"
    "title|language|agent|flag|is|has"
)
_EVENT_TIME = re.compile(r"ts|at|when|moment|epoch|created|occurred|.*(?:time|date|datetime|stamp|day)|date.*|time.*")
_OTHER_TIMES = re.compile(
    "(?:end|ended|stop|stopped|finish|finished|complete|completed|updated|modified|deleted|closed|birth|birthdate|"
    "dob|born|birthday|expiry|expires|expiration|expected|estimated|due|deadline|delivered|delivery|ship|shipped|"
    "shipping|sched|scheduled|planned|approved|review|reviewed|returned|return|arr|arrival|dropoff|discharge|"
    "load|loaded|ingested|processed|resolved|last|valid)(?:time|date|day|at|timestamp)?"
)
_MEASURED = re.compile(r"[+-]?[0-9]*[.,]([0-9]*[1-9][0-9]*)(e[+-]?[0-9]+)?", re.IGNORECASE)


@dataclass(frozen=True)
class Profile:
    """What one column holds in `rows` rows: those of the whole log, or else its first ones.

    `filled` counts the rows with a value and `distinct` about how many different ones there are. `formats` pairs each
    format that its first times fit, the likeliest first, with the number of values in all rows that it does not read.
    `example` is one of its values. What is `unfit` for items holds measured numbers or structures.
    """

    name: str
    kind: Kind
    rows: int
    filled: int
    distinct: int
    formats: tuple[tuple[str, int], ...]
    example: str
    unfit: bool
    whole: bool

    @cached_property
    def words(self) -> list[str]:
        """The words of its name in small letters."""
        return re.findall(r"[^\W_]+", re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", self.name).lower())

    @property
    def share(self) -> float:
        """The share of rows with a value."""
        return self.filled / self.rows if self.rows else 0.0

    @property
    def written_as_times(self) -> int:
        """How surely its values are times by themselves: 2 by type or text, 1 by size of a number, 0 not."""
        if not self.formats:
            return 0
        return {INTEGER: 0, **dict.fromkeys(EPOCHS, 1)}.get(self.formats[0][0], 2)

    @property
    def named_as_time(self) -> int:
        """2 for when something happened or began, 0 for when something else did, 1 for a name that says neither."""
        if any(map(_OTHER_TIMES.fullmatch, self.words)):
            return 0
        return 2 if any(_EVENT_TIME.fullmatch(word) for word in self.words) else 1

    @property
    def item_rank(self) -> tuple[int, bool]:
        """How much its name and values say for items: 3 people, 2 things, 1 an id, 0 nothing; and if it is named an id.

        What has a value of its own in nearly every row is the row, unless it is a person's id; and what has few values
        is a kind.
        """
        ranks = [3 - place for place, names in enumerate(_RANKS) if any(map(names.fullmatch, self.words))]
        rank = max(ranks, default=int(any(map(_ID.fullmatch, self.words))))
        own = self.filled >= 50 and self.distinct > 0.9 * self.filled and not (rank == 3 and self.named_as_id)
        few = self.rows >= 500 and self.distinct < 10
        if own or few or self.unfit or any(map(_ATTRIBUTES.fullmatch, self.words)):
            return 0, False
        return rank, self.named_as_id

    @property
    def named_as_id(self) -> bool:
        """Whether its name says that it holds ids."""
        return any(_ID.fullmatch(word) or word.endswith(("id", "no", "nr", "num", "number")) for word in self.words)

    @property
    def evidence(self) -> str:
        """What is in it, such as `99.3% of rows have a value, such as 'N14228'`."""
        rows = "rows" if self.whole else f"the first {self.rows:,} rows"
        every = "every row has" if self.whole else f"all of {rows} have"
        have = every if self.filled == self.rows else f"{percent(self.share)} of {rows} have"
        return f"{have} a value, such as {self.example!r}"


@dataclass(frozen=True)
class Guess:
    """A column that was guessed, why, and the names of those that it may be instead, the likeliest first."""

    name: str
    evidence: str
    rivals: tuple[str, ...]


def guess_time(profiles: Mapping[str, Profile], item: str | None) -> Guess:
    """The column of times: by how its values are written, then by its name, then the one with a clock.

    Raises:
        InputError: no column or more than one may be meant; the message names them.
    """
    others = [profile for profile in profiles.values() if profile.name != item]

    def score(profile: Profile) -> tuple[int, int, bool]:
        fitting = profile.formats[0][0]
        clock = profile.kind is not Kind.DATE and (fitting in ("iso", *EPOCHS) or has_clock(fitting))
        return profile.written_as_times, profile.named_as_time, clock and ":" in profile.example

    # Large numbers that are named ids are ids.
    sure = [one for one in others if one.written_as_times == 2 or (one.written_as_times and not one.named_as_id)]
    written = sorted(sure, key=score, reverse=True)
    if not written:
        _ask_for_times(others)
    best = [one for one in written if score(one) == score(written[0])]
    if len(best) > 1 or best[0].share < 0.5:
        _ask("time", written)
    return Guess(best[0].name, f"{best[0].evidence}, read as {best[0].formats[0][0]}", _names(written[1:]))


def guess_item(profiles: Mapping[str, Profile], time: str) -> Guess:
    """The column of items: the one that is named like people, else like things, else like an id; or the only one.

    Raises:
        InputError: no column or more than one may be meant; the message names them.
    """
    others = [one for one in profiles.values() if one.name != time and one.written_as_times < 2 and not one.unfit]
    # Of small logs any column may hold one value only.
    varied = [one for one in others if one.distinct > 1 or one.rows < 50]
    likely = sorted(varied, key=lambda one: (one.item_rank, one.share), reverse=True)
    if not likely:
        columns = ", ".join(filter(None, profiles))
        raise InputError(f"no column looks like one of items: name it with --item; the columns are {columns}")
    best = likely[0]
    tied = [one for one in likely if one.item_rank == best.item_rank]
    rank = best.item_rank[0]
    # An id of who knows what says little.
    weak = rank == 0 or (rank == 1 and len(best.words) > 1) or best.share < 0.5
    if len(likely) > 1 and (len(tied) > 1 or weak):
        _ask("item", likely)
    named = ("the only column that may", "a name for ids", "a name for devices and such", "a name for people")[rank]
    rivals = [one for one in likely[1:] if one.item_rank[0]]
    return Guess(best.name, f"{named}; {best.evidence}", _names(rivals))


def guess_format(profile: Profile) -> str:
    """The format of a column of times that reads most of its values.

    Raises:
        InputError: several read as many of them, and not alike.
    """
    name, missed = profile.formats[0]
    alike = [other for other, also in profile.formats if also == missed]
    if len({other.replace("%B", "%b") for other in alike}) > 1:
        options = " or ".join(f"--time-format {quote(other)}" for other in alike[:_MOST_SHOWN])
        raise InputError(
            f"how the times in {profile.name!r} are written is not clear: such as {profile.example!r}, all that can be "
            f"read of {counted(profile.filled, 'value')} can be read in {len(alike)} ways: give {options}"
        )
    return name


def _names(profiles: Sequence[Profile]) -> tuple[str, ...]:
    return tuple(one.name for one in profiles[:_MOST_SHOWN])


def _ask(role: str, likely: Sequence[Profile]) -> NoReturn:
    shown = "; ".join(
        f"--{role} {quote(one.name)} ({one.evidence}, about {one.distinct:,} different ones)"
        for one in likely[:_MOST_SHOWN]
    )
    more = ", ".join(repr(one.name) for one in likely[_MOST_SHOWN:])
    others = f"; or of {more}" if more else ""
    raise InputError(f"which column holds the {role}s is not clear: give one of {shown}{others}")


def _ask_for_times(others: Sequence[Profile]) -> NoReturn:
    numbers = [one for one in others if one.formats and one.named_as_time == 2]
    columns = ", ".join(one.name for one in others if one.name)
    said = f"no column looks like one of times: name it with --time; the columns are {columns}"
    if numbers:
        shown = ", ".join(f"{one.name!r} (such as {one.example!r})" for one in numbers[:_MOST_SHOWN])
        said += (
            f". Whole numbers as in {shown} may be numbers of steps, and hours of a day without the day are no times"
        )
    if {"year", "month"} <= {"".join(one.words) for one in others}:
        said += ". Parts of dates have columns of their own here: make one of them, in a view for example"
    raise InputError(said)


def profiles_of(log: Log, sample: Sample) -> dict[str, Profile]:
    """What every column of a sample of a log holds, by name.

    All rows are read, once. Of a source that cannot be read whole the first rows are taken.

    Raises:
        EngineError: the engine failed.
    """
    formats = {name: formats_of(values, sample.kinds[name]) for name, values in sample.values.items()}
    present = {name: _without_placeholders(values) for name, values in sample.values.items()}
    names = [
        name
        for name in filter(None, sample.names)
        if sample.kinds[name] is not Kind.NESTED and not (_is_measured(present[name]) or _holds_objects(present[name]))
    ]
    rows, counts, whole = 0, _Counts(), True
    try:
        rows, counts = _count_values(log, names, formats, sample)
    except InputError:
        whole = False
        for name, there in present.items():
            rows = len(sample.values[name])
            counts[name] = len(there), len(set(there)), tuple((one, 0) for one in formats[name])
    return {
        name: Profile(
            name=name,
            kind=sample.kinds[name],
            rows=rows,
            filled=filled,
            distinct=distinct,
            formats=fitting,
            example=next(iter(present[name]), "")[:40],
            unfit=name not in names,
            whole=whole,
        )
        for name in sample.names
        for filled, distinct, fitting in [counts.get(name, (0, 0, ()))]
    }


def _without_placeholders(values: Iterable[str | None]) -> list[str]:
    return [value for value in values if value is not None and value.strip().lower() not in PLACEHOLDERS]


def _holds_objects(texts: Sequence[str]) -> bool:
    """Whether a column of text holds what a reader of JSON refuses, so that reading it would fail."""
    return any(value in ("true", "false") or value[:1] + value[-1:] in ("{}", "[]") for value in texts)


def _is_measured(values: Sequence[str]) -> bool:
    """Whether values are numbers, and some of them have a fraction."""
    numbers = all(re.fullmatch(r"[+-]?[0-9.,]+(e[+-]?[0-9]+)?", value, re.IGNORECASE) for value in values)
    return numbers and any(_MEASURED.fullmatch(value) for value in values)


_Counts = dict[str, tuple[int, int, tuple[tuple[str, int], ...]]]


@dataclass(frozen=True)
class _Several(EventColumns):
    """Any number of columns, each read as a value to group by is."""

    several: tuple[str, ...] = ()

    @property
    def roles(self) -> list[tuple[str, str]]:
        return [*super().roles, *((f"group_{place}", name) for place, name in enumerate(self.several))]


def _count_values(
    log: Log, names: Sequence[str], formats: dict[str, tuple[str, ...]], sample: Sample
) -> tuple[int, _Counts]:
    """The number of rows, and by column the values, the different ones, and those that each format does not read."""
    if not names:
        raise InputError("no column can hold items or times")
    several = _Several(names[0], names[0], layout=sample.layout, several=tuple(names))
    placeholders = ", ".join(map(quote_text, PLACEHOLDERS))
    chosen, counted_ = [], ["count(*)"]
    for place, name in enumerate(names):
        text = f"CAST(group_{place} AS VARCHAR)"
        chosen.append(f"CASE WHEN lower(trim({text})) NOT IN ({placeholders}) THEN {text} END AS v{place}")
        counted_ += [f"count(v{place})", f"approx_count_distinct(v{place})"]
        if sample.kinds[name] not in NATIVE:
            counted_ += [
                f"count(*) FILTER (v{place} IS NOT NULL AND {_misfit(f'v{place}', one)})" for one in formats[name]
            ]
    with private_engine(log.settings) as connection:
        parts = find_parts(connection, log.source, several, log.table)
        texts = " UNION ALL ".join(f"SELECT {', '.join(chosen)} FROM ({part.sql}) AS part" for part in parts)
        shown = log.settings.progress
        with running(several, log.source), progress_bar(connection, "looking at columns", shown=shown):
            row = connection.execute(f"SELECT {', '.join(counted_)} FROM ({texts}) AS texts").fetchall()[0]
    numbers = iter(row)
    rows, found = next(numbers), _Counts()
    for name in names:
        filled, distinct = next(numbers), next(numbers)
        native = sample.kinds[name] in NATIVE
        missed = [(one, 0 if native else next(numbers)) for one in formats[name]]
        found[name] = filled, min(distinct, filled), tuple(sorted(missed, key=lambda pair: pair[1]))
    return rows, found


def _misfit(text: str, time_format: str) -> str:
    """A condition for text that is no time of a format, where whole days that do not exist may pass for ISO 8601."""
    if time_format == "iso":
        return f"NOT regexp_full_match({text}, {quote_text(TIME_TEXT)})"
    if time_format == INTEGER:
        return "FALSE"
    if time_format in EPOCHS:
        unit = 10**6 // EPOCHS[time_format]
        return f"(TRY_CAST({text} AS DOUBLE) BETWEEN {_FIRST * unit} AND {_LAST * unit}) IS NOT TRUE"
    return f"({patterned_sql(text, time_format)}) IS NULL"


def formats_of(values: Iterable[str | None], kind: Kind) -> tuple[str, ...]:
    """The formats that nine in ten of the first values of a column fit, those that fit more of them first.

    A format is what `--time-format` takes, "iso" where nothing need be said, "integer" for whole numbers that are times
    of their own.
    """
    if kind in NATIVE:
        return ("iso",)
    there = [value.strip() for value in _without_placeholders(values)[:_TIMES]]
    if not there or kind in (Kind.NESTED, Kind.EXACT):
        return ()
    whole = [re.fullmatch(r"-?[0-9]+([.]0*)?", value) is not None for value in there]
    tried = {"iso": sum(re.fullmatch(TIME_TEXT, value) is not None for value in there)}
    first = there[:20]
    likely = [pattern for pattern in _PATTERNS if sum(_fits(value, pattern) for value in first) >= 0.5 * len(first)]
    tried |= {pattern: sum(_fits(value, pattern) for value in there) for pattern in likely}
    for name, microseconds in EPOCHS.items():
        sizes = (float(value) * microseconds / 10**6 for value, is_whole in zip(there, whole, strict=True) if is_whole)
        tried[name] = sum(_FIRST <= size < _LAST for size in sizes)
    fitting = [name for name, often in tried.items() if often >= 0.9 * len(there)]
    return tuple(sorted(fitting, key=lambda name: -tried[name])) or ((INTEGER,) if all(whole) else ())


def _fits(value: str, pattern: str) -> bool:
    try:
        moment = datetime.strptime(value, pattern)
    except ValueError:
        return False
    return 1900 <= moment.year < 2200


def are_hours_and_minutes(values: Iterable[str | None]) -> bool:
    """Whether numbers are as times of day are written, 1955 for 19:55, at many different minutes of many hours."""
    there = {value.strip() for value in values if value is not None}
    numbers = [int(value) for value in there if re.fullmatch(r"[0-9]{1,4}", value)]
    clock = all(number <= 2400 and number % 100 < 60 for number in numbers)
    return len(numbers) == len(there) >= 20 and clock and max(numbers) - min(numbers) > 300
