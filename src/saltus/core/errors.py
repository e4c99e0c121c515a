"""What a user can get wrong, said in one line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class BadInput(ValueError):
    """A request that cannot be carried out: one line saying what was wrong and what would be right."""


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean X?` for the closest known word, or nothing."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"; did you mean {close[0]}?" if close else ""
