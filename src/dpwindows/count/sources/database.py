"""Databases as sources: which one a source is, connecting without secrets in sight, and what drivers raise."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from dpwindows.count.events import EngineSettings
from dpwindows.errors import EngineError, InputError

if TYPE_CHECKING:
    from sqlalchemy import URL, Engine

_NOT_INSTALLED = "it needs packages that are not installed: pip install 'dpwindows[sql]'"
# What drivers call a secret, whichever they are; `passfile`, `private_key_file` and such only say where one is.
_SECRET = re.compile(
    r"(?!.*(file|path)$).*(passw|pwd|passphrase|passcode|secret|token|credential|private_?key|api_?key|jwt|scram_.*key)",
    re.IGNORECASE,
)
# What addresses and drivers call a database otherwise than its makers do.
_KNOWN_AS = {"postgres": "postgresql", "clickhousedb": "clickhouse", "clickhousesqla": "clickhouse"}
# The driver of an address that names none, where SQLAlchemy would take another one or finds none of that name.
_DRIVERS = {"postgresql": "postgresql+psycopg", "clickhouse": "clickhousedb"}
# What a role is set to must not matter: queries have characters that other encodings lack.
_ASKED_FOR = {driver: {"client_encoding": "utf8"} for driver in ("postgresql+psycopg", "postgresql+psycopg2")}
# What to install for a driver.
_PACKAGES = {
    "postgresql": "dpwindows[sql]",
    "bigquery": "sqlalchemy-bigquery",
    "clickhouse": "clickhouse-connect[sqlalchemy]",
    "databricks": "databricks-sqlalchemy",
    "redshift": "sqlalchemy-redshift",
    "snowflake": "snowflake-sqlalchemy",
    "trino": "trino[sqlalchemy]",
}


def database_of(source: object) -> str | None:
    """The name of the kind of database that an address or a SQLAlchemy engine is of; None for other sources."""
    if isinstance(source, str | Path):
        address = re.match(r"(?:jdbc:)?([A-Za-z][A-Za-z0-9_]*)(\+[A-Za-z0-9_]+)?://", str(source))
        return address and _KNOWN_AS.get(address[1].lower(), address[1].lower())
    if "sqlalchemy" in module_roots(source) and hasattr(source, "dialect"):
        return _KNOWN_AS.get(source.dialect.name, str(source.dialect.name))
    return None


def module_roots(source: object) -> set[str]:
    """The packages that the type of a source, and the types it is made from, come from."""
    return {kind.__module__.split(".")[0] for kind in type(source).__mro__}


def parse_address(address: str, engine: str, *, password_file: bool = True) -> URL:
    """A connection address, which holds no password; `password_file` where one may be given beside it.

    Raises:
        InputError: it holds one, cannot be read, or SQLAlchemy is not installed. No message repeats the address.
    """
    try:
        from sqlalchemy.engine import make_url
    except ImportError:
        raise InputError(f"to read a {engine} database {_NOT_INSTALLED}") from None
    # Not left to the parser alone: what it cannot read may hold a password too.
    if re.search(r"//[^/@]*:[^@?]*@", address) or re.search(r"[?&](ssl)?password=", address, re.IGNORECASE):
        raise _with_secret(address, password_file=password_file)
    try:
        url = make_url(address)
    except Exception:  # a part that is no number is a ValueError
        raise InputError(
            "the connection address cannot be read; it is written engine://user@host:port/database"
        ) from None
    if url.password is not None or any(_SECRET.match(key.strip()) for key in url.query):
        raise _with_secret(address, password_file=password_file)
    backend, _, driver = url.drivername.partition("+")
    name = _KNOWN_AS.get(backend, backend)
    return url.set(drivername=f"{name}+{driver}" if driver else _DRIVERS.get(name, name))


def _with_secret(address: str, *, password_file: bool) -> InputError:
    file = ["in a file with --password-file (in Python EngineSettings(password_file=...))"] if password_file else []
    own = ["in the environment variable PGPASSWORD", "in ~/.pgpass"] if address.lower().startswith("postgres") else []
    return InputError(
        "the connection address holds a password, which others can read in the list of processes and in the history "
        f"of the shell: leave it out, and give the password {', or '.join(file + own)}"
    )


def with_password(url: URL, settings: EngineSettings) -> URL:
    """The address with the password of the settings' file.

    Raises:
        InputError: the file cannot be read, or its first line is empty. No message repeats a byte of it.
    """
    if settings.password_file is None:
        return url
    try:
        lines = Path(settings.password_file).read_text("utf-8").splitlines()
    except UnicodeError:
        raise InputError(f"the password file {settings.password_file} is not UTF-8 text") from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InputError(f"the password file {settings.password_file} cannot be read: {reason}") from None
    if not lines or not lines[0]:
        raise InputError(f"the first line of the password file {settings.password_file} is empty")
    return url.set(password=lines[0])


def engine_at(url: URL) -> Engine:
    """An engine of our own, which holds no connections open.

    Raises:
        InputError: its driver is not installed, or the address cannot be read.
    """
    import sqlalchemy

    try:
        asked = _ASKED_FOR.get(url.drivername, {})
        return sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool, connect_args=asked)
    except (ImportError, sqlalchemy.exc.NoSuchModuleError):
        backend, _, driver = url.drivername.partition("+")
        name = _KNOWN_AS.get(backend, backend)
        raise InputError(
            f"the driver {driver or backend} is not installed; write {name}://... for the one of the package that "
            f"pip install '{_PACKAGES.get(name, 'dpwindows[sql]')}' installs"
        ) from None
    except sqlalchemy.exc.ArgumentError:
        raise InputError("the connection address cannot be read: one of its options is wrong") from None


def own_engine(source: object, backend: str) -> Engine | None:
    """The source, if it is a SQLAlchemy engine for this kind of database."""
    try:
        import sqlalchemy
    except ImportError:
        return None
    return source if isinstance(source, sqlalchemy.Engine) and database_of(source) == backend else None


@contextmanager
def translated(explain: Callable[[BaseException | None], InputError | EngineError]) -> Iterator[None]:
    """Turn what SQLAlchemy raises into our two kinds of errors, without repeating any contents."""
    import sqlalchemy

    try:
        yield
    except sqlalchemy.exc.DBAPIError as error:
        raise explain(error.orig) from None
    except sqlalchemy.exc.SQLAlchemyError as error:
        raise EngineError(f"the database connection failed ({type(error).__name__})") from None
