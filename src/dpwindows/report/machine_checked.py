"""Which proofs have a core that a machine has checked: theorems of Rocq in the folder `proofs` of the project.

`docs/proofs.md` says what of each proof they are, and what of it they are not. They are checked by `make proofs`.
"""

from __future__ import annotations

CORES: dict[str, tuple[str, ...]] = {
    "any-gaps-squares": ("Potentials.cuts_bounded", "Checks.gaps_checked"),
    "cumulative-filter-event": ("Neighbours.cumulative_counts_change_on_an_interval", "Filters.runs_cost"),
    # An item that is added or removed has a checker too, which says nothing of one that changes.
    "rolling-chains-item": ("Neighbours.runs_are_long", "Neighbours.few_starts_in_a_run"),
    "rolling-differences": ("Neighbours.rolling_counts_change_on_an_interval", "Checks.rolling_event_checked"),
    "rolling-filter": ("Neighbours.rolling_counts_change_on_an_interval", "Filters.runs_cost"),
    "rolling-patterns-event": ("Neighbours.rolling_counts_change_on_an_interval",),
    "rolling-patterns-period": ("Potentials.table_bounds_every_path",),
    "windows-on-lines": ("Lines.windows_on_lines", "Lines.items_on_lines"),
}
"""Each proof's name with its theorems, as `file.theorem`; a proof that is not here has none."""


def core(proof: str) -> str:
    """The theorems of a proof in words, empty if there are none."""
    return f", its core checked by Rocq ({', '.join(CORES[proof])})" if proof in CORES else ""
