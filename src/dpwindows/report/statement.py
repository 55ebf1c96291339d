"""A statement for the file of a privacy officer: what a release or a stream promises, question by question.

The questions are those that NIST SP 800-226, "Guidelines for Evaluating Differential Privacy Guarantees" (2025), tells
to ask of any such claim: the guarantee itself and its unit, how it adds up, how useful the numbers are, how it is
implemented, against whom it holds, and what it leaves to those who run it. Each answer is taken from the metadata;
what the software cannot know is said to be open, and by whom it is to be answered. `registry_entry` says the same in
the fields of the Differential Privacy Deployments Registry.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from dpwindows.report.html import document
from dpwindows.report.words import each, figures_of, plain

Answered = tuple[str, str]
OPEN = "To be answered by whoever runs this: "
_KINDS = {
    "pure": "pure differential privacy",
    "approximate": "approximate differential privacy",
    "zcdp": "zero-concentrated differential privacy",
}


def statement_html(metadata: Mapping[str, Any]) -> str:
    """The statement as one HTML page that loads nothing."""
    parts = [f"<header><h1>{escape(_title(metadata))}</h1><p class='lede'>{escape(_preface(metadata))}</p></header>"]
    for section, answers in _sections(metadata):
        rows = "".join(f"<h3>{escape(question)}</h3><p>{escape(answer)}</p>" for question, answer in answers)
        parts.append(f"<section><h2>{escape(section)}</h2>{rows}</section>")
    return document(_title(metadata), "".join(parts))


def statement_markdown(metadata: Mapping[str, Any]) -> str:
    """The statement as Markdown."""
    lines = [f"# {_title(metadata)}", "", _preface(metadata), ""]
    for section, answers in _sections(metadata):
        lines += [f"## {section}", ""]
        for question, answer in answers:
            lines += [f"**{question}** {_plain_markdown(answer)}", ""]
    return "\n".join(lines)


def registry_entry(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """An entry for the Differential Privacy Deployments Registry, with what its three tiers ask for.

    Fields that only whoever deploys it knows are null.
    """
    budget = {key: value for key, value in (metadata.get("budget") or {}).items() if key != "kind"}
    timeline = metadata.get("timeline") or {}
    return {
        "tier": 3,
        "deployment": {
            "name": None,
            "data_curator": None,
            "intended_use": None,
            "data_product_type": _product(metadata),
            "description": _asked(metadata),
            "publication_date": str(metadata.get("released_at") or "")[:10] or None,
            "status": "stream" if _is_stream(metadata) else "single release",
        },
        "guarantee": {
            "flavor": _kind(metadata),
            "privacy_loss_parameters": budget,
            "privacy_unit": (metadata.get("unit") or {}).get("name"),
            "privacy_unit_description": (metadata.get("unit") or {}).get("promise"),
            "data_domain": "event logs of (item, time); times in a public range, items of any kind",
            "unprotected_quantities": _public(metadata),
            "model": "central",
        },
        "accounting": {
            "composition": _composition(metadata),
            "post_processing": _after(),
            "time_range": {key: timeline.get(key) for key in ("start", "end", "step", "time_zone")},
        },
        "implementation": {
            "software": metadata.get("versions") or {},
            "mechanisms": [_mechanism(row) for row in _measured(metadata)],
            "noise_sampler": "OpenDP, exact on integers",
            "release_id": metadata.get("release_id") or metadata.get("state_id"),
            "rationale": None,
        },
    }


def _sections(metadata: Mapping[str, Any]) -> Iterator[tuple[str, list[Answered]]]:
    unit = metadata.get("unit") or {}
    yield (
        "The guarantee",
        [
            ("Which definition of differential privacy?", f"{_kind(metadata).capitalize()}."),
            ("With which parameters?", f"{_amounts(metadata)}, for everything {_what(metadata)} holds together."),
            ("What is the unit of privacy?", f"{unit.get('name', '')}. {unit.get('promise', '')}"),
            ("In full?", str(metadata.get("guarantee") or "")),
            ("What is public, and so not protected?", _public(metadata)),
            ("Does it rest on a promise about the data?", _assumed(metadata)),
        ],
    )
    yield (
        "How it adds up",
        [
            ("How is the budget shared?", _shares(metadata)),
            ("What happens with more releases?", _composition(metadata)),
            ("What is done to the numbers after the noise?", _after()),
        ],
    )
    yield (
        "Utility",
        [
            ("What is published?", _asked(metadata)),
            ("How exact is it?", _exactness(metadata)),
            ("Is it biased?", _bias(metadata)),
            (
                "Is the error uneven?",
                "The noise does not depend on who or what is counted: where a count "
                "is small, the error is large beside it. The standard error stands beside every number.",
            ),
        ],
    )
    yield (
        "Implementation",
        [
            (
                "By which mechanisms?",
                "; ".join(_mechanism(row)["summary"] for row in _measured(metadata)),
            ),
            (
                "How is the sensitivity known?",
                "It is derived by the trusted kernel from the integers it encodes; each "
                "bound has a proof, named above, beside its code, and tests enumerate neighbours.",
            ),
            (
                "What of floating-point numbers?",
                "None touch protected values: counts are integers, strategies are "
                "integer matrices, and noise is drawn by an exact sampler. Floats begin after the noise.",
            ),
            (
                "What of side channels?",
                "Progress, timing and failures are for the operator's screen only and are not "
                "protected: they must not be published.",
            ),
            (
                "How can it be checked?",
                "'dpwindows audit' checks the claim without data: exact losses on worst-case "
                "neighbours, the noise itself, and a lower bound on epsilon from thousands of releases.",
            ),
            (
                "Which versions?",
                ", ".join(f"{name} {version}" for name, version in (metadata.get("versions") or {}).items()),
            ),
        ],
    )
    yield (
        "Trust and what is left to you",
        [
            (
                "Whom must one trust?",
                "Central model: whoever runs the software sees the log. Readers of what is "
                "published need not be trusted, whatever else they know.",
            ),
            ("Who may query it?", "Nobody queries the data: the questions were fixed before the data was read."),
            (
                "How are the data collected, stored and deleted?",
                f"{OPEN}differential privacy protects what is published and not the log itself.",
            ),
            (
                "Who can see the log, ledgers and stream states?",
                f"{OPEN}ledgers and states must be kept as the log is.",
            ),
            (
                "Why this unit and these parameters?",
                f"{OPEN}whether what one person does is within the unit, and whether the budget is apt.",
            ),
        ],
    )


def _is_stream(metadata: Mapping[str, Any]) -> bool:
    return "state_id" in metadata and "release_id" not in metadata


def _what(metadata: Mapping[str, Any]) -> str:
    return "the stream" if _is_stream(metadata) else "the release"


def _title(metadata: Mapping[str, Any]) -> str:
    return f"Privacy statement of {'a stream' if _is_stream(metadata) else 'a release'}"


def _preface(metadata: Mapping[str, Any]) -> str:
    name = plain(metadata.get("release_id") or metadata.get("state_id"))
    when = f", released at {plain(metadata['released_at'])}" if metadata.get("released_at") else ""
    return (
        f"Identifier {name}{when}. The questions are those of NIST SP 800-226. The answers are taken from what "
        f"{_what(metadata)} says of itself; none depends on the data but through published numbers."
    )


def _kind(metadata: Mapping[str, Any]) -> str:
    kind = str((metadata.get("budget") or {}).get("kind") or "")
    return _KINDS.get(kind, kind)


def _amounts(metadata: Mapping[str, Any]) -> str:
    budget = metadata.get("budget") or {}
    return ", ".join(f"{name} = {plain(value)}" for name, value in budget.items() if name != "kind")


def _asked(metadata: Mapping[str, Any]) -> str:
    queries = "; ".join(
        f"{query['window']}: {', '.join(_measure(one) for one in query['measures'])}"
        for query in metadata.get("queries") or []
    )
    timeline = metadata.get("timeline") or {}
    until = f" to {timeline['end']} (not included)" if timeline.get("end") is not None else ""
    return (
        f"How many items are seen in time windows ({queries}), from {timeline.get('start')}{until} in steps of "
        f"{timeline.get('step')}, time zone {timeline.get('time_zone')}."
    )


def _measure(one: Mapping[str, Any]) -> str:
    return f"{str(one['measure']).replace('_', ' ')} {one['k']}"


def _product(metadata: Mapping[str, Any]) -> str:
    return "statistics released continually" if _is_stream(metadata) else "table of statistics"


def _public(metadata: Mapping[str, Any]) -> str:
    groups = " The names of the groups are public too." if metadata.get("groups") or metadata.get("by") else ""
    return (
        "The range and length of steps, what is counted, the budget, the errors, the software and the time of release. "
        f"Facts that hold for many items together are what is published.{groups}"
    )


def _assumed(metadata: Mapping[str, Any]) -> str:
    if metadata.get("singleton"):
        return (
            "Yes: every step holds at most one event over all items. It is not checked; where it fails, the claim may."
        )
    return "On none but what the guarantee names in full; otherwise it holds for every log."


def _shares(metadata: Mapping[str, Any]) -> str:
    rows = [f"{row.get('window')}: {100 * float(row.get('budget_share') or 0):.3g}%" for row in _measured(metadata)]
    return ", ".join(rows) + "."


def _measured(metadata: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What each measurement says of itself, and what that of the items that lost something by a bound does."""
    loss = metadata.get("loss")
    return [*(metadata.get("measurements") or []), *([] if loss is None else [{**loss, "window": loss.get("of")}])]


