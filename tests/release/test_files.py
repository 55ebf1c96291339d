"""Release files: what is saved is loaded, writing is atomic, and foreign files are refused."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
import pytest

import dpwindows as dw
from dpwindows.durable import UnsettledError
from dpwindows.release import checks
from dpwindows.release import files as release_files
from dpwindows.release.outputs import meta_path
from dpwindows.report import page, preview


@pytest.fixture(scope="module")
def release() -> dw.Release:
    """A release of calendar days, of several windows and measures, with the raw numbers alone."""
    plan = dw.Plan(
        [dw.Rolling(3).at_least(1).exactly(1), dw.Cumulative(), dw.AnyWindow(max_length=2)],
        timeline=dw.Timeline("2024-02-26", "2024-03-07", step="1d", time_zone="Europe/Berlin"),
        unit=dw.EventLevel(),
        budget=dw.ApproxDP(epsilon=1.0, delta=1e-6),
    )
    days = pa.array([datetime(2024, 2, 26 + day, tzinfo=UTC) for day in range(4)])
    log = pa.table({"item": ["a", "b", "a", "c"], "time": days})
    made = plan.run(log, item="item", time="time")
    place = made.table.schema.get_field_index("consistent")
    raw = made.table.set_column(place, "consistent", pa.nulls(made.table.num_rows, pa.int64()))
    return dw.Release(raw, made.metadata)


@pytest.fixture(scope="module")
def of_integers() -> dw.Release:
    """A release of integer time."""
    timeline, budget = dw.Timeline(0, 6, step=2), dw.ZCDP(0.5)
    plan = dw.Plan([dw.Cumulative().at_least(2)], timeline=timeline, unit=dw.ItemLevel(), budget=budget)
    return plan.run(pa.table({"item": ["a", "a"], "time": [0, 3]}), item="item", time="time")


def _document(release: dw.Release, path: Path) -> dict[str, Any]:
    """A release as its JSON file holds it."""
    release.save(path, force=True)
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def test_a_release_is_what_the_format_says(release: dw.Release) -> None:
    table = release.to_arrow()
    assert release.metadata["format"] == 1
    assert table.num_rows == 10 + 10 + 10 + 19
    assert release.count("2024-02-28", "2024-03-01").window == "any:2"
    assert release.count("2024-02-28", "2024-03-02", exactly=1).window == "rolling:3"
    assert release.count("2024-02-26", "2024-03-07").window == "cumulative"
    assert table["start"][0].as_py().isoformat() == "2024-02-26T00:00:00+01:00"


@pytest.mark.parametrize("ending", ["parquet", "csv", "json"])
@pytest.mark.parametrize("of", ["release", "of_integers"])
def test_what_is_saved_is_loaded(of: str, tmp_path: Path, ending: str, request: pytest.FixtureRequest) -> None:
    saved: dw.Release = request.getfixturevalue(of)
    saved.save(tmp_path / f"copy.{ending}")
    assert dw.Release.load(tmp_path / f"copy.{ending}") == saved


def test_integer_time_is_asked_for_by_numbers(of_integers: dw.Release) -> None:
    assert of_integers.to_arrow()["end"].to_pylist() == [2, 4, 6]
    assert of_integers.count(0, 4, at_least=2).k == 2


def test_json_is_what_the_format_says(release: dw.Release, tmp_path: Path) -> None:
    release.save(tmp_path / "copy.json")
    content = json.loads((tmp_path / "copy.json").read_text())
    assert set(content) == {"format", "metadata", "rows"}
    assert content["format"] == 1
    assert content["rows"][0]["start"] == "2024-02-26T00:00:00+01:00"
    assert content["rows"][0]["consistent"] is None


@pytest.mark.parametrize("rows", [1, 7, 1000])
def test_a_release_is_the_same_however_its_rows_are_grouped(release: dw.Release, tmp_path: Path, rows: int) -> None:
    release.save(tmp_path / "one.parquet")
    written = pyarrow.parquet.read_table(tmp_path / "one.parquet")
    pyarrow.parquet.write_table(written, tmp_path / "more.parquet", row_group_size=rows, use_dictionary=rows > 1)
    loaded = dw.Release.load(tmp_path / "more.parquet")
    assert loaded.to_arrow().equals(release.to_arrow())
    assert loaded.metadata == release.metadata


@pytest.mark.parametrize("rows", [1, 7])
def test_the_checksum_is_the_same_however_many_rows_are_looked_at_at_a_time(
    release: dw.Release, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = checks.checksum_of(release.table, release.metadata)
    monkeypatch.setattr(checks, "_ROWS", rows)
    chunks = pa.Table.from_batches(release.table.to_batches(11))
    assert {checks.checksum_of(table, release.metadata) for table in (release.table, chunks)} == {expected}


@pytest.mark.parametrize("ending", ["csv", "json"])
def test_text_is_the_same_however_many_rows_are_written_at_a_time(
    release: dw.Release, tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    release.save(tmp_path / f"whole.{ending}")
    monkeypatch.setattr(release_files, "_ROWS", 7)
    release.save(tmp_path / f"pieces.{ending}")
    assert (tmp_path / f"pieces.{ending}").read_bytes() == (tmp_path / f"whole.{ending}").read_bytes()


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

    def full_disk(table: pa.Table, file: str, **options: Any) -> None:
        Path(file).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pyarrow.parquet, "write_table", full_disk)
    with pytest.raises(dw.EngineError, match="No space left"):
        release.save(path, force=True)
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == ["copy.parquet"]


def _another(release: dw.Release) -> dw.Release:
    """Another release: other numbers under another budget."""
    raised = pc.add(release.table["estimate"], 1.0)
    table = release.table.set_column(release.table.schema.get_field_index("estimate"), "estimate", raised)
    return dw.Release(table, release.metadata | {"budget": {"kind": "pure", "epsilon": 50.0}})


def _is(path: Path, release: dw.Release) -> bool:
    loaded = dw.Release.load(path)
    same = loaded.metadata == release.metadata
    assert same == loaded.to_arrow().equals(release.to_arrow()), "numbers stand under the metadata of another release"
    return same


def _killed_at(step: int, work: Callable[[], None]) -> bool:
    """Do some work in a process that is killed before its so many-th change of files; False if it has ended before."""
    child = os.fork()
    if child == 0:
        try:
            _kill_before_change(step)
            work()
            os._exit(0)
        except BaseException:
            os._exit(7)
    status = os.waitpid(child, 0)[1]
    assert os.waitstatus_to_exitcode(status) in (0, -signal.SIGKILL)
    return os.waitstatus_to_exitcode(status) != 0


def _kill_before_change(step: int) -> None:
    left = [step]

    def counted(change: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*arguments: Any, **options: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return change(*arguments, **options)

        return counting

    for name in ("open", "link", "fsync", "close"):
        setattr(os, name, counted(getattr(os, name)))
    for name in ("replace", "unlink", "write_bytes"):
        setattr(Path, name, counted(getattr(Path, name)))


@pytest.mark.quick(1)
@pytest.mark.parametrize("ending", ["parquet", "csv", "json"])
def test_a_killed_replacement_leaves_the_release_before_or_the_one_after(
    release: dw.Release, tmp_path: Path, ending: str
) -> None:
    path, before, after = tmp_path / f"copy.{ending}", _another(release), release
    seen, step = set(), 0
    while True:
        before.save(path, force=True)
        killed = _killed_at(step, lambda: after.save(path, force=True))
        seen.add(_is(path, after))
        assert _is(path, before) or _is(path, after)
        if not killed:
            break
        after.save(path, force=True)
        assert _is(path, after)
        step += 1
    assert seen == {False, True}
    assert step > 8
    assert list(tmp_path.glob(".*")) == [], "what the killed ones left is removed by the next writer"


@pytest.mark.quick(1)
@pytest.mark.parametrize("ending", ["parquet", "csv", "json"])
def test_a_write_that_was_killed_is_made_good_by_the_same_call(
    release: dw.Release, tmp_path: Path, ending: str
) -> None:
    path, step, killed = tmp_path / f"copy.{ending}", 0, True
    while killed:
        killed = _killed_at(step, lambda: release.save(path))
        if path.exists():
            assert _is(path, release)
        else:
            release.save(path)
            assert _is(path, release)
        for part in (path, meta_path(path)):
            part.unlink(missing_ok=True)
        step += 1
    assert step > 8


@pytest.mark.parametrize("ending", ["parquet", "csv", "json"])
def test_each_failing_sync_or_renaming_leaves_a_whole_release(
    release: dw.Release, tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old numbers never stand under a new guarantee, whichever of the writes fails."""
    path, other = tmp_path / f"copy.{ending}", _another(release)
    outcomes: list[str] = []
    while outcomes[-1:] != ["saved"]:
        other.save(path, force=True)
        left = [len(outcomes)]

        def counted(change: Callable[..., Any], left: list[int] = left) -> Callable[..., Any]:
            def counting(*arguments: Any) -> Any:
                left[0] -= 1
                if left[0] == -1:
                    raise OSError(5, "Input/output error")
                return change(*arguments)

            return counting

        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", counted(os.fsync))
            patched.setattr(Path, "replace", counted(Path.replace))
            try:
                release.save(path, force=True)
                outcomes.append("saved")
            except UnsettledError:
                outcomes.append("in place")
            except dw.EngineError:
                outcomes.append("as before")
        assert _is(path, release) == (outcomes[-1] != "as before")
        assert list(tmp_path.glob(".*")) == []
    assert set(outcomes) == {"saved", "in place", "as before"}


