"""What a neighbour can change in windows that begin with periods: tumbling counts, and counts to date.

Steps fall into consecutive **periods**, the same for every log: they come from a calendar or a number of steps, never
from data. What occurs in one period is in no window of another. So a period's windows see a log of their own, the
events of the period's steps, and

- *an event* lies in one step, so it changes the log of **one** period, by one occurrence;
- *an item changed within L consecutive steps* changes the logs of the periods that these steps meet
  (`periods_met`), in each of them within its part of the span;
- *an item changed, added or removed* changes the log of every period, in each as the whole log was changed.

The counts to date of a period are the cumulative counts of its own log, which goes on without events where the series
of a shorter period is continued by its last value. So they are lines (`dpwindows.kernel.families.lines`), one for each
period; and one event changes what it changes of the cumulative counts of one of them.
"""

from __future__ import annotations

import numpy as np

from dpwindows.ask.zones import Int64Array
from dpwindows.kernel.proofs import proves


def periods_met(firsts: Int64Array, steps: int, span: int) -> int:
    """The most periods that `span` consecutive ones of the steps 1..steps meet, exact.

    Proof. The periods met are consecutive. A span that meets period j first may be moved to begin with the last step of
    j (or, where it would leave the range, cut there): it still meets j, and no period less behind. So the spans that
    begin with the last step of a period are enough. QED.

    Args:
        firsts: the first step of each period, ascending, beginning with 1.
        steps: the horizon.
        span: the steps within which an item may change.
    """
    last = np.append(firsts[1:] - 1, steps)
    reached = np.searchsorted(firsts, last + min(span, steps) - 1, side="right")
    return int((reached - np.arange(len(firsts))).max())


def periods_met_at_most(fewest: int, span: int) -> int:
    """A bound on the periods that `span` consecutive steps meet, where all periods but the first have `fewest` or more.

    Proof. Of n >= 2 periods met in a row all but the first and the last lie in the span, and are not the first there
    is; of those two it holds one step or more each: `span >= (n-2) fewest + 2`. QED.

    Raises:
        ValueError: periods may have no steps.
    """
    if fewest < 1:
        raise ValueError(f"every period has a step at least, not {fewest}")
    return 1 if span == 1 else (span - 2) // fewest + 2


@proves("tumbling-periods")
def tumbling_bound(rolling_by_one: int) -> int:
    """Tumbling counts: what rolling counts of length 1 cost on the log whose steps are the periods.

    Proof. Give every occurrence the number of its period in place of that of its step. The tumbling counts of the log
    are the rolling counts of length 1 of what results, number by number. Neighbours stay neighbours (module docstring):
    one occurrence stays one; an item changed, added or removed stays so; and a change within L steps is one within the
    periods they meet, which are consecutive. So `rolling_by_one`, a bound for these neighbours, is one for the tumbling
    counts. (Measured directly at event level it is 1: one window changes, for one threshold.) QED.
    """
    return rolling_by_one
