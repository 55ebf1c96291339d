"""Finds the released numbers that a question is about: one window, a mean over several, or new or returning items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from dpwindows.ask.groups import Value
from dpwindows.ask.queries import Measure, MeasureKind, WindowFamily
from dpwindows.ask.timeline import Timeline, TimePoint
from dpwindows.ask.whole_numbers import is_whole
from dpwindows.errors import InputError
from dpwindows.report.series import mean_square

Items = Literal["all", "new", "returning"]
Row = dict[str, Any]


@dataclass(frozen=True)
class Window:
    """Released windows that a question is about: `release.ratio(Window(...), Window(...))`.

    Attributes:
        start: first moment of the window, a step boundary.
        end: first moment after the window, a step boundary.
        at_least: the k of "at least k" (default 1 if `exactly` is not given either).
        exactly: the k of "exactly k".
        occurrences: count occurrences in place of items.
        items: `all` that are counted in the window; the `new` ones, which are counted from the beginning of the range
            up to its end and not up to its start; or the `returning` ones, which are not new.
        mean_over: how many windows to take the mean of: this one, and the same moved on step by step.
        family: canonical text of the window family that the numbers were released in, such as `rolling:7`; by default
            that of the least standard error.
        group: of a release with groups, the value of each column, such as {"origin": "JFK"}; the total over the values
            of a column that is not named.

    Raises:
        InputError: a field is not legal, or two of them contradict one another.
    """

    start: TimePoint
    end: TimePoint
    at_least: int | None = field(default=None, kw_only=True)
    exactly: int | None = field(default=None, kw_only=True)
    occurrences: bool = field(default=False, kw_only=True)
    items: Items = field(default="all", kw_only=True)
    mean_over: int = field(default=1, kw_only=True)
    family: str | WindowFamily | None = field(default=None, kw_only=True)
    group: Mapping[str, Value] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.items not in ("all", "new", "returning"):
            raise InputError(f"items must be all, new or returning, got {self.items!r}")
        if not is_whole(self.mean_over):
            raise InputError(f"a mean needs a whole number of windows of at least 1, got {self.mean_over!r}")
        if self.items != "all" and (self.exactly is not None or self.occurrences):
            raise InputError(f"{self.items} items are those counted at least k times: give at_least")
        _ = self.measure

    @property
    def measure(self) -> Measure:
        """What is counted.

        Raises:
            InputError: more than one kind is given.
        """
        if self.occurrences:
            if self.at_least is not None or self.exactly is not None:
                raise InputError("give occurrences, or at_least or exactly: occurrences have no k")
            return Measure("occurrences")
        if self.at_least is not None and self.exactly is not None:
            raise InputError("give at_least or exactly, not both")
        kind: MeasureKind = "at_least" if self.exactly is None else "exactly"
        k = self.exactly if self.exactly is not None else (self.at_least if self.at_least is not None else 1)
        return Measure(kind, k)

    def __str__(self) -> str:
        moved = f", mean of {self.mean_over} windows moved step by step" if self.mean_over > 1 else ""
        which = f"{self.items} items, " if self.items != "all" else ""
        group = "".join(f", {name}={value}" for name, value in (self.group or {}).items())
        return f"{self.start} to {self.end} ({which}{self.measure}{moved}{group})"


Selected = Window | tuple[TimePoint, TimePoint]


@dataclass(frozen=True)
class Term:
    """A released row and its coefficient in a combination."""

    coefficient: float
    row: Row


def as_window(selected: Selected) -> Window:
    """A window that was given as such, or as the pair of its start and end.

    Raises:
        InputError: it is neither.
    """
    if isinstance(selected, Window):
        return selected
    if isinstance(selected, (tuple, list)) and len(selected) == 2:
        return Window(*selected)
    raise InputError(f"a window is (start, end) or dpwindows.Window(start, end, ...), got {selected!r}")


def terms_of(window: Window, table: pa.Table, timeline: Timeline) -> list[Term]:
    """The combination of released rows that a selection stands for.

    Raises:
        InputError: a number it needs was not released, or the ends of a window are no step boundaries.
    """
    first, last = timeline.step_of(window.start) + 1, timeline.step_of(window.end)
    if last < first:
        raise InputError(f"the end of a window must be after its start, got start={window.start} and end={window.end}")
    share = 1 / window.mean_over
    windows = [(first + moved, last + moved) for moved in range(window.mean_over)]
    until = [(1, last) for _, last in windows]
    before = [(1, first - 1) for first, _ in windows if first > 1]
    found: list[Term] = []
    if window.items != "new":
        found += _terms(share, window, table, timeline, windows, window.family)
    if window.items != "all":
        sign = 1 if window.items == "new" else -1
        rows = _terms(sign * share, window, table, timeline, until + before, None)
        found += [term if at < len(until) else Term(-term.coefficient, term.row) for at, term in enumerate(rows)]
    return found


def _terms(
    coefficient: float,
    window: Window,
    table: pa.Table,
    timeline: Timeline,
    steps: Sequence[tuple[int, int]],
    family: object,
) -> list[Term]:
    """One term for each of some windows, all of one family: the one where their squared errors sum to least."""
    firsts, lasts = (pa.array({int(end) for end in ends}, pa.int64()) for ends in zip(*steps, strict=True))
    # Column by column: for an expression Arrow would start threads, which take longer than most tables.
    held = (
        _is_of(table, window.measure),
        pc.is_in(table["first_step"], firsts),
        pc.is_in(table["last_step"], lasts),
    )
    by_family: dict[str, dict[tuple[int, int], Row]] = {}
    for row in table.filter(reduce(pc.and_, held)).to_pylist():
        by_family.setdefault(row["window"], {})[row["first_step"], row["last_step"]] = row
    complete = [
        [released[at] for at in steps]
        for text, released in by_family.items()
        if all(at in released for at in steps) and (family is None or text == str(family))
    ]
    if not complete:
        raise InputError(_missing(window, steps, table, timeline, family))
    best = min(complete, key=lambda chosen: sum(mean_square(row["std_error"], row["bias_bound"]) for row in chosen))
    return [Term(coefficient, row) for row in best]


def _is_of(table: pa.Table, measure: Measure) -> pa.ChunkedArray:
    """Which rows are of a measure."""
    of_kind = pc.equal(table["measure"], measure.kind)
    return of_kind if measure.written_k is None else pc.and_(of_kind, pc.equal(table["k"], measure.k))


def _missing(
    window: Window, steps: Sequence[tuple[int, int]], table: pa.Table, timeline: Timeline, family: object
) -> str:
    keys = table.group_by(["window", "measure", "k"], use_threads=False).aggregate([]).to_pylist()
    held = sorted((key["window"], Measure.of(key["measure"], key["k"])) for key in keys)
    names = ", ".join(f"{text} ({measure})" for text, measure in held)
    what = f"the windows that {window} needs were" if len(steps) > 1 else f"the window {window} was"
    within = "" if family is None else f" in {family}"
    if window.mean_over > 1 and max(last for _, last in steps) > max(table["last_step"].to_pylist()):
        advice = "the last of them is past the end of the range: take the mean over fewer"
    elif window.items != "all":
        advice = "new and returning items need cumulative windows, or any windows of every length"
    else:
        wanted = window.measure
        if wanted in {measure for _, measure in held}:
            held_there = table if family is None else table.filter(pc.equal(table["window"], str(family)))
            advice = _instead(steps, held_there, timeline, wanted)
        else:
            counted = "occurrences=True" if wanted.kind == "occurrences" else f"{wanted.kind}={wanted.k}"
            advice = f"ask for {counted} too when releasing"
    return f"{what} not released{within}; this release holds {names}: {advice}"


def _instead(steps: Sequence[tuple[int, int]], table: pa.Table, timeline: Timeline, measure: Measure) -> str:
    """What to ask in place of a window that was not released, or of several moved step by step."""
    advice = "release with AnyWindow() to have every pair of dates"
    held = table.filter(_is_of(table, measure))
    ends = zip(held["first_step"].to_pylist(), held["last_step"].to_pylist(), strict=True)
    released = dict(zip(ends, held["window"].to_pylist(), strict=True))
    first, last = steps[0]

    def shown(one: tuple[int, int]) -> str:
        return f"{timeline.boundary_text(one[0] - 1)} to {timeline.boundary_text(one[1])}"

    for later, holds in ((1, "more"), (-1, "less")):
        if all((one[0], one[1] + later) in released for one in steps):
            near = shown((first, last + later))
            return f"the end of a window is exclusive: {near} was released, which holds one step {holds}"
    inside = [one for one in released if first <= one[0] and one[1] <= last]
    if inside:
        longest = max(inside, key=lambda one: (one[1] - one[0], one[1]))
        return f"the longest released window within it is {shown(longest)} ({released[longest]}); or {advice}"
    return advice
