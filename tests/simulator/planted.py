"""Durability bugs planted into a process before it works, by name."""

from __future__ import annotations

from collections.abc import Callable

PLANTED: dict[str, Callable[[], None]] = {}
