r"""The least error under a pure budget: lower bounds for noise of any distribution that does not depend on the data.

Let an epsilon-private mechanism add noise z to d exact answers, whatever its distribution, but the same for all data.
Then `P(z + g in B) <= e^epsilon P(z in B)` for every set B and every change g that one neighbour can make. With
`a = e^-epsilon`:

**Two neighbours (proved).** `g' C^-1 g <= (1 - a)^2 (1 + a) / (2 a)` for the covariance C of z. So every limit for
Gaussian noise (`dual`), per unit of its scale, is one here times `pure_scale`, the root of the inverse. *Proof.* Under
the law P of z let r and s be the densities of z + g and z - g: both have mean 1 and lie between a and 1/a, and
`r + s - 2a >= |r - s|`. So `E (r-s)^2 <= (1/a - a) E |r-s| <= (1/a - a) (2 - 2a)`. For every vector u, by Cauchy and
Schwarz, `(2 u'g)^2 = (E (r-s) u'(z - E z))^2 <= E (r-s)^2 u'Cu`. Take `u = C^-1 g`. QED.

For unbiased mechanisms whose noise depends on the data the same holds of C at any log from which g and -g both lead to
neighbours, such as one with an item of every history. With one answer that changes by 1 the bound is `pure_scale`; the
two-sided geometric, the best noise on whole numbers, has `sqrt(1 + a)` times as much.

**Many neighbours (proved).** At item level far more is needed, since one item changes in very many ways. Let the
changes be whole numbers, let x be the sum of no fewer than n(x) of them, and `N = sum a^n(x)` over all vectors x of
whole numbers. Then `E |z|^2 >= d (R^2 / (d + 2) - 1/12)`, with R the radius of the d-dimensional ball of volume N.
*Proof.* Look at one of the cosets `z + Z^d` (the general case is a mean over them). Let the most likely vector of it
have probability p. Each of the others has at least `p a^n(x)` for its distance x, and together they have 1: `p <= 1/N`.
Add a uniform vector in the cube of side 1 about 0: the density is now at most 1/N, and `E |z|^2` has grown by d/12, as
such a vector has mean 0. Of all densities of at most 1/N that on the ball of volume N has the least second moment,
`R^2 d / (d + 2)`. QED.

*Rolling counts of one item*, over W steps. Take answers in blocks of s, by turns W steps apart (starting blocks first)
and next to each other. Let the item begin to be counted at any place of a starting block or right after it, and stop
at any place of the other block or right before it: it is counted for W steps or more in between, so both occur, in all
pairs of blocks at once and freely. In a block the differences of neighbouring answers (which leaves the lattice and
volumes as they are) have one 1 or none. An item added or removed makes x in n = max(sum of its positive parts) +
max(sum of its negative parts) changes, the maxima being over blocks; where an item changes arbitrarily, in the largest
of all these sums. With `K(m) = sum_j C(s, j) C(m, j) C(m + s - j, s - j)` vectors of s whole numbers whose positive
parts sum to at most m, and whose negative parts do, and b blocks, `N >= (1-a)^2 sum_m a^2m K(m)^b` for an item added or
removed, and `N = (1-a) sum_m a^m K(m)^b` for one that changes. (For each pair of maxima sum by parts; of the pairs only
those of equal maxima are kept.) Shifting the blocks by all their period `W + 2s` meets each answer at most 2s times. Of
W = 1 all answers are free: blocks of one, next to each other.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dpwindows.kernel.maps.integer_maps import FloatArray

# Sizes of blocks that are tried, and how far above their order of magnitude sums are looked at.
_BLOCKS, _FAR, _POINTS = (1, 2, 3, 5, 8, 12, 18, 27), 4.0, 400


def pure_scale(epsilon: float) -> float:
    """The factor from limits for Gaussian noise of unit scale to limits for any noise under a pure budget."""
    quiet = float(np.exp(-epsilon))
    return float(np.sqrt(2 * quiet / (1 + quiet)) / -np.expm1(-epsilon))


@lru_cache(maxsize=128)
def many_neighbours(steps: int, length: int, epsilon: float, *, changed: bool) -> float:
    """A lower bound on the rms error of rolling counts of whole items, in counts; 0 where it says nothing.

    One item is added or removed, or (`changed`) changes arbitrarily.
    """
    return max(_from_blocks(steps, length, size, epsilon, changed=changed) for size in _BLOCKS)


def _from_blocks(steps: int, length: int, size: int, epsilon: float, *, changed: bool) -> float:
    """The lower bound of `many_neighbours`, from blocks of one size."""
    if length == 1:
        least = _least_square(steps, 1, epsilon, changed=changed) if size == 1 else 0.0
        return float(np.sqrt(max(0.0, least) / steps))
    period = length + 2 * size
    # Pairs of blocks that lie in the range, the first of them at each place of a period.
    pairs = (steps - np.arange(period)) // period
    total = sum(
        count * max(0.0, _least_square(2 * blocks, size, epsilon, changed=changed))
        for blocks, count in zip(*np.unique(pairs[pairs > 0], return_counts=True), strict=True)
    )
    return float(np.sqrt(total / (2 * size * steps)))


def _least_square(blocks: int, size: int, epsilon: float, *, changed: bool) -> float:
    """The bound on `E |z|^2` for this number of blocks."""
    numbers = blocks * size
    # Terms of the sum over m, in logarithms: some of them are enough.
    each = epsilon if changed else 2 * epsilon
    most = np.unique(np.geomspace(1, _FAR * numbers / each + 8, _POINTS).astype(np.int64)).astype(np.float64)
    terms = blocks * _vectors(most, size) - each * most
    volume = terms.max() + (1 if changed else 2) * np.log(-np.expm1(-epsilon))
    from scipy.special import gammaln  # streams and short plans begin without it

    # The volume of the ball of radius 1 in `numbers` dimensions.
    ball = numbers / 2 * np.log(np.pi) - gammaln(numbers / 2 + 1)
    return float(numbers * (np.exp(2 * (volume - ball) / numbers) / (numbers + 2) - 1 / 12)) * (1 - 1e-9)


def _vectors(most: FloatArray, size: int) -> FloatArray:
    """The logarithm of K(m) for every m."""
    positive = np.arange(size + 1.0)[:, None]
    chosen = _choose(float(size), positive) + _choose(most, positive) + _choose(most + size - positive, size - positive)
    return np.asarray(np.logaddexp.reduce(np.where(positive <= most, chosen, -np.inf), axis=0))


def _choose(whole: FloatArray | float, part: FloatArray) -> FloatArray:
    from scipy.special import gammaln

    with np.errstate(invalid="ignore"):
        return np.asarray(gammaln(whole + 1.0) - gammaln(part + 1.0) - gammaln(whole - part + 1.0))
