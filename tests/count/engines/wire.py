"""A listener on the line between a client and a server: it passes every byte on and keeps what the server sent."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field


@dataclass
class Wire:
    """Where to connect in place of the server, and all that the server has sent."""

    port: int
    received: bytearray = field(default_factory=bytearray)


@contextmanager
def tapped(server_port: int) -> Iterator[Wire]:
    """Pass connections on to a port of this machine."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        wire = Wire(listener.getsockname()[1])
        threading.Thread(target=_accept, args=(listener, server_port, wire), daemon=True).start()
        yield wire


def _accept(listener: socket.socket, server_port: int, wire: Wire) -> None:
    with suppress(OSError):  # the listener was closed
        while True:
            client, _ = listener.accept()
            server = socket.create_connection(("127.0.0.1", server_port))
            threading.Thread(target=_pass_on, args=(client, server, None), daemon=True).start()
            threading.Thread(target=_pass_on, args=(server, client, wire.received), daemon=True).start()


def _pass_on(source: socket.socket, target: socket.socket, kept: bytearray | None) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            if kept is not None:
                kept += data
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
