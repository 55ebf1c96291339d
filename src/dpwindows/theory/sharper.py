r"""Sharper bounds than the paper's, with all constants, proved from the definitions alone; mostly for Gaussian noise.

Each is a multiplier: the standard error of every answer per unit of Gaussian noise, that is, in units of the noise
scale that the budget buys for a sensitivity of 1 (`unit_scale` of `dpwindows.strategies.search.noise_scales`). The
planner's own strategies are better still by constant factors; what is shown here is how errors grow.

| function | says | the paper |
|---|---|---|
| `rolling_event` | grows like `sqrt(k log W log(W/k))` | `k`, by group privacy |
| `rolling_event_saturated` | never exceeds `sqrt(W)/2` to leading order, whatever k | `k` |
| `rolling_event_histogram` | at least 1..K together, each like one threshold with K(K+1)/2 runs, at most `sqrt(W)` | |
| `rolling_event_pure` | Laplace noise: `(k^2 W)^(1/3)`, less than the paper's up to W of about 10^7 | `k log(W)^1.5` |
| `rolling_item` | grows like `sqrt(k T/W)` times a logarithm of W | `k sqrt(T/W)` and logarithms |
| `any_item` | grows like `sqrt(T)`: **no logarithm** | `sqrt(T) log T` |
| `cube_limit` | what no Gaussian noise can beat | |

Notation: `g` is the difference of the exact answers of two neighbours; noise of covariance C has the guarantee of noise
of unit scale at unit sensitivity if `g' C^-1 g <= 1` for every g. What g can be is proved in
`dpwindows.kernel.families.runs`.
"""

from __future__ import annotations

import math

from dpwindows.theory.hard_instance import at_least


def root_interval_norm(length: int) -> float:
    """`q(n) = (4/pi) sum_{j=1..n} 1/(2j-1)`: squared norm of n consecutive ones under the filter `(1 - B)^(1/2)`.

    Proof. The filter's power at frequency t is `|1 - e^(it)| = 2 |sin(t/2)|`, that of the ones
    `sin^2(nt/2) / sin^2(t/2)`. With s = t/2 their product's mean is `(4/pi) int_0^(pi/2) sin^2(ns)/sin(s) ds`,
    `sin^2(ns)/sin(s) = sum_{j=1..n} sin((2j-1)s)`, and each sine integrates to 1/(2j-1). QED.
    """
    return 4 / math.pi * sum(1 / (2 * j - 1) for j in range(1, length + 1))


