"""dpwindows: distinct and k-occurrence counts in time windows, published under differential privacy.

import dpwindows as dw

plan = dw.Plan(
    [dw.Rolling(28).at_least(1, 3), dw.Cumulative(), dw.AnyWindow(max_length=90), dw.Tumbling("month")],
    timeline=dw.Timeline("2013-01-01", "2014-01-01", step="1d"),
    unit=dw.EventLevel(),
    budget=dw.ApproxDP(epsilon=1.0, delta=1e-6),
)
plan.forecast()
release = plan.run("flights.parquet", item="tailnum", time="time")
release.count("2013-02-01", "2013-03-15", at_least=1)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpwindows.ask.privacy import ZCDP, ApproxDP, EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod, PureDP
    from dpwindows.ask.queries import AnyWindow, Cumulative, Rolling, ToDate, Tumbling
    from dpwindows.ask.timeline import Timeline
    from dpwindows.count.events import CountsFile, EngineSettings
    from dpwindows.errors import EngineError, InputError, OverBudgetError, StateBehindLedgerError
    from dpwindows.ledger.ledger import Ledger
    from dpwindows.plan.measured_plan import plan_of
    from dpwindows.plan.plan import Plan
    from dpwindows.plan.shapes import Forecast
    from dpwindows.plan.solve import solve_epsilon, solve_rho
    from dpwindows.plan.stream_plan import StreamPlan
    from dpwindows.release.derived import Derived
    from dpwindows.release.release import Count, Release
    from dpwindows.release.selection import Window
    from dpwindows.stream.stream import Stream

__version__ = "0.1.0"

_HOMES = {
    "stream.stream": ("Stream",),
    "plan.stream_plan": ("StreamPlan",),
    "errors": ("EngineError", "InputError", "OverBudgetError", "StateBehindLedgerError"),
    "count.events": ("CountsFile", "EngineSettings"),
    "ledger.ledger": ("Ledger",),
    "plan.shapes": ("Forecast",),
    "plan.measured_plan": ("plan_of",),
    "plan.plan": ("Plan",),
    "ask.privacy": ("ZCDP", "ApproxDP", "EventLevel", "ItemAddRemove", "ItemLevel", "ItemPerPeriod", "PureDP"),
    "ask.queries": ("AnyWindow", "Cumulative", "Rolling", "ToDate", "Tumbling"),
    "release.derived": ("Derived",),
    "release.release": ("Count", "Release"),
    "release.selection": ("Window",),
    "plan.solve": ("solve_epsilon", "solve_rho"),
    "ask.timeline": ("Timeline",),
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `dpwindows --help` does not load numerical libraries."""
    for home, names in _HOMES.items():
        if name in names:
            found = getattr(import_module(f"dpwindows.{home}"), name)
            globals()[name] = found
            return found
    raise AttributeError(f"module 'dpwindows' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, whether they are imported yet or not."""
    return sorted({*globals(), *__all__})


__all__ = [
    "ZCDP",
    "AnyWindow",
    "ApproxDP",
    "Count",
    "CountsFile",
    "Cumulative",
    "Derived",
    "EngineError",
    "EngineSettings",
    "EventLevel",
    "Forecast",
    "InputError",
    "ItemAddRemove",
    "ItemLevel",
    "ItemPerPeriod",
    "Ledger",
    "OverBudgetError",
    "Plan",
    "PureDP",
    "Release",
    "Rolling",
    "StateBehindLedgerError",
    "Stream",
    "StreamPlan",
    "Timeline",
    "ToDate",
    "Tumbling",
    "Window",
    "__version__",
    "plan_of",
    "solve_epsilon",
    "solve_rho",
]
