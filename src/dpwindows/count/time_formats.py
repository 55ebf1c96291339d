"""The format of a time column whose type does not say how to read it: stated once, for all its values.

Without a format a time says itself what it is: it has a type of times, or is ISO 8601 text. With `epoch-s`, `epoch-ms`
or `epoch-us` it is a whole number of seconds, milliseconds or microseconds since 1970-01-01T00:00Z, of an integer type,
as text, or in a floating-point column. With a pattern of `strptime` it is text, or whole numbers such as 20130131,
that match it, `%Y` a year of four digits; a pattern that ends with UTC, GMT or Z is one of times in UTC. In every case
the reading is a function of the value alone: no unit is guessed from how large numbers are, and no order of day and
month from other rows.
"""

from __future__ import annotations

import re

from dpwindows.errors import InputError

ISO = "iso"
EPOCHS = {"epoch-s": 1_000_000, "epoch-ms": 1_000, "epoch-us": 1}
"""Microseconds in each unit of time since 1970."""

_PARTS = {
    "year": "Yy",
    "month": "mbB",
    "day of the month": "d",
    "day of the year": "j",
    "hour": "HI",
    "minute": "M",
    "second": "S",
    "fraction": "f",
    "half of the day": "p",
    "offset": "z",
    "day of the week": "aA",
}
_PART_OF = {letter: part for part, letters in _PARTS.items() for letter in letters}
# What may stand in a time for each part before its year, where that is not one or two digits.
_WRITTEN = {
    **dict.fromkeys("bBaAp", "[A-Za-z]+"),
    "j": "[0-9]{1,3}",
    "f": "[0-9]{1,6}",
    "z": "[+-][0-9]{2}(:?[0-9]{2})?",
}
_BLANKS = "[\t-\r ]"
_ADVICE = (
    "it is iso, epoch-s, epoch-ms, epoch-us, or a pattern of strptime such as '%m/%d/%Y %H:%M:%S' that has "
    f"%{', %'.join(_PART_OF)} and %% in it"
)


def time_format_of(text: object) -> str | None:
    """A time format in canonical form: None for `iso`, which is what is read without one.

    Raises:
        InputError: it is none of the names, and no pattern that says which day is meant, once.
    """
    if text is None or text == ISO:
        return None
    if not isinstance(text, str) or not text:
        raise InputError(f"time_format cannot be {text!r}: {_ADVICE}")
    if text not in EPOCHS:
        _require_pattern(text)
    return text


def has_offset(pattern: str) -> bool:
    """True if times of this pattern say how far their clock is from UTC, be it by UTC, GMT or Z at their end."""
    return "z" in _letters(pattern) or re.search(r"[^%](UTC|GMT|Z)$", pattern) is not None


def has_clock(pattern: str) -> bool:
    """True if times of this pattern have an hour, and are not whole days."""
    return bool({"H", "I"} & set(_letters(pattern)))


def short_year(pattern: str) -> str | None:
    """A regular expression that finds a year of fewer than four digits in times of this pattern; None without `%Y`.

    Readers take 24 for the year 24 there. They give each part as many digits as it may have, so that more than three
    are left for a year of four, however the parts before it are cut.
    """
    before = f"^{_BLANKS}*"
    for part, blanks, letter in re.findall(rf"%-?([^%])|({_BLANKS}+)|%?(.)", pattern, re.DOTALL):
        if part == "Y":
            return f"{before}[0-9]{{1,3}}([^0-9]|$)"
        before += _WRITTEN.get(part, "[0-9]{1,2}") if part else f"{_BLANKS}+" if blanks else re.escape(letter)
    return None


def _letters(pattern: str) -> list[str]:
    return [letter for letter in re.findall(r"%-?(.?)", pattern, re.DOTALL) if letter != "%"]


def _require_pattern(pattern: str) -> None:
    letters = _letters(pattern)
    unknown = [letter for letter in letters if letter not in _PART_OF]
    if not letters or unknown:
        what = f"%{unknown[0]} is not read" if unknown else "it has no % in it"
        raise InputError(f"time_format cannot be {pattern!r} ({what}): {_ADVICE}")
    parts = [_PART_OF[letter] for letter in letters]
    twice = next((part for part in parts if parts.count(part) > 1), None)
    if twice:
        raise InputError(f"time_format {pattern!r} has the {twice} twice: which one is meant, nothing says")
    dated = {"month", "day of the month"} <= set(parts) or "day of the year" in parts
    if "year" not in parts or not dated:
        raise InputError(f"time_format {pattern!r} must say year, month and day (%Y, %m and %d, or %Y and %j)")
    if "day of the year" in parts and {"month", "day of the month"} & set(parts):
        raise InputError(f"time_format {pattern!r} has the day twice: take %j, or month and day")
    if ("I" in letters) != ("p" in letters):
        raise InputError(f"time_format {pattern!r} needs %I and %p together: 5 is an hour of both halves of a day")
