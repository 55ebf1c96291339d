"""Answers to what a bound asks: legal ones are taken, others refused, and no answer is the lowest that is legal."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpwindows.kernel.advice import Question, ask, from_witness

QUESTION = Question("some-bound", 2, ())
LIMITS = [(1, 5), (-3, 0)]


def test_answers_are_looked_up_by_the_questions_key() -> None:
    advise = from_witness({"some-bound/2": (5, -3), "some-bound/3": (2, 0)})
    assert ask(advise, QUESTION, LIMITS) == (5, -3)


def test_two_questions_of_one_kind_are_told_apart() -> None:
    advise = from_witness({"some-bound/2": (5, -3), "some-bound/2/again": (2, 0)})
    assert ask(advise, QUESTION, LIMITS) == (5, -3)
    assert ask(advise, replace(QUESTION, apart="again"), LIMITS) == (2, 0)


def test_where_nobody_knows_an_answer_it_is_the_lowest() -> None:
    assert ask(from_witness({"some-bound/1": (5, -3)}), QUESTION, LIMITS) == (1, -3)


@pytest.mark.parametrize(
    "answer", [(0, 0), (6, 0), (1, -4), (1, 1), (1,), (1, 0, 0), (1.0, 0), (True, 0), (np.int64(1), 0), [1, 0], "10"]
)
def test_no_other_answer_is_taken(answer: Any) -> None:
    with pytest.raises(ValueError, match="no answer to 'some-bound/2'"):
        ask(lambda question: answer, QUESTION, LIMITS)
