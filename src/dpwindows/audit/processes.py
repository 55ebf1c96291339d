"""What new processes draw through the kernel: a generator seeded at its start draws the same in each of them."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from dpwindows.audit.neighbours import Ints
from dpwindows.errors import EngineError
from dpwindows.kernel.accounting import Law

_PROGRAM = "import sys; from dpwindows.audit.processes import print_draws; print_draws(*sys.argv[1:])"
_SECONDS = 120


def draws_of_processes(law: Law, scale: float, count: int, *, processes: int) -> list[Ints]:
    """The first `count` noise values that each of some new processes draws.

    Raises:
        EngineError: a process did not start or did not answer.
    """
    command = [sys.executable, "-c", _PROGRAM, law, scale.hex(), str(count)]
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


def print_draws(law: Law, scale: str, count: str) -> None:
    """Draw noise on zeros as a stream would, and print it: what a new process runs."""
    from dpwindows.ask.privacy import ZCDP, EventLevel, PureDP
    from dpwindows.ask.queries import Rolling
    from dpwindows.kernel.accounting import GAUSSIAN
    from dpwindows.kernel.maps.filters import Identity
    from dpwindows.kernel.measure import Measurement, measure_step
    from dpwindows.kernel.problem import Problem
    from dpwindows.kernel.shapes.series import SeriesDesign

    numbers, width = int(count), float.fromhex(scale)
    problem = Problem(Rolling(1), numbers, (1,), EventLevel(), law, width)
    measurement = Measurement(SeriesDesign(problem, "none", map=Identity(numbers)), law, width)
    # Whatever one unit costs at this scale: nothing real is measured.
    budget = ZCDP(1 / width**2) if law == GAUSSIAN else PureDP(2 / width)
    (noisy,) = measure_step([measurement], budget, [{1: np.zeros(numbers, dtype=np.int64)}])
    print(*noisy[1].tolist())  # noqa: T201
