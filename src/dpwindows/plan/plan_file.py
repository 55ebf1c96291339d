"""Plans as plain values and as TOML: what is asked, for whom, under which budget, over which public range.

Keys are named like the options of the command line: `window`, `at-least`, `unit`, `epsilon`, `start`. A file without
the table `query` asks the same of every window; with it, each table asks something of its own of one window:

    unit = "event"
    epsilon = 1.0
    delta = 1e-06
    start = "2013-01-01"
    end = "2014-01-01"
    step = "1d"

    [[query]]
    window = "rolling:28"
    at-least = [1, 3]

    [[query]]
    window = "cumulative"

`dpwindows.plan.shapes` declares the keys. Every argument of `Plan` that is not named here is a key of its own name.
"""

from __future__ import annotations

import inspect
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import Any, Self

from dpwindows.ask.formats import PLAN, require_known
from dpwindows.ask.privacy import parse_budget, parse_unit
from dpwindows.ask.queries import Query, parse_window
from dpwindows.ask.shapes import read_shape
from dpwindows.ask.timeline import Timeline, parse_step
from dpwindows.ask.whole_numbers import MAX_DRAWS
from dpwindows.errors import InputError
from dpwindows.plan.shapes import PlanFile, StreamFile

Values = dict[str, Any]

_QUERY = ("window", "at-least", "exactly", "histogram", "occurrences")
_BUDGET = ("epsilon", "delta", "rho")
_RANGE = ("start", "end", "step", "time-zone", "steps")
# A plan is a page; more is no plan.
_LONGEST = 1 << 20


