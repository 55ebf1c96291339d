"""The audit of the noise: noisy numbers less exact ones, tested against the law and scale that the plan states.

The plan is measured again and again through `kernel.measure` and `kernel.measure_step`, the functions that releases
and streams use, on an empty log and on a large one. Exact values, from the integers read off the mechanism (`probe`),
are subtracted. What is left must be independent draws of the stated law: of its scale, shape,
tails and symmetry, whatever the log is, and with nothing in common between rows, thresholds, measurements, calls, logs
and processes. Noise that is drawn for a whole vector at once is made into such draws (`joint_noise`).

The tests have bounds on their false alarms that hold for every number of draws (`noise_tests`). With m of them, each
finds something only where its bound is below error / m: an honest mechanism is found fault with with probability at
most `error`, over all tests together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dpwindows.ask.privacy import Budget
from dpwindows.audit import joint_noise, large_logs, noise_tests
from dpwindows.audit.discrete_laws import NoiseLaw
from dpwindows.audit.neighbours import Ints
from dpwindows.audit.probe import Counted, Mechanism, encoded, probe
from dpwindows.audit.processes import draws_of_processes
from dpwindows.audit.sampler import SMALL, small_scale_chances
from dpwindows.errors import InputError
from dpwindows.kernel import measure as kernel
from dpwindows.kernel.accounting import JOINT, LAPLACE
from dpwindows.kernel.measure import Measurement

if TYPE_CHECKING:
    from dpwindows.plan.planned import Planned

FEWEST_DRAWS = 300
# Every measurement is called at least this often, however many numbers it measures.
_FEWEST_CALLS = 4
# Exact integers of the large log stay below this, where the kernel does not clip them.
_LARGEST = 1 << 58
_MOST_ITEMS = 10**6
_IN_OTHER_PROCESS = 64
# The way for streams is one function with the same sampler: fewer calls, in few steps, since each proves the budget.
_STEPS, _SHARE_IN_STEPS = 3, 4
# Numbers of a call that are paired at a distance of one, of two and of half a call.
_NEAR = (1, 2)

# One call of the kernel on a log: `M x + z` by measurement and threshold.
Call = Callable[[Counted], list[dict[int, Any]]]


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


@dataclass(frozen=True)
class NoiseAudit:
    """What the noise looks like.

    Attributes:
        measurements: what was tested.
        tests: how many tests there were.
        error: the probability with which honest noise is found fault with, over all tests.
        faults: the tests that found something.
        least: the test with the smallest chance.
    """

    measurements: tuple[NoiseUnderTest, ...]
    tests: int
    error: float
    faults: tuple[Chance, ...]
    least: Chance

    @property
    def verdict(self) -> Literal["as stated", "not as stated"]:
        """Whether the noise is what the plan states, as far as the draws show."""
        return "not as stated" if self.faults else "as stated"

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, ready for JSON."""
        return {
            "measurements": [dict(one.__dict__) for one in self.measurements],
            "tests": self.tests,
            "false_alarm_probability": self.error,
            "least_chance": {"test": self.least.test, "chance": self.least.chance},
            "faults": [{"test": fault.test, "chance": fault.chance} for fault in self.faults],
            "verdict": self.verdict,
        }


