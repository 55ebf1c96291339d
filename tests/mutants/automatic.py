"""Mutation by a tool: every small change of the trusted files must turn some test red, or be listed as equivalent.

    make mutate                                    all files of targets.toml
    make mutate ARGS="kernel/measure.py"           some of them
    make mutate ARGS="kernel/measure.py --all"     every change of it, where a sample is the default
    make mutate ARGS="--sample 60"                 fewer changes of each file
    make mutate ARGS="--survivors"                 where tests were only added: what was killed is not tried again

Each change is tried on a copy of the package, in a process that is forked from one that has loaded the libraries and
nothing of ours. It runs first the tests that execute the changed line, the quickest first, then the other tests of the
file, and stops at the first that fails. What was tried is kept in `build/mutants`, by the text of the change and of the
tests, so that a run that was stopped goes on. Exits 1 if a change survives that `equivalent.toml` does not list.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.mutants.forks import ROOT, copy_package, ended, forked, load_libraries, swept
from tests.mutants.operators import Change, changes

PACKAGE = ROOT / "src" / "dpwindows"
KEPT = ROOT / "build" / "mutants"
HERE = Path(__file__).parent
# Seconds that the tests of a change may take beyond a multiple of what they take without it.
PATIENCE, MULTIPLE = 20.0, 3.0


@dataclass(frozen=True)
class Target:
    """A source file, and the tests that are to notice what changes in it."""

    file: str
    tests: tuple[str, ...]
    sample: int

    @property
    def source(self) -> str:
        return (PACKAGE / self.file).read_text(encoding="utf-8")

    @property
    def stamp(self) -> str:
        """A hash of the tests' files: what was tried under others is tried again."""
        texts = [(ROOT / name.partition("::")[0]).read_bytes() for name in self.tests]
        return hashlib.sha256(b"\0".join(texts)).hexdigest()


@dataclass(frozen=True)
class Equivalent:
    """A listed change that no test can tell, or need not; without `after`, all changes of that line."""

    file: str
    within: str
    before: str
    why: str
    after: tuple[str, ...] = ()

    def fits(self, file: str, change: Change) -> bool:
        same = (self.file, self.within, self.before) == (file, change.within, change.before)
        return same and (not self.after or change.after in self.after)


@dataclass(frozen=True)
class Baseline:
    """What the tests of a file do without a change: their durations in order, and the lines that each executes."""

    durations: dict[str, float]
    lines: dict[str, set[int]]

    def order(self, change: Change) -> list[list[str]]:
        """Tests that execute the changed lines, then the others; each the quickest first."""
        touched = range(change.first_line, change.last_line + 1)
        near = {test for test in self.durations if self.lines.get(test, set()).intersection(touched)}
        if self.lines.get("", set()).intersection(touched):
            # Executed when the module is imported, so every test depends on it.
            near = set(self.durations)
        by_time = sorted(self.durations, key=self.durations.__getitem__)
        groups = [[test for test in by_time if test in near], [test for test in by_time if test not in near]]
        return [group for group in groups if group]


# ---- in the forked process


class Chosen:
    """A pytest plugin: these tests only, in this order."""

    def __init__(self, names: Sequence[str]) -> None:
        self._place = {name: place for place, name in enumerate(names)}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted(
            (item for item in items if item.nodeid in self._place), key=lambda item: self._place[item.nodeid]
        )


class Watched:
    """A pytest plugin that notes durations, and tells coverage whose lines it sees."""

    def __init__(self, coverage: Any) -> None:
        self._coverage = coverage
        self.durations: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        self._coverage.switch_context(item.nodeid)
        began = time.monotonic()
        try:
            return (yield)
        finally:
            self.durations[item.nodeid] = time.monotonic() - began
            self._coverage.switch_context("")


def _run_baseline(folder: Path, target: Target) -> int:
    import coverage

    seen = coverage.Coverage(data_file=None, include=[str(folder / "dpwindows" / target.file)])
    watched = Watched(seen)
    seen.start()
    code = int(pytest.main(["-q", "-x", "-p", "no:cacheprovider", *target.tests], plugins=[watched]))
    seen.stop()
    found: dict[str, list[int]] = {}
    data = seen.get_data()
    for file in data.measured_files():
        for line, tests in data.contexts_by_lineno(file).items():
            for test in tests:
                found.setdefault(test, []).append(line)
    (folder / "baseline.json").write_text(json.dumps({"durations": watched.durations, "lines": found}))
    return code


def _run_tests(target: Target, groups: Sequence[Sequence[str]]) -> int:
    for group in groups:
        files = sorted({name.partition("::")[0] for name in group})
        code = int(pytest.main(["-q", "-x", "--tb=line", "-p", "no:cacheprovider", *files], plugins=[Chosen(group)]))
        if code != 0:
            return code
    return 0


# ---- in the first process


