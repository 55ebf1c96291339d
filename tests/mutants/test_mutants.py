"""Every planted privacy bug turns the test that is named for it red, and the package as it is leaves all of them green.

Each runs on a copy of the installed package, in a process of its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import dpwindows
from tests.mutants.catalogue import MUTANTS
from tests.mutants.mutant import Mutant

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A folder with a copy of the installed package, to be put first on the path."""
    shutil.copytree(Path(dpwindows.__file__).parent, tmp_path / "dpwindows")
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Python on the package in this folder."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        # Plugins take longer to load than most of the tests that are named here.
        env={**os.environ, "PYTHONPATH": str(folder), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def run_tests(folder: Path, tests: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return run(folder, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests)


def test_names_are_unique_and_the_bugs_many() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 15


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_mutant_changes_one_place_into_other_valid_source(mutant: Mutant) -> None:
    """Without a process: a mutant that no longer fits its source fails here, by name."""
    path = Path(dpwindows.__file__).parent / mutant.file
    source = path.read_text(encoding="utf-8")
    mutated = mutant.apply(source)
    assert mutated != source
    compile(mutated, mutant.file, "exec")


def test_a_mutant_whose_source_is_gone_says_so() -> None:
    with pytest.raises(AssertionError, match="change the mutant"):
        MUTANTS[0].apply("something else")
    with pytest.raises(AssertionError, match="2 times"):
        MUTANTS[0].apply(MUTANTS[0].before * 2)


@pytest.mark.slow
def test_the_package_as_it_is_passes_every_named_test(copied: Path) -> None:
    found = run_tests(copied, sorted({mutant.test for mutant in MUTANTS}))
    assert found.returncode == 0, found.stdout + found.stderr
    # What ran is the copy.
    where = run(copied, "-c", "import dpwindows; print(dpwindows.__file__)").stdout.strip()
    assert Path(where).parent == copied / "dpwindows"


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_the_named_test_notices(mutant: Mutant, copied: Path) -> None:
    file = copied / "dpwindows" / mutant.file
    file.write_text(mutant.apply(file.read_text(encoding="utf-8")), encoding="utf-8")
    for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*"):
        compiled.unlink()
    found = run_tests(copied, [mutant.test])
    # 1: a test failed. Anything else (2: an import or a name failed, 5: there is no such test) is not being noticed.
    assert found.returncode == 1, f"{mutant.name} ({mutant.breaks}) survived\n{found.stdout}{found.stderr}"
    assert "1 failed" in found.stdout
