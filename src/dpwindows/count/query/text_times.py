"""Times written as ISO 8601 text, read by whole-number arithmetic where an engine's own reader does not do.

Engines' readers of timestamps differ in what they take, in how they round fractions and in the zone they assume.
Here a text is cut into its fields, and only the date is left to the engine.
"""

from __future__ import annotations

_SECOND_US, _MINUTE_US, _HOUR_US, _DAY_US = 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000


# Keeps a planner from putting expressions in place of the columns they make, over and over.
_FENCE = " OFFSET 0"


def text_times(relation: str, is_time: str, days: str) -> str:
    """The relation of `Dialect.text_times`.

    `is_time` is a condition that `time` has the form of a time; `days` is the text `date` as whole days since
    1970-01-01, null or an error where there is no such day.
    """
    iso = f"SELECT *, CASE WHEN {is_time} THEN time END AS iso FROM ({relation}) AS texts"
    # A zone is Z, or a sign and 2 or 5 more characters; in a date alone a minus is at the place of a short one.
    zone = (
        "CASE WHEN length(iso) = 10 THEN 0 WHEN substr(iso, length(iso), 1) = 'Z' THEN 1 "
        "WHEN substr(iso, length(iso) - 5, 1) IN ('+', '-') THEN 6 "
        "WHEN substr(iso, length(iso) - 2, 1) IN ('+', '-') THEN 3 ELSE 0 END"
    )
    zoned = f"SELECT *, substr(iso, 1, 10) AS date, {zone} AS zone_length FROM ({iso}{_FENCE}) AS isos"
    clock = (
        "CASE WHEN length(iso) = 10 THEN '00:00' ELSE substr(iso, 12, length(iso) - 11 - zone_length) END AS clock, "
        "CASE WHEN zone_length > 0 THEN substr(iso, length(iso) - zone_length + 1, zone_length) END AS zone"
    )
    cut = f"SELECT *, {clock} FROM ({zoned}{_FENCE}) AS zoned"
    fields = ", ".join(
        (
            f"{days} AS day",
            f"{_field('clock', 1)} AS hour",
            f"{_field('clock', 4)} AS minute",
            f"CASE WHEN length(clock) > 5 THEN {_field('clock', 7)} ELSE 0 END AS second",
            "CASE WHEN length(clock) > 8 THEN CAST(substr(substr(clock, 10) || '00000', 1, 6) AS BIGINT) ELSE 0 END "
            "AS fraction",
        )
    )
    read = f"SELECT *, {fields} FROM ({cut}{_FENCE}) AS cut"
    wall = (
        "CASE WHEN minute < 60 AND second < 60 AND (hour < 24 OR hour = 24 AND minute + second + fraction = 0) "
        f"THEN CAST(day AS BIGINT) * {_DAY_US} + hour * {_HOUR_US} + minute * {_MINUTE_US} + second * {_SECOND_US} "
        "+ fraction END"
    )
    minutes = f"{_field('zone', 2)} * 60 + CASE WHEN zone_length = 6 THEN {_field('zone', 5)} ELSE 0 END"
    ahead = (
        "CASE WHEN zone_length = 1 THEN CAST(0 AS BIGINT) WHEN zone_length > 1 THEN "
        f"({minutes}) * CASE WHEN substr(zone, 1, 1) = '-' THEN -{_MINUTE_US} ELSE {_MINUTE_US} END END"
    )
    return f"SELECT *, {wall} AS wall, {ahead} AS ahead FROM ({read}{_FENCE}) AS fields{_FENCE}"


def _field(text: str, position: int) -> str:
    """The two digits at a position (from 1) of a text as a bigint."""
    return f"CAST(substr({text}, {position}, 2) AS BIGINT)"
