r"""The black-box audit: release a pair of neighbours again and again, and see how well the two can be told apart.

If a mechanism is (epsilon, delta) private, every event E has `P(E | neighbour) <= e^epsilon P(E | log) + delta`, and
the same with the two swapped. So frequencies of one event give a lower bound on epsilon:

    epsilon >= ln( (p - delta) / q ),    p at least the lower, q at most the upper Clopper-Pearson limit.

**Honesty.** The event is a statistic (`dpwindows.audit.statistic`) above or below a threshold. Which statistic, which
side, which threshold, and the delta at which the claim is tested are chosen on the first quarter of the releases alone.
The others test that one event: each of the two limits fails with probability at most `error / 2`, so the bound exceeds
the true epsilon with probability at most `error`.

**Releases.** Each is `Plan.run`: the log is read by the engine, counted, measured under fresh noise, decoded. Counting
is exact and the same every time, so by default it is done once for each of the two logs; `whole` reads the log anew
each time, at some thirty milliseconds a release. The two logs hold made-up items, so nothing is spent on real data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import scipy

from dpwindows.ask.groups import Grouping
from dpwindows.ask.privacy import ApproxDP, PureDP, exact
from dpwindows.audit import large_logs
from dpwindows.audit.losses import analytic_delta, epsilon_at, lattice_term, scaled_sum
from dpwindows.audit.neighbours import History, Pair
from dpwindows.audit.statistic import Floats, Statistic, discriminant, log_ratio
from dpwindows.audit.workload import require_usable
from dpwindows.kernel.accounting import GAUSSIAN

if TYPE_CHECKING:
    from dpwindows.plan.plan import Plan

# Deltas at which the curve of a Gaussian mechanism may be tested: thousands of releases see nothing of smaller ones.
_DELTAS = (0.01, 0.02, 0.05, 0.1, 0.2)
# A claim of less than this at some delta is no claim worth testing.
_LEAST_CLAIM = 0.05
_THRESHOLDS = 200
# Share of the releases that choose the event, and how much better than the likelihood ratio the learned statistic must
# be there to be taken.
_CHOOSING, _CLEARLY = 0.25, 1.25
# Events are chosen by cautious bounds, lest chance chooses; few releases allow of little caution.
_CAUTIOUS, _BOLD, _FEW = 1e-6, 1e-2, 1000


@dataclass(frozen=True)
class Claim:
    """What the mechanism promises: at most this epsilon at this delta."""

    epsilon: float
    delta: float


@dataclass(frozen=True)
class BlackBoxAudit:
    """What the releases show.

    With probability 1 - `error` the true epsilon at `claim.delta` is at least `bound`. `runs` is how many releases of
    each log there were, `tested` how many of these tested the event that the others chose, and `seen` in how many it
    occurred: of the log that makes it likelier, and of the other.
    """

    claim: Claim
    pair: Pair
    runs: int
    tested: int
    seen: tuple[int, int]
    bound: float
    error: float
    whole: bool
    grouping: Grouping | None = None

    @property
    def share(self) -> float:
        """The bound over the claim."""
        return self.bound / self.claim.epsilon

    @property
    def verdict(self) -> Literal["not contradicted", "beyond the claim"]:
        """Whether the releases contradict the claim."""
        return "beyond the claim" if self.bound > self.claim.epsilon else "not contradicted"

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, ready for JSON."""
        return {
            "claim": {"epsilon": self.claim.epsilon, "delta": self.claim.delta},
            **self.pair.to_dict(self.grouping),
            "releases_of_each": self.runs,
            "tested_of_each": self.tested,
            "event_seen": list(self.seen),
            "epsilon_at_least": self.bound,
            "confidence": 1 - self.error,
            "share_of_claim": self.share,
            "every_release_reads_the_log": self.whole,
            "verdict": self.verdict,
        }


def audit_black_box(
    plan: Plan,
    pair: Pair,
    *,
    runs: int = 10_000,
    error: float = 1e-6,
    whole: bool = False,
    progress: Callable[[int], None] = lambda released: None,
) -> BlackBoxAudit:
    """Release both logs of a pair `runs` times and bound epsilon from below.

    Args:
        plan: what to audit.
        pair: the neighbours; the worst ones that `audit_exactly` found show most.
        runs: releases of each log.
        error: the probability with which the bound may exceed the truth.
        whole: read and count the log anew for every release.
        progress: called with the number of releases since the last call.

    Raises:
        InputError: `runs` or `error` is not usable, or the plan is too large for this audit.
    """
    require_usable("black-box", runs, error)
    promised, ratio = claims(plan), log_ratio(plan, pair)
    made = [
        np.array(list(releases(plan, history, runs, whole=whole, progress=progress)))
        for history in (pair.log, pair.neighbour)
    ]
    choosing = round(runs * _CHOOSING)
    tested = runs - choosing
    event = _choose(ratio, [release[:choosing] for release in made], promised)
    seen = event.count([event.statistic(release[choosing:]) for release in made])
    bound = epsilon_bound(seen, tested, event.claim.delta, error)
    return BlackBoxAudit(event.claim, pair, runs, tested, seen, bound, error, whole, plan.grouping)


