"""What someone who trusts nobody would run on an exported plan: numpy and the file, nothing of dpwindows.

Usage: python -I third_party.py FILE UNIT MOST, with UNIT event, item-per:STEPS, item or item-add-remove and at most
MOST occurrences a step. Recomputes the sensitivity over all neighbouring histories of one item, the cost in pure or
concentrated terms where that is simple, and whether decoding is unbiased; then rebuilds the explicit weights from the
factors. Prints the results as JSON.
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
    """1 where a history has at least k occurrences in steps a..b: shape (histories, T + 1, T + 1), indices a, b."""
    count, steps = histories.shape
    sums = np.concatenate([np.zeros((count, 1), dtype=int), np.cumsum(histories, axis=1)], axis=1)
    found = np.zeros((count, steps + 2, steps + 1), dtype=int)
    for a in range(1, steps + 1):
        for b in range(a, steps + 1):
            found[:, a, b] = sums[:, b] - sums[:, a - 1] >= k
    return found


def vectors(measurement: dict[str, Any], part: dict[str, Array], histories: Array) -> dict[int, Array]:
    """What is measured of each history, by threshold, from the explicit weights."""
    answers = {int(k): window_answers(histories, int(k)) for k in np.unique(part["entry_source"])}
    found = {k: np.zeros((len(histories), measurement["rows"]), dtype=object) for k in measurement["thresholds"]}
    columns = (part[f"entry_{name}"] for name in ("measured", "row", "source", "first", "last", "value"))
    for k, row, source, first, last, value in zip(*columns, strict=True):
        found[int(k)][:, row] += int(value) * answers[int(source)][:, first, last].astype(object)
    return found


def largest_change(joint: Array, histories: Array, unit: str, squared: bool) -> int:
    def norm(change: Array) -> int:
        return int(np.max((change**2 if squared else np.abs(change)).sum(axis=-1)))

    if unit == "item-add-remove":
        return norm(joint)
    if unit == "item":
        return max(norm(joint - one) for one in joint)
    if unit.startswith("item-per:"):
        return max(
            norm(joint[same] - one)
            for first in range(histories.shape[1] - int(unit[9:]) + 1)
            for history, one in zip(histories, joint, strict=True)
            for same in [
                (np.delete(histories != history, range(first, first + int(unit[9:])), axis=1) == 0).all(axis=1)
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


def rebuilt(shape: str, measurement: dict[str, Any], part: dict[str, Array], histories: Array, k: int) -> Array | None:
    """What is measured, from the factors and the description in words; None for shapes without factors."""
    answers = window_answers(histories, k)
    steps = histories.shape[1]
    shapes: dict[str, Callable[[Array], Array]] = {
        "series": lambda x: part["matrix"] @ x[part["first"], part["last"]],
        "blocks": lambda x: blocks(x, part),
        "counters": lambda x: counters(x, part, steps),
        "fixed-window trees": lambda x: fixed_window(x, part, int(measurement["window"].split(":")[1])),
    }
    if shape in shapes:
        return np.array([shapes[shape](answer) for answer in answers])
    if shape == "time-window trees":
        below = [np.zeros_like(answers), *(window_answers(histories, i) for i in range(1, k + 1))]
        sums = [np.sum(below[: k + 1], axis=0), np.sum(below[:k], axis=0)]
        return np.array([np.concatenate([corners(s[i], part) for s in sums]) for i in range(len(histories))])
    return None


def blocks(x: Array, part: dict[str, Array]) -> Array:
    measured = []
    for first, starts, ends in part["blocks"]:
        square = x[first : first + starts, first : first + ends][:, ::-1]
        measured.append((part[f"matrix_{starts}"] @ square @ part[f"matrix_{ends}"].T).T.ravel())
    return np.concatenate(measured)


def counters(x: Array, part: dict[str, Array], steps: int) -> Array:
    longest = part["matrix"].shape[1]
    by_length = np.array([[x[a, min(a + n, steps)] for a in range(1, steps + 1)] for n in range(longest)])
    return np.asarray((part["matrix"] @ by_length)[part["measured"]])


def fixed_window(x: Array, part: dict[str, Array], length: int) -> Array:
    steps = x.shape[1] - 1

    def last_steps(t: int, n: int) -> int:
        return int(x[max(1, t - n + 1), t]) if t else 0

    count = steps // length + 1
    points = np.zeros((part["matrix"].shape[1], 2 * count), dtype=int)
    for j, d in itertools.product(range(count), range(length)):
        t = j * length + d
        if t <= steps:
            arrived = last_steps(t, length + 1) - last_steps(t - 1, length) if d else last_steps(t, length)
            points[d, j] = arrived
            points[d, count + j] = last_steps(t, length + 1) - last_steps(t, length) if d else 0
    return (part["matrix"] @ points).ravel()


def corners(v: Array, part: dict[str, Array]) -> Array:
    square = v[1:-1, 1:][:, ::-1]
    mixed = np.diff(np.diff(square, axis=0, prepend=0), axis=1, prepend=0)
    steps = len(square)
    mixed[np.arange(steps)[:, None] >= np.arange(steps, 0, -1)[None, :]] = 0
    return np.asarray((part["matrix"] @ mixed @ part["matrix"].T).ravel())


def check(path: str, unit: str, most: int) -> list[dict[str, Any]]:
    file = np.load(path, allow_pickle=False)
    description = json.loads(str(file["description"]))
    histories = np.array(list(itertools.product(range(most + 1), repeat=description["steps"])))
    results = []
    for number, measurement in enumerate(description["measurements"]):
        prefix = f"{number}/"
        part = {name.removeprefix(prefix): file[name] for name in file.files if name.startswith(prefix)}
        found = vectors(measurement, part, histories)
        joint = np.concatenate(list(found.values()), axis=1)
        squared = measurement["sensitivity"]["norm"] == "squared L2"
        bias = 0.0
        for k, measured in found.items():
            wanted = window_answers(histories, k)[:, part["first"], part["last"]]
            bias = max(bias, np.abs(measured.astype(float) @ part["decoder"].T - wanted).max())
        factors = [rebuilt(measurement["shape"], measurement, part, histories[:64], k) for k in found]
        results.append(
            {
                "shape": measurement["shape"],
                "strategy": measurement["strategy"],
                "recomputed": largest_change(joint, histories, unit, squared),
                "certified": int(measurement["sensitivity"]["bound"]),
                "scale": measurement["noise"]["scale"],
                "law": measurement["noise"]["law"],
                "bias": float(bias),
                "bias_bound": float(part["bias_bound"].max()),
                "factors_agree": all(
                    again is None or np.array_equal(again, measured[:64])
                    for again, measured in zip(factors, found.values(), strict=True)
                ),
            }
        )
    return results


if __name__ == "__main__":
    answer = check(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    if any(name.split(".")[0] == "dpwindows" for name in sys.modules):
        raise SystemExit("this check must not import dpwindows")
    json.dump(answer, sys.stdout)
