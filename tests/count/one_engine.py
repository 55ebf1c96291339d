"""One DuckDB engine for many small readings: most of the time of a small one goes into making its engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import duckdb
import pytest

# What takes the name of the engine's maker along with it is loaded before another one stands in its place.
import dpwindows.count.check
import dpwindows.stream.engine  # noqa: F401
from dpwindows.count.engines import duckdb as reading
from dpwindows.count.events import EngineSettings


@contextmanager
def shared() -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """An engine, and a context in which files and tables are read by it, in a connection of its own each.

    Settings of the readings are not heeded.
    """
    with reading.private_engine(EngineSettings(threads=1)) as engine:

        @contextmanager
        def own_connection(settings: EngineSettings) -> Iterator[duckdb.DuckDBPyConnection]:
            with engine.cursor() as connection:
                yield connection

        @contextmanager
        def in_use() -> Iterator[None]:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(reading, "private_engine", own_connection)
                yield

        yield in_use
