"""The test vectors are what the package makes of their plans, and a reader without it accepts these and no others."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from typing import Any

import pytest

from dpwindows.ask.shapes import read_shape
from tests.vectors import CLOSE, FOLDER, Vector, plans, written

NAMES = sorted(plans())
READER = FOLDER / "check.py"
FILES = [FOLDER / f"{name}.json" for name in NAMES]


@cache
def reader() -> Callable[[dict[str, Any]], Any]:
    found: Callable[[dict[str, Any]], Any] = runpy.run_path(str(READER))["check"]
    return found


def stored(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.quick(4)
@pytest.mark.parametrize("name", NAMES)
def test_what_is_stored_is_what_is_made(name: str) -> None:
    assert (FOLDER / f"{name}.json").read_text(encoding="utf-8") == written(name), "python -m tests.vectors"


def test_there_is_no_other_file_and_all_are_small() -> None:
    assert sorted(FOLDER.glob("*.json")) == FILES
    assert len(FILES) >= 12
    assert sum(file.stat().st_size for file in FILES) < 200_000


def test_a_reader_of_plain_python_accepts_them() -> None:
    source = READER.read_text(encoding="utf-8")
    assert len(source.splitlines()) <= 100
    imported = {line.split()[1] for line in source.splitlines() if line.startswith(("import ", "from "))}
    assert imported <= set(sys.stdlib_module_names)
    command = [sys.executable, "-I", "-S", str(READER), *map(str, FILES)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("name", NAMES)
def test_they_are_of_the_shape_that_the_schema_is_written_from(name: str) -> None:
    assert read_shape(stored(name), Vector).format == 1
    with pytest.raises(ValueError, match="unknown key 'more'"):
        read_shape({**stored(name), "more": 1}, Vector)


def test_they_cover_units_windows_thresholds_groups_and_laws() -> None:
    vectors = [stored(name) for name in NAMES]
    made = [one for vector in vectors for one in vector["measurements"]]
    assert {one["unit"].partition(":")[0] for one in vectors} == {"event", "item", "item-add-remove", "item-per"}
    windows = {one["window"].partition(":")[0] for one in made}
    assert windows == {"cumulative", "rolling", "tumbling", "to-date", "any"}
    assert {one["noise"]["law"] for one in made} == {"discrete Laplace", "discrete Gaussian"}
    assert {len(one["thresholds"]) for one in made} >= {1, 2, 3}
    assert {one["budget"]["kind"] for one in vectors} == {"pure", "zcdp", "approximate"}
    assert {(one["groups"] or {}).get("max_groups", 0) for one in vectors} == {0, None, 1}
    assert any(len(one["measurements"]) > 2 for one in vectors)
    # In some the sampler reads on, where the first words leave numbers open, or reject them.
    assert set(CLOSE) <= {name for name in NAMES if any(map(_reads_on, stored(name)["measurements"]))}


def _reads_on(made: dict[str, Any]) -> bool:
    noise = made["noise"]
    return any(len(bits) > 48 * len(own) for bits, own in zip(noise["bits"], noise["numbers"], strict=True))


def _faults(name: str, change: Callable[[dict[str, Any]], None]) -> list[str]:
    vector = deepcopy(stored(name))
    change(vector)
    return list(reader()(vector))


def _add(place: Callable[[dict[str, Any]], Any], key: Any, by: int = 1) -> Callable[[dict[str, Any]], None]:
    def change(vector: dict[str, Any]) -> None:
        held = place(vector)
        held[key] = str(int(held[key]) + by) if isinstance(held[key], str) else held[key] + by

    return change


def _first(vector: dict[str, Any]) -> Any:
    return vector["measurements"][0]


PLANTED: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "an answer": (_add(lambda one: _first(one)["counts"][0][0], 0), "counts"),
    "an integer of the map": (_add(lambda one: _first(one)["matrix"][0][0], 0), "measured"),
    "a number measured": (_add(lambda one: _first(one)["measured"][0], -1), "measured"),
    "a number of the noise": (_add(lambda one: _first(one)["noise"]["numbers"][0], 0, -1), "noise"),
    "a noisy number": (_add(lambda one: _first(one)["noisy"][-1], 0), "noisy"),
    "the largest change": (_add(lambda one: _first(one)["sensitivity"], "largest"), "sensitivity"),
    "another item": (lambda one: one["log"].append(["another", *one["log"][0][1:3], one["most"]]), "counts"),
    "no event at all of an item": (lambda one: one["log"].__delitem__(slice(1, None)), "counts"),
    "the scale": (lambda one: _first(one)["noise"].update(scale=_first(one)["noise"]["scale"] / 2), "noise"),
    "the order of bits": (
        lambda one: _first(one)["noise"]["bits"].__setitem__(0, _first(one)["noise"]["bits"][0][::-1]),
        "noise",
    ),
    "bits that nothing reads": (
        lambda one: _first(one)["noise"]["bits"].__setitem__(0, _first(one)["noise"]["bits"][0] + "00"),
        "noise",
    ),
}


@pytest.mark.parametrize("planted", PLANTED)
@pytest.mark.parametrize("name", ["cumulative-event", "groups-item", "rolling-event"])
def test_a_changed_vector_is_refused(name: str, planted: str) -> None:
    change, found = PLANTED[planted]
    faults = _faults(name, change)
    assert any(one.endswith(found) for one in faults), faults


@pytest.mark.quick(4)
@pytest.mark.parametrize("name", NAMES)
def test_a_bound_below_the_truth_and_one_that_is_not_paid_for_are_refused(name: str) -> None:
    vector = stored(name)
    below = int(_first(vector)["sensitivity"]["largest"]) - 1

    def lower(one: dict[str, Any]) -> None:
        _first(one)["sensitivity"]["bound"] = str(below)

    assert any(one.endswith("sensitivity") for one in _faults(name, lower))
    if vector["budget"]["kind"] != "approximate":
        raised = int(_first(vector)["sensitivity"]["bound"]) // 1000 + 1
        assert "budget" in _faults(name, _add(lambda one: _first(one)["sensitivity"], "bound", raised))


def test_another_unit_is_refused() -> None:
    """Who protects more, or less, has other neighbours."""
    for name in ("rolling-item", "rolling-presence", "tumbling-period"):
        faults = _faults(name, lambda one: one.update(unit="event"))
        assert any(one.endswith("sensitivity") for one in faults), name
