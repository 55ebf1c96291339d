"""A ledger on a PostgreSQL server: the same rows in a schema of their own, shared by machines that come and go.

*One writer at a time.* Whoever writes holds the one lock of the ledger (`pg_advisory_xact_lock`) before it reads a row,
and until its transaction ends. So every write sees all that were committed before, and is checked against them.

*A lost answer to COMMIT* is settled by writing again. The new transaction gets the lock when that of the lost one has
ended, however it ended; a COMMIT that is still under way is waited for. What it then reads is for good: the record is
there, and is found by what only its writer drew, or it never will be (`ledger.places`). An abandoned transaction is
ended by the server after ten seconds.

*Durable before it is relied upon.* A commit can be seen when it is on the server's disk, unless the server is set to
forget: `fsync`, `full_page_writes` or `synchronous_commit` off, or unlogged tables. Each transaction looks, and refuses
that. A standby is refused as well, since it shows less than there is.

*Spent, and not erased.* `grants` are the rights that spending needs: to add rows, and to change no more than the seals
and counters that they move. Deleting, or changing an amount or a total, is refused by the server, and so is a stream's
position that goes back.

*Secrets* come from the environment, the password file or a service file, as for any client of PostgreSQL; an address
with one is refused.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from dpwindows.ask.formats import is_marked, mark_of
from dpwindows.count.query.dialect import quote_name
from dpwindows.count.sources.database import parse_address
from dpwindows.errors import EngineError, InputError
from dpwindows.ledger.places import Connection, Rows
from dpwindows.ledger.store import KIND, PATIENCE

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")
SCHEMA = "dpwindows_ledger"
_KIND = "a ledger"
_MARK = mark_of(_KIND, KIND.format)
_NAMES = ("datasets", "entries", "positions", "releases")
# How the server calls the types of the file; texts are compared byte by byte, whatever the database's collation.
_TYPES = (("BLOB", "BYTEA"), ("INTEGER", "BIGINT"), ("TEXT", 'TEXT COLLATE "C"'))
_TRIGGER = "forward"
_FORWARD = (
    """CREATE FUNCTION refuse_to_go_back() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE insufficient_privilege USING MESSAGE = 'a stream does not go back'; END $$""",
    f"""CREATE TRIGGER {_TRIGGER} BEFORE UPDATE ON positions FOR EACH ROW
    WHEN (NEW.step <= OLD.step) EXECUTE FUNCTION refuse_to_go_back()""",
)
# The two locks of a ledger, beside its number.
_WRITING, _DRAWING = 0, 1
# Seconds between tries, where the server ended a transaction or went away.
_PAUSES = (0.1, 0.3, 1.0, 3.0, 6.0)
_SERIALISATION = ("40001", "40P01")
_GONE = ("08", "57P", "25P03")
# Whoever vanished is noticed within a minute, by the client and by the server.
_KEPT_ALIVE = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
_CLIENT = {"connect_timeout": 10, "client_encoding": "utf8", **_KEPT_ALIVE}
_SESSION = {"search_path": f"{SCHEMA}, pg_temp", "statement_timeout": "0"} | {
    f"tcp_{name}": str(value) for name, value in _KEPT_ALIVE.items()
}
_LOOK = f"""WITH tables AS (SELECT * FROM pg_class WHERE relnamespace = to_regnamespace('{SCHEMA}') AND relkind = 'r')
SELECT current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'),
    pg_is_in_recovery(), obj_description(to_regnamespace('{SCHEMA}'), 'pg_namespace'), to_regnamespace('{SCHEMA}'),
    ARRAY(SELECT relname::text FROM tables ORDER BY relname),
    ARRAY(SELECT relname::text FROM tables WHERE relpersistence <> 'p' ORDER BY relname),
    ARRAY(SELECT relname::text FROM tables WHERE row_security_active(oid) ORDER BY relname),
    EXISTS(SELECT FROM pg_trigger JOIN tables ON tables.oid = tgrelid
        WHERE relname = 'positions' AND tgname = '{_TRIGGER}' AND tgenabled IN ('O', 'A')),
    ARRAY(SELECT DISTINCT privilege_type || ' on ' || name FROM (
        SELECT 'the schema' AS name, nspacl AS acl FROM pg_namespace WHERE oid = to_regnamespace('{SCHEMA}')
        UNION ALL SELECT relname, relacl FROM tables
        UNION ALL SELECT relname, attacl FROM tables JOIN pg_attribute ON attrelid = tables.oid
        ) AS acls, aclexplode(acl) WHERE grantee = 0 ORDER BY 1)"""


class _UnreachableError(EngineError):
    """No connection could be made."""


class _RefusedError(InputError):
    """The server, its ledger or the role is not fit to be used, whatever is asked."""


class _PassingError(EngineError):
    """The server ended a transaction, or went away: the same may succeed in a moment."""


@dataclass(frozen=True)
class ServerStore:
    """A ledger on a server, as `ledger.places.Store`; `place` is its address, which holds no password.

    Raises:
        InputError: the address cannot be read, holds a password, or names a driver that is not psycopg.
    """

    place: str

    def __post_init__(self) -> None:
        """Check the address."""
        self._arguments()

    def create(self) -> None:
        """Make the schema and the tables, unless they are there."""

        def make(connection: psycopg.Connection) -> None:
            look = _Look.at(connection)
            look.require_durable(self.place)
            if look.schema is not None:
                look.require_kind(self.place)
                return
            connection.execute(f"CREATE SCHEMA {SCHEMA}".encode())
            for table in KIND.tables:
                for name, own in _TYPES:
                    table = table.replace(f" {name}", f" {own}")
                connection.execute(table.encode())
            for statement in (*_FORWARD, f"COMMENT ON SCHEMA {SCHEMA} IS '{_MARK}'"):
                connection.execute(statement.encode())

        self._tried(lambda: self._committed(make))

    def require_trusted(self) -> None:
        """Check that a ledger is there, and that the server keeps what was committed."""
        self.read(lambda connection: None, to_act=True)

    def write(self, act: Callable[[Connection], T]) -> T:
        """What `act` returns, once it is committed; it is run again where nobody knows whether it was."""

        def looked(connection: psycopg.Connection) -> T:
            self._require(connection, to_act=True)
            return act(_Portable(connection))

        return self._tried(lambda: self._committed(looked))

    def read(self, act: Callable[[Connection], T], *, to_act: bool = False) -> T:
        """What `act` returns of one snapshot, which is on disk."""

        def once() -> T:
            with closing(self._begun(writing=False)) as connection:
                self._require(connection, to_act=to_act)
                return act(_Portable(connection))

        return self._tried(once)

    @contextmanager
    def turn(self, patience: float) -> Iterator[None]:
        """Hold the right to draw in a transaction of its own, which ends when the process or its connection does."""

        def once() -> psycopg.Connection:
            connection = self._begun(patience=patience, idle=0)
            try:
                self._lock(connection, _DRAWING)
            except BaseException:
                connection.close()
                raise
            return connection

        with closing(self._tried(once)):
            yield

    def _tried(self, work: Callable[[], T]) -> T:
        """What work gives; it is done again after a conflict, and where the server went away since it was reached."""
        pauses = iter(_PAUSES)
        lost: _PassingError | None = None
        while True:
            try:
                return self._done(work)
            except _PassingError as error:
                lost = lost or error
            except (EngineError, _RefusedError) as error:
                # What was lost may have been recorded, and says so, whatever comes after it: that is no refusal, nor is
                # it known that nothing was spent.
                if lost is None or not isinstance(error, _UnreachableError):
                    raise lost or error from None
            if (pause := next(pauses, None)) is None:
                raise lost
            time.sleep(pause)

    def _done(self, work: Callable[[], T]) -> T:
        import psycopg

        try:
            return work()
        except psycopg.Error as error:
            raise _explained(error, self.place) from None

    def _committed(self, act: Callable[[psycopg.Connection], T]) -> T:
        """What `act` returns, in the one transaction that writes, once the server says that it is on disk."""
        with closing(self._begun()) as connection:
            self._lock(connection, _WRITING)
            result = act(connection)
            connection.commit()
        return result

    def _begun(self, *, writing: bool = True, patience: float | None = None, idle: float = 10.0) -> psycopg.Connection:
        """A new connection, in a transaction that waits for locks and may be idle for so many seconds."""
        from psycopg import IsolationLevel

        connection = self._connected()
        try:
            connection.prepare_threshold, connection.read_only = None, not writing
            # Whoever writes must see, once it has the lock, what was committed while it waited for it.
            connection.isolation_level = IsolationLevel.READ_COMMITTED if writing else IsolationLevel.REPEATABLE_READ
            settings = _SESSION | {
                "lock_timeout": f"{1000 * (PATIENCE if patience is None else patience):.0f}",
                "idle_in_transaction_session_timeout": f"{1000 * idle:.0f}",
            }
            calls = ", ".join(["set_config(%s, %s, true)"] * len(settings))
            connection.execute(f"SELECT {calls}".encode(), [text for setting in settings.items() for text in setting])
        except BaseException:
            connection.close()
            raise
        return connection

    def _lock(self, connection: psycopg.Connection, number: int) -> None:
        connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", (KIND.mark, number))

    def _require(self, connection: psycopg.Connection, *, to_act: bool) -> None:
        look = _Look.at(connection)
        if look.schema is None:
            raise _RefusedError(f"there is no ledger {self.place!r}: make one with 'dpwindows ledger create'")
        look.require_kind(self.place)
        if to_act:
            look.require_durable(self.place)
            look.require_guarded(self.place)

    def _connected(self) -> psycopg.Connection:
        import psycopg

        arguments, options = self._arguments()
        try:
            return psycopg.connect(*arguments, **options)
        except psycopg.ProgrammingError as error:
            raise InputError(f"the address of the ledger {self.place!r} cannot be read: {_first_line(error)}") from None
        except psycopg.Error as error:
            raise _UnreachableError(f"the ledger {self.place!r} cannot be reached: {_first_line(error)}") from None

    def _arguments(self) -> tuple[Sequence[str], dict[str, Any]]:
        """What the driver is given for the address."""
        url = parse_address(self.place, "postgresql", password_file=False)
        if url.drivername != "postgresql+psycopg":
            raise InputError("a ledger is reached by the driver psycopg: write postgresql://USER@HOST/DATABASE")
        arguments, options = url.get_dialect()().create_connect_args(url)
        return arguments, {**_CLIENT, **options}


class _Portable:
    """A connection that takes the SQL of files, where a question mark stands for a value."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Rows:
        """Run one statement."""
        return self._connection.execute(statement.replace("?", "%s").encode(), values)


