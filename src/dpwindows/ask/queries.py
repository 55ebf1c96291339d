"""Queries: window families, and the counts wanted in each of their windows.

A *window family* is a set of windows answered together: `Cumulative`, `Rolling`, `AnyWindow`, `Tumbling` or `ToDate`.
A *measure* is what is counted in a window: the items seen at least `k` times, or exactly `k` times, or all occurrences.
A `Query` pairs one family with one or more measures::

    Rolling(28).at_least(1, 3)      # two measures of one family
    Tumbling("month")               # one number for each calendar month
    Cumulative()                    # a family alone means "at least 1": the number of distinct items
    Cumulative().occurrences()      # how often items were seen, all together

Steps are numbered from 1; a window is the pair of its first and last step, both inclusive.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, get_args

from dpwindows.ask.whole_numbers import LARGEST_COUNT, is_whole, read_whole, require_steps
from dpwindows.errors import InputError, near

if TYPE_CHECKING:
    from dpwindows.ask.calendar import Calendar

MeasureKind = Literal["at_least", "exactly", "occurrences"]

OCCURRENCES = -1
"""In the place of a threshold: all occurrences in a window, whatever items they are of."""

# The most counts that a histogram may tell apart: beyond it, what is asked is a mistake.
MOST_BINS = 100
# The periods that have names.
PERIODS = ("week", "month", "quarter", "year")


@dataclass(frozen=True, order=True)
class Measure:
    """A count taken in one window: the items with at least, or exactly, `k` occurrences in it, or all `occurrences`.

    Raises:
        InputError: the kind is none of these, or k is no whole number from 1 to 10^18; occurrences have no k.
    """

    kind: MeasureKind
    k: int = OCCURRENCES

    def __post_init__(self) -> None:
        if self.kind not in get_args(MeasureKind):
            raise InputError(f"a measure is one of {', '.join(get_args(MeasureKind))}, got {self.kind!r}")
        if self.kind == "occurrences":
            if self.k != OCCURRENCES:
                raise InputError(f"occurrences are counted whatever items they are of, without a k: got {self.k!r}")
            return
        if not is_whole(self.k, most=LARGEST_COUNT):
            large = isinstance(self.k, int) and self.k > LARGEST_COUNT
            raise InputError(
                f"{self.kind} must be {'at most 10^18' if large else f'a whole number of at least 1, got {self.k!r}'}"
            )

    @property
    def thresholds(self) -> tuple[int, ...]:
        """The at-least counts this measure is a combination of: exactly k is at least k minus at least k+1."""
        return (self.k, self.k + 1) if self.kind == "exactly" else (self.k,)

    @property
    def written_k(self) -> int | None:
        """Its k as releases and plans have it: None for occurrences."""
        return None if self.kind == "occurrences" else self.k

    @classmethod
    def of(cls, kind: MeasureKind, k: int | None) -> Measure:
        """The measure of this kind with this `written_k`; raises `InputError` as `Measure` does."""
        return cls(kind, OCCURRENCES if k is None else k)

    def __str__(self) -> str:
        return self.kind if self.kind == "occurrences" else f"{self.kind.replace('_', ' ')} {self.k}"


@dataclass(frozen=True)
class WindowFamily:
    """Base of the families; use `Cumulative`, `Rolling`, `AnyWindow`, `Tumbling` or `ToDate`."""

    name: ClassVar[str]

    def at_least(self, *ks: int) -> Query:
        """Ask for the number of items seen at least `k` times, for every `k` given."""
        return Query(self).at_least(*ks)

    def exactly(self, *ks: int) -> Query:
        """Ask for the number of items seen exactly `k` times, for every `k` given."""
        return Query(self).exactly(*ks)

    def histogram(self, most: int) -> Query:
        """Ask how many items were seen exactly 1, 2, ..., `most` - 1 times, and how many at least 1, 2, ..., `most`."""
        return Query(self).histogram(most)

    def occurrences(self) -> Query:
        """Ask how many occurrences there were, of all items together."""
        return Query(self).occurrences()

    @property
    def text(self) -> str:
        """The canonical text of the family, as in the `window` column of a release: its name and its size, if any."""
        size = next(iter(vars(self).values()), None)
        return self.name if size is None else f"{self.name}:{size}"

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Cumulative(WindowFamily):
    """Every window that begins at the first step: (1, t) for t = 1..T."""

    name = "cumulative"


@dataclass(frozen=True)
class Rolling(WindowFamily):
    """The last `length` steps at every step t: (max(1, t - length + 1), t)."""

    name = "rolling"
    length: int

    def __post_init__(self) -> None:
        require_steps("a rolling window", self.length)


@dataclass(frozen=True)
class LostItems(WindowFamily):
    """The whole range, for one number: the items that lost something by the rule of counting. It is not asked for."""

    name = "items that lost something"


@dataclass(frozen=True)
class RollingTogether(WindowFamily):
    """Rolling windows of several lengths that a plan measures as one. It is not asked for: each length is, by itself.

    Windows come one length after another, those of one length by their last step.
    """

    lengths: tuple[int, ...]

    def __post_init__(self) -> None:
        for length in self.lengths:
            require_steps("a rolling window", length)

    @property
    def text(self) -> str:
        """`rolling:1 + rolling:7`."""
        return " + ".join(Rolling(length).text for length in self.lengths)


@dataclass(frozen=True)
class AnyWindow(WindowFamily):
    """Every window (a, b) with 1 <= a <= b <= T, at most `max_length` steps long where that is given."""

    name = "any"
    max_length: int | None = None

    def __post_init__(self) -> None:
        if self.max_length is not None:
            require_steps("the longest window of `any`", self.max_length)


@dataclass(frozen=True)
class PeriodFamily(WindowFamily):
    """Base of the families whose windows begin with periods; use `Tumbling` or `ToDate`.

    Attributes:
        period: a number of steps, the first period beginning with step 1; or `week` (from Monday), `month`, `quarter`
            or `year`, as the calendar of the range has them.
        calendar: which steps the named periods begin with; a plan sets it from the timeline it is for.

    Raises:
        InputError: the period is neither a number of steps nor one of these names.
    """

    period: int | str
    calendar: Calendar | None = field(default=None, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.period, str):
            require_steps("a period", self.period)
        elif self.period not in PERIODS:
            raise InputError(
                f"a period is a number of steps or one of {', '.join(PERIODS)}, got {self.period!r}: "
                "for example month, or 7 for every seven steps"
            )


@dataclass(frozen=True)
class Tumbling(PeriodFamily):
    """Disjoint windows: each period is one. The first and the last are cut where the range cuts them."""

    name = "tumbling"


@dataclass(frozen=True)
class ToDate(PeriodFamily):
    """At every step the window from the first step of its period: a cumulative count that starts anew with each."""

    name = "to-date"


@dataclass(frozen=True)
class Query:
    """One window family and the measures wanted in each of its windows.

    With no measure given the query means "at least 1", the number of distinct items.
    """

    window: WindowFamily
    measures: tuple[Measure, ...] = ()

    @property
    def counts_occurrences(self) -> bool:
        """Whether it asks for occurrences."""
        return any(measure.kind == "occurrences" for measure in self.measures)

    @property
    def name(self) -> str:
        """Its window's text, with `occurrences` where it asks for these: no two queries of a plan have one name."""
        return query_name(self.window.text, occurrences=self.counts_occurrences)

    @property
    def thresholds(self) -> tuple[int, ...]:
        """Every k whose at-least count its measures are made of, ascending."""
        return tuple(sorted({k for measure in self.measures for k in measure.thresholds}))

    def at_least(self, *ks: int) -> Query:
        """This query with "at least k" added for every `k` given."""
        return self._with("at_least", ks)

    def exactly(self, *ks: int) -> Query:
        """This query with "exactly k" added for every `k` given."""
        return self._with("exactly", ks)

    def histogram(self, most: int) -> Query:
        """This query with "at least k" added for k = 1..`most` and "exactly k" for k = 1..`most` - 1.

        Measured are the at-least counts alone, all by one mechanism: an exact count is the difference of two of them.

        Raises:
            InputError: `most` is below 2, where there is no exact count, or above 100.
        """
        if not is_whole(most, 2, MOST_BINS):
            raise InputError(
                f"histogram must be a whole number from 2 to {MOST_BINS}, from which on all occurrences are counted "
                f"together, got {most!r}"
            )
        return self.at_least(*range(1, most + 1)).exactly(*range(1, most))

    def occurrences(self) -> Query:
        """This query with the number of occurrences, of all items together, added."""
        return Query(self.window, (*self.measures, Measure("occurrences")))

    def _with(self, kind: MeasureKind, ks: tuple[int, ...]) -> Query:
        if not ks:
            raise InputError(f"{kind} needs at least one k, for example {kind}(1)")
        return Query(self.window, self.measures + tuple(Measure(kind, k) for k in ks))


