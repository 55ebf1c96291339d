"""Changes of one item in rolling counts, by enumeration."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dpwindows.kernel.families.runs import affected_ends
from tests.single_item import Ints, all_logs


def rolling_changes(length: int, span: int, k: int) -> Iterator[Ints]:
    """All changes of the windows that see a span, for every log of `length - 1` steps on either side of it."""
    inside = all_logs(span, k)
    for before, after in itertools.product(all_logs(length - 1, k) if length > 1 else np.zeros((1, 0), int), repeat=2):
        logs = np.hstack([np.tile(before, (len(inside), 1)), inside, np.tile(after, (len(inside), 1))])
        sums = np.cumsum(np.pad(logs, ((0, 0), (1, 0))), axis=1)
        answers = np.unique(sums[:, length:] - sums[:, :-length] >= k, axis=0).astype(np.int64)
        assert answers.shape[1] == affected_ends(length, span, None)
        yield (answers[:, None] - answers[None]).reshape(-1, answers.shape[1])


def item_counts(length: int, starts: int, places: int) -> Ints:
    """Every count for k = 1 of a log that holds occurrences in the first `starts` steps only."""
    logs = np.array(list(itertools.product((0, 1), repeat=starts)))
    padded = np.pad(logs, ((0, 0), (length, places)))
    sums = np.cumsum(padded, axis=1)
    return np.unique((sums[:, length:] - sums[:, :-length] > 0).astype(np.int64)[:, :places], axis=0)


def costs(taps: tuple[int, ...], vectors: Ints) -> NDArray[np.int64]:
    """`g'Gg` on the unbounded horizon, straight from the filter."""
    moved = np.array([np.convolve(taps, one) for one in np.eye(vectors.shape[1], dtype=np.int64)])
    return np.asarray(((vectors @ moved) ** 2).sum(axis=1))
