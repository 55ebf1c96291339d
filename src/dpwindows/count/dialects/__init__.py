"""How each database spells the query: one file a dialect, found by its name, and none of them needs its database."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from dpwindows.count.query.dialect import Dialect
from dpwindows.errors import InputError, near

DIALECTS = tuple(sorted(module.name for module in iter_modules(__path__)))
"""The names of all dialects, which are those of the files here."""


def dialect_named(name: str) -> Dialect:
    """The dialect of this name; raises `InputError` if there is none."""
    if name not in DIALECTS:
        raise InputError(f"there is no dialect {name!r}{near(name, DIALECTS)}; the dialects are {', '.join(DIALECTS)}")
    found: Dialect = import_module(f"{__name__}.{name}").DIALECT
    return found
