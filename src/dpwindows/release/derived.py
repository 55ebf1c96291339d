"""Differences, ratios and means of released numbers, with errors that know how their noise is correlated.

Numbers of one measurement share noise: two rolling counts a day apart far more than two a month apart. The plan alone
says which noise is in each number (`dpwindows.reading`), so it says the error of any combination, too, and nothing here
spends any budget.

*Differences and means* have the interval of their own noise (`dpwindows.plan.intervals`): the exact quantile where
whole numbers are added that all weigh the same, and else a bound on it, from the variance and the kurtosis.

*Ratios* have Fieller's set: every r for which `a - r b`, a difference, could be 0 at the confidence asked for. It holds
the true ratio just as often as the interval of a difference holds the true difference, however small b is, which no
interval around a/b does. Where b cannot be told from 0 it has no ends, and says so with infinities. The quantile is a
bound for all r between the ends: the widest of all gives the first ends, and the widest between these the next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from dpwindows import reading
from dpwindows.ask.queries import Measure
from dpwindows.errors import InputError, percent
from dpwindows.kernel.accounting import JOINT, LAPLACE
from dpwindows.kernel.maps.integer_maps import FloatArray
from dpwindows.kernel.measure import Measurement
from dpwindows.plan.intervals import half_width_factors, lattice_half_width, noise_of
from dpwindows.plan.rebuilt import rebuilt, thresholds_of
from dpwindows.reading.lattice_noise import Noise, Sums
from dpwindows.reading.noise_moments import common_share
from dpwindows.reading.reader import Coefficients, Weights
from dpwindows.release.groups import group_names
from dpwindows.release.selection import Term

# How closely a standard error that is worked out again, from the same integers, must be that of the release.
_ALIKE = 1e-6
# Directions a - r b that quantiles are worked out in, and the rounds for those that are left.
_DIRECTIONS, _ROUNDS = np.linspace(-np.pi / 2, np.pi / 2, 181), 3
# Of how many rows of a family the standard error is worked out again.
_CHECKED = 4
# How closely two weights are one, for rounding.
_ROUNDING = 1e-9
# Where a combination has no weights; and the part of a measurement that is the noise which all its numbers share.
_NONE = np.zeros(0)
_SHARED = "shared"


def with_interval(estimate: str, interval: str, std_error: float, confidence: float) -> str:
    """A number with its interval and its standard error, of two figures written out: 160, and not 1.6e+02."""
    error = f"{float(f'{std_error:.2g}'):,g}"
    return f"{estimate} ({percent(confidence, 6)} interval {interval}; standard error {error})"


@dataclass(frozen=True)
class Derived:
    """A number worked out from released ones, with its error.

    Attributes:
        estimate: the difference, ratio or mean of the estimates; NaN for a ratio over 0.
        std_error: standard deviation of its noise; of a ratio, to first order.
        bias_bound: bound on its bias (0 where the numbers are unbiased); of a ratio its interval holds it, and it is 0.
        lower: lower end of its interval, minus infinity where it has none.
        upper: upper end of its interval, infinity where it has none.
        confidence: how often the interval holds the true value.
        what: what it is, in words.
    """

    estimate: float
    std_error: float
    bias_bound: float
    lower: float
    upper: float
    confidence: float
    what: str

    @property
    def bounded(self) -> bool:
        """False where the interval has no ends, because the denominator cannot be told from 0."""
        return math.isfinite(self.lower) and math.isfinite(self.upper)

    def __str__(self) -> str:
        if not self.bounded:
            return f"{self.estimate:,.4g} (no interval: the denominator cannot be told from 0)"
        interval = f"{self.lower:,.4g} to {self.upper:,.4g}"
        return with_interval(f"{self.estimate:,.4g}", interval, self.std_error, self.confidence)


@dataclass(frozen=True)
class Combined:
    """A combination of released numbers and the noise in it, in counts, by the value drawn.

    `noise` are weights on values of unit variance, by the measured vector and the part of it; `kinds` are the kinds of
    noise of these vectors.
    """

    estimate: float
    bias_bound: float
    noise: Mapping[tuple[Hashable, Hashable], FloatArray]
    kinds: Mapping[Hashable, Noise]

    def __sub__(self, other: Combined) -> Combined:
        """The difference, with whatever noise both share taken off."""
        keys = dict.fromkeys([*self.noise, *other.noise])
        return Combined(
            self.estimate - other.estimate,
            self.bias_bound + other.bias_bound,
            {key: _added(self.noise.get(key, _NONE), -other.noise.get(key, _NONE)) for key in keys},
            {**self.kinds, **other.kinds},
        )

    def moment(self, *others: Combined) -> float:
        """`sum of products` of the weights of this and others, value by value."""
        total = 0.0
        for key, product in self.noise.items():
            for other in others:
                product = product * _fitted(other.noise.get(key, _NONE), len(product))
            total += float(product.sum())
        return total

    @property
    def std_error(self) -> float:
        """Standard deviation of the noise."""
        return math.sqrt(self.moment(self))

    @property
    def held(self) -> set[Noise]:
        """The kinds of noise that are in it."""
        return {self.kinds[vector] for (vector, _), values in self.noise.items() if values.any()}

    def scaled(self, by: Callable[[Noise], float]) -> Combined:
        """This combination with weights that are larger by a factor for each kind of noise that is in it."""
        # Noise that is 0 but once in a lifetime weighs nothing, and has no factor.
        return replace(
            self,
            noise={
                (vector, part): by(self.kinds[vector]) * values if values.any() else values
                for (vector, part), values in self.noise.items()
            },
        )

    def half_width(self, confidence: float) -> float:
        """Half width of the interval, bias bound included."""
        variance = self.moment(self)
        if variance == 0.0:
            return self.bias_bound
        found = self._of_one_weight(confidence)
        if found is None:
            factor = _factors(self, Combined(0.0, 0.0, {}, {}), np.zeros(1), confidence).max()
            found = float(factor) * math.sqrt(variance)
        return found + self.bias_bound

    def _of_one_weight(self, confidence: float) -> float | None:
        """The exact half width where numbers of one kind are added that all weigh the same; None for other sums."""
        vectors: dict[Hashable, list[FloatArray]] = {}
        for (vector, _), values in self.noise.items():
            vectors.setdefault(vector, []).append(abs(values[values != 0.0]))
        by_vector = {vector: np.concatenate(parts) for vector, parts in vectors.items()}
        # What two combinations share may be taken off but for rounding.
        largest = max(float(values.max(initial=0.0)) for values in by_vector.values())
        by_vector = {vector: values[values > _ROUNDING * largest] for vector, values in by_vector.items()}
        weights = np.concatenate(list(by_vector.values()))
        kinds = {self.kinds[vector] for vector, values in by_vector.items() if len(values)}
        noise = next(iter(kinds))
        if len(kinds) > 1 or noise.fine or weights.min() < (1 - _ROUNDING) * largest:
            return None
        draws, paired = len(weights), False
        if noise.law in JOINT:
            # Numbers of one vector share its radius; of a range every number is the difference of two uniform ones.
            counts = {len(values) for values in by_vector.values() if len(values)}
            if len(counts) > 1 or max(counts) > 2:
                return None
            paired, draws = counts == {2}, draws // max(counts)
        unit = noise.deviation * math.sqrt(1 - common_share(noise.law))
        return float(lattice_half_width(weights[:1] / unit, noise, draws, confidence, paired=paired)[0])


def _fitted(values: FloatArray, size: int) -> FloatArray:
    """Weights on the first `size` values; combinations that end earlier hold nothing of later ones."""
    return values[:size] if len(values) >= size else np.pad(values, (0, size - len(values)))


def _added(one: FloatArray, two: FloatArray) -> FloatArray:
    size = max(len(one), len(two))
    return _fitted(one, size) + _fitted(two, size)


def combined(terms: Iterable[Term], metadata: Mapping[str, Any]) -> Combined:
    """A combination of released rows, with its noise worked out from what the release says about itself.

    Raises:
        InputError: the release does not say enough, or is not of this version.
    """
    listed = list(terms)
    noise: dict[tuple[Hashable, Hashable], FloatArray] = {}
    kinds: dict[Hashable, Noise] = {}
    measured_in = [_measured(term, metadata) for term in listed]
    for at, *group in dict.fromkeys(measured_in):
        entry = metadata["measurements"][at]
        text, together = entry["window"], entry.get("together")
        made, series = rebuilt(metadata, entry), together.index(text) if together else None
        kind = noise_of(made)
        unit = kind.deviation
        own = [term for term, place in zip(listed, measured_in, strict=True) if place == (at, *group)]
        _require_same(own, made, unit, series)
        by_threshold: dict[int, dict[tuple[int, int], float]] = {}
        for term in own:
            for k, sign in zip(_thresholds(term), (1.0, -1.0), strict=False):
                windows = by_threshold.setdefault(k, {})
                windows[_steps(term.row)] = windows.get(_steps(term.row), 0.0) + sign * unit * term.coefficient
        for k, coefficients in by_threshold.items():
            # Groups share no noise; families measured together do.
            vector = ("together" if together else text, *group, k)
            kinds[vector] = kind
            for part, values in _weights(made, k, coefficients, series).items():
                noise[vector, part] = _added(noise.get((vector, part), _NONE), values.ravel())
    return Combined(
        sum(term.coefficient * term.row["estimate"] for term in listed),
        sum(abs(term.coefficient) * term.row["bias_bound"] for term in listed),
        noise,
        kinds,
    )


def _weights(made: Measurement, k: int, coefficients: Coefficients, series: int | None) -> Weights:
    """The weights of a combination on independent noise values: on one more, where all numbers of a vector share it."""
    found = reading.of(made.design.at(k)).noise_weights(coefficients, series or 0)
    common = common_share(made.law)
    if not common:
        return found
    total = sum(float(values.sum()) for values in found.values())
    own = {part: math.sqrt(1 - common) * values for part, values in found.items()}
    return own | {_SHARED: np.array([math.sqrt(common) * total])}


def _measured(term: Term, metadata: Mapping[str, Any]) -> tuple[Any, ...]:
    """What a row was measured in: the place of the measurement, and the row's group if there are groups."""
    names = group_names(metadata)
    group = [term.row[name] for name in names]
    by = [name for name, value in zip(names, group, strict=True) if value is not None]
    place = next(
        at
        for at, one in enumerate(metadata["measurements"])
        if one["window"] == term.row["window"]
        and by == one.get("groups", {}).get("by", [])
        and set(thresholds_of(one)).issuperset(_thresholds(term))
    )
    return place, *group


