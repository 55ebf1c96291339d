"""Tables of any windows that are worked on in blocks, against the same done window by window."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy

from dpwindows.ask.queries import AnyWindow
from dpwindows.ask.windows import window_steps
from dpwindows.kernel.maps.integer_maps import FloatArray
from dpwindows.release.consistency import band, smoothing
from dpwindows.release.consistency.rows import by_start, in_order, rows_by_end, rows_by_start, rows_by_start_at

SHAPES = [(1, 1), (2, 2), (5, 1), (6, 6), (9, 2), (11, 4), (12, 12)]
Windows = dict[tuple[int, int], float]


def by_window(values: FloatArray, steps: int, longest: int) -> Windows:
    """Windows in canonical order, by first and last step."""
    ends = zip(*(step.tolist() for step in window_steps(AnyWindow(longest), steps)), strict=True)
    return dict(zip(ends, values.tolist(), strict=True))


def random_table(steps: int, longest: int) -> tuple[FloatArray, FloatArray]:
    """Numbers that rise on the whole, by end, and weights; the same for the same shape."""
    generator = np.random.default_rng(steps * 100 + longest)
    table, weights = np.zeros((steps, longest)), np.full((steps, longest), 1e-12)
    for row, weight in zip(rows_by_end(table), rows_by_end(weights), strict=True):
        row[:] = 9 * np.sqrt(np.arange(1, len(row) + 1)) + generator.normal(0, 6, len(row))
        weight[:] = 1 / generator.uniform(5, 50, len(row))
    return table, weights


@pytest.mark.parametrize(("steps", "longest"), SHAPES)
def test_rows_hold_the_windows_of_their_step(steps: int, longest: int) -> None:
    table = np.zeros((steps, longest))
    for b, row in enumerate(rows_by_end(table), start=1):
        row[:] = [100 * (b - place) + b for place in range(len(row))]
    starts, ends = window_steps(AnyWindow(longest), steps)
    expected = 100 * starts + ends
    rows = list(rows_by_start(table))
    np.testing.assert_array_equal(np.concatenate(rows), expected)
    for place, row in zip(in_order(steps, longest), rows, strict=True):
        np.testing.assert_array_equal(expected[place], row)
    for start, row in enumerate(by_start(table)):
        np.testing.assert_array_equal(row[: len(rows[start])], rows[start])
    rows[0][:] = -1
    assert table[0, 0] == -1, "rows are views"


def test_rows_at_once_are_views_that_stay_within_the_table() -> None:
    table = np.arange(2.0 * 8 * 5).reshape(2, 8, 5)
    view = rows_by_start_at(table, 1, 3, 4)
    for row, place in itertools.product(range(3), range(4)):
        np.testing.assert_array_equal(view[:, row, place], table[:, 1 + row + place, place])
    assert np.shares_memory(view, table)
    rows_by_start_at(table, 1, 3, 5)
    for start, rows, longest in ((2, 3, 5), (0, 9, 1), (0, 1, 6)):
        with pytest.raises(ValueError, match="beyond"):
            rows_by_start_at(table, start, rows, longest)


def line(values: list[float], place: int, share: float) -> float:
    half = math.floor(share * (place + 1))
    near = range(max(place - half, 0), min(place + half, len(values) - 1) + 1)
    if len(near) == 1:
        return values[place]
    return float(np.polyval(np.polyfit(near, [values[at] for at in near], 1), place))


def plane(windows: Windows, shares: tuple[float, float]) -> Windows:
    """Lines along ends, and then along starts, window by window."""
    for at, share in enumerate(shares):
        rows: dict[int, list[tuple[int, int]]] = {}
        for window in sorted(windows, key=lambda window: window[1] - window[0]):
            rows.setdefault(window[at], []).append(window)
        windows = {
            window: line([windows[one] for one in row], place, share)
            for row in rows.values()
            for place, window in enumerate(row)
        }
    return windows


@pytest.mark.parametrize("at_once", [1, 3, 64])
@pytest.mark.parametrize(("steps", "longest"), SHAPES)
def test_planes_are_lines_along_ends_and_then_along_starts(
    steps: int, longest: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smoothing, "AT_ONCE", at_once)
    several = np.random.default_rng(3).normal(100, 20, (2, in_order(steps, longest)[-1].stop))
    made = list(smoothing.window_smoothers(steps, longest)(several))
    assert len(made) == len(smoothing._SHARES)
    for shares, found in zip(smoothing._SHARES, made, strict=True):
        for given, smoothed in zip(several, found, strict=True):
            expected = plane(by_window(given, steps, longest), shares)
            assert by_window(smoothed, steps, longest) == pytest.approx(expected, abs=1e-9)


def bent(by_end: FloatArray, weights: FloatArray, rounds: int) -> FloatArray:
    """The same, window by window: a window of no steps counts nothing and cannot change."""
    steps, longest = by_end.shape
    counts = np.pad(by_end, ((1, 0), (1, 0)))
    give = np.pad(1 / weights, ((1, 0), (1, 0)))
    for turn in range(4 * rounds):
        for b, length in itertools.product(range(2 + turn // 2 % 2, steps + 1, 2), range(2 + turn % 2, longest + 1, 2)):
            if b < length:
                continue
            cells = ((b, length), (b, length - 1), (b - 1, length - 1), (b - 1, length - 2))
            signs = (1, -1, -1, 1)
            owed = max(0.0, sum(sign * counts[cell] for sign, cell in zip(signs, cells, strict=True)))
            for sign, cell in zip(signs, cells, strict=True):
                counts[cell] -= sign * 1.5 * owed * give[cell] / sum(give[one] for one in cells)
    return counts[1:, 1:]


@pytest.mark.parametrize("at_once", [1, 2, 64])
@pytest.mark.parametrize(("steps", "longest"), SHAPES)
def test_bending_in_blocks_is_bending_window_by_window(
    steps: int, longest: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(band, "AT_ONCE", at_once)
    table, weights = random_table(steps, longest)
    expected = bent(table, weights, 5)
    band.bend(table, weights, 5)
    np.testing.assert_allclose(table, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("steps", "longest"), SHAPES)
def test_a_monotone_table_is_the_nearest_one(steps: int, longest: int) -> None:
    """But for what rounds are left out: within 1 % of the least distance, which a solver finds."""
    table, weights = random_table(steps, longest)
    inside = np.zeros_like(table, dtype=bool)
    for row in rows_by_end(inside):
        row[:] = True
    place = {cell: at for at, cell in enumerate(map(tuple, np.argwhere(inside).tolist()))}
    grows = [(place[b, j], place[other]) for b, j in place for other in ((b, j + 1), (b + 1, j + 1)) if other in place]
    given, weight = table[inside], weights[inside]
    rising = np.zeros((len(grows), len(given)))
    for number, (inner, outer) in enumerate(grows):
        rising[number, inner], rising[number, outer] = -1, 1
    # The dual problem: how much each inequality pushes, never below 0.
    root = np.sqrt(weight)
    push = scipy.optimize.nnls((rising / root).T, -given * root, maxiter=10_000)[0] if grows else np.zeros(0)
    nearest = np.maximum(given + (rising.T @ push) / weight, 0)
    band.monotone(table, weights, float(np.median(weights[inside])))
    found = table[inside]
    assert (rising @ found >= 0).all()
    assert (found >= 0).all()
    distance, least = (float((weight * (one - given) ** 2).sum()) for one in (found, nearest))
    assert distance <= 1.01 * least + 1e-9


def test_what_is_left_to_parts_of_an_exact_window_keeps_it() -> None:
    """Its number stays where the windows in it, which are far too low, would take it down; no other falls."""
    steps, lowered = 9, 0
    for seed in range(20):
        generator = np.random.default_rng(seed)
        seen = np.sort(generator.integers(1, steps + 1, (30, 3)), axis=1)
        tables = {k: np.zeros((steps, steps)) for k in (1, 2)}
        for (k, table), last in itertools.product(tables.items(), range(1, steps + 1)):
            for length in range(1, last + 1):
                within = (seen > last - length) & (seen <= last)
                table[last - 1, length - 1] = (within.sum(axis=1) >= k).sum()
        ones, true = tables[1], tables[2]
        # The windows 1..9 and 3..7 are exact.
        exact = ((8, 8), (6, 4))
        weights = np.ones((steps, steps))
        weights[exact[0]], weights[exact[1]] = 1e6, 1e6
        given = np.floor(true * generator.uniform(0, 0.5, true.shape))
        for place in exact:
            given[place] = true[place]
        band.monotone(given, weights, 1.0)
        found = given.copy()
        band.leave_to_parts([band.Band(1, ones, np.ones_like(ones)), band.Band(2, found, weights)], [1.0, 1.0])
        assert (found >= given).all()
        for table, keeps in ((given, False), (found, True)):
            whole = band.Band(2, np.rint(table).astype(np.int64), weights)
            band.lower_to_parts([band.Band(1, ones.astype(np.int64), weights), whole])
            kept = [whole.values[place] == true[place] for place in exact]
            lowered += not all(kept) and not keeps
            assert all(kept) or not keeps
    assert lowered
