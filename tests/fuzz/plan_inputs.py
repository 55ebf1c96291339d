"""Cases for plan files: what a valid plan asks, written in any way that TOML has; some with a part or line changed."""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import strategies as st

from tests.fuzz.case import Case
from tests.fuzz.changes import byte_changes

Values = dict[str, Any]


class Bare(str):
    """Text that is written into a file as it is."""

    __slots__ = ()


# --- What a plan asks -------------------------------------------------------------------------------------------------

_CALENDAR = ("tumbling:week", "to-date:month", "tumbling:2", "to-date:3")
_WINDOWS = st.one_of(
    st.integers(1, 9).map(lambda n: f"rolling:{n}"),
    st.integers(1, 4).map(lambda n: f"any:{n}"),
    st.sampled_from(("cumulative", "any", "fixed:2", " rolling:3 ", "tumbling:3", "to-date:2")),
)
_UNITS = st.sampled_from(("event", "event", "item", "item-add-remove", "item-per:2", "item-per:30"))
_THRESHOLDS = st.lists(st.integers(1, 4), min_size=1, max_size=2, unique=True)
_MEASURES = st.fixed_dictionaries(
    {},
    optional={
        "at-least": st.one_of(st.integers(1, 3), _THRESHOLDS),
        "exactly": _THRESHOLDS,
        "histogram": st.one_of(st.integers(2, 4), st.lists(st.integers(2, 4), min_size=1, max_size=1)),
    },
)
_BUDGETS: st.SearchStrategy[Values] = st.one_of(
    st.fixed_dictionaries({"epsilon": st.one_of(st.integers(1, 9), st.floats(0.05, 20))}),
    st.fixed_dictionaries({"epsilon": st.floats(0.05, 20), "delta": st.sampled_from((0, 1e-6, 1e-9, 0.01))}),
    st.fixed_dictionaries({"rho": st.one_of(st.integers(1, 3), st.floats(0.01, 20))}),
)
_DAYS = st.integers(3, 12).map(lambda n: {"start": "2013-01-01", "end": f"2013-01-{n:02}"})
_DAYS_IN_A_ZONE = _DAYS.map(lambda days: days | {"step": "1d", "time-zone": "Asia/Kolkata"})
_HOURS = st.just({"start": "2013-01-01T00:00:00", "end": "2013-01-03T00:00:00", "step": "12h"})
_MORE = st.fixed_dictionaries(
    {},
    optional={
        "confidence": st.floats(0.5, 0.999),
        "criterion": st.sampled_from(("rms", "max")),
        "noise": st.sampled_from(("exact", "opendp")),
        "strategy": st.just("auto"),
        "max-draws": st.integers(10**4, 10**9),
        "distinct-steps": st.booleans(),
        "singleton": st.just(False),
    },
)


@st.composite
def _asked(draw: st.DrawFn) -> tuple[Values, str]:
    """What is asked, and of what kind the plan is: of a range of dates, of some steps, or of a stream."""
    kind = draw(st.sampled_from(("dates", "dates", "steps", "stream")))
    windows = draw(st.lists(_WINDOWS, min_size=1, max_size=3, unique=True))
    if kind == "dates" and draw(st.integers(0, 4)) == 0:
        windows = [draw(st.sampled_from(_CALENDAR))]
    values: Values = {"unit": draw(_UNITS)} | draw(_BUDGETS) | draw(_MORE)
    if draw(st.booleans()):
        values |= {"window": windows if len(windows) > 1 or draw(st.booleans()) else windows[0]} | draw(_MEASURES)
        if draw(st.integers(0, 3)) == 0:
            weights = {window: draw(st.sampled_from((1, 2.5, 0.5))) for window in windows}
            values["weights"] = weights if draw(st.booleans()) else [*weights.values()]
    else:
        values["query"] = [{"window": window} | draw(_MEASURES) for window in windows]
    if kind == "dates":
        values |= draw(st.one_of(_DAYS, _DAYS_IN_A_ZONE, _HOURS))
    elif kind == "steps":
        values["steps"] = draw(st.integers(1, 12))
    else:
        values |= {"stream": True, "horizon": draw(st.integers(1, 12))}
    if values["unit"] in ("item", "item-add-remove") and draw(st.booleans()):
        bound = "max-runs" if all(window.startswith("rolling") for window in windows) else "max-occurrences"
        values[bound] = draw(st.integers(1, 3))
    elif draw(st.integers(0, 5)) == 0:
        values["by"] = {"origin": ["EWR", "JFK"]} | draw(st.sampled_from(({}, {"class": [1, 2]})))
        values |= {"totals": 0.25} if draw(st.booleans()) else {}
        values |= {} if values["unit"] == "event" else {"max-groups": 2}
    return values, kind