class PlanValues:
    """What `Plan` and `StreamPlan` share: reading and telling what was asked, as plain values."""

    def to_dict(self) -> Values:
        """What was asked, as plain values by the names of the command line's options; `from_dict` gives the plan back.

        Nothing in it comes from data.
        """
        plan: Any = self
        values: Values = {"format": PLAN, **_queries_to_values(plan.queries)}
        values["unit"] = plan.unit.name
        values |= {name: value for name, value in plan.budget.to_dict().items() if name != "kind"}
        if hasattr(plan, "horizon"):
            values |= {"stream": True} | ({} if plan.horizon is None else {"horizon": plan.horizon})
        else:
            values |= {_key(name): value for name, value in plan.timeline.to_dict().items()}
        groups, given = plan.grouping, vars(plan) | vars(plan.rule)
        if groups is not None:
            given |= groups.to_dict() | {"by": {one.name: one.values for one in groups.columns}}
        for name, key in zip(PlanFile.__struct_fields__, PlanFile.__struct_encode_fields__, strict=True):
            value = given.get(name)
            # Numbers and names are told even at their defaults, which may be others one day.
            left_out = value is None or value is False or (name == "max_draws" and value == MAX_DRAWS)
            values |= {} if left_out or key in values else {key: _plain(value)}
        if isinstance(weights := values.get("weights"), dict):
            values["weights"] = [weights.get(query.name, 1.0) for query in plan.queries]
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The plan that plain values ask for, as `to_dict` gives them.

        Raises:
            InputError: a key is unknown or missing, or a value is not legal.
        """
        arguments = inspect.signature(cls).parameters
        streamed = "horizon" in arguments
        known = checked(values, "the plan", StreamFile if streamed else PlanFile)
        if known.pop("stream", streamed) is not streamed:
            raise InputError(
                "the plan is for one release and not of a stream: use Plan"
                if streamed
                else "the plan is of a stream (stream = true): use StreamPlan, or 'dpwindows stream create'"
            )
        budget = parse_budget(*(known.pop(name, None) for name in _BUDGET))
        if "unit" not in known:
            raise InputError("the plan has no unit: say what is protected, for example unit = 'event'")
        given: Values = {"unit": parse_unit(known.pop("unit")), "queries": queries_of(known), "budget": budget}
        given |= {"horizon": _horizon(known)} if streamed else {"timeline": _timeline(known)}
        own = {name.replace("-", "_"): value for name, value in known.items()}
        return cls(**{name: value for name, value in own.items() if name in arguments} | given)

    @classmethod
    def from_file(cls, path: str | Path) -> Self:
        """The plan in a TOML file, as `dpwindows plan --save` writes it.

        Raises:
            InputError: it cannot be read, a key is unknown or missing, or a value is not legal.
        """
        try:
            return cls.from_dict(read_toml(path, "the plan"))
        except InputError as error:
            raise error if str(path) in str(error) else InputError(f"{path}: {error}") from None


def read_toml(path: str | Path, what: str) -> Values:
    """What a TOML file holds; nothing of it is checked yet. Messages call it `what`, such as `the plan`.

    Raises:
        InputError: it cannot be read, or is no TOML.
    """
    try:
        with Path(path).open("rb") as stream:
            content = stream.read(_LONGEST + 1)
        if len(content) > _LONGEST:
            raise InputError(f"{what} {path} is longer than {_LONGEST:,} bytes: it holds something else")
        return tomllib.loads(content.decode("utf-8-sig"))
    except OSError as error:
        raise InputError(f"{what} {path} cannot be read: {error.strerror or error}") from None
    except (UnicodeError, tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise InputError(f"{what} {path} is no TOML: {error}") from None


def checked(values: Mapping[str, Any], what: str, shape: type[StreamFile] = PlanFile) -> Values:
    """Values of known keys but the format, and of the types that their keys ask for; dates and times as text.

    Raises:
        InputError: they are of a newer format, a key is unknown, which is told with the nearest one, or a value is of
            another type.
    """
    require_known(values.get("format", PLAN), PLAN, f"{what} is")
    plain = {name: value.isoformat() if isinstance(value, date) else value for name, value in values.items()}
    try:
        read_shape(plain, shape)
    except ValueError as error:
        raise InputError(f"{what}: {error}") from None
    if "query" in plain and (mixed := [name for name in _QUERY if name in plain]):
        raise InputError(
            f"{what} has [[query]] and {mixed[0]}: ask the same of all windows, or of each window by itself"
        )
    plain.pop("format", None)
    return plain


def queries_of(values: Mapping[str, Any]) -> list[Query]:
    """The queries that checked values ask for. Raises `InputError` where one is not legal."""
    queries = []
    for table in values.get("query", [values] if "window" in values else []):
        for window in _listed(table["window"]):
            query = Query(parse_window(window))
            query = query.at_least(*_listed(table["at-least"])) if table.get("at-least") else query
            query = query.exactly(*_listed(table["exactly"])) if table.get("exactly") else query
            for most in _listed(table.get("histogram", [])):
                query = query.histogram(most)
            query = query.occurrences() if table.get("occurrences") else query
            queries.append(query)
    return queries


def to_toml(values: Mapping[str, Any]) -> str:
    """Plain values as TOML: first what is no table, then tables and lists of tables."""
    plain, tables = [], []
    for name, value in values.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            tables += [f"\n[[{_bare(name)}]]\n{to_toml(table)}" for table in value]
        elif isinstance(value, dict):
            tables.append(f"\n[{_bare(name)}]\n{to_toml(value)}")
        else:
            plain.append(f"{_bare(name)} = {_toml(value)}\n")
    return "".join(plain + tables)


def _toml(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            # JSON's escapes are TOML's, but for the one control character that JSON writes as it is.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case list() | tuple():
            return f"[{', '.join(map(_toml, value))}]"
    raise TypeError(f"no value of a plan: {value!r}")


def _bare(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml(name)


def _queries_to_values(queries: Iterable[Query]) -> Values:
    """Windows and measures in the order asked: in lists if all windows are asked the same, else in tables."""
    tables: list[Values] = []
    for query in queries:
        table: Values = {"window": query.window.text}
        for measure in query.measures:
            if measure.kind == "occurrences":
                table["occurrences"] = True
                continue
            key = _key(measure.kind)
            # At-least counts come first in a table: where one follows an exact count, it needs a table of its own.
            if key == "at-least" and "exactly" in table:
                tables.append(table)
                table = {"window": query.window.text}
            table.setdefault(key, []).append(measure.k)
        tables.append(table)
    windows = [table.pop("window") for table in tables]
    if all(table == tables[0] for table in tables) and len(set(windows)) == len(windows):
        return {"window": windows, **tables[0]}
    return {"query": [{"window": window, **table} for window, table in zip(windows, tables, strict=True)]}


def _timeline(known: Values) -> Timeline:
    start, end, step, zone, steps = (known.get(name) for name in _RANGE)
    if steps is not None:
        if beside := [name for name in _RANGE if name != "steps" and known.get(name) is not None]:
            raise InputError(
                f"the plan has steps as well as {' and '.join(beside)}: steps alone stand for a range of any start and "
                "step; or give start and end (and step, time-zone)"
            )
        return Timeline.of_steps(steps)
    if start is None or end is None:
        raise InputError("the plan has no public range: give start and end (and step, time-zone), or steps")
    return Timeline(start, end, "1d" if step is None else step, zone or "UTC")


def _horizon(known: Values) -> int | None:
    """The horizon of a stream, which a range that ends is too."""
    if known.get("horizon") is None and ("steps" in known or "end" in known):
        return _timeline({name: known.get(name) for name in _RANGE}).steps
    if known.get("step") is not None:
        parse_step(known["step"])
    return known.get("horizon")


def _key(name: str) -> str:
    return name.replace("_", "-")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
