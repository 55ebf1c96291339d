"""Where the parts of a stream lie: what `recencies.Recencies` asks of a folder, a Spark, or a database.

A place reads events, keeps what a query gives under a name, and answers queries over it: one engine does all three.
A name is used once. What lies under it is never changed, and valid only where a manifest names it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

from dpwindows.count.query.dialect import Dialect
from dpwindows.stream.given_events import Given, Handed

_NAME = re.compile(r"step=([0-9]+)-token=([0-9a-f]+)(-base)?\.items")
# Characters of the token of an attempt that stand in names: databases have names of 63 bytes at most.
_SHOWN = 24


class Part(NamedTuple):
    """One part: its name, the newest step in it, its rows, and the size and a digest of what was written."""

    name: str
    step: int
    rows: int
    size: int
    digest: str


Manifest = tuple[Part, ...]


class Name(NamedTuple):
    """The name of a part, which says who wrote it: the step that was being closed, the attempt, and whether as one."""

    step: int
    token: str
    base: bool = False

    def __str__(self) -> str:
        return f"step={self.step}-token={self.token[:_SHOWN]}{'-base' * self.base}.items"

    @classmethod
    def of(cls, text: str) -> Name | None:
        """The name that a text is, None if it is none."""
        found = _NAME.fullmatch(text)
        return found and cls(int(found[1]), found[2], found[3] is not None)


class Place(Protocol):
    """One place and its engine, for one stream. Each verb raises `EngineError` where the engine or the place fails."""

    @property
    def dialect(self) -> Dialect:
        """How the engine spells the queries."""

    @property
    def handed(self) -> str:
        """The relation of the events handed over: item, step, total; with groups cell as well."""

    @property
    def shared(self) -> bool:
        """Whether a writer that was given up may still be at work there."""

    def item_type(self, kind: str) -> str:
        """The SQL type that items of a kind are kept as."""

    def hand_over(self, given: Given) -> Handed:
        """Read events into `handed`, once, and give their fingerprints."""

    def keep(self, name: Name, step: int, query: str) -> Part | None:
        """Keep the rows of a query as a part whose newest step is `step`; None, and nothing is kept, without rows."""

    def rows(self, part: Part) -> str:
        """The query of a part's rows. Raises `DamagedError` if it is not as it was written."""

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query."""

    def settle(self, parts: Manifest) -> None:
        """Return when these parts, and their names, are as durable as the place makes them."""

    def names(self) -> Iterable[str]:
        """What lies there, ours or not."""

    def remove(self, name: str) -> None:
        """Remove what lies under one of `names`; what cannot be removed now is removed another time."""

    def forget(self) -> None:
        """Drop the events of a call."""

    def close(self) -> None:
        """End what was begun."""
