"""Which occurrences count: a public rule that looks at the events of one item only, and is applied before counting.

A rule is part of what is asked. It is enforced where events are counted (`dpwindows.count.wanted`), for
any data, so that what is proved of the counts may rest on it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dpwindows.ask.periods import fewest_and_most
from dpwindows.ask.queries import PeriodFamily, Query
from dpwindows.ask.whole_numbers import LONGEST
from dpwindows.ask.windows import longest_window
from dpwindows.errors import InputError


@dataclass(frozen=True)
class CountingRule:
    """Which occurrences of an item count; by default all of them.

    With `distinct_steps` an item occurs at most once in a step, so that "at least k" asks for k different steps.
    """

    distinct_steps: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.distinct_steps, bool):
            raise InputError(f"distinct_steps must be True or False, got {self.distinct_steps!r}")

    def to_dict(self) -> dict[str, Any]:
        """What differs from the default, as plain values: empty where every occurrence counts."""
        return {"distinct_steps": True} if self.distinct_steps else {}

    @property
    def promise(self) -> str:
        """What the rule means for the guarantee, in plain words; empty where every occurrence counts."""
        if not self.distinct_steps:
            return ""
        return (
            "An item counts at most once in a step, however often it occurs there, so that 'at least k' means active "
            "in k different steps; at event level one occurrence is hidden, not an active step with several."
        )


EVERY_OCCURRENCE = CountingRule()
"""The rule that leaves nothing out."""


def require_reachable(rule: CountingRule, queries: Iterable[Query], steps: int | None) -> None:
    """Check that a rule leaves every measure asked for a count that can be more than 0.

    Args:
        rule: which occurrences count.
        queries: what is asked.
        steps: the steps of the range; None for a stream without an end.

    Raises:
        InputError: no item can ever be counted.
    """
    for query in queries if rule.distinct_steps else ():
        if isinstance(query.window, PeriodFamily) and steps is None:
            _, longest = fewest_and_most(query.window)
        else:
            longest = longest_window(query.window, LONGEST if steps is None else steps)
        for measure in query.measures:
            if measure.k > longest:
                raise InputError(
                    f"{query.window} holds at most {longest:,} steps, and with --distinct-steps an item counts at most "
                    f"once in each, so {measure} is always 0: ask for k up to {longest:,}"
                )
