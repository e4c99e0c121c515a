"""Claims as a table on a terminal."""

from __future__ import annotations

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
    words = "holds" if claim.holds else "does not hold"
    return words if claim.holds == claim.expected else f"{words}, documented otherwise"


def interval(claim: Claim) -> str:
    e = claim.estimate
    return number(e.value) if e.low == e.high == e.value else f"[{number(e.low)}, {number(e.high)}]"


def outcome_table(outcome: Outcome) -> Any:
    """A rich table of one study's claims."""
    from rich.markup import escape
    from rich.table import Table

    manifest = outcome.record.manifest
    made = f"{clock(manifest['seconds'])} on {device_name(manifest)}"
    table = Table(
        title=escape(f"{outcome.info.id}  {outcome.info.title}"),
        caption=escape(f"{manifest['variant']}; {made}; {outcome.record.path}"),
        title_justify="left",
        caption_justify="left",
        expand=False,
    )
    table.add_column("claim", ratio=4)
    for name in ("value", "interval", "n", "test", "verdict", "control"):
        table.add_column(name, justify="right" if name in ("value", "n") else "left")
    for claim in outcome.claims:
        colour = (
            "green" if claim.as_documented and claim.holds else "yellow" if claim.as_documented else "red"
        )
        says = escape(claim.says) + (f"\n[dim]{escape(claim.because)}[/dim]" if claim.because else "")
        table.add_row(
            says,
            number(claim.estimate.value),
            escape(interval(claim)),
            str(claim.estimate.n),
            escape(condition(claim)),
            f"[{colour}]{verdict(claim)}[/{colour}]",
            escape(f"{number(claim.control.estimate.value)} ({claim.control.says})"),
        )
    return table