class Bench:
    """A copy of the package in which one file at a time is changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        copy_package(PACKAGE, folder)

    def baseline(self, target: Target) -> Baseline:
        """Run the tests of a file on the package as it is.

        Raises:
            SystemExit: one of them fails.
        """
        code = ended(forked(self.folder, lambda: _run_baseline(self.folder, target)), 3600)
        if code != 0:
            said = (self.folder / "said.txt").read_text(errors="replace")
            raise SystemExit(f"{target.file}: its tests fail without any change\n{said[-4000:]}")
        kept = json.loads((self.folder / "baseline.json").read_text())
        return Baseline(kept["durations"], {test: set(lines) for test, lines in kept["lines"].items()})

    def outcome(self, target: Target, change: Change, baseline: Baseline) -> str:
        """`killed`, `killed (time)` or `survived`."""
        file = self.folder / "dpwindows" / target.file
        file.write_text(change.source, encoding="utf-8")
        try:
            groups = baseline.order(change)
            patience = PATIENCE + MULTIPLE * sum(baseline.durations.values())
            code = ended(forked(self.folder, lambda: _run_tests(target, groups)), patience)
        finally:
            file.write_text(target.source, encoding="utf-8")
            swept(self.folder)
        if code is None:
            return "killed (time)"
        if code == 5:
            raise SystemExit(f"{target.file}: no tests were found for {change}")
        return "killed" if code else "survived"


def _kept(target: Target) -> Path:
    return KEPT / (target.file.replace("/", "--") + ".jsonl")


def _try(target: Target, chosen: Sequence[Change], *, survivors: bool) -> dict[str, str]:
    """The outcome of each change, by its source; those on record are not tried again."""
    record, stamp = _kept(target), target.stamp
    known: dict[str, str] = {}
    if record.exists():
        lines = [json.loads(line) for line in record.read_text().splitlines()]
        known = {
            line["key"]: line["outcome"]
            for line in lines
            if line["stamp"] == stamp or (survivors and line["outcome"] != "survived")
        }
    keys = {change.source: hashlib.sha256(change.source.encode()).hexdigest() for change in chosen}
    todo = [change for change in chosen if keys[change.source] not in known]
    if todo:
        record.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="mutants-") as name, record.open("a") as out:
            bench = Bench(Path(name))
            baseline = bench.baseline(target)
            for at, change in enumerate(todo, 1):
                outcome = bench.outcome(target, change, baseline)
                known[keys[change.source]] = outcome
                out.write(json.dumps({"key": keys[change.source], "stamp": stamp, "outcome": outcome}) + "\n")
                out.flush()
                if sys.stderr.isatty():
                    sys.stderr.write(f"\r{target.file}: {at} of {len(todo)} ")
    return {change.source: known[keys[change.source]] for change in chosen}


def examine(target: Target, equivalents: Sequence[Equivalent], *, everything: bool, survivors: bool) -> bool:
    """Try the changes of one file and report; True if none survives that is not listed."""
    found = changes(target.source)
    listed = [change for change in found if any(one.fits(target.file, change) for one in equivalents)]
    stale = [one for one in equivalents if not any(one.fits(target.file, change) for change in found)]
    rest = [change for change in found if change not in listed]
    if len(rest) > target.sample and not everything:
        rest = random.Random(0).sample(rest, target.sample)
        rest.sort(key=lambda change: change.first_line)
    outcomes = _try(target, rest, survivors=survivors)
    left = [change for change in rest if outcomes[change.source] == "survived"]
    killed = len(rest) - len(left)
    share = 100 * killed / len(rest) if rest else 100.0
    _say(
        f"{target.file}: {len(found)} changes, {len(listed)} of them equivalent; of {len(rest)} tried {killed} killed "
        f"({share:.1f} %)"
    )
    for change in left:
        _say(f"  survived: line {change.first_line}, {change.within or 'module'}")
        _say(f"    - {change.before}\n    + {change.after}")
    for one in stale:
        _say(f"  equivalent.toml lists a change that is none any more: {one.within}: {one.before} -> {one.after}")
    return not left and not stale


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def read_targets() -> list[Target]:
    """The map from files to tests."""
    values = tomllib.loads((HERE / "targets.toml").read_text(encoding="utf-8"))
    shared = values["defaults"]
    return [Target(file, tuple(tests), shared["sample"]) for file, tests in values["files"].items()]


def read_equivalents() -> list[Equivalent]:
    """The listed changes that need not be noticed."""
    values = tomllib.loads((HERE / "equivalent.toml").read_text(encoding="utf-8"))
    return [Equivalent(**{**one, "after": tuple(one.get("after", ()))}) for one in values["equivalent"]]


def main(arguments: Sequence[str]) -> int:
    """See the module."""
    parser = argparse.ArgumentParser(prog="make mutate")
    parser.add_argument("files", nargs="*", help="files of targets.toml; none: all")
    parser.add_argument("--all", action="store_true", help="every change, and no sample")
    parser.add_argument("--sample", type=int, metavar="N", help="so many changes of each file at most")
    parser.add_argument("--survivors", action="store_true", help="of those tried before, only what survived")
    chosen = parser.parse_args(arguments)
    targets = {target.file: target for target in read_targets()}
    if unknown := [file for file in chosen.files if file not in targets]:
        parser.error(f"not in targets.toml: {', '.join(unknown)}")
    for name in ("OPENBLAS", "MKL", "OMP"):
        os.environ[f"{name}_NUM_THREADS"] = "1"
    load_libraries()
    if "dpwindows" in sys.modules:
        raise SystemExit("the package must not be loaded here: what is tested would be this copy of it")
    equivalents = read_equivalents()
    whole = True
    for file in chosen.files or targets:
        listed = [one for one in equivalents if one.file == file]
        target = targets[file] if chosen.sample is None else replace(targets[file], sample=chosen.sample)
        whole &= examine(target, listed, everything=chosen.all, survivors=chosen.survivors)
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
