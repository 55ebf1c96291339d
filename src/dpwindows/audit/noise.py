"""The audit of the noise: noisy numbers less exact ones, tested against the law and scale that the plan states.

The plan is measured again and again through `kernel.measure`, on an empty log and on a large one. Exact values, from
the integers read off the mechanism (`probe`), are subtracted. What is left must be independent draws of the stated law:
of its scale, shape, tails and symmetry, whatever the log is, and with nothing in common between rows, thresholds,
measurements, calls and logs. That a stream draws and adds its noise in the same way, step by step, is what `replay`
finds out.

The tests have bounds on their false alarms that hold for every number of draws (`noise_tests`). With m of them, each
finds something only where its bound is below error / m: an honest mechanism is found fault with with probability at
most `error`, over all tests together. What a plan's own noise does not show of the sampler (a wrong division, which
large scales hide; a generator that starts alike in every process) is tested with the package (`tests/kernel`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpwindows.audit import noise_tests
from dpwindows.audit.findings import Findings
from dpwindows.audit.neighbours import Ints
from dpwindows.audit.noise_tests import Floats
from dpwindows.audit.probe import Mechanism, Table, probe
from dpwindows.audit.workload import calls_needed, require_usable
from dpwindows.kernel import measure as kernel
from dpwindows.kernel.accounting import JOINT
from dpwindows.kernel.measure import Measurement

if TYPE_CHECKING:
    from dpwindows.plan.planned import Planned

# Exact integers of the large log stay below this, where the kernel does not clip them.
_LARGEST = 1 << 58
_MOST_ITEMS = 10**6
# Numbers of a call that are paired at a distance of one, of two and of half a call.
_NEAR = (1, 2)


@dataclass(frozen=True)
class Chance:
    """One test: what was looked at, and a bound on the probability of honest noise looking as bad."""

    test: str
    chance: float


@dataclass(frozen=True)
class NoiseUnderTest:
    """One measurement: its stated noise, how many draws of it were tested, and which scales that surely finds.

    `found_below` and `found_above` are shares of the stated scale: less noise than the first, or more than the second,
    would have been found with probability 0.99. None where the scale is below 1.
    """

    window: str
    law: str
    scale: float
    draws: int
    found_below: float | None
    found_above: float | None


@dataclass(frozen=True, kw_only=True)
class NoiseAudit(Findings):
    """What the noise looks like: `faults` are the tests that found something, `least` is the nearest to it.

    `error` is the probability with which honest noise is found fault with, over all `tests` of the `measurements`.
    """

    measurements: tuple[NoiseUnderTest, ...]
    tests: int
    error: float
    least: Chance
    WORDS = "as stated", "not as stated"


def audit_noise(
    plan: Planned,
    *,
    draws: int = 10_000,
    error: float = 1e-6,
    seed: int = 0,
    progress: Callable[[int], None] = lambda drawn: None,
) -> NoiseAudit:
    """Test the noise of a plan: of a batch release, or of a stream (`StreamPlan`).

    With 10,000 draws a scale that is 10 % too small is found with probability 0.99, with a few hundred one that is half
    as large (`NoiseUnderTest` has the figures).

    Args:
        plan: what to audit.
        draws: of each measurement on each kind of log, at least.
        error: the probability of a false alarm.
        seed: of the made-up log, not of the noise.
        progress: called with the count of noise values drawn since the last call.

    Raises:
        InputError: `draws` or `error` is not usable, or the plan is too large to be read off.
    """
    require_usable("noise", draws, error)
    measurements = plan.measurements
    mechanism, rng = probe(measurements), np.random.default_rng([seed, 1])
    calls = calls_needed([part.rows for part in mechanism.parts], draws)
    logs = dict(zip(("an empty log", "a large log"), _logs(mechanism, seed), strict=True))
    measured = {log: _sample(plan, mechanism, table, calls, progress) for log, table in logs.items()}
    samples = {
        log: [_uniform(one, noise, rng) for one, noise in zip(measurements, sample, strict=True)]
        for log, sample in measured.items()
    }
    chances = [
        chance
        for log in logs
        for one, noise, shares in zip(measurements, measured[log], samples[log], strict=True)
        for chance in _of_one(one, noise, shares, log)
    ]
    for log, sample in samples.items():
        chances += _between_measurements(measurements, sample, log)
    for one, *both in zip(measurements, *samples.values(), strict=True):
        chances += _of_pairs(f"{' and '.join(logs)} ({_name(one)})", *both)
    limit = error / len(chances)
    return NoiseAudit(
        measurements=tuple(
            _under_test(one, [sample[place].size for sample in samples.values()], limit)
            for place, one in enumerate(measurements)
        ),
        tests=len(chances),
        error=error,
        faults=tuple(one for one in chances if one.chance < limit),
        least=min(chances, key=lambda one: one.chance),
    )


# --- Drawing through the kernel --------------------------------------------------------------------------------------


def _logs(mechanism: Mechanism, seed: int) -> tuple[Table, Table]:
    """An empty log and one with as many items as the kernel measures without clipping, a million at most."""
    heaviest = max(int(abs(part.matrix).sum(axis=1).max(initial=1)) for part in mechanism.parts)
    size, rng = max(1, min(_MOST_ITEMS, _LARGEST // max(1, heaviest))), np.random.default_rng(seed)
    empty = {k: np.zeros(mechanism.shape, dtype=np.int64) for k in mechanism.thresholds}
    large = {k: np.triu(rng.integers(0, size + 1, size=mechanism.shape)) for k in mechanism.thresholds}
    return mechanism.of(empty), mechanism.of(large)


def _sample(
    plan: Planned, mechanism: Mechanism, table: Table, calls: int, progress: Callable[[int], None]
) -> list[Ints]:
    """The noise of each measurement, shape (calls, thresholds, rows): what was measured less `M x`."""
    exact = [part.apply(mechanism.read(table))[0] for part in mechanism.parts]
    drawn: list[list[Ints]] = [[] for _ in exact]
    for _ in range(calls):
        measured = kernel.measure(plan.measurements, plan.budget, table, by=plan.noise)
        for found, noisy, known in zip(drawn, measured, exact, strict=True):
            values = np.stack([np.asarray(noisy[k]) for k in sorted(noisy)])
            found.append(np.asarray(values - known.reshape(values.shape), dtype=np.int64))
            progress(values.size)
    return [np.stack(found) for found in drawn]


def _vectors(measurement: Measurement, noise: NDArray[Any]) -> NDArray[Any]:
    """Noise of shape (calls, thresholds, rows) as the vectors that a joint law is drawn in, or as calls."""
    return noise.reshape(-1, measurement.design.rows) if measurement.law in JOINT else noise.reshape(len(noise), -1)


def _uniform(measurement: Measurement, noise: Ints, rng: np.random.Generator) -> Floats:
    apart = _vectors(measurement, noise)
    return noise_tests.uniforms(measurement.law, measurement.scale, apart, rng).reshape(noise.shape)


# --- Tests -----------------------------------------------------------------------------------------------------------


def _name(measurement: Measurement) -> str:
    return measurement.design.problem.window.text


def _of_one(measurement: Measurement, noise: Ints, shares: Floats, log: str) -> Iterator[Chance]:
    """One measurement by itself: its noise, and the uniform numbers made of it."""
    about, stated = f"{_name(measurement)}, {log}", (measurement.law, measurement.scale)
    for what, chance in noise_tests.law_chances(measurement.law, shares).items():
        yield Chance(f"{what} ({about})", chance)
    apart = _vectors(measurement, noise)
    yield Chance(f"stretches that come again ({about})", noise_tests.recurrence_chance(*stated, apart))
    if measurement.law in JOINT:
        yield Chance(f"radius ({about})", noise_tests.radius_chance(*stated, apart))
    for what, one, other in _pairs(shares):
        yield from _of_pairs(f"{what} ({about})", one, other)


def _pairs(noise: Floats) -> Iterator[tuple[str, Floats, Floats]]:
    """Disjoint pairs of draws that must have nothing in common; `noise` of shape (calls, thresholds, rows)."""
    calls, thresholds, rows = noise.shape
    distances = {
        "numbers": (2, {*_NEAR, rows // 2} - {0}),
        "thresholds": (1, set(range(1, thresholds))),
        "calls": (0, {*_NEAR, calls // 2} - {0}),
    }
    for what, (axis, apart) in distances.items():
        for distance in sorted(apart):
            yield f"{what} {distance} apart", *_halves(noise, distance, axis)


def _halves(noise: Floats, distance: int, axis: int) -> tuple[Floats, Floats]:
    """Disjoint pairs along an axis: in each run of twice the distance, the first half with the second."""
    moved = np.moveaxis(noise, axis, 0)
    places = np.arange(max(0, len(moved) - distance))
    firsts = places[places // distance % 2 == 0]
    return moved[firsts], moved[firsts + distance]


def _of_pairs(about: str, one: Floats, other: Floats) -> Iterator[Chance]:
    if one.size >= noise_tests.FEWEST_PAIRS:
        yield Chance(f"noise shared by {about}", noise_tests.pair_chance(one, other))


def _between_measurements(measurements: list[Measurement], sample: list[Floats], log: str) -> Iterator[Chance]:
    """Numbers at the same place of one call."""
    flat = [shares.reshape(len(shares), -1) for shares in sample]
    for (one, first), (other, second) in combinations(zip(measurements, flat, strict=True), 2):
        width = min(first.shape[1], second.shape[1])
        yield from _of_pairs(f"{_name(one)} and {_name(other)} ({log})", first[:, :width], second[:, :width])


def _under_test(measurement: Measurement, sizes: list[int], limit: float) -> NoiseUnderTest:
    # The norm of a vector says as much of the scale as Laplace noise of as many numbers.
    surely: tuple[float | None, float | None] = (None, None)
    if measurement.scale >= 1:
        surely = noise_tests.detectable_scales(measurement.law, min(sizes), limit)
    return NoiseUnderTest(_name(measurement), measurement.law, measurement.scale, sum(sizes), *surely)
