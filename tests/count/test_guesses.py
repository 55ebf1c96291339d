"""What the first rows of a log suggest: never more than they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpwindows.count.engines.duckdb_sample import sample_of
from dpwindows.count.events import SPACES, CsvLayout
from dpwindows.count.guesses import guessed_columns, time_guess
from dpwindows.count.query.dialect import Kind
from dpwindows.errors import InputError


@pytest.mark.parametrize(
    ("values", "formats"),
    [
        (["2013-01-01", None, "2013-01-02T03:04:05Z"], ("iso",)),
        (["1341100800", "1341100801.0"], ("epoch-s",)),
        (["1341100800000"], ("epoch-ms",)),
        (["1341100800000000"], ("epoch-us",)),
        (["20130131"], ("%Y%m%d",)),
        (["1/31/2013 0:05"], ("%m/%d/%Y %H:%M",)),
        (["31/1/2013"], ("%d/%m/%Y",)),
        (["1/2/2013"], ("%m/%d/%Y", "%d/%m/%Y")),
        (["17", "18"], ("integer",)),
    ],
)
def test_a_format_is_guessed_only_if_it_reads_every_value(values: list[str | None], formats: tuple[str, ...]) -> None:
    guess = time_guess(values, Kind.TEXT)
    assert guess is not None
    assert guess.formats == formats
    assert time_guess([*values, "ann"], Kind.TEXT) is None


def written(folder: Path, text: str, name: str = "log.csv") -> str:
    (folder / name).write_text(text)
    return str(folder / name)


@pytest.mark.parametrize(
    ("text", "names", "layout"),
    [
        ("user,time\na,2013-01-01\n", ["user", "time"], None),
        ("user;time\na;2013-01-01\n", ["user", "time"], None),
        ("user time\na 2013-01-01\nb\t2013-01-02\n", ["user", "time"], CsvLayout(SPACES)),
        ("  1341100800   a\n  1341100801   b\n", ["c1", "c2"], CsvLayout(SPACES, ("c1", "c2"))),
        ("a,2013-01-01\nb,2013-01-02\n", ["c1", "c2"], CsvLayout(None, ("c1", "c2"))),
        ("a\t2013-01-01 10:00\n", ["c1", "c2"], CsvLayout("\t", ("c1", "c2"))),
        ("user,time,note\na,2013-01-01,x y z\nb,2013-01-02,x\n", ["user", "time", "note"], None),
    ],
)
def test_the_layout_of_text_is_guessed(text: str, names: list[str], layout: CsvLayout | None, tmp_path: Path) -> None:
    sample = sample_of(written(tmp_path, text), None, None)
    assert (sample.names, sample.layout) == (names, layout)


def test_columns_are_guessed_by_name_and_values(tmp_path: Path) -> None:
    header = "price,user_id,created_at,note\n"
    rows = "".join(f"{n}.5,u{n % 7},2013-01-{n % 28 + 1:02},n\n" for n in range(50))
    sample = sample_of(written(tmp_path, header + rows), None, None)
    assert guessed_columns(sample, None, None) == ("user_id", "created_at")
    assert guessed_columns(sample, "note", None) == ("note", "created_at")
    assert guessed_columns(sample, None, "price") == ("user_id", "price")


def test_objects_of_json_may_have_other_fields(tmp_path: Path) -> None:
    lines = '{"a": 1}\nnot json\n[1]\n{"user": "x", "ts": 1341100800000}\n{"user": null, "ts": 1341100800001.0}\n'
    sample = sample_of(written(tmp_path, lines, "log.jsonl"), None, None)
    assert sample.values["user"] == [None, "x", None]
    assert guessed_columns(sample, None, None) == ("user", "ts")


def test_no_time_is_made_up(tmp_path: Path) -> None:
    sample = sample_of(written(tmp_path, "user,colour\na,red\nb,blue\n"), None, None)
    with pytest.raises(InputError, match=r"no column looks like one of times: name it with --time; .* user, colour"):
        guessed_columns(sample, None, None)
