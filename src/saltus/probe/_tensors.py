"""Tensors of a safetensors file by name; whatever is wrong with the file is one line."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from saltus.core.errors import BadInput, nearest

__all__ = ["Tensors", "opened"]


@dataclass
class Tensors:
    """What an open file holds."""

    file: Path
    names: tuple[str, ...]
    held: Any
    narrow: bool = False  # whether 16-bit numbers were read

    def read(self, name: str) -> np.ndarray:
        """One tensor of floating numbers, float32 at least."""
        if name not in self.names:
            raise BadInput(f"{self.file} holds no {name!r}{nearest(name, self.names)}")
        try:
            array = np.asarray(self.held.get_tensor(name))
        except (AttributeError, TypeError) as error:  # numbers that numpy has no name for
            raise BadInput(f"{self.file}: {name} is of a kind of numbers that is not read here") from error
        if array.dtype.kind in "iub" or array.dtype.itemsize < 2:
            raise BadInput(
                f"{self.file}: {name} holds {array.dtype.name} numbers; such weights need their scales"
            )
        self.narrow |= array.dtype.itemsize < 4
        return array.astype(np.promote_types(array.dtype, np.float32), copy=False)


@contextmanager
def opened(file: Path) -> Iterator[Tensors]:
    """The tensors of a file, which stay on the disk until they are read."""
    from safetensors import SafetensorError, safe_open

    if not file.is_file():
        raise BadInput(f"{file}: no safetensors file there")
    try:
        with safe_open(str(file), "np") as held:
            tensors = Tensors(file, tuple(held.keys()), held)
            yield tensors
    except (SafetensorError, OSError) as error:
        raise BadInput(f"{file} is not a safetensors file: {error}") from error
    if tensors.narrow:
        warnings.warn(
            f"{file.name} holds 16-bit numbers: small changes of weights are lost in their rounding",
            stacklevel=5,
        )
