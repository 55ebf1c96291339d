r"""How far the difference of two items' rolling counts, a vector of -1, 0 and 1, can move a filtered series.

As in `dpwindows.kernel.families.run_patterns`, `r_d` is the autocorrelation of a causal filter with integer taps, G its
Gram matrix on an unbounded horizon, and g costs `g'Gg = r_0 n + 2 sum_{d>=1} r_d c_d`, with n the number of places
where g is not 0 and `c_d = sum_t g_t g_{t-d}`. Here g = f - f' for two 0/1 vectors in N consecutive places; g is 0
elsewhere. Pairs of unlike signs add to the cost where `r_d < 0`, so bounds for patterns of one sign do not hold here.

**Distances.** Pairs up to a few places apart (`memory` m) are counted as they are. Beyond, with `w_d = -r_d`:

- *near* distances, m < d <= D with `r_d < 0`: `-2 c_d = sum_t (g_t - g_{t-d})^2 - 2n`, and the square is `|g_t -
  g_{t-d}|`, plus 2 where the two places have unlike signs. The sum of the absolute values is at most `d J`, with `J =
  sum_t |g_t - g_{t-1}|`. An *alternation* is a pair of consecutive places x < y with unlike signs and `y-x-1` zeros
  between them; between two places of unlike signs there is one, and one alternation lies between at most `max(0, d -
  (y-x-1))` pairs of places at distance d. So `2 r_d c_d <= w_d (d J - 2n + 2 sum max(0, d - zeros))`, the sum over all
  alternations.
- *far* distances, all others: `sum 2 r_d c_d <= n max_omega sum 2 r_d cos(d omega)`, the largest value of the symbol
  of a Toeplitz form.

Either is a charge for places, for unit changes and for alternations (`Charges`), so what is charged adds up place by
place, with the last m values of g for a state (`families.changes_of_two_counts`). It may be any filter:
nothing is asked of the signs of `r_d`.

All arithmetic is in 64-bit integers that cannot wrap (`SignedLags`); that of the symbol's maximum is in floats, with a
bound on their rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpwindows.kernel.families.norms import autocorrelation

Table = NDArray[np.int64]

_BITS = 57
# Points of the grid on which the symbol is evaluated, for each distance.
_FINENESS = 64


@dataclass(frozen=True)
class SignedLags:
    """An autocorrelation divided by `2^shift`: for every g of N places in -1, 0, 1 `g'Gg <= 2^shift (form of values)`.

    With C values, those beyond being 0 or never met: they are rounded to the nearest, and 2 C is added to the first,
    since an error of at most 1 in every `r_d` changes the form by at most `n (1 + 2 (C-1))`. With S the sum of absolute
    values, what is charged for a place, its change and its alternation together is at most `8 C S`, and `8 N C S <
    2^57`.
    """

    values: tuple[int, ...]
    shift: int

    @classmethod
    def of(cls, taps: Sequence[int], places: int, bits: int = _BITS) -> SignedLags:
        """The lags of integer taps that matter within N = `places`; at least three, the first of so many bits."""
        exact = autocorrelation(taps)[:places]
        exact += [0] * (3 - len(exact))
        reached = 8 * places * len(exact) * sum(map(abs, exact))
        shift = max(0, reached.bit_length() - _BITS, exact[0].bit_length() - bits)
        half = 1 << shift >> 1
        rounded = [value + half >> shift for value in exact]
        return cls((rounded[0] + (2 * len(exact) if shift else 0), *rounded[1:]), shift)

    @property
    def longest(self) -> int:
        """The largest distance that has a value."""
        return len(self.values) - 1


@dataclass(frozen=True)
class Charges:
    """What is charged for pairs more than `memory` apart (module docstring).

    `place`: for every place where g is not 0. `change`: for every unit of `|g_t - g_{t-1}|`. `alternation[z]`: for one
    with z zeros, or at least m where z = m.
    """

    memory: int
    place: int
    change: int
    alternation: tuple[int, ...]


def charges(lags: SignedLags, memory: int, near: int) -> Charges:
    """The charges where distances up to `near` are taken for near ones."""
    values = lags.values
    memory = min(memory, lags.longest)
    weights = {d: -values[d] for d in range(memory + 1, min(near, lags.longest) + 1) if values[d] < 0}
    far = np.array([0 if d <= memory or d in weights else value for d, value in enumerate(values)], dtype=np.float64)
    return Charges(
        memory,
        symbol_maximum(far) - 2 * sum(weights.values()),
        sum(d * weight for d, weight in weights.items()),
        tuple(2 * sum(max(0, d - zeros) * weight for d, weight in weights.items()) for zeros in range(memory + 1)),
    )


def symbol_maximum(far: NDArray[np.float64]) -> int:
    """An upper bound on `max_omega sum_d 2 far_d cos(d omega)`, rounded up.

    Proof. Let p be the symbol, with its maximum at omega. `p' = 0` there and `|p''| <= sum 2 d^2 |far_d|`, so at the
    nearest of M points around the circle, at most `pi / M` away, p is less by at most `(pi / M)^2 sum d^2 |far_d|`.
    *At the points* p is the real part of `sum_d a_d w^(jd)`, `a_d = 2 far_d` and w the first M-th root of unity. Let
    `X_q[k, i] = sum_n a_(i+nq) w^(qkn)`, for `k < M/q` and i < q. For every k this is a_i where q is no less than the
    number of coefficients, and `X_q[k, i] = X_2q[k, i] + w^(qk) X_2q[k, i+q]`, with k modulo M/2q in X_2q; half a turn
    further w^(qk) has the other sign. So q is halved until X_1 is known. *Rounding*, `u = 2^-53`. An X is
    off by no more than a part of what its coefficients add up to in size, 0 at first but for one rounding of each. A
    root is known to 8 u, and a product of complex numbers errs by 4 u at most, a sum by u: so 1 and this part grow by
    the factor `1 + 16 u` at most. After 31 halvings that is less than 2^-43; `2^-40` of the sum of all sizes is added,
    which pays for the sums here as well. QED.
    """
    if not far.any():
        return 0
    values = np.tile(np.pad(2 * far, (0, (1 << (len(far) - 1).bit_length()) - len(far))), (_FINENESS, 1)) + 0j
    while (half := values.shape[1] // 2) > 0:
        turned = np.exp(np.arange(len(values)) * (1j * np.pi / len(values)))[:, None] * values[:, half:]
        values = np.concatenate([values[:, :half] + turned, values[:, :half] - turned])
    sizes = 2 * np.abs(far)
    curvature = float((sizes * np.arange(len(far), dtype=np.float64) ** 2).sum()) / 2
    slack = (np.pi / len(values)) ** 2 * curvature * (1 + 2.0**-30) + 2.0**-40 * float(sizes.sum())
    return int(np.ceil(float(values.real.max()) + slack)) + 1


# --- Two counts with thresholds of any size ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Prices:
    """Lagrange multipliers: `start` for each start or stop in every window that sees it, `change` for unit changes."""

    start: int
    change: int


@dataclass(frozen=True)
class TwoCounts:
    """What is known of the changes that one item can make within a span (`families.runs`).

    Attributes:
        k: the threshold.
        length: W.
        places: N, the window ends that see the span, numbered 1..N.
        runs: the most runs of g, of either sign.
        single: the places, first and last, between which g has one sign; (1, 0) if there are none.
        apart: nothing occurs before the span, so nothing is counted before the first place.
        items: 2; or 1, of an item that is added or removed, whose f' is 0.
    """

    k: int
    length: int
    places: int
    runs: int
    single: tuple[int, int]
    apart: bool
    items: int = 2