def claims(plan: Plan) -> list[Claim]:
    """What is promised at which delta: by the budget, and by the curve of the certificate of Gaussian noise."""
    if isinstance(plan.budget, PureDP):
        return [Claim(float(plan.budget.epsilon), 0.0)]
    measurements = plan.measurements
    found = []
    if isinstance(plan.budget, ApproxDP):
        pure = scaled_sum(((one.certificate.bound, one.scale) for one in measurements), 1)
        if measurements[0].law != GAUSSIAN and pure <= exact(plan.budget.epsilon):
            return [Claim(float(plan.budget.epsilon), 0.0)]
        found.append(Claim(float(plan.budget.epsilon), float(plan.budget.delta)))
    if measurements[0].law == GAUSSIAN:
        squared = scaled_sum(((one.certificate.bound, one.scale) for one in measurements), 2)
        eta = lattice_term((one.cost.rows, one.scale) for one in measurements)
        curve = [Claim(epsilon_at(delta, lambda at: analytic_delta(squared, eta, at)), delta) for delta in _DELTAS]
        found += [claim for claim in curve if claim.epsilon >= _LEAST_CLAIM] or curve[:1]
    return found


# --- Releases --------------------------------------------------------------------------------------------------------


def log_table(plan: Plan, history: History) -> pa.Table:
    """A log that holds one item with this history."""
    return large_logs.events_table(plan.timeline.boundaries(), {"u": np.array(history)}, plan.grouping)


def releases(
    plan: Plan, history: History, runs: int, *, whole: bool, progress: Callable[[int], None] = lambda released: None
) -> Iterator[Floats]:
    """The released estimates of one log, `runs` times, each with its own noise."""
    from dpwindows.release.run import draw_estimates

    log = log_table(plan, history)
    answers = None if whole else large_logs.counted(plan, log)
    for _ in range(runs):
        if answers is None:
            released = large_logs.released(plan, log)
            loss = [] if released.loss is None else [released.loss.estimate]
            yield np.append(released.to_arrow()["estimate"].to_numpy(), loss)
        else:
            yield np.concatenate(draw_estimates(plan, answers))
        progress(1)


# --- The test --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Event:
    """A score at or beyond a threshold: `above` it, where the neighbour is likelier, or below, where the log is.

    `share` is how much of the claim it showed where it was chosen.
    """

    statistic: Statistic
    claim: Claim
    threshold: float
    above: bool
    share: float = 0.0

    def count(self, scores: Sequence[Floats]) -> tuple[int, int]:
        """How many releases show it: of the log it is likelier for, then of the other."""
        low, high = (
            int(((score >= self.threshold) if self.above else (score <= self.threshold)).sum()) for score in scores
        )
        return (high, low) if self.above else (low, high)


def _choose(ratio: Statistic, samples: Sequence[Floats], promised: Sequence[Claim]) -> _Event:
    """The event to test: of the likelihood ratio, unless what half of these releases teach is clearly better."""
    half = len(samples[0]) // 2
    learned = discriminant(*(release[:half] for release in samples))
    stated = _best_event(ratio, [ratio(release) for release in samples], promised)
    other = _best_event(learned, [learned(release[half:]) for release in samples], promised)
    return other if other.share > _CLEARLY * stated.share else stated


def _best_event(statistic: Statistic, scores: Sequence[Floats], promised: Sequence[Claim]) -> _Event:
    """The event that gives the largest bound on these releases, as a share of its claim."""
    thresholds = np.unique(np.quantile(np.concatenate(scores), np.linspace(0.0, 1.0, _THRESHOLDS)))
    caution = _BOLD if len(scores[0]) < _FEW else _CAUTIOUS
    found = []
    for above in (True, False):
        for threshold in thresholds:
            seen = _Event(statistic, promised[0], float(threshold), above).count(scores)
            for claim in promised:
                share = epsilon_bound(seen, len(scores[0]), claim.delta, caution) / claim.epsilon
                found.append(_Event(statistic, claim, float(threshold), above, share))
    return max(found, key=lambda event: event.share)


def epsilon_bound(seen: tuple[int, int], tested: int, delta: float, error: float) -> float:
    """A lower bound on epsilon at delta from one event's counts in `tested` releases of each log; at least 0.

    By Clopper and Pearson's exact limits for the two probabilities, each failing with probability at most error / 2.
    """
    likelier, other = seen
    low = 0.0 if likelier == 0 else float(scipy.special.betaincinv(likelier, tested - likelier + 1, error / 2))
    high = 1.0 if other == tested else float(scipy.special.betaincinv(other + 1, tested - other, 1 - error / 2))
    return max(0.0, math.log((low - delta) / high)) if low > delta else 0.0
