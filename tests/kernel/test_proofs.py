"""Every bound has a name, a proof and a line in the documentation."""

from __future__ import annotations

import re
from pathlib import Path

import dpwindows.kernel.measure  # noqa: F401  (imports every bound)
from dpwindows.kernel.proofs import PROOFS

PAGE = Path(__file__).parents[2] / "docs" / "proofs.md"


def test_every_bound_has_a_proof() -> None:
    for name, bound in PROOFS.items():
        assert re.fullmatch("[a-z]+(-[a-z]+)+", name)
        assert "Proof" in (bound.__doc__ or "") or "module docstring" in (bound.__doc__ or ""), name


def test_the_page_lists_every_proof_where_it_stands() -> None:
    listed = re.findall(
        r"^\| `([a-z-]+)` \| .* \| \[`(\w+)`\]\(\.\./src/(dpwindows/[\w/]+)\.py\) \|$", PAGE.read_text(), re.M
    )
    expected = {(name, bound.__name__, bound.__module__.replace(".", "/")) for name, bound in PROOFS.items()}
    assert set(listed) == expected
    assert len(listed) == len(expected)
