"""A log of visits, and the weekly active users that are published of it, with noise and with what is promised."""

import os
from datetime import datetime, timedelta

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq

import dpwindows as dw
from dpwindows.report.statement import statement_markdown

LOG, LEDGER, OUTPUT = "visits.parquet", os.environ.get("LEDGER", "ledger.db"), "weekly_actives.parquet"
PLAN = dw.Plan(
    [dw.Rolling(7)],
    timeline=dw.Timeline("2026-01-01", "2026-02-26", step="1d"),
    unit=dw.ItemPerPeriod(7),
    budget=dw.ApproxDP(epsilon=1.0, delta=1e-6),
)


@dg.asset
def visits() -> None:
    """3,000 visits by 400 users. Put your own log in their place."""
    at = [datetime(2026, 1, 1) + number * timedelta(minutes=27) for number in range(3000)]
    pq.write_table(pa.table({"visitor": [f"user-{number * 7919 % 397}" for number in range(3000)], "at": at}), LOG)


@dg.asset(deps=[visits], retry_policy=dg.RetryPolicy(max_retries=3, delay=1))
def weekly_actives() -> dg.MaterializeResult:
    """Active users in the last 7 days, on each of 56 days."""
    release = PLAN.run(LOG, item="visitor", time="at", ledger=dw.Ledger.open(LEDGER, "visits"))
    release.save(OUTPUT, force=True)
    stated = release.metadata
    return dg.MaterializeResult(
        metadata={
            "release_id": stated["release_id"],
            "guarantee": stated["guarantee"],
            "privacy_statement": dg.MetadataValue.md(statement_markdown(stated)),
            "entry_in_the_ledger": dg.MetadataValue.json(stated["ledger"]),
        }
    )
