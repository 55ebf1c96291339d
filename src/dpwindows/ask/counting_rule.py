"""A public rule that says which occurrences count: it sees the events of one item only, and applies before counting.

A rule is part of what is asked. Counting enforces it for any data (`dpwindows.count.query.wanted`), so proofs about the
counts may rest on it (`dpwindows.kernel.families.counted_by_rule`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dpwindows.ask.periods import fewest_and_most
from dpwindows.ask.privacy import EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod, Unit
from dpwindows.ask.queries import Cumulative, PeriodFamily, Query, Rolling, WindowFamily
from dpwindows.ask.whole_numbers import LONGEST, is_whole
from dpwindows.ask.windows import longest_window
from dpwindows.errors import InputError

LOST = 0
"""In the place of a threshold: the items that lost something by the rule, each from the step where it first did."""

# Running numbers of occurrences must fit 64 bits.
_MOST = 2**31


@dataclass(frozen=True)
class CountingRule:
    """Which occurrences of an item count; by default all of them.

    With `distinct_steps` an item occurs at most once in a step, so that "at least k" asks for k different steps.
    With `max_occurrences` only the first occurrences of an item within the range count, up to this number. With
    `max_runs` it is counted in its first runs only, up to this number: for each rolling window and threshold by itself,
    a run is a maximal stretch of steps at whose ends the item is counted.

    Raises:
        InputError: a field is not legal, or occurrences and runs are bounded both.
    """

    distinct_steps: bool = False
    max_occurrences: int | None = None
    max_runs: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.distinct_steps, bool):
            raise InputError(f"distinct_steps must be True or False, got {self.distinct_steps!r}")
        for name in ("max_occurrences", "max_runs"):
            most = getattr(self, name)
            if most is not None and not is_whole(most, most=_MOST - 1):
                raise InputError(f"{name} must be a whole number from 1 to {_MOST - 1:,}, got {most!r}")
        if self.max_occurrences is not None and self.max_runs is not None:
            raise InputError("give max_occurrences or max_runs, and not both: either bounds what an item adds")

    @property
    def bounded(self) -> bool:
        """Whether the rule leaves out what an item does later on."""
        return self.max_occurrences is not None or self.max_runs is not None

    def bounds(self, window: WindowFamily) -> bool:
        """Whether the rule may make the counts of a window family smaller."""
        return self.max_occurrences is not None or (self.max_runs is not None and isinstance(window, Rolling))

    def to_dict(self) -> dict[str, Any]:
        """What differs from the default, as plain values: empty where every occurrence counts."""
        return {name: value for name, value in self.__dict__.items() if value is not None and value is not False}

    @property
    def promise(self) -> str:
        """What the rule means for numbers and guarantee, in plain words; empty where every occurrence counts."""
        said = []
        if self.distinct_steps:
            said.append(
                "An item counts at most once in a step, however often it occurs there, so that 'at least k' means "
                "active in k different steps; at event level one occurrence is hidden, not an active step with several."
            )
        if self.bounded:
            said.append(f"{self._bound} {BOUNDED_COUNT}")
        return " ".join(said)

    @property
    def loss(self) -> str:
        """Which items lose something by the rule, in words; for rules that are `bounded`."""
        if self.max_occurrences is not None:
            what = "active step" if self.distinct_steps else "occurrence"
            return (
                f"items with more than {self.max_occurrences:,} {what}{'s' * (self.max_occurrences > 1)} in the range"
            )
        return f"items with more than {self.max_runs:,} run{'s' * (self.max_runs != 1)} in a rolling count"

    @property
    def _bound(self) -> str:
        if self.max_occurrences is not None:
            what = "active step" if self.distinct_steps else "occurrence"
            first = f"first {what}" if self.max_occurrences == 1 else f"first {self.max_occurrences:,} {what}s"
            return f"Of each item only the {first} within the range counted; what it did later was left out."
        first = "first run" if self.max_runs == 1 else f"first {self.max_runs:,} runs"
        return (
            f"In rolling windows each item was counted in its {first} only, a run being a maximal stretch of steps at "
            "which it is counted; later ones were left out. Cumulative counts have one run and lose nothing."
        )


BOUNDED_COUNT = (
    "Estimates and intervals are of this bounded count. It may be smaller than the count of all that happened, and the "
    "release cannot say by how much."
)
"""What is to be said beside every number of a bounded count."""

EVERY_OCCURRENCE = CountingRule()
"""The rule that leaves nothing out."""


def require_loss(share: float | None, rule: CountingRule) -> None:
    """Check that the items that lost something can be counted with this share of the budget; None: they are not.

    An item has lost something if the rule left out one of its occurrences, or a run of one of its rolling counts.

    Raises:
        InputError: the share is no number between 0 and 1, or the rule leaves nothing out.
    """
    if share is None:
        return
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share < 1:
        raise InputError(
            "--estimate-loss takes the share of the budget for it, strictly between 0 and 1, such as 0.05: "
            f"got {share!r}"
        )
    if not rule.bounded:
        raise InputError(
            "--estimate-loss counts the items that lost something by a bound, and there is none: leave it out, or give "
            "--max-runs or --max-occurrences"
        )


def require_fit(rule: CountingRule, queries: Iterable[Query], unit: Unit, steps: int | None) -> None:
    """Check that a rule goes with what is asked, and leaves every measure a count that can be more than 0.

    Args:
        rule: which occurrences count.
        queries: what is asked.
        unit: the unit of privacy.
        steps: the steps of the range; None for a stream without an end.

    Raises:
        InputError: it does not.
    """
    asked = list(queries)
    if rule.bounded:
        _require_items(rule, unit, steps)
    if rule.max_runs is not None:
        _require_runs(asked)
    for query in asked:
        if query.counts_occurrences and rule.max_occurrences is None and not isinstance(unit, EventLevel):
            raise InputError(_unbounded(unit))
        _require_reachable(rule, query, steps)


def require_one_bound(rule: CountingRule) -> None:
    """Check that a rule bounds nothing where an item may be counted in several groups.

    Raises:
        InputError: it does.
    """
    if rule.bounded:
        raise InputError(
            "--max-runs and --max-occurrences do not go with --by: each group would be bounded by itself, and a "
            "total in another way than its groups. Leave out one of them (--max-groups bounds groups)"
        )


def _unbounded(unit: Unit) -> str:
    if isinstance(unit, ItemPerPeriod):
        return (
            f"occurrences are not counted under {unit.name}: what an item does in one period may push its later "
            "occurrences beyond any limit, so that hiding it costs as much as hiding the whole item. Ask for --unit "
            "item with --max-occurrences N, which promises more for the same noise, or for --unit event"
        )
    return (
        f"--occurrences with --unit {unit.name} needs --max-occurrences N: an item may occur any number of times, and "
        "no noise hides that. Only the first N occurrences of each item are counted then, and the noise grows with N"
    )


def _require_items(rule: CountingRule, unit: Unit, steps: int | None) -> None:
    name = "max-occurrences" if rule.max_occurrences is not None else "max-runs"
    if not isinstance(unit, ItemLevel | ItemAddRemove):
        raise InputError(
            f"--{name} goes with --unit item or item-add-remove: at the level of {unit.name} one occurrence more "
            "changes which later ones count, so that a bound would make the noise larger and not smaller"
        )
    if steps is None:
        raise InputError(
            f"--{name} needs a horizon: without an end, whoever was heavy once would be silent for good (--horizon N)"
        )


def _require_runs(queries: list[Query]) -> None:
    for query in queries:
        if not isinstance(query.window, Rolling | Cumulative):
            raise InputError(
                f"--max-runs bounds how often an item comes back to rolling windows, which means nothing for "
                f"{query.window}: ask for rolling windows, or bound what counts with --max-occurrences"
            )
        if isinstance(query.window, Rolling) and any(measure.kind == "exactly" for measure in query.measures):
            raise InputError(
                f"--max-runs bounds each threshold by itself, so exactly k of {query.window}, the difference of two, "
                "might be below 0: ask for at least k, or bound what counts with --max-occurrences"
            )
    if not any(isinstance(query.window, Rolling) for query in queries):
        raise InputError("--max-runs bounds rolling counts, and none is asked for: leave it out, or ask for rolling:N")


def _require_reachable(rule: CountingRule, query: Query, steps: int | None) -> None:
    if isinstance(query.window, PeriodFamily) and steps is None:
        _, longest = fewest_and_most(query.window)
    else:
        longest = longest_window(query.window, LONGEST if steps is None else steps)
    for measure in query.measures:
        if rule.distinct_steps and measure.k > longest:
            raise InputError(
                f"{query.window} holds at most {longest:,} steps, and with --distinct-steps an item counts at most "
                f"once in each, so {measure} is always 0: ask for k up to {longest:,}"
            )
        if rule.max_occurrences is not None and measure.k > rule.max_occurrences:
            raise InputError(
                f"with --max-occurrences {rule.max_occurrences} no item counts more often than that, so {measure} is "
                f"always 0: ask for k up to {rule.max_occurrences:,}"
            )
