"""What messages share: shares that are neither all nor nothing are not shown as such, and one is no plural."""

from __future__ import annotations

import pytest

from dpwindows.errors import counted, percent


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (0.0, "0%"),
        (1.0, "100%"),
        (0.5, "50%"),
        (2 / 3, "66.7%"),
        (0.0345678, "3.46%"),
        (1 / 3001, "0.0333%"),
        (1e-9, "0.0000001%"),
        (3000 / 3001, "99.97%"),
        (1 - 1e-9, "99.9999999%"),
        (1 - 1e-15, "100%"),
        (1.0004, "100.04%"),
        (12.5, "1250%"),
    ],
)
def test_a_share_is_all_or_nothing_only_where_it_is(share: float, shown: str) -> None:
    assert percent(share) == shown


@pytest.mark.parametrize(("confidence", "shown"), [(0.95, "95%"), (0.975, "97.5%"), (0.9999999, "99.99999%")])
def test_a_confidence_keeps_its_figures(confidence: float, shown: str) -> None:
    assert percent(confidence, 6) == shown


def test_one_is_no_plural() -> None:
    assert [counted(number, "row") for number in (0, 1, 2, 3000)] == ["0 rows", "1 row", "2 rows", "3,000 rows"]
