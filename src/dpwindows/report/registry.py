"""An entry for the Differential Privacy Deployments Registry, in the fields of its schema and in no others.

The schema is `schemas/deployments-schema.yaml` of the repository `opendp/deployments-registry-data`. A field has what
the release or stream says of itself, and after it what its publisher says (`--about`). Where nobody says it, a field
that the registry requires is a request to fill it in, and any other is left out. What the guarantee is (definition,
unit, parameters, model) no publisher can change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from typing import Any

from dpwindows.errors import InputError, near
from dpwindows.report import facts
from dpwindows.report.facts import Metadata

# What a field holds: prose, which is added to what is known; a list of names; a day; or one of these values.
PROSE, NAMES, DAY, GIVEN = "text", "a list of names", "a day such as 2026-01-31", "what the release says"
Kind = str | tuple[str, ...]
_REQUEST = "To be filled in: "
# The day of the registry's own template.
_SOME_DAY = "1900-01-01"
_VARIANTS = {"pure": "Pure DP", "approximate": "Approximate DP", "zcdp": "Zero-concentrated DP"}
# What the registry calls a unit, and which logs are adjacent.
_UNITS = {
    "event": ("Event-level", "one of them has one occurrence of one item more"),
    "item-per": ("Item-level within {} steps", "they differ in what one item does within some {} consecutive steps"),
    "item-add-remove": ("Item-level (presence)", "one of them has one item more, with all of its occurrences"),
    "item": ("Item-level", "they differ in what one item does"),
}


@dataclass(frozen=True)
class _Field:
    """A field of the schema: what the release says, of which kind it is, and the request where it is required."""

    known: str | Callable[[Metadata], Any] = ""
    kind: Kind = PROSE
    request: str = ""

    def value(self, metadata: Metadata, said: Any) -> Any:
        """What the release and its publisher say; None if neither does."""
        known = self.known if isinstance(self.known, str) else self.known(metadata)
        if self.kind == PROSE and known and said:
            return f"{known}\n\n{said}"
        return said or known or None

    def asked(self) -> Any:
        """The request, as a value of the field."""
        if self.kind == DAY:
            return _SOME_DAY
        return [_REQUEST + self.request] if self.kind == NAMES else _REQUEST + self.request


def registry_entry(metadata: Metadata, about: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """An entry of the registry, and the fields in it that still ask to be filled in.

    Args:
        metadata: what a release or a stream says of itself.
        about: what its publisher says, by the names of the schema's fields.

    Raises:
        InputError: a field is unknown, is the release's own to say, or has a value that the schema does not take.
    """
    said = dict(_checked(about))
    deployment: dict[str, dict[str, Any]] = {}
    requests: list[str] = []
    for section, fields in _FIELDS.items():
        if section == _BY_THE_PUBLISHER and not said.keys() & fields.keys():
            continue
        values = {name: field.value(metadata, said.get(name)) for name, field in fields.items()}
        asked = {name: field.asked() for name, field in fields.items() if field.request and values[name] is None}
        requests += asked
        deployment[section] = {name: value for name, value in (values | asked).items() if value is not None}
    entry = {"url_slug": _slug(deployment["basic"]), "status": "Draft", "tier": 3, "deployment": deployment}
    return entry, requests


def _checked(about: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What the publisher says, each value of the kind of its field; prose without blanks around it."""
    fields = {name: field for section in _FIELDS.values() for name, field in section.items()}
    own = [name for name, field in fields.items() if field.kind != GIVEN]
    for name, value in about.items():
        if name not in fields:
            raise InputError(f"the registry has no field {name!r}{near(name, own)}; yours to say are {', '.join(own)}")
        kind = fields[name].kind
        if kind == GIVEN:
            raise InputError(f"{name} is what the release says of itself: leave it out of the file")
        plain = value.isoformat() if type(value) is date else value
        if not _is_of(plain, kind):
            wanted = kind if isinstance(kind, str) else f"one of {', '.join(kind)}"
            raise InputError(f"{name} is {plain!r}, where {wanted} is expected; leave it out if nobody knows it")
        yield name, plain.strip() if kind == PROSE else plain


def _is_of(value: Any, kind: Kind) -> bool:
    if kind == NAMES:
        return isinstance(value, list) and bool(value) and all(_is_of(one, PROSE) for one in value)
    if not isinstance(value, str) or not value.strip():
        return False
    if kind == DAY:
        with suppress(ValueError):
            return date.fromisoformat(value).isoformat() == value
        return False
    return kind == PROSE or value in kind


def _slug(basic: Mapping[str, Any]) -> str:
    """The name of an entry's page, which the registry derives from these three fields."""
    parts = (basic["name"], "-".join(basic["data_curators"]), basic["publication_date"].split("-")[0])
    return "-".join(re.sub(r"\W+", "-", part.lower()) for part in parts).replace("_", "-")


def _unit(metadata: Metadata) -> str:
    name, _, steps = str(metadata["unit"]["name"]).partition(":")
    return _UNITS[name][0].format(steps)


def _neighbours(metadata: Metadata) -> str:
    name, _, steps = str(metadata["unit"]["name"]).partition(":")
    return f"Two logs are adjacent if {_UNITS[name][1].format(steps)}. {metadata['guarantee']}"