@dataclass(frozen=True)
class _Look:
    """What a server says of its durability, and of the ledger in a database.

    Tables may be `volatile`, or `filtered` by policies for this role. `forward` tells whether the server refuses
    positions that go back, and `public` what everybody may do with the ledger.
    """

    fsync: str
    full_page_writes: str
    synchronous_commit: str
    standby: bool
    mark: str | None
    schema: str | None
    tables: list[str]
    volatile: list[str]
    filtered: list[str]
    forward: bool
    public: list[str]

    @classmethod
    def at(cls, connection: psycopg.Connection) -> _Look:
        """Ask for it."""
        row = connection.execute(_LOOK.encode()).fetchone()
        assert row is not None, "this query has one row"
        return cls(*row)

    def require_kind(self, place: str) -> None:
        """Check that the schema is a ledger of this version, with its tables.

        Raises:
            InputError: it is something else.
        """
        try:
            ours = is_marked(self.mark, _KIND, KIND.format, f"{place!r} has a ledger")
        except InputError as error:
            raise _RefusedError(str(error)) from None
        if not ours or self.tables != list(_NAMES):
            raise _RefusedError(
                f"{place!r} has a schema {SCHEMA}, and it is no ledger (its comment is {self.mark!r}, its tables are "
                f"{', '.join(self.tables) or 'none'}): it was not touched. Name another database"
            )
        if self.filtered:
            raise _RefusedError(
                f"the server hides rows of the table {self.filtered[0]} of the ledger {place!r} from this role, by "
                f"policies: what was spent must be seen to be counted. Use ALTER TABLE {SCHEMA}.{self.filtered[0]} "
                "DISABLE ROW LEVEL SECURITY, or another database for what others must not see. Nothing was spent"
            )

    def require_durable(self, place: str) -> None:
        """Check that what is committed stays.

        Raises:
            InputError: a setting, a table or the server's part may lose it.
        """
        off = [name for name in ("fsync", "full_page_writes") if getattr(self, name) != "on"]
        if off:
            raise _RefusedError(
                f"the server of the ledger {place!r} is set to {off[0]} = off, and may forget what was spent when its "
                f"power fails: set {off[0]} = on in its configuration. Nothing was spent"
            )
        if self.synchronous_commit not in ("on", "remote_apply"):
            raise _RefusedError(
                f"the server of the ledger {place!r} has synchronous_commit = {self.synchronous_commit} for this role, "
                "and may forget what was spent: use ALTER ROLE ... SET synchronous_commit = on. Nothing was spent"
            )
        if self.volatile:
            raise _RefusedError(
                f"the table {self.volatile[0]} of the ledger {place!r} is unlogged, and is emptied when the server "
                f"crashes: use ALTER TABLE {SCHEMA}.{self.volatile[0]} SET LOGGED. Nothing was spent"
            )
        if self.standby:
            raise _RefusedError(
                f"the server of the ledger {place!r} is a standby, which lags behind and cannot be written: name the "
                "primary (with several hosts in the address, add target_session_attrs=read-write). Nothing was spent"
            )

    def require_guarded(self, place: str) -> None:
        """Check that the server keeps the ledger from whoever was granted nothing, and streams from going back.

        Raises:
            InputError: a trigger is off, or everybody has a right.
        """
        if not self.forward:
            raise _RefusedError(
                f"the table positions of the ledger {place!r} has lost the trigger {_TRIGGER}, which keeps streams "
                f"from going back: use ALTER TABLE {SCHEMA}.positions ENABLE TRIGGER {_TRIGGER}, or restore it "
                "with the ledger. Nothing was spent"
            )
        if self.public:
            raise _RefusedError(
                f"everybody who reaches the ledger {place!r} has {self.public[0]}: use REVOKE ALL ON ALL TABLES IN "
                f"SCHEMA {SCHEMA} FROM PUBLIC and REVOKE ALL ON SCHEMA {SCHEMA} FROM PUBLIC, and look whether ALTER "
                "DEFAULT PRIVILEGES gave it. Nothing was spent"
            )


