"""A process that advances a stream until it is killed, and says what it is doing; run by `test_stream_kills`.

    python -m tests.stream.victim FOLDER

imports everything once and then, for every line on standard input, forks a child that goes on with the stream in
FOLDER from wherever the last one was left. The child writes a line to standard output before and after everything that
matters; when it is gone, the parent writes "gone". Nothing here may start a thread before the fork.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import tempfile
from functools import cache
from pathlib import Path

import dpwindows as dw
from dpwindows.kernel import measure as kernel
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE
from dpwindows.stream.store import StateFile
from dpwindows.stream.stream import Stream
from tests.stream.streams import STEP, Event, new_stream, plan_of, table_of

PLAN = ("rolling:2", "any:3", "cumulative")
# The calls close this many steps in turn.
CALLS = (1, 1, 3, 1, 2)
SETTINGS = dw.EngineSettings(threads=1, progress=False)


def events_of(step: int) -> list[Event]:
    """The events of a step: a few of thirty items, some often."""
    return [(f"item-{(step * 7 + j * j * 11) % 30}", step, 1 + (step + j) % 3) for j in range(step % 6)]


@cache
def calls() -> list[tuple[int, int]]:
    """First and last step of every call, for longer than any test goes on."""
    found, first = [], 1
    for index in range(1000):
        length = CALLS[index % len(CALLS)]
        found.append((first, first + length - 1))
        first += length
    return found


def output(folder: Path, last: int) -> Path:
    """Where the call that ends with a step publishes."""
    return folder / "published" / f"{last}.parquet"


def tell(what: str, step: int) -> None:
    """One line, at once."""
    os.write(1, f"{what} {step}\n".encode())


def live(folder: Path) -> None:
    """Make every call whose output is missing, in order; what a scheduler would do."""
    original = StateFile.commit

    def commit(state: StateFile) -> None:
        tell("commit", step[0])
        original(state)
        tell("committed", step[0])
        step[0] += 1

    StateFile.commit = commit  # type: ignore[method-assign, assignment]
    step = [0]
    stream: Stream | None = None
    for index, (first, last) in enumerate(calls()):
        if output(folder, last).exists():
            continue
        if stream is None or index % 2 == 0:
            if stream is not None:
                tell("close", last)
                stream.close()
            tell("open", last)
            stream = Stream.open(folder / "state", settings=SETTINGS)
            step[0] = stream.closed_steps + 1
        tell("count", last)
        events = [event for number in range(first, last + 1) for event in events_of(number)]
        released = stream.advance(table_of(events), last * STEP)
        tell("publish", last)
        released.save(output(folder, last))
        tell("published", last)


def import_everything() -> None:
    """Import what a child imports while it runs, as another child tells, so that no later one has to."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        with tempfile.TemporaryDirectory() as scratch:
            with new_stream(Path(scratch) / "state", plan_of(*PLAN, horizon=None)) as stream:
                stream.advance(table_of(events_of(1)), STEP).save(Path(scratch) / "1.parquet")
            os.write(writing, "\n".join(sys.modules).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as names:
        for name in names.read().split():
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
    os.wait()
    for law in (GAUSSIAN, LAPLACE):
        kernel.draw_noise(law, 2.0, 1)


def main() -> None:
    """Fork a child for every line read, and reap it."""
    folder = Path(sys.argv[1])
    import_everything()
    tell("ready", 0)
    while sys.stdin.readline():
        child = os.fork()
        if child == 0:
            tell("child", os.getpid())
            live(folder)
            os._exit(0)
        os.waitpid(child, 0)
        tell("gone", 0)


if __name__ == "__main__":
    main()
