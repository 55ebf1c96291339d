"""The trusted lines that plans rest on, and what each strategy gains for those that it alone needs.

    python benchmarks/trusted_lines.py                    # the release of the README, definition by definition
    python benchmarks/trusted_lines.py --gains            # every strategy: cells, gain, lines (minutes)

A release rests on the core, which measures and charges, and on what its design names: the shape, its maps, and the
proof of the bound. What these need is found by name in the source text of `dpwindows.kernel`, definition by definition:
a function or a class with all that it mentions. Lines are counted with their docstrings, where the proofs stand, and
without imports and what stands between definitions.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

from accuracy import Cell, cells, rms_of

import dpwindows as dw
import dpwindows.kernel
from dpwindows.errors import InputError
from dpwindows.kernel.designs import Design
from dpwindows.kernel.rules import PROOFS, RULES
from dpwindows.strategies import BATCH

ROOT = Path(dpwindows.kernel.__file__).parent
# What every release calls, whatever it measures.
CORE = ("measure:measure", "measure:measure_step", "designs:Design", "designs:StepDesign", "rules:certify")
README = dw.Plan(
    [dw.Rolling(28).at_least(1, 3), dw.AnyWindow(max_length=90).at_least(1, 3)],
    timeline=dw.Timeline("2013-01-01", "2014-01-01", time_zone="America/New_York"),
    unit=dw.ItemAddRemove(),
    budget=dw.ApproxDP(1.0, 1e-6),
)


@dataclass(frozen=True)
class Definition:
    """A function, a class or a constant of the kernel.

    Attributes:
        module: its module, below the kernel.
        name: what it is called there.
        lines: how many lines it has, comments above it left out.
        mentions: the definitions of the kernel that it mentions, as (module, name).
    """

    module: str
    name: str
    lines: int
    mentions: tuple[tuple[str, str], ...]


@cache
def definitions() -> dict[tuple[str, str], Definition]:
    """All definitions of the kernel by module and name."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imported = dict(_imported(tree))
        own = {name for node in tree.body for name in _names(node)}
        for node in tree.body:
            mentions = {place for used in _used(node) if (place := _place(used, module, own, imported)) is not None}
            decorators = getattr(node, "decorator_list", [])
            first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
            for name in _names(node):
                lines = (node.end_lineno or first) - first + 1
                found[module, name] = Definition(module, name, lines, tuple(sorted(mentions)))
    return found


def _imported(tree: ast.Module) -> Iterator[tuple[str, tuple[str, str]]]:
    """What a module calls names of other modules of the kernel; an empty name is the module itself."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dpwindows.kernel"):
            module = (node.module or "").removeprefix("dpwindows.kernel").removeprefix(".")
            for name in node.names:
                inner = ROOT.joinpath(*module.split("."), f"{name.name}.py").exists()
                place = (f"{module}.{name.name}".strip("."), "") if inner else (module, name.name)
                yield name.asname or name.name, place


def _names(node: ast.stmt) -> list[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [target.id for target in targets if isinstance(target, ast.Name) and target.id != "__all__"]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
    return []


def _used(node: ast.stmt) -> Iterator[tuple[str, str]]:
    """Names that are read, with the attribute that is read of them if there is one."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute) and isinstance(inner.value, ast.Name):
            yield inner.value.id, inner.attr
        elif isinstance(inner, ast.Name):
            yield inner.id, ""


def _place(
    used: tuple[str, str], module: str, own: set[str], imported: dict[str, tuple[str, str]]
) -> tuple[str, str] | None:
    name, attribute = used
    if name in own:
        return module, name
    if name in imported:
        of, inner = imported[name]
        return (of, inner or attribute)
    return None


