"""All numbers of a release as text for a page: every window, few bytes each, rounded to what is shown.

The rows of all series follow one another. A column is a run of whole numbers: steps as they are, counts in the unit of
the last digit shown, errors to four figures. Each is replaced by its difference from the row before, folded to be
positive, and written one byte plane after the other, so that compression finds the empty planes. `web/numbers.js`
reads it back.
"""

from __future__ import annotations

import base64
import gzip
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from dpwindows.report.clock import Clock
from dpwindows.report.series import Family, Series, to_quote

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# Stands for a number that is not there.
_MISSING = -(2**31)
_LARGEST = 2**31 - 1
# Pages stay under about 12 MB: some 3 bytes a number of text, times what is packed.
MOST_NUMBERS = 3_000_000


@dataclass(frozen=True)
class Packed:
    """The numbers of a release for a page: base64 `text` of the compressed columns, and what it holds, as plain values.

    Of `any` families it holds the windows of one end in `every_end` (1: all windows).
    """

    index: dict[str, Any]
    text: str
    every_end: int


def decimals(std_error: float | None) -> int:
    """How many decimals of an estimate with this error mean something."""
    if std_error is None or not math.isfinite(std_error) or std_error <= 0:
        return 1
    return 0 if std_error >= 2 else min(6, math.ceil(-math.log10(std_error / 2)))


def pack(families: Sequence[Family], clock: Clock, most: int = MOST_NUMBERS) -> Packed:
    """Pack every released number of these families, at most about `most` of them.

    Where there are more, the `any` families keep the windows of every second (third, ...) end, the last among them.
    """
    every_end = _every_end(families, most)
    chosen = [_at_ends(one, every_end) for family in families for one in family.series]
    alike: dict[object, list[Series]] = {}
    for one in chosen:
        alike.setdefault(one.counted, []).append(one)
    surpassed = {
        id(one): (to_quote(one, several)[0] != at).astype(np.int64)
        for several in alike.values()
        for at, one in enumerate(several)
    }
    columns: dict[str, list[Integers]] = {}
    described = []
    for one in chosen:
        digits, error_unit = _digits(one)
        described.append(
            {
                "window": one.window,
                "measure": one.kind,
                "k": one.k,
                "label": one.full_label,
                "groups": [list(pair) for pair in one.groups],
                "rows": one.rows.num_rows,
                "decimals": digits,
                "errorUnit": error_unit,
            }
        )
        for name, values in {**_columns(one, digits, error_unit), "surpassed": surpassed[id(one)]}.items():
            columns.setdefault(name, []).append(values)
    joined = {name: np.concatenate(parts) for name, parts in columns.items()}
    kept = {name: values for name, values in joined.items() if not _says_nothing(name, values)}
    planes = {name: _planes(values) for name, values in kept.items()}
    content = b"".join(plane for parts in planes.values() for plane in parts)
    index = {
        "rows": int(sum(one.rows.num_rows for one in chosen)),
        "columns": [[name, len(parts)] for name, parts in planes.items()],
        "series": described,
        "times": _times(chosen, clock),
    }
    return Packed(index, base64.b64encode(gzip.compress(content, 6, mtime=0)).decode("ascii"), every_end)


def _every_end(families: Sequence[Family], most: int) -> int:
    sizes = [(family.name == "any", one.rows.num_rows) for family in families for one in family.series]
    every, fixed = sum(size for any_, size in sizes if any_), sum(size for any_, size in sizes if not any_)
    return max(1, math.ceil(every / max(1, most - fixed))) if every else 1


def _at_ends(series: Series, every: int) -> Series:
    if every == 1 or not series.window.startswith("any"):
        return series
    last = series.steps("last_step")
    return series.take(np.flatnonzero((last.max() - last) % every == 0))


def _digits(series: Series) -> tuple[int, float]:
    """Decimals of the counts of a series (less than 0: whole tens, ...), and the unit of its standard errors."""
    errors = series.numbers("std_error")
    known = errors[np.isfinite(errors) & (errors > 0)]
    least = float(known.min()) if len(known) else None
    values = np.concatenate([series.numbers(name) for name in ("estimate", "lower", "upper")])
    farthest = float(np.abs(values[np.isfinite(values)]).max(initial=1.0))
    # Differences are held too, so that half the range must do.
    digits = min(decimals(least), math.floor(math.log10(_LARGEST / 4 / max(farthest, 1.0))))
    largest = float(known.max()) if len(known) else 1.0
    unit = 10.0 ** (math.floor(math.log10(least)) - 3) if least else 1e-3
    return digits, max(unit, largest / _LARGEST * 1.01)


def _columns(series: Series, digits: int, error_unit: float) -> dict[str, Integers]:
    factor = 10.0**digits
    estimate = _whole(series.numbers("estimate") * factor)

    def beside(column: str, sign: int) -> Integers:
        bound = _whole(series.numbers(column) * factor)
        apart = np.clip(sign * (bound - estimate), -_LARGEST, _LARGEST)
        return np.where((bound == _MISSING) | (estimate == _MISSING), _MISSING, apart)

    return {
        "first": series.steps("first_step"),
        "last": series.steps("last_step"),
        "estimate": estimate,
        "below": beside("lower", -1),
        "above": beside("upper", 1),
        "error": _whole(series.numbers("std_error") / error_unit),
        "bias": _whole(series.numbers("bias_bound") * factor),
        "consistent": _whole(series.numbers("consistent")),
        "cut": 1 - np.asarray(pc.cast(series.rows["complete"], "int64").to_numpy(), dtype=np.int64),
    }


def _whole(values: Floats) -> Integers:
    held = np.isfinite(values) & (np.abs(values) < _LARGEST)
    # Half to even, as the text of a number is made.
    return np.where(held, np.rint(np.where(held, values, 0.0)), _MISSING).astype(np.int64)


def _says_nothing(name: str, values: Integers) -> bool:
    nothing = {"bias": 0, "cut": 0, "surpassed": 0, "consistent": _MISSING}.get(name)
    return nothing is not None and bool((values == nothing).all())


def _planes(values: Integers) -> list[bytes]:
    """The differences of whole numbers of 32 bits, folded, as byte planes without the empty upper ones."""
    apart = np.diff(values, prepend=0)
    folded = np.where(apart >= 0, 2 * apart, -2 * apart - 1).astype("<u8")
    used = max(1, (int(folded.max(initial=0)).bit_length() + 7) // 8)
    bytes_of = folded.view(np.uint8).reshape(-1, 8)
    return [bytes_of[:, at].tobytes() for at in range(used)]


def _times(chosen: Sequence[Series], clock: Clock) -> dict[str, Any]:
    """Where every step boundary that a window touches lies, as runs of equal distances."""
    at: dict[int, int] = {}
    for one in chosen:
        for steps, column in ((one.steps("first_step") - 1, "start"), (one.steps("last_step"), "end")):
            found, rows = np.unique(steps, return_index=True)
            known = clock.edges(clock.wall(one.rows[column].take(rows)))
            at.update(zip(found.tolist(), known, strict=True))
    places = sorted(at)
    runs: list[list[int]] = []
    for before, place in pairwise(places):
        between = [place - before, at[place] - at[before]]
        if runs and runs[-1][:2] == between:
            runs[-1][2] += 1
        else:
            runs.append([*between, 1])
    first = places[0] if places else 0
    return {"first": first, "base": str(at.get(first, 0)), "runs": runs, **clock.described()}
