"""A process that closes one step of a stream whose items Spark keeps, and says what it does.

    python -m tests.stream.spark_victim MASTER STATE EVENTS THROUGH

With the master `local-cluster[1,1,512]` the driver and its executor are processes, so that either can be killed. A
line is written before each part is written (`keeping`), in the midst of it, when a task of it has begun (`writing`),
after it (`kept`), and when the step is closed (`closed`).
"""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import dpwindows as dw
from dpwindows.stream.spark_parts import SparkFolder
from dpwindows.stream.stream import Stream
from tests.count.engines import servers


def tell(what: str) -> None:
    """One line, at once."""
    os.write(1, f"victim: {what}\n".encode())


def watch(folder: Path) -> None:
    """Say so once a task writes into a folder."""
    begun = False
    while not begun:
        time.sleep(0.002)
        # What is listed may be gone a moment later.
        with suppress(OSError):
            begun = any(folder.glob("_temporary/*/_temporary/*")) or any(folder.glob("*.parquet"))
    tell("writing")


def main() -> None:
    """Close the step."""
    master, state, events, through = sys.argv[1:]
    keep = SparkFolder.keep

    def keep_and_tell(self: SparkFolder, name: Any, step: int, query: str) -> Any:
        tell("keeping")
        root = Path(self._root.removeprefix("file://")) / str(name)
        threading.Thread(target=watch, args=(root,), daemon=True).start()
        part = keep(self, name, step, query)
        tell("kept")
        return part

    SparkFolder.keep = keep_and_tell  # type: ignore[method-assign]
    executor = {"spark.executor.extraJavaOptions": servers.JAVA, "spark.executor.memory": "512m"}
    with servers.spark(master, executor), Stream.open(state, settings=dw.EngineSettings(progress=False)) as stream:
        stream.advance(events, int(through))
        tell("closed")


if __name__ == "__main__":
    main()
