"""`dpwindows statement`: what a release or a stream promises, for the file of a privacy officer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from dpwindows.cli.screen import tell
from dpwindows.errors import InputError


@click.command(short_help="Answer NIST SP 800-226's questions for a release or a stream.")
@click.argument("source", metavar="OUT", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Page to write, ending in .html or .md")
@click.option("--json", "as_json", is_flag=True, help="Print an entry for the DP Deployments Registry instead.")
@click.option("--yaml", "as_yaml", is_flag=True, help="Print that entry as YAML, as the registry keeps it.")
@click.option(
    "--about",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="With --json or --yaml: a TOML file of what only you know (name, data_curators, intended_use, ...).",
)
@click.option("--force", is_flag=True, help="Replace the output if it exists.")
def statement(source: Path, output: Path | None, as_json: bool, as_yaml: bool, about: Path | None, force: bool) -> None:
    """Say what OUT promises, question by question: a release file, or the state of a stream.

    The questions are those of NIST SP 800-226. What only you can know is left open there, and said to be. Without -o
    the statement is printed as Markdown. With --json or --yaml it is an entry of the Differential Privacy Deployments
    Registry: --about has the fields that only you can fill in, and those that it leaves out are named.
    """
    from dpwindows.cli.options import refuse_inputs
    from dpwindows.release.files import require_writable, write_text
    from dpwindows.report.statement import statement_html, statement_markdown

    if as_json or as_yaml:
        _require_entry_alone(output, as_json=as_json, as_yaml=as_yaml)
        _print_entry(source, about, as_yaml=as_yaml)
        return
    if about is not None:
        raise InputError("--about has fields of a registry's entry: give --json or --yaml too")
    if output is not None:
        refuse_inputs(output, release=source)
        require_writable(output, force=force, endings=(".html", ".htm", ".md"))
    metadata = _metadata(source)
    if output is None:
        click.echo(statement_markdown(metadata))
    else:
        made = statement_markdown if output.suffix.lower() == ".md" else statement_html
        write_text(made(metadata), output, force=force)
        click.echo(f"Statement written to {output}", err=True)


def _require_entry_alone(output: Path | None, *, as_json: bool, as_yaml: bool) -> None:
    if as_json and as_yaml:
        raise InputError("--json and --yaml print the same entry: give one of them")
    if output is not None:
        raise InputError(f"{'--yaml' if as_yaml else '--json'} prints the entry: leave out --output")


def _print_entry(source: Path, about: Path | None, *, as_yaml: bool) -> None:
    """Print the registry's entry, and on the screen which fields still ask to be filled in."""
    from dpwindows.plan.plan_file import read_toml
    from dpwindows.report.registry import registry_entry
    from dpwindows.report.yaml import to_yaml

    metadata = _metadata(source)
    said = {} if about is None else read_toml(about, "the description")
    try:
        entry, requests = registry_entry(metadata, said)
    except InputError as error:
        raise InputError(f"the description {about}: {error}") from None
    click.echo(to_yaml(entry) if as_yaml else json.dumps(entry, indent=2, ensure_ascii=False), nl=not as_yaml)
    if requests:
        tell(f"To be filled in, there or by --about FILE: {', '.join(requests)}")


def _metadata(source: Path) -> dict[str, Any]:
    """What a release file says of itself, known by its ending; any other file is the state of a stream."""
    from dpwindows.release.files import ENDINGS
    from dpwindows.release.release import Release
    from dpwindows.stream.stream import Stream

    if source.suffix.lower() in ENDINGS:
        return Release.load(source).metadata
    with Stream.open(source, read_only=True) as stream:
        return stream.description
