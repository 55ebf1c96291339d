"""A ledger in the hands of several processes at once, against a model of a page that adds fractions by itself.

Whatever order the processes came in, some order must explain what they were told: entries are numbered in it, so every
one of them must have fitted when its turn came, and since nothing is given back, whoever was refused must not fit
at the end either. Where a charge counts is worked out here from what a neighbour can do, span by span, and
not as the ledger does it, by edges.
"""

from __future__ import annotations

import itertools
import json
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from dpwindows.ask.privacy import ZCDP, ApproxDP, Budget, ItemPerPeriod, PureDP, parse_unit
from dpwindows.ledger.ledger import Ledger
from tests.ledger.processes import Nursery
from tests.search import examples

if TYPE_CHECKING:
    from tests.count.engines.servers import PostgreSQL

STEPS = 6
# The first instants of spans that can meet a range; the last one is met by streams without end alone.
INSTANTS = range(-3, STEPS + 2)
TOTAL = Fraction(1, 2)
TOTAL_DELTA = Fraction(4, 1000)
TOTALS: dict[str, Budget] = {
    "pure": PureDP(float(TOTAL)),
    "rho": ZCDP(float(TOTAL)),
    "approximate": ApproxDP(float(TOTAL), float(TOTAL_DELTA)),
}


@dataclass(frozen=True)
class Spent:
    """One entry of the page: what it costs, and the steps and the clock it reads."""

    cost: tuple[Fraction, Fraction]
    start: int
    end: int | None
    clock: str

    def counts(self, first_of_span: int, unit: str, clock: str) -> bool:
        """Whether it reads anything of a change within the span that begins there."""
        if unit in ("item", "item-add-remove") or self.clock != clock:
            return True
        length = parse_unit(unit).steps if unit != "event" else 1  # type: ignore[attr-defined]
        return any(
            self.start <= at and (self.end is None or at < self.end)
            for at in range(first_of_span, first_of_span + length)
        )


@dataclass(frozen=True)
class Page:
    """Everything that was spent, in order."""

    kind: str
    unit: str
    entries: tuple[Spent, ...] = ()

    def cost_of(self, budget: dict[str, Any]) -> tuple[Fraction, Fraction] | None:
        """In the terms of the total; None where such a release does not keep it."""
        epsilon, delta, rho = (Fraction(str(budget.get(name, 0))) for name in ("epsilon", "delta", "rho"))
        if self.kind == "rho":
            return None if delta else (rho + epsilon**2 / 2, Fraction(0))
        if rho or (self.kind == "pure" and delta):
            return None
        return epsilon, delta

    @property
    def most(self) -> tuple[Fraction, Fraction]:
        """What is spent where most is; the part of each kind by itself."""
        if not self.entries:
            return Fraction(0), Fraction(0)
        clock = self.entries[0].clock
        sums = [
            [
                sum((one.cost[part] for one in self.entries if one.counts(at, self.unit, clock)), Fraction(0))
                for part in (0, 1)
            ]
            for at in INSTANTS
        ]
        return max(one[0] for one in sums), max(one[1] for one in sums)

    def with_one(self, spent: Spent) -> Page:
        return Page(self.kind, self.unit, (*self.entries, spent))

    @property
    def holds(self) -> bool:
        return self.most[0] <= TOTAL and self.most[1] <= (TOTAL_DELTA if self.kind == "approximate" else 0)


@pytest.fixture(scope="module", autouse=True)
def _nursery() -> Iterator[None]:
    yield
    Nursery.end()


ranges = st.tuples(st.integers(0, STEPS - 1), st.integers(1, STEPS)).map(lambda at: (at[0], min(STEPS, at[0] + at[1])))
spends = st.fixed_dictionaries(
    {
        "do": st.just("spend"),
        "epsilon": st.integers(1, 350),
        "more": st.sampled_from(["", "", "delta", "rho", "wrong"]),
        "range": ranges,
        "endless": st.sampled_from([False, False, True]),
        "time": st.sampled_from(["at", "at", "at", "changed"]),
    }
)
releases = st.fixed_dictionaries(
    {
        "do": st.just("release"),
        "epsilon": st.sampled_from([100, 200, 300]),
        "range": st.sampled_from([(0, 3), (3, 6)]),
        "data": st.sampled_from([1, 2]),
    }
)