def _parameters(metadata: Metadata) -> dict[str, float]:
    return {name: value for name, value in metadata["budget"].items() if name != "kind"}


def _of_kind(release: str, stream: str) -> Callable[[Metadata], str]:
    """One of two texts: of a release, or of a stream."""
    return lambda metadata: stream if facts.is_stream(metadata) else release


def _domain(metadata: Metadata) -> str:
    condition = " Every step holds at most one event over all items." if metadata["singleton"] else ""
    return f"Logs of events, each an item (such as a person or a device) and a time, any number of each.{condition}"


def _source(metadata: Metadata) -> str:
    timeline = metadata["timeline"]
    if "end" in timeline:
        return f"The events from {timeline['start']} to {timeline['end']} (not included) in one log."
    horizon = f" for {metadata['horizon']} steps" if metadata.get("horizon") else ""
    return (
        f"New events are counted at the end of every step of {timeline['step']} from {timeline['start']} on{horizon}."
    )


def _steps_taken(metadata: Metadata) -> str:
    rule = "".join(f" {name.replace('_', ' ')}: {value}." for name, value in (metadata.get("counting") or {}).items())
    return (
        "Rows without an item or a time, with a count below 1 or outside of the public range are ignored, row by row. "
        f"No data were read to choose strategies and their parameters.{rule and ' Rule of counting:'}{rule}"
    )


def _mechanisms(metadata: Metadata) -> str:
    points = (
        *(facts.mechanism(row) for row in facts.measurements_of(metadata)),
        "The sensitivity is derived from the integers that are applied; each bound has a proof, named above.",
        f"Floating point: protected values are integers, and their noise is drawn by {facts.samplers(metadata)}.",
        "Timing and failures are not protected: they are for the operator alone.",
        f"Versions: {facts.versions(metadata)}.",
        f"Identifier: {metadata.get('release_id') or metadata.get('state_id')}.",
    )
    return "\n".join(f"- {point}" for point in points)


def _reasons(metadata: Metadata) -> str:
    strategy = metadata["strategy"]
    chosen = (
        f"Each has the least forecast error ({metadata['criterion']}) of those with a proof, or a millionth more."
        if strategy == "auto"
        else f"The strategy {strategy} was asked for."
    )
    return f"Strategies: {chosen} {facts.errors(metadata)}"


_SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")
_BY_THE_PUBLISHER = "administrative"
_FIELDS: dict[str, dict[str, _Field]] = {
    "basic": {
        "name": _Field(request="the name of the data product"),
        "data_curators": _Field(kind=NAMES, request="who publishes it"),
        "intended_use": _Field(request="what it is meant to be used for"),
        "data_product_type": _Field("Summary statistics", GIVEN),
        "data_product_region": _Field(request="the region that the data describe"),
        "description": _Field(facts.asked),
        "publication_date": _Field(
            lambda metadata: str(metadata.get("released_at") or "")[:10], DAY, "when it was first published"
        ),
        "data_product_sector": _Field(kind=_SECTORS),
    },
    "dp_variant": {
        "variant_name": _Field(lambda metadata: _VARIANTS[metadata["budget"]["kind"]], GIVEN),
        "data_domain": _Field(_domain),
        "unprotected_quantities": _Field(facts.public_facts),
    },
    "privacy_loss": {
        "privacy_unit": _Field(_unit, GIVEN),
        "privacy_unit_details": _Field(_neighbours),
        "privacy_parameters": _Field(_parameters, GIVEN),
        "privacy_parameters_details": _Field(
            lambda metadata: f"For all numbers together. Shares of the budget: {facts.shares(metadata)}"
        ),
    },
    "deployment_model": {
        "model_name": _Field("Central", GIVEN),
        "model_name_details": _Field("Noise is added to exact counts before anything is published."),
        "actors": _Field(
            "Whoever runs dpwindows sees the log and is trusted with it. Readers of what is published need not "
            "be trusted, whatever else they know and whomever they work with."
        ),
        "release_type": _Field(_of_kind("One release", "Many releases"), ("One release", "Many releases")),
        "release_type_details": _Field(
            _of_kind(
                "One table of numbers, drawn once.",
                "The numbers of a step are published once, when it is over. One budget is spent for the whole life of "
                "the stream and is never refreshed.",
            )
        ),
        "data_source_type": _Field(_of_kind("Static", "Dynamic"), ("Static", "Dynamic")),
        "data_source_type_details": _Field(_source),
        "access_type": _Field("Non-interactive", GIVEN),
        "access_type_details": _Field("All questions were fixed before the data were read."),
    },
    "accounting": {
        "post_processing": _Field(lambda metadata: facts.post_processing()),
        "composition": _Field(facts.composition),
    },
    "implementation": {
        "preprocessing_and_hyperparameter_tuning": _Field(_steps_taken),
        "mechanisms": _Field(_mechanisms),
        "justification": _Field(_reasons),
    },
    _BY_THE_PUBLISHER: {
        "sources": _Field(),
        "notes": _Field(),
        "registry_authors": _Field(kind=NAMES, request="who wrote this entry"),
    },
}
