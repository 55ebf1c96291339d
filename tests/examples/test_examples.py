"""The examples, run from their READMEs: whatever is run again, one release id and one entry of the budget."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

import dpwindows as dw

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
# dbt and Dagster have an environment of their own (pyproject.toml).
THEIRS = ROOT / ".venv-examples" / "bin"
needs_theirs = pytest.mark.skipif(
    not (THEIRS / "dbt").exists(), reason="dbt and Dagster are not installed: make examples installs them"
)
pytestmark = pytest.mark.xdist_group("examples")


def commands(example: str) -> list[str]:
    """What a README tells to run, but for the installation."""
    text = (EXAMPLES / example / "README.md").read_text(encoding="utf-8")
    return [line for line in re.findall(r"^    (.*)$", text, re.M) if not line.startswith("pip install")]


def shell(folder: Path, command: str, *first: Path) -> subprocess.CompletedProcess[str]:
    """Run a command as a reader would, with these folders first on the path."""
    path = os.pathsep.join([*map(str, first), os.environ["PATH"]])
    # dbt colours what it says where it can, and both would tell their makers of each run.
    quiet = {"DBT_SEND_ANONYMOUS_USAGE_STATS": "false", "DAGSTER_DISABLE_TELEMETRY": "1", "NO_COLOR": "1"}
    environment = {**os.environ, **quiet, "PATH": path, "PYTHONPATH": str(ROOT / "src"), "HOME": str(folder)}
    return subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True)


def must(folder: Path, command: str, *first: Path) -> str:
    done = shell(folder, command, *first)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def spent(folder: Path) -> list[str | None]:
    """The release of each entry of the ledger."""
    return [entry.release_id for entry in dw.Ledger.open(folder / "ledger.db", "visits").book().entries]


@pytest.fixture
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of the example that the test is for."""
    shutil.copytree(EXAMPLES / request.param, tmp_path / request.param)
    return tmp_path / str(request.param)


@needs_theirs
@pytest.mark.parametrize("folder", ["dbt"], indirect=True)
def test_dbt_writes_one_release_however_often_it_runs(folder: Path) -> None:
    def published() -> list[str]:
        with duckdb.connect(folder / "warehouse.duckdb", read_only=True) as warehouse:
            rows = warehouse.sql("SELECT DISTINCT release_id, estimate FROM weekly_actives ORDER BY ALL").fetchall()
        assert len(rows) == 56
        return sorted({release_id for release_id, _ in rows})

    for command in commands("dbt"):
        must(folder, command, THEIRS)
    (first,) = published()
    assert spent(folder) == [first]
    # The machine that wrote the table is gone, and only the ledger is left.
    (folder / "warehouse.duckdb").unlink()
    must(folder, "dbt build --full-refresh", THEIRS)
    assert published() == spent(folder) == [first]
    # A run that fails, and what dbt itself retries of it.
    model = folder / "models" / "weekly_actives.py"
    text = model.read_text(encoding="utf-8")
    model.write_text(text.replace("    rows = ", "    raise OSError('the disk')\n    rows = "), encoding="utf-8")
    assert shell(folder, "dbt run", THEIRS).returncode == 1
    model.write_text(text, encoding="utf-8")
    must(folder, "dbt retry", THEIRS)
    assert published() == spent(folder) == [first]
    # Another log is another release.
    log = folder / "models" / "visits.sql"
    log.write_text(log.read_text(encoding="utf-8").replace("397", "396"), encoding="utf-8")
    must(folder, "dbt run", THEIRS)
    (second,) = published()
    assert spent(folder) == [first, second]


FAILING = """
import json, dagster, assets
import dpwindows as dw
save, tries = dw.Release.save, []
def fail_first(self, *given, **more):
    tries.append(self.metadata["release_id"])
    if len(tries) == 1:
        raise OSError("the disk")
    save(self, *given, **more)
dw.Release.save = fail_first
done = dagster.materialize([assets.visits, assets.weekly_actives])
(made,) = done.asset_materializations_for_node("weekly_actives")
print(json.dumps({"tries": tries, **{name: value.value for name, value in made.metadata.items()}}))
"""


