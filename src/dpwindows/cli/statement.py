"""`dpwindows statement`: what a release or a stream promises, for the file of a privacy officer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from dpwindows.errors import InputError


@click.command(short_help="Answer NIST SP 800-226's questions for a release or a stream.")
@click.argument("source", metavar="OUT", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Page to write, ending in .html or .md")
@click.option("--json", "as_json", is_flag=True, help="Print an entry for the DP Deployments Registry instead.")
@click.option("--force", is_flag=True, help="Replace the output if it exists.")
def statement(source: Path, output: Path | None, as_json: bool, force: bool) -> None:
    """Say what OUT promises, question by question: a release file, or the state of a stream.

    The questions are those of NIST SP 800-226; with --json the answers are an entry in the shape of the Differential
    Privacy Deployments Registry. What only you can know is left open there, and said to be. Without -o the statement
    is printed as Markdown.
    """
    from dpwindows.cli.options import refuse_inputs
    from dpwindows.release.files import require_writable, write_text
    from dpwindows.report.statement import registry_entry, statement_html, statement_markdown

    if as_json and output is not None:
        raise InputError("--json prints the entry: leave out --output")
    if output is not None:
        refuse_inputs(output, {"release": source})
        require_writable(output, force=force, endings=(".html", ".htm", ".md"))
    metadata = _metadata(source)
    if as_json:
        click.echo(json.dumps(registry_entry(metadata), indent=2))
    elif output is None:
        click.echo(statement_markdown(metadata))
    else:
        made = statement_markdown if output.suffix.lower() == ".md" else statement_html
        write_text(made(metadata), output, force=force)
        click.echo(f"Statement written to {output}", err=True)


def _metadata(source: Path) -> dict[str, Any]:
    """What a release file says of itself, known by its ending; any other file is the state of a stream."""
    from dpwindows.release.files import ENDINGS
    from dpwindows.release.release import Release
    from dpwindows.stream.stream import Stream

    if source.suffix.lower() in ENDINGS:
        return Release.load(source).metadata
    with Stream.open(source, read_only=True) as stream:
        return stream.description
