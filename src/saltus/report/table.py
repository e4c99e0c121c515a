"""Claims as a table on a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from saltus.core.claim import Claim
from saltus.core.progress import clock
from saltus.core.record import device_name

if TYPE_CHECKING:
    from saltus.report.outcome import Outcome


def number(x: float) -> str:
    """Four digits, however large or small."""
    return f"{x:.4g}" if x == x else "undefined"


def condition(claim: Claim) -> str:
    t = claim.threshold
    if isinstance(t, tuple):
        return f"in [{number(t[0])}, {number(t[1])}]"
    return f"{'≥' if claim.test == 'above' else '≤'} {number(t)}"


def verdict(claim: Claim) -> str:
    """The outcome of a claim in words."""
    if claim.control.holds:
        return "control did not fail"
    if claim.holds == claim.expected:
        return "holds" if claim.holds else "does not hold"
    if claim.open:
        return "not settled: the interval reaches past the threshold"
    return f"{'holds' if claim.holds else 'does not hold'}, documented otherwise"


def interval(claim: Claim) -> str:
    e = claim.estimate
    if e.low == -math.inf and e.high == math.inf:
        return "too few runs for an interval" if math.isfinite(e.value) else "none"
    return number(e.value) if e.low == e.high == e.value else f"[{number(e.low)}, {number(e.high)}]"


def outcome_table(outcome: Outcome) -> Any:
    """One study's claims for a terminal of any width: verdict, number and test, then the sentence."""
    from rich.console import Group
    from rich.text import Text

    manifest = outcome.record.manifest
    made = f"{clock(manifest['seconds'])} on {device_name(manifest)}"
    lines: list[Any] = [Text(f"{outcome.info.id}  {outcome.info.title}", style="bold")]
    lines.append(Text(f"{manifest['variant']}; {made}", style="dim"))
    if outcome.diverged and outcome.diverged.runs:
        lines.append(Text(str(outcome.diverged), style="yellow"))
    lines += _claim_lines(outcome.claims)
    lines.append(Text(str(outcome.record.path), style="dim", overflow="fold"))
    return Group(*lines, "")


def claims_table(claims: Sequence[Claim]) -> Any:
    """The claims by themselves."""
    from rich.console import Group

    return Group(*_claim_lines(claims))


def _claim_lines(claims: Sequence[Claim]) -> list[Any]:
    from rich.padding import Padding
    from rich.text import Text

    lines: list[Any] = []
    for claim in claims:
        mark, colour = _mark(claim)
        e = claim.estimate
        spread = interval(claim)
        spread = "" if e.low == e.high == e.value or spread == "none" else f" {spread}"
        head = Text.assemble(
            (f" {mark} {verdict(claim)}", f"bold {colour}"),
            f"  {number(e.value)}{spread}, must be {condition(claim)}  (n={e.n})",
        )
        lines += [head, Padding(Text(claim.says), (0, 0, 0, 3))]
        if claim.because:
            lines.append(Padding(Text(f"because {claim.because}", style="dim"), (0, 0, 0, 3)))
        control = f"control: {claim.control.says}: {number(claim.control.estimate.value)}"
        lines.append(Padding(Text(control, style="dim"), (0, 0, 0, 3)))
    return lines


def _mark(claim: Claim) -> tuple[str, str]:
    if not claim.as_documented:
        return "!", "red"
    return ("+", "green") if claim.holds else ("-", "yellow")
