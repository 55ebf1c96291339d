"""The output of `dpwindows audit`: each check, its result, and how large a fault it would have noticed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console

from dpwindows.errors import counted, percent, time_text
from dpwindows.plan.forecast_table import groups_text

if TYPE_CHECKING:
    from dpwindows.audit import Attack, BlackBoxAudit, EncodingAudit, ExactAudit, NoiseAudit, Pair, ReplayAudit
    from dpwindows.plan.planned import Planned

_SHOWN = 5


@dataclass(frozen=True)
class Findings:
    """What each check found; None where it was not asked for."""

    exact: ExactAudit | None
    noise: NoiseAudit | None
    encoding: EncodingAudit | None
    replay: ReplayAudit | None
    black_box: BlackBoxAudit | None

    @property
    def within(self) -> bool:
        """Whether nothing that was found contradicts the claim."""
        judged = (self.noise, self.encoding, self.replay)
        return (
            (self.exact is None or self.exact.verdict == "within the claim")
            and not any(one.faults for one in judged if one is not None)
            and (self.black_box is None or self.black_box.verdict == "not contradicted")
        )

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, ready for JSON."""
        return {name: None if found is None else found.to_dict() for name, found in self.__dict__.items()}


def show(planned: Planned, found: Findings, console: Console, *, told: bool) -> None:
    """Print the findings; of the exact audit the worst neighbours alone where it was not asked for (`told`)."""
    _show_claim(planned, console)
    if found.exact is not None:
        console.print("\nWorst neighbours found: one item's occurrences in each step")
        _show_neighbours(found.exact.worst, planned, console)
    if found.exact is not None and told:
        _show_exact(found.exact, console)
    if found.noise is not None:
        _show_noise(found.noise, console)
    if found.encoding is not None:
        _show_encoding(found.encoding, console)
    if found.replay is not None:
        _show_replay(found.replay, console)
    if found.black_box is not None:
        _show_black_box(found.black_box, console)


def show_attack(planned: Planned, found: Attack, console: Console) -> None:
    """Print what an attack found of every bound, and the neighbours that came nearest to it or beyond."""
    _show_claim(planned, console)
    for one in found.bounds:
        console.print(f"\n{one.window}, {one.of}: bound {one.bound:,} (proof {one.proof})")
        _show_neighbours(one.worst, planned, console)
        share = percent(one.reached / one.bound, 4) if one.bound else "of 0"
        console.print(f"  largest change found: {one.reached:,}, {share} of the bound")
        if one.every:
            console.print(f"  every pair of neighbours was compared, {one.few:,}: nothing is worse over these steps")
        else:
            console.print(f"  compared: {one.few:,} pairs with every event in a few steps, all there are of these")
            console.print(f"  tried by annealing: {one.annealed:,} pairs")
        if not one.holds:
            console.print("  BEYOND THE BOUND", style="red")
    beyond, bounds = sum(not one.holds for one in found.bounds), counted(len(found.bounds), "bound")
    said = f"{beyond:,} of {bounds} broken" if beyond else f"nothing was found beyond {bounds}"
    console.print(f"\nAttack of {time_text(found.seconds)}: {said}", style="bold")
    if not beyond and not all(one.every for one in found.bounds):
        console.print("  (an attack that finds nothing is no proof: a longer one may find more)", style="dim")


def _show_neighbours(pair: Pair, planned: Planned, console: Console) -> None:
    for group, own in pair.by_group(planned.grouping).items():
        for line in [*([group] if group else []), *own.picture(console.width - 2).splitlines()]:
            console.print(f"  {line}", markup=False, highlight=False)


def _show_claim(planned: Planned, console: Console) -> None:
    console.print(f"Claim: {planned.budget} for unit {planned.unit.name!r}, {counted(planned.timeline.steps, 'step')}")
    for allotment in planned.every_allotment:
        measurement = allotment.measurement
        groups = "" if allotment.by is None else f", in {groups_text(allotment.by)}"
        console.print(f"  {allotment.query.window}: {measurement.design.strategy}, {measurement.law} noise{groups}")