# --- What may be wrong with it ----------------------------------------------------------------------------------------

_ODD = (
    *("", '""', "[]", "{}", "[[]]", "true", "nan", "inf", "-1", "0", "1e400", "9" * 400, "2.5", "2013-01-01"),
    *("2013-01-01T10:00:00+01:00", "10:00:00", '"rolling:3"', '["any", 1]', "'''a\nb'''", '"\\u0000"', '"[/b]"', "1_0"),
    *('"' + "x" * 300 + '"', '[{window = "any"}]', "{a = {b = 1}}", '["rolling:3", "rolling:3"]', '"日本"', "0x10"),
)
_KEYS = ("widnow", "window", "epsilon", "rho", "query", '""', '"a b"', "a.b", "steps", "singleton", "max-draws", "by")


def _tables(values: Values) -> list[Values]:
    """The plan itself, and the tables in it."""
    inner = [value for value in values.values() if isinstance(value, dict)]
    return [values, *inner, *(table for table in values.get("query", ()) if isinstance(table, dict))]


def _change(draw: st.DrawFn, values: Values) -> str:
    """Change one value or key of a plan, or put another valid part in; tells how."""
    table = draw(st.sampled_from(_tables(values)))
    name = draw(st.sampled_from(sorted(table) or ["unit"]))
    how = draw(st.sampled_from(("odd", "odd", "key", "drop", "budget", "unit", "range", "listed", "window")))
    match how:
        case "odd":
            table[name] = Bare(draw(st.sampled_from(_ODD)))
        case "key":
            table[draw(st.sampled_from((*_KEYS, "unit", "at-least")))] = Bare(draw(st.sampled_from(_ODD)))
        case "drop":
            table.pop(name, None)
        case "budget":  # beside the one that is there
            values |= draw(_BUDGETS)
        case "unit":
            values["unit"] = draw(_UNITS)
        case "range":
            values |= draw(st.one_of(_DAYS_IN_A_ZONE, _HOURS))
        case "listed":
            table[name] = table[name] * 2 if isinstance(table.get(name), list) else [table.get(name, "event")]
        case "window":
            table["window"] = draw(_WINDOWS)
    return f"{how} {name}"


# --- How it is written ------------------------------------------------------------------------------------------------


def _text(draw: st.DrawFn, text: str) -> str:
    basic = json.dumps(text)
    return draw(st.sampled_from((basic, basic, basic, f"'{text}'", f'"""{text}"""', f"'''\n{text}'''")))


def _number(draw: st.DrawFn, number: float) -> str:
    ways = [repr(number)] * 3
    if isinstance(number, int):
        ways += [f"+{number}", hex(number), f"0o{number:o}", f"0b{number:b}", f"{number:_}"]
    else:
        ways += [f"+{number!r}", f"{number:e}".replace("e", "E")]
    return draw(st.sampled_from(ways))


def _value(draw: st.DrawFn, value: Any) -> str:
    """A value in one of the ways that TOML has for it."""
    match value:
        case Bare():
            return value
        case bool():
            return str(value).lower()
        case int() | float():
            return _number(draw, value)
        case str() if value[:2] == "20" and draw(st.booleans()):
            return value  # a date or a time by itself
        case str():
            return _text(draw, value)
        case list():
            each = [_value(draw, one) for one in value]
            inline = f"[{', '.join(each)}]"
            spread = "[\n" + "".join(f"  {one},  # a note\n" for one in each) + "]"
            return draw(st.sampled_from((inline, inline, spread)))
    return "{" + ", ".join(f"{_key(draw, name)} = {_value(draw, one)}" for name, one in value.items()) + "}"


def _key(draw: st.DrawFn, name: str) -> str:
    if isinstance(name, Bare) or name in _KEYS:
        return name
    bare = name if re.fullmatch("[a-z-]+", name) else json.dumps(name)
    return draw(st.sampled_from((bare, bare, json.dumps(name), f"'{name}'")))


