"""Whatever is read: exit 0 or 2 (1 where a database is damaged), one message, no traceback, bounded time and memory."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.fuzz.case import Case, problem
from tests.fuzz.inputs import READERS
from tests.fuzz.worker import Worker

# Of all readers together; few of them by default, thousands by `make fuzz`.
_INPUTS = int(os.environ.get("FUZZ_INPUTS", "100"))
_EACH = max(1, _INPUTS // len(READERS))
# Of the inputs so many are to get past the parser: fuzzing what is refused at the door finds little.
_PASSING = 0.3
_THOROUGH = _EACH >= 100


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    worker = Worker()
    yield worker
    worker.close()


@pytest.mark.xdist_group("fuzz")
@pytest.mark.parametrize("reader", READERS)
def test_every_input_ends_in_a_result_or_one_message(reader: str, worker: Worker) -> None:
    codes: Counter[int | None] = Counter()

    @settings(
        max_examples=_EACH,
        database=None,
        deadline=None,
        derandomize=not _THOROUGH,
        phases=[Phase.generate, Phase.shrink] if _THOROUGH else [Phase.generate],
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )
    @given(READERS[reader]())
    def fuzz(case: Case) -> None:
        outcome = worker.run(case)
        codes[outcome.code] += 1
        found = problem(case, outcome)
        assert found is None, f"{case.arguments} {case.changed}\n{found}"

    fuzz()
    print(f"{reader}: {codes.total()} inputs, by exit code {dict(codes)}")  # noqa: T201 (the figures of a long run)
    # A few inputs say little about the share.
    assert codes[0] >= (_PASSING * codes.total() if _THOROUGH else 1), codes
