"""ClickHouse by chdb, and DataFusion: their own types, names and settings, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
import pytest

from dpwindows.ask.timeline import Timeline
from dpwindows.count.engines import sql
from dpwindows.count.events import EngineSettings, EventColumns
from dpwindows.errors import EngineError, InputError
from tests.counting import in_steps

STEPS, DAYS, COLUMNS = Timeline.of_steps(2), Timeline("2013-01-01", "2013-01-04"), EventColumns("id", "at")


def made(session: Any, columns: str, rows: str) -> None:
    session.query("DROP TABLE IF EXISTS log")
    session.query(f"CREATE TABLE log ({columns}) ENGINE = MergeTree ORDER BY tuple()")
    session.query(f"INSERT INTO log VALUES {rows}")


@pytest.mark.xdist_group("clickhouse")
class TestClickHouse:
    @pytest.mark.parametrize(
        ("kind", "values"),
        [
            ("LowCardinality(String)", ["'a'", "'A'", "'a '", "''"]),
            ("FixedString(2)", ["'a'", "'A'"]),
            ("Enum8('x' = 1, 'y' = 2)", ["'x'", "'y'"]),
            ("UInt64", ["9007199254740993", "9007199254740992", "0"]),
            ("UUID", ["'00000000-0000-0000-0000-000000000001'", "'00000000-0000-0000-0000-000000000000'"]),
            ("IPv4", ["'10.0.0.1'", "'0.0.0.0'"]),
            ("Bool", ["true", "false"]),
        ],
    )
    def test_items_are_told_apart(self, clickhouse: Any, kind: str, values: list[str]) -> None:
        """The value that stands for nothing elsewhere, such as 0, is one here."""
        made(clickhouse, f"id {kind}, at Int8", ", ".join(f"({value}, 0), ({value}, 0)" for value in values))
        assert in_steps(clickhouse, COLUMNS, STEPS, table="log") == [len(values), 0]

    @pytest.mark.parametrize(
        ("kind", "first", "last"),
        [
            ("DateTime('America/New_York')", "1356998400", "1357257599"),
            ("DateTime64(3, 'Asia/Kolkata')", "'2013-01-01 05:30:00'", "'2013-01-04 05:29:59.999'"),
            ("DateTime64(9, 'UTC')", "'2013-01-01 00:00:00'", "'2013-01-03 23:59:59.999999999'"),
            ("Date", "'2013-01-01'", "'2013-01-03'"),
        ],
    )
    def test_times_of_each_type(self, clickhouse: Any, kind: str, first: str, last: str) -> None:
        made(clickhouse, f"id Int8, at Nullable({kind})", f"(1, {first}), (2, {last}), (3, NULL)")
        assert in_steps(clickhouse, COLUMNS, DAYS, table="default.log") == [1, 0, 1]

    def test_a_value_that_cannot_be_read_is_refused_and_not_shown(self, clickhouse: Any) -> None:
        made(clickhouse, "id Int8, at String", "(1, '2013-01-02'), (2, 'secret'), (3, '2013-02-30')")
        with pytest.raises(InputError, match="the time column 'at' is text and not all of it can be read") as caught:
            in_steps(clickhouse, COLUMNS, DAYS, table="log")
        assert "secret" not in str(caught.value)
        # What that query left behind does not come before the next result.
        made(clickhouse, "id Int8, at String", "(1, '2013-01-02')")
        assert in_steps(clickhouse, COLUMNS, DAYS, table="log") == [0, 1, 0]

    def test_what_fails_in_the_database_has_its_name(self, clickhouse: Any) -> None:
        made(clickhouse, "id Int8, at Int8", "(1, 0)")
        clickhouse.query("DROP VIEW IF EXISTS broken")
        clickhouse.query("CREATE VIEW broken AS SELECT id, throwIf(id > 0, 'secret') AS at FROM log")
        with pytest.raises(EngineError, match=r"^ClickHouse failed \(FUNCTION_THROW_IF_VALUE_IS_NON_ZERO\)$"):
            in_steps(clickhouse, COLUMNS, STEPS, table="broken")
        clickhouse.query("DROP VIEW broken")

    def test_names_and_settings(self, clickhouse: Any) -> None:
        made(clickhouse, 'id Int8, at Int8, "a `b" Int8', "(1, 0, 1)")
        assert in_steps(clickhouse, EventColumns("a `b", "at"), STEPS, table="log") == [1, 0]
        with pytest.raises(InputError, match=r"table log has no column 'ID' for the item \(did you mean 'id'\?\)"):
            in_steps(clickhouse, EventColumns("ID", "at"), STEPS, table="log")
        with pytest.raises(InputError, match="has no table 'lag'"):
            in_steps(clickhouse, COLUMNS, STEPS, table="lag")
        with pytest.raises(InputError, match="threads does not go with the engine clickhouse: the caller's own chdb"):
            in_steps(clickhouse, COLUMNS, STEPS, table="log", settings=EngineSettings(threads=2))


@pytest.mark.xdist_group("clickhouse")
class TestDataFusion:
    def test_a_session_is_all_that_is_read(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"named with table, of a datafusion\.SessionContext"):
            in_steps(tmp_path / "log.parquet", COLUMNS, STEPS, settings=EngineSettings(engine="datafusion"))
        session = datafusion.SessionContext()
        session.from_arrow(pa.table({"id": [1, 2], "at": pa.array([0, 1], pa.uint64())}), "log")
        assert in_steps(session, COLUMNS, STEPS, table="log") == [1, 1]
        with pytest.raises(InputError, match="no column 'it' for the time; its columns are id, at"):
            in_steps(session, EventColumns("id", "it"), STEPS, table="log")
        with pytest.raises(InputError, match="memory_limit does not go with the engine datafusion"):
            in_steps(session, COLUMNS, STEPS, table="log", settings=EngineSettings(memory_limit="1GB"))

    def test_decimals_that_are_never_null(self) -> None:
        """It takes x % 1 for 0 there."""
        for value, refused in (("7.5", True), ("7", False)):
            session = datafusion.SessionContext()
            session.sql(f"CREATE VIEW log AS SELECT 1 AS id, 0 AS at, CAST({value} AS DECIMAL(20, 6)) AS n").collect()
            counted = EventColumns("id", "at", "n")
            if refused:
                with pytest.raises(InputError, match="holds decimals, and not all of them are whole numbers"):
                    in_steps(session, counted, STEPS, table="log")
            else:
                assert in_steps(session, counted, STEPS, 7, table="log") == [1, 0]


@pytest.mark.xdist_group("clickhouse")
def test_a_database_that_never_ran_here_is_said_to_be_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once, on the screen, before it is probed."""
    monkeypatch.setattr(sql, "RUN_HERE", ())
    monkeypatch.setattr(sql, "_PROBED", set())
    monkeypatch.setattr(sql, "probes", lambda dialect: [])
    monkeypatch.setattr(sql, "is_passed", lambda key: False)
    monkeypatch.setattr(sql, "keep_passed", lambda key: None)
    session = datafusion.SessionContext()
    session.from_arrow(pa.table({"id": [1], "at": [0]}), "log")
    for _ in range(2):
        assert in_steps(session, COLUMNS, STEPS, table="log") == [1, 0]
    said = capsys.readouterr().err
    assert len(re.findall("datafusion: the query has been written for it, and never run there", said)) == 1
