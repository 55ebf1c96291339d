"""What streams and releases measure, pinned: taps, weights, bounds, names and scales of a spread of cells.

A stream must go on with the integers it began with, and a plan must stay what it was when files are moved. The pinned
values are those of `python -m tests.stream.test_integers`, which writes them anew where a change is meant.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest

from dpwindows.ask.privacy import ZCDP, ApproxDP, Budget, EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod, PureDP
from dpwindows.ask.queries import AnyWindow, Cumulative, Query, Rolling, WindowFamily
from dpwindows.ask.timeline import Timeline
from dpwindows.errors import InputError
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE
from dpwindows.kernel.designs import Design
from dpwindows.kernel.measure import Measurement
from dpwindows.kernel.problem import Criterion, Problem
from dpwindows.plan.plan import Plan
from dpwindows.plan.planned import Planned
from dpwindows.plan.stored_designs import Arrays, stored
from dpwindows.plan.stream_plan import StreamPlan
from dpwindows.strategies import BATCH, STREAM, candidates, stream_candidates
from dpwindows.strategies.scoring import score

AnyDesign = TypeVar("AnyDesign", bound=Design)
PINNED = Path(__file__).parents[1] / "data" / "stream-integers.json"
STEPS = 20
WINDOWS: tuple[WindowFamily, ...] = (Cumulative(), Rolling(7), AnyWindow(5), AnyWindow())
UNITS = (EventLevel(), ItemLevel(), ItemAddRemove(), ItemPerPeriod(3))
BUDGETS: tuple[Budget, ...] = (PureDP(1.0), ApproxDP(1.0, 1e-6), ZCDP(0.25))


def problems() -> Iterator[tuple[str, Problem, int | None]]:
    """Every window, unit and law with a name, with a horizon and, where it can be, without."""
    kinds = itertools.product(WINDOWS, UNITS, (GAUSSIAN, LAPLACE), ((1,), (1, 3)), (STEPS, None))
    for window, unit, law, thresholds, horizon in kinds:
        criterion: Criterion = "max" if thresholds == (1, 3) else "rms"
        problem = Problem(window, horizon or 48, thresholds, unit, law, 1.0, criterion, bits=16)
        yield f"{window}, {unit.name}, {law}, {thresholds}, {horizon}", problem, horizon


def _integers(arrays: Arrays) -> dict[str, list[Any]]:
    return {name: values.ravel().tolist() for name, values in arrays.items()}


def of_stream(problem: Problem, horizon: int | None) -> list[Any]:
    """Every causal design of a problem, best first; nothing where it needs a horizon."""
    found: list[Any] = []
    for design in _by_name(STREAM, lambda name: stream_candidates(problem, horizon, name)):
        arrays: Arrays = {}
        shape = stored(design.shape, arrays, "shape")
        found.append([design.strategy, str(design.sensitivity), design.moved, shape, _integers(arrays)])
    return found


def of_batch(problem: Problem) -> list[Any]:
    """Every batch design of a problem, best first."""
    designs = _by_name(BATCH, lambda name: candidates(problem, name))
    return [[design.strategy, str(design.sensitivity), design.moved, design.rows] for design in designs]


def _by_name(names: Iterable[str], asked: Callable[[str], Sequence[AnyDesign]]) -> list[AnyDesign]:
    """What every strategy has that is asked for by name, also those that another one always outdoes."""
    found: list[AnyDesign] = []
    for name in names:
        with suppress(InputError):
            found += asked(name)
    return sorted(found, key=score)


def of_plans() -> Iterator[tuple[str, Any]]:
    """Whole plans of streams and of releases: scales, forecasts and what a stream stores."""
    asked: list[Query | WindowFamily] = [Cumulative().at_least(1, 2), Rolling(7).exactly(1), AnyWindow(4)]
    for budget, unit in itertools.product(BUDGETS, UNITS):
        batch = Plan(asked, timeline=Timeline.of_steps(STEPS), unit=unit, budget=budget)
        yield f"release, {unit.name}, {budget}", [_forecast(batch)]
        for horizon in (STEPS, None) if isinstance(unit, (EventLevel, ItemPerPeriod)) else (STEPS,):
            plan = StreamPlan(asked, unit=unit, budget=budget, horizon=horizon)
            entries = [_measured(measurement) for measurement in plan.measurements]
            yield f"stream, {unit.name}, {budget}, {horizon}", [_forecast(plan), entries]


def _measured(measurement: Measurement) -> list[Any]:
    """How a window family is measured; long rows are told by their first numbers and their sum."""
    design, arrays = measurement.design, dict[str, Any]()
    shape = stored(design.shape, arrays, "shape")
    short = {name: [*row[:8], len(row), sum(row)] for name, row in _integers(arrays).items()}
    facts = [design.strategy, str(design.sensitivity), design.moved, design.proof]
    return [measurement.law, measurement.scale.hex(), *facts, shape, short]


def _forecast(plan: Planned) -> list[Any]:
    return [
        [found.window, found.measure, found.k, found.strategy, found.noise, found.rms, found.max, found.half_width]
        for found in plan.forecast()
    ]


def streams() -> dict[str, Any]:
    """What streams can measure, by cell."""
    return {name: of_stream(problem, horizon) for name, problem, horizon in problems()}


def releases() -> dict[str, Any]:
    """What releases can measure, by cell."""
    return {name: of_batch(problem) for name, problem, horizon in problems() if horizon is not None}


def plans() -> dict[str, Any]:
    """Plans of both, by name."""
    return dict(of_plans())


PARTS = {part.__name__: part for part in (streams, releases, plans)}


def require_same(found: Any, pinned: Any, where: str) -> None:
    """Equal, errors to a part in a billion: these are worked out by decoders, whose last bits differ by machine."""
    if isinstance(pinned, dict):
        assert found.keys() == pinned.keys(), where
        for name, value in pinned.items():
            require_same(found[name], value, f"{where}: {name}")
    elif isinstance(pinned, list):
        assert len(found) == len(pinned), where
        for index, value in enumerate(pinned):
            require_same(found[index], value, f"{where}: {index}")
    elif isinstance(pinned, float):
        assert found == pytest.approx(pinned, rel=1e-9), where
    else:
        assert found == pinned, where


@pytest.mark.slow
@pytest.mark.parametrize("part", ["streams", "releases", pytest.param("plans", marks=pytest.mark.slow)])
def test_what_is_measured_is_what_was_pinned(part: str) -> None:
    found = json.loads(json.dumps(PARTS[part]()))
    require_same(found, json.loads(PINNED.read_text(encoding="utf-8"))[part], part)


if __name__ == "__main__":
    lines = (
        f"{json.dumps(part)}: {{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in cells.items()) + "\n}"
        for part, cells in ((name, found()) for name, found in PARTS.items())
    )
    PINNED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
