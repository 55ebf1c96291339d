"""Windows of periods: exact answers against their definition, and streams against releases, integer by integer."""

from __future__ import annotations

import numpy as np
import pytest

from dpwindows.ask.calendar import Calendar
from dpwindows.ask.periods import fewest_and_most, sizes
from dpwindows.ask.privacy import EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod, Unit
from dpwindows.ask.queries import ToDate, Tumbling
from dpwindows.ask.windows import window_steps
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE, Law
from dpwindows.kernel.designs import Design, StepDesign
from dpwindows.kernel.maps.filters import Filter, Identity
from dpwindows.kernel.maps.integer_maps import CausalMap, IntegerMap
from dpwindows.kernel.maps.repeated import Repeated
from dpwindows.kernel.maps.tent_tree import TentTree
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.shapes.periods import SeriesInPeriods
from dpwindows.kernel.shapes.series import Series, series
from dpwindows.strategies import candidates, stream_candidates
from tests.histories import HistoryAnswers, random_histories

STEPS = 40
# Forty days of Berlin, the change of the clocks among them, that begin and end within a week and a month.
SPRING = Calendar("2013-02-20", "1d", "Europe/Berlin")
FAMILIES = (
    Tumbling(7),
    ToDate(7),
    *(family(name, calendar=SPRING) for family in (Tumbling, ToDate) for name in ("week", "month")),
)


@pytest.mark.parametrize("window", FAMILIES, ids=str)
def test_the_series_is_what_its_windows_hold(window: Tumbling | ToDate) -> None:
    answers = HistoryAnswers(random_histories(np.random.default_rng(1), STEPS, 30, 3), STEPS)
    first, last = window_steps(window, STEPS)
    for k in (1, 2, 5):
        expected = [answers.windows(k, int(a), 1, int(b), 1)[0, 0] for a, b in zip(first, last, strict=True)]
        assert series(window, answers, k).tolist() == expected


@pytest.mark.quick(5)
@pytest.mark.parametrize("unit", [EventLevel(), ItemPerPeriod(10), ItemLevel(), ItemAddRemove()], ids=lambda u: u.name)
@pytest.mark.parametrize("law", [GAUSSIAN, LAPLACE])
@pytest.mark.parametrize("window", FAMILIES, ids=str)
def test_what_is_measured_without_noise_is_decoded_exactly(window: Tumbling | ToDate, law: Law, unit: Unit) -> None:
    answers = HistoryAnswers(random_histories(np.random.default_rng(2), STEPS, 20, 2), STEPS)
    problem = Problem(window, STEPS, (1, 2), unit, law, noise_per_unit=1.0, bits=16)
    for design in (*candidates(problem), *stream_candidates(problem, STEPS)):
        for k in (1, 2):
            encoded = design.encode(answers, k)
            assert encoded.shape == (design.rows,)
            decoded = design.decode(encoded.astype(np.float64))
            assert np.allclose(decoded, series(window, answers, k), atol=1e-6), design.strategy
        assert design.variance().shape == decoded.shape


PAIRS: list[tuple[IntegerMap, CausalMap]] = [
    (Filter((9, -3, -2, -1)), Filter((9, -3, -2, -1))),
    (Identity(5), Identity(5)),
]


@pytest.mark.parametrize(("batch", "causal"), PAIRS, ids=["filter", "identity"])
@pytest.mark.parametrize("window", FAMILIES, ids=str)
def test_a_stream_measures_the_integers_of_a_release(
    window: Tumbling | ToDate, batch: IntegerMap, causal: CausalMap
) -> None:
    answers = HistoryAnswers(random_histories(np.random.default_rng(3), STEPS, 25, 2), STEPS)
    problem = Problem(window, STEPS, (2,), EventLevel(), GAUSSIAN, 1.0)
    lengths = tuple(sizes(window, STEPS).tolist())
    longest = len(lengths) if isinstance(window, Tumbling) else max(lengths)
    cut = Filter(batch.taps) if isinstance(batch, Filter) else Identity(5)
    release = Design(problem, Series(cut if isinstance(window, Tumbling) else Repeated(cut, lengths, causal=True)), "")
    shape = PeriodShape(window, causal, *fewest_and_most(window), STEPS)
    stream = StepDesign(problem, shape, "", horizon=STEPS)
    encoded = stream.encode(answers, 2)
    assert encoded.tolist() == release.encode(answers, 2).tolist()
    assert stream.rows == release.rows == len(encoded)
    noisy = encoded + np.random.default_rng(4).normal(size=len(encoded))
    assert np.allclose(stream.decode(noisy), release.decode(noisy))
    assert np.allclose(stream.variance(), release.variance())
    by_step = np.concatenate([shape.moment(step, 2) for step in range(1, STEPS + 1)])
    assert np.allclose(by_step, stream.variance())
    assert stream.sensitivity == release.sensitivity


def test_variances_are_those_of_the_noise_that_is_left() -> None:
    """The diagonal of the decoder times its transpose, from the decoder itself."""
    for causal, made in ((True, Filter((9, -3, -2, -1))), (False, TentTree(5, (2,), 4))):
        found = Repeated(made, (2, 5, 1), causal)
        decoder = found.decode(np.eye(found.rows))
        assert decoder.shape == (found.length, found.rows)
        assert np.allclose((decoder**2).sum(axis=1), found.variance())
        fourth = found.fourth_moment()
        assert fourth is not None
        assert np.allclose((decoder**4).sum(axis=1), fourth)
        encoder = found.encode(np.eye(found.length, dtype=np.int64))
        assert np.allclose(decoder @ encoder.astype(float), np.eye(found.length))


def test_without_a_horizon_only_windows_that_ended_are_released() -> None:
    shape = SeriesInPeriods(Identity(1), 7, 7, None)
    assert [step for step in range(1, 23) if shape.rows_at(step)] == [7, 14, 21]
    assert len(shape.moments(22, 2)) == 3
    cut = SeriesInPeriods(Identity(1), 7, 7, 22)
    assert [step for step in range(1, 23) if cut.rows_at(step)] == [7, 14, 21, 22]
    assert len(cut.moments(22, 2)) == 4
    assert len(SeriesInPeriods(Identity(1), 7, 7, None).moments(3, 2)) == 0
