"""Files of kinds that are not read are refused with what they are and what to do about them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpwindows.ask.timeline import Timeline
from dpwindows.count.events import EventColumns
from dpwindows.errors import InputError
from tests.counting import count_events
from tests.end_to_end.command_line import run


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("log.rda", "log.rda is a file of R: write it to Parquet and give that, in R with arrow::write_parquet"),
        ("log.RData", "is a file of R"),
        ("log.tar.gz", "is an archive of files: unpack it"),
        ("log.csv.zip", "is an archive of files: unpack it"),
        ("log.sas7bdat", "in Python with pandas.read_sas('log.sas7bdat').to_parquet('events.parquet')"),
        ("log.json", "if all is one list, write its objects as lines, with jq -c '.[]' log.json > events.jsonl"),
        ("log.xls", "save it as .xlsx or the sheet as CSV UTF-8"),
        ("log.csv.bz2", "unpack it, or pack it with gzip or zstd"),
        ("log.unheard-of", "its name does not end as CSV does"),
    ],
)
def test_each_says_what_it_is_and_what_to_do(name: str, said: str) -> None:
    Path(name).write_bytes(b"something else")
    for command in (("check",), ("check", "--delimiter", ";")):
        if command == ("check",) or name != "log.unheard-of":
            run(*command, name).must_refuse(said)


def test_what_is_called_parquet_and_is_none_says_what_reads_it() -> None:
    Path("log.parquet").write_text("who,at\nann,2013-01-01\n")
    said = "log.parquet is no Parquet file, whatever its name says: if it is CSV, give it a name that ends in .csv"
    run("check", "log.parquet").must_refuse(said, "--delimiter")
    with pytest.raises(InputError, match=said):
        count_events("log.parquet", EventColumns("who", "at"), Timeline("2013-01-01", "2013-01-03"), [1])
    run("check", "log.parquet", "--delimiter", ",").must_work()


def test_an_archive_called_csv_is_no_csv() -> None:
    Path("log.csv").write_bytes(b"PK\3\4 and so on")
    run("check", "log.csv").must_refuse("is an archive of files")
