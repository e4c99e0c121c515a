"""Tables that take more of a record than one number of a claim."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pages.records import PLAIN, READINGS, Found
from saltus import python
from saltus.core.errors import BadInput
from saltus.report.outcome import Outcome


def percent(x: float) -> str:
    """A share in words, with a digit more where it is small."""
    return f"{100 * x:.1f}%" if 0 < x < 0.0995 else f"{100 * x:.0f}%"


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in (head, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])


def studies() -> str:
    """Every study with its command; needs no record."""
    rows = []
    for info in python.studies().values():
        rows.append((f"`saltus run {info.id}`", info.shows, info.title.replace("|", "\\|")))
    return markdown(("command", "of the paper", "what is found"), rows)


def census(found: Found) -> str:
    """Share of starts with 1, 2, ... descents against the number of concepts, for both starts and powers."""
    rows, theta = [], 0.0
    for start in ("uniform", "gaussian"):
        # Each reading has a record of its own dynamics.
        for power, name, reading in ((1, "A", READINGS[0]), (2, "A²", READINGS[1])):
            record = _record(found, "sim/census", reading).data
            theta = float(record.theta[0])
            counts = record["count"].sum("sign").sel(theta=theta)
            chosen = (record.family == "concepts") & (record.start == start) & (record.power == power)
            for s, row in zip(record.x.values[chosen], counts.values[chosen], strict=True):
                shares = row / row.sum()
                several = [percent(float(v)) for v in shares[1 : int(s) + 1]]
                words = [*several, *["-"] * (6 - len(several))]
                rows.append((start, name, f"{int(s)}", *words, f"{int(row.sum())}"))
    head = ("start", "dynamics", "s", "1", "2", "3", "4", "5", "6", "starts")
    return f"Descents by more than {theta:.1%} of the loss at the start:\n\n" + markdown(head, rows)


def lemmas(found: Found) -> str:
    """Share of admissible starts that violate each statement, for both dynamics."""
    claims = {c.id: c for c in _record(found, "sim/lemmas").claims}
    rows = []
    for id, claim in claims.items():
        if id.endswith("-recursion"):
            twin = claims[id.removesuffix("recursion") + "gd"]
            name = claim.says.split(" holds")[0]
            cells = [f"{percent(c.estimate.value)} of {c.estimate.n}" for c in (claim, twin)]
            rows.append((name, *cells))
    return markdown(("statement", "violating, recursion D.2 on W", "violating, GD on U"), rows)


def widths(found: Found) -> str:
    """Networks of the world of figure 10 that have not learnt, by width and for both readings."""
    rows: list[tuple[str, ...]] = []
    for reading in READINGS:
        outcome = _record(found, "sim/failures", reading)
        record: Any = outcome.data
        for k, width in enumerate(record.width.values):
            never, late = float(record.long_never[k]), float(record.long_late[k])
            total = outcome.study.followed_runs(int(width))
            when = [f"{outcome.study.published:g}", f"{outcome.study.long:g}"]
            cells = [f"{percent(x / total)} at t = {t}" for x, t in zip((late, never), when, strict=True)]
            rows.append((reading, f"{int(width)}", *cells))
    return markdown(("reading", "columns d'", "not learnt by the end of the figure", "much later"), rows)


TABLES: dict[str, Callable[[Found], str]] = {"census": census, "lemmas": lemmas, "widths": widths}


def _record(found: Found, id: str, reading: str = READINGS[0]) -> Outcome:
    for key in ((id, reading), (id, PLAIN)):
        if key in found:
            return found[key]
    raise BadInput(f"no record of {id} {reading}")


def between(text: str, name: str, inside: str, file: Path) -> str:
    """The text with what stands between the marks of that name replaced."""
    start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    if text.count(start) != 1 or text.count(end) != 1:
        raise BadInput(f"{file} needs the marks {start} and {end}, once each")
    before, rest = text.split(start)
    return before + start + "\n" + inside + "\n" + end + rest.split(end)[1]
