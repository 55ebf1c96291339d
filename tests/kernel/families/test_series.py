"""The series that is measured of a window family, against its definition."""

from __future__ import annotations

import numpy as np
import pytest

from dpwindows.ask.queries import Cumulative, Rolling, WindowFamily
from dpwindows.ask.windows import window_steps
from dpwindows.kernel.families.series import series
from tests.kernel.made_up import DAYS, PERIODS_OF_SPRING
from tests.single_item import HistoryAnswers, random_histories


@pytest.mark.parametrize("window", [*PERIODS_OF_SPRING, Cumulative(), Rolling(6), Rolling(DAYS + 5)], ids=str)
def test_the_series_is_what_its_windows_hold(window: WindowFamily) -> None:
    answers = HistoryAnswers(random_histories(np.random.default_rng(1), DAYS, 30, 3), DAYS)
    first, last = window_steps(window, DAYS)
    for k in (1, 2, 5):
        expected = [answers.windows(k, int(a), 1, int(b), 1)[0, 0] for a, b in zip(first, last, strict=True)]
        assert series(window, answers, k).tolist() == expected
