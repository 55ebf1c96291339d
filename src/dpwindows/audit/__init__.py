"""Audits: what a plan's mechanism really gives away about a neighbour, against what it claims.

Five audits that share nothing with the proofs, a file each. `audit_exactly` finds a wrong sensitivity, scale or share;
`audit_noise` a wrong law, scale or reused noise; `audit_encoding` and `audit_replay` what depends on the data;
`audit_black_box` anything else between the log and the released number that is large enough to show. `attack_bounds`
looks for neighbours beyond a bound for as long as it is given. `docs/audit.md` says what each can see and what none of
them can.
"""

from __future__ import annotations

from dpwindows.audit.attack import Attack, Attacked, attack_bounds
from dpwindows.audit.black_box import BlackBoxAudit, audit_black_box
from dpwindows.audit.encoding import EncodingAudit, audit_encoding
from dpwindows.audit.exact import ExactAudit, audit_exactly, audit_measurements
from dpwindows.audit.neighbours import Pair
from dpwindows.audit.noise import NoiseAudit, audit_noise
from dpwindows.audit.replay import ReplayAudit, audit_replay

__all__ = [
    "Attack",
    "Attacked",
    "BlackBoxAudit",
    "EncodingAudit",
    "ExactAudit",
    "NoiseAudit",
    "Pair",
    "ReplayAudit",
    "attack_bounds",
    "audit_black_box",
    "audit_encoding",
    "audit_exactly",
    "audit_measurements",
    "audit_noise",
    "audit_replay",
]
