"""`dpwindows audit`: what the mechanism of a plan gives away, against what it claims."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from dpwindows.cli.options import build_plan, max_draws_option, privacy_options, query_options
from dpwindows.errors import InputError
from dpwindows.forecasts import say_notes

if TYPE_CHECKING:
    from dpwindows.audit import BlackBoxAudit, ExactAudit
    from dpwindows.plan import Plan

_ERROR = 1e-6


@click.command(short_help="Check a plan's privacy claim on worst-case neighbours.")
@query_options
@privacy_options
@max_draws_option
@click.option(
    "--steps",
    type=int,
    required=True,
    metavar="N",
    help="Horizon to audit. Every neighbour is compared where it is short; a search looks for bad ones otherwise.",
)
@click.option(
    "--runs",
    type=int,
    default=10_000,
    show_default=True,
    metavar="N",
    help="Releases of each of the two logs in the black-box audit.",
)
@click.option(
    "--exact/--black-box", "exact", default=None, help="Run one of the two audits only (both need the worst neighbour)."
)
@click.option("--whole", is_flag=True, help="Read and count the log anew for every release: slow, and changes nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def audit(steps: int, runs: int, exact: bool | None, whole: bool, as_json: bool, **options: Any) -> None:
    """Check a plan's privacy claim on worst-case neighbours; no data is read.

    The exact audit reads the integers that would be applied off the mechanism itself, finds the worst neighbouring logs
    and works out their privacy loss in exact arithmetic. The black-box audit releases these two logs many times and
    bounds epsilon from below by how well they can be told apart.

    Exits with 0 if everything found is within the claim, with 1 if not.
    """
    from dpwindows.audit import audit_exactly
    from dpwindows.audit.black_box import require_usable
    from dpwindows.timeline import Timeline

    if steps < 1:
        raise InputError(f"--steps must be at least 1, got {steps}")
    if exact is not True:
        require_usable(runs, _ERROR)
    planned = build_plan(Timeline.of_steps(steps), options)
    say_notes(planned)
    exactly = audit_exactly(planned)
    seen = None if exact is True else _released(planned, exactly, runs, whole)
    within = exactly.verdict == "within the claim" and (seen is None or seen.verdict == "not contradicted")
    if as_json:
        found = {"exact": exactly.to_dict(), "black_box": seen and seen.to_dict(), "within_the_claim": within}
        click.echo(json.dumps(found, indent=2))
    else:
        _show(planned, exactly, seen, Console(highlight=False, soft_wrap=True), whole_story=exact is not False)
    if not within:
        sys.exit(1)


def _released(planned: Plan, exactly: ExactAudit, runs: int, whole: bool) -> BlackBoxAudit:
    from dpwindows.audit import audit_black_box
    from dpwindows.progress import release_progress

    with release_progress(2 * runs) as progress:
        return audit_black_box(planned, exactly.worst, runs=runs, error=_ERROR, whole=whole, progress=progress)


def _show(
    planned: Plan, exactly: ExactAudit, seen: BlackBoxAudit | None, console: Console, *, whole_story: bool
) -> None:
    console.print(f"Claim: {planned.budget} for unit {planned.unit.name!r}, {planned.timeline.steps} steps")
    for allotment in planned.allotments:
        measurement = allotment.measurement
        console.print(f"  {allotment.query.window}: {measurement.design.strategy}, {measurement.law} noise")
    console.print("\nWorst neighbours found: one item's occurrences in each step")
    for line in exactly.worst.picture(console.width - 2).splitlines():
        console.print(f"  {line}", markup=False)
    if whole_story:
        _show_exact(exactly, console)
    if seen is not None:
        _show_black_box(seen, console)


def _show_exact(exactly: ExactAudit, console: Console) -> None:
    how = "every neighbouring pair" if exactly.exhaustive else "the worst of the pairs that a search tried"
    console.print(f"\nExact audit: {how}, {exactly.pairs:,} compared")
    loss = exactly.loss
    console.print(f"  {loss.name} = {_between(loss.bounds.low, loss.bounds.high)}, claimed {loss.claimed:.6g}")
    if loss.epsilon is not None:
        console.print(f"  epsilon = {loss.epsilon:.6g} at the claimed delta")
    console.print(f"  {exactly.of_certified:.1%} of what the certificates allow for")
    console.print(f"  [bold]{exactly.verdict}[/bold]")
    if not exactly.exhaustive and exactly.verdict == "within the claim":
        console.print("  (a search is no proof: with fewer steps every pair is compared)", style="dim")


def _between(low: float, high: float) -> str:
    shown = f"{low:.6g}", f"{high:.6g}"
    return shown[1] if shown[0] == shown[1] else f"{shown[0]} to {shown[1]}"


def _show_black_box(seen: BlackBoxAudit, console: Console) -> None:
    at = f" at delta = {seen.claim.delta:g}" if seen.claim.delta else ""
    console.print(f"\nBlack-box audit: {seen.runs:,} releases of each log")
    console.print(
        f"  an event chosen on {seen.runs - seen.tested:,} of them occurred in {seen.seen[0]:,} "
        f"and in {seen.seen[1]:,} of the other {seen.tested:,}"
    )
    console.print(
        f"  epsilon >= {seen.bound:.3g}{at} ({1 - seen.error:.4%} confidence), {seen.share:.0%} of the "
        f"{seen.claim.epsilon:.3g} claimed there"
    )
    console.print(f"  [bold]{seen.verdict}[/bold]")
