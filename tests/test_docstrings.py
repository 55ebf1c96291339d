"""Docstrings: whatever raises says what, and when."""

from __future__ import annotations

import ast
import doctest
from collections.abc import Iterator
from pathlib import Path

import dpwindows as dw

SOURCE = Path(__file__).parent.parent / "src" / "dpwindows"
# The docstring of a command is its help text. The others are bugs, and what a base class leaves to others.
CONSTRUCTORS = ("__init__", "__post_init__")
HELP, NO_ERRORS = "cli", ("AssertionError", "NotImplementedError")


def public(body: list[ast.stmt], inside: str = "") -> Iterator[tuple[str, ast.FunctionDef, str]]:
    """Public functions and methods by name, with their docstring; for constructors with that of the class too."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            of_class = ast.get_docstring(node) or ""
            for name, method, said in public(node.body, f"{node.name}."):
                yield name, method, said + (of_class if method.name.startswith("__") else "")
        elif isinstance(node, ast.FunctionDef) and (not node.name.startswith("_") or node.name in CONSTRUCTORS):
            yield inside + node.name, node, ast.get_docstring(node) or ""


def raised(function: ast.FunctionDef) -> set[str]:
    """The errors that a function itself raises, by name."""
    found, left = set(), list[ast.AST](function.body)
    while left:
        node = left.pop()
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            continue
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            found.add(ast.unparse(node.exc.func))
        left += ast.iter_child_nodes(node)
    return found - set(NO_ERRORS)


def is_command(function: ast.FunctionDef) -> bool:
    return any("command" in ast.unparse(decorator) for decorator in function.decorator_list)


def test_whatever_raises_says_so() -> None:
    silent = [
        f"{path.relative_to(SOURCE)}: {name} raises {', '.join(sorted(errors))}"
        for path in sorted(SOURCE.rglob("*.py"))
        for name, function, said in public(ast.parse(path.read_text(encoding="utf-8")).body)
        if (errors := raised(function)) and "raise" not in said.lower()
        if not (path.parent.name == HELP and is_command(function))
    ]
    assert silent == []


def test_what_the_help_of_a_plan_shows_is_so() -> None:
    runner = doctest.DocTestRunner()
    for example in doctest.DocTestFinder(recurse=False).find(dw.Plan):
        runner.run(example)
    assert runner.tries >= 3
    assert runner.failures == 0
