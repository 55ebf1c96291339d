"""What a ledger asks of the place it is kept in, a file or a server, in SQL that both of them speak.

A `Store` gives two things. What `write` did is durable when it returns, it excludes whatever else is written, and none
of it is there if it raises an `InputError`. What `read` saw with `to_act` is durable, and of one moment.

`write` may be run more than once (`ledger.server`). So whatever is handed to it finds out by itself that it was done,
and then changes nothing: each of a ledger's five writes is known by something that only its caller drew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, TypeVar

from dpwindows.errors import EngineError

T = TypeVar("T")
# The path of a file, or the address of a server.
Place = Path | str


class Rows(Protocol):
    """The rows of a query."""

    def fetchone(self) -> Any:
        """The next one; None after the last."""

    def fetchall(self) -> list[Any]:
        """All that are left."""

    def __iter__(self) -> Iterator[Any]:
        """One after the other."""


class Connection(Protocol):
    """A transaction; a question mark in a statement stands for a value."""

    def execute(self, statement: str, values: Sequence[Any] = ..., /) -> Rows:
        """Run one statement."""


class Store(Protocol):
    """Where a ledger is kept; errors are `InputError` and `EngineError`, as `Ledger` says."""

    @property
    def place(self) -> Place:
        """What messages call it."""

    def create(self) -> None:
        """Make an empty ledger, or leave the one that is there."""

    def require_trusted(self) -> None:
        """Check that a ledger is there, and that what it says will last."""

    def write(self, act: Callable[[Connection], T]) -> T:
        """What `act` returns, once all that it did is durable; see the module."""

    def read(self, act: Callable[[Connection], T], *, to_act: bool = False) -> T:
        """What `act` returns; `to_act` where noise is drawn or numbers are published by it."""

    def turn(self, patience: float) -> AbstractContextManager[None]:
        """Hold the right to draw noise; wait for it so many seconds."""


def damaged(place: Place, how: object) -> EngineError:
    """What to say of a ledger that does not hold what was written."""
    return EngineError(
        f"the ledger {str(place)!r} is damaged: {how}. Nothing is spent from a ledger that cannot be trusted"
    )
