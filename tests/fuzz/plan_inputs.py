"""Cases for plan files: one that is valid, with other values, keys, lines or bytes."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.fuzz.case import Case
from tests.fuzz.changes import byte_changes

_FILES = (
    'window = ["rolling:3", "cumulative"]\nat-least = [1, 2]\nunit = "event"\nepsilon = 1.0\ndelta = 1e-6\n'
    'start = "2013-01-01"\nend = 2013-01-08\nstep = "1d"\nweights = [1, 2.5]\nconfidence = 0.9\n',
    'unit = "item-per:2"\nrho = 1\nsteps = 7\n[[query]]\nwindow = "rolling:3"\nexactly = 2\n'
    '[[query]]\nwindow = "any:2"\nhistogram = 3\n',
    'window = "rolling:3"\nunit = "event"\nepsilon = 1\nstream = true\nhorizon = 9\nstart = 0\nstep = 1\n',
)
_VALUES = (
    *("", '""', "[]", "{}", "[[]]", "true", "nan", "inf", "-1", "0", "1e400", "9" * 400, "2.5", "2013-01-01"),
    *("2013-01-01T10:00:00+01:00", "10:00:00", '"rolling:3"', '["any", 1]', "'''a\nb'''", '"\\u0000"', '"[/b]"', "1_0"),
    *('"' + "x" * 300 + '"', '[{window = "any"}]', "{a = {b = 1}}", '["rolling:3", "rolling:3"]', '"日本"', "0x10"),
)
_KEYS = ("widnow", "window", "epsilon", "rho", "query", '""', '"a b"', "a.b", "steps", "singleton", "max-draws", "by")
_COMMANDS = (
    ("plan", "--plan", "plan.toml"),
    ("plan", "--plan", "plan.toml", "--json", "--epsilon", "2"),
    ("plan", "--plan", "plan.toml", "--save", "again.toml"),
    ("release", "log.csv", "--item", "who", "--time", "at", "--plan", "plan.toml", "-o", "out.json"),
    ("stream", "create", "state", "--item", "who", "--time", "at", "--plan", "plan.toml"),
)


@st.composite
def plan_files(draw: st.DrawFn) -> Case:
    """A plan file with a value, a key or a line changed, or some bytes, and a command that takes it."""
    lines = draw(st.sampled_from(_FILES)).splitlines()
    changed = []
    for _ in range(draw(st.sampled_from((0, 0, 1, 1, 2)))):
        place = draw(st.integers(0, len(lines) - 1))
        key, equals, _value = lines[place].partition(" = ")
        how = draw(st.sampled_from(("value", "value", "key", "drop", "twice", "table")))
        changed.append(how)
        if how == "value" and equals:
            lines[place] = f"{key} = {draw(st.sampled_from(_VALUES))}"
        elif how == "key":
            lines.insert(place, f"{draw(st.sampled_from(_KEYS))} = {draw(st.sampled_from(_VALUES))}")
        elif how == "drop" and len(lines) > 1:
            del lines[place]
        elif how == "twice":
            lines.append(lines[place])
        elif how == "table":
            lines.insert(place, draw(st.sampled_from(("[weights]", "[[query]]", "[window]", "[[window]]", "[a"))))
    content = "\n".join(lines).encode(draw(st.sampled_from(("utf-8",) * 8 + ("utf-16", "utf-8-sig"))))
    if draw(st.integers(0, 9)) == 5:
        content = draw(byte_changes(content))
        changed.append("bytes")
    files = {"plan.toml": content, "log.csv": b"who,at\nann,2013-01-02\n"}
    return Case(draw(st.sampled_from(_COMMANDS)), files, (0, 2), "out.json", tuple(changed))