def _composition(metadata: Mapping[str, Any]) -> str:
    return (
        f"Everything {_what(metadata)} holds is covered together. Whatever else is released about the same log spends "
        "further budget; a ledger of dpwindows keeps one total for a dataset and refuses what does not fit."
    )


def _after() -> str:
    return (
        "Decoding, intervals and tables made consistent are computed from the noisy numbers alone, which spends "
        "nothing further."
    )


def _exactness(metadata: Mapping[str, Any]) -> str:
    rows = [
        f"{row['window']}, {_measure(row)}{each(row)}: typically {figures_of(row.get('rms'))} and at most "
        f"{figures_of(row.get('max'))} counts"
        for row in metadata.get("forecast") or []
    ]
    confidence = 100 * float(metadata.get("confidence") or 0.95)
    return (
        f"Standard errors, known beforehand: {'; '.join(rows)}. Every number has a {confidence:g}% interval of its own."
    )


def _bias(metadata: Mapping[str, Any]) -> str:
    return "No, but for the bound that is published beside each number as bias_bound; it is 0 where nothing is said."


def _mechanism(row: Mapping[str, Any]) -> dict[str, Any]:
    noise, sensitivity = row.get("noise") or {}, row.get("sensitivity") or {}
    together = f" (as one with {', '.join(row['together'])})" if row.get("together") else ""
    summary = (
        f"{row.get('window')} by {row.get('strategy')}{together} with {noise.get('law')} noise of scale "
        f"{plain(noise.get('scale'))} at {sensitivity.get('norm')} sensitivity "
        f"{plain(sensitivity.get('value'))} ({noise.get('unit')}), proof "
        f"{sensitivity.get('proof')}"
    )
    return {
        "window": row.get("window"),
        "strategy": row.get("strategy"),
        "noise": dict(noise),
        "sensitivity": dict(sensitivity),
        "budget_share": row.get("budget_share"),
        "summary": summary,
    }


def _plain_markdown(text: str) -> str:
    """Text that is not read as markup."""
    for mark in "\\`*_[]<>#|":
        text = text.replace(mark, f"\\{mark}")
    return text.replace("\n", " ")
