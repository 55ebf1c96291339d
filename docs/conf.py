"""How Sphinx makes the site: `make docs` writes it to build/site, and stops at the first broken link or name."""

from __future__ import annotations

from pathlib import Path

from sphinx.application import Sphinx

import dpwindows

project = "dpwindows"
author = "The dpwindows developers"
copyright = author
version = release = dpwindows.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_click",
    "sphinx_copybutton",
]
html_theme = "furo"
html_title = "dpwindows"
html_show_sourcelink = False
html_static_path: list[str] = []

myst_enable_extensions = ["colon_fence", "dollarmath"]
# Pages link to headings as code hosts do.
myst_heading_anchors = 3
# Formulas such as `A'A` are code here; a dollar is a dollar in commands.
myst_dmath_allow_space = False
# A notebook runs when the site is built: what it shows is what the code does.
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 600
nb_merge_streams = True

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
copybutton_prompt_text = "$ "

# Pages of the repository's root that the site shows too, and the page that shows each.
_FROM_THE_ROOT = {"security": "SECURITY.md", "changelog": "CHANGELOG.md", "contributing": "CONTRIBUTING.md"}


def _read_from_the_root(app: Sphinx, page: str, source: list[str]) -> None:
    """Put a page of the root in the place of its stand-in, and lead links between root and pages to the site's own."""
    text = source[0]
    if page in _FROM_THE_ROOT:
        text = (Path(app.srcdir).parent / _FROM_THE_ROOT[page]).read_text(encoding="utf-8").replace("](docs/", "](")
    up = "../" * page.count("/")
    for shown, file in _FROM_THE_ROOT.items():
        for written in (f"](../{up}{file}", f"]({file}"):
            text = text.replace(written, f"]({up}{shown}.md")
    source[0] = text


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", _read_from_the_root)
