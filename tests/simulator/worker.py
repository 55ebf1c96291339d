"""One worker of the command: runs under the library, prints what it found, and a summary as its last line."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter

from tests.simulator.driver import Outcome, Simulator
from tests.simulator.planted import FOUND_BY, PLANTED
from tests.simulator.schedule import Schedule, schedule_of

# A line says how far a long run is, after so many schedules.
_TOLD = 500


def work(given: argparse.Namespace) -> int:
    """Run every `workers`-th schedule from a seed on; 1 if one was violated."""
    if given.planted == "all":
        return _find_planted()
    simulator = Simulator(PLANTED[given.planted] if given.planted else lambda: None)
    failed, done, operations, endings = False, 0, 0, Counter[str]()
    try:
        for index in range(given.schedules):
            schedule = schedule_of(given.seed + index * given.workers, given.family)
            if given.twice:
                _say(_line(schedule, simulator.run(schedule)))
            outcome = simulator.run(schedule)
            done, operations = done + 1, operations + outcome.operations
            endings.update(outcome.endings)
            endings["faults met"] += outcome.fired
            if given.json:
                _say(_line(schedule, outcome))
            elif outcome.violations or given.tell:
                _tell(schedule, outcome.story, outcome.violations, given)
            failed |= bool(outcome.violations)
            if done % _TOLD == 0:
                _say(f"{done} schedules, seeds up to {schedule.seed}: {'some' if failed else 'none'} violated")
            if outcome.violations and not given.go_on:
                break
    finally:
        simulator.close()
    _say(json.dumps({"schedules": done, "operations": operations, "endings": endings}))
    return int(failed)


def _line(schedule: Schedule, outcome: Outcome) -> str:
    facts = (outcome.log, outcome.data, outcome.operations, outcome.violations)
    return json.dumps([schedule.seed, schedule.family, *facts])


def _find_planted() -> int:
    """Plant each bug and run the schedule that finds it."""
    simulator = Simulator()
    try:
        for name, (family, seed, _) in FOUND_BY.items():
            simulator.plant = PLANTED[name]
            _say(json.dumps([name, simulator.run(schedule_of(seed, family)).violations]))
    finally:
        simulator.close()
    _say(json.dumps({"schedules": len(FOUND_BY), "operations": 0, "endings": {}}))
    return 0


def _tell(schedule: Schedule, story: list[str], violations: list[str], given: argparse.Namespace) -> None:
    family = f" --family {given.family}" if given.family else ""
    planted = f" --planted {given.planted}" if given.planted else ""
    _say(f"schedule {schedule.seed} ({schedule.family})" + (": VIOLATED" if violations else ""))
    for violation in violations:
        _say(f"  ! {violation}")
    if violations:
        _say(f"  again: python -m tests.simulator --schedules 1 --seed {schedule.seed}{family}{planted} --tell")
    for verb in schedule.before:
        _say(f"  before: {verb}")
    for line in story:
        _say(f"  {line}")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
