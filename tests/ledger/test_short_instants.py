"""Pieces of time in a ledger, as its screen and its refusals say them; what is recorded and charged is not touched."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dpwindows.ledger.book import short_instant
from tests.end_to_end.command_line import run

pytestmark = pytest.mark.usefixtures("one_engine")

PRIVACY = ("--unit", "item-per:28", "--epsilon", "1", "--delta", "1e-6")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2024-12-02T00:00:00.000001+01:00", "2024-12-02"),
        ("2024-12-02T23:00:00.000001+01:00", "2024-12-02T23:00:00+01:00"),
        ("2024-12-02T23:30:00+01:00", "2024-12-02T23:30:00+01:00"),
        ("2024-12-02", "2024-12-02"),
        (7, 7),
        (None, None),
    ],
)
def test_an_instant_is_said_without_its_microsecond(text: str | int | None, said: str | int | None) -> None:
    assert short_instant(text) == said


def test_a_stream_without_end_is_said_in_days_and_told_exactly_as_json(tmp_path: Path) -> None:
    ledger, log = tmp_path / "ledger", tmp_path / "log.csv"
    log.write_text("user,time\nann,2025-01-02\n")
    paid = ("--ledger", ledger, "--dataset", "users")
    read = ("--item", "user", "--time", "time", "--start", "2025-01-01", "--time-zone", "Europe/Berlin")
    asked = (*read, "--window", "rolling:7", *PRIVACY, *paid)
    assert run("ledger", "create", *paid[1:], *PRIVACY).code == 0
    assert run("stream", "create", tmp_path / "state", *asked).code == 0
    shown = run("ledger", "show", ledger).out
    assert "Any 28 steps in a row are charged for the releases on the line of their first step:" in " ".join(
        shown.split()
    )
    assert "2024-12-02" in shown
    assert "000001" not in shown
    (page,) = json.loads(run("ledger", "show", ledger, "--json").out)["datasets"]
    assert page["by_time"][1]["start"] == "2024-12-02T00:00:00.000001+01:00"
    refused = run("release", log, *asked, "--end", "2025-02-01", "-o", tmp_path / "out.csv").must_refuse(
        "is spent for stretches of 28 steps that begin between 2024-12-02 and"
    )
    assert "000001" not in refused.err
