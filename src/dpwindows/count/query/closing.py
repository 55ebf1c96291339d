"""A result that says where it ends: its last row holds how many rows there are, and what their counts add up to."""

from __future__ import annotations


def closed_sql(query: str) -> str:
    """The query for the rows (k, step, recency, delta) of another one, with two columns more, and one row more.

    `counted` is how many rows of the other query a row is made of, and `closing` is 0, but in one row it is 1: there
    `delta` and `counted` are the sums of all others, and k, step and recency mean nothing. That row is there for no
    rows too. Rows of the same (k, step, recency) become one.
    """
    return (
        "SELECT k, step, recency, CAST(sum(delta) AS BIGINT) AS delta, CAST(count(*) AS BIGINT) AS counted, "
        f"CAST(grouping(k) AS BIGINT) AS closing\nFROM ({query}\n) AS counts\n"
        "GROUP BY GROUPING SETS ((k, step, recency), ())"
    )
