"""ClickHouse inside the process against DuckDB, on the same Parquet file: `python benchmarks/clickhouse.py`."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import duckdb
from chdb.session import Session

from dpwindows.ask.timeline import Timeline
from dpwindows.count.counting import count_events
from dpwindows.count.events import EventColumns
from dpwindows.count.query.wanted import Wanted
from dpwindows.count.request import CountRequest

ITEMS = {"integers": "i * 7919 % 1000003", "texts of 32 characters": "md5(CAST(i * 7919 % 1000003 AS VARCHAR))"}
EVENTS = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000


def main() -> None:
    session, timeline = Session(), Timeline("2013-01-01", "2014-01-01", "1d")
    for kind, item in ITEMS.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "events.parquet"
            moment = "TIMESTAMPTZ '2013-01-01 00:00:00+00' + INTERVAL (hash(i) % 31536000) SECOND"
            duckdb.execute(f"COPY (SELECT {item} AS item, {moment} AS time FROM range({EVENTS}) AS r(i)) TO '{path}'")
            session.query(f"CREATE OR REPLACE VIEW events AS SELECT * FROM file('{path}', Parquet)")
            results = []
            # The first time, ClickHouse answers the probe as well.
            for run in range(3):
                for name, source, table in (("DuckDB", path, None), ("ClickHouse", session, "events")):
                    wall, cpu = time.perf_counter(), time.process_time()
                    asked = CountRequest(source, EventColumns("item", "time"), timeline, Wanted((1, 2, 3)), table)
                    answers = count_events(asked)
                    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
                    print(f"{kind}, run {run}, {name}: {wall:.1f} s, {cpu:.1f} s of CPU", flush=True)
                    results.append([answers.rolling(k, 28).tolist() for k in (1, 2, 3)])
            assert all(result == results[0] for result in results)


if __name__ == "__main__":
    main()
