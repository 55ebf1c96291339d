"""What the page on accuracy forecasts is what a plan forecasts: some rows in `make test`, all in `make search`."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.strategies.search.test_choice import CELLS, CHOSEN

PAGE = Path(__file__).parents[1] / "docs" / "accuracy.md"
ROWS = {
    cells[0]: cells[1:]
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if (cells := [cell.strip() for cell in line.strip("|").split("|")])[0] in CELLS
}


def written(value: float) -> str:
    """A figure as the page writes it."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def forecast_of(name: str) -> tuple[str, str, str]:
    """Strategy, error over all that is released and the largest one, in a cell."""
    found = CELLS[name].plan().allotments[0]
    errors = [found.std_errors(measure) for measure in found.query.measures]
    typical = math.sqrt(sum(float((one**2).mean()) for one in errors) / len(errors))
    return found.measurement.design.strategy, written(typical), written(max(float(one.max()) for one in errors))


def test_every_cell_has_a_row() -> None:
    assert set(ROWS) >= set(CELLS)


@pytest.mark.slow
@pytest.mark.search
@pytest.mark.parametrize("name", CHOSEN)
def test_forecasts_are_those_of_a_plan(name: str) -> None:
    strategy, _, forecast, largest, *_ = ROWS[name]
    assert (strategy, forecast, largest) == forecast_of(name)