def test_reading_what_a_ledger_holds_starts_no_thread(release: dw.Release, tmp_path: Path) -> None:
    """Arrow's threads gave Python's memory back while Python ended, and one process in 50 was aborted."""
    read = (
        "import os, sys, dpwindows as dw\n"
        "from dpwindows.release import files\n"
        "threads = lambda: len(os.listdir('/proc/self/task'))\n"
        "release = dw.Release.load(sys.argv[1])\n"
        "before = threads()\n"
        "files.from_bytes(files.to_bytes(release.table, release.metadata))\n"
        "print(before, threads())"
    )
    release.save(path := tmp_path / "copy.json")
    done = subprocess.run([sys.executable, "-c", read, path], capture_output=True, text=True, check=True)
    before, after = done.stdout.split()
    assert before == after


def test_a_table_that_was_replaced_meanwhile_is_not_taken_for_changed(release: dw.Release, tmp_path: Path) -> None:
    path, other = tmp_path / "copy.csv", _another(release)
    release.save(path)
    stop = threading.Event()

    def replace_often() -> None:
        while not stop.is_set():
            other.save(path, force=True)
            release.save(path, force=True)

    writer = threading.Thread(target=replace_often)
    writer.start()
    try:
        seen = {_is(path, release) for _ in range(40)}
    finally:
        stop.set()
        writer.join()
    assert seen <= {True, False}


