r"""`joint-filter`: rolling counts of several lengths through one filter that mixes them, Gaussian noise.

It serves k = 1 at event level, and for items within one step. One occurrence changes a day's, a week's and a month's
count by one history, so the three cost less together than apart. The filter is the best stationary one for
them, rounded to integers and charged for these. It is causal, so batch and continual release share it. A plan weighs it
against measuring each length by itself, and it serves no family alone.

One occurrence changes all series by intervals that two numbers fix: how far back the occurrence before it is, and how
far ahead the one after (`dpwindows.kernel.families.together`). Stationary Gaussian noise of inverse spectrum X, a
Hermitian matrix at each frequency, costs `mean g* X g` for a change g; the variances of the series are the mean of the
diagonal of `1/X`. With weights V on variances and mu on changes, `S = sum mu g g*`, Cauchy and Schwarz give
`mean tr(V/X) * mean tr(S X) >= (mean tr (V^1/2 S V^1/2)^1/2)^2`, with equality at
`X = V^1/2 (V^1/2 S V^1/2)^-1/2 V^1/2`: a concave problem in mu, solved by multiplicative updates.

All of this is design, in floating point. What a filter costs is certified afterwards from its rounded taps.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from dpwindows.ask.queries import RollingTogether
from dpwindows.kernel.designs import StepDesign
from dpwindows.kernel.families.together import Together
from dpwindows.kernel.maps.integer_maps import FloatArray
from dpwindows.kernel.problem import Problem
from dpwindows.strategies.search.portable import to_lattice
from dpwindows.strategies.search.spectrum import ROUNDS, circle_mean, grid_size, interval_weights

NAME = "joint-filter"
# Bits after the point that are kept of taps, which are made by a library's eigenvectors.
_KEPT = 16
# Rounds of updates for one set of weights, at first and when these are changed; rounds for long windows.
_ROUNDS, _MORE_ROUNDS, _FEW_ROUNDS = 120, 40, 20
# Updates end within this of the optimum, and weights settle where no series gains more than this beyond another.
_NEAR, _ALIKE = 2e-3, 5e-3
# Cells that passes after the first may fill: pairs of series, times changes, times rounds.
_MOST_CELLS = 20_000_000
_POWER = 0.9
_REWEIGHED = 8
# The search for changes of longer windows begins from those of shorter ones; how many times shorter.
_STRETCHED, _STRETCH = 100, 2
_FACTORED = 60

ComplexArray = NDArray[np.complex128]


def design(problem: Problem, horizon: int | None) -> StepDesign:
    """The filter for a problem of several rolling windows.

    Args:
        problem: what is measured; its `shares` say what part of the budget each length has.
        horizon: the steps after which there are no more; None: there is no end.
    """
    assert isinstance(problem.window, RollingTogether)
    lengths = problem.window.lengths
    # Shares that are the same but for rounding lead to the same filter.
    shares = tuple(float(f"{share / sum(problem.shares):.9g}") for share in problem.shares)
    scaled = to_lattice(_taps(lengths, shares), problem.bits, _KEPT)
    used = np.flatnonzero(scaled.any(axis=(1, 2)))[-1] + 1
    taps = tuple(scaled[:used].ravel().tolist())
    shape = Together(lengths, taps)
    return StepDesign(problem, shape, NAME, {"taps": int(used), "bits": problem.bits}, horizon=horizon)


@lru_cache(maxsize=32)
def _taps(lengths: tuple[int, ...], shares: tuple[float, ...]) -> FloatArray:
    """Matrices of a causal filter for rolling counts of these lengths, shape (taps, lengths, lengths).

    Measured apart, a series with share s of the budget errs by `own / sqrt(s)`, where `own` is the least error that it
    can have alone. The filter is one whose series all err by about the same factor less than that.
    """
    inverse, _, _ = _solved(lengths, shares)
    return _factor(inverse)[: 2 * max(lengths)]


def _solved(lengths: tuple[int, ...], shares: tuple[float, ...]) -> tuple[ComplexArray, FloatArray, FloatArray]:
    """The best inverse spectrum, the mixture of changes that shows it, and by how much each series is favoured."""
    search = _Search(lengths)
    own = np.array([circle_mean(np.sqrt(interval_weights(n, grid_size(n), ROUNDS)[1])) ** 2 for n in lengths])
    apart = own / np.array(shares)
    favour, rounds = np.ones(len(lengths)), (_ROUNDS, *[_MORE_ROUNDS] * _REWEIGHED)
    mixture = np.full(search.longest**2, 1.0 / search.longest**2)
    if search.longest > _STRETCHED:
        shorter = tuple(-(-length // _STRETCH) for length in lengths)
        _, few, favour = _solved(shorter, shares)
        places = np.arange(search.longest) * max(shorter) // search.longest
        mixture = few.reshape(max(shorter), max(shorter))[np.ix_(places, places)].ravel()
        mixture, rounds = mixture / mixture.sum(), (_FEW_ROUNDS,)
    for passed, count in enumerate(rounds):
        inverse, variances, mixture = search.best_inverse(favour / apart, mixture, count)
        ratio = variances / apart
        enough = passed * search.cells * _MORE_ROUNDS >= _MOST_CELLS
        if enough or ratio.max() <= ratio.min() * (1 + _ALIKE) ** 2:
            break
        favour = favour * ratio / ratio.mean()
    return inverse, mixture, favour


class _Search:
    """The changes of some lengths, and the spectra that are best for mixtures of them."""

    def __init__(self, lengths: tuple[int, ...]) -> None:
        self.lanes, self.longest = len(lengths), max(lengths)
        self.size = max(512, 1 << (8 * self.longest - 1).bit_length())
        back, ahead = np.indices((self.longest, self.longest)).reshape(2, -1) + 1
        first = [np.maximum(0, length - back) for length in lengths]
        last = [np.maximum(a, np.minimum(length, ahead)) for length, a in zip(lengths, first, strict=True)]
        # Where the second antiderivative of a correlation is read for the sum over a pair of intervals.
        self._pairs = list(combinations_with_replacement(range(self.lanes), 2))
        self._read = {
            (u, v): np.stack([last[v] - first[u], first[v] - last[u], first[v] - first[u], last[v] - last[u]])
            + self.longest
            for u, v in self._pairs
        }
        self.cells = len(self._pairs) * self.longest**2
        self._around = np.arange(-self.longest, self.longest + 1)

    def best_inverse(
        self, weights: FloatArray, mixture: FloatArray, rounds: int
    ) -> tuple[ComplexArray, FloatArray, FloatArray]:
        """Nearly the best inverse spectrum for weights on variances, what the series err by, and its mixture."""
        scale = np.sqrt(weights[:, None] * weights[None, :])
        best: tuple[float, ComplexArray, FloatArray, FloatArray] | None = None
        for _ in range(rounds):
            values, vectors = np.linalg.eigh(self._mixed(mixture) * scale)
            roots = np.sqrt(np.maximum(values, values.max() * 1e-13))
            inverse = (vectors / roots[:, None, :]) @ vectors.conj().swapaxes(1, 2) * scale
            optimum = circle_mean(roots.sum(axis=1))
            costs = self._costs(inverse)
            dearest = float(costs.max())
            if best is None or dearest * optimum < best[0]:
                diagonal = (abs(vectors) ** 2 * roots[:, None, :]).sum(axis=2) / weights
                variances = np.array([circle_mean(diagonal[:, lane]) for lane in range(self.lanes)]) * dearest
                best = dearest * optimum, inverse / dearest, variances, mixture
            if dearest <= optimum * (1 + _NEAR):
                break
            mixture = mixture * (costs / optimum) ** _POWER
            mixture = mixture / mixture.sum()
        assert best is not None
        return best[1:]

    def _costs(self, inverse: ComplexArray) -> FloatArray:
        """`mean g* X g` of every change."""
        total = np.zeros(self.longest**2)
        for u, v in self._pairs:
            lags = np.fft.irfft(inverse[:, u, v].conj(), self.size)[self._around[:-1]]
            sums = np.concatenate([[0.0], np.cumsum(np.cumsum(lags))])
            read = self._read[u, v]
            of_pair = sums[read[0]] + sums[read[1]] - sums[read[2]] - sums[read[3]]
            total += of_pair if u == v else 2 * of_pair
        return total

    def _mixed(self, mixture: FloatArray) -> ComplexArray:
        """`sum mu g g*` at every frequency of the half circle."""
        products = np.empty((self.size // 2 + 1, self.lanes, self.lanes), dtype=complex)
        for u, v in self._pairs:
            one, two, three, four = (np.bincount(at, mixture, 2 * self.longest + 1) for at in self._read[u, v])
            # Backwards through the two sums that `_costs` takes.
            later = np.cumsum(np.cumsum((one + two - three - four)[:0:-1]))[::-1]
            lags = np.zeros(self.size)
            lags[self._around[:-1]] += later
            products[:, v, u] = np.fft.rfft(lags)
            products[:, u, v] = products[:, v, u].conj()
        return products


def _factor(spectrum: ComplexArray) -> FloatArray:
    """The causal filter M with causal inverse and `M* M` the given spectrum, by Wilson's iteration; shape (taps, ., .).

    Each round linearises `M* M` around the last M and takes the causal half of what is missing.
    """
    size, lanes = 2 * (len(spectrum) - 1), spectrum.shape[1]
    first = np.fft.irfft(spectrum, size, axis=0)[0]
    factor = np.broadcast_to(np.linalg.cholesky((first + first.T) / 2).T, spectrum.shape).astype(complex)
    for _ in range(_FACTORED):
        inverse = np.linalg.inv(factor)
        series = np.fft.irfft(inverse.conj().swapaxes(1, 2) @ spectrum @ inverse + np.eye(lanes), size, axis=0)
        series[0] /= 2
        series[size // 2] /= 2
        series[size // 2 + 1 :] = 0
        factor, last = np.fft.rfft(series, axis=0) @ factor, factor
        if abs(factor - last).max() < 1e-11 * abs(factor).max():
            break
    return np.asarray(np.fft.irfft(factor, size, axis=0))
