"""Every planted privacy bug turns the test that is named for it red.

Each runs on a copy of the installed package, in a process of its own (`forks`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import dpwindows
from tests.mutants import first_cases
from tests.mutants.catalogue import MUTANTS
from tests.mutants.forks import Forks, forks
from tests.mutants.mutant import Mutant

PACKAGE = Path(dpwindows.__file__).parent
# The copy is made, and libraries are loaded for it, once.
one_process = pytest.mark.xdist_group("mutants")


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    """A copy of the installed package, and what runs tests on it."""
    with forks(PACKAGE, tmp_path_factory.mktemp("copied")) as found:
        yield found


def test_no_bug_is_planted_twice() -> None:
    assert len({mutant.breaks for mutant in MUTANTS}) == len(MUTANTS) >= 15


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_mutant_changes_one_place_into_other_valid_source(mutant: Mutant) -> None:
    """Without a process: a mutant that no longer fits its source fails here, by name."""
    path = PACKAGE / mutant.file
    source = path.read_text(encoding="utf-8")
    mutated = mutant.apply(source)
    assert mutated != source
    compile(mutated, mutant.file, "exec")


def test_a_mutant_whose_source_is_gone_says_so() -> None:
    with pytest.raises(AssertionError, match="change the mutant"):
        MUTANTS[0].apply("something else")
    with pytest.raises(AssertionError, match="2 times"):
        MUTANTS[0].apply(MUTANTS[0].before * 2)


@one_process
def test_the_copy_is_in_no_tests_way(copied: Forks) -> None:
    """A file that fails on any copy would notice every mutant. That all named tests pass is what the suite shows."""
    named = sorted({mutant.test for mutant in MUTANTS})
    code, said = copied.run(["-p", first_cases.__name__, *named])
    assert code == 0, said
    assert f"{len({test.partition('::')[0] for test in named})} passed" in said


# Of these each would start a Spark of its own.
BY_SPARK = [mutant for mutant in MUTANTS if mutant.file == "stream/spark_parts.py"]


@one_process
@pytest.mark.parametrize(
    "mutant",
    [pytest.param(one, marks=[pytest.mark.search(0)] if one in BY_SPARK else []) for one in MUTANTS],
    ids=str,
)
def test_the_named_test_notices(mutant: Mutant, copied: Forks) -> None:
    file = copied.folder / "dpwindows" / mutant.file
    source = file.read_text(encoding="utf-8")
    file.write_text(mutant.apply(source), encoding="utf-8")
    try:
        # Without the source of every call, which takes longer to show than most of these tests to fail.
        code, said = copied.run(["--tb=line", mutant.test])
    finally:
        file.write_text(source, encoding="utf-8")
    # 1: a test failed. Anything else (2: an import or a name failed, 5: there is no such test) is not being noticed.
    assert code == 1, f"{mutant.breaks} survived\n{said}"
    assert "1 failed" in said
