"""What someone who trusts nobody would run on an exported plan: numpy and the file, nothing of dpwindows.

Usage: python -I third_party.py FILE UNIT MOST [SAMPLES], with UNIT event, item-per:STEPS, item or item-add-remove and
at most MOST occurrences a step. Recomputes the sensitivity over all neighbouring histories of one item, the cost in
pure or concentrated terms where that is simple, and whether decoding is unbiased; then rebuilds the explicit weights
from the factors. With SAMPLES, for horizons whose histories cannot be listed, it works from the factors alone: it draws
that many pairs of neighbours and a crowded log, and says how far the pairs move the measurement and whether the log is
decoded to what it holds. Prints the results as JSON.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def window_answers(histories: Array, k: int) -> Array:
    """1 where a history has at least k occurrences in steps a..b: shape (histories, T + 1, T + 1), indices a, b.

    For -1 the occurrences themselves.
    """
    count, steps = histories.shape
    sums = np.concatenate([np.zeros((count, 1), dtype=int), np.cumsum(histories, axis=1)], axis=1)
    found = np.zeros((count, steps + 2, steps + 1), dtype=int)
    for a in range(1, steps + 1):
        for b in range(a, steps + 1):
            inside = sums[:, b] - sums[:, a - 1]
            found[:, a, b] = inside if k == -1 else inside >= k
    return found


def vectors(measurement: dict[str, Any], part: dict[str, Array], histories: Array) -> dict[int, Array]:
    """What is measured of each history, by threshold, from the explicit weights."""
    answers = {int(k): window_answers(histories, int(k)) for k in np.unique(part["entry_source"])}
    found = {k: np.zeros((len(histories), measurement["rows"]), dtype=object) for k in measurement["thresholds"]}
    columns = (part[f"entry_{name}"] for name in ("measured", "row", "source", "first", "last", "value"))
    for k, row, source, first, last, value in zip(*columns, strict=True):
        found[int(k)][:, row] += int(value) * answers[int(source)][:, first, last].astype(object)
    return found


def in_groups(history: Array, groups: dict[str, Any], by: list[str]) -> Array:
    """What each group by the columns `by` holds of one item's history, shape (T, groups by all columns)."""
    lists = [column["values"] for column in groups["columns"]]
    places = [place for place, column in enumerate(groups["columns"]) if column["name"] in by]
    codes = list(itertools.product(*(range(len(values)) for values in lists)))
    events = [(step, code, n) for step, row in enumerate(history) for code, n in zip(codes, row, strict=True) if n]
    if groups["group_of"] == "item":
        events = [(step, events[0][1], n) for step, _, n in events]
    cells = list(itertools.product(*(range(len(lists[place])) for place in places)))
    seen = list(dict.fromkeys(tuple(code[place] for place in places) for _, code, _ in events))
    counted = seen[: groups["max_groups"] or len(seen)]
    found = np.zeros((len(cells), len(history)), dtype=int)
    for step, code, n in events:
        cell = tuple(code[place] for place in places)
        if cell in counted:
            found[cells.index(cell), step] += n
    return found


def norms(change: Array, name: str, vectors: int) -> Array:
    """The norm of each row, in the sense of the description; the last two are of each vector of a row, and add up."""
    if name in ("squared L2", "L1"):
        return np.asarray((change**2 if name == "squared L2" else np.abs(change)).sum(axis=-1))
    parts = np.split(change, vectors, axis=-1)
    if name == "max":
        return np.asarray(sum(np.abs(part).max(axis=-1) for part in parts))
    assert name == "range"
    return np.asarray(sum(np.maximum(part.max(axis=-1), 0) - np.minimum(part.min(axis=-1), 0) for part in parts))


