"""A PostgreSQL server that keeps what it committed; it starts once, where a test asks for it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.count.engines.servers import PostgreSQL


@pytest.fixture(scope="package")
def durable_cluster() -> Iterator[PostgreSQL]:
    from tests.count.engines import servers

    with servers.postgresql(servers.DURABLE) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGPASSWORD", server.password)
        yield server


@pytest.fixture
def cluster(durable_cluster: PostgreSQL) -> PostgreSQL:
    """The server, without a ledger, and with the password of its roles in the environment."""
    assert os.environ["PGPASSWORD"] == durable_cluster.password
    with durable_cluster.connect() as connection:
        connection.execute("DROP SCHEMA IF EXISTS dpwindows_ledger CASCADE")
    return durable_cluster
