"""The rows of the logarithmic counter: told apart by their lattice, and refused where a tap would be a guess."""

from __future__ import annotations

import pytest

from dpwindows.kernel.maps.endless_counter import EndlessCounter, _taps


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
