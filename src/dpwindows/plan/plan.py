"""The plan of a release: queries, unit and budget become measurements before any data is seen; `Plan.run` runs it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dpwindows.ask.calendar import Calendar
from dpwindows.ask.counting_rule import CountingRule, require_one_bound
from dpwindows.ask.groups import GroupOf, Value, cells_of, grouping
from dpwindows.ask.periods import placed
from dpwindows.ask.privacy import Budget, ItemAddRemove, ItemLevel, Unit
from dpwindows.ask.queries import AnyWindow, LostItems, Query, WindowFamily, normalise
from dpwindows.ask.timeline import Timeline
from dpwindows.ask.whole_numbers import MAX_DRAWS
from dpwindows.ask.windows import count_windows, fit_to_range
from dpwindows.errors import InputError
from dpwindows.kernel.accounting import Law
from dpwindows.kernel.designs import Design
from dpwindows.kernel.measure import EXACT, Sampler
from dpwindows.kernel.problem import Criterion
from dpwindows.plan.planned import Planned, require_kind
from dpwindows.plan.sharing import Part, part_by_threshold, part_of
from dpwindows.plan.workload import MAX_ROWS, least_workload, require_within
from dpwindows.strategies import candidates, direct, joint_filter
from dpwindows.strategies.search.noise_scales import laws_for

if TYPE_CHECKING:
    from dpwindows.count.events import EngineSettings
    from dpwindows.ledger.ledger import Ledger
    from dpwindows.release.release import Release


class Plan(Planned):
    """A release worked out before any data is seen: what will be measured, with what noise, and how exact it will be.

    Args:
        queries: what is asked. A query is a window family and what is counted in each of its windows: `Rolling(28)`
            alone asks for the distinct items of the last 28 steps at every step, `Rolling(28).at_least(1, 3)` for those
            seen at least once and at least 3 times, `.exactly(2)` for those seen twice, `.histogram(10)` for all up to
            10.
            Families are `Cumulative`, `Rolling`, `AnyWindow`, `Tumbling` and `ToDate`; queries on one of them are
            measured together.
        timeline: the public range and step.
        unit: the unit of privacy.
        budget: what the whole release may spend.
        strategy: `auto`, or the name of one strategy for every query.
        criterion: `rms` or `max`, the error over a query's windows that strategies are chosen by.
        noise: `exact`, or `opendp` for independent noise drawn by OpenDP, of the same laws (`dpwindows[opendp]`).
        weights: relative importance of the window families, by canonical text or in the order asked (default: all
            alike). Shares of the budget are in proportion, which minimises the weighted geometric mean of the errors.
        singleton: a public promise that every step holds at most one event over all items.
        distinct_steps: an item counts at most once in a step, so that "at least k" asks for k different steps.
        max_occurrences: the most occurrences of each item that count, its first ones in the range (item levels only).
        max_runs: the most runs that each item is counted in, its first ones (rolling counts, item levels only).
        estimate_loss: with one of these two, the share of the budget, between 0 and 1, for a private count of the items
            that lost something by it: `Release.loss`.
        confidence: coverage of each interval by itself.
        max_draws: the most noise values that one release may draw; `workload` tells how many this one does.
        by: columns of the log that make groups, each with the public list of its values, such as
            `{"origin": ["EWR", "JFK", "LGA"]}`; of several columns all combinations. Rows of other values are ignored.
        group_of: `event` (the default: each event is in the group of its own row) or `item` (each item is in one group,
            that of its first event).
        max_groups: at item level with groups of events, the most groups that one item counts in: its first ones. The
            budget pays for this many.
        totals: the share of the budget, between 0 and 1, for totals over all groups, and over all values of each
            choice of columns; by default there are none, since distinct counts of groups do not add up to one.

    Raises:
        InputError: something asked for is not legal, more than 5,000,000 numbers would be released, or more than
            `max_draws` noise values drawn.

    Example:
        >>> import dpwindows as dw
        >>> plan = dw.Plan(
        ...     [dw.Rolling(7).at_least(1, 3), dw.Cumulative()],
        ...     timeline=dw.Timeline("2013-01-01", "2013-03-01"),
        ...     unit=dw.EventLevel(),
        ...     budget=dw.ApproxDP(epsilon=1.0, delta=1e-6),
        ... )
        >>> [(entry.window, entry.k, round(entry.rms)) for entry in plan.forecast()]
        [('rolling:7', 1, 15), ('rolling:7', 3, 15), ('cumulative', 1, 16)]
        >>> release = plan.run("visits.csv", item="user", time="day")  # doctest: +SKIP
    """

    def __init__(
        self,
        queries: Query | WindowFamily | Iterable[Query | WindowFamily],
        *,
        timeline: Timeline,
        unit: Unit,
        budget: Budget,
        strategy: str = "auto",
        criterion: Criterion = "rms",
        noise: Sampler = EXACT,
        weights: Mapping[str, float] | Sequence[float] | None = None,
        singleton: bool = False,
        distinct_steps: bool = False,
        max_occurrences: int | None = None,
        max_runs: int | None = None,
        estimate_loss: float | None = None,
        confidence: float = 0.95,
        max_draws: int = MAX_DRAWS,
        by: Mapping[str, Iterable[Value]] | None = None,
        group_of: GroupOf | None = None,
        max_groups: int | None = None,
        totals: float | None = None,
    ) -> None:
        require_kind("timeline", timeline, Timeline, "a Timeline")
        groups = grouping(by, group_of=group_of, max_groups=max_groups, totals=totals)
        self.rule = CountingRule(distinct_steps, max_occurrences, max_runs)
        if groups is not None:
            require_one_bound(self.rule)
        self.queries = placed(normalise(queries), Calendar.of(timeline), timeline.steps)
        self.unit, self.budget, self.strategy, self.criterion, self.weights = unit, budget, strategy, criterion, weights
        self.grouping, self.confidence, self.max_draws, self.noise = groups, confidence, max_draws, noise
        self.timeline, self.singleton, self.estimate_loss = timeline, singleton, estimate_loss
        self._work_out(timeline.steps)
        require_within(self.workload, max_draws)

    def __repr__(self) -> str:
        return f"Plan({self._asked}; {self.timeline}; {self.unit.name} level; {self.budget})"

    def run(
        self,
        events: Any,
        *,
        item: str,
        time: str,
        count: str | None = None,
        time_format: str | None = None,
        item_type: str | None = None,
        delimiter: str | None = None,
        columns: Sequence[str] | None = None,
        table: str | None = None,
        engine: str | None = None,
        settings: EngineSettings | None = None,
        ledger: Ledger | None = None,
        consistent: bool = True,
    ) -> Release:
        """Read an event log and release every number asked for, once, with fresh noise.

        Guarantee: the release satisfies the plan's budget for the plan's unit of privacy. Without a ledger every call
        is a new release and spends the budget again. With one, the budget is recorded there before noise is drawn, and
        the same call on the same data returns the release that was stored.

        Args:
            events: a path (file, glob, directory, DuckDB or SQLite database, folder of a Delta table), data frame,
                Arrow table, dataset or stream, or DuckDB relation; `iceberg:CATALOG.NAMESPACE.TABLE`, or a table of
                deltalake or pyiceberg; a database's connection address or SQLAlchemy engine; a Spark data frame or
                Spark session; or `CountsFile(path)`, the result of the query that `sql` writes.
            item: name of the column that identifies items.
            time: name of the column that holds times.
            count: name of an optional column of multiplicities; an event is one occurrence, not one row.
            time_format: what times are whose type does not say it: `epoch-s`, `epoch-ms`, `epoch-us` or a pattern of
                strptime such as "%m/%d/%Y"; ISO 8601 text (`iso`) needs none.
            item_type: `integer` if items are the whole numbers that values such as 13085.0 stand for; rows whose item
                stands for none are ignored. By default items are what they are, and floating-point ones are refused.
            delimiter: of CSV files, a character or `spaces` for runs of them; by default that of the line of names.
            columns: the names of all columns of CSV files without a line of names.
            table: table to read where `events` is a database or a Spark session.
            engine: name of the engine that counts; by default the source tells. The same as `settings.engine`.
            settings: memory limit, spill directory, threads, progress and access of the engine.
            ledger: the dataset whose total budget this release is part of.
            consistent: fill the column `consistent`, a table of whole numbers that agree with one another. They are
                made of the noisy numbers and cost nothing; a release that a ledger has stored is to be asked for as it
                was.

        Raises:
            OverBudgetError: the ledger does not hold the plan's budget; nothing was drawn, and no data was read
                unless a release of the same request is stored.
            InputError: the log cannot be read as asked, the ledger does not admit the plan, or it has stored the
                release with `consistent` otherwise; nothing was spent.
            EngineError: the engine failed, and nothing was spent; or the ledger could not be written, and the message
                says what was spent.
        """
        from dpwindows.count.events import EventColumns, csv_layout, engine_settings
        from dpwindows.release.run import run_plan

        return run_plan(
            self,
            events,
            EventColumns(item, time, count, time_format, csv_layout(delimiter, columns), item_type),
            table=table,
            settings=engine_settings(settings, engine),
            ledger=ledger,
            consistent=consistent,
        ).release

    def sql(
        self,
        *,
        table: str,
        dialect: str,
        types: Mapping[str, str],
        item: str,
        time: str,
        count: str | None = None,
        time_format: str | None = None,
        item_type: str | None = None,
    ) -> str:
        """The query that counts for this plan, to run by hand in a database that is not reached from here.

        Its result, saved as CSV or Parquet, is released by `run(CountsFile(path), ...)` with the same columns and
        table. That the counts are exact is then the promise of whoever ran the query.

        Args:
            table: the table or view to count, as NAME or SCHEMA.NAME.
            dialect: how the database spells SQL, such as `duckdb`, `postgresql` or `spark`.
            types: the type of each column as the database calls it, by `item`, `time`, `count` and the names of the
                columns that make groups, such as `{"item": "text", "time": "timestamp"}`.
            item: as for `run`, and so are the others.
            time: see `run`.
            count: see `run`.
            time_format: see `run`.
            item_type: see `run`.

        Raises:
            InputError: there is no such dialect, or a type is missing, not known or does not serve.
        """
        from dpwindows.count.dialects import dialect_named
        from dpwindows.count.events import EventColumns
        from dpwindows.count.query.standalone import standalone_sql
        from dpwindows.count.request import CountRequest

        columns = EventColumns(item, time, count, time_format, None, item_type, self.grouping)
        request = CountRequest(None, columns, self.timeline, replace(self.wanted, reach=None), table)
        return standalone_sql(dialect_named(dialect), request, types)

    def _require_bearable(self) -> None:
        steps, groups = self.timeline.steps, cells_of(self.grouping)
        rows = groups * sum(count_windows(query.window, steps) * len(query.measures) for query in self.queries)
        if rows > MAX_ROWS:
            raise InputError(
                f"{rows:,} numbers would be released, more than the {MAX_ROWS:,} that are allowed: "
                "bound the windows' length (any:MAX), use coarser steps, or ask for fewer measures"
                f"{'' if self.grouping is None else ' or groups'}"
            )
        require_within(least_workload(self.queries, steps, groups), self.max_draws, at_least=True)

    def _by_threshold(self, parts: Sequence[Part]) -> list[Part]:
        if self.strategy != "auto" or not isinstance(self.unit, ItemLevel | ItemAddRemove):
            return list(parts)
        law = laws_for(self.budget)[0]
        found = [
            part_by_threshold(part, law, self.criterion, self._designs)
            if isinstance(part.query.window, AnyWindow)
            else [part]
            for part in parts
        ]
        return [part for some in found for part in some]

    def _designs(self, part: Part, law: Law, bits: int) -> Sequence[Design]:
        steps = self.timeline.steps
        if isinstance(part.query.window, LostItems):
            return [direct.lost_items(self._problem(part, part.query.window, steps, law, bits))]
        problem = self._problem(part, fit_to_range(part.query.window, steps), steps, law, bits)
        problem = replace(problem, singleton=self.singleton, budget=part_of(self.budget, part.share))
        return [joint_filter.design(problem, steps)] if part.shares else candidates(problem, self.strategy)
