"""The measurements of a release or a stream, rebuilt from the integers in its metadata.

No search runs: another machine, or another version of a strategy, might find other integers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dpwindows.ask.calendar import Calendar
from dpwindows.ask.counting_rule import EVERY_OCCURRENCE, CountingRule
from dpwindows.ask.groups import Grouping
from dpwindows.ask.periods import place
from dpwindows.ask.privacy import parse_unit
from dpwindows.ask.queries import OCCURRENCES, LostItems, PeriodFamily, WindowFamily, parse_window, windows_together
from dpwindows.ask.shapes import read_shape
from dpwindows.ask.timeline import Timeline
from dpwindows.ask.windows import fit_to_range
from dpwindows.errors import InputError
from dpwindows.kernel.accounting import NORMS
from dpwindows.kernel.groups import Groups
from dpwindows.kernel.measure import Measurement
from dpwindows.kernel.problem import Problem
from dpwindows.plan.description import ENDLESS, HORIZON
from dpwindows.plan.stored_designs import BAD_VALUES, design_from_dict
from dpwindows.plan.stream_plan import planned_steps


def rebuilt(metadata: Mapping[str, Any], entry: Mapping[str, Any]) -> Measurement:
    """One measurement of a release.

    Args:
        metadata: what the release says about itself.
        entry: what it says about this measurement, one of its `measurements`.

    Raises:
        InputError: the release does not say enough, or this version knows no such measurement.
    """
    try:
        return measurement_of(metadata, entry)
    except (*BAD_VALUES, ValueError) as error:
        raise InputError(
            f"the release does not tell the integers that measured {entry.get('window')} ({error}): its numbers have "
            "errors, but those of differences and ratios are unknown. Use the version of dpwindows that made it, named "
            "in its metadata"
        ) from None


def measurement_of(metadata: Mapping[str, Any], entry: Mapping[str, Any]) -> Measurement:
    """As `rebuilt`, but that values which describe no measurement raise `ValueError` or one of `BAD_VALUES`."""
    problem = _problem(metadata, entry)
    noise, groups = entry["noise"], _groups(metadata, entry)
    design = design_from_dict(entry["integers"], problem, entry["strategy"], entry["parameters"])
    if noise["law"] not in NORMS or not 0 < float(noise["scale"]) < math.inf:
        raise ValueError(f"noise of law {noise['law']!r} and scale {noise['scale']!r}")
    # A bound refuses what it cannot serve: here, with what is wrong, and not where its number is first read.
    _ = design.certificate
    return Measurement(design, noise["law"], float(noise["scale"]), groups)


def thresholds_of(entry: Mapping[str, Any]) -> tuple[int, ...]:
    """The thresholds of a measurement; in metadata occurrences have none."""
    return tuple(entry["thresholds"]) or (OCCURRENCES,)


def window_of(metadata: Mapping[str, Any], text: str) -> WindowFamily:
    """A window family by its text; weeks, months, quarters and years by the clock of the metadata's timeline."""
    window = LostItems() if text == LostItems().text else parse_window(text)
    if not isinstance(window, PeriodFamily):
        return window
    return place(window, Calendar.of(Timeline.from_dict(metadata["timeline"])))


def _problem(metadata: Mapping[str, Any], entry: Mapping[str, Any]) -> Problem:
    """The problem that was measured, without what only a search needs."""
    unit, together = parse_unit(metadata["unit"]["name"]), entry.get("together", ())
    window = windows_together(together) if together else window_of(metadata, entry["window"])
    if HORIZON not in metadata:
        steps = int(metadata["timeline"]["steps"])
        window, unit = fit_to_range(window, steps), unit.fit_to_range(steps)
    else:
        horizon = None if metadata[HORIZON] == ENDLESS else int(metadata[HORIZON])
        window = fit_to_range(window, horizon)
        steps = planned_steps(window, unit, horizon) if horizon is None else horizon
    counting = metadata.get("counting")
    return Problem(
        window=window,
        steps=steps,
        thresholds=thresholds_of(entry),
        unit=unit,
        law=entry["noise"]["law"],
        noise_per_unit=1.0,
        singleton=bool(metadata["singleton"]),
        rule=CountingRule(**counting) if counting else EVERY_OCCURRENCE,
    )


def _groups(metadata: Mapping[str, Any], entry: Mapping[str, Any]) -> Groups | None:
    if "groups" not in entry:
        return None
    grouping = read_shape(metadata["groups"], Grouping)
    by = entry["groups"]["by"]
    for level in grouping.levels:
        if [grouping.names[at] for at in level.kept] == by:
            return Groups(grouping, level)
    raise ValueError(f"the release has no groups by {by}")
