"""Databases reached by SQLAlchemy, before there is a connection."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy

from dpwindows.ask.timeline import Timeline
from dpwindows.count.dialects import dialect_named
from dpwindows.count.engines.sql_alchemy import opened
from dpwindows.count.events import EventColumns
from dpwindows.count.query.wanted import Wanted
from dpwindows.count.request import CountRequest
from dpwindows.errors import EngineError


def test_what_a_driver_raises_of_its_own_is_not_repeated() -> None:
    """As that of BigQuery does where it finds no credentials."""

    def fails() -> Any:
        raise RuntimeError("no account hunter2")

    engine = sqlalchemy.create_engine("postgresql+psycopg://", creator=fails)
    request = CountRequest(engine, EventColumns("item", "time"), Timeline.of_steps(2), Wanted((1,)), "log")
    with (
        pytest.raises(EngineError, match=r"^the database cannot be reached \(RuntimeError\)$") as caught,
        opened(request, dialect_named("postgresql")),
    ):
        pytest.fail("there is no connection")
    assert caught.value.__suppress_context__
