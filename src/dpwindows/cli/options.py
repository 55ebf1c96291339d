"""Options that several commands share, and how an output is claimed; `values` turns options into values."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from dpwindows.ask.whole_numbers import MAX_DRAWS
from dpwindows.cli.screen import Command, budget_options, number_option, tell
from dpwindows.cli.values import Asked, AskedCounts, layout_of, ledger_of
from dpwindows.count.engines import ENGINES
from dpwindows.count.events import EngineSettings, EventColumns
from dpwindows.errors import EngineError, InputError

if TYPE_CHECKING:
    from dpwindows.count.sources.batches import Batches
    from dpwindows.ledger.ledger import Ledger
    from dpwindows.release.release import Release


def stack(options: list[Callable[[Command], Command]]) -> Callable[[Command], Command]:
    """One decorator that applies several options, shown in `--help` in the order listed."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def handing(
    name: str, make: Callable[..., object], options: list[Callable[[Command], Command]]
) -> Callable[[Command], Command]:
    """One decorator that applies several options, and hands the command what they make together under one name.

    `make` takes the values of those of its parameters that are options, by their names.
    """
    parts = inspect.signature(make).parameters

    def decorate(command: Command) -> Command:
        @wraps(command)
        def handed(**values: Any) -> Any:
            made = make(**{part: values.pop(part) for part in parts if part in values})
            return command(**values, **{name: made})

        return stack(options)(cast(Command, handed))

    return decorate


query_options = stack(
    [
        click.option(
            "--window",
            "windows",
            multiple=True,
            required=True,
            metavar="WINDOW",
            help="cumulative, rolling:STEPS (or fixed:STEPS), any, any:MAX_STEPS, tumbling:PERIOD (a window each) or "
            "to-date:PERIOD (from its first step to each); PERIOD: week, month, quarter, year or STEPS. Repeatable.",
        ),
        click.option(
            "--at-least",
            "at_least",
            multiple=True,
            type=int,
            metavar="K",
            help="Count items seen at least K times. Repeatable. Default: at least 1, the distinct items.",
        ),
        click.option(
            "--exactly", multiple=True, type=int, metavar="K", help="Count items seen exactly K times. Repeatable."
        ),
        click.option(
            "--histogram",
            "histograms",
            multiple=True,
            type=int,
            metavar="K",
            help="Count items by how often they were seen: at least 1..K times and exactly 1..K-1 times. Repeatable.",
        ),
        click.option(
            "--occurrences",
            is_flag=True,
            help="Count how often items were seen, all together, too; alone without --at-least and the like. Units of "
            "whole items need --max-occurrences.",
        ),
        click.option(
            "--distinct-steps",
            is_flag=True,
            help="An item counts at most once in a step: K is the number of different steps it was seen in.",
        ),
        click.option(
            "--max-runs",
            type=int,
            metavar="R",
            help="Count each item in its first R runs of being counted only, for less noise: rolling windows, unit "
            "item or item-add-remove. Numbers are of this bounded count.",
        ),
        click.option(
            "--max-occurrences",
            type=int,
            metavar="N",
            help="Count only the first N occurrences of each item (with --distinct-steps, its first N steps), for less "
            "noise: unit item or item-add-remove. Numbers are of this bounded count.",
        ),
        click.option(
            "--estimate-loss",
            type=float,
            is_flag=False,
            flag_value=0.05,
            metavar="[SHARE]",
            help="With one of these two: release how many items lost something by it, a private number of its own for "
            "this share of the budget (0.05 if no share is given). Not in streams.",
        ),
    ]
)

list_options = stack(
    [
        click.option(
            "--by",
            multiple=True,
            metavar="COLUMN",
            help="Count by the values of this column, each group by itself. Repeatable: all combinations.",
        ),
        click.option(
            "--values",
            multiple=True,
            metavar="FILE|A,B,C",
            help="The public list of values of each --by, in the same order: a file with one a line, or written here. "
            "Rows of other values are ignored.",
        ),
    ]
)