# --- The checksum -----------------------------------------------------------------------------------------------------


def _text_of(path: Path) -> str:
    if path.suffix == ".parquet":
        stated: bytes = pyarrow.parquet.read_schema(path).metadata[b"dpwindows"]
        return stated.decode()
    return (meta_path(path) if path.suffix == ".csv" else path).read_text()


def _write_text(path: Path, text: str) -> None:
    if path.suffix == ".parquet":
        table = pyarrow.parquet.read_table(path)
        pyarrow.parquet.write_table(table.replace_schema_metadata({b"dpwindows": text.encode()}), path)
    else:
        (meta_path(path) if path.suffix == ".csv" else path).write_text(text)


@pytest.mark.parametrize("ending", ["parquet", "csv", "json"])
@pytest.mark.parametrize(
    ("written", "edited"),
    [
        (r'"epsilon": 1.0', '"epsilon": 0.01'),
        (r'"confidence": 0.95', '"confidence": 0.5'),
        ("Protects ", "Hides "),
        (r'"law": "discrete Gaussian"', '"law": "exact discrete Gaussian"'),
        (r'"singleton": false', '"singleton": true'),
    ],
)
def test_an_edited_guarantee_is_noticed(
    release: dw.Release, tmp_path: Path, ending: str, written: str, edited: str
) -> None:
    path = tmp_path / f"copy.{ending}"
    release.save(path)
    text = _text_of(path)
    assert written in text
    _write_text(path, text.replace(written, edited))
    with pytest.raises(dw.InputError, match="does not agree with its checksum"):
        dw.Release.load(path)


