"""A progress bar for long engine work: on stderr, only on a terminal, and never in anything that is published."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

_DELAY = 1.0
_INTERVAL = 0.2
_WIDTH = 30


@contextmanager
def progress_bar(connection: duckdb.DuckDBPyConnection, label: str, *, shown: bool = True) -> Iterator[None]:
    """Show how far the queries on `connection` are, while the block runs, if stderr is a terminal.

    Work of less than a second shows nothing. The bar is erased at the end.
    """
    if not shown or not sys.stderr.isatty():
        yield
        return
    connection.execute("SET enable_progress_bar = true")
    connection.execute("SET enable_progress_bar_print = false")
    done = threading.Event()
    painter = threading.Thread(target=_paint, args=(connection, label, done), daemon=True)
    painter.start()
    try:
        yield
    finally:
        done.set()
        painter.join()


def _paint(connection: duckdb.DuckDBPyConnection, label: str, done: threading.Event) -> None:
    line = ""
    wait = _DELAY
    while not done.wait(wait):
        wait = _INTERVAL
        line = bar_text(label, connection.query_progress())
        sys.stderr.write("\r" + line)
        sys.stderr.flush()
    if line:
        sys.stderr.write("\r" + " " * len(line) + "\r")
        sys.stderr.flush()


def bar_text(label: str, percentage: float) -> str:
    """One line of text for a percentage from 0 to 100; a negative one means it is not known yet."""
    share = min(max(percentage, 0.0), 100.0)
    full = round(_WIDTH * share / 100)
    return f"{label} [{'#' * full}{'.' * (_WIDTH - full)}] {share:3.0f} %"
