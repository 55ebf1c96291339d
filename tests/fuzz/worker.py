"""A process that runs cases one after another through the command line, with bounded memory.

Cases come as pickles on standard input and outcomes go back on standard output: what is fuzzed may crash the process,
which the parent then reports as the outcome of that case.
"""

from __future__ import annotations

import os
import pickle
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

import dpwindows
from tests.fuzz.case import LONGEST, Case, Outcome
from tests.patience import PATIENCE

# Private memory, which the threads of the engine and of the numerics ask for far more of than they use. (Not address
# space: what draws the charts reserves that by the terabyte.)
_MEMORY = 8 << 30
# A worker that is this old is replaced, so that memory that is not given back does not add up.
_CASES = 400


class Worker:
    """Runs cases in a child process, which is started anew where one of them ended it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._done = 0

    def run(self, case: Case) -> Outcome:
        """The outcome of a case, the death of the process included."""
        if self._process is None or self._done >= _CASES:
            self.close()
            # The package that the tests import, wherever it is.
            homes = Path(dpwindows.__file__).resolve().parents[1], Path(__file__).resolve().parents[2]
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.fuzz.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, homes))},
            )
            self._done = 0
        process, self._done = self._process, self._done + 1
        assert process.stdin is not None
        assert process.stdout is not None
        # The child stops a case that takes too long; one that cannot be stopped is ended from here.
        alarm = threading.Timer(2 * LONGEST, process.kill)
        alarm.start()
        began = time.monotonic()
        try:
            pickle.dump(case, process.stdin)
            process.stdin.flush()
            outcome = pickle.load(process.stdout)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            self._process = None
            code = process.wait()
            return Outcome(None, "", f"the process ended with {code}", time.monotonic() - began, ())
        finally:
            alarm.cancel()
        assert isinstance(outcome, Outcome)
        return outcome

    def close(self) -> None:
        """End the process."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process.wait(timeout=PATIENCE)
        self._process = None


class _TooLong(BaseException):
    """Raised in a case by the clock."""


def _stop(number: int, frame: object) -> None:
    raise _TooLong


def run_here(case: Case) -> Outcome:
    """Run a case in this process, in a folder that is made for it."""
    from click.testing import CliRunner

    from dpwindows.cli import main
    from tests.fuzz.interface import FUNCTIONS

    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        home = Path.cwd()
        for name, content in case.files.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        os.chdir(folder)
        began = time.monotonic()
        try:
            signal.setitimer(signal.ITIMER_REAL, LONGEST)
            command = FUNCTIONS.get(case.arguments[0]) if case.arguments else None
            called = main if command is None else command
            result = CliRunner().invoke(called, list(case.arguments))
        except _TooLong:
            return Outcome(None, "", f"took more than {LONGEST:.0f} s", time.monotonic() - began, ())
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            os.chdir(home)
        seconds = time.monotonic() - began
        left = tuple(sorted(path.name for path in Path(folder).iterdir()))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        trace = "".join(traceback.format_exception(result.exception))
        return Outcome(None, result.stderr, trace, seconds, left)
    return Outcome(result.exit_code, result.stderr, "", seconds, left)


def _serve() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
    signal.signal(signal.SIGALRM, _stop)
    # What libraries write to the screen from below Python must not get in between.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while True:
        try:
            case = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        pickle.dump(run_here(case), answers)
        answers.flush()


if __name__ == "__main__":
    _serve()