def rolling_event(length: int, k: int) -> float:
    """Rolling counts, event level, one threshold: `O(sqrt(k log W log(W/k)))` for every horizon, batch or continual.

    `sqrt(v (1 + R q(ceil(W/R))))` with R = min(k, W), `v = 1 + ln(W)/pi` and q of `root_interval_norm`; and at most
    `sqrt(W)`, by noise on every answer.

    Proof. Measure through the filter `(1 - b B)^(1/2)`, b = 1 - 1/W. *Error*: the inverse has coefficients `c_j b^j`,
    `c_j^2 <= 1/(pi j)`, so the variance is at most `1 + (1/pi) sum_{j>=1} b^(2j)/j = 1 - ln(1 - b^2)/pi <= v`, as
    `1 - b^2 >= 1 - b = 1/W`. *Sensitivity*: its taps have contracting signs, so runs of ones cost no more together
    than apart (`sensitivity.interval_norms`). g is at most k runs of one sign and of total length at most W. As
    `|1 - b e^(it)| <= (1 - b) + |1 - e^(it)|`, a run of n costs at most `n/W + q(n)`; q is concave and increasing, so
    R runs cost at most `1 + R q(ceil(W/R))`. QED.
    """
    at_least("k", k, 1)
    at_least("length", length, 1)
    runs = min(k, length)
    variance = 1 + math.log(length) / math.pi
    filtered = math.sqrt(variance * (1 + runs * root_interval_norm(-(-length // runs))))
    return min(filtered, math.sqrt(length))


def rolling_event_saturated(length: int) -> float:
    """Rolling counts, event level, one threshold, **any k**: `(sqrt(W+s-1) + sqrt(ceil((W+s-1)/s))) / 2` at the best s.

    With s near `W^(1/3)` this is `sqrt(W)/2 + O(W^(1/6))`, half of what noise on every answer costs, and for k of the
    order of W no Gaussian noise does better to leading order (`cube_limit`): the error saturates in k.

    Proof. For s >= 1 let the blocks be the intervals of L = W+s-1 ends that begin at multiples of s; every end is in at
    most N = ceil(L/s) of them, and any W consecutive ends are in one. Let the noise be independent of variance a on
    every end, plus independent of variance b on every block, added to all its ends. A change g is n ones (of one
    sign) within W consecutive ends, so within a block J, and `C >= a I + b 1_J 1_J'` gives
    `g' C^-1 g <= (n - b n^2/(a + bL))/a <= (a + bL)/(4ab)`, the largest value over real n. This is 1 for
    `a = bL/(4b - 1)`, and then the variance `a + N b` is least at `4b - 1 = sqrt(L/N)`, where it is
    `(sqrt(L) + sqrt(N))^2 / 4`. QED.
    """
    at_least("length", length, 1)

    def at(shift: int) -> float:
        block = length + shift - 1
        return (math.sqrt(block) + math.sqrt(-(-block // shift))) / 2

    return min(at(shift) for shift in range(1, length + 1))


def rolling_event_histogram(length: int, largest: int) -> float:
    """Rolling counts of at least 1, ..., K (K = `largest`) together, event level, one budget: each answer's multiplier.

    `min(rolling_event(W, K(K+1)/2), sqrt(W))`: the whole histogram costs no more than one threshold with as many
    runs, and never more than `sqrt(W)`, where K separate releases would cost sqrt(K) times their own.

    Proof. An added event changes, in each window that holds it, at most one of the K counts: the old count tells which
    (`dpwindows.kernel.families.runs`). So the changes g_1, ..., g_K have disjoint supports, `1 + ... + K` runs
    over all and total length at most W. Measured apart through one filter their squared norms add, and the bound of
    `rolling_event` is for any R = min(K(K+1)/2, W) runs of total length W, wherever they are. With noise on every
    answer the squared norms add up to at most W. QED.
    """
    at_least("largest", largest, 1)
    return rolling_event(length, largest * (largest + 1) // 2)


def rolling_event_pure(length: int, k: int) -> float:
    """Rolling counts, event level, one threshold, **pure**: standard error times epsilon, `O((k^2 W)^(1/3))`, k <= W.

    `sqrt(4B - 2) (2k + ceil(W/B)/sqrt(B))` at the best B, or `sqrt(2) W` by noise on every answer. With B near
    `(W/k)^(2/3)` the first is at most about `6 (k^2 W)^(1/3)`. It is no polylogarithm, but below the paper's
    `k log(W)^1.5` with its constants up to W of about 10^7 for k = 1, 10^8 for k = 10.

    Proof. Measure all differences `x_t - x_(t-1)`, and `x_t / sqrt(B)` at every B-th t. *Sensitivity*: g is at most k
    runs, each of which changes two differences by 1, and lies within W consecutive ends, which hold at most ceil(W/B)
    of those t: at most `s = 2k + ceil(W/B)/sqrt(B)` in L1. *Error*: with Laplace noise of scale s (variance 2 s^2) an
    answer is the last of those values before it plus at most B-1 differences, or at most B-1 differences from 0:
    variance at most `2 s^2 (B + B - 1)`. QED.
    """
    at_least("k", k, 1)
    at_least("length", length, 1)

    def at(every: int) -> float:
        return math.sqrt(4 * every - 2) * (2 * k + -(-length // every) / math.sqrt(every))

    return min(math.sqrt(2) * length, *map(at, range(1, length + 1)))


def rolling_item(steps: int, length: int, k: int, *, formal: bool = True) -> float:
    """Rolling counts, item level, one threshold: `O(sqrt(k T/W) log W)`, and at most `sqrt(T)`.

    `sqrt(v (T/W + R q(ceil(T/R))))` with `R = min(T, k ceil(T/(W+1)))`, twice that for the formal relation.

    Proof. As `rolling_event`. One item's counts f are at most R runs of one sign, of total length at most T
    (`dpwindows.kernel.families.runs`), which cost at most `T/W + R q(ceil(T/R))`; `g = f` if the item is added or
    removed, and `g = f - f'` if it changes, where norms add. On every answer g is at most 1, so noise on every answer
    costs `sqrt(T)` for either relation. QED.
    """
    at_least("k", k, 1)
    at_least("length", length, 1)
    runs = min(steps, k * -(-steps // (length + 1)))
    variance = 1 + math.log(length) / math.pi
    filtered = math.sqrt(variance * (steps / length + runs * root_interval_norm(-(-steps // runs))))
    return min((2 if formal else 1) * filtered, math.sqrt(steps))


def any_item(steps: int, *, formal: bool = True) -> float:
    """Any windows, item level, one threshold: `(2 + sqrt(2)) sqrt(T) + O(log T)`, twice that for the formal relation.

    `1 + sum_{j=1..J} sqrt(2 ceil(T/2^j) - 1)` with J = ceil(log2 T). There is **no logarithm**: the change of one item
    is bounded by a staircase, a line in the square of starts and ends, which meets few of the coarse blocks.

    Proof. Let x(a, b) be the answers, 0 for a > b, continued to a square of side 2^J by x(a, T) for b > T and by 0 for
    a > T. For j = 1..J cut it into blocks of side 2^j; for every block that meets starts and ends 1..T measure what the
    mean of each of its four quarters is above the block's own, with noise of variance v_j; and measure the mean of all,
    with noise of variance v_0. An answer is the mean of all plus, scale by scale, the number of the quarter it is in:
    its variance is `v_0 + v_1 + ... + v_J`. *What an item changes*: `f(a, b) = 1(a <= tau(b))`, tau not decreasing
    (`dpwindows.kernel.families.lines`), and its continuation is of that form. A block of side s in block row p and
    block column q is constant unless `floor(u_q/s) <= p < ceil(w_q/s)`, where u_q <= w_q are the least and largest tau
    in the column; as `w_q <= u_(q+1)`, over the m = ceil(T/s) columns these are at most `m + sum_{q<m} (ceil(w_q/s) -
    floor(w_q/s)) <= 2m - 1` blocks. A constant block has no differences; in another four means within [0, 1] differ
    from their mean by at most 4 * 1/4 = 1 in squares. So `g' C^-1 g <= 1/v_0 + sum_j (2 ceil(T/2^j) - 1)/v_j` for an
    item added or removed. With N_j the numerators (N_0 = 1) and `v_j = sqrt(N_j) sum_i sqrt(N_i)` this is 1, and the
    variance is `(sum_i sqrt(N_i))^2`. A changed item is the difference of two; norms add. QED.
    """
    at_least("steps", steps, 1)
    scales = (steps - 1).bit_length()
    total = 1 + sum(math.sqrt(2 * -(-steps // 2**j) - 1) for j in range(1, scales + 1))
    return (2 if formal else 1) * total


def cube_limit(answers: int) -> float:
    """Every change of zeros and ones can occur in d answers: the least rms multiplier of any Gaussian noise.

    At least `(d - 1 + sqrt(d + 1)) / (2 sqrt(d))`, about `sqrt(d)/2`.

    So it bounds the largest error of every family that holds such answers: those of the hard instances in
    `constructions`, d = min(2k - 3, W - 1) windows for rolling counts at event level (`linear_queries`),
    `packing.marginals_in_rolling` at item level, and T for any windows at item level.

    Proof. The duality of `dpwindows.strategies.search.dual` with equal weights on all 2^d changes: their second
    moment is `X = (I + 1 1')/4`, with eigenvalues (1 + d)/4 once and 1/4 otherwise, and `sqrt(tr C / d) >= tr X^(1/2) /
    sqrt(d)`. QED.
    """
    at_least("answers", answers, 1)
    return (answers - 1 + math.sqrt(answers + 1)) / (2 * math.sqrt(answers))
