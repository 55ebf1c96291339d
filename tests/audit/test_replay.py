"""Record and replay: neighbours under one noise differ in nothing else; planted differences are found."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import dpwindows as dw
from dpwindows.ask.privacy import ZCDP, Budget, EventLevel, ItemAddRemove, ItemLevel, PureDP, Unit
from dpwindows.ask.queries import AnyWindow, Cumulative, Query, Rolling, WindowFamily
from dpwindows.audit import Pair, audit_replay, large_logs
from dpwindows.audit.neighbours import changes
from dpwindows.audit.replay import FRESH, ReplayAudit, published_bytes, replay
from dpwindows.audit.tape import Tape, taped
from dpwindows.count.events import EngineSettings
from dpwindows.errors import InputError
from dpwindows.kernel import measure as kernel
from dpwindows.kernel.designs import Design
from dpwindows.release import run as release
from dpwindows.release.release import Release
from tests.audit.asked import BUDGETS, UNITS, Ints, scaled
from tests.plans import plan_of as asked_plan

QUIET = EngineSettings(progress=False)
SHARED = Pair((0, 2, 1, 0, 0, 0), (0, 1, 1, 0, 0, 0))


def plan_of(*queries: Query | WindowFamily, unit: Unit | None = None, budget: Budget | None = None) -> dw.Plan:
    asked = queries or [Rolling(3).at_least(1, 2)]
    return asked_plan(*asked, unit=unit or EventLevel(), budget=budget or ZCDP(0.5), steps=6)


# --- Honest releases ------------------------------------------------------------------------------------------------


@pytest.fixture
def tables_by_one_engine(an_engine: Callable[[], AbstractContextManager[None]]) -> Iterator[None]:
    """For tests that read tables; the module has others too."""
    with an_engine():
        yield


by_one_engine = pytest.mark.usefixtures("tables_by_one_engine")


@pytest.mark.slow
@pytest.mark.search(5)
@by_one_engine
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: budget.kind)
def test_neighbours_in_every_cell_differ_in_nothing_but_noise(unit: Unit, budget: Budget) -> None:
    plan = plan_of(Rolling(3).at_least(1, 2), Cumulative().exactly(1), AnyWindow(2), unit=unit, budget=budget)
    found = audit_replay(plan, [SHARED], made_up=2)
    assert found.verdict == "nothing but noise", found.faults
    assert found.pairs == 6
    assert 0 < found.of_certified <= 1
    designs = [one.measurement.design for one in plan.allotments]
    assert found.draws == found.pairs * sum(design.rows * len(design.problem.thresholds) for design in designs)


@by_one_engine
@pytest.mark.parametrize("strategy", ["direct", "tree", "paper"])
def test_neighbours_under_other_strategies_differ_in_nothing_but_noise(strategy: str) -> None:
    for window in (Cumulative(), AnyWindow()):
        try:
            plan = asked_plan(window, unit=EventLevel(), budget=PureDP(1.0), steps=6, strategy=strategy)
        except InputError:
            continue
        assert audit_replay(plan, [SHARED], made_up=1).verdict == "nothing but noise"


@pytest.mark.slow
@by_one_engine
@pytest.mark.parametrize("unit", [EventLevel(), ItemLevel()], ids=lambda unit: unit.name)
def test_streams_of_neighbours_differ_in_nothing_but_noise(unit: Unit) -> None:
    plan = dw.StreamPlan([Rolling(2).at_least(1, 2), Cumulative()], horizon=6, unit=unit, budget=ZCDP(0.5))
    found = audit_replay(plan, [SHARED], made_up=1)
    assert found.verdict == "nothing but noise", found.faults
    assert found.of_certified > 0


# --- Ways a release is made -----------------------------------------------------------------------------------------


def tables(plan: dw.Plan, *, items: int = 40) -> tuple[pa.Table, pa.Table]:
    """Two neighbouring logs of many items; the one that differs comes first."""
    rng = np.random.default_rng(3)
    histories = large_logs.random_histories(items, 6, 2, rng)
    others = {f"item {number}": history for number, history in enumerate(histories)}
    low, high = changes(plan.unit, 6)[0].realise(np.array([0, 1, 0, 0, 2, 0]), np.array([1, 0, 0, 1, 1, 1]))
    boundaries = plan.timeline.boundaries()
    one, other = (large_logs.events_table(boundaries, {"changed": history} | others) for history in (low, high))
    return one, other


def compared(plan: dw.Plan, give: Callable[[pa.Table, str], Any], **more: Any) -> ReplayAudit:
    one, other = tables(plan)

    def released(log: pa.Table, name: str) -> Callable[[], list[dw.Release]]:
        source = give(log, name)
        return lambda: [plan.run(source, item="item", time="time", count="count", settings=QUIET, **more)]

    measurements = plan.measurements
    return replay(measurements, released(one, "one"), released(other, "other"))


def _sqlite(log: pa.Table, path: Path) -> str:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE events (item TEXT, time INTEGER, count INTEGER)")
        connection.executemany("INSERT INTO events VALUES (?, ?, ?)", zip(*log.to_pydict().values(), strict=True))
    return str(path)


def _duckdb(log: pa.Table, path: Path) -> str:
    import duckdb

    with duckdb.connect(str(path)) as connection:
        connection.register("log", log)
        connection.execute("CREATE TABLE events AS SELECT * FROM log")
    return str(path)


def _csv(log: pa.Table, path: Path) -> str:
    csv.write_csv(log, path)
    return str(path)


def _parquet(log: pa.Table, path: Path) -> str:
    parquet.write_table(log, path)
    return str(path)


SOURCES: dict[str, Callable[[pa.Table, Path], Any]] = {
    "arrow": lambda log, path: log,
    "pandas": lambda log, path: log.to_pandas(),
    "csv": _csv,
    "parquet": _parquet,
    "sqlite": _sqlite,
    "duckdb": _duckdb,
}


@pytest.mark.quick(5)
@pytest.mark.parametrize("source", SOURCES, ids=str)
@pytest.mark.parametrize("unit", [EventLevel(), ItemLevel()], ids=lambda unit: unit.name)
def test_neighbours_from_any_source_differ_in_nothing_but_noise(source: str, unit: Unit, tmp_path: Path) -> None:
    plan = plan_of(Rolling(3).at_least(1, 2), Cumulative(), unit=unit)
    more = {"table": "events"} if source in ("sqlite", "duckdb") else {}
    found = compared(plan, lambda log, name: SOURCES[source](log, tmp_path / f"{name}.{source}"), **more)
    assert not found.faults
    assert 0 < found.of_certified <= 1


def test_neighbours_through_ledgers_differ_in_nothing_but_noise(tmp_path: Path) -> None:
    plan = plan_of()
    one, other = tables(plan)
    ledgers = {
        name: dw.Ledger.create(tmp_path / f"{name}.ledger", "log", unit=EventLevel(), budget=ZCDP(1.0))
        for name in ("one", "other")
    }

    def released(log: pa.Table, name: str) -> Callable[[], list[dw.Release]]:
        return lambda: [plan.run(log, item="item", time="time", count="count", settings=QUIET, ledger=ledgers[name])]

    measurements = plan.measurements
    found = replay(measurements, released(one, "one"), released(other, "other"))
    assert not found.faults


@pytest.mark.parametrize("ending", ["json", "csv", "parquet"])
def test_files_of_neighbours_are_the_same_to_the_byte(ending: str, tmp_path: Path) -> None:
    plan = plan_of(Rolling(3).at_least(1, 2), Cumulative())
    files = []
    record: Tape | None = None
    for log in tables(plan):
        with taped(Tape(recorded=record)) as record:
            made = plan.run(log, item="item", time="time", count="count", settings=QUIET)
        fixed = dw.Release(made.table, made.metadata | dict.fromkeys(FRESH, "fixed"))
        fixed.save(tmp_path / f"out.{ending}", force=True)
        files.append([path.read_bytes() for path in sorted(tmp_path.glob("out.*"))])
    assert files[0] == files[1]


# --- Planted violations ---------------------------------------------------------------------------------------------

Patch = pytest.MonkeyPatch


def counts_in_the_metadata(patch: Patch) -> None:
    draw, made = release.draw_estimates, Release.__init__
    counted: list[int] = []

    def telling(plan: Any, answers: Any, *more: Any) -> Any:
        counted[:] = [int(answers.cumulative(1)[-1])]
        return draw(plan, answers, *more)

    patch.setattr(release, "draw_estimates", telling)
    labelled = lambda self, table, metadata: made(self, table, metadata | {"items": counted[0]})  # noqa: E731
    patch.setattr(Release, "__init__", labelled)


def estimates_held_to_what_is_possible(patch: Patch) -> None:
    """Clamped by exact counts, as libraries have done."""
    draw = release.draw_estimates

    def clamped(plan: Any, answers: Any, *more: Any) -> Any:
        return [np.minimum(values, answers.cumulative(1)[-1]) for values in draw(plan, answers, *more)]

    patch.setattr(release, "draw_estimates", clamped)


def rows_left_out_where_nothing_was_counted(patch: Patch) -> None:
    draw, made = release.draw_estimates, Release.__init__
    kept: list[bool] = []

    def watching(plan: Any, answers: Any, *more: Any) -> Any:
        kept[:] = [bool(answers.cumulative(1)[0])]
        return draw(plan, answers, *more)

    patch.setattr(release, "draw_estimates", watching)
    shortened = lambda self, table, metadata: made(self, table if kept[0] else table.slice(1), metadata)  # noqa: E731
    patch.setattr(Release, "__init__", shortened)


def noise_that_is_asked_for_by_the_data(patch: Patch) -> None:
    measure = kernel.measure

    def searching(measurements: Any, budget: Any, answers: Any, *more: Any) -> Any:
        for _ in range(int(answers.cumulative(2)[-1])):
            kernel.draw_noise("discrete Laplace", 1.0, 1)
        return measure(measurements, budget, answers, *more)

    patch.setattr(release, "measure", searching)


def a_scale_that_depends_on_the_data(patch: Patch) -> None:
    measure = kernel.measure

    def adapting(measurements: Any, budget: Any, answers: Any, *more: Any) -> Any:
        with pytest.MonkeyPatch.context() as inner:
            factor = 1.5 if answers.cumulative(1)[-1] % 2 else 1.0
            inner.setattr(kernel, "draw_noise", scaled(factor)(kernel.draw_noise))
            return measure(measurements, budget, answers, *more)

    patch.setattr(release, "measure", adapting)


def a_sensitivity_that_large_logs_exceed(patch: Patch) -> None:
    encode = Design.encode
    patch.setattr(
        Design,
        "encode",
        lambda self, answers, k: encode(self, answers, k) * (3 if answers.cumulative(1).max() > 50 else 1),
    )


def noise_that_is_used_twice(patch: Patch) -> None:
    """Both thresholds get the noise that was drawn for one."""

    def measure(measurements: Any, budget: Any, answers: Any, *more: Any) -> Any:
        found = []
        for measurement in measurements:
            noise = kernel.draw_noise(measurement.law, measurement.scale, measurement.design.rows)
            thresholds = measurement.design.problem.thresholds
            found.append({k: kernel.add_noise(measurement.design.encode(answers, k), noise) for k in thresholds})
        return found

    patch.setattr(release, "measure", measure)


def no_noise(patch: Patch) -> None:
    def silent(measurements: Any, budget: Any, answers: Any, *more: Any) -> Any:
        return [{k: one.design.encode(answers, k) for k in one.design.problem.thresholds} for one in measurements]

    patch.setattr(release, "measure", silent)


def noise_from_elsewhere(patch: Patch) -> None:
    """Fresh noise that does not go through the kernel differs from run to run."""
    draw, rng = release.draw_estimates, np.random.default_rng(1)
    patch.setattr(
        release, "draw_estimates", lambda *asked: [values + rng.normal(size=values.shape) for values in draw(*asked)]
    )


PLANTED: list[tuple[Callable[[Patch], None], dict[str, Any], str]] = [
    (counts_in_the_metadata, {"unit": ItemAddRemove()}, r"metadata 'items'"),
    (estimates_held_to_what_is_possible, {"unit": ItemAddRemove(), "budget": ZCDP(1e-4)}, r"column 'estimate'"),
    (rows_left_out_where_nothing_was_counted, {}, "differs between neighbours"),
    (noise_that_is_asked_for_by_the_data, {}, r"(other noise.*discrete Laplace|added to nothing)"),
    (a_scale_that_depends_on_the_data, {"unit": ItemAddRemove()}, r"where the plan states.*asks for other noise"),
    (a_sensitivity_that_large_logs_exceed, {"budget": PureDP(1.0)}, "beyond the certified"),
    (noise_that_is_used_twice, {}, "not the noise that was drawn for it"),
    (no_noise, {}, "had noise added"),
    (noise_from_elsewhere, {}, r"column 'estimate'"),
]


@by_one_engine
@pytest.mark.parametrize(("planted", "asked", "said"), PLANTED)
def test_what_depends_on_the_data_is_found(
    planted: Callable[[Patch], None], asked: dict[str, Any], said: str, monkeypatch: Patch
) -> None:
    planted(monkeypatch)
    pairs = [SHARED, Pair((0, 1, 0, 0, 0, 0), (1, 1, 0, 0, 0, 0))]
    assert re.search(said, " ".join(audit_replay(plan_of(**asked), pairs, made_up=2).faults))


@by_one_engine
def test_a_neighbour_that_is_refused_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = release.draw_estimates

    def strict(plan: Any, answers: Any, *more: Any) -> Any:
        if answers.cumulative(2)[-1] > answers.cumulative(2)[1]:
            raise InputError("too many")
        return draw(plan, answers, *more)

    monkeypatch.setattr(release, "draw_estimates", strict)
    plan = plan_of()

    def run(*history: int) -> Callable[[], list[dw.Release]]:
        log = large_logs.events_table(plan.timeline.boundaries(), {"u": np.array(history)})
        return lambda: [large_logs.released(plan, log)]

    faults = replay(plan.measurements, run(1, 0, 0, 0, 0, 0), run(1, 0, 0, 1, 0, 0)).faults
    assert "cannot be released where the log can" in faults[0]


@by_one_engine
def test_a_stream_that_reuses_its_noise_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step after the first is given the first one's noise, by the mechanism and not by the kernel."""
    from dpwindows.stream import mechanism

    step = vars(mechanism)["measure_step"]
    known: list[Ints] = []

    def cached(measurements: Any, budget: Any, number: int, exact: Any, by: Any) -> Any:
        if len(known) < 1:
            found = step(measurements, budget, number, exact, by)
            known.append(found[0][1] - exact[0][1])
            return found
        return [{k: values + known[0] for k, values in one.items()} for one in exact]

    monkeypatch.setattr(mechanism, "measure_step", cached)
    plan = dw.StreamPlan([Rolling(2)], horizon=6, unit=EventLevel(), budget=ZCDP(0.5))
    found = audit_replay(plan, [Pair((0, 1, 0, 0, 0, 0), (0, 1, 1, 0, 0, 0))], made_up=0)
    assert any("the neighbour draws 0 times" in fault or "had noise added" in fault for fault in found.faults)


