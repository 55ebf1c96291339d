"""The first statements of a page: a few counts, with intervals that all hold together with the stated certainty.

A number picked because it is the largest is too large on average: its noise helped it to be picked. So windows are
either picked by public rules (the last whole window of a family), or their interval holds for all the candidates at
once. The probability of error is divided among all headlines.

**The factor of a noise that is not Gaussian.** An error is a sum of independent Laplace variables of scales b_i, of
variance `v = 2 sum b_i^2`. Its moment generating function is `prod 1/(1 - t^2 b_i^2)`, and since `-log(1 - t^2 x)` is
convex in x and 0 at 0 the logarithm of the product is at most that of one Laplace variable of variance v. So Chernoff's
bound for that one variable bounds both tails of any such sum, at any level. So it does for a number of noise that is
drawn for n at once (`dpwindows.kernel.joint_noise`), uniform or the difference of two uniform ones up to a radius that
is gamma distributed: the moments of order 2j + 2 and 2j of such a number stand in a ratio that is at most that of the
Laplace variable of the same variance for every j, with equality for j = 0.

**Noise on whole numbers** X is continuous noise Y less a small symmetric V that does not depend on X, of a standard
deviation of v times that of X or less (`dpwindows.reading.lattice_noise`, which has the proofs). So X exceeds
a bound with at most twice the probability of Y, whose standard deviation is `sqrt(1 + v^2)` times that of X or less;
and with at most `1 / (1 - e^-8)` times the probability that Y exceeds a bound that is less by 4 v.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import scipy

from dpwindows.report.clock import Clock
from dpwindows.report.series import Family, Series, to_quote
from dpwindows.report.words import NOUN, confidence_of, figures_of, in_words, number, when

_MOST = 4
_GAUSSIAN = "discrete Gaussian"


@dataclass(frozen=True)
class Headline:
    """One statement: the true count of a window lies between `lower` and `upper`.

    `text` is the sentence; `first_step` and `last_step` tell the window, of the series `window`, `kind`, `k`.
    """

    text: str
    window: str
    kind: str
    k: int | None
    first_step: int
    last_step: int
    estimate: float
    lower: float
    upper: float


def headlines(
    families: Sequence[Family], clock: Clock, metadata: Mapping[str, Any], noun: str = NOUN
) -> list[Headline]:
    """The first statements of a page, at most five; together they hold with the confidence of the release.

    For each of the first families the last whole window, each window once, and for the first rolling or tumbling one
    the window of the largest estimate, with an interval that holds for all its windows at once. Of several numbers for
    a window the one to quote is taken (`to_quote`): a choice that depends on the errors alone.
    """
    picked: dict[Any, tuple[Family, Series]] = {}
    for family in families[:_MOST]:
        if len(whole := _whole(family.main)):
            one = family.main.take(whole[[_latest(family.main, whole)]])
            picked.setdefault((one.counted, one.windows[0]), (family, one))
    for family in families[:_MOST]:
        if family.name in ("rolling", "tumbling") and len(whole := _whole(family.main)) > 2:
            picked["largest"] = family, family.main.take(whole)
            break
    every = [one for family in families for one in family.series]
    share = (1 - confidence_of(metadata)) / max(1, len(picked))
    return [_headline(family, one, every, clock, metadata, share, noun) for family, one in picked.values()]


def factor(alpha: float, *, gaussian: bool, added: float = 0.0) -> float:
    """Standard errors beyond which an error lies, in either direction, with probability at most `alpha`.

    `gaussian` tells whether all noise is, `added` is v of the module docstring (0 for continuous noise).
    """
    shifts = ((0.0, 1 / 2), (4.0, math.exp(-8.0))) if added else ((0.0, 0.0),)
    wider = math.sqrt(1 + added**2)
    return min(_continuous(alpha * (1 - left), gaussian) * wider + shift * added for shift, left in shifts)


def _continuous(alpha: float, gaussian: bool) -> float:
    """What `factor` gives for continuous noise."""
    if gaussian:
        return float(-scipy.special.ndtri(alpha / 2))

    def log_tail(x: float) -> float:
        s = (math.sqrt(1 + x * x) - 1) / x
        return -s * x - math.log1p(-s * s) - math.log(alpha / 2)

    return float(scipy.optimize.brentq(log_tail, 1e-6, 4 - 4 * math.log(alpha / 2))) / math.sqrt(2)


def widest_factor(alpha: float, metadata: Mapping[str, Any], windows: Collection[str]) -> float:
    """The largest factor of the noise in these families; that of continuous noise where none is stated."""
    noises = [row["noise"] for row in metadata["measurements"] if row["window"] in windows]
    gaussian = bool(noises) and all(noise["law"] == _GAUSSIAN for noise in noises)
    return factor(alpha, gaussian=gaussian, added=max(map(_added, noises), default=0.0))


def _added(noise: Mapping[str, Any]) -> float:
    """V of a measurement's noise, or more: numbers that are drawn together vary more than one alone, a Laplace one."""
    scale = max(float(noise["scale"]), 1e-2)
    if noise["law"] == _GAUSSIAN:
        return 1 / scale
    return math.sqrt(1 / 6) * -math.expm1(-1 / scale) / math.sqrt(2 * math.exp(-1 / scale))


