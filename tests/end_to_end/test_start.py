"""Commands begin at once: libraries that take long to load are loaded by what needs them alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import dpwindows.__main__
from tests.end_to_end.command_line import run

ASKED = ("--window", "cumulative", "--unit", "event", "--start", "0", "--step", "1")
COLUMNS = ("--item", "who", "--time", "at")


# Python's own report of imports (`-X importtime`) leaves out what a library loads when it is first asked for.
LISTING = """
import sys
import dpwindows.__main__
try:
    dpwindows.__main__.run()
finally:
    sys.stderr.write("\\n" + " ".join(sys.modules))
"""


def loaded(*arguments: str | Path) -> set[str]:
    """The modules that a command loads in a process of its own, where all are installed."""
    command = [sys.executable, "-c", LISTING, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.parametrize(("before", "after"), [(None, "1"), ("3", "3")])
def test_linear_algebra_has_one_thread_unless_told(
    before: str | None, after: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", before or "")
    if before is None:
        monkeypatch.delenv("OPENBLAS_NUM_THREADS")
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr("dpwindows.cli.main", lambda **_: None)
    dpwindows.__main__.run()
    assert os.environ["OPENBLAS_NUM_THREADS"] == after


def test_help_loads_no_library_of_numbers_or_data() -> None:
    modules = loaded("--help")
    assert {"click", "dpwindows.cli.stream"} <= modules
    assert not modules & {"numpy", "scipy", "flint", "pyarrow", "duckdb", "pandas", "opendp"}


@pytest.mark.slow
def test_releases_and_steps_are_made_and_read_without_pandas_and_most_of_scipy(tmp_path: Path) -> None:
    log, out, state = tmp_path / "log.csv", tmp_path / "out.csv", tmp_path / "users.state"
    log.write_text("who,at\nann,1\nbob,2\n")
    release = loaded("release", log, *COLUMNS, *ASKED, "--epsilon", "1", "--end", "4", "-o", out)
    assert {"duckdb", "pyarrow.csv", "dpwindows.kernel.noise"} <= release
    assert not release & {"opendp", "pandas.core", "scipy.signal", "scipy.stats"}

    # Intervals of sums of Laplace noise are made by special functions; those of Gaussian noise are not.
    run("stream", "create", state, *COLUMNS, *ASKED, "--rho", "0.5", "--horizon", "4").must_work()
    advance = loaded("stream", "advance", state, log, "--through", "4", "-o", tmp_path / "steps.parquet")
    assert {"duckdb", "pyarrow.parquet", "dpwindows.kernel.noise"} <= advance
    shown = loaded("stream", "show", state, "-o", tmp_path / "all.parquet")
    count = loaded("count", out, "0", "2")
    assert "pyarrow.csv" in count
    slow = {"opendp", "pandas.core", "scipy.linalg", "scipy.optimize", "scipy.signal", "scipy.special", "scipy.stats"}
    assert not (advance | shown | count) & slow
