r"""The largest cost at any one instant: releases of disjoint parts of a log need not be added up.

A release reads nothing but the events of its public range. Two releases over disjoint ranges are thus about different
events, and one event costs the sum over the releases whose range it lies in. This module says at which instants a
release counts, and the most that all releases cost together at any one instant.

**Event level.** A release counts at the instants of its range; a stream without end counts from its start on.
*Claim.* If at every instant the charges that count there stay within the total (`composition`), so does everything
together. *Proof.* Two neighbouring logs differ in one occurrence, at an instant s. Suppose first that s is fixed
beforehand. A release whose range does not hold s has the same law, given what was published before it, under both
logs: its part of the loss is 0. The others are the charges that count at s, in the order they were spent, and the
proofs in `composition` speak of those alone; a charge of loss 0 in between changes no step of them. Which ranges are
asked for may depend on what was published: this was nowhere excluded.

*When the log itself grows in answer to what is published*, s may depend on it too. Look at the moment at which the
occurrence enters the log. All that was published until then has one and the same law under both logs. Afterwards s is
fixed, and every release still to come is as private, given that history, as it is by itself: a batch release because
its noise is drawn afresh when it is made, a stream because the noise of each of its steps is drawn independently of
all before. So given any such history the claim for a fixed s holds for what follows, and averaging over histories
that are equally likely under both keeps it. (Independent noise is what matters: a stream that may show early on that
its noise is going to fail lets the log wait for one that does. For such mechanisms the claim is false with delta > 0:
Henzinger, Safavi, Vadhan, arXiv 2411.03299.)

**Item level within L steps.** Neighbours differ inside one span of L consecutive steps; let u be its first instant
and `reach` at least its length. A release over `[start, end)` sees a difference only if the span meets its range,
which takes `u < end` and `u + reach > start`. So it counts on `(start - reach, end)`. *Claim.* As before, but for one
case: once a rho is spent under an (epsilon, delta) total, every release counts at every instant. *Proof.* Charge a
release when a difference first lies in what it reads: a batch release when it is made, a stream at the first such
step, from which on it is as private as from its beginning, its noise being independent. Until then its loss is 0.
Whether and when a release is charged depends on the past alone, and those charged on one path all meet one span, the
final one, and so count at its u: on every path the sum of the charges is within the total. (All of them read times by
one clock, as `request.require_fit` sees to: the same span by another clock may be no span.) The proofs in `composition`
for pure and rho totals, and for (epsilon, delta) without rho, use nothing else. The conversion of rho does: its order
depends on what was spent at u before, and u may still be open when the first rho is charged.

**Item level, and the presence of an item.** One item's occurrences may lie anywhere: every release counts at every
instant.

**What "disjoint" rests on.** That an event has one instant. Ranges are compared as instants (integers, or microseconds
since 1970), and releases that read times differently, from another column, by another format or, where times carry no
zone, in another zone, could place one event in two disjoint ranges. The first release of a dataset therefore sets its
clock, the time column with its format and the zone, and a release by another clock counts at every instant. A column is
known by its name, or by its place in files without a line of names, and all releases cut lines into columns alike
(`request.require_fit`): so one column is not called another, nor two the same. What the ledger cannot see is an event
whose recorded time is changed between two releases: it is another event then, and is not covered as the same one.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from dpwindows.ledger.composition import Account, Charge

# Zones are at most 26 hours apart, so calendar steps are longer than their nominal length by less than this.
SLACK_US = 2 * 86_400_000_000


@dataclass(frozen=True)
class Span:
    """The instants from `start` (included) to `end` (excluded); None stands for no bound."""

    start: int | None = None
    end: int | None = None

    def holds(self, instant: int | None) -> bool:
        """True if the instant lies in the span; None is the instant before all others."""
        if instant is None:
            return self.start is None
        return (self.start is None or self.start <= instant) and (self.end is None or instant < self.end)

    def widened(self, reach: int) -> Span:
        """With all instants from which something shorter than `reach` extends into the span."""
        return Span(None if self.start is None else self.start - reach + 1, self.end)


EVERYWHERE = Span()


@dataclass(frozen=True)
class Counted:
    """A charge and the instants at which it counts."""

    charge: Charge
    span: Span


def accounts(opened: Account, counted: Sequence[Counted], within: Span = EVERYWHERE) -> Iterator[tuple[Span, Account]]:
    """The span `within`, cut wherever a charge begins or ceases to count, with the account on each piece; ascending.

    Each account is `opened` and the charges that count there, in the order given.
    """
    begins, ends = defaultdict(list), defaultdict(list)
    for index, one in enumerate(counted):
        begins[one.span.start].append(index)
        ends[one.span.end].append(index)
    edges = {edge for edge in (*begins, *ends) if edge is not None and edge != within.start and within.holds(edge)}
    active = [index for index, one in enumerate(counted) if one.span.holds(within.start)]
    start = within.start
    for edge in sorted(edges):
        yield Span(start, edge), _sum(opened, counted, active)
        for index in ends[edge]:
            del active[bisect_left(active, index)]
        for index in begins[edge]:
            insort(active, index)
        start = edge
    yield Span(start, within.end), _sum(opened, counted, active)


def _sum(opened: Account, counted: Sequence[Counted], active: Sequence[int]) -> Account:
    account = opened
    for charge, alike in groupby(counted[index].charge for index in active):
        account = account.plus(charge, sum(1 for _ in alike))
    return account
