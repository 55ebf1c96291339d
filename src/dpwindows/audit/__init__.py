"""Audits: what a plan's mechanism really gives away about a neighbour, against what it claims.

Two audits that share nothing with the proofs:

- `audit_exactly` reads the integers a plan applies off its own `encode`, compares neighbouring logs (every pair of them
  where these are few, a search for bad ones otherwise), and works out the privacy loss of the worst pair in exact or
  ball arithmetic. It knows no bound of `dpwindows.kernel.bounds.sensitivity`.
- `audit_black_box` releases the worst pair found thousands of times and turns how well the two can be told apart into
  a lower bound on epsilon that holds with a stated confidence. It knows nothing but the numbers released.

The first finds a wrong sensitivity, scale or share; the second a wrong sampler, reused noise, or anything else between
the log and the released number.
"""

from __future__ import annotations

from dpwindows.audit.black_box import BlackBoxAudit, audit_black_box
from dpwindows.audit.exact import ExactAudit, audit_exactly, audit_measurements
from dpwindows.audit.neighbours import Pair

__all__ = ["BlackBoxAudit", "ExactAudit", "Pair", "audit_black_box", "audit_exactly", "audit_measurements"]