group_options = stack(
    [
        list_options,
        click.option(
            "--group-of",
            type=click.Choice(["event", "item"]),
            help="What has a group: each event (the default), or each item, which is in the first it was seen in.",
        ),
        click.option(
            "--max-groups",
            type=int,
            metavar="N",
            help="Where items are protected: count each item in its first N groups; the budget pays for N.",
        ),
        click.option(
            "--totals",
            type=float,
            metavar="SHARE",
            help="Give this share of the budget, between 0 and 1, to totals over the values of each --by and over all.",
        ),
    ]
)

privacy_options = stack(
    [
        click.option(
            "--unit",
            required=True,
            metavar="UNIT",
            help="What is protected: event (one occurrence), item-per:STEPS (everything about one item within STEPS "
            "steps), item (everything about one item) or item-add-remove (the presence of one item).",
        ),
        budget_options(
            "Budget epsilon, with or without --delta.",
            "Budget delta, in [0, 1). Left out or 0: pure.",
            "Budget rho of zero-concentrated DP, in place of epsilon.",
        ),
        click.option(
            "--strategy",
            default="auto",
            show_default=True,
            metavar="NAME",
            help="auto, a strategy's name, or paper (a reference to compare with).",
        ),
        click.option(
            "--criterion",
            type=click.Choice(["rms", "max"]),
            default="rms",
            show_default=True,
            help="The error strategies are chosen by: typical or largest.",
        ),
        click.option(
            "--noise",
            type=click.Choice(["exact", "opendp"]),
            default="exact",
            show_default=True,
            help="What draws independent noise: the sampler of dpwindows, or that of OpenDP, of the same laws.",
        ),
        click.option(
            "--weights",
            metavar="W,W,...",
            help="Relative importance of the windows, in the order asked. Default: all alike.",
        ),
        click.option(
            "--singleton",
            is_flag=True,
            help="Public promise: every step holds at most one event, over all items. Not checked.",
        ),
        number_option("--confidence", 0.95, "Coverage of each interval, between 0 and 1.", metavar="C"),
    ]
)

_max_draws_option = number_option(
    "--max-draws",
    MAX_DRAWS,
    "Refuse what would draw more noise values than this, before any data is read. A million takes about a second.",
)

counts_options = handing("asked", AskedCounts, [query_options, group_options])
planned_options = handing("asked", Asked, [query_options, group_options, privacy_options])
planned_options_with_draws = handing("asked", Asked, [query_options, group_options, privacy_options, _max_draws_option])


def ledger_options_saying(said: str) -> Callable[[Command], Command]:
    """`--ledger` and `--dataset`, handed over as `ledger`; what a command does with them is said of the first."""
    ledger = click.option("--ledger", "ledger_file", type=click.Path(), metavar="FILE|ADDRESS", help=said)
    dataset = click.option("--dataset", metavar="NAME", help="The dataset in the ledger.")
    return handing("ledger", ledger_of, [ledger, dataset])


ledger_options = ledger_options_saying("Spend from a dataset of this ledger; see 'dpwindows ledger'.")

_memory_option = click.option(
    "--memory-limit", metavar="SIZE", help="Memory the engine may use, for example 2GB; it spills beyond."
)
_spill_option = click.option("--spill-directory", type=click.Path(path_type=Path), help="Where the engine spills to.")
memory_options = handing("settings", EngineSettings, [_memory_option])

_reaching_options = [
    click.option(
        "--password-file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="File whose first line is the password for the database.",
    ),
    click.option(
        "--spark-master", metavar="URL", help="For Spark: local[4], spark://HOST:7077, yarn, ... Default: this machine."
    ),
]
reaching_options = handing("settings", EngineSettings, [_memory_option, _spill_option, *_reaching_options])

engine_options = handing(
    "settings",
    EngineSettings,
    [
        click.option(
            "--engine",
            type=click.Choice(ENGINES),
            help="Who counts. Default: the database that EVENTS is or leads to, else duckdb.",
        ),
        _memory_option,
        _spill_option,
        *_reaching_options,
    ],
)

