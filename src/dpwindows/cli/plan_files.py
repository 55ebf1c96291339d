"""Plans out of files: `--plan FILE.toml` with `--save`, which writes such a file, and `--release OUT`.

A plan file's keys are the names of options: a command takes from it the options that it has, and those on the command
line win. A release has been measured: its plan is taken whole, and nothing on the line may ask for another one.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpwindows.cli.screen import tell
from dpwindows.errors import InputError

if TYPE_CHECKING:
    from dpwindows.ask.queries import Query
    from dpwindows.plan.plan import Plan
    from dpwindows.plan.planned import Planned
    from dpwindows.plan.stream_plan import StreamPlan

_QUERIES = "dpwindows.queries"
_GROUPS = "dpwindows.by"
# An option on the line stands in place of these keys of a file, which say the same in another way.
_IN_PLACE_OF = {
    "window": ("query", "weights"),
    "epsilon": ("rho",),
    "rho": ("epsilon", "delta"),
    "target-std": ("epsilon", "rho"),
    "steps": ("start", "end", "step", "time-zone"),
    "horizon": ("steps", "end"),
    "start": ("steps",),
    "end": ("steps",),
}

plan_option = click.option(
    "--plan",
    "plan_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Take what is not said here from a plan file, as 'dpwindows plan --save' writes it.",
)

release_option = click.option(
    "--release",
    "released",
    type=click.Path(path_type=Path),
    metavar="OUT",
    help="In place of all that is required: what a release, or a stream's output, was measured by. Of a stream "
    "--steps N takes the first N steps.",
)
# What goes with a release: what is done with its plan, and how it is shown.
_BESIDE_RELEASE = {"released", "as_json", "expect", "exported", "saved", "force", "quiet"}
_BESIDE_RELEASE |= {"runs", "draws", "only", "exact", "whole", "max_minutes", "steps", "attacked", "seconds"}


class PlannedCommand(click.Command):
    """A command whose options may come from the plan file that `--plan` names, or from a release (`--release`)."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the line, once what the file says stands for what the line leaves out."""
        if not ctx.resilient_parsing and "--help" not in args and "-h" not in args:
            given, _, _ = self.make_parser(ctx).parse_args(list(args))
            if given.get("released"):
                ctx.default_map = {**(ctx.default_map or {}), **self._in_place(given)}
            elif given.get("plan_file"):
                ctx.default_map = {**(ctx.default_map or {}), **self._from_file(ctx, given)}
        return super().parse_args(ctx, args)

    def _in_place(self, given: dict[str, Any]) -> dict[str, Any]:
        """What stands for the options that a plan needs, where a release says what was planned."""
        if other := next((option for option in self.params if option.name in set(given) - _BESIDE_RELEASE), None):
            raise InputError(
                f"--release takes the plan of a release as it was measured, which {other.opts[0]} cannot change: leave "
                "one of them out"
            )
        needed = (option for option in self.params if option.required and option.name not in given)
        return {str(option.name): _nothing(option) for option in needed}

    def _from_file(self, ctx: click.Context, given: dict[str, Any]) -> dict[str, Any]:
        """The values of options that the file has and the line has not, by the names of their parameters."""
        from dpwindows.plan.plan_file import checked, queries_of, read_toml
        from dpwindows.plan.sharing import weights_of

        path = given["plan_file"]
        values = checked(read_toml(path, "the plan"), f"the plan {path}")
        options = {name.removeprefix("--"): option for option in self.params for name in option.opts}
        said = {name for name, option in options.items() if option.name in given}
        for name in said:
            values.pop(name, None)
            for other in _IN_PLACE_OF.get(name, ()):
                values.pop(other, None)
        if values.get("stream") and "stream" not in options and "horizon" not in options:
            raise InputError(f"the plan {path} is of a stream: 'dpwindows stream create' takes it")
        if isinstance(values.get("weights"), dict):
            values["weights"] = weights_of(queries_of(values), values["weights"])
        if "query" in values:
            if own := said & {"at-least", "exactly", "histogram", "occurrences"}:
                raise InputError(f"the plan {path} asks of each window by itself: give --window with --{min(own)}")
            ctx.meta[_QUERIES] = queries_of(values)
            values["window"] = [table["window"] for table in values.pop("query")]
        if "by" in values:
            if "by" not in options:
                raise InputError(f"the plan {path} has groups (by), and this command knows none: take them out of it")
            ctx.meta[_GROUPS] = values.pop("by")
        values |= _range_for(values, options)
        defaults = {name: value for name, value in values.items() if name in options}
        return {str(options[name].name): _as_on_the_line(options[name], value) for name, value in defaults.items()}


def _nothing(option: click.Parameter) -> Any:
    """A value that an option takes, for what is not asked."""
    if option.multiple:
        return [""]
    return 0 if option.type is click.INT else ""


def plan_of_release(path: Path, steps: int | None = None) -> Plan | StreamPlan:
    """The plan of a release in a file, of a stream perhaps for its first steps only; nothing is searched for.

    Raises:
        InputError: there is no release, or it does not say by what it was measured.
    """
    from dpwindows.plan.measured_plan import plan_of
    from dpwindows.release.release import Release

    return plan_of(Release.load(path), steps=steps)


def queries_in_file() -> list[Query] | None:
    """What the plan file of the running command asks of each window by itself; None if it does not."""
    context = click.get_current_context(silent=True)
    found: list[Query] | None = context.meta.get(_QUERIES) if context else None
    return found


def groups_in_file() -> dict[str, list[str | int]] | None:
    """The groups that the plan file of the running command asks for; None if it has none, or the line has others."""
    context = click.get_current_context(silent=True)
    found: dict[str, list[str | int]] | None = context.meta.get(_GROUPS) if context else None
    return found


def save_plan(planned: Planned, path: Path, more: dict[str, Any], *, force: bool) -> None:
    """Write what was asked as a plan file; `more` is what only the line knows of it."""
    from dpwindows.plan.plan_file import to_toml
    from dpwindows.release.files import write_text

    write_text(to_toml({**more, **planned.to_dict()}), path, force=force)
    tell(f"Plan written to {path}")


def _range_for(values: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """The range in the terms of a command that has only a number of steps, or a horizon, for its end."""
    from dpwindows.ask.timeline import Timeline

    length = values.get("steps", values.get("horizon"))
    if length is None and {"start", "end"} <= set(values):
        step, zone = values.get("step", "1d"), values.get("time-zone", "UTC")
        length = Timeline(values["start"], values["end"], step, zone).steps
    if length is None:
        return {}
    if "horizon" in options:
        return {"horizon": length}
    return {"steps": length} if "end" not in options or "end" not in values else {}


def _as_on_the_line(option: click.Parameter, value: Any) -> Any:
    """A value of a file as its option takes it."""
    if option.name == "weights":
        return ",".join(map(str, value))
    return [value] if option.multiple and not isinstance(value, list) else value
