"""Warnings about budgets that are allowed but promise little, each given once, and the typical count they look at."""

from __future__ import annotations

from dpwindows.ask.privacy import ApproxDP, Budget, PureDP
from dpwindows.errors import InputError

_LARGE_EPSILON, _LARGE_DELTA = 10.0, 1e-3


def require_expected(expect: float | None) -> None:
    """Check a typical count. Raises `InputError` if it is not a finite number above 0."""
    if expect is not None and not 0 < expect < float("inf"):
        raise InputError(f"--expect must be a typical count, greater than 0, got {expect:g}")


def budget_warnings(budget: Budget, expect: float | None = None) -> list[str]:
    """Why a budget promises less than it may seem to; `expect` is a typical count of what is released."""
    warnings = []
    if isinstance(budget, PureDP | ApproxDP) and budget.epsilon > _LARGE_EPSILON:
        warnings.append(
            f"epsilon {budget.epsilon:g} is above {_LARGE_EPSILON:g}: what is released may be e^{budget.epsilon:g} "
            "times as likely with an item's data as without, which protects nobody to speak of"
        )
    if isinstance(budget, ApproxDP):
        if budget.delta > _LARGE_DELTA:
            warnings.append(
                f"delta {budget.delta:g} is above {_LARGE_DELTA:g}: with that probability everything may be given away"
            )
        elif expect is not None and budget.delta > 1 / expect:
            warnings.append(
                f"delta {budget.delta:g} is above one over the {expect:,.10g} that you expect: publishing one of them "
                "outright would be within it; choose a delta well below"
            )
    return warnings
