"""The ledger: what it admits, on disk, and for batch releases; `test_stateful` has it in the hands of processes."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import stat
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import dpwindows as dw
import dpwindows.count.counting
from dpwindows.ask.privacy import ZCDP, ApproxDP, Budget, EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod, PureDP
from dpwindows.count.answers import ExactAnswers
from dpwindows.count.events import EventColumns
from dpwindows.errors import EngineError, InputError, OverBudgetError, StateBehindLedgerError
from dpwindows.ledger import store as ledger_store
from dpwindows.ledger.ledger import Ledger
from dpwindows.release import files
from tests.counting import count_events
from tests.ledger.requests import edit, make, request
from tests.patience import PATIENCE
from tests.plans import plan_of


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


def test_the_class_opens_a_dataset_that_is_there(tmp_path: Path) -> None:
    file = tmp_path / "l.db"
    made = Ledger.create(file, "d", budget=PureDP(1.0), unit=EventLevel())
    assert Ledger(str(file), dataset="d") == made == Ledger.open(file, "d")
    with pytest.raises(InputError, match=r"there is no ledger .*: make one with 'dpwindows ledger create'"):
        Ledger(tmp_path / "none.db", dataset="d")
    with pytest.raises(InputError, match="no dataset 'other'"):
        Ledger(file, dataset="other")
    file.chmod(0o666)
    with pytest.raises(InputError, match="others"):
        Ledger(file, dataset="d")


def test_a_stored_release_that_cannot_be_read_is_no_refusal(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was paid for: exit 2 would say that nothing was spent."""
    ledger, read = make(path), files.from_bytes

    def unreadable(content: bytes) -> Any:
        raise InputError("it was changed since")

    monkeypatch.setattr(files, "from_bytes", unreadable)
    with pytest.raises(EngineError, match=r"changed since\. The budget of entry 1 is spent.*spends nothing more"):
        plan().run(LOG, item="who", time="at", ledger=ledger)
    monkeypatch.setattr(files, "from_bytes", read)
    released = plan().run(LOG, item="who", time="at", ledger=ledger)
    (entry,) = ledger.book().entries
    assert entry.release_id == released.metadata["release_id"]


@pytest.mark.parametrize("total", [PureDP(1.0), ApproxDP(1.0, 1e-6), ZCDP(1.0)], ids=str)
def test_a_smaller_budget_is_advised_only_where_some_is_left(total: Budget, path: Path) -> None:
    ledger, half = make(path, total), ZCDP(0.5) if isinstance(total, ZCDP) else PureDP(0.5)
    ledger.spend(request(half))
    with pytest.raises(OverBudgetError, match="Ask for a smaller budget, or use the releases there are"):
        ledger.spend(request(total))
    ledger.spend(request(half))
    with pytest.raises(OverBudgetError, match=r"spent\. Use the releases there are"):
        ledger.spend(request(half))


def test_a_refusal_names_total_spent_asked_and_left(path: Path) -> None:
    ledger = make(path, ApproxDP(1.0, 1e-6))
    ledger.spend(request(ApproxDP(0.7, 1e-7)))
    with pytest.raises(OverBudgetError) as refusal:
        ledger.spend(request(ApproxDP(0.4, 1e-7)))
    for said in ("(1, 1e-06)", "epsilon = 0.7", "delta = 1e-07", "(0.4, 1e-07)", "epsilon = 0.3", "delta = 9e-07"):
        assert said in str(refusal.value)
    assert issubclass(OverBudgetError, InputError)
    other = Ledger.create(path, "pure", budget=PureDP(1.0), unit=EventLevel())
    with pytest.raises(InputError, match=r"the total is pure.* ask for epsilon without delta"):
        other.spend(request(ApproxDP(0.1, 1e-9)))


def test_a_refusal_says_where_the_total_is_spent(path: Path) -> None:
    ledger = make(path)
    ledger.spend(request(PureDP(1.0), 0, 3))
    with pytest.raises(OverBudgetError, match="is spent between 0 and 3"):
        ledger.spend(request(PureDP(0.5), 0, 8))


