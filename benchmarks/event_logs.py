"""Synthetic event logs for the benchmarks: one Parquet file of the columns item, time and occurrences, over 2013.

Item number i is drawn with a weight that falls with i, out of half as many items as events; times are uniform over the
year. A skewed log has the same size, and one heavy item, one heavy day, or both, chosen independently of the rest.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

DAYS = 365
ITEMS = {
    "integer": "code",
    "text": "printf('user-%010d', code)",
    "digest": "md5(CAST(code AS VARCHAR))",
    "uuid": "CAST(md5(CAST(code AS VARCHAR)) AS UUID)",
}
# The chance that an event is one of item 0, and the chance that it falls on day 200.
SKEWS = {"none": (0.0, 0.0), "item": (0.1, 0.0), "step": (0.0, 0.5), "both": (0.1, 0.5)}


def write_log(path: Path, events: int, item_type: str, skew: str = "none") -> None:
    """Write a log of so many events, with a kind of item out of ITEMS and a skew out of SKEWS."""
    heavy_item, heavy_day = SKEWS[skew]
    code = f"CASE WHEN random() < {heavy_item} THEN 0 ELSE floor({events // 2} * power(random(), 1.3)) END"
    second = f"CASE WHEN random() < {heavy_day} THEN 200 + random() ELSE {DAYS} * random() END * 86400"
    with duckdb.connect(config={"preserve_insertion_order": False}) as connection:
        connection.execute(f"""
COPY (
    SELECT {ITEMS[item_type]} AS item, time, CAST(1 + floor(3 * random()) AS INTEGER) AS occurrences
    FROM (
        SELECT CAST({code} AS BIGINT) AS code,
            TIMESTAMP '2013-01-01' + to_seconds(CAST(floor({second}) AS BIGINT)) AS time
        FROM range({events})
    )
) TO '{path}' (FORMAT parquet)""")


def number(text: str) -> int:
    """A number of events such as 10M."""
    units = {"k": 10**3, "M": 10**6, "G": 10**9}
    return int(text[:-1]) * units[text[-1]] if text[-1:] in units else int(text)
