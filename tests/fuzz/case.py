"""One input: files, the command that reads them, and what its outcome may be."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Case:
    """Files to write into an empty folder, and a command to run in it.

    `may_exit` holds the exit codes that are right for such inputs; `output` is a file that must not be there unless the
    command succeeded. `changed` tells how what was valid was changed, for the reader of a failure.
    """

    arguments: tuple[str, ...]
    files: dict[str, bytes] = field(default_factory=dict, repr=False)
    may_exit: tuple[int, ...] = (0, 2)
    output: str | None = None
    changed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """What a worker saw: `code` None and `trace` filled where an exception came through, or the process died."""

    code: int | None
    err: str
    trace: str
    seconds: float
    left: tuple[str, ...]


# Seconds that any input may take, on a busy machine.
LONGEST = 60.0


def problem(case: Case, outcome: Outcome) -> str | None:
    """What is wrong with an outcome; None if it is as promised."""
    if outcome.code is None:
        return f"not caught: {outcome.trace}"
    if outcome.code not in case.may_exit:
        return f"exit {outcome.code}: {outcome.err}"
    if "Traceback" in outcome.err:
        return f"a traceback was shown: {outcome.err}"
    if outcome.code != 0 and len([line for line in outcome.err.splitlines() if line.startswith("Error: ")]) != 1:
        return f"not one message: {outcome.err!r}"
    if outcome.code != 0 and case.output in outcome.left:
        return f"exit {outcome.code}, and {case.output} was written"
    if outcome.seconds > LONGEST:
        return f"took {outcome.seconds:.0f} s"
    return None
