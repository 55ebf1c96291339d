"""One DuckDB engine for many small readings: most of the time of a small one goes into making its engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import duckdb
import pytest

from dpwindows.count import guess, look, sample
from dpwindows.count.engines import duckdb as reading
from dpwindows.count.events import EngineSettings
from dpwindows.stream import parts as streams


@contextmanager
def shared() -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """An engine, and a context in which files, tables and streams are read by it, in a connection of its own each.

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
                for module in (reading, guess, look, sample, streams):
                    patch.setattr(module, "private_engine", own_connection)
                yield

        yield in_use
