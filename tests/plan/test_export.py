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


EXPORTED = [
    # queries, budget, strategy, shapes
    ([Cumulative().at_least(1, 2), Rolling(2).at_least(1)], ApproxDP(1.0, 1e-6), "filter", ["series", "series"]),
    ([Rolling(2).exactly(1)], PureDP(1.0), "anchored-differences", ["series"]),
    ([Cumulative().at_least(1).exactly(2)], PureDP(1.0), "tree", ["series"]),
    ([AnyWindow().at_least(1), Rolling(3).at_least(1)], PureDP(1.0), "direct", ["starts", "series"]),
    (
        [Cumulative().at_least(1), Rolling(2).at_least(2), AnyWindow().exactly(1)],
        PureDP(1.0),
        "paper",
        None,
    ),
    ([Rolling(2).at_least(1), AnyWindow().at_least(1)], ApproxDP(1.0, 1e-6), "paper", None),
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
    path = tmp_path / "plan.npz"
    path.write_bytes(export_plan(plan))
    judged = third_party(path, unit)
    assert len(judged) == len(queries)
    assert shapes is None or [one["shape"] for one in judged] == shapes
    for one, allotment in zip(judged, plan.allotments, strict=True):
        assert 0 < one["recomputed"] <= one["certified"] == allotment.measurement.design.sensitivity
        assert one["bias"] < 1e-6
        assert one["factors_agree"]
        assert one["scale"] == allotment.measurement.scale
    if isinstance(budget, PureDP):
        assert sum(one["recomputed"] / one["scale"] for one in judged) <= budget.epsilon


@pytest.mark.parametrize(
    ("strategy", "longest", "shape"),
    [
        ("nested-filter", 2, "nested windows"),
        ("nested-filter", 5, "nested windows"),
    ],
)
def test_filters_on_starts_and_ends(strategy: str, longest: int, shape: str, tmp_path: Path) -> None:
    plan = planned([AnyWindow(longest).at_least(1)], EventLevel(), ApproxDP(1.0, 1e-6), strategy, 5)
    (tmp_path / "plan.npz").write_bytes(export_plan(plan))
    (one,) = third_party(tmp_path / "plan.npz", EventLevel(), 1)
    assert one["shape"] == shape
    assert 0 < one["recomputed"] <= one["certified"]
    assert one["bias"] < 1e-6
    assert one["factors_agree"]


@pytest.mark.parametrize("budget", [dw.ZCDP(0.5), PureDP(1.0)], ids=lambda budget: budget.kind)
def test_a_third_party_recomputes_what_occurrences_cost(budget: Budget, tmp_path: Path) -> None:
    plan = planned([Rolling(2).occurrences(), AnyWindow().occurrences()], EventLevel(), budget)
    (tmp_path / "plan.npz").write_bytes(export_plan(plan))
    judged = third_party(tmp_path / "plan.npz", EventLevel())
    assert "series of totals" in [one["shape"] for one in judged]
    for one in judged:
        assert 0.5 * one["certified"] <= one["recomputed"] <= one["certified"]
        assert one["bias"] < 1e-6
        assert one["factors_agree"]


@pytest.mark.parametrize("steps", [4, 40])
def test_one_measurement_of_several_rolling_windows(steps: int, tmp_path: Path) -> None:
    plan = planned([Rolling(3).at_least(1), Rolling(1).at_least(1)], EventLevel(), dw.ZCDP(0.5), steps=steps)
    (tmp_path / "plan.npz").write_bytes(export_plan(plan))
    (one,) = third_party(tmp_path / "plan.npz", EventLevel(), 2, None if steps == 4 else 24)
    assert one["shape"] == "rolling together"
    assert one["certified"] == plan.measurements[0].design.sensitivity
    assert 0.5 * one["certified"] <= one["recomputed" if steps == 4 else "reached"] <= one["certified"]
    assert one["bias"] < 1e-6
    assert one.get("factors_agree", True)


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
    (tmp_path / "plan.npz").write_bytes(export_plan(plan))
    judged = third_party(tmp_path / "plan.npz", unit, 1)
    assert len(judged) == len(plan.measurements) == 4
    for one, measurement in zip(judged, plan.measurements, strict=True):
        assert 0.4 * one["certified"] <= one["recomputed"] <= one["certified"] == measurement.certificate.bound
    if isinstance(budget, PureDP):
        assert sum(one["recomputed"] / one["scale"] for one in judged) <= budget.epsilon
    if isinstance(budget, dw.ZCDP):
        assert sum(one["recomputed"] / one["scale"] ** 2 for one in judged) <= 2 * budget.rho


def test_time_compression_states_its_bias(tmp_path: Path) -> None:
    plan = plan_of(AnyWindow(), steps=8, unit=ItemAddRemove(), budget=PureDP(0.5), strategy="paper", singleton=True)
    (tmp_path / "plan.npz").write_bytes(export_plan(plan))
    (one,) = third_party(tmp_path / "plan.npz", ItemAddRemove(), 1)
    assert one["strategy"] == "compressed(paper)"
    assert 0 < one["recomputed"] <= one["certified"]
    # One item alone is off by 1 at most, well within the bound for all items together.
    assert 0 < one["bias"] <= one["bias_bound"]


LONG = [
    # queries, unit, budget, strategy, singleton, shapes, and the least share of the sensitivity that neighbours reach
    (
        [Rolling(7).at_least(1, 2), AnyWindow().at_least(2)],
        EventLevel(),
        ApproxDP(1.0, 1e-6),
        "auto",
        False,
        ["series", "nested windows"],
        0.3,
    ),
    ([AnyWindow(8).at_least(1, 2)], EventLevel(), ApproxDP(1.0, 1e-6), "auto", False, ["nested windows"], 0.3),
    ([AnyWindow(8).at_least(1)], EventLevel(), PureDP(1.0), "tree", False, ["blocks"], 0.3),
    ([Cumulative().at_least(1), AnyWindow().at_least(1)], EventLevel(), PureDP(1.0), "tree", False, None, 0.5),
    ([AnyWindow().at_least(1)], ItemLevel(), ApproxDP(1.0, 1e-6), "auto", False, ["windows in gaps"], 0.3),
    ([AnyWindow(20).at_least(1)], ItemAddRemove(), PureDP(1.0), "gap-filter", False, ["windows in gaps"], 0.3),
    ([AnyWindow().at_least(2)], ItemLevel(), ApproxDP(1.0, 1e-6), "auto", False, ["crossed counters"], 0.5),
    ([AnyWindow(6).at_least(1, 3)], ItemAddRemove(), PureDP(1.0), "auto", False, ["crossed counters"], 0.5),
    ([AnyWindow(12).at_least(1)], ItemPerPeriod(3), ApproxDP(1.0, 1e-6), "crossed-counters", False, None, 0.05),
    ([AnyWindow(4).at_least(1)], ItemAddRemove(), ApproxDP(1.0, 1e-6), "counters", False, ["starts"], 0.5),
    ([AnyWindow(4).at_least(1)], ItemPerPeriod(2), PureDP(1.0), "tree", False, ["starts"], 0.2),
    ([AnyWindow(4).at_least(1)], ItemAddRemove(), ApproxDP(1.0, 1e-6), "paper", False, ["counters"], 0.05),
    ([Rolling(7).at_least(1), AnyWindow().at_least(2)], EventLevel(), ApproxDP(1.0, 1e-6), "paper", False, None, 0.05),
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
    path = tmp_path / "plan.npz"
    path.write_bytes(export_plan(plan))
    assert not any("entry" in name for name in np.load(path).files)
    judged = third_party(path, unit, 1 if singleton else 2, 24)
    assert shapes is None or [one["shape"] for one in judged] == shapes
    for one, allotment in zip(judged, plan.allotments, strict=True):
        assert one["certified"] == allotment.measurement.design.sensitivity
        assert least * one["certified"] <= one["reached"] <= one["certified"]
        assert one["bias"] <= one["bias_bound"] + 1e-6


def test_a_lie_about_a_weight_is_found_in_the_factors(tmp_path: Path) -> None:
    plan = planned([AnyWindow().at_least(1)], ItemAddRemove(), PureDP(1.0), "crossed-counters", 30)
    (tmp_path / "plan.npz").write_bytes(export_plan(plan))
    arrays = dict(np.load(tmp_path / "plan.npz"))
    arrays["0/start_weights_30_30"] = arrays["0/start_weights_30_30"] * 2
    np.savez(tmp_path / "lie.npz", **arrays)
    (one,) = third_party(tmp_path / "lie.npz", ItemAddRemove(), 1, 12)
    assert one["reached"] > one["certified"]


def test_what_has_no_factors_is_refused_at_long_horizons() -> None:
    plan = planned([Rolling(5).at_least(1)], EventLevel(), ApproxDP(1.0, 1e-6), "filter", 1100)
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