def largest_change(joint: Array, histories: Array, unit: str, name: str, slots: int = 1, vectors: int = 1) -> int:
    """The most that neighbours move: their histories differ in numbers of which each step has so many."""

    def norm(change: Array) -> int:
        return int(np.max(norms(change, name, vectors)))

    if unit == "item-add-remove":
        return norm(joint)
    if unit == "item":
        return max(norm(joint - one) for one in joint)
    if unit.startswith("item-per:"):
        return max(
            norm(joint[same] - one)
            for first in range(0, histories.shape[1] - int(unit[9:]) * slots + 1, slots)
            for history, one in zip(histories, joint, strict=True)
            for same in [
                (np.delete(histories != history, range(first, first + int(unit[9:]) * slots), axis=1) == 0).all(axis=1)
            ]
        )
    index = {tuple(history): i for i, history in enumerate(histories.tolist())}
    largest = 0
    for history, i in index.items():
        for step in range(len(history)):
            more = (*history[:step], history[step] + 1, *history[step + 1 :])
            if more in index:
                largest = max(largest, norm(joint[index[more]] - joint[i]))
    return largest


# --- What is measured, and how it is read, from the factors and their description in words ---------------------------


class Shape:
    """One shape of the factor form: `measure` gives y for one history's (or log's) answers, `read` the estimates."""

    def __init__(self, part: dict[str, Array], window: str, steps: int) -> None:
        self.part, self.window, self.steps = part, window, steps
        self.first, self.last = part["first"], part["last"]

    def measure(self, answers: Callable[[int], Array], k: int) -> Array:
        return self.of(answers(k))

    def of(self, x: Array) -> Array:
        raise NotImplementedError

    def read(self, y: Array) -> Array:
        raise NotImplementedError

    def whole(self, name: str) -> Array:
        found = self.part[name]
        return found.astype(object) if found.dtype.kind == "U" else found

    def toeplitz(self, size: int) -> Array:
        taps = np.concatenate([self.whole("taps"), np.zeros(size, dtype=int)])[:size]
        lags = np.arange(size)[:, None] - np.arange(size)[None, :]
        return np.where(lags >= 0, taps[lags], 0)


class Series(Shape):
    def of(self, x: Array) -> Array:
        return np.asarray(self.whole("matrix") @ x[self.first, self.last])

    def read(self, y: Array) -> Array:
        return np.asarray(self.part["decoder_matrix"] @ y)


class SeriesOfTotals(Shape):
    def of(self, x: Array) -> Array:
        return np.asarray(self.whole("matrix") @ x[1, 1:])

    def read(self, y: Array) -> Array:
        totals = np.concatenate([[0.0], self.part["decoder_matrix"] @ y])
        return np.asarray(totals[self.last] - totals[self.first - 1])


class Blocks(Shape):
    def of(self, x: Array) -> Array:
        measured = []
        for first, starts, ends in self.part["blocks"]:
            square = x[first : first + starts, first : first + ends][:, ::-1]
            measured.append((self.whole(f"matrix_{starts}") @ square @ self.whole(f"matrix_{ends}").T).T.ravel())
        return np.concatenate(measured)

    def read(self, y: Array) -> Array:
        found, position = np.zeros((self.steps + 2, self.steps + 1)), 0
        for first, starts, ends in self.part["blocks"]:
            along_starts, along_ends = (self.part[f"decoder_matrix_{size}"] for size in (starts, ends))
            shape = along_ends.shape[1], along_starts.shape[1]
            part = y[position : position + shape[0] * shape[1]].reshape(shape)
            position += part.size
            square = along_starts @ (along_ends @ part).T
            found[first : first + starts, first : first + ends] = square[:, ::-1]
        return found[self.first, self.last]


