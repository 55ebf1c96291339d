"""Releases with groups: asked by Python, kept in files, and not mistaken for totals."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpwindows as dw
from dpwindows import reading
from dpwindows.ask.groups import grouping
from dpwindows.count.groups import GroupedAnswers
from dpwindows.errors import InputError
from dpwindows.kernel.measure import measure
from dpwindows.release import run
from dpwindows.release.run import draw_estimates
from tests.plans import plan_of

pytestmark = pytest.mark.usefixtures("one_engine")

LOG = pa.table({"item": ["a", "b", "b"], "time": [0, 0, 1], "origin": ["EWR", "JFK", "EWR"], "gate": [1, 2, 2]})


def plan(**options: Any) -> dw.Plan:
    asked: dict[str, Any] = {"by": {"origin": ["EWR", "JFK", "LGA"]}, "totals": 0.25} | options
    steps = dw.Timeline(0, 2, step=1)
    return dw.Plan([dw.Cumulative()], timeline=steps, unit=dw.EventLevel(), budget=dw.ZCDP(1e9), **asked)


@pytest.fixture(scope="module")
def release() -> dw.Release:
    return plan().run(LOG, item="item", time="time")


def test_every_group_has_its_rows(release: dw.Release) -> None:
    assert release.to_arrow().column_names[:5] == ["window", "measure", "k", "origin", "first_step"]
    assert release.to_arrow()["origin"].to_pylist() == ["EWR", "EWR", "JFK", "JFK", "LGA", "LGA", None, None]
    assert [round(value) for value in release.to_arrow()["estimate"].to_pylist()] == [1, 2, 1, 1, 0, 0, 2, 2]
    assert round(release.count(0, 2, group={"origin": "EWR"}).estimate) == 2
    assert round(release.count(0, 1).estimate) == 2


def test_groups_of_numbers_are_numbers() -> None:
    found = plan(by={"gate": [2, 5], "origin": ["JFK"]}, totals=None).run(LOG, item="item", time="time")
    assert found.to_arrow().schema.field("gate").type == pa.int64()
    assert round(found.count(0, 2, group={"gate": 2, "origin": "JFK"}).estimate) == 1
    with pytest.raises(InputError, match="no totals over origin: name a group of each, such as origin=JFK"):
        found.count(0, 2, group={"gate": 2})


@pytest.mark.parametrize("group", [None, {"origin": "JFK"}], ids=str)
def test_of_a_release_without_rows_no_window_was_released(group: dict[str, Any] | None, release: dw.Release) -> None:
    """A file may hold that, and be in order otherwise."""
    made = release if group else plan(by=None, totals=None).run(LOG, item="item", time="time")
    empty = replace(made, table=made.table.slice(0, 0))
    with pytest.raises(InputError, match=r"the window 0 to 2 .* was not released"):
        empty.count(0, 2, group=group)


@pytest.mark.parametrize(
    ("group", "message"),
    [
        ({"origin": "BOS"}, "no group origin=BOS; the values of 'origin' are EWR, JFK, LGA"),
        ({"carrier": "UA"}, "groups by origin, and not by 'carrier'"),
    ],
)
def test_unknown_groups_are_named(release: dw.Release, group: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        release.count(0, 2, group=group)


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_differences_between_groups_share_no_noise_and_those_within_do(law: str) -> None:
    budget = dw.ZCDP(0.5) if law == "gaussian" else dw.PureDP(1.0)
    asked = plan_of(
        dw.Rolling(3),
        steps=12,
        unit=dw.EventLevel(),
        budget=budget,
        by={"origin": ["EWR", "JFK"], "gate": [1, 2]},
        totals=0.5,
    )
    found = asked.run(LOG, item="item", time="time")

    def at(start: int, **group: Any) -> dw.Window:
        return dw.Window(start, start + 3, group=group)

    one, other = found.count(4, 7, group={"origin": "EWR", "gate": 1}), found.count(4, 7, group={"origin": "JFK"})
    across = found.difference(at(4, origin="EWR", gate=1), at(4, origin="JFK"))
    assert across.estimate == pytest.approx(one.estimate - other.estimate)
    assert across.std_error == pytest.approx((one.std_error**2 + other.std_error**2) ** 0.5, rel=1e-9)
    total = found.ratio(at(4, origin="EWR", gate=1), at(4))
    assert total.estimate == pytest.approx(one.estimate / found.count(4, 7).estimate)
    within = found.difference(at(5, origin="EWR", gate=1), at(4, origin="EWR", gate=1))
    alone = dw.Plan([dw.Rolling(3)], timeline=asked.timeline, unit=asked.unit, budget=budget)
    plain = alone.run(LOG, item="item", time="time")
    # Within a group the noise is that of a release without groups, at a share of the budget.
    scale = one.std_error / plain.count(4, 7).std_error
    assert within.std_error == pytest.approx(scale * plain.difference((5, 8), (4, 7)).std_error, rel=1e-6)


def test_a_release_without_groups_has_none() -> None:
    alone = plan(by=None, totals=None).run(LOG, item="item", time="time")
    assert (alone.metadata["format"], "groups" in alone.metadata) == (1, False)
    with pytest.raises(InputError, match="has no groups, so none by 'origin'"):
        alone.count(0, 2, group={"origin": "EWR"})


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".json"])
def test_files_give_groups_back(release: dw.Release, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"release{ending}"
    release.save(path)
    assert dw.Release.load(path) == release


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: content["rows"][0].update(origin="JFK"), "does not agree with its checksum"),
        (lambda content: content["rows"][0].update(origin="BOS"), "column 'origin' has a value that no release has"),
        (lambda content: content["metadata"].pop("groups"), "its rows are not those of a release"),
        (lambda content: content["metadata"]["groups"]["columns"][0].update(values=[]), r"groups\.columns\[0\]"),
        (lambda content: content["metadata"]["groups"]["columns"][0].update(name="k"), r"groups\.columns\[0\]"),
        (lambda content: content["metadata"]["groups"].pop("group_of"), "'groups' leaves something out"),
    ],
)
def test_what_was_changed_is_noticed(release: dw.Release, tmp_path: Path, change: Any, message: str) -> None:
    path = tmp_path / "release.json"
    release.save(path)
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match=message):
        dw.Release.load(path)


def test_metadata_say_what_was_certified_of_all_groups_together() -> None:
    items = plan_of(
        dw.Cumulative(),
        steps=2,
        unit=dw.ItemAddRemove(),
        budget=dw.ZCDP(1.0),
        by={"origin": ["EWR", "JFK", "LGA"]},
        max_groups=2,
        strategy="direct",
    )
    described = items.run(LOG, item="item", time="time").metadata
    (made,) = described["measurements"]
    assert made["groups"] == {"by": ["origin"], "count": 3, "proof": "alike-in-groups"}
    # Two steps in two groups.
    assert made["sensitivity"]["bound"] == str(4 * items.allotments[0].measurement.design.sensitivity // 2)
    assert described["groups"]["max_groups"] == 2
    assert "each item in at most 2 of them" in described["guarantee"]


def test_answers_of_other_groups_are_not_measured() -> None:
    asked = plan()
    other = grouping({"origin": ["EWR", "JFK"]}, totals=0.25)
    assert other is not None
    nothing = {1: tuple(pa.array([], pa.int64()).to_numpy() for _ in range(4))}
    for answers in (GroupedAnswers(2, other, nothing).group(0), GroupedAnswers(2, other, nothing)):
        with pytest.raises(ValueError, match="counted by other groups"):
            draw_estimates(asked, answers)
        with pytest.raises(ValueError, match="counted by other groups"):
            measure(asked.measurements, asked.budget, answers)


def test_answers_are_the_same_however_the_engine_ordered_them() -> None:
    def canonical(rows: list[tuple[int, int, int, int]]) -> bytes:
        found = grouping({"g": ["x", "y"]})
        assert found is not None
        columns = tuple(pa.array(column, pa.int64()).to_numpy() for column in zip(*rows, strict=True))
        return b"".join(GroupedAnswers(3, found, {1: columns}).canonical())

    rows = [(0, 1, 1, 2), (1, 1, 1, 1), (1, 2, 2, 1), (1, 2, 1, -1)]
    assert canonical(rows) == canonical(rows[::-1])
    assert canonical(rows) != canonical([(1 - cell, *rest) for cell, *rest in rows])  # type: ignore[misc]


@pytest.mark.parametrize("budget", [dw.PureDP(1.0), dw.ApproxDP(1.0, 1e-6)], ids=str)
def test_groups_are_decoded_together_as_one_by_one(
    budget: dw.PureDP | dw.ApproxDP, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = [dw.Rolling(3), dw.Cumulative(), dw.AnyWindow(4), dw.Tumbling(5), dw.ToDate(5)]
    by = {"of": [str(value) for value in range(7)]}
    plan = dw.Plan(asked, timeline=dw.Timeline(0, 20, step=1), unit=dw.EventLevel(), budget=budget, by=by)
    random = np.random.default_rng(2)
    for made in plan.measurements:
        noisy = random.integers(-(10**9), 10**9, 7 * made.design.rows)
        reader = reading.of(made.design)
        wanted = np.concatenate([reader.decode(part) for part in np.split(noisy.astype(np.float64), 7)])
        for at_once in (1, 2 * made.design.rows, 10**6):
            monkeypatch.setattr(run, "_DECODED", at_once)
            assert run._decode(made, 1, noisy) == pytest.approx(wanted, rel=1e-9, abs=1e-6)
