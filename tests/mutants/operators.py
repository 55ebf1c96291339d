"""Small changes of a source file, made by a tool: the operators of mutmut, and a few more that privacy code asks for.

mutmut's own runner leaves out decorated functions and everything at module level, which here are properties, cached
samplers and the constants that clipping rests on. So only its operators are used, and every place is changed.

What is left out, because no test of what must hold can tell or because nobody depends on it:

- annotations, type aliases, decorators and docstrings;
- `assert`: here it tells the type checker what a caller has made sure of already;
- the text of messages: whatever a `raise` says, `__str__` and `__repr__`, and strings that are prose (`_PROSE`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import libcst as cst
import libcst.matchers as m
from libcst.metadata import CodeRange, MetadataWrapper, WhitespaceInclusivePositionProvider
from mutmut.mutation.mutators import mutation_operators

# A string of so many words is a sentence for people.
_PROSE = 4
_TYPES = ("Literal", "Callable", "Union", "TypeVar")
_SWAPPED = {"min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(frozen=True)
class Change:
    """One change: the function it is in, the lines it touches, what stood there and what takes its place."""

    within: str
    first_line: int
    last_line: int
    before: str
    after: str
    source: str


def changes(source: str) -> list[Change]:
    """Every change of a source file that is not left out, in the order of the file; each gives other valid source."""
    wrapper = MetadataWrapper(cst.parse_module(source))
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    whole = [_extent(statement, starts) for statement in ast.parse(source).body]
    finder = _Finder()
    wrapper.visit(finder)
    found, seen = [], {source}
    for node, other, within, place in finder.found:
        # Spliced in as text: to write the whole module anew for each change takes minutes.
        first, last = (starts[edge.line - 1] + edge.column for edge in (place.start, place.end))
        # Lines within brackets lose their indentation, which means nothing there.
        if source[first:last].split() != wrapper.module.code_for_node(node).split():
            raise AssertionError(f"line {place.start.line}: {source[first:last]!r} is not what was parsed there")
        text = source[:first] + wrapper.module.code_for_node(other) + source[last:]
        if text in seen:
            continue
        seen.add(text)
        # Only what stands at the top level around it: the rest is as it was.
        began, ended = next((low, high) for low, high in whole if low <= first and last <= high)
        compile(text[began : len(text) - len(source) + ended], "changed", "exec")
        before, after = _differing(lines, text.splitlines())
        found.append(Change(within, place.start.line, place.end.line, before, after, text))
    return found


def _extent(statement: ast.stmt, starts: list[int]) -> tuple[int, int]:
    """Where a statement at the top level begins, its decorators included, and where its last line ends."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    assert statement.end_lineno is not None
    first = min(statement.lineno, *(decorator.lineno for decorator in decorators), statement.end_lineno)
    return starts[first - 1], starts[statement.end_lineno]


def _differing(one: list[str], other: list[str]) -> tuple[str, str]:
    """The lines that differ, without those that both begin and end with."""
    one, other = [line.strip() for line in one], [line.strip() for line in other]
    start = next(i for i, (a, b) in enumerate(zip([*one, None], [*other, None], strict=False)) if a != b)
    end = 0
    while end < min(len(one), len(other)) - start and one[-1 - end] == other[-1 - end]:
        end += 1
    before, after = (lines[start : len(lines) - end] for lines in (one, other))
    return " ".join(before), " ".join(after)


class _Finder(cst.CSTVisitor):
    METADATA_DEPENDENCIES = (WhitespaceInclusivePositionProvider,)

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[cst.CSTNode, cst.CSTNode, str, CodeRange]] = []
        self._within: list[str] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        if _left_out(node):
            return False
        if isinstance(node, (cst.FunctionDef, cst.ClassDef)):
            self._within.append(node.name.value)
        within = ".".join(self._within)
        for target, other in _others(node):
            place = self.get_metadata(WhitespaceInclusivePositionProvider, target)
            assert isinstance(place, CodeRange)
            self.found.append((target, other, within, place))
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:
        if isinstance(original_node, (cst.FunctionDef, cst.ClassDef)) and not _left_out(original_node):
            self._within.pop()


def _left_out(node: cst.CSTNode) -> bool:
    match node:
        case cst.Annotation() | cst.Assert() | cst.Decorator() | cst.Import() | cst.ImportFrom() | cst.Raise():
            return True
        case cst.FunctionDef():
            return node.name.value in ("__str__", "__repr__")
        case cst.Expr(value=cst.SimpleString() | cst.ConcatenatedString()):
            return True
        case cst.SimpleString():
            return len(str(node.evaluated_value).split()) >= _PROSE
        case cst.ConcatenatedString():
            return True
        case cst.Assign(value=cst.Subscript(value=cst.Name(value=name))) if name in _TYPES:
            return True
        case cst.If(test=cst.Name(value="TYPE_CHECKING")):
            return True
    return False


def _others(node: cst.CSTNode) -> Iterator[tuple[cst.CSTNode, cst.CSTNode]]:
    """Pairs of a node, this one or one below it, and what takes its place."""
    for kind, operator in mutation_operators:
        # Cases of a match are whole blocks, which cannot be spliced in.
        if isinstance(node, kind) and not isinstance(node, cst.Match):
            made: Iterable[cst.CSTNode] = operator(node)
            if isinstance(node, cst.BaseString):
                # One changed text is as good as three.
                made = list(made)[:1]
            yield from ((node, other) for other in made)
    yield from _our_others(node)


def _our_others(node: cst.CSTNode) -> Iterator[tuple[cst.CSTNode, cst.CSTNode]]:
    match node:
        case cst.Integer():
            yield node, _one_less(node)
        case cst.If(test=test) | cst.CompIf(test=test):
            yield test, _forced(test, cst.And(), "False")
            yield test, _forced(test, cst.Or(), "True")
        case cst.While(test=test):
            # Never; a loop that never ends says nothing.
            yield test, _forced(test, cst.And(), "False")
        case cst.Call(func=cst.Name(value=name)) if name in _SWAPPED:
            yield node, node.with_changes(func=cst.Name(_SWAPPED[name]))
        case cst.Expr(value=cst.Call() | cst.Yield()):
            yield node, cst.Pass()
        case cst.Return(value=cst.BaseExpression() as value) if not m.matches(value, m.Name("None")):
            yield value, cst.Name("None")


def _one_less(node: cst.Integer) -> cst.BaseExpression:
    value = node.evaluated_value - 1
    if value >= 0:
        return node.with_changes(value=repr(value))
    return cst.UnaryOperation(cst.Minus(), cst.Integer(repr(-value)), lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def _forced(test: cst.BaseExpression, operator: cst.BaseBooleanOp, literal: str) -> cst.BooleanOperation:
    bracketed = test.with_changes(lpar=[cst.LeftParen(), *test.lpar], rpar=[*test.rpar, cst.RightParen()])
    return cst.BooleanOperation(
        left=bracketed,
        operator=operator.with_changes(
            whitespace_before=cst.SimpleWhitespace(" "), whitespace_after=cst.SimpleWhitespace(" ")
        ),
        right=cst.Name(literal),
    )