def _headline(
    family: Family,
    candidates: Series,
    every: Sequence[Series],
    clock: Clock,
    metadata: Mapping[str, Any],
    share: float,
    noun: str,
) -> Headline:
    """The statement on the candidate of the largest estimate, which holds for all of them at once."""
    alike = [one for one in every if one.counted == candidates.counted]
    which, rows = to_quote(candidates, alike)
    places = np.cumsum([0, *(one.rows.num_rows for one in alike)])[which] + rows
    series = replace(candidates, rows=pa.concat_tables([one.rows for one in alike]).take(pa.array(places)))
    row = int(np.argmax(series.numbers("estimate")))
    window = alike[which[row]].window
    error, bias = float(series.numbers("std_error")[row]), float(series.numbers("bias_bound")[row])
    half = widest_factor(share / len(places), metadata, [window]) * error + bias
    estimate = float(series.numbers("estimate")[row])
    first, last = int(series.steps("first_step")[row]), int(series.steps("last_step")[row])
    span = f"{when(in_words(series, row, clock), clock)} ({clock.length(last - first + 1)})"
    counted = series.named(noun)
    counted += f" ({family.together})" if family.together else ""
    value = f"{_range(estimate, half, error, counted)} (standard error {figures_of(error)})"
    text = f"{span}: {value}."
    if len(places) > 1:
        text = f"Highest of the {len(places):,} {family.kind_of_windows(clock)}: {span[0].lower()}{span[1:]}, {value}."
    return Headline(text, window, series.kind, series.k, first, last, estimate, estimate - half, estimate + half)


def _range(estimate: float, half: float, error: float, counted: str) -> str:
    """An estimate and its range, without the numbers below 0 in it, since nothing is counted less often than never."""
    high = number(max(0.0, estimate + half), error)
    if estimate < 0:
        return f"at most {high} {counted}"
    ends = f"between {number(estimate - half, error)} and {high}" if estimate >= half else f"at most {high}"
    return f"about {number(estimate, error)} {counted}, {ends}"


def _whole(series: Series) -> Any:
    """The rows of whole windows with finite numbers; of all windows where none is whole."""
    finite = np.isfinite(series.numbers("estimate")) & np.isfinite(series.numbers("std_error"))
    finite &= np.isfinite(series.numbers("bias_bound"))
    whole = finite & np.asarray(series.rows["complete"].to_numpy(), dtype=bool)
    return np.flatnonzero(whole if whole.any() else finite)


def _latest(series: Series, rows: Any) -> int:
    """Which of these rows is the longest of the windows that end last."""
    last, first = series.steps("last_step")[rows], series.steps("first_step")[rows]
    return int(np.lexsort((first, -last))[0])
