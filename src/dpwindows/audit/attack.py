"""An attack on a plan's bounds: neighbours are looked for that move what is measured further than was proved.

All that it takes from the mechanism is what it encodes, and the bounds that it has to find wrong. The answers of logs
are counted from the definition (`dpwindows.audit.counted`), neighbours are listed from the unit, and no code of the
proofs is run. For each bound of each measurement it tries

1. every neighbour, where these are few enough: then there is no worse one;
2. otherwise every neighbour whose events are in a few steps, in one choice of steps after another: the first, the last,
   evenly spaced and random ones, of the whole horizon and under the very integers that are applied;
3. annealing: long histories are changed little by little, towards larger changes of what is measured.

What it reports is worked out anew in whole numbers: both logs of the worst pair are encoded, and subtracted.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dpwindows.ask.groups import Grouping
from dpwindows.ask.privacy import Budget, Unit
from dpwindows.audit.exact import COMPARED, HISTORIES, compare_all
from dpwindows.audit.losses import Power, norms_of
from dpwindows.audit.neighbours import Histories, Ints, Pair
from dpwindows.audit.probe import Mechanism, encode, is_readable, read_at, rows_of, unread
from dpwindows.audit.search import Effort, Floats, Losses, search
from dpwindows.errors import InputError
from dpwindows.kernel.accounting import GAUSSIAN, LAPLACE, NORMS
from dpwindows.kernel.measure import Measurement

if TYPE_CHECKING:
    from dpwindows.plan.planned import Planned

# Numbers of a matrix, or of the measured histories, that are held at once.
_HELD = 1 << 26
# Of the time for a bound, what is spent on few steps, and on one choice of them; numbers compared in a second.
_ON_FEW, _ON_ONE, _A_SECOND = 1 / 3, 1 / 10, 1 << 25
# A first look, and annealing: rounds, edits in each, heat.
_LOOK, _ANNEAL = (20, 24, 0.0), (2000, 6, 0.2)


@dataclass(frozen=True)
class Attacked:
    """One bound, and the largest change that was found: of the neighbours `worst`, exactly `reached`.

    `few` is how many pairs were compared with all events in few steps, `annealed` how many annealing tried; `every`
    tells that there are no other pairs.
    """

    window: str
    strategy: str
    of: str
    proof: str
    bound: int
    reached: int
    worst: Pair
    few: int
    annealed: int
    every: bool

    @property
    def holds(self) -> bool:
        """Whether nothing larger was found."""
        return self.reached <= self.bound


@dataclass(frozen=True)
class Attack:
    """What an attack of so many seconds found of each bound of a plan."""

    budget: Budget
    unit: Unit
    seconds: float
    bounds: tuple[Attacked, ...]
    grouping: Grouping | None = None

    @property
    def holds(self) -> bool:
        """Whether no change was found that is larger than its bound."""
        return all(one.holds for one in self.bounds)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, ready for JSON; numbers of any size in digits."""
        return {
            "claim": self.budget.to_dict(),
            "unit": self.unit.name,
            "seconds": round(self.seconds, 1),
            "bounds": [
                {
                    **{name: getattr(one, name) for name in ("window", "strategy", "of", "proof")},
                    "bound": str(one.bound),
                    "reached": str(one.reached),
                    "pairs": {"few_steps": one.few, "annealed": one.annealed, "all_there_are": one.every},
                    "worst": one.worst.to_dict(self.grouping),
                    "holds": one.holds,
                }
                for one in self.bounds
            ],
            "holds": self.holds,
        }


def attack_bounds(plan: Planned, *, seconds: float, seed: int = 0) -> Attack:
    """Attack the bounds of a plan, of a release or of a stream.

    Args:
        plan: whose bounds are to be found wrong.
        seconds: how long it may take; less if every neighbour was compared, or all bounds are broken.
        seed: of what is tried.

    Raises:
        InputError: there is no time, or a threshold is too high for logs that reach it.
    """
    if not 0 < seconds < float("inf"):
        raise InputError(f"an attack takes some time, got {seconds} seconds")
    began = time.monotonic()
    number_of = sum(1 for one in plan.measurements for _ in _claims(one))
    targets = [_Target(one, plan.measurements, seconds / number_of * _ON_FEW) for one in plan.measurements]
    claims = [(target, *claim) for target in targets for claim in _claims(target.measurement)]
    found = []
    for number, (target, power, of, bound) in enumerate(claims):
        now = time.monotonic()
        share = max(0.0, began + seconds - now) / (len(claims) - number)
        found.append(_Hunt(target, power, bound, now + share, np.random.default_rng([seed, number])).run(of))
    return Attack(plan.budget, plan.unit, time.monotonic() - began, tuple(found), plan.grouping)


