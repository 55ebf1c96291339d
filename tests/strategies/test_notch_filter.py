"""The filter with a notch: its integers, where it applies and is taken, and the figures it buys."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpwindows.ask.counting_rule import CountingRule
from dpwindows.ask.privacy import ApproxDP, EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod
from dpwindows.ask.queries import Cumulative, Rolling
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE
from dpwindows.kernel.families import patterns
from dpwindows.kernel.maps.filters import Filter
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.rules import certify
from dpwindows.strategies import candidates, notch_filter, series_filter
from dpwindows.strategies.scoring import score
from dpwindows.strategies.search.noise_scales import unit_scale
from dpwindows.strategies.search.witnesses import with_witness
from tests.kernel.cases import case


def problem(length: int, steps: int = 365, *thresholds: int) -> Problem:
    scale = unit_scale(ApproxDP(1.0, 1e-6), GAUSSIAN)
    return Problem(Rolling(length), steps, thresholds or (1,), ItemLevel(), GAUSSIAN, scale)


@pytest.mark.quick(1)
@pytest.mark.search(1)
@pytest.mark.parametrize(("length", "error", "gain"), [(28, 45.35, 1.05), (7, 62.75, 1.07), (90, 33.5, 1.03)])
def test_the_error_over_a_year(length: int, error: float, gain: float) -> None:
    found, other = (one.design(problem(length)) for one in (notch_filter, series_filter))
    assert found is not None
    assert other is not None
    found, other = with_witness(found), with_witness(other)
    assert 0.99 * error < score(found) <= error
    assert score(other) >= gain * score(found)
    assert candidates(problem(length))[0].strategy == notch_filter.NAME


@pytest.mark.search(3)
@pytest.mark.parametrize(("length", "steps"), [(2, 24), (5, 60), (20, 60), (12, 150), (64, 192)])
def test_where_the_filter_is_not_asked_it_errs_more(length: int, steps: int) -> None:
    asked = problem(length, steps)
    assert notch_filter.outdoes(asked)
    names = [design.strategy for design in candidates(asked)]
    assert names[0] == notch_filter.NAME
    assert series_filter.NAME not in names
    assert score(candidates(asked, series_filter.NAME)[0]) >= 1.02 * score(candidates(asked)[0])


def test_it_is_for_distinct_items_that_change_over_many_windows() -> None:
    asked = problem(7)
    others = [
        replace(asked, unit=EventLevel()),
        replace(asked, unit=ItemAddRemove()),
        replace(asked, unit=ItemPerPeriod(30)),
        replace(asked, law=LAPLACE),
        replace(asked, window=Cumulative()),
        replace(asked, rule=CountingRule(max_runs=5)),
        problem(7, 365, 2),
        problem(7, 365, 1, 3),
        problem(1),
        problem(129),
        problem(7, 13),
    ]
    for other in others:
        assert notch_filter.design(other) is None
        assert not notch_filter.outdoes(other)
    # A few windows: either may be better.
    assert notch_filter.design(problem(7, 14)) is not None
    assert not notch_filter.outdoes(problem(7, 14))
    # A wave leaves too much over at so many lags.
    assert not notch_filter.outdoes(problem(7, 12_000))


@pytest.mark.parametrize("length", [2, 4, 28, 100])
def test_its_taps_sum_to_what_makes_errors_bounded(length: int) -> None:
    """A filter that let nothing of a constant pass could not be inverted for ever; and all that matters is there."""
    taps = notch_filter.integer_taps(length, 2000, 24)
    assert taps[0] == 1 << 24
    assert sum(taps) > 0
    assert len(taps) < 40 * length
    assert np.abs(taps[-1]) < 1 << 4
    for bits in (12, 20):
        coarse = np.array(notch_filter.integer_taps(length, 2000, bits))
        assert np.abs(coarse - np.array(taps[: len(coarse)]) / 2.0 ** (24 - bits)).max() <= 0.5001


def test_its_bound_is_that_of_a_wave(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it the filter would have to pay for more than it costs."""
    taps = notch_filter.integer_taps(21, 210, 24)
    asked = case(Rolling(21), Filter(taps), 210, (1,), ItemLevel())
    tight, _ = certify(asked)
    monkeypatch.setattr(patterns, "waves_bound", lambda *_: None)
    assert certify(asked)[0] > 1.1 * tight


def test_a_period_that_is_nearly_all_of_the_range_is_charged_for_all_of_it() -> None:
    """One step more than the period is no cliff, and of many more the filter for a period errs less."""
    whole, period = problem(7, 120), replace(problem(7, 120), unit=ItemPerPeriod(110))
    charged = [notch_filter.design(asked) for asked in (whole, period)]
    assert charged[0] is not None
    assert charged[1] is not None
    assert with_witness(charged[0]).sensitivity == with_witness(charged[1]).sensitivity
    assert candidates(period)[0].strategy == notch_filter.NAME
    assert notch_filter.design(replace(period, unit=ItemPerPeriod(90))) is None
    assert series_filter.NAME in [design.strategy for design in candidates(period)]
