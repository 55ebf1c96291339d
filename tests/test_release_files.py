"""Release files: the golden files of format 1 load for ever, writing is atomic, and foreign files are refused."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import dpwindows as dw
from dpwindows.release import files as release_files

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="module")
def release() -> dw.Release:
    return dw.Release.load(DATA / "format-1.parquet")


@pytest.mark.parametrize("ending", ["parquet", "csv", "json"])
def test_golden_files_of_format_1_load(ending: str) -> None:
    golden = dw.Release.load(DATA / f"format-1.{ending}")
    table = golden.to_arrow()
    assert golden.metadata["format"] == 1
    assert table.num_rows == 10 + 10 + 10 + 19
    assert golden.count("2024-02-28", "2024-03-01").window == "any:2"
    assert golden.count("2024-02-28", "2024-03-02", exactly=1).window == "rolling:3"
    assert golden.count("2024-02-26", "2024-03-07").window == "cumulative"
    assert table["start"][0].as_py().isoformat() == "2024-02-26T00:00:00+01:00"
    assert table.equals(dw.Release.load(DATA / "format-1.parquet").to_arrow())


def test_golden_file_of_integer_time_loads() -> None:
    golden = dw.Release.load(DATA / "format-1-integer-time.json")
    assert golden.to_arrow()["end"].to_pylist() == [2, 4, 6]
    assert golden.count(0, 4, at_least=2).k == 2


@pytest.mark.parametrize("ending", ["parquet", "csv", "json"])
def test_what_is_saved_is_loaded(release: dw.Release, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"copy.{ending}"
    release.save(path)
    loaded = dw.Release.load(path)
    assert loaded.to_arrow().equals(release.to_arrow())
    assert loaded.metadata == release.metadata


def test_json_is_what_the_format_says(release: dw.Release, tmp_path: Path) -> None:
    release.save(tmp_path / "copy.json")
    content = json.loads((tmp_path / "copy.json").read_text())
    assert set(content) == {"format", "metadata", "rows"}
    assert content["format"] == 1
    assert content["rows"][0]["start"] == "2024-02-26T00:00:00+01:00"
    assert content["rows"][0]["consistent"] is None


def test_an_existing_file_is_kept_unless_forced(release: dw.Release, tmp_path: Path) -> None:
    path = tmp_path / "copy.csv"
    release.save(path)
    before = path.read_bytes()
    with pytest.raises(dw.InputError, match="force"):
        release.save(path)
    path.unlink()
    with pytest.raises(dw.InputError, match=r"meta\.json"):
        release.save(path)
    release.save(path, force=True)
    assert path.read_bytes() == before


def test_a_failed_write_leaves_what_was_there(
    release: dw.Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "copy.parquet"
    release.save(path)
    before = path.read_bytes()

    def full_disk(table: pa.Table, file: str) -> None:
        Path(file).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pyarrow.parquet, "write_table", full_disk)
    with pytest.raises(dw.EngineError, match="No space left"):
        release.save(path, force=True)
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == ["copy.parquet"]


def test_a_csv_table_never_stands_without_its_metadata(
    release: dw.Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    replace = Path.replace

    def record(self: Path, target: Path) -> Path:
        written.append(Path(target).name)
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", record)
    release.save(tmp_path / "copy.csv")
    assert written == ["copy.csv.meta.json", "copy.csv"]


def _other(release: dw.Release) -> dw.Release:
    """The same numbers said to be released under another budget."""
    return dw.Release(release.table, release.metadata | {"budget": {"kind": "pure", "epsilon": 50.0}})


def test_a_failed_replacement_of_a_csv_leaves_no_mixed_pair(
    release: dw.Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old numbers must never stand under a new guarantee, whichever of the writes fails."""
    replace = Path.replace
    for failing in ("copy.csv.meta.json", "copy.csv"):
        path = tmp_path / "copy.csv"
        release.save(path, force=True)

        def full_disk(self: Path, target: Path, failing: str = failing) -> Path:
            if Path(target).name == failing:
                raise OSError(28, "No space left on device")
            return replace(self, target)

        with monkeypatch.context() as patched:
            patched.setattr(Path, "replace", full_disk)
            with pytest.raises(dw.EngineError, match="No space left"):
                _other(release).save(path, force=True)
        assert list(tmp_path.glob(".*")) == []
        with pytest.raises(dw.InputError):
            dw.Release.load(path)
        _other(release).save(path)


def test_a_csv_under_the_metadata_of_another_release_is_refused(release: dw.Release, tmp_path: Path) -> None:
    path = tmp_path / "copy.csv"
    release.save(path)
    path.write_text(path.read_text().replace(",true,", ",false,", 1))
    with pytest.raises(dw.InputError, match="another table"):
        dw.Release.load(path)


@pytest.mark.parametrize("missing", ["guarantee", "unit", "budget", "queries", "measurements", "confidence"])
def test_a_release_that_does_not_say_what_it_promises_is_refused(tmp_path: Path, missing: str) -> None:
    with pytest.raises(dw.InputError, match=missing):
        dw.Release.load(_without(tmp_path / "silent.json", {missing: None}))


def test_a_notebook_shows_chart_and_table_without_loading_anything(release: dw.Release) -> None:
    shown = release._repr_html_()
    assert "<svg" in shown
    assert "<table>" in shown
    assert release.metadata["guarantee"][:40] in shown
    assert not re.search(r"(src|href)\s*=\s*[\"']?https?:", shown)


def test_files_get_the_usual_permissions(release: dw.Release, tmp_path: Path) -> None:
    mask = os.umask(0o022)
    try:
        release.save(tmp_path / "copy.json")
    finally:
        os.umask(mask)
    assert (tmp_path / "copy.json").stat().st_mode & 0o777 == 0o644


def _without(path: Path, change: dict[str, Any]) -> Path:
    content = json.loads((DATA / "format-1.json").read_text())
    content["metadata"] |= change
    path.write_text(json.dumps(content))
    return path


def test_foreign_and_damaged_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(dw.InputError, match="newer dpwindows"):
        dw.Release.load(_without(tmp_path / "next.json", {"format": 2}))
    with pytest.raises(dw.InputError, match="not a release"):
        dw.Release.load(_without(tmp_path / "odd.json", {"timeline": {}}))
    plain = tmp_path / "plain.parquet"
    pyarrow.parquet.write_table(pa.table({"a": [1]}), plain)
    with pytest.raises(dw.InputError, match="no dpwindows metadata"):
        dw.Release.load(plain)
    torn = tmp_path / "torn.parquet"
    torn.write_bytes((DATA / "format-1.parquet").read_bytes()[:200])
    with pytest.raises(dw.InputError, match="not a release"):
        dw.Release.load(torn)
    alone = tmp_path / "alone.csv"
    alone.write_bytes((DATA / "format-1.csv").read_bytes())
    with pytest.raises(dw.InputError, match="metadata"):
        dw.Release.load(alone)
    with pytest.raises(dw.InputError, match="no release file"):
        dw.Release.load(tmp_path / "missing.json")
    with pytest.raises(dw.InputError, match="ends in"):
        dw.Release.load(DATA.parent / "test_release_files.py")


def test_names_of_outputs_are_checked_first(tmp_path: Path) -> None:
    with pytest.raises(dw.InputError, match="must end in"):
        release_files.require_writable(tmp_path / "release.txt", force=False)
    with pytest.raises(dw.InputError, match="folder"):
        release_files.require_writable(tmp_path / "a" / "release.csv", force=False)
