"""Every search for a design, a noise scale or a witness replaced by one that fails: what was measured needs none."""

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
# What stands there that is a formula: the parts of a plan, the groups that steps are in, a variance, names of laws.
_FORMULAS = {"grouped_problem", "_grouped", "noise_variance", "design_law", "laws_for", "parts_of"}
_FORMULAS |= {"weights_of", "inner_strategy"}
# The paper's constructions are measured and certified there.
_MEASURED = ("dpwindows.strategies.paper.bounds", "dpwindows.strategies.paper.shapes")


def forbid_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every search raise from now on, by whatever name a module knows it."""
    for one in pkgutil.walk_packages(dpwindows.__path__, "dpwindows."):
        if not one.name.endswith("__main__"):
            importlib.import_module(one.name)
    for module_name, module in list(sys.modules.items()):
        for name, value in list(vars(module).items()) if module_name.startswith("dpwindows") else ():
            plain = getattr(value, "__wrapped__", value)
            if not isinstance(plain, FunctionType) or name in _FORMULAS or plain.__module__ in _MEASURED:
                continue
            if plain.__module__.startswith(_WHERE):
                monkeypatch.setattr(module, name, _failing(f"{plain.__module__}.{plain.__name__}"))


def _failing(name: str) -> Any:
    def fail(*_: Any, **__: Any) -> NoReturn:
        raise AssertionError(f"{name} was asked to search for what was measured already")

    return fail