def _claims(measurement: Measurement) -> Iterator[tuple[Power, str, int]]:
    """What is claimed of the change that a neighbour makes, and noise is charged for."""
    certificate = measurement.certificate
    if measurement.law != GAUSSIAN:
        yield 1, f"{NORMS[measurement.law]} norm", certificate.bound
        if measurement.law == LAPLACE and certificate.squared is not None:
            yield 2, "squared L2 norm", certificate.squared
        return
    yield 2, "squared L2 norm", certificate.bound
    moved = certificate.moved * len(measurement.design.problem.thresholds)
    if moved < rows_of(measurement):
        yield 0, "numbers moved", moved


@dataclass(frozen=True, eq=False)
class _Target:
    """One measurement of `every` one, and how many seconds there are for reading it off."""

    measurement: Measurement
    every: Sequence[Measurement]
    patience: float

    @property
    def unit(self) -> Unit:
        return self.measurement.design.problem.unit

    @cached_property
    def whole(self) -> Mechanism:
        """What it reads and, where that is not too much, what it applies."""
        found = self._unread
        patient = len(found.sources) * self.seconds <= self.patience
        if not (patient and is_readable([self.measurement])):
            return found
        return replace(read_at([self.measurement], found, range(1, found.steps + 1)), places=None)

    @cached_property
    def _unread(self) -> Mechanism:
        # Whether an item lost something by bounded runs depends on what else is read.
        ruled = self.measurement.design.problem.rule.max_runs is not None
        return unread(self.every if ruled else [self.measurement])

    @cached_property
    def seconds(self) -> float:
        """About how long one log takes to be encoded."""
        log = self._unread.table(np.ones((1, self._unread.slots), dtype=np.int64))
        encode(self.measurement, log)  # what it keeps is made the first time
        began = time.monotonic()
        encode(self.measurement, log)
        return time.monotonic() - began

    @property
    def vectors(self) -> int:
        return len(self.measurement.design.problem.thresholds) * len(self.measurement.cells)

    def reached(self, pair: Pair, power: Power) -> int:
        """How far a neighbour moves it, in whole numbers."""
        one, other = (encode(self.measurement, self.whole.table(np.array([log]))) for log in (pair.log, pair.neighbour))
        return int(norms_of(power, self.measurement.law, other - one, self.vectors))

    def losses(self, moved: Ints, power: Power) -> Floats:
        """What changes of answers cost, each of them encoded."""
        changes = np.array([encode(self.measurement, self.whole.holding(one)) for one in moved], dtype=np.float64)
        return np.asarray(norms_of(power, self.measurement.law, changes, self.vectors), dtype=np.float64)


