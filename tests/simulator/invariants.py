"""What must hold after every process, whatever happened to it and to the machine.

1. No step has two noises: what was handed out for a window of a stream is the same for ever; so is what the ledger
   keeps for one request on one log. Numbers that differ have different release ids.
2. What was handed out is durable: when nothing fails any more, the same can be had again, or more. (After a sync that
   failed, or where somebody put old files back, a refusal will do.)
3. The ledger never exceeds its total, keeps every entry that a release names, and its record of a stream is never
   behind what the stream handed out.
4. What exit 2 denies was not paid: a command that ends as `InputError` accounts for no entry.
5. An output is whole, of a release that was handed out, and stays once its command said that it was written; two
   commands without --force never both say so.
6. Private files are private from their creation.
7. What a step measures are the exact counts of the log that was handed over.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dpwindows as dw
from dpwindows.errors import EngineError, InputError
from tests.simulator.disk import Disk
from tests.simulator.shim import Op, Record
from tests.simulator.workload import DATASET, LEDGER, OUT, TOTAL, UMASK, Verb, exact_counts, facts

# Why a command may be refused though nothing fails.
_REASONS = ("exists already", "has a dataset", "OverBudgetError")
_LEDGER = (LEDGER, f"{LEDGER}-journal")


@dataclass
class Witness:
    """What has been seen so far, and the violations found.

    Attributes:
        numbers: of each window of each stream, and of each release, what was handed out.
        digests: of each release id, the digest of all of it.
        kept: of each request on each log, the id of the release that the ledger keeps.
        entries: of each release with a ledger, its entry there.
        steps: of each stream, the last step handed out.
        outputs: of each output, the ids written to it, in order, and how many of these are acknowledged.
        unforced: of each output, the id that a command without --force says it wrote.
        has_ledger: whether a ledger was made, and its command said so.
        earlier: ids of releases from before everything was put back, whose outputs are still there.
        may_spend: how many commands may have made an entry of the ledger.
        failed_syncs: how many syncs failed. The system reports such a loss once and forgets it, so that from there on
            only refusals can be asked for.
    """

    scratch: Path
    violations: list[str] = field(default_factory=list)
    numbers: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)
    kept: dict[tuple[int, ...], str] = field(default_factory=dict)
    entries: dict[str, int] = field(default_factory=dict)
    steps: dict[str, int] = field(default_factory=dict)
    outputs: dict[str, list[str]] = field(default_factory=dict)
    acknowledged: dict[str, int] = field(default_factory=dict)
    unforced: dict[str, str] = field(default_factory=dict)
    has_ledger: bool = False
    earlier: set[str] = field(default_factory=set)
    may_spend: int = 0
    failed_syncs: int = 0
    endings: Counter[str] = field(default_factory=Counter)

    def violated(self, what: str) -> None:
        """Something that must hold does not."""
        if what not in self.violations:
            self.violations.append(what)

    # --- what processes said ------------------------------------------------------------------------------------------

    def hear(self, records: Iterable[Record], verbs: dict[int, tuple[Verb, ...]]) -> list[tuple[str, str, str]]:
        """Take in what processes did and said; returns how each verb ended: process and verb, ending, message."""
        begun: dict[tuple[int, int], Verb] = {}
        endings = []
        for record in records:
            self._check_mode(record)
            self.failed_syncs += record.op == Op.SYNC_FAILED
            if record.op != Op.NOTE:
                continue
            said = json.loads(record.data)
            for state, step, counts in said.pop("counted"):
                if counts != exact_counts(state.replace("copy", "state"), step):
                    self.violated(f"step {step} of {state} measures {counts} in place of {exact_counts(state, step)}")
            match said.pop("kind"):
                case "begins":
                    verb = verbs[record.who][said["verb"]]
                    begun[record.who, said["verb"]] = verb
                    self.may_spend += verb.ledger
                case "ends":
                    verb = begun.pop((record.who, said["verb"]))
                    endings.append((f"{record.who}.{said['verb']} {verb}", said["ending"], said["message"]))
                    self._end(verb, said["ending"], said["message"])
                case "done" if said["ending"] == "traceback":
                    self.violated(f"a traceback when the stream was closed: {said['message']}")
                case "handed":
                    self.learn(said, "handed out")
                case "writes":
                    self.outputs.setdefault(said["output"], []).append(said["id"])
                case "wrote":
                    self._wrote(said)
        self.endings["killed"] += len(begun)
        return endings

    def require_success(self, endings: list[tuple[str, str, str]]) -> None:
        """Nothing failed: all was done, or refused for a reason that a user knows."""
        if self.failed_syncs:
            return
        for what, ending, message in endings:
            if ending == "engine" or (ending == "input" and not any(reason in message for reason in _REASONS)):
                self.violated(f"after everything works again, {what} fails: {message[-250:]}")

    def _end(self, verb: Verb, ending: str, message: str) -> None:
        self.endings[ending] += 1
        if ending == "traceback":
            self.violated(f"a traceback from {verb}: {message}")
        if ending == "input" and verb.ledger:
            self.may_spend -= 1
        if ending == "ok" and verb.what == "ledger":
            self.has_ledger = True

    def _wrote(self, said: dict[str, Any]) -> None:
        output, written = said["output"], self.outputs[said["output"]]
        self.acknowledged[output] = len(written) - 1 - written[::-1].index(said["id"])
        if not said["force"]:
            if output in self.unforced:
                self.violated(f"two commands without --force say that they wrote {output}")
            self.unforced[output] = said["id"]

    def _check_mode(self, record: Record) -> None:
        if record.op not in (Op.CREATE, Op.NAMELESS, Op.MKDIR):
            return
        path = Path(record.path)
        public = path.parent.name == OUT or (record.op == Op.NAMELESS and path.name == OUT)
        if record.mode & (UMASK if public else 0o077):
            self.violated(f"{path.name} was created with mode {record.mode:04o}")

    def learn(self, said: dict[str, Any], where: str) -> None:
        """Numbers that left, and what must agree with them."""
        if said["digest"] and self.digests.setdefault(said["id"], said["digest"]) != said["digest"]:
            self.violated(f"two releases with one id, {where}")
        if said["id"] in self.earlier:
            return
        whose = said["state"] or said["id"]
        for row, *numbers in said["rows"]:
            if self.numbers.setdefault((whose, row), numbers) != numbers:
                self.violated(f"two noises for {row} of {'a stream' if said['state'] else 'a release'}, {where}")
            if said["state"]:
                self.steps[whose] = max(self.steps.get(whose, 0), int(row.split()[-1]))
        if said["entry"] is not None:
            self.entries[said["id"]] = said["entry"]
            if said.get("asked") and self.kept.setdefault(tuple(said["asked"]), said["id"]) != said["id"]:
                self.violated(f"one request on one log has two releases, {where}")

    def forget_noise(self) -> None:
        """Everything of before was put back, which nothing can notice: new noise is allowed, under new ids."""
        self.numbers.clear()
        self.steps.clear()
        self.earlier |= set(self.digests)

    def forget_ledger(self) -> None:
        """The ledger was put back as well: what it had on record since is gone, and nobody can tell."""
        self.kept.clear()
        self.entries.clear()

    # --- what is on the disk ------------------------------------------------------------------------------------------

    def look(self, disk: Disk, *, quiet: bool) -> None:
        """Check all outputs and the ledger; `quiet`: no process is at work, so all that is there can be judged."""
        for name in sorted(disk.seen):
            if name.startswith(f"{OUT}/") and not name.startswith(f"{OUT}/.") and not name.endswith(".meta.json"):
                self._look_at(name, disk)
        for output, last in self.acknowledged.items():
            if f"{OUT}/{output}" not in disk.seen and quiet:
                self.violated(f"{output} was written, and is gone")
            del last
        if quiet and self.has_ledger:
            self._look_at_ledger(disk)

    def _look_at(self, name: str, disk: Disk) -> None:
        output = name.removeprefix(f"{OUT}/")
        try:
            found = _read_output(name, disk)
        except (InputError, EngineError) as error:
            self.violated(f"{output} is not whole: {type(error).__name__}: {str(error)[:100]}")
            return
        if found["id"] not in self.digests:
            self.violated(f"{output} holds a release that was not handed out")
            return
        self.learn(found, f"in {output}")
        written = self.outputs.get(output, [])
        if output in self.acknowledged and found["id"] not in written[self.acknowledged[output] :]:
            self.violated(f"{output} holds an earlier release than the one that was written")

    def _look_at_ledger(self, disk: Disk) -> None:
        for name in _LEDGER:
            copy = self.scratch / Path(name).name
            if name in disk.seen:
                # The same file each time: the library keeps what it looked at open as long as the process lives.
                copy.write_bytes(disk.seen[name].seen)
                copy.chmod(0o600)
            else:
                copy.unlink(missing_ok=True)
        try:
            book = dw.Ledger.open(self.scratch / "ledger", DATASET).book()
        except (InputError, EngineError) as error:
            self.violated(f"the ledger cannot be read any more: {str(error)[-80:]}")
            return
        spent = sum(entry.facts["budget"]["epsilon"] for entry in book.entries)
        if spent > TOTAL:
            self.violated(f"the ledger has spent {spent} of {TOTAL}")
        if len(book.entries) > self.may_spend:
            self.violated(f"{len(book.entries)} entries are paid, and only {self.may_spend} commands did not deny it")
        for release_id, number in self.entries.items():
            if number > len(book.entries) or book.entries[number - 1].release_id != release_id:
                self.violated("a release was handed out that is not in the ledger")
        of_state = {entry.state: entry for entry in book.entries if entry.state is not None}
        for state, step in self.steps.items():
            if state in of_state and (of_state[state].step or 0) < step:
                self.violated("a stream handed out a step that the ledger does not know of")


def _read_output(name: str, disk: Disk) -> dict[str, Any]:
    """The facts of an output, as whoever reads it is told."""
    found = dw.Release.load(disk.root / name)
    # What a reader finds out about a file is no part of the release.
    return facts(found.table, found.metadata) | {"digest": None, "entry": None}
