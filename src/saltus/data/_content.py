"""What a data set is once loaded, and the one checksum that names it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]
    Content = dict[str, Bytes]


class Unusable(Exception):
    """One line on why a source did not give the data set; the next source is tried."""


@dataclass(frozen=True, eq=False, repr=False)
class Images:
    """Labelled images with the split their authors made.

    **Arguments:** `x`: uint8 `[n, height, width]` or `[n, height, width, 3]`, from 0 to `peak`;
    `y`: uint8 `[n]`, indices into `classes`; `test_x`, `test_y`: the same, empty where there is no split.
    """

    name: str
    x: Bytes
    y: Bytes
    test_x: Bytes
    test_y: Bytes
    peak: int
    classes: tuple[str, ...]

    def __repr__(self) -> str:
        shape = "x".join(str(n) for n in self.x.shape[1:])
        count = f"{len(self.x):,} + {len(self.test_x):,}"
        return f"Images({self.name}: {count} of {shape}, {len(self.classes)} classes)"


@dataclass(frozen=True, eq=False, repr=False)
class Text:
    """Texts by title, in alphabetical order of the titles."""

    name: str
    parts: Mapping[str, str]

    @property
    def whole(self) -> str:
        """All parts, one after another, an empty line between them."""
        return "\n\n".join(self.parts.values())

    def __repr__(self) -> str:
        return (
            f"Text({self.name}: {len(self.parts)} parts, {sum(map(len, self.parts.values())):,} characters)"
        )


def digest(content: Content) -> str:
    """The sha256 of names, shapes and bytes: the same whichever files the content was decoded from."""
    total = hashlib.sha256()
    for name in sorted(content):
        array = content[name]
        total.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        total.update(array.tobytes())
    return total.hexdigest()
