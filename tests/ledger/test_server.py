"""A ledger on a real PostgreSQL server: the book of a file, what a server must be like, and who may do what there."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pyarrow as pa
import pytest

import dpwindows as dw
from dpwindows.ask.privacy import PureDP
from dpwindows.errors import EngineError, InputError, StateBehindLedgerError
from dpwindows.ledger import server as servers
from dpwindows.ledger.ledger import Ledger, book_of, datasets
from dpwindows.ledger.places import Connection
from dpwindows.ledger.server import SCHEMA, ServerStore, grants
from dpwindows.ledger.store import KIND
from tests.end_to_end.command_line import run
from tests.ledger.requests import make, request
from tests.ledger.test_ledger import LOG, plan
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from tests.count.engines.servers import PostgreSQL

pytestmark = pytest.mark.xdist_group("postgresql")


@pytest.fixture
def address(cluster: PostgreSQL) -> str:
    return cluster.address("owner")


@pytest.fixture
def ledger(address: str) -> Ledger:
    return make(address)


# ---- the same book


def _history(place: str | Path) -> list[Any]:
    """A little of everything; what it returned, and what it was refused with."""
    ledger = make(place)
    said: list[Any] = [make(place, dataset="other", unit=dw.ItemLevel(), budget=dw.ZCDP(0.5)).dataset]

    def tried(call: Callable[[], Any]) -> None:
        try:
            said.append(call())
        except (InputError, EngineError) as error:
            said.append((type(error), str(error).replace(str(place), "PLACE")))

    stream = request(PureDP(0.125), 20, None, kind="stream")
    for call in (
        lambda: ledger.spend(request(PureDP(0.5)), fingerprint="f"),
        lambda: ledger.spend(request(PureDP(0.5)), fingerprint="f"),
        lambda: ledger.spend(request(PureDP(0.625)), fingerprint="g"),
        lambda: ledger.spend(request(PureDP(0.25)), fingerprint="é"),
        lambda: ledger.store(1, "a-release", bytes(range(256)) * 40),
        lambda: ledger.store(1, "another", b"other"),
        lambda: ledger.store(7, "none", b""),
        lambda: [ledger.stored(request(PureDP(0.5)), mark) for mark in ("f", "g")],
        lambda: [ledger.holds(request(PureDP(budget))) for budget in (0.5, 0.3)],
        lambda: ledger.spend(stream, state="s", token="t0"),
        lambda: ledger.spend(stream, state="s", token="t0"),
        lambda: ledger.spend(stream, state="s", token="t1"),
        lambda: ledger.advance("s", 0, "t0", 3, "t3"),
        lambda: ledger.advance("s", 0, "t0", 3, "t3"),
        lambda: ledger.advance("s", 0, "t0", 3, "t4"),
        lambda: ledger.position("s"),
        lambda: ledger.position("other"),
        lambda: ledger.knows("s"),
        lambda: Ledger.open(place, "missing"),
        lambda: make(place).dataset,
        lambda: sorted(datasets(place)),
        lambda: book_of(place, "other").room(dw.ZCDP(0.1)),
    ):
        tried(call)
    shown = ledger.book().to_dict()
    for part in (shown, *shown["entries"]):
        part.pop("created", part.pop("at", None))
    return [*said, shown]


def test_a_server_keeps_the_book_that_a_file_keeps(address: str, tmp_path: Path) -> None:
    kept = _history(address)
    assert kept == _history(tmp_path / "ledger.db")
    assert sum(isinstance(one, tuple) and one[0] is not None for one in kept) == 8


def _handed(step: int) -> pa.Table:
    return pa.table({"who": ["a"], "at": [step]})


def test_a_stream_goes_on_under_a_server_and_a_copy_or_a_ledger_put_back_is_refused(
    ledger: Ledger, cluster: PostgreSQL, tmp_path: Path
) -> None:
    planned = dw.StreamPlan([dw.Cumulative()], unit=dw.EventLevel(), budget=PureDP(0.5), horizon=8)
    state = tmp_path / "state"
    with dw.Stream.create(state, planned, item="who", time="at", start=0, step=1, ledger=ledger) as stream:
        stream.advance(_handed(0), 1)
    copy = tmp_path / "copy"
    copy.write_bytes(state.read_bytes())
    copy.chmod(0o600)
    (tmp_path / "copy-items").mkdir(mode=0o700)
    for part in (tmp_path / "state-items").iterdir():
        (tmp_path / "copy-items" / part.name).write_bytes(part.read_bytes())
    with cluster.connect() as owner:
        tables = ("datasets", "entries", "positions", "releases")
        for table in tables:
            owner.execute(f"CREATE TABLE public.{table} AS SELECT * FROM {SCHEMA}.{table}".encode())
        # The address of the ledger is in the state.
        with dw.Stream.open(state) as stream:
            stream.advance(_handed(1), 2)
        with pytest.raises(StateBehindLedgerError, match="step 2 on record"):
            dw.Stream.open(copy)
        owner.execute(f"TRUNCATE {', '.join(f'{SCHEMA}.{table}' for table in tables)}".encode())
        for table in tables:
            owner.execute(f"INSERT INTO {SCHEMA}.{table} SELECT * FROM public.{table}".encode())
            owner.execute(f"DROP TABLE public.{table}".encode())
    with pytest.raises(StateBehindLedgerError, match=r"step 1 on record .* at step 2"):
        dw.Stream.open(state)


# ---- one after the other


def test_a_write_waits_for_the_one_before_it_and_sees_what_that_did(ledger: Ledger, address: str) -> None:
    """Each half fits by itself, and the second begins before the first has ended."""
    inside, ended = threading.Event(), threading.Event()
    said: list[object] = []

    def slow(connection: Connection) -> None:
        inside.set()
        assert ended.wait(PATIENCE)
        connection.execute("UPDATE datasets SET facts = replace(facts, '1.0', '0.5')")

    def second() -> None:
        try:
            said.append(ServerStore(address).write(lambda c: c.execute("SELECT facts FROM datasets").fetchone()[0]))
        except Exception as error:
            said.append(error)

    first = threading.Thread(target=lambda: ServerStore(address).write(slow))
    first.start()
    assert inside.wait(PATIENCE)
    later = threading.Thread(target=second)
    later.start()
    with psycopg.connect(address, autocommit=True) as connection:
        while not said and not connection.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone():
            time.sleep(0.01)
    too_early = list(said)
    ended.set()
    first.join(PATIENCE)
    later.join(PATIENCE)
    assert not too_early
    assert "0.5" in str(said[0])


def test_a_lock_that_is_not_let_go_is_an_engine_error(
    ledger: Ledger, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ServerStore(address)
    monkeypatch.setattr(servers, "PATIENCE", 0.1)
    with store.turn(PATIENCE), pytest.raises(EngineError, match="another release"), store.turn(0.1):
        pass
    with store.turn(0.1):
        pass
    with psycopg.connect(address) as other:
        other.execute("SELECT pg_advisory_xact_lock(%s, 0)", (KIND.mark,))
        with pytest.raises(EngineError, match=r"locked by another transaction.* nothing was spent"):
            ServerStore(address).write(lambda connection: None)


def test_whoever_vanished_within_a_transaction_is_not_waited_for(
    ledger: Ledger, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is stopped, or a machine that is gone: the server ends what it began."""
    store = ServerStore(address)
    vanished = store._begun(idle=0.3)
    store._lock(vanished, servers._WRITING)
    assert ledger.spend(request(PureDP(0.1))) == 1
    with pytest.raises(psycopg.Error, match="idle-in-transaction"):
        vanished.commit()
    vanished.close()


