"""Titles and small print that stay within their figure."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from saltus.report import figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["finding"]

TITLE, NOTE = 11.0, 19.0  # letters an inch holds


def finding(fig: Figure, text: str, note: str = "") -> None:
    """The title says what was found; the note, under which settings; both in as many lines as they need."""
    width = float(fig.get_figwidth())
    lines = [textwrap.fill(words, int(per * width)) for words, per in ((text, TITLE), (note, NOTE))]
    figure.finding(fig, *lines)