def needed(roots: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """What definitions mention, and what these mention.

    What measures and certifies has a choice of all bounds, maps and shapes; these are followed from their like alone.
    """
    met: set[tuple[str, str]] = set()
    waiting = list(roots)
    while waiting:
        place = waiting.pop()
        if place not in met and place in definitions():
            met.add(place)
            waiting += [one for one in definitions()[place].mentions if _is_choice(place) or not _is_choice(one)]
    return met


def _is_choice(place: tuple[str, str]) -> bool:
    return place[0].split(".")[0] in ("maps", "families")


def core() -> set[tuple[str, str]]:
    """What every release rests on."""
    return needed((module, name) for module, name in (place.split(":") for place in CORE))


def own(design: Design) -> set[tuple[str, str]]:
    """What a design rests on beside the core: its shape, its maps, and the rules that its proof is declared by."""
    kinds = {type(part) for part in _parts(design.shape)}
    declared = [one.bound for one in RULES if one.proof == design.proof and kinds.intersection(one.measured)]
    return needed(map(_place_of, [*kinds, PROOFS[design.proof], *declared])) - core()


def _place_of(thing: Any) -> tuple[str, str]:
    return thing.__module__.removeprefix("dpwindows.kernel."), thing.__name__


def _parts(held: Any) -> Iterator[Any]:
    if type(held).__module__.startswith("dpwindows.kernel."):
        yield held
    inner = [getattr(held, one.name) for one in fields(held)] if is_dataclass(held) else held
    for part in inner if isinstance(inner, (list, tuple)) else ():
        yield from _parts(part)


def lines(places: Iterable[tuple[str, str]]) -> int:
    """How many lines definitions have."""
    return sum(definitions()[place].lines for place in places)


def by_file(places: Iterable[tuple[str, str]]) -> dict[str, list[Definition]]:
    """Definitions by file."""
    found = defaultdict(list)
    for place in sorted(places):
        found[place[0].replace(".", "/") + ".py"].append(definitions()[place])
    return found


def show_plan(plan: dw.Plan) -> None:
    """Print what a plan rests on."""
    designs = [allotment.measurement.design for allotment in plan.allotments]
    mine = set().union(*map(own, designs))
    for title, places in (("core", core()), ("its own", mine)):
        print(f"{title}: {lines(places):,} lines")
        for file, listed in by_file(places).items():
            names = ", ".join(one.name for one in listed if one.name[0].isalpha())
            print(f"  {sum(one.lines for one in listed):>5}  kernel/{file}: {names}")
    print(f"together: {lines(core() | mine):,} of {lines(definitions()):,} lines")


def planned(cell: Cell, name: str) -> dw.Plan | None:
    """The plan of one strategy, under whichever noise it errs less with; None where it does not serve."""
    try:
        return cell.plan(strategy=name)
    except InputError:
        return None


def show_gains() -> None:
    """Print what each strategy gains over the best of the others in the cells that it wins."""
    gains: dict[str, list[float]] = defaultdict(list)
    needs: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for cell in cells():
        plans = {name: plan for name in BATCH if (plan := planned(cell, name)) is not None}
        errors = {name: rms_of(plan) for name, plan in plans.items()}
        best = min(errors, key=lambda name: errors[name])
        needs[best] |= own(plans[best].allotments[0].measurement.design)
        rivals = [error for name, error in errors.items() if name != best]
        gains[best].append(min(rivals, default=float("inf")) / errors[best] - 1)
        print(f"{cell.name}: {best} {gains[best][-1]:+.1%}", file=sys.stderr)
    print("strategy                  cells  median gain  largest    lines  that it alone needs")
    for name, found in sorted(gains.items(), key=lambda item: -len(item[1])):
        alone = needs[name].difference(*(other for known, other in needs.items() if known != name))
        figures = f"{median(found):>12.1%} {max(found):>8.1%} {lines(needs[name]):>8} {lines(alone):>20}"
        print(f"{name:<24} {len(found):>6} {figures}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--gains", action="store_true", help="what each strategy gains, in the cells of accuracy.py")
    for path in (path for path in ROOT.rglob("*.py") if path.stem != "__init__"):
        import_module("dpwindows.kernel." + ".".join(path.relative_to(ROOT).with_suffix("").parts))
    show_gains() if parser.parse_args().gains else show_plan(README)


if __name__ == "__main__":
    main()
