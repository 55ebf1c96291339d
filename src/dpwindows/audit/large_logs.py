"""Made-up exact answers that are large, and logs of many items: what small worst cases cannot stand for.

A mechanism that looks at its data can behave on one item and small counts, and misbehave on millions. So answers of
many sizes and forms, with up to 2^40 items, are put to it beside what one item gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dpwindows.audit.neighbours import Ints
from dpwindows.audit.probe import Table

# Largest counts of the answers that are tried, beside 0.
SIZES = (1, 100, 1_999, 2_000, 2_001, 10**4, 10**5, 10**6, 2**24 + 1, 2**31 - 1, 2**31, 2**32 + 1, 10**12, 2**40)


@dataclass(frozen=True)
class LargeAnswers:
    """Exact answers with a name for reports."""

    name: str
    table: Table


def flat(steps: int, thresholds: Sequence[int], size: int) -> Table:
    """The same count for every window and threshold."""
    return Table(steps, {k: np.triu(np.full((steps, steps), size, dtype=np.int64)) for k in thresholds})


def random(steps: int, thresholds: Sequence[int], size: int, rng: np.random.Generator) -> Table:
    """Independent counts of 0..size for every window and threshold."""
    return Table(steps, {k: np.triu(rng.integers(0, size + 1, size=(steps, steps))) for k in thresholds})


def spiked(steps: int, thresholds: Sequence[int], size: int, rng: np.random.Generator) -> Table:
    """A few windows with large counts, all others 0."""
    squares = {}
    for k in thresholds:
        chosen = rng.random((steps, steps)) < min(0.5, 3 / steps)
        squares[k] = np.triu(np.where(chosen, size, 0).astype(np.int64))
    return Table(steps, squares)


def crowd(histories: Ints, weights: Ints, thresholds: Sequence[int]) -> Table:
    """What a log holds whose items have the histories `histories[i]`, `weights[i]` of them each, from the definition.

    Args:
        histories: occurrences by item and step, shape (histories, steps).
        weights: items with each history, shape (histories,).
        thresholds: every k that is counted.
    """
    steps = histories.shape[1]
    sums = np.concatenate([np.zeros((len(histories), 1), dtype=np.int64), np.cumsum(histories, axis=1)], axis=1)
    squares = {k: np.zeros((steps, steps), dtype=np.int64) for k in thresholds}
    for first in range(steps):
        held = sums[:, first + 1 :] - sums[:, first, None]
        for k in thresholds:
            squares[k][first, first:] = ((held >= k) * weights[:, None]).sum(axis=0)
    return Table(steps, squares)


def added(one: Table, other: Table) -> Table:
    """The answers of two logs together that have no item in common."""
    return Table(one.steps, {k: square + other.squares[k] for k, square in one.squares.items()})


def large_answers(steps: int, thresholds: Sequence[int], rng: np.random.Generator) -> Iterator[LargeAnswers]:
    """Answers of every size in every form."""
    histories = random_histories(64, steps, max(1, min(3, max(thresholds))), rng)
    for size in SIZES:
        yield LargeAnswers(f"{size:,} items in every window", flat(steps, thresholds, size))
        yield LargeAnswers(f"up to {size:,} items in each window", random(steps, thresholds, size, rng))
        yield LargeAnswers(f"{size:,} items in a few windows", spiked(steps, thresholds, size, rng))
        weights = rng.multinomial(size, np.full(len(histories), 1 / len(histories)))
        yield LargeAnswers(f"a log of {size:,} items", crowd(histories, weights, thresholds))


def random_histories(items: int, steps: int, most: int, rng: np.random.Generator) -> Ints:
    """Histories from rare to frequent occurrences, up to `most` in one step; shape (items, steps)."""
    share = rng.random((items, 1)) ** 2
    return np.where(rng.random((items, steps)) < share, rng.integers(1, most + 1, size=(items, steps)), 0)


def events_table(boundaries: pa.Array, histories: Mapping[str, Ints]) -> pa.Table:
    """A log with these histories by item: columns item, time (the start of the step) and count."""
    names: list[str] = []
    steps: list[Ints] = [np.zeros(0, dtype=np.int64)]
    counts: list[Ints] = [np.zeros(0, dtype=np.int64)]
    for name, history in histories.items():
        held = np.flatnonzero(history)
        names += [name] * len(held)
        steps.append(held)
        counts.append(np.asarray(history, dtype=np.int64)[held])
    return pa.table(
        {
            "item": pa.array(names, pa.string()),
            "time": boundaries.take(pa.array(np.concatenate(steps))),
            "count": pa.array(np.concatenate(counts)),
        }
    )
