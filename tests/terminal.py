"""A terminal for tests of what is shown on one."""

from __future__ import annotations


class Terminal:
    """A stand-in for stderr on a terminal."""

    def __init__(self) -> None:
        self.written: list[str] = []

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.written.append(text)
        return len(text)

    def flush(self) -> None:
        pass
