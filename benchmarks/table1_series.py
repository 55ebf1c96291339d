"""What `table1.py` measures: cells of Table 1 swept over T, W and k, each with the growth law that is stated for it.

A law says `error ~ variable^exponent * rest`, up to a constant. Where the variable is a logarithm its additive constant
is that of the algorithm: the number of levels of a range tree, or 1 + ln n. Ranges are such that the law's leading term
shows and releases stay small: any windows of T steps are T^2/2 numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import log, sqrt

from dpwindows.theory.bounds import Family, Level, Setting, levels

Number = Callable[[Setting], float]

FIELDS = {"T": "steps", "W": "length", "k": "k"}
PURE = Setting(steps=64, length=32, k=1, epsilon=1.0)
APPROXIMATE = replace(PURE, delta=1e-6)


@dataclass(frozen=True)
class Law:
    """`error ~ variable^exponent * rest`, up to a constant."""

    text: str
    exponent: float
    variable: Number
    rest: Number = lambda at: 1.0

    def at(self, setting: Setting) -> float:
        """The law with constant 1."""
        return self.variable(setting) ** self.exponent * self.rest(setting)


@dataclass(frozen=True)
class Series:
    """A cell under one strategy, swept over one parameter."""

    family: Family
    level: Level
    strategy: str
    parameter: str
    law: Law
    settings: tuple[Setting, ...]

    @property
    def cell(self) -> str:
        at = self.settings[0]
        kinds = ("singleton, " if at.singleton else "") + ("pure" if at.pure else "approximate")
        return f"{self.family}, {self.level}, {kinds}"

    @property
    def who(self) -> str:
        return "paper" if self.strategy == "paper" else "ours"

    @property
    def range(self) -> str:
        values = [getattr(at, FIELDS[self.parameter]) for at in self.settings]
        return f"{self.parameter} = {values[0]}..{values[-1]}"


CROSSED = "crossed-counters"


def of(parameter: str, exponent: float, text: str, rest: Number = lambda at: 1.0) -> Law:
    """A power of T, W or k, times `rest`."""
    return Law(text, exponent, lambda at: getattr(at, FIELDS[parameter]), rest)


def tree(parameter: str, exponent: float, text: str) -> Law:
    """A power of the number of levels of the paper's tree."""
    return Law(text, exponent, levels_of_steps if parameter == "T" else levels_of_length)


def logarithm(parameter: str, exponent: float, text: str) -> Law:
    """A power of 1 + ln T or 1 + ln W."""
    return Law(text, exponent, lambda at: 1 + log(getattr(at, FIELDS[parameter])))


def levels_of_steps(at: Setting) -> float:
    return levels(at.steps)


def levels_of_length(at: Setting) -> float:
    return levels(2 * at.length)


def power(base: Number, exponent: float) -> Number:
    return lambda at: base(at) ** exponent


def log_of_length(at: Setting) -> float:
    return 1 + log(at.length)


def root_log_of_run(at: Setting) -> float:
    """The logarithm of the length of one of k runs in W steps."""
    return sqrt(1 + log(at.length / at.k))


def log_of_stretch(at: Setting) -> float:
    """The logarithm of the length of one of k stretches of T steps; its root on each of two axes."""
    return 1 + log(at.steps / at.k)


def root_log_of_steps(at: Setting) -> float:
    return sqrt(1 + log(at.steps))


def powers(low: int, high: int, factor: int = 4) -> list[int]:
    """low, low * factor, ..., at most high."""
    found = [low]
    while found[-1] * factor <= high:
        found.append(found[-1] * factor)
    return found


def swept(parameter: str, values: list[int], at: Setting, *, steps_for_each: int = 0) -> tuple[Setting, ...]:
    """Settings that differ in one parameter; with `steps_for_each`, T is so many times the value."""
    found = [replace(at, **{FIELDS[parameter]: value}) for value in values]
    return tuple(
        replace(s, steps=steps_for_each * v) if steps_for_each else s for s, v in zip(found, values, strict=True)
    )


def series(
    family: Family, level: Level, who: str, law: Law, parameter: str, values: list[int], at: Setting, each: int = 0
) -> Series:
    strategy = "auto" if who == "ours" else who
    return Series(family, level, strategy, parameter, law, swept(parameter, values, at, steps_for_each=each))


def cumulative() -> list[Series]:
    cell = ("cumulative", "event")
    return [
        series(*cell, "paper", tree("T", 1.5, "log(T)^1.5"), "T", powers(64, 16384, 16), PURE),
        series(*cell, "ours", logarithm("T", 1.5, "log(T)^1.5"), "T", powers(64, 16384, 16), PURE),
        series(*cell, "ours", logarithm("T", 1, "log T"), "T", powers(64, 4096), APPROXIMATE),
    ]


def rolling_event() -> list[Series]:
    cell = ("rolling", "event")
    pure_law, long = "(k^2 W)^(1/3)", replace(APPROXIMATE, steps=2048, length=1024)
    return [
        series(*cell, "paper", tree("W", 1.5, "k log(W)^1.5"), "W", powers(8, 2048), PURE, 4),
        series(*cell, "paper", of("T", 0, "no T"), "T", powers(128, 8192), PURE),
        series(*cell, "paper", of("k", 1, "k"), "k", powers(1, 64), replace(PURE, steps=128)),
        series(*cell, "ours", logarithm("W", 1, "log W"), "W", powers(128, 2048, 2), APPROXIMATE, 4),
        series(*cell, "ours", of("T", 0, "no T"), "T", powers(128, 8192), APPROXIMATE),
        series(*cell, "ours", of("k", 0.5, "sqrt(k log(W/k))", root_log_of_run), "k", powers(1, 16, 2), long),
        series(*cell, "ours", of("W", 1 / 3, pure_law), "W", powers(128, 2048, 2), PURE, 4),
        series(*cell, "ours", of("k", 2 / 3, pure_law), "k", powers(1, 64), replace(PURE, steps=1024, length=256)),
    ]


