"""The names of proofs: every bound of the kernel has one name that never changes, wherever its code is kept.

Releases, exports and states carry the name of the proof that they rest on. `docs/proofs.md` lists all names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Bound = TypeVar("Bound", bound=Callable[..., int])

PROOFS: dict[str, Callable[..., int]] = {}
"""Each proof's name with the function that computes its bound; the function's docstring holds the proof."""

_names: dict[Callable[..., Any], str] = {}


def proves(name: str) -> Callable[[Bound], Bound]:
    """Give the bound below its name.

    Raises:
        ValueError: another bound has the name.
    """

    def named(bound: Bound) -> Bound:
        if name in PROOFS:
            raise ValueError(f"two bounds were given the name {name!r}")
        PROOFS[name] = bound
        _names[bound] = name
        return bound

    return named


def name_of(bound: Callable[..., int]) -> str:
    """The name of a bound's proof."""
    return _names[bound]
