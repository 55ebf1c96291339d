"""A progress bar for long engine work: on stderr, only on a terminal, and never in anything that is published."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from dpwindows.progress import bar_text, painted, watched


@contextmanager
def progress_bar(connection: duckdb.DuckDBPyConnection, label: str, *, shown: bool = True) -> Iterator[None]:
    """Show how far the queries on `connection` are, and how long they will still take, while the block runs.

    Work of less than a second shows nothing, and so does a stream that nobody is looking at. The bar is erased.
    """
    if not (shown and watched()):
        yield
        return
    connection.execute("SET enable_progress_bar = true")
    connection.execute("SET enable_progress_bar_print = false")
    with painted(lambda seconds: bar_text(label, connection.query_progress(), seconds)):
        yield
