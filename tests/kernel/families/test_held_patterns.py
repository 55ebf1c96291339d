"""Changes of an item that is counted as long as it is held: bounds against every such change."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dpwindows.kernel.families.held_patterns import Held, two_runs_bound
from dpwindows.kernel.families.patterns import held_bound
from dpwindows.kernel.families.signed_patterns import SignedLags
from dpwindows.strategies.search.fractional import integer_taps
from tests.kernel.item_changes import costs, item_counts
from tests.kernel.made_up import some_taps


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    ("length", "starts"), [(1, 4), (2, 2), (2, 3), (2, 6), (3, 1), (3, 4), (3, 6), (4, 3), (4, 5), (5, 6)]
)
def test_no_item_counted_once_exceeds_the_bound(length: int, starts: int) -> None:
    places = length + starts - 1
    counts = item_counts(length, starts, places)
    whole = np.unique((counts[:, None] - counts[None]).reshape(-1, places), axis=0)
    begins = [np.arange(places) >= n for n in range(places)]
    cut = [whole * (begin & ~end) for begin in begins for end in [*begins[1:], np.zeros(places, dtype=bool)]]
    changes = np.unique(np.concatenate(cut), axis=0)
    for seed in range(8):
        taps = some_taps(seed, places + 2)
        true = costs(taps, changes).max()
        for reach in (places, places - 1):
            lags = SignedLags.of(taps, reach)
            shorter = costs(taps, changes[:, :reach]).max() if reach else 0
            for memory, near in itertools.product((2, 3, places), (0, 5, places)):
                found = held_bound(lags, Held(starts, length, reach), memory, near)
                assert found >= shorter
                if memory >= places - 1 and reach == places:
                    assert found == true
            if starts <= length + 1:
                assert two_runs_bound(lags, Held(starts, length, reach)) >= shorter
        if starts <= length + 1:
            assert two_runs_bound(SignedLags.of(taps, places), Held(starts, length, places)) == true


def test_a_coarse_clock_only_loosens() -> None:
    taps = integer_taps(0.5, 0.97, 300, 12)
    lags = SignedLags.of(taps, 150)
    bounds = [held_bound(lags, Held(90, length, 150), 3, 12) for length in (30, 32, 33, 40, 61)]
    # Held for longer, changes are fewer; a clock of two steps a tick forgets at most one step.
    assert bounds[0] >= bounds[1] >= bounds[3] >= bounds[4]
    assert bounds[1] <= bounds[2] * 1.05
