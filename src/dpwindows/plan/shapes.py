"""What plan files and the metadata of releases hold: each name once, with the type and range of its value.

The rules that are about more than one value stand with what is asked (`dpwindows.ask`): these shapes are looked at
first. `docs/schemas` holds them as JSON Schemas (`python -m tests.schemas` writes these).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from dpwindows.ask.counting_rule import CountingRule
from dpwindows.ask.groups import Grouping
from dpwindows.ask.queries import MeasureKind
from dpwindows.ask.shapes import AtLeast0, Positive, Shape, Share, Whole, plain_values

# --- Plan files -------------------------------------------------------------------------------------------------------


class Counts(Shape, rename="kebab"):
    """What is counted in a window: without any of these, at least 1."""

    at_least: int | list[int] | UnsetType = UNSET
    exactly: int | list[int] | UnsetType = UNSET
    histogram: int | list[int] | UnsetType = UNSET
    occurrences: bool | UnsetType = UNSET


class QueryTable(Counts, rename="kebab", kw_only=True):
    """What is asked of one window, or of several alike."""

    window: str | list[str]


class StreamFile(Counts, rename="kebab"):
    """What a plan of a stream may hold; keys are named like the options. Without `format` it is of format 1."""

    format: Literal[1] | UnsetType = UNSET
    window: str | list[str] | UnsetType = UNSET
    query: list[QueryTable] | UnsetType = UNSET
    unit: str | UnsetType = UNSET
    epsilon: float | UnsetType = UNSET
    delta: float | UnsetType = UNSET
    rho: float | UnsetType = UNSET
    start: int | str | UnsetType = UNSET
    end: int | str | UnsetType = UNSET
    step: int | str | UnsetType = UNSET
    time_zone: str | UnsetType = UNSET
    steps: int | UnsetType = UNSET
    stream: bool | UnsetType = UNSET
    horizon: int | UnsetType = UNSET
    strategy: str | UnsetType = UNSET
    criterion: str | UnsetType = UNSET
    noise: str | UnsetType = UNSET
    weights: list[float] | dict[str, float] | UnsetType = UNSET
    distinct_steps: bool | UnsetType = UNSET
    max_occurrences: int | UnsetType = UNSET
    max_runs: int | UnsetType = UNSET
    confidence: float | UnsetType = UNSET
    max_draws: int | UnsetType = UNSET
    by: dict[str, list[str | int]] | UnsetType = UNSET
    group_of: str | UnsetType = UNSET
    max_groups: int | UnsetType = UNSET
    totals: float | UnsetType = UNSET


class PlanFile(StreamFile, rename="kebab"):
    """What a plan file may hold."""

    singleton: bool | UnsetType = UNSET
    estimate_loss: float | UnsetType = UNSET


# --- Metadata of releases ---------------------------------------------------------------------------------------------


class UnitFacts(Shape):
    """The unit of privacy, and its promise in words."""

    name: str
    promise: str


class BudgetFacts(Shape):
    """What was spent: epsilon, epsilon and delta, or rho."""

    kind: Literal["pure", "approximate", "zcdp"]
    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None


class Range(Shape):
    """The public range and its steps."""

    start: str | int
    end: str | int
    step: str | int
    time_zone: str
    steps: Positive


class MeasureFacts(Shape):
    """What is counted in a window; occurrences have no k."""

    measure: MeasureKind
    k: Positive | None


class QueryFacts(Shape):
    """A window family, its counts, and what is to be said of them where they are bounded."""

    window: str
    measures: list[MeasureFacts]
    counts: str | None = None


class NoiseFacts(Shape):
    """The law of the noise, and its scale."""

    law: str
    scale: AtLeast0
    unit: str


class Sensitivity(Shape):
    """The certified sensitivity: `bound` in digits, `value` as a number; of occurrences with the proof for one."""

    norm: str
    value: AtLeast0
    bound: str
    bound_is: str
    unit: str
    proof: str
    proved_in: str
    proof_of_one: str | None = None


class MeasuredGroups(Shape):
    """The columns that make the groups of a measurement, their number, and the proof for all of them together."""

    by: list[str]
    count: Positive
    proof: str


class Square(Shape):
    """A square of integers, differenced and compressed."""

    shape: tuple[int, int]
    xz: str


class Integers(Shape):
    """The integers that were measured by; of grouped steps the `inner` ones. `witness` is the choice of the bound."""

    arrays: dict[str, list[Whole] | Square] | None = None
    shape: dict[str, Any] | None = None
    horizon: Positive | None = None
    witness: dict[str, list[int]] | None = None
    kind: str | None = None
    size: Positive | None = None
    inner: Integers | None = None


class MeasurementFacts(Shape):
    """What one window family was measured by; `together` names all that were measured as one with it.

    Where occurrences are measured there are no thresholds.
    """

    window: str
    thresholds: list[Positive]
    strategy: str
    parameters: dict[str, Any]
    noise: NoiseFacts
    sensitivity: Sensitivity
    numbers_measured: Whole
    budget_share: Share
    integers: Integers
    groups: MeasuredGroups | None = None
    together: list[str] | None = None


class LossFacts(MeasurementFacts, kw_only=True):
    """The number of items that lost something by the rule of counting."""

    of: str
    std_error: AtLeast0
    half_width: AtLeast0
    estimate: float
    lower: float
    upper: float


class Forecast(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What to expect of one measure of one window family.

    `rms` and `max` are over the standard errors that a release will carry, in counts; `half_width` is the root mean
    square half width of its intervals at the plan's confidence. `limit` is a proved lower bound on the rms of any
    additive Gaussian noise with this share of the budget, or with that of all families that are measured as one with
    this one (`dpwindows.strategies.search.limits`), and under a pure budget of additive noise of any distribution
    (`dpwindows.strategies.search.pure_limits`), in counts. `ratio_to_limit` is `rms` over it; both are None where no
    bound is known. Under an approximate budget Laplace noise is not bound by it: it may have a ratio below 1 where one
    neighbour changes few numbers, as with k = 1. `runner_up` is the next best strategy for this window family at the
    same share of the budget, and `runner_up_ratio` its error over the one chosen (below 1 where it needs another noise
    law than serves the whole plan best); None where there is no other. With groups, `by` names the columns that make
    them, none for totals, and all else holds for each of these groups; None without groups.
    """

    window: str
    measure: MeasureKind
    k: Positive | None
    strategy: str
    rms: AtLeast0
    max: AtLeast0
    half_width: AtLeast0
    limit: float | None
    ratio_to_limit: float | None
    noise: str
    proof: str
    runner_up: str | None
    runner_up_ratio: float | None
    by: list[str] | None = None

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, ready for JSON."""
        return plain_values(self)


class StreamFacts(Shape):
    """The stream that rows are from, and their steps."""

    state_id: str
    first_step: Positive
    last_step: Positive


class LedgerFacts(Shape):
    """The dataset that was paid from, and the number of the entry."""

    dataset: str
    entry: Whole


class Metadata(Shape, kw_only=True):
    """All that a release says of itself; `numbers` is how many it has, and `checksum` is of files alone."""

    format: Literal[1]
    release_id: str
    released_at: str
    guarantee: str
    unit: UnitFacts
    budget: BudgetFacts
    singleton: bool
    exact_counts: Literal["handed over"] | None = None
    counting: CountingRule | None = None
    groups: Grouping | None = None
    timeline: Range
    queries: list[QueryFacts]
    numbers: Whole
    raw: Literal[True] | None = None
    notes: list[str]
    strategy: str
    criterion: Literal["rms", "max"]
    noise: Literal["exact", "opendp"]
    confidence: Annotated[float, Meta(gt=0, lt=1)]
    measurements: list[MeasurementFacts]
    loss: LossFacts | None = None
    forecast: list[Forecast]
    versions: dict[str, str]
    horizon: Positive | Literal["endless"] | None = None
    stream: StreamFacts | None = None
    ledger: LedgerFacts | None = None
    checksum: str
