"""The ledger: one budget a dataset, shared by everything released from it, and spent before anything is drawn.

import dpwindows as dw

ledger = dw.Ledger.create("ledger.db", "flights", budget=dw.ApproxDP(3.0, 1e-6), unit=dw.EventLevel())
release = plan.run("flights.parquet", item="tailnum", time="time", ledger=ledger)

**What it promises.** Everything released from the log through the ledger satisfies, together, the dataset's total
budget at the level of its unit, for one version of the log and for a log that grows; whatever is asked, by whoever has
seen what was published before. `composition` and `parallel` hold the rules and their proofs.

**Check, record, draw.** `spend` checks and records in one transaction that is on disk when it returns; only then may
noise be drawn. A crash in between loses the budget and reveals nothing. What was spent is never given back.

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
import json
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dpwindows.ask.privacy import ZCDP, ApproxDP, Budget, PureDP, Unit
from dpwindows.errors import InputError, StateBehindLedgerError
from dpwindows.ledger import store as ledger_store
from dpwindows.ledger.book import Book
from dpwindows.ledger.request import Request, canonical, require_unit
from dpwindows.ledger.rows import damaged, digest_of, read_book, record, require_seal, seal_dataset, seal_of, secret_of

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
    """One dataset of an existing ledger file; see the module. `create` makes the file or the dataset.

    Raises:
        InputError: there is no such file or dataset, the file is no ledger, or others may write it.
        EngineError: the file is damaged, locked or cannot be read.
    """

    path: Path
    dataset: str
    _kept: ledger_store.Kept | None = field(repr=False, compare=False)

    def __init__(self, path: str | Path, dataset: str, *, kept: ledger_store.Kept | None = None) -> None:
        """Open a dataset; `kept` is the connection that a stream asks it on, which the caller closes."""
        _require_name(dataset)
        object.__setattr__(self, "path", Path(path))
        object.__setattr__(self, "dataset", dataset)
        object.__setattr__(self, "_kept", kept)
        ledger_store.require_trusted(self.path)
        self.book()

    @classmethod
    def create(cls, path: str | Path, dataset: str, *, budget: Budget, unit: Unit, singleton: bool = False) -> Ledger:
        """Add a dataset with its total budget, once and for all; makes the file, with mode 0600, if there is none.

        Args:
            path: the ledger file, on a local disk; one file serves any number of datasets.
            dataset: a name of your choice, public.
            budget: what everything released from the dataset may spend together.
            unit: the unit of privacy of that guarantee.
            singleton: the guarantee is for logs with at most one event a step, a public promise; releases that rest
                on it are admitted.

        Raises:
            InputError: the dataset exists, the file is no ledger, or an argument is not legal.
            EngineError: the file is locked or cannot be written.
        """
        path = Path(path)
        _require_name(dataset)
        if not isinstance(budget, (PureDP, ApproxDP, ZCDP)):
            raise InputError(f"budget must be PureDP(...), ApproxDP(...) or ZCDP(...), got {budget!r}")
        if not isinstance(unit, Unit):
            raise InputError(f"unit must be a unit of privacy such as EventLevel(), got {unit!r}")
        require_unit(unit)
        facts = canonical(
            {"unit": unit.name, "budget": budget.to_dict(), "singleton": bool(singleton), "created": _now()}
        )
        ledger_store.create_file(path)
        with ledger_store.writing(path) as connection:
            if connection.execute("SELECT 1 FROM datasets WHERE name = ?", (dataset,)).fetchone():
                raise InputError(
                    f"the ledger {str(path)!r} has a dataset {dataset!r} already, and a total is set once: "
                    "name another dataset"
                )
            secret = secrets.token_bytes(32)
            connection.execute("INSERT INTO datasets VALUES (?, ?, ?, 0, '', '')", (dataset, facts, secret))
            seal_dataset(connection, dataset)
        return cls(path, dataset)

    @classmethod
    def open(cls, path: str | Path, dataset: str) -> Ledger:
        """A dataset of an existing ledger, as `Ledger(path, dataset)`."""
        return cls(path, dataset)

    def _repr_html_(self) -> str:
        """A notebook shows what was spent and what is left."""
        from dpwindows.report.notebook import ledger_html

        return ledger_html(self.book().to_dict())

    def book(self) -> Book:
        """The dataset's total and all its entries, as plain values."""
        with ledger_store.reading(self.path, kept=self._kept) as connection:
            return read_book(connection, self.path, self.dataset)

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
            fingerprint: of the exact answers a batch release depends on (`fingerprint`), to know it again.

        Returns:
            The number of the entry, from 1, in the order of spending.

        Raises:
            OverBudgetError: the total would be exceeded; nothing was spent.
            InputError: the request is of a kind this dataset does not admit, or the state is on record already.
            EngineError: the file is locked or cannot be written.
        """
        if (request.kind == "stream") != (state is not None):
            raise InputError(f"a stream is recorded with the id of its state, and a release without, got {state!r}")
        with ledger_store.writing(self.path) as connection:
            book = read_book(connection, self.path, self.dataset)
            book.require_room(request)
            number = record(connection, self.path, self.dataset, request, state=state, fingerprint=fingerprint)
            if state is not None:
                self._begin(connection, state, token)
        return number

    def position(self, state: str, *, to_act: bool = True) -> Position:
        """The last step that a stream was cleared to publish, and its token; with `to_act` it is on disk.

        Raises:
            InputError: this dataset has no such stream.
        """
        with ledger_store.reading(self.path, to_act=to_act, kept=self._kept) as connection:
            return self._position(connection, state)[0]

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
            EngineError: the file is locked or cannot be written.
        """
        known, new = Position(known_step, known_token), Position(new_step, new_token)
        if new.step <= known.step or new.token in ("", known.token):
            raise InputError(f"a stream advances to a later step under a new token, got {known} and {new}")
        with ledger_store.writing(self.path, self._kept) as connection:
            found, before = self._position(connection, state)
            if (before, found) == (known, new):
                return
            if found != known:
                raise StateBehindLedgerError(state, recorded_step=found.step, known_step=known.step)
            self._set_position(connection, state, new, known)

    def fingerprint(self, answers: ExactAnswers | GroupedAnswers) -> str:
        """A keyed hash of exact answers: it tells whether the data are the same. The key never leaves the file."""
        with ledger_store.reading(self.path) as connection:
            secret = secret_of(connection, self.path, self.dataset)
        digest = hmac.new(secret, b"answers", hashlib.sha256)
        for part in answers.canonical():
            digest.update(part)
        return digest.hexdigest()

    def holds(self, request: Request) -> bool | None:
        """Whether a release of the same request is stored, whatever the data were; None if nothing was spent for it."""
        with ledger_store.reading(self.path) as connection:
            found = connection.execute(
                """SELECT max(releases.entry IS NOT NULL) FROM entries LEFT JOIN releases ON releases.entry = entries.id
                WHERE dataset = ? AND request_key = ?""",
                (self.dataset, request.key),
            )
            (stored,) = found.fetchone()
            return None if stored is None else bool(stored)

    def stored(self, request: Request, fingerprint: str) -> bytes | None:
        """The stored release of the same request on the same data, None if there is none; it is on disk.

        Raises:
            EngineError: the ledger cannot be read, or is damaged.
        """
        with ledger_store.reading(self.path, to_act=True) as connection:
            read_book(connection, self.path, self.dataset)
            # Without the index: no seal covers it, and a damaged one could hide a release, to be paid for again.
            row = connection.execute(
                """SELECT digest, content FROM entries NOT INDEXED JOIN releases ON releases.entry = entries.id
                WHERE dataset = ? AND request_key = ? AND fingerprint = ? ORDER BY number DESC LIMIT 1""",
                (self.dataset, request.key, fingerprint),
            ).fetchone()
            if row is None:
                return None
            digest, content = row
            if not isinstance(content, bytes) or digest_of(content) != digest:
                raise damaged(self.path)
            return bytes(content)

    def store(self, number: int, release_id: str, content: bytes) -> None:
        """Keep a release that was paid for, once, before it is published.

        Raises:
            InputError: the entry is not there, or has its release already.
            EngineError: the file is locked or cannot be written.
        """
        with ledger_store.writing(self.path) as connection:
            found = connection.execute(
                "SELECT id, facts FROM entries WHERE dataset = ? AND number = ?", (self.dataset, number)
            ).fetchone()
            if found is None or json.loads(found[1])["kind"] != "release":
                raise InputError(f"dataset {self.dataset!r} has no release with the number {number}")
            if connection.execute("SELECT 1 FROM releases WHERE entry = ?", (found[0],)).fetchone():
                raise InputError(f"entry {number} of dataset {self.dataset!r} has its release already")
            digest = digest_of(content)
            seal = seal_of(secret_of(connection, self.path, self.dataset), number, release_id, digest)
            row = (found[0], release_id, digest, seal, content)
            connection.execute("INSERT INTO releases VALUES (?, ?, ?, ?, ?)", row)
            seal_dataset(connection, self.dataset)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Hold the right to find, spend, draw and store: one batch release at a time does, over all its datasets.

        Raises:
            EngineError: another release holds it for longer than ten minutes.
        """
        with ledger_store.turn(self.path, PATIENCE):
            yield

    def _begin(self, connection: sqlite3.Connection, state: str, token: str) -> None:
        if connection.execute("SELECT 1 FROM positions WHERE state = ?", (state,)).fetchone():
            raise InputError(f"stream {state!r} is on record already: a state is paid for once")
        self._set_position(connection, state, Position(0, token), Position(0, ""))

    def _position(self, connection: sqlite3.Connection, state: str) -> tuple[Position, Position]:
        """The position on record, and the one before it."""
        row = connection.execute(
            "SELECT step, token, known_step, known_token, seal FROM positions WHERE state = ? AND dataset = ?",
            (state, self.dataset),
        ).fetchone()
        if row is None:
            raise InputError(f"dataset {self.dataset!r} of the ledger {str(self.path)!r} has no stream {state!r}")
        *values, seal = row
        require_seal(self.path, seal, secret_of(connection, self.path, self.dataset), state, *values)
        return Position(*values[:2]), Position(*values[2:])

    def _set_position(self, connection: sqlite3.Connection, state: str, new: Position, known: Position) -> None:
        seal = seal_of(secret_of(connection, self.path, self.dataset), state, *new, *known)
        connection.execute(
            "INSERT OR REPLACE INTO positions VALUES (?, ?, ?, ?, ?, ?, ?)", (state, self.dataset, *new, *known, seal)
        )
        seal_dataset(connection, self.dataset)


def book_of(path: Path, dataset: str) -> Book:
    """A dataset's total and all its entries, for looking at: of a ledger that others may write, too.

    Raises:
        InputError: there is no such file or dataset, or the file is no ledger.
        EngineError: the file is damaged, locked or cannot be read.
    """
    with ledger_store.reading(path) as connection:
        return read_book(connection, path, dataset)


def datasets(path: str | Path) -> list[str]:
    """The names of the datasets in a ledger file, in order.

    Raises:
        EngineError: the ledger cannot be read, or is damaged.
    """
    with ledger_store.reading(Path(path)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM datasets NOT INDEXED ORDER BY name")]
    if not all(isinstance(name, str) for name in names):
        raise damaged(Path(path))
    return names


def _require_name(dataset: str) -> None:
    if not isinstance(dataset, str) or not dataset.strip() or len(dataset) > 200 or not dataset.isprintable():
        raise InputError(f"a dataset needs a name of 1 to 200 printable characters, got {dataset!r}")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
