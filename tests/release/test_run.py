"""The table of a release: columns that take no memory of their own hold what they would hold otherwise."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import dpwindows as dw
from dpwindows.ask.queries import Query, WindowFamily
from dpwindows.release import run


def plan() -> dw.Plan:
    two: Query = dw.AnyWindow(4).at_least(1, 2)
    queries: list[Query | WindowFamily] = [two, dw.AnyWindow(), dw.Rolling(3), dw.Cumulative(), dw.Tumbling(2)]
    timeline = dw.Timeline("2024-03-28", "2024-04-08", time_zone="Europe/Berlin")
    return dw.Plan(queries, timeline=timeline, unit=dw.EventLevel(), budget=dw.ZCDP(1.0), by={"city": ["A", "B"]})


def test_stretches_of_one_array_are_its_values(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = []
    for stretch in (1, 1 << 40):
        monkeypatch.setattr(run, "_STRETCH", stretch)
        asked = plan()
        boundaries = asked.timeline.boundaries()
        for allotment in asked.allotments:
            for measure in allotment.query.measures:
                columns = run._public_columns(asked, allotment, measure, boundaries)
                tables.append(pa.table({name: columns[name] for name in sorted(columns)}))
    shared, plain = tables[: len(tables) // 2], tables[len(tables) // 2 :]
    assert [one.equals(other) for one, other in zip(shared, plain, strict=True)] == [True] * 6
    for table in plain:
        ends = table["last_step"].to_numpy()
        assert table["end"].to_pylist() == [plan().timeline.boundaries()[end].as_py() for end in ends.tolist()]


def test_long_stretches_take_no_memory_of_their_own() -> None:
    values = pa.array(np.arange(2001))
    places = np.concatenate([np.arange(start, 2001) for start in range(1, 2001)])
    found = run._stretches(values, places)
    np.testing.assert_array_equal(found.to_numpy(), places)
    assert found.get_total_buffer_size() == values.nbytes
    # Short ones would take more for being many.
    assert run._stretches(values, places[::-1]).num_chunks == 1


class Panic(BaseException):
    """What a solver in Rust raises."""


@pytest.mark.parametrize("failure", [RuntimeError, MemoryError, Panic])
def test_what_was_drawn_is_kept_where_numbers_cannot_be_made_to_agree(
    failure: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a retry would draw anew, and the numbers would decide which draw is kept."""

    def fails(*given: object) -> None:
        raise failure

    monkeypatch.setattr(run, "consistent_counts", fails)
    log = pa.table({"item": ["a", "b"], "time": [1, 2]})
    asked = dw.Plan(dw.Rolling(2), timeline=dw.Timeline(0, 4, step=1), unit=dw.EventLevel(), budget=dw.PureDP(1.0))
    table = asked.run(log, item="item", time="time").table
    assert table["estimate"].null_count == 0
    assert table["consistent"].null_count == table.num_rows == 4