def _show_exact(exactly: ExactAudit, console: Console) -> None:
    how = "every neighbouring pair" if exactly.exhaustive else "the worst of the pairs that a search tried"
    console.print(f"\nExact audit: {how}, {exactly.pairs:,} compared")
    loss = exactly.loss
    console.print(f"  {loss.name} = {_between(loss.bounds.low, loss.bounds.high)}, claimed {loss.claimed:.6g}")
    if loss.epsilon is not None:
        console.print(f"  epsilon = {loss.epsilon:.6g} at the claimed delta")
    console.print(f"  {percent(exactly.of_certified)} of what the certificates allow for")
    console.print(f"  {exactly.verdict}", style="bold")
    _finds(console, "a wrong sensitivity, stated scale or share of the budget; no noise is drawn here")
    if not exactly.exhaustive and exactly.verdict == "within the claim":
        console.print("  (a search is no proof; where there are few steps every pair is compared)", style="dim")


def _between(low: float, high: float) -> str:
    shown = f"{low:.6g}", f"{high:.6g}"
    return shown[1] if shown[0] == shown[1] else f"{shown[0]} to {shown[1]}"


def _show_noise(noise: NoiseAudit, console: Console) -> None:
    console.print(f"\nNoise: what is measured less what is exact; {noise.tests:,} tests")
    for one in noise.measurements:
        console.print(f"  {one.window}: {one.draws:,} draws, {one.law} of scale {one.scale:.6g} stated")
        if one.found_below is not None and one.found_above is not None:
            _finds(
                console,
                f"less than {percent(one.found_below)} or more than {percent(one.found_above)} of that scale "
                "(probability 0.99)",
            )
    _faults([f"{fault.test}: chance {fault.chance:.1g}" for fault in noise.faults], console)
    console.print(f"  {noise.verdict} (false alarm: probability {noise.error:g} over all tests)")
    _finds(console, "another law; noise shared by numbers, thresholds, queries or calls; noise that heeds the log")
    _finds(console, "no fault of the sampler that these scales hide: the package's own tests look for those")


def _show_encoding(encoding: EncodingAudit, console: Console) -> None:
    console.print(
        f"\nEncoding: {encoding.logs:,} made-up logs of up to {encoding.largest:,} items, "
        f"{encoding.neighbours:,} pairs of neighbours on top of them"
    )
    _faults(encoding.faults, console)
    console.print(f"  {encoding.verdict}", style="bold")
    _finds(console, "integers that change with the size or form of these logs, or from one time to the next")


def _show_replay(replay: ReplayAudit, console: Console) -> None:
    console.print(
        f"\nReplay: {replay.pairs:,} pairs of neighbours, each released under one noise, {replay.draws:,} draws"
    )
    console.print(f"  {percent(replay.of_certified)} of the certified sensitivity reached")
    _faults(replay.faults, console)
    console.print(f"  {replay.verdict}", style="bold")
    _finds(console, "rows, errors, metadata or noise that depend on these logs; a sensitivity they exceed")


def _show_black_box(seen: BlackBoxAudit, console: Console) -> None:
    at = f" at delta = {seen.claim.delta:g}" if seen.claim.delta else ""
    console.print(f"\nBlack-box audit: {seen.runs:,} releases of each log")
    console.print(
        f"  an event chosen on {seen.runs - seen.tested:,} of them occurred in {seen.seen[0]:,} "
        f"and in {seen.seen[1]:,} of the other {seen.tested:,}"
    )
    shown = f"{percent(seen.share, 2)} of" if seen.share > 0 else "which shows nothing of"
    console.print(
        f"  epsilon >= {seen.bound:.3g}{at} ({percent(1 - seen.error, 6)} confidence), {shown} the "
        f"{seen.claim.epsilon:.3g} claimed there{'' if seen.share > 0 else '; that is no fault'}"
    )
    console.print(f"  {seen.verdict}", style="bold")
    if seen.share > 0:
        _finds(console, f"an epsilon of about {1 / seen.share:.2g} times the claim, whatever its cause")
    else:
        console.print("  So few releases can only find a mechanism that has no privacy at all.", style="dim")


def _finds(console: Console, what: str) -> None:
    console.print(f"  finds {what}", style="dim")


def _faults(faults: Sequence[str], console: Console) -> None:
    for fault in faults[:_SHOWN]:
        console.print(f"  FAULT: {fault}", style="red")
    if len(faults) > _SHOWN:
        console.print(f"  FAULT: and {len(faults) - _SHOWN:,} more", style="red")
