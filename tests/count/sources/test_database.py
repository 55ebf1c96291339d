"""What the engines for SQL databases share: addresses and passwords."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpwindows.count.events import EngineSettings
from dpwindows.count.sources.database import parse_address, with_password
from dpwindows.errors import InputError

SECRET = "hunter2"


@pytest.mark.parametrize(
    "address",
    [
        *("postgresql://reader:hunter2@h/logs", "postgresql://reader:hunter2?@h/logs"),
        *("postgresql://reader:p?hunter2@h:5432/logs", "postgresql://reader:p/hunter2@h/logs"),
        *("postgresql://reader:p/?hunter2@h/logs", "postgresql://reader:p?/hunter2&a=b@h/logs?sslmode=require"),
        *("postgresql://:p?hunter2@h/logs", "postgresql+psycopg://reader:p?hunter2@[::1]:5432/logs"),
        *("postgresql://h/logs?password=hunter2", "postgresql://h/logs?user=reader&pass%77ord=hunter2"),
        *("postgresql://h/logs?%70%61%73%73%77%6f%72%64=hunter2", "postgresql://h/logs?user=reader&PASSWORD=hunter2"),
        *("postgresql://h/logs?user=reader&Pass%57ord=hunter2", "postgresql://h/logs?+password=hunter2"),
        *("postgresql://h/logs?password%20=hunter2", "postgresql://h/logs?sslpassword=hunter2"),
        *("postgresql://h/logs?ssl%70assword=hunter2", "postgresql://h/logs?oauth_client_secret=hunter2"),
        "postgresql://h/logs?scram_client_key=hunter2&scram_server_key=hunter2",
        *("postgresql://h/logs?passwd=hunter2", "sqlite:///logs.db?pass%77ord=hunter2"),
        *("snowflake://u@h/logs?passcode=hunter2", "redshift://u@h/logs?session_token=hunter2"),
        *("trino://u@h/logs?jwt=hunter2", "snowflake://u@h/logs?private_key_file_pwd=hunter2"),
        *("bigquery://logs?credentials_base64=hunter2", "databricks://h/logs?Access_Token=hunter2"),
    ],
)
def test_an_address_with_a_password_is_refused_and_not_repeated(address: str) -> None:
    with pytest.raises(InputError, match="holds a password, which others can read") as caught:
        parse_address(address, "PostgreSQL")
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or caught.value.__suppress_context__


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://reader@db.example.org:5432/sales?sslmode=verify-full&passfile=/home/reader/.pgpass",
        "postgresql://reader@[::1]:5432/sales?sslkey=client.key",
        "postgresql:///sales?host=/run/postgresql&user=reader",
        "postgresql://h/logs?require_auth=password&channel_binding=require&private_key_file=k.p8&credentials_path=c",
        "postgresql://h/a:b?application_name=a:b@c",
    ],
)
def test_an_address_without_one_is_read(address: str) -> None:
    url = parse_address(address, "PostgreSQL")
    assert url.password is None
    assert url.get_backend_name() == "postgresql"


def test_an_address_that_cannot_be_read_is_not_repeated() -> None:
    for address in ("postgresql://reader:hunter2/logs", "postgresql://h:hunter2?x@", "hunter2"):
        with pytest.raises(InputError) as caught:
            parse_address(address, "PostgreSQL")
        assert SECRET not in str(caught.value)


@pytest.mark.parametrize("content", [b"\xffhunter2\n", "hünter2".encode("latin-1"), "hunter2\n".encode("utf-16")])
def test_a_password_file_that_is_not_text_is_not_repeated(tmp_path: Path, content: bytes) -> None:
    """Neither a byte of it nor where it stands."""
    path = tmp_path / "file"
    path.write_bytes(content)
    url = parse_address("postgresql://reader@h/logs", "PostgreSQL")
    with pytest.raises(InputError) as caught:
        with_password(url, EngineSettings(password_file=path))
    assert str(caught.value) == f"the password file {path} is not UTF-8 text"
    assert caught.value.__suppress_context__


def test_the_password_is_the_first_line_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("hünter2 @/?\nsecond\n", "utf-8")
    url = with_password(parse_address("postgresql://reader@h/logs", "PostgreSQL"), EngineSettings(password_file=path))
    assert url.password == "hünter2 @/?"
    assert SECRET not in str(url)
    path.write_text("\n")
    with pytest.raises(InputError, match=r"the first line of the password file .* is empty"):
        with_password(url, EngineSettings(password_file=path))
    settings = EngineSettings(password_file=path)
    path.unlink()
    with pytest.raises(InputError, match=r"the password file .*/file cannot be read: No such file"):
        with_password(url, settings)
