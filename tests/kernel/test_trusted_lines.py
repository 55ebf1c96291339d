"""What a release rests on is found by name: its own proof and maps, no other's; and no line of the kernel is dead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dpwindows.kernel.families.chains_of_runs import SeriesByThreshold
from dpwindows.kernel.rules import PROOFS, RULES

# Plans are worked out as the benchmarks are loaded.
pytestmark = pytest.mark.slow
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
# What the rest of the package asks the kernel for: horizons, and words for a norm.
ASKED_FROM_OUTSIDE = {("accounting", "NORMS"), ("designs", "horizon_of")}


@pytest.fixture
def trusted(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import trusted_lines  # type: ignore[import-not-found]

    return trusted_lines


def test_a_release_rests_on_its_proof_and_on_no_other(trusted: Any) -> None:
    design = trusted.README.allotments[0].measurement.design
    assert isinstance(design.shape, SeriesByThreshold)
    own, bound = trusted.own(design), PROOFS[design.proof]
    assert ("families.chains_of_runs", "SeriesByThreshold") in own
    assert ("maps.counters", type(design.shape.maps[0]).__name__) in own
    proved = {place[1] for place in own} & {other.__name__ for other in PROOFS.values()}
    assert proved == {bound.__name__}


def test_every_release_rests_on_what_measures_and_charges(trusted: Any) -> None:
    core = trusted.core()
    for place in (("measure", "measure"), ("accounting", "certify"), ("measure", "draw_noise"), ("groups", "Groups")):
        assert place in core
    assert not {module for module, _ in core if module.startswith(("families", "maps"))}


def test_no_definition_of_the_kernel_is_dead(trusted: Any) -> None:
    known = trusted.definitions()
    declared = [(one.bound.__module__.removeprefix("dpwindows.kernel."), one.bound.__name__) for one in RULES]
    parts = [place for place in known if place[0].startswith(("maps.", "families.")) and place[1][0].isupper()]
    used = trusted.needed([*declared, *parts]) | trusted.core()
    assert set(known) - used == ASKED_FROM_OUTSIDE