class SharedLedger(RuleBasedStateMachine):
    """See the module."""

    @initialize(kind=st.sampled_from(sorted(TOTALS)), unit=st.sampled_from(["event", "event", "item-per:2", "item"]))
    def begin(self, kind: str, unit: str) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.ledger = Ledger.create(*self.new(), budget=TOTALS[kind], unit=parse_unit(unit))
        self.page = Page(kind, unit)
        self.numbers = 0  # entries on record
        self.stored: dict[str, list[Any]] = {}
        self.states: dict[str, tuple[int, str]] = {}
        self.tokens = 0

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)

    def new(self) -> tuple[str, str]:
        """Where the ledger is to be, and what its dataset is called."""
        return str(self.folder / "ledger.db"), "d"

    def contents(self) -> object:
        """All that is kept, to the last bit."""
        return Path(self.ledger.path).read_bytes()

    # --- Jobs ---------------------------------------------------------------------------------------------------------

    def job(self, drawn: dict[str, Any]) -> dict[str, Any]:
        """What a process is told to do."""
        start, end = drawn["range"]
        budget: dict[str, float] = {"epsilon": drawn["epsilon"] / 1000}
        told = {"do": drawn["do"], "unit": self.page.unit, "start": start, "end": end} | self.named
        if drawn["do"] == "release":
            return told | {"budget": budget, "data": drawn["data"], "time": "at"}
        wrong = drawn["more"] == "wrong"
        if (drawn["more"] == "delta") == (self.page.kind == "approximate") and drawn["more"] in ("delta", "wrong"):
            budget["delta"] = 0.001
        elif drawn["more"] == "rho" and self.page.kind == "rho":
            budget = {"rho": drawn["epsilon"] / 1000}
        elif wrong:
            budget = {"epsilon": drawn["epsilon"] / 1000, "delta": 0.001}
        if drawn["endless"]:
            self.tokens += 1
            told |= {"end": None, "state": f"state {self.tokens} of {self.ledger.dataset}"}
        # Spans of steps mean nothing by another clock: `test_shared_facts` sees that such a release is refused.
        time = "at" if self.page.unit.startswith("item-per") else drawn["time"]
        return told | {"budget": budget, "time": time}

    @property
    def named(self) -> dict[str, Any]:
        return {"path": str(self.ledger.path), "dataset": self.ledger.dataset}

    def spent_by(self, job: dict[str, Any]) -> Spent | None:
        cost = self.page.cost_of(job["budget"])
        return None if cost is None else Spent(cost, job["start"], job["end"], job["time"])

    @staticmethod
    def key(job: dict[str, Any]) -> str:
        return json.dumps([job["budget"], job["start"], job["end"], job["data"]])

    # --- Rules --------------------------------------------------------------------------------------------------------

    @rule(drawn=st.lists(st.one_of(spends, releases), min_size=1, max_size=4), twice=st.booleans())
    def at_once(self, drawn: list[dict[str, Any]], twice: bool) -> None:
        """Several processes spend and release at one moment, some of them the same."""
        jobs = [self.job(one) for one in drawn]
        if twice and jobs[0]["do"] == "release":
            jobs.append(dict(jobs[0]))
        before, shown = self.contents(), self.ledger.book().to_dict()
        said = Nursery.run(jobs)
        self.explain(list(zip(jobs, said, strict=True)))
        if all("exit" in one for one in said):
            assert self.ledger.book().to_dict() == shown
            assert self.contents() == before

    def explain(self, outcomes: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
        """Bring the model to where the ledger is, and check that it could get there."""
        fresh: dict[int, dict[str, Any]] = {}
        for job, said in outcomes:
            if "number" not in said:
                continue
            if job["do"] == "release":
                key = self.key(job)
                assert self.stored.setdefault(key, said["release"]) == said["release"], "one request, two releases"
                if said["number"] <= self.numbers:
                    continue
            assert fresh.setdefault(said["number"], job) == job, "one entry for two requests"
        assert sorted(fresh) == list(range(self.numbers + 1, self.numbers + 1 + len(fresh)))
        for number in sorted(fresh):
            self.enter(number, fresh[number])
        for job, said in outcomes:
            if "exit" not in said:
                continue
            assert said["exit"] == 2, said
            spent = self.spent_by(job)
            if spent is None:
                assert not said["over"]
            else:
                assert said["over"]
                assert not self.page.with_one(spent).holds, f"refused, and it fits: {job}"
        ids = [release[0] for release in self.stored.values()]
        assert len(ids) == len(set(ids))

    def enter(self, number: int, job: dict[str, Any]) -> None:
        spent = self.spent_by(job)
        assert spent is not None, "a charge that does not keep the total was admitted"
        self.page = self.page.with_one(spent)
        assert self.page.holds, f"entry {number} exceeds the total"
        self.numbers = number
        if job.get("state"):
            self.states[job["state"]] = (0, "t0")

    @rule(which=st.integers(0, 99))
    def ask_again(self, which: int) -> None:
        """A stored release is had again, whatever is left, and nothing is spent."""
        # No precondition: who wins a race differs from run to run, and the histories drawn must not.
        if not self.stored:
            return
        key = sorted(self.stored)[which % len(self.stored)]
        budget, start, end, data = json.loads(key)
        job = {"do": "release", "unit": self.page.unit, "time": "at"} | self.named
        job |= {"budget": budget, "start": start, "end": end, "data": data}
        before = self.contents()
        for said in Nursery.run([job, dict(job)]):
            assert said["release"] == self.stored[key]
        assert self.contents() == before

    @rule(drawn=st.one_of(spends, releases), milliseconds=st.integers(0, 120))
    def killed(self, drawn: dict[str, Any], milliseconds: int) -> None:
        """A process that is killed has spent what the ledger shows, and never more than it asked for."""
        job = self.job(drawn)
        (said,) = Nursery.run([job | {"kill_after": milliseconds / 1000}])
        if said:
            self.explain([(job, said)])
            return
        entries = self.ledger.book().entries
        assert len(entries) - self.numbers in (0, 1)
        if len(entries) > self.numbers:
            self.enter(len(entries), job)
            entry = entries[-1]
            if job["do"] == "release":
                # Whoever asks next gets what was stored and never seen, or what that entry pays for.
                (again,) = Nursery.run([job])
                assert again["number"] == entry.number
                assert entry.release_id in (None, again["release"][0])
                self.stored[self.key(job)] = again["release"]

    @rule(which=st.integers(0, 99), copies=st.integers(1, 4), stale=st.booleans())
    def advance(self, which: int, copies: int, stale: bool) -> None:
        """Of several copies of a stream's state that go on at once, one gets ahead; one that is behind never does."""
        if not self.states:
            return
        state = sorted(self.states)[which % len(self.states)]
        step, token = self.states[state]
        known = (step, "another") if stale else (step, token)
        jobs = []
        for _ in range(copies):
            self.tokens += 1
            new = (step + 1, f"t{self.tokens}")
            jobs.append({"do": "advance", "state": state, "known": known, "new": new} | self.named)
        said = Nursery.run(jobs)
        won = [one["position"] for one in said if "position" in one]
        assert len(won) == (0 if stale else 1)
        assert all((one["exit"], one["behind"]) == (2, True) for one in said if "position" not in one)
        if won:
            self.states[state] = (won[0][0], won[0][1])
        assert self.ledger.position(state) == self.states[state]

    @invariant()
    def the_page_is_what_is_shown(self) -> None:
        if not hasattr(self, "ledger"):
            return
        shown = Ledger.open(self.ledger.path, self.ledger.dataset).book().to_dict()
        name = "rho" if self.page.kind == "rho" else "epsilon"
        assert len(shown["entries"]) == self.numbers
        assert shown["spent"][name] == float(self.page.most[0])
        assert shown["left"][name] == float(TOTAL - self.page.most[0])
        if self.page.kind == "approximate":
            assert shown["spent"]["delta"] == float(self.page.most[1])


def test_a_span_meets_a_range_as_the_ledger_says() -> None:
    """The model's own rule at its edges: a change within steps 2 and 3 is read by what begins at 3, or ends at 3."""
    unit = ItemPerPeriod(2).name
    assert Spent((TOTAL, Fraction(0)), 3, 6, "at").counts(2, unit, "at")
    assert not Spent((TOTAL, Fraction(0)), 4, 6, "at").counts(2, unit, "at")
    assert Spent((TOTAL, Fraction(0)), 0, 3, "at").counts(2, unit, "at")
    assert not Spent((TOTAL, Fraction(0)), 0, 2, "at").counts(2, unit, "at")
    assert Spent((TOTAL, Fraction(0)), 0, 2, "changed").counts(2, unit, "at")


class SharedOnServer(SharedLedger):
    """The same on a server: a dataset for each history, all in one ledger."""

    server: PostgreSQL
    numbers_of_histories = itertools.count()

    def new(self) -> tuple[str, str]:
        return self.server.address("owner"), f"history {next(self.numbers_of_histories)}"

    def contents(self) -> object:
        with self.server.connect() as connection:
            tables = ("datasets", "entries", "positions", "releases")
            return [
                connection.execute(f"SELECT * FROM dpwindows_ledger.{table} ORDER BY 1, 2".encode()).fetchall()
                for table in tables
            ]


@pytest.fixture
def on_server(cluster: PostgreSQL) -> None:
    SharedOnServer.server = cluster


TestSharedLedger = pytest.mark.slow(SharedLedger.TestCase)
TestSharedLedger.settings = examples(6, steps=10)
TestSharedOnServer = pytest.mark.usefixtures("on_server")(
    pytest.mark.xdist_group("postgresql")(SharedOnServer.TestCase)
)
TestSharedOnServer.settings = examples(2, steps=10)
