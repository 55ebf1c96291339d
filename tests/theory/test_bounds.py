"""Growth laws against each other and against forecasts, and the table that puts them beside figures."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest

import dpwindows as dw
from dpwindows.ask.queries import AnyWindow, Rolling
from dpwindows.errors import InputError
from dpwindows.kernel.accounting import LAPLACE
from dpwindows.reading.noise_moments import noise_variance
from dpwindows.strategies.paper.bounds import Touched
from dpwindows.strategies.paper.composition import part_noise
from dpwindows.strategies.paper.range_tree import RangeTree
from dpwindows.strategies.search.limits import limit
from dpwindows.theory import bounds
from dpwindows.theory.bounds import LOWER, UPPER, Setting
from dpwindows.theory.table import errors, families, lower, row, table
from tests.end_to_end.command_line import run
from tests.plans import plan_of
from tests.strategies.test_paper import problem

HUGE = Setting(10**9, 10**4, 7, 0.1)


@pytest.mark.parametrize("cell", list(UPPER), ids=lambda cell: "-".join(cell))
@pytest.mark.parametrize("delta", [0.0, 1e-9])
@pytest.mark.parametrize("singleton", [False, True])
def test_no_upper_bound_is_below_its_lower_bound(
    cell: tuple[bounds.Family, bounds.Level], delta: float, singleton: bool
) -> None:
    for steps, length, k in product((10**3, 10**6, 10**9), (10, 1000), (1, 5, 50)):
        at = Setting(steps, length, k, 0.1, delta, singleton)
        # Laws are up to constants: 4 allows for them, the logarithms of the upper bounds for the rest.
        assert LOWER[cell](at).value <= 4 * UPPER[cell](at).value


def test_error_6_only_one_order_of_the_four_rows_is_possible() -> None:
    """Item level, any windows: each of the other 23 orders puts an upper bound below the lower bound of its row."""
    rows = [replace(HUGE, delta=delta, singleton=singleton) for singleton in (False, True) for delta in (0.0, 1e-9)]
    # Without logarithms, which differ between the rows by little.
    upper = [
        HUGE.steps / HUGE.epsilon,
        math.sqrt(HUGE.steps) / HUGE.epsilon,
        math.sqrt(HUGE.steps / HUGE.epsilon),
        (HUGE.steps / HUGE.epsilon**2) ** (1 / 3),
    ]
    lower = [bounds.any_item_lower(replace(at, k=1)).value for at in rows]
    lower[1] /= math.sqrt(-math.log(1e-9))
    lower[3] /= (-math.log(1e-9)) ** (1 / 3)
    possible = [
        order for order in permutations(range(4)) if all(upper[i] >= lower[j] * 0.99 for j, i in enumerate(order))
    ]
    assert possible == [(0, 1, 2, 3)]
    for at, value in zip(rows, upper, strict=True):
        logarithms = bounds.levels(at.steps) ** 1.5 * max(1.0, -math.log(at.delta or 0.5))
        assert value <= bounds.any_item_upper(at).value <= value * logarithms


def papers_largest_error(steps: int, epsilon: float, delta: float, *, singleton: bool) -> float:
    """Item level, any windows: the paper's accounting of a tree for every start, at the best size of groups.

    The noise is what `paper` takes; only the windows are not listed, so that horizons may be long.
    """

    def at(size: int) -> float:
        starts = -(-steps // size)
        tree = RangeTree(starts)
        touched = Touched(starts, (2,), tree.levels, starts * tree.rows)
        budget = dw.ApproxDP(epsilon, delta) if delta else dw.PureDP(epsilon)
        noise = part_noise(problem(AnyWindow(), dw.ItemLevel(), starts, budget=budget), touched)
        assert noise is not None
        return math.hypot(math.sqrt(noise_variance(LAPLACE, noise.scale) * tree.levels), size if size > 1 else 0)

    return min(map(at, {round(1.05**power) for power in range(500) if 1.05**power <= steps} if singleton else {1}))


def test_the_accounting_is_that_of_the_release() -> None:
    for delta, singleton in product((0.0, 1e-6), (False, True)):
        found = errors(AnyWindow(), "item", Setting(256, 1, 1, 1.0, delta, singleton), "paper")
        expected = papers_largest_error(256, 1.0, delta, singleton=singleton)
        # The planner takes the size of least rms, and windows of less than a group have more bias than the size.
        assert found.max == pytest.approx(expected, rel=1e-9) if not singleton else 1 < found.max / expected < 2


@pytest.mark.parametrize(
    ("delta", "singleton", "exponent", "logarithms"),
    [(0.0, False, 1, 1.5), (1e-6, False, 1 / 2, 1.5), (0.0, True, 1 / 2, 0.75), (1e-6, True, 1 / 3, 1.0)],
)
def test_error_6_by_the_papers_own_accounting(
    delta: float, singleton: bool, exponent: float, logarithms: float
) -> None:
    """Its errors grow with T as the corrected rows say, times the power of log T in the law."""
    horizons = [10**7, 10**9, 10**11]
    found = [papers_largest_error(steps, 1.0, delta, singleton=singleton) for steps in horizons]
    logs = [logarithms * math.log(math.log2(steps)) for steps in horizons]
    slope = np.polyfit(np.log(horizons), np.log(found) - logs, 1)[0]
    assert slope == pytest.approx(exponent, rel=0.1)


def ratio(law: bounds.Law, **changed: float) -> float:
    """How many times its value at HUGE a law has with some parameters changed."""
    return law(replace(HUGE, **changed)).value / law(HUGE).value  # type: ignore[arg-type]


def test_what_each_law_depends_on() -> None:
    assert ratio(bounds.cumulative_upper, k=70) == 1
    assert ratio(bounds.rolling_event_upper, steps=10**15) == 1
    assert ratio(bounds.rolling_event_upper, k=14) == 2
    assert ratio(bounds.rolling_event_upper, length=10**8) == pytest.approx((28 / 15) ** 1.5)
    assert ratio(bounds.any_event_upper, steps=10**18) == pytest.approx(8, rel=0.01)
    assert ratio(bounds.rolling_item_upper, steps=4 * 10**9) == pytest.approx(4)
    assert ratio(bounds.any_item_upper, k=70) == 1
    assert ratio(bounds.any_item_lower, steps=4 * 10**9) == 4
    assert ratio(bounds.rolling_item_lower, steps=4 * 10**9) == 4
    assert ratio(bounds.rolling_item_lower, k=28) == 4
    approximate = replace(HUGE, delta=1e-9)
    four = bounds.rolling_item_lower(replace(approximate, k=28)).value
    assert four / bounds.rolling_item_lower(approximate).value == 2
    law = bounds.rolling_item_upper
    assert law(replace(approximate, steps=4 * 10**9)).value / law(approximate).value == pytest.approx(2, rel=0.05)
    assert "W^(1/4)" in bounds.rolling_event_lower(replace(HUGE, singleton=True)).formula
    assert "W" not in bounds.any_event_lower(HUGE).formula


@pytest.mark.parametrize(
    ("changed", "message"),
    [({"steps": 0}, "steps must be at least 1"), ({"epsilon": 0.0}, "epsilon"), ({"delta": 1.0}, "delta")],
)
def test_settings_are_checked(changed: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(HUGE, **changed)  # type: ignore[arg-type]


# --- The table --------------------------------------------------------------------------------------------------------


def test_rows_are_the_plans_own_forecasts() -> None:
    at = Setting(20, 5, 2, 1.0, 1e-6)
    found = row("rolling", "event", at)
    plan = plan_of(Rolling(5).at_least(2), steps=20, unit=dw.EventLevel(), budget=dw.ApproxDP(1.0, 1e-6))
    (entry,) = plan.forecast()
    assert (found.ours.rms, found.ours.max, found.ours.strategy) == (entry.rms, entry.max, entry.strategy)
    assert found.lower is not None
    assert found.lower.value == pytest.approx(entry.limit)
    assert found.ratio == pytest.approx(entry.ratio_to_limit)
    assert found.paper.strategy == "paper"


def test_errors_of_grouped_steps_include_their_bias() -> None:
    at = Setting(60, 5, 1, 1.0, 0.0, singleton=True)
    found = errors(AnyWindow(), "item", at, "auto")
    plan = plan_of(AnyWindow().at_least(1), steps=60, unit=dw.ItemLevel(), budget=dw.PureDP(1.0), singleton=True)
    (allotment,) = plan.allotments
    assert allotment.bias_bounds().max() > 0
    assert found.rms > plan.forecast()[0].rms
    squares = allotment.std_errors(allotment.query.measures[0]) ** 2 + allotment.bias_bounds() ** 2
    assert found.max == pytest.approx(math.sqrt(squares.max()))


def test_every_cell_is_there_once() -> None:
    rows = list(table(5, [2, 3], [2]))
    assert len({(found.window, found.unit, found.at) for found in rows}) == len(rows) == 4 * 8
    for found in rows:
        assert 0 < found.ours.rms <= found.ours.max
        assert found.ours.rms <= found.paper.rms
        if found.at.pure:
            assert found.lower is not None
            assert found.lower.of == "largest"
        else:
            assert (found.lower is None) == found.at.singleton
        # Laplace noise may undercut what Gaussian noise needs.
        assert found.ratio is None or found.ratio > 0.5
    assert len(list(table(4, [2], [1], delta=0))) == 12


def test_families_of_too_many_windows_are_left_out() -> None:
    assert [family for family, _ in families(3161, [5])] == ["cumulative", "rolling", "any"]
    assert [family for family, _ in families(3162, [5])] == ["cumulative", "rolling"]
    assert [family for family, _ in families(5_000_001, [5])] == []


def test_gaussian_bounds_of_any_windows_are_their_own_or_those_of_parts_of_them() -> None:
    """Whichever is the larger: over a long range a part of them says more of the largest error."""
    year, long = (lower("any", "item", Setting(steps, 5, 1, 1.0, 1e-6)) for steps in (40, 600))
    assert year is not None
    assert long is not None
    assert (year.of, long.of) == ("rms", "largest")
    assert 0 < year.value < long.value
    exact = row("any", "item", Setting(6, 3, 1, 1.0, 1e-6)).lower
    assert exact is not None
    assert exact.of == "rms"
    known = limit(AnyWindow(), 1, dw.ItemLevel(), 6)
    assert known is not None
    assert exact.value / known == pytest.approx(4.2247, rel=1e-3)


@pytest.mark.slow
def test_the_command_prints_the_table() -> None:
    asked = ("theory", "table", "--steps", "6", "--window", "3", "--window", "rolling:4", "--k", "2")
    shown = run(*asked)
    assert shown.code == 0
    for text in ("cumulative, at least 2", "rolling:3, at least 2", "rolling:4", "any, at least 2", "singleton"):
        assert text in shown.out
    found = json.loads(run(*asked, "--json", "--epsilon", "0.5", "--delta", "0").out)
    assert (found["steps"], found["windows"], found["k"], found["epsilon"]) == (6, [3, 4], [2], 0.5)
    assert len(found["cells"]) == 4 * 4
    first = found["cells"][0]
    assert first["window"] == "cumulative"
    assert first["paper_over_ours"] == pytest.approx(first["paper_rms"] / first["rms"])
    assert first["ratio_to_lower"] == pytest.approx(first["max"] / first["lower"])
    assert first["lower_law"] == "log(T) / eps"
    assert np.isfinite([cell["rms"] for cell in found["cells"]]).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--steps", "0", "--window", "3"), "--steps must be at least 1"),
        (("--steps", "9", "--window", "soon"), "--window must be the length"),
        (("--steps", "9", "--window", "3", "--k", "0"), "k must be at least 1"),
        (("--steps", "9", "--window", "3", "--epsilon", "0"), "epsilon"),
        (("--steps", "9"), "--window"),
    ],
)
def test_what_the_command_refuses(arguments: tuple[str, ...], message: str) -> None:
    outcome = run("theory", "table", *arguments)
    assert outcome.code == 2
    assert message in outcome.err
