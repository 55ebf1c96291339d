"""Audits: what a plan's mechanism really gives away about a neighbour, against what it claims.

Five audits that share nothing with the proofs:

- `audit_exactly` reads the integers a plan applies off its own `encode`, compares neighbouring logs (every pair of them
  where these are few, a search for bad ones otherwise), and works out the privacy loss of the worst pair in exact or
  ball arithmetic. It knows no bound of `dpwindows.kernel.families.runs`. It believes that noise is drawn as
  stated.
- `audit_noise` measures logs through the kernel again and again, takes the exact integers away, and tests what is left
  against the stated law and scale, and for anything that two draws have in common. The sampler by itself is tested with
  the package.
- `audit_encoding` has large logs encoded, and checks that it is by the same matrix.
- `audit_replay` releases neighbours under one recorded noise, and checks that nothing else differs.
- `audit_black_box` releases the worst pair found thousands of times and turns how well the two can be told apart into
  a lower bound on epsilon that holds with a stated confidence. It knows nothing but the numbers released.

The first finds a wrong sensitivity, scale or share; the second a wrong law, scale or reused noise; the third and
the fourth find what depends on the data; the last anything else between the log and the released number that is large
enough to show. `docs/audit.md` says what each can see and what none of them can.
"""

from __future__ import annotations

from dpwindows.audit.black_box import BlackBoxAudit, audit_black_box
from dpwindows.audit.encoding import EncodingAudit, audit_encoding
from dpwindows.audit.exact import ExactAudit, audit_exactly, audit_measurements
from dpwindows.audit.neighbours import Pair
from dpwindows.audit.noise import NoiseAudit, audit_noise
from dpwindows.audit.replay import ReplayAudit, audit_replay

__all__ = [
    "BlackBoxAudit",
    "EncodingAudit",
    "ExactAudit",
    "NoiseAudit",
    "Pair",
    "ReplayAudit",
    "audit_black_box",
    "audit_encoding",
    "audit_exactly",
    "audit_measurements",
    "audit_noise",
    "audit_replay",
]
