"""Exported plans let a third party recompute sensitivity and unbiasedness without this package."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpwindows as dw
from dpwindows.ask.privacy import ApproxDP, Budget, EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod, PureDP, Unit
from dpwindows.ask.queries import AnyWindow, Cumulative, Query, Rolling
from dpwindows.ask.timeline import Timeline
from dpwindows.errors import InputError
from dpwindows.plan.export import export_plan
from dpwindows.plan.plan import Plan
from tests.end_to_end.command_line import run
from tests.plans import plan_of

THIRD_PARTY = Path(__file__).with_name("third_party.py")
UNITS: list[Unit] = [EventLevel(), ItemPerPeriod(2), ItemLevel(), ItemAddRemove()]


def planned(queries: list[Query], unit: Unit, budget: Budget, strategy: str = "auto", steps: int = 4) -> Plan:
    return Plan(queries, timeline=Timeline.of_steps(steps), unit=unit, budget=budget, strategy=strategy)


# Runs the script as its own main program for each line of arguments: most of its time goes into loading NumPy.
_JUDGE = """
import json, runpy, sys
for line in sys.stdin:
    sys.argv = json.loads(line)
    runpy.run_path(sys.argv[0], run_name="__main__")
    print(flush=True)
"""


@cache
def _judge() -> subprocess.Popen[str]:
    """An interpreter that knows nothing of this package; it ends with this one."""
    command = [sys.executable, "-I", "-c", _JUDGE]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def third_party(path: Path, unit: Unit, most: int = 2, samples: int | None = None) -> list[dict[str, Any]]:
    """Let the independent script judge the file."""
    arguments = [str(THIRD_PARTY), str(path), unit.name, str(most), *([] if samples is None else [str(samples)])]
    orders, answers = _judge().stdin, _judge().stdout
    assert orders is not None
    assert answers is not None
    orders.write(json.dumps(arguments) + "\n")
    orders.flush()
    answer = answers.readline()
    if not answer:
        _judge.cache_clear()  # one that failed judges no further file
    judged: list[dict[str, Any]] = json.loads(answer)
    return judged


def exported(plan: Plan, folder: Path, most: int = 2, samples: int | None = None) -> list[dict[str, Any]]:
    """What the script finds of a plan."""
    (folder / "plan.npz").write_bytes(export_plan(plan))
    return third_party(folder / "plan.npz", plan.unit, most, samples)


def require_right(plan: Plan, judged: list[dict[str, Any]], least: float = 0.0) -> None:
    """Every measurement is as certified, at least so near, and reads what it should."""
    for one, measurement in zip(judged, plan.measurements, strict=True):
        reached = one["reached"] if "reached" in one else one["recomputed"]
        assert max(1, least * one["certified"]) <= reached <= one["certified"] == measurement.certificate.bound
        assert one.get("bias", 0.0) <= one["bias_bound"] + 1e-6
        assert one.get("factors_agree", True)
        assert one["scale"] == measurement.scale
    if isinstance(plan.budget, PureDP) and "recomputed" in judged[0]:
        assert sum(one["recomputed"] / one["scale"] for one in judged) <= plan.budget.epsilon
    if isinstance(plan.budget, dw.ZCDP) and "recomputed" in judged[0]:
        assert sum(one["recomputed"] / one["scale"] ** 2 for one in judged) <= 2 * plan.budget.rho


APPROX = ApproxDP(1.0, 1e-6)
EXPORTED = [
    # queries, budget, strategy, shapes
    ([Cumulative().at_least(1, 2), Rolling(2).at_least(1)], APPROX, "filter", ["series", "series"]),
    ([Rolling(2).exactly(1)], PureDP(1.0), "anchored-differences", ["series"]),
    ([Cumulative().at_least(1).exactly(2)], PureDP(1.0), "tree", ["series"]),
    ([AnyWindow().at_least(1), Rolling(3).at_least(1)], PureDP(1.0), "direct", ["starts", "series"]),
    ([Cumulative().at_least(1), Rolling(2).at_least(2), AnyWindow().exactly(1)], PureDP(1.0), "paper", None),
    ([Rolling(2).at_least(1), AnyWindow().at_least(1)], APPROX, "paper", None),
]


@pytest.mark.quick(5)
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
@pytest.mark.parametrize(("queries", "budget", "strategy", "shapes"), EXPORTED)
def test_a_third_party_recomputes_sensitivity_and_unbiasedness(
    queries: list[Query], budget: Budget, strategy: str, shapes: list[str] | None, unit: Unit, tmp_path: Path
) -> None:
    if strategy == "paper" and isinstance(unit, ItemPerPeriod):
        with pytest.raises(InputError, match="does not apply"):
            planned(queries, unit, budget, strategy)
        return
    plan = planned(queries, unit, budget, strategy)
    judged = exported(plan, tmp_path)
    require_right(plan, judged)
    assert shapes is None or [one["shape"] for one in judged] == shapes


@pytest.mark.parametrize(
    ("queries", "budget", "strategy", "steps", "shape", "least"),
    [
        ([AnyWindow(2).at_least(1)], APPROX, "nested-filter", 5, "nested windows", 0.0),
        ([AnyWindow(5).at_least(1)], APPROX, "nested-filter", 5, "nested windows", 0.0),
        ([Rolling(2).occurrences(), AnyWindow().occurrences()], dw.ZCDP(0.5), "auto", 4, "series of totals", 0.5),
        ([Rolling(2).occurrences(), AnyWindow().occurrences()], PureDP(1.0), "auto", 4, "series of totals", 0.5),
        ([Rolling(3).at_least(1), Rolling(1).at_least(1)], dw.ZCDP(0.5), "auto", 4, "rolling together", 0.5),
    ],
)
def test_further_shapes_at_event_level(
    queries: list[Query], budget: Budget, strategy: str, steps: int, shape: str, least: float, tmp_path: Path
) -> None:
    plan = planned(queries, EventLevel(), budget, strategy, steps)
    judged = exported(plan, tmp_path, 1 if steps == 5 else 2)
    require_right(plan, judged, least)
    assert shape in [one["shape"] for one in judged]


def test_a_lie_about_the_sensitivity_is_found(tmp_path: Path) -> None:
    """The check has teeth: weights that are larger than the certificate says are noticed."""
    plan = planned([Rolling(2).at_least(1)], EventLevel(), PureDP(1.0), "direct")
    (tmp_path / "plan.npz").write_bytes(export_plan(plan))
    arrays = dict(np.load(tmp_path / "plan.npz"))
    arrays["0/entry_value"] = arrays["0/entry_value"] * 2
    np.savez(tmp_path / "lie.npz", **arrays)
    (one,) = third_party(tmp_path / "lie.npz", EventLevel())
    assert one["recomputed"] > one["certified"]
    assert one["bias"] > 0.5


GROUPS: list[tuple[Unit, str, int | None]] = [
    (EventLevel(), "event", None),
    (ItemAddRemove(), "event", 1),
    (ItemLevel(), "event", 2),
    (ItemLevel(), "item", None),
    (ItemPerPeriod(1), "event", 3),
]


@pytest.mark.quick(4)
@pytest.mark.parametrize("budget", [PureDP(1.0), dw.ZCDP(0.5)], ids=lambda budget: budget.kind)
@pytest.mark.parametrize(("unit", "of", "limit"), GROUPS, ids=str)
def test_a_third_party_recomputes_the_sensitivity_in_all_groups_together(
    unit: Unit, of: str, limit: int | None, budget: Budget, tmp_path: Path
) -> None:
    by = {"g": ["a", "b", "c"]}
    more: dict[str, Any] = {"by": by, "group_of": of, "max_groups": limit, "totals": 0.4}
    queries = [Rolling(2).at_least(1), Cumulative().at_least(1)]
    plan = Plan(queries, timeline=Timeline.of_steps(2), unit=unit, budget=budget, **more)
    judged = exported(plan, tmp_path, 1)
    assert len(judged) == 4
    require_right(plan, judged, 0.4)


def test_time_compression_states_its_bias(tmp_path: Path) -> None:
    plan = plan_of(AnyWindow(), steps=8, unit=ItemAddRemove(), budget=PureDP(0.5), strategy="paper", singleton=True)
    (one,) = judged = exported(plan, tmp_path, 1)
    assert one["strategy"] == "compressed(paper)"
    require_right(plan, judged)
    # One item alone is off by 1 at most, well within the bound for all items together.
    assert one["bias"] > 0


LONG = [
    # queries, unit, budget, strategy, singleton, shapes, and the least share of the sensitivity that neighbours reach
    (
        [Rolling(7).at_least(1, 2), AnyWindow().at_least(2)],
        EventLevel(),
        APPROX,
        "auto",
        False,
        ["series", "nested windows"],
        0.3,
    ),
    ([Rolling(3), Rolling(1)], EventLevel(), dw.ZCDP(0.5), "auto", False, ["rolling together"], 0.5),
    ([AnyWindow(8).at_least(1, 2)], EventLevel(), APPROX, "auto", False, ["nested windows"], 0.3),
    ([AnyWindow(8).at_least(1)], EventLevel(), PureDP(1.0), "tree", False, ["blocks"], 0.3),
    ([Cumulative().at_least(1), AnyWindow().at_least(1)], EventLevel(), PureDP(1.0), "tree", False, None, 0.5),
    ([AnyWindow().at_least(1)], ItemLevel(), APPROX, "auto", False, ["windows in gaps"], 0.3),
    ([AnyWindow(20).at_least(1)], ItemAddRemove(), PureDP(1.0), "gap-filter", False, ["windows in gaps"], 0.3),
    ([AnyWindow().at_least(2)], ItemLevel(), APPROX, "auto", False, ["crossed counters"], 0.5),
    ([AnyWindow(6).at_least(1, 3)], ItemAddRemove(), PureDP(1.0), "auto", False, ["crossed counters"], 0.5),
    ([AnyWindow(12).at_least(1)], ItemPerPeriod(3), APPROX, "crossed-counters", False, None, 0.05),
    ([AnyWindow(4).at_least(1)], ItemAddRemove(), APPROX, "counters", False, ["starts"], 0.5),
    ([AnyWindow(4).at_least(1)], ItemPerPeriod(2), PureDP(1.0), "tree", False, ["starts"], 0.2),
    ([AnyWindow(4).at_least(1)], ItemAddRemove(), APPROX, "paper", False, ["counters"], 0.05),
    ([Rolling(7).at_least(1), AnyWindow().at_least(2)], EventLevel(), APPROX, "paper", False, None, 0.05),
    ([AnyWindow().at_least(1)], ItemLevel(), PureDP(0.05), "auto", True, ["compressed"], 0.5),
    ([AnyWindow().at_least(1)], ItemAddRemove(), PureDP(0.05), "paper", True, ["compressed"], 0.1),
]


@pytest.mark.quick(1)
@pytest.mark.parametrize(("queries", "unit", "budget", "strategy", "singleton", "shapes", "least"), LONG)
def test_a_third_party_needs_only_the_factors_at_long_horizons(
    queries: list[Query],
    unit: Unit,
    budget: Budget,
    strategy: str,
    singleton: bool,
    shapes: list[str] | None,
    least: float,
    tmp_path: Path,
) -> None:
    timeline = Timeline.of_steps(40)
    plan = Plan(queries, timeline=timeline, unit=unit, budget=budget, strategy=strategy, singleton=singleton)
    judged = exported(plan, tmp_path, 1 if singleton else 2, 24)
    assert not any("entry" in name for name in np.load(tmp_path / "plan.npz").files)
    assert shapes is None or [one["shape"] for one in judged] == shapes
    require_right(plan, judged, least)


def test_a_lie_about_a_weight_is_found_in_the_factors(tmp_path: Path) -> None:
    plan = planned([AnyWindow().at_least(1)], ItemAddRemove(), PureDP(1.0), "crossed-counters", 30)
    (tmp_path / "plan.npz").write_bytes(export_plan(plan))
    arrays = dict(np.load(tmp_path / "plan.npz"))
    arrays["0/start_weights_30_30"] = arrays["0/start_weights_30_30"] * 2
    np.savez(tmp_path / "lie.npz", **arrays)
    (one,) = third_party(tmp_path / "lie.npz", ItemAddRemove(), 1, 12)
    assert one["reached"] > one["certified"]


def test_what_has_no_factors_is_refused_at_long_horizons() -> None:
    plan = planned([Rolling(5).at_least(1)], EventLevel(), APPROX, "filter", 1100)
    with pytest.raises(InputError, match="at most 24 steps, got 1100"):
        export_plan(plan)


def test_the_command_line_exports(tmp_path: Path) -> None:
    path = tmp_path / "strategy.npz"
    asked = ("plan", "--window", "rolling:3", "--unit", "event", "--epsilon", "1", "--steps", "5", "--export", path)
    assert run(*asked).code == 0
    (one,) = third_party(path, EventLevel(), 1)
    assert 0 < one["recomputed"] <= one["certified"]
    again = run(*asked)
    assert again.code == 2
    assert "--force" in again.err
    assert run(*asked, "--force").code == 0
    assert run(*asked[:-1], tmp_path / "strategy.txt").code == 2
