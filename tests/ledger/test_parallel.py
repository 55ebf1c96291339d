"""Where a release counts: against brute force over instants, over spans, and over the events of a real calendar."""

from __future__ import annotations

from datetime import datetime, timedelta
from fractions import Fraction
from itertools import pairwise, product
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpwindows as dw
from dpwindows.ask.privacy import ApproxDP, Budget, EventLevel, ItemLevel, ItemPerPeriod, PureDP, parse_unit
from dpwindows.ask.timeline import Timeline
from dpwindows.ask.zones import to_microseconds
from dpwindows.count.query.step_map import StepMap, instant_map, wall_map
from dpwindows.ledger.composition import Charge, account_for
from dpwindows.ledger.parallel import EVERYWHERE, SLACK_US, Counted, Span, accounts
from dpwindows.ledger.request import implies, span_of

bounds = st.one_of(st.none(), st.integers(0, 12))


@st.composite
def spans(draw: st.DrawFn) -> Span:
    start, end = draw(bounds), draw(bounds)
    if start is not None and end is not None:
        start, end = sorted((start, end))
        end += start == end
    return Span(start, end)


charges = st.sampled_from([PureDP(0.1), PureDP(0.25), dw.ZCDP(0.01), ApproxDP(0.2, 1e-8)])


@given(
    st.sampled_from([PureDP(1.0), dw.ZCDP(1.0), ApproxDP(1.0, 1e-6)]),
    st.lists(st.tuples(charges, spans()), max_size=7),
    spans(),
)
def test_the_account_of_every_instant(total: Budget, placed: list[tuple[Budget, Span]], within: Span) -> None:
    allowed = {PureDP: (PureDP,), dw.ZCDP: (PureDP, dw.ZCDP), ApproxDP: (PureDP, ApproxDP)}[type(total)]
    counted = [Counted(Charge.of(budget), span) for budget, span in placed if isinstance(budget, allowed)]
    found = list(accounts(account_for(total), counted, within))
    assert (found[0][0].start, found[-1][0].end) == (within.start, within.end)
    assert all(before.end == after.start for (before, _), (after, _) in pairwise(found))
    for instant in range(-2, 16):
        if not within.holds(instant):
            continue
        wanted = account_for(total)
        for one in counted:
            if (one.span.start is None or instant >= one.span.start) and (
                one.span.end is None or instant < one.span.end
            ):
                wanted = wanted.plus(one.charge)
        ((_, account),) = [(span, account) for span, account in found if span.holds(instant)]
        assert account == wanted


def test_order_matters_where_rho_is_converted() -> None:
    pure, rho = Charge.of(PureDP(0.2)), Charge.of(dw.ZCDP(0.001))
    total = account_for(ApproxDP(1.0, 1e-6))
    for order in ([pure, rho, pure], [rho, pure, pure], [pure, pure, rho]):
        wanted = total
        for charge in order:
            wanted = wanted.plus(charge)
        ((_, account),) = accounts(total, [Counted(charge, EVERYWHERE) for charge in order])
        assert account == wanted


@pytest.mark.parametrize("length", [1, 2, 3, 5])
def test_a_span_of_steps_counts_wherever_it_meets_a_range(length: int) -> None:
    """Every span of `length` integer steps of 2, against every range: seen exactly where the rule counts it or less."""
    for start, end in [(10, 14), (10, 20), (12, 14)]:
        place = {"start": start, "end": end, "longest": 2, "clock": ["integer", "t"]}
        counted = span_of(place, ItemPerPeriod(length))
        for first in range(0, 30, 2):
            instants = range(first, first + 2 * length)
            if any(start <= instant < end for instant in instants):
                assert counted.holds(first)
        assert not counted.holds(end)
        assert not counted.holds(start - 2 * length)


def test_items_count_everywhere_and_streams_for_ever() -> None:
    place = {"start": 10, "end": None, "longest": 1, "clock": ["integer", "t"]}
    assert span_of(place, EventLevel()) == Span(10, None)
    assert span_of(place, ItemLevel()) == EVERYWHERE
    assert span_of(place, dw.ItemAddRemove()) == EVERYWHERE


# All logs of one or two items over three steps with up to two occurrences in each, as neighbours see them.
Log = tuple[tuple[int, int, int], ...]


