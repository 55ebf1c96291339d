"""Progress of long work: on standard error, only where a person is looking, and never in a release.

Work of less than a second shows nothing; what is shown is erased at the end.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Drawing this many numbers takes about a second.
_LONG = 60_000
_DELAY, _INTERVAL = 1.0, 0.2
_WIDTH = 30
QUIET: ContextVar[bool] = ContextVar("dpwindows_quiet", default=False)
"""Whether nothing but results and errors is to be shown: `--quiet`."""


def watched() -> bool:
    """Whether a person looks at standard error, and wants to be told."""
    return not QUIET.get() and sys.stderr.isatty()


@contextmanager
def noise_progress(total: int, *, shown: bool) -> Iterator[Callable[[int], None]]:
    """A bar for drawing `total` noise values; yields the function to call with the number drawn since last time."""
    with _bar("drawing noise", total, shown=shown and total >= _LONG) as advance:
        yield advance


@contextmanager
def agreeing_progress(total: int, *, shown: bool) -> Iterator[Callable[[float], None]]:
    """A bar for making `total` numbers agree; yields the function to call with how many were done since last time."""
    with _bar("making numbers agree", total, shown=shown and total >= _LONG) as advance:
        yield advance


@contextmanager
def release_progress(total: int) -> Iterator[Callable[[int], None]]:
    """A bar for `total` releases of an audit; yields the function to call with the number made since last time."""
    with _bar("releasing", total, shown=True) as advance:
        yield advance


@contextmanager
def planning_progress(total: int) -> Iterator[Callable[[int], None]]:
    """A bar for the `total` errors of a planner's page; yields the function to call with the number worked out."""
    with _bar("working out errors", total, shown=True) as advance:
        yield advance


@contextmanager
def painted(line: Callable[[float], str], *, shown: bool = True) -> Iterator[None]:
    """Show a line that tells, of the seconds so far, how far some work is, while the block runs."""
    if not (shown and watched()):
        yield
        return
    done = threading.Event()
    painter = threading.Thread(target=_paint, args=(line, done), daemon=True)
    painter.start()
    try:
        yield
    finally:
        done.set()
        painter.join()


def working(label: str) -> Callable[[float], str]:
    """For `painted`: work that takes nobody knows how long."""
    return lambda seconds: f"{label}, {_clock(seconds)} so far"


def bar_text(label: str, percentage: float, seconds: float) -> str:
    """One line for a percentage from 0 to 100 after `seconds` seconds; a negative one means it is not known yet."""
    share = min(max(percentage, 0.0), 100.0)
    full = round(_WIDTH * share / 100)
    left = f", {_clock(seconds * (100 - share) / share)} left" if share >= 1 else ""
    return f"{label} [{'#' * full}{'.' * (_WIDTH - full)}] {share:3.0f} %{left}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _paint(line: Callable[[float], str], done: threading.Event) -> None:
    began, longest = time.monotonic(), 0
    wait = _DELAY
    while not done.wait(wait):
        wait = _INTERVAL
        text = line(time.monotonic() - began)
        longest = max(longest, len(text))
        sys.stderr.write("\r" + text.ljust(longest))
        sys.stderr.flush()
    if longest:
        sys.stderr.write("\r" + " " * longest + "\r")
        sys.stderr.flush()


@contextmanager
def _bar(what: str, total: int, *, shown: bool) -> Iterator[Callable[[float], None]]:
    if not (shown and watched()):
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.advance(task, done)
