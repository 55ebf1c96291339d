"""Guesses for an operator to confirm: which columns hold items and times, and how times are written.

A release never guesses: the caller says what a value means. Here the first rows of a log suggest options to confirm.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from dpwindows.count.engines.duckdb_sample import Sample
from dpwindows.count.query.dialect import TIME_TEXT, Kind
from dpwindows.errors import InputError

_TIME_NAMES = re.compile(r"time|date|(^|_)(ts|at|day|when|moment|epoch)($|_)|timestamp|created|occurred", re.IGNORECASE)
_ITEM_NAMES = re.compile(
    r"user|item|visitor|customer|client|member|account|session|device|host|person|patient|player|driver|bike|mail|"
    r"tailnum|who|cookie|(^|_)(id|ip|uid|uuid)($|_)|id$",
    re.IGNORECASE,
)
_NATIVE = (Kind.WALL, Kind.INSTANT, Kind.DATE)
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p")
_DAYS = ("%m/%d/%Y", "%d/%m/%Y", "%m/%d/%y", "%d/%m/%y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d")
PATTERNS = (
    *(day + clock for day in _DAYS for clock in _CLOCKS),
    *("%Y%m%d", "%Y%m%d %H:%M:%S", "%Y%m%d%H%M%S", "%d/%b/%Y:%H:%M:%S %z", "%d %b %Y", "%b %d, %Y", "%d-%b-%Y"),
    *("%a %b %d %H:%M:%S %Y", "%d %b %Y %H:%M:%S"),
)
# Seconds since 1970 of the years 1990 to 2100.
_FIRST, _LAST = 631_152_000, 4_102_444_800
_EPOCHS = {"epoch-s": 1, "epoch-ms": 10**3, "epoch-us": 10**6}


@dataclass(frozen=True)
class TimeGuess:
    """How a column's times seem to be written: `formats` that read all of its first values, the likeliest first.

    A format is what `--time-format` takes, "iso" where nothing need be said, "integer" for whole numbers that are
    times of their own; the higher the `score`, the likelier the column is one of times.
    """

    formats: tuple[str, ...]
    score: int


def time_guess(values: Sequence[str | None], kind: Kind) -> TimeGuess | None:
    """How the values of a column may be times; None if nothing that is known reads all of them."""
    if kind in _NATIVE:
        return TimeGuess(("iso",), 4)
    there = [value.strip() for value in values if value is not None][:200]
    if not there:
        return TimeGuess(("iso",), 0)
    if all(re.fullmatch(TIME_TEXT, value) for value in there):
        return TimeGuess(("iso",), 4)
    fitting = tuple(pattern for pattern in PATTERNS if all(_fits(value, pattern) for value in there))
    if fitting:
        return TimeGuess(fitting, 3)
    if not all(re.fullmatch(r"-?[0-9]+([.]0*)?", value) for value in there):
        return None
    for name, unit in _EPOCHS.items():
        if all(_FIRST * unit <= float(value) < _LAST * unit for value in there):
            return TimeGuess((name,), 2)
    return TimeGuess(("integer",), 0)


def _fits(value: str, pattern: str) -> bool:
    try:
        moment = datetime.strptime(value, pattern)
    except ValueError:
        return False
    return 1900 <= moment.year < 2200


def guessed_columns(sample: Sample, item: str | None, time: str | None) -> tuple[str, str]:
    """The columns of items and of times: those told, and for the others the likeliest by name and values.

    Raises:
        InputError: no column looks like either.
    """
    if time is None:
        scores = {}
        for name in sample.names:
            guess = time_guess(sample.values[name], sample.kinds[name])
            if name != item and guess is not None and (guess.score or _TIME_NAMES.search(name)):
                scores[name] = guess.score + 2 * bool(_TIME_NAMES.search(name))
        if not scores:
            raise _unknown("time", sample)
        time = max(scores, key=lambda name: scores[name])
    if item is None:
        others = {name: _item_score(name, sample) for name in sample.names if name != time}
        if not others:
            raise _unknown("item", sample)
        item = max(others, key=lambda name: others[name])
    return item, time


def _item_score(name: str, sample: Sample) -> tuple[bool, bool, float]:
    """By name first; then what is no time and no measured number; then what has many values, and again and again."""
    there = [value for value in sample.values[name] if value is not None]
    guess = time_guess(sample.values[name], sample.kinds[name])
    share = len(set(there)) / len(there) if there else 0.0
    exact = sample.kinds[name] not in (Kind.NESTED, Kind.FLOAT, Kind.DECIMAL)
    return bool(_ITEM_NAMES.search(name)), exact and (guess is None or not guess.score), share * (1.5 - share)


def _unknown(role: str, sample: Sample) -> InputError:
    columns = ", ".join(sample.names)
    return InputError(f"no column looks like one of {role}s: name it with --{role}; the columns are {columns}")
