"""The tool that changes the trusted files: what it changes, what it leaves out, and that its lists are not stale."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.mutants.automatic import Baseline, Target, read_equivalents, read_targets
from tests.mutants.forks import ROOT
from tests.mutants.operators import changes

SOURCE = dedent(
    '''
    """What it is for."""

    LIMIT: int = 3


    @decorated(flag=True)
    def paid(costs: list[int], most: int = LIMIT) -> bool:
        """True if it is."""
        require(costs)
        assert costs is not None
        if sum(costs) > most:
            raise ValueError(f"too dear by {sum(costs) - most}")
        return max(costs) < most
    '''
)


def test_every_place_that_matters_is_changed_and_no_other() -> None:
    made = {(change.before, change.after) for change in changes(SOURCE)}
    assert {
        ("LIMIT: int = 3", "LIMIT: int = 4"),
        ("LIMIT: int = 3", "LIMIT: int = 2"),
        ("require(costs)", "pass"),
        ("if sum(costs) > most:", "if sum(costs) >= most:"),
        ("if sum(costs) > most:", "if (sum(costs) > most) and False:"),
        ("if sum(costs) > most:", "if (sum(costs) > most) or True:"),
        ("return max(costs) < most", "return min(costs) < most"),
        ("return max(costs) < most", "return max(costs) <= most"),
        ("return max(costs) < most", "return None"),
    } <= made
    left_out = ("assert", "raise", '"""', "@")
    assert not [before for before, _ in made if before.startswith(left_out)]


def test_changes_are_valid_source_and_differ() -> None:
    found = changes(SOURCE)
    texts = [change.source for change in found]
    assert len(set(texts)) == len(texts)
    assert SOURCE not in texts
    assert {change.within for change in found} == {"", "paid"}


@pytest.mark.quick(4)
@pytest.mark.parametrize("target", read_targets(), ids=lambda target: target.file)
def test_files_and_tests_that_are_named_are_there(target: Target) -> None:
    """And every listed change is one that the tool makes."""
    for name in target.tests:
        assert (ROOT / name.partition("::")[0]).is_file()
    listed = [one for one in read_equivalents() if one.file == target.file]
    assert len(target.source) > 0
    if listed:
        found = changes(target.source)
        for one in listed:
            assert any(one.fits(target.file, change) for change in found), one
            assert one.why


def test_what_is_listed_as_equivalent_is_of_files_that_are_tried() -> None:
    assert {one.file for one in read_equivalents()} <= {target.file for target in read_targets()}


def test_tests_near_a_change_come_first_and_the_quickest_of_them() -> None:
    (change, *_) = [change for change in changes(SOURCE) if change.before == "require(costs)"]
    durations = {"slow and near": 2.0, "quick and near": 1.0, "far": 0.1}
    near = {"slow and near": {change.first_line}, "quick and near": {change.first_line}, "far": {1}}
    assert Baseline(durations, near).order(change) == [["quick and near", "slow and near"], ["far"]]
    # A line that is executed when the module is loaded is near to all.
    assert Baseline(durations, {"": {change.first_line}}).order(change) == [["far", "quick and near", "slow and near"]]
