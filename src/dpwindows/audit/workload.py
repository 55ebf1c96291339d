"""The cost of an audit, worked out before it begins: noise values to draw, minutes, and memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpwindows.audit.noise import draws_needed, rows_measured
from dpwindows.errors import InputError, time_text

if TYPE_CHECKING:
    from dpwindows.plan.planned import Planned

# Draws a second of the sampler on one slow core; seconds that a release takes beside, and one that reads the log anew.
_A_SECOND, _A_RELEASE, _WHOLE = 50_000, 0.001, 0.04
# The released numbers of a black-box audit are held together.
_MOST_BYTES = 4 << 30


@dataclass(frozen=True)
class Workload:
    """How much an audit draws and holds.

    Attributes:
        drawn: noise values, over all its releases.
        seconds: about how long that takes.
        held: bytes of released numbers held at once.
    """

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
