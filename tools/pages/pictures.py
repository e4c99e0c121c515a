"""Figures small enough for a repository: 110 dots per inch, and a palette instead of full colour."""

from __future__ import annotations

import io
from pathlib import Path

from PIL import Image

from pages.records import PLAIN, READINGS, Found
from saltus.core.errors import BadInput
from saltus.report.outcome import Outcome
from saltus.report.style import house_style

DPI = 110
COLOURS = (128, 64, 32)
MOST = 120_000  # bytes


def small(outcome: Outcome, most: int = MOST) -> bytes:
    """The figure as PNG within `most` bytes, in as many colours as fit."""
    figure, held = outcome.figure(), io.BytesIO()
    with house_style():
        figure.savefig(held, format="png", dpi=DPI, metadata={"Software": None})
    whole = Image.open(held).convert("RGB")
    for colours in COLOURS:
        fewer = whole.quantize(colours, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
        out = io.BytesIO()
        fewer.save(out, "PNG", optimize=True)
        if len(out.getvalue()) <= most:
            return out.getvalue()
    raise BadInput(f"the figure of {outcome.info.id} does not fit {most} bytes at {COLOURS[-1]} colours")


def name(id: str, reading: str) -> str:
    """The file of a study's picture, without its folder."""
    return id.split("/")[1] + ("-as-drawn" if reading == READINGS[1] else "") + ".png"


def gallery(found: Found, folder: Path) -> tuple[str, dict[Path, bytes]]:
    """The page below its title, and the pictures it shows."""
    lines: list[str] = []
    files: dict[Path, bytes] = {}
    for id in dict.fromkeys(id for id, _ in found):
        shown = [(r, found[id, r]) for r in (*READINGS, PLAIN) if (id, r) in found]
        lines += [f"## {id}", "", shown[0][1].info.title, ""]
        for reading, outcome in shown:
            if not outcome.draws:
                continue
            file = name(id, reading)
            files[folder / file] = small(outcome)
            held, total = sum(c.holds for c in outcome.claims), len(outcome.claims)
            command = outcome.record.manifest["command"]
            if reading == READINGS[1] and reading not in command:
                command += " --reading as-drawn"  # one record, two readings
            lines += [f"![{id} {reading}](figures/{folder.name}/{file})", ""]
            lines += [f"`{command}`: {held} of {total} claims hold.", ""]
    return "\n".join(lines), files
