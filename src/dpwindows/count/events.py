"""A caller's description of a source of events: its columns, and how an engine may read it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from dpwindows.ask.groups import Grouping
from dpwindows.count.time_formats import time_format_of
from dpwindows.errors import InputError, near

SPACES = "spaces"
"""The delimiter that stands for runs of spaces and tabs."""


@dataclass(frozen=True)
class CsvLayout:
    r"""How CSV files are laid out, where their first line is not to say it.

    `delimiter` is one character, `\\t` written in full for a tab, or `spaces` for runs of spaces and tabs, where
    quotes mean nothing and lines may begin and end with spaces; None: that of the line of names, or a comma where there
    is none. `names` are the columns of files without a line of names, from left to right; None: there is such a line.

    Raises:
        InputError: the delimiter or the names are not legal.
    """

    delimiter: str | None = None
    names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        mark = {"\\t": "\t", "tab": "\t"}.get(str(self.delimiter), self.delimiter)
        object.__setattr__(self, "delimiter", mark)
        if mark not in (None, SPACES) and not re.fullmatch(r"[!#-/:-@\[\]-`{-~ \t]", str(mark)):
            raise InputError(
                f"delimiter must be one ASCII character that is no letter, digit, quote or backslash, \\t for a tab, "
                f"or {SPACES} for runs of spaces, got {self.delimiter!r}"
            )
        names = self.names
        if names is not None and not (len(names) and all(isinstance(name, str) for name in names)):
            raise InputError(f"columns must be the names of all columns, from left to right, got {names!r}")

    def refuse(self, what: str) -> InputError:
        """The error for a source that is laid out by itself."""
        options = "--delimiter" if self.names is None else "--no-header and --columns"
        return InputError(f"{options} say how CSV files are laid out, and {what}: leave them out, or give CSV files")

    @property
    def facts(self) -> dict[str, Any]:
        """How lines are cut into columns, as plain values; what columns are called is no part of it."""
        if self.names is None:
            return asdict(self) | {"names": True}
        return asdict(self) | {"delimiter": self.delimiter or ",", "names": False}


def csv_layout(delimiter: str | None, columns: Sequence[str] | None) -> CsvLayout | None:
    """The layout that options ask for; None if they leave it to the line of names.

    Raises:
        InputError: it is not legal.
    """
    if isinstance(columns, str):
        raise InputError(f"columns must be a list of names, got the text {columns!r}")
    if delimiter is None and columns is None:
        return None
    return CsvLayout(delimiter, None if columns is None else tuple(columns))


@dataclass(frozen=True)
class CountsFile:
    """In place of events: a file with the whole result of the query that `Plan.sql` writes, run by hand.

    It is CSV or Parquet, or a folder or glob of such files. Its counts are taken as they are: that they are those of
    the log is the promise of whoever ran the query.
    """

    path: str | Path


@dataclass(frozen=True)
class EventColumns:
    """The names of the columns that hold the item, its time and, if any, its number of occurrences.

    `time_format` says what times are whose type does not: `iso`, `epoch-s`, `epoch-ms`, `epoch-us` or a pattern of
    strptime (`dpwindows.count.time_formats`); None, which `iso` becomes, for times and ISO 8601 text.
    `layout` says how CSV files are laid out. With the `item_type` "integer" items are the whole numbers that their
    values stand for, 13085.0 for 13085, and rows whose item stands for none are no events. With a `grouping` events
    are counted by groups, and rows whose values make no group are no events.

    The count is no other column as well: one occurrence more would change the item, the time or the group of all
    others of its row, and neighbouring logs would be no neighbours once they are read.

    Raises:
        InputError: a name, the time format or the item type is not legal, or a column is the count and something else.
    """

    item: str
    time: str
    count: str | None = None
    time_format: str | None = None
    layout: CsvLayout | None = None
    item_type: str | None = None
    grouping: Grouping | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "time_format", time_format_of(self.time_format))
        object.__setattr__(self, "layout", None if self.layout == CsvLayout() else self.layout)
        if self.item_type not in (None, "integer"):
            raise InputError(f"item_type must be 'integer' or left out, got {self.item_type!r}")
        names = self._names_by_place
        for role, name in self.roles:
            use = role_name(role)
            if not isinstance(name, str) or not name:
                raise InputError(f"the {use} column must be given by its name, got {name!r}")
            if name == self.count and use != "count":
                raise InputError(
                    f"the column {name!r} is given for the {use} and for the count: one event more would move all "
                    f"others of its row to another {use}, which no guarantee covers; leave --count out, or name "
                    "another column"
                )
            if names is not None and names.count(name) != 1:
                raise InputError(
                    f"--columns must name the column {name!r} for the {use} once{near(name, names)}, got "
                    f"{', '.join(names)}"
                )

    @property
    def roles(self) -> list[tuple[str, str]]:
        """The pairs (role, column name) in use."""
        pairs = [("item", self.item), ("time", self.time)]
        pairs += [] if self.count is None else [("count", self.count)]
        names = () if self.grouping is None else self.grouping.names
        return [*pairs, *((f"group_{place}", name) for place, name in enumerate(names))]

    def title(self, role: str) -> str:
        """What messages call the column of a role: its use and its name."""
        return f"the {role_name(role)} column {dict(self.roles)[role]!r}"

    @property
    def facts(self) -> dict[str, Any]:
        """How a row is read, as plain values: equal for two of these only where they read every row alike.

        They are of every field, but for those that were left out. A column is known by its name; where a file has none
        it is known by its place, from 1, since what it is called may change with every call.
        """
        names = self._names_by_place
        known = {role: name if names is None else names.index(name) + 1 for role, name in self.roles}
        groups = [known.pop(role) for role in tuple(known) if role_name(role) == "group"]
        layout = None if self.layout is None else self.layout.facts
        return _given(vars(self) | known | {"layout": layout, "grouping": groups or None})

    def to_dict(self) -> dict[str, Any]:
        """Every field but the grouping as plain values, without those that were left out; `from_dict` gives it back."""
        return _given(vars(self) | {"layout": self.layout and asdict(self.layout), "grouping": None})

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> EventColumns:
        """What `to_dict` gave."""
        read = dict(values)
        if (layout := values.get("layout")) is not None:
            read["layout"] = csv_layout(layout["delimiter"], layout["names"])
        return cls(**read)

    @property
    def _names_by_place(self) -> tuple[str, ...] | None:
        """The columns of files without a line of names, from left to right; None where files name them."""
        return None if self.layout is None else self.layout.names


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    # That there is no count says something too: then rows are the events.
    return {name: value for name, value in values.items() if value is not None or name == "count"}


def role_name(role: str) -> str:
    """What a column is for, in words."""
    return role.partition("_")[0]


@dataclass(frozen=True)
class EngineSettings:
    """Which engine counts, and how it may use the machine.

    `engine` is a name of `dpwindows.count.engines.ENGINES` (by default the source tells). `memory_limit` is text such
    as "2GB" (by default the engine takes most of the memory), `spill_directory` an existing directory for what does not
    fit (by default the system's temporary one; a private directory is made in it and removed afterwards), `threads` a
    number of at least 1, and `progress` allows a progress bar on a terminal. `password_file` is a file whose first line
    is the password for a database, and `spark_master` the address of a Spark cluster, such as "spark://host:7077",
    "yarn" or "local[4]". An engine refuses the settings that mean nothing to it.

    Raises:
        InputError: a setting is not legal, or a directory or file is missing.
    """

    memory_limit: str | None = None
    spill_directory: Path | None = None
    threads: int | None = None
    progress: bool = True
    engine: str | None = None
    password_file: Path | None = None
    spark_master: str | None = None

    def __post_init__(self) -> None:
        if self.memory_limit is not None and not re.fullmatch(
            r"(?=[0-9]*[1-9])[0-9]{1,12}(\.[0-9]+)?\s*[KMGT]i?B", str(self.memory_limit).strip(), re.IGNORECASE
        ):
            shown = f"got {self.memory_limit!r} (at most 12 digits)"
            raise InputError(f'memory_limit must be text such as "2GB" or "512MB", {shown}')
        if self.spill_directory is not None and not Path(self.spill_directory).is_dir():
            raise InputError(f"spill_directory must be an existing directory, got {self.spill_directory}")
        if self.password_file is not None and not Path(self.password_file).is_file():
            raise InputError(f"password_file must be an existing file, got {self.password_file}")
        threads = self.threads
        if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
            raise InputError(f"threads must be a whole number of at least 1, got {threads!r}")

    def refuse(self, engine: str, **reasons: str) -> None:
        """Raise `InputError` if a setting is given that means nothing to an engine, with the reason why."""
        for name, reason in reasons.items():
            if getattr(self, name) is not None:
                raise InputError(f"{name} does not go with the engine {engine}: {reason}")


def engine_settings(settings: EngineSettings | None, engine: str | None) -> EngineSettings:
    """Settings with the engine's name put in. Raises `InputError` if they name another one."""
    settings = settings or EngineSettings()
    if engine is None or engine == settings.engine:
        return settings
    if settings.engine is not None:
        raise InputError(f"engine is {engine!r} but settings.engine is {settings.engine!r}: give one of them")
    return replace(settings, engine=engine)
