"""Every bound has a name, a proof and a line in the documentation."""

from __future__ import annotations

import inspect
import re

import pytest

from dpwindows.kernel.rules import PROOFS, RULES, proves
from tests.kernel.rules_page import PAGE, written


def test_every_bound_has_a_proof() -> None:
    for name, bound in PROOFS.items():
        assert re.fullmatch("[a-z]+(-[a-z]+)+", name)
        assert "Proof" in (bound.__doc__ or "") or "module docstring" in (bound.__doc__ or ""), name


def test_the_page_lists_every_proof_and_every_rule() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == written(page)


def test_every_rule_rests_on_the_proof_that_it_names() -> None:
    """It is that bound, or calls it."""
    for one in RULES:
        proof = PROOFS[one.proof]
        assert one.bound is proof or proof.__name__ in inspect.getsource(one.bound)


def test_no_two_bounds_share_a_name() -> None:
    name, bound = next(iter(PROOFS.items()))
    with pytest.raises(ValueError, match=f"two bounds were given the name {name!r}"):
        proves(name)(lambda: 0)
    assert PROOFS[name] is bound
