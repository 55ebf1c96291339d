"""Writes the test vectors of `docs/vectors`, for whoever writes another implementation: `python -m tests.vectors`.

Counts come from the engine that releases are counted by, integers from the kernel, and noise from its sampler on bits
that stand in the vector. `docs/vectors.md` says what the files hold, `docs/vectors/check.py` checks them by that page.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any, Literal

import flint
import msgspec
import numpy as np
from numpy.typing import NDArray

import dpwindows as dw
from dpwindows.ask.privacy import ZCDP, ApproxDP, Budget, EventLevel, ItemAddRemove, ItemLevel, ItemPerPeriod, PureDP
from dpwindows.ask.queries import AnyWindow, Cumulative, Rolling, ToDate, Tumbling
from dpwindows.ask.shapes import Positive, Shape, Whole, read_shape
from dpwindows.ask.windows import window_steps
from dpwindows.audit.attack import attack_bounds
from dpwindows.audit.large_logs import counted, events_table
from dpwindows.audit.probe import encode, probe
from dpwindows.kernel import measure as kernel
from dpwindows.kernel import noise as sampler
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE
from dpwindows.kernel.measure import Measurement
from dpwindows.plan.shapes import BudgetFacts, PlanFile
from tests.patience import PATIENCE

FOLDER = Path(__file__).parents[1] / "docs" / "vectors"
Norm = Literal["L1", "squared L2"]
Independent = Literal["discrete Laplace", "discrete Gaussian"]
_COLOURS = ("blue", "red")


class Event(Shape, array_like=True):
    """An item, a step, a group (null without groups), and how many occurrences the item has there."""

    item: str
    step: Positive
    group: str | None
    occurrences: Positive


class Groups(Shape):
    """The public list of the groups of events, in its order, and in how many of them an item counts at most."""

    values: list[str]
    max_groups: Positive | None


class Read(Shape, array_like=True):
    """An exact count: items with at least k occurrences from a first to a last step; for k = -1 the occurrences."""

    k: Whole
    first: Positive
    last: Positive


class Noise(Shape):
    """The noise of one measurement: bits in hexadecimal digits and the numbers they make, by threshold."""

    law: Independent
    scale: float
    block_bits: Whole
    bits: list[str]
    numbers: list[list[Whole]]


class Bound(Shape):
    """What is certified of the change that a neighbour makes, and the largest there is; numbers in digits."""

    norm: Norm
    bound: str
    largest: str
    proof: str


class Made(Shape):
    """One measurement: `matrix` by threshold and row over what is read, `measured` of the log, `noisy` with noise.

    `counts` are the true answers of the windows that are released, by group, threshold and window. Groups are the
    listed ones, or null for all of them together.
    """

    window: str
    strategy: str
    groups: list[str | None]
    thresholds: list[Whole]
    windows: list[tuple[Positive, Positive]]
    counts: list[list[list[Whole]]]
    reads: list[Read]
    matrix: list[list[list[Whole]]]
    measured: list[list[Whole]]
    sensitivity: Bound
    noise: Noise
    noisy: list[list[Whole]]


class Vector(Shape):
    """A test vector: a plan, a log, and what is measured of it (docs/vectors.md)."""

    format: Literal[1]
    about: str
    plan: PlanFile
    steps: Positive
    unit: str
    budget: BudgetFacts
    groups: Groups | None
    most: Positive
    log: list[Event]
    measurements: list[Made]


def plans() -> dict[str, tuple[str, dw.Plan]]:
    """The plans by the names of their files, each with what it shows."""
    event, item, presence = EventLevel(), ItemLevel(), ItemAddRemove()
    pure, zcdp = PureDP(1.0), ZCDP(0.5)
    by: dict[str, Any] = {"by": {"colour": list(_COLOURS)}}

    def plan(steps: int, unit: Any, budget: Budget, *queries: Any, **more: Any) -> dw.Plan:
        return dw.Plan(list(queries), timeline=dw.Timeline.of_steps(steps), unit=unit, budget=budget, **more)

    return {
        "cumulative-event": ("distinct items so far", plan(6, event, pure, Cumulative())),
        "rolling-event": (
            "several thresholds, each measured with noise of its own",
            plan(4, event, zcdp, Rolling(3).at_least(1, 3)),
        ),
        "rolling-presence": (
            "the presence of an item, and Laplace noise",
            plan(6, presence, pure, Rolling(2), strategy="direct"),
        ),
        "rolling-item": ("exactly once, from at least 1 and at least 2", plan(5, item, zcdp, Rolling(3).exactly(1))),
        "histogram-item": ("a histogram of three thresholds", plan(4, item, zcdp, Cumulative().histogram(3))),
        "any-presence": (
            "any two dates, with (epsilon, delta)",
            plan(6, presence, ApproxDP(1.0, 1e-6), AnyWindow()),
        ),
        "any-event": ("short windows between any two dates", plan(5, event, pure, AnyWindow(3).at_least(2))),
        "tumbling-period": (
            "windows apart, everything in 2 steps protected",
            plan(6, ItemPerPeriod(2), pure, Tumbling(2)),
        ),
        "to-date-event": ("from the first step of each period", plan(6, event, zcdp, ToDate(3))),
        "together-period": (
            "three families that share one budget",
            plan(5, ItemPerPeriod(3), zcdp, Rolling(2), Cumulative(), AnyWindow()),
        ),
        "groups-event": (
            "groups of events, and totals over them",
            plan(3, event, pure, Cumulative(), totals=0.3, **by),
        ),
        "groups-item": (
            "groups, with each item in one of them at most",
            plan(4, item, zcdp, Rolling(2), max_groups=1, **by),
        ),
        "occurrences-event": (
            "how often items were seen, all together",
            plan(5, event, pure, Rolling(2).occurrences()),
        ),
    }


# In these the first words of two numbers leave them open, and more bits are read.
CLOSE = ("cumulative-event", "rolling-event")


def vector(name: str, about: str, plan: dw.Plan) -> Vector:
    """The vector of one plan; everything in it follows from its arguments."""
    whole, grouping = probe(plan.measurements), plan.grouping
    bits, groups = _Bits(name), whole.groups
    histories = {f"item {number}": bits.history(whole.slots, whole.most) for number in range(1, 6)}
    answers = counted(plan, events_table(plan.timeline.boundaries(), histories, grouping))
    log = [
        Event(item, slot // groups + 1, None if grouping is None else _COLOURS[slot % groups], int(history[slot]))
        for item, history in histories.items()
        for slot in np.flatnonzero(history).tolist()
    ]
    law = plan.measurements[0].law
    norm: Norm = "squared L2" if law == GAUSSIAN else "L1"
    largest = [one.reached for one in attack_bounds(plan, seconds=PATIENCE).bounds if one.of == f"{norm} norm"]
    return Vector(
        format=1,
        about=about,
        plan=read_shape(plan.to_dict(), PlanFile),
        steps=plan.timeline.steps,
        unit=plan.unit.name,
        budget=read_shape(plan.budget.to_dict(), BudgetFacts),
        groups=None if grouping is None else Groups(list(_COLOURS), grouping.max_groups),
        most=whole.most,
        log=log,
        measurements=[
            _made(own, answers, norm, most, _Bits(f"{name}, {number}"), close=name in CLOSE)
            for number, (own, most) in enumerate(zip(plan.measurements, largest, strict=True))
        ],
    )


def _made(
    own: Measurement, answers: Any, norm: Literal["L1", "squared L2"], most: int, bits: _Bits, *, close: bool
) -> Made:
    problem, certificate, read = own.design.problem, own.certificate, probe([own])
    (part,), thresholds = read.parts, list(problem.thresholds)
    windows = [
        (int(first), int(last)) for first, last in zip(*window_steps(problem.window, problem.steps), strict=True)
    ]
    logs = [answers] if own.groups is None else [answers.group(cell) for cell in own.cells]
    measured = np.split(encode(own, answers), len(thresholds))
    noise = _noise(own, len(measured[0]), len(thresholds), bits, close=close)
    listed = 1 if own.groups is None else own.groups.grouping.levels[0].count
    return Made(
        window=problem.window.text,
        strategy=own.design.strategy,
        groups=[_COLOURS[cell] if own.groups is not None and cell < listed else None for cell in own.cells],
        thresholds=thresholds,
        windows=windows,
        counts=[[[_count(log, k, first, last) for first, last in windows] for k in thresholds] for log in logs],
        reads=[Read(*source) for source in read.sources],
        matrix=[one.tolist() for one in np.split(part.matrix, len(thresholds))],
        measured=[one.tolist() for one in measured],
        sensitivity=Bound(norm, str(certificate.bound), str(most), certificate.proof),
        noise=noise,
        noisy=[
            kernel.add_noise(one, np.array(drawn, dtype=np.int64)).tolist()
            for one, drawn in zip(measured, noise.numbers, strict=True)
        ],
    )


def _count(log: Any, k: int, first: int, last: int) -> int:
    return int((log.cumulative(k) if first == 1 else log.rolling(k, last - first + 1))[last - 1])


def _noise(own: Measurement, count: int, thresholds: int, bits: _Bits, *, close: bool) -> Noise:
    assert own.law in (LAPLACE, GAUSSIAN)
    law: Independent = "discrete Laplace" if own.law == LAPLACE else "discrete Gaussian"
    blocks = sampler._blocks_for(own.law, own.scale, count)
    used, numbers = [], []
    for number in range(thresholds):
        source = bits.begin(count)
        if close and number == 0:
            _bring_close(source, blocks, count)
        numbers.append(blocks.draw(source, count).tolist())
        used.append(source.read.hex())
    return Noise(law, own.scale, blocks.log_length, used, numbers)


def _bring_close(source: _Source, blocks: sampler.Blocks, count: int) -> None:
    """Change the words of two numbers so that they lie beside what they are compared with."""
    table = sampler._table(blocks, 64)
    source.set(0, table.low[len(table.low) // 4])
    source.set(1, (table.low[1] + table.low[2]) // 2)
    size = 1 << blocks.log_length
    with flint.ctx.workprec(256):
        chance = ((-flint.arb(blocks.rise(size + 1, 2 * size))).exp() * flint.arb(2) ** 64).floor().unique_fmpz()
    assert chance is not None, "an exact whole number"
    source.set(count + 1, min(int(chance), (1 << 64) - 1))
    source.set(2 * count + 1, 2 * (size - 1))


class _Bits:
    """Bits that follow from a name."""

    def __init__(self, name: str) -> None:
        self._name, self._begun = name, 0

    def begin(self, count: int) -> _Source:
        """Others each time, for so many numbers."""
        self._begun += 1
        return _Source(bytearray(hashlib.shake_256(f"{self._name}, {self._begun}".encode()).digest(64 * count + 4096)))

    def history(self, slots: int, most: int) -> NDArray[np.int64]:
        """Occurrences by slot, none in about half of them."""
        found = np.frombuffer(self.begin(slots)(slots), dtype=np.uint8).astype(np.int64)
        return np.where(found % 2, found // 2 % most + 1, 0)


class _Source:
    """Hands out bytes, and remembers which."""

    def __init__(self, content: bytearray) -> None:
        self._content, self._at = content, 0

    def __call__(self, size: int) -> bytes:
        self._at += size
        assert self._at <= len(self._content), "enough was prepared"
        return bytes(self._content[self._at - size : self._at])

    @property
    def read(self) -> bytes:
        """What was handed out so far."""
        return bytes(self._content[: self._at])

    def set(self, word: int, value: int) -> None:
        """Change one of the words."""
        self._content[8 * word : 8 * word + 8] = value.to_bytes(8, "little")


def written(name: str) -> str:
    """The text of one file."""
    about, plan = plans()[name]
    text = json.dumps(msgspec.to_builtins(vector(name, about, plan)), indent=1, ensure_ascii=False)
    # What holds nothing that holds anything, in one line.
    within = re.compile(r"[\[{][^\[\]{}]*[\]}]")
    return within.sub(lambda found: " ".join(found[0].split()), text) + "\n"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for file in plans():
        (FOLDER / f"{file}.json").write_text(written(file), encoding="utf-8")
