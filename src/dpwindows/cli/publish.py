"""`dpwindows publish`: a release as tables where dashboards look."""

from __future__ import annotations

from pathlib import Path

import click

from dpwindows.cli.screen import json_option, show_json, tell
from dpwindows.errors import counted


@click.command(short_help="Write a release where dashboards look, once.")
@click.argument("release_file", metavar="RELEASE", type=click.Path(path_type=Path))
@click.argument("destination")
@click.option("--table", required=True, metavar="NAME", help="Table for the numbers; NAME_releases has what they are.")
@click.option(
    "--password-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="File whose first line is the password for PostgreSQL.",
)
@json_option
def publish(release_file: Path, destination: str, table: str, password_file: Path | None, *, as_json: bool) -> None:
    """Write the numbers of the file RELEASE into a table of DESTINATION, under their release id, once.

    DESTINATION is a DuckDB database, the address of a PostgreSQL server (postgresql://USER@HOST/DATABASE, the password
    from --password-file, PGPASSWORD or ~/.pgpass), a folder for Delta tables, or iceberg:CATALOG.NAMESPACE.

    Two tables are made where they are missing: NAME holds the numbers of all releases, and NAME_releases a row for each
    release, written last. Whoever joins them by release_id sees each release whole or not at all. The same command
    again, after whatever happened, writes what is missing; where all is there it says so, writes nothing and exits 0.
    A release id that is there with other content is refused, and so is a table that dpwindows did not make.
    """
    from dpwindows.count.events import EngineSettings
    from dpwindows.release.release import Release

    loaded = Release.load(release_file)
    written = loaded.publish(destination, table=table, settings=EngineSettings(password_file=password_file))
    release_id, numbers = loaded.metadata["release_id"], loaded.table.num_rows
    if as_json:
        show_json({"table": table, "release_id": release_id, "numbers": numbers, "written": written})
    elif written:
        tell(f"Published {counted(numbers, 'number')} of release {release_id} in {table} and {table}_releases.")
    else:
        tell(f"Release {release_id} is in {table} already: nothing was written.")
