"""Gradual rank increase: one coordinate, or one rank, after another (Boix-Adserà et al., NeurIPS 2023)."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from saltus.papers.rank import law as law

_SUBMODULES = ("law",)


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
