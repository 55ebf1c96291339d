"""The numbers that a promise is read from, on the pages about it: each is worked out here, none left out."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import norm

import dpwindows as dw
from dpwindows.ask.timeline import MAX_STEPS
from dpwindows.ask.whole_numbers import MOST_STEPS_A_CALL
from dpwindows.ask.windows import window_steps
from dpwindows.demo import write_flights
from dpwindows.plan.description import loss_forecast
from dpwindows.plan.warnings import _LARGE_DELTA, _LARGE_EPSILON
from dpwindows.stream.recencies import _RARELY

DOCS = Path(__file__).parent.parent / "docs"
WORDS = {"two": 2, "three": 3, "four": 4, "five": 5, "twice": 2, "thirteen": 13, "forty": 40}
SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
EXACT, NEAREST, UP, DOWN = "exact", "nearest", "up", "down"
DAY = dt.timedelta(days=1)
INSTANT = dt.timedelta(microseconds=1)


@dataclass(frozen=True)
class Stated:
    """A piece of a page with holes where its numbers stand, and what the numbers are."""

    page: str
    text: str
    worked: Callable[[], Sequence[float]]
    rounding: str = EXACT

    @property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(
            re.escape(self.text).replace(r"\{\}", r"(\d[\d,]*(?:\.\d+)?|[⁰¹²³⁴⁵⁶⁷⁸⁹]+|[a-z]+)").replace(r"\ ", r"\s+")
        )

    def __str__(self) -> str:
        return f"{self.page}: {self.text[:60]}"


def shown(text: str) -> tuple[float, float]:
    """A number as a page shows it, with what one more in its last digit is."""
    plain = text.replace(",", "").translate(SUPERSCRIPTS)
    return (float(WORDS[text]), 1.0) if text in WORDS else (float(plain), 10.0 ** -len(plain.partition(".")[2]))


def fits(value: float, digit: float, truth: float, rounding: str) -> bool:
    slack = 1e-9 * max(1.0, abs(truth))
    low, high = {EXACT: (0.0, 0.0), NEAREST: (digit / 2, digit / 2), UP: (digit, 0.0), DOWN: (0.0, digit)}[rounding]
    return value - low - slack <= truth <= value + high + slack


# --- months and periods, over all instants


def month(instant: dt.datetime) -> int:
    return 12 * instant.year + instant.month


def most_months(span: dt.timedelta, late: dt.timedelta) -> int:
    """The most months that `span` can touch, from any instant of the 400 years after which the calendar repeats.

    The last `late` of a month is the worst place to begin: a later beginning within the month touches the same first
    month, and ends no earlier. So there is one instant to try for each month; an hour is for clocks that are changed.
    """
    firsts = [dt.datetime(2000 + number // 12, number % 12 + 1, 1) for number in range(4800)]
    return max(month(first - late + span) - month(first - late) for first in firsts) + 1


def most_months_of_instants(days: int) -> int:
    """Of a span of so many days from any instant, both ends included; the clock may be an hour ahead at its end."""
    return most_months(days * DAY + dt.timedelta(hours=1), INSTANT)


def most_months_of_days(days: int) -> int:
    """Of so many whole days in a row."""
    return most_months((days - 1) * DAY, DAY)


def test_the_worst_instants_are_those_before_a_month_ends() -> None:
    """Against every hour of four years and of the change of a century."""
    for span in (30, 88, 89, 90, 92):
        found = 0
        for year in (1896, 2024):
            hours = [dt.datetime(year, 1, 1) + dt.timedelta(hours=hour) for hour in range(24 * 365 * 5)]
            found = max(found, *(month(one + span * DAY) - month(one) + 1 for one in hours))
        assert most_months(span * DAY, INSTANT) == found
    assert most_months_of_instants(90) == 5
    for year, months in ((2026, 5), (2024, 4)):
        noon = dt.datetime(year, 1, 31, 12)
        assert month(noon + 90 * DAY) - month(noon) + 1 == months


def periods(days: int, length: int) -> int:
    """How many periods of so many steps cover so many days in a row, wherever they begin."""
    return -(-days // length)


# A year that begins within a day touches a day more.
YEAR_OF_DAYS = 366 + 1


def days_that_read_january(length: int) -> int:
    """Of February, the days whose window of so many days begins in January."""
    return sum(dt.date(2026, 2, day) - (length - 1) * DAY < dt.date(2026, 2, 1) for day in range(1, 29))


# --- odds


def guessed_right(epsilon: float) -> float:
    return 100 / (1 + math.exp(-epsilon))


def suspicion(epsilon: float) -> float:
    odds = math.exp(epsilon) / 99
    return 100 * odds / (1 + odds)


def delta_of(units: int, epsilon: float, delta: float) -> float:
    return delta * math.expm1(units * epsilon) / math.expm1(epsilon)


def gaussian_scale(epsilon: float, delta: float) -> float:
    """The standard deviation of Gaussian noise at sensitivity 1: bisection on the exact delta (Balle and Wang 2018)."""
    low, high = 1e-3, 1e3
    for _ in range(200):
        scale = math.sqrt(low * high)
        loss = norm.cdf(0.5 / scale - epsilon * scale) - math.exp(epsilon) * norm.cdf(-0.5 / scale - epsilon * scale)
        low, high = (scale, high) if loss > delta else (low, scale)
    return high


def exceeded(epsilon: float, delta: float) -> float:
    """The probability that the privacy loss of that noise is above epsilon."""
    scale = gaussian_scale(epsilon, delta)
    return float(norm.cdf(0.5 / scale - epsilon * scale))


# --- errors


@cache
def plan(windows: tuple[dw.Rolling, ...], unit: dw.EventLevel, epsilon: float, asked: tuple[Any, ...] = ()) -> dw.Plan:
    budget = dw.ApproxDP(epsilon, 1e-6)
    return dw.Plan(list(windows), timeline=dw.Timeline.of_steps(365), unit=unit, budget=budget, **dict(asked))


def errors_of(lengths: Sequence[int], unit: Any, epsilon: float = 1.0, **asked: Any) -> list[float]:
    made = plan(tuple(map(dw.Rolling, lengths)), unit, epsilon, tuple(asked.items()))
    return [row.rms for row in made.forecast()]


def by_epsilon(unit: Any) -> Callable[[], list[float]]:
    return lambda: [errors_of([28], unit, epsilon)[0] for epsilon in (0.5, 1.0, 2.0)]


def by_k(length: int, unit: Any) -> Callable[[], list[float]]:
    """Of items seen at least 1, 2, 3 and 10 times, the error and how often it is the limit."""

    def found() -> list[float]:
        entries = [plan((dw.Rolling(length).at_least(k),), unit, 1.0, ()).forecast()[0] for k in (1, 2, 3, 10)]
        return [figure for entry in entries for figure in (entry.rms, entry.ratio_to_limit or 0.0)]

    return found


def by_runs(unit: Any, *runs: int) -> Callable[[], list[float]]:
    return lambda: [errors_of([28], unit, **({"max_runs": most} if most else {}))[0] for most in runs]


def dearest_together(*lengths: int) -> float:
    """The most that measuring these as one costs one of them, against Gaussian noise for it alone."""
    alone = [errors_of([length], dw.EventLevel(), strategy="optimal-filter")[0] for length in lengths]
    return max(one / other for one, other in zip(errors_of(lengths, dw.EventLevel()), alone, strict=True))


def cost_of_families(number: int) -> float:
    """What a rolling series under Gaussian noise errs more beside as many families that share nothing with it."""
    beside = [dw.Rolling(28), dw.Tumbling(7), dw.ToDate(30)][:number]
    (alone, *_), (shared, *_) = (
        dw.Plan(
            asked, timeline=dw.Timeline.of_steps(365), unit=dw.EventLevel(), budget=dw.ZCDP(0.1), strategy=strategy
        ).forecast()
        for asked, strategy in ((beside[:1], "filter"), (beside, "auto"))
    )
    return shared.rms / alone.rms


def loss_of_five_runs() -> list[float]:
    asked = (("max_runs", 5), ("estimate_loss", 0.05))
    made = plan((dw.Rolling(28),), dw.ItemAddRemove(), 1.0, asked)
    assert made.loss is not None
    more = made.forecast()[0].rms / errors_of([28], dw.ItemAddRemove(), max_runs=5)[0] - 1
    return [loss_forecast(made, made.loss)["std_error"], 100 * more]


@cache
def any_window(unit: Any) -> tuple[float, dict[int, float]]:
    """The error of any two dates of a year, and that of the windows of each length."""
    made = dw.Plan(dw.AnyWindow(), timeline=dw.Timeline.of_steps(365), unit=unit, budget=dw.ApproxDP(1.0, 1e-6))
    (allotment,) = made.allotments
    first, last = window_steps(allotment.query.window, 365)
    errors = allotment.std_errors(allotment.query.measures[0])
    lengths = last - first + 1
    return made.forecast()[0].rms, {one: float(errors[lengths == one].mean()) for one in (1, 30, 270)}


def any_errors() -> list[float]:
    """Of any two dates and of one rolling series, an event protected and the presence of an item."""
    return [
        error
        for unit in (dw.EventLevel(), dw.ItemAddRemove())
        for error in (any_window(unit)[0], *errors_of([28], unit))
    ]


def runs_of_flights() -> list[float]:
    """Aircraft with at most 6 runs of 28 days in 2013, aircraft, the most runs, and what a bound of 5 loses."""
    with TemporaryDirectory() as folder:
        write_flights(Path(folder) / "flights.parquet")
        table = pq.read_table(Path(folder) / "flights.parquet")
    local = table["time"].cast(pa.timestamp("us", tz="America/New_York")).to_pylist()
    active: dict[str, set[int]] = {}
    for item, time in zip(table["tailnum"].to_pylist(), local, strict=True):
        if item is not None:
            active.setdefault(item, set()).add((time.date() - dt.date(2013, 1, 1)).days)
    runs, lost, counted = [], 0, 0
    for days in active.values():
        there = np.zeros(365, dtype=bool)
        for day in days:
            there[day : day + 28] = True
        starts = np.flatnonzero(there & ~np.concatenate([[False], there[:-1]]))
        runs.append(len(starts))
        counted += int(there.sum())
        lost += int(there[starts[5] :].sum()) if len(starts) > 5 else 0
    few = sum(one <= 6 for one in runs)
    return [100 * few // len(runs), len(runs), max(runs), 100 * lost / counted]


QUICK = [
    Stated("sharp-edges.md", "the factor `e^12`, more than {}.", lambda: [1e4 * (math.exp(12) // 1e4)]),
    Stated(
        "sharp-edges.md",
        "at most {}, because 31 days can hold all of February",
        lambda: [most_months_of_days(31)],
    ),
    Stated("sharp-edges.md", "the first {} days of February also read", lambda: [days_that_read_january(28)]),
    Stated("sharp-edges.md", "the budgets of {} months then add up for one event", lambda: [most_months_of_days(28)]),
    Stated(
        "sharp-edges.md",
        "within {} periods of 30 days, and is protected at {} times the epsilon.",
        lambda: [periods(YEAR_OF_DAYS, 30)] * 2,
    ),
    Stated("sharp-edges.md", "the delta of 10⁻⁶ becomes {}, so", lambda: [delta_of(13, 1.0, 1e-6)], UP),
    Stated("sharp-edges.md", "for two periods ({}, {} × 10⁻⁶)", lambda: [2, 1e6 * delta_of(2, 1.0, 1e-6)], UP),
    Stated(
        "sharp-edges.md",
        "deleted once it is 90 days old, no event is ever paid for more than {} times",
        lambda: [most_months_of_instants(90)],
    ),
    Stated("sharp-edges.md", "90 days can touch {} months", lambda: [most_months_of_instants(90)]),
    Stated("sharp-edges.md", "once they are 88 days old, it is {}.", lambda: [most_months_of_instants(88)]),
    Stated(
        "sharp-edges.md",
        "the 31 days of July need {} periods, so the promise for them is {} as weak. A year lies within {}.",
        lambda: [periods(31, 30)] * 2 + [periods(YEAR_OF_DAYS, 30)],
    ),
    Stated("sharp-edges.md", "Ann comes {} times in a year", lambda: [len(range(0, 12 * 28, 8))]),
    Stated(
        "sharp-edges.md",
        "Ann's {} visits are {} events, and the promise of `event` for all of them together is {} times weaker",
        lambda: [len(range(0, 12 * 28, 8))] * 3,
    ),
    Stated(
        "sharp-edges.md",
        "tells it with a standard error of {}.",
        # Discrete Laplace noise of scale 1.
        lambda: [math.sqrt(2 * math.exp(-1.0)) / -math.expm1(-1.0)],
        NEAREST,
    ),
    Stated("promise.md", "30 days meet up to {}.", lambda: [most_months_of_days(30)]),
    *(
        Stated(
            "promise.md",
            f"| epsilon = {epsilon:g} | {{}} % | {{}} % |",
            lambda epsilon=epsilon: [guessed_right(epsilon), suspicion(epsilon)],  # type: ignore[misc]
            UP,
        )
        for epsilon in (0.1, 0.5, 1, 2, 4)
    ),
    Stated(
        "promise.md",
        "`Phi(sqrt(rho / 2))`: {} % at 0.005, {} % at 0.125, {} % at 0.5",
        lambda: [100 * float(norm.cdf(math.sqrt(rho / 2))) for rho in (0.005, 0.125, 0.5)],
        UP,
    ),
    Stated("promise.md", "at (1, 10⁻⁶) it is {} in 100,000", lambda: [1e5 * exceeded(1.0, 1e-6)], NEAREST),
    Stated(
        "choosing.md",
        "With 100,000 active users, an error of 45 is {} %. With 500 users it is {} %",
        lambda: [100 * 45.3 / 100_000, 100 * 45.3 / 500],
        NEAREST,
    ),
    Stated(
        "choosing.md",
        "from 10⁻⁶ to 10⁻⁹ the Gaussian noise at epsilon = 1 grows by {} %",
        lambda: [100 * (gaussian_scale(1.0, 1e-9) / gaussian_scale(1.0, 1e-6) - 1)],
        NEAREST,
    ),
    Stated("choosing.md", "Above {} the promise says little", lambda: [_LARGE_EPSILON]),
    Stated("choosing.md", "never above 10⁻{}", lambda: [-math.log10(_LARGE_DELTA)]),
    Stated("bounded.md", "comes and goes {} times", lambda: [(365 - 1) // (28 + 1) + 1]),
    Stated(
        "streams.md",
        "A stream has at most {} million steps ({} years of seconds)",
        lambda: [MAX_STEPS / 1e6, MAX_STEPS // (365 * 86400)],
    ),
    Stated("streams.md", "So is a call of more than {} steps", lambda: [MOST_STEPS_A_CALL]),
    Stated("streams.md", "leave the files, at most {} steps later", lambda: [_RARELY]),
]
SLOW = [
    Stated(
        "bounded.md",
        "over {} % of the {} aircraft have at most 6 runs of 28 days a year, none more than {}. There R = 7 loses "
        "nothing, and R = 5 loses {} % of the count",
        runs_of_flights,
        NEAREST,
    ),
    *(
        Stated("choosing.md", f"| `{unit.name}` | {{}} | {{}} | {{}} |", by_epsilon(unit), NEAREST)
        for unit in (dw.EventLevel(), dw.ItemPerPeriod(28), dw.ItemAddRemove(), dw.ItemLevel())
    ),
    Stated(
        "choosing.md",
        "about {} times what it would be alone with two families, and about {} times with three",
        lambda: [cost_of_families(2), cost_of_families(3)],
        NEAREST,
    ),
    Stated(
        "choosing.md",
        "are then {} times the least that Gaussian noise gives each alone. For day, week and month the factor is {}, "
        "and with 90 days {}.",
        lambda: [dearest_together(7, 28), dearest_together(1, 7, 28), dearest_together(1, 7, 28, 90)],
        NEAREST,
    ),
    Stated(
        "choosing.md",
        "is about {} where that of one rolling series is {}; with the presence of an item protected, {} where that of "
        "one rolling series is {}.",
        any_errors,
        NEAREST,
    ),
    Stated(
        "choosing.md",
        "{} for 270 days, {} for 30, {} for a single day",
        lambda: [any_window(dw.ItemAddRemove())[1][length] for length in (270, 30, 1)],
        NEAREST,
    ),
    Stated(
        "bounded.md",
        "| rolling:28, `item-add-remove` | {} | {} | {} | {} |",
        by_runs(dw.ItemAddRemove(), 0, 7, 5, 3),
        NEAREST,
    ),
    Stated("bounded.md", "| rolling:28, `item` | {} | | {} | {} |", by_runs(dw.ItemLevel(), 0, 5, 3), NEAREST),
    Stated(
        "bounded.md",
        "have a standard error of {}, and of {} with",
        lambda: [
            *errors_of([1], dw.ItemAddRemove()),
            *errors_of([1], dw.ItemAddRemove(), max_occurrences=20, distinct_steps=True),
        ],
        NEAREST,
    ),
    *(
        Stated(
            "accuracy.md",
            f"| rolling:{length}, `{unit.name}` | " + " | ".join(["{} ({})"] * 4) + " |",
            by_k(length, unit),
            NEAREST,
        )
        for length in (7, 28, 90)
        for unit in (dw.ItemAddRemove(), dw.ItemLevel())
    ),
    Stated(
        "bounded.md",
        "gives it a standard error of {} items, and every other number errs by {} % more",
        loss_of_five_runs,
        NEAREST,
    ),
]
PAGES = sorted({one.page for one in QUICK})
# Numbers that promise nothing, each with why.
NOT_PROMISED = (
    # What is asked for: budgets, windows, thresholds, bounds and periods.
    r"\(1, 10⁻⁶\)|10⁻[⁰¹²³⁴⁵⁶⁷⁸⁹]+|epsilon (=|of) [\d.]+|R = \d|Between 0.1 and 2 is usual",
    r"28-day|365 steps|longer than 90 steps|windows of 2 steps|([Aa]ny|some|within) \d+ (days|consecutive)",
    r"at least \d+|k\+1|count below 1|^1, so a small share|a > 1|a suspicion of 1 %|count 50 is 50 events",
    # Twelve months at epsilon 1 each.
    r"12 (a|in the first) year|satisfies epsilon = 12",
    # An item of many cards, and the steps and days of examples.
    r"at three times epsilon|On day 3 the|day of 23 or 25 hours",
    # Dates and values of examples, numbers of points, exit codes, a file's mode.
    r"3 June|noon of 31 January to noon of 1 May|the (number 7|year 2013)|^\d\. \*\*|mode 0[67]00",
    r"[Ee]xits?( code| with)? \d|\d: the (call|machine)",
    # Measured once, by the command that the page names.
    r"On 2 cores(?s:.*)59 MB on disk",
)


@cache
def page_text(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def check(stated: Stated) -> None:
    found = stated.pattern.findall(page_text(stated.page))
    assert len(found) == 1, f"the page says it {len(found)} times"
    holes = [found[0]] if isinstance(found[0], str) else list(found[0])
    truths = list(stated.worked())
    assert len(holes) == len(truths)
    wrong = [
        (hole, truth)
        for hole, truth in zip(holes, truths, strict=True)
        if (hole not in WORDS and hole.isalpha()) or not fits(*shown(hole), truth, stated.rounding)
    ]
    assert wrong == []


@pytest.mark.parametrize("stated", QUICK, ids=str)
def test_a_number_is_as_it_is_worked_out(stated: Stated) -> None:
    check(stated)


@pytest.mark.slow
@pytest.mark.parametrize("stated", SLOW, ids=str)
def test_an_error_is_as_it_is_worked_out(stated: Stated) -> None:
    check(stated)


@pytest.mark.parametrize("page", PAGES)
def test_no_number_of_a_page_is_left_out(page: str) -> None:
    text = re.sub(r"^```(?s:.*?)^```$|^    .*$", "", page_text(page), flags=re.M)
    for stated in [*QUICK, *SLOW]:
        text = stated.pattern.sub("", text) if stated.page == page else text
    text = re.sub(r"`[^`]*`|\]\([^)]*\)", "", text)
    for harmless in NOT_PROMISED:
        text = re.sub(harmless, "", text, flags=re.M)
    assert [line for line in text.splitlines() if re.search(r"\d", line)] == []
