"""Windows of periods: exact answers against their definition, and streams against releases, integer by integer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpwindows import reading
from dpwindows.ask.calendar import Calendar
from dpwindows.ask.periods import fewest_and_most, sizes
from dpwindows.ask.privacy import EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod, Unit
from dpwindows.ask.queries import ToDate, Tumbling
from dpwindows.ask.windows import window_steps
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE, Law
from dpwindows.kernel.certificate import NotCertifiedError
from dpwindows.kernel.designs import Design, StepDesign
from dpwindows.kernel.families.periods import SeriesInPeriods
from dpwindows.kernel.families.series import Series, series
from dpwindows.kernel.maps.filters import Filter, Identity
from dpwindows.kernel.maps.integer_maps import CausalMap, IntegerMap
from dpwindows.kernel.maps.repeated import Repeated
from dpwindows.kernel.maps.tent_tree import TentTree
from dpwindows.kernel.problem import Problem
from dpwindows.reading.reader import steps_of
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
            decoded = reading.of(design).decode(encoded.astype(np.float64))
            assert np.allclose(decoded, series(window, answers, k), atol=1e-6), design.strategy
        assert reading.of(design).variance().shape == decoded.shape


@pytest.mark.parametrize("causal", [Filter((9, -3, -2, -1)), Identity(5)], ids=["filter", "identity"])
@pytest.mark.parametrize("window", FAMILIES, ids=str)
def test_a_stream_measures_the_integers_of_a_release(window: Tumbling | ToDate, causal: CausalMap) -> None:
    answers = HistoryAnswers(random_histories(np.random.default_rng(3), STEPS, 25, 2), STEPS)
    problem = Problem(window, STEPS, (2,), EventLevel(), GAUSSIAN, 1.0)
    lengths = tuple(sizes(window, STEPS).tolist())
    along: IntegerMap = causal if isinstance(window, Tumbling) else Repeated(causal, lengths, causal=True)
    release = Design(problem, Series(along), "")
    stream = StepDesign(problem, SeriesInPeriods(causal, *fewest_and_most(window), STEPS), "", horizon=STEPS)
    encoded = stream.encode(answers, 2)
    assert encoded.tolist() == release.encode(answers, 2).tolist()
    assert stream.rows == release.rows == len(encoded)
    noisy = encoded + np.random.default_rng(4).normal(size=len(encoded))
    by_step, whole = steps_of(stream), reading.of(release)
    assert np.allclose(by_step.decode(noisy), whole.decode(noisy))
    assert np.allclose(by_step.variance(), whole.variance())
    each = np.concatenate([by_step.moment_at(step, 2) for step in range(1, STEPS + 1)])
    assert np.allclose(each, by_step.variance())
    assert stream.sensitivity == release.sensitivity


def test_variances_are_those_of_the_noise_that_is_left() -> None:
    """The diagonal of the decoder times its transpose, from the decoder itself."""
    for causal, made in ((True, Filter((9, -3, -2, -1))), (False, TentTree(5, (2,), 4))):
        found, length = Repeated(made, (2, 5, 1), causal), 8
        reader = reading.series_reader(found, length)
        decoder = reader.decode(np.eye(found.rows(length)))
        assert decoder.shape == (length, found.rows(length))
        assert np.allclose((decoder**2).sum(axis=1), reader.variance())
        fourth = reader.fourth_moment()
        assert fourth is not None
        assert np.allclose((decoder**4).sum(axis=1), fourth)
        encoder = found.encode(np.eye(length, dtype=np.int64))
        assert np.allclose(decoder @ encoder.astype(float), np.eye(length))


def in_weeks(steps: int, last: int | None) -> StepDesign:
    problem = Problem(Tumbling(7), steps, (1,), EventLevel(), GAUSSIAN, 1.0)
    return StepDesign(problem, SeriesInPeriods(Identity(1), 7, 7, last), "", horizon=last)


def test_without_a_horizon_only_windows_that_ended_are_released() -> None:
    design, cut = in_weeks(22, None), in_weeks(22, 22)
    assert [step for step in range(1, 23) if design.rows_at(step)] == [7, 14, 21]
    assert len(reading.of(design).variance()) == 3
    assert [step for step in range(1, 23) if cut.rows_at(step)] == [7, 14, 21, 22]
    assert len(reading.of(cut).variance()) == 4
    assert len(reading.of(in_weeks(3, None)).variance()) == 0


def test_a_stream_with_another_end_than_its_last_window_has_no_bound() -> None:
    for horizon, last in ((22, None), (None, 22), (22, 21)):
        with pytest.raises(NotCertifiedError):
            _ = replace(in_weeks(22, last), horizon=horizon).certificate
    assert in_weeks(22, 22).certificate.bound == in_weeks(22, None).certificate.bound