class NestedWindows(Shape):
    def axis(self) -> Array:
        taps = np.concatenate([self.whole("taps"), np.zeros(self.steps, dtype=int)])
        lags = np.arange(self.steps)[:, None] - np.arange(self.steps)[None, :]
        return np.where(lags >= 0, taps[lags], 0)

    def measured(self) -> Any:
        return self.steps - self.first, self.last - 1

    def of(self, x: Array) -> Array:
        axis = self.axis()
        return np.asarray((axis @ x[1 : self.steps + 1, 1:][::-1] @ axis.T)[self.measured()]) * self.weights()

    def weights(self) -> Array:
        return self.whole("weights")[self.last - self.first] if "weights" in self.part else np.ones(1, dtype=int)

    def read(self, y: Array) -> Array:
        inverse = np.linalg.inv(self.axis().astype(float))
        full = np.zeros((self.steps, self.steps))
        full[self.measured()] = y / self.weights().astype(float)
        return np.asarray((inverse @ full @ inverse.T)[self.measured()])


class Starts(Shape):
    def lengths(self) -> list[int]:
        longest = int((self.last - self.first).max()) + 1
        return [min(longest, self.steps - first) for first in range(self.steps)]

    def of(self, x: Array) -> Array:
        if "unit" in self.part:
            return np.asarray(x[self.first, self.last] * int(self.part["unit"]))
        matrix, measured = self.whole("matrix"), []
        for first, length in enumerate(self.lengths(), 1):
            counts = x[first, first : first + length]
            if self.part["continued"]:
                counts = np.concatenate([counts, np.repeat(counts[-1:], matrix.shape[1] - length)])
            measured.append(matrix[: len(counts) if not self.part["continued"] else None, : len(counts)] @ counts)
        return np.concatenate(measured)

    def read(self, y: Array) -> Array:
        if "unit" in self.part:
            return y / float(self.part["unit"])
        decoder, estimates, place = self.part["decoder_matrix"], [], 0
        for length in self.lengths():
            rows = decoder.shape[1] if self.part["continued"] else length
            estimates.append(decoder[:length, :rows] @ y[place : place + rows])
            place += rows
        return np.concatenate(estimates)


class Counters(Shape):
    def of(self, x: Array) -> Array:
        longest = self.part["matrix"].shape[1]
        by_length = np.array([[x[a, min(a + n, self.steps)] for a in range(1, self.steps + 1)] for n in range(longest)])
        return np.asarray((self.whole("matrix") @ by_length).ravel())

    def read(self, y: Array) -> Array:
        by_length = self.part["decoder_matrix"] @ y.reshape(-1, self.steps)
        return np.asarray(by_length[self.last - self.first, self.first - 1])


class CrossedCounters(Shape):
    def of(self, x: Array) -> Array:
        measured = []
        for first, starts, ends in self.part["blocks"]:
            square = x[first : first + starts, first : first + ends]
            r, c = (self.whole(f"{axis}_weights_{starts}_{ends}") for axis in ("start", "end"))
            measured.append(((r[:, None] * square) @ self.toeplitz(ends).T).ravel())
            measured.append((self.toeplitz(starts) @ (square[::-1] * c)).ravel())
        return np.concatenate(measured)

    def read(self, y: Array) -> Array:
        found, position = np.zeros((self.steps + 2, self.steps + 1)), 0
        for first, starts, ends in self.part["blocks"]:
            suffix, size = f"_{starts}_{ends}", starts * ends
            rows, columns = y[position : position + 2 * size].reshape(2, starts, ends)
            position += 2 * size
            names = ("start_weights", "end_weights", "start_modes", "end_modes", "mode_variances", "pinned_root")
            r, c, u, v, w, root = (self.part[name + suffix].astype(float) for name in names)
            right = (r[:, None] * rows) @ self.toeplitz(ends) + (self.toeplitz(starts).T @ columns)[::-1] * c
            estimate = u @ (w * (u.T @ right @ v)) @ v.T
            if root.size:
                pins = np.arange(len(root))
                excess = np.zeros_like(estimate)
                excess[pins + 1, pins] = np.linalg.solve(root @ root.T, estimate[pins + 1, pins])
                estimate = estimate - u @ (w * (u.T @ excess @ v)) @ v.T
            found[first : first + starts, first : first + ends] = estimate
        return found[self.first, self.last]


