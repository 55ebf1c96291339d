"""Certificates of several window families that are measured as one: more rows of the table in `certify`.

| windows | map | event | item within one step |
|---|---|---|---|
| rolling, of several lengths | matrix filter | intervals by history | intervals by history |
"""

from __future__ import annotations

from dpwindows.ask.privacy import EventLevel, ItemPerPeriod
from dpwindows.ask.queries import RollingTogether
from dpwindows.kernel.accounting import GAUSSIAN
from dpwindows.kernel.bounds.together import rolling_together_event_l2
from dpwindows.kernel.certify import Certificate, NotCertifiedError, require_own
from dpwindows.kernel.maps.endless_counter import MOST_STEPS
from dpwindows.kernel.maps.matrix_filters import MatrixFilter
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.proofs import name_of


def certify_together(
    problem: Problem, lengths: tuple[int, ...], measured: MatrixFilter, steps: int | None
) -> Certificate:
    """Rolling counts of several lengths through one filter on all of them.

    Args:
        problem: windows, unit, law and thresholds; its `steps` are not read.
        lengths: of the windows, in the order of the filter's lanes.
        measured: the filter that is applied.
        steps: the horizon in steps, None if there is none.

    Raises:
        NotCertifiedError: no proof covers it.
    """
    one_step = isinstance(problem.unit, EventLevel) or problem.unit == ItemPerPeriod(1)
    covered = one_step and problem.law == GAUSSIAN and problem.thresholds == (1,)
    if not covered or problem.window != RollingTogether(lengths) or measured.lanes != len(lengths):
        raise NotCertifiedError(problem, measured)
    require_own(problem, measured)
    bound = rolling_together_event_l2(measured.taps, lengths)
    # Changes of max W ends reach as many numbers further as the filter remembers.
    ends = min(MOST_STEPS if steps is None else steps, max(lengths) + measured.memory)
    return Certificate(bound, name_of(rolling_together_event_l2), ends * len(lengths))
