"""A statement for the file of a privacy officer: what a release or a stream promises, question by question.

The questions are those that NIST SP 800-226, "Guidelines for Evaluating Differential Privacy Guarantees" (2025), tells
to ask of any such claim: the guarantee itself and its unit, how it adds up, how useful the numbers are, how it is
implemented, against whom it holds, and what it leaves to those who run it. Each answer is taken from the metadata;
where the software cannot know, the statement says that the question is open, and who has to answer it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from dpwindows.report import facts
from dpwindows.report.html import document
from dpwindows.report.words import TO_QUOTE, plain

OPEN = "To be answered by whoever runs this: "
_BIAS = "No, but for the bound that is published beside each number as bias_bound; it is 0 where nothing is said."


def statement_html(metadata: Mapping[str, Any]) -> str:
    """The statement as one HTML page that loads nothing."""
    parts = [f"<header><h1>{escape(_title(metadata))}</h1><p class='lede'>{escape(_preface(metadata))}</p></header>"]
    for section, answers in _sections(metadata):
        rows = "".join(f"<h3>{escape(question)}</h3><p>{escape(answer)}</p>" for question, answer in answers.items())
        parts.append(f"<section><h2>{escape(section)}</h2>{rows}</section>")
    return document(_title(metadata), "".join(parts))


def statement_markdown(metadata: Mapping[str, Any]) -> str:
    """The statement as Markdown."""
    lines = [f"# {_title(metadata)}", "", _preface(metadata), ""]
    for section, answers in _sections(metadata):
        lines += [f"## {section}", ""]
        for question, answer in answers.items():
            lines += [f"**{question}** {_plain_markdown(answer)}", ""]
    return "\n".join(lines)


def _sections(metadata: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, str]]]:
    unit = metadata["unit"]
    yield (
        "The guarantee",
        {
            "Which definition of differential privacy?": f"{facts.definition(metadata).capitalize()}.",
            "With which parameters?": (
                f"{facts.amounts(metadata)}, for everything {facts.what_it_is(metadata)} holds together."
            ),
            "What is the unit of privacy?": f"{unit['name']}. {unit['promise']}",
            "In full?": str(metadata["guarantee"]),
            "What is public, and so not protected?": facts.public_facts(metadata),
            "Does it rest on a promise about the data?": facts.assumption(metadata),
        },
    )
    yield (
        "How it adds up",
        {
            "How is the budget shared?": facts.shares(metadata),
            "What happens with more releases?": facts.composition(metadata),
            "What is done to the numbers after the noise?": facts.post_processing(),
        },
    )
    yield (
        "Utility",
        {
            "What is published?": facts.asked(metadata),
            "How exact is it?": facts.errors(metadata),
            "Which number is to be quoted?": TO_QUOTE,
            "Is it biased?": _BIAS,
            "Is the error uneven?": (
                "The noise does not depend on who or what is counted: where a count "
                "is small, the error is large beside it. The standard error stands beside every number."
            ),
        },
    )
    yield (
        "Implementation",
        {
            "By which mechanisms?": "; ".join(facts.mechanism(row) for row in facts.measurements_of(metadata)),
            "How is the sensitivity known?": (
                "It is derived by the trusted kernel from the integers it encodes; each "
                "bound has a proof, named above, beside its code, and tests enumerate neighbours."
            ),
            "What of floating-point numbers?": (
                "None touch protected values: counts are integers, strategies are "
                f"integer matrices, and noise is drawn by {facts.samplers(metadata)}. Floats begin after the noise."
            ),
            "What of side channels?": (
                "Progress, timing and failures are for the operator's screen only and are not "
                "protected: they must not be published."
            ),
            "How can it be checked?": (
                "'dpwindows audit' checks the claim without data: exact losses on worst-case "
                "neighbours, the noise itself, and a lower bound on epsilon from thousands of releases."
            ),
            "Which versions?": facts.versions(metadata),
        },
    )
    yield (
        "Trust and what is left to you",
        {
            "Whom must one trust?": (
                "Central model: whoever runs the software sees the log. Readers of what is "
                "published need not be trusted, whatever else they know."
            ),
            "Who may query it?": "Nobody queries the data: the questions were fixed before the data was read.",
            "How are the data collected, stored and deleted?": (
                f"{OPEN}differential privacy protects what is published and not the log itself."
            ),
            "Who can see the log, ledgers and stream states?": f"{OPEN}ledgers and states must be kept as the log is.",
            "Why this unit and these parameters?": (
                f"{OPEN}whether what one person does is within the unit, and whether the budget is apt."
            ),
        },
    )


def _title(metadata: Mapping[str, Any]) -> str:
    return f"Privacy statement of {'a stream' if facts.is_stream(metadata) else 'a release'}"


def _preface(metadata: Mapping[str, Any]) -> str:
    name = plain(metadata.get("release_id") or metadata.get("state_id"))
    when = f", released at {plain(metadata['released_at'])}" if metadata.get("released_at") else ""
    return (
        f"Identifier {name}{when}. The questions are those of NIST SP 800-226. The answers are taken from what "
        f"{facts.what_it_is(metadata)} says of itself; none depends on the data but through published numbers."
    )


def _plain_markdown(text: str) -> str:
    """Text that is not read as markup."""
    for mark in "\\`*_[]<>#|":
        text = text.replace(mark, f"\\{mark}")
    return text.replace("\n", " ")