@dataclass(eq=False)
class _Hunt:
    """The attack on one bound, which ends at a moment of `time.monotonic`, or once it is broken."""

    target: _Target
    power: Power
    bound: int
    until: float
    rng: np.random.Generator
    worst: Pair | None = None
    reached: int = -1
    few: int = 0
    annealed: int = 0

    def run(self, of: str) -> Attacked:
        """Try what there is time for."""
        whole = self.target.whole
        every = compare_all(whole, self.target.unit, self.power) if whole.parts else None
        if every:
            self._note(every.worst)
            self.few = every.pairs
        else:
            # What is easily broken is so at once.
            self._search(whole, self._encoded, time.monotonic() + self._left() * _ON_ONE, how=_LOOK)
            self._few_steps()
            self._anneal()
        assert self.worst is not None, "something is always tried"
        design = self.target.measurement.design
        name, proof = design.problem.window.text, self.target.measurement.certificate.proof
        shown = name, design.strategy, of, proof, self.bound, self.reached, self.worst
        return Attacked(*shown, self.few, self.annealed, every is not None)

    def _left(self) -> float:
        return 0.0 if self.reached > self.bound else max(0.0, self.until - time.monotonic())

    def _note(self, pair: Pair, places: tuple[int, ...] | None = None) -> None:
        whole = self.target.whole
        if places is not None:
            pair = Pair(*(_spread(whole, places, history) for history in (pair.log, pair.neighbour)))
        reached = self.target.reached(pair, self.power)
        if reached > self.reached:
            self.worst, self.reached = pair, reached

    # --- Every neighbour in few steps ---------------------------------------------------------------------------------

    def _few_steps(self) -> None:
        """Compare every neighbour whose events are in a few steps, for one choice of steps after another."""
        target, end = self.target, time.monotonic() + self._left() * _ON_FEW
        for places in _choices(target.whole.steps, self._size(), self.rng):
            if time.monotonic() > end or not self._left():
                return
            found = compare_all(read_at([target.measurement], target.whole, places), target.unit, self.power)
            assert found is not None, "so few steps were chosen"
            self._note(found.worst, places)
            self.few += found.pairs

    def _size(self) -> int:
        """How many steps there may be with every neighbour compared."""
        whole, rows = self.target.whole, rows_of(self.target.measurement)
        compared = min(COMPARED, int(self._left() * _ON_ONE * _A_SECOND))

        def fits(size: int) -> bool:
            histories = Histories(size, whole.most, whole.groups)
            return (
                histories.count <= min(HISTORIES, _HELD // rows)
                and histories.count_pairs(self.target.unit, histories.count) * rows <= compared
                and self._is_read(size)
            )

        return max((size for size in range(1, min(whole.steps, HISTORIES.bit_length())) if fits(size)), default=0)

    def _is_read(self, size: int) -> bool:
        """Whether the integers on so many steps can be read off in a part of the time, and held."""
        whole = self.target.whole
        columns = size * (size + 1) // 2 * len(whole.thresholds)
        in_time = columns * self.target.seconds <= self._left() * _ON_ONE
        # Bounded runs depend on all steps.
        return in_time and columns * rows_of(self.target.measurement) <= _HELD and whole.rule.max_runs is None

    # --- Annealing ----------------------------------------------------------------------------------------------------

    def _anneal(self) -> None:
        """Anneal over all steps; where these cannot be read off, first over as many as can."""
        whole, steps = self.target.whole, self.target.whole.steps
        if not whole.parts:
            end = time.monotonic() + self._left() / 2
            size = max((size for size in range(1, steps + 1) if self._is_read(size)), default=0)
            for places in _choices(steps, size, self.rng):
                if time.monotonic() > end or not self._left():
                    break
                few = read_at([self.target.measurement], whole, places)
                self._search(few, _squares(few) if self.power == 2 else None, min(end, self.until), places)
        while self._left():
            self._search(whole, self._encoded, self.until)

    @property
    def _encoded(self) -> Losses | None:
        """How changes are judged that no matrix is held for."""
        return None if self.target.whole.parts else lambda moved: self.target.losses(moved, self.power)

    def _search(
        self,
        mechanism: Mechanism,
        losses: Losses | None,
        until: float,
        places: tuple[int, ...] | None = None,
        how: tuple[int, int, float] = _ANNEAL,
    ) -> None:
        seed, effort = int(self.rng.integers(1 << 32)), Effort(*how, until)
        begin = self.worst if places is None else None
        pair, tried = search(
            mechanism, self.target.unit, self.power, seed=seed, effort=effort, losses=losses, begin=begin
        )
        self._note(pair, places)
        self.annealed += tried


def _choices(steps: int, size: int, rng: np.random.Generator) -> Iterator[tuple[int, ...]]:
    """Choices of so many steps: next to one another, evenly spaced and at random; without end, none of no steps."""
    first = np.arange(1, size + 1)
    if size:
        yield tuple(first.tolist())
        yield tuple((first + steps - size).tolist())
    while size:
        widest = max(1, (steps - 1) // max(1, size - 1))
        apart = int(rng.integers(1, widest + 1))
        begin = int(rng.integers(0, steps - (size - 1) * apart))
        yield tuple(((first - 1) * apart + 1 + begin).tolist())
        yield tuple(sorted((rng.choice(steps, size, replace=False) + 1).tolist()))


def _spread(whole: Mechanism, places: tuple[int, ...], history: tuple[int, ...]) -> tuple[int, ...]:
    """A history in a few steps as one over all of them."""
    held = np.zeros((whole.steps, whole.groups), dtype=np.int64)
    held[np.array(places) - 1] = np.reshape(history, (-1, whole.groups))
    return tuple(held.ravel().tolist())


def _squares(mechanism: Mechanism) -> Losses:
    """The squared L2 norm of what changes of answers move, from the products of columns."""
    (part,) = mechanism.parts
    matrix = part.matrix.astype(np.float64)
    products = matrix.T @ matrix

    def losses(moved: Ints) -> Floats:
        own = part.own(moved.astype(np.float64))
        return np.asarray(((own @ products) * own).sum(axis=(1, 2)))

    return losses
