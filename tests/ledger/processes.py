"""What runs jobs in processes that use one ledger at once (`tests.ledger.nursery`)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.patience import PATIENCE


class Nursery:
    """The process that forks those that use the ledger; one for all tests of a module."""

    process: subprocess.Popen[str] | None = None

    @classmethod
    def run(cls, jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """What each job said; an empty one for a process that was killed before it could."""
        if cls.process is None or cls.process.poll() is not None:
            cls.process = subprocess.Popen(
                [sys.executable, "-m", "tests.ledger.nursery"],
                cwd=Path(__file__).parents[2],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert cls.process.stdin is not None
        assert cls.process.stdout is not None
        cls.process.stdin.write(json.dumps(jobs) + "\n")
        cls.process.stdin.flush()
        said = json.loads(cls.process.stdout.readline())
        assert isinstance(said, list)
        for one in said:
            assert "broken" not in one, one
        return said

    @classmethod
    def end(cls) -> None:
        """Let it go."""
        if cls.process is not None:
            cls.process.communicate(timeout=PATIENCE)
            cls.process = None