def saturation() -> list[Series]:
    """Not a law of growth: the error of rolling counts stops growing with k."""
    at = replace(APPROXIMATE, steps=1024, length=256)
    return [series("rolling", "event", "ours", of("k", 0, "sqrt(W)"), "k", powers(1, 128, 2), at)]


def any_event() -> list[Series]:
    cell, long = ("any", "event"), replace(APPROXIMATE, steps=1024)
    return [
        series(*cell, "paper", tree("T", 3, "k log(T)^3"), "T", powers(16, 256, 2), PURE),
        series(*cell, "paper", tree("T", 2, "k log(T)^2"), "T", powers(16, 256, 2), APPROXIMATE),
        series(*cell, "paper", of("k", 1, "k"), "k", powers(2, 32, 2), replace(PURE, steps=32)),
        series(*cell, "ours", logarithm("T", 3, "log(T)^3"), "T", powers(64, 1024, 2), PURE),
        series(*cell, "ours", logarithm("T", 2, "log(T)^2"), "T", powers(64, 1024, 2), APPROXIMATE),
        series(*cell, "ours", of("k", 0.5, "sqrt(k) log(T/k)", log_of_stretch), "k", powers(1, 16, 2), long),
    ]


def rolling_item() -> list[Series]:
    cell = ("rolling", "item")
    linear, root = "k (T/W) log(W)^1.5", "k sqrt(T/W) log(W)^1.5"
    ours, pure_law = "sqrt(k T/W) log W", "(T/W) (k^2 W)^(1/3)"
    logs = power(levels_of_length, 1.5)
    short = replace(APPROXIMATE, length=4, steps=4096)
    long = replace(APPROXIMATE, steps=8192)
    wide = replace(APPROXIMATE, steps=16384, length=1024)
    return [
        series(*cell, "paper", of("T", 1, linear), "T", powers(64, 4096), replace(PURE, length=8)),
        series(*cell, "paper", of("W", -1, linear, logs), "W", powers(8, 512), replace(PURE, steps=8192)),
        series(*cell, "paper", of("T", 0.5, root), "T", powers(1024, 16384, 2), short),
        series(*cell, "paper", of("W", -0.5, root, logs), "W", powers(4, 64, 2), replace(short, steps=16384)),
        series(*cell, "paper", of("k", 1, "k"), "k", powers(1, 16, 2), short),
        series(*cell, "ours", of("T", 1, pure_law), "T", powers(128, 8192), PURE),
        series(*cell, "ours", of("W", -2 / 3, pure_law), "W", powers(32, 512, 2), replace(PURE, steps=8192)),
        series(*cell, "ours", of("T", 0.5, ours), "T", powers(1024, 16384, 2), APPROXIMATE),
        series(*cell, "ours", of("W", -0.5, ours, log_of_length), "W", powers(64, 1024, 2), long),
        series(*cell, "ours", of("k", 0.5, "sqrt(k log(W/k))", root_log_of_run), "k", powers(1, 16, 2), wide),
    ]


def any_item() -> list[Series]:
    cell = ("any", "item")
    logs = power(levels_of_steps, 1.5)
    return [
        series(*cell, "paper", of("T", 1, "T log(T)^1.5", logs), "T", powers(32, 256, 2), PURE),
        series(*cell, "paper", of("T", 0.5, "sqrt(T) log(T)^1.5", logs), "T", powers(128, 512, 2), APPROXIMATE),
        series(*cell, "paper", of("k", 0, "no k"), "k", powers(1, 16), PURE),
        # What serves all k; at least 1 has a strategy of its own (`gap-filter`).
        series(*cell, CROSSED, of("T", 1, "T sqrt(log T)", root_log_of_steps), "T", powers(64, 1024, 2), PURE),
        series(*cell, CROSSED, of("T", 0.5, "sqrt(T)"), "T", powers(64, 1024, 2), APPROXIMATE),
        series(*cell, CROSSED, of("k", 0, "no k"), "k", powers(1, 16), APPROXIMATE),
    ]


def any_item_singleton() -> list[Series]:
    cell = ("any", "item")
    pure, approximate = replace(PURE, singleton=True), replace(APPROXIMATE, singleton=True)
    grouped = of("T", 0.5, "sqrt(T/eps) log(T)^0.75", power(levels_of_steps, 0.75))
    return [
        series(*cell, "paper", grouped, "T", powers(128, 1024, 2), replace(pure, epsilon=10.0)),
        series(*cell, "ours", of("T", 0.5, "sqrt(T/eps)"), "T", powers(64, 1024, 2), pure),
        series(*cell, "ours", of("T", 1 / 3, "(T/eps^2)^(1/3)"), "T", powers(64, 1024, 2), approximate),
    ]


def all_series() -> list[Series]:
    """Every series, in the order of the table."""
    parts = (cumulative, rolling_event, saturation, any_event, rolling_item, any_item, any_item_singleton)
    return [found for part in parts for found in part()]
