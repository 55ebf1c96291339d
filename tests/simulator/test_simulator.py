"""The short run of the simulator: no schedule is violated, a seed repeats itself, and every planted bug is found."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from tests.simulator.planted import FOUND_BY, PLANTED
from tests.simulator.schedule import FAMILIES, schedule_of
from tests.simulator.shim import environment

LOG = logging.getLogger(__name__)
ROOT = Path(__file__).parents[2]


def simulate(*arguments: str) -> tuple[int, str]:
    """Run the command; its status and what it said."""
    command = [sys.executable, "-m", "tests.simulator", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=6 * PATIENCE)
    LOG.info("%s", done.stdout)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_no_schedule_is_violated_and_a_seed_repeats_itself() -> None:
    """Of fixed seeds, each twice; `make simulate` goes on from a random one.

    The same operations on the same files, one for one; DuckDB fills its blocks with bytes of its own besides.
    """
    arguments = ("--schedules", "3", "--seed", "400", "--workers", "1", "--json", "--twice")
    status, said = simulate(*arguments)
    assert status == 0, said
    runs = [json.loads(line) for line in said.splitlines() if line.startswith("[")]
    assert len(runs) == 6
    for (*one, _, operations, _), (*other, _, again, _) in zip(runs[::2], runs[1::2], strict=True):
        assert (one, operations) == (other, again)
        assert operations > 0


@pytest.mark.slow
def test_nor_are_the_schedules_after_them() -> None:
    status, said = simulate("--schedules", "9", "--seed", "403", "--workers", "1")
    assert status == 0, said


_COUNT_SYNCS = """
from tests.simulator.driver import Simulator
from tests.simulator.schedule import Process, Run, Schedule
from tests.simulator.shim import Class
from tests.simulator.workload import Verb
simulator, step = Simulator(), Run((Process((Verb("advance", step=2),)),), must_work=True)
copied = Run((Process((Verb("advance", "copied", step=2),)),), must_work=True)
for before in ([Verb("create")], [Verb("ledger"), Verb("create", ledger=True)], [Verb("create", "copied")]):
    step, state = (copied, "copied") if before[0].state == "copied" else (step, "state")
    outcome = simulator.run(Schedule(1, "stream", (*before, Verb("advance", state, step=1)), (step,)))
    print(outcome.violations, simulator._controls[0].counted[Class.SYNCS])
simulator.close()
"""


@pytest.mark.slow
def test_a_step_waits_for_the_disk_as_often_as_it_must() -> None:
    """Whoever asks for it: 2 for its part of the items, 5 for each commit of SQLite, 2 for the mark and its name.

    A copy waits for its own part, its state and their names.
    """
    command = [sys.executable, "-c", _COUNT_SYNCS]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout.split("\n")[:3] == ["[] 9", "[] 14", "[] 14"], done.stderr


def test_seeds_make_every_family() -> None:
    schedules = [schedule_of(seed) for seed in range(200)]
    assert {schedule.family for schedule in schedules} == set(FAMILIES)
    assert schedules == [schedule_of(seed) for seed in range(200)]


@pytest.fixture(scope="module")
def found() -> dict[str, list[str]]:
    """The violations that each planted bug led to."""
    status, said = simulate("--planted", "all", "--json", "--workers", "1")
    assert status == 0, said
    lines = [json.loads(line) for line in said.splitlines() if line.startswith("[")]
    return dict(lines)


@pytest.mark.xdist_group("simulator")
@pytest.mark.parametrize("bug", PLANTED)
def test_the_planted_bug_is_found(bug: str, found: dict[str, list[str]]) -> None:
    sign = FOUND_BY[bug][2]
    assert any(sign in violation for violation in found[bug]), found[bug]
