"""Window counts as sums over signed counts, in pure arithmetic."""

from __future__ import annotations

import random
from collections import defaultdict

import numpy as np
import pytest

from dpwindows.ask.zones import Int64Array
from dpwindows.count.answers import ExactAnswers
from dpwindows.errors import InputError
from tests.brute_force import any_window, cumulative, rolling

Signed = tuple[Int64Array, Int64Array, Int64Array]


def signed_counts(log: list[tuple[int, int, int]], k: int, steps: int, rng: random.Random) -> Signed:
    """The changes of every item's k-th most recent occurrence, found by walking through the steps; shuffled."""
    deltas: dict[tuple[int, int], int] = defaultdict(int)
    for item in {item for item, _, _ in log}:
        occurrences: list[int] = []
        before = 0
        for step in range(1, steps + 1):
            occurrences += [step] * sum(count for other, at, count in log if other == item and at == step)
            now = occurrences[-k] if len(occurrences) >= k else 0
            if now != before:
                deltas[step, now] += 1
                deltas[step, before] -= 1
            before = now
    rows = [(step, recency, delta) for (step, recency), delta in deltas.items() if recency and delta]
    rng.shuffle(rows)
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return table[:, 0], table[:, 1], table[:, 2]


@pytest.mark.parametrize("seed", range(25))
def test_every_family_is_a_sum_of_signed_counts(seed: int) -> None:
    rng = random.Random(seed)
    steps = rng.choice([1, 2, 7, 40])
    log = [(rng.randrange(6), rng.randint(1, steps), rng.choice([1, 1, 3, 12])) for _ in range(rng.randrange(60))]
    thresholds = [1, 2, 5, 10]
    answers = ExactAnswers(steps, {k: signed_counts(log, k, steps, rng) for k in thresholds})
    assert answers.steps == steps
    assert answers.thresholds == (1, 2, 5, 10)
    for k in thresholds:
        assert answers.cumulative(k).tolist() == cumulative(log, k, steps)
        for length in (1, 2, 6, steps, steps + 5):
            assert answers.rolling(k, length).tolist() == rolling(log, k, steps, length)
        wanted = np.array(any_window(log, k, steps))
        assert np.array_equal(answers.windows(k, 1, steps, 1, steps), wanted)
        for _ in range(6):
            a, b = rng.randint(1, steps), rng.randint(1, steps)
            starts, ends = rng.randint(1, steps - a + 1), rng.randint(1, steps - b + 1)
            block = answers.windows(k, a, starts, b, ends)
            assert np.array_equal(block, wanted[a - 1 : a - 1 + starts, b - 1 : b - 1 + ends])


def test_no_events() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    answers = ExactAnswers(3, {1: (nothing, nothing, nothing)})
    assert answers.cumulative(1).tolist() == [0, 0, 0]
    assert answers.rolling(1, 2).tolist() == [0, 0, 0]
    assert answers.windows(1, 1, 2, 2, 2).tolist() == [[0, 0], [0, 0]]


def test_long_horizons_need_no_dense_table() -> None:
    """A million steps: a table of steps x steps would be 8 TB."""
    steps = 1_000_000
    step = np.arange(1, steps + 1, dtype=np.int64)
    gained = (step, step, np.ones(steps, dtype=np.int64))
    answers = ExactAnswers(steps, {1: gained})  # a new item at every step, none seen again
    assert np.array_equal(answers.cumulative(1), step)
    assert np.array_equal(answers.rolling(1, 1000), np.minimum(step, 1000))
    assert answers.windows(1, 500_000, 2, 500_001, 2).tolist() == [[2, 3], [1, 2]]


def test_counts_are_exact_beyond_doubles() -> None:
    one = np.ones(1, dtype=np.int64)
    answers = ExactAnswers(2, {1: (one, one, one * (2**60 + 1))})
    assert answers.cumulative(1).tolist() == [2**60 + 1] * 2
    assert int(answers.windows(1, 1, 1, 2, 1)[0, 0]) == 2**60 + 1


@pytest.mark.parametrize("block", [(0, 1, 1, 1), (1, 4, 1, 1), (1, 1, 0, 1), (1, 1, 2, 3), (1, 0, 1, 1), (3, -1, 1, 1)])
def test_windows_outside_the_horizon_are_refused(block: tuple[int, int, int, int]) -> None:
    nothing = np.zeros(0, dtype=np.int64)
    with pytest.raises(InputError, match="within steps 1 to 3"):
        ExactAnswers(3, {1: (nothing, nothing, nothing)}).windows(1, *block)


def test_what_was_not_counted_is_refused() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    answers = ExactAnswers(3, {2: (nothing, nothing, nothing)})
    with pytest.raises(InputError, match=r"counted for thresholds \(2,\), not for k=1"):
        answers.cumulative(1)
    with pytest.raises(InputError, match="at least 1, got 0"):
        answers.rolling(2, 0)


@pytest.mark.parametrize(("step", "recency"), [(4, 1), (1, 2), (1, 0)])
def test_impossible_signed_counts_are_refused(step: int, recency: int) -> None:
    arrays = tuple(np.array([value], dtype=np.int64) for value in (step, recency, 1))
    with pytest.raises(ValueError, match="1 <= recency <= step <= 3"):
        ExactAnswers(3, {1: arrays})