def test_rho_under_an_approximate_total_shows_what_rho_is_left(path: Path) -> None:
    ledger = make(path, ApproxDP(1.0, 1e-6))
    # The largest rho that (1, 1e-6) holds is 0.02436.
    for _ in range(12):
        ledger.spend(request(ZCDP(0.002)))
    with pytest.raises(OverBudgetError, match=r"rho = 0\.000355"):
        ledger.spend(request(ZCDP(0.002)))
    assert ledger.book().to_dict()["left"]["rho"] == pytest.approx(0.024356 - 0.024, abs=2e-6)
    with pytest.raises(InputError, match="set aside"):
        ledger.spend(request(ApproxDP(0.001, 1e-9)))
    assert len(ledger.book().entries) == 12


def test_what_one_dataset_spends_is_not_spent_from_another(path: Path) -> None:
    first = make(path)
    second = Ledger.create(path, "e", budget=PureDP(1.0), unit=EventLevel())
    assert first.spend(request(PureDP(1.0))) == second.spend(request(PureDP(1.0))) == 1


# ---- what a dataset admits


def test_a_weaker_unit_is_refused(path: Path) -> None:
    ledger = make(path, unit=ItemLevel())
    with pytest.raises(InputError, match=r"'item', which .* 'event' does not imply"):
        ledger.spend(request(PureDP(0.1), unit=EventLevel()))
    ledger.spend(request(PureDP(0.1), unit=ItemLevel()))
    event = Ledger.create(path, "e", budget=PureDP(1.0), unit=EventLevel())
    event.spend(request(PureDP(0.1), unit=ItemLevel()))
    with pytest.raises(InputError, match=r"'event', which .* 'item-add-remove' does not imply"):
        event.spend(request(PureDP(0.1), unit=ItemAddRemove()))


def test_items_are_those_of_one_column(path: Path) -> None:
    ledger = make(path, unit=ItemLevel())
    ledger.spend(request(PureDP(0.1), unit=ItemLevel()))
    with pytest.raises(InputError, match=r"column 'who'.*'host'"):
        ledger.spend(request(PureDP(0.1), unit=ItemLevel(), item="host"))
    # An occurrence is the same whatever it is grouped by.
    event = Ledger.create(path, "e", budget=PureDP(1.0), unit=EventLevel())
    event.spend(request(PureDP(0.1)))
    event.spend(request(PureDP(0.1), item="host"))


def test_a_promise_that_the_dataset_lacks_is_refused(path: Path) -> None:
    with pytest.raises(InputError, match="created without"):
        make(path).spend(request(PureDP(0.1), singleton=True))
    promised = Ledger.create(path, "s", budget=PureDP(1.0), unit=EventLevel(), singleton=True)
    promised.spend(request(PureDP(0.1), singleton=True))
    promised.spend(request(PureDP(0.1)))
    with pytest.raises(InputError, match=r"steps of 1 .*steps of 2"):
        promised.spend(request(PureDP(0.1), singleton=True, timeline=dw.Timeline(0, 10, 2)))


def test_items_within_some_steps_count_near_their_range_and_on_one_grid(path: Path) -> None:
    unit = ItemPerPeriod(3)
    ledger = make(path, unit=unit)
    ledger.spend(request(PureDP(0.7), 10, 20, unit=unit))
    # A change within steps 18, 19 and 20, or within 8, 9 and 10, is seen by both.
    for start, end in [(20, 30), (21, 30), (0, 10), (0, 9)]:
        with pytest.raises(OverBudgetError):
            ledger.spend(request(PureDP(0.7), start, end, unit=unit))
    ledger.spend(request(PureDP(0.7), 22, 30, unit=unit))
    ledger.spend(request(PureDP(0.7), 0, 8, unit=unit))
    with pytest.raises(InputError, match="item-per:2"):
        ledger.spend(request(PureDP(0.1), 40, 50, unit=ItemPerPeriod(2)))
    with pytest.raises(InputError, match="steps of"):
        ledger.spend(request(PureDP(0.1), unit=unit, timeline=dw.Timeline(41, 51, 2)))


def test_items_within_some_steps_do_not_compose_in_parallel_with_converted_rho(path: Path) -> None:
    unit = ItemPerPeriod(1)
    ledger = make(path, ApproxDP(1.0, 1e-6), unit=unit)
    ledger.spend(request(ZCDP(0.02), 10, 20, unit=unit))
    with pytest.raises(OverBudgetError):
        ledger.spend(request(ZCDP(0.02), 30, 40, unit=unit))
    event = Ledger.create(path, "e", budget=ApproxDP(1.0, 1e-6), unit=EventLevel())
    event.spend(request(ZCDP(0.02), 10, 20))
    event.spend(request(ZCDP(0.02), 30, 40))


