"""The items of a stream and the steps of their last occurrences, kept in parts that are written once and never changed.

For each item the steps `r1 >= r2 >= ...` of its last `depth` occurrences are kept, multiplicities counted, where
`depth` is the largest threshold asked for; null where there are fewer. That is all of an item's past that can matter:
a step with c occurrences puts c times its number in front and shifts the rest back, and the k-th most recent
occurrence lies in step `rk`. Items are kept as they are, never by a hash. In a stream with groups an item is known by
two columns, the code of its group, `cell`, and `item`, and each of these pairs has recencies of its own.

Where each item has one group, it is that of the first step that it occurs in, and of several the first by the lists.
Later occurrences count in the group that the item is known by, whatever their rows say. Such items are never dropped:
one that was forgotten could come back in another group, and then it would be in two.

**Parts.** Closing a step writes one part: a row for each item that occurs in it, with all of its recencies after the
step, and those before it as far as they are counted (`p1`, `p2`, ...). So a step writes as much as it has items, and
its changes are one query over the part itself: counts and recencies come from the same bytes. The *manifest* names the
parts that together are the recencies after a step. An item may have rows in several of them. No recency ever gets
smaller, nor does any other column that is kept, so that the newest row of an item is its largest value in each column,
in whatever order parts are read.

**Compaction.** Parts that have become many, or long, are read together and written as one. It changes no answer. Of
what is too old for every window (`oldest_at`) only its being there is kept then, as step 0, and where no totals are
asked for not even that.

Where occurrences are counted themselves, the part of a step has in `n` how many of an item count in it.

Where a rule bounds what an item adds, `had` is how many occurrences of it counted, and `run_i` how many runs of the
series in place i it has had (`count.query.first_runs` is the specification). Such items are never dropped, either.

The queries are standard SQL: the same text runs on every engine that can join two tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from dpwindows.ask.groups import Grouping
from dpwindows.ask.queries import OCCURRENCES
from dpwindows.count.dialects.duckdb import DIALECT
from dpwindows.count.query.dialect import Dialect
from dpwindows.count.query.first_runs import Series, series_number
from dpwindows.count.query.groups import levels_sql
from dpwindows.count.query.wanted import MOST_IN_A_ROW
from dpwindows.errors import EngineError
from dpwindows.stream.place import Manifest, Name, Part, Place
from dpwindows.stream.step_counts import NONE, Change, oldest_at

# Where most items stay, what is old is dropped after this many steps.
_RARELY = 64
# Parts are read together in every step: as many as these, or rows beyond half of the first part's, are written as one.
_MOST_PARTS, _FEW_ROWS = 16, 100_000


@dataclass(frozen=True)
class Shape:
    """What is kept of an item, and the queries that keep it.

    Attributes:
        item_type: the SQL type of items.
        grouping: the groups that an item is kept apart in, None for none.
        thresholds: every k whose changes are told, ascending.
        reach: how many steps back windows ask.
        totals: whether counts since the start are asked for, so that items stay.
        max_occurrences: how many occurrences of an item count, None for all.
        max_runs: in how many runs of each series an item counts, None for all.
        series: thresholds and lengths of the rolling counts with bounded runs; told under their numbers.
        dialect: how the engine that runs the queries divides whole numbers.
    """

    item_type: str
    grouping: Grouping | None
    thresholds: tuple[int, ...]
    reach: int
    totals: bool
    max_occurrences: int | None = None
    max_runs: int | None = None
    series: tuple[Series, ...] = ()
    dialect: Dialect = DIALECT

    @property
    def keys(self) -> dict[str, str]:
        """The columns that an item is known by, and their types."""
        return ({} if self.grouping is None else {"cell": "INTEGER"}) | {"item": self.item_type}

    @property
    def _one_group(self) -> bool:
        """Whether an item is in one group only, that which it was first in."""
        return self.grouping is not None and self.grouping.group_of == "item"

    @cached_property
    def counted(self) -> tuple[int, ...]:
        """Every k whose changes matter."""
        return tuple(sorted({*self.thresholds, *(k for k, _ in self.series)} - {OCCURRENCES})) or (1,)

    @property
    def depth(self) -> int:
        """How many occurrences of an item may matter."""
        return self.counted[-1]

    @property
    def had(self) -> dict[str, str]:
        """What is kept of an item beside its recencies: what it has had."""
        bounded = ["had"] * (self.max_occurrences is not None) + [f"run_{place}" for place in range(len(self.series))]
        return dict.fromkeys(bounded, "BIGINT")

    @property
    def columns(self) -> dict[str, str]:
        """The columns that every part has, and their types."""
        return self.keys | {f"r{j}": "INTEGER" for j in range(1, self.depth + 1)} | self.had

    # --- Queries ------------------------------------------------------------------------------------------------------

    def nothing(self) -> str:
        """The query of a part without rows."""
        columns = ", ".join(f"CAST(NULL AS {kind}) AS {name}" for name, kind in self.columns.items())
        return f"SELECT {columns} WHERE 1 = 0"

    def step(self, known: str, occurrences: str, step: int, *, once: bool = False) -> str:
        """The rows of the part of a step, from what is known and what occurs; `once`: known items have one row each."""
        keys, depth = ", ".join(self.keys), self.depth
        # Most of what is known does not occur. An engine can look that up in what occurs, where it would otherwise
        # have to lay out all that is known for an outer join.
        known = (
            f"SELECT * FROM ({known}) AS kept "
            f"WHERE EXISTS (SELECT 1 FROM ({occurrences}) AS happens WHERE happens.item = kept.item)"
        )
        occurrences = self._in_own_groups(known, occurrences) if self._one_group else occurrences
        named = ", ".join(f"occurred.{key} AS {key}" for key in self.keys)
        same = " AND ".join(f"known.{key} = occurred.{key}" for key in self.keys)
        groups = "" if once else f" GROUP BY {', '.join(f'occurred.{key}' for key in self.keys)}, occurred.total"
        newest = {name: f"known.{name}" if once else f"max(known.{name})" for name in self.columns}
        before = ", ".join(f"{newest[f'r{j}']} AS p{j}" for j in range(1, depth + 1))
        had = "".join(f", coalesce({newest[name]}, 0) AS {name}" for name in self.had)
        joined = (
            f"SELECT {named}, occurred.total AS total, {before}{had} FROM ({occurrences}) AS occurred "
            f"LEFT JOIN ({known}) AS known ON {same}{groups}"
        )
        most = self.max_occurrences
        counts = "total" if most is None else f"CASE WHEN total < {most} - had THEN total ELSE {most} - had END"
        fresh = f"CASE WHEN counted < {depth} THEN counted ELSE {depth} END"
        told = "".join(f", p{k}" for k in self.counted)
        after = "".join(f", CAST({value} AS BIGINT) AS {name}" for name, value in self._had_after(step).items())
        kept = ", counted" + ", had" * ("had" in self.had)
        kept += "".join(f", {name}" for name in self.had if name != "had")
        shifted = ", ".join(f"CAST({self._shifted(j, step)} AS INTEGER) AS r{j}" for j in range(1, depth + 1))
        counted = f"SELECT joined.*, {counts} AS counted FROM ({joined}) AS joined"
        fresh = f"SELECT counts.*, {fresh} AS fresh FROM ({counted}) AS counts"
        moved = f"SELECT {keys}{told}, {shifted}{kept} FROM ({fresh}) AS fresh"
        recencies = ", ".join(f"r{j}" for j in range(1, depth + 1))
        own = ""
        if OCCURRENCES in self.thresholds:
            most = MOST_IN_A_ROW
            own = f", CAST(CASE WHEN counted < {most} THEN counted ELSE {most} END AS BIGINT) AS n"
        return f"SELECT {keys}{told}, {recencies}{after}{own} FROM ({moved}) AS moved"

    def _in_own_groups(self, known: str, occurrences: str) -> str:
        """Occurrences with the code of a group, in the cells of the group that their item is in for good."""
        assert self.grouping is not None
        in_groups = f"SELECT cell, item FROM ({known}) AS rows_known WHERE cell < {self.grouping.levels[0].count}"
        coded = (
            f"SELECT happened.item AS item, total, coalesce(max(own.cell), happened.cell) AS code "
            f"FROM ({occurrences}) AS happened LEFT JOIN ({in_groups}) AS own ON own.item = happened.item "
            "GROUP BY happened.item, total, happened.cell"
        )
        return levels_sql(self.dialect, coded, self.grouping, "item, total")

    @staticmethod
    def _shifted(j: int, step: int) -> str:
        """The j-th recency once `fresh` occurrences stand in front; one is the most frequent number of them."""
        cases = "".join(f" WHEN fresh = {by} THEN p{j - by}" for by in range(1, j))
        return f"CASE{cases} WHEN fresh >= {j} THEN {step} ELSE p{j} END"

    def _had_after(self, step: int) -> dict[str, str]:
        """What an item has had after a step that it occurs in, by column."""
        after = {"had": "had + counted"} if self.max_occurrences is not None else {}
        for place, (k, length) in enumerate(self.series):
            begins = f"r{k} > {step - length} AND (p{k} IS NULL OR p{k} < {step - length})"
            after[f"run_{place}"] = f"run_{place} + CASE WHEN {begins} THEN 1 ELSE 0 END"
        return after

    def changes(self, part: str, oldest: int) -> str:
        """The changes of the step of a part: a row for each pair of an old and a new recency of each threshold."""

        def known(recency: str) -> str:
            return f"CASE WHEN {recency} IS NULL THEN {NONE} WHEN {recency} < {oldest} THEN 0 ELSE {recency} END"

        told = [(k, k, "") for k in self.thresholds if k != OCCURRENCES]
        told += [
            (series_number(place), k, f" AND run_{place} <= {self.max_runs}")
            for place, (k, _) in enumerate(self.series)
        ]
        cell = "0" if self.grouping is None else "cell"
        queries = [
            f"SELECT {number} AS k, left_step, entered, count(*) AS items, cell FROM (SELECT {known(f'p{k}')} AS "
            f"left_step, {known(f'r{k}')} AS entered, {cell} AS cell FROM ({part}) AS part "
            f"WHERE r{k} IS NOT NULL{within}) AS pairs GROUP BY left_step, entered, cell"
            for number, k, within in told
        ]
        if OCCURRENCES in self.thresholds:
            # As if each were of an item of its own, which has occurred nowhere before.
            queries.append(
                f"SELECT {OCCURRENCES} AS k, {NONE} AS left_step, r1 AS entered, CAST(sum(n) AS BIGINT) AS items, "
                f"{cell} AS cell FROM ({part}) AS part WHERE n > 0 GROUP BY r1{', cell' * (self.grouping is not None)}"
            )
        return " UNION ALL ".join(queries)

    def compacted(self, first: str, others: str | None, oldest: int) -> str:
        """The newest row of every item that matters, of a long part and others after it."""
        names = list(self.columns)
        newest = f"SELECT {', '.join(names)} FROM ({first}) AS first"
        if others is not None:
            largest = ", ".join(f"max({name}) AS {name}" for name in names if name not in self.keys)
            keys, same = ", ".join(self.keys), " AND ".join(f"first.{key} = later.{key}" for key in self.keys)
            newest = (
                f"SELECT {keys}, {largest} FROM ({others}) AS others GROUP BY {keys} UNION ALL {newest} "
                f"WHERE NOT EXISTS (SELECT 1 FROM ({others}) AS later WHERE {same})"
            )
        kept = ", ".join(
            f"CAST(CASE WHEN {name} < {oldest} THEN 0 ELSE {name} END AS INTEGER) AS {name}"
            if name in {f"r{j}" for j in range(1, self.depth + 1)}
            else name
            for name in names
        )
        matters = "" if self.stays else f" WHERE r1 >= {oldest}"
        return f"SELECT {kept} FROM ({newest}) AS newest{matters}"

    # --- What is dropped, and when ------------------------------------------------------------------------------------

    @property
    def stays(self) -> bool:
        """Whether an item that was there once is kept for good."""
        return self.totals or bool(self.had) or self._one_group

    def oldest_after(self, step: int) -> int:
        """The first step that anything asks for once a step is closed; for runs a step more than for windows."""
        return oldest_at(step + 1, self.reach + bool(self.series))

    def is_due(self, parts: Sequence[Part], step: int) -> bool:
        """Whether parts are to be written as one after a step."""
        if not parts:
            return False
        every = _RARELY if self.stays else min(max(self.reach + bool(self.series), 1), _RARELY)
        others = sum(part.rows for part in parts[1:])
        return step % every == 0 or len(parts) >= _MOST_PARTS or others > max(parts[0].rows // 2, _FEW_ROWS)


# --- What a step asks for ---------------------------------------------------------------------------------------------


class Recencies:
    """The parts of one stream, in a place: a step is written, counted, settled, and dropped when it is garbage."""

    def __init__(self, place: Place, shape: Shape) -> None:
        self._place, self._shape = place, shape

    def write(self, known: Manifest, step: int, token: str, occurrences: str) -> Part | None:
        """Write the part of a step: items that occur in it, joined with what is known of them; None if none does.

        Args:
            known: the parts that are the recencies after the step before.
            step: later than all in these.
            token: random; no other attempt to close the step writes under it.
            occurrences: the query of the columns of an item, each once, and total, at least 1. Where an item has one
                group: of each item once, with the code of the group that it is in if it is new.

        Raises:
            EngineError: parts cannot be read or written, or are not as they were written.
        """
        query = self._shape.step(self._union(known), occurrences, step, once=len(known) < 2)
        return self._place.keep(Name(step, token), step, query)

    def changes(self, part: Part, oldest: int) -> list[Change]:
        """How recencies changed in the step of a part; those from and to steps before `oldest` as from and to 0.

        Raises:
            EngineError: the part cannot be read, or what was counted is not all of it.
        """
        rows = self._place.ask(self._shape.changes(self._place.rows(part), oldest))
        changes = [Change(*map(int, row)) for row in rows]
        # Each item of the step has a newest occurrence.
        counted = sum(change.items for change in changes if change.k == 1)
        if 1 in self._shape.thresholds and counted != part.rows:
            raise EngineError(
                f"the engine wrote {part.rows:,} rows of step {part.step} and counted {counted:,}: nothing was "
                "released. Run the same again"
            )
        return changes

    def compact(self, parts: Manifest, step: int, token: str) -> Manifest:
        """The parts after a step with those that no window asks for dropped, and written as one if that is due.

        Raises:
            EngineError: as `write`.
        """
        oldest = self._shape.oldest_after(step)
        if not self._shape.stays:
            parts = tuple(part for part in parts if part.step >= oldest)
        if not self._shape.is_due(parts, step):
            return parts
        others = self._union(parts[1:]) if len(parts) > 1 else None
        query = self._shape.compacted(self._place.rows(parts[0]), others, oldest)
        base = self._place.keep(Name(step, token, base=True), max(part.step for part in parts), query)
        return () if base is None else (base,)

    def _union(self, parts: Manifest) -> str:
        """The rows of several parts, in the columns that all parts have."""
        names = ", ".join(self._shape.columns)
        queries = [f"SELECT {names} FROM ({self._place.rows(part)}) AS part" for part in parts]
        return " UNION ALL ".join(queries) if queries else self._shape.nothing()


def drop_garbage(place: Place, named: Manifest, step: int) -> None:
    """Remove what a manifest does not name: that of `step`, which is on disk, on record and in the copy of the state.

    Where writers that were given up may still be at work, parts of later steps stay: they may be of a step that is
    being closed. What cannot be removed now is removed after another step.
    """
    kept = {part.name for part in named}
    with suppress(EngineError):
        for text in place.names():
            name = Name.of(text)
            if name is not None and text not in kept and (not place.shared or name.step <= step):
                place.remove(text)
