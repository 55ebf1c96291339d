"""The trusted kernel: exact integers in, noisy integers out, within a proved budget.

A privacy proof of a release rests on what happens before `measure` and on what is reached from it. That is little:

0. what a row of the log means is decided by that row and by what its source declares, never by another row:
   neighbouring logs are neighbours once they are read (`count.sources.typed_columns` for frames, whose columns need not
   have a type; `csv_files`, `duckdb`, `json_lines`, `spark` and `sqlite` beside it for files and tables);
1. `count.query.recency` and `count.answers` give the exact integer answers of the log; where there are groups,
   `count.query.groups` decides the one that each row is counted in (`groups` says what that must hold to);
2. a design's `encode` multiplies them by an integer matrix, in arithmetic that cannot wrap (`maps.integer_maps.widen`);
3. its `sensitivity` is a proved bound computed from the same integers (`rules.certify`, by the proofs in `families`);
4. noise is drawn on the integers, never from floating-point or seedable sources: by the exact sampler of `noise` (or
   OpenDP's, for whoever asks for it), or for a whole vector at once by that of `joint_noise`;
5. before any noise is drawn, `accounting.certify` proves the cost of all of it within the budget.

What is returned is `M x + z`, within bounds that no real count of items comes near, nor one of less than 2^48
occurrences (`add_noise`). Everything done with it afterwards is post-processing and free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpwindows.ask.counting_rule import EVERY_OCCURRENCE
from dpwindows.ask.privacy import Budget
from dpwindows.ask.windows import Answers
from dpwindows.kernel import noise, opendp_noise
from dpwindows.kernel.accounting import JOINT, Cost, Law, certify
from dpwindows.kernel.certificate import Certificate
from dpwindows.kernel.designs import Design, Shape, StepDesign
from dpwindows.kernel.families.blocks import Blocks
from dpwindows.kernel.families.chains_of_runs import SeriesByThreshold
from dpwindows.kernel.families.crossed import Crossed
from dpwindows.kernel.families.gaps import Gaps
from dpwindows.kernel.families.grouped_steps import GroupedSteps
from dpwindows.kernel.families.nested import Nested
from dpwindows.kernel.families.periods import SeriesInPeriods
from dpwindows.kernel.families.series import FromTotals, Series
from dpwindows.kernel.families.starts import Starts
from dpwindows.kernel.families.together import Together
from dpwindows.kernel.groups import GroupedAnswers, Groups, certify_groups
from dpwindows.kernel.joint_noise import draw_jointly

# What draws independent numbers.
Sampler = Literal["exact", "opendp"]
EXACT: Sampler = "exact"
OPENDP: Sampler = "opendp"
_SAMPLERS = {EXACT: noise.sampler, OPENDP: opendp_noise.sampler}
# Noise is drawn in pieces of this many numbers, so that progress shows and memory stays flat.
_PIECE = 1 << 16
# The shapes that answer for what they encode; the kernel measures no other unless it is told to.
_SHAPES = (
    *(FromTotals, Series, SeriesByThreshold, SeriesInPeriods, Together),
    *(Blocks, Crossed, Gaps, GroupedSteps, Nested, Starts),
)
# Exact integers are held within +-_EXACT and released ones within +-_RELEASED; see `add_noise`.
_EXACT = 1 << 60
_RELEASED = 1 << 61


@dataclass(frozen=True)
class Measurement:
    """One design with the noise it is given: measured once for each of its thresholds, in every group if there are."""

    design: Design
    law: Law
    scale: float
    groups: Groups | None = None

    @cached_property
    def certificate(self) -> Certificate:
        """What is proved of the measurement, in all groups together.

        Raises:
            NotCertifiedError: no proof covers it.
        """
        return self.design.certificate if self.groups is None else certify_groups(self.design, self.groups)

    @property
    def cells(self) -> range:
        """The codes of the groups that it is made in; without groups that of the only log, 0."""
        return range(1) if self.groups is None else self.groups.cells

    @property
    def cost(self) -> Cost:
        """What the measurement is charged."""
        certificate = self.certificate
        rows = certificate.moved * len(self.design.problem.thresholds)
        return Cost(self.law, certificate.bound, self.scale, rows, certificate.squared)


def measure(
    measurements: Sequence[Measurement],
    budget: Budget,
    answers: Answers | GroupedAnswers,
    progress: Callable[[int], None] = lambda drawn: None,
    admitted: tuple[type[Shape], ...] = (),
    by: Sampler = EXACT,
) -> list[dict[int, NDArray[Any]]]:
    """Measure exact answers under noise: for each measurement, `M x + z` by threshold, as exact integers.

    In groups that is one such vector after another, in the order of their codes.

    Guarantee: the joint result satisfies `budget` for the unit of privacy of the designs' problems, which must be
    one and the same. Each call draws fresh noise and spends the budget again.

    Args:
        measurements: what to measure; their costs must be proved within `budget`.
        budget: the whole budget of this call.
        answers: the exact answers of one log, by groups if the measurements are in groups.
        progress: called with the count of noise values drawn since the last call.
        admitted: shapes beside the kernel's own that are measured; the guarantee then rests on their certificates too.
        by: the sampler that draws independent noise.

    Raises:
        BudgetExceededError: the costs cannot be proved within the budget; nothing was measured.
        ValueError: the designs protect different units, are for another horizon, other groups or another rule of
            counting than the answers, or were bounded for another noise law than they are given.
            Or the sampler is not there.
    """
    problems = [measurement.design.problem for measurement in measurements]
    if len({problem.unit for problem in problems}) != 1:
        raise ValueError("all measurements of one call must protect the same unit")
    if any(problem.steps != answers.steps for problem in problems):
        raise ValueError(f"the answers are for {answers.steps} steps, the measurements for another horizon")
    if any(problem.rule != getattr(answers, "rule", EVERY_OCCURRENCE) for problem in problems):
        raise ValueError("the answers count other occurrences of an item than the measurements are for")
    _require_paid(measurements, budget, admitted)
    require_sampler(by)
    # All that can fail is done before any noise is drawn.
    exact = [_encode_all(measurement, answers) for measurement in measurements]
    return [
        {
            k: add_noise(values, draw_noise(made.law, made.scale, len(values), progress, len(made.cells), by))
            for k, values in encoded.items()
        }
        for made, encoded in zip(measurements, exact, strict=True)
    ]


def measure_step(
    measurements: Sequence[Measurement],
    budget: Budget,
    step: int,
    exact: Sequence[dict[int, NDArray[Any]]],
    by: Sampler = EXACT,
) -> list[dict[int, NDArray[Any]]]:
    """One step of a stream under noise: `(M x)_t + z_t` for each measurement, by threshold, as exact integers.

    Guarantee: over all steps of the stream together, with one call for each step and fresh noise in each, what is
    returned satisfies `budget`, also where the events of later steps depend on what was released before.

    Proof for dependent events. Fix what an attacker may choose: a rule that gives, for each step and from everything
    released before it, the events of two logs that are neighbours whatever is released. On every run of outputs the
    difference g of the exact answers is one that the sensitivity D was proved for. *Laplace noise*: the ratio of the
    probabilities of one output is a product over steps, at most `exp(sum |(M g)_t| / b) <= exp(D / b)`. *Gaussian
    noise*: given the outputs before it, a step's Renyi divergence of order alpha is at most
    `alpha |(M g)_t|^2 / (2 s^2)` (arXiv 2004.00010, Proposition 5), and as the sum of these is at most
    `alpha D / (2 s^2)` on every run, so is the divergence of the whole: taking expectations from the last step
    backwards, `E[exp((alpha-1) L_t)] <= exp((alpha-1) alpha |(M g)_t|^2 / (2 s^2))`, and what is still to come is at
    most D less what was spent (Feldman and Zrnic 2021, arXiv 2008.11193). That is zCDP of rho = D / (2 s^2). For
    (epsilon, delta) by the analytic route: continuous Gaussian noise on M x with M lower-triangular gives against
    adaptive choices what it gives against fixed ones (Denisov et al. 2022, arXiv 2202.08312, Theorem 2.1; for a total
    that holds on every run, Smith and Thakurta 2022, arXiv 2210.17520), rounding is post-processing, and the lattice
    term is paid once for each number that differs, whose number is bounded on every run. QED.

    What it does not cover: that the change of one item's events changes other items' events by other ways than
    through the releases.

    Args:
        measurements: all measurements of the stream, the same at every step.
        budget: the whole budget of the stream.
        step: which step it is, from 1.
        exact: the exact integers of this step, for each measurement by threshold.
        by: the sampler that draws independent noise.

    Raises:
        BudgetExceededError: the costs of the stream cannot be proved within the budget; nothing was drawn.
        ValueError: a measurement is of a law that is drawn for all of its numbers at once, or is not made step by step;
            the step is none that is charged for, or the integers are not those that are measured at it.
    """
    if any(made.law in JOINT for made in measurements):
        raise ValueError("noise that is drawn for a whole vector at once was asked for step by step")
    _require_paid(measurements, budget)
    require_sampler(by)
    for made, encoded in zip(measurements, exact, strict=True):
        _require_step(made, step, encoded)
    return [
        {
            k: add_noise(values, draw_noise(made.law, made.scale, len(values), lambda drawn: None, 1, by))
            for k, values in encoded.items()
        }
        for made, encoded in zip(measurements, exact, strict=True)
    ]


def require_sampler(by: Sampler) -> None:
    """Refuse a sampler that is not there, before anything is read or spent.

    Raises:
        ValueError: there is none of this name.
        InputError: it comes with a package that is not installed.
    """
    if by not in _SAMPLERS:
        raise ValueError(f"no sampler is called {by!r}: {', '.join(_SAMPLERS)}")
    if by == OPENDP:
        opendp_noise.require_installed()


def _require_step(made: Measurement, step: int, encoded: dict[int, NDArray[Any]]) -> None:
    """Refuse a step that a measurement is not charged for, and other numbers than it measures at the step."""
    design = made.design
    if not isinstance(design, StepDesign):
        raise ValueError("what is measured all at once was asked for step by step")
    if type(step) is not int or step < 1 or (design.horizon is not None and step > design.horizon):
        raise ValueError(f"step {step} is none of those that are charged for")
    rows = design.rows_at(step) * len(made.cells)
    if set(encoded) != set(design.problem.thresholds) or any(one.shape != (rows,) for one in encoded.values()):
        raise ValueError(f"of each threshold {rows} numbers are measured at step {step}")


def _require_paid(measurements: Sequence[Measurement], budget: Budget, admitted: tuple[type[Shape], ...] = ()) -> None:
    """Prove the cost of measurements within a budget, before anything is drawn."""
    if any(type(measurement) is not Measurement for measurement in measurements):
        raise ValueError("the kernel charges for its own measurements only")
    designs = [one for measurement in measurements for one in _designs_in(measurement.design)]
    # What answers for itself and is not the kernel's might state any bound.
    shapes = (*_SHAPES, *admitted)
    parts = [pair for one in designs for pair in ((one, (Design, StepDesign)), (one.shape, shapes))]
    unknown = {type(part).__name__ for part, known in parts if type(part) not in known}
    if unknown:
        raise ValueError(f"the kernel measures its own shapes only, not {', '.join(sorted(unknown))}")
    for design in designs:
        if isinstance(design, StepDesign) and design.horizon is not None and design.problem.steps > design.horizon:
            raise ValueError(f"{design.problem.steps} steps are to be measured, and {design.horizon} are charged for")
    if any(measurement.law != measurement.design.problem.law for measurement in measurements):
        raise ValueError("a sensitivity in one norm was about to be charged for noise of another law")
    certify(budget, [measurement.cost for measurement in measurements])


def _designs_in(design: Design) -> Iterator[Design]:
    """A design and those that it measures by."""
    yield design
    if isinstance(design.shape, GroupedSteps):
        yield from _designs_in(design.shape.inner)


def _encode_all(measurement: Measurement, answers: Answers | GroupedAnswers) -> dict[int, NDArray[Any]]:
    design, groups = measurement.design, measurement.groups
    grouping = getattr(answers, "grouping", None)
    if grouping != (None if groups is None else groups.grouping):
        raise ValueError("the log was counted by other groups than are measured")
    # What has no grouping is of the whole log.
    logs: list[Any] = [answers] if groups is None else [answers.group(cell) for cell in groups.cells]  # type: ignore[union-attr]
    encoded = {k: [design.encode(log, k) for log in logs] for k in design.problem.thresholds}
    for values in chain.from_iterable(encoded.values()):
        if values.shape != (design.rows,):
            raise ValueError(f"encoded {values.shape} numbers where the noise is charged for {design.rows}")
    return {k: np.concatenate(parts) for k, parts in encoded.items()}


def add_noise(exact: NDArray[Any], noise: NDArray[np.int64]) -> NDArray[np.int64]:
    """`clip(clip(x, +-2^60) + z, +-2^61)`, where the noise z may have been saturated at +-2^63 by the sampler.

    Clipping x moves no two values further apart, so the sensitivity stands; clipping the sum is post-processing.
    The sampler's saturation is invisible: where |z| >= 2^60 + 2^61, the sum is beyond +-2^61 whatever x is, so the
    result is the same for z and for anything larger. (Adding x to saturated noise unclipped would reveal x.)
    No 64-bit sum here can wrap.
    """
    furthest = _EXACT + _RELEASED
    noisy: NDArray[np.int64] = np.clip(noise, -furthest, furthest)
    noisy += np.clip(exact, -_EXACT, _EXACT).astype(np.int64, copy=False)
    return np.clip(noisy, -_RELEASED, _RELEASED, out=noisy)


def draw_noise(
    law: Law,
    scale: float,
    count: int,
    progress: Callable[[int], None] = lambda drawn: None,
    vectors: int = 1,
    by: Sampler = EXACT,
) -> NDArray[np.int64]:
    """Exact discrete noise, shape (count,): independent numbers, or of a joint law `vectors` independent vectors.

    All noise is saturated at the ends of the 64-bit range: it must not be added to exact integers but by `add_noise`.
    `by` is the sampler of independent numbers; those of a joint law are drawn by `joint_noise`.
    """
    if law in JOINT:
        vector = np.concatenate([draw_jointly(law, scale, count // vectors) for _ in range(vectors)])
        progress(count)
        return vector
    draw = _SAMPLERS[by](law, scale, count)
    drawn = np.zeros(count, dtype=np.int64)
    for first in range(0, count, _PIECE):
        size = min(_PIECE, count - first)
        drawn[first : first + size] = draw(size)
        progress(size)
    return drawn
