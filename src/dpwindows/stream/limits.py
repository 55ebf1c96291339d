"""The most steps that one call closes unless its caller allows more."""

from __future__ import annotations

from dpwindows.errors import InputError, time_text

# Two days of minutes: more in one call are more often a mistake in its time than a gap.
MOST_STEPS = 3000
# What a step costs at least, and with each million items, in seconds (docs/streams.md).
_LEAST, _A_MILLION = 0.02, 0.2


def require_few(steps: int, most: int, numbers_a_step: int) -> None:
    """Check that a call closes no more steps than it may, before anything is read or drawn.

    Args:
        steps: how many it would close.
        most: how many it may.
        numbers_a_step: how many numbers the last closed step released, 0 if none is closed.

    Raises:
        InputError: it would close more, or `most` is not at least 1.
    """
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise InputError(f"max_steps must be a whole number from 1, got {most!r}")
    if steps <= most:
        return
    numbers = f" and release {steps * numbers_a_step:,} numbers or more" if numbers_a_step else ""
    raise InputError(
        f"this call would close {steps:,} steps{numbers}, and at most {most:,} are closed at once. It takes about "
        f"{time_text(steps * _LEAST)}, and {time_text(steps * _A_MILLION)} more for each million items. If the "
        f"time is right, allow it with --max-steps {steps} (in Python max_steps={steps}). Nothing was read or drawn"
    )
