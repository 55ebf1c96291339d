"""What the pages say is there and works: links, paths, names, and every command and piece of code that is shown."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpwindows.demo import write_flights
from tests.forked_commands import one_for_all, shown_as

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "dpwindows"
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted(DOCS.rglob("*.md"))]
HISTORY = ROOT / "CHANGELOG.md"
FROM_THE_PAPER = DOCS / "paper-to-code.md"

# Blocks that are shown and not run: the page, how the block begins, and why.
NOT_RUN = {
    ("README.md", "pip install"): "installs from the checkout",
    ("README.md", "dpwindows demo"): "tests/end_to_end/test_release.py runs it in a process of its own",
    ("README.md", "dpwindows release postgresql:"): "needs a server and a Spark installation of the reader's own",
    ("CONTRIBUTING.md", "make test"): "these commands run the tests themselves",
    ("docs/accuracy.md", "python benchmarks/accuracy.py"): "measures for an hour",
    ("docs/accuracy.md", "python benchmarks/consistent.py"): "measures for minutes, on logs of the reader's own",
    ("docs/comparison.md", "python benchmarks/peers.py"): "measures for minutes",
    ("docs/quick-start.md", "pip install"): "installs from the checkout",
    ("docs/engines.md", "dpwindows release events.parquet"): "leaves options out, as the page says what differs",
    ("docs/engines.md", "export PGPASSWORD"): "needs a server of the reader's own",
    ("docs/engines.md", "dpwindows release /lake/visits"): "needs a lake and a cluster of the reader's own",
    ("docs/engines.md", "dpwindows release app.sqlite"): "leaves options out, as the page says what differs",
    ("docs/engines.md", "plan.run(chdb"): "needs databases of the reader's own",
    ("docs/engines.md", "redshift does not"): "a message",
    ("docs/house.md", "event log"): "a picture",
    ("docs/lakes.md", "export PYICEBERG"): "needs a catalogue of the reader's own",
    ("docs/ledger.md", "dpwindows ledger create postgresql:"): "needs a server; tests/ledger/test_server.py has one",
    ("docs/ledger.md", "GRANT USAGE"): "needs a server; tests/ledger/test_server.py has one",
    ("docs/logs.md", "time column"): "a message",
    ("docs/logs.md", "Guessed --item"): "a line of what is shown",
    (
        "docs/terminal.md",
        "_DPWINDOWS_COMPLETE",
    ): "changes the reader's shell; test_terminal.py runs it",
    ("docs/promise.md", "dpwindows audit"): "docs/audit.md shows the same command, and there it is run",
    ("docs/scaling.md", "python benchmarks/scale.py --sizes 1M"): "measures for hours",
    ("docs/scaling.md", "python benchmarks/scale.py --sizes 10M"): "measures for minutes",
    ("docs/scaling.md", "python benchmarks/memory.py"): "measures for minutes",
    ("docs/publishing.md", "CREATE VIEW"): "SQL for the reader's own database",
    ("docs/retries.md", "release = BashOperator"): "needs an Airflow of the reader's own",
    ("docs/scaling.md", "SELECT item"): "SQL for the reader's own database",
    ("docs/simulator.md", "make simulate"): "runs for minutes; tests/simulator runs it",
    ("docs/streams-in-a-warehouse.md", "dpwindows stream create"): "needs a lake of the reader's own",
    ("docs/streams-in-a-warehouse.md", "reads   (N"): "a formula",
    ("docs/streams.md", "30 0 * * *"): "a line for cron",
    ("docs/streams.md", "#!/bin/sh"): "closes steps up to today",
    ("docs/table1.md", "python benchmarks/table1.py"): "measures for hours",
    ("docs/vectors.md", "python docs/vectors/check.py"): "tests/test_vectors.py runs it",
}

# What takes long is run for less: the page, what it says, and what is run.
SHORTENED = [
    ("README.md", "--window any:90 --at-least 1", "--window any:45 --at-least 1"),
    ("README.md", "dw.AnyWindow(max_length=90)", "dw.AnyWindow(max_length=45)"),
    ("docs/audit.md", "--epsilon 1 --steps 8", "--epsilon 1 --steps 8 --runs 500 --draws 500"),
    ("docs/audit.md", "--attack --time 5m", "--attack --time 2s"),
    ("docs/pages.md", "--steps 60 --report plan.html", "--steps 8 --report plan.html"),
    ("docs/table1.md", "--steps 365 --window 28 --k 3", "--steps 12 --window 4 --k 3"),
]


@dataclass(frozen=True)
class Block:
    """Lines of a page that are shown as they are, with the language that a fence names."""

    page: str
    language: str
    text: str

    @property
    def reason(self) -> str | None:
        """Why it is not run, None if it is."""
        begins = self.text.lstrip()
        found = [why for (page, start), why in NOT_RUN.items() if page == self.page and begins.startswith(start)]
        return found[0] if found else None

    @property
    def commands(self) -> str:
        """What is run: after prompts, if there are any, and else all of it."""
        return "\n".join(_PROMPTED.findall(self.text)) or self.text

    @property
    def shown(self) -> list[str]:
        """The lines that are shown of what commands after prompts write."""
        return _PROMPTED.sub("", self.text).splitlines() if _PROMPTED.search(self.text) else []


# A command may go on over several lines.
_PROMPTED = re.compile(r"^\$ ((?:.*\\\n)*.*)$", re.M)


def blocks(page: Path) -> Iterator[Block]:
    name = str(page.relative_to(ROOT))
    text = page.read_text(encoding="utf-8")
    shown = re.compile(r"^```(\w*|{[\w-]+})\n(.*?)^```$|(?<=\n\n)((?:    [^\n]*\n(?:\n(?=    ))?)+)", re.M | re.S)
    for found in shown.finditer(text):
        if found[3] is None:
            yield Block(name, found[1], found[2])
        else:
            yield Block(name, "", re.sub("^    ", "", found[3], flags=re.M))


# What is in braces is for the maker of the site, which runs the cells of notebooks too (`make docs`).
ALL = [block for page in PAGES for block in blocks(page) if not block.language.startswith("{")]
RUN = sorted({block.page for block in ALL if block.reason is None})


def test_every_block_that_is_not_run_is_there_and_has_one_reason() -> None:
    for page, start in NOT_RUN:
        shown = [block for block in ALL if block.page == page and block.text.lstrip().startswith(start)]
        assert len(shown) == 1, (page, start)
    assert {"README.md", "docs/ledger.md", "docs/streams.md"} <= set(RUN)
    for page, long, _ in SHORTENED:
        assert [block.text.count(long) for block in ALL if block.page == page and long in block.text] == [1], page


@pytest.fixture(scope="module")
def flights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("flights") / "flights.parquet"
    write_flights(path)
    return path


@pytest.fixture(scope="module")
def one_process(forking: Path) -> Iterator[Path]:
    """The socket of what runs the commands of all pages: what several of them plan it plans once."""
    with tempfile.TemporaryDirectory(prefix="dpw-") as short, one_for_all(forking, Path(short) / "socket") as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path, flights: Path, one_process: Path) -> Path:
    """What the pages take for granted: a year of flights, a day of events, folders that are there, the command."""
    shutil.copy(flights, tmp_path)
    (tmp_path / "events").mkdir()
    for name in ("releases", "safe"):
        (tmp_path / name).mkdir()
    day = {"user": ["ann", "bob", "ann"], "time": [f"2026-01-01T{hour}:00:00" for hour in ("10", "11", "12")]}
    pq.write_table(pa.table(day), tmp_path / "events" / "2026-01-01.parquet")
    for command in ("dpwindows", "python"):
        shown_as(tmp_path / "bin" / command, one_process)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN)
def test_what_a_page_shows_works_from_top_to_bottom(page: str, folder: Path) -> None:
    for block in (block for block in ALL if block.page == page and block.reason is None):
        assert block.language in ("", "python", "toml"), block
        if block.language == "toml":
            (folder / block.text.splitlines()[0].removeprefix("# ")).write_text(block.text, encoding="utf-8")
            continue
        text, commands = block.text, block.commands
        for shortened, long, short in SHORTENED:
            if page == shortened:
                text, commands = text.replace(long, short), commands.replace(long, short)
        if block.language:
            run(folder, [str(folder / "bin" / "python"), "-c", text])
            continue
        prompted = block.commands != block.text
        assert prompted or commands.startswith(("dpwindows ", "python -c ")), f"neither run nor declared: {block}"
        told = run(folder, ["sh", "-e", "-c", commands])
        assert [line for line in block.shown if line and line not in told.splitlines()] == []


def run(folder: Path, command: list[str]) -> str:
    """What a command writes to its standard output; it must succeed."""
    path = os.pathsep.join([str(folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    ended = subprocess.run(command, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True)
    assert ended.returncode == 0, f"{command[-1]}\n{ended.stdout}{ended.stderr}"
    return ended.stdout


@pytest.mark.parametrize("page", [*PAGES, HISTORY], ids=lambda page: page.name)
def test_every_path_named_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        file, _, anchor = target.partition("#")
        if "://" in file:
            continue
        linked = page.parent / file if file else page
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked), target
    if page == HISTORY:
        return
    for path, test in re.findall(r"`([\w./-]+\.(?:py|toml|c))(?:::(\w+))?`", text):
        homes = [home / path for home in (ROOT, SOURCE, ROOT / "tests", page.parent) if (home / path).exists()]
        by_name = "/" not in path and any(any((ROOT / top).rglob(path)) for top in ("src", "tests", "benchmarks"))
        assert homes or by_name, path
        assert not test or re.search(rf"^def {test}\(", homes[0].read_text(encoding="utf-8"), re.M), test


def test_every_error_of_the_paper_has_its_row_and_its_test() -> None:
    rows = dict(re.findall(r"^\| (\d+) \|(.*)$", FROM_THE_PAPER.read_text(encoding="utf-8"), re.M))
    assert sorted(map(int, rows)) == list(range(1, 14))
    assert all("::test_" in row for row in rows.values())


def test_every_page_is_on_the_site() -> None:
    listed = set(re.findall(r"^([\w/-]+)$", (DOCS / "index.md").read_text(encoding="utf-8"), re.M))
    pages = {str(page.relative_to(DOCS).with_suffix("")) for page in DOCS.rglob("*.md")} - {"index"}
    assert pages <= listed, "name it under a toctree of docs/index.md"


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, made as code hosts make them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_make_target_named_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    named = set(re.findall(r"(?:^    |`)make ([a-z]+)", page.read_text(encoding="utf-8"), re.M))
    assert named <= targets


def dotted() -> dict[str, Path]:
    """Every dotted name of the package in backticks: whole in pages and code, from its rooms in FROM_THE_PAPER."""
    code = [path for top in ("src", "tests", "benchmarks") for path in sorted((ROOT / top).rglob("*.py"))]
    found: dict[str, Path] = {}
    for path in [*PAGES, *code]:
        found |= dict.fromkeys(re.findall(r"`(dpwindows(?:\.\w+)+)", path.read_text(encoding="utf-8")), path)
    rooms = {part.stem for part in SOURCE.iterdir()}
    named = re.findall(r"`([a-z_]+)((?:\.\w+)+)`", FROM_THE_PAPER.read_text(encoding="utf-8"))
    return found | {f"dpwindows.{room}{rest}": FROM_THE_PAPER for room, rest in named if room in rooms}


@pytest.mark.parametrize("name", sorted(dotted()))
def test_every_dotted_name_leads_somewhere(name: str) -> None:
    parts = name.split(".")
    for split in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(parts[:split]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[split:]:
            found = getattr(found, attribute)
        return
    raise AssertionError(f"there is no {name}, which {dotted()[name]} names")


def test_every_line_of_the_changelog_fits() -> None:
    text = HISTORY.read_text(encoding="utf-8")
    assert [line for line in text.splitlines() if len(line) > 120] == []
    for version in re.split(r"^## ", text, flags=re.M)[1:]:
        headings = re.findall(r"^### (\w+)$", version, re.M)
        assert headings == [one for one in ("Added", "Changed", "Removed", "Fixed", "Security") if one in headings]
        entries = re.split(r"^- ", version, flags=re.M)[1:]
        assert len(set(entries)) == len(entries)
