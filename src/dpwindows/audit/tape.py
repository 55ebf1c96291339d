"""A tape of the noise of a run: what was drawn, what it was added to, and what came out; and the same played again.

The seam is two functions of the kernel, `draw_noise` and `add_noise`, through which all noise of batch releases and of
streams goes. `taped` puts a tape between the kernel and them, in this thread of execution and for as long as it lasts;
releases made meanwhile in other threads draw their own fresh noise. A tape lives in memory, knows no file and no seed,
and nothing but an audit of made-up logs has a use for it: **a real release must never be run under one**.

While a tape *records*, noise is drawn and added as always. While it *plays*, nothing is drawn: every sum is the one
that was recorded at its place, whatever the exact integers are now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpwindows.kernel import measure as kernel
from dpwindows.kernel.accounting import Law

Drawing = Callable[..., NDArray[np.int64]]
Adding = Callable[[NDArray[Any], NDArray[np.int64]], NDArray[np.int64]]


@dataclass(frozen=True)
class Draw:
    """Noise that was asked for."""

    law: Law
    scale: float
    count: int


@dataclass(frozen=True, eq=False)
class Addition:
    """Exact integers to which the noise of one draw was added, and the sum."""

    draw: Draw
    exact: NDArray[Any]
    noisy: NDArray[np.int64]


class DivergedError(Exception):
    """A run asked for other noise than the one that was recorded."""


@dataclass(eq=False)
class Tape:
    """The noise of one run, in order, or of an earlier run that is played: `recorded`, None to record.

    `draws` is what this run drew, `additions` what it added noise to; `faults` tell of noise that was added to what it
    was not drawn for, one sentence each.
    """

    recorded: Tape | None = None
    draws: list[Draw] = field(default_factory=list)
    additions: list[Addition] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    _unused: list[tuple[Draw, NDArray[np.int64]]] = field(default_factory=list)

    @property
    def unused(self) -> int:
        """How many draws were added to nothing."""
        return len(self._unused)

    def draw(self, draw: Drawing, law: Law, scale: float, count: int, *more: Any) -> NDArray[np.int64]:
        """Fresh noise where the tape records; zeros for what is to be played.

        Raises:
            DivergedError: other noise was drawn at this place of the tape that is played.
        """
        asked = Draw(law, scale, count)
        if self.recorded is None:
            noise = draw(law, scale, count, *more)
        else:
            place, before = len(self.draws), self.recorded.draws
            known = before[place] if place < len(before) else None
            if asked != known:
                raise DivergedError(f"draw {place + 1} is of {_draw_text(asked)}, and was of {_draw_text(known)}")
            noise = np.zeros(count, dtype=np.int64)
        self.draws.append(asked)
        self._unused.append((asked, noise))
        return noise

    def add(self, add: Adding, exact: NDArray[Any], noise: NDArray[np.int64]) -> NDArray[np.int64]:
        """The sum, or the one that was recorded here.

        Raises:
            DivergedError: noise is added more often than when it was recorded.
        """
        place = len(self.additions)
        found = [index for index, (_, drawn) in enumerate(self._unused) if drawn is noise]
        if not found:
            self.faults.append(f"what is added to vector {place + 1} is not the noise that was drawn for it")
            return add(exact, noise)
        asked, _ = self._unused.pop(found[0])
        before = None if self.recorded is None else self.recorded.additions
        if before is not None and place >= len(before):
            raise DivergedError(f"noise is added to {place + 1:,} vectors, and was added to {len(before):,}")
        noisy = add(exact, noise) if before is None else before[place].noisy.copy()
        self.additions.append(Addition(asked, np.array(exact, dtype=object), noisy.copy()))
        return noisy


def _draw_text(draw: Draw | None) -> str:
    return "nothing" if draw is None else f"{draw.count:,} numbers under {draw.law} noise of scale {draw.scale:g}"


_TAPE: ContextVar[Tape | None] = ContextVar("tape", default=None)
_LOCK = RLock()


@contextmanager
def taped(tape: Tape) -> Iterator[Tape]:
    """Run what is within under a tape (see the module's description)."""
    # One audit at a time: the functions put back are then those that were there.
    with _LOCK:
        draw, add = kernel.draw_noise, kernel.add_noise

        def drawing(law: Law, scale: float, count: int, *more: Any) -> NDArray[np.int64]:
            current = _TAPE.get()
            return draw(law, scale, count, *more) if current is None else current.draw(draw, law, scale, count, *more)

        def adding(exact: NDArray[Any], noise: NDArray[np.int64]) -> NDArray[np.int64]:
            current = _TAPE.get()
            return add(exact, noise) if current is None else current.add(add, exact, noise)

        token = _TAPE.set(tape)
        _put(drawing, adding)
        try:
            yield tape
        finally:
            _put(draw, add)
            _TAPE.reset(token)


def _put(draw: Drawing, add: Adding) -> None:
    vars(kernel).update(draw_noise=draw, add_noise=add)
