"""Writes the tables of `docs/proofs.md` from the rules: `python -m tests.kernel.rules_page`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dpwindows.kernel.measure
import dpwindows.strategies.paper  # noqa: F401  (both together import every bound)
from dpwindows.kernel.rules import PROOFS, RULES, Rule
from dpwindows.report.machine_checked import CORES

PAGE = Path(__file__).parents[2] / "docs" / "proofs.md"
UNITS = {"EventLevel": "event", "ItemPerPeriod": "item-per:L", "ItemLevel": "item", "ItemAddRemove": "item-add-remove"}
WINDOWS = {
    "Cumulative": "cumulative",
    "Rolling": "rolling",
    "RollingTogether": "rolling, several lengths",
    "AnyWindow": "any",
    "Tumbling": "tumbling",
    "ToDate": "to-date",
    "LostItems": "items that lost something",
}


def written(page: str) -> str:
    """The page with its two tables as the rules and the proofs are."""
    head, _, _ = page.partition("| proof | what it bounds |")
    return head + _proofs() + "\n" + _rules()


def _proofs() -> str:
    rows = ["| proof | what it bounds | where | machine-checked core |", "| --- | --- | --- | --- |"]
    for name, bound in sorted(PROOFS.items()):
        path = bound.__module__.replace(".", "/")
        rows.append(f"| `{name}` | {_first_sentence(bound)} | [`{bound.__name__}`](../src/{path}.py) | {_core(name)} |")
    return "\n".join(rows) + "\n"


def _core(proof: str) -> str:
    lemmas = [lemma.split(".") for lemma in CORES.get(proof, ())]
    return ", ".join(f"[`{theorem}`](../proofs/{theory}.v)" for theory, theorem in lemmas)


def _first_sentence(bound: Callable[..., Any]) -> str:
    paragraph = (bound.__doc__ or "").split("\n\n")[0]
    return " ".join(paragraph.split()).rstrip(".")


def _rules() -> str:
    rows = [
        "## Which proof covers which measurement",
        "",
        "A bound is charged only where a rule names the windows, the unit, the noise and the map, and its condition",
        "holds; the smallest one is charged. What no rule names is refused.",
        "",
        "| windows | unit | noise | map | if | proof |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    order = list(WINDOWS)
    listed = sorted(RULES, key=lambda one: (order.index(one.windows[0].__name__), one.proof))
    rows += ["| " + " | ".join(_cells(one)) + " |" for one in listed]
    return "\n".join(rows) + "\n"


def _cells(one: Rule) -> list[str]:
    return [
        ", ".join(WINDOWS[kind.__name__] for kind in one.windows),
        "all" if len(one.units) == len(UNITS) else ", ".join(UNITS[kind.__name__] for kind in one.units),
        ", ".join(law.removeprefix("discrete ") for law in one.laws),
        ", ".join(f"`{kind.__name__}`" for kind in one.measured),
        one.when,
        f"`{one.proof}`",
    ]


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
