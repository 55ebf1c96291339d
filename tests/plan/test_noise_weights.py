"""The weights of combinations on the noise, against decoders written out, for every strategy that plans choose from."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

import dpwindows as dw
from dpwindows import reading
from dpwindows.ask.privacy import Budget, Unit
from dpwindows.ask.queries import Measure, Query, WindowFamily
from dpwindows.ask.windows import window_steps
from dpwindows.errors import InputError
from dpwindows.kernel.designs import Design
from dpwindows.plan.plan import Plan
from dpwindows.plan.planned import Planned
from dpwindows.reading.reader import Weights
from dpwindows.strategies import BATCH, STREAM
from tests.plans import plan_of
from tests.search import SEARCHING

STEPS = 7
FAMILIES: tuple[WindowFamily | Query, ...] = (
    *(dw.Cumulative(), dw.Rolling(3), dw.AnyWindow(4), dw.AnyWindow()),
    *(dw.Tumbling(2), dw.ToDate(3)),
    Query(dw.Rolling(3), (Measure("at_least", 1), Measure("exactly", 2))),
)
UNITS: tuple[Unit, ...] = (dw.EventLevel(), dw.ItemPerPeriod(2), dw.ItemLevel(), dw.ItemAddRemove())
BUDGETS: tuple[Budget, ...] = (dw.PureDP(1.0), dw.ApproxDP(1.0, 1e-6))


def planned(name: str, *, stream: bool) -> Iterator[Design]:
    """The designs of one strategy, over all families, units and budgets that it serves."""
    for place, (family, unit) in enumerate(itertools.product(FAMILIES, UNITS)):
        # Under each kind of budget half of the pairs; a row of units begins with the other kind.
        for budget in BUDGETS if SEARCHING else BUDGETS[(place + place // len(UNITS)) % 2 :][:1]:
            try:
                plan: Planned = (
                    dw.StreamPlan(family, unit=unit, budget=budget, horizon=STEPS, strategy=name)
                    if stream
                    else Plan(family, timeline=dw.Timeline.of_steps(STEPS), unit=unit, budget=budget, strategy=name)
                )
            except InputError:
                continue
            design = plan.allotments[0].measurement.design
            yield from {id(part): part for part in map(design.at, design.problem.thresholds)}.values()


def product(one: Weights, other: Weights) -> float:
    return sum(float(values.ravel() @ other[part].ravel()) for part, values in one.items() if part in other)


def require_right(design: Design) -> None:
    """Covariances of random combinations are those of the decoder's rows."""
    first, last = window_steps(design.problem.window, design.problem.steps)
    windows = list(zip(first.tolist(), last.tolist(), strict=True))
    rows = np.stack([reading.of(design).decode(unit) for unit in np.eye(design.rows)], axis=1)
    draw = np.random.default_rng(len(windows))
    coefficients = draw.normal(size=(2, len(windows))) * (draw.random((2, len(windows))) < 0.6)
    coefficients[:, -1] = 1.0
    found = [reading.of(design).noise_weights(dict(zip(windows, line, strict=True))) for line in coefficients.tolist()]
    wanted = coefficients @ rows @ rows.T @ coefficients.T
    for i, j in ((0, 0), (0, 1), (1, 1)):
        assert product(found[i], found[j]) == pytest.approx(wanted[i, j], rel=1e-6, abs=1e-9 * wanted[0, 0])
    for window, at in ((windows[0], 0), (windows[-1], len(windows) - 1)):
        single = reading.of(design).noise_weights({window: 1.0})
        assert product(single, single) == pytest.approx(float(reading.of(design).variance()[at]), rel=1e-6)


@pytest.mark.quick(4)
@pytest.mark.parametrize("name", sorted(BATCH))
def test_of_releases(name: str) -> None:
    found = list(planned(name, stream=False))
    assert found
    for design in found:
        require_right(design)


@pytest.mark.quick(1)
@pytest.mark.parametrize("name", sorted(STREAM))
def test_of_streams(name: str) -> None:
    found = list(planned(name, stream=True))
    for design in found:
        require_right(design)


def test_of_grouped_steps_and_of_the_paper() -> None:
    timeline, budget = dw.Timeline.of_steps(24), dw.PureDP(0.1)
    grouped = Plan(dw.Cumulative(), timeline=timeline, unit=dw.ItemLevel(), budget=budget, singleton=True)
    assert grouped.allotments[0].measurement.design.strategy.startswith("compressed(")
    paper = Plan(dw.Rolling(3), timeline=timeline, unit=dw.EventLevel(), budget=budget, strategy="paper")
    for plan in (grouped, paper):
        require_right(plan.allotments[0].measurement.design)


def test_what_is_too_large_to_be_written_out_is_refused() -> None:
    plan = plan_of(dw.AnyWindow(), steps=120, unit=dw.EventLevel(), budget=dw.PureDP(1.0), strategy="paper")
    with pytest.raises(InputError, match="is worked out for at most 4,096"):
        reading.of(plan.allotments[0].measurement.design).noise_weights({(1, 1): 1.0})
