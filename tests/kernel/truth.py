"""What neighbours really change of exact answers, by enumeration, and how far that moves a design."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
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


def matrix_of(design: Design, k: int | None = None, over: WindowFamily | None = None) -> NDArray[Any]:
    """The integer matrix that `encode` applies to the exact answers of a threshold, the first, shape (rows, cells).

    Cells are those that the windows asked for, or a family that holds these, may use.
    """
    problem = design.problem
    columns = []
    for row, column in zip(*cells(over or problem.window, problem.steps), strict=True):
        square = np.zeros((problem.steps, problem.steps), dtype=np.int64)
        square[row, column] = 1
        columns.append(design.encode(TableAnswers(square), k or problem.thresholds[0]))
    return np.stack(columns, axis=1)


def matrices_of(design: Design) -> list[NDArray[Any]]:
    """The matrix of each threshold, or one for all of them."""
    thresholds = design.problem.thresholds
    return [matrix_of(design, k) for k in (thresholds[:1] if design.alike else thresholds)]


def largest_norm(changes: Changes | Iterable[Ints], matrices: NDArray[Any] | Sequence[NDArray[Any]], law: Law) -> int:
    """The largest L1 or squared L2 norm of `M g`, summed over thresholds; g of shape (pairs, thresholds, cells)."""
    found = changes if isinstance(changes, Changes) else Changes.of(changes)
    several = [matrices] if isinstance(matrices, np.ndarray) else matrices
    norms = [_norms(found, matrix, law) for matrix in several]
    if len(norms) == 1:
        return int(norms[0][found.which].sum(axis=1).max())
    return int(sum(own[which] for own, which in zip(norms, found.which.T, strict=True)).max())


def _norms(changes: Changes, matrix: NDArray[Any], law: Law) -> NDArray[Any]:
    """The norm of each single change."""
    heaviest = 2 * int(abs(matrix).sum(axis=1).max())
    assert heaviest < 1 << 53
    # Exact: all partial sums are integers below 2^53.
    moved = (changes.every.astype(np.float64) @ matrix.T.astype(np.float64)).astype(np.int64)
    if law == LAPLACE:
        return np.asarray(abs(moved).sum(axis=1))
    fits = heaviest**2 * changes.which.shape[1] * moved.shape[1] < 1 << 63
    wide = moved if fits else moved.astype(object)
    return np.asarray((wide * wide).sum(axis=1))


def truth(design: Design, most: int | None = None) -> int:
    """The exact sensitivity of a design, over all neighbours; over those with at most `most` occurrences a step."""
    matrices = matrices_of(design)
    assert {len(one) for one in matrices} == {design.rows}
    return largest_norm(_all_changes(design, most), matrices, design.problem.law)


def worst(design: Design, most: int | None = None) -> tuple[int, int]:
    """The largest norm over all neighbours, and the most numbers of one threshold that one changes."""
    changes, matrices = _all_changes(design, most), matrices_of(design)
    moved = max(int(((changes.every @ one.T.astype(np.int64)) != 0).sum(axis=1).max()) for one in matrices)
    return largest_norm(changes, matrices, design.problem.law), moved


def _all_changes(design: Design, most: int | None) -> Changes:
    problem = design.problem
    return neighbours(problem.window, problem.steps, problem.thresholds, problem.unit, most)


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
