"""One dataset's page in a ledger, as plain values: what was spent on it, and whether a request still fits.

Nothing is read or written here: `Ledger` reads a `Book` from its store, asks it, and writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from fractions import Fraction
from functools import cached_property
from typing import Any
from zoneinfo import ZoneInfo

from dpwindows.ask.privacy import ApproxDP, Budget, ItemPerPeriod, Unit, parse_budget
from dpwindows.ask.zones import EPOCH
from dpwindows.errors import InputError, OverBudgetError
from dpwindows.ledger.composition import Account, CannotComposeError, Charge, account_for
from dpwindows.ledger.parallel import EVERYWHERE, Counted, Span, accounts
from dpwindows.ledger.request import Request, require_fit, span_of

MOST_ROOM = 1_000_000
"""More releases than this are not told apart: nobody makes them."""


@dataclass(frozen=True)
class Entry:
    """One charge on record: its place in the order of spending, the request's plain facts, and its state if a stream.

    `release_id` is that of the stored release, None where there is none; `step` the last step a stream published. A
    request is known again by its `key`, and the data it was asked of by their `fingerprint`.
    """

    number: int
    facts: dict[str, Any]
    state: str | None = None
    release_id: str | None = None
    step: int | None = None
    key: str = ""
    fingerprint: str | None = None

    @property
    def charge(self) -> Charge:
        """What the entry cost, as it is added up."""
        return Charge.of(budget_of(self.facts["budget"]))


@dataclass(frozen=True)
class Book:
    """One dataset: its unit and total, set once, and its entries in the order they were spent."""

    dataset: str
    unit: Unit
    total: Budget
    singleton: bool
    created: str
    entries: tuple[Entry, ...]

    @cached_property
    def clock(self) -> list[str] | None:
        """The zone and time column that instants of this dataset are read by: those of its first entry."""
        return self.entries[0].facts["clock"] if self.entries else None

    def entry_of(self, request: Request, fingerprint: str) -> Entry | None:
        """The entry that paid for a request on data with this fingerprint; the newest, if there are several."""
        same = (entry for entry in reversed(self.entries) if entry.key == request.key)
        return next((entry for entry in same if entry.fingerprint == fingerprint), None)

    def require_room(self, request: Request) -> None:
        """Check that a request fits what is left, everywhere it counts.

        Raises:
            OverBudgetError: it does not.
            InputError: its guarantee is not of the kind this dataset's total and unit need.
        """
        first = self.entries[0].facts if self.entries else None
        require_fit(request, self.unit, singleton=self.singleton, first=first)
        asked = Charge.of(request.budget)
        *counted, new = self._counted([*self._places, (asked, request.place)])
        for piece, before in accounts(account_for(self.total), counted, within=new.span):
            try:
                after = before.plus(asked)
            except CannotComposeError as error:
                raise InputError(f"dataset {self.dataset!r}: {error}") from None
            if not after.within:
                raise self._refusal(request, before, piece)

    def pieces(self) -> list[tuple[Span, Account]]:
        """All of time, cut where the account changes, with the account on each piece; ascending."""
        return list(accounts(account_for(self.total), self._counted(self._places)))

    def room(self, budget: Budget) -> int:
        """How many more releases of a budget fit, over any range, if nothing else is spent; at most MOST_ROOM."""
        asked = Charge.of(budget)
        return min(_times(account, asked) for _, account in self.pieces())

    def to_dict(self) -> dict[str, Any]:
        """The page as plain values, for `dpwindows ledger show --json`. Nothing in it depends on exact counts."""
        by_time = self.pieces()
        accounts = [account for _, account in by_time]
        shown = {
            "dataset": self.dataset,
            "unit": self.unit.name,
            "singleton": self.singleton,
            "created": self.created,
            "total": self.total.to_dict(),
            "spent": _across(max, [spent_of(account) for account in accounts]),
            "left": _across(min, [left_of(account) for account in accounts]),
            "entries": [self._entry_dict(entry) for entry in self.entries],
        }
        if self.entries:
            again = budget_of(self.entries[-1].facts["budget"])
            shown["room"] = {"budget": again.to_dict(), "releases": self.room(again)}
        if len({account.spent for account in accounts}) > 1:
            shown["by_time"] = [
                {
                    "start": self.instant_text(span.start),
                    "end": self.instant_text(span.end),
                    "spent": spent_of(account),
                    "left": left_of(account),
                }
                for span, account in by_time
            ]
        return shown

    def instant_text(self, instant: int | None) -> str | int | None:
        """An instant on the dataset's clock: an integer, or a date or time on the wall clock of its zone."""
        if instant is None or self.clock is None:
            return None
        if self.clock[0] == "integer":
            return instant
        moment = EPOCH.replace(tzinfo=UTC) + timedelta(microseconds=instant)
        local = moment.astimezone(ZoneInfo(self.clock[0]))
        whole = local.replace(tzinfo=None)
        return whole.date().isoformat() if whole.time() == time() else local.isoformat()

    @property
    def _places(self) -> list[tuple[Charge, dict[str, Any]]]:
        return [(entry.charge, entry.facts) for entry in self.entries]

    def _counted(self, placed: Sequence[tuple[Charge, dict[str, Any]]]) -> list[Counted]:
        """Where each charge counts; `parallel` says why."""
        clock = placed[0][1]["clock"] if placed else None
        shared = isinstance(self.total, ApproxDP) and any(charge.rho for charge, _ in placed)
        together = shared and isinstance(self.unit, ItemPerPeriod)
        return [
            Counted(charge, EVERYWHERE if together or place["clock"] != clock else span_of(place, self.unit))
            for charge, place in placed
        ]

    def _refusal(self, request: Request, before: Account, piece: Span) -> OverBudgetError:
        ends = [short_instant(self.instant_text(edge)) for edge in (piece.start, piece.end)]
        first, last = ("the beginning" if ends[0] is None else ends[0]), ("the end" if ends[1] is None else ends[1])
        where = "" if ends == [None, None] else f" between {first} and {last}"
        if where and isinstance(self.unit, ItemPerPeriod):
            where = f" for stretches of {self.unit.steps:,} steps that begin{where}"
        left = left_of(before)
        smaller = "Ask for a smaller budget, or use" if left.get("epsilon") or left.get("rho") else "Use"
        return OverBudgetError(
            f"dataset {self.dataset!r} has a total of {self.total}; {amount_text(spent_of(before))} is spent{where}. "
            f"This {request.kind} asks for {request.budget}, and {amount_text(left)} is left: nothing was "
            f"drawn or spent. {smaller} the releases there are"
        )

    def _entry_dict(self, entry: Entry) -> dict[str, Any]:
        facts = entry.facts
        shown = {
            "number": entry.number,
            "at": facts["at"],
            "kind": facts["kind"],
            "asked": asked_text(facts["asked"]),
            "columns": facts["columns"],
            "budget": facts["budget"],
            "unit": facts["unit"],
            "start": facts["timeline"]["start"],
            "end": facts["timeline"]["end"],
            "step": facts["timeline"]["step"],
        }
        if facts["kind"] == "stream":
            return shown | {"state": entry.state, "last_step": entry.step}
        return shown | {"release_id": entry.release_id}