def test_ranges_are_disjoint_by_one_clock_only(path: Path) -> None:
    ledger = make(path)
    days = [("2013-01-01", "2013-02-01"), ("2013-02-01", "2013-03-01"), ("2013-03-02", "2013-04-01")]
    first, second, third = (dw.Timeline(*day, time_zone="Europe/Paris") for day in days)
    ledger.spend(request(PureDP(0.6), timeline=first))
    ledger.spend(request(PureDP(0.6), timeline=second))
    with pytest.raises(OverBudgetError):
        ledger.spend(request(PureDP(0.6), timeline=third, time="changed_at"))
    with pytest.raises(OverBudgetError):
        ledger.spend(request(PureDP(0.6), timeline=dw.Timeline("2013-05-01", "2013-06-01")))
    assert ledger.spend(request(PureDP(0.6), timeline=third)) == 3
    edges = [(piece["start"], piece["end"]) for piece in ledger.book().to_dict()["by_time"]]
    assert edges[0] == (None, "2013-01-01")
    assert ("2013-03-01", "2013-03-02") in edges


STEPS = [
    (("2013-01-01", "2013-02-01", "1d"), ("2014-03-05", "2014-03-06", "1d"), True),
    (("2013-01-01T06:00", "2013-02-01T06:00", "1d"), ("2014-03-05", "2014-03-06", "1d"), False),
    (("2013-01-01", "2013-01-08", "1w"), ("2013-02-05", "2013-02-12", "1w"), True),
    (("2013-01-01", "2013-01-08", "1w"), ("2013-02-06", "2013-02-13", "1w"), False),
    (("2013-01-01", "2013-03-01", "2mo"), ("2013-05-01", "2013-07-01", "2mo"), True),
    (("2013-01-01", "2013-03-01", "2mo"), ("2013-02-01", "2013-04-01", "2mo"), False),
    (("2013-01-01", "2013-01-02", "15m"), ("2013-01-01T00:30", "2013-01-02", "15m"), True),
    (("2013-01-01", "2013-01-02", "15m"), ("2013-01-01T00:40", "2013-01-01T00:55", "15m"), False),
]


@pytest.mark.parametrize(("one", "other", "alike"), STEPS)
def test_steps_are_alike_where_one_grid_holds_both(one: Any, other: Any, alike: bool) -> None:
    grids = [
        request(PureDP(1.0), timeline=dw.Timeline(*range_and_step)).place["grid"] for range_and_step in (one, other)
    ]
    assert (grids[0] == grids[1]) == alike


# ---- streams


def test_a_stream_advances_by_its_tokens_and_nothing_else(path: Path) -> None:
    ledger = make(path)
    stream = request(PureDP(0.5), 0, None, kind="stream")
    ledger.spend(stream, state="s", token="t0")
    assert ledger.position("s") == (0, "t0")
    ledger.advance("s", 0, "t0", 1, "t1")
    ledger.advance("s", 0, "t0", 1, "t1")
    ledger.advance("s", 1, "t1", 5, "t5")
    assert Ledger.open(path, "d").position("s") == (5, "t5")
    behind = [
        (0, "t0", 1, "t1"),
        (0, "t0", 5, "t5"),
        (1, "t1", 5, "u5"),
        (1, "t1", 4, "t5"),
        (1, "t1", 6, "t6"),
        (4, "t5", 6, "t6"),
    ]
    for known_step, known_token, new_step, new_token in [*behind, (5, "t4", 6, "t6"), (9, "t9", 10, "t10")]:
        with pytest.raises(StateBehindLedgerError, match="step 5 on record"):
            ledger.advance("s", known_step, known_token, new_step, new_token)
    for known_step, known_token, new_step, new_token in [(5, "t5", 5, "t6"), (5, "t5", 4, "t4"), (5, "t5", 6, "t5")]:
        with pytest.raises(InputError, match="later step"):
            ledger.advance("s", known_step, known_token, new_step, new_token)
    assert ledger.position("s") == (5, "t5")
    (entry,) = ledger.book().to_dict()["entries"]
    assert (entry["kind"], entry["state"], entry["last_step"], entry["end"]) == ("stream", "s", 5, None)


