"""The form that audits of behaviour give what they found."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What was not as it must be: none of it, or `faults`."""

    WORDS: ClassVar[tuple[str, str]]
    faults: tuple[Any, ...]

    @property
    def verdict(self) -> str:
        """The first of the words without faults, else the second."""
        return self.WORDS[bool(self.faults)]

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, ready for JSON."""
        return {**asdict(self), "verdict": self.verdict}
