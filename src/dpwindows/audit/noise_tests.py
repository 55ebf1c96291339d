r"""Tests of integers against the law that they are said to be drawn from, each with a bound on its false alarms.

Every function returns a bound on the probability with which honest noise (independent draws of the stated law) gives a
result as bad as the one at hand or worse. The bounds hold for every number of draws and every scale, and none is
asymptotic:

- `scale_chance`: Chernoff's bound for the family's own statistic (`dpwindows.audit.discrete_laws`), which of all tests
  of the scale has the most power;
- `shape_chance`: the relative entropy of the frequencies of k ranges to their exact probabilities. Its moment
  generating function is at most that of a gamma law of shape k - 1 and rate n (Agrawal 2020, arXiv 1904.02291), so
  `P(n KL >= t) <= e^{-t} (e t / (k-1))^{k-1}` for t > k - 1;
- `tail_chance`, `sign_chance`: exact binomial probabilities;
- `pair_chances`: of pairs of draws that should be independent, how often the two have the same sign, the same absolute
  value, and lie on the same side of the median absolute value: exact binomial probabilities;
- `repeat_chance`: how many draws have the absolute value of an earlier one. Whatever came before, the t-th has it with
  probability at most (t - 1) p, p that of the commonest value, so with `m = p n (n-1) / 2` at least x of them do with
  probability at most `e^{-m} (e m / x)^x`;
- `recurrence_chance`: the same of whole stretches of draws.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import scipy
from numpy.typing import NDArray

from dpwindows.audit.discrete_laws import NoiseLaw
from dpwindows.kernel.accounting import LAPLACE, Law

Ints = NDArray[np.int64]
# Where the line of integers is cut for the shape: finer towards the ends.
_CUTS = (0.001, 0.01, *(share / 16 for share in range(1, 16)), 0.99, 0.999)
# Draws expected in the tails that are counted.
_IN_TAILS = 50
# The least number of pairs worth a test.
FEWEST_PAIRS = 40
# The chance that an honest stretch of draws comes again, where calls are long enough for several of them.
_RARE = 1e-12
_SURE = 0.99


def scale_chance(law: NoiseLaw, noise: Ints) -> float:
    """The probability of a mean statistic as far from what the stated scale gives, to either side."""
    return min(1.0, 2 * math.exp(-noise.size * law.divergence(law.mean_statistic(noise))))


def shape_chance(law: NoiseLaw, noise: Ints) -> float:
    """The probability of frequencies as far from those of the stated law."""
    edges = np.unique([law.quantile(share) for share in _CUTS])
    below = np.concatenate([[0.0], law.at_most(edges), [1.0]])
    expected = np.diff(below)
    seen = np.bincount(np.searchsorted(edges, noise.ravel()), minlength=len(expected))
    if np.any((expected <= 0) & (seen > 0)):
        return 0.0
    held = seen > 0
    total = float((seen[held] * np.log(seen[held] / noise.size / expected[held])).sum())
    free = int((expected > 0).sum()) - 1
    if free == 0 or total <= free:
        return 1.0
    return min(1.0, math.exp(free - total + free * math.log(total / free)))


def tail_chance(law: NoiseLaw, noise: Ints) -> float:
    """The probability that as many draws, or as few, lie far out."""
    point = abs(law.quantile(min(0.05, _IN_TAILS / noise.size) / 2))
    return _two_sided(int((abs(noise) > point).sum()), noise.size, law.beyond(point))


def sign_chance(noise: Ints) -> float:
    """The probability that as many, or as few, of the draws that are not 0 are positive."""
    return _two_sided(int((noise > 0).sum()), int((noise != 0).sum()), 0.5)


def law_chances(law: NoiseLaw, noise: Ints) -> dict[str, float]:
    """Tests of draws of a law, whatever their order: by their scale, shape, tails and signs."""
    return {
        "scale": scale_chance(law, noise),
        "shape": shape_chance(law, noise),
        "tails": tail_chance(law, noise),
        "signs": sign_chance(noise),
    }


def pair_chances(law: NoiseLaw, one: Ints, other: Ints) -> dict[str, float]:
    """Tests of what two equally long vectors have in common, for draws of one law that should be independent."""
    sizes = abs(one), abs(other)
    middle = abs(law.quantile(0.25))
    outer = law.beyond(middle)
    sides = int(((sizes[0] > middle) == (sizes[1] > middle)).sum())
    return {
        "sign": joint_sign_chance(one, other),
        "size": _at_least(int((sizes[0] == sizes[1]).sum()), one.size, law.alike),
        "spread": _two_sided(sides, one.size, outer**2 + (1 - outer) ** 2),
    }


def joint_sign_chance(one: Ints, other: Ints) -> float:
    """The probability that as many pairs, or as few, have one sign; the laws may differ."""
    signs = (np.sign(one) * np.sign(other)).ravel()
    return _two_sided(int((signs > 0).sum()), int((signs != 0).sum()), 0.5)


def repeat_chance(law: NoiseLaw, noise: Ints) -> float:
    """The probability that as many draws have the absolute value of an earlier one."""
    return _repeated(noise.size - len(np.unique(abs(noise))), noise.size, law.commonest)


def recurrence_chance(law: NoiseLaw, calls: Ints) -> float:
    """The probability that as many stretches of draws come again.

    Args:
        law: of the draws.
        calls: draws, shape (calls, draws of one call). Stretches are whole calls, and parts of long ones.
    """
    length, per_call = calls.shape[1], calls.shape[1]
    if law.commonest < 1:
        enough = max(1, math.ceil(math.log(_RARE / calls.size**2) / math.log(law.commonest)))
        length = enough if per_call >= 2 * enough else per_call
    stretches = calls[:, : per_call // length * length].reshape(-1, length)
    distinct = len(np.unique(stretches, axis=0))
    return _repeated(len(stretches) - distinct, len(stretches), law.commonest**length)


def _repeated(repeated: int, of: int, commonest: float) -> float:
    expected = commonest * of * (of - 1) / 2
    if repeated <= expected or expected == 0:
        return 1.0 if repeated <= expected else 0.0
    return math.exp(repeated - expected + repeated * math.log(expected / repeated))


def found_surely(law: Law, draws: int, least_chance: float) -> tuple[float, float]:
    """The scales, as shares of the stated one, beyond which `scale_chance` all but surely is below a limit.

    For scales of at least 1, by the normal law of the mean statistic.

    Args:
        law: of the noise.
        draws: how many draws are tested.
        least_chance: the limit.

    Returns:
        A share below 1 and one above: noise of less than the first or more than the second is found with probability
        0.99.
    """
    parts = 1.0 if law == LAPLACE else 0.5
    limit = math.log(2 / least_chance) / draws / parts
    spread = float(scipy.special.ndtri(_SURE)) / math.sqrt(draws * parts)
    low = _root(limit, 1e-12, 1.0) / (1 + spread)
    high = _root(limit, 1.0, 1e12) / (1 - spread) if spread < 1 else math.inf
    power = 1.0 if law == LAPLACE else 0.5
    return low**power, high**power


@cache
def _root(limit: float, low: float, high: float) -> float:
    """The ratio r from `low` to `high` where `r - 1 - ln r` is the limit."""
    return float(scipy.optimize.brentq(lambda ratio: ratio - 1 - math.log(ratio) - limit, low, high))


def _two_sided(seen: int, of: int, probability: float) -> float:
    if of == 0:
        return 1.0
    below = float(scipy.stats.binom.cdf(seen, of, probability))
    return min(1.0, 2 * min(below, _at_least(seen, of, probability)))


def _at_least(seen: int, of: int, probability: float) -> float:
    return float(scipy.stats.binom.sf(seen - 1, of, probability)) if of else 1.0
