r"""Lower bounds for pure budgets with all constants: no epsilon-private mechanism is more exact, whatever it does.

**Lemma (packing).** Let a log L_0 have N different changes within reach of n neighbours: for each i <= N a log L_i that
is n neighbours away from L_0, such that the exact answers of any two L_i differ by at least n in some window that is
read. (They do where those of L_i are those of L_0 plus `n g_i`, the g_i different vectors of whole numbers.) Let
n < ln(p N) / epsilon for some 0 < p < 1. Then every epsilon-private mechanism has, on one of the L_i, a largest error
over all windows of **at least n/2 with probability more than 1 - p**. *Proof.* Let B_i be the outputs that are off by
less than n/2 everywhere on L_i; they are disjoint, since the answers of two of the logs differ by at least n somewhere.
If each had probability at least p on its own log, then by group privacy each would have at least `e^(-epsilon n) p` on
L_0, and `1 >= N e^(-epsilon n) p`, against n < ln(pN)/epsilon.
QED.

At event level L_0 holds, for every change, n items which one event each would make to count that way: in a bundle
stream there is room for as many items as one likes. In a singleton stream there is not, N depends on n, and the largest
n that satisfies the inequality is taken. At item level L_0 may be empty.

Every function returns that n/2, in counts; `failure` is 1 - p. It is 0 where the lemma gives nothing. `cube_limit`
alone speaks of Gaussian noise, per unit of its scale, by the same changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from dpwindows.theory.hard_instance import at_least

Patterns = Callable[[int], int]


def packed_error(patterns: Patterns, epsilon: float, failure: float = 0.5) -> float:
    """The lemma's n/2 for the largest n such that `n < ln((1 - failure) patterns(n)) / epsilon`.

    `patterns(n)`, the number of changes within reach by n neighbours, must not grow with n.
    """

    def holds(copies: int) -> bool:
        count = patterns(copies)
        return count > 0 and epsilon * copies < math.log(1 - failure) + math.log(count)

    if not holds(1):
        return 0.0
    low = 1
    while holds(2 * low):
        low *= 2
    high = 2 * low
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low / 2


def cumulative(steps: int, k: int, epsilon: float, *, singleton: bool = False, failure: float = 0.5) -> float:
    """Cumulative counts, event and item level: of the order of ln(T) / epsilon (Dwork, Naor, Pitassi, Rothblum 2010).

    The changes are 1 on [x, T]: n points at x in `constructions.range_queries`. Bundle: x = 1..T. Singleton: T steps
    make `T // n - (k - 1)` groups of n values.
    """
    at_least("k", k, 1)
    return packed_error(lambda n: steps // n - (k - 1) if singleton else steps, epsilon, failure)


def rolling_event_patterns(steps: int, length: int, k: int) -> int:
    """A lower bound on how many different changes of rolling counts one added event can make.

    Any T: for every step s, 1 on the ends s..s+W-1 that exist, with k-1 other occurrences at s. For T >= 2W also, from
    any s = W+1..T-W+1, every pattern of 1..k runs within W places that begins at s, `sum_r C(W, 2r-1)` of them (the
    2r-1 turns after the first are any of W places): let the item have k-1 occurrences at or before s, let one of them,
    W steps old, leave the window where a run but the last ends, one enter where the next begins, and one enter where
    the last ends.
    """
    turns = sum(math.comb(length, 2 * runs - 1) for runs in range(1, k + 1))
    return max(steps, (steps - 2 * length + 1) * turns if steps >= 2 * length else 0)


def rolling_event(
    steps: int, length: int, k: int, epsilon: float, *, singleton: bool = False, failure: float = 0.5
) -> float:
    """Rolling counts, event level: bundle of the order of `(ln T + k ln(W/k)) / epsilon`, linear in k.

    Bundle: `rolling_event_patterns`. Singleton, the best of two. Intervals: for k = 1 the windows after any of T // n
    groups of n <= W steps (read at the ends of groups); for larger k a cumulative instance of min(W, T) steps
    (`constructions.as_rolling`). Linear queries: the 2^d patterns of `constructions.linear_queries`, n columns of each,
    which need `k >= 2 + d // 2`, `n 2^d (d + k - 1) <= W` (idle steps after the first d groups make up for the rest of
    W) and `n 2^d d + W <= T`.
    """
    at_least("k", k, 1)
    if not singleton:
        return packed_error(lambda n: rolling_event_patterns(steps, length, k), epsilon, failure)
    intervals = packed_error(lambda n: _singleton_intervals(n, steps, length, k), epsilon, failure)
    return max(intervals, packed_error(lambda n: _singleton_patterns(n, steps, length, k), epsilon, failure))


def _singleton_intervals(copies: int, steps: int, length: int, k: int) -> int:
    if k == 1:
        return steps // copies if copies <= length else 0
    return min(length, steps) // copies - (k - 1)


def _singleton_patterns(copies: int, steps: int, length: int, k: int) -> int:
    best = 0
    for d in range(1, 2 * k - 2):
        columns = copies * 2**d
        if columns * (d + k - 1) > length or columns * d + length > steps:
            break
        best = 2**d
    return best


def any_event_patterns(steps: int, k: int) -> int:
    """How many changes of the counts of any windows one added event can make, at least: `C(T+2, 2k+1)`.

    With the event at s, let the item's k last occurrences before it be in steps l_1 > ... > l_k >= 0 (0: there is
    none) and its k first ones after it in s < r_1 < ... < r_k <= T+1 (T+1: there is none). Then the change is the union
    of the rectangles of starts (l_(i+1), l_i] and ends [r_(k-1-i), r_(k-i)), with l_0 = r_0 = s. Its rows and columns
    tell s, all l and all r, so all `sum_s C(s, k) C(T+1-s, k)` of them are different.
    """
    return math.comb(steps + 2, 2 * k + 1)


def any_event(steps: int, k: int, epsilon: float, *, singleton: bool = False, failure: float = 0.5) -> float:
    """Any windows, event level: bundle of the order of `k ln(T/k) / epsilon`; singleton as cumulative counts."""
    at_least("k", k, 1)
    if singleton:
        return cumulative(steps, k, epsilon, singleton=True, failure=failure)
    return packed_error(lambda n: any_event_patterns(steps, k), epsilon, failure)


def marginals_in_rolling(steps: int, length: int, k: int) -> int:
    """How many columns of 1-way marginals T steps of rolling counts can hold, at item level, in a bundle stream.

    One to a window (`constructions.marginals_rolling`), or, for k > 1, `b = min(2k - 3, W - 1)` to W + b steps
    (`constructions.dense_marginals_rolling`).
    """
    plain = steps // length
    width = min(2 * k - 3, length - 1)
    if width < 1:
        return plain
    blocks, rest = divmod(steps, length + width)
    return max(plain, blocks * width + max(0, min(width, rest - length)))


def rolling_item(
    steps: int, length: int, k: int, epsilon: float, *, singleton: bool = False, failure: float = 0.5
) -> float:
    """Rolling counts, item level: bundle of the order of `min(k, W) (T/W) / epsilon`.

    All 2^d rows of d marginals. Singleton: one column a window, which holds n items k times each only if n k <= W: the
    bound is at most W / (2k).
    """
    at_least("k", k, 1)
    if singleton:
        columns = steps // length
        return packed_error(lambda n: 2**columns if n * k <= length else 0, epsilon, failure)
    columns = marginals_in_rolling(steps, length, k)
    return packed_error(lambda n: 2**columns, epsilon, failure)


def any_item(steps: int, k: int, epsilon: float, *, singleton: bool = False, failure: float = 0.5) -> float:
    """Any windows, item level: bundle of the order of `T / epsilon`, singleton of the order of `sqrt(T / (k epsilon))`.

    All 2^d rows of d marginals (`constructions.marginals_any`): d = T, or `T // (n k)` in a singleton stream.
    """
    at_least("k", k, 1)
    return packed_error(lambda n: 2 ** (steps // (n * k) if singleton else steps), epsilon, failure)


def cube_limit(answers: int) -> float:
    """Every change of zeros and ones can occur in d answers: the least rms multiplier of any Gaussian noise.

    At least `(d - 1 + sqrt(d + 1)) / (2 sqrt(d))`, about `sqrt(d)/2`.

    So it bounds the largest error of every family that holds such answers: those of the hard instances in
    `constructions`, d = min(2k - 3, W - 1) windows for rolling counts at event level (`linear_queries`),
    `marginals_in_rolling` at item level, and T for any windows at item level.

    Proof. The duality of `dpwindows.strategies.search.dual` with equal weights on all 2^d changes: their second
    moment is `X = (I + 1 1')/4`, with eigenvalues (1 + d)/4 once and 1/4 otherwise, and `sqrt(tr C / d) >= tr X^(1/2) /
    sqrt(d)`. QED.
    """
    at_least("answers", answers, 1)
    return (answers - 1 + math.sqrt(answers + 1)) / (2 * math.sqrt(answers))
