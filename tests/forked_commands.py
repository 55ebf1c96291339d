"""`dpwindows` and `python -c` for shells that run them many times, in processes forked from one that has loaded it.

Most of the time of a short command goes into loading libraries. `python -m tests.forked_commands SOCKET` loads them
once; `shown_as` writes a command that hands its arguments, folder, environment and open files to that process, which
forks one for each and answers with its exit code. A process forked by `one_for_all` runs all its commands itself, one
after the other, and so plans once what several of them plan. What else a process of its own shows, such as signals and
how it starts, is tested by real ones (`tests/end_to_end`).
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
# What commands load when they need it. None starts threads before it is used.
LIBRARIES = (
    *("duckdb", "pandas", "pyarrow.compute", "pyarrow.parquet", "scipy.optimize"),
    *("dpwindows.cli", "dpwindows.count.engines.duckdb", "dpwindows.demo", "dpwindows.release.run"),
    *("dpwindows.report", "dpwindows.stream.stream"),
)

_COMMAND = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({path!r})
    told = json.dumps([sys.argv, os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(server, [len(told).to_bytes(8)], [0, 1, 2])
    server.sendall(told)
    code = server.recv(1)
sys.exit(code[0] if code else 70)
"""


@contextlib.contextmanager
def serving() -> Iterator[Path]:
    """Start the process; gives the path of its socket."""
    with tempfile.TemporaryDirectory(prefix="dpw-") as folder:
        path = Path(folder) / "socket"
        command = [sys.executable, "-m", "tests.forked_commands", str(path)]
        with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            # The end of its input is its own.
            yield path


@contextlib.contextmanager
def one_for_all(server: Path, path: Path) -> Iterator[Path]:
    """Have one process forked that runs commands in turn; gives the path of its socket."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(server))
        request = json.dumps([["in turn", str(path)], "/", dict(os.environ)]).encode()
        socket.send_fds(client, [len(request).to_bytes(8)], [2, 2, 2])
        client.sendall(request)
        assert client.recv(1) == b"\0"
        # The end of this connection is its own.
        yield path


def shown_as(command: Path, server: Path) -> None:
    """Write the command that a shell finds, named `dpwindows` or `python`."""
    command.parent.mkdir(exist_ok=True)
    command.write_text(_COMMAND.format(python=sys.executable, path=str(server)))
    command.chmod(0o755)


def _answer(client: socket.socket) -> None:
    """Run one command in this process."""
    size, files, _, _ = socket.recv_fds(client, 8, 3)
    request = b""
    while len(request) < int.from_bytes(size):
        request += client.recv(1 << 16)
    (command, *arguments), folder, environment = json.loads(request)
    for wanted, given in enumerate(files):
        os.dup2(given, wanted)
        os.close(given)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    if command == "in turn":
        _answer_in_turn(arguments[0], client)
        return
    code: object = 0
    try:
        _run(Path(command).name, arguments)
    except SystemExit as ended:
        code = ended.code
    sys.stdout.flush()
    sys.stderr.flush()
    client.sendall(bytes([code if isinstance(code, int) else int(code is not None)]))


def _answer_in_turn(path: str, owner: socket.socket) -> None:
    own = [os.dup(number) for number in range(3)]
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        owner.sendall(b"\0")
        while owner not in select.select([listening, owner], [], [])[0]:
            client, _ = listening.accept()
            with client:
                _answer(client)
                # Whoever reads what the command writes waits for the end of it.
                for number, file in enumerate(own):
                    os.dup2(file, number)


def _run(command: str, arguments: list[str]) -> None:
    if command == "python":
        option, text = arguments
        assert option == "-c"
        sys.argv = ["-c"]
        exec(text, {"__name__": "__main__"})
        return
    sys.argv = [command, *arguments]
    from dpwindows.__main__ import run

    run()


def _serve(path: str) -> None:
    for name in LIBRARIES:
        importlib.import_module(name)
    gc.collect()
    # Out of the reach of the children's garbage collectors, which would copy all of it.
    gc.freeze()
    # Nobody waits for children: commands of one pipeline run side by side.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        os.write(1, b"ready\n")
        while sys.stdin not in select.select([listening, sys.stdin], [], [])[0]:
            client, _ = listening.accept()
            with client:
                if os.fork():
                    continue
                try:
                    listening.close()
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    _answer(client)
                except BaseException:
                    # Without an answer the command exits with 70.
                    traceback.print_exc()
                finally:
                    os._exit(0)


if __name__ == "__main__":
    _serve(sys.argv[1])
