"""The published object: noisy numbers, their errors, and everything a reader may know about how they were made.

A `Release` holds one Arrow table, a row for each released number, and its metadata. Nothing in either depends on the
data but the noisy numbers: no path, no count of rows, no range read from the log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dpwindows.ask.groups import Value
from dpwindows.ask.timeline import Timeline, TimePoint
from dpwindows.errors import InputError, counted
from dpwindows.release import files as release_files
from dpwindows.release.consistency import remarks
from dpwindows.release.derived import Combined, Derived, alone, combined, difference, ratio, with_interval
from dpwindows.release.groups import group_names, rows_of_group
from dpwindows.release.selection import Selected, Window, as_window, terms_of

if TYPE_CHECKING:
    from dpwindows.count.events import EngineSettings


@dataclass(frozen=True)
class Count:
    """One released number, with its error: what `Release.count` returns.

    `estimate` is in items, or in occurrences, which have no `k`; `std_error` is the standard deviation of its noise;
    `bias_bound` bounds its bias; `lower` and `upper` bound it at this `confidence`; `window` tells which family it was
    released in.
    """

    estimate: float
    std_error: float
    bias_bound: float
    lower: float
    upper: float
    window: str
    measure: str
    k: int | None
    confidence: float

    def __str__(self) -> str:
        interval = f"{self.lower:,.1f} to {self.upper:,.1f}"
        return with_interval(f"{self.estimate:,.1f}", interval, self.std_error, self.confidence)


@dataclass(frozen=True)
class Release:
    """Released window counts and how they were made; save it, load it, ask it.

    Attributes:
        table: one row a released number, with the columns of the release format: `window`, `measure`, `k`,
            `first_step`, `last_step` (1-based, inclusive), `start`, `end` (inclusive, exclusive), `complete`,
            `estimate`, `std_error`, `bias_bound`, `lower`, `upper`, `consistent`.
        metadata: plain values: what was asked, the guarantee, budget and shares, strategies, noise, certified
            sensitivities and their proofs, forecast, versions, release id and time.
    """

    table: pa.Table
    metadata: dict[str, Any]

    @classmethod
    def load(cls, path: str | Path) -> Release:
        """Read a release from a `.parquet`, `.csv` (with its `.meta.json` beside it) or `.json` file.

        Raises:
            InputError: there is no such file, it is not a release of a known format, or its numbers or what it says
                about them were changed after it was written.
        """
        return cls(*release_files.read(Path(path)))

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the release, whole and durably, to a `.parquet`, `.csv` or `.json` file.

        The file carries a checksum over its numbers and its metadata, which `load` checks.

        Args:
            path: where to; a CSV file gets its metadata beside it as `PATH.meta.json`, written first.
            force: replace what is there.

        Raises:
            InputError: the file exists and `force` is not set, or the ending is unknown.
            EngineError: the file cannot be written.
        """
        release_files.write(self.table, self.metadata, Path(path), force=force)

    def to_arrow(self) -> pa.Table:
        """The released numbers as an Arrow table."""
        return self.table

    def to_pandas(self) -> Any:
        """The released numbers as a pandas data frame."""
        return self.table.to_pandas(use_threads=False)

    def to_polars(self) -> Any:
        """The released numbers as a Polars data frame.

        Raises:
            InputError: Polars is not installed.
        """
        try:
            import polars
        except ImportError:
            raise InputError("to_polars needs Polars: pip install polars") from None
        return polars.from_arrow(self.table)

    @cached_property
    def timeline(self) -> Timeline:
        """The public range and step."""
        return Timeline.from_dict(self.metadata["timeline"])

    @property
    def loss(self) -> Derived | None:
        """How many items lost something by `max_runs` or `max_occurrences`; None where that was not asked for.

        It is a private number of its own, with a share of the budget (`estimate_loss`). It counts items, and does not
        say by how much single counts are smaller.
        """
        found = self.metadata.get("loss")
        if found is None:
            return None
        numbers = {name: float(found[name]) for name in ("estimate", "std_error", "lower", "upper")}
        return Derived(**numbers, bias_bound=0.0, confidence=self._confidence, what=str(found["of"]))

    def count(
        self,
        start: TimePoint,
        end: TimePoint,
        *,
        at_least: int | None = None,
        exactly: int | None = None,
        occurrences: bool = False,
        group: Mapping[str, Value] | None = None,
    ) -> Count:
        """The released number of one window, whatever family it was released in.

        Args:
            start: first moment of the window, a step boundary.
            end: first moment after the window, a step boundary.
            at_least: the k of "at least k" (default 1 if `exactly` is not given either).
            exactly: the k of "exactly k".
            occurrences: count occurrences in place of items.
            group: of a release with groups, the value of each column, such as {"origin": "JFK"}; the total over the
                values of a column that is not named.

        Returns:
            The estimate of least standard error among those released for this very window.

        Raises:
            InputError: the window or the group was not released, or the window's ends are no step boundaries.
        """
        asked = Window(start, end, at_least=at_least, exactly=exactly, occurrences=occurrences, group=group)
        (best,) = terms_of(asked, rows_of_group(self.table, self.metadata, group), self.timeline)
        row = best.row | {"confidence": self._confidence}
        return Count(**{name: row[name] for name in Count.__dataclass_fields__})

    def estimate(self, window: Selected) -> Derived:
        """A mean of released numbers, or the new or returning items of a window, with an error that is its own.

        Args:
            window: `dpwindows.Window(start, end, ...)`, with `mean_over` or `items`.

        Raises:
            InputError: a number it needs was not released, or the release does not say how its noise is correlated.
        """
        asked = as_window(window)
        return alone(self._combined(asked), self._confidence, self._named(asked))

    def difference(self, one: Selected, other: Selected) -> Derived:
        """One released number less another: `release.difference(("2013-07-08", "2013-07-15"), ("2013-07-01", ...))`.

        The interval knows how the noise of both is correlated, and costs no privacy: numbers of one measurement share
        noise, so a difference of near windows errs by less than two numbers apart.

        Args:
            one: what is taken from; (start, end) for the distinct items of a window, or `dpwindows.Window`.
            other: what is taken off.

        Raises:
            InputError: as for `estimate`.
        """
        first, second = as_window(one), as_window(other)
        what = f"{self._named(first)} minus {self._named(second)}"
        return difference(self._combined(first), self._combined(second), self._confidence, what)

    def ratio(self, one: Selected, other: Selected) -> Derived:
        """One released number over another, such as daily over monthly actives.

        Its interval is Fieller's: it covers as often as that of a difference does, also where the denominator is
        small. Where that cannot be told from 0 the interval is from minus infinity to infinity.

        Args:
            one: the numerator, as for `difference`.
            other: the denominator; without a `group` the total over all groups, whatever group the numerator is of.

        Raises:
            InputError: as for `estimate`.

        Example:
            `release.ratio(dw.Window(*june, group={"origin": "JFK"}), june)` is the share of JFK in the total.
        """
        first, second = as_window(one), as_window(other)
        what = f"{self._named(first)} over {self._named(second)}"
        return ratio(self._combined(first), self._combined(second), self._confidence, what)

    def _named(self, window: Window) -> str:
        """A window in words, with the group in every column of the release."""
        return str(replace(window, group=dict.fromkeys(group_names(self.metadata), "all") | dict(window.group or {})))

    def _combined(self, window: Window) -> Combined:
        rows = rows_of_group(self.table, self.metadata, window.group)
        return combined(terms_of(window, rows, self.timeline), self.metadata)

    @property
    def _confidence(self) -> float:
        return float(self.metadata["confidence"])

    @property
    def _asked(self) -> list[dict[str, Any]]:
        return [
            {"window": query["window"], **asked} for query in self.metadata["queries"] for asked in query["measures"]
        ]

    def publish(self, destination: Any, *, table: str, settings: EngineSettings | None = None) -> bool:
        """Write the release where dashboards look: as rows of a table, under its release id, once.

        Two tables are made where they are missing: `table` holds the numbers of all releases, and `table`_releases a
        row for each release, written last, with its guarantee, checksum and metadata. Join them by `release_id`: what
        has no row there yet is not all there. The same call again writes what is missing, or nothing.

        Args:
            destination: the path of a DuckDB database, an address or SQLAlchemy engine of PostgreSQL, a folder for
                Delta tables, or `iceberg:CATALOG.NAMESPACE`.
            table: the name of the table; in a database it may be `schema.name`.
            settings: with `password_file` for an address of PostgreSQL.

        Returns:
            True if it was written, False if it was there already.

        Raises:
            InputError: the destination is none of these, a table of that name is not ours or has other columns, or this
                release id is there with other content. Nothing was written.
            EngineError: the destination cannot be reached or written to; the same call again goes on from there.

        Example:
            release.publish("reports.duckdb", table="reach")
        """
        from dpwindows.release.publish import publish

        return publish(self.table, self.metadata, destination, table, settings)

    def plot(
        self,
        windows: str | Sequence[str] | None = None,
        *,
        k: int | Sequence[int] | None = None,
        groups: Mapping[str, str | Sequence[str]] | None = None,
    ) -> Plot:
        """The charts of the release, estimates with their intervals: a notebook shows them, `save` writes them.

        Args:
            windows: canonical texts of the families to draw, such as `rolling:28`; default all.
            k: the k to draw; default all.
            groups: for a group column the groups to draw; default all.

        Raises:
            InputError: the release holds no such window, k or group.

        Example:
            release.plot("rolling:28").save("rolling.svg")
        """
        from dpwindows.report import chosen

        return Plot(chosen(self.table, windows, k, groups), self.metadata)

    def report(self, path: str | Path, *, force: bool = False, title: str | None = None, noun: str = "items") -> None:
        """Write the release as one self-contained HTML page.

        Args:
            path: where to.
            force: replace what is there.
            title: what stands above the page; by default what is counted, and the range.
            noun: what items are called on it, in the plural: `customers`.

        Raises:
            InputError: the file exists and `force` is not set, or `title` or `noun` is no line of text.
            EngineError: the file cannot be written.
        """
        from dpwindows.report import page

        for name, text in (("title", title), ("noun", noun)):
            if text is not None and not (text.strip() and text.isprintable()):
                raise InputError(f"{name} must be a line of text, got {text!r}")
        release_files.require_writable(Path(path), force=force, endings=(".html", ".htm"))
        shown = self.metadata | {"notes": [*self.metadata["notes"], *self.remarks]}
        release_files.write_text(page(self.table, shown, title=title, noun=noun), Path(path), force=force)

    @property
    def remarks(self) -> list[str]:
        """What is to be said of the numbers beside their errors, one sentence each."""
        handed_over = self.metadata.get("exact_counts") is not None
        loss = [] if self.loss is None else [f"{self.loss.what}, which were counted in part: {self.loss}"]
        counts = ["the exact counts were handed over as a file, and are taken as they are"] * handed_over
        return [*counts, *loss, *remarks(self.table, self.metadata)]

    def __repr__(self) -> str:
        asked = ", ".join(f"{row['window']} {row['measure'].replace('_', ' ')} {row['k']}" for row in self._asked)
        budget = ", ".join(f"{name} = {value}" for name, value in self.metadata["budget"].items() if name != "kind")
        numbers = counted(self.table.num_rows, "number")
        return f"Release({numbers}: {asked}; {self.metadata['unit']['name']} level; {budget})"

    def _repr_html_(self) -> str:
        """A notebook shows the release as one chart to point at, and a table of its first rows."""
        from dpwindows.report.notebook import release_html

        return release_html(self.table, self.metadata)


@dataclass(frozen=True, repr=False)
class Plot:
    """Charts, of the rows of a release with its metadata, that a notebook shows, and that load nothing."""

    table: pa.Table
    metadata: Mapping[str, Any]

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the charts as a page (`.html`) or as one picture (`.svg`).

        Raises:
            InputError: the file has another ending, or exists and `force` is not set; or there are no rows to draw.
            EngineError: the file cannot be written.
        """
        from dpwindows.report.notebook import plot_page, plot_picture

        path = Path(path)
        release_files.require_writable(path, force=force, endings=(".html", ".svg"))
        made = plot_picture if path.suffix.lower() == ".svg" else plot_page
        release_files.write_text(made(self.table, self.metadata), path, force=force)

    def _repr_html_(self) -> str:
        from dpwindows.report.notebook import plot_html

        return plot_html(self.table, self.metadata)
