"""`dpwindows audit`: what the mechanism of a plan gives away, against what it claims."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Literal

import click

from dpwindows.cli.audit_page import Findings, show
from dpwindows.cli.options import planned_options, step_option, zone_option
from dpwindows.cli.plan_files import PlannedCommand, plan_of_release, plan_option, release_option
from dpwindows.cli.screen import json_option, number_option, screen, show_json
from dpwindows.cli.values import Asked, build_plan, build_stream_plan
from dpwindows.errors import InputError
from dpwindows.plan.forecast_table import say_notes

if TYPE_CHECKING:
    from pathlib import Path

    from dpwindows.plan.plan import Plan
    from dpwindows.plan.planned import Planned
    from dpwindows.plan.stream_plan import StreamPlan

Check = Literal["exact", "noise", "encoding", "replay", "black-box"]
CHECKS: tuple[Check, ...] = ("exact", "noise", "encoding", "replay", "black-box")
_ERROR = 1e-6
_FIVE_MINUTES = 300.0


def _seconds(context: click.Context, option: click.Parameter, text: str | None) -> float | None:
    """How many seconds a text such as 90s, 5m or 1h stands for."""
    if not text:
        return None
    try:
        seconds = float(text[:-1]) * {"s": 1, "m": 60, "h": 3600}[text[-1]]
    except (KeyError, ValueError):
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise InputError(f"--time takes a number of seconds, minutes or hours, such as 90s, 5m or 1h, got {text!r}")
    return seconds


@click.command(cls=PlannedCommand, short_help="Check a plan's privacy claim on worst-case neighbours.")
@plan_option
@release_option
@planned_options
@click.option(
    "--steps",
    type=int,
    required=True,
    metavar="N",
    help="Horizon to audit. Every neighbour is compared where it is short; a search looks for bad ones otherwise.",
)
@click.option("--start", help="First moment of the steps, where windows of weeks, months, quarters or years are asked.")
@step_option
@zone_option
@number_option("--runs", 10_000, "Releases of each of the two logs in the black-box audit.")
@number_option("--draws", 10_000, "Noise values of each measurement, on each kind of log, in the audit of the noise.")
@click.option(
    "--check",
    "only",
    multiple=True,
    type=click.Choice(CHECKS),
    help="Run this check only. Repeatable. Default: all of them.",
)
@click.option(
    "--stream", is_flag=True, help="Audit a continual release over N steps, step by step; all checks but black-box."
)
@click.option("--exact/--black-box", "exact", default=None, help="The same as --check exact or --check black-box.")
@click.option(
    "--attack",
    "attacked",
    is_flag=True,
    help="In place of the checks: look for neighbours that change what is measured by more than its bound.",
)
@click.option(
    "--time", "seconds", metavar="5m", callback=_seconds, help="How long to attack, such as 90s, 5m or 1h. Default: 5m."
)
@click.option("--whole", is_flag=True, help="Read and count the log anew for every release: slow, and changes nothing.")
@number_option("--max-minutes", 60.0, "Refuse to begin an audit that would take longer than this.", metavar="M")
@json_option
def audit(
    steps: int,
    start: str | None,
    runs: int,
    draws: int,
    only: tuple[Check, ...],
    stream: bool,
    exact: bool | None,
    attacked: bool,
    seconds: float | None,
    whole: bool,
    max_minutes: float,
    as_json: bool,
    released: Path | None,
    plan_file: Path | None,
    asked: Asked,
    step: str,
    time_zone: str,
) -> None:
    """Check a plan's privacy claim on made-up logs; no data is read.

    \b
    exact      the privacy loss of the integers applied, on the worst neighbours, in exact arithmetic
    noise      what is measured less what is exact, against the stated law and scale
    encoding   that large logs are measured by the same integers
    replay     that neighbours released under one noise differ in nothing else
    black-box  a lower bound on epsilon, from many releases of the worst neighbours

    With --attack it tries for so long as --time says to find neighbours beyond a bound, from the answers' definition
    and the integers that are applied.

    docs/audit.md says what each can see, and what none of them can.

    Exits with 0 if everything found is within the claim, with 1 if not.
    """  # noqa: D301 (the character itself is what click looks for)
    from dpwindows.audit.probe import require_readable
    from dpwindows.audit.workload import (
        Workload,
        black_box_workload,
        noise_workload,
        require_affordable,
        require_usable,
    )
    from dpwindows.plan.stream_plan import StreamPlan

    if steps < 1 and released is None:
        raise InputError(f"--steps must be at least 1, got {steps}")
    measured = None if released is None else plan_of_release(released, steps or None)
    stream = stream or isinstance(measured, StreamPlan)
    if attacked and (only or exact is not None):
        raise InputError("--attack stands by itself: leave out --check, --exact and --black-box")
    if seconds is not None and not attacked:
        raise InputError("--time says how long to attack: give --attack with it")
    checks = () if attacked else _checks(only, exact, stream=stream)
    if not max_minutes > 0:
        raise InputError(f"--max-minutes must be greater than 0, got {max_minutes}")
    if "black-box" in checks:
        require_usable("black-box", runs, _ERROR)
    if "noise" in checks:
        require_usable("noise", draws, _ERROR)
    clock = {"step": step, "time_zone": time_zone}
    planned = _planned(steps, start, asked, clock, stream=stream) if measured is None else measured
    if attacked:
        _attack(planned, seconds or _FIVE_MINUTES, as_json=as_json)
        return
    require_readable(planned.measurements)
    work = Workload(0, 0.0, 0)
    work += black_box_workload(planned, runs, whole=whole) if "black-box" in checks else work
    work += noise_workload(planned, draws) if "noise" in checks else work
    require_affordable(work, max_minutes)
    say_notes(planned)
    found = _run(planned, checks, runs=runs, draws=draws, whole=whole)
    if as_json:
        show_json({**found.to_dict(), "within_the_claim": found.within})
    else:
        show(planned, found, screen(soft_wrap=True), told="exact" in checks)
    if not found.within:
        sys.exit(1)


def _attack(planned: Plan | StreamPlan, seconds: float, *, as_json: bool) -> None:
    """Attack a plan, show what was found, and leave with 1 if a bound does not hold."""
    from dpwindows.audit.attack import attack_bounds
    from dpwindows.cli.audit_page import show_attack
    from dpwindows.progress import show_progress

    say_notes(planned)
    began = time.monotonic()
    with show_progress("attacking", round(seconds), done=lambda: min(seconds, time.monotonic() - began)):
        found = attack_bounds(planned, seconds=seconds)
    if as_json:
        show_json({"attack": found.to_dict(), "within_the_claim": found.holds})
    else:
        show_attack(planned, found, screen(soft_wrap=True))
    if not found.holds:
        sys.exit(1)


def _planned(steps: int, start: str | None, asked: Asked, clock: dict[str, str], *, stream: bool) -> Plan | StreamPlan:
    """What the line asks to be planned."""
    from dpwindows.ask.timeline import Timeline

    if stream:
        return build_stream_plan(steps, start, asked=asked, **clock)
    timeline = Timeline.of_steps(steps) if start is None else Timeline.of_length(start, steps, **clock)
    return build_plan(timeline, asked)


def _checks(only: tuple[Check, ...], exact: bool | None, *, stream: bool) -> tuple[Check, ...]:
    """The checks asked for.

    Raises:
        InputError: both ways of asking were used, or a stream was to be released thousands of times.
    """
    if only and exact is not None:
        raise InputError("give --check, or one of --exact and --black-box")
    if exact is not None:
        only = ("exact",) if exact else ("black-box",)
    if stream and "black-box" in only:
        raise InputError("the black-box audit is for batch releases: leave out --stream, or choose other checks")
    return only or tuple(check for check in CHECKS if not (stream and check == "black-box"))


def _run(planned: Planned, checks: tuple[Check, ...], *, runs: int, draws: int, whole: bool) -> Findings:
    from dpwindows.audit import audit_black_box, audit_encoding, audit_exactly, audit_noise, audit_replay
    from dpwindows.audit.workload import draws_needed
    from dpwindows.plan.plan import Plan
    from dpwindows.progress import show_progress

    worst = {"exact", "black-box", "replay"} & set(checks)
    with show_progress("comparing neighbours"):
        exactly = audit_exactly(planned) if worst else None
    pairs = [exactly.worst] if exactly else []
    with show_progress("measuring made-up logs"):
        encoding = audit_encoding(planned) if "encoding" in checks else None
        replayed = audit_replay(planned, pairs) if "replay" in checks else None
    noise = seen = None
    if "noise" in checks:
        with show_progress("drawing noise", draws_needed(planned, draws)) as progress:
            noise = audit_noise(planned, draws=draws, error=_ERROR, progress=progress)
    if "black-box" in checks and exactly:
        assert isinstance(planned, Plan), "streams are refused this check"
        with show_progress("releasing", 2 * runs) as progress:
            seen = audit_black_box(planned, exactly.worst, runs=runs, error=_ERROR, whole=whole, progress=progress)
    return Findings(exactly, noise, encoding, replayed, seen)
