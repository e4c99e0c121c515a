"""Feature learning in diffusion models against classification (Han, Huang, Cao, Zou, ICLR 2025)."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from saltus.papers.features import law as law
    from saltus.papers.features import model as model
    from saltus.papers.features import training as training
    from saltus.papers.features import world as world
    from saltus.papers.features.world import TwoPatch as TwoPatch

_SUBMODULES = ("law", "model", "training", "world")
_NAMES = {"TwoPatch": "world"}


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _NAMES:
        return getattr(importlib.import_module(f"{__name__}.{_NAMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
