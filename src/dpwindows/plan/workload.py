"""What a release costs to make: numbers released, noise values drawn, memory and time, told before any data is read.

Every number that is measured is one draw of an exact sampler, and the plan alone says how many there are. The figure
for time is rough, for one core, and for the drawing alone: making numbers consistent takes longer, by how much hangs on
the windows that families share. The figure for memory is the largest that the whole process takes, libraries included,
if counting the log takes less: it was fitted to releases that were measured (docs/scaling.md), and lies above all of
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpwindows.ask.queries import AnyWindow, Cumulative, ToDate, WindowFamily
from dpwindows.ask.whole_numbers import LARGEST_COUNT, is_whole
from dpwindows.ask.windows import count_windows, longest_window
from dpwindows.errors import InputError, counted, time_text
from dpwindows.kernel.measure import EXACT, OPENDP, Sampler

if TYPE_CHECKING:
    from dpwindows.ask.queries import Query
    from dpwindows.plan.allotment import Allotment

# The most numbers that a release, or a step of a stream, may have.
MAX_ROWS = 5_000_000
# Draws a second on one core by each sampler: fewer than were measured (benchmarks/noise.py).
_DRAWS_A_SECOND: dict[Sampler, int] = {EXACT: 2_000_000, OPENDP: 60_000}
# Bytes of a process that releases next to nothing, and bytes held at the same time while noise is drawn, for every
# draw, or later, for every released number. Series, with one window for each last step, are looked at once more for
# sums over parts of windows, some thousand numbers at a time (`release/consistency/series.py`).
_BYTES_OF_LIBRARIES = 310_000_000
_BYTES_A_DRAW, _BYTES_A_ROW, _BYTES_A_ROW_OF_SERIES, _BYTES_A_SUM = 60, 115, 200, 16
_MOST_SUMS = 1 << 22
# Bytes for each of any windows while the nearest table of a log is looked for (`release/consistency/nearest_log.py`).
_BYTES_A_SOLVED_WINDOW = 1500
# For how many windows times the longest it is looked for: in each group, which takes about a second, and beyond that in
# all of them, which takes half a minute to three; and the most windows where it is more than a second, of which a year
# of days has less.
_WORK_EACH, _WORK, _WINDOWS = 1_500_000, 50_000_000, 67_000
# So many families are made to agree in such a table where none has any windows.
_FAMILIES = 2
# Plans that draw more than this say so before they are run.
NOTED = 2_000_000


@dataclass(frozen=True)
class Workload:
    """The size of one release: `rows` numbers, `series` of them not of any windows, from `draws` noise values.

    While numbers are made consistent, `sums` over parts of windows are held at a time, or `solved` windows. `noise` is
    what draws.
    """

    rows: int = 0
    draws: int = 0
    series: int = 0
    sums: int = 0
    solved: int = 0
    noise: Sampler = EXACT

    def __add__(self, other: Workload) -> Workload:
        rows, series = self.rows + other.rows, self.series + other.series
        sums, solved = max(self.sums, other.sums), max(self.solved, other.solved)
        return Workload(rows, self.draws + other.draws, series, sums, solved, self.noise)

    @property
    def seconds(self) -> float:
        """About how long drawing the noise takes on one core."""
        return self.draws / _DRAWS_A_SECOND[self.noise]

    @property
    def memory(self) -> int:
        """About how many bytes the process holds at the most, where the engine that counts needs less."""
        rows = (self.rows - self.series) * _BYTES_A_ROW + self.series * _BYTES_A_ROW_OF_SERIES
        most = max(self.sums * _BYTES_A_SUM, self.solved * _BYTES_A_SOLVED_WINDOW)
        return _BYTES_OF_LIBRARIES + max(self.draws * _BYTES_A_DRAW, rows + most)

    def to_dict(self) -> dict[str, int]:
        """All of it as plain values, ready for JSON."""
        return {"rows": self.rows, "noise_values": self.draws, "seconds": round(self.seconds), "bytes": self.memory}

    def __str__(self) -> str:
        return (
            f"{counted(self.rows, 'number')} from {counted(self.draws, 'noise value')}, about "
            f"{time_text(self.seconds)} on one core (the noise alone; making numbers consistent takes longer) and "
            f"{_size_text(self.memory)} of memory"
        )


def plan_workload(allotments: Sequence[Allotment]) -> Workload:
    """The size of a release of these measurements."""
    work, groups_of = Workload(), dict[object, int]()
    for allotment in allotments:
        design, groups = allotment.measurement.design, allotment.groups
        draws = 0 if allotment.series else groups * design.rows * len(design.problem.thresholds)
        work += _query_workload(allotment.query, design.problem.steps, groups, draws)
        groups_of[allotment.by] = groups
    queries = [allotment.query for allotment in allotments]
    return work + _solving(queries, allotments[0].measurement.design.problem.steps, sum(groups_of.values()))


def least_workload(queries: Sequence[Query], steps: int, groups: int = 1) -> Workload:
    """The least that a release of these queries takes: a draw for every window and threshold, whatever the strategy."""
    works = []
    for query in queries:
        draws = groups * count_windows(query.window, steps) * len(query.thresholds)
        works.append(_query_workload(query, steps, groups, draws))
    return sum(works, _solving(queries, steps, groups))


def _query_workload(query: Query, steps: int, groups: int, draws: int) -> Workload:
    rows = groups * count_windows(query.window, steps) * len(query.measures)
    if isinstance(query.window, AnyWindow):
        return Workload(rows, draws)
    return Workload(rows, draws, rows, min(steps * longest_window(query.window, steps), _MOST_SUMS))


def _solving(queries: Iterable[Query], steps: int, groups: int) -> Workload:
    longest = table_length([query.window for query in queries], steps, groups)
    solved = longest > 0 and is_solved(steps, longest, groups)
    return Workload(solved=count_windows(AnyWindow(longest), steps) if solved else 0)


def table_length(windows: Sequence[WindowFamily], steps: int, groups: int) -> int:
    """The longest window of the table of all windows that these families are made to agree in; 0 where there is none.

    It holds all any windows, and those of other families where the nearest table of a log is still looked for: an exact
    month beside any windows of 28 days then holds them, and is not lowered to sums of them. Without any windows there
    is a table where there are two families: months are not lowered to rolling weeks, nor to what a year to date gains.
    """
    bounded = [one for one in windows if not isinstance(one, Cumulative | ToDate)]
    own = max((longest_window(one, steps) for one in bounded if isinstance(one, AnyWindow)), default=0)
    if not own and len(windows) < _FAMILIES:
        return 0
    lengths = (longest_window(one, steps) for one in bounded)
    return max([own, *(length for length in lengths if is_solved(steps, length, groups))])


def is_solved(steps: int, longest: int, groups: int) -> bool:
    """Whether the nearest table of a log is looked for, among those of windows of at most so many steps, in each group.

    Beyond about a second for each, all of them take half a minute to three. Larger tables are made to agree step by
    step.
    """
    work = steps * longest**2
    windows = count_windows(AnyWindow(longest), steps)
    return work <= _WORK_EACH or (windows <= _WINDOWS and groups * work <= _WORK)


def require_within(work: Workload, max_draws: int, *, at_least: bool = False) -> None:
    """Refuse what is larger than the caller allows.

    Raises:
        InputError: more than `max_draws` noise values would be drawn.
    """
    if work.draws > max_draws:
        raise InputError(
            f"this would release {'at least ' if at_least else ''}{work}: more than the {max_draws:,} noise values "
            "that are allowed. Take coarser steps, shorter windows (any:MAX) or fewer k, or allow more (--max-draws)"
        )


def require_limit(max_draws: object) -> None:
    """Check a limit on draws. Raises `InputError` if it is not a whole number of at least 1."""
    if not is_whole(max_draws, most=LARGEST_COUNT):
        raise InputError(f"max_draws must be a whole number from 1 to 10^18, got {max_draws!r}")


def _size_text(size: float) -> str:
    for unit, name in ((1e12, "TB"), (1e9, "GB")):
        if size >= unit:
            return f"{size / unit:,.1f} {name}"
    return f"{max(1, round(size / 1e6)):,} MB"