class WindowsInGaps(Shape):
    def of(self, x: Array) -> Array:
        everyone, absent = x[1, -1], np.triu(x[1, -1] - x[1:-1, 1:])
        first, last = np.triu_indices(self.steps)
        filtering = self.toeplitz(self.steps).astype(object)
        filtered = (filtering @ absent @ filtering)[first, last]
        y = self.whole("weights")[last - first] * filtered - self.whole("offset")[0] * everyone
        y[self.steps - 1] = self.whole("total")[0] * everyone
        return np.asarray(y)

    def read(self, y: Array) -> Array:
        everyone = y[self.steps - 1] / float(self.whole("total")[0])
        first, last = np.triu_indices(self.steps)
        filtered = np.zeros((self.steps, self.steps))
        filtered[first, last] = y + float(self.whole("offset")[0]) * everyone
        filtered[first, last] /= self.whole("weights")[last - first].astype(float)
        filtered[0, -1] = 0
        inverse = np.linalg.inv(self.toeplitz(self.steps).astype(float))
        return np.asarray((everyone - inverse @ filtered @ inverse)[self.first - 1, self.last - 1])


class FixedWindowTrees(Shape):
    def of(self, x: Array) -> Array:
        length = int(self.window.split(":")[1])

        def last_steps(t: int, n: int) -> int:
            return int(x[max(1, t - n + 1), t]) if t else 0

        count = self.steps // length + 1
        points = np.zeros((self.part["matrix"].shape[1], 2 * count), dtype=int)
        for j, d in itertools.product(range(count), range(length)):
            t = j * length + d
            if t <= self.steps:
                arrived = last_steps(t, length + 1) - last_steps(t - 1, length) if d else last_steps(t, length)
                points[d, j] = arrived
                points[d, count + j] = last_steps(t, length + 1) - last_steps(t, length) if d else 0
        return np.asarray((self.whole("matrix") @ points).ravel())

    def read(self, y: Array) -> Array:
        so_far = self.part["decoder_matrix"] @ y.reshape(self.part["matrix"].shape[0], -1)
        blocks, places = np.divmod(self.last, int(self.window.split(":")[1]))
        return np.asarray(so_far[places, blocks] - so_far[places, so_far.shape[1] // 2 + blocks])


class TimeWindowTrees(Shape):
    def measure(self, answers: Callable[[int], Array], k: int) -> Array:
        below = [np.zeros_like(answers(1)), *(answers(i) for i in range(1, k + 1))]
        return np.concatenate([self.corners(np.sum(below, axis=0)), self.corners(np.sum(below[:k], axis=0))])

    def corners(self, v: Array) -> Array:
        square = v[1:-1, 1:][:, ::-1]
        mixed = np.diff(np.diff(square, axis=0, prepend=0), axis=1, prepend=0)
        steps = len(square)
        mixed[np.arange(steps)[:, None] >= np.arange(steps, 0, -1)[None, :]] = 0
        return np.asarray((self.whole("matrix_starts") @ mixed @ self.whole("matrix_ends").T).ravel())

    def read(self, y: Array) -> Array:
        along_starts, along_ends = self.part["decoder_matrix_starts"], self.part["decoder_matrix_ends"]
        first, second = y.reshape(2, along_starts.shape[1], along_ends.shape[1])
        square = (along_starts @ (first - second) @ along_ends.T)[:, ::-1]
        return np.asarray(square[self.first - 1, self.last - 1])


class RollingTogether(Shape):
    def of(self, x: Array) -> Array:
        lengths, taps = self.part["lengths"], self.part["taps"]
        rows = [[x[max(1, t - n + 1), t] for n in lengths] for t in range(1, self.steps + 1)]
        measured = [sum(taps[j] @ rows[t - j] for j in range(min(t + 1, len(taps)))) for t in range(self.steps)]
        return np.concatenate(measured)

    def read(self, y: Array) -> Array:
        taps, found = self.part["taps"].astype(float), list[Array]()
        for t, now in enumerate(y.reshape(self.steps, -1)):
            known = sum(taps[j] @ found[t - j] for j in range(1, min(t + 1, len(taps))))
            found.append(np.linalg.solve(taps[0], now - known))
        return np.array(found).T.ravel()


SHAPES: dict[str, type[Shape]] = {
    "series": Series,
    "series of totals": SeriesOfTotals,
    "blocks": Blocks,
    "nested windows": NestedWindows,
    "starts": Starts,
    "counters": Counters,
    "crossed counters": CrossedCounters,
    "windows in gaps": WindowsInGaps,
    "fixed-window trees": FixedWindowTrees,
    "time-window trees": TimeWindowTrees,
    "rolling together": RollingTogether,
}


def rebuilt(measurement: dict[str, Any], part: dict[str, Array], logs: Array, k: int) -> tuple[Array, Array] | None:
    """What is measured of logs of one item each, from the factors, and the estimates read from it."""
    steps, nearest = logs.shape[1], None
    while measurement["shape"] == "compressed":
        size, nearest = measurement["steps_per_group"], part["nearest"] if nearest is None else nearest[part["nearest"]]
        padded = np.pad(logs, ((0, 0), (0, -steps % size)))
        logs = padded.reshape(len(logs), -1, size).sum(axis=2)
        measurement, steps = measurement["inner"], measurement["inner"]["steps"]
        part = {name.removeprefix("inner/"): array for name, array in part.items() if name.startswith("inner/")}
    if measurement["shape"] not in SHAPES or not (set(part) - {"first", "last"}):
        return None
    shape = SHAPES[measurement["shape"]](part, measurement["window"], steps)
    answers = {i: window_answers(logs, i) for i in (-1, *range(1, k + 1))}
    measured = np.array([shape.measure(lambda i, n=n: answers[i][n], k) for n in range(len(logs))])  # type: ignore[misc]
    read = np.array([shape.read(one.astype(float)) for one in measured])
    return measured, read if nearest is None else read[:, nearest]


# --- The checks -------------------------------------------------------------------------------------------------------


def parts(path: str) -> tuple[dict[str, Any], list[tuple[dict[str, Any], dict[str, Array]]]]:
    file = np.load(path, allow_pickle=False)
    description = json.loads(str(file["description"]))
    found = []
    for number, measurement in enumerate(description["measurements"]):
        prefix = f"{number}/"
        part = {name.removeprefix(prefix): file[name] for name in file.files if name.startswith(prefix)}
        found.append((measurement, part))
    return description, found


def stated(measurement: dict[str, Any], part: dict[str, Array]) -> dict[str, Any]:
    return {
        "shape": measurement["shape"],
        "strategy": measurement["strategy"],
        "certified": int(measurement["sensitivity"]["bound"]),
        "scale": measurement["noise"]["scale"],
        "law": measurement["noise"]["law"],
        "bias_bound": float(part["bias_bound"].max()),
    }


def check(path: str, unit: str, most: int) -> list[dict[str, Any]]:
    description, measurements = parts(path)
    histories = np.array(list(itertools.product(range(most + 1), repeat=description["steps"])))
    results = []
    for measurement, part in measurements:
        found = vectors(measurement, part, histories)
        joint = np.concatenate(list(found.values()), axis=1)
        name = measurement["sensitivity"]["norm"]
        bias, agree, few = 0.0, True, slice(0, len(histories), -(-len(histories) // 64))
        for k, measured in found.items():
            wanted = window_answers(histories, k)[:, part["first"], part["last"]]
            read = measured.astype(float) @ part["decoder"].T
            bias = max(bias, np.abs(read - wanted).max())
            again = rebuilt(measurement, part, histories[few], k)
            if again is not None:
                agree &= bool(np.array_equal(again[0], measured[few]))
                agree &= np.allclose(again[1], read[few], atol=1e-6)
        recomputed = largest_change(joint, histories, unit, name, vectors=len(found))
        checks = {"recomputed": recomputed, "bias": float(bias), "factors_agree": bool(agree)}
        results.append(stated(measurement, part) | checks)
    return results


def checked_in_groups(path: str, unit: str, most: int) -> list[dict[str, Any]]:
    """The sensitivity of measurements in groups, over neighbours that change groups among others."""
    description, measurements = parts(path)
    groups, steps = description["groups"], description["steps"]
    slots = int(np.prod([len(column["values"]) for column in groups["columns"]]))
    histories = np.array(list(itertools.product(range(most + 1), repeat=steps * slots)))
    results = []
    for measurement, part in measurements:
        held = [in_groups(one.reshape(steps, slots), groups, measurement["groups"]["by"]) for one in histories]
        cells = np.stack(held, axis=1)
        assert len(cells) == measurement["groups"]["count"]
        joint = np.concatenate([one for cell in cells for one in vectors(measurement, part, cell).values()], axis=1)
        count = len(cells) * len(measurement["thresholds"])
        recomputed = largest_change(joint, histories, unit, measurement["sensitivity"]["norm"], slots, count)
        bound = int(measurement["groups"]["bound"])
        results.append(stated(measurement, part) | {"recomputed": recomputed, "certified": bound})
    return results


def sampled(path: str, unit: str, most: int, samples: int) -> list[dict[str, Any]]:
    description, measurements = parts(path)
    rng = np.random.default_rng(0)
    pairs = [neighbours(rng, description["steps"], unit, most) for _ in range(samples)]
    results = []
    for measurement, part in measurements:
        name = measurement["sensitivity"]["norm"]
        total, bias = np.zeros(samples, dtype=object), 0.0
        for k in measurement["thresholds"]:
            both = [rebuilt(measurement, part, np.array(side), k) for side in zip(*pairs, strict=True)]
            assert both[0] is not None
            assert both[1] is not None
            change = (both[0][0] - both[1][0]).astype(object)
            total += norms(change, name, 1)
            # Reading is linear: what holds for the sum of many items' answers holds for every log.
            wanted = window_answers(np.array(pairs)[:, 0], k)[:, part["first"], part["last"]]
            bias = max(bias, float(np.abs(both[0][1] - wanted).max()))
        results.append(stated(measurement, part) | {"reached": int(max(total)), "bias": bias})
    return results


def neighbours(rng: np.random.Generator, steps: int, unit: str, most: int) -> tuple[Array, Array]:
    """Two histories of one item that are neighbours: crowded, sparse, or in bursts."""

    def history() -> Array:
        found = (rng.random(steps) < rng.choice([0.02, 0.1, 0.5, 1.0])).astype(int)
        begin, end = sorted(rng.integers(0, steps + 1, size=2))
        found[:begin], found[end:] = 0, 0
        return np.asarray(found * rng.integers(1, most + 1, size=steps))

    one, other = history(), history()
    if unit == "item-add-remove":
        other = np.zeros_like(one)
    elif unit == "event":
        other = one.copy()
        other[rng.integers(steps)] += 1
    elif unit.startswith("item-per:"):
        span = int(unit.split(":")[1])
        first = rng.integers(0, max(1, steps - span + 1))
        other[:first], other[first + span :] = one[:first], one[first + span :]
    return one, other


if __name__ == "__main__":
    asked = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if "groups" in parts(sys.argv[1])[0]:
        answer = checked_in_groups(*asked)
    else:
        answer = sampled(*asked, int(sys.argv[4])) if len(sys.argv) > 4 else check(*asked)
    if any(name.split(".")[0] == "dpwindows" for name in sys.modules):
        raise SystemExit("this check must not import dpwindows")
    json.dump(answer, sys.stdout)
