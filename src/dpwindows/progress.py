"""Progress bars for long work: on standard error, only where a person is looking, and never in a release."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Drawing this many numbers takes about three seconds.
_LONG = 250_000


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
def _bar(what: str, total: int, *, shown: bool) -> Iterator[Callable[[float], None]]:
    if not (shown and sys.stderr.isatty()):
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.advance(task, done)
