"""Times out of ISO 8601 text by whole-number arithmetic on its digits, in SQL that every engine reads alike.

Engines' own readers take a day that there is not for another one, round fractions, or fail where they should say null.
No text is cast that is not all digits: some engines cast what a condition leaves out as well.
"""

from __future__ import annotations

_AFTER_MINUTES = "substr(iso, 17, 1)"
_ZONE = " ".join(
    f"WHEN substr(iso, length(iso) - {back}, 1) IN ('+', '-') THEN substr(iso, length(iso) - {back})" for back in (5, 2)
)
# Texts cut out of a time; the fraction is still with the zone behind it.
_PARTS = {
    "years": "substr(iso, 1, 4)",
    "months": "substr(iso, 6, 2)",
    "days": "substr(iso, 9, 2)",
    "hours": "CASE WHEN length(iso) > 10 THEN substr(iso, 12, 2) ELSE '00' END",
    "minutes": "CASE WHEN length(iso) > 10 THEN substr(iso, 15, 2) ELSE '00' END",
    "seconds": f"CASE WHEN {_AFTER_MINUTES} = ':' THEN substr(iso, 18, 2) ELSE '00' END",
    "rest": "CASE WHEN substr(iso, 20, 1) = '.' THEN substr(iso, 21) ELSE '' END",
    "zone": f"CASE WHEN length(iso) = 10 THEN '' WHEN iso LIKE '%Z' THEN 'Z' {_ZONE} ELSE '' END",
}
_FRACTION = "CASE WHEN part_rest = '' THEN '' ELSE substr(part_rest, 1, length(part_rest) - length(part_zone)) END"
_NUMBERS = {name: f"part_{name}" for name in list(_PARTS)[:6]} | {
    "nanoseconds": f"substr({_FRACTION} || '000000000', 1, 9)",
    "zone_hours": "CASE WHEN length(part_zone) > 1 THEN substr(part_zone, 2, 2) ELSE '00' END",
    "zone_minutes": "CASE WHEN length(part_zone) > 3 THEN substr(part_zone, 5, 2) ELSE '00' END",
}


def text_times_sql(relation: str, is_time: str, divide: str, remainder: str, fence: str) -> str:
    """The relation of `Dialect.text_times`, where a condition says what text is a time; patterns as of a `Dialect`.

    A year has 365 days, and one more every 4 years, but for every 100, but for every 400. Here years begin with March,
    so that the day more is the last of its year; and the months from March on end after 31, 61, 92, ... days, which is
    (153 m + 2) / 5 rounded down for the months m = 1, 2, 3, ... before. From 0000-03-01 to 1970-01-01 there are 719468.
    """
    # Here, so that help comes without a library of numbers.
    from dpwindows.ask.zones import DAY_US

    cut = ", ".join(f"{text} AS part_{name}" for name, text in _PARTS.items())
    read = ", ".join(f"CAST({text} AS BIGINT) AS number_{name}" for name, text in _NUMBERS.items())
    y, m, d, h, minute, s, ns, zone_h, zone_m = (f"number_{name}" for name in _NUMBERS)
    by_4, by_100, by_400 = (f"{remainder.format(y, years)} = 0" for years in (4, 100, 400))
    leap = f"{by_4} AND (NOT {by_100} OR {by_400})"
    last = f"CASE WHEN {m} IN (4, 6, 9, 11) THEN 30 WHEN {m} <> 2 THEN 31 WHEN {leap} THEN 29 ELSE 28 END"
    exists = (
        f"{y} >= 1 AND {m} BETWEEN 1 AND 12 AND {d} BETWEEN 1 AND {last} AND {minute} < 60 AND {s} < 60 "
        f"AND ({h} < 24 OR ({h} = 24 AND {minute} = 0 AND {s} = 0 AND {ns} = 0))"
    )
    since_march = f"(CASE WHEN {m} > 2 THEN {m} - 3 ELSE {m} + 9 END)"
    year = f"(CASE WHEN {m} > 2 THEN {y} ELSE {y} - 1 END)"
    leap_days = f"{divide.format(year, 4)} - {divide.format(year, 100)} + {divide.format(year, 400)}"
    day = f"{year} * 365 + {leap_days} + {divide.format(f'({since_march} * 153 + 2)', 5)} + {d} - 1 - 719468"
    wall = f"({day}) * {DAY_US} + (({h} * 60 + {minute}) * 60 + {s}) * 1000000 + {divide.format(ns, 1000)}"
    offset = f"({zone_h} * 60 + {zone_m}) * 60000000"
    ahead = f"CASE WHEN part_zone = '' THEN NULL WHEN substr(part_zone, 1, 1) = '-' THEN -({offset}) ELSE {offset} END"
    iso = f"SELECT *, CASE WHEN {is_time} THEN time END AS iso FROM ({relation}{fence}) AS texts"
    numbers = f"SELECT *, {read} FROM (SELECT *, {cut} FROM ({iso}{fence}) AS isos{fence}) AS parts"
    return f"SELECT *, CASE WHEN {exists} THEN {wall} END AS wall, {ahead} AS ahead FROM ({numbers}{fence}) AS numbers"
