"""What new processes draw through the kernel: a generator seeded at its start draws the same in each of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from dpwindows.audit.neighbours import Ints
from dpwindows.errors import EngineError
from dpwindows.kernel.accounting import Law

_PROGRAM = Path(__file__).with_name("new_process.py")
# On a busy machine loading the libraries alone has taken two minutes.
_SECONDS = 600


def draws_of_processes(law: Law, scale: float, count: int, *, processes: int) -> list[Ints]:
    """The first `count` noise values that each of some new processes draws.

    Raises:
        EngineError: a process did not start or did not answer.
    """
    # The folder of the program stays off the path: its neighbours are no modules of their own.
    command = [sys.executable, "-P", str(_PROGRAM), law, scale.hex(), str(count)]
    started = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(processes)
    ]
    try:
        return [_read(process, count) for process in started]
    finally:
        for process in started:
            process.kill()
            process.communicate()


def _read(process: subprocess.Popen[str], count: int) -> Ints:
    try:
        out, err = process.communicate(timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        raise EngineError("the audit asked a new process for noise, and it did not answer") from None
    values = [int(word) for word in out.split()] if process.returncode == 0 else []
    if len(values) != count:
        said = err.strip().splitlines()[-1:] or ["nothing"]
        raise EngineError(f"the audit asked a new process for noise, and it failed, saying: {said[0]}")
    return np.array(values, dtype=np.int64)