def _explained(error: psycopg.Error, place: str) -> InputError | EngineError:
    """What an error of the server means; its first line names what it is about, and no row."""
    state = error.sqlstate or ""
    # Tables that are known to be there are not for a role that may not look into their schema.
    if state in ("42501", "42P01"):
        reason = _first_line(error) if state == "42501" else f"permission denied for schema {SCHEMA}"
        return _RefusedError(
            f"the ledger {place!r} refuses this role ({reason}): its owner grants what spending needs, as "
            "'dpwindows ledger create' prints it"
        )
    if state == "55P03":
        return EngineError(
            f"the ledger {place!r} is in use by another release, or locked by another transaction: run this again when "
            "that has ended; nothing was spent"
        )
    kind = _PassingError if state in _SERIALISATION or not state or state.startswith(_GONE) else EngineError
    return kind(
        f"the ledger {place!r} cannot be used: {_first_line(error)}. Whatever was about to be spent counts as spent "
        "only if 'dpwindows ledger show' lists it, and the same again does not spend it twice"
    )


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def grants(role: str) -> list[str]:
    """The statements by which a ledger's owner lets a role spend from its datasets, and neither erase nor add one."""
    to = f"TO {quote_name(role)}"
    seals = {"datasets": "entries, last_seal, seal", "positions": "step, token, known_step, known_token, seal"}
    return [
        f"GRANT USAGE ON SCHEMA {SCHEMA} {to}",
        f"GRANT SELECT ON {', '.join(f'{SCHEMA}.{name}' for name in _NAMES)} {to}",
        f"GRANT INSERT ON {', '.join(f'{SCHEMA}.{name}' for name in _NAMES if name != 'datasets')} {to}",
        *(f"GRANT UPDATE ({columns}) ON {SCHEMA}.{name} {to}" for name, columns in seals.items()),
    ]
