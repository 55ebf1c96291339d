"""A probe that was passed is asked once, by whichever process; one that failed, or that nobody can know of, again."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
import pytest

from dpwindows.ask.timeline import Timeline
from dpwindows.count.dialects import dialect_named
from dpwindows.count.engines import passed_probes, sql
from dpwindows.count.engines.passed_probes import is_passed, keep_passed, probe_key
from dpwindows.count.events import EventColumns
from dpwindows.count.query.probe import Probe
from dpwindows.errors import InputError
from tests.counting import in_steps

ONE = Probe("a number", "SELECT 0 AS place, 1 AS found", (("one", 1),))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "dpwindows" / "probes"


@pytest.fixture
def asked(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """How many probes a process sends that counts for the first time, in a session of such settings."""
    sent: list[str] = []
    own = sql.require_as_meant

    def noted(*given: Any) -> None:
        sent.append("probe")
        own(*given)

    monkeypatch.setattr(sql, "require_as_meant", noted)
    for module in (sql, passed_probes):
        monkeypatch.setattr(module, "probes", lambda dialect: [ONE])
        monkeypatch.setattr(module, "refused", lambda dialect: [])

    def count(config: datafusion.SessionConfig | None = None) -> int:
        monkeypatch.setattr(sql, "_PROBED", set())
        session = datafusion.SessionContext(config)
        session.from_arrow(pa.table({"id": [1, 1, 2], "at": [0, 1, 1]}), "log")
        sent.clear()
        assert in_steps(session, EventColumns("id", "at"), Timeline.of_steps(2), table="log") == [1, 2]
        return len(sent)

    return count


def test_another_process_does_not_ask_again(asked: Callable[..., int], cache: Path) -> None:
    assert [asked(), asked()] == [1, 0]
    (kept,) = cache.iterdir()
    # Its name is a digest, and it is empty: nothing of the database can be read in it.
    assert (kept.stat().st_size, len(kept.name), kept.stat().st_mode & 0o777) == (0, 64, 0o600)
    assert cache.stat().st_mode & 0o777 == 0o700


def test_what_decides_how_a_database_reads_is_what_it_is_known_by(
    asked: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert asked() == 1
    assert asked(datafusion.SessionConfig().set("datafusion.execution.time_zone", "+05:00")) == 1
    for changed in (replace(ONE, sql="SELECT 0 AS place, 2 - 1 AS found"), replace(ONE, rows=(("another", 1),))):
        for module in (sql, passed_probes):
            monkeypatch.setattr(module, "probes", lambda dialect, changed=changed: [changed])
        assert [asked(), asked()] == [1, 0]
    keys = {probe_key(dialect_named(name), server) for name in ("snowflake", "trino") for server in ("1", "2")}
    assert len(keys) == 4


def test_a_probe_that_fails_is_not_remembered(
    asked: Callable[..., int], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = replace(ONE, rows=(("one", 2),))
    for module in (sql, passed_probes):
        monkeypatch.setattr(module, "probes", lambda dialect: [wrong])
    for _ in range(2):
        with pytest.raises(InputError, match="one is 1 there, and must be 2"):
            asked()
    assert not cache.exists()


def test_a_cache_that_cannot_be_used_changes_nothing(
    asked: Callable[..., int], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A file where the folder is to be; then a folder that everybody may write, whatever is in it.
    cache.parent.write_text("")
    assert [asked(), asked()] == [1, 1]
    cache.parent.unlink()
    assert asked() == 1
    cache.chmod(0o777)
    assert asked() == 1
    cache.chmod(0o700)
    assert asked() == 0
    # A folder of that name is no file.
    (kept,) = cache.iterdir()
    kept.unlink()
    kept.mkdir()
    assert asked() == 1
    monkeypatch.setattr(Path, "touch", _no_space)
    monkeypatch.setattr(Path, "mkdir", _no_space)
    kept.rmdir()
    assert [asked(), asked()] == [1, 1]


def _no_space(*given: Any, **more: Any) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.skipif(os.name != "posix", reason="other systems have other places")
def test_a_relative_path_is_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for given in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", given)
        keep_passed("key")
        assert is_passed("key")
        (path,) = tmp_path.rglob("key")
        assert path.relative_to(tmp_path).parts[0] == "home"