def query_name(window: str, *, occurrences: bool) -> str:
    """The name of a query among those of its plan, from the text of its window and whether it asks for occurrences."""
    return f"{window} occurrences" if occurrences else window


def normalise(queries: Query | WindowFamily | Iterable[Query | WindowFamily]) -> tuple[Query, ...]:
    """Merge what is asked into one query per window family, measures unique and in the order asked.

    Occurrences of a family are a query of their own, after the other: they are measured by themselves.

    Raises:
        InputError: nothing was asked, or something that is no query.
    """
    if isinstance(queries, (Query, WindowFamily)):
        queries = [queries]
    if isinstance(queries, str) or not isinstance(queries, Iterable):
        raise InputError(f"queries must be a list such as [Rolling(28), Cumulative()], got {queries!r}")
    merged: dict[tuple[WindowFamily, bool], dict[Measure, None]] = {}
    for asked in queries:
        query = Query(asked) if isinstance(asked, WindowFamily) else asked
        if not isinstance(query, Query) or isinstance(query.window, RollingTogether | LostItems):
            raise InputError(
                "expected Cumulative(), Rolling(length), AnyWindow(max_length), Tumbling(period) or ToDate(period), "
                f"got {asked!r}"
            )
        for measure in query.measures or (Measure("at_least", 1),):
            merged.setdefault((query.window, measure.kind == "occurrences"), {})[measure] = None
    if not merged:
        raise InputError("no query was given: ask for at least one window family, for example Rolling(28)")
    return tuple(Query(window, tuple(measures)) for (window, _), measures in merged.items())


