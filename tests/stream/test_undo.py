"""A checkpoint that was torn, by a kill or a power failure, costs no step that was published and no stream."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

import dpwindows as dw
from dpwindows.stream import undo
from dpwindows.stream.state_file import StateFile
from dpwindows.stream.stream import Stream
from tests.stream.streams import STEP, Event, new_stream, plan_of, same, table_of

pytestmark = pytest.mark.usefixtures("one_engine")

LOG: list[list[Event]] = [[("a", 1, 1), ("b", 1, 3)], [("a", 2, 2)]]
SETTINGS = dw.EngineSettings(threads=1, progress=False)
SECTOR, HEADERS = 512, 3 * 4096


class Torn:
    """A state as it was before a checkpoint and after it, with what was beside it when the checkpoint began."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        live = folder / "live"
        live.mkdir()
        self.before = folder / "before"
        with new_stream(live / "state", plan_of("rolling:2", "cumulative")) as stream:
            self.published = stream.advance(table_of(LOG[0]), STEP)
            keep = undo.keep

            def copy_aside(*arguments: object) -> None:
                keep(*arguments)  # type: ignore[arg-type]
                shutil.rmtree(self.before, ignore_errors=True)
                shutil.copytree(live, self.before)

            with monkeypatch.context() as patch:
                patch.setattr(undo, "keep", copy_aside)
                self.second = stream.advance(table_of(LOG[1]), 2 * STEP)
        self.old, self.new = (self.before / "state").read_bytes(), (live / "state").read_bytes()

    def left(self, folder: Path, dice: random.Random, *, kept: bool = True) -> Path:
        """What a crash leaves: the headers of before, and any sectors of what was written."""
        shutil.copytree(self.before, folder)
        content = bytearray(self.old)
        changed = [at for at in range(HEADERS, len(self.old), SECTOR) if self._differs(at)]
        assert changed, "the engine overwrites nothing in place any more"
        for at in dice.sample(changed, dice.randint(1, len(changed))):
            content[at : at + SECTOR] = self.new[at : at + SECTOR]
        if dice.random() < 0.5:
            content += self.new[len(content) : dice.randint(len(content), max(len(content), len(self.new)))]
        (folder / "state").write_bytes(content)
        if not kept:
            undo.undo_path(folder / "state").unlink()
        return folder / "state"

    def _differs(self, at: int) -> bool:
        return self.old[at : at + SECTOR] != self.new[at : at + SECTOR]


@pytest.fixture
def torn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Torn:
    return Torn(tmp_path, monkeypatch)


@pytest.mark.slow
def test_a_torn_checkpoint_costs_nothing_that_was_published(torn: Torn, tmp_path: Path) -> None:
    """The step that was being folded in is there as well, with its noise: the log still holds it."""
    for seed in range(20):
        path = torn.left(tmp_path / str(seed), random.Random(seed))
        with Stream.open(path, settings=SETTINGS) as stream:
            assert same(stream.advance(through=STEP), torn.published)
            assert same(stream.advance(through=2 * STEP), torn.second)
        assert sorted(found.name for found in path.parent.iterdir()) == ["state", "state.mark"]


def test_without_what_was_kept_the_engine_cannot_read_it(torn: Torn, tmp_path: Path) -> None:
    """So that the test above would notice if nothing were put back."""
    damaged = 0
    for seed in range(5):
        path = torn.left(tmp_path / str(seed), random.Random(seed), kept=False)
        try:
            Stream.open(path, settings=SETTINGS).close()
        except dw.EngineError as error:
            damaged += "damaged or cut short" in str(error)
    assert damaged


def test_what_was_kept_is_not_put_back_once_a_new_header_is_there(torn: Torn, tmp_path: Path) -> None:
    """It would undo a checkpoint whose log may be gone."""
    shutil.copytree(torn.before, tmp_path / "later")
    path = tmp_path / "later" / "state"
    path.write_bytes(torn.new)
    (tmp_path / "later" / "state.wal").unlink()
    undo.take_back(path)
    assert path.read_bytes() == torn.new
    assert not undo.undo_path(path).exists()
    with Stream.open(path, settings=SETTINGS) as stream:
        assert same(stream.advance(through=2 * STEP), torn.second)


@pytest.mark.parametrize("written", [1, 8, 16, 20])
def test_a_header_that_was_cut_short_is_put_back(torn: Torn, tmp_path: Path, written: int) -> None:
    """A regression, found by the simulator: it was taken for a new header, and what was kept was thrown away."""
    path = torn.left(tmp_path / "copy", random.Random(written))
    content = bytearray(path.read_bytes())
    (place,) = (at for at in range(0, HEADERS, 4096) if torn.old[at : at + 4096] != torn.new[at : at + 4096])
    content[: len(torn.new)] = torn.new[:place] + content[place:HEADERS] + torn.new[HEADERS:]
    content[place : place + written] = torn.new[place : place + written]
    assert bytes(content[:HEADERS]) not in (torn.old[:HEADERS], torn.new[:HEADERS])
    path.write_bytes(content)
    with Stream.open(path, settings=SETTINGS) as stream:
        assert same(stream.advance(table_of(LOG[0]), STEP), torn.published)
    assert not undo.undo_path(path).exists()


def test_headers_of_an_unknown_form_are_not_judged(torn: Torn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another engine may count its checksums in another way: what cannot be checked is not called cut short."""
    path = torn.left(tmp_path / "copy", random.Random(1))
    path.write_bytes(torn.new)
    monkeypatch.setattr(undo, "_is_whole", lambda header: False)
    undo.take_back(path)
    assert path.read_bytes() == torn.new


def test_a_state_that_another_has_open_is_left_alone(torn: Torn, tmp_path: Path) -> None:
    path = torn.left(tmp_path / "used", random.Random(3))
    before = path.read_bytes()
    shutil.copyfile(torn.before / "state", tmp_path / "used" / "other")
    whole = tmp_path / "used" / "other"
    whole.chmod(0o600)
    state = StateFile(whole, settings=SETTINGS)
    try:
        shutil.copyfile(undo.undo_path(path), undo.undo_path(whole))
        undo.undo_path(whole).chmod(0o600)
        with pytest.raises(dw.EngineError, match="in use"):
            Stream.open(whole, settings=SETTINGS)
        assert undo.undo_path(whole).exists()
    finally:
        state.close()
    assert path.read_bytes() == before


@pytest.mark.parametrize("cut", [0, 10, 1000, -1])
def test_an_undo_log_that_is_not_whole_is_passed_over(torn: Torn, tmp_path: Path, cut: int) -> None:
    """Nothing was overwritten before it was whole and had its name."""
    shutil.copytree(torn.before, tmp_path / "cut")
    path = tmp_path / "cut" / "state"
    kept = undo.undo_path(path)
    kept.write_bytes(kept.read_bytes()[:cut])
    with Stream.open(path, settings=SETTINGS) as stream:
        assert same(stream.advance(through=2 * STEP), torn.second)


def test_an_undo_log_that_others_may_write_is_refused(torn: Torn, tmp_path: Path) -> None:
    path = torn.left(tmp_path / "shared", random.Random(0))
    undo.undo_path(path).chmod(0o666)
    with pytest.raises(dw.InputError, match="others may write"):
        Stream.open(path, settings=SETTINGS)