def _times(account: Account, asked: Charge) -> int:
    """How often a charge fits into what an account has left, found by doubling and halving."""

    def fits(times: int) -> bool:
        try:
            return account.plus(asked, times).within
        except CannotComposeError:
            return False

    low, high = 0, 1
    while high <= MOST_ROOM and fits(high):
        low, high = high, 2 * high
    high = min(high, MOST_ROOM + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def budget_of(values: dict[str, Any]) -> Budget:
    """The budget that `Budget.to_dict` described."""
    return parse_budget(values.get("epsilon"), values.get("delta"), values.get("rho"))


def spent_of(account: Account) -> dict[str, float]:
    """What an account holds, in the terms of its total."""
    return _in_terms(account, account.spent)


def left_of(account: Account) -> dict[str, float]:
    """What is left in an account; with a rho where rho is shared under an (epsilon, delta) total."""
    left = account.left
    rho = None if account.order is None else left.rho
    return _in_terms(account, left) | ({} if rho is None else {"rho": _number(rho)})


def _in_terms(account: Account, charge: Charge) -> dict[str, float]:
    if account.total.rho:
        return {"rho": _number(charge.rho)}
    pure = {"epsilon": _number(charge.epsilon)}
    return pure if not account.total.delta else pure | {"delta": _number(charge.delta)}


def _number(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def _across(pick: Any, amounts: list[dict[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for amount in amounts for name in amount)
    return {name: pick(amount[name] for amount in amounts if name in amount) for name in names}


def short_instant(text: str | int | None) -> str | int | None:
    """A bound of a piece of time as people say it: a stretch of steps counts from a microsecond after an instant on."""
    if not isinstance(text, str):
        return text
    return text.partition("T00:00:00.000001")[0].replace(".000001", "")


def amount_text(amount: dict[str, Any]) -> str:
    """What was spent, or is left, as text."""
    order = [*(name for name in ("epsilon", "delta") if name in amount), *amount]
    shown = {name: f"{name} = {amount[name]:.10g}" for name in order if name != "kind"}
    if {"epsilon", "rho"} <= set(shown):
        return f"{shown['rho']}, or {shown['epsilon']} alone"
    return ", ".join(shown.values())


def asked_text(asked: dict[str, Any]) -> str:
    """What was asked, in a line."""
    queries = "; ".join(
        f"{query['window']} " + ", ".join(f"{kind.replace('_', ' ')} {k}" for kind, k in query["measures"])
        for query in asked.get("queries", ())
    )
    by = " x ".join(column["name"] for column in asked.get("groups", {}).get("columns", ()))
    return f"{queries}, by {by}" if by else queries


def new_facts(request: Request) -> dict[str, Any]:
    """What is kept of a request, with the time of spending."""
    return request.facts | request.place | {"at": datetime.now(UTC).isoformat(timespec="seconds")}
