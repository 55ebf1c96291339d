"""Progress of long work: on standard error, only where a person is looking, and never in a release.

Work of less than a second shows nothing; what is shown is erased at the end.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import RenderableType

_DELAY = 1.0
QUIET: ContextVar[bool] = ContextVar("dpwindows_quiet", default=False)
"""Whether nothing but results and errors is to be shown: `--quiet`."""


def watched() -> bool:
    """Whether a person looks at standard error, and wants to be told."""
    return not QUIET.get() and sys.stderr.isatty()


def tell(text: str) -> None:
    """Say something about what is done."""
    if not QUIET.get():
        click.echo(text, err=True)


@contextmanager
def show_progress(
    what: str, total: int | None = None, *, done: Callable[[], float] | None = None, shown: bool = True
) -> Iterator[Callable[[float], None]]:
    """Show how far some work is, and how long it will still take, while the block runs.

    Args:
        what: the work, such as `drawing noise`.
        total: of how many pieces it is; None if nobody knows, and the time so far is shown.
        done: says how many are done, negative while that is not known; otherwise the function that is yielded is to be
            called with how many more are.
        shown: whether to show anything at all.
    """
    if not (shown and watched()):
        yield lambda more: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    class Display(Progress):
        def get_renderables(self) -> Iterator[RenderableType]:
            if done is not None:
                for one in self.task_ids:
                    self.update(one, completed=max(0.0, done()))
            yield from super().get_renderables()

    known = (TaskProgressColumn(), TimeRemainingColumn(compact=True), TextColumn("left"))
    columns = known if total is not None else (TimeElapsedColumn(), TextColumn("so far"))
    display = Display(
        TextColumn("{task.description}"),
        BarColumn(),
        *columns,
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    task = display.add_task(what, total=total)
    waiting = threading.Timer(_DELAY, display.start)
    waiting.daemon = True
    waiting.start()
    try:
        yield lambda more: display.advance(task, more)
    finally:
        waiting.cancel()
        waiting.join()
        display.stop()
