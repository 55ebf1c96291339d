"""One table that agrees with itself, from all released estimates of a release.

Its numbers obey what holds for the counts of any log. They are whole and none is below 0. A window counts no less than
a window in it, whatever their families. At least k + 1 is no more than at least k, and exactly k is their difference.
A window's count of at least i + j - 1 is no more than its first part's of at least i plus the rest's of at least j.
For distinct items, what a step adds to a window it adds to every shorter window that ends there. Occurrences of a
window are the sum of those of its steps, and no fewer than its items.

How it is made: estimates are smoothed as far as that is known to help (`smoothing`); windows in several families get
one number, by their errors; distinct counts of any windows, and of several other families, become the nearest that a
log can have (`nearest_log`); then families are taken by their errors, least first, and each is held within what those
before it say (`_agree`); numbers become whole so that all of that holds exactly (`band`, `series`).

Its only input is released numbers and public facts, so it costs nothing. It is chosen by its error on real logs
(`benchmarks/consistent.py`), and it is biased: the estimate beside it is not, and keeps its interval.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from dpwindows.ask.windows import longest_window
from dpwindows.kernel.maps.integer_maps import FloatArray, IntArray
from dpwindows.plan.workload import is_solved, table_length
from dpwindows.release.consistency.band import (
    Band,
    bend,
    follow,
    leave_to_parts,
    lower_to_parts,
    monotone,
    whole_distinct,
)
from dpwindows.release.consistency.families import Family, Known, family_of, known_of
from dpwindows.release.consistency.nearest_log import Longer, nearest_log
from dpwindows.release.consistency.occurrences import Occurrences, fit_occurrences
from dpwindows.release.consistency.rows import in_order, rows_by_end, rows_by_start
from dpwindows.release.consistency.series import Series, finder, lower_to_overlaps, lower_to_sums, raise_parts
from dpwindows.release.consistency.smoothing import Smoothed

if TYPE_CHECKING:
    from dpwindows.plan.planned import Planned

# Of numbers that nothing is known of; and the least squared error.
_NO_WEIGHT = 1e-12
# How many windows near one of another family may have its error, or nearly.
_VOTES = 1000
# By how much less windows weigh that are longer than any windows, and of no family.
_BEYOND = 1_000_000
# How many rounds larger tables are bent in: many where exact families and inexact ones have to agree.
_BENDS_ALONE, _BENDS = 30, 300

Table = Band | Series


def consistent_counts(
    plan: Planned, estimates: Sequence[FloatArray], progress: Callable[[float], None] = lambda done: None
) -> list[IntArray] | None:
    """The consistent number of every estimate of a plan, in the order asked; each group agrees with itself.

    They are whole, and shaped as the estimates; None where there are too many sums of parts to look at. `progress` is
    called with how many numbers were done since the last call.
    """
    left, found, steps = iter(estimates), dict[int, list[list[IntArray]]](), plan.timeline.steps
    given = [[next(left) for _ in allotment.query.measures] for allotment in plan.allotments]
    groups_of = {allotment.by: allotment.groups for allotment in plan.allotments}
    every = sum(groups_of.values())
    for by, groups in groups_of.items():
        level = [at for at, allotment in enumerate(plan.allotments) if allotment.by == by]
        known = [known_of(plan, plan.allotments[at]) for at in level]
        for group in range(groups):
            parts = [[np.split(one, groups)[group] for one in given[at]] for at in level]
            try:
                table = _table([family_of(*both) for both in zip(known, parts, strict=True)], steps, every)
            except OverflowError:
                return None
            for at, numbers in zip(level, table, strict=True):
                found.setdefault(at, []).append(numbers)
                progress(sum(map(len, numbers)))
    return [np.concatenate(one) for at in sorted(found) for one in zip(*found[at], strict=True)]


def _table(families: Sequence[Family], steps: int, groups: int) -> list[list[IntArray]]:
    """The consistent numbers of all measures of families of one group; `OverflowError` where sums are too many.

    There are so many `groups`, this one among them.
    """
    tables, errors = _tables(families, steps, groups)
    distinct = [(t, e) for t, e in zip(tables, errors, strict=True) if isinstance(t, Series) and t.k == 1]
    raise_parts([(series, error) for series, error in distinct if not series.is_exact])
    order = [tables[at] for at in np.argsort(errors, kind="stable")]
    order.sort(key=lambda table: table.is_exact)
    found = fit_occurrences(families, steps)
    held = [] if found is None else [found]
    _agree(order, held)
    _share_exact([table for table in order if isinstance(table, Series) and table.is_exact])
    for at, table in enumerate(order):
        _make_whole(table, [*held, *order[:at]])
    # Distinct counts of any windows are the counts of a log now: the others follow them.
    order.sort(key=lambda table: not (isinstance(table, Band) and table.k == 1))
    _agree(order, held)
    _lower(order, held)
    return [
        [
            held[0].least_around(*family.known.windows) if kind == "occurrences" else _read(at, family, kind, k, order)
            for kind, k in family.known.asked
        ]
        for at, family in enumerate(families)
    ]


# --- One number for each window, and an order between all of them ---------------------------------------------------


def _tables(families: Sequence[Family], steps: int, groups: int) -> tuple[list[Table], list[float]]:
    """Bands of any windows, with what other families say of the same windows; and series of all other windows."""
    tables, errors = list[Table](), list[float]()
    longest = _table_lengths(families, steps, groups)
    below: FloatArray | None = None
    bands, typicals, solved = list[Band](), dict[int, float](), True
    for k, span in sorted(longest.items()):
        # Those of any windows are let go once they are in the band, for there may be millions.
        every = [
            (family.known, family.at_least.pop(k) if family.known.is_any else family.at_least[k])
            for family in families
            if k in family.at_least
        ]
        typical = _typical([one for one in every if one[0].is_any] or every)
        values, weights = _merged(every, span, steps, 1 / typical, below)
        longer = _longer(every, span, 1 / typical) if k == 1 else []
        bends = _BENDS_ALONE if len(every) == 1 else _BENDS
        del every
        monotone(values, weights, typical)
        solved = solved and is_solved(steps, span, groups)
        if k == 1 and not (solved and nearest_log(values, weights, typical, longer)):
            bend(values, weights, bends)
            monotone(values, weights, typical)
        below = values
        bands.append(Band(k, values, weights))
        typicals[k] = typical
        # None is raised to what is known of a larger threshold, which smoothing may have done more for.
        error = float(np.concatenate([1 / row for row in rows_by_end(weights)]).mean())
        errors.append(max([error, *errors]))
    if solved and any(band.k > 1 for band in bands):
        leave_to_parts(bands, list(typicals.values()))
    tables += bands
    by_k = {band.k: band for band in bands}
    for at, family in enumerate(families):
        first, last = family.known.windows
        for k, found in family.at_least.items() if not family.known.is_any else ():
            beyond = last - first >= longest.get(k, 0)
            if beyond.any():
                series = Series(k, first[beyond], last[beyond], found.values[beyond])
                series.rise_from_one_start()
                if k in by_k:
                    least = float(_weights_beside(found.squared_error[beyond], 1 / typicals[k]).max())
                    np.maximum(series.values, by_k[k].largest_exact_within(*series.windows(), least), out=series.values)
                tables.append(series)
                errors.append(float(found.squared_error[beyond].mean()))
        for k, found in family.exact.items():
            tables.append(Series(k, first, last, found.values, exact_of=at))
            errors.append(float(found.squared_error.mean()))
    return tables, errors


def _table_lengths(families: Sequence[Family], steps: int, groups: int) -> dict[int, int]:
    """For each threshold that has a table of all windows, the longest of them: 1, and those of any windows."""
    found = dict[int, int]()
    for k in sorted({k for family in families for k in family.at_least}):
        of_k = [family.known for family in families if k in family.at_least]
        longest = table_length([known.allotment.query.window for known in of_k], steps, groups)
        if longest and (k == 1 or any(known.is_any for known in of_k)):
            found[k] = longest
    return found


def _merged(
    every: Sequence[tuple[Known, Smoothed]], span: int, steps: int, common: float, below: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """Windows of at most `span` steps, one number each by the errors of the families that have it; and its weight.

    `common` is the squared error of most any windows, `below` the counts of a threshold below, if those are known.
    """
    lengths = (longest_window(known.allotment.query.window, steps) for known, _ in every if known.is_any)
    own_longest = max(lengths, default=0)

    def means(some: Sequence[tuple[Known, Smoothed]]) -> tuple[FloatArray, FloatArray]:
        total, weights = np.zeros((steps, span)), np.full((steps, span), _NO_WEIGHT)
        for known, found in some:
            if known.is_any:
                _add(known, found, total, weights)
                continue
            first, last = known.windows
            held = last - first < span
            places = last[held] - 1, (last - first)[held]
            del first, last
            weight = _weights_beside(found.squared_error[held], common)
            total[places] += weight * found.values[held]
            weights[places] += weight
        total /= weights
        for place in range(own_longest, span):
            unknown = place + np.flatnonzero(weights[place:, place] == _NO_WEIGHT)
            weights[unknown, place] = (weights[unknown, own_longest - 1] if own_longest else 1 / common) / _BEYOND
            # Nobody reads these: the most that they can be leaves most room to the windows that they are in.
            if not own_longest:
                total[unknown, place] = _least_known(some, unknown + 1 - place, unknown + 1)
            elif below is not None and span <= below.shape[1]:
                total[unknown, place] = below[unknown, place]
            else:
                # What a step adds to a window it adds to every shorter one, and nearly as much where these are long.
                before = total[unknown - 1, place - 2] if place > 1 else 0.0
                total[unknown, place] = total[unknown, place - 1] + total[unknown - 1, place - 1] - before
        return total, weights

    both, weights = means(every)
    of_one_length = [
        length for known, _ in every if (length := _rolling_length(known)) is not None and length <= own_longest
    ]
    if not of_one_length:
        return both, weights
    own, own_weights = means([one for one in every if one[0].is_any])
    moves = {length: both[:, length - 1] - own[:, length - 1] for length in of_one_length}
    return np.where(weights > own_weights, both, follow(own, moves)), weights


def _least_known(families: Sequence[tuple[Known, Smoothed]], first: IntArray, last: IntArray) -> FloatArray:
    """The least count of a window that holds first..last; the largest of all where there is none."""
    around = (Series(1, *known.windows, found.values).least_around(first, last) for known, found in families)
    return np.minimum(reduce(np.minimum, around), max(float(found.values.max()) for _, found in families))


def _weights_beside(squared_error: FloatArray, common: float) -> FloatArray:
    """The weights of windows beside any windows of a common squared error.

    Hundreds of windows near an exact one have nearly one error, and would outvote it if each had its own.
    """
    squared_error = np.maximum(squared_error, _NO_WEIGHT)
    return np.asarray(_VOTES * np.maximum(1.0, common / squared_error) ** 2 / squared_error)


def _longer(every: Sequence[tuple[Known, Smoothed]], span: int, common: float) -> list[Longer]:
    """Windows beyond a table that begin at one step: their values are views of those of their families.

    What another family says of one of these windows, such as a quarter at the end of its days to date, is joined to it.
    """
    found, alone = list[Longer](), list[tuple[Smoothed, int, tuple[int, int]]]()
    for known, smoothed in every:
        if known.is_any:
            continue
        first, last = known.windows
        anew = np.flatnonzero((np.diff(first) != 0) | (np.diff(last) != 1)) + 1
        for begin, end in pairwise([0, *anew.tolist(), len(first)]):
            # The first window of such a stretch is of one step, or there is but one.
            place = slice(begin + span, end)
            if end - begin > span and first[begin] == last[begin]:
                weights = _weights_beside(smoothed.squared_error[place], common)
                found.append(Longer(int(first[begin]), last[place], smoothed.values[place], weights))
            elif end - begin == 1:
                alone.append((smoothed, begin, (int(first[begin]), int(last[begin]))))
    for smoothed, at, (start, end) in alone:
        own = slice(at, at + 1)
        for one in found:
            if one.first == start and one.last[0] <= end <= one.last[-1]:
                weight = float(_weights_beside(smoothed.squared_error[own], common)[0])
                one.joined.append((end - int(one.last[0]), smoothed.values[own], weight))
    return found


def _typical(alone: Sequence[tuple[Known, Smoothed]]) -> float:
    """The weight of most any windows."""
    errors = np.concatenate([found.squared_error for _, found in alone])
    return 1 / max(float(np.median(errors, overwrite_input=True)), _NO_WEIGHT)


def _add(known: Known, found: Smoothed, total: FloatArray, weights: FloatArray) -> None:
    """Add any windows, times their weights, to tables by end, start by start: there may be millions."""
    places = in_order(known.steps, longest_window(known.allotment.query.window, known.steps))
    for place, values, weight in zip(places, rows_by_start(total), rows_by_start(weights), strict=True):
        own = 1 / np.maximum(found.squared_error[place], _NO_WEIGHT)
        values[: len(own)] += own * found.values[place]
        weight[: len(own)] += own


def _rolling_length(known: Known) -> int | None:
    """The length of windows that have one, but for the first ones, and end at every step; None for others."""
    if known.is_any:
        return None
    first, last = known.windows
    length = int(last[-1] - first[-1]) + 1
    return length if last[0] == 1 and (last - first + 1 == np.minimum(last, length)).all() else None


def _agree(order: Sequence[Table], held: Sequence[Occurrences]) -> None:
    """Hold each table within what those before it say: windows in its windows, and windows that hold them."""
    for at, table in enumerate(order):
        before = order[:at]
        values = table.values
        np.maximum(values, 0, out=values)
        if not (held or before):
            continue
        first, last = table.windows()
        for other in before:
            if other.k >= table.k and not other.is_exact and not table.is_exact:
                np.maximum(values, other.largest_within(first, last).astype(values.dtype), out=values)
        _hold_below(table, [*held, *before])


def _hold_below(table: Table, others: Sequence[Table | Occurrences]) -> None:
    """Lower a table to the windows that hold its own, with thresholds no larger; a series to its own windows, too."""
    values, (first, last) = table.values, table.windows()
    for other in others:
        if not (other is table and isinstance(table, Band)) and other.k <= table.k and not other.is_exact:
            np.minimum(values, other.least_around(first, last).astype(values.dtype), out=values)
    if isinstance(table, Band):
        table.clear()


def _share_exact(order: Sequence[Series]) -> None:
    """Give counts of exactly k of one window in several families the number of the first of them."""
    for at, table in enumerate(order):
        before = [one for one in order[:at] if one.k == table.k]
        if before:
            known, are_known = finder(before)(table.first, table.last)
            table.values = np.where(are_known, known, table.values)


# --- Whole numbers --------------------------------------------------------------------------------------------------


def _make_whole(table: Table, before: Sequence[Table | Occurrences]) -> None:
    """Round: what is monotone stays so; distinct counts of any windows become those of some log.

    The log's counts are no more than those of more exact windows that hold a window, which are whole already.
    """
    if isinstance(table, Series):
        table.values = np.rint(table.values).astype(np.int64)
    elif table.k == 1:
        around = [one for one in before if not isinstance(one, Band) and one.k <= 1 and not one.is_exact]
        most = reduce(np.minimum, (one.least_around(*table.windows()) for one in around)) if around else None
        # Nobody asks for its weights any more: there may be millions, and no room for more of them.
        table.values = whole_distinct(table.values, table.weights, most)
    else:
        table.values = np.rint(table.values).astype(np.int64)
        table.clear()


def _lower(order: Sequence[Table], held: Sequence[Occurrences]) -> None:
    """Lower whole numbers until they are no more than parts and overlaps allow; what was monotone stays so."""
    bands = [table for table in order if isinstance(table, Band)]
    series = [table for table in order if isinstance(table, Series) and not table.is_exact]
    thresholds = sorted({band.k for band in bands} | {one.k for one in series})
    parts = [*series, *(band.of_length(n) for band in bands for n in range(1, band.longest + 1) if series)]
    changed = True
    while changed:
        before = [table.values.copy() for table in order]
        if any(band.k > 1 for band in bands):
            lower_to_parts(bands)
        if series:
            lower_to_sums(series, parts, thresholds)
            lower_to_overlaps([one for one in series if one.k == 1], [part for part in parts if part.k == 1])
        for table in order:
            if not (isinstance(table, Band) and table.k == 1):
                _hold_below(table, [*held, *order])
        changed = any(not np.array_equal(old, table.values) for old, table in zip(before, order, strict=True))


def _read(at: int, family: Family, kind: str, k: int, tables: Sequence[Table]) -> IntArray:
    if kind == "exactly" and k in family.exact:
        return next(t.values for t in tables if isinstance(t, Series) and t.exact_of == at and t.k == k)
    found = _at_least(family, k, tables)
    return found if kind == "at_least" else found - _at_least(family, k + 1, tables)


def _at_least(family: Family, k: int, tables: Sequence[Table]) -> IntArray:
    known = family.known
    # What stands in a table for a window is the same in every table that holds it.
    holding = [table for table in tables if table.k == k and not table.is_exact]
    longest = longest_window(known.allotment.query.window, known.steps)
    each = (
        table.in_order(longest) if known.is_any and isinstance(table, Band) else table.least_around(*known.windows)
        for table in holding
    )
    return reduce(np.minimum, each)
