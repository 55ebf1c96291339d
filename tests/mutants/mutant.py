"""A planted bug: one exact change of one source file, and the ordinary test that must notice it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """A change of the source, what it breaks, and the one test that must fail for it.

    Attributes:
        breaks: what users would lose, in a sentence that no other has.
        file: the source file, below the package.
        before: a piece of that file, which must occur once. When the source moves on, the mutant must move with it.
        after: what takes its place.
        test: as for pytest; all cases of a test where none is named.
    """

    breaks: str
    file: str
    before: str
    after: str
    test: str

    def __str__(self) -> str:
        return self.breaks

    def apply(self, source: str) -> str:
        """The source with the change made.

        Raises:
            AssertionError: the source has changed, so that the mutant must be changed with it.
        """
        found = source.count(self.before)
        assert found == 1, f"{self.file} holds what the mutant {self.breaks!r} changes {found} times: change the mutant"
        return source.replace(self.before, self.after)
