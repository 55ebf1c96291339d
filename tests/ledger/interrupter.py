"""A line to a PostgreSQL server on which one thing goes wrong, at the statement that a test says.

It passes messages on, and counts what a client asks for, over all its connections. At one number it does something
before the server is asked, as soon as it is asked, or when it has answered and the client does not know; then it cuts
the line.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field

MOMENTS = ("before", "asked", "answered")
# The messages that end what a client asks for, and what the server ends its answer with.
_SYNC, _QUERY, _READY = b"S", b"Q", b"Z"


@dataclass
class Line:
    """Where to connect in place of the server; what was asked and answered there, and whether it was cut."""

    port: int
    server_port: int
    at: int = 0
    moment: str = "before"
    do: Callable[[], object] = lambda: None
    asked: int = 0
    answers: bytearray = field(default_factory=bytearray)
    done: bool = False
    _counting: threading.Lock = field(default_factory=threading.Lock)

    def cut(self, number: int, moment: str) -> bool:
        """Whether the line is cut here, once what goes wrong has gone wrong."""
        if (number, moment) != (self.at, self.moment):
            return False
        self.do()
        self.done = True
        return True

    def next_number(self) -> int:
        """The number of what is asked now, from 1."""
        with self._counting:
            self.asked += 1
            return self.asked


@contextmanager
def interrupted(
    server_port: int, at: int = 0, moment: str = "before", do: Callable[[], object] = lambda: None
) -> Iterator[Line]:
    """A line to a port of this machine; at 0 nothing goes wrong. Clients must not ask for encryption."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        line = Line(listener.getsockname()[1], server_port, at, moment, do)
        threading.Thread(target=_accept, args=(listener, line), daemon=True).start()
        yield line


def _accept(listener: socket.socket, line: Line) -> None:
    with suppress(OSError):  # the listener was closed
        while True:
            client, _ = listener.accept()
            threading.Thread(target=_serve, args=(client, line), daemon=True).start()


def _serve(client: socket.socket, line: Line) -> None:
    with closing(client), suppress(OSError, EOFError):
        server = socket.create_connection(("127.0.0.1", line.server_port))
        with closing(server):
            _greet(client, server)
            while True:
                question = _messages(client, {_SYNC, _QUERY})
                number = line.next_number()
                if line.cut(number, "before"):
                    return
                server.sendall(question)
                if line.cut(number, "asked"):
                    return
                answer = _messages(server, {_READY})
                line.answers += answer
                if line.cut(number, "answered"):
                    return
                client.sendall(answer)


def _greet(client: socket.socket, server: socket.socket) -> None:
    """Pass on who the client is, and its answers to what the server wants to know of it."""
    size = _exactly(client, 4)
    server.sendall(size + _exactly(client, int.from_bytes(size) - 4))
    while True:
        kind, message = _message(server)
        client.sendall(message)
        if kind == _READY:
            return
        # A challenge, which is answered; 0 says that all is well, 12 that nothing more is asked.
        if kind == b"R" and int.from_bytes(message[5:9]) not in (0, 12):
            server.sendall(_message(client)[1])


def _messages(source: socket.socket, ends: set[bytes]) -> bytes:
    """All up to the end of a question, or of an answer."""
    whole = b""
    while True:
        kind, message = _message(source)
        whole += message
        if kind in ends:
            return whole


def _message(source: socket.socket) -> tuple[bytes, bytes]:
    head = _exactly(source, 5)
    return head[:1], head + _exactly(source, int.from_bytes(head[1:]) - 4)


def _exactly(source: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        part = source.recv(size - len(found))
        if not part:
            raise EOFError
        found += part
    return found
