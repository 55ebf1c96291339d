"""How far one item can move a whole series of counts whose noise is drawn for all of it at once.

The noise is that of `dpwindows.kernel.joint_noise`, and every count is measured as it is, one lattice unit to a count.
Every number of such a vector says how many items are counted, for one threshold k and one window: an item with k
occurrences in the window is counted once, whatever else it does, and one with fewer is not counted. A rule of
counting (`dpwindows.ask.counting_rule`) takes occurrences away by what the item's own rows say. So a vector is a sum
of vectors of zeros and ones, one for each item, and each is decided by its item alone.
"""

from __future__ import annotations

from dpwindows.ask.privacy import ItemAddRemove
from dpwindows.ask.queries import Cumulative, Rolling, ToDate, Tumbling
from dpwindows.kernel.accounting import CUBE, RANGE
from dpwindows.kernel.families.periods import SeriesInPeriods
from dpwindows.kernel.maps.filters import Identity
from dpwindows.kernel.rules import ITEM_UNITS, Case, rule

_SERIES, _MAPS = (Cumulative, Rolling, Tumbling, ToDate), (Identity, SeriesInPeriods)


def _as_it_is(case: Case) -> bool:
    measured = case.measured
    if isinstance(measured, SeriesInPeriods) and not measured.continued:
        measured = measured.map
    return bool(measured == Identity())


@rule("item-in-a-cube", _SERIES, ITEM_UNITS, CUBE, _MAPS, when="one lattice unit to a count")
def item_in_a_cube(case: Case) -> int | None:
    """One item changed, added or removed: the sum over thresholds of the largest absolute change of a number.

    *Proof.* Neighbours differ in one item. Both sides' vectors are the same sum over all other items, so they differ by
    the item's own vector on the one side less that on the other, where an item that is absent has the vector 0. Each
    is of zeros and ones (module docstring), so every number moves by -1, 0 or 1, and each vector by at most 1. QED.
    """
    return len(case.thresholds) if _as_it_is(case) else None


@rule("item-in-one-direction", _SERIES, ItemAddRemove, RANGE, _MAPS, when="one lattice unit to a count")
def item_in_one_direction(case: Case) -> int | None:
    """One item added or removed: the sum over thresholds of `max(0, change) - min(0, change)`, largest and smallest.

    *Proof.* As for an item changed, but on one side the item is absent: the vectors differ by the item's own vector, of
    zeros and ones, with one sign. With the sign + the largest change is at most 1 and none is below 0; with the sign -
    none is above 0 and the smallest is at least -1. QED. (For an item that changes it may be 2: one number rises and
    another falls.)
    """
    return len(case.thresholds) if _as_it_is(case) else None
