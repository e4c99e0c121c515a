"""Claims as Markdown: one row for each claim and reading, nothing left out."""

from __future__ import annotations

from collections.abc import Iterable

from pages.records import PLAIN, READINGS, Found
from saltus import python
from saltus.core.claim import Claim
from saltus.core.progress import clock
from saltus.core.record import device_name
from saltus.core.study import Info
from saltus.report.outcome import Outcome
from saltus.report.table import condition, interval, number

COLUMNS = ("claim", "reading", "verdict", "value", "95% interval", "n", "must be", "control")


def page(found: Found) -> str:
    """The table of every claim, below its title."""
    parts = [_summary(found)]
    parts += [_section(info, found) for info in python.studies().values() if _outcomes(info, found)]
    return "\n\n".join(parts) + "\n"


def verdict(claim: Claim) -> str:
    """In words: the sentence's fate, and whether that was expected."""
    if claim.control.holds:
        return "**control did not fail**"
    words = "holds" if claim.holds else "does not hold"
    return words if claim.holds == claim.expected else f"**{words}, documented otherwise**"


def escaped(text: str) -> str:
    """Text for a cell of a table."""
    return text.replace("|", "\\|").replace("*", "\\*").replace("_", "\\_").replace("<", "&lt;")


def _summary(found: Found) -> str:
    rows = []
    for reading in (*READINGS, PLAIN):
        of = [o for (_, r), o in found.items() if r == reading]
        claims = [c for o in of for c in o.claims]
        if claims:
            held = sum(c.holds for c in claims)
            odd = sum(not c.as_documented for c in claims)
            cells = (reading or "(one reading)", len(of), len(claims), held, len(claims) - held, odd)
            rows.append("| " + " | ".join(map(str, cells)) + " |")
    head = "| reading | studies | claims | hold | do not hold | came out other than documented |"
    return "\n".join([head, "|---|---:|---:|---:|---:|---:|", *rows])


def _section(info: Info, found: Found) -> str:
    outcomes = _outcomes(info, found)
    figure = f"{info.shows}. " if info.figure else ""
    made = [
        f"`{o.record.manifest['command']}`: {clock(o.record.manifest['seconds'])} on "
        f"{device_name(o.record.manifest)}"
        for o in outcomes.values()
    ]
    lines = [f"## {info.id}", "", f"{figure}{info.title}", "", *[f"- {m}" for m in dict.fromkeys(made)], ""]
    lines += ["| " + " | ".join(COLUMNS) + " |", "|---|---|---|---:|---:|---:|---|---|"]
    names = dict.fromkeys(c.id for o in outcomes.values() for c in o.claims)
    for name in names:
        said = ""
        for reading, outcome in outcomes.items():
            for claim in outcome.claims:
                if claim.id == name:
                    lines.append(_row(claim, reading, claim.says == said))
                    said = claim.says
    return "\n".join(lines)


def _row(claim: Claim, reading: str, same: bool) -> str:
    words = "same" if same else f"`{claim.id}` {escaped(claim.says)}"
    if claim.because:
        words += f" *Because {escaped(claim.because)}.*"
    e, control = claim.estimate, claim.control
    return "| " + " | ".join(
        (
            words, reading or "-", verdict(claim), number(e.value), interval(claim), str(e.n),
            condition(claim), f"{number(control.estimate.value)} {escaped(control.says)}",
        )
    ) + " |"  # fmt: skip


def _outcomes(info: Info, found: Found) -> dict[str, Outcome]:
    return {r: found[info.id, r] for r in (*READINGS, PLAIN) if (info.id, r) in found}


def odd(outcomes: Iterable[Outcome]) -> list[str]:
    """The claims that came out other than documented."""
    return [f"{o.info.id} {c.id}" for o in outcomes for c in o.claims if not c.as_documented]
