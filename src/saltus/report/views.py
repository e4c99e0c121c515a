"""The views kept beside a record: its figure as PNG and PDF, its claims as JSON."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING

from saltus.core.store import write_file

if TYPE_CHECKING:
    from saltus.report.outcome import Outcome

PNG, PDF, CLAIMS = "figure.png", "figure.pdf", "claims.json"


def write_views(outcome: Outcome, *, draw: bool = True) -> list[Path]:
    """Write claims and figure next to the data; the record itself is not touched."""
    place = outcome.record.path
    write_file(place / CLAIMS, (json.dumps(outcome.as_json(), indent=1, sort_keys=False) + "\n").encode())
    if draw and outcome.draws:
        draw_to(outcome, place / PNG, place / PDF)
        return [place / PNG, place / PDF, place / CLAIMS]
    return [place / CLAIMS]


def draw_to(outcome: Outcome, *files: Path) -> None:
    """Draw once, save in every format asked for; the same record gives the same bytes."""
    from saltus.report.style import house_style

    figure = outcome.figure()
    with house_style():
        for file in files:
            held = io.BytesIO()
            kind = file.suffix[1:]
            stamp = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(kind, {"Software": None})
            figure.savefig(held, format=kind, metadata=stamp)
            write_file(file, held.getvalue())


def drawn_bytes(outcome: Outcome) -> bytes | None:
    """The figure as PNG, drawn anew."""
    if not outcome.draws:
        return None
    from saltus.report.style import house_style

    figure = outcome.figure()
    held = io.BytesIO()
    with house_style():
        figure.savefig(held, format="png", metadata={"Software": None})
    return held.getvalue()


def content_name(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]
