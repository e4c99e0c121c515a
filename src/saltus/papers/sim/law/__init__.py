"""What theory says will be seen on the SIM task, as functions: one file per law."""

from __future__ import annotations

import importlib
from typing import Any

_SUBMODULES = (
    "affine",
    "assumptions",
    "descents",
    "hitting",
    "lemmas",
    "one_layer",
    "stages",
    "two_layer",
)


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(_SUBMODULES)
