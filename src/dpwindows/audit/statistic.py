r"""What tells the releases of two neighbouring logs apart: scores that are larger where the neighbour is likelier.

Two statistics, since the first believes what the mechanism says of itself and the second only what it does:

- the *log-likelihood ratio* of the stated noise: estimates are mapped back to measured numbers by the pseudo-inverse of
  the decoder, whitened by the noise scales, and compared with what the two logs would measure. For Gaussian noise it is
  linear, the projection on the direction `Sigma^-1 d`, and the best there is;
- the *discriminant* of a sample: the direction `S^-1 (m' - m)`, with the means and covariance S of releases seen. It
  finds noise that is shared, correlated or missing, which the first cannot.

Neither can make a bound wrong: events are tested on other releases than they were chosen on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpwindows import reading
from dpwindows.audit.losses import norms
from dpwindows.audit.neighbours import Pair
from dpwindows.audit.probe import probe
from dpwindows.audit.workload import rows_measured
from dpwindows.errors import InputError
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.plan.allotment import served_by

if TYPE_CHECKING:
    from dpwindows.plan.allotment import Allotment
    from dpwindows.plan.plan import Plan

Floats = NDArray[np.float64]
# Of released estimates, shape (releases, numbers), a score for each release.
Statistic = Callable[[Floats], Floats]
# Largest decoder, in entries, that is inverted.
_LARGEST = 1 << 22


def log_ratio(plan: Plan, pair: Pair) -> Statistic:
    """How much likelier the neighbour makes a release than the log, by the noise that the plan states.

    Raises:
        InputError: the plan is too large.
    """
    measurements = plan.measurements
    mechanism = probe(measurements)
    decoder = _whitened_decoder(plan)
    inverse = np.linalg.pinv(decoder)
    whitened = np.concatenate(
        [
            part.apply(mechanism.answers(np.array([pair.log, pair.neighbour]))).astype(np.float64) / part.scale
            for part in mechanism.parts
        ],
        axis=1,
    )
    # As far as it can be read from estimates.
    low, high = whitened @ (inverse @ decoder).T
    if measurements[0].law == GAUSSIAN:
        return lambda released: np.asarray(released @ inverse.T @ (high - low))

    ends = np.cumsum([part.rows for part in mechanism.parts])[:-1]

    def distance(measured: Floats) -> Floats:
        each = zip(mechanism.parts, np.split(measured, ends, axis=1), strict=True)
        return np.asarray(sum(norms(part.law, numbers, part.vectors) for part, numbers in each))

    def pure(released: Floats) -> Floats:
        measured = released @ inverse.T
        # Most releases have one of few values: rounding must not tear them apart.
        return np.round(distance(measured - low) - distance(measured - high), 9)

    return pure


def discriminant(one: Floats, other: Floats) -> Statistic:
    """The projection on Fisher's linear discriminant of two samples of releases, each of shape (releases, numbers)."""
    means = one.mean(axis=0), other.mean(axis=0)
    centred = np.concatenate([one - means[0], other - means[1]])
    covariance = centred.T @ centred / len(centred)
    shift = means[1] - means[0]
    # Directions without any noise weigh most: not cut off, but kept finite.
    values, vectors = np.linalg.eigh(covariance)
    floor = max(float(values[-1]), float(shift @ shift), 1e-200) * 1e-12
    direction = vectors @ ((vectors.T @ shift) / np.maximum(values, floor))
    return lambda released: np.asarray(released @ direction)


def _whitened_decoder(plan: Plan) -> Floats:
    """From all measured numbers, each over its noise scale, to all released ones: shape (released, measured)."""
    released, sizes = plan.workload.rows, rows_measured(plan)
    measured = sum(sizes)
    if released * measured > _LARGEST:
        raise InputError(
            f"a black-box audit inverts the decoder, and here it has {released:,} x {measured:,} entries: audit the "
            "plan with fewer steps (--steps)"
        )
    ends = np.cumsum([0, *sizes])
    blocks = []
    for allotment, place in zip(plan.every_allotment, served_by(plan.every_allotment), strict=True):
        block = _decoder(allotment)
        blocks.append(np.pad(block, ((0, 0), (ends[place], measured - ends[place + 1]))))
    return np.concatenate(blocks)


def _decoder(allotment: Allotment) -> Floats:
    design, scale = allotment.measurement.design, allotment.measurement.scale
    thresholds = design.problem.thresholds
    each = [
        np.array([allotment.own(reading.of(design.at(k)).decode(column)) for column in np.eye(design.rows)]).T * scale
        for k in thresholds[: 1 if design.alike else None]
    ]
    decoded = dict(zip(thresholds, each * len(thresholds) if design.alike else each, strict=True))
    where = {k: i for i, k in enumerate(thresholds)}
    blocks = []
    for asked in allotment.query.measures:
        # By threshold and group as measured, by group as released.
        by_threshold = [np.zeros_like(np.kron(np.eye(allotment.groups), one)) for one in decoded.values()]
        for k, sign in zip(asked.thresholds, (1, -1), strict=False):
            by_threshold[where[k]] = sign * np.kron(np.eye(allotment.groups), decoded[k])
        blocks.append(np.concatenate(by_threshold, axis=1))
    return np.concatenate(blocks)
