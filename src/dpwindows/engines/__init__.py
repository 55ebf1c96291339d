"""Who counts: each engine reads events where they are and hands back the small table of signed counts.

An engine is one module with one function. It maps every time to its step, leaves out the rows that do not count, runs
the query of `dpwindows.recency` over what is left, and returns its result: at most steps^2 / 2 rows a threshold. Items
never leave the engine, and nothing is written where the events are.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Protocol, cast

import pyarrow as pa

from dpwindows.errors import InputError
from dpwindows.events import EngineSettings, EventColumns
from dpwindows.timeline import Timeline

ENGINES = ("duckdb",)


class Engine(Protocol):
    """What the module of an engine offers."""

    def signed_counts(
        self,
        source: object,
        columns: EventColumns,
        timeline: Timeline,
        thresholds: Sequence[int],
        *,
        table: str | None,
        settings: EngineSettings,
    ) -> pa.Table:
        """The signed counts of a source of events, for distinct `thresholds`, in one reading.

        Rows with a null item or time, with a null count or one below 1, and events outside the timeline are left out,
        row by row. The source is not written to.

        Returns:
            A table of the integer columns k, step, recency and delta, in any order, as `recency_sql` defines them.

        Raises:
            InputError: the source or a column is missing, unreadable or of the wrong type.
            EngineError: the engine failed.
        """
        ...


def engine_for(source: object, settings: EngineSettings) -> Engine:
    """The engine that counts a source: the one asked for, or the one that the source belongs to.

    Raises:
        InputError: no engine has the name asked for.
    """
    name = settings.engine or "duckdb"
    if name not in ENGINES:
        raise InputError(f"there is no engine {name!r}; the engines are {', '.join(ENGINES)}")
    return cast(Engine, import_module(f"dpwindows.engines.{name}"))
