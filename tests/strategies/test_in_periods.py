"""Limits of tumbling counts and of counts to date: against the best noise for all changes of short logs."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from dpwindows.ask.privacy import EventLevel, ItemLevel, ItemPerPeriod, Unit
from dpwindows.ask.queries import PeriodFamily, ToDate, Tumbling
from dpwindows.kernel.maps.integer_maps import FloatArray
from dpwindows.strategies.in_periods import limit
from tests.strategies.search.test_limits import least_error

STEPS = 6


def answers(log: tuple[int, ...], window: PeriodFamily, size: int) -> list[int]:
    """Of one item: whether it occurs in each period, or in each up to every step of it."""
    periods = [log[start : start + size] for start in range(0, STEPS, size)]
    if isinstance(window, Tumbling):
        return [int(any(period)) for period in periods]
    return [int(any(period[: place + 1])) for period in periods for place in range(len(period))]


def changes(window: PeriodFamily, size: int, span: int) -> FloatArray:
    """All changes of logs of one item that differ within `span` steps."""
    found = set()
    for log in product((0, 1), repeat=STEPS):
        for start in range(STEPS - span + 1):
            for inside in product((0, 1), repeat=span):
                other = (*log[:start], *inside, *log[start + span :])
                found.add(tuple(np.subtract(answers(log, window, size), answers(other, window, size)).tolist()))
    return np.array(sorted(change for change in found if any(change)), dtype=np.float64)


@pytest.mark.parametrize("span", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("family", [Tumbling, ToDate])
def test_no_limit_within_a_period_is_above_the_best_noise(
    family: type[Tumbling] | type[ToDate], size: int, span: int
) -> None:
    _, upper = least_error(changes(family(size), size, span))
    found = limit(family(size), 1, ItemPerPeriod(span), STEPS)
    assert found is not None
    assert (0.97 if family is Tumbling else 0.7) * upper < found <= upper * (1 + 1e-9)


def test_limits_of_periods_grow_with_the_span() -> None:
    for window in (Tumbling(7), ToDate(7)):
        units: list[Unit] = [EventLevel(), *(ItemPerPeriod(span) for span in (2, 14, 40, 400)), ItemLevel()]
        found = [limit(window, 1, unit, 365) or 0.0 for unit in units]
        assert found == sorted(found)
        assert found[3] > 1.3 * found[0]
    assert (limit(Tumbling(2), 1, ItemPerPeriod(2000), 20_000) or 0) > 20