def audit_noise(
    plan: Planned,
    *,
    draws: int = 10_000,
    error: float = 1e-6,
    seed: int = 0,
    sampler: bool = True,
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
        sampler: test the sampler of the plan's laws as well: at a small scale, and in two new processes.
        progress: called with the count of noise values drawn since the last call.

    Raises:
        InputError: `draws` or `error` is not usable, or the plan is too large to be read off.
        EngineError: a process could not be started.
    """
    require_usable_draws(draws, error)
    measurements = plan.measurements
    mechanism, names = probe(measurements), [one.design.problem.window.text for one in measurements]
    stated = [NoiseLaw(one.law, one.scale) for one in measurements]
    drawn = {
        name: _sample(mechanism, call, table, calls, progress)
        for name, call, table, calls in _ways(plan, measurements, mechanism, draws, seed)
    }
    chances = [
        Chance(f"radius ({name}, {log})", joint_noise.radius_chance(law, _apart(noise, one)))
        for log, sample in drawn.items()
        for name, law, noise, one in zip(names, stated, sample, measurements, strict=True)
        if law.law in JOINT
    ]
    rng = np.random.default_rng(seed)
    samples = {
        log: [_independent(law, noise, one, rng) for law, noise, one in zip(stated, sample, measurements, strict=True)]
        for log, sample in drawn.items()
    }
    laws = [joint_noise.INDEPENDENT if law.law in JOINT else law for law in stated]
    chances += [
        chance
        for name, sample in samples.items()
        for chance in (*_each(names, laws, sample, name), *_between_measurements(names, sample, name))
    ]
    chances += list(_between_logs(names, laws, samples))
    if sampler:
        chances += list(_between_processes(names, stated, rng))
        chances += list(_at_small_scales(stated, rng))
    limit = error / len(chances)
    least = min(chances, key=lambda one: one.chance)
    return NoiseAudit(
        measurements=tuple(
            _under_test(name, law, [sample[i] for sample in samples.values()][:2], limit)
            for i, (name, law) in enumerate(zip(names, stated, strict=True))
        ),
        tests=len(chances),
        error=error,
        faults=tuple(one for one in chances if one.chance < limit),
        least=least,
    )


def require_usable_draws(draws: int, error: float) -> None:
    """Refuse numbers of draws and probabilities that tell nothing.

    Raises:
        InputError: they are such.
    """
    if draws < FEWEST_DRAWS:
        raise InputError(f"the audit of the noise needs at least {FEWEST_DRAWS} draws of each measurement, got {draws}")
    if not 0 < error < 1:
        raise InputError(f"the probability of error must lie strictly between 0 and 1, got {error!r}")


def draws_needed(plan: Planned, draws: int) -> int:
    """The noise values that `audit_noise` draws to have `draws` of each measurement, but for the sampler alone."""
    rows = rows_measured(plan)
    calls = _calls(rows, draws)
    whole = any(one.law in JOINT for one in plan.measurements)
    return (2 * calls + (0 if whole else max(_FEWEST_CALLS, calls // _SHARE_IN_STEPS))) * sum(rows)


def rows_measured(plan: Planned) -> list[int]:
    """How many numbers one release draws noise for, by measurement."""
    return [len(one.cells) * one.design.rows * len(one.design.problem.thresholds) for one in plan.measurements]


# --- Drawing through the kernel --------------------------------------------------------------------------------------


def _ways(
    plan: Planned, measurements: list[Measurement], mechanism: Mechanism, draws: int, seed: int
) -> Iterator[tuple[str, Call, Counted, int]]:
    """What is measured how, and how often."""
    from dpwindows.plan.stream_plan import StreamPlan

    def in_one(table: Counted) -> list[dict[int, Any]]:
        return kernel.measure(measurements, plan.budget, table)

    def in_steps(table: Counted) -> list[dict[int, Any]]:
        return _measure_in_steps(measurements, plan.budget, table, min(_STEPS, plan.timeline.steps))

    calls = _calls([part.rows for part in mechanism.parts], draws)
    empty, large = _logs(mechanism, seed)
    if isinstance(plan, StreamPlan):
        yield "an empty log", in_steps, empty, calls
        yield "a large log", in_steps, large, calls
        return
    yield "an empty log", in_one, empty, calls
    yield "a large log", in_one, large, calls
    if not any(one.law in JOINT for one in measurements):
        yield "a large log, step by step", in_steps, large, max(_FEWEST_CALLS, calls // _SHARE_IN_STEPS)


def _calls(rows: list[int], draws: int) -> int:
    """Calls that draw at least `draws` numbers of every measurement, those with the fewest rows included."""
    return max(_FEWEST_CALLS, -(-draws // max(1, min(rows))))


def _logs(mechanism: Mechanism, seed: int) -> tuple[Counted, Counted]:
    """An empty log and one with as many items as the kernel measures without clipping, a million at most."""
    thresholds = sorted({k for k, _, _ in mechanism.sources})
    heaviest = max(int(abs(part.matrix).sum(axis=1).max(initial=1)) for part in mechanism.parts)
    size = max(1, min(_MOST_ITEMS, _LARGEST // max(1, heaviest)))
    rng, cells = np.random.default_rng(seed), range(mechanism.cells)
    empty = [large_logs.flat(mechanism.steps, thresholds, 0) for _ in cells]
    large = [large_logs.random(mechanism.steps, thresholds, size, rng) for _ in cells]
    return mechanism.of(empty), mechanism.of(large)


def _measure_in_steps(
    measurements: list[Measurement], budget: Budget, table: Counted, steps: int
) -> list[dict[int, Any]]:
    """Every number of the measurements through the kernel's way for streams, some in each step."""
    exact = [
        {k: np.array_split(encoded(one, table, k), steps) for k in one.design.problem.thresholds}
        for one in measurements
    ]
    by_step = [
        kernel.measure_step(measurements, budget, [{k: parts[step] for k, parts in one.items()} for one in exact])
        for step in range(steps)
    ]
    return [{k: np.concatenate([noisy[index][k] for noisy in by_step]) for k in one} for index, one in enumerate(exact)]


def _sample(
    mechanism: Mechanism, call: Call, table: Counted, calls: int, progress: Callable[[int], None]
) -> list[Ints]:
    """The noise of each measurement, shape (calls, thresholds, rows): what was measured less `M x`."""
    answers = mechanism.read(table)
    exact = [part.apply(answers)[0] for part in mechanism.parts]
    drawn: list[list[Ints]] = [[] for _ in exact]
    for _ in range(calls):
        for found, noisy, known in zip(drawn, call(table), exact, strict=True):
            values = np.stack([np.asarray(noisy[k]) for k in sorted(noisy)])
            found.append(np.asarray(values - known.reshape(values.shape), dtype=np.int64))
            progress(values.size)
    return [np.stack(found) for found in drawn]


def _apart(noise: Ints, measurement: Measurement) -> Ints:
    """The vectors that noise of a joint law was drawn in, from noise of shape (calls, thresholds, rows)."""
    return noise.reshape(-1, measurement.design.rows)


def _independent(law: NoiseLaw, noise: Ints, measurement: Measurement, rng: np.random.Generator) -> Ints:
    """Noise as independent draws: as it is, or made into them."""
    if law.law not in JOINT:
        return noise
    return joint_noise.independent(law, _apart(noise, measurement), rng).reshape(noise.shape)


# --- Tests -----------------------------------------------------------------------------------------------------------


def _each(names: list[str], laws: list[NoiseLaw], sample: list[Ints], log: str) -> Iterator[Chance]:
    """Each measurement by itself."""
    for name, law, noise in zip(names, laws, sample, strict=True):
        about = f"{name}, {log}"
        for what, chance in noise_tests.law_chances(law, noise).items():
            yield Chance(f"{what} ({about})", chance)
        yield Chance(f"values that repeat ({about})", noise_tests.repeat_chance(law, noise))
        stretches = noise_tests.recurrence_chance(law, noise.reshape(len(noise), -1))
        yield Chance(f"stretches that come again ({about})", stretches)
        for what, one, other in _pairs(noise):
            yield from _of_pairs(f"{what} ({about})", law, one, other)


def _pairs(noise: Ints) -> Iterator[tuple[str, Ints, Ints]]:
    """Disjoint pairs of draws that must have nothing in common; `noise` of shape (calls, thresholds, rows)."""
    calls, thresholds, rows = noise.shape
    for distance in sorted({*_NEAR, rows // 2} - {0}):
        one, other = _halves(noise, distance, axis=2)
        yield f"numbers {distance} apart", one, other
    for distance in range(1, thresholds):
        one, other = _halves(noise, distance, axis=1)
        yield f"thresholds {distance} apart", one, other
    for distance in sorted({*_NEAR, calls // 2} - {0}):
        one, other = _halves(noise, distance, axis=0)
        yield f"calls {distance} apart", one, other


def _halves(noise: Ints, distance: int, axis: int) -> tuple[Ints, Ints]:
    """Disjoint pairs along an axis: in each run of twice the distance, the first half with the second."""
    moved = np.moveaxis(noise, axis, 0)
    places = np.arange(max(0, len(moved) - distance))
    firsts = places[places // distance % 2 == 0]
    return moved[firsts], moved[firsts + distance]


def _of_pairs(about: str, law: NoiseLaw, one: Ints, other: Ints) -> Iterator[Chance]:
    if one.size >= noise_tests.FEWEST_PAIRS:
        for what, chance in noise_tests.pair_chances(law, one, other).items():
            yield Chance(f"{what} shared by {about}", chance)


def _between_measurements(names: list[str], sample: list[Ints], log: str) -> Iterator[Chance]:
    """Numbers at the same place of one call."""
    for (i, first), (j, second) in combinations(enumerate(sample), 2):
        one, other = first.reshape(len(first), -1), second.reshape(len(second), -1)
        width = min(one.shape[1], other.shape[1])
        chance = noise_tests.joint_sign_chance(one[:, :width], other[:, :width])
        yield Chance(f"sign shared by {names[i]} and {names[j]} ({log})", chance)


def _between_logs(names: list[str], laws: list[NoiseLaw], samples: dict[str, list[Ints]]) -> Iterator[Chance]:
    """Numbers at one place of one call, compared between logs."""
    for (log, one), (other_log, other) in combinations(samples.items(), 2):
        for name, law, first, second in zip(names, laws, one, other, strict=True):
            calls = min(len(first), len(second))
            yield from _of_pairs(f"{log} and {other_log} ({name})", law, first[:calls], second[:calls])


def _between_processes(names: list[str], laws: list[NoiseLaw], rng: np.random.Generator) -> Iterator[Chance]:
    """What two new processes draw first; for one measurement, as one sampler serves all and a process takes seconds."""
    one, other = draws_of_processes(laws[0].law, laws[0].scale, _IN_OTHER_PROCESS, processes=2)
    law = laws[0]
    if law.law in JOINT:
        one, other = joint_noise.independent(law, np.stack([one, other]), rng)
        law = joint_noise.INDEPENDENT
    yield from _of_pairs(f"two processes ({names[0]})", law, one, other)


def _at_small_scales(laws: list[NoiseLaw], rng: np.random.Generator) -> Iterator[Chance]:
    """Each law once, where a wrong arithmetic of its sampler shows."""
    for law in sorted({one.law for one in laws}):
        for what, chance in small_scale_chances(law, rng).items():
            yield Chance(f"{what} ({law} of scale {SMALL[law]:g})", chance)


def _under_test(name: str, law: NoiseLaw, parts: list[Ints], limit: float) -> NoiseUnderTest:
    fewest = min(part.size for part in parts)
    # The norm of a vector says as much of the scale as Laplace noise of as many numbers.
    like = LAPLACE if law.law in JOINT else law.law
    surely = noise_tests.found_surely(like, fewest, limit) if law.scale >= 1 else (None, None)
    return NoiseUnderTest(name, law.law, law.scale, sum(part.size for part in parts), *surely)
