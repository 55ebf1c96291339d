"""Every bound has a name, a proof and a line in the documentation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import dpwindows.kernel.measure
import dpwindows.strategies.paper  # noqa: F401  (both together import every bound)
from dpwindows.kernel.proofs import PROOFS, proves

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


def test_no_two_bounds_share_a_name() -> None:
    name, bound = next(iter(PROOFS.items()))
    with pytest.raises(ValueError, match=f"two bounds were given the name {name!r}"):
        proves(name)(lambda: 0)
    assert PROOFS[name] is bound
