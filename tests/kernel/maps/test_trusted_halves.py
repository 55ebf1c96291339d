"""What is trusted of a map stands in its own class: its decoding, a base class, adds to it and replaces nothing."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Iterator
from importlib import import_module

import pytest

import dpwindows.kernel.maps

DECODING = "dpwindows.kernel.untrusted.decoding"
# What reads measured numbers back, either way, or says with which error; for third parties, how.
READING = {"decode", "transposed", "variance", "fourth_moment", "decoder"}
# What Python gives every class.
GIVEN = set(vars(type("Plain", (), {}))) | {"__annotations__", "__static_attributes__", "__firstlineno__"}


def maps() -> Iterator[type]:
    for found in pkgutil.iter_modules(dpwindows.kernel.maps.__path__):
        module = import_module(f"{dpwindows.kernel.maps.__name__}.{found.name}")
        for _, kind in inspect.getmembers(module, inspect.isclass):
            if (
                kind.__module__ == module.__name__
                and hasattr(kind, "encode")
                and not getattr(kind, "_is_protocol", False)
            ):
                yield kind


def decodings(kind: type) -> list[type]:
    return [base for base in kind.__mro__ if base.__module__.startswith(DECODING)]


def test_most_maps_have_their_decoding_elsewhere() -> None:
    assert sum(bool(decodings(kind)) for kind in maps()) >= 9


@pytest.mark.parametrize("kind", list(maps()), ids=lambda kind: kind.__name__)
def test_decoding_replaces_nothing_that_is_trusted(kind: type) -> None:
    assert set(kind.__mro__) == {kind, object, *decodings(kind)}
    own = set(vars(kind))
    assert "encode" in own
    for base in decodings(kind):
        added = set(vars(base)) - GIVEN
        assert {name for name in added if not name.startswith("_")} <= READING
        assert not {name for name in added if name.startswith("__")}
        assert not added & own
