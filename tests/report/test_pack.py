"""What a page holds is what was released, to the digits shown."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dpwindows.report.clock import Clock
from dpwindows.report.pack import decimals, pack
from dpwindows.report.series import families
from tests.report.made_up import SHAPES, a_release, about, unpacked


def held(table: pa.Table) -> list[dict[str, Any]]:
    """Every packed row as numbers, in the order packed."""
    packed = pack(families(table), Clock.of(table, about()))
    columns, rows = unpacked(packed.index, packed.text), []
    at = 0
    for one in packed.index["series"]:
        unit = 10.0 ** -one["decimals"]
        for row in range(at, at + one["rows"]):
            estimate = columns["estimate"][row] * unit
            rows.append(
                {
                    **{key: one[key] for key in ("window", "measure", "k", "decimals")},
                    "first_step": columns["first"][row],
                    "last_step": columns["last"][row],
                    "estimate": estimate,
                    "lower": estimate - columns["below"][row] * unit,
                    "upper": estimate + columns["above"][row] * unit,
                    "std_error": columns["error"][row] * one["errorUnit"],
                    "complete": not columns.get("cut", {row: 0})[row],
                    "consistent": columns["consistent"][row] if "consistent" in columns else None,
                }
            )
        at += one["rows"]
    return rows


KEY = ("window", "measure", "k", "first_step", "last_step")


@pytest.mark.parametrize("name", [name for name in SHAPES if "infinite" not in name])
def test_every_released_number_is_on_the_page_to_its_last_digit_shown(name: str) -> None:
    table = SHAPES[name]
    released = {tuple(row[key] for key in KEY): row for row in table.to_pylist()}
    rows = held(table)
    assert len(rows) == len(released)
    for row in rows:
        there = released[tuple(row[key] for key in KEY)]
        for column in ("estimate", "lower", "upper"):
            assert row[column] == pytest.approx(round(there[column], row["decimals"]), abs=1e-9, rel=1e-12), column
        assert row["std_error"] == pytest.approx(there["std_error"], rel=1e-3)
        assert row["complete"] == there["complete"]


def test_the_consistent_table_is_packed_where_there_is_one() -> None:
    table = SHAPES["rolling"]
    values = [None if at == 3 else at * 7 for at in range(table.num_rows)]
    table = table.set_column(table.num_columns - 1, "consistent", pa.array(values, pa.int64()))
    assert [row["consistent"] for row in held(table)] == [-(2**31) if value is None else value for value in values]
    assert {row["consistent"] for row in held(SHAPES["rolling"])} == {None}


@pytest.mark.parametrize(
    ("error", "digits"), [(1e9, 0), (2.0, 0), (1.99, 1), (0.2, 1), (0.19, 2), (0.002, 3), (0.0, 1), (None, 1)]
)
def test_decimals_follow_the_error(error: float | None, digits: int) -> None:
    assert decimals(error) == digits


def test_times_are_packed_across_a_change_of_clocks() -> None:
    table = a_release("cumulative", steps=60)
    times = pack(families(table), Clock.of(table, about())).index["times"]
    assert times["runs"] == [[1, 86_400_000, 60]]
    monthly = table.take(np.array([0, 9, 10]))
    assert pack(families(monthly), Clock.of(monthly, about())).index["times"]["runs"] == [
        [1, 86_400_000, 1],
        [9, 9 * 86_400_000, 1],
        [1, 86_400_000, 1],
    ]
