"""The views kept beside a record: its figure as PNG and PDF, its claims as JSON."""

from __future__ import annotations

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
    names = (PNG, PDF) if draw else ()
    for name, data in zip(names, drawn_bytes(outcome, *(n.rpartition(".")[2] for n in names)), strict=False):
        write_file(place / name, data)
    return [place / name for name in (*names, CLAIMS) if (place / name).exists()]


def drawn_bytes(outcome: Outcome, *kinds: str) -> list[bytes]:
    """The figure drawn anew, once, in each of the formats; the same record gives the same bytes.

    **Returns:** nothing for a study that draws nothing, and where runs left the numbers so far that no
    figure can show them.
    """
    if not outcome.draws or not kinds:
        return []
    from saltus.report.style import house_style

    found = []
    try:
        figure = outcome.figure()
        with house_style():
            for kind in kinds:
                held = io.BytesIO()
                stamp = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(kind, {"Software": None})
                figure.savefig(held, format=kind, metadata=stamp)
                figure.set_layout_engine("none")  # laid out once, for every format
                found.append(held.getvalue())
    except (ValueError, ArithmeticError, IndexError):
        if outcome.finite:
            raise
        return []
    return found
