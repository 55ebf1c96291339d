"""Builds what is published, and runs the README from it: `make dist`, or `python -m tests.distribution [FOLDER]`.

- *What is committed is what is built*: two builds, from two copies of the last commit, must agree to the last byte,
  and so must a wheel that is built from the sdist. `SOURCE_DATE_EPOCH` is the time of that commit.
- *What is built works where nothing else is*: for every Python that pyproject.toml promises, an environment of its own
  gets the wheel without extras, and runs the commands of the README from top to bottom, on its log of flights. In the
  newest one the extra `demo` is added then, which writes that log.

The files and the seconds that each part took are left in FOLDER (dist). It needs a package index.
"""

from __future__ import annotations

import filecmp
import os
import re
import resource
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from zipfile import ZipFile

import click

from tests.test_documents import NOT_RUN, blocks

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
WRITE_FLIGHTS = "from dpwindows.demo import write_flights; write_flights('flights.parquet')"
# The commands that need an extra.
_NEEDS_DEMO = "dpwindows demo"


def run(*command: str | Path, at: Path, **environment: str) -> str:
    """What a command writes; it must succeed, and finds nothing of this repository or of the environment that runs."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    ended = subprocess.run(command, cwd=at, env=own | environment, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} ended with {ended.returncode}\n{ended.stdout}{ended.stderr}")
    return ended.stdout


# Seconds by the name of a part: those that passed, and those of processors.
Seconds = dict[str, tuple[float, float]]


@contextmanager
def timed(seconds: Seconds, name: str) -> Iterator[None]:
    """Add what the commands of the block take to `seconds`."""
    before, (passed, worked) = _now(), seconds.get(name, (0.0, 0.0))
    yield
    after = _now()
    seconds[name] = passed + after[0] - before[0], worked + after[1] - before[1]


def _now() -> tuple[float, float]:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return monotonic(), used.ru_utime + used.ru_stime


def environment(place: Path, python: str | Path, *packages: str | Path) -> Path:
    """The folder of programs of a new environment with these packages."""
    run(python, "-m", "venv", place, at=place.parent)
    run(place / "bin" / "pip", "install", "--quiet", "--no-cache-dir", *packages, at=place.parent)
    return place / "bin"


# --- Built ------------------------------------------------------------------------------------------------------------


def built(scratch: Path) -> list[Path]:
    """The sdist and the wheel of the last commit, built twice and more, and alike."""
    programs = environment(scratch / "builder", sys.executable, *PROJECT["build-system"]["requires"], "twine")
    epoch = run("git", "log", "-1", "--format=%ct", at=ROOT).strip()
    archive = scratch / "commit.tar"
    run("git", "archive", "--output", archive, "HEAD", at=ROOT)

    def build(source: Path, name: str, *what: str) -> list[Path]:
        run(
            programs / "python",
            "-m",
            "hatchling",
            "build",
            "-d",
            scratch / name,
            *what,
            at=source,
            SOURCE_DATE_EPOCH=epoch,
        )
        return sorted((scratch / name).iterdir())

    made = []
    for name in ("one", "two"):
        with tarfile.open(archive) as content:
            content.extractall(scratch / f"source-{name}", filter="data")
        made.append(build(scratch / f"source-{name}", name))
    sdist = next(path for path in made[0] if path.name.endswith(".tar.gz"))
    with tarfile.open(sdist) as content:
        content.extractall(scratch / "from-sdist", filter="data")
    made.append(build(scratch / "from-sdist" / sdist.name.removesuffix(".tar.gz"), "three", "-t", "wheel"))
    for other in (path for several in made[1:] for path in several):
        if not filecmp.cmp(made[0][0].with_name(other.name), other, shallow=False):
            raise SystemExit(
                f"two builds of {other.name} differ: compare {made[0][0].with_name(other.name)} with {other}"
            )
    run(programs / "twine", "check", "--strict", *made[0], at=scratch)
    require_whole(next(path for path in made[0] if path.suffix == ".whl"))
    return made[0]


def require_whole(wheel: Path) -> None:
    """Check that a wheel holds the files of the package, and a README without relative links."""
    with ZipFile(wheel) as content:
        held = {name for name in content.namelist() if name.startswith("dpwindows/")}
        (stated,) = (name for name in content.namelist() if name.endswith(".dist-info/METADATA"))
        text = content.read(stated).decode()
    listed = run("git", "ls-files", "src/dpwindows", at=ROOT).splitlines()
    if held != {name.removeprefix("src/") for name in listed}:
        raise SystemExit(f"the wheel holds {held ^ {name.removeprefix('src/') for name in listed}} by mistake or not")
    if left := re.findall(r"\]\((?!https://)[^)]*\)", text):
        raise SystemExit(f"the README of the wheel has links that lead nowhere: {left}")


# --- Run --------------------------------------------------------------------------------------------------------------


def interpreters(promised: Iterable[str], environ: Mapping[str, str]) -> dict[str, Path | None]:
    """The interpreter of each version: on the path, or where pyenv keeps them; None where there is none."""
    kept = Path(environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    folders = [Path(folder) for folder in environ["PATH"].split(os.pathsep) if folder]
    found: dict[str, Path | None] = {}
    for version in promised:
        candidates = [folder / f"python{version}" for folder in folders] + sorted(kept.glob(f"{version}.*/bin/python"))
        found[version] = next((path for path in candidates if path.is_file() and _version_of(path) == version), None)
    return found


def pythons() -> dict[str, Path]:
    """The interpreters of all versions that are promised."""
    promised = re.findall(r"Python :: (3\.\d+)$", "\n".join(PROJECT["project"]["classifiers"]), re.M)
    found = interpreters(promised, os.environ)
    if missing := [version for version, path in found.items() if path is None]:
        raise SystemExit(f"Python {missing[0]} is promised and not installed: install it, on the path or by pyenv")
    return {version: path for version, path in found.items() if path is not None}


def _version_of(python: Path) -> str:
    ended = subprocess.run(
        [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True
    )
    return ended.stdout.strip()


def blocks_of_the_readme() -> Iterator[tuple[str, str]]:
    """The blocks of the README that are run, with their language: its commands and its Python."""
    for block in blocks(ROOT / "README.md"):
        # The tests run the demo elsewhere.
        if block.reason is None or block.text.startswith(_NEEDS_DEMO):
            yield block.language, block.commands


def followed(programs: Path, at: Path, seconds: Seconds, *, demo: bool) -> None:
    """Run the README from top to bottom; the commands up to the first report are timed by themselves."""
    found = f"{programs}{os.pathsep}{os.environ['PATH']}"
    part = "plan, release, report"
    for language, text in blocks_of_the_readme():
        if text.startswith(_NEEDS_DEMO) and not demo:
            continue
        name = "demo" if text.startswith(_NEEDS_DEMO) else part
        with timed(seconds, name):
            command = (programs / "python", "-c", text) if language == "python" else ("sh", "-e", "-c", text)
            run(*command, at=at, PATH=found)
        if "dpwindows report" in text:
            part = "the rest of the README"


def main(folder: Path) -> None:
    """Build, install, run, and leave the files and a table of seconds."""
    assert ("README.md", "pip install") in NOT_RUN, "what installs is this script's"
    with TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        made = built(scratch)
        folder.mkdir(exist_ok=True)
        for path in made:
            (folder / path.name).write_bytes(path.read_bytes())
            click.echo(f"{path.name}: {path.stat().st_size:,} bytes, built twice and alike")
        wheel = next(path for path in made if path.suffix == ".whl")
        run(sys.executable, "-c", WRITE_FLIGHTS, at=scratch)
        for version, python in pythons().items():
            seconds: Seconds = {}
            at = scratch / f"reader-{version}"
            at.mkdir()
            with timed(seconds, "environment and wheel"):
                programs = environment(scratch / f"python-{version}", python, wheel)
            (at / "flights.parquet").write_bytes((scratch / "flights.parquet").read_bytes())
            followed(programs, at, seconds, demo=False)
            _tell(version, seconds)
        seconds, newest = {}, scratch / "with-demo"
        newest.mkdir()
        with timed(seconds, "environment and wheel[demo]"):
            programs = environment(scratch / "python-demo", python, f"{wheel}[demo]")
        with timed(seconds, "write the log"):
            run(programs / "python", "-c", WRITE_FLIGHTS, at=newest)
        followed(programs, newest, seconds, demo=True)
        _tell(f"{version} with demo", seconds)


def _tell(name: str, seconds: Seconds) -> None:
    click.echo(
        f"Python {name}: "
        + ", ".join(
            f"{part} {passed:.0f} s ({worked:.0f} s of processors)" for part, (passed, worked) in seconds.items()
        )
    )


if __name__ == "__main__":
    main(Path(*sys.argv[1:2] or ["dist"]))
