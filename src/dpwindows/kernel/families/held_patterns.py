r"""The difference of two items' rolling counts for k = 1: every run of either holds at least W places.

`priced_changes` of `dpwindows.kernel.families.changes_of_two_counts` serve any threshold, but know only how often an
item is counted on average. For k = 1 more is known: an item that starts being counted stays so for W steps.
With L the span, p its first step, and places 1..N the windows that end at p..p+N-1, `N <= W+L-1`:

*What can change.* Occurrences outside the span are shared. The places whose windows hold none of them are an interval
(those before the span leave, those after it come), and g = 0 elsewhere. In the interval `g = h - h'`, where h is 1
where the window holds an occurrence of the one log within the span: h starts in places 1..L only, and every run of h
has at least W places, for an occurrence is seen by W windows (the horizon may cut the last one).

*What is computed.* The largest that is charged (`signed_patterns`) over all h, h' of that kind and all intervals
(`held_changes`). For long windows time is told by a coarse clock, one tick for every u steps: a run of W steps passes
`(W-1) // u` ticks at least between its first and its last step, and holding for these ticks is all that is asked.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpwindows.kernel.families.signed_patterns import SignedLags


@dataclass(frozen=True)
class Held:
    """The changes that one item can make for k = 1: `starts` = L, `length` = W, `places` = N (module docstring)."""

    starts: int
    length: int
    places: int


def two_runs_bound(lags: SignedLags, known: Held) -> int:
    """Bound on `g'Gg / 2^shift` over all changes for k = 1 and L <= W+1; it is attained but for the rounding of lags.

    Proof. Occurrences within the span are at most W steps apart, so h is one interval of places (or nowhere 1), from
    one in 1..L to one in W..W+L-1; h' likewise. If one is nowhere 1, or in the interval only, g is one run of at most N
    places. Otherwise their difference is at most two runs, of any signs: one between their first places, within the
    places 1..L-1, and one between their last, within W+1..W+L-1; cut to the interval they are the same or shorter. If
    they have one sign, one of h and h' begins later and ends earlier, and its W places or more lie between. For runs of
    n and n' places with z between them `g'Gg = q(n) + q(n') +- (q(n+z+n') - q(n+z) - q(z+n') + q(z))`, q(n)
    being the form of n ones. The largest over all n, n' and z that fit into N places is returned. QED.
    """
    reach, outer = known.places, min(known.starts - 1, known.places)
    rises = np.zeros(reach, dtype=np.int64)
    kept = lags.values[:reach]
    rises[: len(kept)] = 2 * np.array(kept, dtype=np.int64)
    rises[0] = lags.values[0]
    norms = np.concatenate([[0], np.cumsum(np.cumsum(rises))])
    best = int(norms.max())
    first, second = np.meshgrid(np.arange(1, outer + 1), np.arange(1, outer + 1), indexing="ij")
    for zeros in range(known.length + 1 - known.starts, reach - 1):
        fits = first + zeros + second <= reach
        n, m = first[fits], second[fits]
        pairs = norms[n + zeros + m] - norms[n + zeros] - norms[zeros + m] + norms[zeros]
        apart = norms[n] + norms[m]
        best = max(best, int((apart - pairs).max(initial=0)))
        if zeros >= known.length:
            best = max(best, int((apart + pairs).max(initial=0)))
    return best
