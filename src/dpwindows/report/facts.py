"""The metadata of a release or a stream in sentences, for a privacy statement and for a registry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpwindows.errors import percent
from dpwindows.report.machine_checked import core
from dpwindows.report.words import confidence_of, each, figures_of, measure_text, plain

Metadata = Mapping[str, Any]
_DEFINITIONS = {
    "pure": "pure differential privacy",
    "approximate": "approximate differential privacy",
    "zcdp": "zero-concentrated differential privacy",
}


def is_stream(metadata: Metadata) -> bool:
    """Whether the metadata are those of a stream."""
    return "state_id" in metadata and "release_id" not in metadata


def what_it_is(metadata: Metadata) -> str:
    """What a sentence is about."""
    return "the stream" if is_stream(metadata) else "the release"


def definition(metadata: Metadata) -> str:
    """Which definition of differential privacy the budget is of."""
    kind = str(metadata["budget"]["kind"])
    return _DEFINITIONS.get(kind, kind)


def amounts(metadata: Metadata) -> str:
    """The parameters of the budget, such as `epsilon = 1, delta = 10⁻⁶`."""
    return ", ".join(f"{name} = {plain(value)}" for name, value in metadata["budget"].items() if name != "kind")


def asked(metadata: Metadata) -> str:
    """What is published, over which range and in which groups."""
    queries = "; ".join(
        f"{query['window']}: {', '.join(measure_text(one) for one in query['measures'])}"
        for query in metadata["queries"]
    )
    timeline = metadata["timeline"]
    until = f" to {timeline['end']} (not included)" if "end" in timeline else ""
    return (
        f"How many items are seen in time windows ({queries}), from {timeline['start']}{until} in steps of "
        f"{timeline['step']}, time zone {timeline['time_zone']}{_groups(metadata)}."
    )


def _groups(metadata: Metadata) -> str:
    groups = metadata.get("groups")
    if not groups:
        return ""
    columns = " x ".join(str(column["name"]) for column in groups["columns"])
    return f", for each {columns}{' and in total' if groups.get('totals') else ''}"


def public_facts(metadata: Metadata) -> str:
    """What is not protected, because it is public."""
    groups = " The names of the groups are public too." if metadata.get("groups") else ""
    return (
        "The range and length of steps, what is counted, the budget, the errors, the software and the time of release. "
        f"Facts that hold for many items together are what is published.{groups}"
    )


def assumption(metadata: Metadata) -> str:
    """The promise about the data that the guarantee rests on."""
    promises = []
    if metadata["singleton"]:
        promises.append("every step holds at most one event over all items")
    if metadata.get("exact_counts"):
        promises.append("the exact counts, which were handed over as a file, are those of a log by the query printed")
    if promises:
        return f"Yes: {'; and '.join(promises)}. It is not checked; where it fails, the claim may."
    return "On none but what the guarantee names in full; otherwise it holds for every log."


def shares(metadata: Metadata) -> str:
    """How the measurements share the budget."""
    rows = measurements_of(metadata)

    def counted(row: Metadata) -> str:
        """What tells the measurements of one window apart."""
        if all(one["thresholds"] == row["thresholds"] for one in rows if one["window"] == row["window"]):
            return ""
        return f" at least {', '.join(map(str, row['thresholds']))}" if row["thresholds"] else " occurrences"

    shared = (
        f"{row['window']}{counted(row)}{each(row.get('groups') or {})}: {percent(float(row['budget_share']))}"
        for row in rows
    )
    return ", ".join(shared) + "."


def measurements_of(metadata: Metadata) -> list[Metadata]:
    """What each measurement says of itself, and what that of the items that lost something by a bound does."""
    loss = metadata.get("loss")
    return [*metadata["measurements"], *([] if loss is None else [{**loss, "window": loss["of"]}])]


def composition(metadata: Metadata) -> str:
    """What happens with several releases."""
    return (
        f"Everything {what_it_is(metadata)} holds is covered together. Whatever else is released about the same log "
        "spends further budget; a ledger of dpwindows keeps one total for a dataset and refuses what does not fit."
    )


def post_processing() -> str:
    """What is done to the numbers after the noise."""
    return (
        "Decoding, intervals and tables made consistent are computed from the noisy numbers alone, which spends "
        "nothing further."
    )


def errors(metadata: Metadata) -> str:
    """The standard errors, as they were forecast."""
    rows = [
        f"{row['window']}, {measure_text(row)}{each(row)}: typically {figures_of(row['rms'])} and at most "
        f"{figures_of(row['max'])} counts"
        for row in metadata["forecast"]
    ]
    return (
        f"Standard errors, known beforehand: {'; '.join(rows)}. Every number has a "
        f"{percent(confidence_of(metadata), 6)} interval of its own."
    )


def versions(metadata: Metadata) -> str:
    """The format of the release, and the versions of what made it."""
    return ", ".join([f"release format {metadata['format']}", *(" ".join(one) for one in metadata["versions"].items())])


def samplers(metadata: Metadata) -> str:
    """What drew the noise."""
    laws = {row["noise"]["law"] for row in measurements_of(metadata)}
    own = "an exact sampler of dpwindows for all numbers at once" if laws & {"discrete cube", "discrete range"} else ""
    name = "OpenDP" if metadata["noise"] == "opendp" else "dpwindows"
    other = f"an exact sampler of {name}" if laws - {"discrete cube", "discrete range"} else ""
    return " and ".join(filter(None, (other, own)))


def mechanism(row: Metadata) -> str:
    """How one measurement was made: strategy, noise, sensitivity and its proof."""
    noise, sensitivity = row["noise"], row["sensitivity"]
    together = f" (as one with {', '.join(row['together'])})" if row.get("together") else ""
    return (
        f"{row['window']}{each(row.get('groups') or {})} by {row['strategy']}{together} with "
        f"{noise['law']} noise of scale {plain(noise['scale'])} at {sensitivity['norm']} sensitivity "
        f"{plain(sensitivity['value'])} ({noise['unit']}), proof {sensitivity['proof']} in {sensitivity['proved_in']}"
        f"{core(sensitivity['proof'])}"
    )
