"""Every search for a design or a noise scale replaced by one that fails: what was measured needs none.

The prices that a proof is made with stay: they belong to the check of a bound, and a check is made anew.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from types import FunctionType
from typing import Any, NoReturn

import pytest

import dpwindows
import dpwindows.strategies

_WHERE = ("dpwindows.strategies", "dpwindows.plan.sharing", "dpwindows.strategies.search.noise_scales")
# What stands there that is a formula: the groups that steps are in, the variance of a law, names of laws.
_FORMULAS = {"grouped_problem", "_grouped", "noise_variance", "asked_as", "laws_for", "forget", "shares_of"}
_FORMULAS |= {"weights_of"}


def forbid_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every search raise from now on, by whatever name a module knows it."""
    for one in pkgutil.walk_packages(dpwindows.__path__, "dpwindows."):
        if not one.name.endswith("__main__"):
            importlib.import_module(one.name)
    for module_name, module in list(sys.modules.items()):
        for name, value in list(vars(module).items()) if module_name.startswith("dpwindows") else ():
            plain = getattr(value, "__wrapped__", value)
            if isinstance(plain, FunctionType) and plain.__module__.startswith(_WHERE) and name not in _FORMULAS:
                monkeypatch.setattr(module, name, _failing(f"{plain.__module__}.{plain.__name__}"))


def _failing(name: str) -> Any:
    def fail(*_: Any, **__: Any) -> NoReturn:
        raise AssertionError(f"{name} was asked to search for what was measured already")

    return fail
