r"""Lower bounds for pure budgets with all constants: no epsilon-private mechanism is more exact, whatever it does.

**Lemma (packing).** Let a log L_0 have N different changes within reach of n neighbours: for each i <= N a log L_i that
is n neighbours away from L_0, such that the exact answers of any two L_i differ by at least n in some window that is
read. (They do where those of L_i are those of L_0 plus `n g_i`, the g_i different vectors of whole numbers.) Let
`n < ln(N/2) / epsilon`. Then every epsilon-private mechanism has, on one of the L_i, a largest error over all windows
of **at least n/2 with probability more than 1/2**. *Proof.* Let B_i be the outputs that are off by less than n/2
everywhere on L_i; they are disjoint, since the answers of two of the logs differ by at least n somewhere. If each had
probability at least 1/2 on its own log, then by group privacy each would have at least `e^(-epsilon n) / 2` on L_0, and
`1 >= N e^(-epsilon n) / 2`, against n < ln(N/2) / epsilon. QED.

At event level L_0 holds, for every change, n items which one event each would make to count that way: in a bundle
stream there is room for as many items as one likes. In a singleton stream there is not, N depends on n, and the largest
n that satisfies the inequality is taken. At item level L_0 may be empty.

Every bound of `PACKED` is that n/2, in counts, 0 where the lemma gives nothing. `cube_limit` alone speaks of Gaussian
noise, per unit of its scale, by the same changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from dpwindows.theory.bounds import Family, Level, Setting


def packed_error(changes: Callable[[int], int], epsilon: float) -> float:
    """The lemma's n/2 for the largest n; `changes(n)`, those within reach by n neighbours, must not grow with n."""

    def holds(neighbours: int) -> bool:
        count = changes(neighbours)
        return count > 0 and epsilon * neighbours < math.log(count) - math.log(2)

    if not holds(1):
        return 0.0
    low, high = 1, 2
    while holds(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low / 2


def cumulative(at: Setting) -> float:
    """Cumulative counts, event and item level: of the order of ln(T) / epsilon (Dwork, Naor, Pitassi, Rothblum 2010).

    The changes are 1 on [x, T]: n points at x in `constructions.range_queries`. Bundle: x = 1..T. Singleton: T steps
    make `T // n - (k - 1)` groups of n values.
    """
    return packed_error(lambda n: at.steps // n - (at.k - 1) if at.singleton else at.steps, at.epsilon)


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


def rolling_event(at: Setting) -> float:
    """Rolling counts, event level: bundle of the order of `(ln T + k ln(W/k)) / epsilon`, linear in k.

    Bundle: `rolling_event_patterns`. Singleton, the best of two. Intervals: for k = 1 the windows after any of T // n
    groups of n <= W steps (read at the ends of groups); for larger k a cumulative instance of min(W, T) steps
    (`constructions.as_rolling`). Linear queries: the 2^d patterns of `constructions.linear_queries`, n columns of each,
    which need `k >= 2 + d // 2`, `n 2^d (d + k - 1) <= W` (idle steps after the first d groups make up for the rest of
    W) and `n 2^d d + W <= T`.
    """
    steps, length, k = at.steps, at.length, at.k
    if not at.singleton:
        return packed_error(lambda n: rolling_event_patterns(steps, length, k), at.epsilon)

    def intervals(n: int) -> int:
        if k == 1:
            return steps // n if n <= length else 0
        return min(length, steps) // n - (k - 1)

    def queries(n: int) -> int:
        fits = [
            2**d
            for d in range(1, min(2 * k - 2, length))
            if n * 2**d * (d + k - 1) <= length and n * 2**d * d + length <= steps
        ]
        return max(fits, default=0)

    return max(packed_error(intervals, at.epsilon), packed_error(queries, at.epsilon))


def any_event_patterns(steps: int, k: int) -> int:
    """How many changes of the counts of any windows one added event can make, at least: `C(T+2, 2k+1)`.

    With the event at s, let the item's k last occurrences before it be in steps l_1 > ... > l_k >= 0 (0: there is
    none) and its k first ones after it in s < r_1 < ... < r_k <= T+1 (T+1: there is none). Then the change is the union
    of the rectangles of starts (l_(i+1), l_i] and ends [r_(k-1-i), r_(k-i)), with l_0 = r_0 = s. Its rows and columns
    tell s, all l and all r, so all `sum_s C(s, k) C(T+1-s, k)` of them are different.
    """
    return math.comb(steps + 2, 2 * k + 1)


def any_event(at: Setting) -> float:
    """Any windows, event level: bundle of the order of `k ln(T/k) / epsilon`; singleton as cumulative counts."""
    return cumulative(at) if at.singleton else packed_error(lambda n: any_event_patterns(at.steps, at.k), at.epsilon)


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


def rolling_item(at: Setting) -> float:
    """Rolling counts, item level: bundle of the order of `min(k, W) (T/W) / epsilon`.

    All 2^d rows of d marginals. Singleton: one column a window, which holds n items k times each only if n k <= W: the
    bound is at most W / (2k).
    """
    columns = at.steps // at.length if at.singleton else marginals_in_rolling(at.steps, at.length, at.k)
    return packed_error(lambda n: 0 if at.singleton and n * at.k > at.length else 2**columns, at.epsilon)


def any_item(at: Setting) -> float:
    """Any windows, item level: bundle of the order of `T / epsilon`, singleton of the order of `sqrt(T / (k epsilon))`.

    All 2^d rows of d marginals (`constructions.marginals_any`): d = T, or `T // (n k)` in a singleton stream.
    """
    return packed_error(lambda n: 2 ** (at.steps // (n * at.k) if at.singleton else at.steps), at.epsilon)


def cube_limit(answers: int) -> float:
    """Every change of zeros and ones can occur in d answers: the least rms multiplier of any Gaussian noise.

    At least `(d - 1 + sqrt(d + 1)) / (2 sqrt(d))`, about `sqrt(d)/2`. So it bounds the largest error of every family
    that holds such answers: those of the hard instances in `constructions`, d = min(2k - 3, W - 1) windows for rolling
    counts at event level (`linear_queries`), `marginals_in_rolling` at item level, and T for any windows at item level.

    Proof. The duality of `dpwindows.strategies.search.dual` with equal weights on all 2^d changes: their second
    moment is `X = (I + 1 1')/4`, with eigenvalues (1 + d)/4 once and 1/4 otherwise, and `sqrt(tr C / d) >= tr X^(1/2) /
    sqrt(d)`. QED.
    """
    return (answers - 1 + math.sqrt(answers + 1)) / (2 * math.sqrt(answers))


PACKED: dict[tuple[Family, Level], Callable[[Setting], float]] = {
    ("cumulative", "event"): cumulative,
    ("cumulative", "item"): cumulative,
    ("rolling", "event"): rolling_event,
    ("rolling", "item"): rolling_item,
    ("any", "event"): any_event,
    ("any", "item"): any_item,
}
