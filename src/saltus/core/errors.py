"""What a user can get wrong, said in one line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class BadInput(ValueError):
    """A request that cannot be carried out: one line saying what was wrong and what would be right."""


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean X?` for the closest known word, whatever its case, or nothing."""
    spelt = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), list(spelt), n=1, cutoff=0.5)
    return f"; did you mean {spelt[close[0]]}?" if close else ""