@pytest.mark.parametrize("state", ["serialization_failure", "deadlock_detected"])
def test_a_conflict_is_tried_again_and_not_for_ever(
    ledger: Ledger, cluster: PostgreSQL, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    monkeypatch.setattr(servers, "_PAUSES", (0.0, 0.0, 0.0))
    with cluster.connect() as owner:
        # Sequences count on, whatever is undone.
        owner.execute(f"CREATE SEQUENCE {SCHEMA}.tries".encode())
        owner.execute(
            f"CREATE FUNCTION {SCHEMA}.conflict() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            f"IF nextval('{SCHEMA}.tries') % 5 <> 4 THEN RAISE {state}; END IF; RETURN NEW; END $$; "
            f"CREATE TRIGGER conflict BEFORE INSERT ON {SCHEMA}.entries FOR EACH ROW "
            f"EXECUTE FUNCTION {SCHEMA}.conflict()".encode()
        )
        assert ledger.spend(request(PureDP(0.1))) == 1
        monkeypatch.setattr(servers, "_PAUSES", (0.0, 0.0))
        with pytest.raises(EngineError, match=r"cannot be used: .*does not spend it twice"):
            ledger.spend(request(PureDP(0.1)))
    assert len(ledger.book().entries) == 1


def test_a_lost_answer_is_not_taken_for_nothing_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock may be held by the very transaction that was lost, for longer than anybody waits."""
    monkeypatch.setattr(servers, "_PAUSES", (0.0, 0.0))
    ends = iter([servers._PassingError("it may have been recorded"), EngineError("in use; nothing was spent")])

    def work() -> None:
        raise next(ends)

    with pytest.raises(EngineError, match="it may have been recorded"):
        ServerStore("postgresql://me@host/base")._tried(work)


# ---- what the server must be like


@contextmanager
def _changed(cluster: PostgreSQL, change: str, back: str) -> Iterator[None]:
    _execute(cluster, change)
    try:
        yield
    finally:
        _execute(cluster, back)


def _execute(cluster: PostgreSQL, statements: str) -> None:
    """Run them as the owner; where they reload the configuration, until new sessions have it."""
    loaded = "SELECT pg_conf_load_time()"
    with cluster.connect() as owner:
        before = owner.execute(loaded).fetchone()
        for statement in statements.split("; "):
            owner.execute(statement.encode())
        while "reload" in statements and owner.execute(loaded).fetchone() == before:
            time.sleep(0.01)


_SETTING = "ALTER SYSTEM SET {0} = off; SELECT pg_reload_conf()", "ALTER SYSTEM RESET {0}; SELECT pg_reload_conf()"
_ROLE = "ALTER ROLE owner SET synchronous_commit = {0}", "ALTER ROLE owner RESET synchronous_commit"
_TABLE = f"ALTER TABLE {SCHEMA}.{{0}} SET UNLOGGED", f"ALTER TABLE {SCHEMA}.{{0}} SET LOGGED"
VOLATILE = {
    "fsync": (_SETTING, "fsync", "fsync = off"),
    "full_page_writes": (_SETTING, "full_page_writes", "full_page_writes = off"),
    "off": (_ROLE, "off", "synchronous_commit = off"),
    "local": (_ROLE, "local", "synchronous_commit = local"),
    "remote_write": (_ROLE, "remote_write", "synchronous_commit = remote_write"),
    "unlogged": (_TABLE, "releases", "table releases .* is unlogged"),
}


@pytest.mark.parametrize("how", VOLATILE)
def test_a_server_that_may_forget_is_shown_and_not_spent_from(
    ledger: Ledger, cluster: PostgreSQL, address: str, how: str
) -> None:
    (change, back), name, said = VOLATILE[how]
    ledger.spend(request(PureDP(0.25), kind="stream"), state="s", token="t0")
    acts: tuple[Callable[[], object], ...] = (
        lambda: Ledger.open(address, "d"),
        lambda: make(address, dataset="e"),
        lambda: ledger.spend(request(PureDP(0.1))),
        lambda: ledger.store(1, "r", b""),
        lambda: ledger.advance("s", 0, "t0", 1, "t1"),
        lambda: ledger.position("s"),
        lambda: ledger.stored(request(PureDP(0.1)), "f"),
    )
    with _changed(cluster, change.format(name), back.format(name)):
        for act in acts:
            with pytest.raises(InputError, match=f"{said}.* Nothing was spent"):
                act()
        assert [entry.step for entry in ledger.book().entries] == [0]
        shown = run("ledger", "show", address).must_work()
        assert "nothing is spent from it: " in shown.err
        assert "epsilon = 0.75" in shown.out
    assert ledger.spend(request(PureDP(0.1))) == 2


_PUBLIC = f"GRANT {{0}} ON {SCHEMA}.{{1}} TO PUBLIC", f"REVOKE ALL ON {SCHEMA}.{{1}} FROM PUBLIC"
LOOSENED = {
    "trigger off": (
        f"ALTER TABLE {SCHEMA}.positions DISABLE TRIGGER forward",
        f"ALTER TABLE {SCHEMA}.positions ENABLE TRIGGER forward",
        "has lost the trigger forward",
    ),
    "trigger for replicas": (
        f"ALTER TABLE {SCHEMA}.positions ENABLE REPLICA TRIGGER forward",
        f"ALTER TABLE {SCHEMA}.positions ENABLE TRIGGER forward",
        "has lost the trigger forward",
    ),
    "deleting": (*(one.format("DELETE", "entries") for one in _PUBLIC), "has DELETE on entries"),
    "reading": (*(one.format("SELECT", "datasets") for one in _PUBLIC), "has SELECT on datasets"),
    "changing a column": (*(one.format("UPDATE (facts)", "entries") for one in _PUBLIC), "has UPDATE on entries"),
    "making tables": (
        f"GRANT CREATE ON SCHEMA {SCHEMA} TO PUBLIC",
        f"REVOKE CREATE ON SCHEMA {SCHEMA} FROM PUBLIC",
        "has CREATE on the schema",
    ),
}


@pytest.mark.parametrize("how", LOOSENED)
def test_a_ledger_that_everybody_may_change_is_not_spent_from(
    ledger: Ledger, cluster: PostgreSQL, address: str, how: str
) -> None:
    change, back, said = LOOSENED[how]
    place = _role(cluster, "spender", *grants("spender"))
    with _changed(cluster, change, back):
        for there in (address, place):
            with pytest.raises(InputError, match=f"{said}.* Nothing was spent"):
                Ledger.open(there, "d")
        assert f"{said}" in run("ledger", "show", place).must_work().err
    assert Ledger.open(place, "d").spend(request(PureDP(0.1))) == 1


def test_rights_that_a_database_gives_to_everybody_by_default_are_noticed(cluster: PostgreSQL, address: str) -> None:
    default = "ALTER DEFAULT PRIVILEGES {} ALL ON TABLES {} PUBLIC"
    with (
        _changed(cluster, default.format("GRANT", "TO"), default.format("REVOKE", "FROM")),
        pytest.raises(InputError, match="everybody who reaches the ledger"),
    ):
        make(address)


@pytest.mark.parametrize("table", ["datasets", "entries", "positions", "releases"])
def test_a_ledger_whose_rows_are_hidden_from_a_role_is_refused(
    ledger: Ledger, cluster: PostgreSQL, address: str, table: str
) -> None:
    """By dataset it would look whole, and its seals would agree."""
    ledger.spend(request(PureDP(0.5)), fingerprint="f")
    place = _role(cluster, "spender", *grants("spender"))
    own = "name" if table == "datasets" else "dataset"
    policy = f"CREATE POLICY own ON {SCHEMA}.{table} USING ({own} = 'e')"
    with _changed(
        cluster,
        f"{policy}; ALTER TABLE {SCHEMA}.{table} ENABLE ROW LEVEL SECURITY",
        f"ALTER TABLE {SCHEMA}.{table} DISABLE ROW LEVEL SECURITY; DROP POLICY own ON {SCHEMA}.{table}",
    ):
        for act in (lambda: Ledger.open(place, "d"), lambda: datasets(place), lambda: make(place, dataset="e")):
            with pytest.raises(InputError, match=f"hides rows of the table {table} .*Nothing was spent"):
                act()
        # Policies are not for the owner.
        assert Ledger.open(address, "d").book().entries
    assert Ledger.open(place, "d").spend(request(PureDP(0.1))) == 2


def test_a_standby_is_not_relied_upon(ledger: Ledger, cluster: PostgreSQL, address: str) -> None:
    cluster.control("stop")
    signal = cluster.data / "standby.signal"
    signal.touch()
    try:
        cluster.start()
        with pytest.raises(InputError, match="is a standby"):
            Ledger.open(address, "d")
        assert book_of(address, "d").entries == ()
    finally:
        signal.unlink()
        cluster.control("stop")
        cluster.start()
    assert ledger.spend(request(PureDP(0.1))) == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            f"COMMENT ON SCHEMA {SCHEMA} IS 'dpwindows: a ledger, format 2'",
            "has a ledger of format 2, and .* use a newer",
        ),
        (f"COMMENT ON SCHEMA {SCHEMA} IS NULL", "no ledger .its comment is None.*not touched"),
        (f"DROP TABLE {SCHEMA}.positions", "no ledger .*its tables are datasets, entries, releases.*not touched"),
        (f"ALTER TABLE {SCHEMA}.positions RENAME TO places", "no ledger .*entries, places, releases.*not touched"),
    ],
)
def test_what_is_no_ledger_that_this_version_reads_is_not_touched(
    ledger: Ledger, cluster: PostgreSQL, address: str, change: str, said: str
) -> None:
    with cluster.connect() as owner:
        owner.execute(change.encode())
    for call in (ledger.book, lambda: ledger.spend(request(PureDP(0.1))), lambda: make(address, dataset="e")):
        with pytest.raises(InputError, match=said):
            call()


def test_there_is_no_ledger_until_one_is_made(address: str) -> None:
    for call in (lambda: Ledger.open(address, "d"), lambda: datasets(address)):
        with pytest.raises(InputError, match=r"there is no ledger 'postgresql://.*: make one with"):
            call()
    assert make(address).dataset == "d"
    assert make(address, dataset="e").dataset == "e"
    assert datasets(address) == ["d", "e"]


def test_tables_of_a_session_do_not_stand_in_for_the_ledger(ledger: Ledger, address: str) -> None:
    def shadowed(connection: Connection) -> Any:
        connection.execute("CREATE TEMPORARY TABLE datasets (name text, seal text)")
        return connection.execute("SELECT name, seal FROM datasets").fetchall()

    (row,) = ServerStore(address).write(shadowed)
    assert row[0] == "d"


def test_an_edited_row_is_noticed(ledger: Ledger, cluster: PostgreSQL) -> None:
    ledger.spend(request(PureDP(0.5)), fingerprint="f")
    ledger.store(1, "a-release", b"content")
    for change, now, before in (
        ("entries SET facts = replace(facts, '{}', '{}')", "0.5", "0.1"),
        ("datasets SET facts = replace(facts, '{}', '{}')", "1.0", "9.0"),
        ("datasets SET entries = entries - {} + {}", "1", "0"),
        ("releases SET content = replace(content::text, '{}', '{}')::bytea", "63", "64"),
    ):
        edits = [f"UPDATE {SCHEMA}.{change.format(*way)}" for way in ((now, before), (before, now))]
        with _changed(cluster, *edits), pytest.raises(EngineError, match="is damaged"):
            ledger.stored(request(PureDP(0.5)), "f")
    assert ledger.stored(request(PureDP(0.5)), "f") == b"content"


# ---- a role that spends


def _role(cluster: PostgreSQL, name: str, *rights: str) -> str:
    """A new role with these rights; its address."""
    with cluster.connect() as owner:
        if owner.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (name,)).fetchone():
            owner.execute(f'DROP OWNED BY "{name}"; DROP ROLE "{name}"'.encode())
        owner.execute(f"CREATE ROLE \"{name}\" LOGIN PASSWORD '{cluster.password}'".encode())
        for statement in rights:
            owner.execute(statement.encode())
    return cluster.address(name)


FORBIDDEN = (
    "DELETE FROM entries",
    "DELETE FROM releases",
    "DELETE FROM positions",
    "DELETE FROM datasets",
    "TRUNCATE entries, releases",
    "TRUNCATE positions",
    "TRUNCATE datasets CASCADE",
    "UPDATE entries SET facts = replace(facts, '0.5', '0.1')",
    "UPDATE entries SET number = 0",
    "UPDATE entries SET fingerprint = NULL",
    "UPDATE datasets SET facts = replace(facts, '1.0', '9.0')",
    "UPDATE datasets SET secret = ''",
    "UPDATE releases SET content = ''",
    "UPDATE positions SET state = 'other'",
    "UPDATE positions SET step = 1",
    "UPDATE positions SET token = 'another'",
    "INSERT INTO datasets SELECT 'mine', facts, secret, 0, '', '' FROM datasets",
    "ALTER TABLE entries ADD COLUMN own text",
    "DROP TABLE releases",
    "CREATE TABLE mine (own text)",
    "ALTER TABLE positions DISABLE TRIGGER forward",
)


def test_a_role_spends_and_erases_nothing(ledger: Ledger, cluster: PostgreSQL) -> None:
    place = _role(cluster, "spender", *grants("spender"))
    spender = Ledger.open(place, "d")
    assert spender.spend(request(PureDP(0.5)), fingerprint="f") == 1
    spender.store(1, "a-release", b"content")
    spender.spend(request(PureDP(0.25), kind="stream"), state="s", token="t0")
    spender.advance("s", 0, "t0", 2, "t2")
    made = plan().run(LOG, item="who", time="at", ledger=spender)
    assert plan().run(LOG, item="who", time="at", ledger=spender).metadata == made.metadata
    before = ledger.book()
    for statement in FORBIDDEN:
        with psycopg.connect(place, autocommit=True) as connection:
            connection.execute(f"SET search_path = {SCHEMA}".encode())
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement.encode())
    with pytest.raises(InputError, match=r"refuses this role \(permission denied.*its owner grants"):
        make(place, dataset="mine")
    assert ledger.book() == before
    assert ledger.stored(request(PureDP(0.5)), "f") == b"content"


@pytest.mark.parametrize("left_out", range(len(grants("x"))))
def test_each_right_is_needed(ledger: Ledger, cluster: PostgreSQL, left_out: int) -> None:
    place = _role(cluster, "lacking", *(right for i, right in enumerate(grants("lacking")) if i != left_out))
    with pytest.raises(InputError, match=r"refuses this role \(permission denied for (schema|table)"):
        _use(place)


def _use(place: str) -> None:
    ledger = Ledger.open(place, "d")
    ledger.store(ledger.spend(request(PureDP(0.1)), fingerprint="f"), "r", b"")
    ledger.spend(request(PureDP(0.1), kind="stream"), state="s", token="t0")
    ledger.advance("s", 0, "t0", 1, "t1")


def test_the_page_shows_what_is_granted() -> None:
    page = (Path(__file__).parents[2] / "docs" / "ledger.md").read_text(encoding="utf-8")
    assert "\n".join(f"{statement};" for statement in grants("analyst")) in page


def test_a_name_in_a_grant_is_quoted() -> None:
    assert all(statement.endswith('TO "a ""b"""') for statement in grants('a "b"'))


# ---- addresses, secrets and what is said


def test_an_address_that_is_wrong_exits_2_and_a_server_that_does_not_answer_1(
    cluster: PostgreSQL, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for wrong, said in (
        ("mysql://user@host/db", "and not on mysql"),
        ("postgresql://user@host:port/db", "cannot be read"),
        ("postgresql+psycopg2://user@host/db", "driver psycopg: write postgresql://"),
        (f"{address}?colour=blue", "cannot be read: invalid connection option"),
        (address.replace("owner@", "owner:hunter2@"), "holds a password"),
        (f"{address}?password=hunter2", "holds a password"),
    ):
        outcome = run("ledger", "show", wrong).must_refuse(said)
        assert "hunter2" not in outcome.err
        # Of the ways to hand a password over those are named that there are.
        assert ("PGPASSWORD" in outcome.err) is ("hunter2" in wrong)
        assert "--password-file" not in outcome.err
    for unreachable in (
        cluster.address("owner", 1),
        address.replace("/logs", "/nothing"),
        address.replace("owner", "nobody"),
        "postgresql://owner@no-such-host.invalid/logs",
    ):
        outcome = run("ledger", "show", unreachable)
        assert (outcome.code, "cannot be reached" in outcome.err) == (1, True), outcome
    monkeypatch.setenv("PGPASSWORD", "hunter2")
    outcome = run("ledger", "show", address).must_fail("password authentication failed")
    assert "hunter2" not in outcome.err


def test_a_service_file_or_a_password_file_will_do(
    ledger: Ledger, cluster: PostgreSQL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PGPASSWORD")
    passwords = tmp_path / "pgpass"
    passwords.write_text(f"127.0.0.1:{cluster.port}:logs:owner:{cluster.password}\n")
    passwords.chmod(0o600)
    assert Ledger.open(f"{ledger.path}?passfile={passwords}", "d").spend(request(PureDP(0.1))) == 1
    service = tmp_path / "services"
    service.write_text(
        f"[budgets]\nhost=127.0.0.1\nport={cluster.port}\ndbname=logs\nuser=owner\npassword={cluster.password}\n"
    )
    monkeypatch.setenv("PGSERVICEFILE", str(service))
    assert Ledger.open("postgresql://?service=budgets", "d").spend(request(PureDP(0.1))) == 2


def test_a_password_is_in_no_message_file_or_page(
    cluster: PostgreSQL, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log.csv"
    log.write_text("who,at\nann,2013-01-02\nbob,2013-01-03\n")
    read = ["--item", "who", "--time", "at", "--start", "2013-01-01", "--step", "1d", "--unit", "event"]
    paid = [*read, "--ledger", address, "--dataset", "visits"]
    asked = ["release", str(log), *paid, "--end", "2013-02-01", "--epsilon", "0.6", "--window"]
    state = str(tmp_path / "state")
    said = [
        run("ledger", "create", address, "--dataset", "visits", "--unit", "event", "--epsilon", "1").must_work(),
        run(*asked, "rolling:7", "-o", tmp_path / "one.parquet").must_work(),
        run(*asked, "rolling:7", "-o", tmp_path / "two.json").must_work(),
        run(*asked, "cumulative", "-o", tmp_path / "over.csv").must_refuse("0.4 is left"),
        run("stream", "create", state, *paid, "--window", "cumulative", "--epsilon", "0.25", "--horizon", "9"),
        run("stream", "advance", state, log, "--through", "2013-01-04", "-o", tmp_path / "s.csv").must_work(),
        run("stream", "show", state).must_work(),
        run("ledger", "show", address, "--json").must_work(),
        run("ledger", "show", address).must_work(),
    ]
    assert "Nothing was spent" in said[2].err
    assert "GRANT USAGE ON SCHEMA" in said[0].err
    cluster.control("-m", "fast", "stop")
    said.append(run("stream", "advance", state, "--empty", "--through", "2013-01-05"))
    assert said[-1].code == 1
    cluster.start()
    ledger = Ledger.open(address, "visits")
    texts = [part for one in said for part in (one.out, one.err)] + [repr(ledger), ledger._repr_html_()]
    assert not any(cluster.password in text for text in texts)
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or cluster.password.encode() not in file.read_bytes(), file
    assert (tmp_path / "one.parquet").exists()
