"""The engine that tests share is the engine of these tests alone."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import dpwindows

SOURCE = Path(dpwindows.__file__).parent


def test_who_takes_the_engine_by_name_is_loaded_before_another_stands_in_its_place() -> None:
    """Whoever took it while tests share one would keep it when that is closed."""
    takers = {
        ".".join(("dpwindows", *path.relative_to(SOURCE).with_suffix("").parts))
        for path in SOURCE.rglob("*.py")
        if re.search(r"^from dpwindows.count.engines.duckdb import .*\bprivate_engine\b", path.read_text("utf-8"), re.M)
    }
    assert len(takers) >= 4
    loaded = "import tests.count.one_engine, sys; print(*sys.modules)"
    told = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert takers <= set(told.stdout.split())
