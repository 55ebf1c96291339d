"""`dpwindows report` and `dpwindows demo`: what a release looks like."""

from __future__ import annotations

from pathlib import Path

import click

from dpwindows.cli.screen import json_option, screen, show_json, tell
from dpwindows.progress import show_progress

_DEMO_OUTPUT = Path("out/flights.parquet")


@click.command(short_help="Draw the charts of a release.")
@click.argument("release_file", metavar="RELEASE", type=click.Path(path_type=Path))
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="Page to write, ending in .html")
@click.option("--force", is_flag=True, help="Replace the output if it exists.")
@click.option("--title", help="What stands above the page. Default: what is counted, and the range.")
@click.option("--noun", default="items", show_default=True, help="What items are called, in the plural: customers.")
@json_option
def report(release_file: Path, output: Path, force: bool, title: str | None, noun: str, as_json: bool) -> None:
    """Draw the charts of a release, on one page that loads nothing from anywhere."""
    from dpwindows.cli.options import refuse_inputs
    from dpwindows.release.release import Release

    refuse_inputs(output, release=release_file)
    loaded = Release.load(release_file)
    with show_progress("drawing"):
        loaded.report(output, force=force, title=title, noun=noun)
    if as_json:
        show_json({"output": str(output), "release_id": loaded.metadata["release_id"]})
    else:
        tell(f"Report written to {output}")


@click.command(short_help="Do the main job on real data.")
@click.option(
    "-o",
    "--output",
    default=_DEMO_OUTPUT,
    show_default=True,
    type=click.Path(path_type=Path),
    help="Where the release goes; its report is written beside it.",
)
@click.option("--force", is_flag=True, help="Replace the outputs if they exist (the default ones are replaced anyway).")
@json_option
def demo(output: Path, force: bool, as_json: bool) -> None:
    """Do the main job on real data: a year of flights, released and drawn."""
    from dpwindows.demo import run_demo
    from dpwindows.release.files import ENDINGS, require_writable

    own = output == _DEMO_OUTPUT
    if own:
        output.parent.mkdir(parents=True, exist_ok=True)
    page = output.with_suffix(".html")
    require_writable(output, force=force or own, endings=ENDINGS)
    require_writable(page, force=force or own, endings=(".html",))
    shown = screen()
    shown.quiet = as_json
    run_demo(output, page, shown)
    if as_json:
        show_json({"output": str(output), "report": str(page)})