def _neighbours(unit: str, log: Log, other: Log) -> bool:
    """The definition of a unit, for logs of two items."""
    changed = [item for item in range(2) if log[item] != other[item]]
    if len(changed) != 1:
        return False
    before, after = log[changed[0]], other[changed[0]]
    if unit == "event":
        return sum(abs(x - y) for x, y in zip(before, after, strict=True)) == 1
    if unit == "item-add-remove":
        return not any(before) or not any(after)
    if unit == "item":
        return True
    steps = [t for t in range(3) if before[t] != after[t]]
    return steps[-1] - steps[0] < int(unit.split(":")[1])


def test_a_unit_implies_another_where_its_neighbours_include_the_others() -> None:
    units = ["event", "item", "item-add-remove", "item-per:1", "item-per:2"]
    counts = [(x, y, z) for x, y, z in product(range(3), repeat=3)]
    kept = (1, 0, 2)
    pairs: list[tuple[Log, Log]] = [((one, kept), (other, kept)) for one, other in product(counts, counts)]
    related = {unit: {pair for pair in pairs if _neighbours(unit, *pair)} for unit in units}
    for protected, wanted in product(units, units):
        assert implies(parse_unit(protected), parse_unit(wanted)) == (related[wanted] <= related[protected]), (
            protected,
            wanted,
        )


CLOCK_CHANGES = [
    ("America/New_York", datetime(2013, 3, 9)),
    ("America/New_York", datetime(2013, 11, 2)),
    ("Europe/Lisbon", datetime(2013, 10, 26)),
    ("Pacific/Apia", datetime(2011, 12, 29)),
    ("UTC", datetime(2013, 3, 9)),
]


@pytest.mark.parametrize(("zone", "day"), CLOCK_CHANGES)
def test_adjacent_ranges_never_read_one_event_twice(zone: str, day: datetime) -> None:
    """Every quarter of an hour around a change of the clock, naive or zoned, lies in one of two ranges and no other."""
    times = [to_microseconds(day) + 900_000_000 * i for i in range(-96, 7 * 96)]
    end = day + timedelta(days=5)
    for cut in (1, 2, 3, 11, 24, 25, 26, 27, 28, 29, 35, 49):
        first, second, joint = (
            Timeline(start, stop, step="15m", time_zone=zone)
            for start, stop in [(day, day + timedelta(hours=cut)), (day + timedelta(hours=cut), end), (day, end)]
        )
        assert first.boundary_values[-1] == second.boundary_values[0]
        for to_steps in (wall_map, instant_map):
            maps = [to_steps(part) for part in (first, second, joint)]
            found = [[_reads(steps, time) for steps in maps] for time in times]
            assert all(in_first + in_second == in_joint for in_first, in_second, in_joint in found)
            assert any(in_joint for *_, in_joint in found)


def _reads(steps: StepMap, time: int) -> bool:
    return any(piece.low <= time < piece.high for piece in steps.pieces)


def test_fractions_compare_with_what_is_left() -> None:
    ((_, account),) = accounts(account_for(PureDP(1.0)), [Counted(Charge(Fraction(1, 3)), EVERYWHERE)] * 3)
    assert account.within
    assert account.left.epsilon == 0


@pytest.mark.parametrize("reach", [1, 2, 5])
@pytest.mark.parametrize(("start", "end"), [(10, 20), (10, 11), (10, None), (None, 20), (None, None)])
def test_a_widened_span_holds_where_something_as_long_begins_and_reaches_in(
    start: int | None, end: int | None, reach: int
) -> None:
    span = Span(start, end)
    for first in range(30):
        reaches_in = any(span.holds(first + at) for at in range(reach))
        assert span.widened(reach).holds(first) == reaches_in
    assert Span(None, None) == EVERYWHERE
    assert EVERYWHERE.holds(None)


def test_the_slack_covers_every_change_of_every_zone() -> None:
    """A step of the calendar is longer than its nominal length by what the zone's offset falls within it."""
    widest = 0.0
    for name in sorted(available_timezones()):
        zone = ZoneInfo(name)
        # Before all rules, and then summers and winters of two centuries.
        moments = [
            datetime(1800, 1, 1),
            *(datetime(year, month, 1) for year in range(1840, 2040, 4) for month in (1, 7)),
        ]
        offsets = [moment.replace(tzinfo=zone).utcoffset() for moment in moments]
        seconds = [offset.total_seconds() for offset in offsets if offset is not None]
        widest = max(widest, max(seconds) - min(seconds))
    assert 0 < widest * 1_000_000 < SLACK_US
