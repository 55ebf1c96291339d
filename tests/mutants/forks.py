"""Tests on a changed copy of the package, in processes that are forked from one that has loaded the libraries.

Most of the time of a short test in a process of its own goes into loading libraries. `python -m tests.mutants.forks
FOLDER` loads them, and nothing of ours, once: it reads lists of tests from its input, a line of JSON each, runs each
list on the package in the folder, and answers with the exit code of pytest. What the tests print is in `said.txt`.
"""

from __future__ import annotations

import atexit
import compileall
import gc
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from py_compile import PycInvalidationMode

import pytest
from _pytest.config import builtin_plugins

ROOT = Path(__file__).parent.parent.parent
# Loaded once, before anything is forked. Some start threads that free memory; these allow for forks.
LIBRARIES = (
    *(f"_pytest.{name}" for name in sorted(builtin_plugins)),
    "click",
    "dp_accounting",
    "duckdb",
    "flint",
    "hypothesis",
    "narwhals",
    "numpy",
    "opendp.prelude",
    "pandas",
    "polars",
    "pyarrow",
    "pyarrow.compute",
    "pyarrow.parquet",
    "rich.console",
    "rich.progress",
    "rich.table",
    "scipy.optimize",
    "scipy.signal",
    "scipy.stats",
)
# Memory of a process, and seconds after which its tests hang: far more than any takes on a busy machine.
MEMORY, PATIENCE = 8 << 30, 1800.0
# Exit codes of a process that failed by itself, and of one that tested another package than the copy.
_BROKEN, _ANOTHER = 70, 71


def copy_package(package: Path, folder: Path) -> None:
    """Copy the package into a folder, compiled so that a file that is changed afterwards is known by its content."""
    # Some tests act as another user, who must get to their files.
    folder.chmod(0o755)
    (folder / "tmp").mkdir()
    shutil.copytree(package, folder / "dpwindows", ignore=shutil.ignore_patterns("__pycache__"))
    compileall.compile_dir(folder / "dpwindows", quiet=1, invalidation_mode=PycInvalidationMode.CHECKED_HASH)


def forked(folder: Path, work: Callable[[], int]) -> int:
    """The id of a process that does this with the package in a folder; what it prints is kept there."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    code = _BROKEN
    try:
        said = os.open(folder / "said.txt", os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
        os.dup2(said, 1)
        os.dup2(said, 2)
        _prepare(folder)
        code = work()
    except BaseException as error:
        print(type(error).__name__, error, flush=True)  # noqa: T201
    finally:
        sys.stdout.flush()
        os._exit(code)


def ended(child: int, patience: float) -> int | None:
    """The exit code of a process, negative for a signal; None if it had to be ended after so many seconds."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def swept(folder: Path) -> None:
    """Remove what tests left in the folder for temporary files."""
    shutil.rmtree(folder / "tmp", ignore_errors=True)
    (folder / "tmp").mkdir()


def _prepare(folder: Path) -> None:
    import resource

    os.setsid()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    os.chdir(ROOT)
    sys.dont_write_bytecode = True
    os.environ |= {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": str(folder / "tmp")}
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(folder / "tmp" / "hypothesis")
    tempfile.tempdir = None
    sys.path.insert(0, str(folder))


@dataclass(frozen=True)
class Forks:
    """A copy of the package, and a process that runs tests on it."""

    folder: Path
    process: subprocess.Popen[str]

    def run(self, tests: Sequence[str]) -> tuple[int | None, str]:
        """The exit code of pytest, None if the tests hang, and what it printed."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(list(tests)) + "\n")
        self.process.stdin.flush()
        code = json.loads(self.process.stdout.readline())
        return code, (self.folder / "said.txt").read_text(errors="replace")


@contextmanager
def forks(package: Path, folder: Path) -> Iterator[Forks]:
    """Copy the package into an empty folder, and start the process."""
    copy_package(package, folder)
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.mutants.forks", str(folder)],
        cwd=ROOT,
        # Plugins take longer to load than most of the tests that are run here.
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        yield Forks(folder, process)
        assert process.stdin is not None
        process.stdin.close()


def _tested(folder: Path, tests: Sequence[str]) -> int:
    code = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *tests]))
    tested = sys.modules.get("dpwindows")
    return code if tested is None or Path(str(tested.__file__)).parent == folder / "dpwindows" else _ANOTHER


def load_libraries() -> None:
    """Load what processes are forked with, out of the reach of their garbage collectors, which would copy all of it."""
    for name in LIBRARIES:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    # Or libraries complain at the end of what was never given back.
    atexit.register(gc.unfreeze)


def _serve(folder: Path) -> None:
    load_libraries()
    for line in sys.stdin:
        tests = json.loads(line)
        code = ended(forked(folder, lambda tests=tests: _tested(folder, tests)), PATIENCE)  # type: ignore[misc]
        swept(folder)
        sys.stdout.write(json.dumps(code) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
