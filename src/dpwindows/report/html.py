"""The frame of a page that loads nothing, and the small pieces of it: tables, scripts, dates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:"


_STYLES = ("chart.css", "figures.css", "page.css")


def document(title: str, body: str, *, scripts: Sequence[str] = ()) -> str:
    """A whole HTML document with its style and its scripts inside; `body` is HTML, `title` plain text."""
    code, style = ("\n".join(map(asset, names)) for names in (scripts, _STYLES))
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style></head>\n"
        f'<body class="dpw page"><main>{body}</main>\n'
        + (f'<script type="module">{code}</script>' if code else "")
        + "</body></html>\n"
    )


def asset(name: str) -> str:
    """A file of `report/web` as text."""
    return files("dpwindows.report").joinpath("web", name).read_text(encoding="utf-8")


def script(name: str, kind: str, content: str) -> str:
    """Data for the scripts of a page; nothing in it can end the element early."""
    safe = content.replace("<", "\\u003c") if kind == "application/json" else content
    return f'<script type="{kind}" id="{name}">{safe}</script>\n'


def grid(head: Sequence[str], body: Iterable[Sequence[str]], *, numeric: Sequence[int], label: str) -> str:
    """A table whose header cells say what they head; on a phone each cell says it, in a box as wide as the page."""
    marks = dict.fromkeys(numeric, ' class="n"')
    top = "".join(f'<th scope="col"{marks.get(at, "")}>{escape(name)}</th>' for at, name in enumerate(head))
    rows = "".join(
        f'<tr><th scope="row">{_cell(row[0])}</th>'
        + "".join(
            f'<td{marks.get(at, "")} data-column="{escape(head[at])}">{_cell(cell)}</td>'
            for at, cell in enumerate(row[1:], start=1)
        )
        + "</tr>"
        for row in body
    )
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(label)}">'
        f"<table><thead><tr>{top}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def unbroken_dates(text: str) -> str:
    """Escaped text whose lines end outside dates."""
    return re.sub(r"\d{4}-\d\d-\d\d", r'<span class="date">\g<0></span>', escape(text))


def _cell(text: str) -> str:
    """Escaped text; a second line smaller, and long dotted names breakable at their dots."""
    first, _, second = text.partition("\n")
    shown = escape(first)
    if second:
        shown += f"<small>{escape(second).replace('.', '.<wbr>') if ' ' not in second else escape(second)}</small>"
    return shown
