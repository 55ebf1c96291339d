"""The logarithmic counter: its taps and its bound against their formulas, and lattices where a tap would be a guess."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from dpwindows import reading
from dpwindows.ask.privacy import EventLevel
from dpwindows.ask.queries import Cumulative
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.advice import from_witness
from dpwindows.kernel.maps.endless_counter import EndlessCounter, _taps
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.rules import Case, certify


def test_rows_are_the_same_on_the_same_lattice() -> None:
    one, same, other = EndlessCounter(20), EndlessCounter(20), EndlessCounter(21)
    one.taps(100)
    assert one == same
    assert hash(one) == hash(same)
    assert one not in (other, 20, None)


def test_a_lattice_finer_than_the_arithmetic_is_refused() -> None:
    """A tap that rounding might have moved would make the bound one for another map."""
    with pytest.raises(ValueError, match="could not be told from an integer"):
        _taps(1000, 2)
    for bits in (-1, 63):
        with pytest.raises(ValueError, match="resolution must be positive"):
            EndlessCounter(bits)
    assert EndlessCounter(62).taps(1)[0] == 1 << 62


def test_a_counter_without_end_stays_what_was_certified() -> None:
    """A regression: its taps were kept beside a number that could be set anew."""
    counter = EndlessCounter(20)
    counter.taps(8)
    with pytest.raises(FrozenInstanceError):
        counter.bits = 2  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        counter.taps(8)[0] = 0


def test_the_bound_for_unlimited_counters_holds_for_longer_columns_than_it_adds_up() -> None:
    rows = EndlessCounter(20)
    squares = np.cumsum(rows.taps(60_000).astype(object) ** 2)
    assert int(squares[-1]) <= rows.column
    # What is left for all later steps together is about what the integral says.
    left = (rows.column - int(squares[16383])) / 4**20
    assert left == pytest.approx(np.log(500) ** 3 / np.pi / 2 / np.log(16883) ** 2, rel=0.04)
    cumulative = Problem(Cumulative(), 5, (1, 2), EventLevel(), GAUSSIAN, 1.0)
    assert certify(Case(cumulative, rows, None, from_witness({})))[0] == 4 * rows.column


def test_unlimited_taps_are_those_of_the_formula() -> None:
    taps = EndlessCounter(30).taps(3000)
    lags = np.arange(1, 3000)
    root = np.concatenate([[1.0], np.cumprod((lags - 0.5) / lags)])
    formula = root * (np.log(500) / np.log(np.arange(3000) + 500)) ** 1.5 * 2.0**30
    assert taps == pytest.approx(formula, abs=1.01)
    assert (taps <= formula + 1e-4).all()
    assert (EndlessCounter(30).taps(100) == taps[:100]).all()


def test_the_error_of_an_unlimited_stream_grows_like_a_power_of_the_logarithm() -> None:
    counter = reading.step_reader(EndlessCounter(24))
    early, late = np.sqrt(counter.moment(1 << 16, 2)[[255, 65535]])
    # From 2^8 to 2^16 steps the logarithm doubles; noise that is merely summed up would grow 16-fold.
    assert 1 < late / early < 2 ** (5 / 4)
