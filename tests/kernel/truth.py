"""What neighbours really change of exact answers, by enumeration, and how far that moves a design."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpwindows.ask.privacy import Unit
from dpwindows.ask.queries import AnyWindow, WindowFamily
from dpwindows.kernel.accounting import LAPLACE, Law
from dpwindows.kernel.designs import Design
from tests.single_item import Changes, Ints, TableAnswers, all_logs, cells, differences, squares


def neighbours(
    window: WindowFamily, steps: int, thresholds: tuple[int, ...], unit: Unit, most: int | None = None
) -> Changes:
    """All differences of exact answers over logs with 0..most occurrences a step; k+1, k the largest threshold."""
    # Measurements of any windows may use all windows, however long those are that are asked for.
    return all_neighbours(AnyWindow() if isinstance(window, AnyWindow) else window, steps, thresholds, unit, most)


@lru_cache(maxsize=256)
def all_neighbours(
    window: WindowFamily, steps: int, thresholds: tuple[int, ...], unit: Unit, most: int | None
) -> Changes:
    if most is None:
        most = max(thresholds) + 1
        while (most + 1) ** steps > 20_000:
            most -= 1  # what lies above k counts like k, so nothing is lost down to most = k
        assert most >= max(thresholds)
    return Changes.of(differences(all_logs(steps, most), window, thresholds, unit))


def matrix_of(design: Design, k: int | None = None) -> NDArray[Any]:
    """The integer matrix that `encode` applies to the exact answers of a threshold, the first, shape (rows, cells)."""
    problem = design.problem
    columns = []
    for row, column in zip(*cells(problem.window, problem.steps), strict=True):
        square = np.zeros((problem.steps, problem.steps), dtype=np.int64)
        square[row, column] = 1
        columns.append(design.encode(TableAnswers(square), k or problem.thresholds[0]))
    return np.stack(columns, axis=1)


def matrix_over_all_windows(design: Design) -> NDArray[Any]:
    problem = design.problem
    columns = []
    for row, column in zip(*np.triu_indices(problem.steps), strict=True):
        square = np.zeros((problem.steps, problem.steps), dtype=np.int64)
        square[row, column] = 1
        columns.append(design.encode(TableAnswers(square), problem.thresholds[0]))
    return np.stack(columns, axis=1)


def largest_norm(changes: Changes | Iterable[Ints], matrix: NDArray[Any], law: Law) -> int:
    """The largest L1 or squared L2 norm of `M g`, summed over thresholds; g of shape (pairs, thresholds, cells)."""
    found = changes if isinstance(changes, Changes) else Changes.of(changes)
    heaviest = 2 * int(abs(matrix).sum(axis=1).max())
    assert heaviest < 1 << 53
    # Exact: all partial sums are integers below 2^53.
    moved = (found.every.astype(np.float64) @ matrix.T.astype(np.float64)).astype(np.int64)
    if law == LAPLACE:
        norms = abs(moved).sum(axis=1)
    else:
        fits = heaviest**2 * found.which.shape[1] * moved.shape[1] < 1 << 63
        wide = moved if fits else moved.astype(object)
        norms = (wide * wide).sum(axis=1)
    return int(norms[found.which].sum(axis=1).max())


def truth(design: Design) -> int:
    """The exact sensitivity of a design, over all neighbours."""
    problem = design.problem
    matrix = matrix_of(design)
    assert len(matrix) == design.rows
    if not design.alike:
        matrices = [matrix_of(design, k) for k in problem.thresholds]
        logs = all_logs(problem.steps, max(problem.thresholds))
        return max(
            int(sum((changes[:, place] @ one.T) ** 2 for place, one in enumerate(matrices)).sum(axis=1).max())
            for changes in differences(logs, problem.window, problem.thresholds, problem.unit)
        )
    return largest_norm(
        neighbours(problem.window, problem.steps, problem.thresholds, problem.unit), matrix, problem.law
    )


def worst(design: Design) -> tuple[int, int]:
    """The largest norm over all neighbours, and the most numbers of one threshold that one changes."""
    problem, matrix = design.problem, matrix_of(design)
    changes = neighbours(problem.window, problem.steps, problem.thresholds, problem.unit)
    moved = int(((changes.every @ matrix.T.astype(np.int64)) != 0).sum(axis=1).max())
    return largest_norm(changes, matrix, problem.law), moved


def truth_up_to(design: Design, most: int) -> int:
    """The exact sensitivity over all logs with at most `most` occurrences a step."""
    problem = design.problem
    changes = neighbours(problem.window, problem.steps, problem.thresholds, problem.unit, most)
    return largest_norm(changes, matrix_of(design), problem.law)


def event_changes(steps: int, most: int, k: int) -> Iterator[tuple[int, Ints]]:
    """(step, table of changes) for one occurrence added to every log."""
    logs = all_logs(steps, most)
    before = squares(logs, k)
    for step in range(steps):
        more = logs.copy()
        more[:, step] += 1
        for change in np.unique(squares(more, k) - before, axis=0):
            yield step, change


def kind(window: WindowFamily) -> str:
    return "any:m" if isinstance(window, AnyWindow) and window.max_length else window.text.partition(":")[0]


class Looseness:
    """Bound over truth, smallest and largest by cell; printed when a test file's work is done (`pytest -s`)."""

    def __init__(self) -> None:
        self.seen: dict[tuple[str, ...], list[float]] = defaultdict(list)

    def add(self, cell: tuple[str, ...], bound: int, true: int) -> None:
        assert true <= bound, f"{cell}: certified {bound}, but a neighbour moves the measurement by {true}"
        # Nothing moves (no log is long enough to be counted): no ratio.
        if true:
            self.seen[cell].append(bound / true)

    def show(self, title: str) -> None:
        print(f"\n{title}: certified / true sensitivity")  # noqa: T201
        for cell, ratios in sorted(self.seen.items()):
            print(f"  {' | '.join(cell):62} {min(ratios):8.4f} .. {max(ratios):8.4f}  ({len(ratios)})")  # noqa: T201