@needs_theirs
@pytest.mark.parametrize("folder", ["dagster"], indirect=True)
def test_dagster_retries_for_nothing_and_shows_what_is_promised(folder: Path) -> None:
    for command in commands("dagster"):
        must(folder, command, THEIRS)
    (first,) = spent(folder)
    release = dw.Release.load(folder / "weekly_actives.parquet")
    assert release.metadata["release_id"] == first
    (folder / "failing.py").write_text(FAILING, encoding="utf-8")
    said = json.loads(must(folder, "python failing.py", THEIRS).splitlines()[-1])
    assert (said["tries"], said["release_id"], spent(folder)) == ([first, first], first, [first])
    assert said["guarantee"] == release.metadata["guarantee"]
    assert said["privacy_statement"].startswith("# Privacy statement")
    assert said["entry_in_the_ledger"] == release.metadata["ledger"]


# Fails at the first attempt of what it is named for, and does not wait.
BROKEN = """#!/bin/sh
case "$1 $2" in
    "{what}"*) [ -e {flag} ] || {{ touch {flag}; {first} exit {status}; }} ;;
esac
exec "{python}" -m dpwindows "$@"
"""


@pytest.mark.parametrize("folder", ["cron"], indirect=True)
def test_cron_publishes_each_night_once(folder: Path, tmp_path: Path) -> None:
    def put(what: str, first: str, status: int) -> None:
        flag = tmp_path / f"failed-{len(list(tmp_path.glob('failed-*')))}"
        script = BROKEN.format(what=what, first=first, status=status, flag=flag, python=sys.executable)
        (tmp_path / "bin" / "dpwindows").write_text(script, encoding="utf-8")

    def published() -> list[tuple[str, int]]:
        with duckdb.connect(folder / "reports.duckdb", read_only=True) as reports:
            query = "SELECT release_id, count(*) FROM visits JOIN visits_releases USING (release_id) GROUP BY ALL"
            return sorted(reports.sql(query).fetchall())

    (tmp_path / "bin").mkdir()
    for name in ("dpwindows", "sleep"):
        (tmp_path / "bin" / name).write_text("#!/bin/sh\n", encoding="utf-8")
        (tmp_path / "bin" / name).chmod(0o755)
    put("nothing", "", 0)
    for command in commands("cron"):
        must(folder, command, tmp_path / "bin")
    ((first, numbers),) = published()
    assert numbers == 3
    # The disk fails once; a killed command closed the step, and its rows were not written; publishing fails.
    (folder / "over" / "february.csv").write_text("visitor,at\nann,2026-01-04\nann,2026-01-05\n", encoding="utf-8")
    own = f'"{sys.executable}" -m dpwindows "$@" >&2;'
    for day, what, first_does in (("2026-01-05", "stream advance", ""), ("2026-01-06", "publish", own)):
        put(what, first_does, 1)
        must(folder, f"./nightly.sh {day}", tmp_path / "bin")
    assert len(published()) == 3
    assert (first, 3) in published()
    # The machine is lost, and the night is run again on another one.
    before = published()
    for lost in folder.glob("visits.state*"):
        shutil.rmtree(lost) if lost.is_dir() else lost.unlink()
    must(folder, "cp -a copy/visits.state copy/visits.state-items . && ./nightly.sh 2026-01-06", tmp_path / "bin")
    assert published() == before
    assert len(spent(folder)) == 1
    # What is wrong is not tried again: there is nothing for this day.
    put("stream advance", "echo again >&2;", 2)
    wrong = shell(folder, "./nightly.sh 2026-01-07", tmp_path / "bin")
    assert (wrong.returncode, wrong.stderr.count("again")) == (2, 1)