_FAMILIES = {family.name: family for family in (Cumulative, Rolling, AnyWindow, Tumbling, ToDate)}


def parse_window(text: str) -> WindowFamily:
    """Read a window family from its canonical text, or from `fixed:N`, an alias of `rolling:N`.

    Raises:
        InputError: the text is none.
    """
    name, colon, size = text.strip().partition(":")
    family = Rolling if name == "fixed" else _FAMILIES.get(name)
    match family, bool(colon):
        case (type() as plain, False) if plain in (Cumulative, AnyWindow):
            return plain()
        case (type() as sized, _) if sized in (Rolling, AnyWindow):
            return sized(_parse_steps(text, size))
        case (type() as periods, _) if periods in (Tumbling, ToDate):
            return periods(_parse_period(text, size))
    meant = "" if family else near(name, list(_FAMILIES))
    if joined := re.fullmatch(r"(rolling|fixed|any|tumbling|to-date)[ =_-]?(\w+)", text.strip()):
        meant = f" (did you mean '{joined[1]}:{joined[2]}'?)"
    raise InputError(
        f"unknown window {text!r}{meant}: use cumulative, rolling:STEPS, any, any:MAX_STEPS, "
        f"tumbling:PERIOD or to-date:PERIOD (PERIOD: a number of steps, or {', '.join(PERIODS)})"
    )


def windows_together(texts: Iterable[str]) -> RollingTogether:
    """The rolling windows of these canonical texts as one family.

    Raises:
        ValueError: one of them is no rolling window.
    """
    windows = [parse_window(text) for text in texts]
    lengths = tuple(window.length for window in windows if isinstance(window, Rolling))
    if len(lengths) != len(windows):
        raise ValueError("only rolling windows are measured together")
    return RollingTogether(lengths)


def _parse_period(text: str, period: str) -> int | str:
    if period in PERIODS:
        return period
    steps = read_whole(period)
    if not steps:
        name = text.strip().partition(":")[0]
        raise InputError(
            f"window {text!r} needs a period after the colon{near(period, PERIODS)}: {', '.join(PERIODS)}, or a whole "
            f"number of steps (from 1 to 10^100), for example {name}:month or {name}:7"
        )
    return steps


def _parse_steps(text: str, size: str) -> int:
    steps = read_whole(size)
    if not steps:
        if unit := re.fullmatch(r"([0-9]{1,100})[a-zA-Z]+", size):
            name = text.partition(":")[0]
            raise InputError(
                f"window {text!r} needs a whole number of steps after the colon, and steps have no unit: "
                f"{name}:{unit[1]} is that many steps, and --step says how long one is"
            )
        raise InputError(
            f"window {text!r} needs a whole number of steps after the colon, for example rolling:28 (from 1 to 10^100)"
        )
    return steps
