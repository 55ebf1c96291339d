"""The registry's entry: its fields are those of the registry's schema, and it says what the release says."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from click.testing import CliRunner, Result

import dpwindows as dw
from dpwindows.cli import main
from dpwindows.errors import InputError
from dpwindows.report.registry import registry_entry
from dpwindows.report.yaml import to_yaml
from tests.report.made_up import about

# The fields of the registry's schema, written from it: what each may hold, and a star where it is required.
TEXT, NAMES, DAY, NUMBER = "text", "names", "day", "number"
SCHEMA: dict[str, Any] = {
    "url_slug*": TEXT,
    "status*": {"Draft"},
    "tier*": {1, 2, 3},
    "deployment*": {
        "basic*": {
            "name*": TEXT,
            "data_curators*": NAMES,
            "intended_use*": TEXT,
            "data_product_type*": {
                *("Summary statistics", "Machine learning model", "Dataset"),
                *("Synthetic data", "Interactive API", "SQL queries"),
            },
            "data_product_region*": TEXT,
            "description*": TEXT,
            "publication_date*": DAY,
            "data_product_sector": {"Technology", "Healthcare", "Education", "Government", "Energy", "Finance"},
        },
        "dp_variant": {
            "variant_name": {"Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"},
            "data_domain": TEXT,
            "unprotected_quantities": TEXT,
        },
        "privacy_loss": {
            "privacy_unit": TEXT,
            "privacy_unit_details": TEXT,
            "privacy_parameters": {"epsilon": NUMBER, "delta": NUMBER, "rho": NUMBER},
            "privacy_parameters_details": TEXT,
        },
        "deployment_model": {
            "model_name": {"Local", "Central", "Shuffle", "Federated", "Varies"},
            "model_name_details": TEXT,
            "actors": TEXT,
            "release_type": {"One release", "Many releases"},
            "release_type_details": TEXT,
            "data_source_type": {"Static", "Dynamic"},
            "data_source_type_details": TEXT,
            "access_type": {"Interactive", "Non-interactive"},
            "access_type_details": TEXT,
        },
        "accounting": {"post_processing": TEXT, "composition": TEXT},
        "implementation": {"preprocessing_and_hyperparameter_tuning": TEXT, "mechanisms": TEXT, "justification": TEXT},
        "administrative": {"sources": TEXT, "notes": TEXT, "registry_authors*": NAMES},
    },
}
# What only the publisher knows and may leave unsaid.
OPTIONAL = {"data_product_sector", "administrative", "epsilon", "delta", "rho"}
SAID: dict[str, Any] = {
    "name": "Patients in any two weeks",
    "data_curators": ["Klinik Öst & Co", "yes"],
    "intended_use": 'Plan "beds".\n\n  - Not for billing: #1',
    "data_product_region": "50 % of Tyrol",
    "publication_date": dt.date(2026, 2, 1),
    "data_product_sector": "Healthcare",
    "description": "Items are patients.",
    "release_type": "Many releases",
    "sources": "https://example.org/a",
    "registry_authors": ["null"],
}
QUERIES = [dw.Rolling(3).at_least(1, 2), dw.Tumbling(2).at_least(1)]
LOG = pa.table({"who": [1, 2, 1, 3], "at": [0, 1, 2, 4], "at_home": ["a", "b", "a", "c"]})
UNITS = [dw.EventLevel(), dw.ItemPerPeriod(2), dw.ItemAddRemove(), dw.ItemLevel()]
BUDGETS = [dw.PureDP(1e-05), dw.ApproxDP(1.5, 1e-7), dw.ZCDP(0.25)]


def faults(value: Any, kind: Any, where: str = "") -> Iterator[str]:
    """What a value has that the schema has not, lacks that it requires, or has of another kind."""
    if isinstance(kind, dict):
        known = {name.rstrip("*"): each for name, each in kind.items()}
        yield from (f"{where}.{name} is not in the schema" for name in value if name not in known)
        yield from (f"{where}.{name} is missing" for name in kind if name[-1] == "*" and name[:-1] not in value)
        for name, one in value.items():
            yield from faults(one, known.get(name), f"{where}.{name}")
    elif isinstance(kind, set):
        yield from [] if value in kind else [f"{where} is {value!r}"]
    elif kind == NAMES:
        fits = isinstance(value, list) and value and all(isinstance(one, str) for one in value)
        yield from [] if fits else [f"{where} is no list of names"]
    elif kind == NUMBER:
        yield from [] if isinstance(value, float) else [f"{where} is no number"]
    elif not isinstance(value, str) or not value or (kind == DAY and not re.fullmatch(r"\d{4}-\d\d-\d\d", value)):
        yield f"{where} is no {kind}"


def missing(value: Any, kind: Any) -> set[str]:
    """The fields of the schema that an entry leaves out."""
    found: set[str] = set()
    for name, each in kind.items():
        plain = name.rstrip("*")
        found |= {plain} if plain not in value else missing(value[plain], each) if isinstance(each, dict) else set()
    return found


@pytest.mark.quick(3)
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_every_release_and_stream_is_an_entry(unit: Any, budget: Any, tmp_path: Path) -> None:
    most = None if isinstance(unit, dw.EventLevel) else 2
    groups: dict[str, Any] = {"by": {"at_home": ["a", "b"]}, "totals": 0.2, "max_groups": most}
    timeline = dw.Timeline.of_steps(6)
    alone = dw.Plan(QUERIES, timeline=timeline, unit=unit, budget=budget)
    grouped = dw.Plan(QUERIES, timeline=timeline, unit=unit, budget=budget, **groups)
    streamed = dw.StreamPlan(QUERIES, unit=unit, budget=budget, horizon=6)
    with dw.Stream.create(tmp_path / "s.state", streamed, item="who", time="at", start=0, step=1) as stream:
        told = [stream.description, *(plan.run(LOG, item="who", time="at").metadata for plan in (alone, grouped))]
    for metadata in told:
        bare, requests = registry_entry(metadata, {})
        full, none = registry_entry(metadata, SAID)
        assert [*faults(bare, SCHEMA), *faults(full, SCHEMA)] == []
        assert missing(bare, SCHEMA) <= OPTIONAL
        assert missing(full, SCHEMA) == {"notes", "epsilon", "delta", "rho"} - metadata["budget"].keys()
        assert none == []
        asked = {"name", "data_curators", "intended_use", "data_product_region"}
        assert set(requests) == asked | ({"publication_date"} if metadata is told[0] else set())
        loss = full["deployment"]["privacy_loss"]
        assert {"kind": budget.kind, **loss["privacy_parameters"]} == budget.to_dict()
        assert metadata["guarantee"] in loss["privacy_unit_details"]
        assert yaml.safe_load(to_yaml(bare)) == bare
        assert yaml.safe_load(to_yaml(full)) == full


@pytest.mark.parametrize(
    ("kind", "name"), [("pure", "Pure DP"), ("approximate", "Approximate DP"), ("zcdp", "Zero-concentrated DP")]
)
def test_the_variant_is_that_of_the_budget(kind: str, name: str) -> None:
    entry, _ = registry_entry(about(strategy="auto", criterion="rms", budget={"kind": kind, "epsilon": 1.0}), {})
    assert entry["deployment"]["dp_variant"]["variant_name"] == name


def test_what_the_publisher_says_is_added_to_what_the_release_says() -> None:
    metadata = about(strategy="auto", criterion="rms")
    entry, _ = registry_entry(metadata, SAID)
    basic = entry["deployment"]["basic"]
    assert basic["description"].startswith("How many items are seen in time windows (rolling:7: at least 1)")
    assert basic["description"].endswith("\n\nItems are patients.")
    assert basic["publication_date"] == "2026-02-01"
    assert registry_entry(metadata, {})[0]["deployment"]["basic"]["publication_date"] == "2026-01-02"
    assert entry["url_slug"] == "patients-in-any-two-weeks-klinik-öst-co-yes-2026"
    assert entry["deployment"]["deployment_model"]["release_type"] == "Many releases"


@pytest.mark.parametrize(
    ("field", "value", "part"),
    [
        ("nmae", "x", "(did you mean 'name'?)"),
        ("privacy_parameters", {"epsilon": 0.1}, "what the release says of itself"),
        ("variant_name", "Pure DP", "what the release says of itself"),
        ("data_curators", "me", "where a list of names is expected"),
        ("data_curators", [], "where a list of names is expected"),
        ("intended_use", " ", "where text is expected"),
        ("data_product_sector", "Retail", "one of Technology, Healthcare"),
        ("publication_date", "2026-02-30", "where a day such as 2026-01-31 is expected"),
        ("publication_date", dt.datetime(2026, 2, 1, 12), "where a day such as 2026-01-31 is expected"),
    ],
)
def test_what_is_not_the_publishers_to_say_is_refused(field: str, value: Any, part: str) -> None:
    with pytest.raises(InputError, match=re.escape(part)):
        registry_entry(about(strategy="auto", criterion="rms"), {field: value})


@pytest.mark.parametrize(
    "text",
    [
        *("no", "Null", "~", "1e-07", "2026-01-01", "a: b", "a #b", "- a", "", " a", "a ", 'a "b" \\ c', "'a'", "é"),
        *("a\nb", "a\n\n  b", "a\n", "\na", " a\nb", "a\r\nb", "a\tb", "a\n\tb", "\U0001f600"),
        "a\x7fb\x85\u2028\ufeff",
    ],
)
def test_text_comes_back_from_yaml_as_it_was(text: str) -> None:
    values = {"a": text, "b": [text], "c": {"d": text, "e": 1e-07, "f": 1e300, "g": 0.25, "h": 3}}
    assert yaml.safe_load(to_yaml(values)) == values
    assert all(line.isprintable() for line in to_yaml(values).split("\n"))


@pytest.fixture
def release(tmp_path: Path) -> Path:
    plan = dw.Plan(QUERIES, timeline=dw.Timeline.of_steps(6), unit=dw.EventLevel(), budget=dw.ApproxDP(1.5, 1e-7))
    plan.run(LOG, item="who", time="at").save(tmp_path / "out.parquet")
    return tmp_path / "out.parquet"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["statement", *map(str, arguments)])


def test_the_command_prints_one_entry_in_two_ways(release: Path, tmp_path: Path) -> None:
    (tmp_path / "about.toml").write_text('name = "Reach"\npublication_date = 2026-02-01\n', encoding="utf-8")
    as_json = run(release, "--json", "--about", tmp_path / "about.toml")
    as_yaml = run(release, "--yaml", "--about", tmp_path / "about.toml")
    assert (as_json.exit_code, as_yaml.exit_code) == (0, 0)
    assert json.loads(as_json.stdout) == yaml.safe_load(as_yaml.stdout)
    assert json.loads(as_json.stdout)["deployment"]["basic"]["name"] == "Reach"
    asked = "To be filled in, there or by --about FILE: data_curators, intended_use, data_product_region"
    assert as_json.stderr.strip() == as_yaml.stderr.strip() == asked
    # The registry reads the slug from the first line, without quotes.
    assert as_yaml.stdout.startswith("url_slug: reach-to-be-filled-in")


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--json", "--yaml"], "give one of them"),
        (["--yaml", "-o", "x.md"], "--yaml prints the entry"),
        (["--about", "about.toml"], "give --json or --yaml too"),
        (["--json", "--about", "none.toml"], "the description none.toml cannot be read"),
        (["--json", "--about", "wrong.toml"], "the description wrong.toml: the registry has no field 'a'"),
    ],
)
def test_a_wrong_call_is_refused(
    options: list[str], part: str, release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wrong.toml").write_text("a = 1\n", encoding="utf-8")
    ended = run(release, *options)
    assert ended.exit_code == 2
    assert part in ended.stderr
    assert ended.stdout == ""
