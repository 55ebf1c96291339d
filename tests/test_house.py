"""The house: which room may import which, held against the imports as they are, lazy and type-only ones included."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "dpwindows"

# Not drawn: every room may use them.
FOR_EVERYONE = ("errors", "progress", "durable")
# From the ground up: a room imports only what stands before it.
ORDER = (
    *FOR_EVERYONE,
    *("ask", "count", "kernel", "reading", "strategies", "report", "ledger", "plan", "release", "stream", "audit"),
    *("theory", "demo", "cli"),
)
# Plan.run makes a release: the one arrow that runs back up.
UP = {("plan/plan.py", "release")}


def rooms() -> set[str]:
    return {path.stem if path.is_file() else path.name for path in SOURCE.iterdir() if _is_room(path)}


def _is_room(path: Path) -> bool:
    return not path.name.startswith("__") and (path.suffix == ".py" or path.is_dir())


def modules() -> dict[str, Path]:
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(part for part in parts if part != "__init__")] = path
    return found


def imports(path: Path, known: dict[str, Path]) -> Iterator[str]:
    """Every module of the package that a file imports anywhere."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "dpwindows":
            home = node.module.removeprefix("dpwindows").removeprefix(".")
            for alias in node.names:
                full = f"{home}.{alias.name}" if home else alias.name
                target = full if full in known else home
                if target:
                    yield target


def test_every_room_has_a_floor() -> None:
    assert rooms() == set(ORDER)
    assert len(ORDER) <= 17


def test_no_arrow_runs_up() -> None:
    known = modules()
    up = set()
    for name, path in known.items():
        room = name.split(".")[0]
        if room in ("", "__main__"):
            continue
        for target in imports(path, known):
            other = target.split(".")[0]
            if other != room and ORDER.index(other) > ORDER.index(room):
                up.add((str(path.relative_to(SOURCE)), other))
    assert up == UP


def test_no_files_import_each_other_in_a_circle() -> None:
    known = modules()
    graph = {name: set(imports(path, known)) - {name} for name, path in known.items() if name}
    standing = set(graph)
    # What imports nothing that stands, or is imported by nothing that stands, is in no circle.
    while apart := {
        name for name in standing if not graph[name] & standing or not any(name in graph[other] for other in standing)
    }:
        standing -= apart
    assert standing == set()


def test_the_kernel_trusts_nothing_but_what_is_asked() -> None:
    known = modules()
    reached = {
        target.split(".")[0]
        for name, path in known.items()
        if name.split(".")[0] == "kernel"
        for target in imports(path, known)
    }
    assert reached <= {"kernel", "ask", "errors"}


# From the text that is run to who runs it.
PARTS_OF_COUNT = ("query", "dialects", "sources", "engines")


def test_the_parts_of_count_use_each_other_in_one_direction() -> None:
    known = modules()
    assert {path.name for path in (SOURCE / "count").iterdir() if (path / "__init__.py").is_file()} == {*PARTS_OF_COUNT}
    used: dict[str, set[str]] = {part: set() for part in PARTS_OF_COUNT}
    for name, path in known.items():
        part = name.split(".")[1] if name.startswith("count.") else ""
        for target in imports(path, known) if part in used else ():
            used[part].add(target.removeprefix("count.").split(".")[0])
    for place, part in enumerate(PARTS_OF_COUNT):
        assert not used[part] & {*PARTS_OF_COUNT[place + 1 :], "counting", "check"}, part
        assert used[part] >= {*PARTS_OF_COUNT[:place]}, part


def test_every_file_of_the_kernel_has_tests_of_its_own() -> None:
    here = ROOT / "tests" / "kernel"
    files = [path.relative_to(SOURCE / "kernel") for path in (SOURCE / "kernel").rglob("*.py")]
    wanted = {here / path.with_name(f"test_{path.name}") for path in files if path.name != "__init__.py"}
    assert len(wanted) >= 38
    assert {path for path in wanted if not path.is_file() or "def test_" not in path.read_text("utf-8")} == set()
    # In the folders below there are no other files of tests; what is about the kernel as a whole stands above them.
    below = {path for path in here.rglob("test_*.py") if path.parent != here}
    assert below <= wanted


def test_the_query_and_its_dialects_are_text_only() -> None:
    paths = [*(SOURCE / "count" / "query").glob("*.py"), *(SOURCE / "count" / "dialects").glob("*.py")]
    for path in paths:
        tree = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        roots = {node.module.split(".")[0] for node in tree if isinstance(node, ast.ImportFrom) and node.module}
        roots |= {alias.name.split(".")[0] for node in tree if isinstance(node, ast.Import) for alias in node.names}
        assert not roots & {"duckdb", "pyarrow", "pyspark", "sqlalchemy", "sqlite3"}, path.name


def rests_on() -> dict[str, set[str]]:
    """The rooms that each room imports, but for the one arrow up."""
    known = modules()
    found: dict[str, set[str]] = {room: set() for room in ORDER}
    for name, path in known.items():
        room = name.split(".")[0]
        for target in imports(path, known) if room in found else ():
            other = target.split(".")[0]
            if other != room and (str(path.relative_to(SOURCE)), other) not in UP:
                found[room].add(other)
    return found


def test_the_picture_in_the_documentation_is_true_to_the_imports() -> None:
    page = (ROOT / "docs" / "house.md").read_text(encoding="utf-8")
    picture = re.search(r"```text\n(.*?dpwindows/.*?)```", page, re.S)
    assert picture is not None
    below, floors, under = rests_on(), dict[str, int](), dict[str, set[str]]()
    drawn = {}
    for room in ORDER:
        floors[room] = 1 + max((floors[other] for other in below[room]), default=0)
        under[room] = below[room].union(*(under[other] for other in below[room]))
        nearest = below[room].difference(*(under[other] for other in below[room]))
        if room not in FOR_EVERYONE:
            drawn[room] = floors[room], nearest - set(FOR_EVERYONE)
    lines = re.findall(r"^ +(\d+) +(\w+)(?:/|\.py) [^\n]*?(?:<- ([\w, ]+))?$", picture.group(1), re.M)
    assert [room for _, room, _ in lines] == list(drawn)
    assert {room: (int(floor), set(filter(None, on.split(", ")))) for floor, room, on in lines} == drawn
    assert max(floors.values()) <= 10


def test_the_lowest_versions_that_are_tested_are_those_that_are_promised() -> None:
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = stated["project"]
    # Of the examples only the versions of their own lock are run.
    groups = [several for name, several in stated["dependency-groups"].items() if name != "examples"]
    lists = [project["dependencies"], *project["optional-dependencies"].values(), *groups]
    locked = (ROOT / "requirements-lowest.lock").read_text(encoding="utf-8")
    # Of several for different Pythons the first is for the oldest.
    versions = dict(reversed(re.findall(r"^([a-z0-9-]+)==([0-9.]+)", locked, re.MULTILINE)))
    floors = [re.match(r"([A-Za-z0-9-]+)(?:\[\w+\])?[>=]=([0-9.]+)", one) for several in lists for one in several]
    assert len(floors) > 20
    for floor in floors:
        assert floor is not None
        assert re.fullmatch(rf"{floor[2]}(\.[0-9]+)*", versions[floor[1].lower()]), floor[0]
