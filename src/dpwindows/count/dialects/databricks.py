"""Databricks SQL, which is Spark's. Its text runs on Spark in the tests, and never ran on Databricks."""

from __future__ import annotations

from dpwindows.count.dialects.spark import Spark


class Databricks(Spark):
    """Databricks' spelling."""

    name = "databricks"
    instant = "TIMESTAMP '{}'"


DIALECT = Databricks()
