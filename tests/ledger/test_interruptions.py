"""Clients and servers that end at every statement, lines that are cut, and many at once: the budget is spent once.

Whatever happened, the same command afterwards gives the release of the one entry, and so does the command after that.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest

import dpwindows as dw
from dpwindows.ask.privacy import EventLevel, PureDP
from dpwindows.errors import EngineError
from dpwindows.ledger.ledger import Ledger
from tests.ledger.interrupter import MOMENTS, interrupted
from tests.ledger.processes import Nursery
from tests.ledger.requests import make, request
from tests.ledger.test_ledger import LOG, plan
from tests.search import SEARCHING

if TYPE_CHECKING:
    from tests.count.engines.servers import PostgreSQL

pytestmark = pytest.mark.xdist_group("postgresql")

# At least as many statements as a release asks of a server, the beginnings of transactions included.
STATEMENTS = 80
AT_ONCE = 50 if SEARCHING else 15
ROUNDS = 20 if SEARCHING else 2


@pytest.fixture(scope="module", autouse=True)
def _nursery() -> Iterator[None]:
    yield
    Nursery.end()


@pytest.fixture
def address(cluster: PostgreSQL, monkeypatch: pytest.MonkeyPatch) -> str:
    # What is cut must be read.
    monkeypatch.setenv("PGSSLMODE", "disable")
    monkeypatch.setenv("PGGSSENCMODE", "disable")
    make(cluster.address("owner"), PureDP(0.25))
    return cluster.address("owner")


def _release(place: str) -> dict[str, Any]:
    return plan().run(LOG, item="who", time="at", ledger=Ledger.open(place, "d")).metadata


def _require_once(address: str, seen: dict[str, Any] | None) -> None:
    """The total holds one release: it is paid for once, and had again."""
    again = _release(address)
    assert seen in (None, again)
    assert _release(address) == again
    (entry,) = Ledger.open(address, "d").book().entries
    assert entry.release_id == again["release_id"]


def _interrupted_release(address: str, cluster: PostgreSQL, at: int, moment: str, *, crash: bool) -> None:
    def do() -> None:
        if crash:
            cluster.crash()
            cluster.start()

    seen = None
    # It may be told to run the same again.
    with interrupted(cluster.port, at, moment, do) as line, suppress(EngineError):
        seen = _release(cluster.address("owner", line.port))
    assert line.done == (at <= line.asked)
    _require_once(address, seen)


@pytest.mark.search(9)
@pytest.mark.parametrize(("at", "moment"), list(itertools.product(range(1, STATEMENTS), MOMENTS)))
def test_a_line_that_is_cut_costs_nothing(address: str, cluster: PostgreSQL, at: int, moment: str) -> None:
    _interrupted_release(address, cluster, at, moment, crash=False)


@pytest.mark.search(6)
@pytest.mark.parametrize(("at", "moment"), list(itertools.product(range(1, STATEMENTS), MOMENTS)))
def test_a_server_that_is_stopped_at_once_costs_nothing(
    address: str, cluster: PostgreSQL, at: int, moment: str
) -> None:
    _interrupted_release(address, cluster, at, moment, crash=True)


def _job(address: str, **more: Any) -> dict[str, Any]:
    job = {"do": "release", "path": address, "unit": "event", "budget": {"epsilon": 0.25}, "data": 1, "time": "at"}
    return job | {"start": 0, "end": 3} | more


def test_a_release_asks_no_more_than_is_interrupted(address: str) -> None:
    (said,) = Nursery.run([_job(address, killed_at=[0, "before"])])
    assert 30 < said["asked"] < STATEMENTS


@pytest.mark.search(6)
@pytest.mark.parametrize(("at", "moment"), list(itertools.product(range(1, STATEMENTS), ("before", "after"))))
def test_a_process_that_is_killed_costs_nothing(address: str, at: int, moment: str) -> None:
    (said,) = Nursery.run([_job(address, killed_at=[at, moment])])
    again, other = (Nursery.run([_job(address)])[0]["release"] for _ in range(2))
    assert again == other
    assert not said or said["release"] == again
    (entry,) = Ledger.open(address, "d").book().entries
    assert entry.release_id == again[0]


@pytest.mark.search(10)
@pytest.mark.parametrize(("at", "moment"), list(itertools.product(range(1, 40), MOMENTS)))
@pytest.mark.parametrize("what", ["begin", "advance"])
def test_a_stream_is_paid_for_once_and_goes_on(
    address: str, cluster: PostgreSQL, at: int, moment: str, what: str
) -> None:
    stream = request(PureDP(0.25), 0, None, kind="stream")
    ledger = Ledger.open(address, "d")
    if what == "advance":
        ledger.spend(stream, state="s", token="t0")
    with interrupted(cluster.port, at, moment) as line:
        across = Ledger.open(cluster.address("owner", line.port), "d")
        if what == "begin":
            assert across.spend(stream, state="s", token="t0") == 1
        across.advance("s", 0, "t0", 3, "t3")
    assert ledger.position("s") == (3, "t3")
    assert [entry.state for entry in ledger.book().entries] == ["s"]


@pytest.mark.search(6)
@pytest.mark.parametrize(("at", "moment"), list(itertools.product(range(1, 30), MOMENTS)))
def test_a_dataset_is_made_once(cluster: PostgreSQL, address: str, at: int, moment: str) -> None:
    with interrupted(cluster.port, at, moment) as line:
        across = cluster.address("owner", line.port)
        made = Ledger.create(across, "other", budget=PureDP(0.5), unit=EventLevel())
    assert made.book().total == PureDP(0.5)
    with pytest.raises(dw.InputError, match="already"):
        make(address, dataset="other")


def test_a_server_that_does_not_come_back_leaves_the_question_and_the_same_again_answers_it(
    address: str, cluster: PostgreSQL, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpwindows.ledger.server._PAUSES", (0.0, 0.0))
    ledger = Ledger.open(address, "d")
    asked = request(PureDP(0.25))
    with interrupted(cluster.port) as line:
        across = Ledger.open(cluster.address("owner", line.port), "d")
        before = line.asked
        across.spend(request(PureDP(0.001)), fingerprint="a")
        line.at, line.moment, line.do = 2 * line.asked - before, "answered", cluster.crash
        with pytest.raises(EngineError, match=r"counts as spent only if .* the same again does not spend it twice"):
            across.spend(request(PureDP(0.1)), fingerprint="f")
        assert line.done
    try:
        with pytest.raises(EngineError, match="cannot be reached"):
            ledger.spend(asked, fingerprint="f")
    finally:
        cluster.start()
    assert [ledger.spend(request(PureDP(0.1)), fingerprint="f") for _ in range(2)] == [2, 2]
    assert len(ledger.book().entries) == 2


def test_what_may_have_been_spent_is_not_denied(address: str, cluster: PostgreSQL) -> None:
    """The answer to COMMIT is lost, and then the server is not fit to be asked: exit 2 would deny that it was spent."""
    ledger = Ledger.open(address, "d")

    def spoil() -> None:
        with cluster.connect() as owner:
            owner.execute("ALTER ROLE owner SET synchronous_commit = off")

    with interrupted(cluster.port) as line:
        across = Ledger.open(cluster.address("owner", line.port), "d")
        before = line.asked
        across.spend(request(PureDP(0.01)), fingerprint="a")
        line.at, line.moment, line.do = 2 * line.asked - before, "answered", spoil
        with pytest.raises(EngineError, match="counts as spent only if"):
            across.spend(request(PureDP(0.01)), fingerprint="b")
        assert line.done
    with cluster.connect() as owner:
        owner.execute("ALTER ROLE owner RESET synchronous_commit")
    assert len(ledger.book().entries) == 2
    assert ledger.spend(request(PureDP(0.01)), fingerprint="b") == 2


def test_a_commit_that_is_under_way_is_waited_for(address: str, cluster: PostgreSQL) -> None:
    """Its answer is lost while the server is at it: for ever after it is there."""
    ledger = Ledger.open(address, "d")
    with cluster.connect() as owner:
        # A check at the end of a transaction takes as long as it likes.
        owner.execute(
            "CREATE FUNCTION dpwindows_ledger.slow() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN PERFORM pg_sleep(1); RETURN NEW; END $$; "
            "CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON dpwindows_ledger.entries "
            "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION dpwindows_ledger.slow()"
        )
    with interrupted(cluster.port) as line:
        across = Ledger.open(cluster.address("owner", line.port), "d")
        before = line.asked
        across.spend(request(PureDP(0.01)), fingerprint="a")
        length = line.asked - before
        line.at, line.moment = line.asked + length, "asked"
        assert across.spend(request(PureDP(0.01)), fingerprint="b") == 2
        assert line.done
    assert len(ledger.book().entries) == 2


@pytest.mark.parametrize("copies", [2, 8])
def test_of_clients_with_one_request_at_once_one_pays(address: str, copies: int) -> None:
    said = Nursery.run([_job(address)] * copies)
    assert [one["number"] for one in said] == [1] * copies
    assert len({one["release"][0] for one in said}) == 1
    assert all(one["release"] == said[0]["release"] for one in said)


def test_many_at_once_spend_no_more_than_the_total_and_nothing_twice(address: str) -> None:
    """Of many requests, each asked for again and again, by clients some of which are killed."""
    rng, total = random.Random(7), Fraction(4, 5)
    place = make(address, PureDP(float(total)), dataset="many")
    kinds = [
        {"budget": {"epsilon": epsilon}, "start": start, "end": start + 3, "data": data}
        for epsilon, start, data in itertools.product((0.1, 0.2, 0.3), (0, 3), (1, 2))
    ]
    seen: dict[str, list[Any]] = {}
    refused = killed = 0
    for _ in range(ROUNDS):
        jobs = [_job(address, dataset="many", **rng.choice(kinds)) for _ in range(AT_ONCE)]
        for job in rng.sample(jobs, AT_ONCE // 5):
            job["killed_at"] = [rng.randrange(1, STATEMENTS), rng.choice(("before", "after"))]
        for job, said in zip(jobs, Nursery.run(jobs), strict=True):
            refused += bool(said.get("over"))
            killed += not said
            assert "exit" not in said or said["over"], said
            if "release" in said:
                key = str([job[name] for name in ("budget", "start", "end", "data")])
                assert seen.setdefault(key, said["release"]) == said["release"], "one request, two releases"
    entries = place.book().entries
    for start in (0, 3):
        here = [entry for entry in entries if entry.facts["timeline"]["start"] == start]
        assert sum(Fraction(str(entry.facts["budget"]["epsilon"])) for entry in here) <= total
    paid = [(entry.key, entry.fingerprint) for entry in entries]
    assert len(paid) == len(set(paid)), "paid twice"
    stored = [entry.release_id for entry in entries if entry.release_id is not None]
    assert {release[0] for release in seen.values()} <= set(stored)
    assert refused
    assert killed
