"""Families of measurements, each with its shape, maps, bounds, proofs and rules.

All are imported with any of them: a certificate is the smallest bound of all rules that apply.
"""

from dpwindows.kernel.families import (
    blocks,
    counted_by_rule,
    crossed,
    gaps,
    grouped_steps,
    joint,
    lines,
    nested,
    offset_patterns,
    patterns,
    periods,
    rectangles,
    runs,
    starts,
    thresholds,
    together,
)
from dpwindows.kernel.families.series import series

__all__ = [
    "blocks",
    "counted_by_rule",
    "crossed",
    "gaps",
    "grouped_steps",
    "joint",
    "lines",
    "nested",
    "offset_patterns",
    "patterns",
    "periods",
    "rectangles",
    "runs",
    "series",
    "starts",
    "thresholds",
    "together",
]
