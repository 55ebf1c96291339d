"""Questions that a bound asks about its free choices: prices, how much is remembered, which distances are near.

Such a bound holds for every legal choice, and a good choice makes it small. So the search for good choices stays
outside the kernel: a bound asks, nobody trusts the answer, and an answer is whole numbers within limits that the bound
names. A design carries the answers found for it as its witness, and its certificate looks them up.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

Witness = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Question:
    """What one bound asks for one threshold.

    Attributes:
        kind: the bound's name, and what of it is asked for.
        k: the threshold; of several that are asked for as one, the largest.
        about: all that a search for a good answer needs.
        apart: what tells it from another question of this kind, where one certificate asks two.
    """

    kind: str
    k: int
    about: tuple[Hashable, ...]
    apart: str = ""

    @property
    def key(self) -> str:
        """The key of the answer in a witness: no design asks two questions by one key."""
        return f"{self.kind}/{self.k}" + (f"/{self.apart}" if self.apart else "")


Advise = Callable[[Question], tuple[int, ...]]
"""Answers a question with whole numbers, or with none where it knows no answer."""


def from_witness(witness: Witness) -> Advise:
    """Look answers up."""
    return lambda question: witness.get(question.key, ())


def ask(advise: Advise, question: Question, limits: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    """One whole number for each of some limits, from the lowest to the highest that is legal.

    Where nobody knows an answer it is the lowest of each.

    Raises:
        ValueError: the answer is something else.
    """
    answer = advise(question) or tuple(low for low, _ in limits)
    whole = type(answer) is tuple and len(answer) == len(limits) and all(type(number) is int for number in answer)
    if not whole or not all(low <= number <= high for number, (low, high) in zip(answer, limits, strict=True)):
        raise ValueError(f"{answer} is no answer to {question.key!r}: asked were whole numbers within {limits}")
    return answer
