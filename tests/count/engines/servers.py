"""Real servers for the tests: a throw-away PostgreSQL cluster on loopback, and Spark in local mode on one core."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from pyspark.sql import SparkSession

from tests.scratch import IN_MEMORY

_PASSWORD = "correct horse"
_FAST = "-c fsync=off -c synchronous_commit=off -c full_page_writes=off -c shared_buffers=32MB -c max_connections=20"
# Of a server that keeps what it committed, also when it is stopped at once.
DURABLE = "-c shared_buffers=32MB -c max_connections=160"
# What a role may be set to, and what must not matter.
_UNFRIENDLY = (
    "timezone = 'Australia/Lord_Howe'",
    "datestyle = 'German'",
    "intervalstyle = 'sql_standard'",
    "standard_conforming_strings = off",
    "escape_string_warning = off",
    "bytea_output = 'escape'",
    "extra_float_digits = -15",
)
# To compile and replan what Spark runs takes longer than to run it on a few rows; `spark_of_users` does both.
IN_A_HURRY = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
}
# Of a Java that starts fast: classes of the installed libraries are as their makers compiled them.
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"


@dataclass(frozen=True)
class PostgreSQL:
    """A running server. `owner` may do everything; `reader` may only read what is granted to it."""

    port: int
    data: Path
    control: Callable[..., None]
    password: str = _PASSWORD

    def crash(self) -> None:
        """Stop at once and without a word, as when its machine fails: what was not on disk is gone."""
        self.control("-m", "immediate", "stop")

    def start(self, options: str = "") -> None:
        """Start again, from what is on disk."""
        self.control("start", options=options)

    def address(self, user: str = "reader", port: int | None = None) -> str:
        """Where it is, without the password."""
        return f"postgresql://{user}@127.0.0.1:{port or self.port}/logs"

    def connect(self) -> psycopg.Connection:
        """A connection of the owner that commits every statement."""
        return psycopg.connect(
            host="127.0.0.1", port=self.port, user="owner", password=self.password, dbname="logs", autocommit=True
        )


@contextmanager
def postgresql(options: str = _FAST) -> Iterator[PostgreSQL]:
    """Start a server in a new folder, and remove both at the end."""
    # Where another user may go, and where the names of sockets are short.
    home = Path(tempfile.mkdtemp(prefix="dpwindows-postgresql-", dir=IN_MEMORY or "/tmp"))
    user = _server_user()
    try:
        password = home / "password"
        password.write_text(_PASSWORD)
        if user is not None:
            for path in (home, password):
                shutil.chown(path, user)
        _run(
            user, "initdb", "-D", home / "data", "-U", "owner", f"--pwfile={password}", "--auth=scram-sha-256",
            "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync", "--no-instructions",
        )  # fmt: skip
        port = _free_port()
        own = f"{options} -c port={port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={home}"

        def control(*arguments: str, options: str = "") -> None:
            given = ["-l", str(home / "log"), "-o", f"{own} {options}"] if "start" in arguments else []
            _run(user, "pg_ctl", "-D", home / "data", *given, "-w", *arguments)

        server = PostgreSQL(port, home / "data", control)
        server.start()
        with _stopped_in_the_end(user, home):
            with psycopg.connect(
                host="127.0.0.1", port=port, user="owner", password=_PASSWORD, dbname="postgres", autocommit=True
            ) as connection:
                connection.execute("CREATE DATABASE logs")
                connection.execute("REVOKE TEMPORARY ON DATABASE logs FROM PUBLIC")
                connection.execute(f"CREATE ROLE reader LOGIN PASSWORD '{_PASSWORD}'")
                for setting in _UNFRIENDLY:
                    connection.execute(f"ALTER ROLE reader SET {setting}")
            yield server
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def _stopped_in_the_end(user: str | None, home: Path) -> Iterator[None]:
    """Stop the server after the block, and also if this process is killed: a keeper waits for its pipe to close."""
    stop = 'cat; "$1" -D "$2/data" -m immediate -w stop; rm -rf "$2"'
    with subprocess.Popen(
        ["sh", "-c", stop, "keeper", str(_program("pg_ctl")), str(home)],
        user=user,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    ):
        yield


def _server_user() -> str | None:
    """The account to run the server as: PostgreSQL refuses to run as root."""
    if os.getuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def _run(user: str | None, program: str, *arguments: str | Path) -> None:
    """Run one of PostgreSQL's own programs; what it says is shown where it fails."""
    done = subprocess.run(
        [str(_program(program)), *map(str, arguments)],
        user=user,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd="/",
        check=False,
    )
    assert done.returncode == 0, f"{program} failed: {done.stdout}"


def _program(name: str) -> Path:
    """A program of the newest PostgreSQL here: Debian keeps them out of the search path."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: int(path.parts[-3]))
    on_path = shutil.which(name)
    assert found or on_path, "PostgreSQL is not installed: make test does that, or install the package postgresql"
    return found[-1] if found else Path(str(on_path))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def spark(master: str = "local[1]", more: dict[str, str] | None = None) -> Iterator[SparkSession]:
    """A Spark session that starts fast and reads times in a zone that nobody asks for; `more` are further options."""
    options = {
        "spark.default.parallelism": "2",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": JAVA,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "768m",
        "spark.log.level": "OFF",
        "spark.sql.session.timeZone": "Australia/Lord_Howe",
        "spark.sql.shuffle.partitions": "2",
        **IN_A_HURRY,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **(more or {}),
    }
    # Rows of a test's own come from a Python process, which must be of this version.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master)
    for name, value in options.items():
        builder = builder.config(name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # about versions of pandas, which nobody here uses through it
        session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()
