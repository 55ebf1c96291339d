"""A progress bar for long engine work: on stderr, only on a terminal, and never in anything that is published."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from dpwindows.progress import show_progress, watched


@contextmanager
def progress_bar(connection: duckdb.DuckDBPyConnection, label: str, *, shown: bool = True) -> Iterator[None]:
    """Show how far the queries on `connection` are, and how long they will still take, while the block runs."""
    if shown and watched():
        connection.execute("SET enable_progress_bar = true")
        connection.execute("SET enable_progress_bar_print = false")
    with show_progress(label, 100, done=connection.query_progress, shown=shown):
        yield
