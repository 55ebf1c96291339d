"""Certificates of series of counts whose noise is drawn for the whole series at once (`dpwindows.kernel.joint_noise`).

They are the last rows of the table in `dpwindows.kernel.certify`: every count of a threshold is measured as it is, one
lattice unit to a count, so how far one item can move it follows from what a count is.
"""

from __future__ import annotations

from dpwindows.ask.privacy import ItemAddRemove, ItemLevel, ItemPerPeriod
from dpwindows.ask.queries import Cumulative, PeriodFamily, Rolling
from dpwindows.kernel.accounting import CUBE, RANGE
from dpwindows.kernel.bounds.counts_of_one_item import item_in_a_cube, item_in_one_direction
from dpwindows.kernel.certify import NotCertifiedError, require_own
from dpwindows.kernel.maps.filters import Identity
from dpwindows.kernel.maps.integer_maps import IntegerMap
from dpwindows.kernel.maps.repeated import Repeated
from dpwindows.kernel.problem import Problem
from dpwindows.kernel.proofs import name_of


def jointly(problem: Problem, measured: IntegerMap) -> tuple[int, str]:
    """A series of counts as it is, under a law that is drawn for all numbers of a threshold at once.

    Returns:
        The bound on the norm of the law, summed over thresholds, and the name of its proof.

    Raises:
        NotCertifiedError: no proof covers it.
    """
    require_own(problem, measured)
    one = measured.map if isinstance(measured, Repeated) and measured.causal else measured
    if one == Identity() and isinstance(problem.window, (Cumulative, Rolling, PeriodFamily)):
        vectors = len(problem.thresholds)
        if problem.law == RANGE and isinstance(problem.unit, ItemAddRemove):
            return item_in_one_direction(vectors), name_of(item_in_one_direction)
        if problem.law == CUBE and isinstance(problem.unit, (ItemPerPeriod, ItemLevel, ItemAddRemove)):
            return item_in_a_cube(vectors), name_of(item_in_a_cube)
    raise NotCertifiedError(problem, measured)
