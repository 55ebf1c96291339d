"""Where commands print: a console that shows text as it is, whatever is in the names that users chose."""

from __future__ import annotations

from rich.console import Console


def screen(*, stderr: bool = False, soft_wrap: bool = False) -> Console:
    """A console that takes no text for markup, for emoji or for something to colour; styles are given as such.

    With `soft_wrap` long lines are left to the terminal, so that what is cut out of them or piped on is whole.
    """
    return Console(stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=soft_wrap)