@pytest.mark.parametrize("column", ["estimate", "lower", "k", "last_step", "start", "complete", "window", "consistent"])
def test_an_edited_number_is_noticed(release: dw.Release, tmp_path: Path, column: str) -> None:
    path = tmp_path / "copy.json"
    release.save(path)
    content = json.loads(path.read_text())
    other = {"window": "any:3", "start": "2024-02-26T00:00:01+01:00", "complete": None, "consistent": 0}
    before = content["rows"][0][column]
    content["rows"][0][column] = (not before) if column == "complete" else other.get(column, 1)
    if content["rows"][0][column] == before:
        content["rows"][0][column] += 1
    path.write_text(json.dumps(content))
    with pytest.raises(dw.InputError, match="does not agree with its checksum"):
        dw.Release.load(path)


def test_swapped_and_dropped_rows_are_noticed(release: dw.Release, tmp_path: Path) -> None:
    path = tmp_path / "copy.json"
    release.save(path)
    content = json.loads(path.read_text())
    rows = content["rows"]
    for edited in (rows[:-1], [rows[1], rows[0], *rows[2:]], [*rows, rows[0]]):
        path.write_text(json.dumps(content | {"rows": edited}))
        with pytest.raises(dw.InputError, match="does not agree with its checksum"):
            dw.Release.load(path)


def test_the_checksum_is_of_the_release_and_not_of_its_file(release: dw.Release, tmp_path: Path) -> None:
    found = set()
    for ending in ("parquet", "csv", "json"):
        release.save(tmp_path / f"copy.{ending}")
        text = _text_of(tmp_path / f"copy.{ending}")
        stated = json.loads(text)["metadata"] if ending == "json" else json.loads(text)
        found.add(stated["checksum"])
        loaded = dw.Release.load(tmp_path / f"copy.{ending}")
        assert "checksum" not in loaded.metadata
    assert len(found) == 1


