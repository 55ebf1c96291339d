"""Set before NumPy is loaded: test processes run side by side, and each with several BLAS threads would only wait."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.scratch import use_memory
from tests.search import SEARCHING, choose_profile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.count.engines.servers import PostgreSQL

for library in ("OPENBLAS", "MKL", "OMP"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
# Hundreds of tests start processes of their own: without what is compiled, each would compile the package anew.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
choose_profile()
use_memory()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that go to one process start something there that takes long: a server, a browser, a Spark.

    Of tests marked `quick(n)` all cases are slow but for n; of those marked `search(n)` n are tests, and the others
    run under `make search` alone.
    """
    beyond = [] if SEARCHING else _all_but(items, "search")
    if beyond:
        config.hook.pytest_deselected(items=beyond)
        left = set(beyond)
        items[:] = [item for item in items if item not in left]
    for item in items:
        if item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.slow)
    if hasattr(config, "workerinput"):
        _longest_first(items)
    for item in _all_but([item for item in items if not item.get_closest_marker("slow")], "quick"):
        item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    """All tests and what they load stays to the end: the garbage collector need not go through it again and again."""
    gc.collect()
    gc.freeze()
    # Or libraries complain at the end of what was never given back.
    atexit.register(gc.unfreeze)


def _longest_first(items: list[pytest.Item]) -> None:
    """What goes to one of several processes begins the earlier the longer it takes, so that all end together.

    A test that is slow by itself takes as long as ten others.
    """
    length: Counter[str] = Counter()
    for item in items:
        length[_process_of(item)] += 10 if item.get_closest_marker("slow") else 1
    items.sort(key=lambda item: (-length[_process_of(item)], _process_of(item)))


def _process_of(item: pytest.Item) -> str:
    """What all tests have that go to one process: the name of their group, or their file."""
    group = item.get_closest_marker("xdist_group")
    return str(group.args[0]) if group else item.nodeid.partition("::")[0]


def _all_but(items: list[pytest.Item], name: str) -> list[pytest.Item]:
    """Of each test that is marked with a number all cases but so many: the first and others spread evenly."""
    families: dict[str, list[pytest.Item]] = {}
    for item in items:
        if (mark := item.get_closest_marker(name)) and mark.args:
            families.setdefault(item.nodeid.partition("[")[0], []).append(item)
    found = []
    for family in families.values():
        (number,) = next(family[0].iter_markers(name)).args
        found += [item for place, item in enumerate(family) if place * number % len(family) >= number]
    return found


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests of one file go to one process: the plans and fixtures that they share are made once."""
    from xdist.scheduler import LoadGroupScheduling  # type: ignore[import-untyped]

    class ByGroupAndFile(LoadGroupScheduling):  # type: ignore[misc]  # it publishes no types
        def _split_scope(self, nodeid: str) -> str:
            scope: str = super()._split_scope(nodeid)
            return scope if scope != nodeid else nodeid.partition("::")[0]

    if config.getvalue("dist") != "loadgroup":
        return None
    # Groups and files are sent as they are sorted (`_longest_first`), and not by the number of their tests.
    config.option.loadscopereorder = False
    return ByGroupAndFile(config, log)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What came of the runs before this one (`.ci/run`)."""
    for line in os.environ.get("EARLIER_RUNS", "").splitlines():
        terminalreporter.write_line(line)


@pytest.fixture(scope="session", autouse=True)
def _cache_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What is remembered on this machine, such as which databases passed a probe, is no part of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def an_engine() -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """An engine of this module's tests, and what puts it into use for a while (`tests.count.one_engine`)."""
    from tests.count import one_engine

    with one_engine.shared() as in_use:
        yield in_use


@pytest.fixture(scope="module")
def one_engine(an_engine: Callable[[], AbstractContextManager[None]]) -> Iterator[None]:
    """DuckDB reads events of this module's tests with one engine, in a connection of its own each time.

    Not for tests that read databases: files of DuckDB take from the engine what other sources need.
    """
    with an_engine():
        yield


@pytest.fixture(scope="session")
def forking() -> Iterator[Path]:
    """The socket of a process that has loaded the libraries and forks one for each command (`forked_commands`)."""
    from tests.forked_commands import serving

    with serving() as path:
        yield path


@pytest.fixture(scope="session")
def cluster() -> Iterator[PostgreSQL]:
    """A PostgreSQL server, which starts where a test first asks for it, once in a test process."""
    from tests.count.engines import servers

    with servers.postgresql() as running:
        yield running


@pytest.fixture
def server(cluster: PostgreSQL, monkeypatch: pytest.MonkeyPatch) -> PostgreSQL:
    """The server with nothing in its schema, and with the password of its roles in the environment."""
    monkeypatch.setenv("PGPASSWORD", cluster.password)
    with cluster.connect() as connection:
        connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public; GRANT USAGE ON SCHEMA public TO PUBLIC")
    return cluster


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A running Spark session, one in a test process."""
    from tests.count.engines import servers

    with servers.spark() as session:
        yield session


@pytest.fixture
def seeded_noise() -> Iterator[None]:
    """Noise of the kernel's laws that is the same in each run: what is made of it passes always, or never."""
    from tests.seeded_noise import install

    with pytest.MonkeyPatch.context() as patch:
        install(patch)
        yield


@pytest.fixture
def encoded_once() -> Iterator[None]:
    """The integers that noise is added to are worked out once for every log: they are those of all its releases."""
    from dpwindows.kernel import measure as kernel

    encode = kernel._encode_all
    # What they are of is kept too, so that nothing else gets its identity.
    known: dict[tuple[int, int], tuple[Any, Any, Any]] = {}

    def remembered(measurement: Any, answers: Any) -> Any:
        key = id(measurement), id(answers)
        if key not in known:
            known[key] = measurement, answers, encode(measurement, answers)
        return known[key][2]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "_encode_all", remembered)
        yield


@pytest.fixture(autouse=True)
def _designs_of_its_own(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that replaces parts of the package meets no design from before, and leaves none."""
    if "monkeypatch" not in request.fixturenames or "dpwindows.strategies" not in sys.modules:
        yield
        return
    from dpwindows.strategies import candidates, stream_candidates

    caches = candidates, stream_candidates
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()
