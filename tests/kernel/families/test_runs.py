"""Runs of rolling counts: bounds against every neighbour on small horizons, and what the proofs rest on."""

from __future__ import annotations

import numpy as np
import pytest

from dpwindows.ask.queries import Rolling
from dpwindows.kernel.families.runs import (
    affected_ends,
    most_signed_runs,
    most_starts,
)
from tests.kernel.item_changes import rolling_changes
from tests.kernel.truth import event_changes
from tests.single_item import Ints, TableAnswers, all_logs, cells, runs, squares

# --- What a change within a period looks like -------------------------------------------------------------------------


SPANS = [(1, w, n) for w in (1, 2, 3, 4) for n in (1, 2, 3, 4, 5, 6)] + [(1, 5, 7), (2, 1, 4), (3, 2, 3)]
SPANS += [(2, w, n) for w in (2, 3) for n in (1, 2, 3, 4)] + [(3, 3, 1), (3, 3, 2), (2, 4, 2)]


@pytest.mark.parametrize(("k", "length", "span"), SPANS)
def test_runs_and_signs_of_a_change_within_a_period(k: int, length: int, span: int) -> None:
    reached = 0
    for changes in rolling_changes(length, span, k):
        ends = np.abs(np.diff(changes, axis=1, prepend=0, append=0)).sum(axis=1)
        reached = max(reached, int(ends.max()) // 2)
        if span <= length:
            middle = changes[:, span - 1 : length]
            assert not ((middle.min(axis=1) < 0) & (middle.max(axis=1) > 0)).any()
    places = affected_ends(length, span, None)
    assert reached <= most_signed_runs(k, length, span)
    if k == 1:
        assert reached == min(places, most_signed_runs(k, length, span))


def test_the_most_runs_grow_with_the_period() -> None:
    assert [most_signed_runs(1, 4, span) for span in range(1, 12)] == [1, 2, 2, 2, 2, 3, 4, 4, 4, 4, 5]
    assert [most_signed_runs(3, 9, span) for span in (1, 2, 3, 4, 10, 11, 20)] == [3, 4, 5, 6, 6, 9, 12]


# --- Parameters no planner would choose -------------------------------------------------------------------------------


def test_a_period_as_long_as_the_horizon_affects_every_end() -> None:
    for steps, length in ((9, 3), (20, 20), (20, 7)):
        for span in (steps, steps + 1, 10**6):
            assert affected_ends(length, span, steps) == steps


# --- What one neighbour changes: what the proofs rest on --------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 3])
def test_an_event_changes_rolling_counts_in_at_most_k_runs_within_the_length(k: int) -> None:
    reached = 0
    for step, change in event_changes(*((6, k) if k < 3 else (9, 1)), k):
        assert change.min() >= 0
        for length in range(1, len(change) + 1):
            series = TableAnswers(change).rolling(k, length)
            found = runs(series)
            reached = max(reached, len(found))
            assert len(found) <= k
            if found:
                assert step <= found[0][0]
                assert found[-1][1] <= step + length
            longest_first = sorted((end - first for first, end in found), reverse=True)
            assert all(n <= length - j for j, n in enumerate(longest_first))
    assert reached == k


def test_changes_of_several_thresholds_are_disjoint() -> None:
    """Event level, any windows (and so all families): a window has one old count."""
    logs = all_logs(5, 3)
    for step in range(5):
        more = logs.copy()
        more[:, step] += 1
        changes = sum(squares(more, k) - squares(logs, k) for k in (1, 2, 3, 4))
        assert np.asarray(changes).max() == 1


def test_exactly_k_changes_in_both_directions() -> None:
    """Why "exactly k" is measured as a pair: its own change has both signs and more runs."""
    logs = all_logs(6, 1)
    most = 0
    for step in range(6):
        more = logs.copy()
        more[:, step] += 1
        change: Ints = (squares(more, 1) - squares(more, 2)) - (squares(logs, 1) - squares(logs, 2))
        assert change.min() == -1
        most = max(most, *(len(runs(TableAnswers(abs(one)).rolling(1, 4))) for one in change))
    assert most > 1


@pytest.mark.parametrize("k", [1, 2, 3])
def test_an_item_starts_being_counted_at_most_k_times_in_length_plus_one_steps(k: int) -> None:
    steps, most, reached = (7, 2, 0) if k == 2 else (10, 1, 0)
    every = squares(all_logs(steps, most), k)
    for length in range(1, steps):
        series = np.unique(every[:, *cells(Rolling(length), steps)], axis=0)
        starts = np.diff(series, axis=1, prepend=0) == 1
        for first in range(steps):
            here = starts[:, first : first + length + 1].sum(axis=1)
            assert here.max() <= k
            reached = max(reached, int(here.max()))
        assert starts.sum(axis=1).max() <= most_starts(k, length, steps)
    assert reached == k