def test_a_state_is_paid_for_once_and_known_to_its_dataset_only(path: Path) -> None:
    ledger = make(path)
    stream = request(PureDP(0.1), 0, None, kind="stream")
    number = ledger.spend(stream, state="s", token="t0")
    # Whoever does not know whether it was paid for asks again, with the token that only it has drawn.
    assert ledger.spend(stream, state="s", token="t0") == number
    another = request(PureDP(0.2), 0, None, kind="stream")
    for asked, token in [(stream, ""), (stream, "t1"), (another, "t0")]:
        with pytest.raises(InputError, match="on record already"):
            ledger.spend(asked, state="s", token=token)
    ledger.advance("s", 0, "t0", 1, "t1")
    for token in ("t0", "t1"):
        with pytest.raises(InputError, match="on record already"):
            ledger.spend(stream, state="s", token=token)
    assert len(ledger.book().entries) == 1
    other = Ledger.create(path, "e", budget=PureDP(1.0), unit=EventLevel())
    with pytest.raises(InputError, match="no stream 's'"):
        other.position("s")
    with pytest.raises(InputError, match="no stream 's'"):
        other.advance("s", 0, "", 1, "t")
    with pytest.raises(InputError, match="id of its state"):
        ledger.spend(stream)
    with pytest.raises(InputError, match="id of its state"):
        ledger.spend(request(PureDP(0.1)), state="x")


def test_of_many_copies_of_a_state_one_goes_on(path: Path) -> None:
    ledger = make(path)
    ledger.spend(request(PureDP(0.5), 0, None, kind="stream"), state="s", token="t0")
    outcomes: list[str] = []

    def advance(copy: int) -> None:
        try:
            ledger.advance("s", 0, "t0", 1, f"copy {copy}")
            outcomes.append(f"copy {copy}")
        except StateBehindLedgerError:
            outcomes.append("refused")

    copies = [threading.Thread(target=advance, args=(copy,)) for copy in range(8)]
    for copy in copies:
        copy.start()
    for copy in copies:
        copy.join()
    assert sorted(outcomes)[1:] == ["refused"] * 7
    assert ledger.position("s") == (1, sorted(outcomes)[0])


# ---- the file


def test_the_file_and_its_journal_are_private(path: Path) -> None:
    before = os.umask(0)
    try:
        ledger = make(path)
        journal = path.with_name("ledger.db-journal")
        _, mode = ledger_store.FileStore(path).write(
            lambda connection: (connection.execute("UPDATE datasets SET entries = 1"), journal.stat().st_mode)
        )
        assert stat.S_IMODE(mode) == 0o600
        with ledger.turn():
            pass
    finally:
        os.umask(before)
    assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {0o600}
    assert sorted(file.name for file in path.parent.iterdir()) == ["ledger.db", "ledger.db.lock"]


def test_commits_reach_the_disk_and_its_folder(path: Path) -> None:
    make(path)
    asked = ("PRAGMA synchronous", "PRAGMA journal_mode")
    found = ledger_store.FileStore(path).write(lambda connection: [connection.execute(one).fetchone() for one in asked])
    assert found == [(3,), ("delete",)]


def test_a_total_is_set_once(path: Path) -> None:
    make(path)
    with pytest.raises(InputError, match="set once"):
        make(path, PureDP(2.0))
    assert Ledger.open(path, "d").book().total == PureDP(1.0)
    for name in ("", " ", "a\nb", "x" * 201):
        with pytest.raises(InputError, match="name"):
            Ledger.create(path, name, budget=PureDP(1.0), unit=EventLevel())


def foreign_files(folder: Path) -> Iterator[tuple[Path, str]]:
    (folder / "text").write_text("not a ledger " * 500)
    (folder / "short").write_bytes(b"SQLite format 3\0")
    (folder / "empty").touch()
    edit(folder / "sqlite", "CREATE TABLE datasets (name TEXT)")
    edit(folder / "sqlite", "PRAGMA journal_mode = WAL")
    duckdb.connect(str(folder / "duckdb")).execute("CREATE TABLE t AS SELECT 1").close()
    make(folder / "newer")
    edit(folder / "newer", f"PRAGMA user_version = {ledger_store.KIND.format + 1}")
    (folder / "folder").mkdir()
    said = {"newer": "newer dpwindows", "folder": "no ledger|not a file", "short": "not a"}
    for name in ("text", "short", "empty", "sqlite", "duckdb", "newer", "folder"):
        yield folder / name, said.get(name, "not a")


