"""The values of the library that options of the command line stand for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpwindows.ask.whole_numbers import MAX_DRAWS
from dpwindows.cli.groups import groups_asked
from dpwindows.cli.plan_files import queries_in_file
from dpwindows.errors import InputError
from dpwindows.progress import show_progress

if TYPE_CHECKING:
    from dpwindows.ask.groups import Grouping
    from dpwindows.ask.privacy import Budget
    from dpwindows.ask.queries import Query
    from dpwindows.ask.timeline import Timeline
    from dpwindows.count.events import CsvLayout
    from dpwindows.count.query.wanted import Wanted
    from dpwindows.ledger.ledger import Ledger
    from dpwindows.plan.plan import Plan
    from dpwindows.plan.stream_plan import StreamPlan


def layout_of(delimiter: str | None, no_header: bool, columns: str | None) -> CsvLayout | None:
    """What the CSV options of a command ask for.

    Raises:
        InputError: options that go together are given apart, or the layout is not legal.
    """
    from dpwindows.count.events import csv_layout

    if no_header != (columns is not None):
        raise InputError("--no-header and --columns NAME,NAME,... go together: give both, or neither")
    return csv_layout(delimiter, None if columns is None else columns.split(","))


def ledger_of(ledger_file: str | None, dataset: str | None) -> Ledger | None:
    """The dataset that `--ledger` and `--dataset` name; None without them.

    Raises:
        InputError: one of the two is given without the other, or there is no such dataset.
    """
    if ledger_file is None and dataset is None:
        return None
    if ledger_file is None or dataset is None:
        raise InputError(
            "--ledger FILE (or the address of a server) and --dataset NAME go together: give both, or neither"
        )
    from dpwindows.ledger.ledger import Ledger

    return Ledger.open(ledger_file, dataset)


@dataclass(frozen=True, kw_only=True)
class AskedCounts:
    """What is counted, as it stands on a command's line or in its plan file."""

    windows: tuple[str, ...]
    at_least: tuple[int, ...]
    exactly: tuple[int, ...]
    histograms: tuple[int, ...]
    occurrences: bool
    distinct_steps: bool
    max_runs: int | None
    max_occurrences: int | None
    estimate_loss: float | None
    by: tuple[str, ...]
    values: tuple[str, ...]
    group_of: str | None
    max_groups: int | None
    totals: float | None

    def queries(self) -> list[Query]:
        """The queries asked for; raises `InputError` if one is not legal."""
        from dpwindows.plan.plan_file import queries_of

        asked: dict[str, Any] = {"window": [*self.windows], "at-least": [*self.at_least], "exactly": [*self.exactly]}
        asked |= {"histogram": [*self.histograms], "occurrences": self.occurrences}
        return queries_in_file() or queries_of(asked)

    def wanted(self, timeline: Timeline) -> tuple[Wanted, Grouping | None]:
        """What is counted for them over a range, and in which groups.

        Raises:
            InputError: what is asked is not legal.
        """
        from dpwindows.ask.calendar import Calendar
        from dpwindows.ask.counting_rule import CountingRule, require_fit, require_loss, require_one_bound
        from dpwindows.ask.groups import grouping
        from dpwindows.ask.periods import placed
        from dpwindows.ask.privacy import EventLevel, ItemLevel
        from dpwindows.ask.queries import normalise
        from dpwindows.count.query.wanted import Wanted

        rule = CountingRule(self.distinct_steps, self.max_occurrences, self.max_runs)
        groups = grouping(
            groups_asked(self.by, self.values), group_of=self.group_of, max_groups=self.max_groups, totals=self.totals
        )
        if groups is not None:
            require_one_bound(rule)
        queries = placed(normalise(self.queries()), Calendar.of(timeline), timeline.steps)
        # Whom a rule and groups go with is looked at where a unit is asked for.
        require_fit(rule, queries, ItemLevel() if rule.bounded else EventLevel(), timeline.steps)
        require_loss(self.estimate_loss, rule)
        return Wanted.of(queries, rule, timeline.steps, loss=self.estimate_loss is not None), groups


@dataclass(frozen=True, kw_only=True)
class Asked(AskedCounts):
    """What is asked for, for whom and under which budget, as it stands on a command's line or in its plan file."""

    unit: str
    epsilon: float | None
    delta: float | None
    rho: float | None
    strategy: str
    criterion: str
    noise: str
    weights: str | None
    singleton: bool
    confidence: float
    max_draws: int = MAX_DRAWS

    def arguments(self) -> dict[str, Any]:
        """The arguments of `Plan` but for the budget and the timeline.

        Raises:
            InputError: what is asked is not legal.
        """
        from dpwindows.ask.privacy import parse_unit

        plain = (
            *("strategy", "criterion", "noise", "singleton", "confidence", "max_draws", "group_of", "max_groups"),
            *("totals", "distinct_steps", "max_occurrences", "max_runs", "estimate_loss"),
        )
        return {
            "queries": self.queries(),
            "unit": parse_unit(self.unit),
            "weights": _parse_weights(self.weights),
            "by": groups_asked(self.by, self.values),
            **{name: getattr(self, name) for name in plain},
        }

    def budget(self) -> Budget:
        """The budget asked for; raises `InputError` if it is not legal."""
        from dpwindows.ask.privacy import parse_budget

        return parse_budget(self.epsilon, self.delta, self.rho)


def build_plan(timeline: Any, asked: Asked) -> Plan:
    """The plan that the options of a command ask for; raises `InputError` if what is asked is not legal."""
    from dpwindows.plan.plan import Plan

    budget = asked.budget()
    with show_progress("planning"):
        return Plan(budget=budget, timeline=timeline, **asked.arguments())


def build_stream_plan(horizon: int | None, start: str | None, step: str, time_zone: str, asked: Asked) -> StreamPlan:
    """The stream plan that the options of a command ask for; `start` may be None if no window needs a calendar.

    Raises:
        InputError: what is asked is not legal, or a stream has none of it.
    """
    from dpwindows.plan.stream_plan import StreamPlan

    wanted = asked.arguments()
    if wanted.pop("singleton"):
        raise InputError("--singleton has no use in a stream: leave it out")
    if wanted.pop("estimate_loss") is not None:
        raise InputError(
            "--estimate-loss is for releases: in a stream the number would be drawn anew at every step, and the budget "
            "pay for each. Leave it out, or ask it of a release of the steps that are over"
        )
    budget = asked.budget()
    clock: dict[str, Any] = {} if start is None else {"start": start, "step": step, "time_zone": time_zone}
    with show_progress("planning"):
        return StreamPlan(budget=budget, horizon=horizon, **clock, **wanted)


def _parse_weights(text: str | None) -> list[float] | None:
    if text is None:
        return None
    try:
        return [float(weight) for weight in text.split(",")]
    except ValueError:
        raise InputError(f"--weights takes numbers separated by commas, got {text!r}") from None
