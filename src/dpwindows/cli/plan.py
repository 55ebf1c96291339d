"""`dpwindows plan`: the error of every number, before any data is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from dpwindows.cli.options import planned_options_with_draws, refuse_inputs, step_option, zone_option
from dpwindows.cli.plan_files import PlannedCommand, plan_of_release, plan_option, release_option, save_plan
from dpwindows.cli.screen import Command, json_option, screen, show_json, tell
from dpwindows.cli.values import Asked, build_plan, build_stream_plan
from dpwindows.errors import InputError
from dpwindows.plan.forecast_table import groups_text, say_notes, show_bars, show_forecast
from dpwindows.plan.warnings import require_expected
from dpwindows.progress import show_progress

if TYPE_CHECKING:
    from dpwindows.ask.timeline import Timeline
    from dpwindows.plan.plan import Plan
    from dpwindows.plan.planned import Planned

BudgetKind = Literal["epsilon", "rho"]


def _written(name: str, parameter: str, ending: str, said: str) -> Callable[[Command], Command]:
    """An option for a file to write."""
    kind = click.Path(path_type=Path)
    return click.option(name, parameter, type=kind, metavar=f"FILE{ending}", help=said)


@click.command(cls=PlannedCommand)
@plan_option
@release_option
@planned_options_with_draws
@click.option("--steps", type=int, metavar="N", help="Plan for N steps; or give --start and --end.")
@click.option("--start", help="First moment of the range, inclusive, such as 2013-01-01 or 2013-01-01T06:00.")
@click.option("--end", help="End of the range, exclusive.")
@step_option
@zone_option
@click.option(
    "--target-std",
    type=float,
    metavar="S",
    help="In place of a budget: find the smallest one whose worst query has a standard error of at most S counts.",
)
@click.option(
    "--solve",
    type=click.Choice(["epsilon", "rho"]),
    help="With --target-std: the budget to find. Default: epsilon, with --delta or pure.",
)
@click.option(
    "--stream",
    is_flag=True,
    help="Plan a continual release, decoded step by step: of N steps (--steps), or, with no end given, without one.",
)
@click.option(
    "--expect",
    type=float,
    metavar="N",
    help="A typical count of what will be released: errors are shown relative to it too.",
)
@json_option
@_written("--export", "exported", ".npz", "Write what would be measured, as integer matrices: for others to check.")
@_written("--save", "saved", ".toml", "Write what was asked, for --plan: queries, privacy and the public range.")
@_written(
    "--report",
    "page",
    ".html",
    "Write a page with sliders for budget, unit, windows and horizon; it loads nothing. Takes a minute or more.",
)
@click.option("--force", is_flag=True, help="Replace the files written if they exist.")
def plan(
    steps: int | None,
    start: str | None,
    end: str | None,
    as_json: bool,
    exported: Path | None,
    saved: Path | None,
    page: Path | None,
    force: bool,
    released: Path | None,
    plan_file: Path | None,
    asked: Asked,
    step: str,
    time_zone: str,
    target_std: float | None,
    solve: BudgetKind | None,
    stream: bool,
    expect: float | None,
) -> None:
    """Forecast the error of every number before any data is read."""
    require_expected(expect)
    for path, ending in ((exported, ".npz"), (saved, ".toml"), (page, ".html")):
        if path is not None:
            from dpwindows.release.files import require_writable

            refuse_inputs(path, plan_file=plan_file)
            require_writable(path, force=force, endings=(ending,))
    if released is not None:
        planned: Planned = plan_of_release(released, steps)
        stream = planned.to_dict().get("stream", False)
        if stream and exported is not None:
            raise InputError(
                f"--export goes with a batch release, and {released} is of a stream: audit it in its place"
            )
    elif stream:
        if page is not None:
            raise InputError("--report goes with a batch release: leave out --stream")
        if target_std is not None or exported is not None:
            raise InputError("--target-std and --export go with a batch release: leave out --stream")
        if end is not None:
            steps = _planned_timeline(steps, start, end, step, time_zone).steps
        planned = build_stream_plan(steps, start, step, time_zone, asked)
    else:
        timeline = _planned_timeline(steps, start, end, step, time_zone)
        planned = _solved(timeline, asked, target_std, solve)
    say_notes(planned, expect)
    with show_progress("forecasting"):
        planned.forecast()
    # What may still be refused comes first, so that exit 2 leaves no file behind.
    content = None if page is None else _planner_page(planned)
    if exported is not None:
        from dpwindows.plan.export import export_plan
        from dpwindows.release.files import write_bytes

        write_bytes(export_plan(planned), exported, force=force)
        tell(f"Measurements written to {exported}")
    if page is not None and content is not None:
        from dpwindows.release.files import write_text

        write_text(content, page, force=force)
        tell(f"Planner written to {page}")
    if saved is not None:
        clock = {"start": start, "step": step, "time-zone": time_zone}
        save_plan(planned, saved, clock if stream and start is not None else {}, force=force)
    if as_json:
        from dpwindows.plan.limits_together import limits_together

        queries = [entry.to_dict() for entry in planned.forecast()]
        answer: dict[str, Any] = {"queries": queries, "budget": planned.budget.to_dict()}
        answer["together"] = [entry.to_dict() for entry in limits_together(planned)]
        if planned.loss is not None:
            from dpwindows.plan.description import loss_forecast

            answer["loss"] = loss_forecast(planned, planned.loss)
        if expect is not None:
            answer["expect"] = expect
            for query in queries:
                query |= {f"relative_{name}": query[name] / expect for name in ("rms", "max", "half_width")}
        if not stream:
            answer["workload"] = planned.workload.to_dict()
        show_json(answer)
    else:
        console = screen()
        if target_std is not None:
            console.print(
                f"{planned.budget} is the smallest budget, to three digits, for a standard error of "
                f"{target_std:g} in the worst query.\n"
            )
        show_forecast(planned, console, expect)
        show_bars(planned, console)
        console.print(f"\n{planned.unit.name} level, {planned.budget} for everything above together.")
        if not stream:
            said = "A release is" if released is None else "The release was"
            console.print(f"{said} {planned.workload}.")
        console.print("Proofs of how far one neighbour can move what is measured (where they stand: docs/proofs.md):")
        for allotment in planned.every_allotment:
            measured = allotment.measurement
            groups = "" if allotment.by is None else f" in {groups_text(allotment.by)}, by {measured.certificate.proof}"
            console.print(f"  {allotment.query.window}: {measured.design.proof}{groups}")
        together = [allotment.query.window.text for allotment in planned.allotments if allotment.series is not None]
        if together:
            console.print(f"Measured as one, so that each errs less than apart: {', '.join(together)}.")


def _planner_page(planned: Planned) -> str:
    from dpwindows.plan.plan import Plan
    from dpwindows.plan.unit_errors import asked_of_sliders, unit_errors
    from dpwindows.report.planner import planner_page

    assert isinstance(planned, Plan), "streams were refused"
    if planned.grouping is not None:
        raise InputError("--report goes with plans without groups: leave out --by")
    forecast = [entry.to_dict() for entry in planned.forecast()]
    return planner_page(unit_errors(planned), asked_of_sliders(planned), forecast)


def _planned_timeline(steps: int | None, start: str | None, end: str | None, step: str, time_zone: str) -> Timeline:
    from dpwindows.ask.timeline import Timeline

    if steps is not None:
        if start is not None or end is not None:
            raise InputError("give either --steps, or --start and --end")
        if step != "1d" or time_zone != "UTC":
            raise InputError("--step and --time-zone go with --start and --end: --steps plans for steps of any length")
        if steps < 1:
            raise InputError(f"--steps must be at least 1, got {steps}")
        return Timeline.of_steps(steps)
    if start is None or end is None:
        raise InputError("give the number of steps with --steps, or the range with --start and --end")
    return Timeline(start, end, step=step, time_zone=time_zone)


def _solved(timeline: Timeline, asked: Asked, target_std: float | None, solve: BudgetKind | None) -> Plan:
    """The plan with the budget asked for, or with the smallest one that reaches an error."""
    from dpwindows.plan.solve import solve_epsilon, solve_rho

    if target_std is None and solve is not None:
        raise InputError("--solve says which budget to find for --target-std: give --target-std too")
    if target_std is None:
        return build_plan(timeline, asked)
    if asked.epsilon is not None or asked.rho is not None:
        raise InputError("give either --target-std, to find a budget, or --epsilon or --rho, and not both")
    wanted = asked.arguments()
    if solve == "rho":
        if asked.delta is not None:
            raise InputError("--delta goes with epsilon; a budget of rho (--solve rho) has none")
        return solve_rho(timeline=timeline, target_std=target_std, **wanted)
    return solve_epsilon(timeline=timeline, target_std=target_std, delta=asked.delta, **wanted)