def test_a_foreign_newer_or_broken_file_is_refused_and_not_touched(tmp_path: Path) -> None:
    for file, said in foreign_files(tmp_path):
        before = file.read_bytes() if file.is_file() else None
        calls: list[Callable[[], object]] = [lambda file=file: Ledger.open(file, "d"), lambda file=file: make(file)]  # type: ignore[misc]
        # An empty file of our own mode may become a ledger; one that others can read may not.
        for call in calls:
            with pytest.raises(InputError, match=said + "|mode 0644"):
                call()
        assert before == (file.read_bytes() if file.is_file() else None)
    with pytest.raises(InputError, match=r"no ledger .* create"):
        Ledger.open(tmp_path / "missing", "d")


def test_creation_goes_on_where_a_crash_left_an_empty_file(path: Path) -> None:
    os.close(os.open(path, os.O_CREAT, 0o600))
    assert make(path).spend(request(PureDP(1.0))) == 1


def _used(path: Path) -> Ledger:
    ledger = make(path)
    ledger.spend(request(PureDP(0.25)), fingerprint="f")
    ledger.store(1, "some-release", b"content" * 3000)
    ledger.spend(request(PureDP(0.125), 20, None, kind="stream"), state="s", token="t0")
    ledger.advance("s", 0, "t0", 3, "t3")
    return ledger


def _everything(ledger: Ledger) -> Any:
    stored = ledger.stored(request(PureDP(0.25)), "f")
    return ledger.book().to_dict(), ledger.position("s"), stored


def test_a_truncated_ledger_is_refused(path: Path) -> None:
    _used(path)
    whole = path.read_bytes()
    for size in (1, 50, 99, 100, 1000, 4096, 8192, len(whole) // 2, len(whole) - 4096, len(whole) - 1):
        path.write_bytes(whole[:size])
        # A single byte does not tell that it was a ledger.
        with pytest.raises(InputError if size == 1 else EngineError, match=r"damaged|not a"):
            _everything(Ledger.open(path, "d"))


@pytest.mark.slow
def test_no_damaged_byte_goes_unnoticed_where_it_matters(path: Path) -> None:
    ledger = _used(path)
    whole, wanted = path.read_bytes(), _everything(ledger)
    chosen, refused = random.Random(1), 0
    for position in [*range(0, 100, 3), *(chosen.randrange(len(whole)) for _ in range(250))]:
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 1 << chosen.randrange(8)]) + whole[position + 1 :])
        said = ""
        try:
            assert _everything(Ledger.open(path, "d")) == wanted
        except EngineError as error:
            said = str(error)
        except InputError as error:
            # What tells a ledger, and its version, is damaged itself.
            said = str(error) if position < 100 else "not among the first bytes"
        assert any(word in said for word in ("is damaged", "are damaged", "newer")) or not said
        refused += bool(said)
    assert refused > 100


def test_an_edited_record_is_noticed(path: Path) -> None:
    """Other values, of the same type or another; text that is none; and what tells that it is a ledger."""
    _used(path)
    whole = path.read_bytes()
    edits = [
        "UPDATE datasets SET facts = replace(facts, '1.0', '9.0')",
        "UPDATE entries SET facts = replace(facts, '0.25', '0.01') WHERE number = 1",
        "DELETE FROM entries WHERE number = 2",
        "UPDATE entries SET fingerprint = 'g' WHERE number = 1",
        "UPDATE entries SET number = 7 WHERE number = 1",
        "UPDATE positions SET step = 0, token = 't0'",
        "DELETE FROM positions",
        "DELETE FROM releases",
        "UPDATE releases SET release_id = 'another'",
        "UPDATE releases SET number = 2",
        "UPDATE releases SET content = x'00'",
        "UPDATE entries SET seal = CAST(seal AS BLOB)",
        "UPDATE entries SET number = 9e999 WHERE number = 1",
        *(f"UPDATE datasets SET {name} = CAST(x'ff' AS TEXT)" for name in ("facts", "last_seal", "seal")),
        *(f"PRAGMA {mark}" for mark in ("application_id = 7", "user_version = 0", "user_version = -1")),
    ]
    for statement in edits:
        path.write_bytes(whole)
        edit(path, statement)
        with pytest.raises(EngineError, match="damaged"):
            _everything(Ledger.open(path, "d"))


