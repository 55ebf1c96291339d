"""The ledger: one budget a dataset, shared by everything released from it, and spent before anything is drawn.

import dpwindows as dw

ledger = dw.Ledger.create("ledger.db", "flights", budget=dw.ApproxDP(3.0, 1e-6), unit=dw.EventLevel())
ledger = dw.Ledger.open("postgresql://analyst@host/budgets", "flights")  # the same on a server
release = plan.run("flights.parquet", item="tailnum", time="time", ledger=ledger)

**What it promises.** Everything released from the log through the ledger satisfies, together, the dataset's total
budget at the level of its unit, for one version of the log and for a log that grows; whatever is asked, by whoever has
seen what was published before. `composition` and `parallel` hold the rules and their proofs.

**Check, record, draw.** `spend` checks and records in one transaction that is on disk when it returns; only then may
noise be drawn. What was spent is never given back. A crash between spending and storing reveals nothing, and the same
request on the same data goes on with its entry: one entry pays for one release, the first that is stored.

**Once.** Whoever does not know whether a write took place makes it again: it finds itself by what only its caller drew
(the id of a state, a token, the id of a release, the key of a dataset), or an entry by request and data.

**The same request on the same data** returns the release that was stored, and spends nothing. The data are known
again by a keyed hash of the exact answers that the release depends on. Whether a stored release or a new one came back
tells whether those answers changed between two versions of a log: that is not protected.

**Streams** spend their whole budget when they are created. Each step they publish is recorded by a random token first
(`advance`), so that a state restored from a backup, or copied, is found behind the record and refused: going on from
it would publish a step again with fresh noise.

**What it cannot see**: releases made without it, and a copy of the ledger itself. Keep one, for all releases. Nor can
it see which log is read: that all releases of a dataset are of one log, in which a column of one name holds one thing,
is promised by whoever names the dataset. How the log is read it knows (`EventColumns.facts`).
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dpwindows.ask.privacy import ZCDP, ApproxDP, Budget, PureDP, Unit
from dpwindows.count.sources.database import database_of
from dpwindows.errors import InputError, StateBehindLedgerError
from dpwindows.ledger import rows
from dpwindows.ledger.book import Book, Entry
from dpwindows.ledger.places import Connection, Place, Store
from dpwindows.ledger.request import Request, canonical, require_unit
from dpwindows.ledger.store import FileStore, Kept

if TYPE_CHECKING:
    from dpwindows.count.answers import ExactAnswers
    from dpwindows.count.groups import GroupedAnswers

# Seconds a release waits for another that draws its noise under the same ledger.
PATIENCE = 600.0


class Position(NamedTuple):
    """The last step a stream was cleared to publish, and its token; step 0 before the first."""

    step: int
    token: str


@dataclass(frozen=True, init=False)
class Ledger:
    """One dataset of an existing ledger; see the module. `create` makes the ledger or the dataset.

    Attributes:
        path: of its file; or the address of the PostgreSQL server that it is on, without a password.
        dataset: the name of the dataset.

    Raises:
        InputError: there is no such ledger or dataset, the file or database is no ledger, others may write the file,
            or the server is set so that it may forget what was spent.
        EngineError: the ledger is damaged or locked, cannot be read or cannot be reached.
    """

    path: Place
    dataset: str
    _store: Store = field(repr=False, compare=False)

    def __init__(self, path: str | Path, dataset: str, *, kept: Kept | None = None) -> None:
        """Open a dataset; `kept` is the connection that a stream asks a file on, which the caller closes."""
        _require_name(dataset)
        store = store_at(path, kept)
        object.__setattr__(self, "path", store.place)
        object.__setattr__(self, "dataset", dataset)
        object.__setattr__(self, "_store", store)
        store.require_trusted()
        self.book()

    @classmethod
    def create(cls, path: str | Path, dataset: str, *, budget: Budget, unit: Unit, singleton: bool = False) -> Ledger:
        """Add a dataset with its total budget, once and for all; makes the file, with mode 0600, if there is none.

        Args:
            path: the ledger file, on a local disk, or the address of a database, `postgresql://USER@HOST/DATABASE`,
                with the password in the environment, `~/.pgpass` or a service file; one serves any number of datasets.
            dataset: a name of your choice, public.
            budget: what everything released from the dataset may spend together.
            unit: the unit of privacy of that guarantee.
            singleton: the guarantee is for logs with at most one event a step, a public promise; releases that rest
                on it are admitted.

        Raises:
            InputError: the dataset exists, the file or database is no ledger, or an argument is not legal.
            EngineError: the ledger is locked, cannot be written or cannot be reached.
        """
        _require_name(dataset)
        if not isinstance(budget, (PureDP, ApproxDP, ZCDP)):
            raise InputError(f"budget must be PureDP(...), ApproxDP(...) or ZCDP(...), got {budget!r}")
        if not isinstance(unit, Unit):
            raise InputError(f"unit must be a unit of privacy such as EventLevel(), got {unit!r}")
        require_unit(unit)
        facts = canonical(
            {"unit": unit.name, "budget": budget.to_dict(), "singleton": bool(singleton), "created": _now()}
        )
        store, secret = store_at(path), secrets.token_bytes(32)

        def add(connection: Connection) -> None:
            row = connection.execute("SELECT secret FROM datasets WHERE name = ?", (dataset,)).fetchone()
            if row is None:
                connection.execute("INSERT INTO datasets VALUES (?, ?, ?, 0, '', '')", (dataset, facts, secret))
                rows.seal_dataset(connection, dataset)
            elif row[0] != secret:
                raise InputError(
                    f"the ledger {str(store.place)!r} has a dataset {dataset!r} already, and a total is set once: "
                    "name another dataset"
                )

        store.create()
        store.write(add)
        return cls(path, dataset)

    @classmethod
    def open(cls, path: str | Path, dataset: str) -> Ledger:
        """A dataset of an existing ledger, as `Ledger(path, dataset)`."""
        return cls(path, dataset)

    @property
    def address(self) -> str:
        """Where it is, as any process may open it: the whole path of its file, or the address of its server."""
        return self.path if isinstance(self.path, str) else str(self.path.resolve())

    def _repr_html_(self) -> str:
        """A notebook shows what was spent and what is left."""
        from dpwindows.report.notebook import ledger_html

        return ledger_html(self.book().to_dict())

    def book(self) -> Book:
        """The dataset's total and all its entries, as plain values."""
        return self._store.read(self._book)

    def knows(self, state: str) -> bool:
        """Whether a stream was paid for, by the id of its state."""
        return any(entry.state == state for entry in self.book().entries)

    def require_room(self, request: Request) -> None:
        """Check that a request fits what is left, without spending.

        Raises:
            OverBudgetError: it does not.
            InputError: its guarantee is not of the kind this dataset's total and unit need.
        """
        self.book().require_room(request)

    def spend(
        self, request: Request, *, state: str | None = None, token: str = "", fingerprint: str | None = None
    ) -> int:
        """Check that a request fits and record it, in one step; what it pays for may be drawn when this has returned.

        Args:
            request: what is paid for.
            state: the id of a stream's state; needed for streams, and for nothing else.
            token: the token of the stream's position before its first step.
            fingerprint: of the exact answers a batch release depends on (`fingerprint`), to know it again; without
                one the entry is nobody else's.

        Returns:
            The number of the entry, from 1, in the order of spending. It is one on record, and nothing more is spent,
            if that is of the same request on the same data, or of the same state before its first step.

        Raises:
            OverBudgetError: the total would be exceeded; nothing was spent.
            InputError: the request is of a kind this dataset does not admit, or the state is on record already.
            EngineError: the ledger is locked, cannot be written or cannot be reached.
        """
        if (request.kind == "stream") != (state is not None):
            raise InputError(f"a stream is recorded with the id of its state, and a release without, got {state!r}")
        mark = fingerprint or secrets.token_hex(16)

        def act(connection: Connection) -> int:
            book = self._book(connection)
            known = book.entry_of(request, mark) if state is None else self._begun(connection, request, state, token)
            if known is not None:
                return known.number
            book.require_room(request)
            number = rows.record(connection, self.path, self.dataset, request, state=state, fingerprint=mark)
            if state is not None:
                self._begin(connection, state, token)
            return number

        return self._store.write(act)

    def position(self, state: str, *, to_act: bool = True) -> Position:
        """The last step that a stream was cleared to publish, and its token; with `to_act` it is on disk.

        Raises:
            InputError: this dataset has no such stream.
        """
        return self._store.read(lambda connection: self._position(connection, state)[0], to_act=to_act)

    def advance(self, state: str, known_step: int, known_token: str, new_step: int, new_token: str) -> None:
        """Record that a stream is about to publish up to a step: call it after its own commit, before publishing.

        The step on record must be the known one; the same call again changes nothing and succeeds. So of two copies of
        a state that draw different tokens, one gets ahead and the other never can.

        Args:
            state: the id of the stream's state.
            known_step: the step on record, as the state knows it.
            known_token: its token.
            new_step: the last step about to be published; later than `known_step`.
            new_token: a random token that the state drew for it.

        Raises:
            StateBehindLedgerError: another step or token is on record; nothing was changed.
            InputError: this dataset has no such stream, or the new step is not after the known one.
            EngineError: the ledger is locked, cannot be written or cannot be reached.
        """
        known, new = Position(known_step, known_token), Position(new_step, new_token)
        if new.step <= known.step or new.token in ("", known.token):
            raise InputError(f"a stream advances to a later step under a new token, got {known} and {new}")

        def act(connection: Connection) -> None:
            found, before = self._position(connection, state)
            if (before, found) == (known, new):
                return
            if found != known:
                raise StateBehindLedgerError(state, recorded_step=found.step, known_step=known.step)
            connection.execute(
                "UPDATE positions SET step = ?, token = ?, known_step = ?, known_token = ?, seal = ? WHERE state = ?",
                (*new, *known, self._position_seal(connection, state, new, known), state),
            )
            rows.seal_dataset(connection, self.dataset)

        self._store.write(act)

    def fingerprint(self, answers: ExactAnswers | GroupedAnswers) -> str:
        """A keyed hash of exact answers: it tells whether the data are the same. The key stays in the ledger."""
        secret = self._store.read(lambda connection: rows.secret_of(connection, self.path, self.dataset))
        digest = hmac.new(secret, b"answers", hashlib.sha256)
        for part in answers.canonical():
            digest.update(part)
        return digest.hexdigest()

    def holds(self, request: Request) -> bool:
        """Whether the same request was paid for, whatever the data were."""
        return any(entry.key == request.key for entry in self.book().entries)

    def stored(self, request: Request, fingerprint: str) -> bytes | None:
        """The stored release of the same request on the same data, None if there is none; it is on disk.

        Raises:
            EngineError: the ledger cannot be read, or is damaged.
        """

        def look(connection: Connection) -> bytes | None:
            entry = self._book(connection).entry_of(request, fingerprint)
            return None if entry is None or entry.release_id is None else self._content(connection, entry.number)

        return self._store.read(look, to_act=True)

    def store(self, number: int, release_id: str, content: bytes) -> bytes:
        """Keep a release that was paid for, once, before it is published.

        Returns:
            What is kept, which alone may be published: this release, or the one that was stored for the entry before.

        Raises:
            InputError: the entry is not there, or is a stream.
            EngineError: the ledger is locked, cannot be written or cannot be reached.
        """

        def act(connection: Connection) -> bytes:
            entry = next((one for one in self._book(connection).entries if one.number == number), None)
            if entry is None or entry.facts["kind"] != "release":
                raise InputError(f"dataset {self.dataset!r} has no release with the number {number}")
            if entry.release_id is not None:
                return self._content(connection, number)
            digest = rows.digest_of(content)
            seal = rows.seal_of(rows.secret_of(connection, self.path, self.dataset), number, release_id, digest)
            row = (self.dataset, number, release_id, digest, seal, content)
            connection.execute("INSERT INTO releases VALUES (?, ?, ?, ?, ?, ?)", row)
            rows.seal_dataset(connection, self.dataset)
            return content

        return self._store.write(act)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Hold the right to find, spend, draw and store: one batch release at a time does, over all its datasets.

        It spares others the work. That one entry gives one release does not rest on it, but on `store`.

        Raises:
            EngineError: another release holds it for longer than ten minutes.
        """
        with self._store.turn(PATIENCE):
            yield

    def _book(self, connection: Connection) -> Book:
        return rows.read_book(connection, self.path, self.dataset)

    def _content(self, connection: Connection, number: int) -> bytes:
        """The release of an entry whose book was read, so that its digest is sealed."""
        query = "SELECT digest, content FROM releases WHERE dataset = ? AND number = ?"
        digest, content = connection.execute(query, (self.dataset, number)).fetchone() or ("", None)
        if not isinstance(content, bytes) or rows.digest_of(content) != digest:
            raise rows.damaged(self.path)
        return content

    def _begun(self, connection: Connection, request: Request, state: str, token: str) -> Entry | None:
        """The entry of a state that was paid for by this request and has not advanced; None if it is not on record."""
        if not connection.execute("SELECT 1 FROM positions WHERE state = ?", (state,)).fetchone():
            return None
        entries = self._book(connection).entries
        entry = next((one for one in entries if (one.state, one.key) == (state, request.key)), None)
        if entry is None or self._position(connection, state) != _beginning(token):
            raise InputError(f"stream {state!r} is on record already: a state is paid for once")
        return entry

    def _begin(self, connection: Connection, state: str, token: str) -> None:
        new, known = _beginning(token)
        seal = self._position_seal(connection, state, new, known)
        row = (state, self.dataset, *new, *known, seal)
        connection.execute("INSERT INTO positions VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        rows.seal_dataset(connection, self.dataset)

    def _position(self, connection: Connection, state: str) -> tuple[Position, Position]:
        """The position on record, and the one before it."""
        row = connection.execute(
            "SELECT step, token, known_step, known_token, seal FROM positions WHERE state = ? AND dataset = ?",
            (state, self.dataset),
        ).fetchone()
        if row is None:
            raise InputError(f"dataset {self.dataset!r} of the ledger {str(self.path)!r} has no stream {state!r}")
        *values, seal = row
        rows.require_seal(self.path, seal, rows.secret_of(connection, self.path, self.dataset), state, *values)
        return Position(*values[:2]), Position(*values[2:])

    def _position_seal(self, connection: Connection, state: str, new: Position, known: Position) -> str:
        return rows.seal_of(rows.secret_of(connection, self.path, self.dataset), state, *new, *known)


def _beginning(token: str) -> tuple[Position, Position]:
    """The position of a stream that was paid for, and the one before it."""
    return Position(0, token), Position(0, "")


def store_at(place: str | Path, kept: Kept | None = None) -> Store:
    """What keeps the ledger at a path, or at the address of a server.

    Raises:
        InputError: the address is of another kind of database, holds a password, or cannot be read.
    """
    database = database_of(place)
    if database is None:
        return FileStore(Path(place), kept)
    if database != "postgresql":
        raise InputError(
            f"a ledger is a file, or on a PostgreSQL server at postgresql://USER@HOST/DATABASE, and not on {database}"
        )
    from dpwindows.ledger.server import ServerStore

    return ServerStore(str(place))


def book_of(path: str | Path, dataset: str) -> Book:
    """A dataset's total and all its entries, for looking at: of a ledger that others may write, too.

    Raises:
        InputError: there is no such ledger or dataset, or the file or database is no ledger.
        EngineError: the ledger is damaged or locked, cannot be read or cannot be reached.
    """
    store = store_at(path)
    return store.read(lambda connection: rows.read_book(connection, store.place, dataset))


def datasets(path: str | Path) -> list[str]:
    """The names of the datasets in a ledger, in order.

    Raises:
        EngineError: the ledger cannot be read, or is damaged.
    """
    store = store_at(path)
    return store.read(lambda connection: rows.dataset_names(connection, store.place))


def _require_name(dataset: str) -> None:
    if not isinstance(dataset, str) or not dataset.strip() or len(dataset) > 200 or not dataset.isprintable():
        raise InputError(f"a dataset needs a name of 1 to 200 printable characters, got {dataset!r}")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
