"""One HTML file for any set of outcomes: figures and style inside it, no network needed."""

from __future__ import annotations

import base64
import html
import time
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from saltus.core import study as registry
from saltus.core.errors import BadInput
from saltus.core.progress import clock
from saltus.core.record import device_name
from saltus.core.store import replace
from saltus.report import views
from saltus.report.table import condition, interval, number, verdict

if TYPE_CHECKING:
    from saltus.core.claim import Claim
    from saltus.report.outcome import Outcome

CSS = files("saltus.report").joinpath("page.css").read_text(encoding="utf-8")

SHELL = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<title>{title}</title><style>{css}
body{{margin:0;background:var(--paper)}}
main{{max-width:60rem;margin:0 auto;padding:2.2rem 1.2rem 4rem}}</style></head>
<body><main class="saltus"><h1>{title}</h1>{body}</main></body></html>
"""


def write_page(
    outcomes: Sequence[Outcome], file: str | Path, title: str = "saltus: what was seen, and what theory says"
) -> Path:
    """Write one self-contained page; **returns** its path."""
    file = Path(file).expanduser()
    body = _tally(outcomes) + _contents(outcomes) + "".join(section(o, style=False) for o in outcomes)
    body += _sources(outcomes)
    body += f'<p class="note">Made {time.strftime("%Y-%m-%d %H:%M")} by saltus.</p>'
    page = SHELL.format(title=html.escape(title), css=CSS, body=body)
    try:
        file = file.resolve()  # a link goes on leading to what it leads to
        if file.exists() and not file.is_file():
            what = "a folder" if file.is_dir() else "no plain file"
            raise BadInput(f"{file} is {what}; give the name of a file to write the page to")
        file.parent.mkdir(parents=True, exist_ok=True)
        replace(file, page.encode(errors="xmlcharrefreplace"))
    except (OSError, RuntimeError) as error:
        raise BadInput(f"cannot write {file}: {getattr(error, 'strerror', None) or error}") from None
    return file


def section(outcome: Outcome, *, style: bool = True) -> str:
    """One study: title, figure, claims, how to see it again."""
    info, manifest = outcome.info, outcome.record.manifest
    made = f"{clock(manifest['seconds'])} on {device_name(manifest)}"
    words = " · ".join(filter(None, (info.id, info.shows, outcome.variant, made)))
    head = f"<style>{CSS}</style>" if style else ""
    gone = outcome.diverged
    lost = f'<div class="warn">{html.escape(str(gone))}</div>' if gone and gone.runs else ""
    return (
        f'{head}<section class="study saltus" id="{html.escape(_anchor(outcome))}">'
        f'<h2>{html.escape(info.title)}</h2><div class="id">{html.escape(words)}</div>{lost}'
        f"{_picture(outcome)}{_claims(outcome.claims)}{_again(outcome)}</section>"
    )


def _anchor(outcome: Outcome) -> str:
    """Where a link finds this record: a page may hold several of one study."""
    return f"{outcome.info.id}/{outcome.record.path.name}"


def _picture(outcome: Outcome) -> str:
    drawn = views.drawn_bytes(outcome, "png")
    if not drawn:
        return ""
    source = base64.b64encode(drawn[0]).decode()
    name = html.escape(outcome.info.title)
    return f'<figure><img alt="{name}" src="data:image/png;base64,{source}"></figure>'


def claims_section(claims: Sequence[Claim]) -> str:
    """The table of claims by itself."""
    return f'<style>{CSS}</style><section class="saltus">{_claims(claims)}</section>'


def _claims(claims: Sequence[Claim]) -> str:
    names = ("claim", "value", "95% interval", "n", "test", "verdict", "control")
    head = "".join(f"<th>{name}</th>" for name in names)
    return f'<div class="wide"><table><tr>{head}</tr>{"".join(map(_row, claims))}</table></div>'


def _row(c: Claim) -> str:
    why = f'<div class="why">{html.escape(c.because)}</div>' if c.because else ""
    mood = "bad" if not c.as_documented else "good" if c.holds else "warn"
    control = f'{number(c.control.estimate.value)} <span class="why">{html.escape(c.control.says)}</span>'
    cells = (
        html.escape(c.says) + why,
        number(c.estimate.value),
        interval(c),
        str(c.estimate.n),
        html.escape(condition(c)),
        f'<span class="{mood}">{verdict(c)}</span>',
        control,
    )
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _again(outcome: Outcome) -> str:
    manifest = outcome.record.manifest
    settings = "\n".join(f"{name} = {value}" for name, value in outcome.settings.items())
    packages = ", ".join(f"{n} {v}" for n, v in manifest["packages"].items())
    machine = manifest["machine"]
    where = f"{machine['cpu']}, {machine['cores']} cores; {manifest['device']['platform']}"
    made = f"commit {manifest.get('commit')}; {packages}\n{where}; {manifest['started']}"
    text = f"{outcome.command}\n\n{settings}\n\n{made}"
    return f"<details><summary>see it again</summary><pre>{html.escape(text)}</pre></details>"


def _tally(outcomes: Sequence[Outcome]) -> str:
    claims = [c for o in outcomes for c in o.claims]
    odd = sum(not c.as_documented for c in claims)
    counts = (
        (len(outcomes), "studies", ""),
        (sum(c.holds for c in claims), "claims hold", "good"),
        (sum(not c.holds for c in claims), "do not hold", "warn"),
        (odd, "came out other than documented", "bad" if odd else ""),
    )
    return (
        '<div class="tally">'
        + "".join(f'<div class="{mood}"><b>{count}</b>{what}</div>' for count, what, mood in counts)
        + "</div>"
    )


def _contents(outcomes: Sequence[Outcome]) -> str:
    if len(outcomes) < 3:
        return ""
    items = "".join(
        f'<li><a href="#{html.escape(_anchor(o))}">{html.escape(o.info.title)}</a> '
        f'<span class="id">{html.escape(_name(o, outcomes))}</span></li>'
        for o in outcomes
    )
    return f"<ol>{items}</ol>"


def _name(outcome: Outcome, all_: Sequence[Outcome]) -> str:
    """The study's id, and what was changed where the page has it more than once."""
    id = outcome.info.id
    twice = sum(o.info.id == id for o in all_) > 1
    return f"{id} · {outcome.record.manifest['variant']}" if twice else id


def _sources(outcomes: Sequence[Outcome]) -> str:
    cited = {o.info.cites for o in outcomes if o.info.cites}
    found = [p for p in registry.papers().values() if p.key in cited]
    items = "".join(
        f"<li>{html.escape(p.authors)} ({p.year}). <i>{html.escape(p.title)}</i>. {html.escape(p.venue)}."
        f"<details><summary>BibTeX</summary><pre>{html.escape(p.bibtex())}</pre></details></li>"
        for p in found
    )
    return f'<section class="study"><h2>Sources</h2><ul>{items}</ul></section>' if items else ""