@pytest.mark.parametrize("ending", ["parquet", "csv", "json"])
def test_a_release_without_a_checksum_is_refused(release: dw.Release, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"copy.{ending}"
    release.save(path)
    text = re.sub(r',\s*"checksum": "sha256:[0-9a-f]{64}"', "", _text_of(path))
    assert "checksum" not in text
    _write_text(path, text)
    with pytest.raises(dw.InputError, match="'checksum' is missing"):
        dw.Release.load(path)


_ODD: tuple[Any, ...] = (None, True, 7, -1.5, 10**400, "x", "", "12", [], [[]], [7], {}, {"x": 1}, {"law": 1})


_NO_NOISE: tuple[Any, ...] = (None, "x", 3, [], ["discrete Gaussian"], True)
_STATED = ("guarantee", "unit", "budget", "queries", "measurements", "confidence", "notes")


def _places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of every value inside a document; of a list, those in its first entry."""
    if at:
        yield at
    inner = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for name, held in inner:
        yield from _places(held, (*at, name))


def _with_value(document: Any, at: tuple[Any, ...], value: Any) -> Any:
    changed = copy.deepcopy(document)
    inner = changed
    for name in at[:-1]:
        inner = inner[name]
    inner[at[-1]] = value
    return changed


def _use(loaded: dw.Release) -> None:
    repr(loaded)
    page(loaded.table, loaded.metadata)
    preview(loaded.table, loaded.metadata)
    with contextlib.suppress(dw.InputError):
        loaded.count("2024-02-28", "2024-03-01")
    with contextlib.suppress(dw.InputError):
        loaded.count(0, 4, at_least=2)


@pytest.mark.slow
def test_values_of_the_wrong_type_are_refused_or_do_no_harm(
    of_integers: dw.Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = _document(of_integers, tmp_path / "whole.json")
    # What is crafted shall get past the comparison: whoever means to can compute the checksum again.
    monkeypatch.setattr(checks, "checksum_of", lambda *_: document["metadata"]["checksum"])
    crafted = [(at, value) for at in _places(document) for value in _ODD]
    random.Random(5).shuffle(crafted)
    used, path = 0, tmp_path / "crafted.json"
    for at, value in crafted:
        path.write_text(json.dumps(_with_value(document, at, value)))
        try:
            loaded = dw.Release.load(path)
        except dw.InputError:
            continue
        if used < 40:
            _use(loaded)
            used += 1
    assert used == 40


@pytest.mark.parametrize(
    ("at", "value", "said"),
    [
        *(
            (("measurements", 0, "noise"), value, r"'measurements\[0\]\.noise': expected a table, got")
            for value in _NO_NOISE
        ),
        *(((name,), None, f"'{name}': expected .*, got nothing") for name in _STATED),
        (("budget", "epsilon"), "1", r"'budget\.epsilon': expected a number or nothing, got text"),
        (("confidence",), 1.0, "'confidence': expected a number < 1"),
        (("forecast", 0, "k"), 0, r"'forecast\[0\]\.k': expected a whole number >= 1"),
        (("timeline", "steps"), 1 << 63, r"'timeline\.steps': .*out of range|'timeline\.steps': expected"),
        (("criterion",), "mean", "'criterion': invalid"),
        (("noise",), "seeded", "'noise': invalid"),
        (("counting",), {"distinct": True}, "'counting' leaves something out"),
        (("unit", "Promise"), "none", r"unknown key 'unit\.Promise' \(did you mean 'promise'\?\)"),
        (("more",), 1, "unknown key 'more'.*; keys are format, release_id"),
        (
            ("measurements", 0, "integers", "arrays", "map.taps"),
            [0.5],
            "'measurements.*arrays.*': expected a whole number",
        ),
    ],
)
def test_what_is_said_wrong_is_named(release: dw.Release, tmp_path: Path, at: Any, value: Any, said: str) -> None:
    document = _document(release, tmp_path / "whole.json")
    path = tmp_path / "crafted.json"
    path.write_text(json.dumps(_with_value(document, ("metadata", *at), value)))
    with pytest.raises(dw.InputError, match=said):
        dw.Release.load(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [("[" * 100_000, "not a release"), ("\ud800", "not a release"), ("[1]", "nothing else"), ("", "not a release")],
)
def test_what_is_no_document_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "crafted.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(dw.InputError, match=said):
        dw.Release.load(path)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999", "9" * 5000, '"7"', "null"])
def test_numbers_that_no_release_has_are_refused(release: dw.Release, tmp_path: Path, number: str) -> None:
    document = _document(release, tmp_path / "whole.json")
    document["rows"][0]["estimate"] = "HERE"
    path = tmp_path / "crafted.json"
    path.write_text(json.dumps(document).replace('"HERE"', number))
    with pytest.raises(dw.InputError, match="not a release"):
        dw.Release.load(path)


def test_a_csv_under_the_metadata_of_another_release_is_refused(release: dw.Release, tmp_path: Path) -> None:
    path = tmp_path / "copy.csv"
    release.save(path)
    path.write_text(path.read_text().replace(",true,", ",false,", 1))
    with pytest.raises(dw.InputError, match="another table"):
        dw.Release.load(path)


def test_a_notebook_shows_chart_and_table_without_loading_anything(release: dw.Release) -> None:
    shown = release._repr_html_()
    assert "<svg" in shown
    assert len(shown.encode()) < 300_000
    assert "<table>" in shown
    assert release.metadata["guarantee"][:40] in shown
    assert not re.search(r"(src|href)\s*=\s*[\"']?https?:", shown)


def test_what_a_release_does_not_say_is_refused(release: dw.Release, tmp_path: Path) -> None:
    """Under the checksum that it has: other readers would find what was added."""
    document = _document(release, tmp_path / "whole.json")
    rows = document["rows"]
    path = tmp_path / "more.json"
    for more in ({"more": 1}, {"rows": [rows[0] | {"corrected": 1.0}, *rows[1:]]}, {"rows": [1]}):
        path.write_text(json.dumps(document | more))
        with pytest.raises(dw.InputError):
            dw.Release.load(path)


def test_files_get_the_usual_permissions(release: dw.Release, tmp_path: Path) -> None:
    mask = os.umask(0o022)
    try:
        release.save(tmp_path / "copy.json")
    finally:
        os.umask(mask)
    assert (tmp_path / "copy.json").stat().st_mode & 0o777 == 0o644


def _changed(release: dw.Release, path: Path, change: dict[str, Any]) -> Path:
    content = _document(release, path)
    content["metadata"] |= change
    path.write_text(json.dumps(content))
    return path


def test_foreign_and_damaged_files_are_refused(release: dw.Release, tmp_path: Path) -> None:
    with pytest.raises(dw.InputError, match="newer dpwindows"):
        dw.Release.load(_changed(release, tmp_path / "next.json", {"format": 2}))
    with pytest.raises(dw.InputError, match="not a release"):
        dw.Release.load(_changed(release, tmp_path / "odd.json", {"timeline": {}}))
    plain = tmp_path / "plain.parquet"
    pyarrow.parquet.write_table(pa.table({"a": [1]}), plain)
    with pytest.raises(dw.InputError, match="no dpwindows metadata"):
        dw.Release.load(plain)
    torn = tmp_path / "torn.parquet"
    release.save(torn)
    torn.write_bytes(torn.read_bytes()[:200])
    with pytest.raises(dw.InputError, match="not a release"):
        dw.Release.load(torn)
    alone = tmp_path / "alone.csv"
    release.save(alone)
    meta_path(alone).unlink()
    with pytest.raises(dw.InputError, match="metadata"):
        dw.Release.load(alone)
    with pytest.raises(dw.InputError, match="no release file"):
        dw.Release.load(tmp_path / "missing.json")
    with pytest.raises(dw.InputError, match="ends in"):
        dw.Release.load(Path(__file__))


def test_what_is_no_file_is_not_replaced_by_one(tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe.csv", tmp_path / "link.csv"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    beside, folder = tmp_path / "a.csv", tmp_path / "b.csv"
    (tmp_path / "a.csv.meta.json").symlink_to(pipe)
    (tmp_path / "b.csv.meta.json").mkdir()
    for output in (pipe, link, beside):
        with pytest.raises(dw.InputError, match="a device, a pipe or a socket"):
            release_files.require_writable(output, force=True)
    with pytest.raises(dw.InputError, match=r"a folder: .*b\.csv\.meta\.json"):
        release_files.require_writable(folder, force=True)
    assert pipe.is_fifo()


def test_names_of_outputs_are_checked_first(tmp_path: Path) -> None:
    with pytest.raises(dw.InputError, match=r"must end in \.parquet, \.csv or \.json, got"):
        release_files.require_writable(tmp_path / "release.txt", force=False)
    with pytest.raises(dw.InputError, match="folder"):
        release_files.require_writable(tmp_path / "a" / "release.csv", force=False)
    with pytest.raises(dw.InputError, match="no file can have"):
        release_files.require_writable(tmp_path / "a\0b.csv", force=False)
