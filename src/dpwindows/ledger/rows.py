"""The rows of a ledger: read with every seal checked, written with a new one, in SQL that both of its stores speak.

A seal is a keyed hash over all values of a row. That of an entry goes over the seal of the entry before it as well;
that of a dataset over the last entry's, and over the seals of all its stored releases and positions of streams. So no
row can be changed, moved, left out or put back to what it was before, unless the whole file is.
"""

from __future__ import annotations

import hashlib
import hmac
import json

from dpwindows.ask.privacy import parse_unit
from dpwindows.errors import EngineError, InputError
from dpwindows.ledger import places
from dpwindows.ledger.book import Book, Entry, budget_of, new_facts
from dpwindows.ledger.places import Connection, Place
from dpwindows.ledger.request import Request, canonical


def seal_dataset(connection: Connection, dataset: str) -> None:
    """Seal a dataset as its rows are now; whoever changes rows ends with it, and has checked them before."""
    facts, secret, count, last_seal = connection.execute(
        "SELECT facts, secret, entries, last_seal FROM datasets WHERE name = ?", (dataset,)
    ).fetchone()
    seal = seal_of(secret, dataset, facts, count, last_seal, *_held(connection, dataset))
    connection.execute("UPDATE datasets SET seal = ? WHERE name = ?", (seal, dataset))


def _held(connection: Connection, dataset: str) -> list[str | int | None]:
    """What a dataset's seal covers beside its own row and its entries: the releases and positions that it has."""
    releases = connection.execute(
        "SELECT number, seal FROM releases WHERE dataset = ? ORDER BY number", (dataset,)
    ).fetchall()
    positions = connection.execute(
        "SELECT state, seal FROM positions WHERE dataset = ? ORDER BY state", (dataset,)
    ).fetchall()
    return [len(releases), len(positions), *(value for row in (*releases, *positions) for value in row)]


def read_book(connection: Connection, path: Place, dataset: str) -> Book:
    """A dataset with its entries, every seal checked; raises `EngineError` if the ledger is damaged."""
    facts, secret, count, last_seal = _dataset_row(connection, path, dataset)
    rows = connection.execute(
        """SELECT number, request_key, fingerprint, state, facts, seal FROM entries
        WHERE dataset = ? ORDER BY number""",
        (dataset,),
    ).fetchall()
    stored = _stored_ids(connection, path, dataset, secret)
    steps = _stream_steps(connection, path, dataset, secret)
    before, entries = "", []
    for number, key, fingerprint, state, entry_facts, entry_seal in rows:
        require_seal(path, entry_seal, secret, before, dataset, number, key, fingerprint, state, entry_facts)
        values = json.loads(entry_facts)
        entries.append(Entry(number, values, state, stored.get(number), steps.get(state), key, fingerprint))
        before = entry_seal
    if (len(entries), before) != (count, last_seal):
        raise damaged(path)
    values = json.loads(facts)
    total = budget_of(values["budget"])
    return Book(dataset, parse_unit(values["unit"]), total, values["singleton"], values["created"], tuple(entries))


def _stored_ids(connection: Connection, path: Place, dataset: str, secret: bytes) -> dict[int, str]:
    """The id of the stored release of each entry that has one."""
    rows = connection.execute("SELECT number, release_id, digest, seal FROM releases WHERE dataset = ?", (dataset,))
    found = {}
    for number, release_id, digest, seal in rows:
        require_seal(path, seal, secret, number, release_id, digest)
        found[number] = release_id
    return found


def _stream_steps(connection: Connection, path: Place, dataset: str, secret: bytes) -> dict[str | None, int]:
    """The last step on record of each stream."""
    rows = connection.execute(
        "SELECT state, step, token, known_step, known_token, seal FROM positions WHERE dataset = ?", (dataset,)
    )
    found: dict[str | None, int] = {}
    for state, *values, seal in rows:
        require_seal(path, seal, secret, state, *values)
        found[state] = values[0]
    return found


def record(
    connection: Connection, path: Place, dataset: str, request: Request, *, state: str | None, fingerprint: str | None
) -> int:
    """Write an entry, and its number and seal into the dataset; returns the number."""
    _, secret, count, last_seal = _dataset_row(connection, path, dataset)
    number = count + 1
    kept = canonical(new_facts(request))
    seal = seal_of(secret, last_seal, dataset, number, request.key, fingerprint, state, kept)
    connection.execute(
        "INSERT INTO entries (dataset, number, request_key, fingerprint, state, facts, seal) VALUES (?,?,?,?,?,?,?)",
        (dataset, number, request.key, fingerprint, state, kept, seal),
    )
    connection.execute("UPDATE datasets SET entries = ?, last_seal = ? WHERE name = ?", (number, seal, dataset))
    seal_dataset(connection, dataset)
    return number


def _dataset_row(connection: Connection, path: Place, dataset: str) -> tuple[str, bytes, int, str]:
    """Facts, key, number of entries and last entry's seal of a dataset."""
    row = connection.execute(
        "SELECT facts, secret, entries, last_seal, seal FROM datasets WHERE name = ?", (dataset,)
    ).fetchone()
    if row is None:
        names = dataset_names(connection, path)
        if dataset in names:
            raise damaged(path)
        known = [repr(name) for name in names[:20]]
        raise InputError(
            f"the ledger {str(path)!r} has no dataset {dataset!r}; it has {', '.join(known) or 'none'}: "
            "make one with 'dpwindows ledger create'"
        )
    facts, secret, count, last_seal, seal = row
    require_seal(path, seal, secret, dataset, facts, count, last_seal, *_held(connection, dataset))
    return facts, secret, count, last_seal


def dataset_names(connection: Connection, path: Place) -> list[str]:
    """The names of all datasets, in order; raises `EngineError` if one of them is no text."""
    # With a column that no index has: no seal covers an index, and a damaged one could hide a dataset.
    names = [name for name, _ in connection.execute("SELECT name, seal FROM datasets")]
    if not all(isinstance(name, str) for name in names):
        raise damaged(path)
    return sorted(names)


def secret_of(connection: Connection, path: Place, dataset: str) -> bytes:
    """The key of a dataset, which never leaves the ledger."""
    return _dataset_row(connection, path, dataset)[1]


def seal_of(secret: bytes, *values: str | int | None) -> str:
    """The seal of a row with these values."""
    return hmac.new(secret, canonical(list(values)).encode(), hashlib.sha256).hexdigest()


def require_seal(path: Place, seal: str, secret: bytes, *values: str | int | None) -> None:
    """Check the seal of a row; raises `EngineError` if the row was not written with these values."""
    try:
        whole = hmac.compare_digest(seal, seal_of(secret, *values))
    except (TypeError, ValueError):
        # Damage can turn text into bytes, or into text that is none.
        whole = False
    if not whole:
        raise damaged(path)


def damaged(path: Place) -> EngineError:
    """What to say of a ledger whose rows do not carry their seals."""
    return places.damaged(path, "a record does not carry its seal, or is missing")


def digest_of(content: bytes) -> str:
    """The hash of a stored release."""
    return hashlib.sha256(content).hexdigest()