def _thresholds(term: Term) -> tuple[int, ...]:
    """The thresholds that a row is made of: the second is taken off the first."""
    return Measure.of(term.row["measure"], term.row["k"]).thresholds


def _steps(row: Mapping[str, Any]) -> tuple[int, int]:
    return row["first_step"], row["last_step"]


def _require_same(terms: Sequence[Term], made: Measurement, unit: float, series: int | None) -> None:
    """Check that what was made again errs as the release says, for some of its numbers."""
    for term in terms[:: -(-len(terms) // _CHECKED)]:
        parts = [_weights(made, k, {_steps(term.row): unit}, series).values() for k in _thresholds(term)]
        found = math.sqrt(sum(float(values.ravel() @ values.ravel()) for part in parts for values in part))
        if not math.isclose(found, term.row["std_error"], rel_tol=_ALIKE):
            raise InputError(
                f"the noise of {term.row['window']} cannot be worked out again: this version of dpwindows gives a "
                f"standard error of {found:.4g} where the release says {term.row['std_error']:.4g}; use the version "
                "that made it, named in its metadata"
            )


# --- What is worked out of combinations -------------------------------------------------------------------------------


def difference(one: Combined, other: Combined, confidence: float, what: str) -> Derived:
    """One combination less another."""
    return alone(one - other, confidence, what)


def alone(one: Combined, confidence: float, what: str) -> Derived:
    """One combination with its interval."""
    half = one.half_width(confidence)
    return Derived(
        one.estimate, one.std_error, one.bias_bound, one.estimate - half, one.estimate + half, confidence, what
    )


def ratio(above: Combined, below: Combined, confidence: float, what: str) -> Derived:
    """One combination over another, with Fieller's set as its interval."""
    squares = above.moment(above), above.moment(below), below.moment(below)
    factors, slopes = _factors(above, below, _DIRECTIONS, confidence), np.tan(_DIRECTIONS)
    lower, upper = -math.inf, math.inf
    # Ratios beyond the ends are not in the set, however wide the quantile is there.
    for _ in range(_ROUNDS):
        near = slice(max(0, int(np.searchsorted(slopes, lower)) - 1), int(np.searchsorted(slopes, upper)) + 1)
        lower, upper = fieller(
            (above.estimate, below.estimate), squares, float(factors[near].max()), (above.bias_bound, below.bias_bound)
        )
    if below.estimate == 0.0:
        return Derived(math.nan, math.inf, 0.0, lower, upper, confidence, what)
    found = above.estimate / below.estimate
    spread = math.sqrt(max(0.0, squares[0] - 2 * found * squares[1] + found**2 * squares[2])) / abs(below.estimate)
    return Derived(found, spread, 0.0, lower, upper, confidence, what)


def _factors(above: Combined, below: Combined, directions: FloatArray, confidence: float) -> FloatArray:
    """The half widths, in standard errors, of `a cos - b sin` in these directions: of `a - r b`, r their tangent."""
    kinds = above.held | below.held
    if not kinds:
        return np.zeros(len(directions))
    cosine, sine = np.cos(directions), -np.sin(directions)

    def square(by: Callable[[Noise], float]) -> FloatArray:
        one, other = above.scaled(by), below.scaled(by)
        found = one.moment(one) * cosine**2 + 2 * one.moment(other) * cosine * sine + other.moment(other) * sine**2
        # Large enough for its square to be more than 0.
        return np.asarray(np.maximum(found, 1e-150))

    own, smoothed = square(lambda _: 1.0), square(lambda noise: noise.smoothed)
    kurtosis = None
    if all(noise.law == LAPLACE for noise in kinds):
        one, other = above.scaled(lambda noise: noise.smoothed), below.scaled(lambda noise: noise.smoothed)
        counts = (1, 4, 6, 4, 1)
        factors = [[one] * (4 - power) + [other] * power for power in range(5)]
        fourths = [first.moment(*others) for first, *others in factors]
        fourth = sum(n * m * cosine ** (4 - p) * sine**p for p, (n, m) in enumerate(zip(counts, fourths, strict=True)))
        kurtosis = 3 * np.asarray(fourth) / smoothed**2
    added = square(lambda noise: noise.added)
    sums = Sums(kinds, np.sqrt(smoothed / own), np.sqrt(added / own), kurtosis)
    return half_width_factors(sums, confidence) * np.ones(len(directions))


def fieller(
    estimates: tuple[float, float],
    squares: tuple[float, float, float],
    factor: float,
    bias_bounds: tuple[float, float] = (0.0, 0.0),
) -> tuple[float, float]:
    """The ends of the smallest interval that holds `{r : |a - r b| <= factor std(a - r b) + bias(a) + |r| bias(b)}`.

    The right-hand side is convex in r and the left one linear on each side of a/b, where their difference is below 0;
    so it crosses 0 at most twice on each side, and exactly once where it ends above 0: where b is more than its own
    half width away from 0. Otherwise the set holds numbers of any size, with both signs.

    Given are the estimates a and b; the variance of a, their covariance and the variance of b; the half width of a
    difference, in standard errors; and the bias bounds.
    """
    (a, b), (aa, ab, bb), (bias_a, bias_b) = estimates, squares, bias_bounds
    if abs(b) <= factor * math.sqrt(bb) + bias_b:
        return -math.inf, math.inf

    def beyond(r: float) -> float:
        square = max(0.0, aa - 2 * r * ab + r**2 * bb)
        return abs(a - r * b) - factor * math.sqrt(square) - bias_a - abs(r) * bias_b

    middle = a / b
    # There the left-hand side is 0 but for rounding.
    inside = beyond(middle) < 0
    ends = []
    for side in (-1.0, 1.0):
        step = max(-beyond(middle) / abs(b), max(abs(middle), 1.0) * 1e-9)
        while beyond(middle + side * step) < 0:
            step *= 2
        ends.append(scipy.optimize.brentq(beyond, middle, middle + side * step, xtol=1e-15) if inside else middle)
    return min(ends), max(ends)
