"""Makes the README fit to be read away from the repository, where its relative links lead nowhere.

They become links into the repository, at the tag of the version, if `[project.urls]` of pyproject.toml names it as
`Source`. As long as it does not, the file is named in place of the link, and pictures are left out. Nor is there a
checkout to install from: whoever reads it there installs what stands there.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_FROM_A_CHECKOUT = ' From a checkout:\n\n    pip install ".[demo]"\n'
_FROM_THE_INDEX = '\n\n    pip install "dpwindows[demo]"\n'
_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?![a-z]+:)([^)\s]+)\)")


def read_anywhere(text: str, source: str | None, version: str) -> str:
    """The text with links that work from anywhere, or names of files. Raises `ValueError` if it installs otherwise."""
    if _FROM_A_CHECKOUT not in text:
        raise ValueError(f"README.md does not say{_FROM_A_CHECKOUT!r}, which is for another place than the index")

    def link(found: re.Match[str]) -> str:
        picture, shown, path = found.groups()
        if source is None:
            return "" if picture else f"{shown} (`{path.partition('#')[0]}`)"
        return f"{picture}[{shown}]({source}/{'raw' if picture else 'blob'}/v{version}/{path})"

    return re.sub(r"\n{3,}", "\n\n", _LINK.sub(link, text.replace(_FROM_A_CHECKOUT, _FROM_THE_INDEX)))


class Readme(MetadataHookInterface):
    """Called by hatchling for each build."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Put the text of the README where its name would stand."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        source = metadata.get("urls", {}).get("Source")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": read_anywhere(text, source and source.rstrip("/"), metadata["version"]),
        }