def _lines(draw: st.DrawFn, values: Values) -> list[str]:
    """The lines of a table, in any order: comments and blanks between them."""
    lines = []
    for name in draw(st.permutations(sorted(values))):
        comment = draw(st.sampled_from(("",) * 4 + ("  # [query] is no table here = 1", "\t")))
        equals = draw(st.sampled_from((" = ", " = ", "=", "\t=  ")))
        lines.append(f"{_key(draw, name)}{equals}{_value(draw, values[name])}{comment}")
        lines += draw(st.sampled_from(((),) * 4 + (("",), ("# a note: 日本",))))
    return lines


def _written(draw: st.DrawFn, values: Values) -> list[str]:
    """A plan as lines: the tables in it by headers, in braces or with dotted keys."""
    plain: Values = {}
    below: list[str] = []
    for name, value in values.items():
        how = draw(st.sampled_from(("header", "dotted", "braces")))
        if isinstance(value, dict) and how == "header":
            below += [f"[{name}]", *_lines(draw, value)]
        elif isinstance(value, dict) and how == "dotted":
            plain |= {Bare(f"{name} . {json.dumps(inner)}"): one for inner, one in value.items()}
        elif name == "query" and isinstance(value, list) and how != "braces":
            for table in value:
                below += [draw(st.sampled_from(("[[query]]", "[[ query ]]", '[["query"]]'))), *_lines(draw, table)]
        else:
            plain[name] = value
    return [*_lines(draw, plain), *below]


def _change_lines(draw: st.DrawFn, lines: list[str]) -> str:
    place = draw(st.integers(0, len(lines) - 1))
    how = draw(st.sampled_from(("drop", "twice", "table", "cut")))
    match how:
        case "drop" if len(lines) > 1:
            del lines[place]
        case "twice":
            lines.append(lines[place])
        case "table":
            lines.insert(place, draw(st.sampled_from(("[weights]", "[[query]]", "[window]", "[[window]]", "[a"))))
        case "cut":
            lines[place] = lines[place][: draw(st.integers(0, len(lines[place])))]
    return f"line {how}"


# --- What reads it ----------------------------------------------------------------------------------------------------

_COLUMNS = ("--item", "who", "--time", "at", "--plan", "plan.toml")
_PLAN = ("plan", "--plan", "plan.toml")
_PLANS = (_PLAN, (*_PLAN, "--json", "--epsilon", "2"), (*_PLAN, "--save", "again.toml"), (*_PLAN, "--at-least", "1"))
_RELEASE = ("release", "log.csv", *_COLUMNS, "-o", "out.json")
_CREATE = ("stream", "create", "state", *_COLUMNS)
_COMMANDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "dates": (*_PLANS, _RELEASE, _RELEASE, _RELEASE, _RELEASE, _CREATE),
    "steps": (*_PLANS, *_PLANS, (*_CREATE, "--start", "2013-01-01"), _RELEASE),
    "stream": (*[(*_CREATE, "--start", "0", "--step", "1"), (*_CREATE, "--start", "2013-01-01")] * 3, *_PLANS, _CREATE),
}
_LOG = b"who,at,origin,class\nann,2013-01-02,EWR,1\nbob,2013-01-02 13:00:00,LGA,2\n"


@st.composite
def plan_files(draw: st.DrawFn) -> Case:
    """A plan file in any way of writing, as it should be or nearly so, and a command that takes it."""
    values, kind = draw(_asked())
    changed = [_change(draw, values) for _ in range(draw(st.sampled_from((0, 0, 0, 0, 1, 1, 2))))]
    lines = _written(draw, values)
    if draw(st.integers(0, 9)) == 5:
        changed.append(_change_lines(draw, lines))
    ending = draw(st.sampled_from(("\n", "\n", "\r\n")))
    content = ending.join(lines).encode(draw(st.sampled_from(("utf-8",) * 20 + ("utf-16", "utf-8-sig"))))
    if draw(st.integers(0, 19)) == 5:
        content = draw(byte_changes(content))
        changed.append("bytes")
    files = {"plan.toml": content, "log.csv": _LOG}
    return Case(draw(st.sampled_from(_COMMANDS[kind])), files, (0, 2), "out.json", tuple(changed))
