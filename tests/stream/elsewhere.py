"""Places of items for tests of streams: a folder that Spark writes, tables of PostgreSQL; and how events get there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import dpwindows as dw
from dpwindows.stream.stream import Stream
from tests.count.engines.servers import PostgreSQL

SETTINGS = dw.EngineSettings(progress=False)


class Elsewhere(ABC):
    """A place, and what a stream there is handed."""

    place: str

    @abstractmethod
    def put(self, events: pa.Table) -> dict[str, Any]:
        """Put events where the place reads them; the arguments of `advance` that name them."""

    @abstractmethod
    def names(self) -> list[str]:
        """What lies in the place, the events of calls among it."""

    @abstractmethod
    def rows(self, name: str) -> list[tuple[Any, ...]]:
        """The rows that lie under a name, read by hand."""

    @abstractmethod
    def drop(self, name: str) -> None:
        """Remove what lies under a name, behind the stream's back."""

    @abstractmethod
    def copy(self, name: str, to: str) -> None:
        """Write the rows of one name under another, as a writer does that nobody waits for any more."""

    @abstractmethod
    def double(self, name: str) -> None:
        """Have some rows lie there twice, as after a task that was doubled."""

    def name_of(self, part: str) -> str:
        """The name in the place of a part in a manifest."""
        return next(name for name in self.names() if self.is_part(name, part))

    def is_part(self, name: str, part: str) -> bool:
        """Whether a name in the place is that of a part."""
        return name == part


class InSpark(Elsewhere):
    """A folder on this machine that Spark writes."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.place, self.number = folder, str(folder / "items"), 0

    @property
    def root(self) -> Path:
        (root,) = Path(self.place).iterdir()
        return root

    def put(self, events: pa.Table) -> dict[str, Any]:
        self.number += 1
        path = self.folder / f"events-{self.number}.parquet"
        pq.write_table(events, path)
        return {"events": str(path)}

    def names(self) -> list[str]:
        return sorted(path.name for path in self.root.iterdir()) if Path(self.place).exists() else []

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        table = pa.concat_tables(pq.read_table(file) for file in sorted((self.root / name).glob("*.parquet")))
        return [tuple(row.values()) for row in table.to_pylist()]

    def files(self, name: str) -> list[Path]:
        return sorted((self.root / name).glob("*.parquet"))

    def drop(self, name: str) -> None:
        for path in (self.root / name).iterdir():
            path.unlink()
        (self.root / name).rmdir()

    def copy(self, name: str, to: str) -> None:
        (self.root / to).mkdir()
        for file in self.files(name):
            (self.root / to / file.name).write_bytes(file.read_bytes())

    def double(self, name: str) -> None:
        file = self.files(name)[0]
        file.with_name(f"doubled-{file.name}").write_bytes(file.read_bytes())


class InPostgreSQL(Elsewhere):
    """Tables of a server."""

    def __init__(self, server: PostgreSQL) -> None:
        self.server = server
        self.place = f"{server.address('owner')}#kept"

    def put(self, events: pa.Table) -> dict[str, Any]:
        kinds = {"string": "text", "int64": "bigint"}
        columns = ", ".join(f"{field.name} {kinds[str(field.type)]}" for field in events.schema)
        with self.server.connect() as connection:
            connection.execute(f"DROP TABLE IF EXISTS events; CREATE TABLE events ({columns})")
            with connection.cursor().copy("COPY events FROM STDIN") as copy:
                for row in events.to_pylist():
                    copy.write_row(tuple(row.values()))
        return {"events": self.server.address("owner"), "table": "events"}

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        with self.server.connect() as connection:
            done = connection.execute(query)
            return done.fetchall() if done.description else []

    def names(self) -> list[str]:
        return sorted(name for (name,) in self.ask("SELECT tablename FROM pg_tables WHERE tablename LIKE 'kept%'"))

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        return self.ask(f'SELECT * FROM "{name}"')

    def drop(self, name: str) -> None:
        self.ask(f'DROP TABLE "{name}"')

    def copy(self, name: str, to: str) -> None:
        self.ask(f'CREATE TABLE "{to}" AS SELECT * FROM "{name}"')

    def double(self, name: str) -> None:
        self.ask(f'INSERT INTO "{name}" SELECT * FROM "{name}" LIMIT 1')

    def is_part(self, name: str, part: str) -> bool:
        step, token = (text.split("=")[1] for text in part.removesuffix(".items").removesuffix("-base").split("-"))
        return name.removesuffix("_b").endswith(f"_{step}_{token}")


def exact_and_fingerprints(stream: Stream) -> tuple[dict[str, list[Any]], list[str]]:
    """What a stream knows exactly after its last step, and the fingerprints of all its steps."""
    from dpwindows.stream.records import read_steps

    counts = {name: values.tolist() for name, values in stream._position.working.items() if name.startswith("counts/")}
    return counts, [closed.fingerprint for closed in read_steps(stream._state, 1, stream._position.step)]


def closed(stream: Stream, events: Iterable[Any], through: int, at: Elsewhere | None, **how: Any) -> Any:
    """Advance a stream, wherever its items are."""
    from tests.stream.streams import table_of

    table = table_of(events)
    return (
        stream.advance(table, through, **how) if at is None else stream.advance(through=through, **at.put(table), **how)
    )