@pytest.mark.parametrize("table", ["releases", "positions"])
def test_a_record_put_back_to_what_it_was_is_noticed(path: Path, table: str) -> None:
    ledger = _used(path)
    other = sqlite3.connect(path)
    before = other.execute(f"SELECT * FROM {table}").fetchall()
    ledger.advance("s", 3, "t3", 5, "t5")
    ledger.spend(request(PureDP(0.25)), fingerprint="g")
    ledger.store(3, "another-release", b"other content")
    other.execute(f"DELETE FROM {table}")
    other.executemany(f"INSERT INTO {table} VALUES ({','.join('?' * len(before[0]))})", before)
    other.commit()
    other.close()
    with pytest.raises(EngineError, match=r"damaged.*missing"):
        Ledger.open(path, "d")


def test_what_is_acted_upon_is_on_disk_first(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process killed before it synced the folder leaves a record that a loss of power could take back."""
    ledger = _used(path)
    calls: dict[str, Callable[[], object]] = {
        "a stored release": lambda: ledger.stored(request(PureDP(0.25)), "f"),
        "a position": lambda: ledger.position("s"),
        "an advance made before": lambda: ledger.advance("s", 0, "t0", 3, "t3"),
    }
    for what, call in calls.items():
        synced: list[Path] = []
        monkeypatch.setattr(ledger_store, "sync_folder", synced.append)
        call()
        assert synced == [path.resolve().parent], what

    def failing(_folder: Path) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(ledger_store, "sync_folder", failing)
    for call in calls.values():
        with pytest.raises(EngineError, match="Input/output error"):
            call()


def test_a_lock_that_is_held_is_an_engine_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = make(path)
    monkeypatch.setattr(ledger_store, "PATIENCE", 0.05)
    monkeypatch.setattr("dpwindows.ledger.ledger.PATIENCE", 0.05)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    for call in (lambda: ledger.spend(request(PureDP(0.1))), ledger.book):
        with pytest.raises(EngineError, match="locked by another process"):
            call()
    other.close()
    with ledger.turn(), pytest.raises(EngineError, match="another release"), ledger.turn():
        pass
    with ledger.turn():
        assert ledger.spend(request(PureDP(0.1))) == 1


@contextmanager
def _largest_file(size: int) -> Iterator[None]:
    """No file may grow beyond a size: what a full disk looks like to one process."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        # What is compiled meanwhile would be cut, and kept.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "dont_write_bytecode", True)
            yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_spends_nothing_and_breaks_nothing(path: Path) -> None:
    ledger = _used(path)
    wanted = _everything(ledger)
    ledger.spend(request(PureDP(0.0625)), fingerprint="g")
    size = path.stat().st_size
    for room in (0, 600, 5000):
        with _largest_file(room), pytest.raises(EngineError, match="cannot be used"):
            ledger.spend(request(PureDP(0.0625)))
    with _largest_file(size + 8192), pytest.raises(EngineError, match="cannot be used"):
        ledger.store(3, "another", bytes(100_000))
    assert len(ledger.book().entries) == 3
    assert _everything(ledger)[1:] == wanted[1:]
    ledger.store(3, "another", bytes(100_000))
    assert ledger.spend(request(PureDP(0.0625))) == 4


def _as_somebody_else(work: Callable[[], None]) -> str:
    """What `work` raises when done by a user whom file modes bind; they do not bind the superuser."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        if os.geteuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
        try:
            work()
        except Exception as error:
            os.write(writing, f"{type(error).__name__}: {error}".encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as pipe:
        return pipe.read()


def test_read_only_files_and_folders_can_be_shown_and_not_spent_from() -> None:
    # Somebody else cannot pass through the folders that pytest makes.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "ledger.db"
        ledger = make(path)
        ledger.spend(request(PureDP(0.25)))
        spending = request(PureDP(0.25))
        # A file that anybody may write, or replace, is not spent from by anybody.
        for file_mode, folder_mode, said in [
            (0o444, 0o1777, "EngineError: the ledger"),
            (0o444, 0o777, "InputError: everybody may replace the ledger"),
            (0o666, 0o555, "InputError: others may write the ledger"),
        ]:
            path.chmod(file_mode)
            folder.chmod(folder_mode)
            assert _as_somebody_else(lambda: _require(len(ledger.book().entries) == 1)) == ""
            assert _as_somebody_else(lambda: _require(ledger.spend(spending) > 0)).startswith(said)
        folder.chmod(0o555)
        assert _as_somebody_else(lambda: _require(make(folder / "new") is not None)).startswith("EngineError")
        path.chmod(0o000)
        assert _as_somebody_else(lambda: _require(ledger.book() is not None)).startswith("EngineError")
        folder.chmod(0o1777)
        path.chmod(0o600)
        assert ledger.spend(spending) == 2


def _require(condition: bool) -> None:
    assert condition


# ---- batch releases


def plan(budget: float = 0.25, *, window: dw.Rolling | None = None, steps: int = 4) -> dw.Plan:
    return plan_of(
        window or dw.Rolling(2), steps=steps, unit=dw.EventLevel(), budget=dw.PureDP(budget), strategy="direct"
    )


LOG = pa.table({"who": ["a", "b", "a", "c"], "at": [0, 1, 3, 3]})


def test_the_same_request_on_the_same_data_returns_the_stored_release(path: Path) -> None:
    ledger = make(path)
    first = plan().run(LOG, item="who", time="at", ledger=ledger)
    # The order and the cut of the rows, and rows that are ignored, are no part of the data.
    shuffled = pa.table({"who": ["c", "a", "b", "a", None], "at": [3, 3, 1, 0, 2]})
    for log in (LOG, shuffled):
        again = plan().run(log, item="who", time="at", ledger=Ledger.open(path, "d"))
        assert again.to_arrow().equals(first.to_arrow())
        assert again.to_arrow().schema == first.to_arrow().schema
        assert again.metadata == first.metadata
    assert first.metadata["ledger"] == {"dataset": "d", "entry": 1}
    assert len(ledger.book().entries) == 1
    others = [
        plan().run(LOG.slice(1), item="who", time="at", ledger=ledger),
        plan(0.125).run(LOG, item="who", time="at", ledger=ledger),
        plan(window=dw.Rolling(3)).run(LOG, item="who", time="at", ledger=ledger),
    ]
    assert len({release.metadata["release_id"] for release in [first, *others]}) == 4
    assert len(ledger.book().entries) == 4
    # All three versions can still be had, the one of the changed data too.
    assert plan().run(LOG.slice(1), item="who", time="at", ledger=ledger).metadata == others[0].metadata


def test_a_stored_release_can_be_had_when_nothing_is_left(path: Path) -> None:
    ledger = make(path, PureDP(0.25))
    first = plan().run(LOG, item="who", time="at", ledger=ledger)
    assert plan().run(LOG, item="who", time="at", ledger=ledger).metadata == first.metadata
    with pytest.raises(OverBudgetError):
        plan().run(LOG.slice(1), item="who", time="at", ledger=ledger)


def test_the_same_request_at_once_waits_for_the_release_that_is_being_drawn(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All is spent for it, and it is not stored yet."""
    ledger = make(path, PureDP(0.25))
    store, others = Ledger.store, list[dw.Release]()

    def again() -> None:
        others.append(plan().run(LOG, item="who", time="at", ledger=Ledger.open(path, "d")))

    second = threading.Thread(target=again)

    refused, require_room = threading.Event(), Ledger.require_room

    def storing(self: Ledger, *arguments: Any) -> bytes:
        second.start()
        assert refused.wait(PATIENCE)
        return store(self, *arguments)

    def required(self: Ledger, *arguments: Any) -> None:
        try:
            require_room(self, *arguments)
        except OverBudgetError:
            refused.set()
            raise

    monkeypatch.setattr(Ledger, "store", storing)
    monkeypatch.setattr(Ledger, "require_room", required)
    first = plan().run(LOG, item="who", time="at", ledger=ledger)
    second.join(PATIENCE)
    assert [other.metadata for other in others] == [first.metadata]


def test_over_budget_is_refused_before_data_are_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = make(path, PureDP(0.2))

    def fail(*arguments: object, **named: object) -> None:
        raise AssertionError("data were read")

    monkeypatch.setattr(dpwindows.count.counting, "count_events", fail)
    # At once, whoever else is drawing: nothing was spent for this very request, so there is nothing to wait for.
    monkeypatch.setattr("dpwindows.ledger.ledger.PATIENCE", 0.0)
    with ledger.turn(), pytest.raises(OverBudgetError):
        plan().run(LOG, item="who", time="at", ledger=ledger)
    assert not ledger.book().entries


def test_nothing_is_spent_where_the_log_cannot_be_read(path: Path) -> None:
    ledger = make(path)
    with pytest.raises(InputError, match="when"):
        plan().run(LOG, item="who", time="when", ledger=ledger)
    assert not ledger.book().entries


def test_a_release_that_cannot_be_stored_is_not_returned(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = make(path)

    def full(*arguments: object) -> None:
        raise EngineError("the disk is full")

    monkeypatch.setattr(Ledger, "store", full)
    with pytest.raises(EngineError, match=r"disk is full.*entry 1 is spent.*nothing was published"):
        plan().run(LOG, item="who", time="at", ledger=ledger)
    monkeypatch.undo()
    # Nobody saw what was drawn: the entry still pays for one release, of the same request on the same data only.
    other = plan().run(LOG.slice(1), item="who", time="at", ledger=ledger)
    made = plan().run(LOG, item="who", time="at", ledger=ledger)
    assert [one.metadata["ledger"]["entry"] for one in (made, other)] == [1, 2]
    assert plan().run(LOG, item="who", time="at", ledger=ledger).metadata == made.metadata
    assert len(ledger.book().entries) == 2


def test_what_was_paid_for_and_not_stored_is_drawn_when_nothing_is_left(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = make(path, PureDP(0.25))

    def full(*arguments: object) -> None:
        raise EngineError("the disk is full")

    with monkeypatch.context() as failing:
        failing.setattr(Ledger, "store", full)
        with pytest.raises(EngineError, match="spends nothing more"):
            plan().run(LOG, item="who", time="at", ledger=ledger)
    with pytest.raises(OverBudgetError):
        plan().run(LOG.slice(1), item="who", time="at", ledger=ledger)
    assert plan().run(LOG, item="who", time="at", ledger=ledger).metadata["ledger"]["entry"] == 1


def test_of_two_draws_for_one_entry_one_is_kept_and_both_return_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn that is lost lets another in, between spending and storing."""
    ledger, others = make(path), list[dw.Release]()

    @contextmanager
    def no_turn(self: Ledger) -> Iterator[None]:
        yield

    store = Ledger.store

    def overtaken(self: Ledger, *arguments: Any) -> bytes:
        monkeypatch.setattr(Ledger, "store", store)
        others.append(plan().run(LOG, item="who", time="at", ledger=ledger))
        return store(self, *arguments)

    monkeypatch.setattr(Ledger, "turn", no_turn)
    monkeypatch.setattr(Ledger, "store", overtaken)
    first = plan().run(LOG, item="who", time="at", ledger=ledger)
    assert first.metadata == others[0].metadata
    assert first.to_arrow().equals(others[0].to_arrow())
    assert len(ledger.book().entries) == 1


@pytest.mark.slow
def test_fingerprints_are_of_the_answers_alone_and_keyed(path: Path) -> None:
    first = make(path)
    second = Ledger.create(path, "e", budget=PureDP(1.0), unit=EventLevel())
    columns = EventColumns("who", "at", None)
    counted = EventColumns("who", "at", "n")
    rows = pa.table({"who": ["a", "a", "b"], "at": [0, 0, 1]})
    grouped = pa.table({"who": ["b", "a"], "at": [1, 0], "n": [1, 2]})
    timeline = dw.Timeline(0, 3, 1)
    one = count_events(rows, columns, timeline, [1, 2])
    other = count_events(grouped, counted, timeline, [1, 2])
    assert first.fingerprint(one) == first.fingerprint(other) != second.fingerprint(one)
    assert first.fingerprint(count_events(rows.slice(1), columns, timeline, [1, 2])) != first.fingerprint(one)
    assert first.fingerprint(count_events(rows, columns, timeline, [1])) != first.fingerprint(one)
    assert first.fingerprint(ExactAnswers(4, {})) != first.fingerprint(ExactAnswers(3, {}))


def test_nothing_shown_depends_on_the_data(path: Path) -> None:
    ledger = make(path)
    plan().run(LOG, item="who", time="at", ledger=ledger)
    shown = json.dumps(ledger.book().to_dict())
    query = "SELECT fingerprint, hex(secret) FROM entries JOIN datasets ON dataset = name"
    fingerprint, secret = ledger_store.FileStore(path).read(lambda connection: connection.execute(query).fetchone())
    assert fingerprint not in shown
    assert secret.lower() not in shown
    assert set(ledger.book().to_dict()["entries"][0]) == {
        *("number", "at", "kind", "asked", "columns", "budget", "unit", "start", "end", "step", "release_id")
    }