def half_the_scale(step: Any, measurements: Any, budget: Any, number: int, exact: Any) -> Any:
    draw = kernel.draw_noise
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "draw_noise", lambda law, scale, *more: draw(law, scale / 2, *more))
        return step(measurements, budget, number, exact)


def half_the_noise(step: Any, measurements: Any, budget: Any, number: int, exact: Any) -> Any:
    add = kernel.add_noise
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "add_noise", lambda values, noise: add(values, noise // 2))
        return step(measurements, budget, number, exact)


def halfway_to_the_exact(step: Any, measurements: Any, budget: Any, number: int, exact: Any) -> Any:
    noisy = step(measurements, budget, number, exact)
    return [{k: (values + exact[i][k]) // 2 for k, values in one.items()} for i, one in enumerate(noisy)]


def noise_of_an_earlier_step(step: Any, measurements: Any, budget: Any, number: int, exact: Any) -> Any:
    """Drawn as stated each time, and replaced by that of the first step that was ever made."""
    found = step(measurements, budget, number, exact)
    noise = vars(noise_of_an_earlier_step).setdefault("noise", found[0][1] - exact[0][1])
    return [{k: values + noise for k, values in one.items()} for one in exact]


@by_one_engine
@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        (half_the_scale, "where the plan states"),
        (half_the_noise, "is not the noise that was drawn for it"),
        (halfway_to_the_exact, "column 'estimate' of the release differs"),
        (noise_of_an_earlier_step, "column 'estimate' of the release differs"),
    ],
)
def test_steps_of_a_stream_with_less_noise_than_stated_are_found(
    wrong: Callable[..., Any], word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpwindows.stream import mechanism

    step = vars(mechanism)["measure_step"]
    vars(noise_of_an_earlier_step).pop("noise", None)
    monkeypatch.setattr(mechanism, "measure_step", lambda *asked: wrong(partial(step, by=asked[-1]), *asked[:-1]))
    plan = dw.StreamPlan([Rolling(2)], horizon=6, unit=EventLevel(), budget=ZCDP(0.5))
    found = audit_replay(plan, [Pair((0, 1, 0, 0, 0, 0), (0, 1, 1, 0, 0, 0))], made_up=0)
    assert any(word in fault for fault in found.faults), found.faults


# --- The tape -------------------------------------------------------------------------------------------------------


def test_a_tape_is_gone_after_its_run_and_other_threads_never_see_it() -> None:
    draw, add = kernel.draw_noise, kernel.add_noise
    elsewhere: list[Ints] = []
    plan = plan_of()
    log, _ = tables(plan)

    def release_elsewhere() -> None:
        made = plan.run(log, item="item", time="time", count="count", settings=QUIET)
        elsewhere.append(made.to_arrow()["estimate"].to_numpy())

    with taped(Tape()) as tape:
        mine = plan.run(log, item="item", time="time", count="count", settings=QUIET)
        for _ in range(2):
            other = threading.Thread(target=release_elsewhere)
            other.start()
            other.join()
    assert len(tape.additions) == 2
    with taped(Tape(recorded=tape)):
        again = plan.run(log, item="item", time="time", count="count", settings=QUIET)
        other = threading.Thread(target=release_elsewhere)
        other.start()
        other.join()
    assert kernel.draw_noise is draw
    assert kernel.add_noise is add
    numbers = mine.to_arrow()["estimate"].to_numpy()
    assert np.array_equal(numbers, again.to_arrow()["estimate"].to_numpy())
    assert len(elsewhere) == 3
    for one in elsewhere:
        assert not np.any(one == numbers)
    assert not np.any(elsewhere[0] == elsewhere[1])


def test_a_tape_is_gone_after_a_failure() -> None:
    draw = kernel.draw_noise
    with pytest.raises(RuntimeError, match="midway"), taped(Tape()):
        raise RuntimeError("midway")
    assert kernel.draw_noise is draw


def test_what_is_published_is_compared_piece_by_piece() -> None:
    plan = plan_of()
    log, _ = tables(plan)
    made = plan.run(log, item="item", time="time", count="count", settings=QUIET)
    pieces = published_bytes(made)
    assert {f"column {name!r}" for name in made.table.column_names} <= set(pieces)
    assert {f"metadata {name!r}" for name in made.metadata if name not in FRESH} <= set(pieces)
    renamed = dw.Release(made.table.rename_columns([*made.table.column_names[:-1], "other"]), made.metadata)
    assert published_bytes(renamed) != pieces


@by_one_engine
def test_findings_are_plain_values() -> None:
    told = audit_replay(plan_of(), [SHARED]).to_dict()
    assert told["verdict"] == "nothing but noise"
    assert told["faults"] == ()