step_option = click.option(
    "--step", default="1d", show_default=True, help="Length of a step: a number and s, m, h, d, w or mo; or an integer."
)
zone_option = click.option(
    "--time-zone", default="UTC", show_default=True, help="Zone of days, weeks, months and of times that carry none."
)
range_options = stack(
    [
        click.option(
            "--start", required=True, help="First moment of the range, inclusive. Public: never read from the data."
        ),
        click.option("--end", required=True, help="End of the range, exclusive."),
        step_option,
        zone_option,
    ]
)


def zone_is_given() -> bool:
    """Whether the running command was told a time zone, on its line or in a plan file."""
    source = click.get_current_context().get_parameter_source("time_zone")
    return source is not click.core.ParameterSource.DEFAULT


_layout_options = handing(
    "layout",
    layout_of,
    [
        click.option(
            "--delimiter", metavar="C", help=r"Of CSV files: one character, \t for a tab, or spaces for runs of them."
        ),
        click.option("--no-header", is_flag=True, help="CSV files have no line of names; with --columns."),
        click.option(
            "--columns", metavar="NAME,NAME,...", help="The names of all columns, from left to right; with --no-header."
        ),
    ],
)

_value_options = stack(
    [
        click.option(
            "--time-format",
            metavar="FORMAT",
            help="What times are whose type does not say it: iso (the default), epoch-s, epoch-ms, epoch-us (whole "
            "numbers since 1970), or a pattern of strptime such as %m/%d/%Y.",
        ),
        click.option(
            "--item-type",
            type=click.Choice(["integer"]),
            help="Items are the whole numbers that values such as 13085.0 stand for; rows whose item is none are "
            "ignored.",
        ),
    ]
)
_count_option = click.option(
    "--count", metavar="COLUMN", help="Column of multiplicities: an event is one occurrence, not one row."
)
_item_option = click.option("--item", required=True, metavar="COLUMN", help="Column that identifies items.")
_time_option = click.option(
    "--time", required=True, metavar="COLUMN", help="Column of times: timestamp, date or integer."
)

row_options = stack([_value_options, _layout_options, _count_option])
event_options = handing("columns", EventColumns, [_item_option, _time_option, row_options])
table_options = handing("columns", EventColumns, [_item_option, _time_option, _value_options, _count_option])


def at_one_state(events: str, settings: EngineSettings) -> str | Batches:
    """Events as they are from here on: of a table of a lake the state that it is in, which is shown.

    Raises:
        InputError: the table cannot be read.
        EngineError: its catalogue or storage cannot be reached.
    """
    from dpwindows.count.sources.batches import in_batches

    batches = in_batches(events) if settings.engine in (None, "duckdb") else None
    if batches is None:
        return events
    tell(f"Reading {batches.version}.")
    return batches


def refuse_inputs(output: Path | None, ledger: Ledger | None = None, **read: str | Path | Batches | None) -> None:
    """Check that the output is no file that the command reads, its ledger among them; see `require_not_read`."""
    from dpwindows.release.outputs import require_not_read

    file = None if ledger is None or isinstance(ledger.path, str) else ledger.path
    require_not_read(output, ledger_file=file, **read)


@contextmanager
def claim_output(output: Path | None, *, force: bool) -> Iterator[None]:
    """Hold the right to write an output, checked to be writable, from before anything is spent until it is written.

    Raises:
        InputError: it exists and is not to be replaced, another process is writing it, or its name is not fit.
        EngineError: its folder cannot be written to.
    """
    if output is None:
        yield
        return
    from dpwindows.durable import claim
    from dpwindows.release.files import require_writable

    require_writable(output, force=force)
    with claim(output):
        # Whoever held it before may have written it.
        require_writable(output, force=force)
        yield


def save_spent(released: Release, output: Path, *, force: bool, again: str) -> None:
    """Write numbers that budget was spent on, or steps closed for; `again` says what running the same again does.

    Raises:
        EngineError: it cannot be written. That is never the caller's mistake: it was looked at before anything was
            spent, and something is spent now.
    """
    from dpwindows.durable import UnsettledError

    try:
        released.save(output, force=force)
    except UnsettledError as error:
        raise EngineError(f"{error}. Mend that, and copy it") from error
    except (InputError, EngineError) as error:
        raise EngineError(f"{error}. {again}") from error
