"""What `make dist` and the workflows rest on, as far as it can be seen without a package index."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

import dpwindows
from tests.distribution import PROJECT, blocks_of_the_readme, interpreters

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The hook of the build, where what builds is not installed."""
    for name in ("hatchling", "hatchling.metadata", "hatchling.metadata.plugin", "hatchling.metadata.plugin.interface"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setattr(
        sys.modules["hatchling.metadata.plugin.interface"], "MetadataHookInterface", object, raising=False
    )
    spec = spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


INSTALL = 'Try it. From a checkout:\n\n    pip install ".[demo]"\n'
INSTALLED = 'Try it.\n\n    pip install "dpwindows[demo]"\n'
LINKS = "See [how](docs/a.md#b), [this](https://example.org/x) and [that](SECURITY.md).\n"
SHORT = f"![A page](docs/report.jpg)\n\n{INSTALL}{LINKS}"


def test_links_lead_into_the_repository_once_it_has_an_address(hook: ModuleType) -> None:
    assert hook.read_anywhere(SHORT, "https://example.org/us/it", "0.1.0") == (
        "![A page](https://example.org/us/it/raw/v0.1.0/docs/report.jpg)\n\n"
        f"{INSTALLED}See [how](https://example.org/us/it/blob/v0.1.0/docs/a.md#b), [this](https://example.org/x) and "
        "[that](https://example.org/us/it/blob/v0.1.0/SECURITY.md).\n"
    )


def test_links_name_their_file_as_long_as_there_is_no_address(hook: ModuleType) -> None:
    assert hook.read_anywhere(SHORT, None, "0.1.0") == (
        f"\n\n{INSTALLED}See how (`docs/a.md`), [this](https://example.org/x) and that (`SECURITY.md`).\n"
    )


@pytest.mark.parametrize("source", [None, "https://example.org/us/it"])
def test_no_link_of_the_readme_is_left_that_leads_nowhere(hook: ModuleType, source: str | None) -> None:
    text = hook.read_anywhere((ROOT / "README.md").read_text(encoding="utf-8"), source, dpwindows.__version__)
    assert re.findall(r"\]\((?!https://)[^)]*\)", text) == []
    assert ("](" in text) == (source is not None)


def test_a_readme_that_installs_otherwise_is_noticed(hook: ModuleType) -> None:
    with pytest.raises(ValueError, match="which is for another place than the index"):
        hook.read_anywhere(SHORT.replace(".[demo]", ".[all]"), None, "0.1.0")


def test_the_hook_gives_what_the_index_shows(hook: ModuleType) -> None:
    made = hook.Readme()
    made.root = str(ROOT)
    metadata: dict[str, Any] = {"version": "9.9", "urls": {"Source": "https://example.org/us/it/"}}
    made.update(metadata)
    assert metadata["readme"]["content-type"] == "text/markdown"
    assert "https://example.org/us/it/blob/v9.9/docs/accuracy.md" in metadata["readme"]["text"]


def test_the_readme_is_run_up_to_its_report_and_further() -> None:
    commands = [text for _, text in blocks_of_the_readme()]
    firsts = [next(at for at, text in enumerate(commands) if part in text) for part in ("plan ", "release ", "report ")]
    assert firsts == sorted(firsts)
    assert firsts[-1] < len(commands) - 1
    assert any(text.startswith("dpwindows stream") for text in commands)


def test_every_python_that_is_promised_is_run_everywhere() -> None:
    promised = re.findall(r"Python :: (3\.\d+)$", "\n".join(PROJECT["project"]["classifiers"]), re.M)
    assert len(promised) == 3
    assert interpreters(promised, {"PATH": "", "PYENV_ROOT": str(ROOT / "nowhere")}) == dict.fromkeys(promised)
    found = [
        str(step["with"]["python-version"]).split()
        for path in WORKFLOWS
        for job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values()
        for step in job.get("steps", ())
        if "setup-python" in step.get("uses", "")
    ]
    assert found == [promised, promised]
    page = (ROOT / "docs" / "stability.md").read_text(encoding="utf-8")
    assert f"Python {', '.join(promised[:-1])} and {promised[-1]}" in page


def test_workflows_run_what_there_is() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in WORKFLOWS)
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    assert set(re.findall(r"run: make ([a-z-]+)", text)) <= set(targets)
    assert "run: .ci/run" in text
    assert (ROOT / ".ci" / "run").is_file()
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"][0]["hooks"]
    assert [one["entry"].split()[0] for one in hooks] == [".venv/bin/ruff", ".venv/bin/ruff", ".venv/bin/mypy"]


def test_one_version_is_told_everywhere() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["version"] == dpwindows.__version__
    assert cited.get("repository-code") == PROJECT["project"].get("urls", {}).get("Source")
    minor = dpwindows.__version__.rpartition(".")[0]
    assert f"| {minor}.x | yes |" in (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["version"]["path"] == (
        "src/dpwindows/__init__.py"
    )
