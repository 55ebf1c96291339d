"""What a rule of counting leaves of histories: written from the definition, apart from the engines that enforce it."""

from __future__ import annotations

import numpy as np

from dpwindows.ask.counting_rule import CountingRule
from dpwindows.audit.neighbours import Ints


def counted(rule: CountingRule, histories: Ints) -> Ints:
    """The occurrences that count, by step; shape (..., T)."""
    return np.minimum(histories, 1) if rule.distinct_steps else histories
