"""How many users were active in the last 7 days, on each of 56 days, with noise."""

import os

import dpwindows as dw

PLAN = dw.Plan(
    [dw.Rolling(7)],
    timeline=dw.Timeline("2026-01-01", "2026-02-26", step="1d"),
    unit=dw.ItemPerPeriod(7),
    budget=dw.ApproxDP(epsilon=1.0, delta=1e-6),
)


def model(dbt, session):  # noqa: ANN001, ANN201
    dbt.config(materialized="table")
    ledger = dw.Ledger.open(os.environ.get("LEDGER", "ledger.db"), "visits")
    release = PLAN.run(dbt.ref("visits"), item="visitor", time="visited_at", ledger=ledger)
    rows = release.to_arrow()
    return rows.append_column("release_id", [[release.metadata["release_id"]] * rows.num_rows])
