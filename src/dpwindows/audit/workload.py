"""What an audit costs, and whether it can tell anything, before it begins: noise values, minutes, memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from dpwindows.errors import InputError, time_text

if TYPE_CHECKING:
    from dpwindows.plan.planned import Planned

# Draws a second of the sampler on one slow core; seconds that a release takes beside, and one that reads the log anew.
_A_SECOND, _A_RELEASE, _WHOLE = 50_000, 0.001, 0.04
# The released numbers of a black-box audit are held together.
_MOST_BYTES = 4 << 30
# Fewer tell nothing.
_FEWEST = {"noise": (300, "draws of each measurement"), "black-box": (100, "releases of each log")}
# The audit of the noise calls every measurement at least this often, however many numbers it measures.
_FEWEST_CALLS = 4


def require_usable(check: Literal["noise", "black-box"], number: int, error: float) -> None:
    """Refuse numbers of draws or releases, and probabilities of error, that tell nothing.

    Raises:
        InputError: they are such.
    """
    fewest, unit = _FEWEST[check]
    if number < fewest:
        raise InputError(f"the {check} audit needs at least {fewest} {unit}, got {number}")
    if not 0 < error < 1:
        raise InputError(f"the probability of error must lie strictly between 0 and 1, got {error!r}")


def rows_measured(plan: Planned) -> list[int]:
    """How many numbers one release draws noise for, by measurement."""
    return [len(one.cells) * one.design.rows * len(one.design.problem.thresholds) for one in plan.measurements]


def calls_needed(rows: list[int], draws: int) -> int:
    """Calls that draw at least `draws` numbers of every measurement, those with the fewest rows included."""
    return max(_FEWEST_CALLS, -(-draws // max(1, min(rows))))


def draws_needed(plan: Planned, draws: int) -> int:
    """The noise values that `audit_noise` draws to have `draws` of each measurement on each of two logs."""
    rows = rows_measured(plan)
    return 2 * calls_needed(rows, draws) * sum(rows)


@dataclass(frozen=True)
class Workload:
    """How much an audit takes: noise values `drawn` in all, about how many seconds, bytes `held` at once."""

    drawn: int
    seconds: float
    held: int

    def __add__(self, other: Workload) -> Workload:
        return Workload(self.drawn + other.drawn, self.seconds + other.seconds, max(self.held, other.held))


def black_box_workload(plan: Planned, runs: int, *, whole: bool) -> Workload:
    """What `audit_black_box` takes: `runs` releases of a plan on either of two logs."""
    rows, released = sum(rows_measured(plan)), plan.workload.rows
    each = _WHOLE if whole else _A_RELEASE
    return Workload(2 * runs * rows, 2 * runs * (rows / _A_SECOND + each), 2 * 8 * runs * released)


def noise_workload(plan: Planned, draws: int) -> Workload:
    """What `audit_noise` takes, for `draws` noise values of each measurement."""
    drawn = draws_needed(plan, draws)
    rows = sum(rows_measured(plan))
    return Workload(drawn, drawn / _A_SECOND + drawn / rows * _A_RELEASE, 8 * drawn)


def require_affordable(workload: Workload, minutes: float) -> None:
    """Refuse an audit that takes longer than its user allows, or more memory than any should.

    Raises:
        InputError: it does.
    """
    if workload.seconds > 60 * minutes:
        raise InputError(
            f"the audit would draw {workload.drawn:.3g} noise values, which takes about {time_text(workload.seconds)}, "
            f"and is allowed {minutes:g} minutes: ask for less (--runs, --draws, --steps), or allow more "
            "(--max-minutes)"
        )
    if workload.held > _MOST_BYTES:
        raise InputError(
            f"the audit would hold {workload.held / 2**30:,.1f} GiB of numbers at once, more than the "
            f"{_MOST_BYTES >> 30} GiB it may: ask for less (--runs, --draws, --steps)"
        )
