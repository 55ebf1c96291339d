"""Items with --item-type integer: the whole numbers that values stand for, each by itself."""

from __future__ import annotations

import sqlite3
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpwindows as dw
from dpwindows.count.engines.duckdb import open_events
from dpwindows.count.events import EventColumns
from dpwindows.errors import InputError
from dpwindows.ledger.request import Request, require_fit

STEPS = dw.Timeline.of_steps(1)
COLUMNS = EventColumns("item", "time", item_type="integer")


def items(source: object, columns: EventColumns = COLUMNS) -> list[Any]:
    with open_events(source, columns, STEPS, cap=1) as events:
        return sorted(row[0] for row in events.connection.sql(events.sql).fetchall())


def log(values: Any) -> pa.Table:
    return pa.table({"item": values, "time": [0] * len(values)})


def test_floating_point_numbers_below_2_53_stand_for_one_number() -> None:
    whole = [13085.0, -0.0, -7.0, 2.0**53 - 1, 1 - 2.0**53]
    none = [0.5, 2.0**53, -(2.0**53), 1e300, float("nan"), float("inf"), float("-inf"), None]
    assert items(log(pa.array(whole + none))) == sorted(map(int, whole))
    single = log(pa.array([3.0, 2.0**24 - 1, 2.0**24], pa.float32()))
    assert items(single) == [3, 2**24 - 1]


def test_every_text_by_itself() -> None:
    whole = ["13085.0", "13085", " 7 ", "+7", "007", "-3.000", "8.", str(2**63 - 1), f"{2**53 - 1}.0"]
    none = [
        *("1e4", "1.5", "nan", "", ".0", "0x10", "1 2", "7.0x", f"{2**53}.0", f"-{2**53}.0", str(2**63)),
        *("9" * 60 + ".0", "٣", None),
    ]
    read = [13085, 13085, 7, 7, 7, -3, 8, 2**63 - 1, 2**53 - 1]
    assert items(log(whole + none)) == sorted(read)
    for text, number in zip(whole, read, strict=True):
        assert items(log([text, "other"])) == [number], "no other row has a part in it"


def test_decimals_and_integers_are_exact() -> None:
    exact = log(pa.array([Decimal(2**53 + 1), Decimal("0.5"), Decimal(10) ** 30], pa.decimal128(38, 1)))
    assert items(exact) == [2**53 + 1]
    assert items(log([2**53 + 1, None])) == [2**53 + 1]
    assert items(log(pa.array([2**64 - 1], pa.uint64()))) == [2**64 - 1]


def test_pandas_and_csv_and_parquet_agree(tmp_path: Path) -> None:
    frame = pd.DataFrame({"item": [13085.0, None, 13085.0, 7.0], "time": [0] * 4})
    assert items(frame) == [7, 13085, 13085]
    frame.to_csv(tmp_path / "log.csv", index=False)
    frame.to_parquet(tmp_path / "log.parquet")
    assert items(tmp_path / "log.csv") == items(tmp_path / "log.parquet") == [7, 13085, 13085]
    with pytest.raises(InputError, match="--item-type integer"):
        items(tmp_path / "log.parquet", EventColumns("item", "time"))


def test_files_of_several_types_go_together(tmp_path: Path) -> None:
    """The months with a missing id are of doubles, the others of integers."""
    for place, values in enumerate((pa.array([1.0, None]), pa.array([1, 2]), pa.array([3], pa.int32()))):
        pq.write_table(log(values), tmp_path / f"{place}.parquet")
    assert items(tmp_path) == [1, 1, 2, 3]


def test_other_types_are_refused_and_sqlite_is_read_alike(tmp_path: Path) -> None:
    for values in ([True], [b"1"], pa.array([0], pa.date32())):
        with pytest.raises(InputError, match=r"and the engine duckdb makes no whole numbers: leave"):
            items(log(values))
    with pytest.raises(InputError, match="item_type must be 'integer'"):
        EventColumns("item", "time", item_type="text")
    with sqlite3.connect(tmp_path / "log.sqlite") as connection:
        connection.execute("CREATE TABLE log (item, time)")
        connection.execute("INSERT INTO log VALUES ('1.0', 0)")
    connection.close()
    assert items(tmp_path / "log.sqlite") == [1]
    plan = dw.Plan([dw.Cumulative()], timeline=STEPS, unit=dw.EventLevel(), budget=dw.PureDP(1e6))
    assert (
        round(
            plan.run(log([1.0, 1.0]), item="item", time="time", item_type="integer").to_arrow()["estimate"][0].as_py()
        )
        == 1
    )


def test_a_ledger_keeps_to_one_reading_of_items() -> None:
    plain, whole = (
        Request("release", {"queries": []}, dw.PureDP(1.0), dw.ItemLevel(), STEPS, one)
        for one in (EventColumns("item", "time"), EventColumns("item", "time", item_type="integer"))
    )
    assert plain.key != whole.key
    assert plain.facts["columns"] == {"item": "item", "time": "time", "count": None}
    require_fit(whole, dw.ItemLevel(), singleton=False, first=whole.facts | whole.place)
    for one, other in ((plain, whole), (whole, plain)):
        with pytest.raises(InputError, match="--item-type integer"):
            require_fit(one, dw.ItemLevel(), singleton=False, first=other.facts | other.place)
