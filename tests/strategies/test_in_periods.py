"""Limits of tumbling counts and of counts to date: against the best noise for all changes of short logs."""

from __future__ import annotations

import pytest

from dpwindows.ask.privacy import EventLevel, ItemLevel, ItemPerPeriod, Unit
from dpwindows.ask.queries import ToDate, Tumbling
from dpwindows.strategies.in_periods import limit
from tests.strategies.search.test_limits import changes, least_error

STEPS = 6


@pytest.mark.parametrize("span", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("family", [Tumbling, ToDate])
def test_no_limit_within_a_period_is_above_the_best_noise(
    family: type[Tumbling] | type[ToDate], size: int, span: int
) -> None:
    unit = ItemPerPeriod(span)
    _, upper = least_error(changes(family(size), 1, unit, STEPS))
    found = limit(family(size), 1, unit, STEPS)
    assert found is not None
    assert (0.97 if family is Tumbling else 0.7) * upper < found <= upper * (1 + 1e-9)


def test_limits_of_periods_grow_with_the_span() -> None:
    for window in (Tumbling(7), ToDate(7)):
        units: list[Unit] = [EventLevel(), *(ItemPerPeriod(span) for span in (2, 14, 40, 400)), ItemLevel()]
        found = [limit(window, 1, unit, 365) or 0.0 for unit in units]
        assert found == sorted(found)
        assert found[3] > 1.3 * found[0]
    assert (limit(Tumbling(2), 1, ItemPerPeriod(2000), 20_000) or 0) > 20
